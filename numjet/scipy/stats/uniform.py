"""numjet.scipy.stats.uniform: equally probable values from `loc` to `loc` + `scale`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.numpy.promote import strong
from numjet.scipy.stats.arguments import in_jax, ordered, unless, unlikely, weakly


@in_jax(lambda x, loc, scale: unless(-jnp.log(scale), (x > loc + scale) | (x < loc), -jnp.inf))
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the uniform distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. -∞ outside of its support.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import uniform
    >>> uniform.logpdf(jnp.array([0.5]), scale=2.0).round(4)
    Array([-0.6931], dtype=float32)
    """
    x, loc, scale = ordered("uniform.logpdf", x, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    return jnp.where(outside, -jnp.inf, jnp.where(jnp.isnan(x), x, -jnp.log(scale)))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the uniform distribution: 1 in [0, 1].

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. 0 outside of its support.
    Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import uniform
    >>> uniform.pdf(jnp.array([0.5]), scale=2.0).round(4)
    Array([0.5], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def _below(x: Any, loc: Any, scale: Any) -> Any:
    """`cdf` in JAX's equations."""
    cases = [x < loc, x > loc + scale, (x >= loc) & (x <= loc + scale)]
    return jnp.select(cases, [0.0, 1.0, (x - loc) / scale])


@in_jax(_below)
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: uniform distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats. Raises
    TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import uniform
    >>> uniform.cdf(jnp.array([0.5]), scale=2.0).round(4)
    Array([0.25], dtype=float32)
    """
    x, loc, scale = ordered("uniform.cdf", x, loc, scale)
    z = (x - loc) / scale
    return strong(jnp.where(x < loc, 0, jnp.where(x > loc + scale, 1, z)))


@in_jax(lambda q, loc, scale: jnp.where(unlikely(q), jnp.nan, loc + scale * q))
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part q lies below, the inverse of cdf: uniform distribution.

    q: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import uniform
    >>> uniform.ppf(jnp.array([0.25, 0.875]), scale=2.0).round(4)
    Array([0.5 , 1.75], dtype=float32)
    """
    q, loc, scale = weakly("uniform.ppf", q, loc, scale)
    return jnp.where((q < 0) | (q > 1), jnp.nan, loc + q * scale)


__all__ = ["cdf", "logpdf", "pdf", "ppf"]


def __dir__() -> list[str]:
    return [*__all__]
