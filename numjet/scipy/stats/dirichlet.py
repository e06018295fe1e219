"""numjet.scipy.stats.dirichlet: the Dirichlet distribution with concentrations `alpha`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats, inside


def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density at `x`, whose first axis holds the parts, which add up to 1.

    x may lack the last part.
    """
    x, alpha = floats("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1 or x.ndim < 1 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
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
    """The density at `x`; see `logpdf`."""
    return jnp.exp(logpdf(x, alpha))
