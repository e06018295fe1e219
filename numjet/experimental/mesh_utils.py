"""numjet.experimental.mesh_utils: arrays of devices for meshes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.placement.devices import devices as all_devices


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """All devices as an array of a shape, for `sharding.Mesh`.

    mesh_shape: an integer for each axis. devices: those to take instead of all.
    contiguous_submeshes, allow_split_physical_axes: of how a TPU's devices are wired; they change
    nothing here. Raises ValueError where there are more devices or fewer.

    >>> import numjet as nj
    >>> from numjet.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1), nj.devices()[:1]).shape
    (1, 1)
    """
    del contiguous_submeshes, allow_split_physical_axes
    given = _objects(all_devices() if devices is None else devices)
    if len(given) != math.prod(mesh_shape):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape "
            f"{tuple(mesh_shape)}"
        )
    return given.reshape(tuple(mesh_shape))


def _objects(devices: Sequence[Any]) -> np.ndarray:
    made = np.empty(len(devices), object)
    made[:] = list(devices)
    return made


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """All devices as an array whose axes have an outer part over granules (processes, or slices of
    a TPU), and an inner part over the devices of each.

    mesh_shape: the inner sizes. dcn_mesh_shape: the outer ones, of which there are as many (the
    shorter of both counts its first axes as 1). devices: those to take instead of all.
    process_is_granule: processes are the granules, without which devices need a `slice_index`.
    should_sort_granules_by_key: in the order of their indices, not in that of `devices`.
    allow_split_physical_axes: as of `create_device_mesh`. Raises ValueError where the granules are
    not as many as `dcn_mesh_shape` says, or the devices of one not as many as `mesh_shape` says.

    >>> import numjet as nj
    >>> from numjet.experimental import mesh_utils
    >>> mesh_utils.create_hybrid_device_mesh(
    ...     (1, 1), (1, 1), nj.devices()[:1], process_is_granule=True).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    name = "process_index" if process_is_granule else "slice_index"
    granules: dict[Any, list] = {}
    for device in given:
        if not hasattr(device, name):
            raise ValueError(
                f"Device {device} does not have attribute {name}. See `process_is_granule` option."
            )
        granules.setdefault(getattr(device, name), []).append(device)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    rank = max(len(mesh_shape), len(dcn_mesh_shape))
    inner, outer = [
        (*[1] * (rank - len(sizes)), *sizes) for sizes in (mesh_shape, dcn_mesh_shape)
    ]
    if math.prod(outer) != len(keys):
        raise ValueError(
            f"Number of slices {len(keys)} must equal the product of dcn_mesh_shape "
            f"{tuple(dcn_mesh_shape)}"
        )
    parts = [
        create_device_mesh(
            inner, granules[key], allow_split_physical_axes=allow_split_physical_axes
        )
        for key in keys
    ]
    whole = np.array(parts, object).reshape(*outer, *inner)
    order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    sizes = [a * b for a, b in zip(outer, inner, strict=True)]
    return whole.transpose(order).reshape(sizes)


__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def __dir__() -> list[str]:
    return [*__all__]
