"""What the stages of compiling say of a function's arguments and results.

`api.compiled.stages` is built on this. What would break it: a stage without `_traced`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import used_variables
from numjet.api.execution import dispatch
from numjet.api.placement.devices import (
    SingleDeviceSharding,
    bound_device,
    devices,
    in_memories,
    place,
)
from numjet.api.placement.layout import Format, Layout, order_of
from numjet.api.placement.mesh import AbstractMesh, Mesh
from numjet.base import tree
from numjet.base.errors import JaxRuntimeError
from numjet.base.log import without_effect
from numjet.base.record import record
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.hooks import Remote
from numjet.core.jaxpr import Var
from numjet.core.remote import Expected
from numjet.core.sharded import constraint_of, place_of
from numjet.core.trace import current_trace

# Arguments that lie otherwise than a program was compiled for: how many of them an error tells.
_SHOWN_MISMATCHES = 5
# Options of XLA's compiler that are known by name; those that begin with "xla_" are, too.
_OPTIONS = frozenset(["exec_time_optimization_effort", "memory_fitting_effort",
                      "memory_fitting_level", "optimization_level",
                      "num_replicas", "num_partitions"])  # fmt: skip


def check_compiler_options(given: Any, name: str | None = None) -> None:
    """Raise TypeError where these are no options, JaxRuntimeError for unknown ones, and ValueError
    where they are of a function, `name`, that is called in another that is traced. XLA's own are
    accepted; that they change nothing is said once for each, by the logger `numjet`."""
    if given is None:
        return
    if name is not None and current_trace().staging is not None:
        raise ValueError(
            "`compiler_options` can only be passed to top-level `jax.jit`, since one program is "
            f"compiled for all within it. Got compiler_options={given} specified on a nested jit "
            f"with name: {name}."
        )
    if not isinstance(given, Mapping):
        raise TypeError(
            f"compiler_options must be a dictionary of names and values, got {given!r}."
        )
    for name in given:
        if name not in _OPTIONS and not str(name).startswith("xla_"):
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: No such compile option: {name!r}. numjet's compiler has none; "
                "XLA's are accepted and change nothing."
            )
        without_effect(f"compiler option {name!r}", "it is one of XLA's compiler")


@record(frozen=True)
class ArgInfo:
    """An argument of a traced function: its shape and dtype, and whether its buffer is given away.

    shape and dtype are the argument's; donated: whether its buffer is given away.
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The argument's shape."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The argument's dtype."""
        return self._aval.dtype


class CompiledMemoryStats(dict):
    """Bytes by what they are for, as items and as attributes. Nothing is on another host; the peak
    is what all of them take together."""

    _SHOWN = tuple([
        f"{where}{what}_size_in_bytes"
        for where in ("", "host_")
        for what in ("generated_code", "argument", "output", "alias", "temp")
    ])

    def __init__(self, facts: Mapping[str, int]) -> None:
        super().__init__({**dict.fromkeys(self._SHOWN, 0), **facts})
        arguments, outputs, shared, temporary = [
            self[f"{what}_size_in_bytes"] for what in ("argument", "output", "alias", "temp")
        ]
        self.setdefault("peak_memory_in_bytes", arguments + outputs - shared + temporary)

    def __repr__(self) -> str:
        return f"CompiledMemoryStats({', '.join([f'{n}={self[n]}' for n in self._SHOWN])})"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name.startswith("_")] + list(self)

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"memory_analysis has no {name!r}; it has {', '.join(self)}."
            ) from None


class Described:
    """The arguments and results of a stage, in the structures of the function's: positional
    arguments as a tuple, the others as a dictionary."""

    _traced: Any
    refs: Any  # of a traced function
    _no_kwargs = False  # that arguments have names; programs written for JAX read it

    def _arguments(self, of: Callable[[int, ShapedArray], Any]) -> Any:
        entry = self._traced._entry
        n, count = len(entry.consts), self._traced.in_tree.num_leaves
        avals = entry.closed.in_avals[n : n + count]  # without references that are closed over
        traced: Any = self._traced
        for i, ref in traced.refs.items() if self is traced else ():
            avals[i] = ref.aval
        return tree.tree_unflatten(self._traced.in_tree, [of(i, a) for i, a in enumerate(avals)])

    @property
    def args_info(self) -> Any:
        """An ArgInfo for each argument."""
        donated = set(self.donate_argnums)
        return self._arguments(lambda i, aval: ArgInfo(aval, i in donated))

    @property
    def in_avals(self) -> Any:
        """The aval of each argument."""
        return self._arguments(lambda i, aval: aval)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which arguments, counted as leaves, give their buffers away."""
        return tuple(self._traced._entry.asked)

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments: ((positional ones), {others})."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._traced._entry.out_tree


class Placed(Described):
    """What a compiled stage says beside that: where arguments and results live."""

    _executable: Any

    def _home(self) -> Any:
        """The sharding of whole arrays where the program runs."""
        if self._traced.one is not None:
            return self._traced.one
        place = self._traced.place or (devices()[0],)
        return SingleDeviceSharding(place[0]) if len(place) == 1 else Remote.everywhere(place)

    @property
    def input_shardings(self) -> Any:
        """Where each argument is expected: where they lay, else on the first device, or beside
        others that are cut over a mesh as the program reads it; None for one that is not read."""
        return self._arguments(lambda i, aval: self._expected[i])

    @functools.cached_property
    def _expected(self) -> list:
        layouts = self._traced.layouts
        over = next((s for s in layouts if hasattr(s, "of_layout")), None)
        used = self._used()
        if over is None:
            return [(s or self._home()) if read else None
                    for s, read in zip(layouts, used, strict=True)]  # fmt: skip
        closed, n = self._traced._entry.closed, len(self._traced._entry.consts)
        ins = [None] * n + [
            None if s is None else s.layout(a.ndim)
            for s, a in zip(layouts, closed.in_avals[n:], strict=True)
        ]
        read = Remote.read_in(closed, over, ins)[n:]
        return [
            (s or over.of_layout(found)) if kept else None
            for s, found, kept in zip(layouts, read, used, strict=True)
        ]

    def _used(self) -> list[bool]:
        """Which arguments the program reads, or is told to keep."""
        entry, kept = self._traced._entry, getattr(self._traced._fun, "keep_unused", False)
        found = used_variables(entry.closed.jaxpr)
        n, count = len(entry.consts), self._traced.in_tree.num_leaves
        return [kept or v in found for v in entry.closed.jaxpr.invars[n : n + count]]

    @property
    def output_shardings(self) -> Any:
        """Where each result is."""
        count, layouts = len(self._traced._entry.out_avals), self._traced.layouts
        over = next((s for s in layouts if hasattr(s, "of_layout")), None)
        wanted = self._traced.results
        over = over or next((s for s in wanted or () if hasattr(s, "mesh")), None)
        if over is None:
            over = constraint_of(self._traced._entry.closed)
        several = len(self._traced.place or ()) > 1
        found = self._executable.outs if several else [self._home()] * count
        if over is not None and not several:
            closed, n = self._traced._entry.closed, len(self._traced._entry.consts)
            ins = [None] * n + [
                None if s is None else s.layout(a.ndim)
                for s, a in zip(layouts, closed.in_avals[n:], strict=True)
            ]
            found = Remote.propagated(closed, over, ins, wanted or [None] * count)
        return tree.tree_unflatten(self.out_tree, list(found))

    @property
    def out_info(self) -> Any:
        """The shape, dtype and sharding of each result."""
        return tree.tree_map(
            lambda x, sharding, order: x.update(
                weak_type=False, sharding=self._format(x, sharding, order[0])
            ),
            self._traced.out_info,
            self.output_shardings,
            tree.tree_unflatten(self.out_tree, [(order,) for order in self._orders_out()]),
            is_leaf=None,
        )

    def _orders_out(self) -> list:
        """The Layout that was asked for each result, None where there was none."""
        fun, entry = self._traced._fun, self._traced._entry
        if not getattr(fun, "orders", False) or fun.layouts[1] is None:
            return [None] * len(entry.out_avals)
        module = importlib.import_module("numjet.api.compiled.jit_layouts")
        return module.orders_out(fun, entry.out_tree)

    @property
    def input_formats(self) -> Any:
        """How each argument lies in memory, and where."""
        used = self._used()
        return self._arguments(
            lambda i, aval: self._format(
                aval, self._traced.layouts[i], self._traced.orders[i]
            ) if used[i] else Format()
        )  # fmt: skip

    @property
    def output_formats(self) -> Any:
        """How each result lies in memory, and where."""
        return tree.tree_map(lambda x: x.format, self.out_info)

    def _format(self, x: Any, sharding: Any, order: Any) -> Any:
        order = tuple(range(len(x.shape))) if order is None else order.major_to_minor
        return Format(Layout(order, ()), sharding or self._home())


def expected(told: list) -> list[Any]:
    """Of the shardings of arguments those over the devices of a mesh; None for others."""
    return [
        s if s is not None and hasattr(getattr(s, "mesh", None), "devices_in_order") else None
        for s in told
    ]


def meshes_of_results(entry: Any, layouts: Sequence[Any]) -> list[Any]:
    """For each result the axes, all Explicit, over which an argument lies that it is computed from;
    None where there is none. layouts: of the arguments."""
    jaxpr, found = entry.closed.jaxpr, {}
    for v, sharding in zip(jaxpr.invars[len(entry.consts) :], layouts):
        mesh = getattr(sharding, "mesh", None)
        if mesh is not None and mesh.are_all_axes_explicit:
            found[v] = mesh.abstract_mesh
    if not found:
        return [None] * len(jaxpr.outvars)
    for eqn in jaxpr.eqns:
        mesh = next((found[x] for x in eqn.invars if isinstance(x, Var) and x in found), None)
        if mesh is not None:
            found.update(dict.fromkeys(eqn.outvars, mesh))
    return [found.get(x) if isinstance(x, Var) else None for x in jaxpr.outvars]


def one_device(lie: list, ins: Sequence[Any], outs: Any, entry: Any) -> Any:
    """The sharding of the one of several CPU devices that a program is bound to: by those of its
    arguments, by what was asked for these and its results, or by what it names. None: there is
    none."""
    named = place_of(entry.closed) if entry.mesh_inside else None
    told = [*ins, *(outs or ()), *lie, named]
    told = [s for s in told if s is not None]
    if not told or len(devices()) == 1 or any([hasattr(s, "mesh") for s in told]):
        return None
    found = next((s for s in told if isinstance(s, SingleDeviceSharding) and s.binds), None)
    if found is None:
        return None if named is None else bound_device()
    return SingleDeviceSharding(found._device)


def over_axes(told: list) -> list[tuple[int, Any]]:
    """Which arguments lie over the axes of an AbstractMesh, and how."""
    return [
        (i, s) for i, s in enumerate(told) if isinstance(getattr(s, "mesh", None), AbstractMesh)
    ]


def check_over_axes(alone: list, told: list, platforms: Any) -> None:
    """Raise ValueError where arguments lie over axes alone and nobody says for which platform, or
    where others lie over another number of devices. told: the shardings over devices."""
    for _, sharding in alone:
        for other in told:
            if sharding.mesh.size != other.num_devices:
                raise ValueError(
                    f"AbstractMesh size: {sharding.mesh.size} does not match the device assignment "
                    f"size: {other.num_devices}: {sharding} beside {other}."
                )
        if not told and platforms is None:
            raise ValueError(
                "Passing lowering_platforms via export or jit(f).trace(*args).lower("
                "lowering_platforms=...) is required when only AbstractMesh exists in a jitted "
                f"computation: {sharding}."
            )


def assigned(traced: Any, devices: Any) -> list:
    """The shardings of arguments, those over axes alone over `devices`."""
    known = next((s for s in traced.layouts if hasattr(s, "layout")), None)
    if known is not None:
        own = known.mesh.devices_in_order
        if devices is not None and tuple(devices) != own:
            raise ValueError(
                "device_assignment passed to `.compile` must match the device_assignment calculated"
                " from array shardings and out_shardings. Got device ids passed to compile "
                f"{[d.id for d in devices]} and device ids calculated {[d.id for d in own]}."
            )
        devices = own
    if devices is None:
        raise RuntimeError(
            "device_assignment cannot be `None` during compilation. Please pass a tuple of devices "
            "to `.compile(device_assignment=)`: arguments lie over axes of an AbstractMesh."
        )
    layouts = list(traced.layouts)
    for i, sharding in traced._over_axes:
        mesh = sharding.mesh
        if mesh.size != len(devices):
            raise ValueError(
                f"The size of abstract mesh {mesh.size} in {sharding} must match the length of "
                f"device assignment: {len(devices)}"
            )
        table = np.empty(len(devices), dtype=object)
        table[:] = devices
        over = Mesh(table.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
        layouts[i] = sharding.update(mesh=over)
    return layouts


def _as_compiled(traced: Any, values: list) -> list:
    """Arguments as the program was compiled for them. Raises ValueError for those that lie
    otherwise."""
    out, apart = [], []
    for i, (x, sharding) in enumerate(zip_longest(values, traced.layouts)):
        have: Any = x._sharding if isinstance(x, ArrayImpl) else None
        moves = isinstance(sharding, SingleDeviceSharding) and have is not None
        if sharding is not None and (have is None or moves and traced._fun.device_of_jit):
            x = place(x, sharding)
        elif sharding is not None and not have.is_equivalent_to(sharding, x.ndim):
            apart.append((i, x.aval, have, sharding))
        out.append(x)
    if apart:
        raise _mismatch(traced, apart)
    return out


def _check_home(traced: Any, values: list) -> None:
    """Raise ValueError for an array that was put elsewhere than on the first device, which a
    program is compiled for that names no place and whose arguments lay nowhere."""
    entry, consts = traced._entry, traced._entry.consts
    if traced.one is not None or any(entry.context or ()) or dispatch.any_sharded(consts):
        return
    home, used, apart = SingleDeviceSharding(devices()[0]), used_variables(entry.closed.jaxpr), []
    for i, (v, x) in enumerate(zip(entry.closed.jaxpr.invars[len(consts) :], values)):
        have: Any = x._sharding if isinstance(x, ArrayImpl) else None
        elsewhere = have is not None and have.binds and not have.is_equivalent_to(home, x.ndim)
        if elsewhere and v in used:
            apart.append((i, x.aval, have, home))
    if apart:
        raise _mismatch(traced, apart)


def _mismatch(traced: Any, apart: list) -> ValueError:
    """apart: the number of each argument that lies otherwise, its aval, how it lies, how not."""
    names = traced._fun._arg_names(traced.in_tree)
    lines = [
        f"Argument {names[i]} with shape {aval.str_short()}:\n  Passed sharding: {have}\n"
        f"  Required sharding: {sharding}"
        for i, aval, have, sharding in apart[:_SHOWN_MISMATCHES]
    ]
    some = (
        f"the {len(apart)} mismatches"
        if len(apart) <= _SHOWN_MISMATCHES
        else f"{_SHOWN_MISMATCHES} mismatches out of {len(apart)}"
    )
    return ValueError(
        "Computation was compiled for input shardings that disagree with the shardings of "
        f"arguments passed to it. Here are {some} of {traced.fun_name}:\n"
        f"{chr(10).join(lines)}\nMove them with numjet.device_put."
    )


def _check_orders(traced: Any, values: list) -> None:
    """Raise ValueError for an array that somebody put somewhere, and that lies in memory otherwise
    than the program was compiled for."""
    for i, (x, order) in enumerate(zip(values, traced.orders, strict=True)):
        own = None if getattr(x, "_sharding", None) is None else order_of(x)
        if order is not None and own and own.major_to_minor != order.major_to_minor:
            raise ValueError(
                "Computation was compiled for input layouts that disagree with the layouts of "
                "arguments passed to it. Here are the 1 mismatches: Argument "
                f"{traced._fun._arg_names(traced.in_tree)[i]} with shape {x.aval.str_short()}:\n"
                f"  Passed layout: {own}\n  Required layout: {order}\nMove it with "
                "numjet.device_put."
            )


def executable(traced: Any) -> Any:
    """What a traced function is compiled to, for the CPU or where its arguments lie."""
    entry = traced._entry
    n = len(entry.consts)
    if traced.place is None:
        donate = tuple([i + n for i in entry.donate])
        return dispatch.compiled(entry.closed, entry.name, donate)
    specs = zip_longest(entry.closed.in_avals[n:], traced.layouts)
    args = [*entry.consts, *[Expected(a, s) for a, s in specs]]
    return Remote.loaded(entry.closed, args, traced.place, entry.name, (), traced.results)


def execute(traced: Any, values: list) -> list:
    """Run a compiled stage on arrays."""
    fun, entry = traced._fun, traced._entry
    if any(traced.orders):
        _check_orders(traced, values)
    if any(traced.layouts):
        values = _as_compiled(traced, values)
    elif traced.place is None and dispatch.any_sharded(values) and not (
        entry.mesh_inside or any(traced.results or ())
    ):
        _check_home(traced, values)
    if getattr(fun, "orders", False) and fun.layouts[1] is not None:
        layouts = importlib.import_module("numjet.api.compiled.jit_layouts")
        outs = _executed(traced, fun, entry, values)
        return layouts.in_order(outs, layouts.orders_out(fun, entry.out_tree), entry.out_tree)
    if entry.memories is not None:
        return in_memories(_executed(traced, fun, entry, values), entry.memories)
    return _executed(traced, fun, entry, values)


def _executed(traced: Any, fun: Any, entry: Any, values: list) -> list:
    if traced.place is None:
        if dispatch.any_sharded(values) or entry.mesh_inside or any(traced.results or ()):
            layouts = importlib.import_module("numjet.api.compiled.jit_layouts")
            return layouts.run(fun, entry, values, traced.results)
        return fun._execute(entry, values)
    donate = [i + len(entry.consts) for i in entry.donate]
    return Remote.run(entry.closed, [*entry.consts, *values], traced.place, entry.name, donate,
                      fun.device is not None, traced.results)
