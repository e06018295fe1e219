"""exp, exp2, expm1, logistic.

x = n·ln 2 + r with |r| ≤ ln 2 / 2 (Cody & Waite 1980; exact with fused multiply-add), a polynomial
for exp(r) - 1 in the form r + r²·q(r), whose last addition is the only rounding that counts, and
one scaling by 2^n. Called through `math.emit`; hyperbolic.py uses the parts.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.math.elementary import (
    F32,
    at_least,
    at_most,
    bits,
    copysign,
    elementary,
    format_of,
    from_bits,
    horner,
    nearest,
    parts,
    scale,
    scale_down,
    scales,
    table,
)

# Beyond these the results are 0 and infinity, and n stays where `scale` works.
_EXP_RANGE = {"float": (-104.5, 89.0), "double": (-746.0, 710.0)}
_EXP2_RANGE = {"float": (-151.0, 128.5), "double": (-1076.0, 1024.5)}


def reduced(b: Builder, x: Value, offset: int = 0) -> tuple[Value, Value, Value]:
    """(r, n, shifted) with x = n·ln 2 + r, for clamped x; `offset` as in `nearest`."""
    fmt = format_of(x)
    high, low = parts("ln2", fmt)
    n, shifted = nearest(b, x, parts("log2e", fmt)[0], fmt, offset)
    r = b.fma(n, -low, b.fma(n, -high, x))
    return r, n, shifted


def _of_rest(b: Builder, r: Value, factor: float = 1.0) -> Value:
    """e^r · factor, a power of two."""
    q = horner(b, r, tuple([factor * c for c in table("EXP", format_of(r))]))
    return b.fma(r, b.fma(r, q, factor), factor)


@elementary(weight=8, ulps=2)
def exp(
    b: Builder,
    x: Value,
    less: int = 0,
    below: bool = True,
    above: bool = True,
    times: Value | None = None,
) -> Value:
    """e^x / 2^less · times. `below`, `above`: whether x may leave the format's range there; below
    it only with `less` 0, and `times` at most 1."""
    fmt = format_of(x)
    lowest, highest = _EXP_RANGE[fmt.element]
    if above:
        x = at_most(b, x, highest + less)
    by_hand = below and not scales(b, x)
    if by_hand:
        x = at_least(b, x, lowest)
    r, n, shifted = reduced(b, x)
    p = _of_rest(b, r, 2.0 if by_hand and above else 1.0)
    if times is not None:
        p = b.mul(p, times)
    if by_hand:
        (normal,) = parts("ln2", fmt, 1, True, fmt.bias - 1)
        return _scaled_down(b, p, x, shifted, -normal, above)
    result = scale(b, p, n, shifted, less, below, above)
    return b.select(b.fcmp("uge", x, lowest), result, 0.0) if below else result


def _scaled_down(
    b: Builder, p: Value, x: Value, shifted: Value, normal: float, above: bool
) -> Value:
    """p·2^n, or half of that where x may be `above` as well: 2^n itself may be infinite then. From
    `normal` on results are normal numbers."""
    far = b.fcmp("olt", x, 0.75 * normal) if above else None
    return scale_down(b, p, shifted, b.fcmp("olt", x, normal), far, int(above))


@elementary(weight=8, ulps=2)
def exp2(b: Builder, x: Value) -> Value:
    """2^x."""
    fmt = format_of(x)
    lowest, highest = _EXP2_RANGE[fmt.element]
    x = at_most(b, x, highest)
    by_hand = not scales(b, x)
    if by_hand:
        x = at_least(b, x, lowest)
    n, shifted = nearest(b, x, 1.0, fmt)
    r = b.sub(x, n)
    factor = 2.0 if by_hand else 1.0
    p = b.fma(r, horner(b, r, tuple([factor * c for c in table("EXP2", fmt)])), factor)
    if by_hand:
        return _scaled_down(b, p, x, shifted, (1 - fmt.bias), True)
    return b.select(b.fcmp("uge", x, lowest), scale(b, p, n, shifted), 0.0)


@elementary(weight=12, ulps=2)
def expm1(b: Builder, x: Value) -> Value:
    """e^x - 1, accurate near 0."""
    fmt = format_of(x)
    # Below the lower end the result rounds to -1.
    lowest = -18.0 if fmt is F32 else -38.0
    c = at_least(b, at_most(b, x, _EXP_RANGE[fmt.element][1]), lowest)
    high, low = parts("ln2", fmt)
    n, shifted = nearest(b, c, parts("log2e", fmt)[0], fmt)
    first = b.fma(n, -high, c)
    r = b.fma(n, -low, first)
    # What r lost counts where 2^n·p and 2^n - 1 cancel, at n = 1.
    lost = b.fma(n, -low, b.sub(first, r))
    p = b.add(r, b.fma(b.mul(r, r), horner(b, r, table("EXPM1", fmt)), lost))
    # 2^n·p + 2^n - 1, halved on the way because 2^n itself may be infinite.
    power = scale(b, b.const(1.0, x.type), n, shifted, 1, below=False, above=False)
    large = b.fma(power, p, b.sub(power, 0.5))
    result = b.select(b.fcmp("oeq", n, 0.0), p, b.add(large, large))
    return copysign(b, result, x)


@elementary(weight=10, ulps=2)
def logistic(b: Builder, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    fmt, away = format_of(x), b.neg(b.abs(x))
    # z·unit = e^-|x|, without numbers below the normal ones before the last product.
    if scales(b, x):
        z, unit = exp(b, away, above=False), 1.0
        d = b.add(z, 1.0)
        d_low = b.sub(z, b.sub(d, 1.0))
    else:
        unit = 2.0**-64
        r, _, shifted = reduced(b, at_least(b, away, _EXP_RANGE[fmt.element][0]), fmt.bias + 64)
        z = b.mul(_of_rest(b, r), from_bits(b, b.shl(bits(b, shifted), fmt.mantissa)))
        d = b.fma(z, unit, 1.0)
        d_low = b.fma(z, unit, b.sub(1.0, d))
    top = b.select(b.fcmp("olt", x, 0.0), z, 1.0 / unit)
    # top/(d + d_low), with one step of correction for both roundings: 1/d right to 5 % is enough.
    q = b.div(top, d)
    rest = b.fma(b.neg(q), d_low, b.fma(b.neg(q), d, top))
    quotient = b.fma(rest, b.fma(d, -0.5, 1.457), q)
    return quotient if unit == 1.0 else b.mul(quotient, unit)
