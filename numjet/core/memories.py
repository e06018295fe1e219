"""The kinds of memory that a device can address, as `Device.addressable_memories()` lists them.

Programs that move arrays between memories ask for them. A device of the CPU has one memory, which
all three names mean; the names are JAX's. A device of XLA has those that its plugin tells. For
`core.remote`, whose devices they belong to, and for shardings. What would break it: a kind that
`device_put` or a sharding takes and the device lacks.
"""

from __future__ import annotations

import enum
from typing import Any

from numjet.base.errors import JaxRuntimeError

# Kinds of memory: the CPU's devices have one, which these names mean.
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class MemorySpace(enum.Enum):
    """Which of a device's memories an array is put in: its own, or the host's."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    @property
    def kind(self) -> str:
        """The name of the memory."""
        return "pinned_host" if self is MemorySpace.Host else "device"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def checked_memory(kind: str | None, device: Any) -> str:
    """The kind of memory named, 'device' by default. device: whose it is, None where nobody knows.
    Raises ValueError for one that the device lacks."""
    if kind is None:
        return "device"
    kinds = MEMORY_KINDS if device is None else device.memory_kinds
    if kind not in kinds:
        raise ValueError(_unknown(kind, "cpu" if device is None else device.platform, kinds))
    return kind


def _unknown(kind: str, name: str, kinds: tuple[str, ...]) -> str:
    return (
        f"Could not find memory addressable by device {name}. Device {name} can address the "
        f"following memory kinds: {', '.join(kinds)}. Got memory kind: {kind}"
    )


class Memory:
    """A memory: its `kind`, and the device that addresses it. Equal memories are equal by kind and
    device."""

    __slots__ = ("kind", "_device")

    def __init__(self, device: Any, kind: str) -> None:
        self._device, self.kind = device, kind

    @property
    def platform(self) -> str:
        return self._device.platform

    @property
    def process_index(self) -> int:
        return self._device.process_index

    def addressable_by_devices(self) -> list[Any]:
        """The devices that read and write it."""
        return [self._device]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Memory) and (self.kind, self._device) == (
            other.kind,
            other._device,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self._device.id))

    def _number(self) -> int:
        """Its number among the memories of all devices."""
        kinds = self._device.memory_kinds
        return len(kinds) * self._device.id + kinds.index(self.kind)

    def __str__(self) -> str:
        if self.platform != "cpu":
            return repr(self)
        name = {"device": "CpuDeviceMemory", "pinned_host": "PinnedHostMemory"}.get(
            self.kind, "UnpinnedHostMemorySpace"
        )
        return f"{name}(id={self._number()}, process_index={self.process_index}, client=cpu)"

    def __repr__(self) -> str:
        if self.platform != "cpu":
            return f"Memory(kind={self.kind!r}, device={self._device})"
        name = "CPU_DEVICE" if self.kind == "device" else self.kind.upper()
        return f"{name}_{self._number()}"


def memory(device: Any, kind: str) -> Memory:
    """The memory of `device` of that kind. Raises JaxRuntimeError where it has none."""
    if kind not in device.memory_kinds:
        raise JaxRuntimeError(_unknown(kind, device.platform, device.memory_kinds))
    return Memory(device, kind)
