"""numjet.scipy.stats.binom: successes in `n` trials of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import inside, weakly


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the binomial distribution.

    k: where; n: trials; p: probability of success; loc: shifts it. Arrays that broadcast; integers
    become floats. Result: the broadcast shape. -∞ outside of its support. Differentiable in floats.
    Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import binom
    >>> binom.logpmf(jnp.array([1.0]), 4, 0.5).round(4)
    Array([-1.3863], dtype=float32)
    """
    k, n, p, loc = weakly("binom.logpmf", k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k > n)
    k = inside(~outside, k, 0.0)
    ways = -special.betaln(k + 1, n - k + 1) - jnp.log1p(n)
    value = ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probabilities of the binomial distribution, C(n, k) p^k (1-p)^(n-k).

    k: where; n: trials; p: probability of success; loc: shifts it. Arrays that broadcast; integers
    become floats. Result: the broadcast shape. 0 outside of its support. Differentiable in floats.
    Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import binom
    >>> binom.pmf(jnp.array([1.0]), 4, 0.5).round(4)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))


__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
