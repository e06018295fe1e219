"""numjet.numpy.linalg: norms, factorizations, solutions of linear systems, eigenvalues.

Built from the primitives of `ops.linalg`; batches of matrices are leading axes everywhere. Where
NumPy raises LinAlgError, since a matrix is singular or not positive definite, results hold NaN or
infinities: values are not known while tracing. What arguments and dtypes have in common is said in
`numjet.numpy`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numjet.api.custom import custom_jvp
from numjet.base.errors import UnsupportedDtypeError
from numjet.core import dtypes
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax, products
from numjet.numpy.creation import array, eye, triu
from numjet.numpy.elementwise import (
    absolute,
    add,
    bitwise_and,
    divide,
    equal,
    greater,
    less,
    logical_and,
    multiply,
    negative,
    not_equal,
    power,
    sign,
    subtract,
    where,
)
from numjet.numpy.index_tricks import diagonal as _diagonal, trace as _trace
from numjet.numpy.indexing import getitem
from numjet.numpy.products import dot, matmul as _matmul, matvec, outer as _outer, vecdot
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    cast,
    int_dtype,
    join_shapes,
    one_array,
    promote_inexact,
    strong,
)
from numjet.numpy.reductions import (
    all as all_,
    any as any_,
    max as max_,
    min as min_,
    prod as prod_,
    sum as sum_,
)
from numjet.numpy.shape import expand_dims, matrix_transpose, moveaxis, ravel, reshape, stack
from numjet.numpy.sorting import argsort
from numjet.numpy.take import take_along_axis
from numjet.ops import linalg as core
from numjet.ops.complex_ops import conjugate
from numjet.ops.cond import cond as cond_
from numjet.ops.linalg_more import geqrf
from numjet.ops.scan import scan


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


class SlogdetResult(NamedTuple):
    """What `slogdet` gives: the sign, and the logarithm of the determinant's size."""
    sign: Any
    logabsdet: Any


def matrices(name: str, a: Any, square: bool = False) -> Any:
    """`a` as (square) matrices of an inexact dtype."""
    (x,) = promote_inexact(one_array(name, a))
    if x.aval.ndim < 2 or square and x.aval.shape[-1] != x.aval.shape[-2]:
        raise ValueError(
            f"{name}: needs {'square ' if square else ''}matrices in the last two "
            f"axes, got {x.aval}."
        )
    return strong(x)


def _matrix(name: str, a: Any, square: bool = False) -> Any:
    """Matrices of a dtype that LAPACK knows."""
    x = matrices(name, a, square)
    if x.aval.dtype.itemsize < 4:
        raise UnsupportedDtypeError(
            f"{name}: {x.aval.dtype} is not supported. Convert with .astype(jnp.float32)."
        )
    return x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return matrix_transpose(conjugate(x))


# ------------------------------------------------------------------ factorizations
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The triangular factor L of hermitian positive definite matrices: a = L @ adjoint(L).

    a: (..., n, n) of floats or complex; integers count as floats. upper: give the adjoint, upper
    triangular. symmetrize_input: use (a + adjoint(a)) / 2, which makes derivatives symmetric; else
    the lower triangle alone is read. NaN where a matrix is not positive definite (NumPy raises
    LinAlgError). ValueError for matrices that are not square, TypeError for 16-bit floats.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = _matrix("cholesky", a, True)
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
    floats.

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.abs(r).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    x = _matrix("qr", a)
    if mode == "raw":
        factors, taus = geqrf(x)
        return QRResult(matrix_transpose(factors), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"qr: unsupported mode {mode!r}. Use 'reduced', 'complete' or 'r'.")
    q, r = core.qr(x, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)


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
    that are not square. ValueError for vectors, TypeError for 16-bit floats, NotImplementedError
    for `subset_by_index`.

    >>> jnp.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]])).S
    Array([3., 2.], dtype=float32)
    """
    x = _matrix("svd", a)
    if subset_by_index is not None:
        raise NotImplementedError("svd: subset_by_index is not supported. Slice the results.")
    if hermitian:
        w, v = eigh(x)
        size = absolute(w)
        if not compute_uv:
            return _falling(size)
        order = argsort(lax.neg(size))
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

    >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float32)
    """
    return svd(x, full_matrices=False, compute_uv=False)


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """(eigenvalues, eigenvectors) of hermitian matrices: real and rising; orthonormal, in columns.

    a: (..., n, n) of floats or complex; integers count as floats. symmetrize_input: use (a +
    adjoint(a)) / 2; else only the triangle that `UPLO` names is read, 'L' (also None) or 'U'
    (ValueError for others). Derivatives of eigenvectors are NaN where eigenvalues are equal.
    ValueError for matrices that are not square, TypeError for 16-bit floats.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(3)
    Array([1., 3.], dtype=float32)
    """
    x = _matrix("eigh", a, True)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"eigh: UPLO must be None, 'L' or 'U', got {UPLO!r}.")
    v, w = core.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of hermitian matrices, real and rising.

    a, UPLO, symmetrize_input: as in `eigh`. Returns (..., n).

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
    Array([1., 3.], dtype=float32)
    """
    x = _matrix("eigvalsh", a, True)
    return core.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)[1]


def eig(a: Any) -> EigResult:
    """(eigenvalues, eigenvectors) of square matrices, complex; the right ones, in columns of length
    1.

    a: (..., n, n) of floats or complex; integers count as floats. The results are always complex
    (NumPy's are real where they can be), in no order. There is no derivative (NotImplementedError):
    use `eigvals`, or `eigh` for hermitian matrices. ValueError for matrices that are not square,
    TypeError for 16-bit floats.

    >>> w, v = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> w
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    w, v = core.eig(_matrix("eig", a, True), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Any:
    """The eigenvalues of square matrices, complex, in no order.

    a: (..., n, n) of floats or complex; integers count as floats. Differentiable where they are
    distinct. ValueError for matrices that are not square, TypeError for 16-bit floats.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).imag
    Array([ 1., -1.], dtype=float32)
    """
    return core.eig(
        _matrix("eigvals", a, True),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
    )[0]


# ------------------------------------------------------------------ systems
def solve(a: Any, b: Any) -> Any:
    """x with a @ x = b, by elimination with pivots.

    a: (..., n, n); b: (n,), or (..., n, k) with the right-hand sides in columns. They promote,
    integers count as floats; leading axes broadcast. A singular `a` gives infinities or NaN (NumPy
    raises LinAlgError). ValueError for shapes that do not fit, TypeError for 16-bit floats.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 5.0]))
    Array([2., 3.], dtype=float32)
    """
    a, b = promote_inexact(*as_arrays("solve", a, b))
    a = _matrix("solve", a, True)
    if not b.aval.ndim:
        raise ValueError(f"solve: b must have at least one dimension, got {b.aval}.")
    b = strong(b)
    vector = b.aval.ndim == 1
    columns = expand_dims(b, -1) if vector else b
    if columns.aval.shape[-2] != a.aval.shape[-1]:
        raise ValueError(
            f"solve: a {a.aval} and b {b.aval} do not fit: axis "
            f"{-1 if vector else -2} of b must have size {a.aval.shape[-1]}."
        )
    lead = join_shapes("solve", [a.aval.shape[:-2], columns.aval.shape[:-2]], ValueError)
    a = broadcast(a, (*lead, *a.aval.shape[-2:]))
    columns = broadcast(columns, (*lead, *columns.aval.shape[-2:]))
    out = core.solve(a, columns)
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out


def inv(a: Any) -> Any:
    """The inverse of square matrices. To solve a system, `solve` is quicker and more exact.

    a: (..., n, n) of floats or complex; integers count as floats. A singular matrix gives
    infinities or NaN (NumPy raises LinAlgError). ValueError for matrices that are not square,
    TypeError for 16-bit floats.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = _matrix("inv", a, True)
    n = x.aval.shape[-1]
    return core.solve(x, broadcast(eye(n, dtype=x.aval.dtype), x.aval.shape))


def _lu_sign_of_two(x: Any) -> tuple[Any, Any]:
    """`_lu_sign` of matrices 2 by 2, written out: a row of numbers for each of their elements."""
    a, b, c, d = [x[..., i, j] for i in (0, 1) for j in (0, 1)]

    def size(v: Any) -> Any:
        if not dtypes.is_complex(v.aval.dtype):
            return absolute(v)
        return add(absolute(lax.real(v)), absolute(lax.imag(v)))

    exchanged = lax.gt(size(c), size(a))
    first, second = where(exchanged, c, a), where(exchanged, d, b)
    other, last = where(exchanged, a, c), where(exchanged, b, d)
    none = equal(first, 0)
    factor = where(none, 0, divide(other, where(none, 1, first)))
    last = subtract(last, multiply(cast(factor, x.aval.dtype), second))
    parity = where(exchanged, cast(array(-1), x.aval.dtype), cast(array(1), x.aval.dtype))
    return stack([first, last], -1), parity


def _lu_sign(x: Any) -> tuple[Any, Any]:
    """The diagonal of U and the sign of the row exchanges."""
    if x.aval.shape[-1] == 2:
        return _lu_sign_of_two(x)
    factors, pivots, _ = core.lu(x)
    diagonal = _diagonal(factors, 0, -2, -1)
    n = pivots.aval.shape[-1]
    moved = not_equal(
        pivots, lax.broadcasted_iota(pivots.aval.dtype, pivots.aval.shape, pivots.aval.ndim - 1)
    )
    odd = bitwise_and(sum_(cast(moved, dtypes.int32), -1), 1)
    parity = (
        cast(subtract(1, multiply(odd, 2)), x.aval.dtype)
        if n
        else lax.full(x.aval.shape[:-2], 1, x.aval.dtype)
    )
    return diagonal, parity


def det(a: Any) -> Any:
    """The determinant of square matrices.

    a: (..., n, n) of floats or complex; integers count as floats. Of n up to 3 by cofactors, else
    by elimination. The derivative, the matrix of cofactors, is that of singular matrices too.
    ValueError for matrices that are not square, TypeError for 16-bit floats.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = _matrix("det", a, True)
    n = x.aval.shape[-1]

    def at(i: int, j: int) -> Any:
        return getitem(x, (..., i, j))

    if n == 0:
        return lax.full(x.aval.shape[:-2], 1, x.aval.dtype)
    if n == 1:
        return at(0, 0)
    if n == 2:
        return subtract(multiply(at(0, 0), at(1, 1)), multiply(at(0, 1), at(1, 0)))
    if n == 3:
        # Cofactors: derivatives exist for singular matrices, too.
        total = None
        for i, j, k, s in (
            (0, 1, 2, 1),
            (1, 2, 0, 1),
            (2, 0, 1, 1),
            (2, 1, 0, -1),
            (0, 2, 1, -1),
            (1, 0, 2, -1),
        ):
            term = multiply(multiply(at(0, i), at(1, j)), at(2, k))
            total = term if total is None else (add if s > 0 else subtract)(total, term)
        return total
    return _det_by_factors(x)


@custom_jvp
def _det_by_factors(x: Any) -> Any:
    diagonal, parity = _lu_sign(x)
    return multiply(parity, prod_(diagonal, -1))


@_det_by_factors.defjvp
def _det_by_factors_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d det x = trace(adj(x) dx), which is det x trace(x^-1 dx) where there is an inverse. With
    # P x = L U it is the sign of P times trace(adj(U) L^-1 P dx), whatever the rank.
    (x,), (dx,) = primals, tangents
    factors, _, order = core.lu(x)
    diagonal, parity = _lu_sign(x)
    value = _det_by_factors(x)
    change = take_along_axis(dx, expand_dims(order, -1), -2)
    change = core.triangular_solve(
        factors, change, left_side=True, lower=True, unit_diagonal=True
    )
    zero = equal(diagonal, 0)

    def regular(factors: Any, change: Any) -> Any:
        # Ones for zeros: under vmap both branches are computed, and NaN would reach the other.
        on = logical_and(eye(x.aval.shape[-1], dtype=bool), expand_dims(zero, -2))
        solved = core.triangular_solve(where(on, 1, factors), change, left_side=True)
        return multiply(value, _trace(solved, 0, -2, -1))

    def singular(factors: Any, change: Any) -> Any:
        terms = multiply(_adjugate(triu(factors)), matrix_transpose(change))
        return multiply(parity, sum_(terms, (-2, -1)))

    somewhere = any_(zero)
    known = concrete_or_none(somewhere)
    if known is not None:
        return value, (singular if known._value else regular)(factors, change)
    return value, cond_(somewhere, singular, regular, factors, change)


def _adjugate(u: Any) -> Any:
    """The adjugate of upper triangular matrices, a column at a time and without a division: that
    of [[V, v], [0, c]] is [[c adj(V), -adj(V) v], [0, det V]]."""
    n, lead = u.aval.shape[-1], u.aval.shape[:-2]
    rows = lax.iota(dtypes.int32, n)

    def step(carry: tuple, item: tuple) -> tuple:
        known, det = carry
        k, column = item
        pivot = sum_(where(equal(rows, k), column, 0), -1)
        last = negative(matvec(known, where(less(rows, k), column, 0)))
        last = where(equal(rows, k), expand_dims(det, -1), last)
        scaled = multiply(expand_dims(pivot, (-2, -1)), known)
        known = where(equal(rows, k), expand_dims(last, -1), scaled)
        return (known, multiply(det, pivot)), None

    start = lax.full(u.aval.shape, 0, u.aval.dtype), lax.full(lead, 1, u.aval.dtype)
    (out, _), _ = scan(step, start, (rows, moveaxis(u, -1, 0)))
    return out


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """(sign, logabsdet) of the determinant of square matrices: the sign, or phase of complex
    numbers, and the natural logarithm of the size. It does not overflow where `det` would.

    a: (..., n, n) of floats or complex; integers count as floats. A singular matrix gives 0 and
    -inf. method: 'lu' or 'qr' (ValueError for others), which has no effect. ValueError for matrices
    that are not square, TypeError for 16-bit floats.

    >>> sign, log = jnp.linalg.slogdet(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> sign, jnp.exp(log).round(3)
    (Array(-1., dtype=float32), Array(2., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}.")
    return SlogdetResult(*_slogdet(_matrix("slogdet", a, True)))


@custom_jvp
def _slogdet(x: Any) -> tuple[Any, Any]:
    diagonal, parity = _lu_sign(x)
    size = absolute(diagonal)
    zero = equal(size, 0)
    phase = multiply(
        parity, prod_(divide(diagonal, cast(where(zero, 1, size), diagonal.aval.dtype)), -1)
    )
    singular = lax.bitwise_not(all_(lax.bitwise_not(zero), -1))
    logs = sum_(lax.log(size), -1)
    if not dtypes.is_complex(phase.aval.dtype):
        phase = sign(phase)
    return where(singular, cast(array(0), x.aval.dtype), phase), logs


def _solve_by_factors(x: Any, b: Any) -> Any:
    """x^-1 b by substitution, which gives infinities of a singular matrix and no NaN at once."""
    factors, _, order = core.lu(x)
    b = take_along_axis(b, expand_dims(order, -1), -2)
    y = core.triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
    return core.triangular_solve(factors, y, left_side=True)


@_slogdet.defjvp
def _slogdet_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d log det x = trace(x^-1 dx); its imaginary part turns the phase.
    (x,), (dx,) = primals, tangents
    phase, logs = _slogdet(x)
    change = _trace(_solve_by_factors(x, dx), 0, -2, -1)
    if dtypes.is_complex(x.aval.dtype):
        turn = multiply(phase, lax.complex(multiply(logs, 0), lax.imag(change)))
        return (phase, logs), (turn, lax.real(change))
    return (phase, logs), (multiply(phase, 0), change)


def lstsq(
    a: Any,
    b: Any,
    rcond: float | None = None,
    *,
    numpy_resid: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """(x, residuals, rank, singular values): the x with the least norm for which |a @ x - b| is
    least.

    a: (m, n); b: (m,), or (m, k) with the right-hand sides in columns. They promote, integers count
    as floats. rcond: singular values below this part of the largest count as 0; by default the
    rounding error times max(m, n), for negative ones the rounding error alone. numpy_resid: give no
    residuals where m <= n or the rank is below n, as NumPy does; needs known values. By singular
    values. ValueError for shapes that do not fit, TypeError for 16-bit floats.

    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))[0].round(3)
    Array([1., 2.], dtype=float32)
    """
    a, b = promote_inexact(*as_arrays("lstsq", a, b))
    a, b = _matrix("lstsq", a), strong(b)
    if a.aval.ndim != 2 or b.aval.ndim not in (1, 2) or a.aval.shape[0] != b.aval.shape[0]:
        raise ValueError(
            f"lstsq: a must be one matrix and b fit its rows, got {a.aval} and {b.aval}."
        )
    vector = b.aval.ndim == 1
    b = expand_dims(b, -1) if vector else b
    m, n = a.aval.shape
    eps = float(np.finfo(a.aval.dtype).eps)
    if rcond is None:
        rcond = eps * max(m, n)
    else:
        rcond = eps if isinstance(rcond, (int, float)) and rcond < 0 else rcond
    if not min(m, n):
        s = lax.full((0,), 0, dtypes.real_of(a.aval.dtype))
        rank = array(0, int_dtype())
        x = lax.full((n, b.aval.shape[1]), 0, a.aval.dtype)
    else:
        u, s, vh = svd(a, full_matrices=False)
        mask = lax.ge(
            s, broadcast(multiply(cast(array(rcond), s.aval.dtype), getitem(s, 0)), s.aval.shape)
        )
        mask = mask & (s > 0)
        rank = sum_(mask)
        safe = where(mask, s, 1)
        inverse = cast(where(mask, divide(1, safe), 0), a.aval.dtype)
        x = _matmul(adjoint(vh), multiply(expand_dims(inverse, -1), _matmul(adjoint(u), b)))
    gap = subtract(b, _matmul(a, x))
    residuals = sum_(absolute(multiply(gap, conjugate(gap))), 0)
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = lax.full((0,), 0, residuals.aval.dtype)
    return (ravel(x) if vector else x), residuals, rank, s


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """The Moore-Penrose inverse of matrices, by singular values.

    a: (..., m, n) of floats or complex; integers count as floats. Returns (..., n, m). rtol (also
    rcond): singular values up to this part of the largest count as 0; by default 10 max(m, n) times
    the rounding error. hermitian: `a` is, and `eigh` is used. TypeError for 16-bit floats.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    x = _matrix("pinv", a)
    if rcond is not None:
        rtol = rcond
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full((*x.aval.shape[:-2], n, m), 0, x.aval.dtype)
    if rtol is None:
        rtol = 10.0 * max(m, n) * float(np.finfo(x.aval.dtype).eps)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    part = expand_dims(one_array("pinv", rtol), -1)
    part = reshape(part, ((1,) * (s.aval.ndim - part.aval.ndim) + part.aval.shape))
    cutoff = multiply(part, getitem(s, (..., slice(0, 1))))
    large = greater(s, cutoff)
    inverse = cast(where(large, divide(1, where(large, s, 1)), 0), x.aval.dtype)
    return _matmul(adjoint(vh), multiply(expand_dims(inverse, -1), adjoint(u)))


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The rank of matrices: how many singular values are not negligible.

    M: (..., m, n); of fewer axes whether any element is not 0. rtol: those up to this part of the
    largest do not count, by default max(m, n) times the rounding error; tol: those up to this.
    hermitian: M is, and `eigh` is used. Returns the default integer.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)
    """
    x = one_array("matrix_rank", M)
    if x.aval.ndim < 2:
        return cast(not_equal(sum_(not_equal(x, 0)), 0), int_dtype())
    x = _matrix("matrix_rank", x)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        limit = expand_dims(one_array("matrix_rank", tol), -1)
    else:
        if rtol is None:
            rtol = max(x.aval.shape[-2:]) * float(np.finfo(x.aval.dtype).eps)
        relative = expand_dims(one_array("matrix_rank", rtol), -1)
        limit = multiply(max_(s, -1, keepdims=True), relative)
    return sum_(greater(s, limit), -1)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number of matrices: the norm times that of the inverse.

    x: (..., m, n) of floats or complex, square for norms by the inverse. p: the order of the norm
    as in `norm`; None and 2 give the largest by the smallest singular value, -2 the reverse.
    Infinite for singular matrices. ValueError for vectors, TypeError for 16-bit floats.

    >>> jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., dtype=float32)
    """
    x = _matrix("cond", x)
    if p in (None, 2, -2):
        s = svdvals(x)
        low, high = getitem(s, (..., -1)), getitem(s, (..., 0))
        out = divide(low, high) if p == -2 else divide(high, low)
    else:
        out = multiply(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
    nan_in = lax.bitwise_not(all_(equal(x, x), (-2, -1)))
    return where(lax.bitwise_and(not_equal(out, out), lax.bitwise_not(nan_in)), np.inf, out)


# ------------------------------------------------------------------ norms
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors, of matrices, or of all elements.

    x: numbers; integers count as floats; the result is real. axis: an integer for vectors, a pair
    for matrices; None with `ord` for the array's own axes, one or two, and without it for the
    2-norm of all elements. ord: of vectors any number p, for (sum of |x|**p)**(1/p), 0 for the
    number of non-zero elements, inf and -inf for the largest and smallest size; of matrices 'fro',
    'nuc' (sum of singular values), 2 and -2 (largest and smallest one), 1 and -1 (sums of columns),
    inf and -inf (of rows). keepdims: reduced axes stay with size 1. The derivative of the 2-norm at
    0 is NaN. ValueError for other orders and numbers of axes.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0])), jnp.linalg.norm(jnp.array([[3.0, 4.0]]), axis=0)
    (Array(5., dtype=float32), Array([3., 4.], dtype=float32))
    """
    (x,) = promote_inexact(one_array("norm", x))
    rank = x.aval.ndim
    if axis is None:
        if ord is None:
            return _two_norm(x, tuple(range(rank)), keepdims)
        axes = tuple(range(rank))
    else:
        axes = canonical_axes(axis, rank, "norm")
    if len(axes) == 1:
        return _vector_norm(x, axes, 2 if ord is None else ord, keepdims)
    if len(axes) != 2:
        raise ValueError(
            f"norm: improper number of axes {axes}: give one for vectors or two for matrices."
        )
    return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)


def _squares(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def _two_norm(x: Any, axes: tuple, keepdims: bool) -> Any:
    return lax.sqrt(sum_(_squares(x), axes, keepdims=keepdims))


def _vector_norm(x: Any, axes: tuple, ord: Any, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"norm: invalid order {ord!r} for vectors.")
    if isinstance(ord, (int, float)):
        if ord == 2:
            return _two_norm(x, axes, keepdims)
        if ord == math.inf:
            return max_(absolute(x), axes, keepdims=keepdims)
        if ord == -math.inf:
            return min_(absolute(x), axes, keepdims=keepdims)
        if ord == 0:
            return sum_(
                cast(not_equal(x, 0), dtypes.real_of(x.aval.dtype)), axes, keepdims=keepdims
            )
        if ord == 1:
            return sum_(absolute(x), axes, keepdims=keepdims)
    size = absolute(x)
    p = cast(one_array("norm", ord), size.aval.dtype)
    return power(sum_(power(size, p), axes, keepdims=keepdims), divide(1, p))


def _matrix_norm(x: Any, axes: tuple, ord: Any, keepdims: bool) -> Any:
    row, column = axes
    if ord in ("fro", "f"):
        return _two_norm(x, axes, keepdims)
    if ord == "nuc" or ord in (2, -2):
        s = svd(moveaxis(x, axes, (-2, -1)), full_matrices=False, compute_uv=False)
        out = sum_(s, -1) if ord == "nuc" else max_(s, -1) if ord == 2 else min_(s, -1)
        return expand_dims(out, axes) if keepdims else out
    extreme = {1: max_, -1: min_, math.inf: max_, -math.inf: min_}.get(ord)
    if extreme is None:
        raise ValueError(f"norm: invalid order {ord!r} for matrices.")
    summed, other = (row, column) if ord in (1, -1) else (column, row)
    sums = sum_(absolute(x), summed, keepdims=True)
    out = extreme(sums, other, keepdims=True)
    return out if keepdims else lax.squeeze(out, axes)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes.

    x: (..., m, n). ord: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, as in `norm` (ValueError).
    keepdims: the two axes stay with size 1. AxisError for vectors.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along `axis`; of all elements, flattened, without one.

    x: numbers; integers count as floats. axis: an integer, a tuple whose elements count as one
    vector, or None. ord: any number, as in `norm`. keepdims: reduced axes stay with size 1.
    ValueError for names of orders.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [5.0, 12.0]]), axis=1)
    Array([ 5., 13.], dtype=float32)
    """
    (x,) = promote_inexact(one_array("vector_norm", x))
    return _vector_norm(x, canonical_axes(axis, x.aval.ndim, "vector_norm"), ord, keepdims)


# ------------------------------------------------------------------ products
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of square matrices, by repeated squaring; of the inverse for negative n.

    a: (..., k, k) of any dtype, which the result has; for negative n integers count as floats. n: a
    Python integer. TypeError for other powers and for matrices that are not square (NumPy:
    LinAlgError).

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    if not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: the power must be an integer, got {n!r}.")
    n = operator.index(n)
    x = one_array("matrix_power", a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise TypeError(f"matrix_power: needs square matrices, got {x.aval}.")
    if n == 0:
        return broadcast(eye(x.aval.shape[-1], dtype=x.aval.dtype), x.aval.shape)
    if n < 0:
        x, n = inv(x), -n
    out = None
    while n:
        if n & 1:
            out = x if out is None else _matmul(out, x)
        n >>= 1
        x = _matmul(x, x) if n else x
    return out


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """The product of several matrices in the order that multiplies least.

    arrays: at least two; matrices, the first and the last may be vectors (ValueError). precision:
    as in `jnp.matmul`. The order is found by the dynamic program of Cormen et al., Introduction to
    Algorithms, section 15.2.

    >>> jnp.linalg.multi_dot([jnp.array([1, 2]), jnp.array([[1, 0], [1, 1]]), jnp.array([5, 1])])
    Array(17, dtype=int32)
    """
    xs = as_arrays("multi_dot", *arrays)
    if len(xs) < 2:
        raise ValueError("multi_dot: needs at least two arrays.")
    first, last = xs[0].aval.ndim == 1, xs[-1].aval.ndim == 1
    xs[0] = reshape(xs[0], (1, -1)) if first else xs[0]
    xs[-1] = reshape(xs[-1], (-1, 1)) if last else xs[-1]
    for x in xs:
        if x.aval.ndim != 2:
            raise ValueError(
                f"multi_dot: arrays must be matrices (vectors at the ends), got {x.aval}."
            )
    sizes = [x.aval.shape[0] for x in xs] + [xs[-1].aval.shape[1]]
    n = len(xs)
    # The classic dynamic program over the order of the products.
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = cut[i][j]
        return dot(product(i, k), product(k + 1, j), precision=precision)

    out = product(0, n - 1)
    gone = tuple([0] * first + [1] * last)
    return lax.squeeze(out, gone) if gone else out


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of the linear map that tensordot with `a` is.

    a: numbers whose first `ind` axes have as many elements as the others (ValueError). ind: a
    positive integer (ValueError). tensordot(tensorinv(a, ind), b, b.ndim) is the x for which
    tensordot(a, x, x.ndim) = b, with b.ndim = ind.

    >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    (x,) = promote_inexact(one_array("tensorinv", a))
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}.")
    rows, columns = x.aval.shape[:ind], x.aval.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            f"tensorinv: the axes before and after {ind} must have equal sizes, got {x.aval}."
        )
    return reshape(inv(reshape(x, (math.prod(rows), math.prod(columns)))), columns + rows)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """x with tensordot(a, x, x.ndim) = b.

    a: its first axes are those of b, and the others, which x has, are of as many elements
    (ValueError). axes: axes of `a` that are put behind the others first.

    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.array([[2.0, 4.0], [6.0, 8.0]]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    a, b = as_arrays("tensorsolve", a, b)
    if axes is not None:
        moved = [i for i in range(a.aval.ndim) if i not in canonical_axes(axes, a.aval.ndim)]
        a = lax.transpose(a, (*moved, *canonical_axes(axes, a.aval.ndim)))
    shape = a.aval.shape[b.aval.ndim :]
    n = b.aval.size
    if math.prod(shape) != n or a.aval.shape[: b.aval.ndim] != b.aval.shape:
        raise ValueError(f"tensorsolve: a {a.aval} and b {b.aval} do not fit.")
    return reshape(solve(reshape(a, (n, n)), ravel(b)), shape)


def matmul(
    x1: Any,
    x2: Any,
    /,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The matrix product, over leading axes that broadcast: `jnp.matmul`.

    x1: (..., m, k), x2: (..., k, n), or vectors. precision, preferred_element_type: as in
    `jnp.matmul`.

    >>> jnp.linalg.matmul(jnp.array([[1, 2]]), jnp.array([[3], [4]]))
    Array([[11]], dtype=int32)
    """
    return _matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The sum of products over axes: `jnp.tensordot`.

    x1, x2, axes, precision, preferred_element_type, out_sharding: as there, but that the arrays
    come by position and `axes` by name.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three components.

    x1, x2: numbers with 3 components along `axis` (ValueError), which promote; the other axes
    broadcast.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = as_arrays("cross", x1, x2)
    for v in (x, y):
        if v.aval.shape[canonical_axis(axis, v.aval.ndim, "cross")] != 3:
            raise ValueError(f"cross: vectors must have 3 components, got {v.aval}.")
    return products.cross(x, y, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all elements of vector `x1` with all of vector `x2`: a matrix.

    x1, x2: vectors (ValueError; `jnp.outer` flattens), which promote; not conjugated.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([[10, 20],
           [20, 40]], dtype=int32)
    """
    x, y = as_arrays("outer", x1, x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={x.aval.ndim} "
            f"x2.ndim={y.aval.ndim}. numpy.outer flattens them."
        )
    return _outer(x, y)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes.

    x: (..., m, n) of any dtype (ValueError for vectors). offset: 0 for the main diagonal, positive
    above, negative below.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the matrices in the last two axes.

    x: (..., m, n) of any dtype (ValueError for vectors). offset: 0 for the main diagonal, positive
    above, negative below. dtype: what is added up and returned, by default as in `jnp.sum`.

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return _trace(x, offset, -2, -1, dtype)


class LinAlgError(ValueError):
    """Never raised by compiled code: failed factorizations give NaN."""


__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return [*__all__]
