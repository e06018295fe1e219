"""numjet.scipy.stats.expon: the exponential distribution from `loc` on, `scale` its mean."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats, inside, probability, standard


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    z, scale = standard("expon.logpdf", x, loc, scale)
    return jnp.where(z < 0, -jnp.inf, -z - jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    return -jnp.expm1(logsf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    z, _ = standard("expon.logcdf", x, loc, scale)
    below = z <= 0
    z = inside(~below, z, 1.0)
    # Each form is exact where the other cancels.
    value = jnp.where(z < 0.7, jnp.log(-jnp.expm1(-z)), jnp.log1p(-jnp.exp(-z)))
    return jnp.where(below, -jnp.inf, value)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    return jnp.exp(logsf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    z, _ = standard("expon.logsf", x, loc, scale)
    return jnp.where(z < 0, 0, -z)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies below."""
    q, loc, scale = floats("expon.ppf", q, loc, scale)
    return loc - scale * jnp.log1p(-probability(q))
