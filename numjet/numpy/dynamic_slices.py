"""`ds(start, size)`: slices whose start may be traced, for indices of arrays and references."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.array import Array, as_array
from numjet.core.dims import index_of
from numjet.core.ref_equations import Slice as Slice
from numjet.core.structural import convert
from numjet.ops import arithmetic as ar
from numjet.ops.families import constant_like
from numjet.ops.logic import lt
from numjet.ops.shape import iota, select_n
from numjet.ops.slicing import dynamic_slice_in_dim


def ds(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """A slice of `size` elements from `start` on, also where `start` is traced.

    start: an integer, or a traced integer scalar that is moved so that the slice lies inside the
    axis. size, stride: Python integers. `ds(n)` is the first n elements, `ds(None)` all. Python's
    slices cannot have traced bounds; this can, since the size is fixed.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.jit(lambda x, i: x[nj.ds(i, 2)])(jnp.arange(9), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


def among(index: Any) -> bool:
    """Whether there is a Slice in an index."""
    return type(index) is Slice or type(index) is tuple and Slice in map(type, index)


def _axes(index: Any, ndim: int) -> tuple[list, list[int]]:
    """The items of an index, and the axis where each begins."""
    items = list(index) if type(index) is tuple else [index]
    used = [0 if v is None or v is Ellipsis or type(v) is bool else _taken(v) for v in items]
    axes, axis = [], 0
    for item, n in zip(items, used, strict=True):
        axes.append(axis)
        axis += ndim - sum(used) if item is Ellipsis else n
    return items, axes


def _taken(item: Any) -> int:
    dtype = getattr(item, "dtype", None)
    return item.ndim if dtype is not None and dtype == np.bool_ else 1


def _checked(s: Slice) -> tuple[int, int]:
    if s.is_dynamic_size:
        raise TypeError(
            f"indexing: the size of {s} must be an integer that is known while tracing. Mark the "
            "argument it comes from as static."
        )
    size, stride = index_of(s.size), index_of(s.stride)
    if size < 0 or stride < 1:
        raise ValueError(f"indexing: {s} needs a size of 0 or more and a positive stride.")
    return size, stride


def cut(x: Array, index: Any) -> tuple[Any, tuple]:
    """`x` cut by the Slices of an index, and what is left to do."""
    items, axes = _axes(index, x.ndim)
    for k, (item, axis) in enumerate(zip(items, axes, strict=True)):
        if type(item) is Slice:
            size, stride = _checked(item)
            span = max((size - 1) * stride + 1, 0)
            x = dynamic_slice_in_dim(x, item.start, span, axis)
            items[k] = slice(None, None, stride)
    return x, tuple(items)


def positions(index: Any, shape: tuple[int, ...]) -> tuple:
    """The index with positions in the place of Slices, for updates.

    Raises NotImplementedError beside other arrays of positions, with which they would be paired.
    """
    items, axes = _axes(index, len(shape))
    plain = (int, slice, type(None), type(Ellipsis))
    slices = [k for k, item in enumerate(items) if type(item) is Slice]
    if any([type(v) not in plain and type(v) is not Slice for v in items]):
        raise NotImplementedError(
            "x.at[...]: ds(...) beside arrays of positions is not supported in updates. Update a "
            "part with lax.dynamic_update_slice."
        )
    # Of several the positions are paired; so are those of slices between them, which keep their
    # place in the result.
    paired = range(slices[0], slices[-1] + 1)
    if any([items[k] is None or items[k] is Ellipsis for k in paired]):
        raise NotImplementedError(
            "x.at[...]: an Ellipsis or a new axis between two ds(...) is not supported in updates. "
            "Write a slice for each axis."
        )
    found = {k: _positions(items[k], shape[axes[k]]) for k in paired}
    after = sum([x.ndim for x in found.values()])
    for k, x in found.items():
        after -= x.ndim
        items[k] = x.reshape(*x.shape, *[1] * after) if x.ndim and after else x
    return tuple(items)


def _positions(item: Any, n: int) -> Any:
    """The positions that an item of an index names on an axis of size n."""
    if type(item) is slice:
        return as_array(np.arange(n, dtype=np.int32)[item])
    if type(item) is not Slice:
        return as_array(item)
    size, stride = _checked(item)
    start = as_array(item.start)
    zero = constant_like(start, 0)
    start = select_n(lt(start, zero), start, ar.add(start, constant_like(start, n)))
    last = constant_like(start, n - ((size - 1) * stride + 1))
    start = ar.max(zero, ar.min(start, last))
    steps = ar.mul(iota(np.dtype(np.int32), size), np.int32(stride))
    return ar.add(steps, convert(start, np.dtype(np.int32)))
