"""StableHLO as text: values, types, constants, one operation at a time.

For `xla.hlo` and its parts. Every operation is written in MLIR's generic form, which needs no
grammar of its own. A value knows its shape and NumPy dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from numjet.core.dtypes import physical
from numjet.core.memo import remembered

BOOL = np.dtype(np.bool_)
_ELEMENTS = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float8_e4m3": "f8E4M3", "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e3m4": "f8E3M4", "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}  # fmt: skip
DTYPES = {name: dtype for dtype, name in _ELEMENTS.items()}
WIDE = {"float16": np.dtype(np.float32), "bfloat16": np.dtype(np.float32)}


@remembered("names of element types", 256)
def element(dtype: np.dtype) -> str:
    """MLIR's name of a dtype."""
    found = _ELEMENTS.get(dtype.name)
    if found is None:
        raise NotImplementedError(f"StableHLO has no element type for {dtype}.")
    return found


@remembered("names of tensor types", 4096)
def tensor(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """The type of arrays of a shape and dtype."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element(dtype)}>"


class Value:
    """A value of the program: its name, shape, dtype, and its type as text."""

    __slots__ = ("ref", "shape", "dtype", "type")

    def __init__(self, ref: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.ref, self.shape, self.dtype = ref, shape, dtype
        self.type = tensor(shape, dtype)

    def __call__(self, *_: Any) -> Value:
        """What rules of `Pointwise` read of an operand at an index: the whole array."""
        return self


def spec(aval: Any) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype in memory of an aval."""
    return tuple(aval.shape), np.dtype(physical(aval.dtype))


def numbers(values: Sequence[int]) -> str:
    """A dense array attribute of 64-bit integers."""
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def in_rows(ranks: Sequence[int]) -> str:
    """The attribute that arrays of these ranks lie row by row."""
    orders = [[*reversed(range(rank))] for rank in ranks]
    return f"[{', '.join([f'dense<{o or str()}> : tensor<{len(o)}xindex>' for o in orders])}]"


def dense(value: np.ndarray) -> str:
    """The spelling of a constant: one number for all, or the bytes."""
    flat = value.reshape(-1)
    if not flat.size:
        return "dense<>"
    if flat.dtype == BOOL and (flat == flat[0]).all():
        return f"dense<{str(bool(flat[0])).lower()}>"
    if (spelled := _spelled_as(flat.dtype)) is not None:
        return f"dense<{_nested(value.astype(spelled))}>"
    data = flat.tobytes()
    size = flat.dtype.itemsize
    if data == data[:size] * flat.size:
        data = data[:size]
    return f'dense<"0x{data.hex().upper()}">'


@remembered("dtypes that numbers are spelled as", 256)
def _spelled_as(dtype: np.dtype) -> np.dtype | None:
    """The dtype whose numbers spell arrays of `dtype`, where it has less than a byte each."""
    if dtype.name == "float4_e2m1fn":
        return np.dtype(np.float32)
    return dtype if dtype.name in ("bool", "int2", "int4", "uint2", "uint4") else None


def _nested(value: np.ndarray) -> str:
    if not value.shape:
        item = value[()]
        return str(bool(item)).lower() if value.dtype == BOOL else str(
            float(item) if value.dtype.kind == "f" else int(item))
    return f"[{', '.join(_nested(row) for row in value)}]"


class Writer:
    """Writes operations, one a line; regions are writers' lines in braces."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._constants: list[dict[tuple, Value]] = [{}]

    def name(self) -> str:
        """A name that is not yet used."""
        self._count += 1
        return f"%{self._count - 1}"

    def ops(
        self, name: str, operands: Sequence[Value], outs: Sequence[tuple[Sequence[int], Any]],
        attributes: str = "", regions: Sequence[str] = (),
    ) -> list[Value]:
        """Write an operation with any number of results: (shape, dtype) each."""
        ref = self.name()
        if len(outs) == 1:
            refs, head = [ref], f"{ref} = "
        else:
            refs = [f"{ref}#{k}" for k in range(len(outs))]
            head = f"{ref}:{len(outs)} = " if outs else ""
        made = [Value(r, tuple(s), np.dtype(d)) for r, (s, d) in zip(refs, outs, strict=True)]
        inside = f" ({', '.join(regions)})" if regions else ""
        marked = f" {{{attributes}}}" if attributes else ""
        ins = ", ".join([x.type for x in operands])
        results = ", ".join([x.type for x in made])
        self.lines.append(
            f'{head}"{name if "." in name else "stablehlo." + name}"'
            f"({', '.join([x.ref for x in operands])}){inside}{marked} : ({ins}) -> ({results})"
        )
        return made

    def op(
        self, name: str, operands: Sequence[Value], shape: Sequence[int], dtype: Any,
        attributes: str = "", regions: Sequence[str] = (),
    ) -> Value:
        """Write an operation with one result."""
        return self.ops(name, operands, [(shape, dtype)], attributes, regions)[0]

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant array, written once in a region."""
        value = np.asarray(value, dtype)
        key = (value.tobytes(), value.shape, value.dtype)
        for known in self._constants:
            if key in known:
                return known[key]
        made = Value(self.name(), value.shape, value.dtype)
        self.lines.append(
            f'{made.ref} = "stablehlo.constant"() {{value = {dense(value)} : {made.type}}}'
            f" : () -> {made.type}"
        )
        self._constants[-1][key] = made
        return made

    @contextmanager
    def _inside(self) -> Iterator[list[str]]:
        outer, self.lines = self.lines, []
        self._constants.append({})
        try:
            yield self.lines
        finally:
            self.lines = outer
            self._constants.pop()

    def region(
        self, arguments: Sequence[tuple[Sequence[int], Any]],
        body: Callable[..., Sequence[Value]],
    ) -> str:
        """A region of one block: `body(*values)` writes it and gives what it returns."""
        values = [Value(self.name(), tuple(s), np.dtype(d)) for s, d in arguments]
        with self._inside() as lines:
            outs = body(*values)
            kinds = ", ".join(x.type for x in outs)
            lines.append(f'"stablehlo.return"({", ".join(x.ref for x in outs)}) : ({kinds}) -> ()')
        head = ", ".join(f"{v.ref}: {v.type}" for v in values)
        inner = "\n".join("  " + line for line in lines)
        return "{\n" + (f"^bb0({head}):\n" if values else "") + inner + "\n}"

