"""`__array_namespace_info__`: what the array API standard asks a namespace to tell of itself.

Loaded when a program asks; `numjet.numpy` has the function under that name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.placement.devices import Device, devices
from numjet.core import dtypes

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_ALL = _KINDS["bool"] + _KINDS["numeric"]


class ArrayNamespaceInfo:
    """Capabilities, devices and dtypes; see the standard's page on inspection.

    >>> import numjet.numpy as jnp
    >>> jnp.__array_namespace_info__().capabilities()["data-dependent shapes"]
    False
    """

    def capabilities(self) -> dict[str, Any]:
        """What depends on values has no shape in compiled programs, so that neither boolean
        indices nor data-dependent shapes count as there."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: arrays are put where `config.default_device` says."""
        return None

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of arrays made of Python numbers."""
        _check(device)
        integral = dtypes.canonical(dtypes.int64)
        return {
            "real floating": dtypes.canonical(dtypes.float64),
            "complex floating": dtypes.canonical(dtypes.complex128),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The standard's dtypes that are there, by name; those of `kind` where it is given. Raises
        ValueError for a kind that the standard does not know."""
        _check(device)
        kinds = (kind,) if isinstance(kind, str) else kind
        for name in kinds or ():
            if name not in _KINDS:
                raise ValueError(f"dtypes: kind must be among {sorted(_KINDS)}, got {name!r}.")
        names = _ALL if kinds is None else [n for k in kinds for n in _KINDS[k]]
        found = {name: np.dtype(name) for name in names}
        return {n: dtype for n, dtype in found.items() if dtypes.canonical(dtype) == dtype}

    def devices(self) -> list[Any]:
        """None, the default, and the devices by themselves."""
        return [None, *devices()]


def _check(device: Any) -> None:
    if device is not None and not isinstance(device, Device) and not hasattr(device, "device_set"):
        raise ValueError(f"__array_namespace_info__: {device!r} is no device here.")


def array_namespace_info() -> ArrayNamespaceInfo:
    """What this namespace has: dtypes, devices, capabilities."""
    return ArrayNamespaceInfo()
