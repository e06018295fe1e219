"""numjet.scipy.stats.expon: the exponential distribution from `loc` on, `scale` its mean."""

from __future__ import annotations

from typing import Any

from numjet import nn, numpy as jnp
from numjet.scipy.stats.arguments import (
    in_jax,
    inside,
    one_less_exp,
    ordered,
    unless,
    unlikely,
    weakly,
)


def _log_above(x: Any, loc: Any, scale: Any) -> Any:
    z = (loc - x) / scale
    return jnp.where(x < loc, jnp.zeros_like(z), z)


def _below(x: Any, loc: Any, scale: Any) -> Any:
    z = (loc - x) / scale
    return jnp.where(x < loc, jnp.zeros_like(z), one_less_exp(z))


def _log_density(x: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    size = jnp.log(scale)
    return unless(-((x - loc) / scale + size), x < loc, -jnp.inf)


@in_jax(_log_density)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the exponential distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    -∞ outside of its support. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.logpdf(jnp.array([1.0])).round(4)
    Array([-1.], dtype=float32)
    """
    x, loc, scale = ordered("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, -z - jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the exponential distribution: e^-x from 0 on.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    0 outside of its support. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.pdf(jnp.array([1.0])).round(4)
    Array([0.3679], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@in_jax(_below)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: exponential distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.cdf(jnp.array([1.0])).round(4)
    Array([0.6321], dtype=float32)
    """
    return one_less_exp(logsf(x, loc, scale))


@in_jax(lambda *args: jnp.log1p(-sf(*args)))
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: exponential distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.logcdf(jnp.array([1.0])).round(4)
    Array([-0.4587], dtype=float32)
    """
    x, loc, scale = ordered("expon.logcdf", x, loc, scale)
    z = (x - loc) / scale
    below = x < loc
    return jnp.where(below, -jnp.inf, nn.log1mexp(inside(~below, z, 1.0)))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: exponential distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.sf(jnp.array([1.0])).round(4)
    Array([0.3679], dtype=float32)
    """
    return jnp.exp(logsf(x, loc, scale))


@in_jax(_log_above)
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: exponential distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.logsf(jnp.array([1.0])).round(4)
    Array([-1.], dtype=float32)
    """
    x, loc, scale = ordered("expon.logsf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(x < loc, 0, -z)


@in_jax(lambda q, loc, scale: jnp.where(unlikely(q), jnp.nan, loc - scale * jnp.log1p(-q)))
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies below, the inverse of cdf: exponential distribution.

    q: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import expon
    >>> expon.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([0.2877, 2.0794], dtype=float32)
    """
    q, loc, scale = weakly("expon.ppf", q, loc, scale)
    good = ~unlikely(q)
    return jnp.where(good, loc - scale * jnp.log1p(-inside(good, q, 0.5)), jnp.nan)


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
