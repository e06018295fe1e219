"""numjet.dlpack: arrays of other libraries, without a copy where their memory allows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.array import Array, as_array


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An Array of anything with `__dlpack__` (a PyTorch tensor, a CuPy or NumPy array, ...) in the
    CPU's memory. Raises BufferError when it lives elsewhere."""
    if device is not None and getattr(device, "platform", "cpu") != "cpu":
        raise ValueError(f"from_dlpack: unknown device {device!r}. Only CPU devices are here.")
    return as_array(np.from_dlpack(external_array, copy=copy))


def to_dlpack(x: Any, **kwargs: Any) -> Any:
    """The DLPack capsule of an array."""
    return x.__dlpack__(**kwargs)


__all__ = ["from_dlpack", "to_dlpack"]
