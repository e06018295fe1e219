"""numjet.scipy.stats.gamma: the gamma distribution of shape `a` from `loc` on."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.numpy.elementwise import constant
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, in_jax, inside, logarithm, weakly


def _log_density(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    good = x >= loc
    z = jnp.where(good, (x - loc) / scale, constant(1, x))
    value = special.xlogy(a - 1, z) - z - (special.gammaln(a) + jnp.log(scale))
    return jnp.where(good, value, -jnp.inf)


def _above(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    """`sf` in JAX's equations."""
    z = (x - loc) / scale
    return jnp.where(z < 0, 1, special.gammaincc(a, z))


@in_jax(_log_density)
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the gamma distribution.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. -∞ outside
    of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.logpdf(jnp.array([1.0]), 2.0).round(4)
    Array([-1.], dtype=float32)
    """
    x, a, loc, scale = floats("gamma.logpdf", x, a, loc, scale)
    z = (x - loc) / scale
    outside = x < loc
    z = inside(~outside, z, 1.0)
    value = special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)
    return jnp.where(outside, -jnp.inf, value)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the gamma distribution: x^(a-1) e^-x / Γ(a) from 0 on.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. 0 outside
    of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.pdf(jnp.array([1.0]), 2.0).round(4)
    Array([0.3679], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


def _part(function: Any, x: Any, a: Any, loc: Any, scale: Any, before: float) -> Any:
    """`function(a, (x - loc) / scale)`; `before` the support, where its derivatives are zero, as at
    infinity."""
    z, a = jnp.broadcast_arrays((x - loc) / scale, a)
    below, above, known = z <= 0, z == jnp.inf, a > 0
    value = function(inside(known, a, 1.0), inside(~(below | above), z, 1.0))
    value = jnp.where(below, before, jnp.where(above, 1 - before, value))
    return jnp.where(known, value, jnp.nan)


@in_jax(lambda x, a, loc, scale: special.gammainc(a, lax.clamp(0.0, (x - loc) / scale, jnp.inf)))
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: gamma distribution.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.cdf(jnp.array([1.0]), 2.0).round(4)
    Array([0.2642], dtype=float32)
    """
    x, a, loc, scale = floats("gamma.cdf", x, a, loc, scale)
    return _part(special.gammainc, x, a, loc, scale, 0.0)


@in_jax(lambda *args: jnp.log(cdf(*args)))
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: gamma distribution.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.logcdf(jnp.array([1.0]), 2.0).round(4)
    Array([-1.3309], dtype=float32)
    """
    return logarithm(cdf(x, a, loc, scale))


@in_jax(_above)
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: gamma distribution.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammaincc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.sf(jnp.array([1.0]), 2.0).round(4)
    Array([0.7358], dtype=float32)
    """
    x, a, loc, scale = weakly("gamma.sf", x, a, loc, scale)
    return _part(special.gammaincc, x, a, loc, scale, 1.0)


@in_jax(lambda *args: jnp.log(sf(*args)))
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: gamma distribution.

    x: where; a: its shape, positive; loc, scale: shift it and stretch it: the distribution of loc +
    scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammaincc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gamma
    >>> gamma.logsf(jnp.array([1.0]), 2.0).round(4)
    Array([-0.3069], dtype=float32)
    """
    return logarithm(sf(x, a, loc, scale))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
