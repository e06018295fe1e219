"""numjet.scipy.stats.gumbel_r: the Gumbel distribution of greatest values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet import nn, numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import (
    floats,
    in_jax,
    inside,
    one_less_exp,
    ordered,
    standard,
)

# From here on log(sf) is -z - exp(-z) / 2 to the last digit of double precision, and sf underflows.
_TAIL = 15


def _log_density(x: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    good, z = scale > 0, (x - loc) / scale
    return jnp.where(good, special.xlogy(-1, scale) + -(z + jnp.exp(-z)), jnp.nan)


@in_jax(_log_density)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the right Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.logpdf(jnp.array([0.5])).round(4)
    Array([-1.1065], dtype=float32)
    """
    z, scale = standard("gumbel_r.logpdf", x, loc, scale)
    finite = z != -np.inf
    z = inside(finite, z, 0)
    return jnp.where(finite, -z - jnp.exp(-z) - jnp.log(scale), -np.inf)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the right Gumbel distribution: exp(-x - e^-x).

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.pdf(jnp.array([0.5])).round(4)
    Array([0.3307], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@in_jax(lambda x, loc, scale: jnp.where(scale > 0, -jnp.exp(-((x - loc) / scale)), jnp.nan))
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: right Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.logcdf(jnp.array([0.5])).round(4)
    Array([-0.6065], dtype=float32)
    """
    z, _ = standard("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(-z)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: right Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.cdf(jnp.array([0.5])).round(4)
    Array([0.5452], dtype=float32)
    """
    return jnp.exp(logcdf(x, loc, scale))


@in_jax(
    lambda x, loc, scale: jnp.where(scale > 0, 1 - jnp.exp(-jnp.exp((loc - x) / scale)), jnp.nan)
)
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: right Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.sf(jnp.array([0.5])).round(4)
    Array([0.4548], dtype=float32)
    """
    return one_less_exp(logcdf(*floats("gumbel_r.sf", x, loc, scale)))


@in_jax(
    lambda x, loc, scale: jnp.where(scale > 0, nn.log1mexp(jnp.exp((loc - x) / scale)), jnp.nan)
)
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: right Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.logsf(jnp.array([0.5])).round(4)
    Array([-0.788], dtype=float32)
    """
    z, _ = standard("gumbel_r.logsf", x, loc, scale)
    far = z > _TAIL
    near = inside(~far, z, 0)
    power = jnp.exp(-near)
    # log(1 - exp(-power)): each form where it is exact.
    high = power > math.log(2)
    rest = jnp.where(
        high,
        jnp.log1p(-jnp.exp(-inside(high, power, 1))),
        jnp.log(one_less_exp(-inside(~high, power, 0.5))),
    )
    return jnp.where(far, -z - 0.5 * jnp.exp(-z), rest)


@in_jax(
    lambda p, loc, scale: jnp.where(
        (p > 0) & (p < 1), loc - scale * jnp.log(special.xlogy(-1, p)), jnp.nan
    )
)
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part p lies below, the inverse of cdf: right Gumbel distribution.

    p: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats, complex numbers raise TypeError. Result: the
    broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([-0.3266,  2.0134], dtype=float32)
    """
    p, loc, scale = ordered("gumbel_r.ppf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log(p))


def isf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part p lies above, the inverse of sf: right Gumbel distribution.

    p: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats, complex numbers raise TypeError. Result: the
    broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_r
    >>> gumbel_r.isf(jnp.array([0.25, 0.875])).round(4)
    Array([ 1.2459, -0.7321], dtype=float32)
    """
    p, loc, scale = ordered("gumbel_r.isf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log1p(-p))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
