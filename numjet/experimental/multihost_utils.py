"""numjet.experimental.multihost_utils: what programs for several processes call outside jit.

For users. Values travel as Python objects over MPI; each function must be called by all processes.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from numjet.api.assemble import make_array_from_process_local_data
from numjet.api.devices import device_put
from numjet.api.sharding import NamedSharding, PartitionSpec
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.cluster import Cluster
from numjet.core.spread import SpreadArray


def _everyone(value: Any) -> list[Any]:
    """The value of each process."""
    if Cluster.transport is None:
        return [value]
    return Cluster.transport.objects(value)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here.

    name: of the place. Raises AssertionError where they come with other names.

    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("saved")
    """
    names = _everyone(zlib.crc32(name.encode()))
    if len(set(names)) != 1:
        raise AssertionError(
            f"sync_global_devices: name mismatch: this process came with {name!r}, others with "
            "another name."
        )


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process on all, as NumPy arrays.

    in_tree: a pytree of arrays and numbers, of the same structure and shapes on all. is_source:
    true on the process that has the values; process 0 unless given.

    >>> import numpy as np
    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(np.arange(2))
    array([0, 1])
    """
    source = Cluster.index == 0 if is_source is None else is_source
    values = tree.tree_map(np.asarray, in_tree)
    found = [v for v in _everyone(tree.tree_leaves(values) if source else None) if v is not None]
    if len(found) != 1:
        raise ValueError(f"broadcast_one_to_all: {len(found)} processes are the source, not one.")
    return tree.tree_unflatten(tree.tree_structure(values), found[0])


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes as NumPy arrays, on each.

    in_tree: a pytree of arrays and numbers; of an array over several processes the whole comes.
    tiled: joined along the first axis instead of stacked along a new one.

    >>> import numpy as np
    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.process_allgather(np.arange(2), tiled=True)
    array([0, 1])
    """

    def gather(x: Any) -> np.ndarray:
        if type(x) is SpreadArray and not x.is_fully_addressable:
            return _whole(x)
        value = np.asarray(x)
        parts = _everyone(value)
        return np.concatenate(parts) if tiled else np.stack(parts)

    return tree.tree_map(gather, in_tree)


def _whole(x: SpreadArray) -> np.ndarray:
    """All of an array over several processes, on each."""
    if x.is_fully_replicated:
        return np.asarray(x)
    window = x._sharding.block_index(x.shape)
    out = np.empty(x.shape, x._block.dtype)
    for index, block in _everyone((window, x._block)):
        out[index] = block
    return out


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes hold values equal to those of process 0.

    in_tree: a pytree of arrays and numbers. fail_message: begins the message. Raises AssertionError
    where they differ.

    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3})
    """
    mine = tree.tree_map(np.asarray, in_tree)
    first = broadcast_one_to_all(in_tree)
    same = [
        bool(np.array_equal(a, b))
        for a, b in zip(tree.tree_leaves(mine), tree.tree_leaves(first), strict=True)
    ]
    if not all(same):
        raise AssertionError(
            f"{fail_message} Values of process {Cluster.index} differ from those of process 0."
        )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes are to save their state at this step, since one of them is to be
    stopped.

    step_id: an integer. Never, as nobody watches for that here.

    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False
    """
    del step_id
    return False


def _specs(pspecs: Any, structure: Any) -> list[PartitionSpec]:
    """A PartitionSpec for each leaf of `structure`, from a prefix of it."""
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    found = tree.flatten_axes("multihost_utils: pspecs", structure, pspecs, is_spec)
    return [s or PartitionSpec() for s in found]


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh, made of the parts that each process has.

    local_inputs: a pytree of arrays, this process's parts. global_mesh: the Mesh. pspecs: a pytree
    prefix of PartitionSpecs, None for arrays that are not cut.

    >>> import numpy as np
    >>> import numjet as nj
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> multihost_utils.host_local_array_to_global_array(np.arange(2), mesh, nj.P("x"))
    Array([0, 1], dtype=int32)
    """
    leaves, structure = tree.tree_flatten(local_inputs)
    specs = _specs(pspecs, structure)
    made = [
        make_array_from_process_local_data(NamedSharding(global_mesh, s), np.asarray(x))
        for x, s in zip(leaves, specs, strict=True)
    ]
    return tree.tree_unflatten(structure, made)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The parts of this process of arrays over a mesh.

    global_inputs: a pytree of arrays. global_mesh: the Mesh. pspecs: a pytree prefix of
    PartitionSpecs, as which they are laid out first.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> multihost_utils.global_array_to_host_local_array(jnp.arange(2), mesh, nj.P("x"))
    Array([0, 1], dtype=int32)
    """
    leaves, structure = tree.tree_flatten(global_inputs)
    specs = _specs(pspecs, structure)
    made = []
    for x, spec in zip(leaves, specs, strict=True):
        laid = device_put(x, NamedSharding(global_mesh, spec))
        if laid.is_fully_addressable:
            made.append(laid)
        else:
            made.append(as_array(laid._block))
    return tree.tree_unflatten(structure, made)


__all__ = [
    "annotations", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
