"""Integrals of elementary functions: sine, cosine and exponential integrals, Fresnel's, Dawson's,
Owen's T, the dilogarithm. For numjet.scipy.special.

Real arguments; float16 and bfloat16 are computed in float32. Auxiliary functions of large arguments
are Chebyshev series made by tools/fit_special.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.numpy.creation import taking_lists
from numjet.numpy.promote import promote_inexact, unmixed
from numjet.ops import special_tables as tables
from numjet.ops.special_series import chebyshev, polynomial
from numjet.scipy.precision import float_array, strong_throughout
from numjet.scipy.special_normal import ndtr


def wide(name: str, *args: Any, strongly: bool = False) -> tuple[list[Any], Any]:
    """The arguments as floats of at least 32 bits and one dtype, strong, and the dtype to return.

    strongly: so are derivatives with respect to weak arguments. ValueError for complex numbers.
    """
    xs = promote_inexact(*unmixed(name, *args))
    if strongly:
        xs = [strong_throughout(x) for x in xs]
    dtype = xs[0].dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name} does not support complex-valued inputs, got {dtype}.")
    work = dtypes.float32 if dtype.itemsize < 4 else dtype
    return [jnp.asarray(x, work) for x in xs], dtype


# ------------------------------------------------------------------ sine and cosine integrals
SINE_FROM = 4.0  # from here on the auxiliary functions


def sici(x: Any) -> tuple[Any, Any]:
    """The sine and cosine integrals: Si(x), of sin(t) / t from 0, and Ci(x), γ + log x + that of
    (cos(t) - 1) / t.

    x: real floats of any shape (ValueError for complex ones). Result: (Si, Ci); Ci of a negative x
    is NaN. Derivative: sin(x) / x and cos(x) / x. Source: DLMF 6.6 (series), 6.2(iii).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> si, ci = special.sici(jnp.array([1.0]))
    >>> print(si.round(4), ci.round(4))
    [0.9461] [0.3374]
    """
    (x,), dtype = wide("sici", x)
    si, ci = _sici(x)
    return si.astype(dtype), ci.astype(dtype)


@jvp_of_arrays
def _sici(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    small = size < SINE_FROM
    near = jnp.where(small, size, 1)
    square = near * near
    terms = 18 if x.dtype == jnp.float64 else 12
    sine = polynomial(
        [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(terms)], square
    )
    cosine = polynomial(
        [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, terms)], square
    )
    # 0 is where log has its own infinity.
    si_near, ci_near = near * sine, np.euler_gamma + jnp.log(near) + square * cosine
    far = jnp.where(small, SINE_FROM, size)
    w = SINE_FROM / far
    f = chebyshev(tables.SINE_F, w) / far
    g = chebyshev(tables.SINE_G, w) / far / far
    angle = jnp.where(jnp.isinf(far), 0, far)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    si = jnp.where(small, si_near, np.pi / 2 - f * cos - g * sin) * jnp.sign(x)
    si = jnp.where(x == 0, x, si)
    ci = jnp.where(small, ci_near, f * sin - g * cos)
    return si, jnp.where(x == -jnp.inf, jnp.nan, ci)


@_sici.defjvp
def _sici_rule(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    zero = x == 0
    safe = jnp.where(zero, 1, x)
    return _sici(x), (jnp.where(zero, 1, jnp.sin(safe) / safe) * t, jnp.cos(x) / x * t)


# ------------------------------------------------------------------ Fresnel's integrals
FRESNEL_FROM = 1.5


def _quarter_turns(x: Any) -> Any:
    """x² modulo 4, whose half is the angle in multiples of π: of large x the whole turns are taken
    off before rounding hides the rest."""
    whole = 2 * jnp.round(x / 2)
    rest = x - whole
    # x² = whole² + 2 whole rest + rest², and whole² is a multiple of 4. The product with the upper
    # half of the rest is exact.
    bits = 2.0**12 if x.dtype == jnp.float32 else 2.0**26
    upper = jnp.round(rest * bits) / bits
    product = 2 * whole * upper
    product = product - 4 * jnp.round(product / 4)
    return product + 2 * whole * (rest - upper) + rest * rest


def fresnel(x: Any) -> tuple[Any, Any]:
    """The Fresnel integrals S(x) and C(x), of sin and cos of π t² / 2 from 0 to x.

    x: real floats of any shape; NotImplementedError for complex ones. Result: (S, C). Derivative:
    sin and cos of π x² / 2. Source: DLMF 7.6 (series), 7.2(iv) (auxiliary functions).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> s, c = special.fresnel(jnp.array([1.0]))
    >>> print(s.round(4), c.round(4))
    [0.4383] [0.7799]
    """
    if dtypes.is_complex(jnp.result_type(x)):
        raise NotImplementedError("fresnel: complex numbers are not supported. Take real x.")
    (x,), dtype = wide("fresnel", x)
    s, c = _fresnel(x)
    return s.astype(dtype), c.astype(dtype)


@jvp_of_arrays
def _fresnel(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    small = size < FRESNEL_FROM
    near = jnp.where(small, size, 0)
    square = near * near
    fourth = square * square
    terms = 18 if x.dtype == jnp.float64 else 10
    half = math.pi / 2
    sine = polynomial(
        [
            (-1) ** k * half ** (2 * k + 1) / (math.factorial(2 * k + 1) * (4 * k + 3))
            for k in range(terms)
        ],
        fourth,
    )
    cosine = polynomial(
        [(-1) ** k * half ** (2 * k) / (math.factorial(2 * k) * (4 * k + 1)) for k in range(terms)],
        fourth,
    )
    far = jnp.where(small, FRESNEL_FROM, size)
    w = (FRESNEL_FROM / far) ** 2
    f = chebyshev(tables.FRESNEL_F, w) / (math.pi * far)
    g = chebyshev(tables.FRESNEL_G, w) / (math.pi * far) / (math.pi * far) / far
    angle = _quarter_turns(jnp.where(jnp.isinf(far), 0, far)) * half
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    s = jnp.where(small, near * square * sine, 0.5 - f * cos - g * sin)
    c = jnp.where(small, near * cosine, 0.5 + f * sin - g * cos)
    sign = jnp.sign(x)
    return s * sign, c * sign


# The derivative of the angle is not that of what rounding left of it.
@_fresnel.defjvp
def _fresnel_rule(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    angle = _quarter_turns(x) * (math.pi / 2)
    return _fresnel(x), (jnp.sin(angle) * t, jnp.cos(angle) * t)


# ------------------------------------------------------------------ Dawson's integral
def dawsn(x: Any) -> Any:
    """Dawson's integral: exp(-x²) times the integral of exp(t²) from 0 to x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): 1 - 2 x y. Raises ValueError for complex x. Source: DLMF
    7.2.5, 7.12.1; Chebyshev series after Clenshaw (1962).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.dawsn(jnp.array([1.0])).round(4)
    Array([0.5381], dtype=float32)
    """
    (x,), dtype = wide("dawsn", x)
    size = jnp.abs(x)
    far = size > 4
    outer = jnp.where(far, size, 4)
    beyond = chebyshev(tables.DAWSON_FAR, (4 / outer) ** 2) / (2 * outer)
    value = jnp.where(far, beyond, _dawson(jnp.where(far, 0, size)))
    value = jnp.where(x < 0, -value, jnp.where(x == 0, x, value))
    return jnp.where(jnp.isnan(x), x, value).astype(dtype)


# Beyond 4 the difference would cancel, before it second derivatives of the series are less exact.
@jvp_of_arrays
def _dawson(x: Any) -> Any:
    low = x < 2
    inner = jnp.where(low, x, 0)
    return jnp.where(
        low,
        inner * chebyshev(tables.DAWSON_LOW, inner * inner),
        chebyshev(tables.DAWSON_MIDDLE, jnp.where(low, 3, x)),
    )


_dawson.defjvps(lambda t, out, x: (1 - 2 * x * out) * t)


# ------------------------------------------------------------------ Owen's T
@jvp_of_arrays
def _owens_t(h: Any, a: Any) -> Any:
    height, slope = jnp.abs(h), jnp.abs(a)
    # T(h, a) for a > 1 is made of T(a h, 1 / a) (Owen 1956).
    steep = slope > 1
    product = jnp.where((height == 0) | (slope == 0), 0, height * slope)
    at = jnp.where(steep, product, height)
    upper = jnp.where(steep, 1 / jnp.where(steep, slope, 1), slope)
    double = h.dtype == jnp.float64
    # Behind `cut` / h nothing is left of exp(-h² x² / 2).
    cut, count = (9.0, 40) if double else (6.0, 20)
    end = jnp.minimum(upper, cut / jnp.where(at == 0, 1, at))
    end = jnp.where(at == 0, upper, end)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    total: Any = jnp.zeros_like(end)
    for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        t = end * (0.5 + 0.5 * node)
        scaled = jnp.where(jnp.isinf(at), 0, at) * t
        total = total + weight * jnp.exp(-0.5 * scaled * scaled) / (1 + t * t)
    inner = 0.5 * end * total * jnp.exp(-0.5 * at * at) / (2 * math.pi)
    one, two = ndtr(-height), ndtr(-product)
    out = jnp.where(steep, 0.5 * (one + two) - one * two - inner, inner)
    # At h = 0 the integral is an arctangent.
    out = jnp.where(height == 0, jnp.arctan(slope) / (2 * math.pi), out)
    out = jnp.where(jnp.isinf(height), 0, out)
    out = jnp.where(a < 0, -out, out)
    return jnp.where(jnp.isnan(h) | jnp.isnan(a), jnp.nan, out)


@_owens_t.defjvp
def _owens_t_rule(primals: tuple, tangents: tuple) -> tuple:
    (h, a), (dh, da) = primals, tangents
    density = jnp.exp(-0.5 * h * h)
    along_h = -density * lax.erf(h * a / math.sqrt(2)) / math.sqrt(8 * math.pi)
    ends = density * jnp.exp(-0.5 * h * h * a * a)
    along_a = ends / (2 * math.pi * (1 + a * a))
    return _owens_t(h, a), along_h * dh + along_a * da


def owens_t(h: Any, a: Any) -> Any:
    """Owen's T: the integral of exp(-h² (1 + x²) / 2) / (1 + x²) / 2π from 0 to a.

    h, a: real floats that broadcast; of 16 bits they give float32. By quadrature for |a| <= 1, by
    Owen's relation for others. Differentiable in both. Source: Owen, Tables for computing bivariate
    normal probabilities, Ann. Math. Statist. 27 (1956). Raises ValueError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.owens_t(1.0, jnp.array([2.0])).round(5)
    Array([0.07847], dtype=float32)
    """
    (h, a), _ = wide("owens_t", h, a)
    return _owens_t(*jnp.broadcast_arrays(h, a))


# ------------------------------------------------------------------ exponential integrals
@jvp_of_arrays
def _expn(n: Any, x: Any) -> Any:
    """E_n of x >= 0: a power series up to 1, a continued fraction above (DLMF 8.19.8, 8.19.17)."""
    double = x.dtype == jnp.float64
    small = x <= 1
    near = jnp.where(small & (x > 0), x, 1)
    far = jnp.where(small | jnp.isinf(x), 2, x)
    order = jnp.where(n >= 1, n, 1)
    # (-x)^(n-1) / (n-1)! (ψ(n) - log x) - Σ over k != n - 1 of (-x)^k / ((k - n + 1) k!)
    size = jnp.exp((order - 1) * jnp.log(near) - lax.lgamma(order))
    sign = jnp.where(order % 2 == 0, -1, 1)
    total = sign * size * (lax.digamma(order) - jnp.log(near))
    term: Any = jnp.ones_like(x)
    for k in range(20 if double else 12):
        if k:
            term = term * near / -k
        at = order == k + 1
        total = total - jnp.where(at, 0, term / jnp.where(at, 1, k - order + 1))
    depth = 100 if double else 40
    rest = far + 2.0 * depth + order
    for k in range(depth, 0, -1):
        rest = far + order + 2 * (k - 1) - k * (k + order - 1) / rest
    out = jnp.where(small, total, jnp.exp(-far) / rest)
    out = jnp.where(n == 0, jnp.exp(-far) / far, out)
    out = jnp.where((n == 0) & small, jnp.exp(-near) / near, out)
    ends = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), jnp.inf)
    out = jnp.where(x == 0, ends, jnp.where(x == jnp.inf, 0, out))
    bad = (x < 0) | jnp.isnan(x) | (n < 0) | (n != jnp.floor(n))
    return jnp.where(bad, jnp.nan, out)


def _expn_rule(t: Any, out: Any, n: Any, x: Any) -> Any:
    first = -jnp.exp(-x) * (1 + 1 / x) / x
    return jnp.where(n == 0, first, -_expn(jnp.where(n == 0, 1, n - 1), x)) * t


_expn.defjvps(None, _expn_rule)


@taking_lists
def expn(n: Any, x: Any) -> Any:
    """The generalized exponential integral E_n(x), the integral of exp(-x t) / tⁿ from 1 on.

    n: whole numbers, also traced ones; x: floats that broadcast with them. Result: the broadcast
    shape; NaN for other n, for n < 0 and x < 0. Derivative: -E_(n-1)(x) in x, none in n. Raises
    ValueError for complex numbers. Source: DLMF 8.19.8, 8.19.17.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.expn(2, jnp.array([0.5])).round(4)
    Array([0.3266], dtype=float32)
    """
    (n, x), dtype = wide("expn", n, x, strongly=True)
    return _expn(*jnp.broadcast_arrays(n, x)).astype(dtype)


def exp1(x: Any) -> Any:
    """The exponential integral E₁(x), the integral of exp(-t) / t from x on.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: -exp(-x) / x. ∞ at 0, NaN below. Raises ValueError for complex x. Source:
    that of `expn`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.exp1(jnp.array([0.5, 1.0])).round(4)
    Array([0.5598, 0.2194], dtype=float32)
    """
    (x,), dtype = wide("exp1", x, strongly=True)
    return _expn(jnp.ones_like(x), x).astype(dtype)


def expi(x: Any) -> Any:
    """The exponential integral Ei(x): the principal value of the integral of exp(t) / t up to x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: exp(x) / x. -∞ at 0. Raises ValueError for complex x. Source: DLMF 6.6.1,
    6.12.2, and `expn` below 0.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.expi(jnp.array([0.5, 1.0])).round(4)
    Array([0.4542, 1.8951], dtype=float32)
    """
    (x,), dtype = wide("expi", x, strongly=True)
    return _expi(x).astype(dtype)


@jvp_of_arrays
def _expi(x: Any) -> Any:
    below = x < 0
    left = -_expn(jnp.ones_like(x), jnp.where(below, -x, 1))
    positive = jnp.where(below, 1, x)
    # From `switch` on the least term of the asymptotic series, the number `switch`, is below the
    # dtype's precision (2e-8 and 7e-17); before it the other series needs so many `terms`.
    switch, terms = (40, 110) if x.dtype == jnp.float64 else (20, 70)
    near = positive < switch
    t = jnp.where(near & (positive > 0), positive, 1)
    series = np.euler_gamma + jnp.log(t)
    term: Any = jnp.ones_like(x)
    for k in range(1, terms):
        term = term * t / k
        series = series + term / k
    infinite = x == jnp.inf
    far = jnp.where(near | infinite, switch, positive)
    total: Any = jnp.ones_like(x)
    term = total
    for k in range(1, switch):
        term = term * k / far
        total = total + term
    right = jnp.where(near, series, jnp.exp(far) / far * total)
    out = jnp.where(infinite, x, jnp.where(below, left, right))
    return jnp.where(x == 0, -jnp.inf, jnp.where(jnp.isnan(x), x, out))


_expi.defjvps(lambda t, out, x: jnp.exp(x) / x * t)


# ------------------------------------------------------------------ the dilogarithm
# B(2k) / (2k + 1)! for k = 1, 2, ...: the series of the dilogarithm in -log(1 - x), whose terms
# fall by (log 2 / 2π)² or more here.
_DILOGARITHM = [
    number / math.factorial(2 * k + 1)
    for k, number in enumerate([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6], 1)
]


@jvp_of_arrays
def _product_of_logs(x: Any) -> Any:
    """log(1 - x) log(x) for x < 1, 0 at 0."""
    return jnp.log1p(-x) * jnp.log(jnp.where(x == 0, 1, x))


@_product_of_logs.defjvp
def _product_of_logs_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    ratio = jnp.where(x == 0, -1, jnp.log1p(-x) / jnp.where(x == 0, 1, x))
    return _product_of_logs(x), t * (ratio - jnp.log(x) / (1 - x))


@taking_lists
def spence(x: Any) -> Any:
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.

    x: float32 or float64 of any shape (TypeError for others). Result: x's shape. Derivative:
    log(x) / (1 - x). NaN below 0. Source: DLMF
    25.12.4, 25.12.6; the series in -log(1 - x) with Bernoulli numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.spence(jnp.array([0.0, 2.0])).round(4)
    Array([ 1.6449, -0.8225], dtype=float32)
    """
    x = float_array("spence", x)
    small, large = x < 0.5, x > 2
    outer = jnp.where(large, x, 2)
    inner = jnp.where(small, x, 0)
    u = jnp.where(
        small,
        -jnp.log1p(-inner),
        jnp.where(large, jnp.log1p(-1 / outer), -jnp.log(jnp.where(small | large, 1, x))),
    )
    square = u * u
    series = u + square * (u * polynomial(_DILOGARITHM, square) - 0.25)
    reflected = math.pi**2 / 6 - _product_of_logs(jnp.where(small, x, 0.25)) - series
    falling = jnp.log(outer - 1)
    inverted = -(math.pi**2) / 6 - 0.5 * falling * falling - series
    out = jnp.where(small, reflected, jnp.where(large, inverted, series))
    return jnp.where(x < 0, jnp.nan, out)
