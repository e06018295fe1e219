"""What kernels written by hand have in common: element types, prefix masks, block transposes.

For: the modules of this package, and those elsewhere in the compiler that speak of their elements
(`size_of`, `strides`, `fused`). What would break it: a dtype in `ELEMENTS` whose elements in memory
are not the LLVM type it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.cpu.builder.builder import TYPES, Builder, Module, Value, const, const_lanes, vector
from numjet.cpu.link import link

# LLVM element type and a short name by NumPy dtype name.
ELEMENTS = {
    "float32": "float",
    "float64": "double",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "int16": "i16",
    "uint16": "i16",
    "int8": "i8",
    "uint8": "i8",
    "bool": "i8",
    "float16": "half",
    "bfloat16": "bfloat",
}

# Attributes of what runs once a task or a call: compiled without care, in less than half the time.
GLUE = "nounwind noinline optnone"


def element(dtype: np.dtype) -> str | None:
    """The LLVM element type of `dtype`, or None."""
    return ELEMENTS.get(dtype.name)


# Two 16-bit or four 8-bit integers side by side, elements of products (`products.packed`).
PAIRS, FOURS = "pairs", "fours"


def size_of(element: str) -> int:
    """Bytes of one element."""
    return TYPES[stored(element)].bits // 8


def stored(element: str) -> str:
    """The LLVM type that one element has in memory."""
    return "i32" if element in (PAIRS, FOURS) else element


def lanes_of(element: str) -> int:
    """Lanes of a full vector register of `element`."""
    return link.vector_bytes() // size_of(element)


def prefix_mask(b: Builder, count: Value | int, lanes: int) -> Value:
    """Lanes below `count` (an i64 or a Python number; may be beyond `lanes`)."""
    if not isinstance(count, Value):
        return const_lanes([k < count for k in range(lanes)], "i1")
    bits = b.trunc(b.min(b.max(count, 0), lanes), "i32")
    return b.icmp("slt", b.iota("i32", lanes), b.splat(bits, lanes))


def transpose_block(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """A square of lanes transposed: value k of the result holds lane k of every row."""
    rows = list(rows)
    n = len(rows)
    # Exchange off-diagonal blocks of width 1, 2, 4, …: each is an unpack or a 128-bit shuffle.
    width = 1
    while width < n:
        low = [(k if k // width % 2 == 0 else n + k - width) for k in range(n)]
        high = [(k + width if k // width % 2 == 0 else n + k) for k in range(n)]
        for k in range(n):
            if k // width % 2 == 0:
                one, two = rows[k], rows[k + width]
                rows[k] = b.shuffle(one, two, low)
                rows[k + width] = b.shuffle(one, two, high)
        width *= 2
    return rows


def fused(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x·y + z, by one instruction where the target has it."""
    if TYPES[x.type].is_float and (b.module.has("fma") or b.module.has("neon")):
        return b.fma(x, y, z)
    return b.add(b.mul(x, y), z)


def strides(shape: Sequence[int], size: int) -> list[int]:
    """Byte strides of a C-contiguous array."""
    found, step = [], size
    for n in reversed(shape):
        found.append(step)
        step *= n
    return found[::-1]


def merge(axes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Join neighbours (size, strides...) that one stride covers in every array."""
    merged: list[tuple[int, ...]] = []
    for axis in axes:
        if axis[0] == 1:
            continue
        if merged and all(s == t * axis[0] for s, t in zip(merged[-1][1:], axis[1:], strict=True)):
            axis = (merged.pop()[0] * axis[0], *axis[1:])
        merged.append(axis)
    return merged


class Fields:
    """The 64-bit integers of a table by name, each loaded where it is first read."""

    def __init__(self, b: Builder, pointer: Value, names: Sequence[str]) -> None:
        self._b, self._pointer, self._names = b, pointer, names

    def __getattr__(self, name: str) -> Value:
        b = self._b
        value = b.load(b.gep(self._pointer, 8 * self._names.index(name)), "i64", 8)
        setattr(self, name, value)
        return value


def parallel_call(
    b: Builder,
    task: Callable[[Builder, list[Value], Value, Value], None],
    pointers: Sequence[Value],
    count: int,
    grain: int,
    attributes: str = "nounwind",
) -> None:
    """Run `task(builder, pointers, begin, end)` over range(count), on all threads beyond `grain`.

    The task is written as a function of its own, with these attributes.
    """
    module = b.module
    name = f"{b.name}_task{len(module.functions)}"
    arguments = [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")]
    inner = Builder(module, name, arguments, linkage="internal", attributes=attributes)
    context, begin, end = inner.args
    kept = [inner.load(inner.gep(context, 8 * k), "ptr", 8) for k in range(len(pointers))]
    task(inner, kept, begin, end)
    inner.ret()
    place = b.alloca(f"[{len(pointers)} x ptr]")
    for k, pointer in enumerate(pointers):
        b.store(pointer, b.gep(place, 8 * k), 8)
    if count > grain:
        b.call(
            "nj_parallel_for", "void", Value(f"@{name}", "ptr"), place,
            b.const(count, "i64"), b.const(grain, "i64"),
        )  # fmt: skip
    else:
        b.call(name, "void", place, b.const(0, "i64"), b.const(count, "i64"))


def table(module: Module, values: Sequence[int | str]) -> Value:
    """A constant table of 64-bit integers and addresses (of functions, by name); its address."""
    words = []
    for value in values:
        if isinstance(value, str):
            module.declare(value, "void", ())
            words.append(f"i64 ptrtoint (ptr @{value} to i64)")
        else:
            words.append(f"i64 {int(value)}")
    return module.constant(f"[{len(words)} x i64] [{', '.join(words)}]")


__all__ = [
    "ELEMENTS",
    "GLUE",
    "Fields",
    "const",
    "element",
    "fused",
    "lanes_of",
    "merge",
    "parallel_call",
    "prefix_mask",
    "size_of",
    "stored",
    "strides",
    "table",
    "transpose_block",
    "vector",
]
