"""Rematerialization: `checkpoint`, its policies, and names for values that policies choose."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numjet.api.derivatives.autodiff import checkpoint as checkpoint
from numjet.api.flat import Flat as _Flat, array_leaves as _array_leaves, name_of as _name_of
from numjet.base import config as _config, tree as _tree
from numjet.core.array import as_array as _as_array
from numjet.core.jaxpr import Literal as _Literal, Var as _Var
from numjet.transforms.linearize import linearize as _linearize, tape_to_jaxpr as _tape_to_jaxpr
from numjet.transforms.remat import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
    checkpoint_policies as checkpoint_policies,
    name_p as _name_p,
)
from numjet.transforms.stage import stage as _stage


def checkpoint_name(x: Any, name: str) -> Any:
    """A pytree, named for `checkpoint_policies.save_only_these_names` and other policies.

    x: arrays, which stay what they are. name: a string. Derivative: the identity.

    >>> from numjet.ad_checkpoint import checkpoint_name
    >>> print(checkpoint_name(1.5, "activations"))
    1.5
    """
    return _tree.tree_map(lambda leaf: _name_p.bind(_as_array(leaf), name=name), x)


def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print what the derivative of a function keeps from the forward pass.

    f: a function of pytrees of arrays; args, kwargs: its arguments. A line for each array, those
    of arguments first: its shape, and the argument it is or the operation and line it comes from.

    >>> from numjet import numpy as jnp
    >>> from numjet.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(lambda x: jnp.sin(x), 1.0)  # doctest: +ELLIPSIS
    f32[] output of cos from ...:1:32 (<lambda>)
    """
    for aval, told in _saved_residuals(f, *args, **kwargs):
        print(aval.str_short(True), told)


def _saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """What `print_saved_residuals` prints: the aval of each array, and where it comes from."""
    leaves, in_tree = _array_leaves("print_saved_residuals", (args, kwargs))
    flat = _Flat("print_saved_residuals", lambda a, k: f(*a, **k), in_tree)

    def residuals(*xs: Any) -> list[Any]:
        lin = _linearize(flat, xs)
        tangents = [t for t in lin.out_tangents if type(t) is _Var]
        linear, found = _tape_to_jaxpr(lin.tape, lin.in_vars, tangents)
        return [*_kept_numbers(linear), *found]

    with _config.jax_equations(True):  # what JAX's rules keep
        jaxpr, _ = _stage(residuals, [x.aval for x in leaves], _name_of(f))
    paths, _ = _tree.tree_flatten_with_path((args, kwargs))
    # Arguments first, then what is computed, in the order of the program.
    made = [*jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars]]
    order = {id(v): i for i, v in enumerate(made)}
    kept = sorted(jaxpr.outvars, key=lambda v: order.get(id(v), -1))
    return [(v.aval, _origin(f, jaxpr, v, [path for path, _ in paths])) for v in kept]


def _kept_numbers(linear: Any) -> list[Any]:
    """The numbers that a linear program reads: those of Python's own type are a part of it, and
    so is what `mean` divides by; JAX keeps the others."""
    counts: dict[int, int] = {}  # by sum: of how many numbers
    found = []
    for eqn in linear.eqns:
        first, kind = eqn.invars[0], eqn.primitive.name
        if kind == "reduce_sum":
            counts[id(eqn.outvars[0])] = first.aval.size // max(eqn.outvars[0].aval.size, 1)
        elif kind == "broadcast_in_dim" and id(first) in counts:  # of keepdims
            counts[id(eqn.outvars[0])] = counts[id(first)]
        by = counts.get(id(first)) if kind == "div" else None
        told = [v.value for v in eqn.invars if type(v) is _Literal and not v.aval.weak_type]
        found += [x for x in told if by is None or x.item() != by]
    return found


def _origin(f: Callable, jaxpr: Any, var: Any, paths: list) -> str:
    """Where a residual comes from, in words."""
    if type(var) is not _Var:
        return "from a literal"
    if var in jaxpr.constvars:
        return "from a constant"
    if var in jaxpr.invars:
        part, first, *rest = paths[jaxpr.invars.index(var)]
        names = list(inspect.signature(f).parameters)
        place = first.key if part.idx else names[first.idx] if first.idx < len(names) else first
        return f"from the argument {place}{_tree.keystr(tuple(rest))}"
    (eqn,) = [eqn for eqn in jaxpr.eqns if var in eqn.outvars]
    inner = getattr(eqn.params.get("jaxpr"), "jaxpr", None)
    kind = eqn.primitive.name
    if kind == "reduce_precision":  # of what
        return _origin(f, jaxpr, eqn.invars[0], paths)
    if inner is not None and len(inner.outvars) == len(eqn.outvars):
        # A call: which operand, or what it is within if it is checkpointed.
        found = inner.outvars[list(eqn.outvars).index(var)]
        if found in inner.invars and kind != "scan":
            return _origin(f, jaxpr, eqn.invars[inner.invars.index(found)], paths)
        if kind == "remat2" and any(found in e.outvars for e in inner.eqns):
            return _origin(f, inner, found, paths)
    label = f"named {eqn.params['name']!r}" if eqn.primitive is _name_p else f"output of {kind}"
    if kind == "jit":
        label = f"output of jitted function {eqn.params['name']!r}"
    return f"{label} from {eqn.source}" if eqn.source is not None else label


__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
