"""numjet.scipy.stats.bernoulli: 1 with probability `p`, else 0."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats


def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of `k`."""
    k, p, loc = floats("bernoulli.logpmf", k, p, loc)
    k = k - loc
    outside = (k < 0) | (k > 1)
    value = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of `k`."""
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Any:
    """The probability of values up to `k`."""
    k, p = floats("bernoulli.cdf", k, p)
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.isnan(k) | ~((p >= 0) & (p <= 1)), jnp.nan, value)


def ppf(q: Any, p: Any) -> Any:
    """The least value up to which a part `q` of the distribution lies."""
    q, p = floats("bernoulli.ppf", q, p)
    bad = ~((q >= 0) & (q <= 1) & (p >= 0) & (p <= 1))
    none = jnp.zeros_like(q)
    return jnp.where(bad, jnp.nan, jnp.where(q <= 1 - p, none, none + 1))
