"""numjet.scipy.stats.gumbel_l: the Gumbel distribution of least values, that of greatest ones
(`gumbel_r`) seen from the other side."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats import gumbel_r


def _turned(x: Any, loc: Any, scale: Any) -> tuple[Any, Any, Any]:
    return jnp.negative(x), jnp.negative(loc), scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    return gumbel_r.logpdf(*_turned(x, loc, scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return gumbel_r.pdf(*_turned(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    return gumbel_r.logsf(*_turned(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    return gumbel_r.sf(*_turned(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    return gumbel_r.cdf(*_turned(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    return gumbel_r.logcdf(*_turned(x, loc, scale))


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `p` of the distribution lies below."""
    return -gumbel_r.isf(p, jnp.negative(loc), scale)


def isf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `p` of the distribution lies above."""
    return -gumbel_r.ppf(p, jnp.negative(loc), scale)
