"""The parts of an array, a device each: `Shard`, and where they lie.

For `api.placement.devices`, which gives arrays their `addressable_shards`. Where parts lie is
remembered, since loops over arrays ask for the same layouts; a part is cut out when it is asked
for. What would break it: a sharding whose hash does not tell its devices and its cuts.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.placement.placements import SingleDeviceSharding, kind_of
from numjet.core.memo import remembered
from numjet.core.remote import Device


class Shard:
    """The part of an array on one device.

    `device`; `index`: a tuple of slices, what part of the whole it is; `data`: an Array on that
    device; `replica_id`: its number among equal parts. sharding, global_shape: the layout and shape
    of the whole. Made by `Array.addressable_shards`.

    >>> from numjet import numpy as jnp
    >>> jnp.arange(3).addressable_shards[0].data
    Array([0, 1, 2], dtype=int32)
    """

    __slots__ = ("_cut", "_data", "_global_shape", "_sharding", "device")

    _cut: tuple[Callable, tuple] | None  # what gives the part, as long as nobody asked for it

    def __init__(
        self, device: Device, sharding: Any, global_shape: tuple, data: Any = None
    ) -> None:
        self.device, self._sharding, self._global_shape = device, sharding, tuple(global_shape)
        self._data, self._cut = data, None

    def cut_by(self, function: Callable, *args: Any) -> Shard:
        """This part, which `function(*args)` gives when it is asked for."""
        self._cut = function, args
        return self

    @property
    def data(self) -> Any:
        """The part, an Array on the device; None where that is another process's."""
        cut = self._cut
        if cut is not None:
            self._data, self._cut = cut[0](*cut[1]), None
        return self._data

    @property
    def index(self) -> tuple:
        """What part of the whole array it is: a slice an axis."""
        return _places(self._sharding, self._global_shape)[self.device][0]

    @property
    def replica_id(self) -> int:
        """How many devices before this one hold the same part."""
        return _places(self._sharding, self._global_shape)[self.device][1]

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


@remembered("places of parts", 256)
def _places(sharding: Any, shape: tuple) -> dict[Device, tuple[tuple, int]]:
    """For each device its part, and how many before it hold the same."""
    seen: dict[tuple, int] = {}
    out = {}
    for device, index in sharding.indices(shape):
        # Slices do not hash.
        bounds = tuple([(i.start, i.stop) if isinstance(i, slice) else i for i in index])
        out[device] = index, seen.get(bounds, 0)
        seen[bounds] = seen.get(bounds, 0) + 1
    return out


@remembered("parts of a process", 256)
def parts_here(sharding: Any, shape: tuple, held: tuple, process: int) -> list[tuple]:
    """For each device of a process: where its part lies in what the process holds, an array of
    shape `held`, the device as a sharding, and whether its part of a pending sum is not zero."""
    offset = [0] * len(held)
    if held != shape:
        offset = [at.start or 0 for at in sharding.block_index(shape)]
    found, kind, out = holders(sharding), kind_of(sharding), []
    for device, index in sharding.indices(shape):
        if device.process_index == process:
            at = tuple([_shifted(i, n) for i, n in zip(index, offset, strict=True)])
            own = SingleDeviceSharding(device, memory_kind=kind)
            out.append((device, (*at, ...), own, device in found))
    return out


def holders(sharding: Any) -> set[Device]:
    """The devices whose parts of a pending sum are not zero: the first along its axes of the mesh
    holds it, as sums are made where they arise."""
    pending = sharding.spec.unreduced if hasattr(sharding, "spec") else ()
    if not pending:
        return sharding.device_set
    first = [0 if name in pending else slice(None) for name in sharding.mesh.axis_names]
    return set(np.ravel(sharding.mesh.devices[tuple(first)]))


def _shifted(at: Any, offset: int) -> Any:
    if not offset or at.start is None:  # one slice a device of `pmap` is a number
        return at
    return slice(at.start - offset, at.stop - offset)
