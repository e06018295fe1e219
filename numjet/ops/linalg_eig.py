"""Eigenvalues and singular values: eigh, eig, svd, schur, hessenberg.

Derivatives of vectors exist where the values are distinct; equal ones give infinities.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import largest, smallest
from numjet.core.primitive import Zero
from numjet.core.structural import broadcast_in_dim, convert, reduce_sum
from numjet.ops.arithmetic import add, div, mul, sub
from numjet.ops.complex_ops import conj, imag, real
from numjet.ops.dot import batch_matmul
from numjet.ops.linalg_core import (
    adjoint,
    batch_identity,
    check_matrix,
    decomposition,
    diagonal_part,
    each_matrix,
    halves,
    narrow_and_empty,
    solve,
    symmetrized,
)
from numjet.ops.logic import eq
from numjet.ops.reduce import argmax
from numjet.ops.shape import broadcasted_iota


class SvdAlgorithm(enum.Enum):
    """How singular values are computed; one algorithm (divide and conquer) serves all here."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class EighImplementation(enum.Enum):
    """How symmetric eigenvalues are computed; one implementation (LAPACK) serves all here."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """How eigenvalues are computed; one implementation (LAPACK) serves all here."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def _or_nan(function: Callable) -> Callable:
    """`function` of one matrix, with NaN results where LAPACK does not converge."""

    def call(x: np.ndarray) -> tuple:
        try:
            if not np.isfinite(x).all():
                raise np.linalg.LinAlgError("not finite")
            return function(x)
        except np.linalg.LinAlgError:
            return tuple(
                [np.full_like(y, np.nan) for y in function(np.eye(*x.shape, dtype=x.dtype))]
            )

    return call


def _rows(x: Any, n: int) -> Any:
    """v[..., j] as [..., i, j]: constant along n rows."""
    shape = x.aval.shape
    return broadcast_in_dim(x, (*shape[:-1], n, shape[-1]), (*range(len(shape) - 1), len(shape)))


def _columns(x: Any, n: int) -> Any:
    """v[..., i] as [..., i, j]: constant along n columns."""
    shape = x.aval.shape
    return broadcast_in_dim(x, (*shape, n), tuple(range(len(shape))))


def _diagonal(x: Any) -> Any:
    return reduce_sum(diagonal_part(x), (x.aval.ndim - 1,))


def _inverse_differences(values: Any) -> Any:
    """1 / (v_j - v_i) off the diagonal, 0 on it."""
    n = values.aval.shape[-1]
    eye = batch_identity(_rows(values, n), n)
    return sub(
        div(np.ones((), values.aval.dtype), add(sub(_rows(values, n), _columns(values, n)), eye)),
        eye,
    )


# ------------------------------------------------------------------ eigh
def _eigh_abstract(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, compute_v: bool
) -> list[ShapedArray]:
    check_matrix("eigh", x, square=True)
    *batch, n, _ = x.shape
    k = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    values = ShapedArray((*batch, k), dtypes.real_of(x.dtype))
    return [ShapedArray((*batch, n, k), x.dtype), values] if compute_v else [values]


def _eigh_reference(
    x: np.ndarray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, compute_v: bool
) -> list[np.ndarray]:
    def one(x: np.ndarray) -> tuple:
        if not compute_v:
            return (np.linalg.eigvalsh(x, UPLO="L" if lower else "U"),)
        w, v = np.linalg.eigh(x, UPLO="L" if lower else "U")
        return v, w

    if x.ndim == 2 and np.isfinite(x).all():
        outs = list(one(x))
    else:
        outs = each_matrix(_or_nan(one), x)
    if subset_by_index is not None:
        start, stop = subset_by_index
        outs = [y[..., start:stop] for y in outs]
    return outs


def _eigh_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    """dw = diag(Vᴴ dA V), dV = V (F ∘ Vᴴ dA V) with F_ij = 1/(w_j - w_i) (Giles 2008)."""
    if type(tangents[0]) is Zero:
        outs = eigh_p.bind(*primals, **params)
        return outs, [Zero(y.aval.tangent()) for y in outs]
    v, w = eigh_p.bind(*primals, **{**params, "compute_v": True})
    if v.aval.shape[-1] != v.aval.shape[-2]:
        raise NotImplementedError(
            "eigh: no derivative with subset_by_index. Compute all eigenvalues and slice."
        )
    inner = batch_matmul(batch_matmul(adjoint(v), tangents[0]), v)
    dw = _real_diagonal(inner)
    if not params["compute_v"]:
        return [w], [dw]
    factor = convert(_inverse_differences(w), v.aval.dtype)
    return [v, w], [batch_matmul(v, mul(factor, inner)), dw]


def _only(kept: int, **change: Any) -> Callable:
    """Prune rule: params change where result `kept` alone is read."""

    def prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
        if used[kept] and sum(used) == 1:
            return {**params, **change}, [0], [kept]
        return None

    return prune


def _real_diagonal(x: Any) -> Any:
    x = _diagonal(x)
    return real(x) if dtypes.is_complex(x.aval.dtype) else x


eigh_p = decomposition(
    "eigh", _eigh_abstract, _eigh_reference, _eigh_jvp, prune=_only(1, compute_v=False)
)


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian matrices, (vectors, values): x v = v w.

    x: [..., n, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). lower: which triangle is read. symmetrize_input: use (x + xᴴ)/2, by which integers
    become floats; else they are refused (TypeError). sort_eigenvalues: they are always ascending.
    subset_by_index: (first, behind the last) of the values wanted. implementation: one (LAPACK's)
    serves all. Result: vectors [..., n, n] in columns, of x's dtype, values [..., n], real.
    Derivative: grows without bound where eigenvalues meet. Raises TypeError for matrices that are
    not square. `numpy.linalg.eigh` gives the values first. Source: LAPACK's syevd and heevd.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))[1].round(4)
    Array([1., 3.], dtype=float32)
    """
    x = halves(as_array(x), symmetrize_input)
    check_matrix("eigh", x.aval, square=True)
    if symmetrize_input:
        x = symmetrized(x)
    v, w = eigh_p.bind(
        x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=None if subset_by_index is None else tuple(subset_by_index),
        compute_v=True,
    )
    return v, w


# ------------------------------------------------------------------ eig
def _eig_abstract(
    x: ShapedArray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
) -> list[ShapedArray]:
    check_matrix("eig", x, square=True, oblong=ValueError)
    dtype = dtypes.complex_of(x.dtype)
    vectors = ShapedArray(x.shape, dtype)
    return [
        ShapedArray(x.shape[:-1], dtype),
        *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors),
    ]


def _eig_reference(
    x: np.ndarray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
) -> list[np.ndarray]:
    from scipy.linalg import eig as scipy_eig

    dtype = dtypes.complex_of(x.dtype)

    def one(x: np.ndarray) -> tuple:
        if not x.size:  # which SciPy takes from 1.14 on
            vectors = (x.astype(dtype),) * (compute_left_eigenvectors + compute_right_eigenvectors)
            return np.empty(0, dtype), *vectors
        out = scipy_eig(
            x, left=compute_left_eigenvectors, right=compute_right_eigenvectors, check_finite=False
        )
        return tuple([y.astype(dtype) for y in (out if isinstance(out, tuple) else (out,))])

    return each_matrix(_or_nan(one), x)


def _eig_jvp(
    primals: tuple,
    tangents: tuple,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
) -> tuple:
    """dw = diag(V⁻¹ dA V), dV as `_vector_tangents` has them; left vectors are right ones of Aᴴ."""
    (x,) = primals
    outs = eig_p.bind(
        x,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
    )
    if type(tangents[0]) is Zero:
        return outs, [Zero(y.aval.tangent()) for y in outs]
    if (compute_left_eigenvectors or compute_right_eigenvectors) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "eig: eigenvectors have derivatives where all eigenvalues are distinct, which is not "
            "checked. Pass enable_eigvec_derivs=True to lax.linalg.eig if they are, or use "
            "eigvals, or eigh for hermitian matrices."
        )
    if compute_right_eigenvectors:
        v = outs[-1]
    else:
        v = eig_p.bind(
            x,
            compute_left_eigenvectors=False,
            compute_right_eigenvectors=True,
            enable_eigvec_derivs=enable_eigvec_derivs,
        )[1]
    w, da = outs[0], convert(tangents[0], v.aval.dtype)
    inner = solve(v, batch_matmul(da, v))
    found = [_diagonal(inner)]
    if compute_left_eigenvectors:
        left = outs[1]
        found.append(
            _vector_tangents(left, conj(w), solve(left, batch_matmul(adjoint(da), left)))
        )
    if compute_right_eigenvectors:
        found.append(_vector_tangents(v, w, inner))
    return outs, found


def _vector_tangents(v: Any, values: Any, inner: Any) -> Any:
    """The tangents of eigenvectors v for inner = V⁻¹ dA V: V (F ∘ inner) with F_ij = 1/(w_j - w_i),
    less what would change their length or, where they are largest and real, their phase."""
    n = v.aval.shape[-1]
    rows = v.aval.ndim - 2
    dv = batch_matmul(v, mul(_inverse_differences(values), inner))
    along = reduce_sum(real(mul(conj(v), dv)), (rows,))
    dv = sub(dv, mul(v, _rows(convert(along, v.aval.dtype), n)))
    size = add(mul(real(v), real(v)), mul(imag(v), imag(v)))
    place = argmax(size, rows, np.int32)
    counted = broadcasted_iota(np.int32, v.aval.shape, rows)
    largest = convert(eq(counted, _rows(place, n)), size.aval.dtype)
    turn = div(
        reduce_sum(mul(largest, imag(dv)), (rows,)), reduce_sum(mul(largest, real(v)), (rows,))
    )
    return sub(dv, mul(v, _rows(mul(convert(turn, v.aval.dtype), v.aval.dtype.type(1j)), n)))


eig_p = decomposition(
    "eig", _eig_abstract, _eig_reference, _eig_jvp,
    prune=_only(0, compute_left_eigenvectors=False, compute_right_eigenvectors=False),
)  # fmt: skip


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues and eigenvectors of general matrices: [values, left vectors, right vectors].

    x: [..., n, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). compute_left_eigenvectors, compute_right_eigenvectors: which of them are in the list.
    implementation, use_magma: one implementation (LAPACK's geev) serves all. Result: complex,
    values [..., n] in no particular order, vectors [..., n, n] in columns. Derivative: of the
    values, and with enable_eigvec_derivs (NotImplementedError without) of the vectors, which keep
    length and phase; it grows without bound where eigenvalues meet. Raises ValueError for matrices
    that are not square, TypeError for scalars and other dtypes. Source: the QR algorithm, Golub and
    Van Loan, Matrix Computations, section 7.5.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return list(
        eig_p.bind(
            as_array(x),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
        )
    )


# ------------------------------------------------------------------ svd
def _svd_abstract(x: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> list[ShapedArray]:
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = smallest(m, n)
    values = ShapedArray((*batch, k), dtypes.real_of(x.dtype))
    if not compute_uv:
        return [values]
    return [
        values,
        ShapedArray((*batch, m, m if full_matrices else k), x.dtype),
        ShapedArray((*batch, n if full_matrices else k, n), x.dtype),
    ]


def _svd_reference(x: np.ndarray, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
    def one(x: np.ndarray) -> tuple:
        if not compute_uv:
            return (np.linalg.svd(x, compute_uv=False),)
        u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
        return s, u, vh

    return list(one(x)) if x.ndim == 2 and np.isfinite(x).all() else each_matrix(_or_nan(one), x)


def _svd_jvp(primals: tuple, tangents: tuple, *, full_matrices: bool, compute_uv: bool) -> tuple:
    """Townsend, "Differentiating the singular value decomposition", 2016; complex: the phase is
    shared evenly.
    """
    (x,) = primals
    if type(tangents[0]) is Zero:
        outs = svd_p.bind(x, full_matrices=full_matrices, compute_uv=compute_uv)
        return outs, [Zero(y.aval.tangent()) for y in outs]
    m, n = x.aval.shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "svd: the derivative of the full matrices is not defined. Pass full_matrices=False."
        )
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True)
    da, v = tangents[0], adjoint(vh)
    k, dtype = smallest(m, n), x.aval.dtype
    inner = batch_matmul(batch_matmul(adjoint(u), da), v)
    ds = _real_diagonal(inner)
    if not compute_uv:
        return [s], [ds]
    factor = convert(_inverse_differences(mul(s, s)), dtype)
    by_row, by_column = convert(_rows(s, k), dtype), convert(_columns(s, k), dtype)
    right, left = mul(inner, by_row), mul(by_column, inner)
    du = batch_matmul(u, mul(factor, add(right, adjoint(right))))
    dv = batch_matmul(v, mul(factor, add(left, adjoint(left))))
    if dtypes.is_complex(dtype):
        # The antihermitian diagonal of Uᴴ dA V is a rotation of the phases; half of it goes to each
        # side.
        phase = diagonal_part(div(sub(inner, adjoint(inner)), mul(by_row, np.asarray(4, dtype))))
        du, dv = add(du, batch_matmul(u, phase)), sub(dv, batch_matmul(v, phase))
    if m > n:
        outside = sub(batch_matmul(da, v), batch_matmul(u, inner))
        du = add(du, div(outside, convert(_rows(s, m), dtype)))
    if n > m:
        outside = sub(batch_matmul(adjoint(da), u), batch_matmul(v, adjoint(inner)))
        dv = add(dv, div(outside, convert(_rows(s, n), dtype)))
    return [s, u, vh], [ds, du, adjoint(dv)]


svd_p = decomposition(
    "svd", _svd_abstract, _svd_reference, _svd_jvp, prune=_only(0, compute_uv=False)
)


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,
) -> Any:
    """The singular value decomposition: (u, s, vᴴ) with x = u diag(s) vᴴ.

    x: [..., m, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for others
    that have elements). full_matrices: u [..., m, m] and vᴴ [..., n, n]; else [..., m, k] and [...,
    k, n], k = min(m, n). compute_uv: False gives s alone. subset_by_index: (0, k) only, which is
    all (NotImplementedError for others, ValueError with full_matrices). algorithm: one (divide and
    conquer) serves all. Result: s real, [..., k], descending. Derivative: of s always; of u and v
    with full_matrices=False, and growing without bound where singular values meet. Raises TypeError
    for less than two axes. Source: LAPACK's gesdd.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.svd(jnp.array([[3.0, 0.0], [4.0, 0.0]]), compute_uv=False).round(4)
    Array([5., 0.], dtype=float32)
    """
    x = as_array(x)
    if subset_by_index is not None:
        whole_subset(subset_by_index, x.aval.shape, full_matrices)
    if narrow_and_empty(x):
        wide = convert(x, dtypes.float32)
        outs = svd(wide, full_matrices=full_matrices, compute_uv=compute_uv)
        if not compute_uv:
            return convert(outs, x.aval.dtype)
        return tuple([convert(y, x.aval.dtype) for y in outs])
    outs = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh


def whole_subset(subset: tuple[int, int], shape: tuple[int, ...], full_matrices: bool) -> None:
    """Raise unless `subset` of the singular values of matrices of this shape is all of them."""
    if tuple(subset) == (0, min(shape[-2:])):
        return
    if full_matrices:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be given.")
    raise NotImplementedError(
        f"svd: subset_by_index={subset} is not supported. Compute all values and slice."
    )


# ------------------------------------------------------------------ schur and hessenberg
def _schur_abstract(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    check_matrix("schur", x, square=True, oblong=ValueError)
    return [x.strong()] * (1 + compute_schur_vectors)


def _schur_reference(x: np.ndarray, *, compute_schur_vectors: bool) -> list[np.ndarray]:
    from scipy.linalg import schur as scipy_schur

    def schur(x: np.ndarray) -> tuple:
        if not x.size:  # which SciPy takes from 1.15 on
            return x, x
        return scipy_schur(x, output="real" if x.dtype.kind == "f" else "complex")

    return each_matrix(_or_nan(schur), x)[: 1 + compute_schur_vectors]


schur_p = decomposition(
    "schur", _schur_abstract, _schur_reference, prune=_only(0, compute_schur_vectors=False)
)


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> list:
    """The Schur form of matrices: (t, z) with x = z t zᴴ.

    x: [..., n, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). compute_schur_vectors: else t alone. sort_eig_vals and select_callable are refused
    (NotImplementedError). Result: t, upper triangular, of real matrices with 2 by 2 blocks for
    pairs of complex eigenvalues; z unitary; a list. No derivative is known (NotImplementedError).
    Raises TypeError for matrices that are not square. Source: LAPACK's gees. ValueError for
    matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: sorting of the eigenvalues is not supported; leave sort_eig_vals False."
        )
    return list(schur_p.bind(as_array(x), compute_schur_vectors=bool(compute_schur_vectors)))


def _hessenberg_abstract(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("hessenberg", a, square=True, oblong=ValueError)
    return [a.strong(), ShapedArray((*a.shape[:-2], largest(a.shape[-1] - 1, 0)), a.dtype)]


def _hessenberg_reference(a: np.ndarray) -> list[np.ndarray]:
    if not a.size:
        return [a.copy(), np.zeros((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)]
    from scipy.linalg.lapack import get_lapack_funcs

    (gehrd,) = get_lapack_funcs(("gehrd",), (a,))
    return each_matrix(lambda x: tuple([np.ascontiguousarray(y) for y in gehrd(x)[:2]]), a)


hessenberg_p = decomposition("hessenberg", _hessenberg_abstract, _hessenberg_reference)


def hessenberg(a: Any) -> list[Any]:
    """The Hessenberg form of matrices with the reflectors below it, and their factors: [h, taus].

    a: [..., n, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). Result: h [..., n, n], with the Householder reflectors below the first subdiagonal as
    LAPACK's gehrd leaves them; taus [..., n - 1]. No derivative is known (NotImplementedError).
    Raises TypeError for matrices that are not square. Source: Golub and Van Loan, Matrix
    Computations, section 7.4. ValueError for matrices that are not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    h, taus = hessenberg_p.bind(as_array(a))
    return [h, taus]
