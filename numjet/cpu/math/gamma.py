"""lgamma and digamma: in double, float32 too. Relative accuracy is lost beside their zeros."""

from __future__ import annotations

import math

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.math.elementary import (
    F32,
    INFINITY,
    NAN,
    Format,
    elementary,
    format_of,
    horner,
    table,
)
from numjet.cpu.math.logarithm import log, log_of_normal
from numjet.cpu.math.trigonometric import cos_and_sin

# Stirling's series in 1/x², B_2k / (2k(2k-1)); from 8 on the ninth term is below 2^-56.
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
# The asymptotic series of digamma in 1/x², -B_2k / 2k; from 10 on.
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


def _in_double(function):
    def wrapped(b: Builder, x: Value) -> Value:
        fmt = format_of(x)
        if fmt is F32:
            return b.fptrunc(function(b, b.fpext(x, "double"), fmt), "float")
        return function(b, x, fmt)

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    return wrapped


def _pi_times(b: Builder, x: Value) -> tuple[Value, Value]:
    """cos πx and sin πx, both up to one common sign."""
    r = b.sub(x, b.intrinsic("llvm.rint", x))
    return cos_and_sin(b, b.mul(r, math.pi))


def _sides(b: Builder, x: Value, left: Value) -> tuple[Value, Value]:
    """Which of the numbers to the left of 1/2 are poles, and which are mirrored: integers, which
    may be all that there are, need no sine."""
    whole = b.fcmp("oeq", x, b.intrinsic("llvm.rint", x))
    pole = b.and_(left, whole)
    return pole, b.xor(left, pole)


@elementary(weight=40, ulps=40)
@_in_double
def lgamma(b: Builder, x: Value, fmt: Format) -> Value:
    """log|Γ(x)|; inf at the poles and at ±inf.

    Reflection below 1/2; recurrence to [3/2, 5/2) and u·P(u) there; Stirling's series from 8 on.
    fmt: what the result is rounded to.
    """
    terms = 4 if fmt is F32 else len(_STIRLING)
    left = b.fcmp("olt", x, 0.5)
    a = b.select(left, b.sub(1.0, x), x)
    far = b.fcmp("oge", a, 8.0)
    low = b.fcmp("olt", a, 1.5)
    y, product = b.select(low, b.add(a, 1.0), a), b.const(1.0, x.type)
    for _step in range(6):
        down = b.fcmp("oge", y, 2.5)
        less = b.sub(y, 1.0)
        product = b.select(down, b.mul(product, less), product)
        y = b.select(down, less, y)
    of = b.select(far, a, b.select(low, a, product))
    logarithm = log_of_normal(b, of)
    u = b.select(low, b.sub(a, 1.0), b.sub(y, 2.0))
    shift = b.select(low, b.neg(logarithm), logarithm)
    near = b.fma(u, horner(b, u, table("LGAMMA", fmt)), shift)
    inverse = b.div(1.0, a)
    series = b.mul(inverse, horner(b, b.mul(inverse, inverse), _STIRLING[:terms]))
    # (a-1/2)·log a - a + log(2π)/2
    rest = 0.5 * math.log(2 * math.pi) - 0.5
    stirling = b.fma(b.sub(a, 0.5), b.sub(logarithm, 1.0), b.add(series, rest))
    right = b.select(far, stirling, near)
    pole, mirrors = _sides(b, x, left)
    right = b.select(b.or_(pole, b.fcmp("oeq", a, INFINITY)), INFINITY, right)
    with b.if_(b.any(mirrors), otherwise=[right]) as branch:
        _, sine = _pi_times(b, x)
        # sin πx = πx where that product would be subnormal.
        tiny = b.fcmp("olt", b.abs(x), 2.0**-100)
        constant = b.select(tiny, b.const(0.0, x.type), b.const(math.log(math.pi), x.type))
        sine = b.select(tiny, x, sine)
        # A float's sine is no subnormal double; of poles any value does.
        size = (log_of_normal if fmt is F32 else log)(b, b.abs(sine))
        branch.yield_(b.select(mirrors, b.sub(b.sub(constant, size), right), right))
    return branch.results[0]


@elementary(weight=40, ulps=400)
@_in_double
def digamma(b: Builder, x: Value, fmt: Format) -> Value:
    """The derivative of log Γ; NaN at its poles.

    Reflection below 1/2; recurrence to 10 with Σ 1/y as one fraction; the asymptotic series there.
    fmt: what the result is rounded to.
    """
    terms = 4 if fmt is F32 else len(_DIGAMMA)
    left = b.fcmp("olt", x, 0.5)
    y = b.select(left, b.sub(1.0, x), x)
    top, bottom = b.const(0.0, x.type), b.const(1.0, x.type)
    for _step in range(10):
        up = b.fcmp("olt", y, 10.0)
        top = b.select(up, b.fma(top, y, bottom), top)
        bottom = b.select(up, b.mul(bottom, y), bottom)
        y = b.select(up, b.add(y, 1.0), y)
    inverse = b.div(1.0, y)
    square = b.mul(inverse, inverse)
    series = b.fma(square, horner(b, square, _DIGAMMA[:terms]), b.mul(inverse, -0.5))
    pole, mirrors = _sides(b, x, left)
    right = b.select(pole, NAN, b.sub(b.add(log(b, y), series), b.div(top, bottom)))
    with b.if_(b.any(mirrors), otherwise=[right]) as branch:
        cosine, sine = _pi_times(b, x)
        mirrored = b.sub(right, b.div(b.mul(cosine, math.pi), sine))
        branch.yield_(b.select(mirrors, mirrored, right))
    return branch.results[0]
