"""Arrays on devices of other backends than the CPU, and the late bindings that run them.

A `RemoteArray` is no `ArrayImpl` by type, so that every fast way of concrete arrays leaves it
alone; what evaluates and compiles asks `target` where a computation belongs, once `Remote.active`
says that there is such a backend. `xla.backend` fills `Remote` in. What would break it: code that
reads `_value` of whatever it is given, which fetches the array to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray


class Device:
    """Somewhere that arrays lie and programs run. Identity is equality."""

    __slots__ = ("id",)
    id: int
    platform: str
    device_kind: str
    process_index: int
    client: Any


class RemoteArray(ArrayImpl):
    """An Array in the memory of a device. Reading its value copies it to the host, once."""

    __slots__ = ("_buffer", "_host")
    _buffer: Any
    _host: Any

    def __init__(self, buffer: Any, aval: ShapedArray, sharding: Any) -> None:
        self._buffer, self._aval, self._sharding, self._host = buffer, aval, sharding, None

    @property
    def _value(self) -> np.ndarray:  # type: ignore[override]
        if self._buffer is None:
            raise RuntimeError(
                f"Array {self.aval.str_short()} has been deleted: its buffer was donated "
                "(donate_argnums) or .delete() was called. Use the function's result "
                "instead of the donated argument."
            )
        if self._host is None:
            self._host = self._buffer.result()
        return self._host

    def block_until_ready(self) -> RemoteArray:
        """Wait for the value; errors of the computation surface here."""
        if self._buffer is None:
            self._value  # noqa: B018 - raises
        self._buffer.wait()
        return self

    def is_ready(self) -> bool:
        """Whether the value is there."""
        return self._buffer is None or self._buffer.done()

    def copy_to_host_async(self) -> None:
        """Begin to copy the value to the host."""
        self._value  # noqa: B018 - kept for the first read

    def delete(self) -> None:
        """Give the device's memory back; later reads raise RuntimeError."""
        buffer, self._buffer, self._host = self._buffer, None, None
        if buffer is not None:
            buffer.delete()

    def is_deleted(self) -> bool:
        return self._buffer is None

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element, on the device."""
        return self._buffer.address()

    def __deepcopy__(self, memo: dict) -> RemoteArray:
        return self


class Remote:
    """What a backend of other devices installs.

    active: whether there are such devices. choose() gives the device of computations on arrays that
    are nowhere in particular, or None for the CPU. run(closed, args, device, name, donate) gives
    Arrays on the device; put(array, device) one; evaluate(primitive, args, params, device) runs one
    operation.
    """

    active = False
    choose: Callable[[], Any]
    run: Callable
    put: Callable
    evaluate: Callable
    single: Callable  # the sharding of one device; `api.devices` installs it


def device_of(x: Any) -> Any:
    """The device that an array was put on, or None."""
    if type(x) is RemoteArray:
        return next(iter(x._sharding.device_set))
    return None


def target(values: Iterable[Any], name: str = "") -> Any:
    """The device of another backend that a computation on these values belongs to, or None.

    Raises ValueError where they lie on several.
    """
    found = None
    for x in values:
        here = device_of(x)
        if here is not None and here is not found:
            if found is not None:
                raise ValueError(
                    f"Received incompatible devices for {name or 'a computation'}: arguments lie "
                    f"on {found} and {here}. Move them to one device with numjet.device_put."
                )
            found = here
    return Remote.choose() if found is None else found
