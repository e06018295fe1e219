"""Blocks of arrays for `shard_map`: arguments cut into one device's part each, with an axis in
front for each axis of the mesh that cuts them, and results put together and laid out.

For `api.maps.shard_map`. What would break it: an order of axes in front that is not the mesh's.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from numjet.api.placement.devices import place, put
from numjet.api.placement.mesh import Mesh
from numjet.api.placement.reshard import constrained, over_types
from numjet.api.placement.sharding import NamedSharding, PartitionSpec, axes_of
from numjet.core.avals import lenient
from numjet.core.sharded import ShardedArray
from numjet.core.structural import broadcast_in_dim, full, reduce_sum, transpose
from numjet.core.trace import Tracer
from numjet.ops.exchange import first_member
from numjet.ops.shape import pad, reshape


def sums_over(names: Sequence[Any], x: Any) -> dict[str, frozenset]:
    """The mapped axes over which an argument is a pending sum, and over which it is reduced."""
    sums = (frozenset(), frozenset()) if x.aval.placed is None else x.aval.placed.sums
    return dict(zip(("unreduced", "reduced"), [s & set(names) for s in sums], strict=True))


def moved(names: Sequence[Any], spec: PartitionSpec, x: Any) -> Any:
    """An argument that lies over the mapped axes as its spec says, and over others as it did, which
    cut it further."""
    placed = x.aval.placed
    if placed is None:
        return x
    entries = [
        (*(axes_of(spec[i]) if i < len(spec) else ()), *[a for a in axes_of(e) if a not in names])
        for i, e in enumerate(placed.spec)
    ]
    wanted = placed.of_entries(entries, *placed.sums)
    return x if wanted.spec == placed.spec else constrained(x, wanted)


def over_mapped(mesh: Any, spec: PartitionSpec, x: Any) -> Any:
    """An argument over a mesh whose axes have other types; an array over another mesh is moved."""
    placed = x.aval.placed
    if placed is None or isinstance(x, Tracer) or placed.mesh.shape_tuple == mesh.shape_tuple:
        return over_types(x, mesh)
    return put(x, NamedSharding(mesh, PartitionSpec(*spec)))


def _others(names: Sequence[Any], layout: Sequence[Any]) -> list[tuple]:
    """A layout without the axes that are mapped."""
    return [tuple([a for a in axes if a not in names]) for axes in layout]


def _finer(sharding: Any, entries: Sequence[Any], own: Sequence[Any], shape: tuple) -> Any:
    """The sharding, whose parts are cut over axes that are not mapped too, where these divide them.
    """
    sizes, found = sharding.mesh.shape, []
    for entry, more, n in zip(entries, own, shape, strict=True):
        axes = (*axes_of(entry), *more)
        fits = n % math.prod([sizes[a] for a in axes]) == 0
        found.append(axes if fits else axes_of(entry))
    return sharding.of_layout(found)


class _AtLeast(NamedSharding):
    """A layout of values in a program, whose parts may be cut further."""

    def layout(self, ndim: int, have: Any = None, alone: bool = False) -> tuple:
        """For each dimension the axes that cut it: those that it has, where they begin with the
        spec's."""
        own = super().layout(ndim, have, alone)
        if have is None:
            return own
        kept = [
            tuple(h) if axes and tuple(h[: len(axes)]) == axes else axes
            for axes, h in zip(own, have, strict=True)
        ]
        named = [a for axes in kept for a in axes]
        return tuple(kept) if len(set(named)) == len(named) else own

    def _key(self) -> tuple:
        return (*super()._key(), "at least")


class _Whole(NamedSharding):
    """A layout of a whole array over mapped axes: under `vmap` its examples lie on all devices."""

    is_exact = True  # what is evaluated by itself lies so, each entry of the spec being shown

    def batched(self, dim: int, axes: Any = None) -> NamedSharding:
        parts = [*self.spec, *[None] * (dim - len(self.spec))]
        parts.insert(dim, axes or None)
        return _Whole(self.mesh, self.spec.update(partitions=parts))

    def _key(self) -> tuple:
        return (*super()._key(), "whole")


def kept_apart(mesh: Any, names: Sequence[Any], spec: PartitionSpec, x: Any) -> Any:
    """An array that lies over the mapped axes as its spec says, and is cut over others of type Auto
    as it was, as far as that cuts the parts."""
    own = x._sharding.layout(x.ndim)
    ends = [axes_of(e) for e in (*spec, *(None,) * (x.ndim - len(spec)))]
    kept = [
        axes if list(before[: len(axes)]) == list(axes) else ()
        for axes, before in zip(ends, own, strict=True)
    ]
    within = [o if k == e else () for o, k, e in zip(_others(names, own), kept, ends, strict=True)]
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    wanted = _finer(sharding, ends, within, x.shape)
    return x if wanted.layout(x.ndim) == own else put(x, wanted)


def check_rank(spec: PartitionSpec, ndim: int, what: str = "out_specs") -> None:
    if len(spec) > ndim:
        hint = f": consider using an {what} entry of `P()`." if ndim == 0 else "."
        raise ValueError(
            f"shard_map {what} argument has {spec}, which has length {len(spec)}, for a value on "
            f"each device which has rank {ndim}; a spec has no more entries than its value has "
            f"axes{hint}"
        )


def block_shape(mesh: Any, spec: PartitionSpec, shape: tuple, what: str, function: str) -> tuple:
    try:
        check_rank(spec, len(shape), "in_specs")
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        sharding.check_compatible_aval(shape)
        return sharding.shard_shape(shape)
    except ValueError as error:
        uneven = (", whose axis sizes are not evenly divisible by those of the mesh"
                  if "evenly divide" in str(error) else "")  # fmt: skip
        raise ValueError(
            f"shard_map applied to the function {function!r} was given {what} of shape {shape}"
            f"{uneven}: of in_specs {spec}. {error}"
        ) from None


def cut_into_blocks(
    mesh: Mesh, names: Sequence[Any], spec: PartitionSpec, x: Any, what: str, function: str,
    around: Any,
) -> tuple[Any, set]:
    """`x` with an axis in front for each axis of the mesh that cuts it: device by device its
    block; and which axes these are."""
    shape = x.aval.shape
    block = block_shape(mesh, spec, shape, what, function)
    pending, spec = spec.unreduced, PartitionSpec(*spec)
    if isinstance(x, Tracer) and not around.explicit_axes and not around.is_multi_process:
        x = laid_out(around, names, spec, x)  # and so is its cotangent
    x, used = _blocks(mesh, names, spec, x, block) if any(spec) else (x, [])
    for name in names:
        if name in pending:
            used = [n for n in names if n in used or n == name]
            x = _first_of(x, used.index(name), mesh.shape[name])
    return (pinned(mesh, used, x) if used else x), set(used)


def _first_of(x: Any, at: int, size: int) -> Any:
    """Parts of a pending sum along a new axis: the first is `x`, the others are zero."""
    shape = (*x.shape[:at], 1, *x.shape[at:])
    widths = [(0, size - 1 if i == at else 0, 0) for i in range(len(shape))]
    return pad(reshape(x, shape), full((), 0, x.aval.dtype), widths)


def _blocks(
    mesh: Mesh, names: Sequence[Any], spec: PartitionSpec, x: Any, block: Sequence[int]
) -> tuple[Any, list]:
    """`x` with an axis in front for each axis of the mesh that cuts it, and these."""
    sizes, placed = mesh.shape, x.aval.placed
    split: list[int] = []
    places: dict[Any, int] = {}  # mesh axis -> axis of the split array
    inner: list[int] = []
    for i, n in enumerate(block):
        for name in axes_of(spec[i]) if i < len(spec) else ():
            places[name] = len(split)
            split.append(sizes[name])
        inner.append(len(split))
        split.append(n)
    used = [name for name in names if name in places]
    with lenient() if placed is not None else contextlib.nullcontext():
        x = reshape(x, tuple(split))
        x = transpose(x, tuple([*[places[name] for name in used], *inner]))
    if placed is not None:  # by axes that are not mapped here, which cut each block
        x = constrained(x, placed.of_entries([*[()] * len(used), *placed.spec]))
    return x, used


def pinned(mesh: Mesh, used: Sequence[Any], x: Any) -> Any:
    """Blocks, where processes are to keep each its own."""
    if not mesh.is_multi_process:
        return x
    return constrained(x, NamedSharding(mesh, PartitionSpec(*used)))


def laid_out(
    mesh: Mesh, names: Sequence[Any], spec: PartitionSpec, x: Any, placed: Any = None,
    front: int = 0,
) -> Any:
    """A value with its sharding over the mapped axes. placed: how its blocks lie over axes that are
    not mapped here, behind so many axes in front. Over Auto ones they lie as they do."""
    if placed is not None:
        ends = (*spec, *(None,) * (x.ndim - len(spec)))
        both = [(*axes_of(e), *axes_of(p)) for e, p in zip(ends, placed.spec[front:])]
        spec = placed.of_entries(both).spec.update(unreduced=spec.unreduced, reduced=spec.reduced)
    if len(names) < len(mesh.axis_names) and not {*names}.isdisjoint(mesh.explicit_axes):
        spec = spec.update(partitions=[*spec, *(None,) * (x.ndim - len(spec))])
    sharding = NamedSharding(mesh, spec)
    if len(names) < len(mesh.axis_names) and not mesh.explicit_axes and not spec.unreduced:
        open_ = PartitionSpec.UNCONSTRAINED
        ends = (*spec, *(None,) * (x.ndim - len(spec)))
        if isinstance(x, Tracer):
            sharding = _AtLeast(mesh, PartitionSpec(*[entry or open_ for entry in ends]))
        elif type(x) is ShardedArray and hasattr(x._sharding, "layout"):
            own = _others(names, x._sharding.layout(x.ndim))
            sharding = _finer(sharding, ends, own, x.shape)
    elif isinstance(x, Tracer) and not mesh.explicit_axes and not spec.unreduced:
        sharding = _Whole(mesh, spec)
    if isinstance(x, Tracer):
        # Of one device there is nothing to say.
        return constrained(x, sharding) if mesh.explicit_axes or mesh.size > 1 else x
    if type(x) is ShardedArray:
        return constrained(x, sharding)
    return place(x, sharding)


def joined_blocks(mesh: Mesh, spec: PartitionSpec, x: Any, along: Sequence[Any]) -> Any:
    """The whole array of blocks that have an axis in front for each axis in `along`."""
    ndim = x.ndim - len(along)
    check_rank(spec, ndim)
    named = [axes_of(spec[i]) if i < len(spec) else () for i in range(ndim)]
    cut = [name for entry in named for name in entry]
    kept = list(along)
    for name in along:
        if name in spec.unreduced:
            x = reduce_sum(x, (kept.index(name),))
            kept.remove(name)
        elif name not in cut:
            x = first_member(x, kept.index(name))
            kept.remove(name)
    alike = [name for name in cut if name not in kept]
    if alike:  # every device has the same block
        front = tuple([mesh.shape[name] for name in alike])
        shape = (*front, *x.aval.shape)
        x = broadcast_in_dim(x, shape, tuple(range(len(alike), len(shape))))
        kept = alike + kept
    if not cut:
        return x
    order: list[int] = []
    sizes: list[int] = []
    known = x.aval.placed
    for i, entry in enumerate(named):
        order += [kept.index(name) for name in entry] + [len(kept) + i]
        parts = math.prod([mesh.shape[name] for name in entry])
        sizes.append(parts * x.aval.shape[len(kept) + i])
    with lenient() if known is not None else contextlib.nullcontext():
        return reshape(transpose(x, tuple(order)), tuple(sizes))
