"""Series for the special functions here and in numjet.scipy: polynomials and Chebyshev series.

A polynomial with known coefficients is one operation: one or two chains of multiply-adds in
compiled code.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.ops.arithmetic import mul
from numjet.ops.families import REAL_FLOATING, constant_like, elementwise

# Below this part of the largest one a coefficient does not count in single precision.
SINGLE = 1e-9
# From so many terms on the odd and the even ones are two chains: one would be waited for.
SPLIT = 10


def _reference(x: np.ndarray, *, coefficients: tuple[float, ...]) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + x.dtype.type(c)
    return total


def _loops(e: Any, x: Any, *, coefficients: tuple[float, ...]) -> Any:
    def chain(z: Any, some: Sequence[float]) -> Any:
        total = e.const(some[-1], x.dtype)
        for c in some[-2::-1]:
            total = e.call("fma", total, z, e.const(c, x.dtype))
        return total

    if len(coefficients) < SPLIT:
        return chain(x, coefficients)
    square = e.mul(x, x)
    return e.call("fma", chain(square, coefficients[1::2]), x, chain(square, coefficients[::2]))


def _slope(t: Any, out: Any, x: Any, *, coefficients: tuple[float, ...]) -> Any:
    falling = [k * c for k, c in enumerate(coefficients)][1:]
    return mul(t, polynomial(falling, x) if falling else constant_like(x, 0))


polynomial_p = elementwise(
    "polynomial", accepts=REAL_FLOATING, reference=_reference, jvp=_slope, loops=_loops
)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Σ c_k x^k, by Horner's rule."""
    return polynomial_p.bind(as_array(x), coefficients=tuple(map(float, coefficients)))


def chebyshev(table: tuple, x: Any, single: bool = False) -> Any:
    """The series `table` of special_tables at `x`, which must lie in its interval; `single`: as far
    as single precision shows.

    As a polynomial of the place in the interval, from -1 to 1: the sum of its terms' sizes is at
    most 30 times the value (I1E_NEAR), 7 times in the other tables.
    """
    (low, high), series = table
    coefficients = _powers(series, single or x.dtype != dtypes.float64)
    return polynomial(coefficients, (x - (low + high) / 2) * (2 / (high - low)))


@functools.cache
def powers(table: tuple) -> tuple[float, ...]:
    """The coefficients of the powers of x itself, for intervals from 0 on and double precision: the
    sum of the terms' sizes is up to 10⁷ times the value."""
    (low, high), series = table
    if low != 0:
        raise ValueError(f"the interval begins at {low}, not at 0")
    place, total = np.polynomial.Polynomial([-1, 2 / high]), np.polynomial.Polynomial([0.0])
    for c in _powers(series, False)[::-1]:
        total = total * place + c
    return tuple(map(float, total.coef[: len(series)]))


@functools.cache
def _powers(series: tuple[float, ...], single: bool) -> tuple[float, ...]:
    bound = max(map(abs, series)) * (SINGLE if single else 0)
    last = max([k for k, c in enumerate(series) if abs(c) > bound])
    return tuple(map(float, np.polynomial.chebyshev.cheb2poly(series[: last + 1])))
