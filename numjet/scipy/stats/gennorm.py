"""numjet.scipy.stats.gennorm: densities proportional to exp(-|x|^beta)."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats


def logpdf(x: Any, beta: Any) -> Any:
    """The logarithm of the density at `x`.

    >>> print(round(float(logpdf(0.0, 1.0)), 4))
    -0.6931
    """
    x, beta = floats("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def cdf(x: Any, beta: Any) -> Any:
    """The probability of values up to `x`."""
    x, beta = floats("gennorm.cdf", x, beta)
    half = special.gammainc(1 / beta, jnp.abs(x) ** beta)
    return 0.5 * (1 + jnp.sign(x) * half)


def pdf(x: Any, beta: Any) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, beta))
