"""numjet.scipy.stats.multinomial: counts of `n` trials in categories of probabilities `p`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.numpy.promote import as_arrays, promote_dtypes, promote_inexact
from numjet.scipy import special
from numjet.scipy.stats.arguments import inside


def logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probabilities of the multinomial distribution.

    x: [..., k], how often each category came. n: the number of trials; p: [..., k], the categories'
    probabilities. Arrays that broadcast. Result: their shape without the last axis; -∞ where x does
    not add up to n. Raises ValueError where x or n are no integers. Raises TypeError for complex
    numbers. The result is floating.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import multinomial
    >>> multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
    Array(-0.6931, dtype=float32)
    """
    x, n, p = as_arrays("multinomial.logpmf", x, n, p)
    for what, value in (("x", x), ("n", n)):
        if not jnp.issubdtype(value.dtype, jnp.integer):
            promote_dtypes(x, n)  # strict promotion has its own error
            raise ValueError(
                "multinomial.logpmf: x and n must be of integer type; got "
                f"{what}.dtype={value.dtype}."
            )
    # Counts become probabilities' floats, also under strict promotion.
    (p,) = promote_inexact(p)
    x, n = x.astype(p.dtype), n.astype(p.dtype)
    good = jnp.all((x >= 0) & (x == jnp.floor(x)), axis=-1) & (jnp.sum(x, axis=-1) == n)
    x = inside(good[..., None], x, 0.0)
    value = jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), axis=-1)
    return jnp.where(good, special.gammaln(n + 1) + value, -jnp.inf)


def pmf(x: Any, n: Any, p: Any) -> Any:
    """The probabilities of the multinomial distribution, n! ∏ p_i^x_i / x_i!.

    x: [..., k], how often each category came. n: the number of trials; p: [..., k], the categories'
    probabilities. Arrays that broadcast. Result: their shape without the last axis; 0 where x does
    not add up to n. Raises ValueError where x or n are no integers. Raises TypeError for complex
    numbers. The result is floating.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import multinomial
    >>> multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
    Array(0.5, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))


__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return [*__all__]
