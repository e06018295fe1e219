"""Quotients and remainders of integers by a positive constant, rounded down, without comparisons.

NumPy's functions are a truncated quotient or remainder and a selection of what corrects it where
the signs differ. `rounded_down` recognizes the selection when the emitter makes it
(`cpu/loops/build.py`): of x < 0 the quotient is ~(~x / c), of unsigned numbers, and of numbers
without a sign nothing is corrected. What would break it: a divisor that is not positive.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

import numpy as np

from numjet.cpu.loops import ranges
from numjet.cpu.loops.ir import Const, Expr, Op


class Emitter(Protocol):
    """What is written with."""

    def const(self, value: int, dtype: np.dtype) -> Any: ...
    def op(self, name: str, *args: Expr) -> Expr: ...
    def cast(self, x: Expr, dtype: np.dtype) -> Any: ...
    def xor(self, x: Expr, y: Expr) -> Any: ...
    def shr_arith(self, x: Expr, y: Expr) -> Any: ...


def rounded_down(e: Emitter, condition: Expr, then: Expr, otherwise: Expr) -> Expr | None:
    """The selection of `then` where `condition` holds, else `otherwise`, in other words if it is
    such a quotient or remainder; else None."""
    if type(otherwise) is not Op or otherwise.name not in ("div", "rem"):
        return None
    x, c = otherwise.args
    if x.dtype.kind != "i" or not _is(c) or c.value < 1:
        return None
    quotient = otherwise.name == "div"
    if not _op(then, "sub" if quotient else "add") or then.args[0] is not otherwise:
        return None
    if not _is(then.args[1], 1 if quotient else c.value) or not _op(condition, "and"):
        return None
    asked = condition.args
    if not any([_rest_is_not_zero(a, x, c.value) and _differs(b, x, otherwise, quotient)
                for a, b in (asked, asked[::-1])]):  # fmt: skip
        return None
    if ranges.of(x)[0] >= 0:
        return _unsigned(e, otherwise.name, x, c)
    if not quotient:
        return None
    sign = e.shr_arith(x, e.const(8 * x.dtype.itemsize - 1, x.dtype))
    return e.xor(_unsigned(e, "div", e.xor(x, sign), c), sign)


def _unsigned(e: Emitter, name: str, x: Expr, c: Expr) -> Expr:
    """The same of numbers that are not negative."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return e.cast(e.op(name, e.cast(x, unsigned), e.cast(c, unsigned)), x.dtype)


def _op(x: Expr, name: str) -> TypeGuard[Op]:
    return type(x) is Op and x.name == name


def _is(x: Expr, value: int | None = None) -> TypeGuard[Const]:
    return type(x) is Const and (value is None or x.value == value)


def _rest_is_not_zero(asked: Expr, x: Expr, c: int) -> bool:
    if not _op(asked, "ne") or not _is(asked.args[1], 0):
        return False
    rest = asked.args[0]
    return _op(rest, "rem") and rest.args[0] is x and _is(rest.args[1], c)


def _differs(asked: Expr, x: Expr, rest: Expr, quotient: bool) -> bool:
    """Whether it is asked for the sign of x, or of the remainder, to be another than the
    divisor's."""
    if not _op(asked, "ne"):
        return False
    of, other = asked.args
    if quotient:
        return _op(of, "sign") and of.args[0] is x and _is(other, 1)
    return _op(of, "lt") and of.args[0] is rest and _is(of.args[1], 0) and _is(other, 0)
