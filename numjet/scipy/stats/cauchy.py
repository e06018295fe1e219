"""numjet.scipy.stats.cauchy: the Cauchy distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats, probability


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, loc, scale = floats("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -jnp.log(jnp.pi * scale) - jnp.log1p(z * z)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, loc, scale = floats("cauchy.cdf", x, loc, scale)
    # Exact in the lower tail, too: the angle of a point right of the axis.
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / jnp.pi


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    return jnp.log(cdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    x, loc, scale = floats("cauchy.sf", x, loc, scale)
    return cdf(2 * loc - x, loc, scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    return jnp.log(sf(x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies below."""
    q, loc, scale = floats("cauchy.ppf", q, loc, scale)
    return loc + scale * jnp.tan(jnp.pi * (probability(q) - 0.5))


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies above."""
    q, loc, scale = floats("cauchy.isf", q, loc, scale)
    return loc + scale * jnp.tan(jnp.pi * (0.5 - probability(q)))
