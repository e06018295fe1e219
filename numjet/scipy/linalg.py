"""numjet.scipy.linalg: factorizations and solvers with SciPy's arguments, and special matrices.

Arguments that only save memory (overwrite_a, check_finite, ...) are accepted and ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.custom import custom_jvp
from numjet.core import dtypes
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import arange, eye, tril, triu
from numjet.numpy.elementwise import add, divide, maximum, multiply, negative, subtract, where
from numjet.numpy.index_tricks import diag
from numjet.numpy.indexing import getitem
from numjet.numpy.linalg import adjoint, along, matrices
from numjet.numpy.products import kron, matmul
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    cast,
    one_array,
    promote_inexact,
    strong,
)
from numjet.numpy.reductions import max as max_, sum as sum_
from numjet.numpy.shape import (
    concatenate,
    expand_dims,
    matrix_transpose,
    ravel,
    reshape,
)
from numjet.numpy.sorting import argsort
from numjet.ops import linalg as core
from numjet.ops.complex_ops import conjugate as conjugate_of
from numjet.ops.while_loop import fori_loop
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
    ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, True)
    # Only the named triangle is read, as in SciPy.
    factor = core.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


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
    for matrices that are not square.

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
    effect. Result: b's shape. Differentiable. Raises ValueError for sizes that do not fit.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> factor = linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    >>> linalg.cho_solve(factor, jnp.array([4.0, 4.0])).round(4)
    Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b = promote_inexact(*as_arrays("cho_solve", c, b))
    first = solve_triangular(c, b, trans=0 if lower else "C", lower=lower)
    return solve_triangular(c, first, trans="C" if lower else 0, lower=lower)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The LU factors of matrices in one, with the row exchanges, for `lu_solve`.

    a: [..., n, n]; integers become floats. overwrite_a and check_finite are taken for SciPy's sake
    and have no effect. Result: (factors, int32 pivots). Differentiable in the factors. Raises
    ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.lu_factor(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    (Array([[2. , 1. ],
           [0.5, 2.5]], dtype=float32), Array([0, 1], dtype=int32))
    """
    factors, pivots, _ = core.lu(matrices("lu_factor", a))
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
    Differentiable. Raises ValueError for sizes that do not fit.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> factors = linalg.lu_factor(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> linalg.lu_solve(factors, jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    factors, pivots = lu_and_piv
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


def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The LU factors of matrices: (p, l, u) with a = p l u.

    a: [..., m, n]; integers become floats. permute_l: (p l, u). overwrite_a and check_finite are
    taken for SciPy's sake and have no effect. Result: p a permutation matrix, l with a diagonal of
    ones, u upper triangular. Differentiable.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> p, l, u = linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> u
    Array([[4., 4.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("lu", a)
    factors, _, order = core.lu(x)
    m, n = x.aval.shape[-2:]
    k = min(m, n)
    low = tril(getitem(factors, (..., slice(None), slice(0, k))), -1)
    low = where(eye(m, k, dtype=dtypes.bool_), scalar(1, x.aval.dtype), low)
    up = triu(getitem(factors, (..., slice(0, k), slice(None))))
    index = lax.broadcasted_iota(order.aval.dtype, (*order.aval.shape, m), order.aval.ndim)
    # Row order[i] of a is row i of l u.
    p = cast(lax.eq(index, broadcast(expand_dims(order, -1), index.aval.shape)), x.aval.dtype)
    p = matrix_transpose(p)
    return (matmul(p, low), up) if permute_l else (p, low, up)


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
    'full' (NotImplementedError).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> q, r = linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.abs(r).round(4)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    x = matrices("qr", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: unsupported mode {mode!r}. Use 'full', 'economic' or 'r'.")
    parts = core.qr(x, full_matrices=mode != "economic", pivoting=pivoting)
    return tuple(parts[1:]) if mode == "r" else tuple(parts)


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

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.svd(jnp.array([[3.0, 0.0], [4.0, 0.0]]), compute_uv=False).round(4)
    Array([5., 0.], dtype=float32)
    """
    out = linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


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
    not square.

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
    x = matrices("eigh", a, True)
    v, w = core.eigh(x, lower=lower, symmetrize_input=True)
    return w if eigvals_only else (w, v)


def schur(a: Any, output: str = "real") -> list[Any]:
    """The Schur form: [t, z] with a = z t zᴴ, z unitary.

    a: [n, n]; integers become floats. output: 'real', t with 2 by 2 blocks for pairs of complex
    eigenvalues, or 'complex', t upper triangular (ValueError for others). No derivative is known
    (NotImplementedError). Raises ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}.")
    x = matrices("schur", a, True)
    if output == "complex" and not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return core.schur(x)


def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Hessenberg form of matrices, zero below the first subdiagonal.

    a: [..., n, n]; integers become floats. calc_q: (h, q) with a = q h qᴴ. overwrite_a and
    check_finite are taken for SciPy's sake and have no effect. No derivative is known
    (NotImplementedError). Raises ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.hessenberg(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    Array([[2., 1.],
           [1., 3.]], dtype=float32)
    """
    x = matrices("hessenberg", a, True)
    n = x.aval.shape[-1]
    packed, taus = core.hessenberg(x)
    h = triu(packed, -1)
    if not calc_q:
        return h
    inner = core.householder_product(getitem(packed, (..., slice(1, None), slice(0, n - 1))), taus)
    q = broadcast(eye(n, dtype=x.aval.dtype), x.aval.shape)
    return h, q.at[..., 1:, 1:].set(inner)


# ------------------------------------------------------------------ systems
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
    shape; infinite or NaN for a singular a. Differentiable in both.

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
    a, b = matrices("solve_triangular", a, True), strong(b)
    vector = b.aval.ndim == 1
    x = expand_dims(b, -1) if vector else b
    if x.aval.ndim < 2 or x.aval.shape[-2] != a.aval.shape[-1]:
        raise ValueError(
            f"solve_triangular: a {a.aval} and b {b.aval} do not fit: b must have "
            f"{a.aval.shape[-1]} rows."
        )
    lead = np.broadcast_shapes(a.aval.shape[:-2], x.aval.shape[:-2])
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
    Raises ValueError for sizes that do not fit.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}.")
    if assume_a != "pos":
        return linalg.solve(a, b)
    return cho_solve(cho_factor(a, lower=lower), b)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse of matrices.

    a: [..., n, n]; integers become floats. overwrite_a and check_finite are taken for SciPy's sake
    and have no effect. Result: a's shape; NaN or infinite where a is singular (SciPy raises).
    Derivative: -a⁻¹ da a⁻¹. Raises ValueError for matrices that are not square.

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
    singular a. Raises ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.det(jnp.array([[2.0, 1.0], [1.0, 3.0]])).round(4)
    Array(5., dtype=float32)
    """
    return linalg.det(a)


# ------------------------------------------------------------------ functions of matrices
# Coefficients of the (13, 13) Padé approximant and its bound on the norm (Higham 2005).
_PADE = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
    129060195264000,
    10559470521600,
    670442572800,
    33522128640,
    1323241920,
    40840800,
    960960,
    16380,
    182,
    1,
)


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The exponential of square matrices, Σ Aᵏ / k!.

    A: [..., n, n]; integers become floats. upper_triangular: A's lower part counts as zeros.
    max_squarings: NaN where the norm asks for more. Result: A's shape. Differentiable in both
    modes. By scaling and squaring of a Padé approximant; Raises ValueError for matrices that are
    not square. Source: Higham, The scaling and squaring method for the matrix exponential revisited
    (2005).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("expm", A, True)
    n = x.aval.shape[-1]
    bound = 5.371920351148152 if x.aval.dtype in (dtypes.float64, dtypes.complex128) else 3.9257248
    size = max_(sum_(lax.abs(x), -2), -1)
    # Below the bound nothing is squared; the logarithm of zero would be seen by debug_infs.
    steps = lax.ceil(
        lax.div(
            lax.log(maximum(divide(size, bound), 1)),
            lax.full(size.aval.shape, math.log(2), size.aval.dtype),
        )
    )
    scale = lax.exp2(negative(steps))
    x = multiply(x, cast(expand_dims(scale, (-2, -1)), x.aval.dtype))
    one = broadcast(eye(n, dtype=x.aval.dtype), x.aval.shape)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    b = [float(v) / _PADE[0] for v in _PADE]

    def poly(c6: float, c4: float, c2: float, c0: float) -> Any:
        return add(
            add(multiply(c6, x6), multiply(c4, x4)), add(multiply(c2, x2), multiply(c0, one))
        )

    def poly0(c6: float, c4: float, c2: float) -> Any:
        return add(add(multiply(c6, x6), multiply(c4, x4)), multiply(c2, x2))

    u = matmul(x, add(matmul(x6, poly0(b[13], b[11], b[9])), poly(b[7], b[5], b[3], b[1])))
    v = add(matmul(x6, poly0(b[12], b[10], b[8])), poly(b[6], b[4], b[2], b[0]))
    top, bottom = add(u, v), subtract(v, u)
    out = solve_triangular(bottom, top) if upper_triangular else linalg.solve(bottom, top)
    wide = expand_dims(steps, (-2, -1))
    for k in range(max_squarings):
        out = where(
            lax.gt(broadcast(wide, out.aval.shape), lax.full(out.aval.shape, k, wide.aval.dtype)),
            matmul(out, out),
            out,
        )
    return where(
        lax.gt(
            broadcast(wide, out.aval.shape),
            lax.full(out.aval.shape, max_squarings, wide.aval.dtype),
        ),
        np.full((), np.nan, out.aval.dtype),  # a number would be converted: seen by debug_nans
        out,
    )


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The derivative of expm at A in the direction E.

    A, E: [n, n] of one shape (ValueError). method has no effect: it is the corner of expm([[A, E],
    [0, A]]). compute_expm: False gives the derivative alone. Result: (expm(A), derivative).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a, e = promote_inexact(*as_arrays("expm_frechet", A, E))
    a, e = matrices("expm_frechet", a, True), strong(e)
    if a.aval.shape != e.aval.shape:
        raise ValueError(f"expm_frechet: A and E must have one shape, got {a.aval} and {e.aval}.")
    n = a.aval.shape[-1]
    zero = lax.full(a.aval.shape, 0, a.aval.dtype)
    both = expm(concatenate([concatenate([a, e], -1), concatenate([zero, a], -1)], -2))
    first = getitem(both, (..., slice(0, n), slice(0, n)))
    corner = getitem(both, (..., slice(0, n), slice(n, None)))
    return (first, corner) if compute_expm else corner


def funm(A: Any, func: Callable, disp: bool = True) -> Any:
    """A function of a matrix, by its eigenvalues: v func(w) v⁻¹.

    A: [n, n], which must be diagonalizable. func: of an array of numbers. disp: False gives
    (result, estimate of the error). Result: complex. Eigenvectors have no derivatives
    (NotImplementedError); `expm` and `sqrtm` have.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.funm(jnp.diag(jnp.array([0.0, 4.0])), jnp.sqrt).real
    Array([[0., 0.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("funm", A, True)
    w, v = linalg.eig(x)
    out = matmul(multiply(v, expand_dims(func(w), -2)), linalg.inv(v))
    if disp:
        return out
    return out, lax.full((), 0, dtypes.real_of(out.aval.dtype))


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """A square root of a matrix, complex; infinite or NaN where there is none.

    A: [n, n]; integers become floats. blocksize must be 1 (NotImplementedError). Result: complex
    [n, n], the root whose eigenvalues have positive real parts. Differentiable. By the Schur form,
    whose triangular root is found column by column. Source: Björck and Hammarling, A Schur method
    for the square root of a matrix (1983).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.sqrtm(jnp.diag(jnp.array([4.0, 9.0]))).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize != 1:
        raise NotImplementedError("sqrtm: blocksize other than 1 is not supported. Leave it out.")
    x = matrices("sqrtm", A, True)
    if not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return _root(x)


@custom_jvp
def _root(x: Any) -> Any:
    t, z = schur(x, output="complex")
    return matmul(matmul(z, _triangular_root(t)), adjoint(z))


@_root.defjvp
def _root_rule(primals: tuple, tangents: tuple) -> tuple:
    """From x x = a: dx x + x dx = da, an equation of triangular matrices in the Schur basis."""
    (x,), (dx,) = primals, tangents
    t, z = schur(x, output="complex")
    r = _triangular_root(t)
    right = matmul(matmul(adjoint(z), dx), z)
    root = matmul(matmul(z, r), adjoint(z))
    return root, matmul(matmul(z, _triangular_sylvester(r, right)), adjoint(z))


def _triangular_sylvester(r: Any, c: Any) -> Any:
    """y with r y + y r = c, for upper triangular r: column j solves (r + r_jj) y_j = c_j - (what
    columns before j contribute)."""
    n, dtype = r.aval.shape[-1], r.aval.dtype
    unit, count = eye(n, dtype=dtype), arange(n)

    def column(j: Any, y: Any) -> Any:
        here = count == j
        factors = sum_(where(here, r, 0), -1)
        corner = sum_(where(here, factors, 0), -1)
        # Columns from j on are still 0.
        right = subtract(
            sum_(where(here, c, 0), -1), getitem(matmul(y, expand_dims(factors, -1)), (..., 0))
        )
        matrix = add(r, multiply(expand_dims(corner, (-2, -1)), unit))
        x = core.triangular_solve(matrix, expand_dims(right, -1), left_side=True, lower=False)
        return add(y, where(here, x, 0))

    return fori_loop(0, n, column, lax.full(c.aval.shape, 0, dtype))


def _triangular_root(t: Any) -> Any:
    """The upper triangular r with r r = t: column j of it solves (r + r_jj) x = t_j above j."""
    n, dtype = t.aval.shape[-1], t.aval.dtype
    unit, count = eye(n, dtype=dtype), arange(n)
    diagonal = multiply(lax.sqrt(t), unit)
    numbers = sum_(diagonal, -1)

    def column(j: Any, r: Any) -> Any:
        here, above = count == j, count < j
        mine = reshape(here, (1,) * (t.aval.ndim - 2) + (n,))  # of each row of the batch
        root = sum_(where(mine, numbers, 0), -1)
        divisors = add(numbers, expand_dims(root, -1))
        nothing = divisors == 0
        shift = where(nothing, lax.full((), 1, dtype), subtract(divisors, numbers))
        matrix = add(r, multiply(expand_dims(shift, -1), unit))
        column_of = reshape(here, (1,) * (t.aval.ndim - 1) + (n,))
        over = reshape(above, (1,) * (t.aval.ndim - 2) + (n,))
        right = where(over, sum_(where(column_of, t, 0), -1), 0)
        x = core.triangular_solve(matrix, expand_dims(right, -1), left_side=True, lower=False)
        x = getitem(x, (..., 0))
        x = where(nothing, where(x == 0, 0, np.inf), x)
        return add(r, where(column_of, expand_dims(where(over, x, 0), -1), 0))

    return fori_loop(1, n, column, diagonal)


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
    eps and max_iterations have no effect. Result: u with orthonormal columns (or rows), p Hermitian
    and positive semidefinite. Differentiable. Raises ValueError for other words.

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
    u, s, vh = linalg.svd(a, full_matrices=False)
    s = expand_dims(cast(s, u.aval.dtype), -2)
    if side == "right":
        return matmul(u, vh), matmul(multiply(adjoint(vh), s), vh)
    return matmul(u, vh), matmul(multiply(u, s), adjoint(u))


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """The X with A X + X B = C, as one linear system for the elements of X.

    A: [m, m], B: [n, n], C: [m, n]; integers become floats. method: 'schur' or 'eigen', which give
    the same (ValueError for others); tol: taken for JAX's sake. Costs (m n)³ operations. Result:
    [m, n]; NaN or infinite where A and -B share an eigenvalue. Differentiable.

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
    m, n = a.aval.shape[0], b.aval.shape[0]
    system = add(
        kron(a, eye(n, dtype=a.aval.dtype)), kron(eye(m, dtype=a.aval.dtype), matrix_transpose(b))
    )
    return reshape(linalg.solve(system, ravel(c)), (m, n))


# ------------------------------------------------------------------ other forms of the factors
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

    d: [n], the diagonal; e: [n - 1], the one beside it, real. eigvals_only: the values alone.
    select: 'a' all, 'v' those in the interval select_range, 'i' those of the indices select_range.
    tol and key have no effect. Result: w [n] rising, v [n, n]. Differentiable, as `eigh`. Raises
    ValueError for sizes that do not fit.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.eigh_tridiagonal(jnp.ones(2), jnp.ones(1), eigvals_only=True).round(4)
    Array([0., 2.], dtype=float32)
    """
    d, e = promote_inexact(*as_arrays("eigh_tridiagonal", d, e))
    if select not in ("a", "i", "v"):
        raise ValueError(
            f"eigh_tridiagonal: select must have a value in 'a', 'i' and 'v', got {select!r}."
        )
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: select='v' has as many results as values tell. Use 'a' and filter "
            "the result."
        )
    upper = conjugate_of(e)
    whole = add(add(diag(d), diag(e, -1)), diag(upper, 1))
    v, w = core.eigh(strong(whole), lower=True, symmetrize_input=False)
    if select == "i":
        lo, hi = select_range
        w, v = getitem(w, slice(lo, hi + 1)), getitem(v, (slice(None), slice(lo, hi + 1)))
    return w if eigvals_only else (w, v)


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
    conjugate. overwrite_a and overwrite_c have no effect.

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


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """A real Schur form made complex, so that T is triangular.

    T: [n, n], quasi triangular; Z: [n, n], orthogonal. check_finite has no effect. Result: (T, Z),
    complex, with the same Z T Zᴴ. Source: Golub and Van Loan, Matrix Computations, section 7.4.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> t, z = linalg.rsf2csf(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.eye(2))
    >>> jnp.abs(jnp.diag(t)).round(4)
    Array([1., 1.], dtype=float32)
    """
    t, z = promote_inexact(*as_arrays("rsf2csf", T, Z))
    kind = t.aval.dtype if dtypes.is_complex(t.aval.dtype) else dtypes.complex_of(t.aval.dtype)
    # T itself is factored once more: T = w s w^H, so Z T Z^H = (Z w) s (Z w)^H.
    s, w = schur(cast(t, kind), output="complex")
    return s, matmul(cast(z, kind), w)


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


def __dir__() -> list[str]:
    return [*__all__]
