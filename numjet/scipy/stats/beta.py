"""numjet.scipy.stats.beta: the beta distribution with shapes `a` and `b`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, a, b, loc, scale = floats("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    z = inside(~outside, z, 0.5)
    value = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    value = jnp.where(outside, -jnp.inf, value - jnp.log(scale))
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _part(a: Any, b: Any, z: Any) -> Any:
    """The probability below z, whose derivative is 0 outside of the support and at its ends."""
    below, above = z <= 0, z >= 1
    inner = special.betainc(a, b, inside(~(below | above), z, 0.5))
    value = jnp.where(below, 0, jnp.where(above, 1, inner))
    return jnp.where((a > 0) & (b > 0), value, jnp.nan)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, a, b, loc, scale = floats("beta.cdf", x, a, b, loc, scale)
    return _part(a, b, (x - loc) / scale)


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    return jnp.log(cdf(x, a, b, loc, scale))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    x, a, b, loc, scale = floats("beta.sf", x, a, b, loc, scale)
    return _part(b, a, 1 - (x - loc) / scale)


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    return jnp.log(sf(x, a, b, loc, scale))
