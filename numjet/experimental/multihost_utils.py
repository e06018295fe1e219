"""numjet.experimental.multihost_utils: what programs for several processes call outside jit.

For users. Values travel as Python objects over MPI; each function must be called by all processes.
"""

from __future__ import annotations

import contextlib
import functools
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numjet.api.placement.assemble import make_array_from_process_local_data
from numjet.api.placement.devices import device_put
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster
from numjet.core.sharded import ShardedArray
from numjet.extend.primitive import Primitive
from numjet.interpreters import ad, batching, mlir

P = PartitionSpec


def _everyone(value: Any) -> list[Any]:
    """The value of each process."""
    if Cluster.transport is None:
        return [value]
    return Cluster.transport.objects(value)


def _exchanged(x: Any) -> np.ndarray:
    """What processes exchange of a value: with several, of a dtype that arrays have."""
    value = np.asarray(x)
    if Cluster.count == 1 or value.dtype.kind not in "iufc":
        return value
    return value.astype(dtypes.canonical(value.dtype), copy=False)


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
    values = tree.tree_map(_exchanged, in_tree)
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
        if type(x) is ShardedArray and not x.is_fully_addressable:
            return _whole(x)
        value = _exchanged(x)
        parts = _everyone(value)
        return np.concatenate(parts) if tiled else np.stack(parts)

    return tree.tree_map(gather, in_tree)


def _whole(x: ShardedArray) -> np.ndarray:
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
    on all where some differ.

    >>> from numjet.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3})
    """
    mine = tree.tree_map(_exchanged, in_tree)
    first = broadcast_one_to_all(in_tree)
    same = [
        bool(np.array_equal(a, b))
        for a, b in zip(tree.tree_leaves(mine), tree.tree_leaves(first), strict=True)
    ]
    other = [k for k, equal in enumerate(_everyone(all(same))) if not equal]
    if other:
        raise AssertionError(
            f"{fail_message} Values of process {', '.join(map(str, other))} differ from those of "
            "process 0."
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


class ProcessFailureError(Exception):
    """Processes failed inside of `live_devices`; failed_devices: a set of their devices."""

    def __init__(self, failed_devices: set) -> None:
        super().__init__(f"Devices failed: {failed_devices}")
        self.failed_devices = failed_devices


@contextlib.contextmanager
def live_devices(devices: Any) -> Iterator[list]:
    """A block of code that all processes run, or all see fail: gives the devices that are there.

    devices: a list of Devices, of which one at least is this process's. All processes enter the
    block together and leave it together: where an exception ends it on one, it goes on there, and
    the others raise ProcessFailureError, which names the devices of those. Of a process that ends
    itself nobody is told, as MPI then ends all. Raises RuntimeError where
    `numjet.distributed.initialize` was not called, ValueError without a local device.

    >>> import numjet as nj
    >>> from numjet.experimental import multihost_utils
    >>> try:
    ...     with multihost_utils.live_devices(nj.devices()) as devices:
    ...         pass
    ... except RuntimeError as error:
    ...     print(error)
    live_devices: call numjet.distributed.initialize() first.
    """
    if Cluster.transport is None:
        raise RuntimeError("live_devices: call numjet.distributed.initialize() first.")
    given = list(devices)
    if not any(d.process_index == Cluster.index for d in given):
        raise ValueError(f"live_devices: no device of this process among {given}.")
    _everyone(None)
    ended_well = False
    try:
        yield given
        ended_well = True
    finally:
        well = _everyone(ended_well)
    failed = {d for d in given if not well[d.process_index]}
    if failed:
        raise ProcessFailureError(failed)


# ------------------------------------------------------------------ arrays of all and of one
def _specs(pspecs: Any, structure: Any) -> list[PartitionSpec]:
    """A PartitionSpec for each leaf of `structure`, from a prefix of it."""
    if pspecs is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument: PartitionSpec() is for arrays "
            "that are not cut."
        )
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    found = tree.flatten_axes("multihost_utils: pspecs", structure, pspecs, is_spec)
    return [s or PartitionSpec() for s in found]


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """`host_local_array_to_global_array` of one array.

    arr: this process's part. global_mesh: the Mesh. pspec: a PartitionSpec.

    >>> import numpy as np, numjet as nj
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> print(multihost_utils.host_local_array_to_global_array_impl(
    ...     np.arange(2), global_mesh=mesh, pspec=nj.P("x")))
    [0 1]
    """
    return make_array_from_process_local_data(NamedSharding(global_mesh, pspec), np.asarray(arr))


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """`global_array_to_host_local_array` of one array.

    arr: an array over all processes; one whose parts are all here is given as it is. global_mesh:
    the Mesh. pspec: the PartitionSpec as which it is laid out first.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> print(multihost_utils.global_array_to_host_local_array_impl(
    ...     jnp.arange(2), global_mesh=mesh, pspec=nj.P("x")))
    [0 1]
    """
    if isinstance(arr, ArrayImpl) and arr.is_fully_addressable:
        return arr
    laid = device_put(arr, NamedSharding(global_mesh, pspec))
    return laid if laid.is_fully_addressable else as_array(laid._block)


def _parts(ndim: int, global_mesh: Any, pspec: Any) -> list[int]:
    """How many processes' parts are one behind the other along each axis."""
    sharding = NamedSharding(global_mesh, pspec)
    if getattr(sharding, "is_fully_addressable", True):
        return [1] * ndim
    return [math.prod([sharding.mesh.processes.sizes[a] for a in axes])
            for axes in sharding.layout(ndim)]  # fmt: skip


def ltg_abstract_eval(arr: Any, *, global_mesh: Any, pspec: Any) -> ShapedArray:
    """The shape and dtype of the whole of what has those of `arr` on each process.

    arr: a ShapedArray. global_mesh: the Mesh. pspec: a PartitionSpec.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> aval = nj.typeof(jnp.ones(2))
    >>> multihost_utils.ltg_abstract_eval(aval, global_mesh=mesh, pspec=nj.P("x"))
    ShapedArray(float32[2])
    """
    parts = _parts(len(arr.shape), global_mesh, pspec)
    return ShapedArray(tuple([n * k for n, k in zip(arr.shape, parts, strict=True)]), arr.dtype)


def gtl_abstract_eval(arr: Any, *, global_mesh: Any, pspec: Any) -> ShapedArray:
    """The shape and dtype of each process's part of an array.

    arr: a ShapedArray, the whole's. global_mesh: the Mesh. pspec: a PartitionSpec.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> aval = nj.typeof(jnp.ones(2))
    >>> multihost_utils.gtl_abstract_eval(aval, global_mesh=mesh, pspec=nj.P("x"))
    ShapedArray(float32[2])
    """
    parts = _parts(len(arr.shape), global_mesh, pspec)
    return ShapedArray(tuple([n // k for n, k in zip(arr.shape, parts, strict=True)]), arr.dtype)


host_local_array_to_global_array_p = Primitive("host_local_array_to_global_array")
global_array_to_host_local_array_p = Primitive("global_array_to_host_local_array")


def ltg_batcher(insert_axis: bool, axis_data: Any, vals_in: Sequence[Any], dims_in: Sequence[Any],
                global_mesh: Any, pspec: Any) -> tuple[Any, int]:  # fmt: skip
    """The rule of `host_local_array_to_global_array_p` for vmap: one more axis, which is cut over
    the axes of the mesh that `vmap` names for it, if any.

    insert_axis: whether it is for a map that names axes. axis_data: the map's axis. vals_in,
    dims_in: the operand, and where its axis is. global_mesh, pspec: the params.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import multihost_utils
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> f = lambda x: multihost_utils.host_local_array_to_global_array(x, mesh, nj.P("x"))
    >>> nj.vmap(f)(jnp.ones((2, 3))).shape
    (2, 3)
    """
    return _batched(host_local_array_to_global_array_p, axis_data, vals_in, dims_in, global_mesh,
                    pspec)  # fmt: skip


def _batched(primitive: Primitive, axis_data: Any, vals_in: Sequence[Any], dims_in: Sequence[Any],
             global_mesh: Any, pspec: Any) -> tuple[Any, int]:  # fmt: skip
    (x,), (dim,) = vals_in, dims_in
    entries = [*pspec, *[None] * (x.ndim - 1 - len(pspec))]
    entries.insert(dim, axis_data.spmd_name)
    return primitive.bind(x, global_mesh=global_mesh, pspec=PartitionSpec(*entries)), dim


def _in_programs(x: Any, *, global_mesh: Any, pspec: Any) -> Any:
    if not getattr(NamedSharding(global_mesh, pspec), "is_fully_addressable", True):
        raise NotImplementedError(
            "multihost_utils: arrays of several processes are put together outside of jit."
        )
    return x


def _define(primitive: Primitive, impl: Any, shapes: Any, adjoint: Primitive) -> None:
    primitive.def_impl(impl)
    primitive.def_abstract_eval(shapes)
    ad.deflinear2(primitive, lambda ct, x, **params: [adjoint.bind(ct, **params)])
    mlir.register_lowering(primitive, mlir.lower_fun(_in_programs, multiple_results=False))


_define(host_local_array_to_global_array_p, host_local_array_to_global_array_impl,
        ltg_abstract_eval, global_array_to_host_local_array_p)  # fmt: skip
_define(global_array_to_host_local_array_p, global_array_to_host_local_array_impl,
        gtl_abstract_eval, host_local_array_to_global_array_p)  # fmt: skip
batching.fancy_primitive_batchers[host_local_array_to_global_array_p] = functools.partial(
    ltg_batcher, False
)
batching.fancy_primitive_batchers[global_array_to_host_local_array_p] = functools.partial(
    _batched, global_array_to_host_local_array_p
)


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
    made = [
        host_local_array_to_global_array_p.bind(x, global_mesh=global_mesh, pspec=spec)
        for x, spec in zip(leaves, _specs(pspecs, structure), strict=True)
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
    made = [
        global_array_to_host_local_array_p.bind(x, global_mesh=global_mesh, pspec=spec)
        for x, spec in zip(leaves, _specs(pspecs, structure), strict=True)
    ]
    return tree.tree_unflatten(structure, made)


__all__ = [
    "P", "ProcessFailureError", "annotations", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "global_array_to_host_local_array_impl",
    "global_array_to_host_local_array_p", "gtl_abstract_eval", "host_local_array_to_global_array",
    "host_local_array_to_global_array_impl", "host_local_array_to_global_array_p",
    "live_devices", "ltg_abstract_eval", "ltg_batcher", "process_allgather",
    "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
