"""Meshes of devices and how arrays are laid out over them: `Mesh`, `PartitionSpec`,
`NamedSharding`.

On the virtual devices of one process an array's memory is one block; a sharding labels which part
belongs to which device, and `addressable_shards` shows the parts. What would break it: a spec that
names an axis that the mesh has not (refused when the sharding is made).
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.api.devices import Device, Sharding, device_put, devices as all_devices
from numjet.base import tree
from numjet.core.trace import Tracer


class AxisType(enum.Enum):
    """How an axis of a mesh takes part in sharding; all are treated alike here."""

    Auto = 0
    Explicit = 1
    Manual = 2


class PartitionSpec(tuple):
    """For each dimension of an array the mesh axis it is split over: a name, a tuple of names, or
    None. Trailing dimensions left out are not split."""

    __slots__ = ()
    UNCONSTRAINED = type("UNCONSTRAINED", (), {"__repr__": lambda self: "UNCONSTRAINED"})()

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec{tuple.__repr__(self)}"

    def __reduce__(self) -> tuple:
        return PartitionSpec, tuple(self)


P = PartitionSpec


class Mesh:
    """An array of devices with a name for each of its axes. `with mesh:` makes it the current one.

    >>> import numjet as nj
    >>> dict(nj.make_mesh((1,), ("x",)).shape)
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
        self.axis_types = tuple(axis_types) if axis_types else (AxisType.Auto,) * len(names)

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def shape_tuple(self) -> tuple:
        return tuple(self.shape.items())

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def size(self) -> int:
        return self.devices.size

    @property
    def empty(self) -> bool:
        return self.devices.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def local_mesh(self) -> Mesh:
        return self

    @property
    def local_devices(self) -> list[Device]:
        return list(self.devices.flat)

    is_multi_process = False

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self.devices.shape, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        _tokens.append(_current.set(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        _current.reset(_tokens.pop())

    def _key(self) -> tuple:
        return self.axis_names, self.devices.shape, tuple(d.id for d in self.devices.flat)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {n}" for name, n in self.shape.items())
        return f"Mesh({sizes})"


class AbstractMesh:
    """The axes of a mesh, without devices."""

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None
    ) -> None:
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh: {len(self.axis_names)} names for {len(self.axis_sizes)} sizes."
            )
        self.axis_types = (
            tuple(axis_types) if axis_types else (AxisType.Auto,) * len(self.axis_names)
        )

    @property
    def shape(self) -> OrderedDict:
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple:
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AbstractMesh) and self.shape_tuple == other.shape_tuple

    def __hash__(self) -> int:
        return hash(self.shape_tuple)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {n}" for name, n in self.shape.items())
        return f"AbstractMesh({sizes})"


_NO_MESH = Mesh(np.empty((), dtype=object), ())
_current: ContextVar[Mesh] = ContextVar("numjet.mesh", default=_NO_MESH)
_tokens: list = []


def get_mesh() -> Mesh:
    """The mesh of the enclosing `with mesh:` or `set_mesh`; an empty one outside."""
    return _current.get()


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh."""
    mesh = get_mesh()
    return AbstractMesh((), ()) if mesh.empty else mesh.abstract_mesh


class set_mesh(contextlib.AbstractContextManager):  # noqa: N801 - a call and a context manager
    """Make `mesh` the current one: for good when called, for a block as a context manager."""

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
    *,
    devices: Sequence[Device] | None = None,
    axis_types: Any = None,
) -> Mesh:
    """A mesh of the first devices, `axis_shapes` many along each axis.

    Raises ValueError when there are fewer devices (config `num_cpu_devices` sets how many virtual
    ones there are).
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
    return Mesh(table.reshape(shape), axis_names, axis_types)


def axes_of(entry: Any) -> tuple:
    """The mesh axes in one entry of a PartitionSpec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(entry) if isinstance(entry, tuple | list) else (entry,)


class NamedSharding(Sharding):
    """Dimensions of an array split over named axes of a mesh.

    Raises ValueError when the spec names an axis twice or one that the mesh has not.
    """

    is_fully_addressable = True

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
            raise ValueError(f"NamedSharding: {spec} names an axis twice.")
        self.mesh, self.spec = mesh, spec
        self.memory_kind = memory_kind or "unpinned_host"

    @property
    def device_set(self) -> set[Device]:
        return set(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.mesh.shape[name] == 1 for entry in self.spec for name in axes_of(entry))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def _parts(self, shape: Sequence[int]) -> list[int]:
        if len(self.spec) > len(shape):
            raise ValueError(
                f"NamedSharding: {self.spec} has {len(self.spec)} entries for an array of shape "
                f"{tuple(shape)}."
            )
        parts = [math.prod(self.mesh.shape[a] for a in axes_of(entry)) for entry in self.spec]
        parts += [1] * (len(shape) - len(parts))
        for i, (n, k) in enumerate(zip(shape, parts, strict=True)):
            if n % k:
                raise ValueError(
                    f"NamedSharding: axis {i} of shape {tuple(shape)} must be a multiple of {k}, "
                    f"the number of parts that {self.spec} cuts it into over {self.mesh}."
                )
        return parts

    def shard_shape(self, shape: tuple) -> tuple:
        return tuple([n // k for n, k in zip(shape, self._parts(shape), strict=True)])

    def indices(self, shape: tuple) -> list[tuple[Device, tuple]]:
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
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """`x`, laid out as `shardings` say (a sharding, a PartitionSpec of the current mesh, or a
    pytree of them).

    Concrete arrays are labelled; inside a traced function it changes nothing, since the memory of
    virtual devices is one. Raises ValueError for a layout that does not fit the shape.
    """
    is_leaf = lambda s: s is None or isinstance(s, Sharding | PartitionSpec)  # noqa: E731
    if is_leaf(shardings):
        specs = [shardings] * len(tree.tree_leaves(x))
    else:
        specs = tree.broadcast_prefix(shardings, x, is_leaf=is_leaf)
    leaves, treedef = tree.tree_flatten(x)
    out = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if isinstance(spec, PartitionSpec):
            if get_mesh().empty:
                raise ValueError(
                    "with_sharding_constraint: a PartitionSpec needs a mesh. Use it inside "
                    "`with mesh:`, or pass NamedSharding(mesh, spec)."
                )
            spec = NamedSharding(get_mesh(), spec)
        if spec is not None:
            spec.shard_shape(tuple(np.shape(leaf)))
        out.append(leaf if isinstance(leaf, Tracer) or spec is None else device_put(leaf, spec))
    return tree.tree_unflatten(treedef, out)
