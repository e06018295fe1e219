"""Associated Legendre functions of every order and degree up to given ones, for
numjet.scipy.special.

The recurrence runs over degrees, with all orders at once; its coefficients are computed in double
precision before. Source: NIST Digital Library of Mathematical Functions, 14.10.3, 14.10.5, 14.11.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays


def _checked(name: str, m: int, n: int, z: Any) -> tuple[int, int, Any]:
    (z,) = as_arrays(name, z)
    m, n = operator.index(m), operator.index(n)
    if m < 0 or n < 0:
        raise IndexError(f"{name}: the largest order and degree must not be negative: {m}, {n}.")
    if z.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"{name}: z must be float32 or float64, got {z.dtype}.")
    if z.ndim != 1:
        raise ValueError(f"{name}: z must be a 1D array, got shape {z.shape}.")
    return m, n, z


def _rows(m: int, n: int, z: Any, normalized: bool) -> list[Any]:
    """For each degree up to `n` the functions of the orders up to `m`: shape (m + 1, len(z)).

    A degree follows from the two before; where it equals the order, from the order before.
    """
    orders = np.arange(m + 1.0)
    root = jnp.sqrt((1 - z) * (1 + z))
    first = 1 / math.sqrt(4 * math.pi) if normalized else 1.0
    diagonal: Any = jnp.full_like(z, first)
    rows: list[Any] = []
    before: Any = jnp.zeros((m + 1, z.size), z.dtype)
    current = before
    for degree in range(n + 1):
        if degree:
            inside = orders < degree
            gap = np.where(inside, degree - orders, 1)
            if normalized:
                gap = np.where(inside, degree**2 - orders**2, 1)
                up = np.sqrt((4 * degree**2 - 1) / gap)
                low = np.where(inside, (degree - 1) ** 2 - orders**2, 0).clip(0)
                down = np.sqrt((2 * degree + 1) * low / (max(2 * degree - 3, 1) * gap))
                factor = math.sqrt((2 * degree + 1) / (2 * degree))
            else:
                up, down = (2 * degree - 1) / gap, (degree + orders - 1) / gap
                factor = 2.0 * degree - 1
            up, down = [np.where(inside, c, 0).astype(z.dtype)[:, None] for c in (up, down)]
            before, current = current, up * z * current - down * before
            diagonal = -factor * root * diagonal
        if degree <= m:
            current = current.at[degree].set(diagonal)
        rows.append(current)
    return rows


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """Associated Legendre functions of the first kind of the orders 0..m and degrees 0..n.

    m, n: Python integers. z: float32 or float64 vector within [-1, 1]. is_normalized: times
    √((2l+1) (l-m)! / (4π (l+m)!)), as spherical harmonics are made of. Result: [m + 1, n + 1,
    len(z)], of z's dtype; 0 where the order exceeds the degree. The Condon-Shortley phase (-1)^m is
    included. Raises ValueError for a z of another rank, TypeError for another dtype. Source: that
    of `lpmn`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.lpmn_values(1, 1, jnp.array([0.6]), False)[..., 0].round(4)
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], dtype=float32)
    """
    m, n, z = _checked("lpmn_values", m, n, z)
    return jnp.stack(_rows(m, n, z, is_normalized), 1)


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """Associated Legendre functions of the first kind, and their derivatives.

    m, n: Python integers: orders 0..m and degrees 0..n. z: float32 or float64 vector within [-1,
    1]. Result: two arrays [m + 1, n + 1, len(z)]; 0 where the order exceeds the degree, with the
    Condon-Shortley phase (-1)^m. At z = ±1 the derivative of order 1 is infinite. Raises ValueError
    for a z of another rank, TypeError for another dtype. Source: DLMF 14.10.3, 14.10.5, 14.11.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> values, slopes = special.lpmn(1, 1, jnp.array([0.6]))
    >>> slopes[..., 0].round(4)
    Array([[0.  , 1.  ],
           [0.  , 0.75]], dtype=float32)
    """
    m, n, z = _checked("lpmn", m, n, z)
    rows = _rows(m, n, z, False)
    orders = np.arange(m + 1.0, dtype=z.dtype)[:, None]
    ends = jnp.abs(z) == 1
    below = jnp.where(ends, 1, (1 - z) * (1 + z))
    slopes = []
    for degree, row in enumerate(rows):
        lower = rows[degree - 1] if degree else jnp.zeros_like(row)
        inside = ((degree + orders) * lower - degree * z * row) / below
        # The values at the ends: of order 0, 1 (infinite), 2, and 0 beyond.
        full = degree * (degree + 1)
        at_ends = np.zeros((m + 1, 2), z.dtype)
        for column, end in enumerate((-1, 1)):
            limits = (
                full / 2 * end ** (degree + 1),
                math.inf * end**degree if degree else 0,
                -full / 4 * (degree - 1) * (degree + 2) * end ** (degree + 1),
            )
            at_ends[:3, column] = limits[: m + 1]
        slopes.append(jnp.where(ends, jnp.where(z > 0, at_ends[:, 1:], at_ends[:, :1]), inside))
    return jnp.stack(rows, 1), jnp.stack(slopes, 1)
