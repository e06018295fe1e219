"""Sums, products and extremes over the segments of an array: the public `ops` of JAX's names.

Each is one scatter into an array of the operation's neutral element, so that derivatives, vmap and
compiled code are those of `ops.scatter`. Public under the package `numjet.ops`, for users.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.dims import any_symbolic, count_of, index_of
from numjet.core.structural import broadcast_in_dim, full, reduce_sum
from numjet.core.trace import concrete_or_none
from numjet.ops.arithmetic import div
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.indexing import GatherScatterMode, ScatterDimensionNumbers
from numjet.ops.reduce import reduce_max, reduce_min, reduce_prod
from numjet.ops.scatter import scatter_add, scatter_max, scatter_min, scatter_mul
from numjet.ops.shape import broadcasted_iota, concatenate, expand_dims


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Any:
    """The sum of the rows of `data` that belong to each segment.

    data: numbers[n, ...] (or without axes: the value of every row). segment_ids: integers[n], the
    segment of each row; rows of negative or too large segments are dropped, unless `mode` says
    otherwise ('clip', 'promise_in_bounds'). num_segments: how many there are; by default one more
    than the largest id, which must then be known while tracing. Result: numbers[num_segments, ...]
    of the dtype of `data`; 0 for segments without rows. indices_are_sorted, unique_indices: what is
    known of the ids. bucket_size: add up so many rows at a time, and then these sums, which loses
    fewer digits. Raises TypeError for ids that are no integers, ConcretizationTypeError for traced
    ids without num_segments.

    >>> import numjet.numpy as jnp
    >>> from numjet.ops import segment_sum
    >>> segment_sum(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 2, 2]), num_segments=3)
    Array([3., 0., 7.], dtype=float32)
    """
    return _segments("segment_sum", scatter_add, reduce_sum, lambda d: 0, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Any = None,
                 out_sharding: Any = None) -> Any:
    """The product of the rows of each segment; 1 for segments without rows.

    Arguments and errors as of `segment_sum`. Differentiable with unique_indices=True alone.

    >>> import numjet.numpy as jnp
    >>> from numjet.ops import segment_prod
    >>> segment_prod(jnp.array([2., 3., 4.]), jnp.array([0, 0, 2]), num_segments=3)
    Array([6., 1., 4.], dtype=float32)
    """
    return _segments("segment_prod", scatter_mul, reduce_prod, lambda d: 1, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Any:
    """The largest of the rows of each segment; -inf (the lowest integer) for segments without rows.

    Arguments and errors as of `segment_sum`.

    >>> import numjet.numpy as jnp
    >>> from numjet.ops import segment_max
    >>> segment_max(jnp.array([2., 3., 4.]), jnp.array([0, 0, 2]), num_segments=3)
    Array([  3., -inf,   4.], dtype=float32)
    """
    return _segments("segment_max", scatter_max, reduce_max, _lowest, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Any:
    """The smallest of the rows of each segment; inf (the highest integer) for segments without
    rows.

    Arguments and errors as of `segment_sum`.

    >>> import numjet.numpy as jnp
    >>> from numjet.ops import segment_min
    >>> segment_min(jnp.array([2., 3., 4.]), jnp.array([0, 0, 2]), num_segments=3)
    Array([ 2., inf,  4.], dtype=float32)
    """
    return _segments("segment_min", scatter_min, reduce_min, _highest, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def _lowest(dtype: np.dtype) -> Any:
    if dtypes.is_bool(dtype):
        return False
    return dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else -np.inf


def _highest(dtype: np.dtype) -> Any:
    if dtypes.is_bool(dtype):
        return True
    return dtypes.iinfo(dtype).max if dtypes.is_integer(dtype) else np.inf


def _count(name: str, segment_ids: Any, num_segments: Any) -> int:
    if num_segments is not None:
        count = count_of(num_segments)
        if count < 0:
            raise ValueError(f"{name}: num_segments must be non-negative, got {count}.")
        return count
    ids = concrete_or_none(segment_ids)
    if ids is None:
        raise ConcretizationTypeError(
            f"{name}: segment_ids are traced ({segment_ids.aval.str_short()}), so their largest is "
            "not known while the function is traced. Pass num_segments.")
    values = np.asarray(ids)
    if not values.size:
        raise ValueError(f"{name}: no segment_ids were given, so their largest is not known. Pass "
                         "num_segments.")
    return max(int(values.max()) + 1, 0)


def _segments(name: str, scatter: Callable, reduction: Callable, neutral: Callable, data: Any,
              segment_ids: Any, num_segments: Any, indices_are_sorted: bool, unique_indices: bool,
              bucket_size: int | None, mode: Any, out_sharding: Any) -> Any:
    for argument, value in (("data", data), ("segment_ids", segment_ids)):
        if not isinstance(value, Array | np.ndarray | np.generic | int | float | complex):
            raise TypeError(f"{name}: {argument} must be an array or a scalar, got a value of type "
                            f"{type(value).__name__}. Convert it with numjet.numpy.asarray.")
    for argument, value in (("indices_are_sorted", indices_are_sorted),
                            ("unique_indices", unique_indices)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}: {argument} must be a bool, got {value!r}.")
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not there. Leave it away.")
    data, ids = as_array(data), as_array(segment_ids)
    if dtypes.is_bool(data.dtype) and scatter in (scatter_add, scatter_mul):
        raise TypeError(f"{name} does not accept dtype bool. Convert data with .astype(int).")
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{name}: Indexer must have integer type, got segment_ids "
                        f"{ids.aval.str_short()}. Convert them with .astype(int).")
    count, rest = _count(name, ids, num_segments), data.aval.shape[1:]
    rows = (*ids.aval.shape, *rest)
    if broadcast_shapes(data.aval.shape, rows) != rows:
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: data of shape "
                         f"{data.aval.shape} does not stretch to one row for each of segment_ids, "
                         f"{rows}.")
    data = broadcast_in_dim(data, rows, tuple(range(len(rows) - data.aval.ndim, len(rows))))
    if not count:
        return full((0, *rest), 0, data.dtype)
    mode = GatherScatterMode.from_any(mode)
    out = full((count, *rest), neutral(data.dtype), data.dtype) if bucket_size is None else None
    start = expand_dims(ids, (ids.aval.ndim,))
    cells: tuple[int, ...] = (count,)
    if bucket_size is not None:
        if ids.aval.ndim != 1:
            raise ValueError(f"{name}: bucket_size takes segment_ids of one axis, got "
                             f"{ids.aval.str_short()}.")
        length = ids.aval.shape[0]
        bucket_size = index_of(bucket_size)
        if any_symbolic((length, bucket_size)):
            rows_before = broadcasted_iota(ids.dtype, (length, 1), 0)
            bucket = div(rows_before, full((length, 1), bucket_size, ids.dtype))
        else:
            rows_before = np.arange(length).reshape(length, 1)
            bucket = as_array((rows_before // bucket_size).astype(ids.dtype))
        start = concatenate([bucket, start], 1)
        cells = (-(-length // bucket_size), count)
        out = full((*cells, *rest), neutral(data.dtype), data.dtype)
    lead = ids.aval.ndim
    numbers = ScatterDimensionNumbers(tuple(range(lead, lead + len(rest))),
                                      tuple(range(len(cells))), tuple(range(len(cells))))
    out = scatter(out, start, data, numbers, indices_are_sorted=indices_are_sorted,
                  unique_indices=unique_indices, mode=mode)
    return reduction(out, (0,)) if bucket_size is not None else out

