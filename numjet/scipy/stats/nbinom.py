"""numjet.scipy.stats.nbinom: failures before the `n`-th success of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`."""
    k, n, p, loc = floats(k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k > jnp.floor(k))
    k = inside(~outside, k, 0.0)
    ways = special.gammaln(k + n) - special.gammaln(k + 1) - special.gammaln(n)
    value = ways + special.xlogy(n, p) + special.xlog1py(k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, n, p, loc))
