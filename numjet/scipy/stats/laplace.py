"""numjet.scipy.stats.laplace: the Laplace distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, loc, scale = floats("laplace.logpdf", x, loc, scale)
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, loc, scale = floats("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)
