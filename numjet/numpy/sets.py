"""Sets of values: unique elements, unions, intersections, differences, membership."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, in_place, wanted
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.core.dims import count_of
from numjet.core.structural import broadcast_in_dim
from numjet.numpy import lax_names as lax
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import add, subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import (
    bitwise_not,
    equal,
    isnan_of,
    logical_and,
    logical_not,
    not_equal,
    where,
)
from numjet.numpy.positions import as_constant, first_true, need_concrete, true_positions
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    cast,
    int_dtype,
    one_array,
    promote_dtypes,
    strong,
)
from numjet.numpy.reductions import any as any_, argmax
from numjet.numpy.shape import moveaxis, ravel, reshape
from numjet.numpy.sorting import argsort, lexsort, searchsorted, sort

# `isin` compares each element with each test element up to so many comparisons, or test elements:
# of 1,000,000 int32 among 100 it takes 2.5 ms so, by searching 5.7 (with AVX2 3.3 and 5.9).
COMPARED, TESTED = 1 << 14, 128


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
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
    """The distinct elements, rising; or the distinct slices along `axis`.

    ar: an array of any dtype. return_index: also where each is first; return_inverse: also which of
    them stands at each place of `ar`; return_counts: also how often each occurs. axis: an integer,
    or None for the flattened array. equal_nan: all NaN count as one. size: how many to give, needed
    where `ar` is traced (ConcretizationTypeError): further ones are left out, missing ones are
    `fill_value`, by default the smallest. sorted: has no effect, they are. Returns an Array, or a
    tuple where more is asked for.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = one_array("unique", ar)
    x = strong(x) if dtypes.is_complex(x.aval.dtype) else x
    flat = axis is None
    axis = 0 if axis is None else canonical_axis(axis, x.aval.ndim, "unique")
    rows = reshape(x, (x.aval.size,)) if flat else moveaxis(x, axis, 0)
    n, rest = rows.aval.shape[0], rows.aval.shape[1:]
    if FLAG.uses and wanted() and n and size is not None and x.aval.ndim == 1:
        out = in_place(
            "of unique", x, return_index, return_inverse, return_counts, equal_nan,
            count_of(size), fill_value,
        )  # fmt: skip
        return out[0] if len(out) == 1 else out
    size = None if size is None else count_of(size)
    if size and not n and fill_value is None:
        raise ValueError(f"unique: nothing to fill size={size} with: give fill_value.")
    if not x.aval.size:
        found = _of_nothing(rows, None if flat else axis, size, fill_value, x.aval.shape)
        asked = (True, return_index, return_inverse, return_counts)
        out = [part for part, wish in zip(found, asked, strict=True) if wish]
        return out[0] if len(out) == 1 else tuple(out)
    rows = reshape(rows, (n, math.prod(rest)))
    order, ordered, first = _runs(rows, equal_nan)
    starts, valid = true_positions("unique", first, size)
    found = starts.aval.shape[0]
    dtype, width = rows.aval.dtype, rows.aval.shape[1:]
    values = getitem(ordered, starts)
    if valid is not None:
        if fill_value is not None:
            filler = cast(broadcast(one_array("unique", fill_value), (1, *width)), dtype)
        else:
            filler = getitem(values, slice(0, 1)) if found else values
        values = where(reshape(valid, (-1, 1)), values, filler)
    out = [moveaxis(reshape(values, (found, *rest)), 0, axis)]
    if return_index:
        index = getitem(order, starts)
        out.append(where(valid, index, getitem(index, 0)) if valid is not None and found else index)
    if return_inverse:
        rank_of = subtract(cumsum(cast(first, int_dtype())), 1)
        inverse = lax.full((n,), 0, int_dtype()).at[order].set(rank_of, unique_indices=True)
        out.append(reshape(inverse, x.aval.shape) if flat else inverse)
    if return_counts:
        if valid is not None:
            # The run after the last one asked for ends it.
            ends = getitem(first_true(first, found + 1, n), slice(1, None))
            out.append(where(valid, subtract(ends, starts), 0))
        else:
            ends = concatenate([starts, lax.full((1,), n, int_dtype())])
            out.append(subtract(getitem(ends, slice(1, None)), starts))
    return out[0] if len(out) == 1 else tuple(out)


def _of_nothing(rows: Any, axis: int | None, size: Any, fill_value: Any, shape: tuple) -> tuple:
    """What `unique` gives of an array without elements: values, index, inverse, counts.

    Slices along `axis` that are empty are all alike, even where there is none of them: one is
    found. `size` counts values alone, and those only where there is a `fill_value`, as in JAX.
    """
    n, rest = rows.aval.shape[0], rows.aval.shape[1:]
    one = int(axis is not None and not math.prod(rest))
    asked = size is not None and fill_value is not None
    found, filler = (size, one_array("unique", fill_value)) if asked else (one, 0)
    values = lax.full((found, *rest), filler, rows.aval.dtype)
    inverse = lax.full(shape if axis is None else (n,), 0, int_dtype())
    index = lax.full((one,), 0, int_dtype())
    counts = lax.full((one if n else 0,), n, int_dtype())
    return moveaxis(values, 0, axis or 0), index, inverse, counts


def _runs(rows: Any, equal_nan: bool) -> tuple[Any, Any, Any]:
    """The positions that sort the rows, the sorted rows, and where a run of equal ones begins."""
    count = rows.aval.shape[1]
    order = lexsort([getitem(rows, (slice(None), i)) for i in reversed(range(count))])
    ordered = getitem(rows, order)
    later, earlier = getitem(ordered, slice(1, None)), getitem(ordered, slice(None, -1))
    differs = not_equal(later, earlier)
    if equal_nan and dtypes.is_inexact(rows.aval.dtype):
        differs = logical_and(differs, logical_not(logical_and(isnan_of(later), isnan_of(earlier))))
    first = concatenate([lax.full((1,), True, dtypes.bool_), any_(differs, 1)])
    return order, ordered, first


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueAllResult:
    """(values, indices, inverse_indices, counts) of the distinct elements, as the array API has
    them.

    x: an array of any dtype; each NaN is distinct. size, fill_value: as in `unique`.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).indices
    Array([1, 0], dtype=int32)
    """
    return _UniqueAllResult(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> _UniqueCountsResult:
    """(values, counts) of the distinct elements, as the array API has them.

    x: an array of any dtype; each NaN is distinct. size, fill_value: as in `unique`.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueCountsResult(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(
    x: Any,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> _UniqueInverseResult:
    """(values, inverse_indices) of the distinct elements: values[inverse_indices] is x.

    x: an array of any dtype; each NaN is distinct. size, fill_value: as in `unique`.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements, rising, as the array API has them.

    x: an array of any dtype; each NaN is distinct. size, fill_value: as in `unique`.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Any:
    """Whether each element is among `test_elements`.

    element, test_elements: arrays or numbers, compared in their common dtype. invert: whether it is
    not. method: 'compare_all', or 'binary_search' or 'sort' among the sorted test elements; 'auto'
    is the first for a few; ValueError for others. assume_unique: has no effect. Returns booleans of
    element's shape. TypeError for a list. There is no `kind`.

    >>> jnp.isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 3]))
    Array([[False,  True],
           [ True, False]], dtype=bool)
    """
    known = ("compare_all", "binary_search", "sort", "auto")
    if method not in known:
        raise ValueError(f"isin: method={method!r} is not implemented; options are {known}.")
    x, y = as_arrays("isin", element, test_elements)
    x, y = promote_dtypes(x, y)
    y, kind = ravel(y), dtypes.kind(x.aval.dtype)
    few = x.aval.size * y.aval.size <= COMPARED or y.aval.size <= TESTED
    if not y.aval.size:
        out = lax.full(x.aval.shape, False, dtypes.bool_)
    elif (few and method == "auto") or method == "compare_all" or kind not in "biufc":
        wide = (*x.aval.shape, y.aval.size)
        out = any_(
            equal(
                lax.broadcast_in_dim(x, wide, tuple(range(x.aval.ndim))),
                lax.broadcast_in_dim(y, wide, (x.aval.ndim,)),
            ),
            -1,
        )
    else:
        if x.aval.dtype == dtypes.bool_:
            x, y = cast(x, dtypes.uint8), cast(y, dtypes.uint8)
        if kind == "c":  # what is no number equals nothing: behind all, whichever part it is
            y = where(equal(y, y), y, lax.full((), np.nan + 1j * np.nan, y.aval.dtype))
        zero = lax.full((), 0, x.aval.dtype)  # -0 + 0 is 0, as the order would tell them apart
        x, y = add(x, zero), sort(add(y, zero))
        out = equal(getitem(y, searchsorted(y, x)), x)
    return bitwise_not(out) if invert else out


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    x, y = promote_dtypes(*as_arrays(name, a, b))
    return ravel(x), ravel(y)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements of both arrays, rising.

    ar1, ar2: arrays, flattened, which promote. size, fill_value: as in `unique`.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    return unique(concatenate(list(_pair("union1d", ar1, ar2))), size=size, fill_value=fill_value)


def _chosen(
    name: str, values: Any, keep: Any, size: int | None, fill_value: Any, weak: bool = False
) -> Any:
    fill = cast(one_array(name, 0 if fill_value is None else fill_value), values.aval.dtype, weak)
    if size is not None and not values.aval.size:
        return broadcast_in_dim(fill, (size,), ())
    index, valid = true_positions(name, keep, size)
    chosen = getitem(values, index)
    return chosen if valid is None else where(valid, chosen, fill)


def _begins(x: Any) -> Any:
    """Where a run of equal elements begins in the sorted vector x."""
    if not x.aval.size:
        return lax.full((0,), False, dtypes.bool_)
    differs = not_equal(getitem(x, slice(1, None)), getitem(x, slice(None, -1)))
    return concatenate([lax.full((1,), True, dtypes.bool_), differs])


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements of `ar1` that are not in `ar2`, rising.

    ar1, ar2: arrays, flattened. assume_unique: those of ar1 are distinct, and stay in their order.
    size: how many to give, needed while tracing (ConcretizationTypeError); missing ones are
    `fill_value`, by default 0.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    x, y = [ravel(a) for a in as_arrays("setdiff1d", ar1, ar2)]
    if not assume_unique:
        x = unique(x) if size is None else sort(x)
    keep = isin(x, y, invert=True)
    if not assume_unique and size is not None:
        keep = logical_and(keep, _begins(x))
    return _chosen("setdiff1d", x, keep, size, fill_value, x.aval.weak_type)


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements that are in both arrays, rising.

    ar1, ar2: arrays, flattened, which promote. assume_unique: each one's are distinct.
    return_indices: also where they are first in both. size: how many to give, needed while tracing
    (ConcretizationTypeError); missing ones are `fill_value`, by default the smallest, with
    positions behind the end.

    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 9]))
    Array([2, 3], dtype=int32)
    """
    x, y = _pair("intersect1d", ar1, ar2)
    if assume_unique:
        return _equal_neighbours(x, y, return_indices, size, fill_value)
    if return_indices and size is None:
        found = np.intersect1d(
            need_concrete("intersect1d", x),
            need_concrete("intersect1d", y),
            return_indices=True,
        )
        return tuple(
            [as_constant(v if i == 0 else v.astype(int_dtype())) for i, v in enumerate(found)]
        )
    order = argsort(x)
    x_sorted = getitem(x, order)
    keep = logical_and(_begins(x_sorted), isin(x_sorted, y))
    if fill_value is None and size is not None and x.aval.size:
        # The first of them; 0 where there is none.
        fill_value = where(any_(keep), getitem(x_sorted, argmax(keep)), 0)
    values = _chosen("intersect1d", x_sorted, keep, size, fill_value)
    if not return_indices:
        return values
    index, valid = true_positions("intersect1d", keep, size)
    first = where(valid, getitem(order, index), x.aval.size)
    by_value = argsort(y)
    at = searchsorted(getitem(y, by_value), getitem(x_sorted, index))
    return values, first, where(valid, getitem(by_value, at), y.aval.size)


def _equal_neighbours(x: Any, y: Any, places: bool, size: int | None, fill_value: Any) -> Any:
    """What is equal to its neighbour in the sorted elements of both vectors, which are distinct."""
    both = concatenate([x, y])
    order = argsort(both)
    both = getitem(both, order)
    first, second = slice(None, -1), slice(1, None)
    keep = equal(getitem(both, first), getitem(both, second))
    if fill_value is None and size is not None and keep.aval.size:
        fill_value = where(any_(keep), getitem(both, argmax(keep)), 0)
    values = _chosen("intersect1d", getitem(both, first), keep, size, fill_value)
    if not places:
        return values
    if size is None:
        order = cast(order, dtypes.int32)  # whatever `enable_x64` says, as in JAX
    n, m = x.aval.size, y.aval.size
    index = _chosen("intersect1d", getitem(order, first), keep, size, n)
    return values, index, _chosen(
        "intersect1d", subtract(getitem(order, second), n), keep, size, m)


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements that are in exactly one of the arrays, rising.

    ar1, ar2: arrays, flattened, which promote. assume_unique: has no effect. size: how many to
    give, needed while tracing (ConcretizationTypeError); missing ones are `fill_value`, by default
    the smallest.

    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([3, 9]))
    Array([1, 9], dtype=int32)
    """
    x, y = _pair("setxor1d", ar1, ar2)
    both = sort(concatenate([x, y]))
    alone = logical_and(bitwise_not(logical_and(isin(both, x), isin(both, y))), _begins(both))
    if fill_value is None and size is not None and both.aval.size:
        fill_value = getitem(both, argmax(alone))  # the first of them
    return _chosen("setxor1d", both, alone, size, fill_value)
