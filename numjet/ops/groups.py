"""Collectives within groups of an axis's members: `axis_index_groups`.

Every member sees all values and takes those of its group, so that derivatives, vmap and the
partitioner know nothing of groups. For `ops.collective`, which loads it when it is asked for, and
`ops.exchange` (`rows_at`). What would break it: groups that leave a member out (refused).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import broadcast_in_dim, convert, moveaxis, reduce_sum
from numjet.ops.arithmetic import div
from numjet.ops.gather import gather as gather_rows
from numjet.ops.indexing import GatherDimensionNumbers
from numjet.ops.reduce import extreme_of, reduce_max, reduce_min
from numjet.ops.shape import expand_dims, reshape, select_n
from numjet.ops.slicing import dynamic_index_in_dim, dynamic_slice_in_dim


def _checked(name: str, groups: Any, size: int) -> list[list[int]]:
    found = [[int(i) for i in group] for group in groups]
    members = [i for group in found for i in group]
    if sorted(members) != list(range(size)):
        raise ValueError(
            f"{name}: axis_index_groups must name each of the {size} members of the axis once, got "
            f"{found}."
        )
    return found


def _table(rows: Sequence[Any], here: Any) -> Any:
    """The row of a table, one for each member, that is this one's."""
    return dynamic_index_in_dim(as_array(np.asarray(rows, np.int32)), here, 0, keepdims=False)


def rows_at(values: Any, places: Any) -> Any:
    """Rows of `values` at `places`, which lie inside."""
    rest = values.aval.shape[1:]
    numbers = GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    return gather_rows(values, expand_dims(places, (1,)), numbers, (1, *rest),
                       mode="promise_in_bounds")


def collective(
    name: str, x: Any, groups: Any, gather: Callable, here: Any, size: int, **options: Any
) -> Any:
    """The collective `name` of a pytree within groups.

    gather(leaf) gives the values of all `size` members, of which `here` is this one. Sums and
    extremes take groups of any sizes; the others want equal ones. Raises ValueError.
    """
    found = _checked(name, groups, size)
    counts = {len(group) for group in found}
    if len(counts) > 1 and name not in ("psum", "pmean", "pmax", "pmin"):
        raise ValueError(f"{name}: axis_index_groups must be of equal size, got {found}.")
    group_of = {i: group for group in found for i in group}

    def one(leaf: Any) -> Any:
        if name == "psum" and type(leaf) in (int, float, complex) and len(counts) == 1:
            return leaf * len(found[0])
        leaf = as_array(leaf)
        if name == "psum" and leaf.dtype == dtypes.bool_:
            leaf = convert(leaf, dtypes.int32)
        if name == "pmean" and not dtypes.is_inexact(leaf.dtype):
            leaf = convert(leaf, dtypes.canonical(dtypes.float64), leaf.aval.weak_type)
        everyone = gather(leaf)
        if name in ("psum", "pmean", "pmax", "pmin"):
            return _reduced(name, everyone, group_of, here, size)
        members = rows_at(everyone, _table([group_of[i] for i in range(size)], here))
        place = _table([group_of[i].index(i) for i in range(size)], here)
        shaped: Any = _SHAPED[name]
        return shaped(leaf, members, place, **options)

    return tree.tree_map(one, x)


def sent(everyone: Any, perm: Sequence[tuple[int, int]], here: Any, size: int) -> Any:
    """What comes to this member of the values of all, which pairs (source, destination) say; zeros
    where nothing does."""
    sources = {dst: src for src, dst in perm}
    row = _table([sources.get(i, 0) for i in range(size)], here)
    comes = _table([i in sources for i in range(size)], here)
    value = dynamic_index_in_dim(everyone, row, 0, keepdims=False)
    inside = broadcast_in_dim(convert(comes, dtypes.bool_), value.aval.shape, ())
    nothing = broadcast_in_dim(as_array(np.zeros((), value.aval.dtype)), value.aval.shape, ())
    return select_n(inside, nothing, value)


def _reduced(name: str, everyone: Any, group_of: dict, here: Any, size: int) -> Any:
    """The sum or extreme of the rows that are of this member's group."""
    mask = _table([[j in group_of[i] for j in range(size)] for i in range(size)], here)
    inside = broadcast_in_dim(convert(mask, dtypes.bool_), everyone.aval.shape, (0,))
    dtype = everyone.aval.dtype
    if name in ("psum", "pmean"):
        other: Any = np.zeros((), dtype)
    else:
        other = np.asarray(extreme_of(dtype, name == "pmax"), dtype)
    others = broadcast_in_dim(as_array(other), everyone.aval.shape, ())
    kept = select_n(inside, others, everyone)
    if name == "pmax":
        return reduce_max(kept, (0,))
    if name == "pmin":
        return reduce_min(kept, (0,))
    total = reduce_sum(kept, (0,))
    if name == "psum":
        return total
    count = convert(reduce_sum(convert(mask, dtypes.int32), (0,)), dtype)
    return div(total, broadcast_in_dim(count, total.aval.shape, ()))


def _gathered(leaf: Any, members: Any, place: Any, *, axis: int, tiled: bool) -> Any:
    at = axis % (leaf.ndim + (not tiled))
    out = moveaxis(members, 0, at)
    if not tiled:
        return out
    shape = leaf.shape
    return reshape(out, (*shape[:at], out.shape[at] * shape[at], *shape[at + 1 :]))


def _exchanged(
    leaf: Any, members: Any, place: Any, *, split_axis: int, concat_axis: int, tiled: bool
) -> Any:
    n = members.aval.shape[0]
    split, concat = split_axis % leaf.ndim, concat_axis % leaf.ndim
    shape = leaf.shape
    if shape[split] % n if tiled else shape[split] != n:
        raise ValueError(
            f"all_to_all: axis {split} of {leaf.aval.str_short()} must "
            f"{'be a multiple of' if tiled else 'equal'} the size {n} of each group."
        )
    if not tiled:
        return moveaxis(dynamic_index_in_dim(members, place, split + 1, keepdims=False), 0, concat)
    width = shape[split] // n
    parts = dynamic_slice_in_dim(members, place * width, width, split + 1)
    out = moveaxis(parts, 0, concat)
    joined = out.shape
    return reshape(out, (*joined[:concat], n * joined[concat + 1], *joined[concat + 2 :]))


def _scattered(
    leaf: Any, members: Any, place: Any, *, scatter_dimension: int, tiled: bool
) -> Any:
    total = reduce_sum(members, (0,))
    if not tiled:
        return dynamic_index_in_dim(total, place, scatter_dimension, keepdims=False)
    width = total.shape[scatter_dimension] // members.aval.shape[0]
    return dynamic_slice_in_dim(total, place * width, width, scatter_dimension)


_SHAPED = {"all_gather": _gathered, "all_to_all": _exchanged, "psum_scatter": _scattered}
