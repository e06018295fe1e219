"""numjet.dlpack: arrays of other libraries, without a copy where their memory allows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import Array, as_array

# Whether NumPy tells the other library what is wanted.
_TELLS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An Array of anything with `__dlpack__`: a PyTorch tensor, a NumPy array, ...

    external_array: in the CPU's memory. device: where the result is to be; it must be the CPU.
    copy: True copies, False never does, None where it has to. Without a copy the memory is shared.
    Raises BufferError when it lives elsewhere, or has to be copied and must not.

    >>> import numpy as np
    >>> from numjet import dlpack
    >>> dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an array with __dlpack__, got {external_array!r}.")
    if device is not None and getattr(device, "platform", "cpu") != "cpu":
        raise ValueError(f"from_dlpack: unknown device {device!r}. Only CPU devices are here.")
    if _TELLS:
        return as_array(np.from_dlpack(external_array, copy=copy))
    found = np.from_dlpack(external_array)  # which NumPy takes without a copy, or not at all
    return as_array(found.copy() if copy else found)


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
