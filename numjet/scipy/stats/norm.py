"""numjet.scipy.stats.norm: the normal distribution, `loc` its mean and `scale` its deviation."""

from __future__ import annotations

import math
from typing import Any

from numjet import numpy as jnp
from numjet.api.compiled.shown import FLAG, wanted
from numjet.scipy import special
from numjet.scipy.precision import float_array
from numjet.scipy.stats.arguments import floats, in_jax

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _standard(name: str, x: Any, loc: Any, scale: Any) -> Any:
    x, loc, scale = floats(f"norm.{name}", x, loc, scale)
    return (x - loc) / scale


def _turned(name: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any, Any]:
    """The arguments that turn one tail into the other."""
    x, loc, scale = floats(f"norm.{name}", x, loc, scale)
    return -x, -loc, scale


def _quantile(q: Any) -> Any:
    """The standard distribution's quantiles, in the default float dtype."""
    return special.ndtri(q).astype(float)


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the normal distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.logpdf(jnp.array([1.0])).round(4)
    Array([-1.4189], dtype=float32)
    """
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    if FLAG.uses and wanted():
        square = jnp.square(scale)
        factor = jnp.log(2 * math.pi * square)
        return (factor + jnp.square(x - loc) / square) / -2
    return -0.5 * jnp.square((x - loc) / scale) - _HALF_LOG_TAU - jnp.log(jnp.abs(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the normal distribution: exp(-x²/2) / √(2π).

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.pdf(jnp.array([1.0])).round(4)
    Array([0.242], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: normal distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats. Raises
    TypeError for complex numbers. Computed by `scipy.special.ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.cdf(jnp.array([1.0])).round(4)
    Array([0.8413], dtype=float32)
    """
    return special.ndtr(_standard("cdf", x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: normal distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.
    Computed by `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.logcdf(jnp.array([1.0])).round(4)
    Array([-0.1728], dtype=float32)
    """
    return special.log_ndtr(_standard("logcdf", x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: normal distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats. Raises
    TypeError for complex numbers. Computed by `scipy.special.ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.sf(jnp.array([1.0])).round(4)
    Array([0.1587], dtype=float32)
    """
    return cdf(*_turned("sf", x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: normal distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.
    Computed by `scipy.special.log_ndtr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.logsf(jnp.array([1.0])).round(4)
    Array([-1.841], dtype=float32)
    """
    return logcdf(*_turned("logsf", x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies below, the inverse of cdf: normal distribution.

    q: in [0, 1], NaN outside, float32 or float64; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast. Result: the broadcast shape, in the
    default float dtype at least.
    Differentiable in floats. Raises TypeError for other dtypes of q. Computed by
    `scipy.special.ndtri`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([-0.6745,  1.1503], dtype=float32)
    """
    q, loc, scale = floats("norm.ppf", float_array("norm.ppf", q), loc, scale)
    return _quantile(q) * scale + loc


@in_jax(lambda q, loc, scale: ppf(1 - q, loc, scale))
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies above, the inverse of sf: normal distribution.

    q: in [0, 1], NaN outside, float32 or float64; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast. Result: the broadcast shape, in the
    default float dtype at least.
    Differentiable in floats. Raises TypeError for other dtypes of q. Computed by
    `scipy.special.ndtri`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import norm
    >>> norm.isf(jnp.array([0.25, 0.875])).round(4)
    Array([ 0.6745, -1.1503], dtype=float32)
    """
    q, loc, scale = floats("norm.isf", float_array("norm.isf", q), loc, scale)
    return loc - _quantile(q) * scale


__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
