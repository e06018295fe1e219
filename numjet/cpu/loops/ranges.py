"""Integers that need fewer bits than their dtype has, computed with in those bits.

Pictures are bytes that programs widen to compute with, clip, and narrow again: `narrowed` writes
the same numbers in lanes of 8 or 16 bits, two to four times as many a vector. It is asked when the
emitter makes a conversion to a narrower integer, or a comparison (`cpu/loops/build.py`). A sum or
product wraps around in narrow lanes as the conversion of the wide one does; a maximum, a quotient
or a comparison needs numbers that are what they were, which their ranges say.
What would break it: an operation in `_WRAP` whose low bits depend on its operands' high ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from numjet.cpu.loops.ir import Cast, Const, Expr, IndexValue, Op, Select

# Their low bits come of their operands' low bits.
_WRAP = frozenset(["add", "sub", "mul", "and", "or", "xor", "not", "neg", "square"])
# These need the numbers themselves.
_EXACT = frozenset(["max", "min", "abs"])
# These, by a constant, need numbers that are not negative.
_SHARED_OUT = frozenset(["div", "rem", "shr_arith", "shr_logical"])
# There are no such instructions for bytes.
_WIDER = frozenset(["mul", "square", *_SHARED_OUT])
# Expressions that are looked through: what is larger is seldom one of bytes alone.
_MOST = 24

Range = tuple[int, int]


class Emitter(Protocol):
    """What is written with."""

    def const(self, value: int, dtype: np.dtype) -> Any: ...
    def op(self, name: str, *args: Expr) -> Any: ...
    def cast(self, x: Expr, dtype: np.dtype) -> Any: ...
    def select(self, condition: Expr, x: Expr, y: Expr) -> Any: ...


def narrowed(e: Emitter, x: Expr, dtype: np.dtype) -> Expr | None:
    """`x` converted to a narrower integer `dtype`, computed there or in 16 bits; None where that
    is not known to be the same or gains nothing."""
    if type(x) is Cast and not x.bits and x.arg.dtype.kind in "iub":
        if x.arg.dtype.itemsize < x.dtype.itemsize:
            return e.cast(x.arg, dtype)
    elif type(x) is not Op and type(x) is not Select:
        return None
    for lanes in (dtype, np.dtype(np.int16), np.dtype(np.uint16)):
        if dtype.itemsize <= lanes.itemsize < x.dtype.itemsize and _Narrower(lanes).takes(x):
            return e.cast(_Narrower(lanes).write(e, x), dtype)
    return None


def compared(x: Expr, y: Expr) -> np.dtype | None:
    """The narrower dtype in which two integers of one dtype may be compared as well."""
    if not (_is_widened(x) or _is_widened(y)):
        return None
    both = [v for v in (x, y) if type(v) is not Const]
    if not all(map(_is_widened, both)):
        return None
    low, high = zip(*[of(v) for v in (x, y)], strict=True)
    sources = {v.arg.dtype for v in both if type(v) is Cast and v.arg.dtype.kind != "b"}
    for dtype in sorted(sources, key=lambda d: d.itemsize):
        if _holds(dtype, (min(low), max(high))):
            return dtype
    return None


def of(x: Expr) -> Range:
    """The least and the largest value that an integer expression may have."""
    return _range(x, {}, [_MOST])


def _is_widened(x: Expr) -> bool:
    return (
        type(x) is Cast
        and not x.bits
        and x.arg.dtype.kind in "iub"
        and x.arg.dtype.itemsize < x.dtype.itemsize
        and (x.arg.dtype.kind in "ub" or x.dtype.kind == "i")
    )


def _limits(dtype: np.dtype) -> Range:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _holds(dtype: np.dtype, found: Range) -> bool:
    low, high = _limits(dtype)
    return low <= found[0] and found[1] <= high


def _range(x: Expr, known: dict[int, Range], left: list[int]) -> Range:
    """As `of`; `left` says how many expressions may still be looked at."""
    found = known.get(id(x))
    if found is None:
        left[0] -= 1
        found = _limits(x.dtype)
        if left[0] > 0:
            told = _told(x, known, left)
            # What does not fit wraps around.
            found = told if told is not None and _holds(x.dtype, told) else found
        known[id(x)] = found
    return found


def _told(x: Expr, known: dict[int, Range], left: list[int]) -> Range | None:
    if type(x) is Const:
        return int(x.value), int(x.value)
    if type(x) is IndexValue:
        return x.index.lo, x.index.hi
    if type(x) is Cast:
        return None if x.bits or x.arg.dtype.kind not in "iub" else _range(x.arg, known, left)
    if type(x) is Select:
        a, b = [_range(v, known, left) for v in (x.then, x.otherwise)]
        return min(a[0], b[0]), max(a[1], b[1])
    if type(x) is not Op or x.dtype.kind == "b":
        return None
    args = [_range(v, known, left) for v in x.args if v.dtype.kind in "iub"]
    return _of_operation(x.name, args) if len(args) == len(x.args) else None


def _of_operation(name: str, args: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = args[0], args[-1]
    if name == "add":
        return a + c, b + d
    if name == "sub":
        return a - d, b - c
    if name in ("mul", "square"):
        products = [p * q for p in (a, b) for q in (c, d)]
        return min(products), max(products)
    if name == "max":
        return max(a, c), max(b, d)
    if name == "min":
        return min(a, c), min(b, d)
    if name == "neg":
        return -b, -a
    if name == "abs":
        return (0 if a < 0 < b else min(-a if a < 0 else a, -b if b < 0 else b)), max(-a, b)
    if name in _SHARED_OUT and a >= 0 and c == d >= 1:
        if name == "rem":
            return 0, min(b, c - 1)
        return (a // c, b // c) if name == "div" else (a >> c, b >> c)
    if name == "and" and (a >= 0 or c >= 0):
        return 0, min([high for low, high in args if low >= 0])
    return None


class _Narrower:
    """Expressions in lanes of another dtype."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.known: dict[int, Range] = {}
        self.left = [_MOST]
        self.taken: dict[int, bool] = {}

    def takes(self, x: Expr) -> bool:
        """Whether the low bits of `x` are known from narrow lanes alone."""
        found = self.taken.get(id(x))
        if found is None:
            found = self.taken[id(x)] = len(self.taken) < _MOST and self._takes(x)
        return found

    def _takes(self, x: Expr) -> bool:
        if type(x) is Const:
            return True
        if type(x) is Cast:
            if x.bits or x.arg.dtype.kind not in "iub":
                return False
            return x.arg.dtype.itemsize <= self.dtype.itemsize or self.takes(x.arg)
        if type(x) is Select:
            return self.takes(x.then) and self.takes(x.otherwise)
        if type(x) is not Op or x.dtype.kind not in "iu":
            return False
        if x.name in _WIDER and self.dtype.itemsize == 1:
            return False
        if x.name in _SHARED_OUT:
            by, (least, _) = x.args[1], _range(x.args[0], self.known, self.left)
            if type(by) is not Const or by.value < 1 or least < 0 or not self.same(by):
                return False
            return self.takes(x.args[0]) and self.same(x.args[0])
        if x.name in _EXACT:
            return all([self.takes(v) and self.same(v) for v in x.args]) and self.same(x)
        return x.name in _WRAP and all(map(self.takes, x.args))

    def same(self, x: Expr) -> bool:
        """Whether narrow lanes hold the value itself, which they have as far as it was computed
        without wrapping around."""
        return _holds(self.dtype, _range(x, self.known, self.left))

    def write(self, e: Emitter, x: Expr) -> Expr:
        """`x`, of which `takes` holds, in narrow lanes."""
        if type(x) is Const:
            return e.const(x.value, self.dtype)
        if type(x) is Cast:
            fits = x.arg.dtype.itemsize <= self.dtype.itemsize
            return e.cast(x.arg, self.dtype) if fits else self.write(e, x.arg)
        if type(x) is Select:
            return e.select(x.condition, self.write(e, x.then), self.write(e, x.otherwise))
        assert type(x) is Op
        if x.name in _SHARED_OUT:
            unsigned = np.dtype(f"u{self.dtype.itemsize}")
            name = "shr_logical" if x.name == "shr_arith" else x.name  # no sign is repeated
            made = e.op(name, *[e.cast(self.write(e, v), unsigned) for v in x.args])
            return e.cast(made, self.dtype)
        return e.op(x.name, *[self.write(e, v) for v in x.args])
