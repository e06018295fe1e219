"""numjet.scipy.stats.wrapcauchy: angles in [0, 2π] of a Cauchy distribution laid round a circle."""

from __future__ import annotations

import math
from typing import Any

from numjet import lax, numpy as jnp
from numjet.scipy.stats.arguments import in_jax, ordered


def _log_density(x: Any, c: Any) -> Any:
    """`logpdf` in JAX's equations."""
    known, inside = (c > 0) & (c < 1), (x >= 0) & (x <= 2 * math.pi)
    value = jnp.log(1 - c * c) - lax.log(2 * math.pi).astype(x.dtype)
    value = value - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    return jnp.where(known, jnp.where(inside, value, -jnp.inf), jnp.nan)


@in_jax(_log_density)
def logpdf(x: Any, c: Any) -> Any:
    """The logarithm of the density of the wrapped Cauchy distribution.

    x: where; c: its concentration, in (0, 1). Arrays that broadcast; integers become floats.
    Result: the broadcast shape. -∞ outside of its support. Differentiable in floats. Raises
    TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import wrapcauchy
    >>> wrapcauchy.logpdf(jnp.array([1.0]), 0.5).round(4)
    Array([-1.7826], dtype=float32)
    """
    x, c = ordered("wrapcauchy.logpdf", x, c)
    spread = jnp.log1p(c * c - 2 * c * jnp.cos(x))
    value = jnp.log1p(-c * c) - math.log(2 * math.pi) - spread
    value = jnp.where((x < 0) | (x > 2 * math.pi), -jnp.inf, value)
    return jnp.where((c > 0) & (c < 1), value, jnp.nan)


def pdf(x: Any, c: Any) -> Any:
    """The density of the wrapped Cauchy distribution:
    (1 - c²) / (2π (1 + c² - 2 c cos x)) in [0, 2π].

    x: where; c: its concentration, in (0, 1). Arrays that broadcast; integers become floats.
    Result: the broadcast shape. 0 outside of its support. Differentiable in floats. Raises
    TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import wrapcauchy
    >>> wrapcauchy.pdf(jnp.array([1.0]), 0.5).round(4)
    Array([0.1682], dtype=float32)
    """
    return jnp.exp(logpdf(x, c))


__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
