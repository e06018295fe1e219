"""Sets of values: unique and its kin, unions, intersections, differences, membership."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from numjet.core import dtypes
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    bitwise_not,
    equal,
    isnan_of,
    less,
    logical_and,
    logical_not,
    not_equal,
    subtract,
    where,
)
from numjet.numpy.indexing import getitem
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    cast,
    int_dtype,
    one_array,
    promote_dtypes,
)
from numjet.numpy.reductions import any as any_, cumsum, sum as sum_
from numjet.numpy.shape import concatenate, moveaxis, ravel, reshape
from numjet.numpy.sorting import as_constant, first_true, lexsort, need_concrete, sort


class _UniqueAll(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCounts(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverse(NamedTuple):
    values: Any
    inverse_indices: Any


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements (or slices along `axis`), sorted; optionally with positions and counts.

    size: the size of the result, needed under transformations; missing ones are `fill_value` (the
    smallest element by default).
    """
    x = one_array("unique", ar)
    rank, shape = x.aval.ndim, x.aval.shape
    if axis is None:
        rows, axis_, flat = reshape(x, (-1, 1)) if x.aval.size else reshape(x, (0, 1)), 0, True
    else:
        axis_, flat = canonical_axis(axis, rank, "unique"), False
        rows = moveaxis(x, axis_, 0)
        lead = rows.aval.shape[0]
        rows = reshape(rows, (lead, -1 if rows.aval.size else 0))
    n = rows.aval.shape[0]
    columns = [getitem(rows, (slice(None), i)) for i in range(rows.aval.shape[1])]
    order = lexsort(columns[::-1]) if columns and n else lax.full((n,), 0, int_dtype())
    ordered = getitem(rows, order) if n else rows
    if n:
        later, earlier = getitem(ordered, slice(1, None)), getitem(ordered, slice(None, -1))
        differs = not_equal(later, earlier)
        if equal_nan and dtypes.is_inexact(rows.aval.dtype):
            differs = logical_and(
                differs, logical_not(logical_and(isnan_of(later), isnan_of(earlier)))
            )
        first = concatenate([lax.full((1,), True, dtypes.bool_), any_(differs, 1)])
    else:
        first = lax.full((0,), False, dtypes.bool_)
    if size is None:
        starts = as_constant(np.flatnonzero(need_concrete("unique", first)).astype(int_dtype()))
        found = starts.aval.shape[0]
    else:
        found = operator.index(size)
        starts = first_true(first, found)
    total = sum_(cast(first, int_dtype()))
    valid = less(lax.iota(int_dtype(), found), total) if size is not None else None
    values = (
        getitem(ordered, starts)
        if n
        else lax.full((found, *rows.aval.shape[1:]), 0, rows.aval.dtype)
    )
    if valid is not None:
        if fill_value is None:
            filler = getitem(values, 0) if found and n else values
        else:
            filler = cast(
                broadcast(one_array("unique", fill_value), rows.aval.shape[1:]), values.aval.dtype
            )
        values = where(reshape(valid, (-1, 1)), values, filler)
    out = [
        reshape(values, (found,))
        if flat
        else moveaxis(reshape(values, (found, *shape[:axis_], *shape[axis_ + 1 :])), 0, axis_)
    ]
    if return_index:
        index = getitem(order, starts)
        out.append(where(valid, index, getitem(index, 0)) if valid is not None and n else index)
    if return_inverse:
        rank_of = subtract(cumsum(cast(first, int_dtype())), 1)
        inverse = lax.full((n,), 0, int_dtype()).at[order].set(rank_of, unique_indices=True)
        out.append(reshape(inverse, shape) if flat else inverse)
    if return_counts:
        if valid is None:
            ends = (
                concatenate([getitem(starts, slice(1, None)), lax.full((1,), n, int_dtype())])
                if found
                else starts
            )
            out.append(subtract(ends, starts))
        else:
            # The run after the last one asked for ends it.
            ends = getitem(first_true(first, found + 1, n), slice(1, None))
            out.append(where(valid, subtract(ends, starts), 0))
    return out[0] if len(out) == 1 else tuple(out)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueAll:
    """Values, first positions, inverse and counts."""
    return _UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueCounts:
    """Values and counts."""
    return _UniqueCounts(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(
    x: Any,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> _UniqueInverse:
    """Values and the positions that rebuild x."""
    return _UniqueInverse(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct values."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Any:
    """Whether each element is among `test_elements`."""
    x, y = as_arrays("isin", element, test_elements)
    x, y = promote_dtypes(x, y)
    y = ravel(y)
    if not y.aval.size:
        out = lax.full(x.aval.shape, False, dtypes.bool_)
    else:
        wide = (*x.aval.shape, y.aval.size)
        out = any_(
            equal(
                lax.broadcast_in_dim(x, wide, tuple(range(x.aval.ndim))),
                lax.broadcast_in_dim(y, wide, (x.aval.ndim,)),
            ),
            -1,
        )
    return bitwise_not(out) if invert else out


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    x, y = promote_dtypes(*as_arrays(name, a, b))
    return ravel(x), ravel(y)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements of both arrays."""
    return unique(concatenate(list(_pair("union1d", ar1, ar2))), size=size, fill_value=fill_value)


def _chosen(name: str, values: Any, keep: Any, size: int | None, fill_value: Any) -> Any:
    if size is None:
        return getitem(
            values, as_constant(np.flatnonzero(need_concrete(name, keep)).astype(int_dtype()))
        )
    index = first_true(keep, size)
    fill = 0 if fill_value is None else fill_value
    valid = less(lax.iota(int_dtype(), size), sum_(cast(keep, int_dtype())))
    return where(valid, getitem(values, index), cast(one_array(name, fill), values.aval.dtype))


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements of `ar1` that are not in `ar2`."""
    x, y = _pair("setdiff1d", ar1, ar2)
    if size is None and not assume_unique:
        x = unique(x)
        return _chosen("setdiff1d", x, isin(x, y, invert=True), None, None)
    keep = isin(x, y, invert=True)
    if not assume_unique:
        x = sort(x)
        fresh = (
            concatenate(
                [
                    lax.full((1,), True, dtypes.bool_),
                    not_equal(getitem(x, slice(1, None)), getitem(x, slice(None, -1))),
                ]
            )
            if x.aval.size
            else keep
        )
        keep = logical_and(isin(x, y, invert=True), fresh)
    return _chosen("setdiff1d", x, keep, size, fill_value)


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The sorted distinct elements in both arrays."""
    x, y = _pair("intersect1d", ar1, ar2)
    if return_indices:
        if size is not None:
            raise NotImplementedError(
                "intersect1d: return_indices together with size is not "
                "supported. Call it outside of transformations."
            )
        found = np.intersect1d(
            need_concrete("intersect1d", x),
            need_concrete("intersect1d", y),
            assume_unique,
            return_indices=True,
        )
        return tuple(
            [as_constant(v if i == 0 else v.astype(int_dtype())) for i, v in enumerate(found)]
        )
    x = sort(x)
    fresh = (
        concatenate(
            [
                lax.full((1,), True, dtypes.bool_),
                not_equal(getitem(x, slice(1, None)), getitem(x, slice(None, -1))),
            ]
        )
        if x.aval.size
        else lax.full((0,), False, dtypes.bool_)
    )
    return _chosen("intersect1d", x, logical_and(fresh, isin(x, y)), size, fill_value)


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements in exactly one of the arrays."""
    x, y = _pair("setxor1d", ar1, ar2)
    both = sort(concatenate([x, y]))
    alone = bitwise_not(logical_and(isin(both, x), isin(both, y)))
    fresh = (
        concatenate(
            [
                lax.full((1,), True, dtypes.bool_),
                not_equal(getitem(both, slice(1, None)), getitem(both, slice(None, -1))),
            ]
        )
        if both.aval.size
        else (alone)
    )
    return _chosen("setxor1d", both, logical_and(alone, fresh), size, fill_value)
