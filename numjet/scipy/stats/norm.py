"""numjet.scipy.stats.norm: the normal distribution, `loc` its mean and `scale` its deviation."""

from __future__ import annotations

import math
from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _standard(name: str, x: Any, loc: Any, scale: Any) -> Any:
    x, loc, scale = floats(f"norm.{name}", x, loc, scale)
    return (x - loc) / scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    return -0.5 * jnp.square((x - loc) / scale) - _HALF_LOG_TAU - jnp.log(jnp.abs(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    return special.ndtr(_standard("cdf", x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    return special.log_ndtr(_standard("logcdf", x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    return special.ndtr(-_standard("sf", x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    return special.log_ndtr(-_standard("logsf", x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies below."""
    q, loc, scale = floats("norm.ppf", q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies above."""
    q, loc, scale = floats("norm.isf", q, loc, scale)
    return loc - special.ndtri(q) * scale
