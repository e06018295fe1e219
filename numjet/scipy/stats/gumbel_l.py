"""numjet.scipy.stats.gumbel_l: the Gumbel distribution of least values, that of greatest ones
(`gumbel_r`) seen from the other side."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats import gumbel_r
from numjet.scipy.stats.arguments import in_jax, one_less_exp, ordered


def _turned(name: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any, Any]:
    x, loc, scale = ordered(f"gumbel_l.{name}", x, loc, scale)
    return -x, -loc, scale


def _log_density(x: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    good, z = scale > 0, (x - loc) / scale
    return jnp.where(good, special.xlogy(-1, scale) + (z - jnp.exp(z)), jnp.nan)


@in_jax(_log_density)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the left Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.logpdf(jnp.array([0.5])).round(4)
    Array([-1.1487], dtype=float32)
    """
    return gumbel_r.logpdf(*_turned("logpdf", x, loc, scale))


@in_jax(lambda *args: jnp.exp(logpdf(*args)))
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the left Gumbel distribution: exp(x - e^x).

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.pdf(jnp.array([0.5])).round(4)
    Array([0.317], dtype=float32)
    """
    return gumbel_r.pdf(*_turned("pdf", x, loc, scale))


@in_jax(
    lambda x, loc, scale: jnp.where(
        scale > 0, jnp.log(one_less_exp(-jnp.exp((x - loc) / scale))), jnp.nan
    )
)
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: left Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.logcdf(jnp.array([0.5])).round(4)
    Array([-0.2136], dtype=float32)
    """
    return gumbel_r.logsf(*_turned("logcdf", x, loc, scale))


@in_jax(lambda *args: jnp.exp(logcdf(*args)))
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: left Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.cdf(jnp.array([0.5])).round(4)
    Array([0.8077], dtype=float32)
    """
    return one_less_exp(gumbel_r.logcdf(*_turned("cdf", x, loc, scale)))


@in_jax(lambda *args: jnp.exp(logsf(*args)))
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: left Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.sf(jnp.array([0.5])).round(4)
    Array([0.1923], dtype=float32)
    """
    return gumbel_r.cdf(*_turned("sf", x, loc, scale))


@in_jax(lambda x, loc, scale: jnp.where(scale > 0, -jnp.exp((x - loc) / scale), jnp.nan))
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: left Gumbel distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats, complex numbers raise TypeError. Result: the broadcast shape.
    Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.logsf(jnp.array([0.5])).round(4)
    Array([-1.6487], dtype=float32)
    """
    return gumbel_r.logcdf(*_turned("logsf", x, loc, scale))


@in_jax(
    lambda p, loc, scale: jnp.where(
        (p > 0) & (p < 1), loc + scale * jnp.log(special.xlog1py(-1, -p)), jnp.nan
    )
)
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part p lies below, the inverse of cdf: left Gumbel distribution.

    p: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats, complex numbers raise TypeError. Result: the
    broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([-1.2459,  0.7321], dtype=float32)
    """
    p, loc, scale = ordered("gumbel_l.ppf", p, loc, scale)
    return -gumbel_r.isf(p, -loc, scale)


def isf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part p lies above, the inverse of sf: left Gumbel distribution.

    p: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats, complex numbers raise TypeError. Result: the
    broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import gumbel_l
    >>> gumbel_l.isf(jnp.array([0.25, 0.875])).round(4)
    Array([ 0.3266, -2.0134], dtype=float32)
    """
    p, loc, scale = ordered("gumbel_l.isf", p, loc, scale)
    return -gumbel_r.ppf(p, -loc, scale)


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
