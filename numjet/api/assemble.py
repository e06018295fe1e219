"""Arrays made of what each device holds: `make_array_from_...`.

For users who load data a device at a time. Virtual devices share one block of memory, so that the
parts are copied into it; the result is labelled with the sharding.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.devices import Sharding, place
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.ops.shape import canonical_shape


def _checked(name: str, sharding: Any) -> Sharding:
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{name}: sharding should be an instance of numjet.sharding.Sharding, got "
                        f"{sharding!r} of type {type(sharding).__name__}.")
    return sharding


def _filled(shape: tuple, dtype: Any, parts: list[tuple[tuple, Any]], sharding: Sharding) -> Array:
    block = np.empty(shape, dtypes.physical(dtype))
    for index, part in parts:
        block[index] = part
    return place(as_array(block), sharding)


def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Callable,
                             dtype: Any = None) -> Array:
    """An array of `shape` whose parts `data_callback(index)` returns, one call a device.

    index: a tuple of slices, what part of the array the device holds. dtype: that of the parts
    where it is not given. Raises TypeError for what is no sharding, ValueError for parts of another
    shape.

    >>> import numpy as np, numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.make_array_from_callback((3,), layout, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    sharding = _checked("make_array_from_callback", sharding)
    shape = canonical_shape(shape)
    parts = []
    for _, index in sharding.indices(shape):
        part = np.asarray(data_callback(index))
        want = np.empty(shape, bool)[index].shape
        if part.shape != want:
            raise ValueError(f"make_array_from_callback: data_callback({index}) returned shape "
                             f"{part.shape}, the part of shape {shape} has {want}.")
        parts.append((index, part))
    found = dtypes.canonical(parts[0][1].dtype if dtype is None else dtype)
    return _filled(shape, found, parts, sharding)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any, arrays: Sequence[Any],
                                         *, dtype: Any = None) -> Array:
    """An array of `shape` made of one array for each device, in the order of the sharding's.

    dtype: that of the arrays, which is checked where it is given. Raises ValueError for another
    number of arrays, or arrays of another shape than the sharding says.
    """
    name = "make_array_from_single_device_arrays"
    sharding = _checked(name, sharding)
    shape = canonical_shape(shape)
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{name}: arrays must be a list or tuple of arrays, got "
                        f"{type(arrays).__name__}.")
    places = sharding.indices(shape)
    if len(arrays) != len(places):
        raise ValueError(f"{name}: {len(arrays)} arrays for {len(places)} devices of {sharding}.")
    want = tuple(sharding.shard_shape(shape))
    values = []
    for array in arrays:
        value = as_array(array)
        if value.shape != want:
            raise ValueError(f"{name}: Expected shard shape {want} doesn't match the single device "
                             f"array shape {value.shape}. Shape of Array is {shape} with sharding "
                             f"{sharding}.")
        if dtype is not None and value.dtype != dtypes.canonical(dtype):
            raise ValueError(f"{name}: an array has dtype {value.dtype}, expected "
                             f"{dtypes.canonical(dtype)}.")
        values.append(value)
    # The parts of a device are found by where they live, as the order of arrays need not be that of
    # the sharding.
    by_device = {next(iter(v.sharding.device_set)): v for v in values}
    if set(by_device) == {device for device, _ in places}:
        values = [by_device[device] for device, _ in places]
    parts = [(index, np.asarray(v)) for (_, index), v in zip(places, values, strict=True)]
    return _filled(shape, values[0].dtype, parts, sharding)


def make_array_from_process_local_data(sharding: Any, local_data: Any,
                                       global_shape: Any = None) -> Any:
    """`local_data` (a pytree of arrays) laid out as `sharding` says: one process holds all of it.

    Raises ValueError for a global_shape other than that of the data.
    """
    name = "make_array_from_process_local_data"
    shapes = [tuple(np.shape(x)) for x in tree.tree_leaves(local_data)]
    is_shape = lambda s: isinstance(s, tuple) and all(isinstance(n, int | None) for n in s)  # noqa: E731
    wanted = [None] * len(shapes) if global_shape is None else tree.broadcast_prefix(
        global_shape, local_data, is_leaf=is_shape)
    for shape, want in zip(shapes, wanted, strict=True):
        if want is not None and any(n not in (None, m) for n, m in zip(want, shape)) or (
                want is not None and len(want) != len(shape)):
            raise ValueError(f"{name}: on a single process, global_shape should be None or equal "
                             f"to local_data.shape. Got global_shape={want} and "
                             f"local_data.shape={shape}.")
    specs = [sharding] * len(shapes) if isinstance(sharding, Sharding) else tree.broadcast_prefix(
        sharding, local_data)
    leaves, treedef = tree.tree_flatten(local_data)
    made = []
    for leaf, spec in zip(leaves, specs, strict=True):
        checked = _checked(name, spec)
        array = as_array(np.asarray(leaf))
        checked.shard_shape(array.shape)  # raises where it does not fit
        made.append(place(array, checked))
    return tree.tree_unflatten(treedef, made)
