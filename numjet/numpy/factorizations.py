"""Factorizations of matrices: Cholesky, QR, singular values, eigenvalues; batches are leading axes.

Part of `numjet.numpy.linalg`, which shows these names. `matrices` and `lapack_matrices` check what
every function of matrices is given.
"""

from __future__ import annotations

from typing import Any

from numjet.api.compiled.shown import shown
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import absolute, multiply, sign
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import equal, where
from numjet.numpy.promote import cast, one_array, promote_inexact
from numjet.numpy.shape import expand_dims, matrix_transpose
from numjet.numpy.sorting import argsort
from numjet.ops import linalg as core
from numjet.ops.complex_ops import conjugate
from numjet.ops.linalg_eig import whole_subset
from numjet.ops.linalg_householder import geqrf


class QRResult(NamedTuple):
    """What `qr` gives: Q, with orthonormal columns, and R, upper triangular."""
    Q: Any
    R: Any


class EigResult(NamedTuple):
    """What `eig` gives: eigenvalues, and eigenvectors in columns."""
    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """What `eigh` gives: eigenvalues, rising, and eigenvectors in columns."""
    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """What `svd` gives: U, the singular values S, falling, and the adjoint Vh of V."""
    U: Any
    S: Any
    Vh: Any


def matrices(
    name: str,
    a: Any,
    square: bool = False,
    flat: type[Exception] = ValueError,
    oblong: type[Exception] = ValueError,
) -> Any:
    """`a` as (square) matrices of an inexact dtype; `flat` is raised where it has less than two
    axes, `oblong` for matrices that are not square."""
    (x,) = promote_inexact(one_array(name, a))
    if x.aval.ndim < 2 or square and x.aval.shape[-1] != x.aval.shape[-2]:
        rank = "" if x.aval.ndim >= 2 else "The argument must have rank at least 2. "
        wanted = "[..., n, n], square matrices" if square else "[..., m, n], matrices"
        error = flat if x.aval.ndim < 2 else oblong
        raise error(
            f"Argument to {name} must have shape {wanted} in the last two axes, got "
            f"{x.aval}. {rank}Reshape it."
        )
    return x


def lapack_matrices(name: str, a: Any, *how: Any, empty: bool = False, **errors: Any) -> Any:
    """`matrices`, of a dtype that LAPACK knows; of any where `empty` and they have no elements."""
    x = matrices(name, a, *how, **errors)
    if x.aval.dtype.itemsize < 4 and not (empty and 0 in x.aval.shape[-2:]):
        raise NotImplementedError(
            f"{name}: {x.aval.dtype} is not supported. Convert with .astype(jnp.float32)."
        )
    return x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return matrix_transpose(conjugate(x))


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The triangular factor L of hermitian positive definite matrices: a = L @ adjoint(L).

    a: (..., n, n) of floats or complex; integers count as floats. upper: give the adjoint, upper
    triangular. symmetrize_input: use (a + adjoint(a)) / 2, which makes derivatives symmetric; else
    the lower triangle alone is read. NaN where a matrix is not positive definite (NumPy raises
    LinAlgError). TypeError for matrices that are not square, NotImplementedError for 16-bit floats.
    Computed by `lax.linalg.cholesky`.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = lapack_matrices("cholesky", a, True, TypeError, TypeError)
    if upper:
        # Of what is not symmetrized the lower triangle is read here too.
        return adjoint(core.cholesky(x, symmetrize_input=symmetrize_input))
    return core.cholesky(x, symmetrize_input=symmetrize_input)


def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with a = Q @ R: Q with orthonormal columns, R upper triangular. By Householder's
    reflections.

    a: (..., m, n) of floats or complex; integers count as floats. mode: 'reduced' gives k = min(m,
    n) columns of Q, 'complete' all m; 'r' gives R alone; 'raw' gives (factors, taus) as LAPACK
    keeps them, the factors transposed (see `lax.linalg.ormqr`). The derivative is there for
    'reduced' and m >= n (NotImplementedError). ValueError for other modes, TypeError for 16-bit
    floats. Computed by `lax.linalg.qr`.

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.abs(r).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    x = lapack_matrices("qr", a, flat=TypeError, empty=True)
    if mode == "raw":
        factors, taus = geqrf(x)
        return QRResult(matrix_transpose(factors), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}. Use 'reduced', 'complete' or 'r'."
        )
    q, r = core.qr(x, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)


@shown
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """(U, S, Vh): the singular value decomposition, a = U @ diag(S) @ Vh.

    a: (..., m, n) of floats or complex; integers count as floats. S: real, falling. full_matrices:
    U is m x m and Vh n x n; else both have min(m, n) singular vectors. compute_uv: False gives S
    alone. hermitian: `a` is, and `eigh` is used. The derivative of U and Vh is infinite or NaN
    where singular values are equal, and NotImplementedError is raised for that of full matrices
    that are not square. TypeError for vectors, NotImplementedError for 16-bit floats,
    `subset_by_index`, which NumPy does not have, as of `lax.linalg.svd`, by which it is computed.

    >>> jnp.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]])).S
    Array([3., 2.], dtype=float32)
    """
    x = lapack_matrices("svd", a, flat=TypeError, empty=not hermitian)
    if subset_by_index is not None:
        whole_subset(subset_by_index, x.aval.shape, full_matrices)
    if hermitian:
        w, v = eigh(x)
        size = absolute(w)
        if not compute_uv:
            return _falling(size)
        order = lax.rev(argsort(size), (size.aval.ndim - 1,))  # of equal ones the later is first
        w, size = along(w, order), along(size, order)
        v = matrix_transpose(along(matrix_transpose(v), order))
        signs = cast(where(equal(w, 0), 1, sign(w)), v.aval.dtype)
        return SVDResult(v, size, adjoint(multiply(v, expand_dims(signs, -2))))
    out = core.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv:
        return out[0] if isinstance(out, (tuple, list)) else out
    return SVDResult(*out)


def _falling(x: Any) -> Any:
    return lax.rev(lax.sort(x, dimension=x.aval.ndim - 1), (x.aval.ndim - 1,))


def along(x: Any, order: Any) -> Any:
    """The elements (or rows) of each batch element of x in `order`."""
    lead = [
        lax.broadcasted_iota(dtypes.int32, order.aval.shape, i) for i in range(order.aval.ndim - 1)
    ]
    return getitem(x, (*lead, order))


def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, real and falling.

    x: (..., m, n) of floats or complex; integers count as floats. Returns (..., min(m, n)).
    ValueError for what is no matrix. Computed by `lax.linalg.svd`. Where singular values are equal
    or 0 the derivative is that of one choice of singular vectors.

    >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@shown
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """(eigenvalues, eigenvectors) of hermitian matrices: real and rising; orthonormal, in columns.

    a: (..., n, n) of floats or complex; integers count as floats. symmetrize_input: use (a +
    adjoint(a)) / 2; else only the triangle that `UPLO` names is read, 'L' (also None) or 'U'
    (ValueError for others). Derivatives of eigenvectors are NaN where eigenvalues are equal.
    TypeError for matrices that are not square, NotImplementedError for 16-bit floats. Computed by
    `lax.linalg.eigh`.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(3)
    Array([1., 3.], dtype=float32)
    """
    x = lapack_matrices("eigh", a, True, TypeError, TypeError)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO!r}.")
    v, w = core.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of hermitian matrices, real and rising.

    a, UPLO, symmetrize_input: as in `eigh`. Returns (..., n). Computed by `lax.linalg.eigh`.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
    Array([1., 3.], dtype=float32)
    """
    return eigh(
        lapack_matrices("eigvalsh", a, True, TypeError, TypeError), UPLO, symmetrize_input
    )[0]


def eig(a: Any) -> EigResult:
    """(eigenvalues, eigenvectors) of square matrices, complex; the right ones, in columns of length
    1.

    a: (..., n, n) of floats or complex; integers count as floats. The results are always complex
    (NumPy's are real where they can be), in no order. There is no derivative (NotImplementedError):
    use `eigvals`, or `eigh` for hermitian matrices. ValueError for matrices that are not square,
    NotImplementedError for 16-bit floats. Computed by `lax.linalg.eig`.

    >>> w, v = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> w
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    w, v = core.eig(lapack_matrices("eig", a, True, TypeError), compute_left_eigenvectors=False)
    return EigResult(w, v)


@shown
def eigvals(a: Any) -> Any:
    """The eigenvalues of square matrices, complex, in no order.

    a: (..., n, n) of floats or complex; integers count as floats. Differentiable where they are
    distinct. ValueError for matrices that are not square, TypeError for scalars,
    NotImplementedError for 16-bit floats. Computed by `lax.linalg.eig`. NumPy gives real ones where
    all are.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).imag
    Array([ 1., -1.], dtype=float32)
    """
    return core.eig(
        lapack_matrices("eigvals", a, True, TypeError),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
    )[0]
