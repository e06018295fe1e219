"""numjet.scipy.stats.pareto: the Pareto distribution of exponent `b` from `loc` + `scale` on."""

from __future__ import annotations

import math
from typing import Any

from numjet import nn, numpy as jnp
from numjet.numpy.elementwise import constant
from numjet.scipy.stats.arguments import (
    floats,
    in_jax,
    inside,
    one_less_exp,
    ordered,
    ordered_floats,
    unless,
    unlikely,
)


def _logsf(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """`logsf` of arrays of one dtype."""
    return -b * jnp.log(_from_one(x, loc, scale))


def _from_one(x: Any, loc: Any, scale: Any) -> Any:
    """The distance from `loc` in `scale`; 1 outside of the support."""
    return inside(~(x < loc + scale), (x - loc) / scale, 1.0)


def _log_density(x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    z = (x - loc) / scale
    value = -(jnp.log(scale / b) + (b + 1) * jnp.log(z))
    return unless(value, x < loc + scale, -jnp.inf)


@in_jax(_log_density)
def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the Pareto distribution.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. -∞
    outside of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.logpdf(jnp.array([2.0]), 2.0).round(4)
    Array([-1.3863], dtype=float32)
    """
    x, b, loc, scale = ordered_floats("pareto.logpdf", x, b, loc, scale)
    z = (x - loc) / scale
    outside = x < loc + scale
    value = jnp.log(b) - jnp.log(scale) - (b + 1) * jnp.log(inside(~outside, z, 1.0))
    return jnp.where(outside, -jnp.inf, value)


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the Pareto distribution: b / x^(b+1) from 1 on.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. 0
    outside of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.pdf(jnp.array([2.0]), 2.0).round(4)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@in_jax(
    lambda x, b, loc, scale: unless(1 - ((x - loc) / scale) ** -b, x < loc + scale, constant(0, x))
)
def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: Pareto distribution.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.cdf(jnp.array([2.0]), 2.0).round(4)
    Array([0.75], dtype=float32)
    """
    x, b, loc, scale = ordered_floats("pareto.cdf", x, b, loc, scale)
    above = _logsf(x, b, loc, scale)
    # A large logarithm has lost digits, which the power and its derivative keep.
    return jnp.where(above < -1, 1 - _from_one(x, loc, scale) ** -b, one_less_exp(above))


@in_jax(
    lambda x, b, loc, scale: unless(
        jnp.log1p(-(((x - loc) / scale) ** -b)), x < loc + scale, -jnp.inf
    )
)
def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: Pareto distribution.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.logcdf(jnp.array([2.0]), 2.0).round(4)
    Array([-0.2877], dtype=float32)
    """
    x, b, loc, scale = ordered("pareto.logcdf", x, b, loc, scale)
    above = _logsf(x, b, loc, scale)
    good = ~(x < loc + scale)
    # As in `cdf`; what is not taken is a power of e, whose slopes are finite.
    apart = above < -1
    power = inside(apart, _from_one(x, loc, scale), math.e) ** -inside(apart, b, 1.0)
    far = jnp.log1p(-power)
    near = nn.log1mexp(-inside(good & ~apart, above, -1.0))
    return jnp.where(good, jnp.where(apart, far, near), -jnp.inf)


@in_jax(lambda x, b, loc, scale: jnp.exp(logsf(x, b, loc, scale)))
def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: Pareto distribution.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.sf(jnp.array([2.0]), 2.0).round(4)
    Array([0.25], dtype=float32)
    """
    x, b, loc, scale = ordered_floats("pareto.sf", x, b, loc, scale)
    return _from_one(x, loc, scale) ** -b


@in_jax(
    lambda x, b, loc, scale: unless(
        -(b * jnp.log((x - loc) / scale)), x < loc + scale, constant(0, x)
    )
)
def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: Pareto distribution.

    x: where; b: its exponent, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.logsf(jnp.array([2.0]), 2.0).round(4)
    Array([-1.3863], dtype=float32)
    """
    return _logsf(*ordered_floats("pareto.logsf", x, b, loc, scale))


@in_jax(lambda q, b, loc, scale: unless(loc + scale * (1 - q) ** -(1 / b), unlikely(q), jnp.nan))
def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies below, the inverse of cdf: Pareto distribution.

    q: in [0, 1], NaN outside; b: its exponent, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import pareto
    >>> pareto.ppf(jnp.array([0.25, 0.875]), 2.0).round(4)
    Array([1.1547, 2.8284], dtype=float32)
    """
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    good = ~((q < 0) | (q > 1))
    value = loc + scale * jnp.exp(-jnp.log1p(-inside(good, q, 0.5)) / b)
    return jnp.where(good, value, jnp.nan)


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
