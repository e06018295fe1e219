"""numjet.scipy.stats.chi2: the χ² distribution with `df` degrees of freedom."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.numpy.elementwise import constant
from numjet.scipy import special
from numjet.scipy.stats import gamma
from numjet.scipy.stats.arguments import floats, in_jax, unless


def _log_density(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    z = (x - loc) / scale
    half = df / 2
    power = (half - 1) * jnp.log(z) - z / 2
    shape = -(special.gammaln(half) + jnp.log(constant(2, x)) * df / 2) - jnp.log(scale)
    return unless(shape + power, x < loc, -jnp.inf)


@in_jax(_log_density)
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the chi-square distribution.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. -∞ outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.logpdf(jnp.array([2.0]), 3.0).round(4)
    Array([-1.5724], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@in_jax(lambda *args: jnp.exp(logpdf(*args)))
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the chi-square distribution: a sum of df squared normal values.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. 0 outside of its support. Differentiable in floats. Raises TypeError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.pdf(jnp.array([2.0]), 3.0).round(4)
    Array([0.2076], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


def _cut(x: Any, loc: Any, scale: Any) -> Any:
    return lax.clamp(0.0, (x - loc) / (scale * 2), jnp.inf)


@in_jax(lambda x, df, loc, scale: special.gammainc(df / 2, _cut(x, loc, scale)))
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: chi-square distribution.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.cdf(jnp.array([2.0]), 3.0).round(4)
    Array([0.4276], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@in_jax(lambda *args: jnp.log(cdf(*args)))
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values up to x: chi-square distribution.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.logcdf(jnp.array([2.0]), 3.0).round(4)
    Array([-0.8496], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@in_jax(lambda x, df, loc, scale: special.gammaincc(df / 2, _cut(x, loc, scale)))
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: chi-square distribution.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammaincc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.sf(jnp.array([2.0]), 3.0).round(4)
    Array([0.5724], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


@in_jax(lambda *args: jnp.log(sf(*args)))
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the probability of values above x: chi-square distribution.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers. Computed by
    `scipy.special.gammaincc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import chi2
    >>> chi2.logsf(jnp.array([2.0]), 3.0).round(4)
    Array([-0.5579], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
