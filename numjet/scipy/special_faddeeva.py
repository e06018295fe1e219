"""The Faddeeva function w(z) = exp(-z²) erfc(-i z), for numjet.scipy.special.

In the upper half plane by Weideman's rational series near the origin ("Computation of the complex
error function", SIAM J. Numer. Anal. 31, 1994) and Laplace's continued fraction far from it
(Gautschi, "Efficient computation of the complex error function", SIAM J. Numer. Anal. 7, 1970);
below it by w(-z) = 2 exp(-z²) - w(z). Of real numbers it is exp(-x²) and Dawson's integral.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, one_array, promote_inexact, strong
from numjet.scipy.special_integrals import dawsn
from numjet.scipy.special_normal import real_erfcx

# Terms of the series (double, single precision), |z| from which on the fraction serves, its depth.
TERMS = {True: (44, 8.0, 22), False: (20, 7.0, 9)}


@functools.cache
def _weideman(terms: int) -> tuple[float, tuple[float, ...]]:
    """The scale L and the coefficients of powers of (L + i z) / (L - i z), from the constant on."""
    scale = math.sqrt(terms / math.sqrt(2))
    points = 2 * terms
    k = np.arange(-points + 1, points)
    t = scale * np.tan(k * np.pi / points / 2)
    values = np.concatenate([[0.0], np.exp(-t * t) * (scale**2 + t * t)])
    series = np.fft.fft(np.fft.fftshift(values)).real / (2 * points)
    return scale, tuple(series[1 : terms + 1].tolist())


def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x), without overflow for large x.

    x: real or complex numbers of any shape; integers become floats, floats keep their dtype.
    Result: x's shape. Derivative: 2 x y - 2/√π. Source: DLMF 7.12.1; a Chebyshev series after
    Clenshaw (1962); of complex x `wofz` of i x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.erfcx(jnp.array([0.0, 100.0])).round(4)
    Array([1.    , 0.0056], dtype=float32)
    """
    x = one_array("erfcx", x)
    return wofz(1j * x) if dtypes.is_complex(x.dtype) else real_erfcx(x)


def wofz(z: Any) -> Any:
    """The Faddeeva function exp(-z²) erfc(-i z).

    z: real or complex numbers of any shape. Result: complex. Derivative: 2i/√π - 2 z w(z). Source:
    Weideman, Computation of the complex error function (1994).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.wofz(jnp.array([1.0])).round(4)
    Array([0.3679+0.6072j], dtype=complex64)
    """
    z = strong(*promote_inexact(*as_arrays("wofz", z)))
    dtype = z.dtype
    if not dtypes.is_complex(dtype):
        x = jnp.asarray(z, dtypes.float64 if dtype == dtypes.float64 else dtypes.float32)
        return lax.complex(jnp.exp(-jnp.square(x)), dawsn(x) * (2 / math.sqrt(math.pi)))
    terms, radius, depth = TERMS[dtype == dtypes.complex128]
    below = z.imag < 0
    upper = jnp.where(below, -z, z)
    size = jnp.maximum(jnp.abs(upper.real), jnp.abs(upper.imag))
    near = size < radius
    one = jnp.ones_like(upper)

    inner = jnp.where(near, upper, one)
    scale, coefficients = _weideman(terms)
    turned = scale - 1j * inner
    ratio = (scale + 1j * inner) / turned
    total = jnp.zeros_like(ratio)
    for c in reversed(coefficients):
        total = total * ratio + c
    by_series = (2 * total / turned + 1 / math.sqrt(math.pi)) / turned

    outer = jnp.where(near, one * (1j * radius), upper)
    rest = outer
    for k in range(depth, 0, -1):
        rest = outer - (0.5 * k) / rest
    infinite = jnp.isinf(size)
    by_fraction = (1j / math.sqrt(math.pi)) / jnp.where(infinite, one, rest)
    by_fraction = jnp.where(infinite, jnp.zeros_like(one), by_fraction)

    w = jnp.where(near, by_series, by_fraction)
    # On the real axis the real part is exp(-x²) alone, far below the rounding of the rest.
    axis = z.imag == 0
    real = jnp.exp(-jnp.square(jnp.where(axis, z.real, 0)))
    w = jnp.where(axis, lax.complex(real, w.imag), w)
    # exp(-z²) = exp((y - x) (y + x)) (cos 2xy - i sin 2xy)
    x, y = jnp.where(below, z.real, 0), jnp.where(below, z.imag, 0)
    growth, angle = jnp.exp((y - x) * (y + x)), 2 * x * y
    reflected = 2 * lax.complex(growth * jnp.cos(angle), -growth * jnp.sin(angle))
    w = jnp.where(below, reflected - w, w)
    return jnp.where(jnp.isnan(z), complex(np.nan, np.nan), w)
