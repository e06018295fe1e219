"""The error function's family and the normal distribution, for numjet.scipy.special."""

from __future__ import annotations

import math
from typing import Any

from numjet.api.compiled.shown import FLAG, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import taking_lists
from numjet.numpy.elementwise import (
    add,
    divide,
    maximum,
    minimum,
    multiply,
    negative,
    subtract,
)
from numjet.numpy.logic import greater, less, logical_and, where
from numjet.numpy.promote import cast, one_array, one_inexact
from numjet.numpy.unary import exp, log, log1p, sqrt
from numjet.ops import special_tables as tables
from numjet.ops.special_series import chebyshev
from numjet.scipy.jax_forms import log_ndtr_in_jax, ndtr_in_jax
from numjet.scipy.precision import float_array, strong_throughout

_ROOT = math.sqrt(2 * math.pi)


def _wide(name: str, x: Any) -> tuple[Any, Any]:
    """x in at least 32 bits, and the dtype to return to."""
    x = one_inexact(name, x)
    kind = x.aval.dtype
    return (cast(x, dtypes.float32) if kind.itemsize < 4 else x), kind


def erf(x: Any) -> Any:
    """The error function 2/√π ∫₀ˣ exp(-t²) dt.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 2/√π exp(-x²). Raises TypeError for complex x. Computed by `lax.erf`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erf(jnp.array([0.5, 1.0])).round(4)
    Array([0.5205, 0.8427], dtype=float32)
    """
    return lax.erf(one_inexact("erf", x))


def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: -2/√π exp(-x²). Raises TypeError for complex x. Computed by `lax.erfc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfc(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.1573], dtype=float32)
    """
    return lax.erfc(one_inexact("erfc", x))


def erfinv(x: Any) -> Any:
    """The inverse of erf: the y with erf(y) = x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): √π/2 exp(y²). ±∞ at ±1, NaN outside. Raises TypeError for
    complex x. Computed by `lax.erf_inv`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfinv(jnp.array([0.0, 0.5, 1.0])).round(4)
    Array([0.    , 0.4769,    inf], dtype=float32)
    """
    return lax.erf_inv(one_inexact("erfinv", x))


@taking_lists
def ndtr(x: Any) -> Any:
    """The normal distribution function, the integral of its density up to x.

    x: float32 or float64 of any shape (TypeError for others). Result: x's shape. Derivative:
    exp(-x²/2) / √(2π). Computed by `lax.erfc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.ndtr(jnp.array([0.0, 1.0])).round(4)
    Array([0.5   , 0.8413], dtype=float32)
    """
    x = float_array("ndtr", x)
    if FLAG.uses and wanted():
        return ndtr_in_jax(x)
    return multiply(0.5, lax.erfc(multiply(x, -math.sqrt(0.5))))


def ndtri(p: Any) -> Any:
    """The inverse of ndtr: the quantile of the normal distribution.

    p: float32 or float64 of any shape (TypeError for others). Result: p's shape. Derivative
    (y is the result): √(2π) exp(y²/2). -∞ at 0, ∞ at 1, NaN outside. Source: Chebyshev series in
    log and √log of p, as Giles, Approximating the erfinv function (2011).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.ndtri(jnp.array([0.5, 0.975])).round(4)
    Array([0.  , 1.96], dtype=float32)
    """
    return _quantile(float_array("ndtri", p))


@jvp_of_arrays
def _quantile(p: Any) -> Any:
    # w = -log(1 - x²) for x = 2 p - 1, as for erf_inv (Giles), but exact where p is tiny. It is
    # infinite at 0 and 1, and NaN outside.
    w = negative(log(multiply(multiply(4, p), subtract(1, p))))
    edge = tables.NDTRI_CENTRE[0][1]
    size = lax.abs(subtract(multiply(2, p), 1))
    near = multiply(size, chebyshev(tables.NDTRI_CENTRE, minimum(w, edge)))
    root = sqrt(maximum(w, edge))
    far = multiply(root, chebyshev(tables.NDTRI_FAR, divide(1, add(root, 1))))
    out = where(less(w, edge), near, far)
    return where(less(p, 0.5), negative(out), out)


def _quantile_rule(t: Any, out: Any, p: Any) -> Any:
    """1 / φ(y). φ is the smaller of p and 1 - p over √(π/2) erfcx(|y|/√2), whose relative error is
    the quantile's own; that of exp(y²/2) is y² times as large, and is used between -1 and 1."""
    smaller, size = where(less(p, 0.5), p, subtract(1, p)), lax.abs(out)
    outer = logical_and(greater(size, 1), greater(smaller, 0))
    near = exp(_half_square(where(outer, 0, out)))
    far = divide(_erfcx(multiply(size, math.sqrt(0.5))), where(outer, smaller, 1))
    return multiply(
        t, where(outer, multiply(math.sqrt(math.pi / 2), far), multiply(_ROOT, near))
    )


_quantile.defjvps(_quantile_rule)


@taking_lists
def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log of ndtr, exact in the lower tail.

    x: float32 or float64 of any shape (TypeError for others). series_order: 0 to 30 (ValueError);
    no result depends on it, since no asymptotic series is used. Result: x's shape. Derivative (y
    is the result): exp(-x²/2 - y) / √(2π). Source: the formula with `erfcx`, DLMF 7.2.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.log_ndtr(jnp.array([0.0, -30.0])).round(3)
    Array([  -0.693, -454.321], dtype=float32)
    """
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ValueError(
            f"log_ndtr: series_order must be an integer in [0, 30], got {series_order!r}."
        )
    given = one_array("log_ndtr", x)
    x = float_array("log_ndtr", given)
    if FLAG.uses and wanted():
        return log_ndtr_in_jax(x)
    return _log_ndtr(strong_throughout(given))


@jvp_of_arrays
def _log_ndtr(x: Any) -> Any:
    above = greater(x, 0)
    scaled = _erfcx(multiply(lax.abs(x), math.sqrt(0.5)))
    fall = negative(_half_square(x))
    # The two logarithms are of numbers that the other's side does not reach.
    upper = log1p(multiply(-0.5, multiply(scaled, exp(fall))))
    return where(above, upper, add(fall, log(multiply(0.5, scaled))))


def _log_ndtr_rule(t: Any, out: Any, x: Any) -> Any:
    """The density over the distribution function: below 0 √(2/π) / erfcx(-x/√2)."""
    above = greater(x, 0)
    upper = divide(exp(subtract(negative(_half_square(x)), out)), _ROOT)
    scaled = _erfcx(where(above, 0, multiply(x, -math.sqrt(0.5))))
    return multiply(t, where(above, upper, divide(math.sqrt(2 / math.pi), scaled)))


_log_ndtr.defjvps(_log_ndtr_rule)


def real_erfcx(x: Any) -> Any:
    """exp(x²) erfc(x) of real x."""
    x, kind = _wide("erfcx", x)
    return cast(_scaled(x), kind)


@jvp_of_arrays
def _scaled(x: Any) -> Any:
    out = _erfcx(lax.abs(x))
    grown = multiply(2, exp(lax.square(minimum(x, 0))))
    return where(less(x, 0), subtract(grown, out), out)


def _scaled_rule(t: Any, out: Any, x: Any) -> Any:
    """2 x y - 2/√π, two numbers that cancel more and more from ½ on."""
    far = greater(x, 0.5)
    near = subtract(multiply(multiply(2, where(far, 0, x)), out), 2 / math.sqrt(math.pi))
    return multiply(t, where(far, _erfcx_slope(where(far, x, 1)), near))


_scaled.defjvps(_scaled_rule)


@jvp_of_arrays
def _erfcx(a: Any) -> Any:
    """exp(a²) erfc(a) for a >= 0."""
    w = divide(3, add(a, 3))
    return multiply(w, chebyshev(tables.ERFCX, w))


def _erfcx_slope(a: Any) -> Any:
    """Its derivative, 2 a erfcx(a) - 2/√π without the difference."""
    w = divide(3, add(a, 3))
    return multiply(negative(lax.square(w)), chebyshev(tables.ERFCX_SLOPE, w))


_erfcx.defjvps(lambda t, out, a: multiply(t, _erfcx_slope(a)))


def _half_square(x: Any) -> Any:
    """x² / 2."""
    return multiply(0.5, lax.square(x))
