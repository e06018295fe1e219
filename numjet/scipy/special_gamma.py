"""Quotients and products of gamma functions for numjet.scipy.special: beta, binomial coefficients,
Pochhammer's symbol; Riemann's zeta function.

Differences of logarithms of large gammas are taken of their Stirling series, so that they keep
their digits (DiDonato & Morris, "Algorithm 708", ACM TOMS 18, 1992), in derivatives, too.
"""

from __future__ import annotations

import math
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.shown import FLAG, wanted
from numjet.core import dtypes
from numjet.core.structural import convert, full
from numjet.numpy.promote import (
    cast,
    promote_inexact,
    promote_shapes,
    strong,
    unmixed,
)
from numjet.ops import special_tables as tables
from numjet.ops.special import lgamma
from numjet.ops.special_series import chebyshev, polynomial
from numjet.ops.transcendental import exp
from numjet.scipy.jax_forms import betaln_in_jax
from numjet.scipy.precision import in_doubles, refuse_complex
from numjet.scipy.special_complex import complex_gamma

# From here on Stirling's series, with the terms below, has the last digit of double precision.
STIRLING_FROM = 10.0
# What `_scaled` adds to its variable.
SHIFT = 3.75
# B_2k / (2k (2k - 1)), the coefficients of x^(1 - 2k) in log Γ(x) - (x - ½) log x + x - ½ log 2π.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)


def _floats(name: str, *args: Any) -> list[Any]:
    xs = promote_inexact(*unmixed(name, *args))
    if name in ("gammasgn", "beta", "poch"):
        refuse_complex(name, *xs)
    return list(jnp.broadcast_arrays(*promote_shapes(name, *xs)))


def _correction(x: Any) -> Any:
    return polynomial(_STIRLING, 1 / (x * x)) / x


def _wide(x: Any) -> bool:
    """Whether more digits than those of `_scaled` are wanted."""
    return x.dtype.itemsize > 4


def _scaled(z: Any) -> tuple[Any, Any]:
    """p, q with Γ(z) = p / q (z + SHIFT)^(z - ½) exp(-z - SHIFT) to 6e-10, for z from ½ on."""
    w = 1 / (z + SHIFT)
    q = (1 - SHIFT * w) * (1 - (SHIFT - 1) * w) * ((1 - (SHIFT - 2) * w) * (1 - (SHIFT - 3) * w))
    return chebyshev(tables.GAMMA_SCALED, w, True), q


# Doubles stay doubles where these are traced, whatever `enable_x64` says, in functions of lax.
# Under `disable_jit` they are evaluated, and operators would make float32 of doubles.
def _choose(which: Any, yes: Any, no: Any) -> Any:
    def whole(x: Any) -> Any:
        return full(which.shape, x, dtypes.float64) if isinstance(x, float) else x

    return lax.select(which, whole(yes), whole(no))


@in_doubles
def _ways(n: Any, k: Any) -> Any:
    """Γ(n + 1) / (Γ(k + 1) Γ(n - k + 1)) for 0 <= k <= n, to single precision."""
    dtype, weak = n.dtype, n.aval.weak_type
    n, k = convert(n, dtypes.float64), convert(k, dtypes.float64)
    less = lax.min(k, n - k)  # the same ways, and Γ(less + 1) is the smaller one
    small, large, whole = less + 1, n - less + 1, n + 1
    # log Γ(whole) - log Γ(large) is a difference of logarithms, taken before it is rounded.
    rise = (large - 0.5) * lax.log1p(less / (large + SHIFT))
    fall = less * lax.log((whole + SHIFT) / (small + SHIFT))
    (ps, qs), (pl, ql), (pw, qw) = _scaled(small), _scaled(large), _scaled(whole)
    factor = pw * qs * ql / (qw * ps * pl * lax.sqrt(small + SHIFT))
    return cast(factor * exp(rise + fall + (1 + SHIFT)), dtype, weak)


# sin πx / x in powers of x², |x| <= ½, to 6e-12.
_SINE = tuple([(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(8)])


def _sine(x: Any) -> Any:
    """sin πx."""
    whole = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    rest, half = x - whole, 0.5 * whole
    return rest * polynomial(_SINE, rest * rest) * (1 - 4 * (half - lax.floor(half)))


@in_doubles
def _rising(z: Any, m: Any) -> Any:
    """Γ(z + m) / Γ(z) in single precision, computed in double. Below ½ Γ(x) is
    π / (sin πx Γ(1 - x))."""
    dtype = z.dtype
    z, m = convert(z, dtypes.float64), convert(m, dtypes.float64)
    m = lax.max(lax.min(m, full(m.shape, 1e300, m.dtype)), full(m.shape, -1e300, m.dtype))
    top = z + m
    pole, over = (z <= 0) & (z == lax.floor(z)), (top <= 0) & (top == lax.floor(top))
    left, left_top = z < 0.5, top < 0.5
    x, y = _choose(left, 1 - z, z), _choose(left_top, 1 - top, top)
    small, large = lax.min(x, y), lax.max(x, y)
    same = left == left_top
    gap = _choose(same, lax.abs(m), large - small)
    end = lax.log(large + SHIFT)
    between = lax.log1p(gap / (small + SHIFT))
    # log Γ(large) - log Γ(small), and their sum
    rise = (small - 0.5) * between + gap * (end - 1)
    total = (large - 0.5) * end + (small - 0.5) * (end - between) - (large + small + 2 * SHIFT)
    exponent = _choose(same, _choose(m >= 0, rise, -rise), _choose(left, total, -total))
    (px, qx), (py, qy) = _scaled(x), _scaled(y)
    # Where both are poles the quotient of the sines is (-1)^m.
    half = 0.5 * m
    parity = 1 - 4 * (half - lax.floor(half))
    sine = _choose(pole & over, parity, _sine(z))
    # No quotient has a sign at the poles below 0 of Γ(z + m) alone.
    alone = _choose(pole, 1.0, _choose(top < 0, math.nan, 0.0))
    sine_top = _choose(over, alone, _sine(_choose(over, 0.5, top)))
    above = _choose(left_top, math.pi * qy, py) * _choose(left, px * sine, qx)
    below = _choose(left_top, py * sine_top, qy) * _choose(left, math.pi * qx, px)
    out = _choose(pole & ~over, 0.0, above / below * exp(exponent))
    return convert(_choose(m == 0, 1.0, out), dtype)


def gammasgn(x: Any) -> Any:
    """The sign of Γ(x), ±1.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 0. NaN at the negative integers, at 0 the sign of the zero. Raises ValueError
    for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.gammasgn(jnp.array([2.0, -0.5]))
    Array([ 1., -1.], dtype=float32)
    """
    (x,) = _floats("gammasgn", x)
    whole = jnp.floor(x)
    odd = (x < 0) & (whole % 2 != 0)
    out = jnp.where(odd | (x == 0) & jnp.signbit(x), -1, jnp.ones_like(x))
    return strong(jnp.where((x < 0) & (x == whole) | jnp.isnan(x), jnp.nan, out))


def gamma(x: Any) -> Any:
    """The gamma function Γ(x), (n - 1)! for whole n.

    x: an array of any shape; integers become floats, others keep their dtype. Result: x's shape.
    Derivative: Γ(x) digamma(x). Of real x ∞ at 0, NaN at the negative integers; of complex x NaN at
    all of these. Source: DLMF 5.5.3, 5.11.1.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.gamma(jnp.array([0.5, 4.0])).round(4)
    Array([1.7725, 6.    ], dtype=float32)
    """
    (x,) = _floats("gamma", x)
    if dtypes.is_complex(x.dtype):
        return complex_gamma(x)
    # A large logarithm has lost the digits that its exponential shows: it is taken in double.
    out = convert(exp(lgamma(convert(x, dtypes.float64))), x.dtype)
    whole = (x == jnp.floor(x)) & (out < 2.0**52)
    out = out + lax.stop_gradient(jnp.where(whole, jnp.round(out) - out, 0))
    return strong(gammasgn(x) * out)


def betaln(a: Any, b: Any) -> Any:
    """log |B(a, b)|, also of large arguments.

    a, b: real; arrays that broadcast; integers become floats. Result: the broadcast shape, the
    promoted dtype. Derivative: digamma(a) - digamma(a + b) in a. Raises TypeError for complex
    numbers. Source: DiDonato and Morris, Algorithm 708 (1992): differences of Stirling's series.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.betaln(jnp.array([2.0, 1e10]), 1.0).round(3)
    Array([ -0.693, -23.026], dtype=float32)
    """
    if FLAG.uses and wanted():
        return betaln_in_jax(*promote_inexact(*unmixed("betaln", a, b)))
    a, b = _floats("betaln", a, b)
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    one = (small > 0) & (large >= STIRLING_FROM) & (large < jnp.inf)
    both = one & (small >= STIRLING_FROM)
    big = jnp.where(one, large, STIRLING_FROM)
    little = jnp.where(one, small, 1)
    total = big + little
    quotient = little / big
    # log Γ(big) - log Γ(big + little)
    rest = _correction(big) - _correction(total) - (total - 0.5) * jnp.log1p(quotient)
    unequal = lax.lgamma(jnp.where(both, 1, little)) + (rest - little * (jnp.log(big) - 1))
    huge = jnp.where(both, little, STIRLING_FROM)
    ratio = huge / jnp.where(both, big, STIRLING_FROM)
    sum_ = _correction(huge) + _correction(big) - _correction(total)
    equal = sum_ + 0.5 * math.log(2 * math.pi) - 0.5 * jnp.log(big)
    equal = equal + (huge - 0.5) * (jnp.log(ratio) - jnp.log1p(ratio)) - big * jnp.log1p(ratio)
    x, y = jnp.where(one, 1, a), jnp.where(one, 1, b)
    plain = lax.lgamma(x) + lax.lgamma(y) - lax.lgamma(x + y)
    return jnp.where(both, equal, jnp.where(one, unequal, plain))


def beta(a: Any, b: Any) -> Any:
    """The beta function Γ(a) Γ(b) / Γ(a + b).

    a, b: real; arrays that broadcast; integers become floats. Result: the broadcast shape, the
    promoted dtype. Derivative (y is the result): y (digamma(a) - digamma(a + b)) in a. Raises
    ValueError for complex numbers. Source: that of `betaln`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.beta(2.0, jnp.array([1.0, 3.0])).round(4)
    Array([0.5   , 0.0833], dtype=float32)
    """
    a, b = _floats("beta", a, b)
    return strong(gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b)))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:  # noqa: N803 - a public name
    """The number of ways to choose k of N, for real N and k: Γ(N + 1) / (Γ(k + 1) Γ(N - k + 1)).

    N, k: real arrays that broadcast; integers become floats. repetition: things may be chosen
    again; then k may exceed N. Result: floats; 0 where N or k is negative or k exceeds N.
    Differentiable. SciPy's `exact` is not there. Raises TypeError for complex numbers. Source: that
    of `betaln`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.comb(5, jnp.array([2, 6]))
    Array([10.,  0.], dtype=float32)
    """
    n, k = _floats("comb", N, k)
    bad = (n < 0) | (k < 0)
    if repetition:
        # Of nothing nothing can be chosen, in one way.
        nothing = (n == 0) & (k == 0)
        bad = (bad | (n == 0)) & ~nothing
        n = jnp.where(nothing, 0, n + k - 1)
    else:
        bad = bad | (k > n)
    n, k = jnp.where(bad, 1, n), jnp.where(bad, 1, k)
    if _wide(n):
        ways = jnp.exp(-betaln(n - k + 1, k + 1) - jnp.log1p(n))
    else:
        ways = _ways(n, k)
    # Whole numbers stay whole; rounding has no part in the derivative.
    whole = (n == jnp.floor(n)) & (k == jnp.floor(k)) & (ways < 2.0**52)
    ways = jnp.where(whole, ways + lax.stop_gradient(jnp.round(ways) - ways), ways)
    return jnp.where(bad, 0, ways)


def poch(z: Any, m: Any) -> Any:
    """Pochhammer's symbol (z)_m = Γ(z + m) / Γ(z); its limit where both are infinite.

    z, m: real floats that broadcast. Result: the broadcast shape, the promoted dtype.
    Differentiable in both. Raises ValueError for complex numbers. Source: that of `betaln`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.poch(3.0, jnp.array([0.0, 2.0])).round(4)
    Array([ 1., 12.], dtype=float32)
    """
    z, m = _floats("poch", z, m)
    if not _wide(z):
        return strong(_rising(z, m))
    top = z + m
    pole, over = (z <= 0) & (z == jnp.floor(z)), (top <= 0) & (top == jnp.floor(top))
    # Γ(z + m) / Γ(z) = (-1)^m Γ(1 - z) / Γ(1 - z - m) between poles.
    both = pole & over
    x = jnp.where(both, 1 - top, jnp.where(pole, 1, z))
    y = jnp.where(both, 1 - z, jnp.where(pole, 1, top))
    sign = jnp.where(both, jnp.where(jnp.round(m) % 2 == 0, 1, -1), gammasgn(x) * gammasgn(y))
    usual = (x > 0) & (y > x)
    gap = jnp.where(usual, y - x, 1)
    # log Γ(x + gap) - log Γ(x) = log Γ(gap) - log B(x, gap)
    quotient = lax.lgamma(gap) - betaln(jnp.where(usual, x, 1), gap)
    plain = lax.lgamma(jnp.where(usual, 1, y)) - lax.lgamma(jnp.where(usual, 1, x))
    out = sign * jnp.exp(jnp.where(usual, quotient, plain))
    out = jnp.where(pole & ~over, 0, out)
    return strong(jnp.where(m == 0, 1, out))


# ------------------------------------------------------------------ zeta
def zeta(x: Any, q: Any = None) -> Any:
    """Hurwitz's zeta function, Σ (k + q)^-x over k >= 0.

    x, q: real floats that broadcast, x above 1. Result: the broadcast shape, the promoted dtype.
    Derivative: -x zeta(x + 1, q) in q; in x as well. Raises TypeError for complex numbers,
    NotImplementedError without q. Source: DLMF 25.11.5, in `lax.zeta`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.zeta(jnp.array([2.0, 4.0]), 1).round(4)
    Array([1.6449, 1.0823], dtype=float32)
    """
    if q is None:
        raise NotImplementedError(
            "zeta: Riemann's zeta function is not implemented. Pass q=1 for it, where x > 1."
        )
    return lax.zeta(*_floats("zeta", x, q))
