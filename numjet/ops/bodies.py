"""The functions inside loops and branches: staged over pytrees to jaxprs, their carries checked.

For the control-flow primitives (`cond`, `while_loop`, `scan`, `fold`) and what is made like them. A
function is staged once for a structure and avals (`stage_once`); `check_carry` and `strengthen` see
that a carry keeps its type; `permute`, `add_inputs` and `fixed_point` are what their rules need to
rearrange jaxprs. What would break it: a cached jaxpr that depends on more than its key says.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config, tree
from numjet.base.class_names import home
from numjet.core import alike, dtypes, hi
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing
from numjet.core.effects import refuse_others
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import ASKED, ClosedJaxpr, Jaxpr, Var, subjaxprs
from numjet.core.memo import FunctionMemo, Memo
from numjet.core.refs import RefUse, hold, refuse_returned
from numjet.core.remote import traced_for
from numjet.core.sharded import ShardedArray
from numjet.core.shared import Flow, Shared
from numjet.core.structural import convert, placed_like
from numjet.transforms.batch import axis_env
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import has_tracers, hoist_consts, stage
from numjet.transforms.varying import results


def name_of(fun: Any) -> str:
    """A function's name, as JAX tells it: of a `functools.partial` that of what it calls."""
    while isinstance(fun, functools.partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    return getattr(fun, "__name__", "<unnamed function>")


def flatten_values(value: Any) -> tuple[list[Any], Any]:
    """Leaves as Arrays or tracers, and the structure, of which references are a part."""
    leaves, treedef = tree.tree_flatten(value)
    try:
        return [as_array(x) for x in leaves], treedef
    except TypeError:
        lowered = hi.lower(value)
        held = hold(value) if lowered is value else lowered
        if held is None:
            raise
        return flatten_values(held)


def flattened(fun: Callable, in_tree: Any, label: str) -> tuple[Callable, list]:
    """`fun(*args)` as a function of flat leaves, where `in_tree` is the structure of the argument
    tuple; and a list that gets the structure of its output when it is called."""
    out_tree = []

    def flat(*leaves: Any) -> list[Any]:
        outs, treedef = tree.tree_flatten(hi.lower(fun(*tree.tree_unflatten(in_tree, leaves))))
        out_tree.append(treedef)
        for i, x in enumerate(outs):
            try:
                outs[i] = as_array(x)
            except TypeError:
                path = tree.keystr(tree.leaf_path(treedef, i))
                what = f"function {name_of(fun)} traced for {label}"
                refuse_returned(x, what, path)
                raise TypeError(
                    f"{what} returned a value of type {type(x)}"
                    f"{f' at output component {path}' if path else ''}, which is not a valid JAX "
                    f"type: {x!r}. Return arrays, scalars and pytrees of them."
                ) from None
        return outs

    return flat, out_tree


def stage_tree(
    fun: Callable,
    in_tree: Any,
    in_avals: Sequence[ShapedArray],
    label: str,
    use: RefUse | None = None,
    flows: dict[Any, Flow] | None = None,
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Trace `fun(*args)` for `label`, where `in_tree` is the structure of the argument tuple.

    Returns the jaxpr with its constants as leading inputs, the constants, and the output's
    structure. `use` and `flows` as in `stage`.
    """
    jaxpr, consts, out_tree = stage_once(fun, in_tree, in_avals, label, use, flows)
    return hoist_consts(jaxpr), list(consts), out_tree


_CONTROL = ("scan", "while_body", "while_cond", "cond", "switch")
_staged = FunctionMemo("functions of control flow", 1024)
_alike = Memo("functions of control flow made anew", 256)


def stage_once(
    fun: Callable,
    in_tree: Any,
    in_avals: Sequence[ShapedArray],
    label: str,
    use: RefUse | None,
    flows: dict[Any, Flow] | None,
) -> tuple[Jaxpr, Sequence[Any], Any]:
    """The jaxpr of `fun(*args)`, the values of its constvars, and the output's structure.

    A function is traced once for the same avals, as under `jit`, as long as what it closes over are
    no tracers and no references, and it asks `flows` nothing. So are functions that a line makes
    anew in each call, as long as all that they read is the same (`core.alike`).
    """
    known = None if use is None or config.check_tracer_leaks.value else _staged.entries(fun)
    try:
        key: Any = (
            label, in_tree, tuple(in_avals), config.trace_key(), tuple(axis_env().items()),
            Shared.axes.get(),
        )  # fmt: skip
        if Sharded.contexts:
            key = (*key, Sharded.context())
        if Remote.active:
            key = (*key, traced_for.get())
        found = None if known is None else known.get(key)
    except TypeError:  # static parts of the arguments that do not hash
        found = known = None
    if known and found is None:
        found = _in_other_form(known, key)
    form = None if known is None or found is not None else alike.form(fun, in_tree)
    if form is not None:
        found = _alike.get((form.key, key), (None,))[0]
        if found is not None:
            known[key] = found  # type: ignore[index]
    if found is not None:
        Sharded.reads += found[1]  # whoever is being traced depends on the mesh, too
        Remote.asked += found[2]
        config.asked.note(ASKED in found[0][0].cache)
        _tell(flows, found[0])
        return found[0]
    reads, platforms, unknown = Sharded.reads, Remote.asked, Shared.here.unknown
    flat, out_tree = flattened(fun, in_tree, label)
    traced = told_as(fun, label, in_tree)
    jaxpr, consts = stage(flat, in_avals, name_of(fun), traced, use, flows)
    jaxpr.debug = traced.told(out_tree[0])
    if jaxpr.effects and label in _CONTROL:
        refuse_others(jaxpr.effects, label.partition("_")[0])
    made = jaxpr, tuple(consts), out_tree[0]
    asked = Shared.here.unknown != unknown
    asked = asked or any([flow.asked for flow in (flows or {}).values()])
    _tell(flows, made)
    if known is not None and use is not None and not (
        use.refs or use.fixed or asked or has_tracers(consts)
    ):
        entry = known[key] = made, Sharded.reads != reads, Remote.asked != platforms
        if form is not None and _does_alike(jaxpr) and not _changed(fun, in_tree, form):
            whole = form.key, key
            passing = [weakref.ref(x, lambda _: _alike.pop(whole, None)) for x in form.passing]
            _alike[whole] = entry, form.kept, passing
    return made


def _in_other_form(known: dict, key: tuple) -> Any:
    """What was traced for a key in the other form, JAX's or ours, where it is the same in both."""
    other = known.get((*key[:3], config.key_in_other_form(key[3]), *key[4:]))
    if other is None or ASKED in other[0][0].cache:
        return None
    (jaxpr, consts, out_tree), *rest = other
    forms = importlib.import_module("numjet.transforms.forms")
    found = forms.body_in_form(jaxpr, bool(config.jax_equations.value))
    if found is None:
        return None
    entry = known[key] = (found, consts, out_tree), *rest
    return entry


def told_as(fun: Callable, label: str, in_tree: Any) -> Tracing:
    """What messages say of a function of control flow; one that runs another, as those of
    `fori_loop` do, tells of that by its `told`."""
    told = getattr(fun, "told", None)
    return Tracing(fun, label, in_tree, by_name=False) if told is None else told(in_tree)


def _tell(flows: dict[Any, Flow] | None, made: tuple) -> None:
    """Let the flows know which results vary of what was staged with them."""
    for axis, flow in (flows or {}).items():
        asked = flow.asked
        flow.results = results(flow, axis, *made[:2])
        flow.asked = asked


def module_of(fun: Callable) -> str:
    """The module of a function, of one that wraps another that of the inner one; of numjet's own
    that of numjet, also under JAX's name."""
    while (inner := getattr(fun, "__wrapped__", getattr(fun, "func", None))) is not None:
        fun = inner
    return home(fun) or str(getattr(fun, "__module__", ""))


def by_user(fun: Callable) -> bool:
    """Whether a function is none of this package's."""
    return not module_of(fun).startswith(__package__.split(".")[0] + ".")


def check_varying(what: str, fun: Callable, flows: dict[Any, Flow], carry: Any) -> None:
    """Raise TypeError where a carry, of the structure `carry`, varies over an axis of `shard_map`
    once `fun`, by the user, has run, and does not in the beginning."""
    lacks: dict[int, list] = {}
    for axis, flow in flows.items() if by_user(fun) else ():
        for i, (before, after) in enumerate(zip(flow.given, flow.results, strict=False)):
            if i < carry.num_leaves and after and not before:
                lacks.setdefault(i, []).append(axis)
    if not lacks:
        return
    told, remedies = [], []
    for i, axes in sorted(lacks.items()):
        path = f"carry{tree.keystr(tree.leaf_path(carry, i))}"
        told.append(f"the input carry component {path} does not vary over {axes} of shard_map, and "
                    "the corresponding output does")  # fmt: skip
        remedies.append(f"applying `jax.lax.pcast(..., {tuple(axes)}, to='varying')` to the "
                        f"initial carry value of {path}")  # fmt: skip
    several = ":\n  * " if len(remedies) > 1 else " "
    joined = "\n  * ".join(remedies)
    raise TypeError(
        f"{what} body function carry input and carry output must have equal types, but they "
        f"differ: {'; '.join(told)}, so the manual axis types do not match. This might be fixed by"
        f"{several}{joined}."
    )


def _does_alike(jaxpr: Jaxpr) -> bool:
    """Whether the functions that equations hold, such as callbacks, do what other ones of their
    form do: not if they keep a list that another call has of its own."""
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for x in value if type(value) in (tuple, list) else (value,):
                if callable(x) and not isinstance(x, type):
                    form = alike.form(x)
                    if form is None or form.mutable:
                        return False
        if not all(map(_does_alike, subjaxprs(eqn.params))):
            return False
    return True


def _changed(fun: Callable, in_tree: Any, form: alike.Form) -> bool:
    """Whether a trace of `fun` changed a list or the like, as each trace has to do."""
    now = alike.form(fun, in_tree) if form.mutable else form
    return now is None or now.key != form.key


def check_carry(
    what: str,
    want_tree: Any,
    want: Sequence[ShapedArray],
    got_tree: Any,
    got: Sequence[ShapedArray],
    name_of_carry: Callable[[], str],
) -> None:
    """Raise TypeError unless the body, whose argument is called what `name_of_carry` tells, returns
    a carry of the structure, shapes and dtypes it received."""
    if want_tree != got_tree:
        name = name_of_carry()
        raise TypeError(
            f"{what} body function carry input and carry output must have the same pytree "
            "structure, but they differ:\n\n"
            + "\n".join([
                f"The input {_component(name, path)} is {one} but the corresponding component of "
                f"the carry output is {other}, so {why}."
                for path, one, other, why in differences(want_tree, got_tree)
            ])
            + f"\n\nIt is {want_tree} there and {got_tree} here."
        )  # fmt: skip
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        if w.shape != g.shape or w.dtype != g.dtype or w.placed != g.placed:
            at = _component(name_of_carry(), tree.keystr(tree.leaf_path(want_tree, i)))
            raise TypeError(
                f"{what} body function carry input and carry output must have equal types, but "
                f"they differ:\n\nThe input {at} has type {w.str_short()} but the corresponding "
                f"output carry component has type {g.str_short()}, so the "
                f"{'shapes' if w.shape != g.shape else 'dtypes'} do not match.\n\nRevise the "
                "function so that all output types match the corresponding input types: convert "
                "with .astype(), or give the initial value the dtype of the result."
            )


def _component(name: str, path: str) -> str:
    return f"carry component {name}{path}" if path else f"carry {name}"


def differences(tree1: Any, tree2: Any) -> list[tuple[str, str, str, str]]:
    """(path, first in words, second in words, why they differ) wherever two structures do."""
    found = []
    one, other = (t.unflatten(range(t.num_leaves)) for t in (tree1, tree2))
    for path, first, second, why in tree.equality_errors(one, other):
        if "types" in why:
            why = "their Python types differ"
        elif "children" in why:
            what = "lengths" if first.startswith(("a tuple", "a list")) else "numbers of children"
            why = f"the {what} do not match"
        else:
            why = "the pytree node metadata does not match"
        found.append((tree.keystr(path), first, second, why))
    return found


def first_name(fun: Callable, in_tree: Any) -> str:
    """What the first argument of a function of control flow is called; `carry` for that of one of
    our own."""
    if not by_user(fun) or hasattr(fun, "told"):
        return "carry"
    leaves = tree.tree_structure((0,) * len(in_tree.children()))
    return told_as(fun, "", leaves).names()[0]


def strengthen(
    avals: Sequence[ShapedArray], out: Sequence[ShapedArray], given: Sequence[Any] = ()
) -> list[ShapedArray]:
    """Carry avals of which weak ones that come back with another dtype take it, and those that
    nobody placed the layout over Explicit axes that they come back with, but for those among the
    arrays `given` that lie over a mesh. Where weak types alone differ, the body need not be traced
    again: what it does depends on them no more than a Python loop's second round does."""
    result = []
    for i, (a, o) in enumerate(zip(avals, out, strict=True)):
        if a.weak_type and a.dtype != o.dtype and a.shape == o.shape:
            dtype, _ = dtypes.promote((a.dtype, True), (o.dtype, o.weak_type))
            a = a.update(dtype=dtype, weak_type=False)
        laid = i < len(given) and type(given[i]) is ShardedArray  # over a mesh, whole
        if a.placed is None and o.placed is not None and a.shape == o.shape and not laid:
            a = a.over(o.placed)
        result.append(a)
    return result


def convert_all(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values with these dtypes, laid out over Explicit axes where the avals are."""
    found = [convert(x, a.dtype, a.weak_type) for x, a in zip(values, avals, strict=True)]
    return [x if a.placed is None else placed_like(x, a)
            for x, a in zip(found, avals, strict=True)]  # fmt: skip


def weakened(
    values: Sequence[Any], avals: Sequence[ShapedArray], chosen: Sequence[bool]
) -> list[Any]:
    """The values, one for each chosen aval, of which those of weak avals become weak."""
    wanted = [a for a, c in zip(avals, chosen, strict=True) if c]
    return [
        convert(x, x.aval.dtype, True) if a.weak_type and not x.aval.weak_type else x
        for x, a in zip(values, wanted, strict=True)
    ]


def permute(
    closed: ClosedJaxpr,
    in_order: Sequence[int] | None = None,
    out_order: Sequence[int] | None = None,
) -> ClosedJaxpr:
    """Reorder (or drop) inputs and outputs: new input i is old input in_order[i].

    What only equations read whose results nothing needs may be dropped; these go with it.
    """
    jaxpr = closed.jaxpr
    if in_order is not None and len(in_order) < len(jaxpr.invars):
        jaxpr = dce_jaxpr(jaxpr)[0]
    invars = jaxpr.invars if in_order is None else [jaxpr.invars[i] for i in in_order]
    outvars = jaxpr.outvars if out_order is None else [jaxpr.outvars[i] for i in out_order]
    same = invars == jaxpr.invars and outvars == jaxpr.outvars
    debug = jaxpr.debug if same else None
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, jaxpr.effects, debug), closed.consts
    )


def add_inputs(closed: ClosedJaxpr, position: int, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Insert inputs that are not read."""
    jaxpr = closed.jaxpr
    invars = [*jaxpr.invars[:position], *[Var(a) for a in avals], *jaxpr.invars[position:]]
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects), closed.consts
    )


def fixed_point(step: Callable, flags: list[bool]) -> tuple[list[bool], Any, list[bool]]:
    """Grow a loop's `flags` of carries until `step(flags) -> (result, flags of outputs)` finds no
    more of them; returns both and what the last step gave."""
    while True:
        result, found = step(flags)
        grown = [a or b for a, b in zip(flags, found, strict=False)]
        if grown == flags:
            return flags, result, found
        flags = grown


def split(values: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Cut a flat list into lists of `sizes`; the rest comes last."""
    out, at = [], 0
    for n in sizes:
        out.append(list(values[at : at + n]))
        at += n
    out.append(list(values[at:]))
    return out
