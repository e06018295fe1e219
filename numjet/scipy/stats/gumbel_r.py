"""numjet.scipy.stats.gumbel_r: the Gumbel distribution of greatest values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.scipy.stats.common import floats, inside, standard

# From here on log(sf) is -z - exp(-z) / 2 to the last digit of double precision, and sf underflows.
_TAIL = 15


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`."""
    z, scale = standard("gumbel_r.logpdf", x, loc, scale)
    finite = z != -np.inf
    z = inside(finite, z, 0)
    return jnp.where(finite, -z - jnp.exp(-z) - jnp.log(scale), -np.inf)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `cdf`."""
    z, _ = standard("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(-z)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to `x`."""
    return jnp.exp(logcdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above `x`."""
    return -jnp.expm1(logcdf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of `sf`."""
    z, _ = standard("gumbel_r.logsf", x, loc, scale)
    far = z > _TAIL
    near = inside(~far, z, 0)
    power = jnp.exp(-near)
    # log(1 - exp(-power)): each form where it is exact.
    high = power > math.log(2)
    rest = jnp.where(
        high,
        jnp.log1p(-jnp.exp(-inside(high, power, 1))),
        jnp.log(-jnp.expm1(-inside(~high, power, 0.5))),
    )
    return jnp.where(far, -z - 0.5 * jnp.exp(-z), rest)


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `p` of the distribution lies below."""
    p, loc, scale = floats("gumbel_r.ppf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log(p))


def isf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part `p` of the distribution lies above."""
    p, loc, scale = floats("gumbel_r.isf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log1p(-p))
