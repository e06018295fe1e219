"""numjet.scipy.stats.gamma: the gamma distribution of shape `a` from `loc` on."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, a, loc, scale = floats("gamma.logpdf", x, a, loc, scale)
    z = (x - loc) / scale
    outside = z < 0
    z = inside(~outside, z, 1.0)
    value = special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)
    return jnp.where(outside, -jnp.inf, value)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, a, loc, scale = floats("gamma.cdf", x, a, loc, scale)
    return special.gammainc(a, jnp.maximum((x - loc) / scale, 0))


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    return jnp.log(cdf(x, a, loc, scale))


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    x, a, loc, scale = floats("gamma.sf", x, a, loc, scale)
    return special.gammaincc(a, jnp.maximum((x - loc) / scale, 0))


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    return jnp.log(sf(x, a, loc, scale))
