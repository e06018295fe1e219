"""Arrays of other libraries by DLPack, wherever they lie: behind `numpy.from_dlpack` and `dlpack`.

Memory of the CPU is taken by NumPy, memory of a GPU by the backend whose devices it belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.placement.devices import CpuDevice, bound, device_put, devices
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.evaluate import another
from numjet.core.hooks import Remote
from numjet.core.remote import Device
from numjet.core.sharded import ShardedArray

_CPU = 1
# Kinds of devices in DLPack's numbers, and their platform here.
_PLATFORMS = {2: "cuda", 13: "cuda"}
_HERE = {"gpu": (2, 13), "xla_cpu": (_CPU,)}
# Whether NumPy tells the other library what is wanted.
_TELLS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def from_dlpack(external: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An Array of anything with `__dlpack__`; its memory is shared where that can be, unless
    `copy`. Raises BufferError where it would have to be copied and must not (copy=False)."""
    if not hasattr(external, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an array with __dlpack__, got {external!r}.")
    device = getattr(device, "_device", device)  # of a SingleDeviceSharding
    if device is not None and not isinstance(device, Device):
        raise ValueError(f"from_dlpack: expected a device of numjet.devices(), got {device!r}.")
    if isinstance(external, Array):
        return _moved(another(external) if copy else external, device, copy)
    kind, number = getattr(external, "__dlpack_device__", lambda: (_CPU, 0))()
    here = _device(int(kind), number, device)
    if isinstance(here, CpuDevice):
        return _moved(_on_host(external, copy), device, copy)
    try:
        found = Remote.taken(external, here, int(kind))
    except BufferError:
        if copy is False or kind != _CPU:
            raise
        return device_put(_on_host(external, None), here)  # type: ignore[no-any-return]
    if copy:
        found = found.copy()
    return _moved(found, device, copy)


def _device(kind: int, number: int, wanted: Any) -> Any:
    """The device on which memory lies: the one that is wanted, if it may be that."""
    if wanted is not None and kind in _HERE.get(wanted.platform, ()) and (
        kind == _CPU or wanted.local_hardware_id == number
    ):
        return wanted
    if kind == _CPU:
        return devices("cpu")[0]
    platform = _PLATFORMS.get(kind)
    if platform is None:
        raise BufferError(
            f"from_dlpack: arrays on devices of DLPack's kind {kind} cannot be taken. Copy it to "
            "the CPU first."
        )
    try:
        found: list[Any] = [d for d in devices(platform)
                            if getattr(d, "local_hardware_id", None) == number]
    except RuntimeError as error:
        raise BufferError(
            f"from_dlpack: the array lies on a device of {platform}. {error}"
        ) from error
    if not found:
        raise BufferError(f"from_dlpack: the array lies on device {number} of {platform}, which is "
                          "not among numjet.devices().")
    return found[0]


def _on_host(external: Any, copy: bool | None) -> Array:
    if _TELLS:
        return as_array(np.from_dlpack(external, copy=copy))
    found = np.from_dlpack(external)  # which NumPy takes without a copy, or not at all
    return as_array(found.copy() if copy else found)


def _moved(x: Any, device: Any, copy: bool | None) -> Array:
    if device is None and type(x) is ShardedArray and isinstance(x.device, CpuDevice):
        x = ArrayImpl(x._value, x.aval.bare())  # DLPack knows one CPU
    if device is None or x.devices() == {device}:
        return bound(x)  # type: ignore[no-any-return]
    if copy is False:
        raise BufferError(
            f"from_dlpack: the array lies on {x.devices()}, not on {device}: it would have to be "
            "copied."
        )
    return device_put(x, device)  # type: ignore[no-any-return]
