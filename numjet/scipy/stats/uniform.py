"""numjet.scipy.stats.uniform: equally probable values from `loc` to `loc` + `scale`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    x, loc, scale = floats("uniform.logpdf", x, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    return jnp.where(outside, -jnp.inf, jnp.where(jnp.isnan(x), x, -jnp.log(scale)))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    x, loc, scale = floats("uniform.cdf", x, loc, scale)
    return jnp.clip((x - loc) / scale, 0, 1)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `q` of the distribution lies below."""
    q, loc, scale = floats("uniform.ppf", q, loc, scale)
    return jnp.where((q < 0) | (q > 1), jnp.nan, loc + q * scale)
