"""Arrays laid out over several devices.

A `ShardedArray` is no `ArrayImpl` by type, so that every fast way of concrete arrays leaves it
alone; what evaluates and compiles asks `Sharded` (`core.hooks`) once `Sharded.active` says that
there is such an array. On virtual devices of one process `_value` is the whole array and the
sharding says which part is whose; of several processes each holds a block, `_block`, and there is a
`_value` only where that is all of it. What would break it: code that reads `_value` of whatever it
is given, which raises where parts of the array are other processes'.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.hooks import Sharded
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs


def constraint_of(closed: ClosedJaxpr) -> Any:
    """The sharding over devices that is the first to be named in a program; None: there is none."""
    if "constraint" not in closed.cache:
        closed.cache["constraint"] = next(_constraints(closed.jaxpr), None)
    return closed.cache["constraint"]


def devices_named(closed: ClosedJaxpr) -> tuple:
    """The devices of each sharding that a program names, equal ones once."""
    if "devices" not in closed.cache:
        found = dict.fromkeys([
            *[s.mesh.devices_in_order for s in _constraints(closed.jaxpr)],
            *[(s._device,) for s in places_of(closed.jaxpr) if s._device is not None],
        ])  # fmt: skip
        closed.cache["devices"] = tuple(found)
    return closed.cache["devices"]


def place_of(closed: ClosedJaxpr) -> Any:
    """What a program names that is no mesh and that its results are bound to: the sharding of one
    device, or, if there is none, that of wherever it runs. None: there is neither."""
    if "place" not in closed.cache:
        found = [*places_of(closed.jaxpr)]
        named = [s for s in found if s._device is not None]
        closed.cache["place"] = next(iter(named or found), None)
    return closed.cache["place"]


def counts_named(closed: ClosedJaxpr) -> list:
    """What a program names that has to run on so many devices."""
    if "counts" not in closed.cache:
        found = places_of(closed.jaxpr)
        closed.cache["counts"] = [s for s in found if getattr(s, "count", 1) > 1]
    return closed.cache["counts"]


def axes_named(closed: ClosedJaxpr) -> Any:
    """The mesh that the first constraint names which is over axes alone; None: there is none."""
    if "axes" not in closed.cache:
        found = (s.mesh for s in _constraints(closed.jaxpr, False))
        closed.cache["axes"] = next(found, None)
    return closed.cache["axes"]


def returned(closed: ClosedJaxpr) -> list[tuple[int, int]]:
    """Which results are arguments as they are, constants first: (result, argument)."""
    if "returned" not in closed.cache:
        jaxpr = closed.jaxpr
        at = {v: j for j, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
        outs = enumerate(jaxpr.outvars)
        closed.cache["returned"] = [(i, at[v]) for i, v in outs if type(v) is Var and v in at]
    return closed.cache["returned"]


def _constraints(jaxpr: Jaxpr, of_devices: bool = True) -> Iterator[Any]:
    """The shardings over meshes that a program names: of devices, or of axes alone."""
    for eqn in jaxpr.eqns:
        for sharding in eqn.params.get("devices") or (eqn.params.get("sharding"),):
            mesh = getattr(sharding, "mesh", None)
            if mesh is None or mesh.empty and not of_devices:
                continue
            if hasattr(mesh, "devices_in_order") is of_devices:
                yield sharding
        for inner in subjaxprs(eqn.params):
            yield from _constraints(inner, of_devices)


def places_of(jaxpr: Jaxpr) -> Iterator[Any]:
    """The shardings of one device, or of wherever it runs, that a program names."""
    for eqn in jaxpr.eqns:
        for sharding in eqn.params.get("devices") or (eqn.params.get("sharding"),):
            if getattr(sharding, "of_one", False):
                yield sharding
        for inner in subjaxprs(eqn.params):
            yield from places_of(inner)


class ShardedArray(ArrayImpl):
    """An Array laid out over the devices of a sharding."""

    __slots__ = ("_block",)
    _block: np.ndarray

    def __init__(self, block: np.ndarray, aval: ShapedArray, sharding: Any) -> None:
        self._aval, self._sharding = aval.over(sharding), sharding
        if sharding.is_fully_addressable or block.shape == aval.shape:
            self._value = block
        else:
            self._pending = Elsewhere(aval)
        self._block = block
        Sharded.active = True

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold it are this process's."""
        return self._sharding.is_fully_addressable

    def delete(self) -> None:
        """Give the memory back; later reads raise RuntimeError."""
        self._pending = None
        for slot in _held(self):
            delattr(self, slot)

    def is_deleted(self) -> bool:
        return "_block" not in _held(self)

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._check_alone("to_dlpack can only pack an array on one device")
        return super().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._check_alone("__dlpack__ only supported for unsharded arrays")
        return super().__dlpack_device__()

    def _check_alone(self, what: str) -> None:
        """Raise BufferError where it lies over several devices."""
        count = len(self._sharding.device_set)
        if count > 1:
            raise BufferError(
                f"{what}, but this one is over {count} devices. Take its addressable_shards, or "
                "move it with numjet.device_put."
            )

    def __copy__(self) -> ShardedArray:
        if self.is_deleted():
            self._value  # noqa: B018 - raises
        return ShardedArray(self._block, self._aval, self._sharding.in_full(self._aval.ndim))

    def __deepcopy__(self, memo: dict) -> ShardedArray:
        sharding = self._sharding.in_full(self._aval.ndim)
        return ShardedArray(self._block.copy(), self._aval, sharding)

    def block_until_ready(self) -> ShardedArray:
        """The value is there."""
        if self.is_deleted():
            ArrayImpl.block_until_ready(self)  # which raises
        return self

    def is_ready(self) -> bool:
        return True

    def __repr__(self) -> str:
        if "_value" in _held(self) or self.is_deleted():
            return super().__repr__()
        return f"Array(shape={self._aval.shape}, dtype={self._aval.dtype.name})"

    def __str__(self) -> str:
        return super().__str__() if "_value" in _held(self) else repr(self)


# To programs there is one kind of arrays.
ShardedArray.__name__ = ShardedArray.__qualname__ = ArrayImpl.__name__


def _held(x: ShardedArray) -> set[str]:
    """Which of the slots of memory are filled."""
    found = set()
    for slot in ("_value", "_block"):
        try:
            object.__getattribute__(x, slot)
        except AttributeError:
            continue
        found.add(slot)
    return found


class Elsewhere:
    """The value of an array whose parts are on other processes: reading it raises."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def result(self) -> Any:
        raise RuntimeError(
            f"Fetching the value of Array {self.aval.str_short()} that spans non-addressable (non "
            "process local) devices is not possible. Each process has its parts: "
            "`.addressable_shards`; experimental.multihost_utils.process_allgather fetches all."
        )

    def done(self) -> bool:
        return True


def any_sharded(values: Iterable[Any]) -> bool:
    """Whether one of the values is laid out over devices."""
    for x in values:
        if type(x) is ShardedArray:
            return True
    return False
