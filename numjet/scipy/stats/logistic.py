"""numjet.scipy.stats.logistic: the logistic distribution around `loc`."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.numpy.elementwise import constant
from numjet.numpy.promote import strong
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, in_jax, weakly


def _log_density(x: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    two = constant(2, x)
    half = (x - loc) / scale / two
    return -two * jnp.logaddexp(half, -half) - jnp.log(scale)


@in_jax(_log_density)
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the logistic distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.logpdf(jnp.array([1.0])).round(4)
    Array([-1.6265], dtype=float32)
    """
    x, loc, scale = weakly("logistic.logpdf", x, loc, scale)
    if x.ndim or loc.ndim or scale.ndim:
        x = strong(x)  # weak numbers make a weak density, weak arrays none
    if x.dtype.kind == "c":
        return _log_density(x, loc, scale)  # |x| is x or -x of real numbers alone
    z = jnp.abs(x - loc) / scale
    return -z - jnp.log(scale) - 2 * jnp.log1p(jnp.exp(-z))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the logistic distribution: e^-x / (1 + e^-x)².

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.pdf(jnp.array([1.0])).round(4)
    Array([0.1966], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x: logistic distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.cdf(jnp.array([1.0])).round(4)
    Array([0.7311], dtype=float32)
    """
    x, loc, scale = weakly("logistic.cdf", x, loc, scale)
    return special.expit((x - loc) / scale)


@in_jax(lambda x, loc, scale: special.expit(-((x - loc) / scale)))
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values above x: logistic distribution.

    x: where; loc, scale: shift it and stretch it: the distribution of loc + scale X. Arrays that
    broadcast; integers become floats. Result: the broadcast shape. Differentiable in floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.sf(jnp.array([1.0])).round(4)
    Array([0.2689], dtype=float32)
    """
    x, loc, scale = weakly("logistic.sf", x, loc, scale)
    return special.expit((loc - x) / scale)


@in_jax(lambda q, loc, scale: special.logit(q) * scale + loc)
def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part x lies below, the inverse of cdf: logistic distribution.

    x: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.ppf(jnp.array([0.25, 0.875])).round(4)
    Array([-1.0986,  1.9459], dtype=float32)
    """
    x, loc, scale = floats("logistic.ppf", x, loc, scale)
    return loc + scale * special.logit(x)


@in_jax(lambda q, loc, scale: -special.logit(q) * scale + loc)
def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that a part x lies above, the inverse of sf: logistic distribution.

    x: in [0, 1], NaN outside; loc, scale: shift it and stretch it: the distribution of loc + scale
    X. Arrays that broadcast; integers become floats. Result: the broadcast shape. Differentiable in
    floats.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import logistic
    >>> logistic.isf(jnp.array([0.25, 0.875])).round(4)
    Array([ 1.0986, -1.9459], dtype=float32)
    """
    x, loc, scale = floats("logistic.isf", x, loc, scale)
    return loc - scale * special.logit(x)


__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return [*__all__]
