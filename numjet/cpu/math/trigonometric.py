"""sin, cos, tan and their inverses, atan2.

x = k·π/2 + r by three fused multiply-adds (Cody & Waite 1980): the products are exact, the first
difference is exact too, so that r keeps its relative accuracy at the multiples of π/2. That holds
up to `_LARGE`; lanes beyond it go to the C library's function, one by one and only where there are
any, since its argument reduction (Payne & Hanek 1983) is right for every number.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import TYPES, Builder, Value, vector
from numjet.cpu.math.elementary import (
    INFINITY,
    Format,
    bits,
    by_library,
    copysign,
    elementary,
    estrin,
    format_of,
    from_bits,
    horner,
    nearest,
    parts,
    table,
)

# k·(π/2 - its leading part) and the error of k must stay small against 1.
_LARGE = {"float": 2.0**17, "double": 2.0**40}


def _reduce(b: Builder, x: Value, with_low: bool = False) -> tuple[Value, Value, Value]:
    """(r, low, quadrant): x = quadrant·π/2 + r + low; the quadrant is right modulo 4.

    Without `with_low` r alone is the nearest, and low is r without the last part of π/2.
    """
    fmt = format_of(x)
    # All positive: then r is -0 for x = -0.
    first, second, third = parts("pi_2", fmt, 3, positive=True)
    n, shifted = nearest(b, x, parts("2_pi", fmt)[0], fmt)
    quadrant = bits(b, shifted)
    r = b.fma(n, -first, x)
    if not with_low:
        before = b.fma(n, -second, r)
        return b.fma(n, -third, before), before, quadrant
    # The product and the difference with what they lose (Dekker, Knuth): either may be the larger.
    product = b.mul(n, -second)
    s = b.add(r, product)
    back = b.sub(s, r)
    low = b.add(b.sub(r, b.sub(s, back)), b.sub(product, back))
    low = b.add(low, b.fma(n, -third, b.fma(n, -second, b.neg(product))))
    return s, low, quadrant


def _unless_large(b: Builder, name: str, x: Value, result: Value) -> Value:
    """`result`, or the C library's function of every lane when one of them is large."""
    large = b.fcmp("ogt", b.abs(x), _LARGE[format_of(x).element])
    return by_library(b, name, large, result, x)


def _sin_polynomial(b: Builder, r: Value, z: Value, fmt: Format) -> Value:
    return b.fma(b.mul(r, z), horner(b, z, table("SIN", fmt)), r)


def _cos_polynomial(b: Builder, z: Value, fmt: Format) -> Value:
    return b.fma(z, b.fma(z, horner(b, z, table("COS", fmt)), -0.5), 1.0)


def _circular(b: Builder, x: Value, name: str) -> Value:
    if not TYPES[x.type].lanes:
        # In the first lane of a vector bits and floats share registers.
        wide = b.insert(b.const(0.0, vector(x.type, 128 // TYPES[x.type].bits)), x, 0)
        return _unless_large(b, name, x, b.extract(_soon(b, wide, name), 0))
    fmt = format_of(x)
    r, _, quadrant = _reduce(b, x)
    z = b.mul(r, r)
    # Tiny and zero r: the sum must keep its sign, for sin(-0) = -0.
    sine = copysign(b, _sin_polynomial(b, r, z, fmt), r)
    cosine = _cos_polynomial(b, z, fmt)
    odd = b.icmp("ne", b.and_(quadrant, 1), 0)
    top = TYPES[quadrant.type].bits - 2
    if name == "sin":
        result = b.select(odd, cosine, sine)
        turned = b.shl(b.and_(quadrant, 2), top)
    else:
        result = b.select(odd, sine, cosine)
        turned = b.shl(b.and_(b.add(quadrant, 1), 2), top)
    result = from_bits(b, b.xor(bits(b, result), turned))
    return _unless_large(b, name, x, result)


def _soon(b: Builder, x: Value, name: str) -> Value:
    """As above, but in the shortest chain of operations: what scalar loops wait for.

    Sine and cosine of r are m + m·z·p(z), m being |r| or 1; the quadrant chooses the coefficients
    while r is computed, and p is summed in pairs of terms.
    """
    fmt = format_of(x)
    r, before, quadrant = _reduce(b, x)
    # The last part of π/2 changes z by less than its rounding does.
    z = b.mul(before, before)
    if name == "cos":
        quadrant = b.add(quadrant, 1)
    odd = b.icmp("ne", b.and_(quadrant, 1), 0)
    m = b.select(odd, b.const(1.0, x.type), b.abs(r))
    pairs = zip((*table("SIN", fmt), 0.0), (-0.5, *table("COS", fmt)), strict=True)
    terms = [b.select(odd, b.const(cosine, x.type), sine) for sine, cosine in pairs]
    result = b.fma(b.mul(m, z), estrin(b, z, terms), m)
    # An odd function's sign, zero's too, and the quadrant's.
    sign = b.select(odd, b.const(0, quadrant.type), bits(b, r))
    turn = b.xor(b.shl(quadrant, TYPES[quadrant.type].bits - 2), sign)
    lowest = -(1 << (TYPES[quadrant.type].bits - 1))
    return from_bits(b, b.xor(bits(b, result), b.and_(turn, lowest)))


def cos_and_sin(b: Builder, x: Value) -> tuple[Value, Value]:
    """Both, for |x| ≤ π/2 (by half the angle's polynomials beyond π/4)."""
    fmt = format_of(x)
    half = b.mul(x, 0.5)
    z = b.mul(half, half)
    s, c = _sin_polynomial(b, half, z, fmt), _cos_polynomial(b, z, fmt)
    return b.fma(b.mul(s, -2.0), s, 1.0), b.mul(b.add(s, s), c)


@elementary(weight=14, ulps=2)
def sin(b: Builder, x: Value) -> Value:
    """The sine of x radians."""
    return _circular(b, x, "sin")


@elementary(weight=14, ulps=2)
def cos(b: Builder, x: Value) -> Value:
    """The cosine of x radians."""
    return _circular(b, x, "cos")


@elementary(weight=20, ulps=2)
def tan(b: Builder, x: Value) -> Value:
    """The tangent of x radians."""
    fmt = format_of(x)
    r, low, quadrant = _reduce(b, x, with_low=True)
    z = b.mul(r, r)
    # tan(r + low) = r + (r³·q + low·(1 + r²…)); tan' = 1 + tan².
    rest = b.fma(b.mul(r, z), horner(b, z, table("TAN", fmt)), b.fma(low, z, low))
    t = b.add(r, rest)
    odd = b.icmp("ne", b.and_(quadrant, 1), 0)
    # In odd quadrants -1/(t + lost): one step of correction for what the sum lost.
    lost = b.sub(rest, b.sub(t, r))
    inverse = b.div(-1.0, t)
    error = b.fma(inverse, lost, b.fma(inverse, t, 1.0))
    inverse = b.fma(inverse, error, inverse)
    result = b.select(odd, inverse, b.select(b.fcmp("oeq", x, 0.0), x, t))
    return _unless_large(b, "tan", x, result)


def _asin_tail(b: Builder, s: Value, z: Value, fmt: Format) -> Value:
    """asin(s) - s for s² = z ≤ 1/4."""
    return b.mul(b.mul(s, z), horner(b, z, table("ASIN", fmt)))


@elementary(weight=14, ulps=2)
def asin(b: Builder, x: Value) -> Value:
    """The arc sine; NaN outside [-1, 1]. asin(x) = π/2 - 2·asin(√((1-x)/2)) for x > 1/2."""
    fmt = format_of(x)
    a = b.abs(x)
    near_one = b.fcmp("ogt", a, 0.5)
    folded = b.mul(b.sub(1.0, a), 0.5)
    z = b.select(near_one, folded, b.mul(a, a))
    s = b.select(near_one, b.sqrt(folded), a)
    rest = _asin_tail(b, s, z, fmt)
    high, low = parts("pi_2", fmt)
    two = b.add(s, s)
    first = b.sub(high, two)
    low = b.add(b.sub(b.sub(high, first), two), low)
    large = b.add(first, b.fma(rest, -2.0, low))
    return copysign(b, b.select(near_one, large, b.add(s, rest)), x)


@elementary(weight=14, ulps=2)
def acos(b: Builder, x: Value) -> Value:
    """The arc cosine; NaN outside [-1, 1]."""
    fmt = format_of(x)
    a = b.abs(x)
    far = b.fcmp("ogt", a, 0.5)
    folded = b.mul(b.sub(1.0, a), 0.5)
    z = b.select(far, folded, b.mul(x, x))
    # s has x's sign in the middle; near the ends it is positive.
    s = b.select(far, b.sqrt(folded), x)
    rest = _asin_tail(b, s, z, fmt)
    half_high, half_low = parts("pi_2", fmt)
    high, low = parts("pi", fmt)
    middle = b.sub(half_high, b.add(s, b.sub(rest, half_low)))
    small = b.add(s, rest)
    small = b.add(small, small)
    two = b.add(s, s)
    near_minus = b.add(b.sub(high, two), b.sub(low, b.add(rest, rest)))
    ends = b.select(b.fcmp("olt", x, 0.0), near_minus, small)
    return b.select(far, ends, middle)


def _arc(b: Builder, small: Value, large: Value, swap: Value) -> Value:
    """atan(small/large) for 0 ≤ small ≤ large, and π/2 - that where `swap`.

    Ratios above 1/2 go through atan(q) = π/4 + atan((q-1)/(q+1)), in one division.
    """
    fmt = format_of(small)
    fold = b.fcmp("ogt", b.add(small, small), large)
    top = b.select(fold, b.sub(small, large), small)
    t = b.div(top, b.select(fold, b.add(small, large), large))
    t = b.select(swap, b.neg(t), t)
    z = b.mul(t, t)
    rest = b.mul(b.mul(t, z), horner(b, z, table("ATAN", fmt)))
    (quarter, quarter_low), half = parts("pi_4", fmt), parts("pi_2", fmt)[0]
    base = b.select(swap, b.const(half, small.type), b.const(0.0, small.type))
    base = b.select(fold, quarter, base)
    rest = b.fma(base, quarter_low / quarter, rest)
    return b.add(base, b.add(t, rest))


@elementary(weight=12, ulps=2)
def atan(b: Builder, x: Value) -> Value:
    """The arc tangent."""
    a = b.abs(x)
    swap = b.fcmp("ogt", a, 1.0)
    return copysign(b, _arc(b, b.select(swap, 1.0, a), b.select(swap, a, 1.0), swap), x)


@elementary(weight=18, ulps=2)
def atan2(b: Builder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in [-π, π]; C99's values at zeros and infinities."""
    fmt = format_of(x)
    across, up = b.abs(x), b.abs(y)
    swap = b.fcmp("ogt", up, across)
    small, large = b.select(swap, across, up), b.select(swap, up, across)
    # Sums of the two must not overflow; 0/0 counts as 0, and inf/inf as 1.
    shrink = b.select(
        b.fcmp("ogt", large, fmt.largest / 4), b.const(0.25, x.type), b.const(1.0, x.type)
    )
    small, large = b.mul(small, shrink), b.mul(large, shrink)
    both = b.fcmp("oeq", small, INFINITY)
    both = b.and_(both, b.fcmp("oeq", large, INFINITY))
    small = b.select(both, 1.0, small)
    large = b.select(b.or_(both, b.fcmp("oeq", large, 0.0)), 1.0, large)
    angle = _arc(b, small, large, swap)
    high, low = parts("pi", fmt)
    behind = b.icmp("slt", bits(b, x), 0)
    angle = b.select(behind, b.sub(high, b.sub(angle, low)), angle)
    return copysign(b, angle, y)
