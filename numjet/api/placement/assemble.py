"""Arrays made of what each device holds: `make_array_from_...`, `device_put_sharded`.

For users who load data a device, or a process, at a time. The devices of a process share one block
of memory, into which the parts are copied.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.placement.devices import Sharding, device_put, place
from numjet.api.placement.layout import AutoLayout, Format, Layout, check_layout, labelled
from numjet.api.placement.mesh import Mesh
from numjet.api.placement.reshard import of_context
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import tree
from numjet.base.errors import InvalidInputException, UnexpectedTracerError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster
from numjet.core.remote import Device
from numjet.core.sharded import ShardedArray
from numjet.core.trace import Tracer
from numjet.ops.reduce import sum_over
from numjet.ops.shape import canonical_shape


def _checked(name: str, sharding: Any, error: type[Exception] = ValueError) -> Sharding:
    if isinstance(sharding, PartitionSpec):
        sharding = of_context(name, sharding, error)
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{name}: sharding should be an instance of `jax.sharding` "
                        f"(numjet.sharding.Sharding), got {sharding!r} of type "
                        f"{type(sharding).__name__}.")
    return sharding


def _filled(shape: tuple, dtype: Any, parts: list[tuple[tuple, Any]], sharding: Sharding) -> Array:
    """The array of the parts of this process's devices."""
    whole = getattr(sharding, "is_fully_addressable", True)
    window = tuple([slice(0, n) for n in shape]) if whole else sharding.block_index(shape)  # type: ignore[attr-defined]
    block = np.empty([at.stop - at.start for at in window], dtypes.physical(dtype))
    for index, part in parts:
        index = tuple([
            slice(*[b - at.start for b in i.indices(n)[:2]]) if isinstance(i, slice) else i
            for i, at, n in zip(index, window, shape, strict=True)
        ])
        block[index] = part
    aval = ShapedArray(shape, dtype)
    if whole:
        return place(ArrayImpl(block, aval), sharding)
    return ShardedArray(block, aval, sharding)


def _is_keys(x: Any) -> bool:
    return isinstance(getattr(x, "dtype", None), dtypes.KeyDType)


def _memory(x: Any) -> np.ndarray:
    """The values of an array, of PRNG keys as they are stored."""
    return as_array(x)._value if _is_keys(x) else np.asarray(x)


def _mine(sharding: Sharding, shape: tuple) -> list[tuple[Any, tuple]]:
    """The devices of this process and what part of the array each holds."""
    return [(d, at) for d, at in sharding.indices(shape) if d.process_index == Cluster.index]


def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Callable,
                             dtype: Any = None) -> Array:
    """An array whose parts `data_callback(index)` returns, one call a device.

    shape: of the whole. sharding: its layout, or a `Format`. data_callback(index): the part for a
    tuple of slices, an array; a layout that cuts nothing asks once. dtype: of the parts, which is
    checked where it is given. Devices of other processes are not asked for. Raises TypeError for
    what is no sharding, ValueError for parts of another shape or dtype, or of dtypes that differ.

    >>> import numpy as np
    >>> import numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.make_array_from_callback((3,), layout, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    shape = canonical_shape(shape)
    if isinstance(sharding, Format):
        if isinstance(sharding.layout, AutoLayout):
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout when calling "
                f"`jax.make_array_from_callback`. Got {sharding}: name the order of the axes."
            )
        if isinstance(sharding.layout, Layout):
            check_layout("make_array_from_callback results", sharding.layout, shape)
        given = make_array_from_callback(shape, sharding.sharding, data_callback, dtype)
        return labelled(given, sharding.layout)
    sharding = _checked("make_array_from_callback", sharding, TypeError)
    parts: list[tuple[tuple, Any]] = []
    first: Any = None
    places = _mine(sharding, shape)
    for _, index in places[:1] if sharding.is_fully_replicated else places:  # type: ignore[attr-defined]
        given = data_callback(index)
        if isinstance(given, Tracer):
            raise UnexpectedTracerError(
                "jax.make_array_from_callback cannot be called within a traced context: "
                f"data_callback returned the traced value {given}."
            )
        if not hasattr(given, "shape") and not np.isscalar(given):
            raise InvalidInputException(
                f"make_array_from_callback: data_callback({index}) returned {given!r} of type "
                f"{type(given).__name__}, which is no array. Return np.asarray of it."
            )
        part = _memory(given)
        kind = given.dtype if _is_keys(given) else part.dtype
        want = np.empty(shape, bool)[index].shape
        if part.shape != want:
            raise ValueError(
                f"make_array_from_callback: Expected shard shape {want} doesn't match the single "
                f"device array shape {part.shape} that data_callback({index}) returned. Shape of "
                f"Array is {shape} with sharding {sharding}."
            )
        if dtype is not None and dtypes.canonical(kind) != dtypes.canonical(dtype):
            raise ValueError(f"make_array_from_callback: if dtype is given it must be that of the "
                             f"parts. Got dtype={dtypes.canonical(dtype)}, and a part of dtype "
                             f"{kind}.")
        first = kind if first is None else first
        if kind != first:
            raise ValueError("make_array_from_callback: the parts must have matching dtypes, got "
                             f"{first}, and {kind} for {index}.")
        parts.append((index, part))
    found = dtypes.canonical(first if dtype is None else dtype)
    return _filled(shape, found, parts, sharding)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any, arrays: Sequence[Any],
                                         *, dtype: Any = None) -> Array:
    """An array made of one array for each of this process's devices.

    shape: of the whole. sharding: its layout. arrays: in the order of the sharding's devices, each
    of the shape that the sharding says; where that is unreduced they are parts of a sum. dtype:
    checked where it is given, needed where there are no arrays. Result: the arrays' dtype. Raises
    ValueError for another number of arrays or another shape, TypeError for other dtypes.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.make_array_from_single_device_arrays((2,), layout, [jnp.arange(2)])
    Array([0, 1], dtype=int32)
    """
    name = "make_array_from_single_device_arrays"
    sharding = _checked(name, sharding)
    shape = canonical_shape(shape)
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{name}: arrays must be a list or tuple of arrays, got "
                        f"{type(arrays).__name__}.")
    traced = {type(x) for x in arrays if isinstance(x, Tracer)}
    if traced:
        raise ValueError(
            f"jax.{name} requires a list of concrete arrays as input, but got types {traced}"
        )
    places = _mine(sharding, shape)
    if len(arrays) != len(places):
        raise ValueError(
            f"{name}: Expected {len(places)} per-device arrays (this is how many devices are "
            f"addressable by the sharding), but got {len(arrays)}."
        )
    want = tuple(sharding.shard_shape(shape))
    values = []
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(f"{name}: Unsupported type for elements in `arrays`: {type(array)}. "
                            "Put each on its device with numjet.device_put.")
        value = as_array(array)
        if (parts_of := len(value.sharding.device_set)) > 1:
            raise ValueError(
                f"{name}: When making an array from single-device arrays the input arrays must "
                f"have one shard each. An argument array had {parts_of} shard(s)."
            )
        if value.shape != want:
            raise ValueError(f"{name}: Expected shard shape {want} doesn't match the single device "
                             f"array shape {value.shape}. Shape of Array is {shape} with sharding "
                             f"{sharding}.")
        values.append(value)
        wanted = values[0].dtype if dtype is None else dtypes.canonical(dtype)
        if value.dtype != wanted:
            raise ValueError(
                f"{name}: Input buffers to `Array` must have matching dtypes. Got {value.dtype}, "
                f"expected {wanted}."
            )
    # The parts of a device are found by where they live, as the order of arrays need not be that of
    # the sharding.
    by_device = {next(iter(v.sharding.device_set)): v for v in values}
    if len(by_device) < len(values):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from "
            "distinct devices, but got device IDs "
            f"{[next(iter(v.sharding.device_set)).id for v in values]}."
        )
    mine = {device for device, _ in places}
    if set(by_device) != mine:
        missing = {d.id for d in mine - set(by_device)}
        foreign = {d.id for d in set(by_device) - mine}
        raise ValueError(
            f"{name}: Addressable devices and per-device arrays devices do not match. Sharding "
            f"contains devices {missing} that are not present in per-device arrays. Per-device "
            f"arrays contain devices {foreign} that are not present in the sharding."
        )
    values = [by_device[device] for device, _ in places]
    pending = [a for a in sharding.mesh.axis_names if a in sharding.spec.unreduced] if isinstance(
        sharding, NamedSharding) else []
    if pending:
        return _added_up(shape, sharding, pending, values)
    parts = [(index, _memory(v)) for (_, index), v in zip(places, values, strict=True)]
    return _filled(shape, values[0].dtype, parts[::-1], sharding)  # the first of replicas shows


def _added_up(shape: tuple, sharding: Any, pending: list, values: Sequence[Any]) -> Any:
    """The array that is the sum of the parts that the devices along some axes of the mesh have."""
    rows = (math.prod([sharding.mesh.shape[a] for a in pending]), *shape)
    apart = sharding.of_entries((tuple(pending), *sharding.spec))
    places = zip(_mine(apart, rows), values, strict=True)
    parts = [(index, np.asarray(v)[None]) for (_, index), v in places]
    return sum_over(_filled(rows, values[0].dtype, parts, apart), (0,), out_sharding=sharding)


def make_array_from_process_local_data(sharding: Any, local_data: Any,
                                       global_shape: Any = None) -> Any:
    """An array of what each process has (or a pytree of such), laid out as `sharding` says.

    local_data: the part of the whole that is this process's devices', or of one process alone all
    of it. global_shape: the shape of the whole, or of several processes None entries where it
    follows: the lengths of their parts add up along each axis that is cut over processes. Result:
    the whole's shape, the parts' dtype. Raises ValueError where they do not fit.

    >>> import numpy as np
    >>> import numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.make_array_from_process_local_data(layout, np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    name = "make_array_from_process_local_data"
    shapes = [tuple(np.shape(x)) for x in tree.tree_leaves(local_data)]
    is_shape = lambda s: isinstance(s, tuple) and all(isinstance(n, int | None) for n in s)  # noqa: E731
    wanted = [None] * len(shapes) if global_shape is None else tree.broadcast_prefix(
        global_shape, local_data, is_leaf=is_shape)
    several = Cluster.count > 1
    for shape, want in zip(shapes, wanted, strict=True):
        if several or want is None:
            continue
        if tuple(want) != shape:
            raise ValueError(f"{name}: on a single process, global_shape should be None or equal "
                             f"to local_data.shape. Got global_shape={want} and "
                             f"local_data.shape={shape}.")
    specs = [sharding] * len(shapes) if isinstance(sharding, Sharding) else tree.broadcast_prefix(
        sharding, local_data)
    leaves, treedef = tree.tree_flatten(local_data)
    made: list[Any] = []
    for leaf, spec, want in zip(leaves, specs, wanted, strict=True):
        checked = _checked(name, spec)
        array = ArrayImpl(_memory(leaf), leaf.aval) if _is_keys(leaf) else as_array(_memory(leaf))
        if not getattr(checked, "is_fully_addressable", True):
            made.append(_of_processes(name, array, checked, want))
            continue
        checked._check_shape(array.shape)
        made.append(place(array, checked))
    return tree.tree_unflatten(treedef, made)


def _of_processes(name: str, array: Any, sharding: Any, want: Any) -> ShardedArray:
    """An array of the blocks of all processes, of which `array` is this one's."""
    shape = []
    for i, (n, axes) in enumerate(zip(array.shape, sharding.layout(array.ndim), strict=True)):
        parts = math.prod([sharding.mesh.processes.sizes[a] for a in axes])
        whole = None if want is None else want[i]
        shape.append(n * parts if whole is None else whole)
    aval = ShapedArray(tuple(shape), array.dtype)
    sharding._check_shape(aval.shape)
    window = sharding.block_index(aval.shape)
    block = array._value
    if array.shape == aval.shape:  # every process has all of it
        block = np.asarray(block[window], order="C")
    found = tuple([at.stop - at.start for at in window])
    if block.shape != found:
        raise ValueError(
            f"{name}: this process's part of an array of shape {aval.shape} laid out as {sharding} "
            f"has shape {found}, got local data of shape {array.shape}."
        )
    return ShardedArray(block, aval, sharding)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """The pytrees `shards` stacked along a new leading axis, one on each device: input of `pmap`.

    shards: a sequence of pytrees of one structure and equal shapes. devices: as many Devices.
    Result: a pytree as of one shard, shapes (devices, ...), the dtypes that they promote to. Raises
    ValueError for another number of shards and for shapes that differ.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.device_put_sharded([jnp.zeros(2)], nj.devices()[:1])
    Array([[0., 0.]], dtype=float32)
    """
    if len(shards) != len(devices):
        raise ValueError(f"device_put_sharded: {len(shards)} shards for {len(devices)} devices.")
    # What `pmap` gives: each device's shard keeps the leading axis, of size 1.
    axis = "_internal_pmap_axis_name"
    sharding = NamedSharding(Mesh(np.array(devices), (axis,)), PartitionSpec(axis))
    return tree.tree_map(
        lambda *parts: device_put(np.stack([np.asarray(p) for p in parts]), sharding), *shards
    )


def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """A copy of the pytree `x` for each device, along a new leading axis: input of `pmap`.

    x: a pytree of arrays or numbers. Result: the same pytree, shapes (devices, ...), their dtypes.
    devices: a sequence of Devices, at least one; slice i is on device i.

    >>> import numjet as nj
    >>> nj.device_put_replicated(2.0, nj.devices()[:1])
    Array([2.], dtype=float32)
    """
    return device_put_sharded([x] * len(devices), devices)
