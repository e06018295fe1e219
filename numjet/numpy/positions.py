"""Where a mask holds: positions, and the elements there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, in_place, wanted
from numjet.base.errors import ConcretizationTypeError
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import count_of
from numjet.core.structural import beside, scalar
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import (
    as_bool,
    less,
    where,
)
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    cast,
    int_dtype,
    one_array,
    refuse,
)
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import moveaxis, ravel, reshape


def need_concrete(name: str, x: Any) -> np.ndarray:
    """The value of x, or ConcretizationTypeError naming `size` as the remedy."""
    known = concrete_or_none(x)
    if known is None:
        x._need_concrete(
            ConcretizationTypeError,
            f"{name}: the result's size depends on the values",
            "Give the argument `size`, or call it outside of transformations.",
        )
    return known._value


def like(value: int, x: Any) -> Any:
    """An array of one number, of the shape and dtype of x."""
    return broadcast(scalar(value, x.aval.dtype), x.aval.shape)


def as_constant(value: np.ndarray) -> ArrayImpl:
    """A NumPy array of a canonical dtype as an Array."""
    value = np.asarray(value)
    return ArrayImpl(value, ShapedArray(value.shape, value.dtype))


def first_true(mask: Any, size: int, rest: int | None = None) -> Any:
    """The positions of the first `size` true elements, then `rest` (the last position)."""
    n, size = mask.aval.shape[0], count_of(size)
    rest = max(n - 1, 0) if rest is None else rest
    known = concrete_or_none(mask)
    if known is not None:
        places = np.full(size, rest, int_dtype())
        found = np.flatnonzero(known._value)[:size]
        places[: len(found)] = found
        return beside(as_constant(places), mask)
    # Every element is written where the next true one belongs, and of those that meet the last one
    # wins: 10^6 take 1.7 ms so; with only the true ones written, a branch that is not predicted, 8.
    ones = cast(mask, int_dtype())
    place = subtract(cumsum(ones), ones)
    place_of = where(mask, lax.iota(int_dtype(), n), rest)
    start = lax.full((size,), rest, int_dtype())
    return start.at[place].set(place_of, mode="drop")


def true_positions(name: str, mask: Any, size: int | None) -> tuple[Any, Any]:
    """Where the mask is true, `size` positions, and which of these exist; all of a concrete mask,
    and None, without `size`."""
    if size is None:
        found = np.flatnonzero(need_concrete(name, mask))
        return beside(as_constant(found.astype(int_dtype())), mask), None
    total = sum_(cast(mask, int_dtype()))
    return first_true(mask, size), less(lax.iota(int_dtype(), size), total)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The positions of the non-zero elements: a tuple with one vector for each axis.

    a: an array with at least one dimension (ValueError). size: how many positions to give, needed
    where `a` is traced (ConcretizationTypeError): further ones are left out, missing ones are
    `fill_value` (0, or a tuple with one for each axis). Returns the default integer, to which a
    fill_value of another dtype is joined, in the order of rows.

    >>> jnp.nonzero(jnp.array([[1, 0], [0, 5]]))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    >>> jnp.nonzero(jnp.array([0, 7]), size=3, fill_value=-1)
    (Array([ 1, -1, -1], dtype=int32),)
    """
    x = one_array("nonzero", a)
    if not x.aval.ndim:
        raise ValueError(
            "nonzero: arrays without dimensions are not supported. Use jnp.atleast_1d(x)."
        )
    mask = as_bool(x)
    if size is None:
        found = np.nonzero(need_concrete("nonzero", mask))
        return tuple([beside(as_constant(v.astype(int_dtype())), x) for v in found])
    size = count_of(size)
    if type(size) is int and size < 0:
        raise TypeError(f"nonzero: size must be nonnegative, got {size}.")
    if FLAG.uses and wanted() and x.aval.size:
        return in_place("of nonzero", mask, size, fill_value)
    flat = ravel(mask)
    n = flat.aval.shape[0]
    position = first_true(flat, size) if n else lax.full((size,), 0, int_dtype())
    valid = less(lax.iota(int_dtype(), size), sum_(cast(flat, int_dtype())))
    fills: Sequence[Any] = (
        fill_value if isinstance(fill_value, tuple) else ((fill_value,) * x.aval.ndim)
    )
    if len(fills) != x.aval.ndim:
        raise ValueError(
            f"nonzero: fill_value {fill_value} must have one entry for each of {x.aval.ndim} axes."
        )
    out = []
    stride = n
    for n_axis, fill in zip(x.aval.shape, fills):
        stride = stride // n_axis if n_axis else 1
        index = position
        if x.aval.ndim > 1:
            index = lax.rem(
                lax.div(index, like(max(stride, 1), index)), like(max(n_axis, 1), index)
            )
        out.append(where(valid, index, like(0, index) if fill is None or not n else fill))
    return tuple(out)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the non-zero elements in the flattened array.

    a: an array of any shape. size, fill_value: as in `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[1, 0], [0, 5]]))
    Array([0, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the non-zero elements, one row for each.

    a: an array of any shape. size, fill_value: as in `nonzero`. Returns [count, a.ndim] of the
    default integer.

    >>> jnp.argwhere(jnp.array([[1, 0], [0, 5]]))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    x = one_array("argwhere", a)
    if not x.aval.ndim:
        found = nonzero(reshape(x, (1,)), size=size)[0]
        return lax.full((found.aval.shape[0], 0), 0, int_dtype())
    if FLAG.uses and wanted() and size is not None:
        found = nonzero(as_call("atleast_1d", x), size=size, fill_value=fill_value)
        return lax.transpose(concatenate([as_call("atleast_2d", v) for v in found], 0), (1, 0))
    found = nonzero(x, size=size, fill_value=fill_value)
    return concatenate([reshape(v, (-1, 1)) for v in found], 1)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of `arr` where `condition` holds, as a vector.

    condition: an array of as many elements. size: how many to give, needed where it is traced
    (ConcretizationTypeError); missing ones are `fill_value`. ValueError for a condition that is
    longer than `arr`.

    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: Any = None,
) -> Any:
    """The slices of `a` along `axis` where the vector `condition` holds.

    condition: a vector at most as long as the axis. axis: an integer, or None for the flattened
    array. size: how many to give, needed where the condition is traced (ConcretizationTypeError);
    missing ones are `fill_value`. ValueError for another rank of the condition, one that holds
    beyond the axis (not with `size`), and a size beyond the axis or it; `out`: NotImplementedError.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[1, 3],
           [4, 6]], dtype=int32)
    """
    refuse("compress", out=out)
    condition, x = as_arrays("compress", condition, a)
    if condition.aval.ndim != 1:
        raise ValueError(f"compress: condition must have one dimension, got {condition.aval}.")
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, axis, 0)
    n = condition.aval.shape[0]
    condition = as_bool(condition)
    if size is not None and not 0 <= size <= min(n, x.aval.shape[0]):
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"size={size} for an axis of {x.aval.shape[0]} and a condition of {n}."
        )
    if n > x.aval.shape[0]:
        rest = getitem(condition, slice(x.aval.shape[0], None))
        if size is None and need_concrete("compress", rest).any():
            raise ValueError("compress: condition is longer than the axis.")
        condition = getitem(condition, slice(None, x.aval.shape[0]))
    else:
        x = getitem(x, slice(None, n))
    index, valid = true_positions("compress", condition, size)
    rows = getitem(x, index)
    if valid is None:
        return moveaxis(rows, 0, axis)
    valid = reshape(valid, (-1,) + (1,) * (rows.aval.ndim - 1))
    return moveaxis(
        where(valid, rows, cast(one_array("compress", fill_value), rows.aval.dtype)), 0, axis
    )


def where_or_nonzero(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """x where `condition` is true, else y, element by element.

    condition: booleans, or what is compared with 0; x, y: arrays or numbers. The three broadcast to
    one shape, x and y to one dtype. Both branches are computed: where one of them is infinite or
    NaN its derivative is NaN even where the other is taken, so make its argument safe first. With
    `condition` alone: its `nonzero`, with `size` and `fill_value`. ValueError for these with x and
    y, TypeError for x without y.

    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 0)
    Array([1, 0], dtype=int32)
    """
    if x is not None and y is not None:
        if size is not None or fill_value is not None:
            raise ValueError("where: size and fill_value belong to where(condition) only.")
        return where(condition, x, y)
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    raise TypeError(
        f"where requires ndarray or scalar arguments, got {type(None)} at position "
        f"{1 if x is None else 2}. It takes either condition alone, or condition, x and y."
    )


where_or_nonzero.__name__ = where_or_nonzero.__qualname__ = "where"
