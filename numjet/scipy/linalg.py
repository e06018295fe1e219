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
    """The upper (or lower) triangular factor of hermitian positive definite matrices."""
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
    """A factor and its kind for `cho_solve`."""
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """x with a x = b, from `cho_factor(a)`."""
    c, lower = c_and_lower
    c, b = promote_inexact(*as_arrays("cho_solve", c, b))
    first = solve_triangular(c, b, trans=0 if lower else "C", lower=lower)
    return solve_triangular(c, first, trans="C" if lower else 0, lower=lower)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Both triangular factors in one matrix, and the row exchanges."""
    factors, pivots, _ = core.lu(matrices("lu_factor", a))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """x with a x = b (trans 0), a.T x = b (1) or a^H x = b (2), from `lu_factor(a)`."""
    factors, pivots = lu_and_piv
    factors, b = promote_inexact(*as_arrays("lu_solve", factors, b))
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    n = factors.aval.shape[-1]
    vector = b.aval.ndim == 1 or b.aval.ndim == factors.aval.ndim - 1 and factors.aval.ndim > 2
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
    """(p, l, u) with a = p l u; with `permute_l` (p l, u)."""
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
    """(q, r), with `pivoting` (q, r, order). mode: full, economic, r."""
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
    """U, singular values and the conjugate transpose of V."""
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
    """The eigenvalues (rising) and eigenvectors of hermitian matrices; of others those of their
    hermitian part, whichever triangle `lower` names."""
    if b is not None or eigvals is not None or type != 1:
        raise NotImplementedError(
            "eigh: generalized problems and subsets are not supported. Factor "
            "b with cholesky and transform a, or slice the result."
        )
    x = matrices("eigh", a, True)
    v, w = core.eigh(x, lower=lower, symmetrize_input=True)
    return w if eigvals_only else (w, v)


def schur(a: Any, output: str = "real") -> list[Any]:
    """[t, z] with a = z t z^H, t upper triangular (in blocks, for output='real')."""
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}.")
    x = matrices("schur", a, True)
    if output == "complex" and not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return core.schur(x)


def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The form h, zero below the first subdiagonal; with `calc_q` also q: a = q h q^H."""
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
    """x with a x = b for triangular a (trans 0), a.T x = b (1, 'T') or a^H x = b (2, 'C')."""
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
    """x with a x = b; assume_a='pos' uses a Cholesky factorization."""
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}.")
    if assume_a != "pos":
        return linalg.solve(a, b)
    return cho_solve(cho_factor(a, lower=lower), b)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse."""
    return linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""
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
    """The exponential of square matrices, by scaling and squaring of a Padé approximant.

    NaN when the norm asks for more than `max_squarings` squarings.
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
    """The derivative of expm at A in the direction E: the corner of expm([[A, E], [0, A]])."""
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
    """`func` of a matrix, by its eigenvalues; the matrix must be diagonalizable (see `sqrtm`)."""
    x = matrices("funm", A, True)
    w, v = linalg.eig(x)
    out = matmul(multiply(v, expand_dims(func(w), -2)), linalg.inv(v))
    if disp:
        return out
    return out, lax.full((), 0, dtypes.real_of(out.aval.dtype))


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """A square root of a matrix, complex; infinite or NaN where there is none.

    By the Schur form, whose triangular root is found column by column (Björck & Hammarling 1983).
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
    """(u, p) with a = u p (side 'right') or a = p u, u unitary and p positive semidefinite."""
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
    """X with A X + X B = C, as one linear system for the elements of X."""
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
    """The eigenvalues (and vectors) of a symmetric tridiagonal matrix, by its dense form."""
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
    """(c q, r) or, for mode='left', (q c, r), q and r being the factors of `a`."""
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}.")
    (c,) = promote_inexact(one_array("qr_multiply", c))
    parts = qr(a, mode="economic", pivoting=pivoting)
    q = conjugate_of(parts[0]) if conjugate else parts[0]
    return (matmul(q, c) if mode == "left" else matmul(c, q), *parts[1:])


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """A real Schur form (quasi triangular T) made complex triangular."""
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
