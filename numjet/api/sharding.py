"""Meshes of devices and how arrays are laid out over them: `Mesh`, `PartitionSpec`,
`NamedSharding`.

The virtual devices of a process share one block of memory; a sharding says which part belongs to
which device, and `addressable_shards` shows the parts. What would break it: a spec that names an
axis that the mesh has not (refused when the sharding is made).
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import math
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.api.devices import (
    Device,
    Sharding,
    SingleDeviceSharding,
    checked_memory,
    device_put,
    devices as all_devices,
    mark,
)
from numjet.api.layout import Format
from numjet.api.process_mesh import Processes, processes_of
from numjet.base import tree
from numjet.base.errors import DuplicateSpecError, IndivisibleError
from numjet.core import hooks
from numjet.core.cluster import Cluster
from numjet.core.remote import Remote
from numjet.core.trace import Tracer


class AxisType(enum.Enum):
    """How an axis of a mesh takes part in sharding; all are treated alike here."""

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self) -> str:
        return self.name


class MemorySpace(enum.Enum):
    """Where an array's memory is: the CPU has one kind."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


memory = types.SimpleNamespace(Space=MemorySpace)


class PartitionSpec(tuple):
    """For each dimension of an array the mesh axis that it is split over: a PartitionSpec.

    partitions: a name, a tuple of names (split over the first, each part over the second), or None.
    Trailing dimensions left out are not split. unreduced, reduced: sets of axes whose parts are
    still to be added up, or have been, kept for programs that ask.

    >>> import numjet as nj
    >>> nj.P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    UNCONSTRAINED = type("UNCONSTRAINED", (), {"__repr__": lambda self: "UNCONSTRAINED"})()
    unreduced: frozenset
    reduced: frozenset

    def __new__(
        cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> PartitionSpec:
        made = super().__new__(cls, partitions)
        named = {name for entry in partitions for name in axes_of(entry)}
        for what, names in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(names, set | frozenset):
                raise TypeError(f"PartitionSpec: {what} must be a set of names, got {names!r}.")
            if named & names:
                raise ValueError(
                    f"PartitionSpec: axes {sorted(named & names)} are both partitions and {what}."
                )
        made.unreduced, made.reduced = frozenset(unreduced), frozenset(reduced)
        return made

    @property
    def partitions(self) -> tuple:
        """The entries, as a plain tuple."""
        return tuple(self)

    def update(self, **changes: Any) -> PartitionSpec:
        """The spec with other `partitions`, `unreduced` or `reduced`."""
        return PartitionSpec(
            *changes.get("partitions", self),
            unreduced=changes.get("unreduced", self.unreduced),
            reduced=changes.get("reduced", self.reduced),
        )

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*self, *other, unreduced=self.unreduced, reduced=self.reduced)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, PartitionSpec) and (self.unreduced, self.reduced) != (
            other.unreduced,
            other.reduced,
        ):
            return False
        return tuple.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __repr__(self) -> str:
        parts = [*map(repr, self)]
        parts += [
            f"{what}={set(names)!r}"
            for what, names in (("unreduced", self.unreduced), ("reduced", self.reduced))
            if names
        ]
        return f"P({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def __reduce__(self) -> tuple:
        return _spec, (tuple(self), self.unreduced, self.reduced)


def _spec(partitions: tuple, unreduced: frozenset, reduced: frozenset) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


class _Axes:
    """What the axes of a mesh say of themselves; kinds give `axis_names`, `axis_sizes`,
    `axis_types`."""

    axis_names: tuple
    axis_types: tuple
    shape: Any

    def __str__(self) -> str:
        sizes = ", ".join(f"{n!r}: {k}" for n, k in self.shape.items())
        device = getattr(self, "abstract_device", None)
        of = ", ".join(f"{k}={v}" for k, v in vars(device).items()) if device else ""
        parts = [sizes or "()", f"axis_types={self.axis_types}", of]
        return f"{type(self).__name__}({', '.join(part for part in parts if part)})"

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    @property
    def auto_axes(self) -> tuple:
        """The names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple:
        """The names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple:
        """The names of the axes of type Manual."""
        return self._of_type(AxisType.Manual)

    def _all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes and each is of type Auto."""
        return self._all(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes and each is of type Explicit."""
        return self._all(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes and each is of type Manual."""
        return self._all(AxisType.Manual)


def _axis_types(given: Any, count: int) -> tuple:
    """A type for each of `count` axes, from one for all, one each, or None."""
    if given is None:
        return (AxisType.Auto,) * count
    found = (given,) * count if isinstance(given, AxisType) else tuple(given)
    if len(found) != count or not all(isinstance(t, AxisType) for t in found):
        raise ValueError(
            f"axis_types must give an AxisType for each of the {count} axes, got {given!r}."
        )
    return found


class Mesh(_Axes):
    """An array of devices with a name for each of its axes. `with mesh:` makes it the current one.

    devices: an array of Devices, of any rank; axis_names: a name for each axis (ValueError for
    another number); axis_types: an AxisType each. `shape` (sizes by name), `size`, `devices`,
    `axis_names`. Compares by value. `make_mesh` is easier.

    >>> import numpy as np
    >>> import numjet as nj
    >>> from numjet import sharding
    >>> mesh = sharding.Mesh(np.array(nj.devices()[:1]), ("x",))
    >>> dict(mesh.shape)
    {'x': 1}
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.devices = np.asarray(devices, dtype=object)
        if self.devices.ndim != len(names):
            raise ValueError(
                f"Mesh: {len(names)} axis names {names} for an array of devices of shape "
                f"{self.devices.shape}. Give one name an axis."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis names must differ, got {names}.")
        self.axis_names = names
        self.axis_types = _axis_types(axis_types, len(names))

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def shape_tuple(self) -> tuple:
        """(name, size) of each axis."""
        return tuple(self.shape.items())

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return self.devices.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, as an array."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices."""
        if not self.is_multi_process:
            return self
        own = self.processes
        at = [int(np.argwhere(own.ranks == Cluster.index)[0][k]) for k in range(self.devices.ndim)]
        inner = [n // own.sizes[name] for name, n in self.shape.items()]
        cut = tuple([slice(i * n, (i + 1) * n) for i, n in zip(at, inner, strict=True)])
        return Mesh(self.devices[cut], self.axis_names, self.axis_types)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == Cluster.index]

    @functools.cached_property
    def is_multi_process(self) -> bool:
        """Whether its devices are of several processes."""
        return len({d.process_index for d in self.devices.flat}) > 1

    @functools.cached_property
    def devices_in_order(self) -> tuple:
        """The devices, the last axis running fastest."""
        return tuple(self.devices.flat)

    @functools.cached_property
    def processes(self) -> Processes:
        """The processes of the devices, as a mesh."""
        return processes_of(self)

    is_scalar = False

    def update(self, **changes: Any) -> Mesh:
        """The mesh with other `devices`, `axis_names` or `axis_types`."""
        return Mesh(
            changes.get("devices", self.devices),
            changes.get("axis_names", self.axis_names),
            changes.get("axis_types", self.axis_types),
        )

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        kind = next(iter(self.devices.flat), None)
        device = kind and AbstractDevice(kind.device_kind, None, kind.platform)
        return AbstractMesh(
            self.devices.shape, self.axis_names, self.axis_types, abstract_device=device
        )

    def __enter__(self) -> Mesh:
        _tokens.append(_current.set(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        _current.reset(_tokens.pop())

    def _key(self) -> tuple:
        ids = tuple(d.id for d in self.devices.flat)
        return self.axis_names, self.devices.shape, self.axis_types, ids

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )


@dataclasses.dataclass(frozen=True)
class AbstractDevice:
    """What kind of devices a mesh is of.

    device_kind: the hardware's name; num_cores: cores of each, or None; platform: "cpu", "gpu" or
    "tpu".

    >>> from numjet import sharding
    >>> sharding.AbstractDevice("cpu", None, "cpu").platform
    'cpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform})"
        )


@dataclasses.dataclass(frozen=True)
class ManualAxisType:
    """Over which manual axes of a mesh a value differs, or is a sum that is pending or done.

    varying, unreduced, reduced: frozensets of names.

    >>> from numjet import sharding
    >>> sorted(sharding.ManualAxisType(varying=frozenset({"x"})).varying)
    ['x']
    """

    _: dataclasses.KW_ONLY
    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()


class AbstractMesh(_Axes):
    """The names and sizes of a mesh's axes, without devices. Asking for its devices raises
    ValueError.

    axis_sizes: an integer for each axis; axis_names: its name; axis_types: an AxisType each,
    `Explicit` unless given. abstract_device: kept for programs that ask. Compares by value.

    >>> import numjet as nj
    >>> nj.AbstractMesh((2, 4), ("x", "y")).shape
    OrderedDict([('x', 2), ('y', 4)])
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[str],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        self.abstract_device = abstract_device
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh: {len(self.axis_names)} names for {len(self.axis_sizes)} sizes."
            )
        self.axis_types = _axis_types(axis_types, len(self.axis_names))

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple:
        """(name, size) of each axis."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """The product of the sizes."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def _no_devices(self) -> Any:
        raise ValueError("AbstractMesh has no devices. Make a Mesh of devices.")

    devices = property(_no_devices, doc="Refused: there are none.")
    device_ids = property(_no_devices, doc="Refused: there are none.")
    local_devices = property(_no_devices, doc="Refused: there are none.")
    local_mesh = property(_no_devices, doc="Refused: there are none.")
    is_multi_process = False

    def update(self, **changes: Any) -> AbstractMesh:
        """The mesh with other `axis_sizes`, `axis_names`, `axis_types` or `abstract_device`."""
        return AbstractMesh(
            changes.get("axis_sizes", self.axis_sizes),
            changes.get("axis_names", self.axis_names),
            changes.get("axis_types", self.axis_types),
            abstract_device=changes.get("abstract_device", self.abstract_device),
        )

    def update_axis_types(self, new: dict[str, AxisType]) -> AbstractMesh:
        """The mesh whose axes named in `new` have another type."""
        types = [new.get(n, t) for n, t in zip(self.axis_names, self.axis_types)]
        return self.update(axis_types=types)

    def _key(self) -> tuple:
        return self.shape_tuple, self.axis_types, self.abstract_device

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    __repr__ = _Axes.__str__


_NO_MESH = Mesh(np.empty((), dtype=object), ())
_current: ContextVar[Mesh] = ContextVar("numjet.mesh", default=_NO_MESH)
_tokens: list = []


def get_mesh() -> Mesh:
    """The mesh of the enclosing `with mesh:` or `set_mesh`; an empty one outside.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> with nj.make_mesh((1,), ("x",)):
    ...     print(sharding.get_mesh().axis_names)
    ('x',)
    """
    return _current.get()


def over_current_mesh(places: Any, is_place: Callable[[Any], bool]) -> Any:
    """The pytree `places` with shardings over the current mesh for its PartitionSpecs."""

    def over(place: Any) -> Any:
        if not isinstance(place, PartitionSpec):
            return place
        if get_mesh().empty:
            raise ValueError(
                "device_put: a PartitionSpec needs a mesh. Please set a mesh via `set_mesh`, or "
                "pass a NamedSharding."
            )
        return NamedSharding(get_mesh(), place)

    is_leaf = lambda n: is_place(n) or isinstance(n, PartitionSpec)  # noqa: E731
    return tree.tree_map(over, places, is_leaf=is_leaf)


_abstract: ContextVar[AbstractMesh | None] = ContextVar("numjet.abstract_mesh", default=None)


class use_abstract_mesh(contextlib.AbstractContextManager):  # noqa: N801 - read as a statement
    """`with use_abstract_mesh(mesh):` makes it what `get_abstract_mesh` returns.

    mesh: an AbstractMesh.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> with sharding.use_abstract_mesh(nj.AbstractMesh((2,), ("x",))):
    ...     print(sharding.get_abstract_mesh().axis_names)
    ('x',)
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise TypeError(f"use_abstract_mesh: expected an AbstractMesh, got {mesh!r}.")
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self._token = _abstract.set(self.mesh)
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        _abstract.reset(self._token)


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh, without its devices; none outside of `set_mesh`.

    >>> from numjet import sharding
    >>> sharding.get_abstract_mesh().axis_names
    ()
    """
    chosen = _abstract.get()
    if chosen is not None:
        return chosen
    mesh = get_mesh()
    return AbstractMesh((), ()) if mesh.empty else mesh.abstract_mesh


class set_mesh(contextlib.AbstractContextManager):  # noqa: N801 - a call and a context manager
    """Make `mesh` the current one: for good when called, for a block as a context manager.

    mesh: a Mesh, which `shard_map`, PartitionSpecs and `reshard` then mean where they name none.
    Raises TypeError for other objects.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     print(nj.reshard(jnp.arange(2), nj.P("x")))
    [0 1]
    """

    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: expected a Mesh, got {mesh!r}.")
        self._before = _current.set(mesh)
        self.mesh = mesh

    def __enter__(self) -> Mesh:
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        _current.reset(self._before)


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Any = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of the first devices, `axis_shapes` many along each axis.

    axis_shapes: an integer for each axis; axis_names: its name. axis_types: an AxisType for each
    axis, `Explicit` unless given. devices: those to take instead. Raises ValueError when there are
    fewer devices than the product (config `num_cpu_devices` sets how many virtual ones there are)
    and when names and sizes do not match.

    >>> import numjet as nj
    >>> nj.make_mesh((1, 1), ("x", "y")).shape
    OrderedDict([('x', 1), ('y', 1)])
    """
    given = list(all_devices() if devices is None else devices)
    shape = tuple(axis_shapes)
    count = math.prod(shape)
    if count > len(given):
        raise ValueError(
            f"make_mesh: axis_shapes {shape} needs {count} devices, there are {len(given)}. Set "
            "NUMJET_NUM_CPU_DEVICES (or config num_cpu_devices) to have more virtual devices."
        )
    table = np.empty(count, dtype=object)
    table[:] = given[:count]
    return Mesh(table.reshape(shape), axis_names, axis_types or (AxisType.Explicit,) * len(shape))


def axes_of(entry: Any) -> tuple:
    """The mesh axes in one entry of a PartitionSpec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(entry) if isinstance(entry, tuple | list) else (entry,)


class NamedSharding(Sharding):
    """Dimensions of an array split over named axes of a mesh.

    mesh: a Mesh or AbstractMesh. spec: a PartitionSpec (`P`), an entry for each dimension: the axis
    that it is split over, a tuple of them, or None. memory_kind: the name of a memory, kept; the
    CPU has one. Raises ValueError when the spec names an axis twice or one that the mesh has not;
    using it for a shape that it does not divide raises ValueError too.

    >>> import numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x", None))
    >>> layout.shard_shape((4, 3))
    (4, 3)
    """

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are of this process."""
        return Cluster.count == 1 or all(
            d.process_index == Cluster.index for d in self.mesh.devices.flat
        )

    def __init__(self, mesh: Any, spec: Any, *, memory_kind: str | None = None) -> None:
        spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        names = [name for entry in spec for name in axes_of(entry)]
        for name in names:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"NamedSharding: {spec} names the axis {name!r}; the mesh has the axes "
                    f"{mesh.axis_names}."
                )
        if len(set(names)) != len(names):
            twice = [name for name in mesh.axis_names if names.count(name) > 1]
            raise DuplicateSpecError(
                f"A single NamedSharding can cut at most one dimension over each axis of the mesh, "
                f"but {spec} names {', '.join(map(repr, twice))} twice."
            )
        self.mesh, self.spec = mesh, spec
        self.memory_kind = checked_memory(memory_kind)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        return set(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return all(self.mesh.shape[name] == 1 for entry in self.spec for name in axes_of(entry))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same layout with the name of another memory.

        kind: the name, which is kept: the CPU has one memory.

        >>> import numjet as nj
        >>> mesh = nj.make_mesh((1,), ("x",))
        >>> nj.NamedSharding(mesh, nj.P("x")).with_memory_kind("device").memory_kind
        'device'
        """
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another `mesh`, `spec` or `memory_kind`."""
        return NamedSharding(
            changes.get("mesh", self.mesh),
            changes.get("spec", self.spec),
            memory_kind=changes.get("memory_kind", self.memory_kind),
        )

    def _parts(self, shape: Sequence[int]) -> list[int]:
        if len(self.spec) > len(shape):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but "
                f"was applied to a value of rank {len(shape)}."
            )
        parts = [math.prod(self.mesh.shape[a] for a in axes_of(entry)) for entry in self.spec]
        parts += [1] * (len(shape) - len(parts))
        for i, (n, k) in enumerate(zip(shape, parts, strict=True)):
            if n % k:
                raise IndivisibleError(
                    f"NamedSharding: axis {i} of shape {tuple(shape)} must be a multiple of {k}, "
                    f"the number of parts that {self.spec} cuts it into over {self.mesh}: the "
                    f"dimension size is {n}."
                )
        return parts

    def shard_shape(self, shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        shape: of the array. Raises ValueError for a shape that the mesh does not divide.

        >>> import numjet as nj
        >>> mesh = nj.make_mesh((1,), ("x",))
        >>> nj.NamedSharding(mesh, nj.P("x")).shard_shape((4, 3))
        (4, 3)
        """
        return tuple([n // k for n, k in zip(shape, self._parts(shape), strict=True)])

    def layout(self, ndim: int, have: Any = None) -> tuple:
        """For each of `ndim` dimensions the axes of the mesh that cut it; UNCONSTRAINED ones are
        cut as `have` says."""
        out = []
        for i in range(ndim):
            entry = self.spec[i] if i < len(self.spec) else None
            if entry is PartitionSpec.UNCONSTRAINED:
                out.append(() if have is None else have[i])
            else:
                out.append(tuple([a for a in axes_of(entry) if self.mesh.shape[a] > 1]))
        return tuple(out)

    def of_layout(self, layout: Any) -> NamedSharding:
        """The sharding over the same mesh that a layout is; None is everywhere."""
        parts: list[Any] = [(a if len(a) > 1 else a[0]) if a else None for a in layout or ()]
        while parts and parts[-1] is None:
            parts.pop()
        return NamedSharding(self.mesh, PartitionSpec(*parts))

    def batched(self, dim: int, axes: Any = None) -> NamedSharding:
        """The sharding of an array with one more dimension, at `dim`, cut over `axes`; where that
        is None it is cut as it happens to be."""
        parts = list(self.spec) + [None] * (dim - len(self.spec))
        taken = [a for a in axes_of(axes) if any(a in axes_of(entry) for entry in parts)]
        parts.insert(dim, PartitionSpec.UNCONSTRAINED if axes is None or taken else axes)
        return self.update(spec=PartitionSpec(*parts))

    def block_index(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """What part of an array of `shape` the devices of this process hold together.

        Raises NotImplementedError where that is no block.
        """
        own = self.mesh.processes
        (at,) = np.argwhere(own.ranks == Cluster.index)[:1]
        here = dict(zip(self.mesh.axis_names, map(int, at), strict=True))
        sizes, out = self.mesh.shape, []
        for n, axes in zip(shape, self.layout(len(shape)), strict=True):
            which, count, inner = 0, 1, 1
            for a in axes:
                if own.sizes[a] > 1 and inner > 1:
                    raise NotImplementedError(
                        f"{self}: the parts of a process are no block of the array. Name axes of "
                        "devices of one process behind those of processes."
                    )
                which, count = which * own.sizes[a] + here[a], count * own.sizes[a]
                inner *= sizes[a] // own.sizes[a]
            step = n // count
            out.append(slice(which * step, (which + 1) * step))
        return tuple(out)

    def indices(self, shape: tuple) -> list[tuple[Device, tuple]]:
        """What part of an array each device holds, as pairs (device, tuple of slices).

        shape: of the array.

        >>> import numjet as nj
        >>> mesh = nj.make_mesh((1,), ("x",))
        >>> [part for _, part in nj.NamedSharding(mesh, nj.P("x")).indices((4,))]
        [(slice(None, None, None),)]
        """
        parts = self._parts(shape)
        sizes = self.mesh.shape
        out = []
        for place in np.ndindex(*self.mesh.devices.shape):
            at = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for i, n in enumerate(shape):
                which = 0
                for name in axes_of(self.spec[i]) if i < len(self.spec) else ():
                    which = which * sizes[name] + at[name]
                step = n // parts[i]
                whole = parts[i] == 1
                index.append(slice(None) if whole else slice(which * step, (which + 1) * step))
            out.append((self.mesh.devices[place], tuple(index)))
        return out

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, NamedSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.mesh, tuple(self.spec), self.memory_kind

    def __repr__(self) -> str:
        return (
            f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"
        )


@functools.cache
def unsharded(ndim: int) -> NamedSharding:
    """The sharding of an aval of `ndim` dimensions: none is split."""
    return NamedSharding(AbstractMesh((), ()), PartitionSpec(*[None] * ndim))


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding of whole arrays on one device.

    device: a Device. memory_kind: the name of a memory, kept.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> nj.device_put(1.0, sharding.make_single_device_sharding(nj.devices()[0]))
    Array(1., dtype=float32, weak_type=True)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """`xs` (a pytree of arrays) laid out as `out_shardings` say.

    out_shardings: a sharding, a PartitionSpec of the current mesh, or a pytree of them. As
    `lax.with_sharding_constraint`, but a layout must be given (TypeError for None). Derivative: the
    identity. Raises ValueError for a layout that does not fit a shape.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.reshard(jnp.arange(2), nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x")))
    Array([0, 1], dtype=int32)
    """
    if out_shardings is None:
        raise TypeError("reshard: out_shardings must be given, got None.")
    return _laid_out("reshard", xs, out_shardings)


def _same_axes(name: str, f: Any, axes: Any) -> Any:
    """`f` as it is, since axes of all types are treated alike; `axes` are checked when it runs."""
    wanted = axes_of(axes)

    def decorate(fun: Callable) -> Callable:
        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            known = get_abstract_mesh().axis_names
            for axis in wanted:
                if axis not in known:
                    raise ValueError(
                        f"{name}: the current mesh has no axis {axis!r}; its axes are {known}."
                    )
            return fun(*args, **kwargs)

        return call

    return decorate if f is None else decorate(f)


def auto_axes(f: Any = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f`, within which some axes of the mesh are of type Auto; its results are laid out as told.

    f: a function of pytrees of arrays; left out, the result is a decorator. axes: a name, several,
    or None for all. out_sharding: the layout of the results. Raises ValueError for an axis that the
    current mesh has not.

    >>> import numjet as nj
    >>> from numjet import sharding, numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     sharding.auto_axes(lambda x: 2 * x, out_sharding=nj.P("x"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    call = _same_axes("auto_axes", f, axes)
    if out_sharding is None:
        return call
    return functools.wraps(f)(
        lambda *args, **kwargs: _laid_out("auto_axes", call(*args, **kwargs), out_sharding)
    )


def explicit_axes(f: Any = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """`f`, within which some axes of the mesh are of type Explicit; its arguments are laid out as
    told.

    f: a function of pytrees of arrays; left out, the result is a decorator. axes: a name, several,
    or None for all. in_sharding: the layout of the positional arguments. Raises ValueError for an
    axis that the current mesh has not.

    >>> import numjet as nj
    >>> from numjet import sharding, numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     sharding.explicit_axes(lambda x: 2 * x, in_sharding=nj.P("x"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    call = _same_axes("explicit_axes", f, axes)
    if in_sharding is None:
        return call
    return functools.wraps(f)(
        lambda *args, **kwargs: call(*_laid_out("explicit_axes", args, in_sharding), **kwargs)
    )


def of_context(name: str, place: Any) -> Any:
    """A sharding from a PartitionSpec of the current mesh, or from one over the axes alone of that
    mesh; others as they are. Raises RuntimeError for a PartitionSpec where there is no mesh."""
    mesh = get_mesh()
    if isinstance(place, PartitionSpec):
        if mesh.empty:
            raise RuntimeError(
                f"{name} requires a non-empty mesh in context if you are passing PartitionSpecs "
                f"(got {place}). Define one with numjet.set_mesh(mesh), or pass "
                "NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, place)
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        if not mesh.empty and mesh.abstract_mesh == place.mesh:
            return place.update(mesh=mesh)
    return place


def constrained(x: Any, sharding: Sharding) -> Any:
    """An array, or a traced one, laid out as a sharding says."""
    if isinstance(x, Tracer):
        return mark(x, sharding)
    return device_put(x, sharding)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x, laid out as `shardings` say.

    x: a pytree of arrays. shardings: a sharding, a PartitionSpec of the current mesh, or a pytree
    of them. Inside a traced function it is a constraint that the partitioner keeps to. Derivative:
    the identity, with the same constraint. Raises ValueError for a layout that does not fit the
    shape, RuntimeError for a PartitionSpec where there is no mesh.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.jit(lambda x: lax.with_sharding_constraint(x * 2, layout))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    return _laid_out("with_sharding_constraint", x, shardings)


def laid_out(x: Any, shardings: Any) -> Any:
    """An array that a function makes, laid out as its caller asked for with `out_sharding`."""
    return x if over_no_mesh(shardings) else with_sharding_constraint(x, shardings)


def over_no_mesh(sharding: Any) -> bool:
    """Whether it is the sharding that an array's type shows outside of a mesh: as a request for a
    layout it asks for nothing."""
    return isinstance(sharding, NamedSharding) and sharding.mesh.empty


hooks.laid_out = laid_out
hooks.over_current_mesh = over_current_mesh


def _laid_out(name: str, x: Any, shardings: Any) -> Any:
    is_leaf = lambda s: s is None or isinstance(s, Sharding | PartitionSpec | Format)  # noqa: E731
    leaves, treedef = tree.tree_flatten(x)
    specs = tree.flatten_axes(f"{name}: shardings", treedef, shardings, is_leaf)
    out = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if isinstance(spec, Format):
            spec = spec.sharding
        spec = of_context(name, spec)
        if spec is not None:
            if not isinstance(spec, Sharding):
                raise TypeError(
                    f"{name}: expected a Sharding, a PartitionSpec or None for each array, got "
                    f"{spec!r} of type {type(spec).__name__}. Pass NamedSharding(mesh, spec)."
                )
            spec.shard_shape(tuple(np.shape(leaf)))
        out.append(leaf if spec is None else constrained(leaf, spec))
    return tree.tree_unflatten(treedef, out)


def _everywhere(devices: tuple) -> NamedSharding:
    """Whole arrays on each of several devices."""
    table = np.empty(len(devices), dtype=object)
    table[:] = devices
    return NamedSharding(Mesh(table, ("devices",)), PartitionSpec())


Remote.everywhere = _everywhere  # type: ignore[method-assign]
