"""numjet.scipy.stats.geom: trials up to the first success of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`."""
    k, p, loc = floats("geom.logpmf", k, p, loc)
    k = k - loc
    outside = k <= 0
    value = special.xlog1py(inside(~outside, k, 1.0) - 1, -p) + jnp.log(p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, p, loc))
