"""numjet.scipy.stats.laplace: the Laplace distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.scipy.stats.arguments import floats, in_jax, ordered


@in_jax(lambda x, loc, scale: -(jnp.abs(x - loc) / scale + jnp.log(2 * scale)))
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the Laplace distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import laplace
    >>> laplace.logpdf(jnp.array([1.0])).round(4)
    Array([-1.6931], dtype=float32)
    """
    x, loc, scale = floats("laplace.logpdf", *ordered("laplace.logpdf", x, loc, scale))
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the Laplace distribution: exp(-|x|) / 2.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import laplace
    >>> laplace.pdf(jnp.array([1.0])).round(4)
    Array([0.1839], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def _below(x: Any, loc: Any, scale: Any) -> Any:
    """`cdf` in JAX's equations."""
    z = (x - loc) / scale
    return lax.select(z <= 0, 0.5 * jnp.exp(z), 1 - 0.5 * jnp.exp(-z))


@in_jax(_below)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: Laplace distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import laplace
    >>> laplace.cdf(jnp.array([1.0])).round(4)
    Array([0.8161], dtype=float32)
    """
    x, loc, scale = floats("laplace.cdf", *ordered("laplace.cdf", x, loc, scale))
    z = (x - loc) / scale
    below = z <= 0
    tail = 0.5 * jnp.exp(jnp.where(below, z, -z))
    return jnp.where(below, tail, 1 - tail)


__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
