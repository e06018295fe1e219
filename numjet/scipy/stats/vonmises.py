"""numjet.scipy.stats.vonmises: angles around 0 with concentration `kappa`."""

from __future__ import annotations

import math
from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import in_jax, weakly


@in_jax(
    lambda x, kappa: jnp.where(
        kappa > 0,
        kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa)),
        jnp.nan,
    )
)
def logpdf(x: Any, kappa: Any) -> Any:
    """The logarithm of the density of the von Mises distribution.

    x: where; kappa: its concentration. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed with
    `scipy.special.i0e`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import vonmises
    >>> vonmises.logpdf(jnp.array([0.5]), 2.0).round(4)
    Array([-0.9067], dtype=float32)
    """
    x, kappa = weakly("vonmises.logpdf", x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa))
    return jnp.where(kappa < 0, jnp.nan, value)


def pdf(x: Any, kappa: Any) -> Any:
    """The density of the von Mises distribution on the circle:
    exp(kappa cos x) / (2π I₀(kappa)).

    x: where; kappa: its concentration. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed with
    `scipy.special.i0e`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import vonmises
    >>> vonmises.pdf(jnp.array([0.5]), 2.0).round(4)
    Array([0.4039], dtype=float32)
    """
    return jnp.exp(logpdf(x, kappa))


__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
