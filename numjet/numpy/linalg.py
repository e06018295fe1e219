"""numjet.numpy.linalg: norms, factorizations, solutions of linear systems, eigenvalues.

Built from the primitives of `ops.linalg`; batches of matrices are leading axes everywhere. Where
NumPy raises LinAlgError, since a matrix is singular or not positive definite, results hold NaN or
infinities: values are not known while tracing. What arguments and dtypes have in common is said in
`numjet.numpy`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, in_place, shown, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.base import config
from numjet.core import dtypes
from numjet.core.dims import largest
from numjet.numpy import lax_names as lax, products
from numjet.numpy.creation import array
from numjet.numpy.determinants import SlogdetResult, det, slogdet
from numjet.numpy.elementwise import absolute, add, divide, multiply, power, subtract
from numjet.numpy.factorizations import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    adjoint,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lapack_matrices,
    qr,
    svd,
    svdvals,
)
from numjet.numpy.index_tricks import diagonal as _diagonal, trace as _trace
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import equal, greater, not_equal, where
from numjet.numpy.products import dot, matmul as _matmul, outer as _outer, vecdot
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    cast,
    float_dtype,
    int_dtype,
    join_shapes,
    one_array,
    promote_inexact,
    reduced_axes,
    strong,
)
from numjet.numpy.ranges import eye
from numjet.numpy.reductions import all as all_, max as max_, min as min_, sum as sum_
from numjet.numpy.shape import expand_dims, matrix_transpose, moveaxis, ravel, reshape
from numjet.ops import linalg as core
from numjet.ops.complex_ops import conjugate


# ------------------------------------------------------------------ systems
def solve(a: Any, b: Any) -> Any:
    """x with a @ x = b, by elimination with pivots.

    a: (..., n, n); b: (n,), or (..., n, k) with the right-hand sides in columns. They promote,
    integers count as floats; leading axes broadcast. A singular `a` gives infinities or NaN (NumPy
    raises LinAlgError). ValueError for shapes that do not fit, NotImplementedError for 16-bit
    floats. Computed by `lax.linalg.solve`.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 5.0]))
    Array([2., 3.], dtype=float32)
    """
    a, b = promote_inexact(*as_arrays("solve", a, b))
    a = lapack_matrices("solve", a, True)
    if not b.aval.ndim:
        raise ValueError(f"solve: b must have at least one dimension, got {b.aval}.")
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


def identities(x: Any) -> Any:
    """Identity matrices in the place of x's, of its dtype, outside of `enable_x64` too."""
    dtype = x.aval.dtype
    unit = eye(x.aval.shape[-1], dtype=dtypes.canonical(dtype))
    return broadcast(cast(unit, dtype), x.aval.shape)


def inv(a: Any) -> Any:
    """The inverse of square matrices. To solve a system, `solve` is quicker and more exact.

    a: (..., n, n) of floats or complex; integers count as floats. A singular matrix gives
    infinities or NaN (NumPy raises LinAlgError). ValueError for matrices that are not square,
    NotImplementedError for 16-bit floats. Computed by `lax.linalg.solve`.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = lapack_matrices("inv", a, True)
    return core.solve(x, identities(x))


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
    values. ValueError for shapes that do not fit, TypeError for stacks of matrices,
    NotImplementedError for 16-bit floats. Computed by `lax.linalg.svd`. Where the rank is not full
    the derivative may be NaN.

    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))[0].round(3)
    Array([1., 2.], dtype=float32)
    """
    a, b = promote_inexact(*as_arrays("lstsq", a, b))
    b = strong(b)
    for ranks, x in ("two", a), ("one or two", b):
        if x.aval.ndim != 2 and (x is a or x.aval.ndim != 1):
            raise TypeError(
                f"lstsq: {x.aval.ndim}-dimensional array given. Array must be {ranks}-dimensional; "
                "map over stacks with `vmap`."
            )
    if a.aval.shape[0] != b.aval.shape[0]:
        raise ValueError(
            f"lstsq: b must fit the rows of a, got {a.aval} and {b.aval}."
        )
    a = lapack_matrices("lstsq", a, flat=TypeError, empty=True)
    vector = b.aval.ndim == 1
    b = expand_dims(b, -1) if vector else b
    m, n = a.aval.shape
    eps = float(dtypes.finfo(a.aval.dtype).eps)
    if rcond is None:
        rcond = eps * max(m, n)
    else:
        rcond = eps if isinstance(rcond, (int, float)) and rcond < 0 else rcond
    if not min(m, n):
        s = lax.full((0,), 0, a.aval.dtype)
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
    the rounding error. hermitian: `a` is, and `eigh` is used. NotImplementedError for 16-bit
    floats. Computed by `lax.linalg.svd`.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    x = lapack_matrices("pinv", a, empty=True)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full((*x.aval.shape[:-2], n, m), 0, x.aval.dtype)
    if rtol is None:
        if FLAG.uses and wanted() and x.aval.ndim == 2 and dtypes.is_floating(x.aval.dtype):
            return in_place("of pinv", x)
        rtol = 10.0 * largest(m, n) * float(np.finfo(x.aval.dtype).eps)
    return _pinv(hermitian, x, one_array("pinv", rtol))


@functools.partial(jvp_of_arrays, nondiff_argnums=(0,))
def _pinv(hermitian: bool, x: Any, rtol: Any) -> Any:
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    part = expand_dims(rtol, -1)
    part = reshape(part, ((1,) * (s.aval.ndim - part.aval.ndim) + part.aval.shape))
    cutoff = multiply(part, getitem(s, (..., slice(0, 1))))
    large = greater(s, cutoff)
    s = cast(where(large, s, math.inf), x.aval.dtype)
    return _matmul(adjoint(vh), divide(adjoint(u), expand_dims(s, -1)))


@_pinv.defjvp
def _pinv_rule(hermitian: bool, primals: tuple, tangents: tuple) -> tuple:
    """-P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, of matrices whose rank stays: Golub and
    Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate (1973). The derivatives of singular vectors, which equal values do not have,
    are not in it."""
    a, rtol = primals
    p, da = _pinv(hermitian, a, rtol), tangents[0]
    ph, dah = adjoint(p), adjoint(da)
    columns, rows = _matmul(_matmul(p, ph), dah), _matmul(_matmul(dah, ph), p)
    columns = subtract(columns, _matmul(_matmul(columns, a), p))
    rows = subtract(rows, _matmul(p, _matmul(a, rows)))
    return p, subtract(add(columns, rows), _matmul(_matmul(p, da), p))


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The rank of matrices: how many singular values are not negligible.

    M: (..., m, n); of fewer axes whether any element is not 0. rtol: those up to this part of the
    largest do not count, by default max(m, n) times the rounding error; tol: those up to this.
    hermitian: M is, and `eigh` is used. Returns the default integer. Computed by `lax.linalg.svd`.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)
    """
    x = one_array("matrix_rank", M)
    if x.aval.ndim < 2:
        return cast(not_equal(sum_(not_equal(x, 0)), 0), int_dtype())
    x = lapack_matrices("matrix_rank", x, empty=True)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        limit = expand_dims(one_array("matrix_rank", tol), -1)
    else:
        high = max_(s, -1)
        if rtol is None:
            high = multiply(high, max(x.aval.shape[-2:]))
            rtol = float(dtypes.finfo(x.aval.dtype).eps)
        limit = expand_dims(multiply(high, rtol), -1)
    return sum_(greater(s, limit), -1)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number of matrices: the norm times that of the inverse.

    x: (..., m, n) of floats or complex, square for norms by the inverse. p: the order of the norm
    as in `norm`; None and 2 give the largest by the smallest singular value, -2 the reverse.
    Infinite for singular matrices. ValueError for vectors, NotImplementedError for 16-bit floats.
    ValueError for matrices without elements. Computed by `lax.linalg.svd`.

    >>> jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., dtype=float32)
    """
    x = lapack_matrices("cond", x, empty=True)
    if 0 in x.aval.shape[-2:]:
        raise ValueError(
            f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.aval.shape}."
        )
    if p in (None, 2, -2):
        s = svdvals(x)
        high, low = getitem(s, (..., 0)), getitem(s, (..., -1))
        out = divide(low, high) if p == -2 else divide(high, low)
    else:
        out = multiply(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
    if FLAG.uses and wanted():
        return out
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
            f"Improper number of axes for norm: {axes}. Give one for vectors or two for matrices."
        )
    return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)


def _squares(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.mul(x, x) if config.jax_form() else lax.square(x)


def _two_norm(x: Any, axes: tuple, keepdims: bool) -> Any:
    return lax.sqrt(sum_(_squares(x), axes, keepdims=keepdims))


def _largest(sizes: Any, axes: Any, keepdims: bool = False) -> Any:
    """The largest of what is not negative, 0 of nothing. Zeros share the slope with the 0 that it
    begins with, as in JAX."""
    return max_(sizes, axes, keepdims=keepdims, initial=0)


def _vector_norm(x: Any, axes: tuple, ord: Any, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid order {ord!r} for vector norm.")
    if isinstance(ord, (int, float)):
        if ord == 2:
            return _two_norm(x, axes, keepdims)
        if ord == math.inf:
            return _largest(absolute(x), axes, keepdims)
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
    inverse = 1 / ord if isinstance(ord, (int, float)) else divide(1, p)
    return power(sum_(power(size, p), axes, keepdims=keepdims), inverse)


def _matrix_norm(x: Any, axes: tuple, ord: Any, keepdims: bool) -> Any:
    row, column = axes
    if ord in ("fro", "f"):
        return _two_norm(x, axes, keepdims)
    if ord == "nuc" or ord in (2, -2):
        s = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        out = sum_(s, -1) if ord == "nuc" else _largest(s, -1) if ord == 2 else min_(s, -1)
        return expand_dims(out, axes) if keepdims else out
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"Invalid order {ord!r} for matrix norm.")
    summed, other = (row, column) if ord in (1, -1) else (column, row)
    if x.aval.ndim == 2 and not keepdims and ord > 0 and config.jax_form():
        return _largest(sum_(absolute(x), summed), 0)
    sums = sum_(absolute(x), summed, keepdims=True)
    out = _largest(sums, other, True) if ord > 0 else min_(sums, other, keepdims=True)
    return out if keepdims else lax.squeeze(out, axes)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes.

    x: (..., m, n). ord: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, as in `norm` (ValueError).
    keepdims: the two axes stay with size 1. ValueError for vectors.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along `axis`; of all elements, flattened, without one.

    x: numbers; integers count as floats but where `ord` is 1 or infinite. axis: an integer, a tuple
    whose elements count as one vector, or None. ord: any number, as in `norm`. keepdims: reduced
    axes stay with size 1. ValueError for names of orders.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [5.0, 12.0]]), axis=1)
    Array([ 5., 13.], dtype=float32)
    """
    x, ord = one_array("vector_norm", x), 2 if ord is None else ord
    number = isinstance(ord, (int, float))
    if dtypes.is_integer(x.aval.dtype) or dtypes.is_bool(x.aval.dtype):
        if number and ord == 2:
            x = cast(x, float_dtype(), x.aval.weak_type)
        elif not number or abs(ord) != math.inf and ord != 1:
            (x,) = promote_inexact(x)
    else:
        (x,) = promote_inexact(x)
    return _vector_norm(x, reduced_axes(axis, x.aval.ndim, "vector_norm"), ord, keepdims)


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
        raise TypeError(
            f"matrix_power: Last 2 dimensions of the array must be square, got {x.aval}."
        )
    if n == 0:
        return identities(x)
    if n < 0:
        x, n = inv(x), -n
    out, cube = None, n == 3
    while n:
        if n & 1:
            out = x if out is None else _matmul(x, out) if cube else _matmul(out, x)
        n >>= 1
        x = _matmul(x, x) if n else x
    return out


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """The product of several matrices in the order that multiplies least.

    arrays: at least two; matrices, the first and the last may be vectors (ValueError). precision:
    as in `jnp.matmul`. Source of the order: Cormen et al., Introduction to Algorithms,
    section 15.2 (dynamic programming).

    >>> jnp.linalg.multi_dot([jnp.array([1, 2]), jnp.array([[1, 0], [1, 1]]), jnp.array([5, 1])])
    Array(17, dtype=int32)
    """
    xs = as_arrays("multi_dot", *arrays)
    if len(xs) < 2:
        raise ValueError(f"multi_dot: needs at least two arrays, got {len(xs)}.")
    first, last = xs[0].aval.ndim == 1, xs[-1].aval.ndim == 1
    xs[0] = reshape(xs[0], (1, -1)) if first else xs[0]
    xs[-1] = reshape(xs[-1], (-1, 1)) if last else xs[-1]
    for x in xs:
        if x.aval.ndim != 2:
            raise ValueError(
                f"multi_dot: arrays must be matrices (vectors at the ends), got {x.aval}."
            )
    if any(x.aval.shape[1] != y.aval.shape[0] for x, y in zip(xs, xs[1:])):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following "
            f"array, got {[x.aval.shape for x in xs]}."
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

    out = _product(xs, cut, 0, n - 1, precision)
    gone = tuple([0] * first + [1] * last)
    return lax.squeeze(out, gone) if gone else out


def _product(xs: Sequence[Any], cut: list[list[int]], i: int, j: int, precision: Any) -> Any:
    """The product of xs[i : j + 1], of which the parts before and after cut[i][j] are products."""
    if i == j:
        return xs[i]
    k = cut[i][j]
    left, right = _product(xs, cut, i, k, precision), _product(xs, cut, k + 1, j, precision)
    return dot(left, right, precision=precision)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of the linear map that tensordot with `a` is.

    a: numbers whose first `ind` axes have as many elements as the others (ValueError). ind: a
    positive integer (ValueError). tensordot(tensorinv(a, ind), b, b.ndim) is the x for which
    tensordot(a, x, x.ndim) = b, with b.ndim = ind. Integers and booleans count as floats. Computed
    by `lax.linalg.solve`.

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
    (ValueError). axes: axes of `a` that are put behind the others first. Integers and booleans
    count as floats. Computed by `lax.linalg.solve`.

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
    `jnp.matmul`. ValueError for scalars. TypeError for lengths that differ.

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
    come by position and `axes` by name. TypeError where an array has too few axes.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip


_cross = shown(products.cross)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three components.

    x1, x2: numbers with 3 components along `axis` (ValueError), which promote; the other axes
    broadcast. IndexError for an axis out of range.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = as_arrays("cross", x1, x2)
    for v in (x, y):
        if v.aval.shape[canonical_axis(axis, v.aval.ndim, "cross", IndexError)] != 3:
            raise ValueError(f"cross: vectors must have 3 components, got {v.aval}.")
    return _cross(x, y, axis=axis)


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
