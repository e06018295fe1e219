"""numjet.dlpack: arrays of other libraries, without a copy where their memory allows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import Array, as_array

# Whether NumPy tells the other library what is wanted.
_TELLS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An Array of anything with `__dlpack__` (a PyTorch tensor, a CuPy or NumPy array, ...) in the
    CPU's memory. Raises BufferError when it lives elsewhere, or has to be copied and `copy` is
    False."""
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an array with __dlpack__, got {external_array!r}.")
    if device is not None and getattr(device, "platform", "cpu") != "cpu":
        raise ValueError(f"from_dlpack: unknown device {device!r}. Only CPU devices are here.")
    if _TELLS:
        return as_array(np.from_dlpack(external_array, copy=copy))
    found = np.from_dlpack(external_array)  # which NumPy takes without a copy, or not at all
    return as_array(found.copy() if copy else found)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype go through DLPack: booleans, integers, floats, bfloat16 and
    complex numbers of whole bytes."""
    found = dtypes.canonical(dtype)
    return found.isbuiltin == 1 or found == dtypes.bfloat16


def to_dlpack(x: Any, **kwargs: Any) -> Any:
    """The DLPack capsule of an array."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"to_dlpack: expected an array with __dlpack__, got {x!r}.")
    return x.__dlpack__(**kwargs)


__all__ = ["from_dlpack", "is_supported_dtype", "to_dlpack"]
