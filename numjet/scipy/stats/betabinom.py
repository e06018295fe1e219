"""numjet.scipy.stats.betabinom: successes in `n` trials whose probability has a beta distribution
with shapes `a` and `b`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, inside


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the beta-binomial distribution.

    k: where; n: trials; a, b: shapes, positive; loc: shifts it. Arrays that broadcast; integers
    become floats. Result: the broadcast shape. -∞ outside of its support. Differentiable in floats.
    Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import betabinom
    >>> betabinom.logpmf(jnp.array([1]), 4, 2.0, 3.0).round(4)
    Array([-1.2528], dtype=float32)
    """
    k, n, a, b, loc = floats("betabinom.logpmf", k, n, a, b, loc)
    k = jnp.floor(k - loc)
    outside = (k < 0) | (k > n)
    bad = (n < 0) | (a <= 0) | (b <= 0)
    k = inside(~(outside | bad), k, 0.0)
    ways = -jnp.log1p(n) - special.betaln(n - k + 1, k + 1)
    value = ways + special.betaln(k + a, n - k + b) - special.betaln(a, b)
    return jnp.where(bad, jnp.nan, jnp.where(outside, -jnp.inf, value))


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The probabilities of the beta-binomial distribution: n trials whose probability of success is
    beta(a, b) distributed.

    k: where; n: trials; a, b: shapes, positive; loc: shifts it. Arrays that broadcast; integers
    become floats. Result: the broadcast shape. 0 outside of its support. Differentiable in floats.
    Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import betabinom
    >>> betabinom.pmf(jnp.array([1]), 4, 2.0, 3.0).round(4)
    Array([0.2857], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))


__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
