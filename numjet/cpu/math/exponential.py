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
    copysign,
    elementary,
    format_of,
    horner,
    nearest,
    parts,
    scale,
    scales,
    table,
)

# Beyond these the results are 0 and infinity, and n stays where `scale` works.
_EXP_RANGE = {"float": (-104.5, 89.0), "double": (-746.0, 710.0)}
_EXP2_RANGE = {"float": (-151.0, 128.5), "double": (-1076.0, 1024.5)}


def reduced(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """(r, n, shifted) with x = n·ln 2 + r, for clamped x."""
    fmt = format_of(x)
    high, low = parts("ln2", fmt)
    n, shifted = nearest(b, x, parts("log2e", fmt)[0], fmt)
    r = b.fma(n, -low, b.fma(n, -high, x))
    return r, n, shifted


@elementary(weight=8, ulps=2)
def exp(
    b: Builder,
    x: Value,
    less: int = 0,
    below: bool = True,
    above: bool = True,
    times: Value | None = None,
) -> Value:
    """e^x / 2^less · times. `below`, `above`: whether x may leave the format's range there."""
    fmt = format_of(x)
    lowest, highest = _EXP_RANGE[fmt.element]
    if above:
        x = at_most(b, x, highest + less)
    if below:
        kept = b.fcmp("uge", x, lowest)
        x = _apart(b, kept, x)
    r, n, shifted = reduced(b, x)
    q = horner(b, r, table("EXP", fmt))
    p = b.fma(r, b.fma(r, q, 1.0), 1.0)
    if times is not None:
        p = b.mul(p, times)
    result = scale(b, p, n, shifted, less, below, above)
    return b.select(kept, result, 0.0) if below else result


def _apart(b: Builder, kept: Value, x: Value) -> Value:
    """x, but 0 where the result vanishes, which is selected and not computed: Intel's processors
    take 150 cycles for a vector in which a lane underflows, and masked scores are such lanes. With
    AVX-512 the scaling itself leaves them out."""
    return x if scales(b, x) else b.select(kept, x, 0.0)


@elementary(weight=8, ulps=2)
def exp2(b: Builder, x: Value) -> Value:
    """2^x."""
    fmt = format_of(x)
    lowest, highest = _EXP2_RANGE[fmt.element]
    kept = b.fcmp("uge", x, lowest)
    x = _apart(b, kept, at_most(b, x, highest))
    n, shifted = nearest(b, x, 1.0, fmt)
    r = b.sub(x, n)
    p = b.fma(r, horner(b, r, table("EXP2", fmt)), 1.0)
    return b.select(kept, scale(b, p, n, shifted), 0.0)


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
    z = exp(b, b.neg(b.abs(x)), above=False)
    top = b.select(b.fcmp("olt", x, 0.0), z, 1.0)
    # top/(d + d_low), with one step of correction for both roundings.
    d = b.add(z, 1.0)
    d_low = b.sub(z, b.sub(d, 1.0))
    inverse = b.div(1.0, d)
    q = b.mul(top, inverse)
    rest = b.fma(b.neg(q), d_low, b.fma(b.neg(q), d, top))
    return b.fma(rest, inverse, q)
