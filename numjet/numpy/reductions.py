"""Reductions: sums, products, means, extrema, variances, and positions of extrema."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.api.compiled.shown import FLAG, Shown, apart, as_call, kept, wanted
from numjet.base.config import enable_x64
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import executor, may_wait, remember
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY
from numjet.core.structural import convert, scalar
from numjet.core.trace import Tracer, current_trace
from numjet.native.known import KnownCalls
from numjet.native.operators import when_ready
from numjet.numpy import lax_names as lax
from numjet.numpy.complex_order import complex_extremum
from numjet.numpy.elementwise import add, divide, maximum, minimum, multiply, square, subtract
from numjet.numpy.fast import eager
from numjet.numpy.logic import as_bool, greater, not_equal, where
from numjet.numpy.promote import (
    broadcast,
    canonical_axis,
    canonical_dtype,
    cast,
    inexact_dtype,
    int_dtype,
    join_shapes,
    mask_of,
    names_and_axes,
    one_array,
    reduced_axes,
    refuse,
    strong,
)
from numjet.numpy.shape import expand_dims, ravel, reshape
from numjet.ops.collective import axis_size, pmax, pmin, psum
from numjet.ops.reduce import extreme_of, sum_over
from numjet.transforms.again import again


def _masked(name: str, x: Any, mask: Any, fill: Any) -> Any:
    """x where the mask holds, `fill` elsewhere; the mask may widen x."""
    shape = join_shapes(name, [x.aval.shape, mask_of(name, mask).aval.shape])
    return where(broadcast(mask, shape), broadcast(x, shape), scalar(fill, x.aval.dtype))


def _finish(out: Any, x: Any, axes: tuple, keepdims: bool) -> Any:
    if not keepdims:
        return out
    if FLAG.uses and wanted():
        return lax.expand_dims(out, axes) if axes else out
    return lax.reshape(out, tuple([1 if i in axes else n for i, n in enumerate(x.aval.shape)]))


def _reduction(
    name: str,
    operation: Callable,
    primitive: str,
    combine: Callable | None,
    neutral: Callable[[Any], Any],
    prepare: Callable,
    empty: bool,
    widened: Callable | None = None,
    across: Callable | None = None,
) -> KnownCalls:
    """A reduction with NumPy's arguments. `neutral(dtype)` fills masked elements; `empty` says that
    an empty reduction has a value; `widened(x, axes, dtype)` is NumPy's reduction of integers as
    if they were of a wider dtype, without a copy of them; `across(x, names)` reduces over mapped
    axes."""
    known: dict[tuple, Callable] = Memo(f"reductions: {name}")
    recall = known.get  # bound once: looking the method up takes as long as the look-up
    traced: dict[tuple, tuple] = Memo(f"reductions of traced arrays: {name}")
    record = REGISTRY[primitive]

    def complete(
        a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, mask: Any, promote: bool
    ) -> Any:
        if FLAG.uses and kept():
            return apart(complete, complete, (a, axis, dtype, keepdims, initial, mask, promote), {})
        x, keepdims = one_array(name, a), hashable(keepdims, "argument 'keepdims'", name)
        dtypes.refuse_keys(name, x.aval.dtype)
        if widened is not None and mask is None and type(x) is ArrayImpl:
            wide = _wide(x.aval.dtype, dtype, promote, name)
            if wide is not None and current_trace().at_once and not names_and_axes(axis)[0]:
                axes = reduced_axes(axis, x.aval.ndim, name)
                value = np.asarray(widened(x._value, axes, wide))
                out = ArrayImpl(value, ShapedArray(value.shape, wide))
                return _finish(begun(out, initial, out), x, axes, keepdims)
        x = prepare(name, x, dtype, promote)
        if mask is not None:
            mask, told = one_array(name, mask), "does not have an identity"
            if combine is not None and initial is None and not empty:
                raise ValueError(f"{name} {told}, so to use a where mask give `initial`.")
            x = _masked(name, x, mask, neutral(x.aval.dtype))
        names: tuple = ()
        if across is not None:
            names, axis = names_and_axes(axis)
        axes = reduced_axes(axis, x.aval.ndim, name)
        if not empty and initial is None and not math.prod([x.aval.shape[i] for i in axes]):
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no "
                f"identity: shape {x.aval.shape}, axes {axes}. Give `initial`."
            )
        kind = x.aval.dtype
        if dtypes.is_floating(kind) and kind.itemsize == 2 and FLAG.uses and wanted():
            if name in ("sum", "prod") and dtype is None:
                x = cast(x, dtypes.float32)
        out = operation(x, axes)
        if names and across is not None:
            out = across(out, names)
        out = _finish(begun(out, initial, x), x, axes, keepdims)
        return out if x.aval.dtype == kind else cast(out, kind)

    def begun(out: Any, initial: Any, x: Any) -> Any:
        """The result with what the reduction begins with, in x's dtype."""
        if initial is None or combine is None:
            return out
        value = one_array(name, initial)
        if value.aval.ndim:
            raise ValueError(f"{name}: `initial` must be a scalar, got {value.aval}.")
        return combine(cast(value, x.aval.dtype, x.aval.weak_type), out)

    def bound(a: Tracer, axis: Any) -> Any:
        """The common call, traced: the primitive at once where nothing else was done before."""
        key = placed(a.aval, axis)
        axes = traced.get(key)
        if axes and (a.aval.dtype.itemsize != 2 or not (FLAG.uses and wanted())):  # shows casts
            return record.bind(a, axes=axes)
        out = complete(a, axis, None, False, None, None, True)
        if axes is None and not FLAG.value:
            alone = a.aval.dtype == out.aval.dtype and not a.aval.weak_type
            alone = alone and type(out) is type(a) and not dtypes.is_complex(out.aval.dtype)
            traced[key] = reduced_axes(axis, a.aval.ndim, name) if alone else ()
        return out

    def placed(aval: ShapedArray, axis: Any) -> tuple:
        """The key of a common call: what small integers are added up in depends on the flag."""
        if prepare is accumulating and dtypes.is_integer(aval.dtype):
            return aval, axis, enable_x64.value
        return aval, axis

    def reduce(
        a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, mask: Any, promote: bool
    ) -> Any:
        plain = (
            type(a) is ArrayImpl and dtype is None and not keepdims and initial is None
            and mask is None and promote and type(axis) in _AXIS_TYPES
        )  # fmt: skip
        if plain:
            run = recall((a.aval, axis)) or recall((a.aval, axis, enable_x64.value))
            if run is not None and current_trace().at_once:
                return run(a)
        return rest(plain, a, axis, dtype, keepdims, initial, mask, promote)

    def rest(plain: bool, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, mask: Any,
             promote: bool) -> Any:  # fmt: skip # apart: each call makes cells for its lambdas
        if isinstance(a, Tracer) and type(axis) in _AXIS_TYPES and not keepdims and promote:
            if dtype is None and initial is None and mask is None:
                return bound(a, axis)
        elif (
            (keepdims is True and _written(a) or keepdims is False and may_wait(a))
            and type(axis) in _AXIS_TYPES
            and promote
        ):
            lowest = type(initial) is float and initial == -math.inf
            if dtype is None and mask is None and (lowest or initial is None):
                return again(
                    (name, axis, lowest, keepdims), a,
                    lambda x: complete(x, axis, None, keepdims, initial, None, True),
                    lambda plan: calls.learn((a, axis, None, keepdims, initial, None, True), plan),
                )  # fmt: skip
        out = complete(a, axis, dtype, keepdims, initial, mask, promote)
        if plain and type(out) is ArrayImpl and current_trace().at_once:
            alike = out.aval.dtype == a.aval.dtype  # else what is reduced is another array
            if alike and prepare(name, a, None, True) is a:
                axes = reduced_axes(axis, a.aval.ndim, name)
                if axes and record.out_avals((a.aval,), {"axes": axes}) is out.aval:
                    x_aval, key = a.aval, placed(a.aval, axis)
                    remember(known, key, lambda: executor(record, (x_aval,), {"axes": axes}))
        return out

    # Functions that were made without native code are made anew with it.
    when_ready(known.clear)
    calls = KnownCalls(reduce, name)
    return calls


_AXIS_TYPES = (type(None), int)


def accumulating(name: str, x: Any, dtype: Any, promote: bool) -> Any:
    """What sum and prod add up: small integers widened, booleans counted."""
    if dtype is not None:
        return cast(x, canonical_dtype(dtype, name))
    own = x.aval.dtype
    if own == dtypes.bool_:
        return cast(x, int_dtype())
    if promote and dtypes.is_integer(own):
        wide = dtypes.canonical(dtypes.uint64 if dtypes.kind(own) == "u" else dtypes.int64)
        if wide.itemsize > own.itemsize:
            return cast(x, wide)
    return strong(x)


def _wide(own: Any, dtype: Any, promote: bool, name: str) -> Any:
    """The integer dtype that integers or booleans are added up in, where it is another one."""
    if not (own == dtypes.bool_ or dtypes.is_integer(own)) or own not in _NUMPY_INTEGERS:
        return None
    if dtype is not None:
        wide = canonical_dtype(dtype, name)
    elif own == dtypes.bool_:
        wide = int_dtype()
    else:
        wide = dtypes.canonical(dtypes.uint64 if dtypes.kind(own) == "u" else dtypes.int64)
        if not promote or wide.itemsize <= own.itemsize:
            return None
    return wide if wide in _NUMPY_INTEGERS and wide not in (own, dtypes.bool_) else None


# NumPy's own dtypes: not the integers of less than a byte.
_NUMPY_INTEGERS = frozenset(map(np.dtype, "?bBhHiIlLqQ"))


def _as_is(name: str, x: Any, dtype: Any, promote: bool) -> Any:
    return strong(x)


def _booleans(name: str, x: Any, dtype: Any, promote: bool) -> Any:
    return convert(x, dtypes.bool_) if FLAG.uses and wanted() else strong(as_bool(x))


def _reduce_max(x: Any, axes: tuple) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return complex_extremum(x, axes, lax.reduce_max, -np.inf)
    return lax.reduce_max(x, axes)


def _reduce_min(x: Any, axes: tuple) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return complex_extremum(x, axes, lax.reduce_min, np.inf)
    return lax.reduce_min(x, axes)


_sum = _reduction(
    "sum",
    lambda x, axes: sum_over(x, axes),
    "reduce_sum",
    add,
    lambda d: 0,
    accumulating,
    True,
    lambda x, axes, dtype: np.add.reduce(x, axis=axes, dtype=dtype),
    psum,
)
_prod = _reduction(
    "prod",
    lambda x, axes: lax.reduce_prod(x, axes),
    "reduce_prod",
    multiply,
    lambda d: 1,
    accumulating,
    True,
    lambda x, axes, dtype: np.multiply.reduce(x, axis=axes, dtype=dtype),
)
_max = _reduction(
    "max", _reduce_max, "reduce_max", maximum, lambda d: extreme_of(d, True), _as_is, False,
    across=pmax,
)
_min = _reduction(
    "min", _reduce_min, "reduce_min", minimum, lambda d: extreme_of(d, False), _as_is, False,
    across=pmin,
)
_all = _reduction(
    "all",
    lambda x, axes: lax.reduce_and(x, axes),
    "reduce_and",
    None,
    lambda d: True,
    _booleans,
    True,
)
_any = _reduction(
    "any",
    lambda x, axes: lax.reduce_or(x, axes),
    "reduce_or",
    None,
    lambda d: False,
    _booleans,
    True,
)


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The sum over `axis`.

    a: numbers of any shape. axis: an integer, a tuple of them, or None for all. dtype: what is
    added up and returned; by default integers and booleans are added up in the default integer (a
    uint in the unsigned one), unless `promote_integers` is False, and floats in their own dtype.
    keepdims: reduced axes stay with size 1. initial: a scalar the sum begins with. where: booleans
    that broadcast against a, which elements count. The sum of nothing is 0. `out` raises
    NotImplementedError. ValueError for an axis out of range.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.sum(x, axis=0), jnp.sum(x, where=x > 2)
    (Array([4, 6], dtype=int32), Array(7, dtype=int32))
    """
    if out is not None:
        refuse("sum", out=out)
    if dtype is not None and canonical_dtype(dtype, "sum") == dtypes.bool_:
        some = any(a, axis, keepdims=keepdims, where=where)
        return some if initial is None else lax.bitwise_or(some, not_equal(initial, 0))
    return _sum.run(a, axis, dtype, keepdims, initial, where, promote_integers)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The product over `axis`.

    a: numbers of any shape. axis: an integer, a tuple of them, or None for all. dtype,
    promote_integers: as in `sum`. keepdims: reduced axes stay with size 1. initial: a scalar the
    product begins with. where: booleans that broadcast against a, which elements count. The product
    of nothing is 1. The derivative is right where elements are zero, too. `out` raises
    NotImplementedError. ValueError for an axis out of range.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    refuse("prod", out=out)
    if dtype is not None and canonical_dtype(dtype, "prod") == dtypes.bool_:
        every = all(a, axis, keepdims=keepdims, where=where)
        return every if initial is None else multiply(every, not_equal(initial, 0))
    return _prod.run(a, axis, dtype, keepdims, initial, where, promote_integers)


def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The largest element over `axis`; NaN if there is one.

    a: numbers of any shape and dtype, which the result has; complex ones are compared by real part,
    then imaginary part. axis: an integer, a tuple of them, or None for all. keepdims: reduced axes
    stay with size 1. initial: a scalar, the least that the result is. where: booleans that
    broadcast against a, which elements count; needs `initial`. Equal largest elements share the
    derivative. ValueError for nothing without `initial`; `out` raises NotImplementedError.

    >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    if out is not None:
        refuse("max", out=out)
    return _max.run(a, axis, None, keepdims, initial, where, True)


def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The smallest element over `axis`; NaN if there is one.

    a: numbers of any shape and dtype, which the result has; complex ones are compared by real part,
    then imaginary part. axis: an integer, a tuple of them, or None for all. keepdims: reduced axes
    stay with size 1. initial: a scalar, the most that the result is. where: booleans that broadcast
    against a, which elements count; needs `initial`. Equal smallest elements share the derivative.
    ValueError for nothing without `initial`; `out` raises NotImplementedError.

    >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=0)
    Array([1, 4], dtype=int32)
    """
    if out is not None:
        refuse("min", out=out)
    return _min.run(a, axis, None, keepdims, initial, where, True)


amax, amin = max, min


def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Whether all elements over `axis` are non-zero.

    a: an array of any shape and dtype; NaN counts as non-zero. axis: an integer, a tuple of them,
    or None for all. keepdims: reduced axes stay with size 1. where: booleans that broadcast against
    a, which elements count. Returns booleans, True for nothing. `out` raises NotImplementedError.
    ValueError for an axis out of range.

    >>> jnp.all(jnp.array([[1, 0], [3, 4]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    refuse("all", out=out)
    return _all.run(a, axis, None, keepdims, None, where, True)


def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Whether any element over `axis` is non-zero.

    a: an array of any shape and dtype; NaN counts as non-zero. axis: an integer, a tuple of them,
    or None for all. keepdims: reduced axes stay with size 1. where: booleans that broadcast against
    a, which elements count. Returns booleans, False for nothing. `out` raises NotImplementedError.
    ValueError for an axis out of range.

    >>> jnp.any(jnp.array([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    refuse("any", out=out)
    return _any.run(a, axis, None, keepdims, None, where, True)


# NumPy's own functions on one core are the faster ones below so many elements.
_FEW = 20_000


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of non-zero elements over `axis`, as the default integer.

    a: an array of any shape and dtype; NaN counts as non-zero. axis: an integer, a tuple of them,
    or None for all. keepdims: reduced axes stay with size 1. ValueError for an axis out of range.

    >>> jnp.count_nonzero(jnp.array([[1, 0], [3, 4]]), axis=0)
    Array([2, 1], dtype=int32)
    """
    x = one_array("count_nonzero", a)
    if type(x) is ArrayImpl and axis is None and not keepdims and eager():
        # NumPy counts bytes as fast as memory gives them, numbers one after another.
        few = x.aval.dtype.kind in "iuf" and x.aval.size < _FEW
        if few or x.aval.dtype == dtypes.bool_:
            found = np.asarray(np.count_nonzero(x._value), int_dtype())
            return ArrayImpl(found, ShapedArray((), found.dtype))
    x = as_bool(x)
    return sum(x, axis, int_dtype(), keepdims=keepdims)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The range of the elements over `axis`: the largest minus the smallest.

    a: numbers of any dtype but bool (TypeError), which the result has. axis: an integer, a tuple of
    them, or None for all. keepdims: reduced axes stay with size 1. ValueError for nothing; `out`
    raises NotImplementedError. Equal extremes share the derivative.

    >>> jnp.ptp(jnp.array([[1, 5], [3, 9]]), axis=1)
    Array([4, 6], dtype=int32)
    """
    refuse("ptp", out=out)
    return subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# ------------------------------------------------------------------ means and variances
def _count(x: Any, axes: tuple, mask: Any, keepdims: bool, dtype: Any) -> Any:
    """How many elements are reduced: a Python number, or an array with a mask."""
    if mask is None:
        return scalar(math.prod([x.aval.shape[i] for i in axes]), dtype)
    mask = as_bool(one_array("mean", mask))
    mask = broadcast(mask, x.aval.shape)
    mask = cast(mask, dtypes.int32) if FLAG.uses and wanted() else mask
    return sum(cast(mask, dtype), axes, keepdims=keepdims)


# Means of whole arrays of floats: how they are added up, and by what the sum is divided.
_means: dict[tuple, tuple] = Memo("means")
_sum_p = REGISTRY["reduce_sum"]
when_ready(_means.clear)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Any:
    """The arithmetic mean over `axis`.

    a: numbers of any shape; integers and booleans count as floats, 16-bit floats are added up in 32
    bits. axis: an integer, a tuple of them, or None for all. dtype: that of the computation and the
    result. keepdims: reduced axes stay with size 1. where: booleans that broadcast against a, which
    elements count. NaN for nothing, without a warning. `out` raises NotImplementedError. IndexError
    for an axis out of range.

    >>> jnp.mean(jnp.array([[1, 2], [3, 5]]), axis=0)
    Array([2. , 3.5], dtype=float32)
    """
    return _mean_calls.run(a, axis, dtype, out, keepdims, where)


def _any_mean(a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, where: Any) -> Any:
    plain = dtype is None and out is None and not keepdims and where is None
    plain = plain and type(a) is ArrayImpl and type(axis) in _AXIS_TYPES
    if plain and current_trace().at_once:
        found = _means.get((a.aval, axis))
        if found is not None:
            total, count = found
            return lax.div(total(a), count)
    if keepdims in (True, False) and _written(a) and type(axis) in _AXIS_TYPES:
        if dtype is None and out is None and where is None:
            return again(
                ("mean", axis, keepdims), a,
                lambda x: _complete_mean(x, axis, None, None, keepdims, None),
                lambda plan: _mean_calls.learn((a, axis, None, None, keepdims, None), plan),
            )  # fmt: skip
    return _complete_mean(a, axis, dtype, out, keepdims, where)


_mean_calls = KnownCalls(_any_mean, "mean")


def _written(a: Any) -> bool:
    """Whether an operation on `a` is written down, by a transformation or to run later."""
    return isinstance(a, Tracer) or may_wait(a)


def _complete_mean(a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, where: Any) -> Any:
    plain = dtype is None and out is None and not keepdims and where is None
    plain = plain and type(a) is ArrayImpl and type(axis) in _AXIS_TYPES
    refuse("mean", out=out)
    x, keepdims = one_array("mean", a), hashable(keepdims, "argument 'keepdims'", "mean")
    result = inexact_dtype(x.aval.dtype) if dtype is None else canonical_dtype(dtype, "mean")
    if result == dtypes.bool_:
        raise TypeError("mean has no dtype bool: a mean is a quotient. Compare it instead.")
    computed = result if dtypes.is_inexact(result) else inexact_dtype(result)
    if dtypes.is_floating(result) and result.itemsize < 4:
        computed = dtypes.float32  # in which they are added up
    names, axis = names_and_axes(axis)
    axes = reduced_axes(axis, x.aval.ndim, "mean", IndexError if where is None else ValueError)
    if x.aval.dtype == dtypes.bool_ and FLAG.uses and wanted():
        x = cast(x, int_dtype())
    whole = None if dtypes.is_inexact(result) else result  # in which integers are added up
    x = cast(x, whole or computed, x.aval.weak_type and computed == x.aval.dtype)
    if where is not None:
        shape = join_shapes("mean", [x.aval.shape, mask_of("mean", where).aval.shape])
        x = broadcast(x, shape)
    count = _counted(x, axes, names, where, keepdims, dtypes.real_of(computed))
    total = sum(x, (*names, *axes), whole, keepdims=keepdims, where=where)
    total = total if whole is None else cast(total, computed)
    count = cast(count, total.aval.dtype)
    if plain and x is a and axes and result == computed:
        params = {"axes": axes}
        remember(_means, (a.aval, axis), lambda: (executor(_sum_p, (a.aval,), params), count))
    out = lax.div(total, _same_kind(count, total))
    return cast(out, result, out.aval.weak_type) if result != computed else out


def _counted(x: Any, axes: tuple, names: tuple, where: Any, keepdims: bool, dtype: Any) -> Any:
    """`_count` over mapped axes, too."""
    count = _count(x, axes, where, keepdims, dtype)
    if names and where is not None:
        return psum(count, names)
    return lax.mul(count, scalar(axis_size(names), count.aval.dtype)) if names else count


def _same_kind(count: Any, total: Any) -> Any:
    return (
        count if count.aval.shape in ((), total.aval.shape) else broadcast(count, total.aval.shape)
    )


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance over `axis`: the mean of the squared distances to the mean.

    a: numbers of any shape; integers and booleans count as floats; that of complex numbers is real.
    axis: an integer, a tuple of them, or None for all. dtype: an inexact one, of the computation
    and the result. ddof, or `correction` in the array API's words: the sum is divided by the count
    less this, NaN where nothing is left. keepdims: reduced axes stay with size 1. where: booleans
    that broadcast against a, which elements count. mean: where it is known, with the reduced axes
    kept. Computed in two passes, so that large means cost no digits; with an integer dtype in it,
    with quotients cut to integers, and given as a float. ValueError for both ddof and correction;
    `out` raises NotImplementedError. IndexError for an axis out of range.

    >>> jnp.var(jnp.array([1.0, 2.0, 6.0]), ddof=1)
    Array(7., dtype=float32)
    """
    refuse("var", out=out)
    x = one_array("var", a)
    if correction is not None:
        if ddof:
            raise ValueError("var: ddof and correction can't be provided simultaneously. Give one.")
        ddof = correction
    result = inexact_dtype(x.aval.dtype) if dtype is None else canonical_dtype(dtype, "var")
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(result):
        raise ValueError(f"var: a real dtype, {dtype}, of complex values; leave it out.")
    if not dtypes.is_inexact(result):
        parts = in_integers("var", x, axis, result, ddof, keepdims, where, mean, promote=False)
        return _where(greater(parts[1], 0), lax.div(*parts), np.nan)
    computed = result
    if dtypes.is_complex(result) and not dtypes.is_complex(x.aval.dtype):
        computed = dtypes.real_of(result)
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(computed):
        computed = dtypes.complex_of(computed)
    if dtypes.is_floating(computed) and computed.itemsize < 4:
        computed = dtypes.float32
    names, axis = names_and_axes(axis)
    axes = reduced_axes(axis, x.aval.ndim, "var", IndexError if where is None else ValueError)
    where = None if where is None else mask_of("var", where)
    plain = not names and mean is None and where is None and not dtypes.is_complex(computed)
    if plain and FLAG.uses and wanted():
        static = {"axes": axes, "computed": computed, "result": result, "keepdims": keepdims}
        return as_call("_var", x, ddof, **static)
    x = cast(x, computed, x.aval.weak_type and computed == x.aval.dtype)
    center = (
        _mean(x, (*names, *axes), keepdims=True, where=where)
        if mean is None
        else cast(one_array("var", mean), computed)
    )
    centered = subtract(x, center)
    if dtypes.is_complex(computed):
        squares = add(square(lax.real(centered)), square(lax.imag(centered)))
    else:
        squares = square(centered)
    total = sum(squares, (*names, *axes), keepdims=keepdims, where=where)
    count = subtract(_counted(x, axes, names, where, keepdims, total.aval.dtype), ddof)
    out = divide(total, cast(count, total.aval.dtype))
    out = (
        _where(greater(count, 0), out, scalar(np.nan, out.aval.dtype))
        if where is not None
        or (
            not names
            and math.prod([x.aval.shape[i] for i in axes])
            <= (ddof if not isinstance(ddof, Array) else 0)
        )
        else out
    )
    # A variance is real; of a complex dtype that was asked for, too, but in that dtype.
    final = result if dtype is not None else dtypes.real_of(result)
    return cast(out, final, out.aval.weak_type) if final != out.aval.dtype else out


_mean, _where = mean, where


def in_integers(
    name: str, x: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any,
    *, promote: bool,
) -> tuple:  # fmt: skip
    """The sum of squared distances from the mean, in an integer dtype, and what divides it."""
    if dtypes.is_bool(dtype):
        raise TypeError(f"{name}: dtype must be that of numbers, got bool.")
    where = None if where is None else mask_of(name, where)
    names, axis = names_and_axes(axis)
    axes = reduced_axes(axis, x.aval.ndim, name, IndexError if where is None else ValueError)
    x, every = strong(cast(x, dtype)), (*names, *axes)
    center = cast(one_array(name, mean), dtype) if mean is not None else None
    center = _mean(x, every, dtype, keepdims=True, where=where) if center is None else center
    squares = square(subtract(x, center))
    total = sum(squares, every, None if promote else dtype, keepdims=keepdims, where=where)
    count = subtract(_counted(x, axes, names, where, keepdims, total.aval.dtype), ddof)
    return total, broadcast(cast(count, total.aval.dtype), total.aval.shape)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The standard deviation over `axis`: the square root of `var`.

    a, axis, dtype, ddof, keepdims, where, mean, correction, out: as in `var`, but ValueError for an
    integer dtype. The derivative is NaN where all elements are equal. IndexError for an axis out of
    range.

    >>> jnp.std(jnp.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    Array([1., 2.], dtype=float32)
    """
    refuse("std", out=out)
    if dtype is not None and not dtypes.is_inexact(canonical_dtype(dtype, "std")):
        one_array("std", a)
        raise ValueError(f"std: dtype must be a floating dtype, got {dtype}.")
    if FLAG.uses and wanted() and mean is None and where is None:
        static = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return _shown_std.call((a, correction if correction is not None else ddof), static)
    where = None if where is None else mask_of("std", where)
    return lax.sqrt(
        var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


def _std_in_jax(a: Any, ddof: Any, *, axis: Any, dtype: Any, keepdims: bool) -> Any:
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims))


_shown_std = Shown(_std_in_jax, "_std")


# ------------------------------------------------------------------ positions
def _arg(name: str, a: Any, axis: Any, out: Any, keepdims: Any, operation: Callable) -> Any:
    refuse(name, out=out)
    x = one_array(name, a)
    flat = axis is None
    rank = x.aval.ndim
    if flat:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, name, IndexError)
    if not x.aval.shape[axis]:
        raise ValueError(
            f"attempt to get {name} of an empty sequence (axis {axis} of shape {x.aval.shape})."
        )
    index = operation(x, axis, int_dtype())
    if keepdims:
        return reshape(index, (1,) * rank) if flat else expand_dims(index, axis)
    return index


def argmax(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
    """The position of the first largest element along `axis`, or of the first NaN.

    a: real numbers. axis: an integer, or None for a position in the flattened array. keepdims: the
    reduced axis stays with size 1. Returns the default integer. ValueError for an empty axis,
    TypeError for complex numbers (NumPy orders them); `out` raises NotImplementedError. IndexError
    for an axis out of range.

    >>> jnp.argmax(jnp.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _arg("argmax", a, axis, out, keepdims, lax.argmax)


def argmin(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
    """The position of the first smallest element along `axis`, or of the first NaN.

    a: real numbers. axis: an integer, or None for a position in the flattened array. keepdims: the
    reduced axis stays with size 1. Returns the default integer. ValueError for an empty axis,
    TypeError for complex numbers (NumPy orders them); `out` raises NotImplementedError. IndexError
    for an axis out of range.

    >>> jnp.argmin(jnp.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return _arg("argmin", a, axis, out, keepdims, lax.argmin)
