"""The gamma function of complex numbers, for numjet.scipy.special.

Lanczos' sum on the right half-plane, the reflection formula on the left one. Values are computed in
double precision, whatever the dtype: the sum's terms cancel. Coefficients: Godfrey, "A note on the
computation of the convergent Lanczos complex Gamma approximation" (2001), relative error 1e-15.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet import lax
from numjet.core import dtypes
from numjet.core.structural import convert, full
from numjet.numpy.logic import where
from numjet.scipy.precision import in_doubles

_G = 607 / 128
_LANCZOS = (
    0.99999999999999709182,
    57.156235665862923517,
    -59.597960355475491248,
    14.136097974741747174,
    -0.49191381609762019978,
    0.33994649984811888699e-4,
    0.46523628927048575665e-4,
    -0.98374475304879564677e-4,
    0.15808870322491248884e-3,
    -0.21026444172410488319e-3,
    0.21743961811521264320e-3,
    -0.16431810653676389022e-3,
    0.84418223983852743293e-4,
    -0.26190838401581408670e-4,
    0.36899182659531622704e-5,
)


def _number(like: Any, value: complex) -> Any:
    return full(like.shape, value, like.dtype)


@in_doubles
def complex_loggamma(z: Any) -> Any:
    """log Γ(z), the branch that is real for positive z and cut along the negative axis.

    z: a complex array. Result: its shape and dtype; NaN at 0 and the negative integers.
    """
    return convert(_loggamma(convert(z, dtypes.complex128)), z.dtype)


@in_doubles
def complex_gamma(z: Any) -> Any:
    """Γ(z) of a complex array, its dtype; NaN at 0 and the negative integers."""
    return convert(lax.exp(_loggamma(convert(z, dtypes.complex128))), z.dtype)


def _loggamma(z: Any) -> Any:
    real, imaginary = lax.real(z), lax.imag(z)
    pole = (imaginary == 0) & (real <= 0) & (lax.floor(real) == real)
    below = imaginary < 0
    z = where(pole, _number(z, 0.5), where(below, lax.conj(z), z))
    left = lax.real(z) < 0.5
    # The right half-plane: w + 1 is z, or what the reflection formula takes its place by.
    w = where(left, -z, z - 1)
    total = _number(z, _LANCZOS[0])
    for k, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (w + k)
    t = w + (_G + 0.5)
    right = (w + 0.5) * lax.log(t) - t + lax.log(total) + 0.5 * math.log(2 * math.pi)
    # log sin(pi z) above the real axis, without a jump: sin(pi z) = exp(-i pi z) (1 - q) i / 2.
    u = where(left, z, _number(z, 0.25))
    reduced = u - convert(lax.round(lax.real(u)), z.dtype)
    q = lax.expm1(2j * math.pi * reduced)
    sine = -1j * math.pi * u + lax.log(-q) + complex(-math.log(2), math.pi / 2)
    out = where(left, math.log(math.pi) - sine - right, right)
    return where(pole, _number(z, complex(np.nan, np.nan)), where(below, lax.conj(out), out))
