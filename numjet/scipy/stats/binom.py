"""numjet.scipy.stats.binom: successes in `n` trials of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`."""
    k, n, p, loc = floats("binom.logpmf", k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k > n)
    k = inside(~outside, k, 0.0)
    ways = -special.betaln(k + 1, n - k + 1) - jnp.log1p(n)
    value = ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, n, p, loc))
