"""numjet.scipy.stats.bernoulli: 1 with probability `p`, else 0."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import in_jax, ordered_floats


def _log_in_jax(k: Any, p: Any, loc: Any) -> Any:
    x = k - loc
    value = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
    return jnp.where(jnp.logical_or(x < 0, x > 1), -jnp.inf, value)


@in_jax(_log_in_jax, weak=True)
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the Bernoulli distribution.

    k: where; p: in [0, 1]; loc: shifts it. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. -∞ outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import bernoulli
    >>> bernoulli.logpmf(jnp.array([1]), p=0.25).round(4)
    Array([-1.3863], dtype=float32)
    """
    k, p, loc = ordered_floats("bernoulli.logpmf", k, p, loc)
    k = k - loc
    outside = (k < 0) | (k > 1)
    value = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    return jnp.where(outside, -jnp.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probabilities of the Bernoulli distribution: 1 with probability p, otherwise 0.

    k: where; p: in [0, 1]; loc: shifts it. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. 0 outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import bernoulli
    >>> bernoulli.pmf(jnp.array([1]), p=0.25).round(4)
    Array([0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Any:
    """The probability of values up to k: Bernoulli distribution.

    k: where; p: in [0, 1]. Arrays that broadcast; integers become floats. Result: the broadcast
    shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import bernoulli
    >>> bernoulli.cdf(jnp.array([1]), p=0.25).round(4)
    Array([1.], dtype=float32)
    """
    k, p = ordered_floats("bernoulli.cdf", k, p)
    none = jnp.zeros_like(k)
    value = jnp.where(k < 0, none, jnp.where(k < 1, 1 - p, none + 1))
    return jnp.where(jnp.isnan(k) | ~((p >= 0) & (p <= 1)), jnp.nan, value)


def ppf(q: Any, p: Any) -> Any:
    """The value that a part q lies below, the inverse of cdf: Bernoulli distribution.

    q: in [0, 1], NaN outside; p: in [0, 1]. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. For q = 0
    it is 0 (SciPy: -1).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import bernoulli
    >>> bernoulli.ppf(jnp.array([0.25, 0.875]), p=0.25).round(4)
    Array([0., 1.], dtype=float32)
    """
    q, p = ordered_floats("bernoulli.ppf", q, p)
    bad = ~((q >= 0) & (q <= 1) & (p >= 0) & (p <= 1))
    none = jnp.zeros_like(q)
    return jnp.where(bad, jnp.nan, jnp.where(q <= 1 - p, none, none + 1))


__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def __dir__() -> list[str]:
    return [*__all__]
