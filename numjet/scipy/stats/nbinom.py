"""numjet.scipy.stats.nbinom: failures before the `n`-th success of probability `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the negative binomial distribution.

    k: where; n: successes; p: probability of success; loc: shifts it. Arrays that broadcast;
    integers become floats. Result: the broadcast shape. -∞ outside of its support. Differentiable
    in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import nbinom
    >>> nbinom.logpmf(jnp.array([1]), 2, 0.5).round(4)
    Array([-1.3863], dtype=float32)
    """
    k, n, p, loc = floats("nbinom.logpmf", k, n, p, loc)
    k = k - loc
    outside = k < 0
    k = inside(~outside, k, 0.0)
    # Γ(k + n) / (k! Γ(n)); the beta function keeps the digits of large n.
    ways = -special.betaln(k + 1, n) - jnp.log(k + n)
    value = ways + special.xlogy(n, p) + special.xlog1py(k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probabilities of the negative binomial distribution: failures before n successes.

    k: where; n: successes; p: probability of success; loc: shifts it. Arrays that broadcast;
    integers become floats. Result: the broadcast shape. 0 outside of its support. Differentiable in
    floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import nbinom
    >>> nbinom.pmf(jnp.array([1]), 2, 0.5).round(4)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))


__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
