"""numjet.dlpack: arrays of other libraries, without a copy where their memory allows it."""

from __future__ import annotations

from typing import Any

from numjet.api.placement import interchange
from numjet.core import dtypes
from numjet.core.array import Array


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An Array of anything with `__dlpack__`: a PyTorch tensor, a NumPy array, ...

    external_array: in the memory of the CPU, or of a GPU whose plugin is installed. device: where
    the result is to be, one of numjet.devices(). copy: True copies, False never does, None where it
    has to. Without a copy the memory is shared.
    Raises BufferError when it lives elsewhere, or has to be copied and must not.

    >>> import numpy as np
    >>> from numjet import dlpack
    >>> dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    return interchange.from_dlpack(external_array, device, copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype go through DLPack.

    dtype: anything that names one. Booleans, integers, floats, bfloat16 and complex numbers of
    whole bytes do.

    >>> from numjet import dlpack, numpy as jnp
    >>> dlpack.is_supported_dtype(jnp.bfloat16), dlpack.is_supported_dtype(jnp.int4)
    (True, False)
    """
    found = dtypes.canonical(dtype)
    return found.isbuiltin == 1 or found == dtypes.bfloat16


def to_dlpack(x: Any, **kwargs: Any) -> Any:
    """The DLPack capsule of an array, which another library's from_dlpack takes once.

    x: an Array. kwargs: those of `__dlpack__` (stream, max_version, ...). Raises BufferError for
    arrays that DLPack cannot give.

    >>> from numjet import dlpack, numpy as jnp
    >>> type(dlpack.to_dlpack(jnp.zeros(2))).__name__
    'PyCapsule'
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"to_dlpack: expected an array with __dlpack__, got {x!r}.")
    return x.__dlpack__(**kwargs)


__all__ = ["from_dlpack", "is_supported_dtype", "to_dlpack"]


def __dir__() -> list[str]:
    return [*__all__]
