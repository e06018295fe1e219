"""`shard_map` as one equation of a traced function, with the function of one device's part in it.

For `api.maps.shard_map`, where `make_jaxpr` asks for it (the flag `jax_equations`): programs that
run get operations on whole arrays instead. The equation's rules are those of what it stands for;
where a function is staged that is going to run, it is written out. The jaxpr that it shows says of
each value over which axes it varies (`{V:x}`); the one that is evaluated has types without that.
What would break it: a jaxpr in an equation that `_inner` hands other values than it says.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.placement.sharding import axes_of
from numjet.base import config, tree
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_closed, eval_jaxpr
from numjet.core.lowering import Expand
from numjet.core.primitive import Linear, Primitive
from numjet.core.shared import ManualAxisType, Shared
from numjet.core.trace import aval_of
from numjet.ops.collective import pvary_p
from numjet.transforms.batch import Axis, AxisEffect, batch_call
from numjet.transforms.calls import call_transpose
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import stage_closed
from numjet.transforms.varying import of_equation

Names = frozenset


def equation(
    expand: Callable[..., list], out_avals: Callable[..., list], again: Callable[..., list]
) -> Primitive:
    """The primitive of such equations. expand(*arrays, **params): the results, by operations on
    whole arrays; out_avals(**params): their types; again(local, out_tree, mesh, names, specs,
    arrays, name, check_vma): those of another equation, of a function of one device's part."""

    def jvp(primals: tuple, tangents: tuple, /, **params: Any) -> tuple:
        return jvp_call(lambda *xs: expand(*xs, **params), primals, tangents)[:2]

    def batch(mapped: Axis, args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> tuple:
        """An equation of the mapped function of one device's part, where one is to be shown. A map
        over axes of the mesh (spmd_axis_name) leaves each device its examples."""
        mesh, mine = params["mesh"], params["newly_manual_axes"]
        over = () if mapped.spmd is None or mapped.of_devices else axes_of(mapped.spmd)
        if not config.jax_form() or mapped.placed is not None or not mine >= set(over):
            return batch_call(lambda *xs: expand(*xs, **params), mapped, args, dims)
        own = Axis(mapped.size // math.prod([mesh.shape[a] for a in over]), mapped.name)
        places: list = []
        out_tree: list = []

        def local(*xs: Any) -> list:
            body = executed(params["jaxpr"])
            outs, places[:] = batch_call(lambda *ys: eval_jaxpr(body, (), *ys), own, xs, dims)
            wanted = [_wider(s, d, over) for s, d in zip(params["out_specs"], places, strict=True)]
            out_tree.append((tree.tree_structure(list(outs)), wanted))
            return list(outs)

        names = [n for n in mesh.axis_names if n in mine]
        specs = [_wider(s, d, over) for s, d in zip(params["in_specs"], dims, strict=True)]
        check = params["check_vma"]
        return again(local, out_tree, mesh, names, specs, list(args), "shard_map", check), places

    def transpose(cts: Any, *args: Any, **params: Any) -> list:
        avals = [x.aval if type(x) is Linear else aval_of(x) for x in args]
        closed = stage_closed(lambda *xs: expand(*xs, **params), avals, "shard_map")
        run = lambda jaxpr, values: eval_closed(jaxpr, *values)  # noqa: E731
        return call_transpose(run, closed, cts, args)

    def effects(*, jaxpr: Jaxpr, newly_manual_axes: frozenset, **_: Any) -> frozenset:
        own = {AxisEffect(name) for name in newly_manual_axes}
        return frozenset([e for e in jaxpr.effects if e not in own])

    return Primitive(
        "shard_map",
        multiple_results=True,
        higher_order=True,
        abstract=lambda *_, **params: out_avals(**params),
        evaluate=expand,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        effects=effects,
        loops=Expand(expand),
    )


def _wider(spec: Any, dim: int | None, over: tuple) -> Any:
    """The spec of a value with a mapped axis at `dim`, which is cut over axes of the mesh."""
    if dim is None:
        return spec
    entries = [*spec, *[None] * (dim - len(spec))]
    entries.insert(dim, over[0] if len(over) == 1 else over or None)
    return spec.update(partitions=entries)


def executed(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr to evaluate of the one that an equation shows."""
    found: Jaxpr = jaxpr.cache.get("executed", jaxpr)
    return found


def shown(jaxpr: Jaxpr, varying: Sequence[Names]) -> Jaxpr:
    """The jaxpr whose types say over which axes values vary. varying: of its arguments. For those
    who are still inside of the shard_map."""
    made = _typed(jaxpr, varying)
    made.cache["executed"] = jaxpr
    return made


def _typed(jaxpr: Jaxpr, varying: Sequence[Names]) -> Jaxpr:
    known: dict[Any, tuple[Var, Names]] = {}

    def variable(v: Any, names: Names) -> Any:
        if type(v) is not Var:
            return v
        aval = v.aval
        if names and type(aval) is ShapedArray:
            aval = aval.update_manual_axis_type(ManualAxisType(varying=names))
        known[v] = Var(aval), names
        return known[v][0]

    invars = [variable(v, names) for v, names in zip(jaxpr.invars, varying, strict=True)]
    eqns = []
    for eqn in jaxpr.eqns:
        flags = [frozenset() if type(x) is Literal else known[x][1] for x in eqn.invars]
        outs: list[set] = [set() for _ in eqn.outvars]
        for name, _ in Shared.axes.get():
            found = of_equation(eqn, name, [name in names for names in flags])
            for own, flag in zip(outs, found, strict=True):
                if flag:
                    own.add(name)
        if eqn.primitive.name == "pvary" and eqn.params["axis_name"] in flags[0]:
            known[eqn.outvars[0]] = known[eqn.invars[0]]  # a gathered value: see below
            continue
        # Of a gathered value JAX does not say that all have the same.
        if eqn.primitive.name == "all_gather" and eqn.params["axis_name"] in _followed():
            outs[0].add(eqn.params["axis_name"])
        results = [frozenset(own) for own in outs]
        operands = [x if type(x) is Literal else known[x][0] for x in eqn.invars]
        for i, names in enumerate(_wanted(eqn, flags)):
            if not names <= flags[i]:
                operands[i], made = _varied(operands[i], flags[i], names)
                eqns.append(made)
        eqns.append(eqn.replace(
            invars=operands,
            outvars=[variable(v, names) for v, names in zip(eqn.outvars, results, strict=True)],
            params=_inner(eqn, flags, results),
        ))  # fmt: skip
    outvars = [x if type(x) is Literal else known[x][0] for x in jaxpr.outvars]
    return jaxpr.replace(invars=invars, eqns=eqns, outvars=outvars)


# Whose operands vary over the same axes, in JAX, beside elementwise operations.
_TOGETHER = frozenset(
    "add_any clamp concatenate conv_general_dilated dot_general dynamic_slice dynamic_update_slice "
    "gather pad scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub "
    "select_n".split()
)
_OF_VARYING = frozenset(("all_gather", "all_to_all", "ppermute", "reduce_scatter"))


def _followed() -> list[str]:
    """The axes along which types say what varies: none without `check_vma`."""
    return [name for name, _ in Shared.axes.get()]


def _wanted(eqn: Eqn, flags: list[Names]) -> list[Names]:
    """Over which axes each operand of the equation that JAX shows varies."""
    kind = eqn.primitive
    if len(flags) > 1 and (kind.elementwise or kind.name in _TOGETHER):
        return [frozenset().union(*flags)] * len(flags)
    if kind.name in _OF_VARYING and eqn.params["axis_name"] in _followed():
        return [flags[0] | {eqn.params["axis_name"]}]
    return flags


def _varied(x: Any, have: Names, want: Names) -> tuple[Var, Eqn]:
    """An operand that varies over more axes, and the equation that says so."""
    out = Var(x.aval.update_manual_axis_type(ManualAxisType(varying=want)))
    names = tuple([name for name, _ in Shared.axes.get() if name in want - have])
    return out, Eqn([x], [out], pvary_p, {"axis_name": names})


def _inner(eqn: Eqn, flags: list[Names], results: list[Names]) -> dict:
    """The params of an equation, whose jaxprs say what varies in them."""
    params, name = dict(eqn.params), eqn.primitive.name

    def told(which: str, varying: Sequence[Names]) -> None:
        params[which] = _told(params[which], varying)

    if name == "scan":
        consts, carry = params["num_consts"], params["num_carry"]
        told("jaxpr", [*flags[:consts], *results[:carry], *flags[consts + carry :]])
    elif name == "while":
        first, second = params["cond_nconsts"], params["body_nconsts"]
        told("cond_jaxpr", [*flags[:first], *results])
        told("body_jaxpr", [*flags[first : first + second], *results])
    elif name == "cond":
        params["branches"] = tuple([_told(b, flags[1:]) for b in params["branches"]])
    else:
        for which in ("jaxpr", "call_jaxpr"):
            if which in params and name != "shard_map":
                told(which, flags)
    return params


def _told(value: Any, varying: Sequence[Names]) -> Any:
    if isinstance(value, ClosedJaxpr) and len(varying) == len(value.jaxpr.invars):
        if value.jaxpr.constvars:
            return value
        return ClosedJaxpr(_typed(value.jaxpr, varying), value.consts)
    if isinstance(value, Jaxpr) and len(varying) == len(value.invars) and not value.constvars:
        return _typed(value, varying)
    return value
