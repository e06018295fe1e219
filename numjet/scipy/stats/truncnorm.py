"""numjet.scipy.stats.truncnorm: the normal distribution between the standardized bounds `a`, `b`.

A value x is at (x - loc) / scale; `a` and `b` are compared with that. Probabilities of intervals
are differences of logarithms of tails, taken on the side where the tail is small.
"""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.api.eager.large import wrap_public as _wrap_public
from numjet.scipy import special
from numjet.scipy.stats import norm
from numjet.scipy.stats.arguments import ordered_floats


def _log_difference(larger: Any, smaller: Any) -> Any:
    """log(e^larger - e^smaller)."""
    gap = larger - smaller
    none = ~(gap > 0)
    gap = jnp.where(none, 1, gap)
    # Each form is exact where the other cancels.
    rest = jnp.where(gap < 0.7, jnp.log(-jnp.expm1(-gap)), jnp.log1p(-jnp.exp(-gap)))
    unknown = jnp.isnan(larger) | jnp.isnan(smaller)
    return jnp.where(none, jnp.where(unknown, jnp.nan, -jnp.inf), larger + rest)


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the standard normal probability between a and b."""
    turned = a > 0
    low, high = jnp.where(turned, -b, a), jnp.where(turned, -a, b)
    tails = _log_difference(special.log_ndtr(high), special.log_ndtr(low))
    tail = high <= 0
    low, high = jnp.where(tail, -1, low), jnp.where(tail, 1, high)
    return jnp.where(tail, tails, jnp.log1p(-special.ndtr(low) - special.ndtr(-high)))


def _standard(name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> tuple:
    x, a, b, loc, scale = ordered_floats(name, x, a, b, loc, scale)
    return (x - loc) / scale, a, b, scale


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the normal distribution cut to [a.

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. -∞ outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers. Computed by `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.logpdf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([-0.6622], dtype=float32)
    """
    z, a, b, scale = _standard("truncnorm.logpdf", x, a, b, loc, scale)
    # Not `clip`, which shares the derivative at the ends.
    inner = jnp.where(z < a, a, jnp.where(z > b, b, z))
    value = norm.logpdf(inner) - jnp.log(scale) - _log_mass(a, b)
    value = jnp.where((z < a) | (z > b), -jnp.inf, value)
    return jnp.where((a >= b) | jnp.isnan(z), jnp.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the normal distribution cut to [a, b].

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. 0 outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers. Computed by `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.pdf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([0.5157], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: normal distribution cut to [a.

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.logcdf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([-0.2479], dtype=float32)
    """
    z, a, b, scale = _standard("truncnorm.logcdf", x, a, b, loc, scale)
    # Elsewhere a place within, so that derivatives are finite before they count for nothing.
    middle = jnp.where(jnp.isfinite(a + b), 0.5 * (a + b), jnp.clip(0, a + 1, b - 1))
    inner = jnp.where((z > a) & (z < b), z, middle)
    below = _log_mass(a, inner) - _log_mass(a, b)
    # Near the upper end the logarithm is minus the small rest.
    high = below > -0.1
    rest = jnp.minimum(_log_mass(inner, b) - _log_mass(a, b), 0)
    value = jnp.where(high, jnp.log1p(-jnp.exp(jnp.where(high, rest, -1))), below)
    value = jnp.where(z <= a, -jnp.inf, jnp.where(z >= b, 0, value))
    return jnp.where((a >= b) | jnp.isnan(z), jnp.nan, value)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: normal distribution cut to [a.

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.cdf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([0.7805], dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: normal distribution cut to [a.

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.logsf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([-1.5162], dtype=float32)
    """
    z, a, b, _ = _standard("truncnorm.logsf", x, a, b, loc, scale)
    return logcdf(-z, -b, -a)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: normal distribution cut to [a.

    x: where; a, b: the bounds, before loc and scale; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import truncnorm
    >>> truncnorm.sf(jnp.array([0.5]), -1.0, 1.0).round(4)
    Array([0.2195], dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_wrap_public(globals(), __name__, __all__)


def __dir__() -> list[str]:
    return [*__all__]
