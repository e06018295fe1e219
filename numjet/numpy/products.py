"""Products: dot, matmul, tensordot, inner, outer and others; each is one dot_general."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.api.compiled.shown import FLAG, apart, kept, wanted, written_apart
from numjet.api.placement.reshard import laid_out
from numjet.base import config
from numjet.core import dtypes, hooks, structural
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import Placed, ShapedArray, any_placed
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.evaluate import LARGE
from numjet.core.jaxpr import product_params
from numjet.core.memo import Memo
from numjet.core.trace import Tracer, current_trace
from numjet.native.operators import Forms
from numjet.native.record import traced_products
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import multiply, subtract
from numjet.numpy.fast import QUIET, eager, quiet_enter, quiet_leave
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    cast,
    check_loop_ranks,
    join_shapes,
    promote_dtypes,
    promoted,
    refuse,
)
from numjet.numpy.shape import expand_dims, moveaxis, ravel, reshape
from numjet.ops.complex_ops import conjugate
from numjet.ops.dot import canonical_precision, dot_general_p, is_long
from numjet.ops.dot_algorithms import algorithm_of
from numjet.transforms.eager import LinearizeTrace
from numjet.transforms.stage import StageTrace


def check_options(name: str, precision: Any, preferred: Any) -> None:
    """Raise ValueError for what is no precision, and what is no dtype as it cannot be hashed."""
    if precision is not None and algorithm_of(precision) is None:
        canonical_precision(precision)
    hashable(preferred, "argument 'preferred_element_type'", name)


def contract(x: Any, y: Any, numbers: Any, precision: Any = None, preferred: Any = None) -> Any:
    """dot_general of operands of any two dtypes."""
    if FLAG.uses and kept():
        return apart(contract, contract, (x, y, numbers, precision, preferred), {})
    wanted = None
    if preferred is not None:
        wanted = canonical_dtype(hashable(preferred, "'preferred_element_type'", "dot"), "dot")
    differ = x.aval.dtype is not y.aval.dtype
    weak = wanted is None and (differ or x.aval.weak_type or y.aval.weak_type) and promoted(x, y)[1]
    if differ and wanted is None and (isinstance(x, Tracer) or isinstance(y, Tracer)):
        wanted = promoted(x, y)[0]  # one equation, which converts
    elif differ and wanted is None:
        x, y = promote_dtypes(x, y)
    if wanted is None and (FLAG.uses or precision is not None) and config.jax_form():
        wanted = promoted(x, y)[0]  # which JAX writes for products of jax.numpy
    out = lax.dot_general(x, y, numbers, precision=precision, preferred_element_type=wanted)
    return cast(out, out.aval.dtype, weak)


def _mismatch(name: str, x: Any, y: Any, i: int, j: int) -> TypeError:
    m, n = x.aval.shape[i], y.aval.shape[j]
    return TypeError(
        f"dot_general requires contracting dimensions to have the same shape, got ({m},) and "
        f"({n},): {name} of lhs {x.aval}, whose axis {i} is {m}, and rhs {y.aval}, whose axis {j} "
        f"is {n}. Transpose one side, or use einsum."
    )


_products: dict[tuple, Any] = Memo("products")
product_forms = Forms()
# What traced products become names no precision; while the flag does for some, it is not kept.
config.default_matmul_precision.on_begin(traced_products.clear)
FLAG.on_begin(traced_products.clear)  # whose equations say the dtype of the result


def _eager_product(a: Any, b: Any) -> ArrayImpl | None:
    """The product of concrete vectors and matrices of one 32 or 64-bit floating dtype by NumPy; or
    written down where an operand waits, or the result is larger than both."""
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl:
        waits = type(a) in _CONCRETE and type(b) in _CONCRETE
        return _product_later(a, b) if waits and eager() else None
    if not eager():
        return None
    x, y = a.aval, b.aval
    aval = _products.get((x, y))
    if aval is None:
        if (
            x.dtype is not y.dtype
            or x.dtype.kind not in "fc"
            or x.dtype.itemsize < 4
            or not (0 < x.ndim <= 2 and 0 < y.ndim <= 2)
            or x.shape[-1] != y.shape[0]
            or is_long(x.shape, y.shape)
        ):
            return None
        aval = ShapedArray(x.shape[:-1] + y.shape[1:], x.dtype, x.weak_type and y.weak_type)
        _products[x, y] = aval
        if not _outgrows(x, y, aval):
            product_forms.learn(x, y, np.matmul, aval)
    if _outgrows(x, y, aval):
        later = _product_later(a, b)
        if later is not None:
            return later
    token = quiet_enter(QUIET)
    try:
        value = np.matmul(a._value, b._value)
    finally:
        quiet_leave(token)
    return ArrayImpl(value if type(value) is np.ndarray else np.asarray(value), aval)


def _outgrows(x: ShapedArray, y: ShapedArray, out: ShapedArray) -> bool:
    """Whether a product is large, and larger than its operands: what is done with it next costs
    more than it does, if both do not run together."""
    return out.size >= LARGE and out.size > x.size + y.size


# By the avals of operands: how their product is written down; None where there is no short way.
_product_plans: dict[tuple, Plan | None] = Memo("products of arrays that wait")
_CONCRETE = frozenset({ArrayImpl, DeferredArray})


def _product_later(a: Any, b: Any) -> Any:
    """The product of concrete arrays, written down; None where that is another's to do."""
    avals = a.aval, b.aval
    plan = _product_plans.get(avals)
    if plan is None:
        if avals in _product_plans:
            return None
        found = _product_of_floats(*avals)
        if found is not None:
            plan = Plan(avals, [], [(dot_general_p, found[0], (0, 1), found[1])])
        _product_plans[avals] = plan
        if plan is None:
            return None
    out = hooks.defer_plan(plan, [a, b])
    if out is not None and not plan.told:
        plan.told = True
        product_forms.learn_later(*avals, plan, large=_outgrows(*avals, plan.out))
    return out


def _quick_product(a: Any, b: Any) -> Any:
    """The product of arrays whose like were multiplied before, concrete or traced; else None."""
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        if not (isinstance(a, Array) and isinstance(b, Array)):
            return None
        return traced_product(a, b)
    return _eager_product(a, b)


def traced_product(a: Array, b: Array) -> Any:
    """The product of arrays, one of them traced, where it is known for their avals; else None."""
    if FLAG.uses and FLAG.value:
        return None
    found = traced_products.get((a.aval, b.aval))
    if found is None:
        if config.default_matmul_precision.anywhere:
            return None
        found = _product_of_floats(a.aval, b.aval)
        if found is None or Placed.active and any_placed((a.aval, b.aval)):
            return None
        traced_products[a.aval, b.aval] = found
    trace = current_trace()
    if type(trace) is StageTrace:  # `bind_known` written out
        return trace.record(dot_general_p, (a, b), *found)
    if FLAG.uses:
        config.asked.note()
    if type(trace) is LinearizeTrace:
        product_forms.learn_linear(a, b, dot_general_p, found[0])
    return trace.process(dot_general_p, (a, b), found[0])


def _product_of_floats(x: ShapedArray, y: ShapedArray) -> tuple | None:
    """Params and result of the product of arrays that fit, of one wide floating type, of which the
    second is a vector or a matrix, or has the leading axes of the first; None for others."""
    dtype = x.dtype
    if dtype is not dtypes.float32 and dtype is not dtypes.float64 or y.dtype is not dtype:
        return None
    if x.weak_type or y.weak_type:
        return None
    if y.ndim > 2:
        lead = x.shape[:-2]
        if y.shape[:-2] != lead or 1 in lead or x.shape[-1] != y.shape[-2]:
            return None
        batch = tuple(range(len(lead)))
        numbers = (((x.ndim - 1,), (y.ndim - 2,)), (batch, batch))
        return product_params(numbers), ShapedArray(x.shape[:-1] + y.shape[-1:], dtype)
    if not (x.ndim and y.ndim) or x.shape[-1] != y.shape[0]:
        return None
    params = _product_params(x.ndim)
    return params, ShapedArray(x.shape[:-1] + y.shape[1:], dtype)


def _product_params(ndim: int) -> dict:
    """Those of a product over the last axis of `ndim`, and the first of the other operand."""
    return product_params((((ndim - 1,), (0,)), ((), ())))


def _plain_product(x: Any, y: Any, precision: Any, preferred: Any) -> Any:
    """The product of a vector or matrix with another; remembered for traced ones of one dtype."""
    numbers = (((x.aval.ndim - 1,), (0,)), ((), ()))
    out = contract(x, y, numbers, precision, preferred)
    plain = precision is None and preferred is None and isinstance(out, Tracer)
    if plain and not (config.default_matmul_precision.anywhere or FLAG.uses and FLAG.value):
        u, v = x.aval, y.aval
        if u.dtype is v.dtype and u.weak_type is v.weak_type and not u.weak_type:
            traced_products[u, v] = _product_params(u.ndim), out.aval
    return out


def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product over the last axis of `a` and the second last (or only) axis of `b`.

    a, b: numbers of any shape, which promote; where one is a scalar it multiplies. precision: a
    `lax.Precision`, a name of it, or one for each operand. preferred_element_type: the dtype of
    sums and result. out_sharding: the layout of the result. TypeError for lengths that differ. For
    stacks of matrices use `matmul`.

    >>> jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    if out_sharding is not None:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return laid_out(functools.partial(dot, a, b, **options), out_sharding)
    quick = None
    if precision is None and preferred_element_type is None:
        # Of more axes it is another product than `matmul`.
        quick = _quick_product(a, b) if isinstance(b, Array) and b.aval.ndim <= 2 else None
    if quick is not None:
        return quick
    x, y = as_arrays("dot", a, b)
    if not x.aval.ndim or not y.aval.ndim:
        if FLAG.uses and wanted():
            return contract(x, y, (((), ()), ((), ())), precision, preferred_element_type)
        same = x.aval.dtype == y.aval.dtype and dtypes.is_inexact(x.aval.dtype)
        out = lax.mul(x, y) if same else multiply(x, y)
        if preferred_element_type is None:
            return out
        wanted_dtype = canonical_dtype(preferred_element_type, "dot")
        real = dtypes.is_complex(out.aval.dtype) and not dtypes.is_complex(wanted_dtype)
        return cast(lax.real(out) if real else out, wanted_dtype)  # asked for: no warning
    i, j = x.aval.ndim - 1, max(y.aval.ndim - 2, 0)
    if x.aval.shape[i] != y.aval.shape[j]:
        raise _mismatch("dot", x, y, i, j)
    return contract(x, y, (((i,), (j,)), ((), ())), precision, preferred_element_type)


def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The matrix product a @ b, over leading axes that broadcast.

    a: (..., m, k) or (k,); b: (..., k, n) or (k,), which promote; vectors count as rows of `a` or
    columns of `b`, and their axis does not stay. precision: a `lax.Precision`, a name of it, or one
    for each operand. preferred_element_type: the dtype of sums and result. out_sharding: the layout
    of the result. TypeError for lengths that differ, ValueError for scalars.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [1, 1]]))
    Array([[3, 2],
           [7, 4]], dtype=int32)
    """
    if out_sharding is not None:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return laid_out(functools.partial(matmul, a, b, **options), out_sharding)
    quick = _quick_product(a, b) if precision is None and preferred_element_type is None else None
    if quick is not None:
        return quick
    x, y = as_arrays("matmul", a, b)
    for which, operand in enumerate((x, y)):
        if not operand.aval.ndim:
            raise ValueError(
                f"matmul input operand {which} must have ndim at least 1, but it has ndim 0: "
                f"{operand.aval}. Use multiply for scalars."
            )
    p, q = x.aval.ndim, y.aval.ndim
    i, j = p - 1, max(q - 2, 0)
    if x.aval.shape[i] != y.aval.shape[j]:
        raise _mismatch("matmul", x, y, i, j)
    if p <= 2 and q <= 2:
        return _plain_product(x, y, precision, preferred_element_type)
    lead_x, lead_y = x.aval.shape[:-2] if p > 1 else (), y.aval.shape[:-2] if q > 1 else ()
    lead = join_shapes("matmul", [lead_x, lead_y])
    if not lead_y or math.prod(lead_y) == 1 and len(lead_y) <= len(lead_x):
        # One matrix for all: the leading axes are rows of one product.
        y = reshape(y, y.aval.shape[-2:]) if q > 1 else y
        return contract(
            x, y, (((i,), (max(y.aval.ndim - 2, 0),)), ((), ())), precision, preferred_element_type
        )
    rank = len(lead)
    # Axes of size 1 that the other operand does not have are left out of the batch and come back.
    wide_x = (1,) * (rank - len(lead_x)) + lead_x
    wide_y = (1,) * (rank - len(lead_y)) + lead_y
    both = [k for k in range(rank) if wide_x[k] != 1 and wide_y[k] != 1]
    only_x = [k for k in range(rank) if wide_x[k] != 1 and wide_y[k] == 1]
    only_y = [k for k in range(rank) if wide_x[k] == 1 and wide_y[k] != 1]
    x = reshape(x, tuple([n for n in wide_x if n != 1]) + x.aval.shape[-2 if p > 1 else -1 :])
    y = reshape(y, tuple([n for n in wide_y if n != 1]) + y.aval.shape[-2 if q > 1 else -1 :])
    kept_x = [k for k in range(rank) if wide_x[k] != 1]
    kept_y = [k for k in range(rank) if wide_y[k] != 1]
    batch = (tuple([kept_x.index(k) for k in both]), tuple([kept_y.index(k) for k in both]))
    contracting = ((x.aval.ndim - 1,), (max(y.aval.ndim - 2, 0) if q > 1 else 0,))
    if q == 1:
        contracting = ((x.aval.ndim - 1,), (y.aval.ndim - 1,))
    out = contract(x, y, (contracting, batch), precision, preferred_element_type)
    # dot_general's axes: batch, free of x (leading, rows), free of y (leading, columns).
    labels: list[Any] = [
        *both,
        *only_x,
        *(["row"] if p > 1 else []),
        *only_y,
        *(["column"] if q > 1 else []),
    ]
    wanted = sorted([*both, *only_x, *only_y]) + [s for s in ("row", "column") if s in labels]
    out = structural.transpose(out, tuple([labels.index(s) for s in wanted]))
    final = lead + tuple([n for s, n in zip(wanted, out.aval.shape) if isinstance(s, str)])
    return reshape(out, final)


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The sum of products over `axes` of `a` and `b`.

    axes: a number n, for the last n of `a` and the first n of `b`; or a pair of axes, or of tuples
    of them, to be summed over together. The result has the other axes of `a`, then those of `b`.
    precision, preferred_element_type, out_sharding: as in `matmul`. TypeError for lengths that
    differ and for n above the ranks, ValueError for pairs that do not fit. The dtypes promote.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((4, 3)), axes=(1, 1)).shape
    (2, 4)
    """
    if out_sharding is not None:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return laid_out(functools.partial(tensordot, a, b, axes, **options), out_sharding)
    x, y = as_arrays("tensordot", a, b)
    if isinstance(axes, (list, tuple)) or isinstance(axes, np.ndarray) and axes.ndim:
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes must be a number or a pair, got {axes!r}.")
        first, second = [a if isinstance(a, (list, tuple)) else (a,) for a in axes]
        if any([isinstance(a, str) for a in axes]):
            raise TypeError(
                "tensordot requires both axes lists to be either ints, tuples or lists, got "
                f"{axes!r}."
            )
        if len(first) != len(second):
            raise TypeError(
                f"tensordot requires axes lists to have equal length, got {axes!r}: those of one "
                "operand are summed over together with those of the other."
            )
        i = canonical_axes(tuple(first), x.aval.ndim, "tensordot")
        j = canonical_axes(tuple(second), y.aval.ndim, "tensordot")
    else:
        if isinstance(axes, str):
            raise TypeError(
                "tensordot axes argument must be an int, a pair of ints, or a pair of lists or "
                f"tuples of ints, got {axes!r}."
            )
        n = operator.index(axes)
        if n > min(x.aval.ndim, y.aval.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {n}) exceeds input ranks ({x.shape} and "
                f"{y.shape})."
            )
        i = tuple(range(x.aval.ndim - n, x.aval.ndim))
        j = tuple(range(n))
    for k, m in zip(i, j):
        if x.aval.shape[k] != y.aval.shape[m]:
            raise _mismatch("tensordot", x, y, k, m)
    return contract(x, y, ((i, j), ((), ())), precision, preferred_element_type)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes of `a` and `b`.

    a: (..., k), b: (..., k), which promote, scalars multiply; not conjugated. Returns the other
    axes of `a`, then those of `b`. precision, preferred_element_type: as in `matmul`. TypeError for
    lengths that differ.

    >>> jnp.inner(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
    Array([11, 17], dtype=int32)
    """
    x, y = as_arrays("inner", a, b)
    if not x.aval.ndim or not y.aval.ndim:
        return multiply(x, y)
    return tensordot(
        x, y, (-1, -1), precision=precision, preferred_element_type=preferred_element_type
    )


@written_apart
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The products of all elements of `a` with all of `b`: a matrix.

    a, b: numbers of any shape, flattened, which promote; not conjugated. `out` raises
    NotImplementedError.

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([[10, 20],
           [20, 40]], dtype=int32)
    """
    refuse("outer", out=out)
    x, y = promote_dtypes(*as_arrays("outer", a, b))
    if FLAG.uses and wanted():
        return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))
    return multiply(reshape(x, (x.aval.size, 1)), reshape(y, (1, y.aval.size)))


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of conj(a) * b over the flattened arrays: a scalar.

    a, b: numbers of as many elements (TypeError), which promote. precision, preferred_element_type:
    as in `matmul`.

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3]))
    Array(7.+0.j, dtype=complex64)
    """
    x, y = as_arrays("vdot", a, b)
    return dot(
        conjugate(ravel(x)),
        ravel(y),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@written_apart
def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The sum of conj(x1) * x2 along `axis`, over the other axes, which broadcast.

    x1, x2: numbers with at least one axis (IndexError) and of one length along `axis` (ValueError),
    which promote. precision, preferred_element_type: as in `matmul`.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    x, y = as_arrays("vecdot", x1, x2)
    if not x.aval.ndim or not y.aval.ndim:
        raise IndexError(f"vecdot: operands need a dimension, got {x.aval} and {y.aval}.")
    x, y = (
        moveaxis(v, canonical_axis(axis, v.aval.ndim, "vecdot", IndexError), -1) for v in (x, y)
    )
    if x.aval.shape[-1] != y.aval.shape[-1]:
        raise ValueError(
            f"vecdot: axes must match; got shapes {x.aval.shape} and {y.aval.shape} ({x.aval} and "
            f"{y.aval})."
        )
    check_loop_ranks("vecdot", "(n),(n)->()", (x, y), [1, 1])
    if FLAG.uses and wanted() and 1 in (x.aval.ndim, y.aval.ndim):
        along = (x.aval.ndim - 1,), (y.aval.ndim - 1,)
        return contract(conjugate(x), y, (along, ((), ())), precision, preferred_element_type)
    shape = join_shapes("vecdot", [x.aval.shape, y.aval.shape])
    x, y = broadcast(conjugate(x), shape), broadcast(y, shape)
    lead = tuple(range(len(shape) - 1))
    last = (len(shape) - 1,)
    return contract(x, y, ((last, last), (lead, lead)), precision, preferred_element_type)


def _same_length(name: str, m: int, n: int) -> None:
    if m != n:
        raise ValueError(f"{name}: inconsistent size for core dimension: {m} vs {n}.")


def matvec(x1: Any, x2: Any, /) -> Any:
    """The products of matrices and vectors, over leading axes that broadcast.

    x1: (..., m, k), x2: (..., k), which promote. Returns (..., m). ValueError for fewer axes
    and lengths that differ.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    x, y = as_arrays("matvec", x1, x2)
    if x.aval.ndim < 2 or not y.aval.ndim:
        raise ValueError(f"matvec: needs a matrix and a vector, got {x.aval} and {y.aval}.")
    _same_length("matvec", x.aval.shape[-1], y.aval.shape[-1])
    check_loop_ranks("matvec", "(n,m),(m)->(n)", (x, y), [2, 1])
    out = matmul(x, expand_dims(y, -1))
    return lax.squeeze(out, (out.aval.ndim - 1,))


def vecmat(x1: Any, x2: Any, /) -> Any:
    """The products of conjugated vectors and matrices, over leading axes that broadcast.

    x1: (..., k), x2: (..., k, n), which promote. Returns (..., n). ValueError for fewer axes
    and lengths that differ.

    >>> jnp.vecmat(jnp.array([10, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([13, 24], dtype=int32)
    """
    x, y = as_arrays("vecmat", x1, x2)
    if y.aval.ndim < 2 or not x.aval.ndim:
        raise ValueError(f"vecmat: needs a vector and a matrix, got {x.aval} and {y.aval}.")
    _same_length("vecmat", x.aval.shape[-1], y.aval.shape[-2])
    check_loop_ranks("vecmat", "(n),(n,m)->(m)", (x, y), [1, 2])
    out = matmul(expand_dims(conjugate(x), -2), y)
    return lax.squeeze(out, (out.aval.ndim - 2,))


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: each element of `a` times the whole of `b`, as blocks.

    a, b: numbers of any rank, which promote. The lengths of the result are the products of theirs.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([[ 1,  2, 10, 20],
           [ 3,  4, 30, 40]], dtype=int32)
    """
    x, y = promote_dtypes(*as_arrays("kron", a, b))
    rank = max(x.aval.ndim, y.aval.ndim)
    xs = (1,) * (rank - x.aval.ndim) + x.aval.shape
    ys = (1,) * (rank - y.aval.ndim) + y.aval.shape
    wide_x = reshape(x, tuple([n for m in xs for n in (m, 1)]))
    wide_y = reshape(y, tuple([n for m in ys for n in (1, m)]))
    return reshape(multiply(wide_x, wide_y), tuple([n * m for n, m in zip(xs, ys)]))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The cross product of vectors.

    a, b: numbers with 2 or 3 components along `axisa` and `axisb` (ValueError), which promote; the
    other axes broadcast. A missing third component is 0. axisc: where the result has its
    components; axis: stands for all three. Of two components each there is only the third, without
    an axis.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    dtype, _ = promoted(*as_arrays("cross", a, b))
    x, y = [cast(v, dtype) for v in as_arrays("cross", a, b)]
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moveaxis(x, canonical_axis(axisa, x.aval.ndim, "cross"), -1)
    y = moveaxis(y, canonical_axis(axisb, y.aval.ndim, "cross"), -1)
    if x.aval.shape[-1] not in (2, 3) or y.aval.shape[-1] not in (2, 3):
        raise ValueError(
            "cross: the dimension must be either 2 or 3 for cross product, got "
            f"{x.aval.shape[-1]} and {y.aval.shape[-1]}."
        )

    def part(v: Any, i: int) -> Any:
        return getitem(v, (..., i))

    if x.aval.shape[-1] == 2 and y.aval.shape[-1] == 2:
        return subtract(multiply(part(x, 0), part(y, 1)), multiply(part(x, 1), part(y, 0)))
    x, y = (
        v
        if v.aval.shape[-1] == 3
        else concatenate([v, lax.full((*v.aval.shape[:-1], 1), 0, v.aval.dtype)], -1)
        for v in (x, y)
    )
    parts = [
        subtract(multiply(part(x, i), part(y, j)), multiply(part(x, j), part(y, i)))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    out = concatenate([expand_dims(p, -1) for p in parts], -1)
    return moveaxis(out, -1, axisc)
