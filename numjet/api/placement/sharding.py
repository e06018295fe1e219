"""How arrays are laid out over a mesh of devices: `PartitionSpec`, `NamedSharding`, and functions
that ask for a layout.

The virtual devices of a process share one block of memory; a sharding says which part belongs to
which device, and `addressable_shards` shows the parts. For `numjet.sharding`, for functions that
take `out_sharding`, and for the transformations over devices; meshes are in `api.placement.mesh`.
What would break it: a spec that names an axis that the mesh has not (refused when the sharding is
made).
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numjet.api.placement.devices import (
    Device,
    Sharding,
    SingleDeviceSharding,
    kind_of,
)
from numjet.api.placement.mesh import (
    AbstractMesh,
    Mesh,
    chosen_axes,
    get_abstract_mesh,
    set_for_arrays,
)
from numjet.base.config import flag
from numjet.base.errors import DuplicateSpecError, IndivisibleError
from numjet.core.cluster import Cluster
from numjet.core.hooks import Remote
from numjet.core.memo import remembered
from numjet.core.memories import MemorySpace, checked_memory

memory = types.SimpleNamespace(Space=MemorySpace)


# Whether the types of arrays leave axes of one device out.
without_ones = flag("jax_remove_size_one_mesh_axis_from_type")


class _Unconstrained:
    """The entry of a dimension that the partitioner lays out as it likes. There is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> tuple:
        return getattr, (P, "UNCONSTRAINED")


class P:
    """For each dimension of an array the mesh axis that it is split over: a PartitionSpec.

    partitions: a name, a tuple of names (split over the first, each part over the second), or None.
    Trailing dimensions left out are not split. unreduced, reduced: sets of axes of type Explicit
    over which the array is a sum of parts that is pending, or one value whose cotangents are such
    sums. It is a sequence of its entries, a leaf of pytrees, and equal to no tuple.

    >>> import numjet as nj
    >>> nj.P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("partitions", "unreduced", "reduced")
    UNCONSTRAINED = _Unconstrained()
    partitions: tuple
    unreduced: frozenset
    reduced: frozenset

    def __new__(
        cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> P:  # pickles that JAX wrote call it alone
        self = object.__new__(cls)
        assign = functools.partial(object.__setattr__, self)
        assign("partitions", tuple([_entry(e) for e in partitions]))
        named = {name for entry in self.partitions for name in axes_of(entry)}
        for what, names in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(names, set | frozenset):
                raise TypeError(
                    f"{what} argument of PartitionSpec should be of type `frozenset` or `set`, got "
                    f"{names!r}."
                )
            if None in names:
                raise ValueError(
                    f"{what} cannot contain None: all of its elements are axes of the mesh, got "
                    f"{names!r}."
                )
            if named & names:
                raise ValueError(
                    f"partitions cannot overlap with {what} axes passed to PartitionSpec. Got "
                    f"partitions: {partitions} and {what} axes: {names}."
                )
        if unreduced & reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got "
                f"unreduced: {unreduced} and reduced: {reduced}."
            )
        assign("unreduced", frozenset(unreduced))
        assign("reduced", frozenset(reduced))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r} of a PartitionSpec: make another.")

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, at: Any) -> Any:
        return self.partitions[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __contains__(self, entry: Any) -> bool:
        return entry in self.partitions

    def index(self, value: Any) -> int:
        """The first dimension that has this entry. Raises ValueError where none has."""
        return self.partitions.index(_entry(value))

    def count(self, value: Any) -> int:
        """How many dimensions have this entry."""
        return self.partitions.count(_entry(value))

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> P:
        """The spec with other `partitions`, `unreduced` or `reduced`; None leaves them."""
        return P(
            *self.partitions if partitions is None else partitions,
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def __add__(self, other: Any) -> P:
        if isinstance(other, P):
            unreduced, reduced = self.unreduced | other.unreduced, self.reduced | other.reduced
            return P(*self, *other, unreduced=unreduced, reduced=reduced)
        return self.update(partitions=(*self, *other)) if isinstance(other, tuple) else (
            NotImplemented
        )

    def __radd__(self, other: Any) -> P:
        if not isinstance(other, tuple):
            return NotImplemented
        return self.update(partitions=(*other, *self))

    def _key(self) -> tuple:
        return self.partitions, self.unreduced, self.reduced

    def __eq__(self, other: Any) -> bool:
        return self is other or isinstance(other, P) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [*map(repr, self)]
        parts += [
            f"{what}={set(names)!r}"
            for what, names in (("unreduced", self.unreduced), ("reduced", self.reduced))
            if names
        ]
        return f"P({', '.join(parts)}{',' if len(self) == len(parts) == 1 else ''})"

    def __reduce__(self) -> tuple:
        return _spec, self._key()


PartitionSpec = P


def _entry(entry: Any) -> Any:
    """An entry as it is kept: a tuple of one name is the name, one of none is None."""
    if not isinstance(entry, tuple | list):
        return entry
    if any([isinstance(name, tuple) for name in entry]):
        raise ValueError(f"A tuple inside of a PartitionSpec cannot hold another, got {entry!r}.")
    return tuple(entry) if len(entry) > 1 else entry[0] if entry else None


def _spec(partitions: tuple, unreduced: frozenset, reduced: frozenset) -> PartitionSpec:
    return P(*partitions, unreduced=unreduced, reduced=reduced)


def axes_of(entry: Any) -> tuple:
    """The mesh axes in one entry of a PartitionSpec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(entry) if isinstance(entry, tuple | list) else (entry,)


class NamedSharding(Sharding):
    """Dimensions of an array split over named axes of a mesh.

    mesh: a Mesh or AbstractMesh. spec: a PartitionSpec (`P`), an entry for each dimension: the axis
    that it is split over, a tuple of them, or None. memory_kind: the name of a memory of the
    devices, "device" by default. Raises ValueError when the spec names an axis twice or one that
    the mesh has not, and for a memory that the devices lack; using it for a shape that it does not
    divide raises ValueError too.

    >>> import numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x", None))
    >>> layout.shard_shape((4, 3))
    (4, 3)
    """

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are of this process."""
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(
                "is_fully_addressable is not implemented for AbstractMesh: it has no devices."
            )
        return Cluster.count == 1 or self.mesh.is_of_this_process

    mesh: Any
    spec: P
    memory_kind: str | None

    def __init__(self, mesh: Any, spec: Any, memory_kind: str | None = None) -> None:
        _check_mesh(mesh)
        if not isinstance(spec, P):
            raise TypeError(
                f"NamedSharding: spec must be a PartitionSpec (numjet.P), got {spec!r} of type "
                f"{type(spec).__name__}."
            )
        if P.UNCONSTRAINED in spec and not mesh.auto_axes and not mesh.empty:
            raise ValueError(
                f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got "
                f"mesh axis_types: {mesh.axis_types}"
            )
        self._fill(mesh, spec, memory_kind)

    def _fill(self, mesh: Any, spec: P, memory_kind: str | None) -> None:
        """The fields, checked; entries may be open over axes of any type, as those of mapped
        dimensions are."""
        for what, sums in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
            for name in sums:
                if name not in mesh.axis_names:
                    raise ValueError(
                        f"{what.capitalize()} axes {name} is not found in mesh.axis_names="
                        f"{mesh.axis_names}. Got pspec={spec}."
                    )
            if not sums <= set(mesh.explicit_axes):
                raise ValueError(
                    f"{what.capitalize()} axes can only refer to mesh axes that is of type "
                    f"`Explicit`. Got {what} axes: {sums} and mesh: {mesh}."
                )
        names = [name for entry in spec for name in axes_of(entry)]
        for name in names:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"Resource axis: {name} of {spec} is not found in mesh: "
                    f"{mesh.axis_names}."
                )
        if len(set(names)) != len(names):
            twice = [name for name in mesh.axis_names if names.count(name) > 1]
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for "
                f"`{', '.join(map(str, twice))}`."
            )
        alone = isinstance(mesh, AbstractMesh)
        kind = None if alone and memory_kind is None else checked_memory(
            memory_kind, None if alone else next(iter(mesh.devices.flat), None))
        self.__dict__.update(mesh=mesh, spec=spec, memory_kind=kind)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("mesh", "spec", "memory_kind"):
            raise AttributeError(
                f"property {name!r} of 'NamedSharding' object has no setter: make another with "
                "update."
            )
        super().__setattr__(name, value)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        return set(self.mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        """How many devices hold parts."""
        return self.mesh.size

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("_device_assignment is not implemented for AbstractMesh: it has none.")
        return self.mesh.devices_in_order

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of an array of `ndim` dimensions into the same kind of
        memory of the same devices; of an AbstractMesh, whether both cut it over the same axes."""
        if not isinstance(self.mesh, AbstractMesh):
            if isinstance(other, NamedSharding):
                other = other.without_open_end(ndim)
            return super(NamedSharding, self.without_open_end(ndim)).is_equivalent_to(other, ndim)
        mine, theirs = (
            (s.mesh, s.spec.unreduced, kind_of(s), s.layout(ndim))  # type: ignore[attr-defined]
            for s in (self, other)
        )
        return mine == theirs

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where an array of this shape has fewer dimensions than the spec."""
        if len(self.spec) > len(aval_shape):
            self._parts(tuple(aval_shape))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        apart = [*map(axes_of, self.spec), tuple(self.spec.unreduced)]
        return all(self.mesh.shape[name] == 1 for axes in apart for name in axes)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same layout in another memory of the devices.

        kind: its name. The CPU has one memory, which all names mean.

        >>> import numjet as nj
        >>> mesh = nj.make_mesh((1,), ("x",))
        >>> nj.NamedSharding(mesh, nj.P("x")).with_memory_kind("device").memory_kind
        'device'
        """
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another `mesh`, `spec` or `memory_kind`."""
        made = NamedSharding.__new__(NamedSharding)
        made._fill(
            changes.get("mesh", self.mesh),
            changes.get("spec", self.spec),
            changes.get("memory_kind", self.memory_kind),
        )
        return made

    def _parts(self, shape: Sequence[int], short: type[Exception] = ValueError) -> list[int]:
        ends = short is IndexError and not any(map(axes_of, self.spec[len(shape):]))
        if len(self.spec) > len(shape) and not ends:
            raise short(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but "
                f"was applied to a value of rank {len(shape)}."
                + ("" if shape else " For scalars the PartitionSpec should be P().")
            )
        entries = self.spec[:len(shape)]
        parts = [math.prod(self.mesh.shape[a] for a in axes_of(entry)) for entry in entries]
        parts += [1] * (len(shape) - len(parts))
        for i, (n, k) in enumerate(zip(shape, parts, strict=True)):
            if n % k:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {i} is partitioned {k} times, but "
                    f"the dimension size is {n} (full shape: {tuple(shape)}, per-dimension tiling "
                    f"factors: {parts} should evenly divide the shape): it must be a multiple of "
                    f"{k}."
                )
        return parts

    def check_placed_sizes(self, shape: tuple) -> None:
        """Raise ValueError where Explicit axes do not divide the axes of such a shape."""
        sizes, shown = self.mesh.shape, self.mesh.explicit_axes
        for i, (n, entry) in enumerate(zip(shape, self.spec)):
            k = math.prod([sizes[a] for a in axes_of(entry) if a in shown])
            if n % k:
                raise ValueError(
                    f"Sharding spec {tuple(self.spec)} implies that array axis {i} is partitioned "
                    f"{k} times, but does not evenly divide the dimension size {n}. Got shape: "
                    f"{tuple(shape)} and sharding {self}"
                )

    def _check_placed(self, shape: tuple) -> None:
        self.check_placed_sizes(shape)
        self._check_shape(shape)

    def without_open_end(self, ndim: int) -> NamedSharding:
        """The sharding without the entries past an array's dimensions, where all of these are None:
        one PartitionSpec may serve arrays of several ranks."""
        entries = tuple(self.spec)
        if len(entries) <= ndim or any(entry is not None for entry in entries[ndim:]):
            return self
        return self.update(spec=self.spec.update(partitions=entries[:ndim]))

    def in_full(self, ndim: int) -> NamedSharding:
        """With an entry for each dimension where all axes are Explicit, as types have it."""
        open_ = ndim - len(self.spec)
        if open_ <= 0 or not self.mesh.are_all_axes_explicit:
            return self
        return self.update(spec=self.spec.update(partitions=(*self.spec, *(None,) * open_)))

    def dividing(self, shape: Sequence[int]) -> NamedSharding:
        """The sharding without axes of type Auto that do not divide a dimension, which a constraint
        inside of a program may name."""
        sizes, auto = self.mesh.shape, set(self.mesh.auto_axes)
        parts = [
            None
            if set(axes_of(entry)) <= auto and n % math.prod([sizes[a] for a in axes_of(entry)])
            else entry
            for entry, n in zip(self.spec, shape)
        ]
        parts += self.spec[len(parts) :]
        return self.update(spec=self.spec.update(partitions=parts))

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        global_shape: of the array. Raises ValueError for a shape that the mesh does not divide.

        >>> import numjet as nj
        >>> mesh = nj.make_mesh((1,), ("x",))
        >>> nj.NamedSharding(mesh, nj.P("x")).shard_shape((4, 3))
        (4, 3)
        """
        parts = self._parts(global_shape, IndexError)
        return tuple([n // k for n, k in zip(global_shape, parts, strict=True)])

    def layout(self, ndim: int, have: Any = None, alone: bool = False) -> tuple:
        """For each of `ndim` dimensions the axes of the mesh that cut it; UNCONSTRAINED ones are
        cut as `have` says. alone: with axes of the mesh of length 1."""
        if have is not None or alone:
            return self._axes_by_dimension(ndim, have, alone)
        found = self._layouts.get(ndim)
        if found is None:
            found = self._layouts[ndim] = self._axes_by_dimension(ndim, None, False)
        return found

    @functools.cached_property
    def _layouts(self) -> dict:
        return {}  # what `layout` said, by the number of dimensions

    def _axes_by_dimension(self, ndim: int, have: Any, alone: bool) -> tuple:
        out = []
        named = {a for entry in self.spec for a in axes_of(entry)}
        for i in range(ndim):
            entry = self.spec[i] if i < len(self.spec) else None
            if entry is PartitionSpec.UNCONSTRAINED:
                left = () if have is None else have[i]
                out.append(tuple([a for a in left if a not in named]))
            else:
                out.append(
                    tuple([a for a in axes_of(entry) if alone or self.mesh.shape[a] > 1])
                )
        return tuple(out)

    def is_shortest(self, ndim: int) -> bool:
        """Whether the spec is the shortest one that lays arrays of `ndim` dimensions out so."""
        found = self._shortest.get(ndim)
        if found is None:
            own = self.of_layout(self.layout(ndim)).spec
            found = self._shortest[ndim] = own == self.spec or any(self.sums)
        return found

    @functools.cached_property
    def _shortest(self) -> dict:
        return {}  # what `is_shortest` said

    @property
    def sums(self) -> tuple[frozenset, frozenset]:
        """The axes over which values are parts of sums that are pending (unreduced), and over which
        they are one value whose cotangents are such parts (reduced)."""
        return self.spec.unreduced, self.spec.reduced

    def for_cotangents(self) -> NamedSharding:
        """That of cotangents: pending sums have one value for a cotangent, and the other way."""
        unreduced, reduced = self.sums
        if not unreduced and not reduced:
            return self
        return self.update(spec=self.spec.update(unreduced=reduced, reduced=unreduced))

    def over_mesh(self, mesh: Any) -> NamedSharding:
        """The same layout over a mesh whose axes have other types: of sums only those of type
        Explicit tell."""
        kept = frozenset(mesh.explicit_axes)
        sums = {"unreduced": self.spec.unreduced & kept, "reduced": self.spec.reduced & kept}
        return self.update(mesh=mesh, spec=self.spec.update(**sums))

    @functools.cached_property
    def _of_types(self) -> dict:
        return {}  # what `placed` said, by the number of dimensions

    def placed(self, shape: Sequence[int]) -> NamedSharding | None:
        """The part of it that the types of arrays show: an entry for each dimension, of the axes of
        type Explicit, and sums over these. None where there is nothing to show."""
        ndim, key = len(shape), (len(shape), without_ones.value)
        if key not in self._of_types:
            shown = self.mesh.explicit_axes
            if without_ones.value:
                shown = [a for a in shown if self.mesh.shape[a] > 1]
            entries = [
                tuple([a for a in axes_of(self.spec[i]) if a in shown])
                if i < len(self.spec) else ()
                for i in range(ndim)
            ]  # fmt: skip
            sums = [names & set(shown) for names in self.sums]
            told = any(entries) or any(sums)
            self._of_types[key] = self.of_entries(entries, *sums) if told else None
        return self._of_types[key]

    def of_entries(
        self, entries: Sequence[Any], unreduced: frozenset = frozenset(),
        reduced: frozenset = frozenset(),
    ) -> NamedSharding:  # fmt: skip
        """The sharding over the same mesh that cuts dimensions over these axes, with these sums."""
        axes = [axes_of(entry) for entry in entries]
        parts = [(a if len(a) > 1 else a[0]) if a else None for a in axes]
        return NamedSharding(self.mesh, PartitionSpec(*parts, unreduced=unreduced, reduced=reduced))

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
        return self.update(spec=self.spec.update(partitions=parts))

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
        return [*_indices(self, tuple(shape))]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, NamedSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.mesh, self.spec, self.memory_kind

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


@remembered("parts of shardings", 256)
def _indices(sharding: NamedSharding, shape: tuple) -> list[tuple[Device, tuple]]:
    parts, mesh = sharding._parts(shape, IndexError), sharding.mesh
    sizes, out = mesh.shape, []
    named = [axes_of(entry) for entry in sharding.spec] + [()] * len(shape)
    for place in np.ndindex(*mesh.devices.shape):
        at = dict(zip(mesh.axis_names, place, strict=True))
        index = []
        for n, count, axes in zip(shape, parts, named, strict=False):
            which = 0
            for name in axes:
                which = which * sizes[name] + at[name]
            step = n // count
            whole = count == 1
            index.append(slice(None) if whole else slice(which * step, (which + 1) * step))
        out.append((mesh.devices[place], tuple(index)))
    return out


def of_aval(ndim: int, placed: NamedSharding | None) -> NamedSharding:
    """The sharding of an aval: over the axes alone of a mesh, the current one where nothing is
    placed."""
    if placed is not None:
        mesh, chosen = placed.mesh.abstract_mesh, chosen_axes.get()
        if chosen is not None and chosen.manual_axes and chosen.shape_tuple == mesh.shape_tuple:
            mesh = chosen
        return NamedSharding(mesh, placed.spec)
    return _unsharded(ndim, get_abstract_mesh())


def of_nowhere(ndim: int) -> NamedSharding | None:
    mesh = set_for_arrays.get()
    if mesh.empty:
        return None
    return NamedSharding(mesh, PartitionSpec(*[None] * (ndim if mesh.explicit_axes else 0)))


def _check_mesh(mesh: Any) -> None:
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"NamedSharding: mesh must be a Mesh (numjet.make_mesh), got {mesh!r} of type "
            f"{type(mesh).__name__}."
        )


@remembered("shardings of nothing", 256)
def _unsharded(ndim: int, mesh: AbstractMesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding of whole arrays on one device.

    device: a Device. memory_kind: the name of one of its memories, "device" by default. Raises
    ValueError for a memory that the device lacks.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> nj.device_put(1.0, sharding.make_single_device_sharding(nj.devices()[0]))
    Array(1., dtype=float32, weak_type=True)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def _everywhere(devices: tuple) -> NamedSharding:
    """Whole arrays on each of several devices."""
    table = np.empty(len(devices), dtype=object)
    table[:] = devices
    return NamedSharding(Mesh(table, ("devices",)), PartitionSpec())


Remote.everywhere = _everywhere
