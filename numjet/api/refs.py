"""Calls of jitted functions with mutable references: among the arguments, or closed over.

`api.jit` hands such calls over. A function of references becomes one of their values that gives the
new ones too (`core.refs`); it is traced and compiled like every other. What would break it: an
argument that stands in two places, which is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.base import tree
from numjet.core.refs import AbstractRef, Ref, RefUse
from numjet.core.remote import Remote
from numjet.core.trace import EVAL, current_trace
from numjet.ops.jit_call import jit_p
from numjet.transforms.stage import has_tracers


def lasting(use: RefUse | None) -> bool:
    """Whether a program may be kept: the references it closes over are no other program's."""
    return use is None or all([ref.home is EVAL for ref in use.refs])


def call_closed_over(core: Any, entry: Any, leaves: list) -> Any:
    """A call of a function that closes over references: their values are arguments, and the last
    results are their new ones."""
    use: Any = entry.use
    operands = [*leaves, *use.values()]
    if current_trace() is not EVAL or has_tracers([*entry.consts, *operands]):
        outs = jit_p.bind(*entry.consts, *operands, jaxpr=entry.closed, name=entry.name)
    elif (place := core._place_for(entry, operands)) is not None:
        outs = Remote.run(entry.closed, [*entry.consts, *operands], place, entry.name, [])
    else:
        outs = core._execute(entry, operands)
    n = len(outs) - len(use.written)
    for ref, value in zip(use.written, outs[n:], strict=True):
        ref.put(value)
    return tree.tree_unflatten(entry.out_tree, outs[:n])


def call_with_refs(core: Any, statics: tuple, leaves: list, treedef: Any) -> Any:
    """A call with references among the arguments: one of the function of their values that gives
    the new ones too. Donated arguments are kept."""
    refs = {i: x for i, x in enumerate(leaves) if type(x) is Ref}
    names = core._arg_names(treedef)
    first: dict[Ref, int] = {}
    for i, ref in refs.items():
        if first.setdefault(ref, i) != i:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {core._name} for jit the mutable array reference of type "
                f"{ref.aval} appeared at both {names[first[ref]]} and {names[i]}."
            )
    known = core._with_refs.setdefault((statics, treedef, tuple(refs)), [None, refs])
    known[1] = refs
    if known[0] is None:
        known[0] = type(core)(_pure(core, statics, treedef, known), (), (), (), ())
    outs, values = known[0].call(*[x.value() if i in refs else x for i, x in enumerate(leaves)])
    for ref, value in zip(refs.values(), values, strict=True):
        ref.put(value)
    return outs


def _pure(core: Any, statics: tuple, treedef: Any, known: list) -> Callable:
    """The function of leaves, with arrays for references, that gives its result and what the
    references hold at the end. `known[1]` are the references of the call that traces it."""

    def pure(*leaves: Any) -> Any:
        refs: dict[int, Ref] = known[1]
        inner = {i: Ref(AbstractRef(leaves[i].aval), leaves[i]) for i in refs}
        dynamic, kw = tree.tree_unflatten(treedef, [inner.get(i, x) for i, x in enumerate(leaves)])
        positional = list(dynamic)
        for i, value, _ in statics:
            if isinstance(i, int):
                positional.insert(i, value)
        named = {name: value for name, value, _ in statics if isinstance(name, str)}
        out = core._fun(*positional, **kw, **named)
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
