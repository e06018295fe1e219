"""log, log2, log10, log1p.

x = 2^e·(1 + f) with 1 + f in [√½, √2). log(1+f) = f + y(f): float32 takes y = f²·(-1/2 + f·q(f));
float64 the arctanh series in s = f/(2+f), with f²/2 kept apart (the arrangement is Cody & Waite's
and Ng's). The scale and base are applied to the sum's parts, smallest first.
"""

from __future__ import annotations

from numjet.cpu.builder import Builder, Value, like
from numjet.cpu.math.common import (
    F32,
    INFINITY,
    NAN,
    Format,
    bits,
    copysign,
    format_of,
    from_bits,
    horner,
    parts,
    table,
)

_ROOT_HALF_BITS = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCC}
# A subnormal number times this is normal.
_LIFT = {"float": 25, "double": 54}


def decompose(b: Builder, x: Value, subnormal: bool = True) -> tuple[Value, Value, Value]:
    """x > 0 finite as 2^e·m, m in [√½, √2): (e as a float, m, e·2^mantissa as an integer)."""
    fmt = format_of(x)
    magic = fmt.magic
    if subnormal:
        tiny = b.fcmp("olt", x, fmt.smallest_normal)
        lift = _LIFT[fmt.element]
        x = b.select(tiny, b.mul(x, 2.0**lift), x)
        magic = b.select(
            tiny, b.const(fmt.magic + lift, x.type), b.const(fmt.magic, x.type)
        )  # fmt: skip
    above = b.sub(bits(b, x), _ROOT_HALF_BITS[fmt.element])
    shifted = b.and_(above, -1 << fmt.mantissa)
    m = from_bits(b, b.sub(bits(b, x), shifted))
    e = b.sub(from_bits(b, b.add(b.ashr(above, fmt.mantissa), fmt.magic_bits)), magic)
    return e, m, shifted


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


def log(b: Builder, x: Value) -> Value:
    """The natural logarithm."""
    fmt = format_of(x)
    e, m, _ = decompose(b, x)
    f = b.sub(m, 1.0)
    high, low = _ln2(fmt)
    y = b.fma(e, low, tail(b, f, fmt))
    return special(b, x, b.fma(e, high, b.add(f, y)))


def _ln2(fmt: Format) -> tuple[float, float]:
    return parts("ln2", fmt)


def _other_base(b: Builder, x: Value, one: str, two: str | None) -> Value:
    """log(x)·k, with k = `one` and log_base(2) = `two` (None: 1)."""
    fmt = format_of(x)
    e, m, _ = decompose(b, x)
    f = b.sub(m, 1.0)
    high, low = parts(one, fmt)
    y = b.fma(f, low, b.mul(tail(b, f, fmt), high))
    if two is None:
        return special(b, x, b.add(e, b.fma(f, high, y)))
    two_high, two_low = parts(two, fmt)
    y = b.fma(e, two_low, y)
    return special(b, x, b.fma(e, two_high, b.fma(f, high, y)))


def log2(b: Builder, x: Value) -> Value:
    """The logarithm to base 2; exact at powers of two."""
    return _other_base(b, x, "log2e", None)


def log10(b: Builder, x: Value) -> Value:
    """The logarithm to base 10."""
    return _other_base(b, x, "log10e", "log10_2")


def log1p(b: Builder, x: Value) -> Value:
    """log(1 + x), accurate near 0."""
    fmt = format_of(x)
    u = b.add(x, 1.0)
    # 1 + x = u + c exactly (Knuth's two-sum).
    back = b.sub(u, 1.0)
    c = b.add(b.sub(1.0, b.sub(u, back)), b.sub(x, back))
    e, m, shifted = decompose(b, u, subnormal=False)
    one = b.const(1.0, like(x.type, fmt.element))
    f = b.sub(m, 1.0)
    # c·2^-e joins f; what f cannot hold is added at the end. For large x c does not count, and
    # 2^-e might not be a number.
    c = b.mul(c, from_bits(b, b.sub(bits(b, one), shifted)))
    c = b.select(b.fcmp("olt", x, 2.0**100), c, 0.0)
    total = b.add(f, c)
    lost = b.sub(c, b.sub(total, f))
    high, low = _ln2(fmt)
    y = b.fma(e, low, b.add(lost, tail(b, total, fmt)))
    result = b.fma(e, high, b.add(total, y))
    return copysign_or_special(b, x, u, result)


def copysign_or_special(b: Builder, x: Value, u: Value, result: Value) -> Value:
    """log1p's special values: u = 1 + x decides, and ±0 keeps its sign."""
    return special(b, u, copysign(b, result, x))
