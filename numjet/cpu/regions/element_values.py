"""What `regions.element` computes with: arrays in memory that change, and integers of known range.

A `Memory` is an array that a loop updates in place; a `Version` is its contents between two
updates, and may be read while it is the `current` one. `RangeEmitter` makes expressions as the
emitter of other kernels does, but where operands are loop counters or constants sums stay
indices and comparisons are decided by ranges, so that `x[i - 1]` needs no wrapping and no
clamping. What would break it: a read of a version after the next update was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.dtypes import physical
from numjet.cpu.loops.index import Clamp, Dyn, Index, dynamic
from numjet.cpu.loops.ir import Buffer, Cast, Const, IndexValue, Op, Select
from numjet.cpu.lower.access import KernelEmitter

_SUMS = frozenset(["add", "sub", "mul"])
_KNOWN = (IndexValue, Const, int)
_QUOTIENTS = frozenset(["div", "rem"])
# The ranges of the difference in which a comparison holds, and in which it does not.
_DECIDED = {
    "lt": (lambda lo, hi: hi < 0, lambda lo, hi: lo >= 0),
    "le": (lambda lo, hi: hi <= 0, lambda lo, hi: lo > 0),
    "gt": (lambda lo, hi: lo > 0, lambda lo, hi: hi <= 0),
    "ge": (lambda lo, hi: lo >= 0, lambda lo, hi: hi < 0),
    "eq": (lambda lo, hi: lo == hi == 0, lambda lo, hi: hi < 0 or lo > 0),
    "ne": (lambda lo, hi: hi < 0 or lo > 0, lambda lo, hi: lo == hi == 0),
}


class RangeEmitter(KernelEmitter):
    """The emitter of loops over elements: integers of known range are folded."""

    def _binary(self, name: str, x: Any, y: Any) -> Any:
        known = type(x) in _KNOWN, type(y) in _KNOWN
        if all(known):
            found = self._folded(name, x, y)
            if found is not None:
                return found
        if any(known) and name in ("and", "or"):
            constant, other = (x, y) if type(x) is Const else (y, x)
            if type(constant) is Const and constant.dtype == np.bool_:
                return other if constant.value is (name == "and") else constant
        return super()._binary(name, x, y)

    def cast(self, x: Any, dtype: Any) -> Any:
        """A counter that another type of integers cannot hold is no index any more."""
        wanted = np.dtype(physical(dtype)) if type(x) is IndexValue else None
        if wanted is not None and wanted.kind in "iu" and wanted != x.dtype:
            info = np.iinfo(wanted)
            if x.index.lo < info.min or x.index.hi > info.max:
                return self._share(("t", id(x), wanted), lambda: Cast(x, wanted))
        return super().cast(x, dtype)

    def _folded(self, name: str, x: Any, y: Any) -> Any:
        """The operation on indices, where one is, or None."""
        a, b = _index(x), _index(y)
        if a is None or b is None:
            return None
        dtype = (y if type(x) is int else x).dtype
        if name in _SUMS:
            if name == "mul" and a.terms and b.terms:
                return None
            whole = a + b if name == "add" else a - b if name == "sub" else a * b
        elif name in _QUOTIENTS:
            if b.terms or b.const <= 0 or a.lo < 0 or dtype == np.bool_:
                return None
            whole = a // b.const if name == "div" else a % b.const
        elif name in ("max", "min"):
            if a.lo < b.hi and b.lo < a.hi:
                return None
            whole = a if (a.lo >= b.hi) is (name == "max") else b
        elif name in _DECIDED:
            between = a - b  # what both have in common is gone
            for answer, test in zip((True, False), _DECIDED[name], strict=True):
                if test(between.lo, between.hi):
                    return self.const(answer, np.bool_)
            return None
        else:
            return None
        if dtype == np.bool_:
            return None
        info = np.iinfo(dtype)
        if whole.lo < info.min or whole.hi > info.max:
            return None  # may wrap around
        return self.index_value(whole, dtype)


def _index(x: Any) -> Index | None:
    """An integer as an index, where it is a counter or a constant."""
    if type(x) is IndexValue:
        return x.index
    if type(x) is Const:
        return Index.of(int(x.value)) if x.dtype.kind in "iub" else None
    return Index.of(x) if type(x) is int else None


def range_of(x: Any) -> tuple[int, int]:
    """The least and the greatest value of an integer."""
    found = _index(x)
    if found is not None:
        return found.lo, found.hi
    info = np.iinfo(x.dtype)
    return int(info.min), int(info.max)


def near(e: KernelEmitter, i: Index) -> tuple[Any, Index] | None:
    """Of a place that is clamped, whether it is inside as it stands (positions that count from the
    end are not), and that place; None where nothing is clamped or more than that is computed."""
    if len(i.terms) != 1 or i.terms[0][1] != 1 or type(i.terms[0][0]) is not Clamp:
        return None
    clamp = i.terms[0][0]
    arg = clamp.arg
    if clamp.low or len(arg.terms) != 1 or arg.const or arg.terms[0][1] != 1:
        return None
    atom = arg.terms[0][0]
    if type(atom) is not Dyn:
        return None
    position = atom.expr
    if type(position) is Select and type(position.condition) is Op:
        name, args = position.condition.name, position.condition.args
        if name == "lt" and args[0] is position.otherwise and _index(args[1]) == 0:
            position = position.otherwise  # wrapped where it is negative
    if position.dtype.kind not in "iu":
        return None
    place = e.value_index(position)
    unsigned = e.index_value(place, np.uint64)
    last = e.const(clamp.high, np.uint64)
    inside = e.op("le", unsigned, last, dtype=np.bool_)
    return inside, dynamic(position, 0, clamp.high) + i.const


class Memory:
    """An array that changes; `current` tells its versions apart."""

    __slots__ = ("buffer", "current")

    def __init__(self, buffer: Buffer, current: int) -> None:
        self.buffer, self.current = buffer, current


class Version:
    """The contents of a memory between two updates."""

    __slots__ = ("memory", "serial")

    def __init__(self, memory: Memory, serial: int) -> None:
        self.memory, self.serial = memory, serial

    @property
    def current(self) -> bool:
        return self.memory.current == self.serial


class Few:
    """A small array as its elements, in order of rows."""

    __slots__ = ("elements",)

    def __init__(self, elements: Sequence[Any]) -> None:
        self.elements = tuple(elements)


class Sparse:
    """Zeros to which elements are added: the updates, and what they are made from; `plain` is the
    array for who reads it, where that is one."""

    __slots__ = ("parts", "plain")

    def __init__(self, parts: list[tuple[Any, list]], plain: Any = None) -> None:
        self.parts, self.plain = parts, plain


class Row:
    """Row `at` of an array."""

    __slots__ = ("at", "shape", "value")

    def __init__(self, value: Any, shape: tuple[int, ...], at: Index) -> None:
        self.value, self.shape, self.at = value, shape, at


class Lazy:
    """A pointwise result, computed where it is read."""

    __slots__ = ("memo", "node", "position", "readers")

    def __init__(self, node: Any, readers: list, position: int, memo: dict) -> None:
        self.node, self.readers, self.position, self.memo = node, readers, position, memo
