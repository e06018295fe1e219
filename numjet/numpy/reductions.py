"""Reductions: sums, products, extrema, `all` and `any`, counts, and positions of extrema.

`_reduction` makes them of the primitives, with what was learned for avals that came before. For the
public names, the Array's methods and `numpy.averages`. What would break it: a common call (of an
array and an axis alone) whose result follows from more than its key in the memos.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.api.compiled.shown import FLAG, apart, kept, wanted
from numjet.base.config import enable_x64
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import LARGE, executor, may_wait, remember
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY
from numjet.core.structural import convert, scalar
from numjet.core.trace import Tracer, current_trace
from numjet.native.known import KnownCalls
from numjet.native.operators import when_ready
from numjet.numpy import lax_names as lax
from numjet.numpy.complex_order import complex_extremum
from numjet.numpy.elementwise import add, maximum, minimum, multiply, subtract
from numjet.numpy.fast import eager
from numjet.numpy.logic import as_bool, not_equal, where
from numjet.numpy.promote import (
    broadcast,
    canonical_axis,
    canonical_dtype,
    cast,
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
from numjet.ops.collective import pmax, pmin, psum
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
            type(a) is ArrayImpl and dtype is None and initial is None
            and mask is None and promote and type(axis) in AXIS_TYPES
        )  # fmt: skip
        if plain and not keepdims:
            run = recall((a.aval, axis)) or recall((a.aval, axis, enable_x64.value))
            if run is not None and current_trace().at_once:
                return run(a)
        elif plain and keepdims is True:
            run = recall((a.aval, axis, "kept"))
            if run is not None and current_trace().at_once:
                return run(a)
        return rest(plain, a, axis, dtype, keepdims, initial, mask, promote)

    def rest(plain: bool, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, mask: Any,
             promote: bool) -> Any:  # fmt: skip # apart: each call makes cells for its lambdas
        if isinstance(a, Tracer) and type(axis) in AXIS_TYPES and not keepdims and promote:
            if dtype is None and initial is None and mask is None:
                return bound(a, axis)
        elif (
            (keepdims is True and is_written(a) or keepdims is False and may_wait(a))
            and type(axis) in AXIS_TYPES
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
                x_aval, aval = a.aval, record.out_avals((a.aval,), {"axes": axes})
                make = functools.partial(executor, record, (x_aval,), {"axes": axes})
                if axes and not keepdims and aval is out.aval:
                    remember(known, placed(x_aval, axis), make)
                elif axes and keepdims is True and x_aval.size < LARGE:
                    if dtypes.is_floating(x_aval.dtype):
                        remember(known, (x_aval, axis, "kept"), lambda: _kept(make(), out.aval))
        return out

    # Functions that were made without native code are made anew with it.
    when_ready(known.clear)
    calls = KnownCalls(reduce, name)
    return calls


def _kept(run: Callable, aval: ShapedArray) -> Callable:
    """`run` with the axes that it reduces."""

    def kept_axes(a: Any) -> ArrayImpl:
        return ArrayImpl(run(a)._value.reshape(aval.shape), aval)

    return kept_axes


AXIS_TYPES = (type(None), int)  # of the common calls, which are learned


def is_written(a: Any) -> bool:
    """Whether an operation on `a` is written down, by a transformation or to run later."""
    return isinstance(a, Tracer) or may_wait(a)


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
