"""Means, weighted means, variances and standard deviations.

Built of the sums of `numpy.reductions`, which says what is added up in which dtype. For the public
names and the Array's methods. What would break it: sums whose dtype follows from more than the aval
and the flags, since `_means` keeps what they are divided by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.api.compiled.shown import FLAG, Shown, as_call, wanted
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.evaluate import LARGE, executor, remember
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY
from numjet.core.structural import scalar
from numjet.core.trace import current_trace
from numjet.native.known import KnownCalls
from numjet.native.operators import when_ready
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import add, divide, multiply, square, subtract
from numjet.numpy.logic import as_bool, greater, where as where_
from numjet.numpy.promote import (
    broadcast,
    canonical_dtype,
    cast,
    inexact_dtype,
    int_dtype,
    join_shapes,
    mask_of,
    names_and_axes,
    one_array,
    promote_inexact,
    reduced_axes,
    refuse,
    strong,
)
from numjet.numpy.reductions import AXIS_TYPES, is_written, sum as sum_
from numjet.numpy.shape import reshape
from numjet.ops.collective import axis_size, psum
from numjet.transforms.again import again


def _count(x: Any, axes: tuple, names: tuple, mask: Any, keepdims: bool, dtype: Any) -> Any:
    """How many elements are reduced, over mapped axes, too: a scalar, or an array with a mask."""
    if mask is None:
        count = scalar(math.prod([x.aval.shape[i] for i in axes]), dtype)
        return lax.mul(count, scalar(axis_size(names), count.aval.dtype)) if names else count
    mask = broadcast(as_bool(one_array("mean", mask)), x.aval.shape)
    mask = cast(mask, dtypes.int32) if FLAG.uses and wanted() else mask
    count = sum_(cast(mask, dtype), axes, keepdims=keepdims)
    return psum(count, names) if names else count


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
    plain = plain and type(a) is ArrayImpl and type(axis) in AXIS_TYPES
    if plain and current_trace().at_once:
        found = _means.get((a.aval, axis))
        if found is not None:
            total, count = found
            return lax.div(total(a), count)
    if keepdims in (True, False) and is_written(a) and type(axis) in AXIS_TYPES:
        if dtype is None and out is None and where is None:
            return again(
                ("mean", axis, keepdims), a,
                lambda x: _complete_mean(x, axis, None, None, keepdims, None),
                lambda plan: _mean_calls.learn((a, axis, None, None, keepdims, None), plan),
            )  # fmt: skip
    return _complete_mean(a, axis, dtype, out, keepdims, where)


_mean_calls = KnownCalls(_any_mean, "mean")


def _complete_mean(a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, where: Any) -> Any:
    plain = dtype is None and out is None and not keepdims and where is None
    plain = plain and type(a) is ArrayImpl and type(axis) in AXIS_TYPES
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
    count = _count(x, axes, names, where, keepdims, dtypes.real_of(computed))
    total = sum_(x, (*names, *axes), whole, keepdims=keepdims, where=where)
    total = total if whole is None else cast(total, computed)
    count = cast(count, total.aval.dtype)
    small = a.aval.size < LARGE and a.aval.dtype.itemsize < 8 if plain else False
    if plain and axes and result == computed and (x is a or small and not FLAG.uses):
        aval = x.aval

        def entry() -> tuple[Callable, Any]:
            run = executor(_sum_p, (aval,), {"axes": axes})
            return (run if aval is a.aval else lambda a: run(cast(a, aval.dtype))), count

        remember(_means, (a.aval, axis), entry)
    out = lax.div(total, _same_kind(count, total))
    return cast(out, result, out.aval.weak_type) if result != computed else out


def _same_kind(count: Any, total: Any) -> Any:
    return (
        count if count.aval.shape in ((), total.aval.shape) else broadcast(count, total.aval.shape)
    )


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over `axis`, each element with its weight.

    a: numbers of any shape; integers count as floats. axis: an integer, a tuple of them, or None
    for all. weights: of a's shape, or of that of the axes; all alike by default. returned: give
    (mean, sum of the weights) instead. keepdims: reduced axes stay with size 1. Weights that add up
    to 0 give infinities or NaN (NumPy raises ZeroDivisionError). ValueError for weights of another
    shape without an axis, or where they do not fit.

    >>> jnp.average(jnp.array([1.0, 2.0, 6.0]), weights=jnp.array([2, 1, 1]))
    Array(2.5, dtype=float32)
    """
    x = one_array("average", a)
    if weights is None:
        axes = reduced_axes(axis, x.aval.ndim, "average")
        out = mean(x, axes, keepdims=keepdims)
        total = scalar(math.prod([x.aval.shape[i] for i in axes]), out.aval.dtype)
        return (out, broadcast(total, out.aval.shape)) if returned else out
    x, w = promote_inexact(x, one_array("average", weights))
    if x.aval.shape != w.aval.shape:
        if axis is None:
            told = "Axis must be specified when shapes of a and weights differ, got"
            raise ValueError(f"average: {told} {x.aval.shape} and {w.aval.shape}.")
        axes = reduced_axes(axis, x.aval.ndim, "average")
        if w.aval.shape != tuple([x.aval.shape[i] for i in axes]):
            told = f"do not fit the axes {axes} of values of shape {x.aval.shape}"
            raise ValueError(f"average: weights of shape {w.aval.shape} {told}.")
        order = tuple(np.argsort(axes).tolist())
        w = lax.transpose(w, order)
        if FLAG.uses and wanted():
            w = reshape(w, tuple([n if i in axes else 1 for i, n in enumerate(x.aval.shape)]))
        else:
            w = lax.broadcast_in_dim(w, x.aval.shape, tuple(sorted(axes)))
    total = sum_(w, axis, keepdims=keepdims)
    out = divide(sum_(multiply(x, w), axis, keepdims=keepdims), total)
    return (out, broadcast(total, out.aval.shape)) if returned else out


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
    computed, result = _dtypes_of_var(x.aval.dtype, dtype)
    if not dtypes.is_inexact(result):
        parts = in_integers("var", x, axis, result, ddof, keepdims, where, mean, promote=False)
        return where_(greater(parts[1], 0), lax.div(*parts), np.nan)
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
    total = sum_(squares, (*names, *axes), keepdims=keepdims, where=where)
    count = subtract(_count(x, axes, names, where, keepdims, total.aval.dtype), ddof)
    out = divide(total, cast(count, total.aval.dtype))
    least = 0 if isinstance(ddof, Array) else ddof
    if where is not None or not names and math.prod([x.aval.shape[i] for i in axes]) <= least:
        out = where_(greater(count, 0), out, scalar(np.nan, out.aval.dtype))
    # A variance is real; of a complex dtype that was asked for, too, but in that dtype.
    final = result if dtype is not None else dtypes.real_of(result)
    return cast(out, final, out.aval.weak_type) if final != out.aval.dtype else out


_mean = mean  # of which `var` has an argument


def _dtypes_of_var(own: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype in which a variance of values of a dtype is computed, and that of the result before
    it is made real."""
    result = inexact_dtype(own) if dtype is None else canonical_dtype(dtype, "var")
    if dtypes.is_complex(own) and not dtypes.is_complex(result):
        raise ValueError(f"var: a real dtype, {dtype}, of complex values; leave it out.")
    computed = result
    if dtypes.is_complex(result) and not dtypes.is_complex(own):
        computed = dtypes.real_of(result)
    if dtypes.is_floating(computed) and computed.itemsize < 4:
        computed = dtypes.float32
    return computed, result


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
    total = sum_(squares, every, None if promote else dtype, keepdims=keepdims, where=where)
    count = subtract(_count(x, axes, names, where, keepdims, total.aval.dtype), ddof)
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
