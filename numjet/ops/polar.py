"""qdwh: the polar decomposition by dynamically weighted Halley iterations.

For `lax.linalg`. Method: Nakatsukasa, Bai & Gygi, Optimizing Halley's iteration for computing the
matrix polar decomposition, SIAM J. Matrix Anal. Appl. 31 (2010), in its form with QR factors, which
is backward stable.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import convert, reduce_sum
from numjet.ops.arithmetic import abs as absolute, add, div, max as larger, mul, sub
from numjet.ops.dot import batch_matmul
from numjet.ops.families import constant_like
from numjet.ops.linalg_core import adjoint, identity, symmetrized
from numjet.ops.linalg_lu import qr
from numjet.ops.logic import bitwise_and, bitwise_not, ge, lt
from numjet.ops.reduce import reduce_max
from numjet.ops.shape import concatenate
from numjet.ops.slicing import slice_in_dim
from numjet.ops.transcendental import cbrt, sqrt
from numjet.ops.while_loop import while_loop

# Six suffice for a condition number of 1e16 in exact arithmetic (section 3.4 of the paper).
_MOST = 10


def qdwh(x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: Any = None) -> tuple[Any, Any, Any, Any]:
    """The polar decomposition x = u h: (u, h, num_iters, is_converged).

    x: inexact[m, n] of full rank, m >= n (ValueError else). eps: iterations end where they move u
    by less than (4 eps)^(1/3) of its norm, by default the dtype's. max_iterations: at most so many,
    10 by default. is_hermitian changes nothing: the method is the same. dynamic_shape is refused
    (NotImplementedError). Result: u with orthonormal columns, h Hermitian and positive
    semidefinite, an int32 and a boolean. Like every loop without a known number of rounds it has no
    reverse mode. Source: Nakatsukasa, Bai and Gygi, Optimizing Halley's iteration for computing the
    matrix polar decomposition (2010).

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> u, h, *_ = linalg.qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> jnp.diag(h).round(4)
    Array([3., 2.], dtype=float32)
    """
    del is_hermitian
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh: dynamic_shape is not there. Cut the matrix to its shape.")
    x = as_array(x)
    if x.aval.ndim != 2:
        raise ValueError(f"qdwh: takes one matrix, got {x.aval.str_short()}. Use vmap for several.")
    m, n = x.aval.shape
    if m < n:
        raise ValueError("The input matrix of shape M x N must have M >= N, got "
                         f"{x.aval.str_short()}.")
    real = dtypes.real_of(x.aval.dtype)
    eps = float(np.finfo(real).eps) if eps is None else float(eps)
    most = _MOST if max_iterations is None else int(max_iterations)
    near = np.asarray(1 - 10 * np.finfo(real).eps, real)
    tolerance = np.asarray((4 * eps) ** (1 / 3), real)
    # The 2-norm is at most the root of the 1-norm times the infinity-norm.
    size = absolute(x)
    bound = sqrt(mul(reduce_max(reduce_sum(size, (0,)), (0,)),
                     reduce_max(reduce_sum(size, (1,)), (0,))))
    start = div(x, convert(bound, x.aval.dtype))
    unit = identity(n, x.aval.dtype)

    def settled(low: Any, moved: Any) -> Any:
        # Large singular values hardly move at first, so that the smallest must have come to 1, too.
        return bitwise_and(ge(tolerance, moved), ge(low, near))

    def unfinished(state: tuple) -> Any:
        _, low, count, moved = state
        return bitwise_and(bitwise_not(settled(low, moved)), lt(count, np.int32(most)))

    def step(state: tuple) -> tuple:
        u, low, count, _ = state
        a, b, c, low = _weights(low)
        rows = concatenate([mul(u, convert(sqrt(c), u.aval.dtype)), unit], 0)
        q = qr(rows, full_matrices=False)[0]
        upper, lower = slice_in_dim(q, 0, m), slice_in_dim(q, m, m + n)
        weight = div(sub(a, div(b, c)), sqrt(c))
        moved = add(mul(u, convert(div(b, c), u.aval.dtype)),
                    mul(batch_matmul(upper, adjoint(lower)), convert(weight, u.aval.dtype)))
        return moved, low, add(count, np.int32(1)), div(_norm(sub(moved, u)), _norm(moved))

    far = constant_like(bound, np.inf)
    state = (start, as_array(np.asarray(np.finfo(real).eps, real)), as_array(np.int32(0)),
             convert(far, real))
    u, low, count, moved = while_loop(unfinished, step, state)
    h = symmetrized(batch_matmul(adjoint(u), x))
    return u, h, convert(count, dtypes.canonical(dtypes.int64), True), settled(low, moved)


def _weights(low: Any) -> tuple[Any, Any, Any, Any]:
    """The step's a, b, c for singular values in [low, 1], and where the smallest of them goes."""
    one, square = constant_like(low, 1), mul(low, low)
    d = cbrt(div(mul(constant_like(low, 4), sub(one, square)), mul(square, square)))
    root = sqrt(add(one, d))
    inner = add(sub(constant_like(low, 8), mul(constant_like(low, 4), d)),
                div(mul(constant_like(low, 8), sub(constant_like(low, 2), square)),
                    mul(square, root)))
    zero = constant_like(low, 0)
    a = add(root, mul(constant_like(low, 0.5), sqrt(larger(inner, zero))))
    b = mul(constant_like(low, 0.25), mul(sub(a, one), sub(a, one)))
    c = sub(add(a, b), one)
    low = div(mul(low, add(a, mul(b, square))), add(one, mul(c, square)))
    # Rounding may carry it past 1, where d would be negative.
    return a, b, c, sub(one, larger(sub(one, low), zero))


def _norm(x: Any) -> Any:
    size = absolute(x)
    return sqrt(reduce_sum(mul(size, size), (0, 1)))
