"""Special functions in the operations that JAX makes them of, for who looks at jaxprs
(`api.compiled.shown`): for the modules of `scipy.special`, where `make_jaxpr` traces.

What runs has fewer operations, more digits or better derivatives.
"""

from __future__ import annotations

import math
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.numpy.elementwise import constant

_ROOT_HALF = math.sqrt(0.5)
# log_ndtr takes the logarithm of ndtr between these.
_LOWEST, _HIGHEST = -10.0, 5.0
# Of log Γ(x + y) - log Γ(x) for large x: DiDonato and Morris, Algorithm 708 (1992), BCORR.
_CORRECTION = (
    0.0833333333333333,
    -0.00277777777760991,
    0.00079365066682539,
    -0.00059520293135187,
    0.000837308034031215,
    -0.00165322962780713,
)


def ndtr_in_jax(x: Any) -> Any:
    """By erf in the middle, by erfc in the tails."""
    w = x * constant(_ROOT_HALF, x)
    far = lax.abs(w)
    near, middle = far < constant(_ROOT_HALF, x), 1.0 + lax.erf(w)
    tail = lax.select(w > 0.0, 2.0 - lax.erfc(far), lax.erfc(far))
    return 0.5 * lax.select(near, middle, tail)


def _log_ndtr_of(x: Any) -> Any:
    """log(ndtr) in the middle, -ndtr(-x) above, the asymptotic series below."""
    above = x > _HIGHEST
    value = ndtr_in_jax(jnp.where(above, -x, jnp.maximum(x, _LOWEST)))
    outside, inner = -value, x > _LOWEST
    middle = jnp.log(value)
    low = jnp.minimum(x, _LOWEST)
    far = -0.5 * lax.square(low) - jnp.log(-low) - 0.5 * math.log(2 * math.pi)
    return jnp.where(above, outside, jnp.where(inner, middle, far + jnp.log(_series(low))))


def _series(x: Any) -> Any:
    """1 - 1/x² + 3/x⁴ - 15/x⁶."""
    square = lax.square(x)
    even, odd = jnp.zeros_like(x), jnp.zeros_like(x)
    odd = odd + 1.0 / square
    power = square * square
    even = even + 3.0 / power
    power = power * square
    odd = odd + 15.0 / power
    power * square  # of the next term, as JAX's equations have it
    return 1.0 + even - odd


def _log_ndtr_jvp(primals: tuple, tangents: tuple) -> tuple:
    """The density divided by the distribution function."""
    (x,), (t,) = primals, tangents
    out = log_ndtr_in_jax(x)
    return out, t * jnp.exp(-0.5 * lax.square(x) - 0.5 * math.log(2 * math.pi) - out)


_log_ndtr_of.__name__ = "log_ndtr"
log_ndtr_in_jax = jvp_of_arrays(_log_ndtr_of)
log_ndtr_in_jax.defjvp(_log_ndtr_jvp)


def betaln_in_jax(x: Any, y: Any) -> Any:
    """By log Γ where the larger argument is small, else by the quotient's series."""
    x, y = jnp.minimum(x, y), jnp.maximum(x, y)
    small = lax.lgamma(x) + (lax.lgamma(y) - lax.lgamma(x + y))
    large = lax.lgamma(x) + _log_quotient(x, y)
    return jnp.where(y < 8, small, large)


def _log_quotient(a: Any, b: Any) -> Any:
    """log(Γ(b) / Γ(a + b)) for large b."""
    h = a / b
    c, x = h / (1 + h), h / (1 + h)
    d = b + (a - 0.5)
    square = x * x
    terms = [1 + (x + square)]
    for _ in _CORRECTION[2:]:
        terms.append(1 + (x + square * terms[-1]))
    t = (1.0 / b) ** 2
    out = _CORRECTION[-1] * terms[-1]
    for factor, term in zip(_CORRECTION[-2:0:-1], terms[-2::-1], strict=True):
        out = out * t + factor * term
    out = (out * t + _CORRECTION[0]) * (c / b)
    u, v = d * jnp.log1p(a / b), a * (jnp.log(b) - 1)
    return jnp.where(u <= v, out - v - u, out - u - v)
