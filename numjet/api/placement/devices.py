"""Devices and where arrays live: the CPU backend's virtual devices, `device_put`, shardings of
whole arrays. Installs the Array's device methods."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.placement import platforms
from numjet.api.placement.placements import (
    ORDERS,
    DefaultSharding,
    PmapSharding as PmapSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
    WhereRun as WhereRun,
    kind_of as kind_of,
)
from numjet.api.placement.shards import Shard, holders, parts_here
from numjet.base import config, tree
from numjet.core import hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster
from numjet.core.evaluate import another
from numjet.core.hooks import Remote, Sharded
from numjet.core.memories import MEMORY_KINDS, MemorySpace
from numjet.core.remote import Device, RemoteArray
from numjet.core.sharded import ShardedArray
from numjet.core.shared import Shared
from numjet.core.structural import zeros
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.core.typed_numbers import no_tangents
from numjet.ops.constraint import (
    CopySemantics,
    device_put_p,
    sharding_constraint_p,
    to_memory_p,
)
from numjet.transforms.stage import StageTrace
from numjet.transforms.varying import manual_type


class Client(str):
    """What devices belong to: the one backend, named "numjet-cpu"."""

    platform = "cpu"
    platform_version = "numjet"
    runtime_type = "numjet"

    def devices(self) -> list[Any]:
        """All devices."""
        return devices()

    local_devices = devices

    def device_count(self) -> int:
        """The number of devices."""
        return len(devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """The number of this process."""
        return Cluster.index


CLIENT = Client("numjet-cpu")


class CpuDevice(Device):
    """A virtual device of the CPU backend, of this process or another. Identity is equality."""

    __slots__ = ("process_index",)
    platform = "cpu"
    device_kind = "cpu"
    memory_kinds = MEMORY_KINDS  # one memory

    def __init__(self, number: int, process: int = 0) -> None:
        self.id, self.process_index = number, process

    @property
    def host_id(self) -> int:
        """The old name of `process_index`."""
        return self.process_index

    @property
    def local_hardware_id(self) -> int | None:
        """Its number among those of its process; None for another process's."""
        if self.process_index != Cluster.index:
            return None
        return self.id - self.process_index * _per_process()

    @property
    def client(self) -> Client:
        return CLIENT

    @property
    def computes_anyway(self) -> bool:
        """Whether it is where computations run that name no device."""
        return self is first_device()

    def memory_stats(self) -> dict | None:
        """The CPU has no memory of its own to report."""
        return None

    def __reduce__(self) -> tuple:
        return _device, (self.id,)

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"cpu:{self.id}"


@functools.cache
def _device(number: int) -> Device:
    return CpuDevice(number, number // _per_process() if Cluster.count > 1 else 0)


def _per_process() -> int:
    """How many devices each process has."""
    return max(1, config.num_cpu_devices.value)


def first_device() -> Device:
    """This process's first device, where arrays are that were not put anywhere."""
    return _device(Cluster.index * _per_process() if Cluster.count > 1 else 0)


# What to do before devices are listed for the first time: environment variables that a program may
# set until then are read here.
before_first_use: list[Callable[[], None]] = []


def default_backend() -> str:
    """The platform of computations that name none, as devices tell it: "cpu" unless the flag
    `platforms` names others; of these the first that is installed, "gpu" where that is cuda.

    Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.default_backend()
    'cpu'
    """
    platform = platforms.chosen()
    return platform if platform == "cpu" else devices(platform)[0].platform


def _xla() -> Any:
    """The backend of PJRT plugins, which nothing loads unless a platform of it is asked for."""
    return importlib.import_module("numjet.xla.backend")


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform, those of other processes among them.

    backend: "cpu", "gpu", "cuda", "tpu" or "xla_cpu"; by default that of `default_backend`.
    `NUMJET_NUM_CPU_DEVICES` or config `num_cpu_devices`, before the first use, sets how many
    virtual ones the CPU has. Raises RuntimeError, with what to install, where the platform is not
    there.

    >>> import numjet as nj
    >>> nj.devices()[0].platform
    'cpu'
    """
    while before_first_use:
        before_first_use.pop()()
    platform = backend or platforms.chosen()
    if platform != "cpu":
        return list(_xla().devices(platform))
    return [_device(i) for i in range(Cluster.count * _per_process())]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of one process, by default this one.

    process_index: the number of a process (host_id is its old name). backend: the platform, as of
    `devices`. Raises ValueError for a number that no process has, RuntimeError for a platform that
    is not there.

    >>> import numjet as nj
    >>> nj.local_devices() == nj.devices()  # in a program of one process
    True
    """
    index = process_index if process_index is not None else host_id
    if index is None:
        index = Cluster.index
    if not 0 <= index < Cluster.count:
        raise ValueError(f"Unknown process_index {index}: there are {Cluster.count} processes.")
    return [d for d in devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """How many devices a platform has, in all processes together.

    backend: as of `devices`. Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.device_count("cpu") == len(nj.devices("cpu"))
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices of a platform this process has.

    backend: as of `devices`. Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.local_device_count() <= nj.device_count()
    True
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that `distributed.initialize` joined; 0 alone.

    backend: as of `devices`. Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.process_index()
    0
    """
    devices(backend)  # raises for a platform that is not there
    return Cluster.index


def process_count(backend: str | None = None) -> int:
    """How many processes share the devices of a platform; 1 unless `distributed.initialize` joined
    some.

    backend: as of `devices`. Raises RuntimeError for a platform that is not there.

    >>> import numjet as nj
    >>> nj.process_count()
    1
    """
    return 1 + max(device.process_index for device in devices(backend))


def _sharding(self: Any) -> Any:
    if self._sharding is not None and not self._sharding.binds:
        return SingleDeviceSharding(self._sharding._device)
    nowhere = self._sharding is None and hooks.sharding_of_nowhere(self.ndim)
    if type(self) is RemoteArray and self._sharding is None:
        here = self._buffer.devices[0]
        return nowhere if nowhere and here in nowhere.device_set else SingleDeviceSharding(here)
    return nowhere or self._sharding or SingleDeviceSharding(first_device())


def _check_held(x: Any) -> None:
    """Raise RuntimeError for an array that was deleted or donated."""
    if isinstance(x, ArrayImpl) and x.is_deleted():
        x._value  # noqa: B018 - raises


def _shards(self: Any) -> list[Shard]:
    _check_held(self)
    if type(self) is RemoteArray:
        return _remote_shards(self)
    sharding = _sharding(self)
    aval, over = self._aval, type(self) is ShardedArray
    if over or len(sharding.device_set) > 1:
        block, shape = self._block if over else self._value, aval.shape
        return [
            Shard(device, sharding, shape).cut_by(_part, block[at], aval, own, holds)
            for device, at, own, holds in parts_here(sharding, shape, block.shape, Cluster.index)
        ]
    part = ArrayImpl(self._value, aval)
    if self._sharding is not None and self._sharding.binds:
        part = place(part, SingleDeviceSharding(sharding._device, memory_kind=kind_of(sharding)))
    else:
        part._sharding = self._sharding
    return [Shard(sharding._device, sharding, aval.shape, part)]


def _part(block: np.ndarray, aval: ShapedArray, own: Any, holds: bool) -> Any:
    """A part of what a process holds, as an array on one device."""
    if not holds:
        block = np.zeros_like(block)
    return place(ArrayImpl(block, ShapedArray(block.shape, aval.dtype, aval.weak_type)), own)


def _global_shards(self: Any) -> list[Shard]:
    """A Shard a device; those of other processes hold no data."""
    mine, sharding = {s.device: s for s in _shards(self)}, _sharding(self)
    if type(self) is RemoteArray:
        return list(mine.values())
    return [
        mine.get(d) or Shard(d, sharding, self.shape) for d, _ in sharding.indices(self.shape)
    ]


def _remote_shards(self: RemoteArray) -> list[Shard]:
    sharding, devices = _sharding(self), self._buffer.devices
    if len(devices) == 1:
        return [Shard(devices[0], sharding, self.shape, self)]
    shape, bare, out = sharding.shard_shape(self.shape), self.aval.bare(), []
    found = holders(sharding)
    for device, index in sharding.indices(self.shape):
        if device not in found:
            nothing = zeros(bare.update(shape=shape))
            own = device_put(nothing, SingleDeviceSharding(device, memory_kind=kind_of(sharding)))
            out.append(Shard(device, sharding, self.shape, own))
            continue
        # One slice a device keeps its axis in memory.
        kept = tuple([1 if isinstance(i, int) else n if i.start is None else i.stop - i.start
                      for i, n in zip(index, self.shape, strict=True)])  # fmt: skip
        part = RemoteArray(self._buffer.part(devices.index(device)), bare.update(shape=kept),
                           SingleDeviceSharding(device, memory_kind=kind_of(sharding)))
        data = part if kept == shape else part.reshape(shape)  # type: ignore[attr-defined]
        out.append(Shard(device, sharding, self.shape, data))
    return out


def _array_device(self: Any) -> Any:
    _check_held(self)
    sharding = _sharding(self)
    return next(iter(sharding.device_set)) if len(sharding.device_set) == 1 else sharding


def _devices_of(self: Any) -> set:
    """The devices that hold the array, a set.

    >>> len(jnp.ones(2).devices())
    1
    """
    _check_held(self)
    return _sharding(self).device_set


def _format(self: Any) -> Any:
    """Row by row, where it lives; of a deleted array only where it lived is known."""
    layout = importlib.import_module("numjet.api.placement.layout")
    gone = isinstance(self, ArrayImpl) and self.is_deleted()
    rows = None if gone else layout.order_of(self)
    return layout.Format(rows, _sharding(self))


def _addressable_data(self: Any, index: int) -> Any:
    """The part of the array on this process's device of number `index`, an Array.

    >>> jnp.ones(2).addressable_data(0)
    Array([1., 1.], dtype=float32)
    """
    return _shards(self)[index].data


hooks.install(
    Array,
    {
        "sharding": property(_sharding, doc="Where the array lives."),
        "format": property(_format, doc="How the array lies in memory, and where: a `Format`."),
        "devices": _devices_of,
        "device": property(
            _array_device, doc="The device of the array, or its sharding when there are several."
        ),
        "addressable_shards": property(_shards, doc="The parts of the array, one a device."),
        "global_shards": property(
            _global_shards, doc="The parts on all processes' devices; only this one's hold data."
        ),
        "addressable_data": _addressable_data,
    },
)


_default = config.default_device


def chosen_device() -> Device | None:
    """The device of arrays that name none: the flag `default_device`, a Device or a platform."""
    chosen = config.default_device.value
    if isinstance(chosen, str):
        return devices(chosen)[0]
    if chosen is None and config.platforms.value not in config.NATIVE:
        return devices()[0]
    return chosen


def _check_default(chosen: Any) -> None:
    """Raise ValueError for what is no device, nor the name of a platform that may be there."""
    if chosen is None or isinstance(chosen, Device) or chosen == "cpu":
        return
    plugins = importlib.import_module("numjet.xla.plugins")
    if not isinstance(chosen, str) or plugins.known(plugins.ALIASES.get(chosen, chosen)) is None:
        raise ValueError(
            "default_device must be passed either a Device object (e.g. "
            "`numjet.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: "
            f"{chosen!r}."
        )


_default.on_check(_check_default)


def _computing_device() -> Device | None:
    """The device of another backend that computations on arrays of nowhere belong to."""
    chosen = chosen_device()
    return None if isinstance(chosen, CpuDevice) else chosen


Remote.choose, Remote.single = _computing_device, SingleDeviceSharding
if platforms.chosen() != "cpu":
    devices()  # so that the first computation finds it


def place(x: ArrayImpl, sharding: Any) -> ArrayImpl:
    """`x`, all of which this process has, with a sharding; memory is shared by the virtual
    devices of a process, which keeps the part that is its devices'."""
    if hooks.guards is not None:
        hooks.guards.moved(x, sharding)
    if Remote.active and not all([isinstance(d, CpuDevice) for d in sharding.device_set]):
        return Remote.put(x, sharding)
    value = x._value
    if type(sharding) is SingleDeviceSharding:
        if sharding._device is first_device() and _per_process() == 1:
            out = ArrayImpl(value, x.aval)
            out._sharding = sharding
            return out
    elif not sharding.is_fully_addressable:
        value = np.asarray(value[sharding.block_index(x.shape)], order="C")
    return ShardedArray(value, x.aval, sharding)


def asks_nothing(shardings: Any) -> bool:
    """Whether a pytree of shardings leaves all where it is: there are none, or all name the only
    device."""
    alone = _per_process() == 1
    return all(
        alone and getattr(s, "_device", s) is first_device() and kind_of(s) == "device"
        for s in tree.tree_leaves(shardings)
    )


def mark(x: Tracer, sharding: Sharding) -> Any:
    """A traced array with the constraint that it is laid out so."""
    if kind_of(sharding) != "device":
        Sharded.memories = True
        if not hasattr(sharding, "layout"):
            return _to_memory(x, kind_of(sharding))
    if not hasattr(sharding, "layout") and not _binds(sharding):
        return x
    Sharded.marks, Sharded.active = Sharded.marks + 1, True
    return sharding_constraint_p.bind(x, sharding=sharding)


def _binds(sharding: Any) -> bool:
    """Whether a program says it of a device, or of where it runs, that its results are bound to:
    where there are several CPU devices of one process."""
    if Cluster.count > 1 or not isinstance(sharding._device, CpuDevice | None):
        return False
    return _per_process() > 1 or getattr(sharding, "count", 1) > 1


def bound(x: Any) -> Any:
    """An array bound to the devices where it is, the default one for what nobody placed. Where
    there is one CPU device it is what it was."""
    if _per_process() == 1 or Cluster.count > 1 or type(x) is RemoteArray:
        return x
    if x._sharding is not None and x._sharding.binds or hooks.sharding_of_nowhere(x.ndim):
        return x
    return place(x, bound_device())


def bound_device() -> SingleDeviceSharding:
    """Where what is bound to run lies that nothing puts anywhere: on the default device."""
    return SingleDeviceSharding(chosen_device() or first_device())


def at_default(x: Any) -> Any:
    """An array where those are that nobody placed: on the default device, from which computations
    may move it."""
    device = chosen_device()
    if device is None or isinstance(x, Tracer):
        return x
    if device is first_device() and type(x) is not RemoteArray:
        return x
    if isinstance(device, CpuDevice):
        x = as_array(x)
        return place(x, DefaultSharding(device)) if x._sharding is None else x
    return Remote.put(as_array(x), SingleDeviceSharding(device), False)


def _computed_here(x: Any) -> Any:
    """What the CPU computed, on the default device where that is another of its own: results of
    what was put on the CPU stay there where the default device is elsewhere."""
    return at_default(x) if isinstance(chosen_device(), CpuDevice) else x


def over_current(x: Any, of_values: bool) -> Any:
    """A new array over the mesh of `set_mesh`, whole on each device. of_values: it was made of
    values that were there, whose sharding names no axes of the array."""
    if not Sharded.placing or type(x) is not ArrayImpl or x._sharding is not None:
        return x
    sharding = hooks.sharding_of_nowhere(0 if of_values else x.aval.ndim)
    if sharding is None or current_trace() is not EVAL:
        return x
    return place(x, sharding)


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """The pytree `x` as Arrays on a device, or laid out over several.

    x: arrays, NumPy arrays, numbers. device: a Device, a sharding, a `Format` of one, a
    PartitionSpec over the mesh of `set_mesh`, a `memory.Space` (another memory of the devices that
    hold `x`; the CPU has one, and the array's sharding names it), or a pytree of these that is
    a prefix of `x`; None keeps the default. donate: `x` may be given up. may_alias: False gives new
    arrays, which live on when those of `x` are deleted. Both may be prefixes of `x`. src is taken
    for JAX's sake.
    Inside a traced function it is an operation of the program. Derivative: the identity, back to
    where `x` was. Raises ValueError for an unknown device and for a sharding that does not fit a
    shape, TypeError for leaves that are no arrays.

    >>> import numpy as np
    >>> import numjet as nj
    >>> nj.device_put(np.arange(3), nj.devices()[0])
    Array([0, 1, 2], dtype=int32)
    """
    if donate is True and may_alias is True:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    if current_trace() is not EVAL:
        return _put_traced(x, device, src, donate, may_alias)
    if type(donate) is not bool:
        tree.flatten_axes("device_put donate", tree.tree_structure(x), donate)
    if may_alias is not None and type(may_alias) is not bool:
        tree.flatten_axes("device_put may_alias", tree.tree_structure(x), may_alias)
    out = put(x, device)
    if may_alias is False:
        out = tree.tree_map(another, out)
    if ORDERS and (device is None or isinstance(device, Device | Sharding)):
        out = importlib.import_module("numjet.api.placement.layout").kept(x, out)
    return out


def put(x: Any, device: Any) -> Any:
    """`device_put` of arrays that are there, wherever this is called."""
    if isinstance(device, MemorySpace):
        return tree.tree_map(lambda leaf: _to_memory(as_array(leaf), device.kind), x)
    if not (device is None or isinstance(device, Device | Sharding)):
        leaves, treedef = tree.tree_flatten(x)
        pairs = zip(leaves, *_places(x, device), strict=True)
        return tree.tree_unflatten(treedef, [
            put(leaf, place) if layout is None else _in_order(put(leaf, place), layout)
            for leaf, place, layout in pairs
        ])  # fmt: skip
    if device is None and (_default.uses or _default.asks or config.platforms.asks):
        return tree.tree_map(lambda leaf: at_default(as_array(leaf)), x)
    sharding: Any = SingleDeviceSharding(device) if isinstance(device, Device) else device
    if hasattr(sharding, "mesh"):
        _ = sharding.mesh.devices  # raises where there are axes alone
        check_told("device_put", sharding)

    def put_leaf(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if isinstance(leaf, Tracer):
            leaf.in_scope("device_put")
        if not leaf.dtype.itemsize and not isinstance(leaf, Tracer):  # of dtype float0
            return no_tangents(leaf.shape)
        if sharding is None:
            if Sharded.placing and type(leaf) is ArrayImpl and leaf._sharding is None:
                return place(leaf, DefaultSharding(first_device()))  # not over the mesh
            return leaf
        if leaf._sharding == sharding and leaf._sharding.binds and not leaf.is_deleted():
            return leaf if isinstance(device, Sharding) else another(leaf)
        sharding._check_placed(leaf.shape)
        if type(leaf) is ShardedArray and not leaf.is_fully_addressable:
            return Sharded.move(leaf, sharding)
        return place(leaf, sharding)

    return tree.tree_map(put_leaf, x)


def _in_order(x: Any, layout: Any) -> Any:
    return importlib.import_module("numjet.api.placement.layout").labelled(x, layout)


def check_told(name: str, sharding: Any) -> None:
    """Raise ValueError for a sharding that leaves the layout of a dimension open."""
    if any([str(entry) == "UNCONSTRAINED" for entry in sharding.spec]):
        raise ValueError(
            f"{name}: {sharding.spec} leaves dimensions UNCONSTRAINED, which only a program can "
            "lay out: name axes or None, or use lax.with_sharding_constraint inside of jit."
        )


def _put_traced(x: Any, places: Any, src: Any, donate: Any, may_alias: Any) -> Any:
    """`device_put` where a function is traced: of traced leaves one equation."""
    leaves, treedef = tree.tree_flatten(x)
    kinds = Device | Sharding | MemorySpace
    alone = places is None or isinstance(places, kinds)
    wanted = [places] * len(leaves) if alone else _places(x, places)[0]
    staged = _staging()
    shows = staged and config.jax_form()
    out = [as_array(leaf) for leaf in leaves]
    which = []
    for i, (leaf, place) in enumerate(zip(out, wanted, strict=True)):
        if place is not None and Shared.mapped.get():
            _check_within_members(leaf, place, staged)
        if shows or place is not None and (staged or isinstance(leaf, Tracer)):
            if hasattr(place, "mesh"):
                check_told("device_put", place)
                place._check_placed(leaf.shape)
                if place.mesh.explicit_axes:  # types show it
                    out[i] = mark(leaf, place)
                    continue
            which.append(i)
        elif place is not None:
            there = not hasattr(place, "mesh") or hasattr(place.mesh, "devices_in_order")
            out[i] = put(leaf, place) if there else mark(leaf, place)
    if which:
        for kind in [kind_of_place(wanted[i]) for i in which]:
            Sharded.memories = Sharded.memories or kind != "device"
        Sharded.marks, Sharded.active = Sharded.marks + 1, True
        how = CopySemantics.ALWAYS_COPY if may_alias is False else (
            CopySemantics.DONATE_INPUT if donate is True else CopySemantics.REUSE_INPUT)
        outs = device_put_p.bind(
            *[out[i] for i in which], devices=tuple([wanted[i] for i in which]),
            srcs=(src if isinstance(src, kinds) else None,) * len(which),
            copy_semantics=(how,) * len(which),
        )  # fmt: skip
        for i, value in zip(which, outs, strict=True):
            out[i] = value
    return tree.tree_unflatten(treedef, out)


def _staging() -> bool:
    """Whether what runs is written down, for whichever function around it."""
    trace: Any = current_trace()
    while trace is not None and type(trace) is not StageTrace:
        trace = getattr(trace, "parent", None)
    return trace is not None


def _check_within_members(x: Any, place: Any, staged: bool) -> None:
    """Raise ValueError for places that the function of one device's part cannot name."""
    if not staged:
        raise ValueError(
            "device_put with explicit device not allowed within shard_map-decorated functions, but "
            f"got device {place}: each device has its part."
        )
    if hasattr(place, "mesh"):
        check_manual("device_put", x, place)


def check_manual(name: str, x: Any, sharding: Any) -> None:
    """Raise ValueError for a value that varies over axes of `shard_map` which a mesh has as axes of
    another type than Manual."""
    if not (Shared.axes.get() and isinstance(x, Tracer)):
        return
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    for axis in manual_type(x).varying:
        if axis in kinds and kinds[axis].name != "Manual":
            raise ValueError(
                f"{name}: a value that varies over axes of shard_map has a type with axes of type "
                f"`Manual`, but got a mesh with axis: {axis} of type {kinds[axis]}. Pass a "
                "PartitionSpec, or a NamedSharding over numjet.sharding.get_abstract_mesh()."
            )


def kind_of_place(place: Any) -> str:
    """The kind of memory that a place names."""
    return place.kind if isinstance(place, MemorySpace) else kind_of(place)


def _to_memory(x: Any, kind: str) -> Any:
    """An array in another memory of its devices; of a traced one a program's results are."""
    if isinstance(x, Tracer):
        Sharded.marks, Sharded.memories = Sharded.marks + 1, True
        return to_memory_p.bind(x, kind=kind)
    return put(x, x.sharding.with_memory_kind(kind))


def in_memories(outs: list, kinds: Sequence[str | None]) -> list:
    """Results of a program, in the memories that it put them in."""
    return [
        x if kind is None or kind_of(x.sharding) == kind else _to_memory(x, kind)
        for x, kind in zip(outs, kinds, strict=True)
    ]


hooks.device_put, hooks.in_memory = put, _to_memory
hooks.bound, hooks.computed_here = bound, _computed_here


def _places(x: Any, places: Any) -> tuple[list[Any], list[Any]]:
    """A device, a sharding, a memory or None for each leaf of `x`, and a Layout or None: of a
    pytree of places, or of a `Format`."""
    layout = importlib.import_module("numjet.api.placement.layout")
    kinds = (Device, Sharding, layout.Format, MemorySpace)
    leaves, treedef = tree.tree_flatten(x)
    is_place = lambda n: n is None or isinstance(n, kinds)  # noqa: E731
    within = Shared.mapped.get() and hooks.sharding_of_nowhere(0) is None
    if within and any([hasattr(s, "partitions") for s in tree.tree_leaves(places, is_place)]):
        raise ValueError(
            "device_put: a PartitionSpec names axes of the mesh of set_mesh, and there is none "
            "around shard_map. Please set a mesh via numjet.set_mesh."
        )
    places = hooks.over_current_mesh(places, is_place)
    for place in tree.tree_leaves(places, is_place):
        if not is_place(place):
            raise ValueError(
                "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, "
                "`Format`, `jax.memory.Space` or a pytree of these values. Received invalid "
                f"value: {place}. numjet.devices() lists the devices: {devices()}."
            )
    wanted = tree.flatten_axes("device_put: device", treedef, places, is_place)
    found: list[Any] = []
    orders: list[Any] = []
    for leaf, place in zip(leaves, wanted, strict=True):
        order = None
        if isinstance(place, layout.Format):
            if isinstance(place.layout, layout.AutoLayout):
                raise ValueError(
                    "device_put: sharding and layout in `Layout` instance should be concrete. Got "
                    f"layout: {place} for an input of shape {np.shape(leaf)}. A compiled "
                    "function's input_formats tell them."
                )
            if isinstance(place.layout, layout.Layout):
                layout.check_layout("jit outputs", place.layout, np.shape(leaf))
                order = place.layout
            place = place.sharding
        found.append(place)
        orders.append(order)
    return found, orders
