"""numjet.scipy.stats.logistic: the logistic distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, loc, scale = floats("logistic.logpdf", x, loc, scale)
    z = jnp.abs(x - loc) / scale
    return -z - jnp.log(scale) - 2 * jnp.log1p(jnp.exp(-z))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, loc, scale = floats("logistic.cdf", x, loc, scale)
    return special.expit((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    x, loc, scale = floats("logistic.sf", x, loc, scale)
    return special.expit((loc - x) / scale)


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `x` of the distribution lies below."""
    x, loc, scale = floats("logistic.ppf", x, loc, scale)
    return loc + scale * special.logit(x)


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `x` of the distribution lies above."""
    x, loc, scale = floats("logistic.isf", x, loc, scale)
    return loc - scale * special.logit(x)
