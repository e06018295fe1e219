"""numjet.scipy.stats.chi2: the χ² distribution with `df` degrees of freedom."""

from __future__ import annotations

from typing import Any

from numjet.scipy.stats import gamma
from numjet.scipy.stats.common import floats


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, df, loc, scale = floats("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    x, df, loc, scale = floats("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, df, loc, scale = floats("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to `x`."""
    x, df, loc, scale = floats("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    x, df, loc, scale = floats("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above `x`."""
    x, df, loc, scale = floats("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)
