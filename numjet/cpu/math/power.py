"""Powers and roots, and the remainder of a division: sqrt, rsqrt, cbrt, pow, fmod.

pow is exp2(y log2 x) with the logarithm in two parts, so that its error is not multiplied by y; the
quotients of fmod that are too large for it go to the C library (`elementary.by_library`).
"""

from __future__ import annotations

import struct

from numjet.cpu.builder.builder import TYPES, Builder, Value
from numjet.cpu.math.coefficients import POW_EXP2_F32, POW_LOG2_F32, POW_TAIL_F64
from numjet.cpu.math.elementary import (
    F32,
    INFINITY,
    NAN,
    at_least,
    at_most,
    bits,
    by_library,
    copysign,
    elementary,
    format_of,
    from_bits,
    horner,
    nearest,
    parts,
    scale,
    table,
)
from numjet.cpu.math.logarithm import decompose


@elementary(weight=4, ulps=2)
def sqrt(b: Builder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return b.sqrt(x)


@elementary(weight=4, ulps=2)
def rsqrt(b: Builder, x: Value) -> Value:
    """1/√x; ±inf at ±0."""
    return b.div(1.0, b.sqrt(x))


# bits(x^(-1/3)) ≈ this - bits(x)/3; found by search, within 3.6 % (see test_math_power).
_CBRT_START = {"float": 0x54A1F800, "double": 0x553EE000}


@elementary(weight=12, ulps=2)
def cbrt(b: Builder, x: Value) -> Value:
    """The real cube root.

    r = x^(-1/3) from the bits, improved twice by the series of (1-h)^(-1/3), then one Newton step
    on y = x·r², whose residual is computed with one rounding.
    """
    fmt = format_of(x)
    lift = 8 if fmt is F32 else 18
    a = b.abs(x)
    tiny = b.fcmp("olt", a, fmt.smallest_normal)
    a = b.select(tiny, b.mul(a, 8.0**lift), a)
    i = bits(b, a)
    start = _CBRT_START[fmt.element]
    if fmt is F32:
        third = b.fptosi(b.mul(b.sitofp(i, "float"), 1 / 3), "i32", saturate=False)
        guess = b.sub(start, third)
    else:
        # A third of the upper word: 0x55555556 = ⌈2^32/3⌉.
        third = b.lshr(b.mul(b.lshr(i, 32), 0x55555556), 32)
        guess = b.shl(b.sub(start, third), 32)
    r = from_bits(b, guess)
    for step in range(2):
        h = b.sub(1.0, b.mul(b.mul(a, r), b.mul(r, r)))
        terms = (1 / 3, 2 / 9, 14 / 81) if step == 0 or fmt is not F32 else (1 / 3,)
        r = b.fma(b.mul(r, h), horner(b, h, terms) if len(terms) > 1 else terms[0], r)
    square = b.mul(r, r)
    y = b.mul(a, square)
    residual = b.fma(b.neg(b.mul(y, y)), y, a)
    y = b.fma(residual, b.mul(square, 1 / 3), y)
    y = b.select(tiny, b.mul(y, 2.0**-lift), y)
    usual = b.and_(b.fcmp("ogt", a, 0.0), b.fcmp("olt", a, INFINITY))
    return b.select(usual, copysign(b, y, x), x)


@elementary(weight=26, ulps=2)
def pow(b: Builder, x: Value, y: Value) -> Value:
    """x^y with C99's special values (x^0 = 1^y = 1; NaN for x < 0 and y not an integer)."""
    exponent = _constant(y)
    if exponent is not None:
        known = _pow_by_roots(b, x, exponent)
        if known is not None:
            return known
    positive = _pow_f32(b, x, y) if format_of(x) is F32 else _pow_f64(b, x, y)
    usual = b.and_(b.fcmp("ogt", x, 0.0), b.fcmp("olt", x, INFINITY))
    usual = b.and_(usual, b.fcmp("olt", b.abs(y), INFINITY))
    with b.if_(b.not_(b.all(usual)), otherwise=[positive]) as branch:
        branch.yield_(_pow_special(b, x, y, positive))
    return branch.results[0]


def _constant(x: Value) -> float | None:
    """The number that a constant holds in every lane."""
    word = x.ref.rpartition(" ")[2].rstrip(")")
    if x.ref[0] in "%<" or not word.startswith("0x"):
        return None
    return struct.unpack(">d", bytes.fromhex(word[2:]))[0]


# In double no power of a float up to this one leaves the range, nor does one on the way to it.
_FLOAT_POWERS = 6


def _pow_by_roots(b: Builder, x: Value, exponent: float) -> Value | None:
    """x to a constant multiple of 1/2 by products and a square root; None for other exponents."""
    if exponent == -1.5:
        return _cubed_rsqrt(b, x)
    if exponent in (0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5):
        return _root_product(b, x, exponent)  # two roundings at most
    if format_of(x) is F32 and (2 * exponent).is_integer() and abs(exponent) <= _FLOAT_POWERS:
        return b.fptrunc(_root_product(b, b.fpext(x, "double"), exponent), "float")
    return None


def _root_product(b: Builder, x: Value, exponent: float) -> Value:
    """x^exponent as a product of x and √x, or one over it."""
    count, half = divmod(abs(exponent), 1.0)
    total = None
    if half:
        # C99: -∞ to a power that is no integer is as ∞, and -0 as 0.
        x = b.add(b.select(b.fcmp("oeq", x, -INFINITY), INFINITY, x), 0.0)
        total = b.sqrt(x)
    base, left = x, int(count)
    while left:
        if left & 1:
            total = base if total is None else b.mul(total, base)
        left >>= 1
        if left:
            base = b.mul(base, base)
    if total is None:
        return b.const(1.0, x.type)
    return b.div(1.0, total) if exponent < 0 else total


def _cubed_rsqrt(b: Builder, x: Value) -> Value:
    """x^(-3/2): one over x·√x, with what the root and the product lose put back.

    Where x·√x or its inverse may leave the range: a float through double, a double without that.
    """
    low, high = (2.0**-80, 2.0**80) if format_of(x) is F32 else (2.0**-600, 2.0**600)
    usual = b.and_(b.fcmp("ogt", x, low), b.fcmp("olt", x, high))
    root = b.sqrt(x)
    y = b.mul(x, root)
    # √x = root + rest/(2·root), so that x·√x = y + lost, where x/root is root nearly enough.
    rest = b.fma(b.neg(root), root, x)
    lost = b.fma(b.mul(rest, 0.5), root, b.fma(x, root, b.neg(y)))
    q = b.div(1.0, y)
    error = b.fma(b.neg(q), lost, b.fma(b.neg(q), y, 1.0))
    result = b.fma(q, error, q)
    rare = b.not_(usual)
    with b.if_(b.any(rare) if TYPES[x.type].lanes else rare, otherwise=[result]) as branch:
        if format_of(x) is F32:
            other = b.fptrunc(_root_product(b, b.fpext(x, "double"), -1.5), "float")
        else:
            other = b.mul(b.div(1.0, x), _root_product(b, x, -0.5))
            # -0 and -∞ have no sign here.
            other = b.select(b.fcmp("oeq", x, 0.0), INFINITY, other)
            other = b.select(b.fcmp("oeq", b.abs(x), INFINITY), 0.0, other)
        branch.yield_(b.select(rare, other, result))
    return branch.results[0]


def _pow_special(b: Builder, x: Value, y: Value, result: Value) -> Value:
    """Correct |x|^y (valid for finite x ≠ 0 and finite y) for signs, zeros, infinities and NaN."""
    a, size = b.abs(x), b.abs(y)
    endless = b.fcmp("oeq", size, INFINITY)
    extreme = b.or_(endless, b.or_(b.fcmp("oeq", a, 0.0), b.fcmp("oeq", a, INFINITY)))
    grows = b.xor(b.fcmp("ogt", a, 1.0), b.fcmp("olt", y, 0.0))
    limit = b.select(grows, b.const(INFINITY, x.type), b.const(0.0, x.type))
    result = b.select(extreme, limit, result)
    whole = b.fcmp("oeq", b.intrinsic("llvm.trunc", y), y)
    half = b.mul(y, 0.5)
    odd = b.and_(whole, b.fcmp("one", b.intrinsic("llvm.trunc", half), half))
    result = b.select(odd, copysign(b, result, x), result)
    undefined = b.and_(b.fcmp("olt", x, 0.0), b.fcmp("olt", a, INFINITY))
    result = b.select(b.and_(undefined, b.not_(whole)), NAN, result)
    result = b.select(b.fcmp("uno", x, y), b.add(x, y), result)
    one = b.or_(b.fcmp("oeq", y, 0.0), b.fcmp("oeq", x, 1.0))
    one = b.or_(one, b.and_(endless, b.fcmp("oeq", a, 1.0)))
    return b.select(one, 1.0, result)


def _pow_f32(b: Builder, x: Value, y: Value) -> Value:
    """|x|^y in double: 2^(y·log2|x|) with a relative error of 2^-33."""
    e, m, _ = decompose(b, b.fpext(b.abs(x), "double"), subnormal=False)
    s = b.div(b.sub(m, 1.0), b.add(m, 1.0))
    logarithm = b.fma(s, horner(b, b.mul(s, s), POW_LOG2_F32), e)
    t = b.mul(logarithm, b.fpext(y, "double"))
    # Far enough for zero and infinity as float, near enough for one exponent as double.
    t = at_least(b, at_most(b, t, 200.0), -200.0)
    n, shifted = nearest(b, t, 1.0, format_of(t))
    p = horner(b, b.sub(t, n), POW_EXP2_F32)
    return b.fptrunc(from_bits(b, b.add(bits(b, p), b.shl(bits(b, shifted), 52))), "float")


def _pow_f64(b: Builder, x: Value, y: Value) -> Value:
    """|x|^y with log2|x| as a sum of two doubles, good to about 2^-65 (Dekker's arithmetic)."""
    fmt = format_of(x)
    e, m, _ = decompose(b, b.abs(x))
    f = b.sub(m, 1.0)
    d = b.add(f, 2.0)
    d_low = b.sub(f, b.sub(d, 2.0))
    inverse = b.div(1.0, d)
    # s + s_low = f/d
    s = b.mul(f, inverse)
    s_low = b.mul(b.fma(b.neg(s), d_low, b.fma(b.neg(s), d, f)), inverse)
    z = b.mul(s, s)
    z_low = b.fma(b.add(s, s), s_low, b.fma(s, s, b.neg(z)))
    # atanh(s) = s + s·z·(1/3 + v)
    v = b.mul(z, horner(b, z, POW_TAIL_F64))
    third, third_low = 1 / 3, 1.850371707708594e-17
    u = b.add(v, third)
    u_low = b.add(b.add(b.sub(third, u), v), third_low)
    w = b.mul(z, u)
    w_low = b.fma(z, u_low, b.fma(z_low, u, b.fma(z, u, b.neg(w))))
    q = b.mul(s, w)
    q_low = b.fma(s_low, w, b.fma(s, w_low, b.fma(s, w, b.neg(q))))
    h = b.add(s, q)
    h_low = b.add(b.add(b.sub(s, h), q), b.add(q_low, s_low))
    # times 2·log2(e), plus e
    high, low = (2 * part for part in parts("log2e", fmt))
    g = b.mul(h, high)
    g_low = b.fma(h, low, b.fma(h_low, high, b.fma(h, high, b.neg(g))))
    k = b.add(e, g)
    k_low = b.add(b.add(b.sub(e, k), g), g_low)
    # |k| ≥ 2^-53 unless it is 0: beyond 2^70 the result is 0, 1 or infinity.
    y = at_least(b, at_most(b, y, 2.0**70), -(2.0**70))
    t = b.mul(y, k)
    t_low = b.fma(y, k_low, b.fma(y, k, b.neg(t)))
    inside = b.fcmp("olt", b.abs(t), 1100.0)
    t_low = b.select(inside, t_low, 0.0)
    t = at_least(b, at_most(b, t, 1024.5), -1076.0)
    n, shifted = nearest(b, t, 1.0, fmt)
    r = b.add(b.sub(t, n), t_low)
    p = b.fma(r, horner(b, r, table("EXP2", fmt)), 1.0)
    return scale(b, p, n, shifted)


@elementary(weight=8, ulps=2)
def fmod(b: Builder, x: Value, y: Value) -> Value:
    """The remainder of x/y with x's sign, exact; NaN for y = 0 and infinite x.

    One division decides the quotient to within one, and the fused remainder is exact. Quotients
    beyond the mantissa go to the C library.
    """
    fmt = format_of(x)
    a, step = b.abs(x), b.abs(y)
    quotient = b.div(a, step)
    whole = b.intrinsic("llvm.trunc", quotient)
    rest = b.fma(b.neg(whole), step, a)
    rest = b.select(b.fcmp("olt", rest, 0.0), b.add(rest, step), rest)
    rest = b.select(b.fcmp("oge", rest, step), b.sub(rest, step), rest)
    result = copysign(b, b.select(b.fcmp("olt", a, step), a, rest), x)
    large = b.fcmp("ogt", quotient, 2.0 ** (fmt.mantissa - 1))
    return by_library(b, "fmod", large, result, x, y)
