"""numjet.scipy.stats.wrapcauchy: angles in [0, 2π] of a Cauchy distribution laid round a circle."""

from __future__ import annotations

import math
from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats


def logpdf(x: Any, c: Any) -> Any:
    """The logarithm of the density at the angle `x`, for `c` between 0 and 1; NaN for others.

    >>> print(round(float(logpdf(0.0, 0.5)), 4))
    -0.7393
    """
    x, c = floats("wrapcauchy.logpdf", x, c)
    spread = jnp.log1p(c * c - 2 * c * jnp.cos(x))
    value = jnp.log1p(-c * c) - math.log(2 * math.pi) - spread
    value = jnp.where((x < 0) | (x > 2 * math.pi), -jnp.inf, value)
    return jnp.where((c > 0) & (c < 1), value, jnp.nan)


def pdf(x: Any, c: Any) -> Any:
    """The density at the angle `x`."""
    return jnp.exp(logpdf(x, c))
