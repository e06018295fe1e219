"""`jit(in_shardings, out_shardings)`: layouts of the arguments and results of a jitted function.

For `api.compiled.jit_core`, which asks for it where a function was given such. A sharding may stand
for a whole subtree of the arguments (a pytree prefix); None leaves a leaf as it is. What would
break it: static arguments among those that in_shardings counts (they are left out).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import warn_unusable
from numjet.api.execution import dispatch
from numjet.api.placement.devices import Sharding, SingleDeviceSharding, in_memories, kind_of, place
from numjet.api.placement.layout import Format, Layout, check_layout, labelled, order_of
from numjet.api.placement.mesh import AxisType, set_for_arrays
from numjet.api.placement.reshard import constrained, of_context
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import config, tree
from numjet.core import hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.hooks import Remote, Sharded
from numjet.core.jit_params import UNSPECIFIED
from numjet.core.sharded import ShardedArray
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.ops.jit_call import jit_p


def lay_out(core: Any, leaves: list, treedef: Any, args: tuple, kwargs: dict) -> None:
    """Lay the arguments of a call out as in_shardings say."""
    _, dynamic, _ = core._split(args, kwargs)
    ins = of_arguments(core, dynamic, kwargs, treedef)
    if config.jax_form() and current_trace() is not EVAL:  # what the equation says is not done here
        for i, (x, sharding) in enumerate(zip(leaves, ins, strict=True)):
            if sharding is not None and not _in_types(sharding):
                name = functools.partial(lambda i: core._arg_names(treedef)[i], i)
                _fits(sharding, x.shape, "arguments", name)
        ins = [s if _in_types(s) else None for s in ins]
    if core.orders:
        orders = _orders_in(core, dynamic, kwargs, treedef)
        _check_orders(leaves, orders, lambda: core._arg_names(treedef))
    leaves[:] = laid_out(leaves, ins, lambda: core._arg_names(treedef))


def _in_types(sharding: Any) -> bool:
    """Whether it is over axes that types tell of."""
    return AxisType.Explicit in getattr(getattr(sharding, "mesh", None), "axis_types", ())


def in_equation(core: Any, entry: Any, structure: Any, args: tuple, kwargs: dict) -> dict:
    """What the equation of a call says in `make_jaxpr`: shardings that were asked for, but over
    axes that types tell of, where equations of their own do; donated arguments; options."""
    _, dynamic, kw = core._split(args, kwargs)
    ins, outs = core.layout_trees or (None, None)
    if core.device is not None and core.layout_trees is None:
        ins = outs = SingleDeviceSharding(core.device)
    found: dict[str, Any] = {"keep_unused": core.keep_unused, "inline": core.inline}
    if ins is not None or core.within_mesh is not None:
        found["in_shardings"] = of_arguments(core, dynamic, kw, structure, ins)
    if outs is not None or core.within_mesh is not None:
        found["out_shardings"] = _leaves(core, "out_shardings", outs, entry.out_tree)
    for name in found.keys() & {"in_shardings", "out_shardings"}:
        found[name] = tuple(
            [UNSPECIFIED if s is None or _in_types(s) else s for s in found[name]]
        )
    count = structure.num_leaves
    return {**found, "donated_invars": tuple([i in entry.asked for i in range(count)])}


def call(core: Any, entry: Any, leaves: list, traced: bool, told: dict) -> list:
    """A call of a function that was given in_shardings or out_shardings. told: by its equation."""
    wanted = of_results(core, entry.out_tree)
    checked_results(entry.out_avals, wanted, entry.out_tree)
    if traced:
        outs = jit_p.bind(*entry.consts, *leaves, jaxpr=entry.closed, name=entry.name, **told)
        wanted = [s if not told or _in_types(s) else None for s in wanted]
        return [x if s is None else constrained(x, s) for x, s in zip(outs, wanted, strict=True)]
    outs = run(core, entry, leaves, wanted)
    if core.orders:
        outs = in_order(outs, orders_out(core, entry.out_tree), entry.out_tree)
    return outs if entry.memories is None else in_memories(outs, entry.memories)


def names_orders(given: Any) -> bool:
    """Whether a pytree of shardings says how arrays lie in memory."""
    return any([_order(x) is not None for x in tree.tree_leaves(given, _is_leaf)])


def _order(x: Any) -> Any:
    return x.layout if isinstance(x, Format) and isinstance(x.layout, Layout) else None


def _orders(given: Any, what: str, structure: Any) -> list[Any]:
    """The Layout, or None, of each leaf of `structure`."""
    if _is_leaf(given):
        return [_order(given)] * structure.num_leaves
    return [_order(x) for x in tree.flatten_axes(what, structure, given, _is_leaf)]


def _orders_in(core: Any, args: tuple, kwargs: dict, structure: Any) -> list[Any]:
    """Those of the arguments, as in_shardings say."""
    of_arguments(core, args, kwargs, structure)  # raises where they are none of these
    given = core.layouts[0]
    if not kwargs:
        structure = structure.children()[0]
    return _orders(tuple(given) if isinstance(given, list) else given, "in_shardings", structure)


def orders_out(core: Any, structure: Any) -> list[Any]:
    """Those of the results, as out_shardings say."""
    return _orders(core.layouts[1], "out_shardings", structure)


def in_order(outs: Sequence[Any], orders: Sequence[Any], structure: Any) -> list[Any]:
    """Results that tell the layouts that were asked for."""
    for i, (x, order) in enumerate(zip(outs, orders, strict=True)):
        if order is not None:
            name = f"result{tree.keystr(tree.leaf_path(structure, i))}"
            check_layout(f"jit outputs with pytree key path {name}", order, x.shape)
    return [labelled(x, order) for x, order in zip(outs, orders, strict=True)]


def _check_orders(leaves: Sequence[Any], orders: Sequence[Any], names: Any) -> None:
    """Raise ValueError for an array that somebody put somewhere, and that lies otherwise than
    in_shardings say."""
    for i, (x, order) in enumerate(zip(leaves, orders, strict=True)):
        if order is None:
            continue
        check_layout(f"jit arguments with pytree key path {names()[i]}", order, x.shape)
        own = getattr(x, "_sharding", None)
        if own is None or isinstance(x, Tracer):
            continue
        if order_of(x).major_to_minor != order.major_to_minor:
            raise ValueError(
                "Layout passed to jit does not match the layout on the respective arg. Got jit "
                f"layout: {order}, arg layout: {order_of(x)} for arg type: {x.aval.str_short()}. "
                "Move it with numjet.device_put."
            )


def orders_told(core: Any, leaves: Sequence[Any], args: tuple, kwargs: dict, structure: Any) -> Any:
    """How each argument of a function that is traced lies: as in_shardings say, or as it does."""
    asked = [None] * len(leaves)
    if core.orders and core.layouts[0] is not None:
        _, dynamic, _ = core._split(args, kwargs)
        asked = _orders_in(core, dynamic, kwargs, structure)
    found = []
    for x, order in zip(leaves, asked, strict=True):
        own = x.layout if type(x) is ShapeDtypeStruct else None
        if isinstance(x, Array) and not isinstance(x, Tracer):
            own = order_of(x)
        found.append(order or (own if isinstance(own, Layout) else None))
    return found


def run(core: Any, entry: Any, leaves: list, wanted: list | None) -> list:
    """A call with arrays that are laid out over devices."""

    def execute(values: list) -> list:
        if entry.asked:  # what looks whole to the program is somebody's layout
            return dispatch.run(entry.closed, values, entry.name, True)
        return core._execute(entry, values[len(entry.consts) :])

    values = [*entry.consts, *leaves]
    if Remote.active:
        place = core._place_for(entry, leaves) or Remote.within(entry.closed, wanted or ())
        if place is not None:
            donate = [i + len(entry.consts) for i in entry.donate]
            return Remote.run(entry.closed, values, place, entry.name, donate, False, wanted)
    outs = Sharded.run(
        entry.closed, values, entry.name, wanted, execute, len(entry.consts)
    )
    if entry.asked:
        _give_up(entry, leaves, outs, wanted)
    return outs


def _give_up(entry: Any, leaves: Sequence[Any], outs: Sequence[Any], wanted: list | None) -> None:
    """Delete the donated arguments whose memory results could take.

    Over several devices these are arrays that lie over them - others were copied there - and, where
    out_shardings told the layouts of results, those whose parts are as large as a result's.
    """
    over = any([hasattr(getattr(x, "_sharding", None), "layout") for x in outs])
    told = over and wanted is not None and any(wanted)
    left, kept = list(outs), set(entry.asked) - set(entry.donate)
    for i in entry.donate:
        x = leaves[i]
        fits = not over or hasattr(x._sharding, "layout")
        if told and fits:
            at = next((k for k, out in enumerate(left) if _takes(out, x)), None)
            fits = at is not None and left.pop(at) is not None
        if fits:
            x.delete()
        else:
            kept.add(i)
    if kept and (told or not over) and "unusable" not in entry.closed.cache:
        entry.closed.cache["unusable"] = True
        warn_unusable(entry, kept)


def _takes(out: Any, x: Any) -> bool:
    """Whether a device's part of a result can take the memory of one of an argument."""
    sizes = [math.prod(s.sharding.shard_shape(s.shape)) * s.dtype.itemsize for s in (out, x)]
    return out.sharding.device_set == x.sharding.device_set and sizes[0] == sizes[1]


def _is_leaf(x: Any) -> bool:
    return x is None or isinstance(x, Sharding | PartitionSpec | Format)


def checked(ins: Any, outs: Any, device: Any, backend: Any) -> None:
    """Raise TypeError for leaves of in_shardings and out_shardings that are no layouts, ValueError
    for those that leave dimensions open, and where a device or a backend is named beside them."""
    for what, given in (("in_shardings", ins), ("out_shardings", outs)):
        if given is None:
            continue
        for x in tree.tree_leaves(given, _is_leaf):
            if isinstance(x, Layout):
                raise ValueError(
                    "`jax.jit` does not accept device-local layouts directly. Create a `Format` "
                    "instance wrapping this device-local layout and pass that to `jit` instead. "
                    f"Got {x}"
                )
            if not _is_leaf(x):
                raise TypeError(
                    f"{what} leaf specifications are expected to be PartitionSpec instances or "
                    f"None, but got {x}: pass a PartitionSpec, a Sharding or None."
                )
            spec = getattr(x, "spec", x)
            if isinstance(spec, PartitionSpec) and PartitionSpec.UNCONSTRAINED in spec:
                raise ValueError(
                    f"Unconstrained dims are not allowed when passed to {what}: {x}. Constrain "
                    "the value inside of the function (with_sharding_constraint)."
                )
        if device is not None or backend is not None:
            raise ValueError(
                f"If backend or device is specified on jit, then {what} should not be specified."
            )


class _OfJit(SingleDeviceSharding):
    """The device that `jit` was told: arguments come there from wherever they are."""

    __slots__ = ()


def of_device(device: Any) -> tuple:
    """The layouts of arguments and results of a function that `jit` was told a device for."""
    return _OfJit(device), SingleDeviceSharding(device)


class _Everywhere(Sharding):
    """What None means that `pjit` is given: whole arrays over the mesh of `with mesh:`."""


EVERYWHERE = _Everywhere()


def over_context(found: list, avals: Sequence[Any]) -> list:
    """The shardings of arguments, those of nowhere over the mesh of `set_mesh`."""
    return [
        hooks.sharding_of_nowhere(a.ndim) if s is None else s
        for s, a in zip(found, avals, strict=True)
    ]


def _leaves(core: Any, what: str, given: Any, structure: Any) -> list[Any]:
    """A sharding, or None, for each leaf of `structure`, a treedef."""
    name = f"{_name(core)} {what}"

    def resolved(x: Any) -> Any:
        place = x.sharding if isinstance(x, Format) else x
        if core.within_mesh is not None and (x is None or x is EVERYWHERE):
            mesh = set_for_arrays.get()
            return None if mesh.empty else NamedSharding(mesh, PartitionSpec())
        return of_context(name, place)

    if _is_leaf(given):
        return [resolved(given)] * structure.num_leaves
    return [resolved(x) for x in tree.flatten_axes(name, structure, given, _is_leaf)]


def check_prefixes(core: Any, args: tuple, kwargs: dict, structure: Any, results: Any) -> None:
    """Raise ValueError where in_shardings or out_shardings are no prefix of the arguments, of
    which `structure` is, or of the results."""
    ins, outs = core.layout_trees
    of_arguments(core, args, kwargs, structure, ins)
    if outs is not None:
        _leaves(core, "out_shardings", outs, results)


def not_told(core: Any, structure: Any, kinds: list) -> list:
    """The memories of results, None for those whose layout out_shardings name."""
    told = _leaves(core, "out_shardings", core.layout_trees[1], structure)
    return [k if s is None else None for k, s in zip(kinds, told, strict=True)]


def of_arguments(
    core: Any, args: tuple, kwargs: dict, structure: Any, given: Any = None
) -> list[Any]:
    """The shardings of the dynamic leaves: those of (args, kwargs), which `structure` is of.
    given: in_shardings, where they are not those of `core.layouts`."""
    given = core.layouts[0] if given is None else given
    if given is None:
        return [None] * structure.num_leaves
    if kwargs and given is not EVERYWHERE and type(given) is not _OfJit:
        raise ValueError(f"{_name(core)} does not support kwargs when in_shardings is specified.")
    if isinstance(given, list):
        given = tuple(given)
    if not _is_leaf(given) and (type(given) is not tuple or len(given) != len(args)):
        raise ValueError(_no_prefix(f"{_name(core)} in_shardings", given, len(args)))
    if kwargs:
        return _leaves(core, "in_shardings", given, structure)
    positional, _ = structure.children()
    return _leaves(core, "in_shardings", given, positional)


def _name(core: Any) -> str:
    """Which function made it, as errors say."""
    return "jit" if core.within_mesh is None else "pjit"


def _no_prefix(what: str, given: Any, count: int) -> str:
    """That in_shardings are neither one for all of `count` arguments nor a tuple of as many."""
    wrong = (
        f"is the wrong length: got a tuple or list of length {len(given)} for an args tuple of "
        f"length {count}."
        if type(given) is tuple
        else f"is not a tuple: got {type(given)} instead. Given the corresponding argument, it "
        f"looks like {what} might need to be wrapped in a tuple of one."
    )
    return (
        f"{what} specification must be a tree prefix of the positional arguments tuple. In "
        f"particular, {what} must either be a Sharding, a PartitionSpec, or a tuple of length "
        f"equal to the number of positional arguments. But {what} {wrong}"
    )


def of_results(core: Any, structure: Any) -> list[Any]:
    """The shardings of the results, None where they follow."""
    if core.layouts[1] is None:
        return [None] * structure.num_leaves
    return _leaves(core, "out_shardings", core.layouts[1], structure)


def told(
    core: Any, entry: Any, leaves: Sequence[Any], structure: Any, args: tuple, kwargs: dict,
    found: list,
) -> tuple[list, str | None]:
    """The shardings of the arguments of a function that is traced, `found` where in_shardings do
    not say them, and why they are not those that the arguments have; None where they are.

    Raises ValueError where the shape of an argument or of a result does not fit its sharding.
    """
    checked_results(entry.out_avals, of_results(core, entry.out_tree), entry.out_tree)
    if core.layouts[0] is None:
        return found, None
    _, dynamic, _ = core._split(args, kwargs)
    asked, conflict = of_arguments(core, dynamic, kwargs, structure), None
    for i, (x, sharding) in enumerate(zip(leaves, asked, strict=True)):
        if sharding is None:
            continue
        shape = np.shape(x)
        _fits(sharding, shape, "arguments", lambda i=i: core._arg_names(structure)[i])
        own = x.sharding if type(x) is ShapeDtypeStruct else getattr(x, "_sharding", None)
        if type(sharding) is _OfJit:
            continue
        if conflict is None and own is not None and not own.is_equivalent_to(sharding, len(shape)):
            conflict = _disagreement(sharding, own, core._arg_names(structure)[i])
    return [s or f for s, f in zip(asked, found, strict=True)], conflict


def _disagreement(asked: Any, own: Any, name: str) -> str:
    return (
        f"Sharding passed to jit does not match the sharding on the respective arg. Got jit "
        f"sharding: {asked},\narg sharding: {own} for argument {name}. Move it with "
        "numjet.device_put."
    )


def laid_out(leaves: Sequence[Any], shardings: Sequence[Any], names: Any) -> list[Any]:
    """The arguments as in_shardings say.

    Raises ValueError for an array that lies otherwise already, and where a shape does not fit.
    """
    out = []
    for i, (x, sharding) in enumerate(zip(leaves, shardings, strict=True)):
        if sharding is None:
            out.append(x)
            continue
        _fits(sharding, x.shape, "arguments", lambda i=i: names()[i])
        if type(sharding) is _OfJit:
            x = x if isinstance(x, Tracer) else place(x, SingleDeviceSharding(sharding._device))
        elif isinstance(x, Tracer):
            x = constrained(x, sharding)
        elif type(x) is ShardedArray or isinstance(x, ArrayImpl) and x._sharding is not None:
            if kind_of(x._sharding) != kind_of(sharding):
                raise ValueError(
                    "Memory kinds passed to jax.jit does not match memory kind on the respective "
                    f"arg. Got jit memory kind: {kind_of(sharding)}, arg memory kind: "
                    f"{kind_of(x._sharding)} for arg type: {x.aval.str_short()}, argument "
                    f"{names()[i]}. Move it with numjet.device_put."
                )
            if not x._sharding.is_equivalent_to(sharding, x.ndim):  # type: ignore[union-attr]
                if not _alone(x._sharding) or not _alone(sharding):
                    raise ValueError(_disagreement(sharding, x._sharding, names()[i]))
                x = place(x, sharding)
        else:
            x = place(x, sharding)
        out.append(x)
    return out


def _alone(sharding: Any) -> bool:
    """Whether it is one of a single device, from which arguments are moved to another."""
    return len(sharding.device_set) == 1


def checked_results(outs: Sequence[Any], shardings: Sequence[Any], structure: Any) -> None:
    """Raise ValueError where a result's shape does not fit its sharding."""
    for i, (aval, sharding) in enumerate(zip(outs, shardings, strict=True)):
        if sharding is not None:
            named = lambda i=i: f"result{tree.keystr(tree.leaf_path(structure, i))}"  # noqa: E731
            _fits(sharding, aval.shape, "outputs", named)


def _fits(sharding: Any, shape: tuple, what: str, name: Any) -> None:
    try:
        sharding._check_shape(tuple(shape))
    except ValueError as error:
        raise type(error)(
            f"One of pjit {what} with pytree key path {name()} is incompatible with its sharding "
            f"annotation {sharding}: {error}"
        ) from None
