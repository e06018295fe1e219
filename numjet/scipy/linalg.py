"""numjet.scipy.linalg: factorizations and solvers with SciPy's arguments, and special matrices.

Arguments that only save memory (overwrite_a, check_finite, ...) are accepted and ignored.
"""

from __future__ import annotations

from typing import Any

from numjet.api.compiled.hashed import hold
from numjet.api.compiled.shown import CALLS, FLAG, Shown, as_call, shown, wanted
from numjet.api.derivatives.implicit import custom_linear_solve
from numjet.api.eager.large import wrap_public
from numjet.core import dtypes
from numjet.core.structural import scalar
from numjet.core.trace import Tracer
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import asarray, taking_lists
from numjet.numpy.elementwise import add
from numjet.numpy.factorizations import adjoint, along, matrices
from numjet.numpy.functional import vectorize
from numjet.numpy.index_tricks import diag
from numjet.numpy.indexing import getitem
from numjet.numpy.jax_forms_linalg import lu_solve_call
from numjet.numpy.logic import where
from numjet.numpy.products import kron, matmul
from numjet.numpy.promote import as_arrays, broadcast, cast, one_array, promote_inexact, strong
from numjet.numpy.ranges import eye, tril, triu
from numjet.numpy.shape import expand_dims, matrix_transpose, ravel, reshape
from numjet.numpy.sorting import argsort
from numjet.ops import linalg as core
from numjet.ops.arrange import broadcast_shapes, stop_gradient
from numjet.ops.complex_ops import conjugate as conjugate_of
from numjet.scipy.matrix_functions import (
    expm,
    expm_frechet,
    funm,
    refuse_integers,
    right_polar,
    rsf2csf,
    schur,
    sqrtm,
)
from numjet.scipy.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)


# ------------------------------------------------------------------ factorizations
@taking_lists
def cholesky(
    a: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """The triangular factor of Hermitian positive definite matrices: a = Uᴴ U, or L Lᴴ.

    a: [..., n, n], of which the triangle asked for is read; integers become floats. lower: give L
    instead of U. overwrite_a and check_finite are taken for SciPy's sake and have no effect.
    Result: a's shape; NaN where a is not positive definite (SciPy raises). Differentiable. Raises
    ValueError for matrices that are not square. Computed by `lax.linalg.cholesky`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, True, TypeError if lower else ValueError)
    # Only the named triangle is read, as in SciPy.
    factor = core.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


@taking_lists
def cho_factor(
    a: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, bool]:
    """A Cholesky factor of a and which triangle it is, for `cho_solve`.

    a: [..., n, n], Hermitian and positive definite; integers become floats. lower: take L of a = L
    Lᴴ instead of U of a = Uᴴ U. overwrite_a and check_finite are taken for SciPy's sake and have no
    effect. Result: (factor, lower); the other triangle is zero. Differentiable. Raises ValueError
    for matrices that are not square. Computed by `lax.linalg.cholesky`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    (Array([[2., 1.],
           [0., 2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The x with a x = b, from `cho_factor(a)`.

    c_and_lower: what cho_factor gave. b: [n] or [..., n, k]. overwrite_b and check_finite have no
    effect. Result: b's shape. Differentiable. Raises ValueError for sizes that do not fit. Integers
    become floats. Computed by `lax.linalg.triangular_solve`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> factor = linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    >>> linalg.cho_solve(factor, jnp.array([4.0, 4.0])).round(4)
    Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    b = asarray(b) if isinstance(b, (list, tuple)) else b
    c, b = promote_inexact(*as_arrays("cho_solve", c, b))
    if FLAG.uses and wanted():
        return _both.call((c, b, lower), {})
    return _by_both(c, b, lower)


def _by_both(c: Any, b: Any, lower: bool) -> Any:
    """By the factor and its transpose."""
    first = _solve_triangular(c, b, trans=0 if lower else "C", lower=lower)
    return _solve_triangular(c, first, trans="C" if lower else 0, lower=lower)


_both = Shown(_by_both, "_cho_solve")


@taking_lists
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The LU factors of matrices in one, with the row exchanges, for `lu_solve`.

    a: [..., n, n]; integers become floats. overwrite_a and check_finite are taken for SciPy's sake
    and have no effect. Result: (factors, int32 pivots). Differentiable in the factors. Raises
    ValueError for matrices that are not square. Computed by `lax.linalg.lu`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.lu_factor(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    (Array([[2. , 1. ],
           [0.5, 2.5]], dtype=float32), Array([0, 1], dtype=int32))
    """
    factors, pivots, _ = core.lu(matrices("lu_factor", a, flat=TypeError))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The x with a x = b, from `lu_factor(a)`.

    lu_and_piv: what lu_factor gave. b: [n] or [..., n, k]. trans: 1 solves aᵀ x = b, 2 aᴴ x = b
    (ValueError for others). overwrite_b and check_finite have no effect. Result: b's shape.
    Differentiable. Raises ValueError for sizes that do not fit. Integers become floats. Computed by
    `lax.linalg.triangular_solve`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> factors = linalg.lu_factor(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> linalg.lu_solve(factors, jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    factors, pivots = lu_and_piv
    b = asarray(b) if isinstance(b, (list, tuple)) else b
    factors, b = promote_inexact(*as_arrays("lu_solve", factors, b))
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    n = factors.aval.shape[-1]
    vector = b.aval.ndim == 1 or b.aval.ndim == factors.aval.ndim - 1 and factors.aval.ndim > 2
    if not b.aval.ndim or b.aval.shape[-1 if vector else -2] != n:
        raise ValueError(
            f"lu_solve: factors {factors.aval.str_short()} and b {b.aval.str_short()} do not fit: "
            f"b must have {n} rows."
        )
    if vector and not trans and factors.aval.ndim == 2 and FLAG.uses and wanted():
        order = core.lu_pivots_to_permutation(one_array("lu_solve", pivots), n)
        return lu_solve_call.call((factors, order, b, 0), {})
    x = expand_dims(b, -1) if vector else b
    order = core.lu_pivots_to_permutation(one_array("lu_solve", pivots), n)
    if trans == 0:
        x = _rows(x, order)
        x = solve_triangular(factors, x, lower=True, unit_diagonal=True)
        x = solve_triangular(factors, x)
    else:
        kind = "T" if trans == 1 else "C"
        x = solve_triangular(factors, x, trans=kind)
        x = solve_triangular(factors, x, trans=kind, lower=True, unit_diagonal=True)
        x = _rows(x, argsort(order))
    return lax.squeeze(x, (x.aval.ndim - 1,)) if vector else x


def _rows(x: Any, order: Any) -> Any:
    return getitem(x, (..., order, slice(None))) if order.aval.ndim == 1 else along(x, order)


@taking_lists
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The LU factors of matrices: (p, l, u) with a = p l u.

    a: [..., m, n]; integers become floats. permute_l: (p l, u). overwrite_a and check_finite are
    taken for SciPy's sake and have no effect. Result: p a permutation matrix, l with a diagonal of
    ones, u upper triangular. Differentiable. Raises ValueError for what is no matrix. Computed by
    `lax.linalg.lu`. SciPy's p_indices is not there.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> p, l, u = linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> u
    Array([[4., 4.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("lu", a, flat=TypeError)
    factors, _, order = core.lu(x)
    m, n = x.aval.shape[-2:]
    k = min(m, n)
    low = tril(getitem(factors, (..., slice(None), slice(0, k))), -1)
    low = where(eye(m, k, dtype=dtypes.bool_), scalar(1, x.aval.dtype), low)
    up = triu(getitem(factors, (..., slice(0, k), slice(None))))
    index = lax.broadcasted_iota(order.aval.dtype, (*order.aval.shape, m), order.aval.ndim)
    # Row order[i] of a is row i of l u.
    p = lax.eq(index, broadcast(expand_dims(order, -1), index.aval.shape))
    p = cast(matrix_transpose(p), dtypes.real_of(x.aval.dtype))
    return (matmul(p, low), up) if permute_l else (p, low, up)


@taking_lists
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The QR factors of matrices: (q, r) with a = q r.

    a: [..., m, n]; integers become floats. mode: 'full', 'economic' (min(m, n) columns) or 'r' (r
    alone, in a tuple); ValueError for others. pivoting: (q, r, order) with a[:, order] = q r.
    overwrite_a, lwork and check_finite have no effect. Differentiable but for tall matrices in mode
    'full' (NotImplementedError). Computed by `lax.linalg.qr`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> q, r = linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.abs(r).round(4)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    x = matrices("qr", a, flat=TypeError)
    if mode not in ("full", "economic", "r"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}. Use 'full', 'economic' or 'r'."
        )
    parts = core.qr(x, full_matrices=mode != "economic", pivoting=pivoting)
    return tuple(parts[1:]) if mode == "r" else tuple(parts)


@taking_lists
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition: (u, s, vᴴ) with a = u diag(s) vᴴ.

    a: [..., m, n]; integers become floats. full_matrices: u [..., m, m] and vᴴ [..., n, n]; else
    [..., m, k] and [..., k, n], k = min(m, n). compute_uv: False gives s alone. overwrite_a,
    check_finite and lapack_driver have no effect. Result: s real, descending. Derivative: of s
    always; of u and v with full_matrices=False, growing without bound where singular values meet.
    Raises ValueError for what is no matrix. Computed by `lax.linalg.svd`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.svd(jnp.array([[3.0, 0.0], [4.0, 0.0]]), compute_uv=False).round(4)
    Array([5., 0.], dtype=float32)
    """
    if FLAG.uses and wanted():  # within its own call
        return core.svd(matrices("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)
    out = linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


@taking_lists
def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues (rising) and eigenvectors of Hermitian matrices: (w, v) with a v = v w.

    a: [..., n, n]; of matrices that are not Hermitian the Hermitian part counts, whichever triangle
    lower names. eigvals_only: w alone. b, eigvals and type must be left as they are
    (NotImplementedError): generalized problems and subsets are not there. overwrite_a, overwrite_b,
    turbo and check_finite have no effect. Result: w real [..., n], v [..., n, n] in columns.
    Derivative: grows without bound where eigenvalues meet. Raises ValueError for matrices that are
    not square. Integers become floats. Computed by `lax.linalg.eigh`. SciPy's subset_by_value,
    `subset_by_index` and `driver` are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True).round(4)
    Array([1., 3.], dtype=float32)
    """
    if b is not None or eigvals is not None or type != 1:
        raise NotImplementedError(
            "eigh: generalized problems and subsets are not supported. Factor "
            "b with cholesky and transform a, or slice the result."
        )
    x = matrices("eigh", a, True, TypeError, TypeError)
    v, w = core.eigh(x, lower=lower, symmetrize_input=True)
    return w if eigvals_only else (w, v)


def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Hessenberg form of matrices, zero below the first subdiagonal.

    a: [..., n, n], of floats (TypeError for integers). calc_q: (h, q) with a = q h qᴴ. overwrite_a
    and check_finite are taken for SciPy's sake and have no effect. No derivative is known
    (NotImplementedError). Raises ValueError for matrices that are not square. Computed by
    `lax.linalg.hessenberg`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.hessenberg(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    Array([[2., 1.],
           [1., 3.]], dtype=float32)
    """
    given = one_array("hessenberg", a)
    if given.aval.ndim and not given.aval.shape[-1]:
        return (given, given) if calc_q else given
    x = matrices("hessenberg", given, True, TypeError)
    refuse_integers("hessenberg", given)
    n = x.aval.shape[-1]
    packed, taus = core.hessenberg(x)
    h = as_call("triu", packed, -1) if FLAG.uses and wanted() else triu(packed, -1)
    if not calc_q:
        return h
    q = broadcast(eye(n, dtype=x.aval.dtype), x.aval.shape)
    if n < 2:
        return h, q
    inner = core.householder_product(getitem(packed, (..., slice(1, None), slice(0, n - 1))), taus)
    return h, q.at[..., 1:, 1:].set(inner)


# ------------------------------------------------------------------ systems
@taking_lists
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """The x with a x = b, for triangular a.

    a: [..., n, n], of which one triangle is read, the upper one unless lower. b: [n] or [..., n,
    k]. trans: 1 or 'T' solves aᵀ x = b, 2 or 'C' aᴴ x = b (ValueError for others). unit_diagonal:
    the diagonal counts as ones. overwrite_b, debug and check_finite have no effect. Result: b's
    shape; infinite or NaN for a singular a. Differentiable in both. Integers become floats.
    Computed by `lax.linalg.triangular_solve`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    kinds = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    if trans not in kinds:
        raise ValueError(
            f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}."
        )
    a, b = promote_inexact(*as_arrays("solve_triangular", a, b))
    a = matrices("solve_triangular", a, True)
    vector = b.aval.ndim == 1
    x = expand_dims(b, -1) if vector else b
    if x.aval.ndim < 2 or x.aval.shape[-2] != a.aval.shape[-1]:
        raise ValueError(
            f"solve_triangular: a {a.aval} and b {b.aval} do not fit: b must have "
            f"{a.aval.shape[-1]} rows."
        )
    lead = broadcast_shapes(a.aval.shape[:-2], x.aval.shape[:-2])
    a = broadcast(a, (*lead, *a.aval.shape[-2:]))
    x = broadcast(x, (*lead, *x.aval.shape[-2:]))
    kind = kinds[trans]
    out = core.triangular_solve(
        a,
        x,
        left_side=True,
        lower=lower,
        transpose_a=kind > 0,
        conjugate_a=kind == 2,
        unit_diagonal=unit_diagonal,
    )
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Any:
    """The x with a x = b.

    a: [..., n, n]; b: [n] or [..., n, k]; integers become floats. assume_a: 'gen' (LU), 'pos'
    (Cholesky, for positive definite a), 'sym' or 'her' (ValueError for others). lower: the triangle
    that is read with 'pos'. overwrite_a, overwrite_b, debug and check_finite have no effect.
    Result: b's shape; NaN or infinite where a is singular (SciPy raises). Differentiable in both.
    Raises ValueError for sizes that do not fit. Computed by `lax.linalg.solve`. SciPy's
    `transposed` is not there.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}.")
    if assume_a != "pos":
        return linalg.solve(a, b)
    a, b = promote_inexact(*as_arrays("solve", a, b))
    if not (isinstance(a, Tracer) or isinstance(b, Tracer)) or not b.aval.ndim:
        return cho_solve(cho_factor(a, lower=lower), b)
    return _solve_positive(a, b, lower)


def _solve_positive(a: Any, b: Any, lower: bool) -> Any:
    """`solve` by Cholesky factors, with the derivatives of the system: -a⁻¹ da x, as for others."""
    if b.aval.ndim == 1 < a.aval.ndim - 1:
        return getitem(_solve_positive(a, expand_dims(b, 1), lower), (..., 0))
    factor = cho_factor(stop_gradient(a), lower=lower)
    if b.aval.shape[-2 if b.aval.ndim > 1 else 0] != a.aval.shape[-1]:
        return cho_solve(factor, b)  # which says so
    if b.aval.ndim > 1:
        batch = broadcast_shapes(a.aval.shape[:-2], b.aval.shape[:-2])
        b = broadcast(b, (*batch, *b.aval.shape[-2:]))
    solved = lambda b: cho_solve(factor, b)  # noqa: E731
    return custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        lambda _, b: solved(b),
        lambda _, b: conjugate_of(solved(conjugate_of(b))),
    )


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse of matrices.

    a: [..., n, n]; integers become floats. overwrite_a and check_finite are taken for SciPy's sake
    and have no effect. Result: a's shape; NaN or infinite where a is singular (SciPy raises).
    Derivative: -a⁻¹ da a⁻¹. Raises ValueError for matrices that are not square. Computed by
    `lax.linalg.solve`. SciPy's `assume_a` and `lower` are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant of matrices.

    a: [..., n, n]; integers become floats. overwrite_a and check_finite are taken for SciPy's sake
    and have no effect. Result: [...]. By LU factors. Derivative: det(a) tr(a⁻¹ da), also for
    singular a. Raises ValueError for matrices that are not square. Computed by `lax.linalg.lu`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.det(jnp.array([[2.0, 1.0], [1.0, 3.0]])).round(4)
    Array(5., dtype=float32)
    """
    return linalg.det(a)


# ------------------------------------------------------------------ functions of matrices


@taking_lists
def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: Any = None,
    max_iterations: Any = None,
) -> tuple[Any, Any]:
    """The polar decomposition: (u, p) with a = u p, or a = p u.

    a: [m, n]. side: 'right' (a = u p) or 'left'. method: 'qdwh' or 'svd', both by singular values;
    eps and max_iterations have no effect. Integers are refused (ValueError, TypeError by 'svd').
    Result: u with orthonormal columns (or rows), p Hermitian
    and positive semidefinite. Differentiable. Raises ValueError for other words, and
    NotImplementedError by 'qdwh' of m < n on the right, of m >= n on the left.
    Computed by `lax.linalg.svd`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> u, p = linalg.polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> jnp.diag(p).round(4)
    Array([3., 2.], dtype=float32)
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}.")
    if method not in ("qdwh", "svd"):
        raise ValueError(
            f"polar: Unknown polar decomposition method {method!r}. Use 'qdwh' or 'svd'; either "
            "goes by singular values."
        )
    x = strong(one_array("polar", a))
    if x.aval.ndim < 2:
        raise ValueError("polar: the input `a` must be at least a 2-D array.")
    m, n = x.aval.shape[-2:]
    if method == "qdwh" and (m < n if side == "right" else m >= n):
        raise NotImplementedError(
            f"polar: method 'qdwh' takes no matrix {m} by {n} with side={side!r}. Use 'svd'."
        )
    refuse_integers("polar", x, TypeError if method == "svd" else ValueError)
    if method == "qdwh" and x.aval.dtype.itemsize < 4:
        raise NotImplementedError(
            f"polar: {x.aval.dtype} is not supported. Convert with .astype(jnp.float32)."
        )
    if side == "right":
        return right_polar(x)
    u, p = right_polar(adjoint(x))
    return adjoint(u), p


@taking_lists
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """The X with A X + X B = C, as one linear system for the elements of X.

    A: [..., m, m], B: [..., n, n], C: [..., m, n], whose leading axes broadcast; integers become
    floats. method: 'schur' or 'eigen', which give the same (ValueError for others); tol: taken for
    JAX's sake. Costs (m n)³ operations. Result: [..., m, n]; NaN or infinite where A and -B share
    an eigenvalue. Differentiable. Raises ValueError for what are no matrices of these sizes.
    Computed by `lax.linalg.solve`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> A = jnp.array([[1.0, 0.0], [0.0, 3.0]])
    >>> linalg.solve_sylvester(A, A, jnp.eye(2)).round(4)
    Array([[0.5   , 0.    ],
           [0.    , 0.1667]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(
            f"solve_sylvester: Unrecognized method {method!r}. The two valid methods are either "
            '"schur" or "eigen"; both give the same solution.'
        )
    a, b, c = promote_inexact(*as_arrays("solve_sylvester", A, B, C))
    for name, x in (("A", a), ("B", b)):
        if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
            raise ValueError(f"solve_sylvester: {name} must be a square matrix, got "
                             f"{x.aval.str_short()}.")
    m, n = a.aval.shape[-1], b.aval.shape[-1]
    if c.aval.shape[-2:] != (m, n):
        raise ValueError(f"solve_sylvester: C must have shape {(m, n)}, got {c.aval.str_short()}.")
    return vectorize(_sylvester, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _sylvester(a: Any, b: Any, c: Any) -> Any:
    """`solve_sylvester` of matrices."""
    m, n = c.aval.shape
    system = add(
        kron(a, eye(n, dtype=a.aval.dtype)), kron(eye(m, dtype=a.aval.dtype), matrix_transpose(b))
    )
    return reshape(linalg.solve(system, ravel(c)), (m, n))


# ------------------------------------------------------------------ other forms of the factors
@taking_lists
def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """The eigenvalues (and vectors) of a symmetric tridiagonal matrix, by its dense form.

    d: [..., n], the diagonal; e: [..., n - 1], the one beside it, of one dtype of 32 or 64 bits
    (TypeError); leading axes broadcast. eigvals_only: the values alone. select: 'a' all, 'v' those
    in the interval select_range, 'i' those of the indices select_range. tol and key have no effect.
    Result: w [..., n] rising, v [..., n, n]. Differentiable, as `eigh`. Raises ValueError for sizes
    that do not fit. Computed by `lax.linalg.eigh`. SciPy's `lapack_driver` is not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.eigh_tridiagonal(jnp.ones(2), jnp.ones(1), eigvals_only=True).round(4)
    Array([0., 2.], dtype=float32)
    """
    d, e = (strong(x) for x in as_arrays("eigh_tridiagonal", d, e))
    if (e.aval.shape or (-1,))[-1] + 1 != (d.aval.shape or (-1,))[-1]:
        raise TypeError(
            "eigh_tridiagonal: e must have one element less than d in the last axis, got "
            f"{d.aval} and {e.aval}."
        )
    if d.aval.dtype != e.aval.dtype:
        raise TypeError(f"eigh_tridiagonal: d and e must have one dtype, got {d.aval}, {e.aval}.")
    if not dtypes.is_inexact(d.aval.dtype) or d.aval.dtype.itemsize < 4:
        raise TypeError(
            "Only float32 and float64 inputs are supported as inputs to eigh_tridiagonal, and "
            f"complex64 and complex128: got {d.aval.str_short()}. Convert with .astype()."
        )
    if select not in ("a", "i", "v"):
        raise ValueError(
            f"eigh_tridiagonal: select must have a value in 'a', 'i' and 'v', got {select!r}."
        )
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: select='v' has as many results as values tell. Use 'a' and filter "
            "the result."
        )
    if select == "i" and (select_range is None or select_range[0] > select_range[1]):
        raise ValueError(
            "eigh_tridiagonal: select='i' needs select_range=(first, last), ascending, got "
            f"{select_range!r}."
        )
    whole = vectorize(_tridiagonal, signature="(n),(m)->(n,n)")(d, e)
    v, w = core.eigh(whole, lower=True, symmetrize_input=False)
    if select == "i":
        lo, hi = select_range
        w, v = getitem(w, (..., slice(lo, hi + 1))), getitem(v, (..., slice(lo, hi + 1)))
    return w if eigvals_only else (w, v)


def _tridiagonal(d: Any, e: Any) -> Any:
    """The matrix with `d` on its diagonal, `e` below it and its conjugate above it."""
    return add(add(diag(d), diag(e, -1)), diag(conjugate_of(e), 1))


@taking_lists
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """The product of a matrix with the q of a's QR factors, without q: (c q, r), or (q c, r).

    a: [m, n]. c: a matrix, or a vector. mode: 'right' gives c q, 'left' q c (ValueError for
    others). pivoting: exchange a's columns; the order is a third result. conjugate: take q's
    conjugate. overwrite_a and overwrite_c have no effect. Computed by `lax.linalg.qr`.
    Differentiable, as `scipy.linalg.qr`. A complex c gives a complex product also of a real a
    (SciPy drops the imaginary part).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> qc, r = linalg.qr_multiply(jnp.eye(2), jnp.array([1.0, 2.0]))
    >>> jnp.abs(qc)
    Array([1., 2.], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}.")
    (c,) = promote_inexact(one_array("qr_multiply", c))
    a = one_array("qr_multiply", a)
    if a.ndim >= 2 and c.ndim:
        m, n = a.shape[-2:]
        got = c.shape[-1 if mode == "right" else -2 if c.ndim > 1 else -1]
        # q has min(m, n) columns
        want = m if mode == "right" else min(m, n)
        if got != want:
            raise ValueError(
                f"qr_multiply: Array shapes are not compatible: q of a {tuple(a.shape)} takes "
                f"{want} {'columns' if mode == 'right' else 'rows'} of c, which has {got}."
            )
    parts = qr(a, mode="economic", pivoting=pivoting)
    q = conjugate_of(parts[0]) if conjugate else parts[0]
    return (matmul(q, c) if mode == "left" else matmul(c, q), *parts[1:])


_solve_triangular = solve_triangular
for _name in ("svd", "eigh", "hessenberg"):
    globals()[_name] = shown(globals()[_name], CALLS[__name__][_name], module=__name__)
# Those with one answer: eigenvectors could be others from one call to the next. Not cho_factor,
# whose `lower` stays a bool: its `cholesky` is.
wrap_public(
    globals(), __name__,
    ("block_diag cho_solve cholesky circulant companion convolution_matrix det dft "
     "expm expm_frechet fiedler fiedler_companion hankel helmert hilbert inv invhilbert invpascal "
     "leslie lu lu_factor lu_solve pascal polar qr rsf2csf solve solve_triangular sqrtm "
     "toeplitz").split(),
    large=False,
)  # fmt: skip

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]

hold(globals(), __name__)


def __dir__() -> list[str]:
    return [*__all__]
