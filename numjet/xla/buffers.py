"""Arrays in a device's memory: transfers from and to the host, readiness, deletion.

For `xla.client`, which makes them, and `xla.backend`.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64
from typing import Any

import ml_dtypes
import numpy as np

from numjet.xla import pjrt

# PJRT's numbers of element types.
NUMBERS = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "bfloat16": 13, "complex64": 14,
    "complex128": 15, "float8_e5m2": 16, "float8_e4m3fn": 17, "float8_e4m3b11fnuz": 18,
    "float8_e5m2fnuz": 19, "float8_e4m3fnuz": 20, "int4": 21, "uint4": 22, "int2": 24, "uint2": 25,
    "float8_e4m3": 26, "float8_e3m4": 27, "float8_e8m0fnu": 28, "float4_e2m1fn": 29,
}  # fmt: skip
_DTYPES = {
    number: np.dtype(getattr(ml_dtypes, name, None) or name) for name, number in NUMBERS.items()
}
ONLY_DURING_CALL = 0  # the plugin reads host memory while it is called


class DeviceBuffer:
    """One array on one device. `result()` is its value on the host, which waits for it."""

    __slots__ = ("client", "handle", "__weakref__")
    on_device = True

    def __init__(self, client: Any, handle: int) -> None:
        self.client, self.handle = client, handle

    def _shape(self) -> tuple[int, ...]:
        found = self.client.plugin.call("Buffer_Dimensions", buffer=self.handle)
        return tuple((c_int64 * found.count).from_address(found.dims)) if found.count else ()

    def result(self) -> np.ndarray:
        """The value as a NumPy array, row by row."""
        call = self.client.plugin.call
        shape = self._shape()
        dtype = _DTYPES[call("Buffer_ElementType", buffer=self.handle).type]
        out = np.empty(shape, dtype)
        if not out.nbytes:
            return out
        order = (c_int64 * max(len(shape), 1))(*range(len(shape) - 1, -1, -1))
        layout = pjrt.HostLayout(
            struct_size=ctypes.sizeof(pjrt.HostLayout), minor_to_major=ctypes.addressof(order),
            rank=len(shape), tiled_size=ctypes.sizeof(pjrt.HostLayout) - 3 * 8,
        )  # fmt: skip
        made = call("Buffer_ToHostBuffer", buffer=self.handle, layout=ctypes.addressof(layout),
                    data=out.ctypes.data, size=out.nbytes)
        self.client.plugin.wait(made.event)
        return out

    def wait(self) -> None:
        """Wait until it is computed; raises what went wrong."""
        made = self.client.plugin.call("Buffer_ReadyEvent", buffer=self.handle)
        self.client.plugin.wait(made.event)

    def done(self) -> bool:
        """Whether it is computed."""
        call = self.client.plugin.call
        event = call("Buffer_ReadyEvent", buffer=self.handle).event
        try:
            return call("Event_IsReady", event=event).ready
        finally:
            call("Event_Destroy", event=event)

    def address(self) -> int:
        """Where its elements lie, on the device."""
        return self.client.plugin.call("Buffer_UnsafePointer", buffer=self.handle).address or 0

    def delete(self) -> None:
        """Give its memory back now."""
        self.client.plugin.call("Buffer_Delete", buffer=self.handle)

    def copy_to(self, device: Any) -> DeviceBuffer:
        """A copy on another device of the same client."""
        made = self.client.plugin.call("Buffer_CopyToDevice", buffer=self.handle,
                                       device=device.handle)
        return DeviceBuffer(self.client, made.made)

    def __del__(self) -> None:
        handle, self.handle = self.handle, 0
        if handle and self.client.here():
            self.client.destroy_buffer(handle)
