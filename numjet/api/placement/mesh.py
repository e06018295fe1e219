"""Meshes of devices with names for their axes: `Mesh`, `AbstractMesh`, and which one is current.

For `numjet.sharding`, and for what lays arrays out over devices (`api.placement.sharding`,
`api.maps.shard_map`, `api.maps.mapping`). The current mesh is a context variable: each thread has
its own. What would break it: a mesh whose key leaves out what tells two meshes apart, since
compiled programs are looked up by it.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import math
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from numjet.api.placement.devices import Device, devices as all_devices
from numjet.api.placement.process_mesh import Processes, processes_of
from numjet.base import config
from numjet.base.record import record
from numjet.core.cluster import Cluster
from numjet.core.hooks import Sharded
from numjet.core.sharded import ShardedArray
from numjet.core.trace import EVAL, current_trace


class AxisType(enum.Enum):
    """How an axis of a mesh takes part in sharding: the partitioner decides (Auto), it is a part of
    the arrays' types (Explicit), or a function is mapped over it (Manual)."""

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self) -> str:
        return self.name


class _Axes:
    """What the axes of a mesh say of themselves; kinds give `axis_names`, `axis_sizes`,
    `axis_types`."""

    axis_names: tuple
    axis_types: tuple
    axis_sizes: tuple
    shape: Any

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"cannot assign to field {name!r} of a {type(self).__name__}: make another with update."
        )

    def __str__(self) -> str:
        sizes = ", ".join(f"{n!r}: {k}" for n, k in self.shape.items())
        device = getattr(self, "abstract_device", None)
        of = ", ".join(f"{k}={v}" for k, v in vars(device).items()) if device else ""
        parts = [sizes or "()", f"axis_types={self.axis_types}", of]
        return f"{type(self).__name__}({', '.join(part for part in parts if part)})"

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    @functools.cached_property
    def auto_axes(self) -> tuple:
        """The names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @functools.cached_property
    def explicit_axes(self) -> tuple:
        """The names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @functools.cached_property
    def manual_axes(self) -> tuple:
        """The names of the axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def _any_axis_explicit(self) -> bool:
        """Whether an axis is of type Explicit; jaxns asks by this name."""
        return bool(self.explicit_axes)

    def _all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @functools.cached_property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes and each is of type Auto."""
        return self._all(AxisType.Auto)

    @functools.cached_property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes and each is of type Explicit."""
        return self._all(AxisType.Explicit)

    @functools.cached_property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes and each is of type Manual."""
        return self._all(AxisType.Manual)


def _axis_types(given: Any, count: int) -> tuple:
    """A type for each of `count` axes, from one for all, one each, or None."""
    if given is None:
        return (AxisType.Auto,) * count
    found = (given,) * count if isinstance(given, AxisType) else tuple(given)
    if not all(isinstance(t, AxisType) for t in found):
        raise TypeError(
            f"axis_types must be of type numjet.sharding.AxisType, got {given!r} of types "
            f"{', '.join([type(t).__name__ for t in found])}."
        )
    if len(found) != count:
        raise ValueError(
            f"axis_types must give an AxisType for each of the {count} axes, got {given!r}."
        )
    return found


class _OneForAll(type):
    """Equal meshes of the same devices are one object, as long as somebody holds it."""

    known: WeakValueDictionary = WeakValueDictionary()

    def __call__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Any:
        made = super().__call__(devices, axis_names, axis_types)
        key = (cls, tuple(made.devices.flat), *made._key[:3])
        return _OneForAll.known.setdefault(key, made)


class Mesh(_Axes, contextlib.ContextDecorator, metaclass=_OneForAll):
    """An array of devices with a name for each of its axes. Inside of `with mesh:` a PartitionSpec
    given to `with_sharding_constraint` means it; `set_mesh` makes it the current one for all else.

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

    devices: np.ndarray

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}.")
        members = np.array(devices, dtype=object)
        for d in members.flat:
            if d is not None and not hasattr(d, "id"):
                raise AttributeError(
                    f"Mesh: {d!r} of type {type(d).__name__!r} has no attribute 'id': it is no "
                    "device. numjet.devices() lists them."
                )
        members.flags.writeable = False  # compiled programs are looked up by them
        if members.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                "its second argument (`axis_names`), but got devices.ndim == "
                f"{members.ndim} and len(axis_names) == {len(names)}: {names} for the shape "
                f"{members.shape}."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis names must differ, got {names}.")
        types = _axis_types(axis_types, len(names))
        self.__dict__.update(devices=members, axis_names=names, axis_types=types)

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def shape_tuple(self) -> tuple:
        """(name, size) of each axis."""
        return tuple(self.shape.items())

    @property
    def axis_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes of the axes."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """How many devices there are."""
        return len(self.devices_in_order)

    @property
    def empty(self) -> bool:
        """Whether there are no devices; of a mesh of one, which needs no axes, False."""
        return not self.devices_in_order

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
        return [d for d in self.devices_in_order if d.process_index == Cluster.index]

    @functools.cached_property
    def is_multi_process(self) -> bool:
        """Whether its devices are of several processes."""
        return len({d.process_index for d in self.devices_in_order}) > 1

    @functools.cached_property
    def is_of_this_process(self) -> bool:
        """Whether all devices are of this process."""
        return all(d.process_index == Cluster.index for d in self.devices_in_order)

    @functools.cached_property
    def devices_in_order(self) -> tuple:
        """The devices, the last axis running fastest."""
        return tuple([d for d in self.devices.flat if d is not None])

    @property
    def _flat_devices_tuple(self) -> tuple:
        """`devices_in_order`, by the name that programs written for JAX read."""
        return self.devices_in_order

    @functools.cached_property
    def processes(self) -> Processes:
        """The processes of the devices, as a mesh."""
        return processes_of(self)

    is_scalar = False

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with other `devices`, `axis_names` or `axis_types`; None leaves them."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        kind = next(iter(self.devices_in_order), None) if self.axis_names else None
        device = kind and AbstractDevice(kind.device_kind, None, kind.platform)
        return AbstractMesh(
            self.devices.shape, self.axis_names, self.axis_types, abstract_device=device
        )

    def __enter__(self) -> Mesh:
        warnings.warn(
            "`with mesh:` context manager has been deprecated. Please use `with "
            "numjet.set_mesh(mesh):` instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        note_context()
        _meshes_before.set((*_meshes_before.get(), entered_mesh.get()))
        entered_mesh.set(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        *rest, before = _meshes_before.get()
        _meshes_before.set(tuple(rest))
        entered_mesh.set(before)

    @functools.cached_property
    def _key(self) -> tuple:
        ids = tuple([d.id for d in self.devices_in_order])
        return self.axis_types, self.axis_names, self.devices.shape, ids

    def alike(self, other: Any) -> bool:
        """Whether another mesh has these devices along these axes, whatever their types."""
        return isinstance(other, Mesh) and self._key[1:] == other._key[1:]

    def __eq__(self, other: Any) -> bool:
        return self is other or isinstance(other, Mesh) and self._key == other._key

    def __reduce__(self) -> tuple:
        # Without what was found out, of which hashes are a process's own.
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return super().__str__() if self.devices_in_order else "Mesh()"

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )


@record(frozen=True)
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


class AbstractMesh(_Axes):
    """The names and sizes of a mesh's axes, without devices. Asking for its devices raises
    ValueError.

    axis_sizes: an integer for each axis; axis_names: its name; axis_types: an AxisType each,
    `Auto` unless given. abstract_device: kept for programs that ask. Compares by value.

    >>> import numjet as nj
    >>> dict(nj.AbstractMesh((2, 4), ("x", "y")).shape)
    {'x': 2, 'y': 4}
    """

    abstract_device: AbstractDevice | None

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[str],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        sizes, names = tuple(axis_sizes), tuple(axis_names)
        if len(sizes) != len(names):
            raise ValueError(f"AbstractMesh: {len(names)} names for {len(sizes)} sizes.")
        if len(set(names)) != len(names):
            raise ValueError(f"AbstractMesh: axis names must differ, got {names}.")
        self.__dict__.update(axis_sizes=sizes, axis_names=names, abstract_device=abstract_device,
                             axis_types=_axis_types(axis_types, len(names)))  # fmt: skip

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
        """The product of the sizes; 0 where there are no axes."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

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

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **changes: Any
    ) -> AbstractMesh:
        """The mesh with other `axis_sizes`, `axis_names`, `axis_types` or `abstract_device`; None
        leaves the axes as they are."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **changes},
        )

    def update_axis_types(self, name_to_type: dict[str, AxisType]) -> AbstractMesh:
        """The mesh whose axes named in `name_to_type` have another type."""
        pairs = zip(self.axis_names, self.axis_types)
        types = [name_to_type.get(n, t) for n, t in pairs]
        return self.update(axis_types=types)

    def _key(self) -> tuple:
        return self.axis_names, self.axis_sizes, self.axis_types, self.abstract_device

    def __eq__(self, other: Any) -> bool:
        return self is other or isinstance(other, AbstractMesh) and self._key() == other._key()

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key())

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_hash"}  # processes hash otherwise

    __repr__ = _Axes.__str__


_NO_MESH, _NO_AXES = Mesh(np.empty((), dtype=object), ()), AbstractMesh((), ())
current_mesh: ContextVar[Mesh] = ContextVar("numjet.mesh", default=_NO_MESH)
# The mesh of `with mesh:`, which constraints alone mean.
entered_mesh: ContextVar[Mesh] = ContextVar("numjet.entered_mesh", default=_NO_MESH)
# Those that it was before, in the blocks that this thread is in.
_meshes_before: ContextVar[tuple] = ContextVar("numjet.meshes_before", default=())
# The mesh of `set_mesh`, over which all arrays lie; within functions axes may have other types.
set_for_arrays: ContextVar[Mesh] = ContextVar("numjet.mesh_of_arrays", default=_NO_MESH)


def _context() -> tuple:
    mesh, entered = current_mesh.get(), entered_mesh.get()
    known = [None if m is _NO_MESH else m for m in (mesh, entered)]
    return *known, chosen_axes.get()


def note_context() -> None:
    """Note that a mesh becomes the current one; before the first nobody has to ask for it."""
    if not Sharded.contexts:
        Sharded.contexts = True
        config.changed()


Sharded.context = _context


def context_mesh() -> Mesh:
    """The mesh of the enclosing `set_mesh`; an empty one outside. A function that is traced is
    traced again under another one."""
    Sharded.reads += 1
    return current_mesh.get()


def check_entered(mesh: Any, aval: Any) -> None:
    """Raise ValueError for values over Explicit axes of several devices of which nothing says where
    they are computed: no operand lies over the mesh, and nobody is within `set_mesh`."""
    if isinstance(mesh, Mesh) and mesh.explicit_axes and mesh.size > 1 and (
        context_mesh().empty and chosen_axes.get() is None
    ):
        raise ValueError(
            f"Length of device assignment 1 is not equal to the size of the mesh {mesh.size} of "
            f"{aval.str_short()} over {mesh.abstract_mesh}. Please enter your `jit` into a mesh "
            "context via `jax.set_mesh`: `with numjet.set_mesh(mesh):`."
        )


def check_all_entered(values: Sequence[Any]) -> None:
    """`check_entered` for the meshes over which arrays of a computation lie that begins with one
    that lies nowhere."""
    if current_trace() is EVAL:
        for x in values:
            if type(x) is ShardedArray:
                check_entered(getattr(x._sharding, "mesh", None), x.aval)


def mesh_of_constraints() -> Mesh:
    """`context_mesh`, or that of the enclosing `with mesh:`."""
    mesh = context_mesh()
    return entered_mesh.get() if mesh.empty else mesh


def get_mesh() -> Mesh:
    """The mesh of the enclosing `set_mesh`; an empty one outside.

    Raises ValueError inside of a traced function, which knows the axes alone: `get_abstract_mesh`.

    >>> import numjet as nj
    >>> from numjet import sharding
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     print(sharding.get_mesh().axis_names)
    ('x',)
    """
    if current_trace() is not EVAL:
        raise ValueError(
            "`get_mesh` can only be used outside of `numjet.jit`. Maybe you want "
            "`numjet.sharding.get_abstract_mesh()`?"
        )
    return context_mesh()


chosen_axes: ContextVar[AbstractMesh | None] = ContextVar("numjet.abstract_mesh", default=None)


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
            raise ValueError(
                "Expected mesh of type `jax.sharding.AbstractMesh`. Got type: "
                f"{type(mesh)}: use_abstract_mesh takes no other."
            )
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        before = get_abstract_mesh()
        if not before.empty and not self.mesh.empty and before.size != self.mesh.size:
            raise ValueError(
                "use_abstract_mesh cannot change the size of the mesh. Got new mesh: "
                f"{self.mesh} with size={self.mesh.size} and prev mesh: {before} with "
                f"size={before.size}."
            )
        note_context()
        self._token = chosen_axes.set(self.mesh)
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        chosen_axes.reset(self._token)


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh, without its devices; none outside of `set_mesh`.

    >>> from numjet import sharding
    >>> sharding.get_abstract_mesh().axis_names
    ()
    """
    mesh = context_mesh()
    chosen = chosen_axes.get()
    if chosen is not None:
        return chosen
    return _NO_AXES if mesh.empty else mesh.abstract_mesh


def entering() -> Any:
    """What makes the mesh of `with mesh:` the current one, over which arrays lie, for a call of
    `pjit`; None where there is none, or it is."""
    if not Sharded.contexts:
        return None
    mesh = entered_mesh.get()
    return None if mesh.empty or current_mesh.get() is mesh else _entered(mesh)


@contextlib.contextmanager
def _entered(mesh: Mesh) -> Iterator[None]:
    before = get_abstract_mesh()
    if not before.empty and before.size != mesh.size:
        raise ValueError(
            f"pjit cannot change the size of the mesh: it is called within {before}, and the mesh "
            f"of `with mesh:` is {mesh}."
        )
    here, lying, axes = current_mesh.set(mesh), set_for_arrays.set(mesh), chosen_axes.set(None)
    places = _places(mesh)
    Sharded.placing += places  # quick calls know nothing of it: `pjit` makes none
    try:
        yield
    finally:
        Sharded.placing -= places
        current_mesh.reset(here)
        set_for_arrays.reset(lying)
        chosen_axes.reset(axes)


class set_mesh(contextlib.AbstractContextManager):  # noqa: N801 - a call and a context manager
    """Make `mesh` the current one: for good when called, for a block as a context manager.

    mesh: a Mesh, which `shard_map`, PartitionSpecs and `reshard` then mean where they name none;
    None for none. Raises ValueError for other objects, and inside of a traced function.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     print(nj.reshard(jnp.arange(2), nj.P("x")))
    [0 1]
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is None:
            mesh = _NO_MESH
        if not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: expected a Mesh (numjet.make_mesh), got {mesh!r} of type "
                f"{type(mesh).__name__}."
            )
        if current_trace() is not EVAL:
            raise ValueError(
                "set_mesh can only be used outside of functions that are traced (jit, grad, vmap). "
                "Enter it around the call, or use sharding.use_abstract_mesh inside."
            )
        if mesh.manual_axes:
            raise ValueError(
                f"mesh {mesh} contains manual axes which is not allowed when using `set_mesh`. "
                "Use numjet.shard_map to map a function over them."
            )
        note_context()
        before = set_for_arrays.get()
        self._before = current_mesh.set(mesh), set_for_arrays.set(mesh)
        self._change = _places(mesh) - _places(before)
        _note_placing(self._change)

    def __enter__(self) -> None:
        """Nothing to do: the mesh is the current one since the call."""

    def __exit__(self, *exc: Any) -> None:
        current_mesh.reset(self._before[0])
        set_for_arrays.reset(self._before[1])
        _note_placing(-self._change)


def _places(mesh: Mesh) -> bool:
    """Whether new arrays lie over a mesh that is the current one: where one process has it all."""
    return not (mesh.empty or mesh.is_multi_process)


def _note_placing(change: int) -> None:
    """Note that new arrays lie over a mesh from now on (1), or that one block of those ended (-1).
    Prepared calls know one of the two."""
    if change:
        Sharded.placing += change
        config.changed()


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
    and when names and sizes do not match, IndexError for an axis of none.

    >>> import numjet as nj
    >>> dict(nj.make_mesh((1, 1), ("x", "y")).shape)
    {'x': 1, 'y': 1}
    """
    given = list(all_devices() if devices is None else devices)
    shape = tuple(axis_shapes)
    if not all([isinstance(n, int | np.integer) for n in shape]):
        raise ValueError(
            "`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got "
            f"{axis_shapes!r}."
        )
    if isinstance(axis_types, tuple | list) and len(axis_types) != len(shape):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got axis_names="
            f"{axis_names} and axis_types={tuple(axis_types)}."
        )
    count = math.prod(shape)
    if count == 0:
        raise IndexError(
            f"make_mesh: axis_shapes {shape} leave no device. Give each axis one at least."
        )
    if count > len(given):
        raise ValueError(
            f"make_mesh: axis_shapes {shape} needs {count} devices, there are {len(given)}. Set "
            "NUMJET_NUM_CPU_DEVICES (or config num_cpu_devices) to have more virtual devices."
        )
    table = np.empty(count, dtype=object)
    table[:] = given[:count]
    return Mesh(table.reshape(shape), axis_names, axis_types or (AxisType.Explicit,) * len(shape))


def devices_apart(
    what: str, first: Sequence[Any], other: str, second: Sequence[Any]
) -> ValueError:
    """The error of two parts of one program over devices that differ."""
    ids = [[d.id for d in devices] for devices in (first, second)]
    link = " and with" if " with shape " in what else " with"
    return ValueError(
        f"Received incompatible devices for jitted computation. Got {what}{link} device ids "
        f"{ids[0]}, and {other} with device ids {ids[1]}. All have to lie over the same devices, "
        "in the same order: move arrays with numjet.device_put."
    )


def check_devices_of(x: Any, name: str, other: str, place: Any) -> None:
    """Raise ValueError where an array lies over other devices than those of a mesh, or on another
    than that of the sharding of one device. name: whose argument it is; other: what `place` is of.
    """
    own = getattr(x, "_sharding", None)
    if own is None or not own.binds:
        return
    have, want = _in_order(own), _in_order(place)
    if have and want and have != want:
        what = f"an argument of {name} with shape {x.aval.str_short()}"
        raise devices_apart(what, have, other, want)


def _in_order(place: Any) -> tuple[Any, ...]:
    """The devices of a mesh, of a sharding over one, or of one of a single device; else none."""
    mesh = getattr(place, "mesh", place)
    if isinstance(mesh, Mesh):
        return mesh.devices_in_order
    device = getattr(place, "_device", None)
    return () if device is None else (device,)
