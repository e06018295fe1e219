"""The error function's family and the normal distribution, for numjet.scipy.special."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    _select,
    add,
    broadcast_like,
    constant,
    divide,
    equal,
    greater,
    less,
    logical_and,
    logical_or,
    maximum,
    multiply,
    negative,
    subtract,
    where,
)
from numjet.numpy.promote import cast, one_inexact
from numjet.numpy.unary import exp, log, sqrt


def _wide(name: str, x: Any) -> tuple[Any, Any]:
    """x in at least 32 bits, and the dtype to return to."""
    x = one_inexact(name, x)
    kind = x.aval.dtype
    return (cast(x, dtypes.float32) if kind.itemsize < 4 else x), kind


def erf(x: Any) -> Any:
    """The error function 2/√π ∫₀ˣ exp(-t²) dt.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 2/√π exp(-x²). Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erf(jnp.array([0.5, 1.0])).round(4)
    Array([0.5205, 0.8427], dtype=float32)
    """
    return lax.erf(one_inexact("erf", x))


def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: -2/√π exp(-x²). Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfc(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.1573], dtype=float32)
    """
    return lax.erfc(one_inexact("erfc", x))


def erfinv(x: Any) -> Any:
    """The inverse of erf: the y with erf(y) = x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: √π/2 exp(y²). ±∞ at ±1, NaN outside. Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfinv(jnp.array([0.0, 0.5, 1.0])).round(4)
    Array([0.    , 0.4769,    inf], dtype=float32)
    """
    return lax.erf_inv(one_inexact("erfinv", x))


def ndtr(x: Any) -> Any:
    """The normal distribution function, the integral of its density up to x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: exp(-x²/2) / √(2π). Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.ndtr(jnp.array([0.0, 1.0])).round(4)
    Array([0.5   , 0.8413], dtype=float32)
    """
    x, kind = _wide("ndtr", x)
    half = multiply(x, math.sqrt(0.5))
    size = lax.abs(half)
    middle = add(1.0, lax.erf(half))
    tail = lax.erfc(size)
    out = where(
        less(size, math.sqrt(0.5)), middle, where(greater(half, 0), subtract(2.0, tail), tail)
    )
    return cast(multiply(0.5, out), kind)


def ndtri(p: Any) -> Any:
    """The inverse of ndtr: the quantile of the normal distribution.

    p: a real array of any shape; integers become floats, floats keep their dtype. Result: p's
    shape. Derivative: √(2π) exp(y²/2). -∞ at 0, ∞ at 1, NaN outside. Raises TypeError for complex
    p.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.ndtri(jnp.array([0.5, 0.975])).round(4)
    Array([0.  , 1.96], dtype=float32)
    """
    p, kind = _wide("ndtri", p)
    # erf_inv loses digits near -1; below 0.5 Newton steps on log ndtr sharpen the tail.
    x = multiply(math.sqrt(2), lax.erf_inv(subtract(multiply(2, p), 1)))
    tail = logical_and(less(p, 1e-3), greater(p, 0))
    safe = _select(tail, p, broadcast_like(constant(1e-4, p), p))
    start = negative(sqrt(multiply(-2, log(safe))))
    target = log(safe)
    z = start
    for _ in range(5):
        value = log_ndtr(z)
        slope = exp(
            subtract(subtract(multiply(-0.5, lax.square(z)), 0.5 * math.log(2 * math.pi)), value)
        )
        z = subtract(z, divide(subtract(value, target), slope))
    out = _select(tail, z, x)
    out = where(equal(p, 0), constant(-np.inf, out), where(equal(p, 1), constant(np.inf, out), out))
    return cast(where(logical_or(less(p, 0), greater(p, 1)), constant(np.nan, out), out), kind)


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log of ndtr, exact in the lower tail.

    x: a real array of any shape; integers become floats. series_order: how many terms of the
    asymptotic series are taken far below 0, 0 to 30 (ValueError). Result: x's shape. Derivative:
    exp(-x²/2 - y) / √(2π).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.log_ndtr(jnp.array([0.0, -30.0])).round(3)
    Array([  -0.693, -454.321], dtype=float32)
    """
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ValueError(
            f"log_ndtr: series_order must be an integer in [0, 30], got {series_order!r}."
        )
    x, kind = _wide("log_ndtr", x)
    # Below `low` the distribution function underflows, above `high` its complement is tiny.
    low, high = (-20.0, 8.0) if x.aval.dtype == dtypes.float64 else (-10.0, 5.0)
    top = negative(ndtr(negative(maximum(x, high))))
    middle = log(ndtr(where(less(x, low), low, where(greater(x, high), high, x))))
    far = where(less(x, low), x, low)
    square = lax.square(far)
    series: Any = 1.0
    term: Any = 1.0
    for n in range(1, series_order + 1):
        term = divide(multiply(term, -(2 * n - 1)), square)
        series = add(series, term)
    bottom = add(
        subtract(subtract(multiply(-0.5, square), log(negative(far))), 0.5 * math.log(2 * math.pi)),
        log(series),
    )
    return cast(where(greater(x, high), top, where(less(x, low), bottom, middle)), kind)


def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x), without overflow for large x.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 2 x y - 2/√π. Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfcx(jnp.array([0.0, 100.0])).round(4)
    Array([1.    , 0.0056], dtype=float32)
    """
    x, kind = _wide("erfcx", x)
    small = less(x, 5.0)
    near = where(small, x, constant(0, x))
    direct = multiply(exp(lax.square(near)), lax.erfc(near))
    far = where(small, constant(5, x), x)
    # The continued fraction 1 / (x + (1/2) / (x + 1 / (x + (3/2) / ...))), from the tail.
    rest = far
    for k in range(40, 0, -1):
        rest = add(far, divide(0.5 * k, rest))
    out = where(small, direct, divide(1 / math.sqrt(math.pi), rest))
    return cast(out, kind)
