"""Computing with arrays that are laid out over devices.

On the virtual devices of one process a program runs on whole arrays, and its results get the
layouts that the partitioner finds; on several processes the partitioned program runs
(`api.execution.processes`). Importing it fills `core.hooks.Sharded` in; the front door does. What
would break it: arguments whose shardings are of no kind of ours.
"""
from __future__ import annotations

import functools
import importlib
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import used_variables
from numjet.api.execution import dispatch
from numjet.api.placement.devices import (
    Sharding,
    SingleDeviceSharding,
    WhereRun,
    at_default,
    bound_device,
    device_put,
    kind_of,
    place,
)
from numjet.api.placement.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    check_devices_of,
    chosen_axes,
    current_mesh,
    devices_apart,
    set_for_arrays,
)
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base.errors import ShardingTypeError
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import Placed, any_placed, is_lenient
from numjet.core.cluster import Cluster
from numjet.core.evaluate import evaluate as evaluate_plain
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, bare
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive
from numjet.core.sharded import (
    ShardedArray,
    axes_named,
    constraint_of,
    counts_named,
    devices_named,
    place_of,
    returned,
)


@functools.cache
def _processes() -> Any:
    return importlib.import_module("numjet.api.execution.processes")


@functools.cache
def _propagate() -> Any:
    """The partitioner, which few programs need."""
    return importlib.import_module("numjet.partition.propagate")


@functools.cache
def _inspections() -> Any:
    return importlib.import_module("numjet.api.execution.inspections")


def common_sharding(
    values: Sequence[Any], name: str, one_operation: bool = False
) -> tuple[Any, Any]:
    """A sharding over the mesh that arrays are laid out over, and one device's sharding where all
    lie on it; None for what there is not.

    Raises ValueError where they lie on devices that differ, and where operands of one operation lie
    over meshes that may not meet.
    """
    over: Any = None
    single: SingleDeviceSharding | None = None
    first: Any = None
    for x in values:
        sharding = x._sharding if isinstance(x, ArrayImpl) else None
        if sharding is None or not sharding.binds:
            continue
        if first is None:
            first = x
        elif sharding is first._sharding:
            continue
        elif _devices(sharding) != _devices(first._sharding):
            at = [i for i, y in enumerate(values) if y is first or y is x]
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got argument {at[0]} of "
                f"{name} with shape {first.aval.str_short()} and with device ids {_ids(first)}, "
                f"and argument {at[-1]} of {name} with shape {x.aval.str_short()} and with device "
                f"ids {_ids(x)}. Move them to the same devices with numjet.device_put."
            )
        elif one_operation:
            _check_meshes(values, name)
        if hasattr(sharding, "layout"):
            over = sharding if over is None else over
        elif isinstance(sharding, SingleDeviceSharding):
            single = sharding
    return over, single


def check_context(values: Sequence[Any], name: str) -> None:
    """Raise ValueError where an array lies over another mesh than that of `set_mesh`, and one of
    the two has axes of type Explicit. Types of axes alone may differ in transposition: functions
    within which they do are transposed outside of them."""
    mesh = set_for_arrays.get()
    if mesh.empty or chosen_axes.get() is not None or current_mesh.get() is not mesh:
        return
    for x in values:
        sharding: Any = x._sharding if isinstance(x, ArrayImpl) else None
        if not hasattr(sharding, "layout"):
            if type(x) is ShardedArray and sharding.binds and isinstance(
                sharding, SingleDeviceSharding
            ):
                place, devices = (sharding._device,), mesh.devices_in_order
                if tuple(devices) == place:
                    continue
                what = f"an argument of {name} with shape {x.aval.str_short()}"
                raise devices_apart(what, place, "jit's context mesh", devices)
            continue
        own = sharding.mesh
        explicit = own.explicit_axes or mesh.explicit_axes
        if explicit and own.abstract_mesh != mesh.abstract_mesh and not (
            own.shape_tuple == mesh.shape_tuple and is_lenient()
        ):
            raise ValueError(
                f"For primitive operations of {name}, context mesh {mesh.abstract_mesh} should "
                f"match the aval mesh {own.abstract_mesh} for shape {x.aval.str_short()}. Enter "
                "the other mesh (numjet.set_mesh), or move the array to this one with "
                "numjet.device_put."
            )
        check_devices_of(x, name, "jit's context mesh", mesh)


def check_devices(closed: ClosedJaxpr, over: Any, name: str) -> None:
    """Raise ValueError where a program names shardings over other devices than those of `over`, the
    sharding of an argument or a result, than those of the mesh of `set_mesh`, or than each other.
    """
    first, what = None, f"an argument or result of {name}"
    if over is not None:
        first, mesh = _devices(over), set_for_arrays.get() if Sharded.contexts else None
        current = mesh is not None and not mesh.empty and chosen_axes.get() is None
        if current and current_mesh.get() is mesh and first != mesh.devices_in_order:
            raise devices_apart(what, first, "jit's context mesh", mesh.devices_in_order)
    for devices in devices_named(closed):
        if first is None:
            first, what = devices, f"a sharding inside of {name}"
        elif first != devices:
            raise devices_apart(what, first, "another sharding inside of it", devices)


def _check_meshes(arrays: Sequence[Any], name: str) -> None:
    """Raise ValueError where operands of one operation lie over meshes that differ, in the types of
    their axes too, if one has axes of type Explicit."""
    first: Any = None
    for x in arrays:
        mesh = getattr(x._sharding, "mesh", None) if type(x) is ShardedArray else None
        if not isinstance(mesh, Mesh) or mesh is first:
            continue
        if mesh.explicit_axes and x.aval.placed is None:
            continue  # of a function within which the axes are of other types
        if first is None:
            first = mesh
        elif (first.explicit_axes or mesh.explicit_axes) and (
            first.abstract_mesh != mesh.abstract_mesh
        ):
            raise ValueError(
                f"{name}: Mesh for all inputs should be equal. Got one mesh: {first.abstract_mesh} "
                f"and another mesh: {mesh.abstract_mesh}. Move the arrays to one mesh with "
                "numjet.device_put."
            )


def _check_memories(arrays: Sequence[Any], name: str) -> None:
    """Raise ValueError for operands of one operation that were put in memories of two kinds."""
    put = [x for x in arrays if x._sharding is not None and x._sharding.binds]
    if len(put) > 1 and len(kinds := {kind_of(x._sharding) for x in put}) > 1:
        raise ValueError(
            f"memory_space of all inputs passed to `{name}` must be the same. Got operands in "
            f"memories of the kinds {sorted(map(str, kinds))}: move them to one with "
            "numjet.device_put."
        )


def _check_programs_meshes(closed: ClosedJaxpr, arrays: Sequence[Any]) -> None:
    """`_check_meshes` of the operations of a program that read arguments of it."""
    meshes = {id(getattr(x._sharding, "mesh", None)) for x in arrays if type(x) is ShardedArray}
    if len(meshes) < 2:
        return
    jaxpr = closed.jaxpr
    given = dict(zip([*jaxpr.constvars, *jaxpr.invars], arrays, strict=True))
    for eqn in jaxpr.eqns:
        if not eqn.primitive.higher_order:
            read = [given[a] for a in eqn.invars if type(a) is Var and a in given]
            _check_meshes(read, eqn.primitive.name)


def _check_device(closed: ClosedJaxpr, arrays: Sequence[Any], over: Any, name: str) -> None:
    """Raise ValueError where a program over a mesh reads an argument that was put on a device."""
    jaxpr = closed.jaxpr
    for v, x in zip([*jaxpr.constvars, *jaxpr.invars], arrays, strict=True):
        own: Any = x._sharding if isinstance(x, ArrayImpl) else None
        if own is None or not own.binds or _devices(own) == _devices(over):
            continue
        if not any(v is read for atoms in [jaxpr.outvars, *[e.invars for e in jaxpr.eqns]]
                   for read in atoms):  # fmt: skip
            continue
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got an argument of {name} with "
            f"shape {x.aval.str_short()} and with device ids {_ids(x)}, and a constraint inside of "
            f"it with device ids {[d.id for d in _devices(over)]}. Move the argument to these with "
            "numjet.device_put."
        )


def _with_devices(wanted: Any, values: Sequence[Any], name: str) -> Any:
    """A result's sharding, where it names axes alone over the mesh that the arguments lie over."""
    if not isinstance(getattr(wanted, "mesh", None), AbstractMesh):
        return wanted
    over, axes = common_sharding(values, name)[0], wanted.mesh
    here = set_for_arrays.get() if over is None else over.mesh
    if here.size != axes.size:
        raise ValueError(
            f"out_shardings of {name} hold {wanted}, whose mesh has no devices, and no argument "
            "lies over as many. Name a Mesh, or put the arguments over one."
        )
    devices = np.reshape(here.devices_in_order, axes.axis_sizes)
    return wanted.update(mesh=Mesh(devices, axes.axis_names, axes.axis_types))


def _devices(sharding: Any) -> Any:
    if hasattr(sharding, "layout"):
        return sharding.mesh.devices_in_order
    if isinstance(sharding, SingleDeviceSharding):
        return (sharding._device,)
    return tuple(sharding.devices)


def _ids(x: Any) -> list[int]:
    return [d.id for d in _devices(x._sharding)]


def layout_in(mesh: Any, x: Any) -> Any:
    """The layout of a value in a mesh; None where it is not laid out over it."""
    sharding: Any = x._sharding if isinstance(x, ArrayImpl) else None
    if hasattr(sharding, "layout"):
        if mesh.alike(sharding.mesh):
            return sharding.layout(x.aval.ndim)
        return ((),) * x.aval.ndim  # another order of the same devices
    return None


def plain(x: Any) -> Any:
    """The same array without its layout."""
    return ArrayImpl(x._value, x.aval.bare()) if type(x) is ShardedArray else x


def run(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    name: str,
    outs: Sequence[Any] | None = None,
    execute: Callable[[list], list] | None = None,
    held: int = 0,
) -> list[Any]:
    """Run a jaxpr on arrays, some of them laid out over devices.

    outs: shardings of results, None where they follow from the arguments'. execute: how the whole
    program runs on plain arrays, `dispatch.run` by default. held: how many arrays, in front, the
    function closes over, which are a part of the program wherever they lie.
    """
    arrays = [x if isinstance(x, Array) else as_array(x) for x in args]
    read = _read(closed, arrays, held)
    if Sharded.contexts and name != "device_put":
        check_context(_operated(closed, arrays, read), name)
    if name != "device_put":
        _check_programs_meshes(closed, arrays)
    wanted = [None] * len(closed.out_avals) if outs is None else list(outs)
    if any([isinstance(getattr(s, "mesh", None), AbstractMesh) for s in wanted]):
        wanted = [_with_devices(s, read, name) for s in wanted]
    places = [_Place(s) for s in wanted if s is not None]
    over, single = common_sharding([*read, *places], name)
    if name != "device_put":
        check_devices(closed, over, name)
    if Sharded.marks:
        for named in counts_named(closed):
            there = over or constraint_of(closed) or hooks.sharding_of_nowhere(0)
            named.check(1 if there is None else there.mesh.size)
    if over is None:
        over = constraint_of(closed)
        if single is not None and over is not None and name != "device_put":
            _check_device(closed, arrays, over, name)
            for s in wanted:
                if s is not None and s.binds and _devices(s) != _devices(over):
                    inside = "sharding_constraint inside jit"
                    raise devices_apart(
                        "explicit output sharding", _devices(s), inside, _devices(over)
                    )
        here = set_for_arrays.get()
        if over is not None and here is not over.mesh and here.alike(over.mesh):
            over = over.over_mesh(here)  # within functions axes may have other types
        if over is None and name != "device_put":
            over, single = _bound(closed, single, name)
    elif Sharded.marks:
        # Arguments over another mesh of the same devices are moved.
        if (named := constraint_of(closed)) is None:
            over = _over_axes(over, axes_named(closed), name)
        elif not named.mesh.alike(over.mesh):
            over = named
    if Sharded.inspects:
        given = tuple([None if over is None else layout_in(over.mesh, x) for x in arrays])
        _inspections().inspected(closed, over, given, single)
    free = [x.aval.placed is None and Cluster.count == 1 for x in arrays[:held]]
    if over is not None and over.mesh.is_multi_process:
        wanted = [s or t for s, t in zip(wanted, _typed(closed, over), strict=True)]
        processes = _processes()
        if name != "device_put":
            arrays = [_within(over.mesh, x) for x in arrays]
            asked = [s if _over_other(over.mesh, s) else None for s in wanted]
            if any(s is not None for s in asked):  # moved there when they are computed
                wanted = [None if t else s for s, t in zip(wanted, asked, strict=True)]
                results = processes.run(closed, arrays, over, wanted, name)
                return [x if s is None else move(x, s)
                        for x, s in zip(results, asked, strict=True)]  # fmt: skip
        return processes.run(closed, arrays, over, wanted, name)
    if hooks.guards is not None:
        for x in arrays:
            hooks.guards.moved(x, over or single)
    values = [plain(x) for x in arrays]
    results = dispatch.run(bare(closed), values, name, True) if execute is None else execute(values)
    if over is None:
        if kind_of(single) != "device":  # where operands were; programs compute in the device's own
            single = single.with_memory_kind("device")
        return [_on(x, s or single) for x, s in zip(results, wanted, strict=True)]
    layouts = [layout_in(over.mesh, x) for x in arrays]
    layouts[:held] = [None if f else s for f, s in zip(free, layouts)]
    labels = _result_shardings(closed, over, layouts, wanted)
    if (first := _written_long(over.mesh, read)) is not None:
        told = [s or t for s, t in zip(wanted, _typed(closed, over), strict=True)]
        labels = [
            s if t is not None or a.placed is not None else _as_written(s, a.ndim, first)
            for s, t, a in zip(labels, told, closed.out_avals, strict=True)
        ]
    if over.mesh.are_all_axes_explicit:
        for i, j in returned(closed):
            own = getattr(arrays[j], "_sharding", None)
            if wanted[i] is None and (own is None or not own.binds):
                labels[i] = over.of_entries(())
    return [place(x, s) for x, s in zip(results, labels, strict=True)]


def _bound(closed: ClosedJaxpr, single: Any, name: str) -> tuple[Any, Any]:
    """Where a program runs that names no mesh, as `common_sharding` says it; `single`: where its
    arguments are. Raises ValueError where it names another device."""
    named = place_of(closed) if Sharded.marks else None
    if named is not None and named._device is not None:
        if single is not None and single._device is not named._device:
            raise devices_apart(
                f"an argument or result of {name}", _devices(single),
                "sharding_constraint inside jit", _devices(named),
            )  # fmt: skip
        return None, SingleDeviceSharding(named._device)
    if single is not None:
        return None, single
    if Sharded.placing and (over := hooks.sharding_of_nowhere(0)) is not None:
        return over, None
    return None, None if named is None else bound_device()


def _over_axes(over: Any, axes: Any, name: str) -> Any:
    """A sharding over the devices of `over`, along the axes that a constraint names without any
    devices."""
    mesh = over.mesh
    if axes is None or axes.shape_tuple == mesh.shape_tuple:
        return over
    if axes.size != mesh.size:
        raise ValueError(
            f"A sharding inside of {name} is over the axes {dict(axes.shape)}, of {axes.size} "
            f"devices, but the arguments lie over {mesh.size}: {dict(mesh.shape)}. Name a mesh of "
            "as many devices."
        )
    devices = mesh.devices.reshape(axes.axis_sizes)
    return NamedSharding(Mesh(devices, axes.axis_names, axes.axis_types), PartitionSpec())


def _written_long(mesh: Any, arrays: Sequence[Any]) -> Any:
    """The first of the arrays that lies over a mesh, where its spec is not the shortest that says
    how: entries of None at its end, or axes of one device. Else None."""
    for x in arrays:
        if type(x) is ShardedArray and getattr(x._sharding, "mesh", None) == mesh:
            return None if x._sharding.is_shortest(x.ndim) else x
    return None


def _as_written(found: Any, ndim: int, first: Any) -> Any:
    """The sharding of a result: that of an argument of as many dimensions if it lies so."""
    own = first._sharding
    if first.ndim != ndim or own.layout(ndim) != found.layout(ndim):
        return found
    return own if kind_of(own) == kind_of(found) else own.with_memory_kind(kind_of(found))


def _read(closed: ClosedJaxpr, arrays: Sequence[Any], held: int) -> Sequence[Any]:
    """The arguments that a program reads: where others lie makes no difference, nor where arrays
    do that its function closes over, but for those whose types say it."""
    if Cluster.count > 1:  # whose blocks only a partitioned program takes
        return arrays
    jaxpr = closed.jaxpr
    flags = closed.cache.get("reads")
    if flags is None:
        used = used_variables(jaxpr)
        flags = [v in used for v in (*jaxpr.constvars, *jaxpr.invars)]
        closed.cache["reads"] = flags
    return [
        x for i, (x, read) in enumerate(zip(arrays, flags, strict=True))
        if read and (i >= held or x.aval.placed is not None)
    ]


def _operated(closed: ClosedJaxpr, arrays: Sequence[Any], read: Sequence[Any]) -> list[Any]:
    """Those of the arrays that are read, by operations: not what is a result as it is."""
    jaxpr = closed.jaxpr
    flags = closed.cache.get("operated")
    if flags is None:
        used = {a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is Var}
        flags = [v in used for v in (*jaxpr.constvars, *jaxpr.invars)]
        closed.cache["operated"] = flags
    known = {id(x) for x in read}
    return [x for x, used in zip(arrays, flags, strict=True) if used and id(x) in known]


def typed(over: Any, aval: Any) -> Any:
    """The sharding that the type of a result says, where all axes of the mesh are Explicit."""
    if not over.mesh.are_all_axes_explicit:
        return None
    if aval.placed is not None:
        own = aval.placed.mesh
        if own.shape_tuple != over.mesh.shape_tuple and isinstance(own, Mesh):
            return aval.placed  # over other axes of the same devices
        return aval.placed.update(mesh=over.mesh)
    return over.of_entries((None,) * aval.ndim)


def _typed(closed: ClosedJaxpr, over: Any) -> list[Any]:
    """`typed` of each result."""
    key = ("typed", over.mesh)
    found = closed.cache.get(key)
    if found is None:
        found = closed.cache[key] = [typed(over, a) for a in closed.out_avals]
    return found


class _Place(ArrayImpl):
    """A sharding that takes part in the comparison of devices."""

    __slots__ = ()

    def __init__(self, sharding: Any) -> None:
        self._sharding = sharding
        self._aval = as_array(0).aval


def _on(x: Any, sharding: Any) -> Any:
    if sharding is None and Sharded.placing:
        sharding = hooks.sharding_of_nowhere(x.ndim)
    return at_default(x) if sharding is None else place(x, sharding)


def _result_shardings(
    closed: ClosedJaxpr, over: Any, ins: Sequence[Any], wanted: Sequence[Any]
) -> list[Any]:
    """The shardings of results, those that are wanted first, then what their types say."""
    untold = _untold(closed, over, ins)
    if not untold:
        wanted = [s or t for s, t in zip(wanted, _typed(closed, over), strict=True)]
    if None not in wanted:
        return list(wanted)
    key = ("shardings", over.mesh, tuple(ins))
    found = closed.cache.get(key)
    if found is None:
        propagate = _propagate()
        flat = propagate.flatten(closed)
        n = len(closed.jaxpr.constvars)
        plan = propagate.propagate(flat.jaxpr, [*ins[n:]], None, over.mesh.shape, True)
        pairs = zip(closed.out_avals, flat.jaxpr.outvars, strict=True)
        shown = () if untold else over.mesh.explicit_axes
        found = closed.cache[key] = [_labelled(over, a, plan.of(v), shown) for a, v in pairs]
    return [s or f for s, f in zip(wanted, found, strict=True)]


def read_in(closed: ClosedJaxpr, over: Any, ins: Sequence[Any]) -> list[Any]:
    """The layouts in which a program reads its arguments, `ins` where these are given."""
    flat = _propagate().flatten(closed)
    n = len(closed.jaxpr.constvars)
    plan = _propagate().propagate(flat.jaxpr, [*ins[n:]], None, over.mesh.shape, True)
    sizes, label = over.mesh.shape, _propagate().label
    return [*ins[:n], *[label(v.aval, plan.of(v), sizes) for v in flat.jaxpr.invars]]


def _untold(closed: ClosedJaxpr, over: Any, ins: Sequence[Any]) -> bool:
    """Whether an argument is cut over Explicit axes and its type does not say so: where a program
    was traced for one that lay nowhere, and in_shardings laid it out. Then types say nothing."""
    shown = over.mesh.explicit_axes
    return bool(shown) and any([
        n in shown
        for a, layout in zip(closed.in_avals, ins) if a.placed is None
        for axes in layout or () for n in axes
    ])  # fmt: skip


def _padded(found: Any, ndim: int) -> Any:
    spec = found.spec
    return found.update(spec=PartitionSpec(*spec, *[None] * (ndim - len(spec))))


def _labelled(over: Any, aval: Any, layout: Any, shown: Sequence[Any]) -> Any:
    """The sharding of a result: by the axes `shown` as its type says, by others as they were found.
    """
    if shown and layout is not None:
        layout = tuple([tuple([a for a in axes if a not in shown]) for axes in layout])
    found = over.of_layout(_propagate().label(aval, layout, over.mesh.shape))
    if dtypes.is_key(aval.dtype):  # whose words have an axis behind
        return _padded(found, aval.ndim)
    if aval.placed is not None:  # where nothing else cuts it, the type's own spec is shown
        own = aval.placed.update(mesh=over.mesh)
        return own if own.layout(aval.ndim) == found.layout(aval.ndim) else found
    # Of what is whole the type is shown, which says so of each axis.
    return _padded(found, aval.ndim) if shown and not found.spec else found


_operations: dict = Memo("layouts of operations", 4096)
_programs: dict = Memo("operations on arrays laid out over devices", 4096)


# Operations that change how an array is read, or where it lies, whatever the current mesh is.
_ANYWHERE = frozenset(("sharding_constraint", "mesh_cast", "random_wrap", "random_unwrap"))


def evaluate(primitive: Primitive, args: tuple, params: dict) -> Any:
    """One operation on arrays, some of them laid out over devices."""
    arrays: Any = tuple([x if isinstance(x, Array) else as_array(x) for x in args])
    if Sharded.contexts and primitive.name not in _ANYWHERE:
        check_context(arrays, primitive.name)
    over, single = common_sharding(arrays, primitive.name, True)
    if len(arrays) > 1 and arrays[0]._sharding is not arrays[1]._sharding:
        _check_memories(arrays, primitive.name)
    if hooks.guards is not None:
        for x in arrays:
            hooks.guards.moved(x, over or single)
    if primitive.lays_out and hasattr(params.get("sharding"), "mesh"):
        asked: Any = params["sharding"]
        here = Sharded.context()[0] if Sharded.contexts else None
        if here is not None and here.abstract_mesh == asked.mesh:  # as printed jaxprs have it
            asked = asked.update(mesh=here)
            params = {**params, "sharding": asked}
        if over is None and hasattr(asked.mesh, "devices_in_order"):
            over = asked
        elif over is None and (mesh := hooks.mapped_mesh()) is not None and (
            mesh.shape_tuple == asked.mesh.shape_tuple
        ):  # within shard_map, which sees the axes alone
            over = asked.update(mesh=mesh)
        elif over is not None and over.mesh.alike(asked.mesh):
            over = over.over_mesh(asked.mesh)
    if over is not None and over.mesh.is_multi_process:
        outs = run(_program(primitive, arrays, params), arrays, primitive.name)
        return outs if primitive.multiple_results else outs[0]
    avals = tuple([x.aval for x in arrays])
    if primitive.name == "concatenate" and Placed.active:
        _check_joined(arrays)
    types = primitive.out_avals(avals, params) if Placed.active else None
    values = tuple([plain(x) for x in arrays])
    out = values[0] if primitive.lays_out else evaluate_plain(primitive, values, params)
    results = out if primitive.multiple_results else [out]
    if over is None:
        asked = params.get("sharding") if primitive.lays_out else None
        if isinstance(asked, WhereRun):
            asked.check(1)
            asked = single or bound_device()
        results = [_on(x, asked if isinstance(asked, SingleDeviceSharding) else single)
                   for x in results]  # fmt: skip
    else:
        if types is None:
            types = [x.aval for x in results]
        elif not primitive.multiple_results:
            types = [types]
        if primitive.name == "mesh_cast":  # it lies as it did, over axes of other types
            over = over.over_mesh(over.mesh.update(axis_types=params["mesh"].axis_types))
            labels = [over]
        elif primitive.name == "sum_cast":
            labels = [_of_sums(over, types[0].placed)]
        else:
            labels = _operation_shardings(primitive, arrays, params, over, types)
        results = [place(x, s) for x, s in zip(results, labels, strict=True)]
    return results if primitive.multiple_results else results[0]


def _of_sums(over: NamedSharding, placed: NamedSharding | None) -> NamedSharding:
    """The layout of a value that is a part of a sum, or is none any more, inside of `shard_map`."""
    names = () if placed is None else placed.mesh.explicit_axes
    types = [
        AxisType.Explicit if n in names else AxisType.Auto if t is AxisType.Explicit else t
        for n, t in zip(over.mesh.axis_names, over.mesh.axis_types, strict=True)
    ]
    spec = PartitionSpec() if placed is None else placed.spec
    return NamedSharding(over.mesh.update(axis_types=tuple(types)), spec)


def _check_joined(arrays: tuple) -> None:
    """Raise ShardingTypeError where an array that lies over a mesh, cut nowhere, is to be joined
    with one that is cut over Explicit axes; what lies nowhere may be."""
    if any_placed([x.aval for x in arrays]) and any(
        [type(x) is ShardedArray and x.aval.placed is None for x in arrays]
    ):
        raise ShardingTypeError(
            "concatenate: All operands should have the same sharding. Got shardings "
            f"{[x.aval.sharding for x in arrays]}. Lay them out alike with numjet.reshard."
        )


def _operation_shardings(
    primitive: Primitive, arrays: tuple, params: dict, over: Any, outs: list
) -> list[Any]:
    if over.mesh.are_all_axes_explicit:
        return [typed(over, a) for a in outs]
    if primitive.lays_out and getattr(params["sharding"], "is_exact", False):
        return [NamedSharding(over.mesh, params["sharding"].spec)]
    layouts = tuple([layout_in(over.mesh, x) for x in arrays])
    key: Any
    try:
        key = (primitive, tuple([x.aval for x in arrays]), layouts, over.mesh, *params.items())
        found = _operations.get(key)
    except TypeError:  # params that do not hash
        key = found = None
    if found is None:
        eqn = Eqn([Var(x.aval) for x in arrays], [Var(a) for a in outs], primitive, params)
        jaxpr = Jaxpr([], eqn.invars, eqn.outvars, [eqn])  # type: ignore[arg-type]
        # Outside of programs JAX reads slices at places that its partitioner does not know.
        passed = primitive.name != "slice"
        plan = _propagate().propagate(jaxpr, layouts, None, over.mesh.shape, passed)
        shown = over.mesh.explicit_axes
        found = [_labelled(over, v.aval, plan.of(v), shown) for v in eqn.outvars]
        if key is not None:
            _operations[key] = found
    own = _spec_of(primitive, arrays, params, found[0])
    if own is not None:
        return [found[0].update(spec=own)]
    if not primitive.lays_out and (first := _written_long(over.mesh, arrays)) is not None:
        return [
            s if a.placed is not None else _as_written(s, a.ndim, first)
            for s, a in zip(found, outs, strict=True)
        ]
    return found


def _spec_of(primitive: Primitive, arrays: tuple, params: dict, found: Any) -> Any:
    """The spec that the result of an operation shows for the one that was found, over Auto axes,
    where something was asked for; None for no other."""
    if not found.mesh.are_all_axes_auto:
        return None
    if primitive.name == "random_unwrap":
        return PartitionSpec(*getattr(arrays[0]._sharding, "spec", ()), None)
    asked = params.get("sharding") if primitive.lays_out else None
    if getattr(asked, "mesh", None) != found.mesh:
        return None
    ends = [*found.spec, *[None] * len(asked.spec)]  # type: ignore[union-attr]
    open_ = PartitionSpec.UNCONSTRAINED
    pairs = [*zip(asked.spec, ends)]  # type: ignore[union-attr]
    while pairs and pairs[-1] == (open_, None) and len(pairs) > len(found.spec):
        pairs.pop()
    return PartitionSpec(*[end if entry is open_ else entry for entry, end in pairs])


def _program(primitive: Primitive, arrays: tuple, params: dict) -> ClosedJaxpr:
    """An operation as a program of one equation."""
    avals = tuple([x.aval for x in arrays])
    key: Any
    try:
        key = (primitive, avals, *params.items())
        found = _programs.get(key)
    except TypeError:
        key = found = None
    if found is None:
        outs = primitive.out_avals(avals, params)
        outs = outs if primitive.multiple_results else [outs]
        eqn = Eqn([Var(a) for a in avals], [Var(a) for a in outs], primitive, params)
        found = ClosedJaxpr(Jaxpr([], eqn.invars, eqn.outvars, [eqn]), [])  # type: ignore[arg-type]
        if key is not None:
            _programs[key] = found
    return found


def move(x: ShardedArray, sharding: Sharding) -> Any:
    """An array of several processes, laid out as `sharding` says."""
    here, there = x._sharding.mesh, getattr(sharding, "mesh", None)
    if isinstance(there, Mesh) and not there.alike(here):
        if set(there.devices_in_order) == set(here.devices_in_order):
            return _to_mesh(x, sharding)
    aval = x.aval
    key = ("move", aval)
    found = _programs.get(key)
    if found is None:
        var = Var(aval)
        found = _programs[key] = ClosedJaxpr(Jaxpr([], [var], [var], []), [])
    return run(found, [x], "device_put", [sharding])[0]


def _to_mesh(x: ShardedArray, sharding: Any) -> Any:
    """An array of several processes, over another mesh of the same devices.

    Where these stand in the same order, both layouts are ones over a mesh of finer axes; else all
    of the array comes to each process for a moment.
    """
    x.block_until_ready()
    here, there, aval = x._sharding.mesh, sharding.mesh, x.aval.bare()
    same = here.devices_in_order == there.devices_in_order
    steps = _common_steps(here.axis_sizes, there.axis_sizes) if same else None
    if steps is None:
        whole = move(x, x._sharding.update(spec=PartitionSpec()))
        block = np.asarray(whole._block[sharding.block_index(aval.shape)], order="C")
        return ShardedArray(block, aval, sharding)
    sizes = [b // a for a, b in zip(steps, steps[1:], strict=False)]
    names = [f"axis{i}" for i in range(len(sizes))]
    fine = Mesh(np.reshape(here.devices, sizes), names, (AxisType.Auto,) * len(sizes))

    def over_fine(given: Any) -> NamedSharding:
        ends = [1, *itertools.accumulate(given.mesh.axis_sizes, operator.mul)]
        part = {
            name: [n for n, at in zip(names, steps, strict=False) if ends[k] <= at < ends[k + 1]]
            for k, name in enumerate(given.mesh.axis_names)
        }
        layout = given.layout(aval.ndim)
        return NamedSharding(fine, PartitionSpec(
            *[tuple([n for a in axes for n in part[a]]) or None for axes in layout]))  # fmt: skip

    moved = move(ShardedArray(x._block, aval, over_fine(x._sharding)), over_fine(sharding))
    return ShardedArray(moved._block, aval, sharding)


def _over_other(mesh: Mesh, sharding: Any) -> bool:
    """Whether a sharding is one over another mesh of the same devices, none with Explicit axes."""
    there = getattr(sharding, "mesh", None)
    if not isinstance(there, Mesh) or mesh.alike(there):
        return False
    if mesh.explicit_axes or there.explicit_axes:
        return False
    return set(mesh.devices_in_order) == set(there.devices_in_order)


def _within(mesh: Mesh, x: Any) -> Any:
    """An operand of a program over a mesh of several processes. One that lies over another mesh of
    the same devices is moved: cut in as many parts where axes of the mesh give these, else whole.
    """
    if type(x) is not ShardedArray or not _over_other(mesh, x._sharding):
        return x
    there: Any = x._sharding.mesh
    left, entries = list(mesh.axis_names), []
    for axes in x._sharding.layout(x.ndim):
        parts, chosen = math.prod([there.shape[a] for a in axes]), []
        for name in list(left):
            if parts % mesh.shape[name] == 0 and parts > 1:
                chosen.append(name)
                left.remove(name)
                parts //= mesh.shape[name]
        entries.append(tuple(chosen) if parts == 1 and chosen else None)
    return device_put(x, NamedSharding(mesh, PartitionSpec(*entries)))


def _common_steps(one: Sequence[int], other: Sequence[int]) -> list[int] | None:
    """The products of first axes that either mesh has, if each divides the next; else None."""
    found = {1}
    for sizes in (one, other):
        found |= set(itertools.accumulate(sizes, operator.mul))
    steps = sorted(found)
    fits = all(b % a == 0 for a, b in zip(steps, steps[1:], strict=False))
    return steps if fits else None


Sharded.run, Sharded.evaluate, Sharded.move = run, evaluate, move
Remote.propagated, Remote.check_context = _result_shardings, check_context
Remote.read_in = read_in
