"""numjet.experimental.multihost_utils: what programs for several processes call, for the one
process there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.devices import device_put
from numjet.api.sharding import NamedSharding, PartitionSpec
from numjet.base import tree


def sync_global_devices(name: str) -> None:
    """Wait for the other processes: there are none."""
    del name


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of process 0: this one's."""
    del is_source
    return tree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, stacked along a new axis (or, `tiled`, joined along the
    first)."""
    return tree.tree_map(
        lambda x: np.asarray(x) if tiled else np.expand_dims(np.asarray(x), 0), in_tree
    )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes are to save their state at this step, since one of them is to be
    stopped: never, as nobody watches for that here."""
    del step_id
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The arrays of all processes as one: this process's own, laid out over `global_mesh` as
    `pspecs` (a PartitionSpec or a pytree of them) say.

    Raises ValueError for a layout that does not fit an array's shape.
    """
    specs = tree.broadcast_prefix(pspecs, local_inputs, is_leaf=_is_spec)
    leaves, treedef = tree.tree_flatten(local_inputs)
    placed = [
        device_put(x, NamedSharding(global_mesh, PartitionSpec() if spec is None else spec))
        for x, spec in zip(leaves, specs, strict=True)
    ]
    return tree.tree_unflatten(treedef, placed)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of arrays laid out over `global_mesh`: the whole of them."""
    return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes hold equal values: the one does."""
    del in_tree, fail_message
