"""Updates by products: of a Cholesky factor by a vector, of a symmetric matrix by C + A Aᵀ.

For `lax.linalg`. Matrices stand in the last two axes; both are made of other primitives.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import reduce_sum
from numjet.ops.arithmetic import add, div, mul, sub
from numjet.ops.composed import composed
from numjet.ops.dot import batch_matmul
from numjet.ops.families import constant_like
from numjet.ops.linalg_core import (
    lower_part,
    transposed,
    upper_part,
)
from numjet.ops.logic import eq
from numjet.ops.scan import scan
from numjet.ops.shape import select_n
from numjet.ops.transcendental import sqrt


def _update(r: Any, w: Any) -> Any:
    """Rows of R from the first to the last, each rotated with what is left of w (Golub & Van Loan,
    Matrix Computations, 6.5.4)."""
    n = r.aval.shape[-1]

    def step(w: Any, row_and_place: tuple) -> tuple:
        row, place = row_and_place
        at = reduce_sum(mul(place, row), (0,))
        x = reduce_sum(mul(place, w), (0,))
        length = sqrt(add(mul(at, at), mul(x, x)))
        flat = eq(length, constant_like(length, 0))
        safe = select_n(flat, length, constant_like(length, 1))
        c = select_n(flat, div(at, safe), constant_like(length, 1))
        s = div(x, safe)
        # What lies before the diagonal stays as it is: there the rotation would mix in w's rest.
        return sub(mul(c, w), mul(s, row)), add(mul(c, row), mul(s, w))

    unit = as_array(np.eye(n, dtype=r.aval.dtype))
    _, rows = scan(step, w, (upper_part(r), unit))
    return add(upper_part(rows), sub(r, upper_part(r)))


def _update_checked(r: Any, w: Any) -> Any:
    if r.aval.ndim != 2 or w.aval.ndim != 1:
        raise TypeError(f"cholesky_update: takes a matrix and a vector, got "
                        f"{r.aval.str_short()} and {w.aval.str_short()}. Use vmap for several.")
    if r.aval.shape != w.aval.shape * 2:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got {r.aval.str_short()} and {w.aval.str_short()}.")
    if r.aval.dtype != w.aval.dtype or not dtypes.is_floating(r.aval.dtype):
        raise TypeError(f"cholesky_update: takes real floats of one dtype, got "
                        f"{r.aval.str_short()} and {w.aval.str_short()}.")
    return _update(r, w)


cholesky_update_p = composed("cholesky_update", _update_checked)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper triangular S with SᵀS = RᵀR + w wᵀ, in O(n²) operations.

    r_matrix: float[n, n], upper triangular, R; what lies below the diagonal is returned as it is.
    w_vector: float[n], w. Result: float[n, n]. Differentiable. Raises ValueError for sizes that
    differ, TypeError for other ranks and for complex numbers. Source: Golub and Van Loan, Matrix
    Computations, section 6.5.4.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.cholesky_update(jnp.eye(2), jnp.array([3.0, 0.0])).round(4)
    Array([[3.1623, 0.    ],
           [0.    , 1.    ]], dtype=float32)
    """
    return cholesky_update_p.bind(as_array(r_matrix), as_array(w_vector))


def _product(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    if not dtypes.is_floating(a.aval.dtype) or a.aval.dtype != c.aval.dtype:
        raise TypeError(f"symmetric_product: takes real floats of one dtype, got "
                        f"{a.aval.str_short()} and {c.aval.str_short()}.")
    if a.aval.ndim < 2 or c.aval.shape != (*a.aval.shape[:-2], a.aval.shape[-2], a.aval.shape[-2]):
        raise ValueError("symmetric_product expects matrices of shape (..., n, m) and "
                         f"(..., n, n). Got {a.aval.str_short()} and {c.aval.str_short()}.")
    out = mul(batch_matmul(a, transposed(a)), constant_like(a, alpha))
    return add(out, mul(c, constant_like(c, beta))) if beta else out


symmetric_product_p = composed("symmetric_product", _product)


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Any:
    """alpha · a aᵀ + beta · c, for a symmetric c.

    a_matrix: float[..., n, m]. c_matrix: float[..., n, n], of which the lower triangle alone counts
    with symmetrize_output (the upper one of the result is then its mirror image). alpha, beta:
    numbers. Differentiable. Raises ValueError for shapes that do not fit, TypeError for complex
    numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    out = symmetric_product_p.bind(as_array(a_matrix), as_array(c_matrix), alpha=float(alpha),
                                   beta=float(beta))
    if symmetrize_output:
        out = add(lower_part(out), transposed(lower_part(out, -1)))
    return out
