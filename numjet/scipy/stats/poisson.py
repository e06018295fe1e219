"""numjet.scipy.stats.poisson: counts of mean `mu`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`."""
    k, mu, loc = floats(k, mu, loc)
    k = k - loc
    outside = (k < 0) | (k > jnp.floor(k))
    k = inside(~outside, k, 0.0)
    return jnp.where(outside, -jnp.inf, special.xlogy(k, mu) - special.gammaln(k + 1) - mu)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of values up to `k`."""
    k, mu, loc = floats(k, mu, loc)
    k = jnp.floor(k - loc)
    below = k < 0
    return jnp.where(below, 0, special.gammaincc(inside(~below, k, 0.0) + 1, mu))
