"""`pmap` over the devices of several processes.

Each process gives the slices of its own devices and gets theirs back, as in JAX: the mapped axis is
as long as a process has devices, and collectives join the devices of all. What runs is a
`shard_map` over all of them. For `api.maps.mapping`, which loads it when it is needed. What would
break it: devices of a process that do not lie together.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.flat import name_of
from numjet.api.maps.shard_map import unchecked
from numjet.api.placement.devices import place
from numjet.api.placement.mesh import Mesh
from numjet.api.placement.reshard import over_types
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.core.array import ArrayImpl, as_array
from numjet.core.cluster import Cluster
from numjet.core.sharded import ShardedArray
from numjet.core.trace import Tracer
from numjet.ops.shape import expand_dims, squeeze


def cut(label: Any, axis: int | None) -> PartitionSpec:
    """One slice of `axis` a device, or everything on each."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, label)


def mapped(call: Callable, mesh: Mesh, leaves: Sequence[Any], dims: Sequence[int | None]) -> list:
    """`call`, which takes a list of leaves and gives one, for each device; results have the mapped
    axis in front."""
    (label,) = mesh.axis_names

    def local(*blocks: Any) -> list:
        given = [b if d is None else squeeze(b, (d,)) for b, d in zip(blocks, dims, strict=True)]
        return [expand_dims(as_array(x), (0,)) for x in call(given)]

    specs = tuple([cut(label, d) for d in dims])
    each = unchecked(local, mesh, specs, PartitionSpec(label), check_vma=False)
    return each(*leaves)


def given(
    fun: Callable, mesh: Mesh, leaves: Sequence[Any], dims: Sequence[int | None], size: int | None
) -> list[Any]:
    """Arguments over all devices, of those of this process's; arrays over all stay as they are.

    Raises ValueError where the mapped axis is not as long as this process has devices (or all), or
    where it has none.
    """
    (label,) = mesh.axis_names
    mine = len([d for d in mesh.devices.flat if d.process_index == Cluster.index])
    if not mine:
        raise ValueError(
            f"pmap of {name_of(fun)}: process {Cluster.index} has none of its devices, "
            f"{[*mesh.devices.flat]}: it is called by the processes whose devices they are."
        )
    if size is not None and size != mesh.size:
        raise ValueError(
            f"pmap of {name_of(fun)}: axis_size={size}, but the axis has the {mesh.size} devices "
            "of all processes."
        )
    made: list[Any] = []
    for x, d in zip(leaves, dims, strict=True):
        if isinstance(x, Tracer):
            raise NotImplementedError(
                "pmap over several processes is not traced by other transformations. Put them "
                "inside of it, or use shard_map."
            )
        sharding = NamedSharding(mesh, cut(label, d))
        if type(x) is ShardedArray and not x.is_fully_addressable:
            made.append(over_types(x, mesh))
            length, wanted = (mesh.size if d is None else x.aval.shape[d]), mesh.size
        else:
            array, wanted = as_array(x), mine
            length = mine if d is None else array.aval.shape[d]
            made.append(_of_all(array, d, sharding, mesh.size // mine))
        if length != wanted:
            raise ValueError(
                f"pmap of {name_of(fun)}: the mapped axis has size {length}; over several "
                f"processes each gives as many slices as it has devices, {mine} (arrays over all "
                f"devices: {mesh.size})."
            )
    return made


def _of_all(array: Any, axis: int | None, sharding: NamedSharding, times: int) -> Any:
    shape = list(array.aval.shape)
    if axis is not None:
        shape[axis] *= times
    return ShardedArray(array._value, array.aval.update(shape=tuple(shape)), sharding)


def mine(mesh: Mesh, x: Any, axis: int | None) -> Any:
    """A result's slices that are this process's devices', behind one another along `axis`; the
    value itself where they are alike."""
    (label,) = mesh.axis_names
    own = np.array([d for d in mesh.devices.flat if d.process_index == Cluster.index])
    block = x._block
    if axis is None:
        block = block[0]
    else:
        axis = axis % block.ndim
        block = np.moveaxis(block, 0, axis)
    array = ArrayImpl(np.ascontiguousarray(block), x.aval.update(shape=block.shape))
    return place(array, NamedSharding(Mesh(own, (label,)), cut(label, axis)))
