"""numjet.scipy.stats.betabinom: successes in `n` trials whose probability has a beta distribution
with shapes `a` and `b`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`.

    >>> print(round(float(logpmf(1, 2, 1.0, 1.0)), 4))
    -1.0986
    """
    k, n, a, b, loc = floats("betabinom.logpmf", k, n, a, b, loc)
    k = jnp.floor(k) - loc
    outside = (k < 0) | (k > n)
    bad = (n < 0) | (a <= 0) | (b <= 0)
    k = inside(~(outside | bad), k, 0.0)
    ways = -jnp.log1p(n) - special.betaln(n - k + 1, k + 1)
    value = ways + special.betaln(k + a, n - k + b) - special.betaln(a, b)
    return jnp.where(bad, jnp.nan, jnp.where(outside, -jnp.inf, value))


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, n, a, b, loc))
