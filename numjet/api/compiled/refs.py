"""Calls of jitted functions with mutable references, or values that are no arrays: among the
arguments, or closed over.

`api.compiled.jit_core` hands such calls over. A function of references becomes one of their values
that gives the new ones too (`core.refs`, `core.hi`); it is traced and compiled like every other.
What would break it: a reference that stands in two places, which is refused.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import importlib
from collections.abc import Callable
from typing import Any

from numjet.api.compiled.stages import Entry, Traced
from numjet.api.flat import wraps
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import config, tree
from numjet.core import hi
from numjet.core.array import as_array
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.refs import (
    AbstractRef,
    Ref,
    RefUse,
    as_argument,
    refuse_returned,
    refuse_twice,
    variable_of,
)
from numjet.core.sharded import any_sharded
from numjet.core.trace import EVAL, current_trace
from numjet.ops.jit_call import jit_p
from numjet.transforms.stage import has_tracers


def lasting(use: RefUse | None) -> bool:
    """Whether a program may be kept: the references it closes over are no other program's."""
    return use is None or all([ref.home is EVAL for ref in use.refs])


def call_closed_over(core: Any, entry: Any, leaves: list, args: tuple, kwargs: dict) -> Any:
    """A call of a function that closes over references: their values are arguments, and the last
    results are their new ones."""
    use: Any = entry.use
    if use.shown and current_trace() is EVAL:  # it runs, and nobody reads it
        with config.jax_equations(False):
            return core.call(*args, **kwargs)
    operands = [*leaves, *use.values()]
    if current_trace() is not EVAL or has_tracers([*entry.consts, *operands]):
        outs = jit_p.bind(*entry.consts, *operands, jaxpr=entry.closed, name=entry.name)
    elif place := core._place_for(entry, operands):
        outs = Remote.run(entry.closed, [*entry.consts, *operands], place, entry.name, [])
    elif entry.mesh_inside or (Sharded.active and any_sharded(operands)):
        layouts = importlib.import_module("numjet.api.compiled.jit_layouts")
        outs = layouts.run(core, entry, operands, None)
    else:
        outs = core._execute(entry, operands)
    n = len(outs) - len(use.written)
    for ref, value in zip(use.written, outs[n:], strict=True):
        ref.put_back(value)
    return tree.tree_unflatten(entry.out_tree, outs[:n])


def call_with_refs(core: Any, statics: tuple, leaves: list, treedef: Any) -> Any:
    """A call with references among the arguments: one of the function of their values that gives
    the new ones too. Donated arguments are kept. Within a transformation it is one of a function
    that closes over them: rules of the user that are run later write to these very references."""
    if current_trace() is not EVAL or has_tracers(leaves):
        if (found := _shown(core, statics, leaves, treedef)) is not None:
            entry, operands = found
            outs = jit_p.bind(*entry.consts, *operands, jaxpr=entry.closed, name=entry.name)
            return tree.tree_unflatten(entry.out_tree, outs)
        inner, rest = _closing_over(core, statics, leaves, treedef)
        return inner.call(*rest)
    refs, inner = _of_values(core, statics, leaves, treedef)
    outs, values = inner.call(*[x.value() if i in refs else x for i, x in enumerate(leaves)])
    for ref, value in zip(refs.values(), values, strict=True):
        ref.put_back(value)
    return outs


def _closing_over(core: Any, statics: tuple, leaves: list, treedef: Any) -> tuple[Any, list]:
    """The function of the other leaves that closes over the references among them, and these."""
    held = [x if type(x) is Ref else None for x in leaves]
    names = core._arg_names(treedef)
    given = [i for i, ref in enumerate(held) if ref is not None]
    refuse_twice(core._name, "jit", [held[i] for i in given], [names[i] for i in given])

    def of_others(*rest: Any) -> Any:
        # Those that are shown are inputs in their order, read or not.
        refs = {i: as_argument(ref, names[i]) for i, ref in enumerate(held) if ref is not None}
        others = iter(rest)
        whole = [refs[i] if i in refs else next(others) for i in range(len(held))]
        positional, named = _positional(statics, *tree.tree_unflatten(treedef, whole))
        out = core._fun(*positional, **named)
        for path, x in tree.tree_flatten_with_path(out)[0]:
            refuse_returned(x, f"function {core._name} traced for jit", tree.keystr(path))
        return out

    of_others.__name__ = core._name
    inner = type(core)(of_others, (), (), (), ())
    return inner, [x for x, ref in zip(leaves, held, strict=True) if ref is None]


def _shown(core: Any, statics: tuple, leaves: list, treedef: Any) -> tuple[Entry, list] | None:
    """What tracing makes of a call with references where jaxprs are to be read: an entry whose
    jaxpr takes the references in their places, those that the function closes over last; and its
    operands. None where the references are not shown."""
    refs = [x for x in leaves if type(x) is Ref]
    trace = current_trace()
    if trace is EVAL and not config.jax_equations.value:
        return None
    if any([variable_of(ref) is None for ref in refs]):
        return None
    inner, rest = _closing_over(core, statics, leaves, treedef)
    found = inner.trace(*rest)._entry
    if found.use is None or {*found.use.refs} != {*found.use.shown}:
        return None
    jaxpr, n = found.closed.jaxpr, len(found.consts)
    first = n + len(rest)
    others = iter(jaxpr.invars[n:first])
    variables = dict(zip(found.use.refs, jaxpr.invars[first:], strict=True))
    ins = [variables.pop(x) if type(x) is Ref else next(others) for x in leaves]
    use = RefUse(behind=True)
    use.refs = use.shown = [*variables]
    jaxpr = jaxpr.replace(invars=[*jaxpr.invars[:n], *ins, *variables.values()])
    closed = ClosedJaxpr(jaxpr, found.closed.consts)
    entry = Entry(closed, found.consts, found.out_tree, core._name, (), use)
    given = [variable_of(x) if type(x) is Ref else as_array(x) for x in leaves] \
        if trace is not EVAL else []
    return entry, [*given, *use.values()]


def trace_with_refs(core: Any, statics: tuple, leaves: list, treedef: Any) -> Any:
    """What tracing makes of a call with references: a jaxpr of their values, which gives the new
    ones last; where it is to be read, one of the references."""
    if (found := _shown(core, statics, leaves, treedef)) is not None:
        traced = Traced(found[0], treedef, core, layouts=[None] * len(leaves))
        return traced
    refs, inner = _of_values(core, statics, leaves, treedef)
    traced = inner.trace(*[x.value() if i in refs else x for i, x in enumerate(leaves)])
    # It tells of the function of references.
    entry = traced._entry = copy.copy(traced._entry)
    entry.out_tree = entry.out_tree.children()[0]
    traced.in_tree, traced._fun, traced.refs, traced.fun_name = treedef, core, refs, core._name
    here = contextvars.copy_context().run
    traced._again = functools.partial(here, _to_be_read, core, statics, leaves, treedef)
    return traced


def _to_be_read(core: Any, statics: tuple, leaves: list, treedef: Any) -> Entry:
    with config.jax_equations(True):
        found = _shown(core, statics, leaves, treedef)
        if found is None:  # references of a trace that is none to be read
            refs, inner = _of_values(core, statics, leaves, treedef)
            values = [x.value() if i in refs else x for i, x in enumerate(leaves)]
            return inner.trace(*values)._entry
    return found[0]


def _of_values(core: Any, statics: tuple, leaves: list, treedef: Any) -> tuple[dict, Any]:
    """The references by their places, and the function of values that a call with them is."""
    refs = {i: x for i, x in enumerate(leaves) if type(x) is Ref}
    names = core._arg_names(treedef)
    refuse_twice(core._name, "jit", list(refs.values()), [names[i] for i in refs])
    known = core._with_refs.setdefault((statics, treedef, tuple(refs)), [None, refs])
    known[1] = refs
    if known[0] is None:
        known[0] = type(core)(_pure(core, statics, treedef, known), (), (), (), ())
    return refs, known[0]


def _pure(core: Any, statics: tuple, treedef: Any, known: list) -> Callable:
    """The function of leaves, with arrays for references, that gives its result and what the
    references hold at the end. `known[1]` are the references of the call that traces it."""

    def pure(*leaves: Any) -> Any:
        refs: dict[int, Ref] = known[1]
        inner = {i: Ref(AbstractRef(leaves[i].aval), leaves[i]) for i in refs}
        names = core._arg_names(treedef)
        for i, ref in inner.items():
            ref.origin = names[i]
        dynamic, kw = tree.tree_unflatten(treedef, [inner.get(i, x) for i, x in enumerate(leaves)])
        positional, named = _positional(statics, dynamic, kw)
        out = core._fun(*positional, **named)
        for path, x in tree.tree_flatten_with_path(out)[0]:
            refuse_returned(x, f"function {core._name} traced for jit", tree.keystr(path))
        used = getattr(current_trace(), "refs", None) or {}
        for i, ref in refs.items():
            if ref in used:
                raise ValueError(
                    f"when tracing {core._name} for jit, a mutable array reference of type "
                    f"{ref.aval} was both closed over and passed as the argument "
                    f"{core._arg_names(treedef)[i]}"
                )
        return out, [ref.value() for ref in inner.values()]

    pure.__name__ = core._name
    return pure


# ------------------------------------------------------------------ values that are no arrays
class _Lowered:
    """What a value holds, as a node of a tree: its arrays, beside its form."""

    __slots__ = ("form", "arrays")

    def __init__(self, form: Any, arrays: list) -> None:
        self.form, self.arrays = form, arrays


tree.register_pytree_node(
    _Lowered,
    lambda node: (node.arrays, node.form),
    lambda form, arrays: _Lowered(form, list(arrays)),
)


def _positional(statics: tuple, dynamic: tuple, kw: dict) -> tuple[list, dict]:
    """The arguments of a call, static ones among them."""
    positional = list(dynamic)
    for i, value, _ in statics:
        if isinstance(i, int):
            positional.insert(i, value)
    return positional, {**kw, **{n: value for n, value, _ in statics if isinstance(n, str)}}


def call_with_values(core: Any, statics: tuple, leaves: list, treedef: Any) -> Any:
    """A call with values that are no arrays among the arguments: one of the function of the arrays
    that they hold, which gives what they hold at the end. Donated arguments are kept."""
    values: dict[int, Any] = {}  # each once
    places: list[int | None] = []  # of each leaf among the values, or None
    for x in leaves:
        if type(x) in hi.TYPES:
            values.setdefault(id(x), x)
            places.append(list(values).index(id(x)))
        else:
            places.append(None)
    given = [hi.Held(v) for v in values.values()]
    key = (statics, treedef, tuple(places), tuple([(h.type, h.form) for h in given]))
    known = core._with_refs.get(key)
    if known is None:
        made = type(core)(_pure_of_values(core, statics, treedef, places, given), (), (), (), ())
        known = core._with_refs[key] = [made, values]
    arrays = [[as_array(x) for x in held.arrays] for held in given]
    rest = [x for x, place in zip(leaves, places, strict=True) if place is None]
    outs, last = known[0].call(arrays, rest)
    for value, held in zip(values.values(), last, strict=True):
        if held.form is not None:
            hi.change(value, held.form, held.arrays)
    return outs


def _made(given: list, arrays: list) -> list:
    """Values of other arrays, made in the function that is traced."""
    made = [held.made(xs) for held, xs in zip(given, arrays, strict=True)]
    for value in made:
        hi.own(value)
    return made


def _pure_of_values(
    core: Any, statics: tuple, treedef: Any, places: list, given: list
) -> Callable:
    def pure(arrays: list, rest: list) -> Any:
        made = _made(given, arrays)
        others = iter(rest)
        leaves = [next(others) if place is None else made[place] for place in places]
        positional, named = _positional(statics, *tree.tree_unflatten(treedef, leaves))
        out = core._fun(*positional, **named)
        last = [hi.Held(value) for value in made]
        return out, [_Lowered(held.form, [as_array(x) for x in held.arrays]) for held in last]

    pure.__name__ = core._name
    return pure


def without_values(args: tuple, kwargs: dict) -> tuple[tuple, dict, Callable]:
    """Arguments with the arrays that values hold in the place of these, and a function that puts
    values of other arrays back."""
    leaves, treedef = tree.tree_flatten((args, kwargs))
    held = {i: hi.Held(x) for i, x in enumerate(leaves) if type(x) in hi.TYPES}
    if not held:
        return args, kwargs, lambda args, kwargs: (args, kwargs)

    def raised(parts: tuple, _: dict) -> Any:
        arrays = [x for i, x in enumerate(parts) if i in held]
        made = iter(_made(list(held.values()), arrays))
        leaves = [next(made) if i in held else x for i, x in enumerate(parts)]
        return tree.tree_unflatten(treedef, leaves)

    return tuple([held[i].arrays if i in held else x for i, x in enumerate(leaves)]), {}, raised


def shapes_of(fun: Callable, args: tuple, kwargs: dict, trace: Callable) -> Any:
    """What `eval_shape` gives of arguments among which are references or values that are no arrays,
    and of a function that returns ShapeDtypeStructs, each of which is its own answer.

    trace(fun): traces a function for arguments, as `jit` does.
    """
    given: list[Any] = []
    args, kwargs, raised = without_values(args, kwargs)
    refs = [isinstance(x, Ref) for x in tree.tree_leaves((args, kwargs))]

    @wraps(fun)
    def values(*args: Any, **kwargs: Any) -> Any:
        if any(refs):
            traced, structure = tree.tree_flatten((args, kwargs))
            args, kwargs = structure.unflatten(
                [Ref(AbstractRef(x.aval), x) if r else x for x, r in zip(traced, refs, strict=True)]
            )
        args, kwargs = raised(args, kwargs)
        leaves, treedef = tree.tree_flatten(fun(*args, **kwargs))
        given[:] = [x if isinstance(x, ShapeDtypeStruct) else None for x in leaves]
        return treedef.unflatten(
            [x if s is None else False for x, s in zip(leaves, given, strict=True)]
        )

    if any(refs):
        told, structure = tree.tree_flatten((args, kwargs))
        args, kwargs = structure.unflatten(
            [ShapeDtypeStruct(x.shape, x.dtype) if r else x for x, r in zip(told, refs)]
        )
    leaves, treedef = tree.tree_flatten(trace(values)(*args, **kwargs).out_info)
    return treedef.unflatten([x if s is None else s for x, s in zip(leaves, given, strict=True)])

