"""LU factors with row pivoting, QR factors, and the products of Householder reflectors.

For `ops.linalg`, which shows these names to `lax.linalg`; references are NumPy's and SciPy's,
compiled programs call LAPACK (`cpu.kernels.linalg`). What would break it: a derivative of QR with
all columns of a tall matrix's Q, of which nothing decides the last ones; it is refused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import smallest
from numjet.core.primitive import Zero
from numjet.core.structural import convert, zeros
from numjet.ops.arithmetic import add, sub
from numjet.ops.complex_ops import real
from numjet.ops.dot import batch_matmul
from numjet.ops.linalg_core import (
    adjoint,
    batch_identity,
    check_matrix,
    decomposition,
    diagonal_part,
    each_matrix,
    lower_part,
    narrow_and_empty,
    permute_rows,
    transposed,
    triangular_solve,
    upper_part,
)
from numjet.ops.shape import pad
from numjet.ops.slicing import slice_in_dim


# ------------------------------------------------------------------ lu
def _lu_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("lu", x)
    *batch, m, n = x.shape
    return [
        x.strong(),
        ShapedArray((*batch, smallest(m, n)), dtypes.int32),
        ShapedArray((*batch, m), dtypes.int32),
    ]


def _lu_one(x: np.ndarray) -> tuple:
    from scipy.linalg.lapack import get_lapack_funcs

    m, n = x.shape
    if not x.size:
        return x.copy(), np.zeros(0, np.int32), np.arange(m, dtype=np.int32)
    (getrf,) = get_lapack_funcs(("getrf",), (x,))
    factors, pivots, _ = getrf(x)
    return np.ascontiguousarray(factors), pivots.astype(np.int32), _permutation(pivots, m)


def _permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    order = np.arange(size, dtype=np.int32)
    for i, j in enumerate(pivots):
        order[i], order[j] = order[j], order[i]
    return order


def _lu_jvp(primals: tuple, tangents: tuple) -> tuple:
    """With P A = L U: d(L U) split by F = L⁻¹ P dA U⁻¹ into L tril(F, -1) and triu(F) U."""
    factors, pivots, order = lu_p.bind(*primals)
    rest = [Zero(pivots.aval.tangent()), Zero(order.aval.tangent())]
    if type(tangents[0]) is Zero:
        return [factors, pivots, order], [Zero(factors.aval.tangent()), *rest]
    m, n = factors.aval.shape[-2:]
    k = smallest(m, n)
    # Both factors made square with identities, so that rectangular matrices need no other formula.
    lower = add(
        lower_part(_square(slice_in_dim(factors, 0, k, axis=-1), m), -1), batch_identity(factors, m)
    )
    upper = upper_part(_square(slice_in_dim(factors, 0, k, axis=-2), n))
    if n > k:
        tail = np.diag(np.arange(n) >= k).astype(factors.aval.dtype)
        upper = add(upper, _like_batch(tail, factors))
    inner = triangular_solve(
        lower, permute_rows(tangents[0], order), left_side=True, lower=True, unit_diagonal=True
    )
    inner = triangular_solve(upper, inner)
    tangent = add(
        batch_matmul(lower, lower_part(inner, -1)), batch_matmul(upper_part(inner), upper)
    )
    return [factors, pivots, order], [tangent, *rest]


def _square(x: Any, n: int) -> Any:
    """`x` padded with zeros to n by n."""
    rows, columns = x.aval.shape[-2:]
    if rows == columns == n:
        return x
    zero = zeros(ShapedArray((), x.aval.dtype))
    return pad(x, zero, [(0, 0, 0)] * (x.aval.ndim - 2) + [(0, n - rows, 0), (0, n - columns, 0)])


def _like_batch(matrix: np.ndarray, x: Any) -> Any:
    return as_array(np.broadcast_to(matrix, (*x.aval.shape[:-2], *matrix.shape)))


lu_p = decomposition("lu", _lu_abstract, lambda x: each_matrix(_lu_one, x), _lu_jvp)


def lu(x: Any) -> list[Any]:
    """The LU factors of matrices, with row exchanges: [factors, pivots, permutation].

    x: [..., m, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). Result: factors [..., m, n], both in one, L with a diagonal of ones; pivots int32[...,
    min(m, n)], the rows exchanged one after the other; permutation int32[..., m], with
    x[permutation] = L U. Differentiable. Raises TypeError for less than two axes. Source: Golub and
    Van Loan, Matrix Computations, section 3.4; LAPACK's getrf.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    [Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32)]
    """
    factors, pivots, order = lu_p.bind(as_array(x))
    return [factors, pivots, order]


def _pivots_abstract(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != dtypes.int32 or not pivots.ndim or pivots.shape[-1] > permutation_size:
        raise TypeError(
            f"lu_pivots_to_permutation: expected int32 pivots, at most {permutation_size} of them, "
            f"got {pivots.str_short()}."
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), dtypes.int32)


def _pivots_reference(pivots: np.ndarray, *, permutation_size: int) -> np.ndarray:
    *batch, count = pivots.shape
    rows = pivots.reshape(math.prod(batch), count)
    flat = [_permutation(p, permutation_size) for p in rows]
    return np.reshape(flat, (*batch, permutation_size)).astype(np.int32)


lu_pivots_to_permutation_p = decomposition(
    "lu_pivots_to_permutation", _pivots_abstract, _pivots_reference, several=False, integers=True
)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that a sequence of row exchanges amounts to.

    pivots: int32[..., k], as of `lu`. permutation_size: m, how many rows there are. Result:
    int32[..., m].

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.lu_pivots_to_permutation(jnp.array([1, 1]), 3)
    Array([1, 0, 2], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(as_array(pivots), permutation_size=int(permutation_size))


# ------------------------------------------------------------------ qr
def _qr_abstract(
    x: ShapedArray, *, pivoting: bool, full_matrices: bool, compute_q: bool
) -> list[ShapedArray]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else smallest(m, n)
    outs = [ShapedArray((*batch, m, k), x.dtype)] if compute_q else []
    outs.append(ShapedArray((*batch, k, n), x.dtype))
    return [*outs, ShapedArray((*batch, n), dtypes.int32)] if pivoting else outs


def _qr_reference(
    x: np.ndarray, *, pivoting: bool, full_matrices: bool, compute_q: bool
) -> list[np.ndarray]:
    if not pivoting:
        outs = list(np.linalg.qr(x, mode="complete" if full_matrices else "reduced"))
        return outs if compute_q else outs[1:]
    from scipy.linalg import qr as scipy_qr

    def one(x: np.ndarray) -> tuple:
        m, n = x.shape
        if x.size:
            q, r, order = scipy_qr(x, pivoting=True, mode="full" if full_matrices else "economic")
        else:  # which SciPy takes from 1.14 on
            k = m if full_matrices else smallest(m, n)
            q, r, order = np.eye(m, k, dtype=x.dtype), np.zeros((k, n), x.dtype), np.arange(n)
        return (q, r, order.astype(np.int32))[not compute_q :]

    return each_matrix(one, x)


def _qr_jvp(
    primals: tuple, tangents: tuple, *, pivoting: bool, full_matrices: bool, compute_q: bool
) -> tuple:
    """dQ = Q (Ω - F) + dA R⁻¹, F = Qᴴ dA R⁻¹, Ω antihermitian from F's lower triangle."""
    (x,) = primals
    if type(tangents[0]) is Zero:
        outs = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, compute_q=compute_q)
        return outs, [Zero(y.aval.tangent()) for y in outs]
    outs = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, compute_q=True)
    m, n = x.aval.shape[-2:]
    q, r = outs[:2]
    da = tangents[0]
    if pivoting:
        da = columns_in(da, outs[2])
    # The first columns alone decide Q.
    square = slice_in_dim(r, 0, smallest(m, n), axis=-1)
    if full_matrices and m > n:
        square = slice_in_dim(square, 0, n, axis=-2)
    scaled = triangular_solve(square, slice_in_dim(da, 0, smallest(m, n), axis=-1))
    if full_matrices and m > n:
        # Q's other columns are any basis of the rest: they turn with the first ones alone.
        nothing = zeros(ShapedArray((), x.aval.dtype))
        scaled = pad(scaled, nothing, [(0, 0, 0)] * (x.aval.ndim - 1) + [(0, m - n, 0)])
    inner = batch_matmul(adjoint(q), scaled)
    below = lower_part(inner, -1)
    omega = sub(below, adjoint(below))
    if dtypes.is_complex(x.aval.dtype):
        # R's diagonal stays real: the imaginary part of F's diagonal belongs to Q.
        diagonal = diagonal_part(inner)
        omega = add(omega, sub(diagonal, convert(real(diagonal), x.aval.dtype)))
    dq = add(batch_matmul(q, sub(omega, inner)), scaled)
    dr = sub(batch_matmul(adjoint(q), da), batch_matmul(omega, r))
    tangents_out = [dq, dr, *[Zero(y.aval.tangent()) for y in outs[2:]]]
    first = 0 if compute_q else 1
    return outs[first:], tangents_out[first:]


def columns_in(x: Any, order: Any) -> Any:
    """Columns of `x` in `order`."""
    return transposed(permute_rows(transposed(x), order))


def _qr_prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
    if not params["compute_q"] or used[0]:
        return None
    return {**params, "compute_q": False}, [0], list(range(1, len(used)))


qr_p = decomposition("qr", _qr_abstract, _qr_reference, _qr_jvp, prune=_qr_prune)


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple:
    """The QR factors of matrices: (q, r) with x = q r, q with orthonormal columns and r upper
    triangular.

    x: [..., m, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for others
    that have elements). pivoting: exchange columns so that r's diagonal falls in size; the result
    is (q, r, order) with x[:, order] = q r. full_matrices: q [..., m, m] and r [..., m, n]; else q
    [..., m, k] and r [..., k, n], k = min(m, n). use_magma: one implementation (LAPACK) serves.
    Differentiable but for tall matrices with full_matrices. Raises TypeError for less than two
    axes. Source: LAPACK's geqrf and geqp3.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> q, r = linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.abs(r).round(4)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    x = as_array(x)
    if narrow_and_empty(x):
        q, r, *order = qr(
            convert(x, dtypes.float32), pivoting=pivoting, full_matrices=full_matrices
        )
        return (convert(q, x.aval.dtype), convert(r, x.aval.dtype), *order)
    return tuple(
        qr_p.bind(
            x,
            pivoting=bool(pivoting),
            full_matrices=bool(full_matrices),
            compute_q=True,
        )
    )


# ------------------------------------------------------------------ householder_product
def _householder_abstract(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_matrix("householder_product", a, narrow=TypeError)
    if (
        a.dtype != taus.dtype
        or not taus.shape
        or taus.shape[:-1] != a.shape[:-2]
        or taus.shape[-1] > min(a.shape[-2:])
    ):
        raise TypeError(
            f"householder_product: taus {taus.str_short()} do not fit a {a.str_short()}."
        )
    if a.shape[-2] < a.shape[-1]:
        raise TypeError(
            f"householder_product: a {a.str_short()} has more columns than rows; its product has "
            "only as many columns as rows."
        )
    return a.strong()


def _householder_reference(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    from scipy.linalg.lapack import get_lapack_funcs

    if not a.size:
        return a.copy()
    name = "ungqr" if dtypes.is_complex(a.dtype) else "orgqr"
    (function,) = get_lapack_funcs((name,), (a,))

    def one(a: np.ndarray, taus: np.ndarray) -> tuple:
        return (np.ascontiguousarray(function(a, taus)[0]),)

    return each_matrix(one, a, taus)[0]


householder_product_p = decomposition(
    "householder_product", _householder_abstract, _householder_reference, several=False
)


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of Householder reflectors, as `qr` and `hessenberg` leave
    them.

    a: [..., m, n] with m >= n, the reflectors below the diagonal, floats or complex numbers of 32
    or 64 bits each (TypeError for others). taus: [..., k] with k <= n, their factors.
    Result: [..., m, n], orthonormal columns. No derivative is known (NotImplementedError). Raises
    TypeError for shapes that do not fit. Source: LAPACK's orgqr and ungqr.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> jnp.abs(linalg.householder_product(jnp.zeros((2, 2)), jnp.array([2.0, 0.0])))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return householder_product_p.bind(as_array(a), as_array(taus))
