"""sinh, cosh, tanh and their inverses.

Near 0 odd polynomials (a rational function for tanh in float64); elsewhere from e^|x|/2, which does
not overflow before the result does.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.math.elementary import (
    F32,
    F64,
    NAN,
    at_least,
    at_most,
    copysign,
    elementary,
    format_of,
    horner,
    nearest,
    parts,
    scale,
    table,
)
from numjet.cpu.math.exponential import exp
from numjet.cpu.math.logarithm import log1p


@elementary(weight=14, ulps=2)
def sinh(b: Builder, x: Value) -> Value:
    """The hyperbolic sine."""
    fmt = format_of(x)
    a = b.abs(x)
    z = b.mul(x, x)
    small = b.fma(b.mul(a, z), horner(b, z, table("SINH", fmt)), a)
    half = exp(b, a, less=1, below=False)
    large = b.sub(half, b.div(0.25, half))
    return copysign(b, b.select(b.fcmp("olt", a, 1.0), small, large), x)


@elementary(weight=14, ulps=2)
def cosh(b: Builder, x: Value) -> Value:
    """The hyperbolic cosine."""
    half = exp(b, b.abs(x), less=1, below=False)
    return b.add(half, b.div(0.25, half))


@elementary(weight=12, ulps=2)
def tanh(b: Builder, x: Value) -> Value:
    """The hyperbolic tangent, in one division."""
    fmt = format_of(x)
    return copysign(b, (_tanh_single if fmt is F32 else _tanh_double)(b, b.abs(x)), x)


def _tanh_single(b: Builder, a: Value) -> Value:
    """-m/(1 + m) with m = expm1(-2a)/2, which is (2^n - 1)/2 + 2^n·p for -a = n·ln 2 / 2 + r and
    p = expm1(2r)/2: m and 1 + m are rounded once each."""
    c = at_least(b, b.neg(a), -9.5)  # beyond, the result is 1
    n, shifted = nearest(b, c, 2 * parts("log2e", F32)[0], F32)
    # One part is enough: float32's ln 2 happens to be right to 29 bits.
    r = b.fma(n, -0.5 * parts("ln2", F32)[0], c)
    p = b.fma(b.mul(r, r), horner(b, r, table("TANH", F32)), r)
    power = scale(b, b.const(1.0, a.type), n, shifted, below=False, above=False)
    top = b.fma(power, p, b.fma(power, 0.5, -0.5))
    bottom = b.fma(power, p, b.fma(power, 0.5, 0.5))
    return b.div(top, bottom)


def _tanh_double(b: Builder, a: Value) -> Value:
    """a + a³·P/Q near 0, else 1 - 2/(e^2a + 1)."""
    near = b.fcmp("olt", a, 0.55)
    z = b.mul(a, a)
    # Beyond 20 the result is 1.
    large = b.add(exp(b, at_most(b, b.add(a, a), 44.0), below=False, above=False), 1.0)
    top = b.mul(b.mul(a, z), horner(b, z, table("TANH_P", F64)))
    top = b.select(near, top, -2.0)
    bottom = b.select(near, horner(b, z, table("TANH_Q", F64)), large)
    return b.add(b.select(near, a, 1.0), b.div(top, bottom))


@elementary(weight=18, ulps=2)
def asinh(b: Builder, x: Value) -> Value:
    """The inverse hyperbolic sine: log1p(a + a²/(1 + √(1 + a²)))."""
    fmt = format_of(x)
    a = b.abs(x)
    # Where a² would overflow or swallow the 1: log(2a).
    big = 2.0 ** (fmt.mantissa + 5)
    huge = b.fcmp("ogt", a, big)
    c = at_most(b, a, big)
    square = b.mul(c, c)
    root = b.sqrt(b.add(square, 1.0))
    inner = b.add(c, b.div(square, b.add(root, 1.0)))
    result = log1p(b, b.select(huge, a, inner))
    result = b.add(result, b.select(huge, b.const(parts("ln2", fmt)[0], x.type), 0.0))
    return copysign(b, result, x)


@elementary(weight=18, ulps=2)
def acosh(b: Builder, x: Value) -> Value:
    """The inverse hyperbolic cosine: log1p(t + √(2t + t²)) with t = x - 1; NaN below 1."""
    fmt = format_of(x)
    big = 2.0 ** (fmt.mantissa + 5)
    huge = b.fcmp("ogt", x, big)
    t = b.sub(at_most(b, x, big), 1.0)
    inner = b.add(t, b.sqrt(b.fma(t, t, b.add(t, t))))
    result = log1p(b, b.select(huge, x, inner))
    result = b.add(result, b.select(huge, b.const(parts("ln2", fmt)[0], x.type), 0.0))
    return b.select(b.fcmp("olt", x, 1.0), NAN, result)


@elementary(weight=14, ulps=2)
def atanh(b: Builder, x: Value) -> Value:
    """The inverse hyperbolic tangent: log1p(2a/(1-a))/2; NaN outside [-1, 1], ±inf at its ends."""
    a = b.abs(x)
    ratio = b.div(b.add(a, a), b.sub(1.0, a))
    # Beyond 1 the ratio is below -2; between -2 and -1 it cannot be. At infinity it is NaN.
    result = b.mul(log1p(b, ratio), 0.5)
    return copysign(b, result, x)
