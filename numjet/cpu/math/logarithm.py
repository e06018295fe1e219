"""log, log2, log10, log1p.

x = 2^e·(1 + f) with 1 + f in [√½, √2). log(1+f) = f + y(f): float32 takes y = f²·(-1/2 + f·q(f));
float64 the arctanh series in s = f/(2+f), with f²/2 kept apart (the arrangement is Cody & Waite's
and Ng's). The scale and base are applied to the sum's parts, smallest first.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.math.elementary import (
    F32,
    INFINITY,
    NAN,
    Format,
    avx512,
    avx512_name,
    bits,
    copysign,
    elementary,
    format_of,
    from_bits,
    halves,
    horner,
    parts,
    table,
)

_ROOT_HALF_BITS = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCC}
# A subnormal number times this is normal.
_LIFT = {"float": 25, "double": 54}


def decompose(b: Builder, x: Value, subnormal: bool = True) -> tuple[Value, Value, bool]:
    """x > 0 as 2^e·m with m in [√½, √2): (e as a float, m, whether special values are done).

    Where the last is true, e is ±inf for x = inf and 0, and m is NaN for x < 0 and NaN. Else x
    must be finite, and normal unless `subnormal`.
    """
    exponent_of, mantissa_of = avx512_name(b, x, "getexp"), avx512_name(b, x, "getmant")
    if exponent_of and mantissa_of:
        e = avx512(b, exponent_of, x)
        # 0b1100: in [1, 2), with the sign of zeros dropped, and NaN for x < 0.
        m = avx512(b, mantissa_of, x, b.const(0b1100, "i32"))
        above = b.fcmp("oge", m, 2.0**0.5)
        return b.select(above, b.add(e, 1.0), e), b.select(above, b.mul(m, 0.5), m), True
    fmt = format_of(x)
    magic: Value | float = fmt.magic
    if subnormal:
        tiny = b.fcmp("olt", x, fmt.smallest_normal)
        lift = _LIFT[fmt.element]
        x = b.select(tiny, b.mul(x, 2.0**lift), x)
        magic = b.select(tiny, b.const(fmt.magic + lift, x.type), fmt.magic)
    i = bits(b, x)
    above = b.sub(i, _ROOT_HALF_BITS[fmt.element])
    m = from_bits(b, b.sub(i, b.and_(above, -1 << fmt.mantissa)))
    e = b.sub(from_bits(b, b.add(b.ashr(above, fmt.mantissa), fmt.magic_bits)), magic)
    return e, m, False


def tail(b: Builder, f: Value, fmt: Format) -> Value:
    """log(1+f) - f."""
    if fmt is F32:
        return b.mul(b.mul(f, f), b.fma(f, horner(b, f, table("LOG", fmt)), -0.5))
    s = b.div(f, b.add(f, 2.0))
    z = b.mul(s, s)
    half_square = b.mul(b.mul(f, f), 0.5)
    rest = b.mul(z, horner(b, z, table("LOG", fmt)))
    return b.sub(b.mul(s, b.add(half_square, rest)), half_square)


def special(b: Builder, x: Value, result: Value) -> Value:
    """`result` for 0 < x < inf; -inf at 0, NaN below it, x itself at inf and NaN."""
    odd = b.select(
        b.fcmp("oeq", x, 0.0), -INFINITY, b.select(b.fcmp("olt", x, 0.0), NAN, x)
    )  # fmt: skip
    usual = b.and_(b.fcmp("ogt", x, 0.0), b.fcmp("olt", x, INFINITY))
    return b.select(usual, result, odd)


@elementary(weight=10, ulps=2)
def log(b: Builder, x: Value) -> Value:
    """The natural logarithm."""
    joined = halves(b, lambda part: log(b, part), x)
    if joined is not None:
        return joined
    parted = decompose(b, x)
    result = _of_parts(b, x, *parted[:2])
    return result if parted[2] else special(b, x, result)


def log_of_normal(b: Builder, x: Value) -> Value:
    """The natural logarithm of what is positive, finite and not subnormal; else any value."""
    joined = halves(b, lambda part: log_of_normal(b, part), x)
    if joined is not None:
        return joined
    return _of_parts(b, x, *decompose(b, x, subnormal=False)[:2])


def _of_parts(b: Builder, x: Value, e: Value, m: Value) -> Value:
    fmt = format_of(x)
    f = b.sub(m, 1.0)
    # Positive parts, here and below: an infinite e must not meet its negative.
    high, low = parts("ln2", fmt, positive=True)
    y = b.fma(e, low, tail(b, f, fmt))
    return b.fma(e, high, b.add(f, y))


def _other_base(b: Builder, x: Value, one: str, two: str | None) -> Value:
    """log(x)·k, with k = `one` and log_base(2) = `two` (None: 1)."""
    joined = halves(b, lambda part: _other_base(b, part, one, two), x)
    if joined is not None:
        return joined
    fmt = format_of(x)
    e, m, done = decompose(b, x)
    f = b.sub(m, 1.0)
    high, low = parts(one, fmt)
    y = b.fma(f, low, b.mul(tail(b, f, fmt), high))
    if two is None:
        result = b.add(e, b.fma(f, high, y))
    else:
        two_high, two_low = parts(two, fmt, positive=True)
        y = b.fma(e, two_low, y)
        result = b.fma(e, two_high, b.fma(f, high, y))
    return result if done else special(b, x, result)


@elementary(weight=10, ulps=2)
def log2(b: Builder, x: Value) -> Value:
    """The logarithm to base 2; exact at powers of two."""
    return _other_base(b, x, "log2e", None)


@elementary(weight=10, ulps=2)
def log10(b: Builder, x: Value) -> Value:
    """The logarithm to base 10."""
    return _other_base(b, x, "log10e", "log10_2")


@elementary(weight=12, ulps=2)
def log1p(b: Builder, x: Value) -> Value:
    """log(1 + x), accurate near 0."""
    joined = halves(b, lambda part: log1p(b, part), x)
    if joined is not None:
        return joined
    fmt = format_of(x)
    u = b.add(x, 1.0)
    # 1 + x = u + c exactly (Knuth's two-sum).
    back = b.sub(u, 1.0)
    c = b.add(b.sub(1.0, b.sub(u, back)), b.sub(x, back))
    e, m, _ = decompose(b, u, subnormal=False)
    f = b.sub(m, 1.0)
    # c·2^-e joins f; what f cannot hold is added at the end. For large x c does not count, and
    # 2^-e might not be a number.
    scalef = avx512_name(b, x, "scalef")
    if scalef:
        c = avx512(b, scalef, c, b.neg(e))
    else:
        above = b.sub(bits(b, u), _ROOT_HALF_BITS[fmt.element])
        one = fmt.bias << fmt.mantissa
        c = b.mul(c, from_bits(b, b.sub(one, b.and_(above, -1 << fmt.mantissa))))
    c = b.select(b.fcmp("olt", x, 2.0**100), c, 0.0)
    total = b.add(f, c)
    lost = b.sub(c, b.sub(total, f))
    high, low = parts("ln2", fmt, positive=True)
    y = b.fma(e, low, b.add(lost, tail(b, total, fmt)))
    result = b.fma(e, high, b.add(total, y))
    # ±0 keeps its sign; 1 + x decides about everything else.
    return special(b, u, copysign(b, result, x))
