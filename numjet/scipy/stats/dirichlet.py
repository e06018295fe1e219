"""numjet.scipy.stats.dirichlet: the Dirichlet distribution with concentrations `alpha`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, inside


def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density of the Dirichlet distribution.

    x: [n, ...], along the first axis the coordinates, which add up to 1; or [n - 1, ...], without
    the last. alpha: [n], positive. Result: x's shape without the first axis; -∞ outside of the
    simplex. Raises ValueError for sizes that do not fit, IndexError for a number as x and TypeError
    for complex numbers. Integers become floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import dirichlet
    >>> dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 3.0])).round(4)
    Array(0.5232, dtype=float32)
    """
    x, alpha = floats("dirichlet.logpdf", x, alpha)
    if alpha.ndim == 1 and not x.ndim:
        raise IndexError("dirichlet: x must have an axis of coordinates, got a number.")
    if alpha.ndim != 1 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            "dirichlet: alpha must be a vector and x have as many entries on its first axis (or "
            f"one fewer), got shapes {alpha.shape} and {x.shape}."
        )
    if x.shape[0] < alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    size = jnp.finfo(x.dtype).eps * 100
    good = jnp.all(x >= 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < size)
    column = alpha.reshape(-1, *[1] * (x.ndim - 1))
    constant = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    value = jnp.sum(special.xlogy(column - 1, inside(good, x, 1.0)), axis=0) - constant
    return jnp.where(good, value, -jnp.inf)


def pdf(x: Any, alpha: Any) -> Any:
    """The density of the Dirichlet distribution, ∏ x_i^(alpha_i - 1) / B(alpha), on the simplex.

    x: [n, ...], along the first axis the coordinates, which add up to 1; or [n - 1, ...], without
    the last. alpha: [n], positive. Result: x's shape without the first axis; 0 outside of the
    simplex. Raises ValueError for sizes that do not fit, IndexError for a number as x and TypeError
    for complex numbers. Integers become floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import dirichlet
    >>> dirichlet.pdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 3.0])).round(4)
    Array(1.6875, dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))


__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
