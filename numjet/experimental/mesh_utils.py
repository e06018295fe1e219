"""numjet.experimental.mesh_utils: arrays of devices for meshes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.sharding import make_mesh


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **_: Any
) -> np.ndarray:
    """The first devices as an array of `mesh_shape`. Raises ValueError when there are fewer."""
    names = [f"axis{i}" for i in range(len(tuple(mesh_shape)))]
    return make_mesh(mesh_shape, names, devices=devices).devices
