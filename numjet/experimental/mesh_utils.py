"""numjet.experimental.mesh_utils: arrays of devices for meshes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.mesh import make_mesh


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **_: Any
) -> np.ndarray:
    """The first devices as an array of a shape, for `sharding.Mesh`.

    mesh_shape: an integer for each axis. devices: those to take instead of all. Raises ValueError
    when there are fewer.

    >>> from numjet.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1)).shape
    (1, 1)
    """
    names = [f"axis{i}" for i in range(len(tuple(mesh_shape)))]
    return make_mesh(mesh_shape, names, devices=devices).devices


__all__ = ["create_device_mesh"]


def __dir__() -> list[str]:
    return [*__all__]
