"""Methods of Arrays that few programs call: diagonal, byteswap, `in`, to_device, and the standard's
`__array_namespace__`.

Installed by `numpy.operators`. Each works on traced arrays too, unless it says otherwise.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NoReturn

import numpy as np

from numjet.api.placement.devices import device_put
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.trace import Tracer
from numjet.numpy import lax_names as lax, logic, reductions
from numjet.numpy.index_tricks import diagonal as _diagonal
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.shape import copy, rev

# Versions of the Python array API standard whose names numjet.numpy has.
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis of the result: see `jnp.diagonal`.

    offset, axis1, axis2: as there.

    >>> jnp.array([[1, 2], [3, 4]]).diagonal()
    Array([1, 4], dtype=int32)
    """
    return _diagonal(self, offset, axis1, axis2)


def contains(self: Any, element: Any) -> Any:
    """Whether `element` equals one of a vector's. Raises ValueError for other than one axis."""
    if self.aval.ndim != 1:
        raise ValueError(
            "Array.__contains__: search array must be one-dimensional, got arr.shape="
            f"{self.aval.shape}. Use numjet.numpy.isin."
        )
    return reductions.any(logic.equal(self, element))


def byteswap(self: Any, inplace: bool = False) -> Any:
    """The array with the bytes of each number (of its real and imaginary part) in reverse order.

    inplace: True raises NotImplementedError.

    >>> jnp.array([1, 256], dtype=jnp.uint16).byteswap()
    Array([256,   1], dtype=uint16)
    """
    if inplace:
        raise NotImplementedError("Array.byteswap: arrays do not change in place.")
    dtype = self.aval.dtype
    if dtypes.is_complex(dtype):
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    if dtype.itemsize == 1:
        return self
    parts = bitcast_convert_type(self, np.dtype(np.uint8))
    return bitcast_convert_type(rev(parts, (parts.aval.ndim - 1,)), dtype)


def to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on another device: see `numjet.device_put`.

    device: one of numjet.devices(), or a sharding. stream: raises NotImplementedError, the CPU has
    none.

    >>> jnp.arange(2).to_device(nj.devices()[0])
    Array([0, 1], dtype=int32)
    """
    if stream is not None:
        raise NotImplementedError("Array.to_device: stream is not supported. Leave it away.")
    return device_put(self, device)


def flat(self: Any) -> NoReturn:
    """Not there: raises NotImplementedError, as iterators over elements would write to them."""
    raise NotImplementedError(
        "Arrays do not implement the arr.flat property: consider arr.flatten() instead."
    )


# The module that arrays name as theirs: `jax.numpy` where programs import that from us.
NAMESPACE = ["numjet.numpy"]


def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """numjet.numpy, whose names are those of the Python array API standard. Raises ValueError for a
    version of it that is not known."""
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(
            f"api_version={api_version!r} is not available; available versions are: "
            f"{list(API_VERSIONS)}."
        )
    return sys.modules[NAMESPACE[0]]  # loaded, as it installed this method


def _bytes(self: Any) -> bytes:
    """The bytes of the elements, row by row; of an integer without dimensions so many zeros.

    >>> bytes(jnp.array([1, 2], "uint8"))
    b'\\x01\\x02'
    """
    value = np.asarray(self)
    return bytes(value) if not value.ndim and value.dtype.kind in "iu" else value.tobytes()


def _clone(self: Any) -> Any:
    """A copy of the array on its devices.

    >>> jnp.arange(3).clone()
    Array([0, 1, 2], dtype=int32)
    """
    return copy(self)


def _size_in_bytes(self: Any) -> int:
    """Bytes of the array's memory, on all devices together.

    >>> jnp.zeros(3).on_device_size_in_bytes()
    12
    """
    sharding = self.sharding
    part = math.prod(sharding.shard_shape(self.shape)) * self.dtype.itemsize
    return int(part * len(sharding.device_set))


def _platform(self: Any) -> str:
    """The kind of device that the array is on.

    >>> jnp.zeros(3).platform()
    'cpu'
    """
    return "cpu"


def _whole(name: str, doc: str, of_concrete: Any) -> property:
    def get(self: Any) -> bool:
        if isinstance(self, Tracer):
            value = self._need_concrete(
                ConcretizationTypeError,
                f"The {name} property was called",
                "Ask the arrays that the function takes and returns.",
            )
            return bool(getattr(value, name))
        return of_concrete(self)

    return property(get, doc=doc)


# What reads elements as numbers, and is called seldom enough to ask for keys first; the common
# reductions are asked about where they refuse keys (`operators.reducer`).
_OF_NUMBERS = (
    "real imag mT repeat view conj conjugate dot ptp var std cumsum cumprod sort argsort nonzero "
    "searchsorted choose compress trace argpartition round clip diagonal byteswap to_device "
    "__array_namespace__"
).split()


def refusing_keys(table: dict[str, Any]) -> dict[str, Any]:
    """The methods and properties of `table` that are there for numbers alone, raising
    NotImplementedError for PRNG keys."""
    return {name: _of_numbers(name, table[name]) for name in _OF_NUMBERS}


def _of_numbers(name: str, method: Any) -> Any:
    function: Any = method.fget if isinstance(method, property) else method

    @functools.wraps(function)
    def asked(self: Any, *args: Any, **options: Any) -> Any:
        if dtypes.is_key(self.aval.dtype):
            raise NotImplementedError(
                f"{name} is not there for arrays of PRNG keys. Use random.key_data(key)."
            )
        return function(self, *args, **options)

    return property(asked, doc=method.__doc__) if isinstance(method, property) else asked


METHODS: dict[str, Any] = {
    "diagonal": diagonal,
    "__contains__": contains,
    "byteswap": byteswap,
    "to_device": to_device,
    "flat": property(flat, doc=flat.__doc__),
    "clone": _clone,
    "on_device_size_in_bytes": _size_in_bytes,
    "platform": _platform,
    "__array_namespace__": array_namespace,
    "__bytes__": _bytes,
    "is_fully_addressable": _whole(
        "is_fully_addressable", "Whether this process holds all parts; not while tracing.",
        lambda x: True),
    "is_fully_replicated": _whole(
        "is_fully_replicated", "Whether each device holds the whole array; not while tracing.",
        lambda x: x.sharding.is_fully_replicated),
    "committed": _whole(
        "committed", "Whether a device or sharding was asked for; not while tracing.",
        lambda x: x._sharding is not None),
}

