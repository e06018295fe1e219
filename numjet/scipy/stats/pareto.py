"""numjet.scipy.stats.pareto: the Pareto distribution of exponent `b` from `loc` + `scale` on."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats, inside, probability


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, b, loc, scale = floats("pareto.logpdf", x, b, loc, scale)
    z = (x - loc) / scale
    outside = z < 1
    value = jnp.log(b) - jnp.log(scale) - (b + 1) * jnp.log(inside(~outside, z, 1.0))
    return jnp.where(outside, -jnp.inf, value)


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    return -jnp.expm1(logsf(x, b, loc, scale))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    return jnp.log(cdf(x, b, loc, scale))


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    return jnp.exp(logsf(x, b, loc, scale))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    x, b, loc, scale = floats("pareto.logsf", x, b, loc, scale)
    z = (x - loc) / scale
    return -b * jnp.log(inside(~(z < 1), z, 1.0))


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies below."""
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    return loc + scale * jnp.exp(-jnp.log1p(-probability(q)) / b)
