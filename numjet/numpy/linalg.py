"""numjet.numpy.linalg: norms, factorizations, solutions of linear systems, eigenvalues.

Built from the primitives of `ops.linalg`; batches of matrices are leading axes everywhere.
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
from numjet.numpy import lax_names as lax, products
from numjet.numpy.creation import array, eye
from numjet.numpy.elementwise import (
    absolute,
    add,
    bitwise_and,
    divide,
    equal,
    greater,
    multiply,
    not_equal,
    power,
    sign,
    subtract,
    where,
)
from numjet.numpy.index_tricks import diagonal as _diagonal, trace as _trace
from numjet.numpy.indexing import getitem
from numjet.numpy.products import dot, matmul as _matmul, outer as _outer, vecdot
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
    max as max_,
    min as min_,
    prod as prod_,
    sum as sum_,
)
from numjet.numpy.shape import expand_dims, matrix_transpose, moveaxis, ravel, reshape
from numjet.numpy.sorting import argsort
from numjet.numpy.take import take_along_axis
from numjet.ops import linalg as core
from numjet.ops.complex_ops import conjugate
from numjet.ops.linalg_more import geqrf


class QRResult(NamedTuple):
    Q: Any
    R: Any


class EigResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
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
    """The lower (or upper) triangular factor of hermitian positive definite matrices.

    NaN where a matrix is not positive definite.
    """
    x = _matrix("cholesky", a, True)
    if upper:
        # Of what is not symmetrized the lower triangle is read here too.
        return adjoint(core.cholesky(x, symmetrize_input=symmetrize_input))
    return core.cholesky(x, symmetrize_input=symmetrize_input)


def qr(a: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R. mode: reduced, complete, r; or raw, which
    gives (factors, taus) as LAPACK keeps them, the factors transposed (see `lax.linalg.ormqr`)."""
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
    """U, the singular values (falling), and the conjugate transpose of V."""
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
    """The singular values, falling."""
    return svd(x, full_matrices=False, compute_uv=False)


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues (rising) and eigenvectors of hermitian matrices."""
    x = _matrix("eigh", a, True)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"eigh: UPLO must be None, 'L' or 'U', got {UPLO!r}.")
    v, w = core.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of hermitian matrices, rising."""
    x = _matrix("eigvalsh", a, True)
    return core.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)[1]


def eig(a: Any) -> EigResult:
    """The eigenvalues and right eigenvectors of square matrices, complex."""
    w, v = core.eig(_matrix("eig", a, True), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Any:
    """The eigenvalues of square matrices, complex."""
    return core.eig(
        _matrix("eigvals", a, True),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
    )[0]


# ------------------------------------------------------------------ systems
def solve(a: Any, b: Any) -> Any:
    """x with a @ x = b; b is a vector (1-D) or holds columns."""
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
    """The inverse of square matrices."""
    x = _matrix("inv", a, True)
    n = x.aval.shape[-1]
    return core.solve(x, broadcast(eye(n, dtype=x.aval.dtype), x.aval.shape))


def _lu_sign(x: Any) -> tuple[Any, Any]:
    """The diagonal of U and the sign of the row exchanges."""
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
    """The determinant of square matrices."""
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
    diagonal, parity = _lu_sign(x)
    return multiply(parity, prod_(diagonal, -1))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign (or phase) of the determinant and the logarithm of its size."""
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
    """The least squares solution of a @ x = b: (x, residuals, rank, singular values)."""
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
    """The Moore-Penrose inverse; singular values below rtol times the largest count as zero."""
    x = _matrix("pinv", a)
    if rcond is not None:
        rtol = rcond
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full((*x.aval.shape[:-2], n, m), 0, x.aval.dtype)
    if rtol is None:
        rtol = 10.0 * max(m, n) * float(np.finfo(x.aval.dtype).eps)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    cutoff = multiply(expand_dims(one_array("pinv", rtol), -1), getitem(s, (..., slice(0, 1))))
    large = greater(s, cutoff)
    inverse = cast(where(large, divide(1, where(large, s, 1)), 0), x.aval.dtype)
    return _matmul(adjoint(vh), multiply(expand_dims(inverse, -1), adjoint(u)))


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The number of singular values above rtol times the largest."""
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
    """The condition number: the norm times the norm of the inverse (singular values for p=2)."""
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
    """The norm of vectors (one axis) or matrices (two axes), or of all elements (neither)."""
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
    """The norm of matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along `axis` (of all elements without one)."""
    (x,) = promote_inexact(one_array("vector_norm", x))
    return _vector_norm(x, canonical_axes(axis, x.aval.ndim, "vector_norm"), ord, keepdims)


# ------------------------------------------------------------------ products
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of square matrices, by repeated squaring."""
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
    """The product of several matrices in the cheapest order; the ends may be vectors."""
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
    """The inverse of tensordot with `a` over its first `ind` axes."""
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
    """x with tensordot(a, x, x.ndim) = b."""
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
    """The matrix product."""
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
    """The sum of products over axes."""
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three components."""
    x, y = as_arrays("cross", x1, x2)
    for v in (x, y):
        if v.aval.shape[canonical_axis(axis, v.aval.ndim, "cross")] != 3:
            raise ValueError(f"cross: vectors must have 3 components, got {v.aval}.")
    return products.cross(x, y, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all elements of vector `x1` with all of vector `x2`. Raises ValueError for
    operands of another number of axes."""
    x, y = as_arrays("outer", x1, x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={x.aval.ndim} "
            f"x2.ndim={y.aval.ndim}. numpy.outer flattens them."
        )
    return _outer(x, y)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices."""
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
