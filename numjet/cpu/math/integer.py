"""Rounding, sign, classification, and functions of integers."""

from __future__ import annotations

from numjet.cpu.builder.builder import TYPES, Builder, Value, like
from numjet.cpu.math.elementary import INFINITY, copysign, elementary


@elementary()
def floor(b: Builder, x: Value) -> Value:
    """The largest integer not above x."""
    return b.intrinsic("llvm.floor", x)


@elementary()
def ceil(b: Builder, x: Value) -> Value:
    """The smallest integer not below x."""
    return b.intrinsic("llvm.ceil", x)


@elementary()
def trunc(b: Builder, x: Value) -> Value:
    """The integer part."""
    return b.intrinsic("llvm.trunc", x)


@elementary()
def round_even(b: Builder, x: Value) -> Value:
    """The nearest integer, halves to the even one."""
    return b.intrinsic("llvm.roundeven", x)


@elementary(name="round")
def round_away(b: Builder, x: Value) -> Value:
    """The nearest integer, halves away from zero."""
    whole = b.intrinsic("llvm.trunc", x)
    # The difference is exact, so that 0.49999997 does not round up.
    up = b.fcmp("oge", b.abs(b.sub(x, whole)), 0.5)
    step = b.select(up, b.const(1.0, x.type), b.const(0.0, x.type))
    return copysign(b, b.add(whole, copysign(b, step, x)), x)


@elementary()
def sign(b: Builder, x: Value) -> Value:
    """-1, 0 or 1 as x's type; ±0 and NaN stay. Integers as signed."""
    if TYPES[x.type].is_float:
        one = copysign(b, b.const(1.0, x.type), x)
        return b.select(b.fcmp("one", x, 0.0), one, x)
    positive = b.zext(b.icmp("sgt", x, 0), TYPES[x.type].element)
    return b.or_(b.ashr(x, TYPES[x.type].bits - 1), positive)


@elementary()
def is_finite(b: Builder, x: Value) -> Value:
    """Neither an infinity nor NaN, as i1."""
    return b.fcmp("olt", b.abs(x), INFINITY)


@elementary()
def popcount(b: Builder, x: Value) -> Value:
    """The number of one bits."""
    return b.intrinsic("llvm.ctpop", x)


@elementary()
def clz(b: Builder, x: Value) -> Value:
    """The number of leading zero bits; the width for 0."""
    return b.intrinsic("llvm.ctlz", x, b.const(False, "i1"))


@elementary()
def mulhi(b: Builder, x: Value, y: Value) -> Value:
    """The upper half of the unsigned product."""
    width = TYPES[x.type].bits
    wide = f"i{2 * width}"
    product = b.mul(b.zext(x, wide), b.zext(y, wide))
    return b.trunc(b.lshr(product, width), like(x.type, f"i{width}"))


@elementary()
def integer_pow(b: Builder, x: Value, y: Value) -> Value:
    """x^y of integers modulo 2^width by squaring; a negative y (as signed) gives 0, ±1 like 1/x^-y.

    x^-n is 1 for x = 1, ±1 for x = -1, and else 0, as truncated division has it.
    """
    one = b.const(1, x.type)
    with b.while_([one, x, y]) as loop:
        result, base, left = loop.values
        loop.test(b.any(b.icmp("sgt", left, 0)))
        odd = b.icmp("ne", b.and_(left, 1), 0)
        result = b.select(odd, b.mul(result, base), result)
        loop.yield_(result, b.mul(base, base), b.select(b.icmp("sgt", left, 0), b.ashr(left, 1), 0))
    result = loop.results[0]
    unit = b.icmp("ule", b.add(x, 1), 2)
    parity = b.select(b.icmp("ne", b.and_(y, 1), 0), x, b.mul(x, x))
    inverse = b.select(b.and_(unit, b.icmp("ne", x, 0)), parity, b.const(0, x.type))
    return b.select(b.icmp("slt", y, 0), inverse, result)
