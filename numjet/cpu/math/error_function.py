"""erf, erfc and the inverse of erf."""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.math.elementary import (
    F32,
    F64,
    INFINITY,
    at_most,
    copysign,
    elementary,
    format_of,
    horner,
    table,
)
from numjet.cpu.math.exponential import exp
from numjet.cpu.math.logarithm import log

# erf in float32 rounds to 1 beyond.
_ERF_END = 4.0
# erfc rounds to 0 beyond.
_ERFC_END = {"float": 10.2, "double": 28.0}


@elementary(weight=14, ulps=2)
def erf(b: Builder, x: Value) -> Value:
    """The error function: a cubic of a rational function, or two pieces in float64."""
    fmt = format_of(x)
    return copysign(b, (_erf_single if fmt is F32 else _erf_double)(b, b.abs(x)), x)


def _erf_single(b: Builder, a: Value) -> Value:
    """t - 4/27·t³ with t = a + a·P(a²)/Q(a²): the cubic is flat where it reaches 1, at t = 1.5, so
    that what t has lost where P and Q are large does not count."""
    a = at_most(b, a, _ERF_END)
    z = b.mul(a, a)
    ratio = b.div(horner(b, z, table("ERF_P", F32)), horner(b, z, table("ERF_Q", F32)))
    t = b.fma(a, ratio, a)
    return b.fma(b.mul(b.mul(t, t), t), -4 / 27, t)


def _erf_double(b: Builder, a: Value) -> Value:
    """An odd polynomial below 1, then 1 - exp(-a·L(a))."""
    z = b.mul(a, a)
    small = b.fma(a, horner(b, z, table("ERF", F64)), a)
    c = at_most(b, a, 6.0)
    fall = b.mul(c, horner(b, c, table("ERF_LOG", F64)))
    large = b.sub(1.0, exp(b, b.neg(fall), below=False, above=False))
    return b.select(b.fcmp("olt", a, 1.0), small, large)


@elementary(weight=18, ulps=6)
def erfc(b: Builder, x: Value) -> Value:
    """1 - erf(x) with relative accuracy: exp(-a²)·G(t)/(a+3) above 1/2."""
    fmt = format_of(x)
    a = at_most(b, b.abs(x), _ERFC_END[fmt.element])
    square = b.mul(a, a)
    near = b.sub(1.0, b.fma(x, horner(b, square, table("ERF", fmt)), x))
    lost = b.fma(a, a, b.neg(square))
    inverse = b.div(1.0, b.add(a, 3.0))
    t = b.fma(inverse, -6.0, 1.0)
    g = b.mul(inverse, horner(b, t, table("ERFC", fmt)))
    far = exp(b, b.neg(square), above=False, times=b.fma(g, b.neg(lost), g))
    far = b.select(b.fcmp("olt", x, 0.0), b.sub(2.0, far), far)
    return b.select(b.fcmp("olt", a, 0.5), near, far)


@elementary(weight=24, ulps=4)
def erf_inv(b: Builder, x: Value) -> Value:
    """The inverse error function; ±inf at ±1, NaN beyond.

    x times a polynomial of w = -log(1 - x²), in two or three pieces (M. Giles, "Approximating the
    erfinv function", GPU Computing Gems 2011). The outer pieces, 0.3 % of uniform arguments, are
    computed only where a lane needs them.
    """
    fmt = format_of(x)
    w = b.neg(log(b, b.mul(b.sub(1.0, x), b.add(x, 1.0))))
    edge, shift = (5.0, 2.5) if fmt is F32 else (6.25, 3.125)
    p = horner(b, b.sub(w, shift), table("ERF_INV_CENTRE", fmt))
    outer = b.fcmp("oge", w, edge)
    with b.if_(b.any(outer), otherwise=[p]) as branch:
        root = b.sqrt(w)
        if fmt is F32:
            far = horner(b, b.sub(root, 3.0), table("ERF_INV_TAIL", fmt))
        else:
            middle = horner(b, b.sub(root, 3.25), table("ERF_INV_MIDDLE", fmt))
            tail = horner(b, b.sub(root, 5.0), table("ERF_INV_TAIL", fmt))
            far = b.select(b.fcmp("olt", root, 4.0), middle, tail)
        far = b.select(b.fcmp("oeq", w, INFINITY), INFINITY, far)
        branch.yield_(b.select(outer, far, p))
    return b.mul(x, branch.results[0])
