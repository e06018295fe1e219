"""Cholesky factors, triangular systems and general systems; helpers for the other decompositions.

References are LAPACK through NumPy and SciPy. Matrices stand in the last two axes; the axes before
are a batch.
A matrix that cannot be factored gives NaN, not an exception, as compiled programs cannot raise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import (
    add_tangents,
    broadcast_in_dim,
    convert,
    moveaxis,
    scalar,
    transpose,
    zeros,
)
from numjet.ops.arithmetic import add, div, mul, neg, sub
from numjet.ops.complex_ops import conjugate
from numjet.ops.dot import batch_matmul
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.logic import eq, ge
from numjet.ops.shape import broadcasted_iota, expand_dims, reshape, select_n
from numjet.transforms.batch import all_to_front


# ------------------------------------------------------------------ helpers
def check_matrix(
    name: str,
    x: ShapedArray,
    square: bool = False,
    oblong: type[Exception] = TypeError,
    narrow: type[Exception] = NotImplementedError,
) -> None:
    """Raise unless `x` is a batch of (square) float32, float64 or complex matrices: `oblong` where
    they are not square, `narrow` for floats of fewer bits."""
    if x.ndim < 2:
        raise TypeError(
            f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}: a batch of "
            f"{'square ' if square else ''}matrices is expected."
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise oblong(
            f"{name}: expected a batch of {'square ' if square else ''}matrices, got "
            f"{x.str_short()}."
        )
    if not dtypes.is_inexact(x.dtype) or x.dtype.itemsize < 4:
        error = narrow if dtypes.is_inexact(x.dtype) else TypeError
        raise error(
            f"{name}: takes float32, float64, complex64 and complex128, got {x.str_short()}. "
            "Convert with .astype()."
        )


def transposed(x: Any) -> Any:
    """The last two axes swapped."""
    n = x.aval.ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return transposed(conjugate(x))


def _band(x: Any, keep: Callable[[Any, Any], Any]) -> Any:
    shape = x.aval.shape[-2:]
    rows = broadcasted_iota(dtypes.int32, shape, 0)
    columns = broadcasted_iota(dtypes.int32, shape, 1)
    mask = broadcast_in_dim(keep(rows, columns), x.aval.shape, (x.aval.ndim - 2, x.aval.ndim - 1))
    return select_n(mask, zeros(x.aval), x)


def lower_part(x: Any, k: int = 0) -> Any:
    """The elements on and below diagonal `k`."""
    return _band(x, lambda i, j: ge(add(i, np.int32(k)), j))


def upper_part(x: Any, k: int = 0) -> Any:
    """The elements on and above diagonal `k`."""
    return _band(x, lambda i, j: ge(j, add(i, np.int32(k))))


def diagonal_part(x: Any) -> Any:
    """`x` with zeros off the diagonal."""
    return _band(x, eq)


def identity(n: int, dtype: Any) -> Any:
    value = np.eye(n, dtype=dtype)
    return as_array(value)


def batch_identity(x: Any, n: int) -> Any:
    """n by n identities for the batch of `x`, of its dtype."""
    ndim = x.aval.ndim
    return broadcast_in_dim(
        identity(n, x.aval.dtype), (*x.aval.shape[:-2], n, n), (ndim - 2, ndim - 1)
    )


def symmetrized(x: Any) -> Any:
    """(x + xᴴ) / 2."""
    total = add(x, adjoint(x))
    return div(total, 2.0) if config.jax_form() else mul(total, 0.5)


def halves(x: Any, symmetrize: bool) -> Any:
    """x; where it is to be symmetrized, integers become floats, as halves of sums are."""
    dtype = x.aval.dtype
    if not symmetrize or not (dtypes.is_integer(dtype) or dtypes.is_bool(dtype)):
        return x
    logical = dtypes.is_bool(dtype)
    wide = dtypes.float64 if logical or dtype.itemsize == 8 else dtypes.float32
    return convert(x, dtypes.canonical(wide), weak_type=x.aval.weak_type or logical)


def narrow_and_empty(x: Any) -> bool:
    """Whether x's matrices have no elements, of floats that LAPACK does not know: nothing is to be
    computed."""
    dtype = x.aval.dtype
    return dtypes.is_floating(dtype) and dtype.itemsize < 4 and 0 in x.aval.shape[-2:]


def permute_rows(x: Any, order: Any) -> Any:
    """Row order[..., i] of each matrix as row i."""
    if not x.aval.size:
        return x
    batch = tuple(range(x.aval.ndim - 2))
    row = len(batch)
    numbers = GatherDimensionNumbers((row + 1,), (row,), (row,), batch, batch)
    return gather(
        x,
        expand_dims(order, (order.aval.ndim,)),
        numbers,
        [1] * (row + 1) + [x.aval.shape[-1]],
        mode="promise_in_bounds",
    )


def batch_matrices(primitive_of: Callable[[], Primitive], several: bool) -> Callable:
    """The batch rule of an operation whose leading axes are a batch already."""

    def batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
        outs = primitive_of().bind(*all_to_front(args, dims, axis.size), **params)
        return (outs, [0] * len(outs)) if several else (outs, 0)

    return batch


def each_matrix(function: Callable, *operands: np.ndarray) -> list[np.ndarray]:
    """`function` of the matrices (or vectors) of each batch element, results stacked."""
    batch = operands[0].shape[:-2]
    count = math.prod(batch)
    flat = [x.reshape(count, *x.shape[len(batch) :]) for x in operands]
    if not count:
        shapes = function(*[np.ones(x.shape[1:], x.dtype) for x in flat])
        return [np.empty((*batch, *y.shape), y.dtype) for y in shapes]
    results = [function(*xs) for xs in zip(*flat, strict=True)]
    return [
        np.stack(parts).reshape(*batch, *parts[0].shape) for parts in zip(*results, strict=True)
    ]


def weak_as_operands(abstract: Callable) -> Callable:
    """`abstract`, with results of weak type where all operands are."""

    @functools.wraps(abstract)
    def rule(*avals: ShapedArray, **params: Any) -> Any:
        outs = abstract(*avals, **params)
        if not all([a.weak_type for a in avals]):
            return outs
        if isinstance(outs, ShapedArray):
            return outs.update(weak_type=True)
        return [a.update(weak_type=True) for a in outs]

    return rule


def decomposition(
    name: str,
    abstract: Callable,
    reference: Callable,
    jvp: Callable | None = None,
    several: bool = True,
    prune: Callable | None = None,
    integers: bool = False,
) -> Primitive:
    """A primitive over batches of matrices that runs through LAPACK.

    abstract: the types of the results, which are weak where those of all operands are.

    jvp: None where the derivative is not known, which is an error, or (`integers`) where there is
    none to know.
    """
    primitive: Primitive

    def unknown(primals: tuple, tangents: tuple, **params: Any) -> Any:
        outs = primitive.bind(*primals, **params)
        if any([type(t) is not Zero for t in tangents]):
            raise NotImplementedError(
                f"{name}: no derivative is known. Use eigh, svd, qr or lu, which have one, or "
                "lax.stop_gradient for operands whose derivative does not count."
            )
        several_outs = outs if several else [outs]
        zeros = [Zero(y.aval.tangent()) for y in several_outs]
        return (outs, zeros) if several else (outs, zeros[0])

    if jvp is None and not integers:
        jvp = unknown
    primitive = Primitive(
        name,
        multiple_results=several,
        differentiable=jvp is not None,
        abstract=weak_as_operands(abstract),
        reference=reference,
        jvp=jvp,
        batch=batch_matrices(lambda: primitive, several),
        prune=prune,
        loops=Kernel(name),
    )
    return primitive


# ------------------------------------------------------------------ cholesky
def _cholesky_abstract(x: ShapedArray) -> ShapedArray:
    check_matrix("cholesky", x, square=True)
    return x.strong()


def _cholesky_reference(x: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return np.tril(np.full_like(x, np.nan))
        return np.stack([_cholesky_reference(m) for m in x])


def _cholesky_jvp(primals: tuple, tangents: tuple) -> tuple:
    """dL = L Φ(L⁻¹ dA L⁻ᴴ), Φ taking the lower triangle and half the diagonal (Murray 2016)."""
    factor = cholesky_p.bind(*primals)
    if type(tangents[0]) is Zero:
        return factor, Zero(factor.aval.tangent())
    inner = triangular_solve_p.bind(
        factor,
        tangents[0],
        left_side=False,
        lower=True,
        transpose_a=True,
        conjugate_a=dtypes.is_complex(factor.aval.dtype),
        unit_diagonal=False,
    )
    inner = triangular_solve_p.bind(
        factor,
        inner,
        left_side=True,
        lower=True,
        transpose_a=False,
        conjugate_a=False,
        unit_diagonal=False,
    )
    halved = sub(lower_part(inner), mul(diagonal_part(inner), np.asarray(0.5, inner.aval.dtype)))
    return factor, batch_matmul(factor, halved)


cholesky_p = Primitive(
    "cholesky",
    abstract=weak_as_operands(_cholesky_abstract),
    reference=_cholesky_reference,
    jvp=_cholesky_jvp,
    batch=batch_matrices(lambda: cholesky_p, several=False),
    loops=Kernel("cholesky"),
)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with L Lᴴ = x.

    x: [..., n, n], Hermitian and positive definite, floats or complex numbers of 32 or 64 bits each
    (NotImplementedError for others). symmetrize_input: use (x + xᴴ)/2, by which integers become
    floats; else only the lower triangle is read, of no integers (TypeError). Result: x's shape and
    dtype, zeros above the diagonal; NaN where x is not positive definite. Differentiable. Raises
    TypeError for matrices that are not square. Source: Golub and Van Loan, Matrix Computations,
    section 4.2; LAPACK's potrf.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = halves(as_array(x), symmetrize_input)
    check_matrix("cholesky", x.aval, square=True)
    factor = cholesky_p.bind(symmetrized(x) if symmetrize_input else x)
    if not config.jax_form():
        return factor
    shape = x.aval.shape  # zeros above the diagonal, which JAX's operation does not write
    rows = add(broadcasted_iota(dtypes.int32, shape[-2:], 0), scalar(0, dtypes.int32))
    below = ge(rows, broadcasted_iota(dtypes.int32, shape[-2:], 1))
    if len(shape) > 2:
        below = broadcast_in_dim(below, shape, (len(shape) - 2, len(shape) - 1))
    zero = scalar(0, x.aval.dtype)
    return select_n(below, broadcast_in_dim(zero, shape, ()), factor)


# ------------------------------------------------------------------ triangular_solve
def _triangular_abstract(
    a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any
) -> ShapedArray:
    if a.ndim > 1 and a.shape[-1] != a.shape[-2]:
        raise ValueError(
            "The first input to triangular_solve must be a square matrix. Got shape "
            f"{a.shape}."
        )
    check_matrix("triangular_solve", a, square=True)
    if a.dtype != b.dtype:
        raise TypeError(
            f"triangular_solve: a {a.str_short()} and b {b.str_short()} must have one dtype."
        )
    if (
        b.ndim != a.ndim
        or a.shape[:-2] != b.shape[:-2]
        or b.shape[-2 if left_side else -1] != a.shape[-1]
    ):
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}: on "
            f"the {'left' if left_side else 'right'} the batch axes must be equal and b needs "
            f"{a.shape[-1]} {'rows' if left_side else 'columns'}."
        )
    return b.strong()


def _triangular_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> np.ndarray:
    from scipy.linalg.blas import get_blas_funcs

    if not b.size:
        return b.copy()
    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    how = 0
    if transpose_a:
        how = 2 if conjugate_a and dtypes.is_complex(a.dtype) else 1
    elif conjugate_a:
        a = a.conj()

    def solve(a: np.ndarray, b: np.ndarray) -> tuple:
        return (
            np.ascontiguousarray(
                trsm(1, a, b, side=not left_side, lower=lower, trans_a=how, diag=unit_diagonal)
            ),
        )

    return each_matrix(solve, a, b)[0]


def _triangular_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    a, b = primals
    x = triangular_solve_p.bind(a, b, **params)
    da, right = tangents
    if type(da) is not Zero:
        # op(a) x = b differentiates to op(a) dx = db - op(da) x.
        k = 1 if params["unit_diagonal"] else 0
        da = lower_part(da, -k) if params["lower"] else upper_part(da, k)
        if params["conjugate_a"]:
            da = conjugate(da)
        if params["transpose_a"]:
            da = transposed(da)
        right = add_tangents(
            right, neg(batch_matmul(da, x) if params["left_side"] else batch_matmul(x, da))
        )
    if type(right) is Zero:
        return x, Zero(x.aval.tangent())
    return x, triangular_solve_p.bind(a, right, **params)


def _triangular_transpose(ct: Any, a: Any, b: Any, **params: Any) -> list:
    if type(b) is not Linear:
        raise NotImplementedError("triangular_solve: only the right-hand side is linear.")
    return [
        None,
        triangular_solve_p.bind(a, ct, **{**params, "transpose_a": not params["transpose_a"]}),
    ]


def _triangular_batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
    (a, b), (da, db) = args, dims
    if da is None and a.aval.ndim == 2 and axis.size:
        # One matrix for all: the batch becomes columns (rows on the right side).
        if params["left_side"] and config.jax_form():
            b = moveaxis(b, db, 2)
            n, k, size = b.aval.shape
            x = triangular_solve_p.bind(a, reshape(b, (n, k * size)), **params)
            return reshape(x, (n, k, size)), 2
        if params["left_side"]:
            b = moveaxis(b, db, 1)
            n, size, k = b.aval.shape
            x = triangular_solve_p.bind(a, reshape(b, (n, size * k)), **params)
            return reshape(x, (n, size, k)), 1
        b = moveaxis(b, db, 0)
        size, k, n = b.aval.shape
        return reshape(
            triangular_solve_p.bind(a, reshape(b, (size * k, n)), **params), (size, k, n)
        ), 0
    return triangular_solve_p.bind(*all_to_front(args, dims, axis.size), **params), 0


triangular_solve_p = Primitive(
    "triangular_solve",
    linear=True,
    abstract=weak_as_operands(_triangular_abstract),
    reference=_triangular_reference,
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    batch=_triangular_batch,
    loops=Kernel("triangular_solve"),
)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The x with op(a) x = b, or x op(a) = b, for triangular a.

    a: [..., n, n], of which only the triangle named by `lower` is read, floats or complex numbers
    of 32 or 64 bits each (NotImplementedError for others), or floats of 16, which are solved in
    32. b: [..., n, k] with left_side, else [..., k, n], of a's dtype and leading axes, or a vector
    (one axis less than a). transpose_a, conjugate_a: what op does. unit_diagonal: the diagonal
    counts as ones. Result: b's shape; infinite or NaN for a singular a. Differentiable in both.
    Raises TypeError or ValueError for shapes that do not fit. Source: substitution, Golub and Van
    Loan, Matrix Computations, section 3.1; BLAS's trsm.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> a, b = jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([[2.0], [3.0]])
    >>> linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [2.]], dtype=float32)
    """
    a, b = as_array(a), as_array(b)
    vector = b.ndim == a.ndim - 1
    if vector:
        b = expand_dims(b, (b.ndim,) if left_side else (b.ndim - 1,))
    dtype, short = b.dtype, (dtypes.float16, dtypes.bfloat16)
    narrow = a.dtype == dtype and dtype in short
    if narrow:
        a, b = convert(a, dtypes.float32), convert(b, dtypes.float32)
    x = triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and dtypes.is_complex(a.dtype),
        unit_diagonal=bool(unit_diagonal),
    )
    x = convert(x, dtype) if narrow else x
    if vector:
        x = reshape(x, (*x.shape[:-2], x.shape[-2] if left_side else x.shape[-1]))
    return x


# ------------------------------------------------------------------ solve
def _solve_abstract(a: ShapedArray, b: ShapedArray) -> ShapedArray:
    check_matrix("solve", a, square=True)
    if (
        a.dtype != b.dtype
        or a.ndim != b.ndim
        or a.shape[:-2] != b.shape[:-2]
        or a.shape[-1] != b.shape[-2]
    ):
        raise TypeError(
            f"solve: b {b.str_short()} does not fit a {a.str_short()}: dtypes and batch axes must "
            f"be equal, and b needs {a.shape[-1]} rows."
        )
    return b.strong()


def _solve_reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        if a.ndim == 2:
            return _solve_singular(a, b)
        return np.stack([_solve_reference(m, v) for m, v in zip(a, b, strict=True)])


def _solve_singular(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The substitutions in LU factors whose pivots may be zero: infinite and NaN where by IEEE's
    rules they are."""
    from scipy.linalg.lapack import get_lapack_funcs

    getrf, getrs = get_lapack_funcs(("getrf", "getrs"), (a, b))
    factors, pivots, _ = getrf(a)
    return np.ascontiguousarray(getrs(factors, pivots, b)[0])


def _solve_jvp(primals: tuple, tangents: tuple) -> tuple:
    a, _ = primals
    x = solve_p.bind(*primals)
    da, right = tangents
    if type(da) is not Zero:
        right = add_tangents(right, neg(batch_matmul(da, x)))
    return x, Zero(x.aval.tangent()) if type(right) is Zero else solve_p.bind(a, right)


def _solve_transpose(ct: Any, a: Any, b: Any) -> list:
    if type(b) is not Linear:
        raise NotImplementedError("solve: only the right-hand side is linear.")
    return [None, solve_p.bind(transposed(a), ct)]


def _solve_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    (a, b), (da, db) = args, dims
    if da is None and a.aval.ndim == 2 and axis.size:
        b = moveaxis(b, db, 1)
        n, size, k = b.aval.shape
        return reshape(solve_p.bind(a, reshape(b, (n, size * k))), (n, size, k)), 1
    return solve_p.bind(*all_to_front(args, dims, axis.size)), 0


solve_p = Primitive(
    "solve",
    linear=True,
    abstract=weak_as_operands(_solve_abstract),
    reference=_solve_reference,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    loops=Kernel("solve"),
)


def solve(a: Any, b: Any) -> Any:
    """The x with a x = b.

    a: [..., n, n], floats or complex numbers of 32 or 64 bits each (NotImplementedError for
    others). b: [..., n, k], of the same dtype and leading axes. Result: [..., n, k]; NaN or
    infinite where a is singular. By LU with row exchanges. Differentiable in both. Raises TypeError
    for shapes and dtypes that do not fit; `numpy.linalg.solve` takes vectors and broadcasts.
    Source: that of `lu`.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([[2.0], [8.0]]))
    Array([[1.],
           [2.]], dtype=float32)
    """
    return solve_p.bind(as_array(a), as_array(b))
