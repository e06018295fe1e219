"""Where arrays live: what all shardings have, whole arrays on one device, slices on several.

For `api.placement.devices` and `api.placement.sharding`, which has those over meshes. What would
break it: a sharding that names other devices than those that hold the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.cluster import Cluster
from numjet.core.memories import checked_memory
from numjet.core.remote import Device

# The layouts of arrays that were asked to lie otherwise than row by row, by their ids, each with a
# weak reference to its array (`api.placement.layout`).
ORDERS: dict[int, tuple] = {}


class Sharding:
    """Where an array lives. Its kinds are NamedSharding, SingleDeviceSharding and PmapSharding.

    They give `device_set`, `indices(shape)` - pairs of a device and what part of the array it holds
    -, `shard_shape(shape)` and `is_equivalent_to(other, ndim)`.

    >>> from numjet import sharding, numpy as jnp
    >>> isinstance(jnp.zeros(2).sharding, sharding.Sharding)
    True
    """

    __slots__ = ()
    binds = True  # computations of an array that lies so run there

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        raise NotImplementedError(type(self).__name__)

    def indices(self, shape: tuple) -> list[tuple[Device, tuple]]:
        """What part of an array each device holds, as pairs (device, tuple of slices).

        shape: of the array. Kinds of shardings define it.

        >>> from numjet import numpy as jnp
        >>> len(jnp.zeros(2).sharding.indices((2,)))
        1
        """
        raise NotImplementedError(type(self).__name__)

    def in_full(self, ndim: int) -> Sharding:
        """As a result of `ndim` dimensions that lies so says it."""
        return self

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        global_shape: of the array. Kinds of shardings define it. Raises ValueError for one that
        it does not divide.

        >>> from numjet import numpy as jnp
        >>> jnp.zeros(2).sharding.shard_shape((2,))
        (2,)
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices that are of this process."""
        return {d for d in self.device_set if d.process_index == Cluster.index}

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices in the order of the parts. Libraries (orbax-checkpoint) read it."""
        return tuple(sorted(self.device_set, key=lambda device: device.id))

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        return tuple([d for d in self._device_assignment if d.process_index == Cluster.index])

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device is of this process."""
        return any(d.process_index == Cluster.index for d in self.device_set)

    def _check_shape(self, shape: tuple) -> None:
        """Raise ValueError where an array of this shape cannot lie so."""
        self.check_compatible_aval(shape)
        self.shard_shape(shape)

    def _check_placed(self, shape: tuple) -> None:
        """`_check_shape` of an array whose type is going to say how it lies."""
        self._check_shape(shape)

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where an array of this shape cannot be laid out so."""
        self.shard_shape(tuple(aval_shape))

    @property
    def num_devices(self) -> int:
        """How many devices hold parts."""
        return len(self.device_set)

    def devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """What part of an array of `global_shape` each device holds."""
        return dict(self.indices(tuple(global_shape)))

    def addressable_devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """As `devices_indices_map`, for the devices of this process."""
        found = self.indices(tuple(global_shape))
        return {d: at for d, at in found if d.process_index == Cluster.index}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of an array of `ndim` dimensions into the same kind of
        memory of the same devices."""
        # A length that every mesh divides shows where the cuts are.
        sizes = (len(self.device_set) * len(other.device_set),) * ndim
        mine, theirs = self.devices_indices_map(sizes), other.devices_indices_map(sizes)
        if kind_of(self) != kind_of(other):
            return False
        return mine.keys() == theirs.keys() and all(
            [s.indices(sizes[0]) for s in mine[d]] == [s.indices(sizes[0]) for s in theirs[d]]
            for d in mine
        )


def kind_of(sharding: Any) -> str:
    """The kind of memory that a sharding names; that of arrays by default where it names none."""
    return getattr(sharding, "memory_kind", None) or "device"


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    device: a Device. memory_kind: the name of one of its memories, "device" by default. Raises
    ValueError for a memory that the device lacks, TypeError for None.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> len(sharding.SingleDeviceSharding(nj.devices()[0]).device_set)
    1
    """

    __slots__ = ("_device", "memory_kind")
    is_fully_replicated = True
    of_one = True  # a program that names it runs there

    @property
    def is_fully_addressable(self) -> bool:
        """Whether the device is of this process."""
        return self._device.process_index == Cluster.index

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        if device is None or memory_kind is not None and not hasattr(device, "memory_kinds"):
            raise TypeError(f"SingleDeviceSharding: device must be a Device, got {device!r}. "
                            "numjet.devices() lists them.")
        self._device = device
        self.memory_kind = checked_memory(memory_kind, device)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """Another memory of the same device.

        kind: its name. The CPU has one memory, which all names mean.

        >>> from numjet import numpy as jnp
        >>> jnp.zeros(2).sharding.with_memory_kind("device").memory_kind
        'device'
        """
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        return {self._device}

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        global_shape: of the array.
        """
        return tuple(global_shape)

    def indices(self, shape: tuple) -> list[tuple[Device, tuple]]:
        """What part of an array each device holds, as pairs (device, index).

        shape: of the array.
        """
        return [(self._device, tuple([slice(None)] * len(shape)))]

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device is other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash(("single", self._device.id, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


class WhereRun(Sharding):
    """Wherever the program runs that names it, whose results are bound to that place: the devices
    of its arguments, the default one where these are nowhere. It comes from a program `name` that
    was made for `count` devices; one for a single device runs anywhere."""

    __slots__ = ("name", "count")
    of_one, _device = True, None

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count

    def check(self, found: int) -> None:
        """Raise ValueError where it was made for another number of devices."""
        if self.count not in (1, found):
            raise ValueError(
                f"Function {self.name} was exported for {self.count} devices and is called in a "
                f"context with {found} devices, which is not allowed. Lay the arguments out over a "
                "mesh of as many (numjet.device_put)."
            )

    def for_cotangents(self) -> WhereRun:
        """That of what flows back, which may be of nowhere."""
        return WhereRun(self.name, 1)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, WhereRun) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.name, self.count

    def __repr__(self) -> str:
        return f"WhereRun({self.name!r}, {self.count})"


class DefaultSharding(SingleDeviceSharding):
    """The device that was the default one when an array of nowhere was made: computations of it may
    run elsewhere."""

    __slots__ = ()
    binds = False


class PmapSharding(Sharding):
    """One slice of an axis on each device, as `pmap` leaves its results.

    devices: a Device for each slice; axis: which axis.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> sharding.PmapSharding(nj.devices()[:1]).shard_shape((1, 3))
    (3,)
    """

    __slots__ = ("devices", "axis")
    is_fully_addressable = True
    memory_kind = "device"

    def __init__(self, devices: Sequence[Device], axis: int = 0) -> None:
        self.devices, self.axis = tuple(devices), axis

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return len(self.devices) == 1

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        return set(self.devices)

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        global_shape: of the array.
        """
        return tuple([n for i, n in enumerate(global_shape) if i != self.axis])

    def indices(self, shape: tuple) -> list[tuple[Device, tuple]]:
        """What part of an array each device holds, as pairs (device, index).

        shape: of the array.
        """
        before = (slice(None),) * self.axis
        after = (slice(None),) * (len(shape) - self.axis - 1)
        return [(d, (*before, i, *after)) for i, d in enumerate(self.devices)]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PmapSharding) and (self.devices, self.axis) == (
            other.devices,
            other.axis,
        )

    def __hash__(self) -> int:
        return hash(("pmap", self.devices, self.axis))

    def __repr__(self) -> str:
        return f"PmapSharding(devices={list(self.devices)}, axis={self.axis})"
