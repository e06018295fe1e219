"""numjet.scipy.stats.gennorm: densities proportional to exp(-|x|^beta)."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import weakly


def logpdf(x: Any, beta: Any) -> Any:
    """The logarithm of the density of the generalized normal distribution.

    x: where; beta: its shape, positive. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gennorm
    >>> gennorm.logpdf(jnp.array([1.0]), 2.0).round(4)
    Array([-1.5724], dtype=float32)
    """
    x, beta = weakly("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def cdf(x: Any, beta: Any) -> Any:
    """The probability of values up to x: generalized normal distribution.

    x: where; beta: its shape, positive. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gennorm
    >>> gennorm.cdf(jnp.array([1.0]), 2.0).round(4)
    Array([0.9214], dtype=float32)
    """
    x, beta = weakly("gennorm.cdf", x, beta)
    return 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))


def pdf(x: Any, beta: Any) -> Any:
    """The density of the generalized normal distribution:
    beta exp(-|x|^beta) / (2 Γ(1 / beta)).

    x: where; beta: its shape, positive. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gennorm
    >>> gennorm.pdf(jnp.array([1.0]), 2.0).round(4)
    Array([0.2076], dtype=float32)
    """
    return jnp.exp(logpdf(x, beta))


__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
