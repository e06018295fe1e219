"""numjet.scipy.stats.vonmises: angles around 0 with concentration `kappa`."""

from __future__ import annotations

import math
from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.common import floats


def logpdf(x: Any, kappa: Any) -> Any:
    """The logarithm of the density at the angle `x`; NaN for a negative `kappa`.

    >>> print(round(float(logpdf(0.0, 1.0)), 4))
    -1.0738
    """
    x, kappa = floats("vonmises.logpdf", x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa))
    return jnp.where(kappa < 0, jnp.nan, value)


def pdf(x: Any, kappa: Any) -> Any:
    """The density at the angle `x`."""
    return jnp.exp(logpdf(x, kappa))
