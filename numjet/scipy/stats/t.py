"""numjet.scipy.stats.t: Student's distribution with `df` degrees of freedom."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.scipy import special
from numjet.scipy.stats.arguments import floats, in_jax


def _log_density(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """`logpdf` in JAX's equations."""
    z = (x - loc) / scale
    half = df / 2
    power = half + 0.5
    size = jnp.log(scale * scale * jnp.pi * df) / 2
    shape = special.gammaln(half) + size - special.gammaln(power)
    return -(shape + power * jnp.log1p(z * z / df))


@in_jax(_log_density)
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density of the distribution of Student's t.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import t
    >>> t.logpdf(jnp.array([1.0]), 3.0).round(4)
    Array([-1.5763], dtype=float32)
    """
    x, df, loc, scale = floats("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    # Γ((df + 1)/2) / (Γ(df/2) Γ(1/2)) is 1 / B(df/2, 1/2).
    shape = -special.betaln(df / 2, 0.5) - 0.5 * jnp.log(df) - jnp.log(scale)
    return shape - (df + 1) / 2 * jnp.log1p(z * z / df)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density of the distribution of Student's t.

    x: where; df: degrees of freedom, positive; loc, scale: shift it and stretch it: the
    distribution of loc + scale X. Arrays that broadcast; integers become floats. Result: the
    broadcast shape. Differentiable in floats. Raises TypeError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.stats import t
    >>> t.pdf(jnp.array([1.0]), 3.0).round(4)
    Array([0.2067], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return [*__all__]
