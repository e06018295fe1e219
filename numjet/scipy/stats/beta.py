"""numjet.scipy.stats.beta: the beta distribution with shapes `a` and `b`."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, in_jax, inside, logarithm


def _cut(x: Any, loc: Any, scale: Any) -> Any:
    return lax.clamp(0.0, (x - loc) / scale, 1.0)


def _log_density(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    shape = -special.betaln(a, b)
    z = (x - loc) / scale
    value = shape + (special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z)) - jnp.log(scale)
    value = jnp.where((x > loc + scale) | (x < loc), -jnp.inf, value)
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, value)


@in_jax(_log_density)
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the beta distribution.

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. -∞
    outside of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.logpdf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([0.4055], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    z = inside(~outside, z, 0.5)
    value = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    value = jnp.where(outside, -jnp.inf, value - jnp.log(scale))
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the beta distribution: x^(a-1) (1-x)^(b-1) / B(a, b) in [0, 1].

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape. 0
    outside of its support. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.pdf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([1.5], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _part(a: Any, b: Any, z: Any) -> Any:
    """The probability below z, whose derivative is 0 outside of the support and at its ends."""
    below, above = z <= 0, z >= 1
    inner = special.betainc(a, b, inside(~(below | above), z, 0.5))
    value = jnp.where(below, 0, jnp.where(above, 1, inner))
    return jnp.where((a > 0) & (b > 0), value, jnp.nan)


@in_jax(lambda x, a, b, loc, scale: special.betainc(a, b, _cut(x, loc, scale)))
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: beta distribution.

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.betainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.cdf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([0.6875], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.cdf", x, a, b, loc, scale)
    return _part(a, b, (x - loc) / scale)


@in_jax(lambda *args: jnp.log(cdf(*args)))
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: beta distribution.

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.betainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.logcdf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([-0.3747], dtype=float32)
    """
    return logarithm(cdf(x, a, b, loc, scale))


@in_jax(lambda x, a, b, loc, scale: special.betainc(b, a, 1 - _cut(x, loc, scale)))
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: beta distribution.

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.betainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.sf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([0.3125], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.sf", x, a, b, loc, scale)
    return _part(b, a, 1 - (x - loc) / scale)


@in_jax(lambda *args: jnp.log(sf(*args)))
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: beta distribution.

    x: where; a, b: its shapes, positive; loc, scale: shift it and stretch it: the distribution of
    loc + scale X. Arrays that broadcast; integers become floats. Result: the broadcast shape.
    Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.betainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import beta
    >>> beta.logsf(jnp.array([0.5]), 2.0, 3.0).round(4)
    Array([-1.1632], dtype=float32)
    """
    return logarithm(sf(x, a, b, loc, scale))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
