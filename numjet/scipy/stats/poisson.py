"""numjet.scipy.stats.poisson: counts of mean `mu`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, in_jax, inside, weakly


def _log_in_jax(k: Any, mu: Any, loc: Any) -> Any:
    x = k - loc
    value = special.xlogy(x, mu) - special.gammaln(x + 1) - mu
    return jnp.where(jnp.logical_or(x < 0, jnp.round(k) != k), -jnp.inf, value)


def _below_in_jax(k: Any, mu: Any, loc: Any) -> Any:
    x = k - loc
    value = special.gammaincc(jnp.floor(1 + x), mu)
    return jnp.where(x < 0, 0.0, value)


@in_jax(_log_in_jax, weak=True)
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probabilities of the Poisson distribution.

    k: where; mu: its mean; loc: shifts it. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. -∞ outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import poisson
    >>> poisson.logpmf(jnp.array([1.0]), 2.0).round(4)
    Array([-1.3069], dtype=float32)
    """
    k, mu, loc = weakly("poisson.logpmf", k, mu, loc)
    k = k - loc
    outside = (k < 0) | (k > jnp.floor(k))
    k = inside(~outside, k, 0.0)
    return jnp.where(outside, -jnp.inf, special.xlogy(k, mu) - special.gammaln(k + 1) - mu)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probabilities of the Poisson distribution, mu^k e^-mu / k!.

    k: where; mu: its mean; loc: shifts it. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. 0 outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import poisson
    >>> poisson.pmf(jnp.array([1.0]), 2.0).round(4)
    Array([0.2707], dtype=float32)
    """
    return jnp.exp(logpmf(k, mu, loc))


@in_jax(_below_in_jax, weak=True)
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of values up to k: Poisson distribution.

    k: where; mu: its mean; loc: shifts it. Arrays that broadcast; integers become floats. Result:
    the broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammaincc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import poisson
    >>> poisson.cdf(jnp.array([1.0]), 2.0).round(4)
    Array([0.406], dtype=float32)
    """
    k, mu, loc = floats("poisson.cdf", k, mu, loc)
    k = jnp.floor(k - loc)
    below = k < 0
    return jnp.where(below, 0, special.gammaincc(inside(~below, k, 0.0) + 1, mu))


# The entropy is ½ log(2πe mu) + Σ c_k / mu^k; Evans & Boersma, "The entropy of a Poisson
# distribution", SIAM Review 30, 1988.
_ENTROPY = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520)


def entropy(mu: Any, loc: Any = 0) -> Any:
    """The entropy of the Poisson distribution.

    mu: its mean; loc: shifts it. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import poisson
    >>> poisson.entropy(jnp.array([2.0])).round(4)
    Array([1.7049], dtype=float32)
    """
    mu, loc = weakly("poisson.entropy", mu, loc)
    # Beyond `few` the series is exact to rounding (its next term is 1.4 / mu**6); up to it so many
    # terms of the sum over counts are not 0.
    few, terms = (80.0, 220) if mu.dtype == jnp.float64 else (20.0, 80)
    small = mu <= few
    rate = jnp.where(small, mu, 1)[..., None]
    counts = jnp.arange(terms, dtype=mu.dtype)
    sizes = special.gammaln(counts + 1)
    log_p = special.xlogy(counts, rate) - rate - sizes
    total = -jnp.sum(jnp.exp(log_p) * log_p, -1)
    far = jnp.where(small, few, mu)
    series = jnp.zeros_like(far)
    for c in reversed(_ENTROPY):
        series = (series + c) / far
    series = 0.5 * (1 + jnp.log(2 * jnp.pi * far)) + series
    total = jnp.where(mu == 0, 0, total)
    return jnp.where((mu < 0) | jnp.isnan(loc), jnp.nan, jnp.where(small, total, series))


__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
