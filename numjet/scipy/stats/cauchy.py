"""numjet.scipy.stats.cauchy: the Cauchy distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.numpy.elementwise import constant
from numjet.scipy.stats.arguments import floats, in_jax, logarithm, probability


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the Cauchy distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.logpdf(jnp.array([1.0])).round(4)
    Array([-1.8379], dtype=float32)
    """
    x, loc, scale = floats("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -(jnp.log(jnp.pi * scale) + jnp.log1p(z * z))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the Cauchy distribution: 1 / (π (1 + x²)).

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.pdf(jnp.array([1.0])).round(4)
    Array([0.1592], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def _cdf(z: Any) -> Any:
    """`cdf` of the distribution at 0 of scale 1."""
    # Exact in the lower tail, too: the angle of a point right of the axis.
    return jnp.arctan2(jnp.ones_like(z), -z) / jnp.pi


def _log_cdf(z: Any) -> Any:
    """log of `_cdf`; right of the axis by what is missing to 1."""
    right = z > 0
    missing = jnp.where(right, _cdf(-z), 0)
    return jnp.where(right, jnp.log1p(-missing), logarithm(_cdf(z)))


def _below(x: Any, loc: Any, scale: Any) -> Any:
    """`cdf` in JAX's equations."""
    z = (x - loc) / scale
    return 0.5 + 1 / constant(jnp.pi, x) * jnp.arctan(z)


@in_jax(_below)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: Cauchy distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.cdf(jnp.array([1.0])).round(4)
    Array([0.75], dtype=float32)
    """
    x, loc, scale = floats("cauchy.cdf", x, loc, scale)
    return _cdf((x - loc) / scale)


@in_jax(lambda *args: jnp.log(_below(*args)))
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: Cauchy distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.logcdf(jnp.array([1.0])).round(4)
    Array([-0.2877], dtype=float32)
    """
    x, loc, scale = floats("cauchy.logcdf", x, loc, scale)
    return _log_cdf((x - loc) / scale)


@in_jax(lambda x, loc, scale: _below(-x, -loc, scale))
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: Cauchy distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.sf(jnp.array([1.0])).round(4)
    Array([0.25], dtype=float32)
    """
    x, loc, scale = floats("cauchy.sf", x, loc, scale)
    return _cdf((loc - x) / scale)


@in_jax(lambda x, loc, scale: jnp.log(_below(-x, -loc, scale)))
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: Cauchy distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.logsf(jnp.array([1.0])).round(4)
    Array([-1.3863], dtype=float32)
    """
    x, loc, scale = floats("cauchy.logsf", x, loc, scale)
    return _log_cdf((loc - x) / scale)


def _quantile_above(q: Any) -> Any:
    """cot(π q) of q in [0, 1], which keeps its digits near both ends: ±infinity at these."""
    above = q < 0.5
    tail = jnp.where(above, q, 1 - q)
    far = jnp.where(above, 1, -1) / jnp.tan(jnp.pi * tail)
    return jnp.where(tail > 0.25, jnp.tan(jnp.pi * (0.5 - q)), far)


@in_jax(lambda q, loc, scale: jnp.tan(jnp.pi * q - jnp.pi / 2) * scale + loc)
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies below, the inverse of cdf: Cauchy distribution.

    q: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([-1.    ,  2.4142], dtype=float32)
    """
    q, loc, scale = floats("cauchy.ppf", q, loc, scale)
    return loc - scale * _quantile_above(probability(q))


@in_jax(lambda q, loc, scale: jnp.tan(jnp.pi / 2 - jnp.pi * q) * scale + loc)
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies above, the inverse of sf: Cauchy distribution.

    q: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import cauchy
    >>> cauchy.isf(jnp.array([0.25, 0.875])).round(4)
    Array([ 1.    , -2.4142], dtype=float32)
    """
    q, loc, scale = floats("cauchy.isf", q, loc, scale)
    return loc + scale * _quantile_above(probability(q))


__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
