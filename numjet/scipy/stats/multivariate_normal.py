"""numjet.scipy.stats.multivariate_normal: normal vectors of mean `mean`, covariance `cov`."""

from __future__ import annotations

import math
from typing import Any

from numjet import lax, numpy as jnp
from numjet.scipy.stats.arguments import weakly


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The logarithm of the density of the multivariate normal distribution.

    x: [..., n]. mean: [n] or a number. cov: [n, n], symmetric and positive definite, or a number;
    of which the lower triangle's Cholesky factor is taken: NaN where it is not definite.
    allow_singular must be None (NotImplementedError). Result: x's shape without the last axis.
    Differentiable in all three. Raises ValueError for shapes that do not fit. Integers become
    floats. Computed with `lax.linalg.cholesky`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import multivariate_normal
    >>> multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
    Array(-1.8379, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: allow_singular is not supported. Leave it out."
        )
    x, mean, cov = weakly("multivariate_normal.logpdf", x, mean, cov)
    if not mean.ndim:
        difference = x - mean
        return -0.5 * (difference * difference / cov + jnp.log(2 * math.pi * cov))
    n = mean.shape[-1]
    if cov.ndim and (cov.ndim < 2 or cov.shape[-2:] != (n, n)):
        raise ValueError(
            f"multivariate_normal: cov must be ({n}, {n}) in its last axes for means of {n} "
            f"components, got {cov.shape}."
        )
    difference = x - mean
    if not cov.ndim:
        squares = jnp.sum(difference * difference, axis=-1) / cov
        return -0.5 * (squares + n * jnp.log(2 * math.pi * cov))
    factor = jnp.linalg.cholesky(cov)
    batch = jnp.broadcast_shapes(difference.shape[:-1], cov.shape[:-2])
    factors = jnp.broadcast_to(factor, (*batch, n, n))
    column = jnp.broadcast_to(difference, (*batch, n))[..., None]
    whitened = lax.linalg.triangular_solve(factors, column, left_side=True, lower=True)[..., 0]
    diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
    squares = jnp.sum(whitened * whitened, axis=-1)
    half = jnp.sum(jnp.log(diagonal), axis=-1)
    return -0.5 * (squares + n * math.log(2 * math.pi)) - half


def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density of the multivariate normal distribution.

    x: [..., n]. mean: [n] or a number. cov: [n, n], symmetric and positive definite, or a number;
    of which the lower triangle's Cholesky factor is taken: NaN where it is not definite. Result:
    x's shape without the last axis. Differentiable in all three. Raises ValueError for shapes that
    do not fit. Integers become floats. Computed with `lax.linalg.cholesky`. SciPy's
    `allow_singular` is not there.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import multivariate_normal
    >>> multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
    Array(0.1592, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))


__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
