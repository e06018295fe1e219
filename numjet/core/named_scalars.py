"""Arrays without axes that a function closes over, as constants of its jaxpr.

Traces write an array without axes in place, as a literal, wherever it comes from. In jaxprs that
are made to be read one that the function's own variables hold is a constant, as in JAX: how many
constants there are does not depend on whether a value is known while tracing. One that was
converted to another dtype on the way is still a literal, and so are those in jaxprs of loops,
branches and calls. What would break it: a trace that copies the memory of such an array before it
writes it down.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from numjet.base import tree
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, Var
from numjet.core.structural import convert_element_type_p


def with_named_scalars(fun: Callable, closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed`, the jaxpr of `fun`, whose literals that variables of `fun` hold are constants.

    The constants come in the order in which they are first read. `closed` itself
    stays as it is.
    """
    jaxpr = closed.jaxpr
    scalars = {id(x._value): x for x in _scalars(fun)}
    if not scalars:  # of the most functions, which are told quickly
        return closed
    written = {
        id(atom.value._value)
        for atoms in _read(jaxpr)
        for atom in atoms
        if type(atom) is Literal and type(atom.value) is ArrayImpl
    }
    if not written or any([hasattr(effect, "input_index") for effect in jaxpr.effects]):
        return closed
    named = {key: (Var(x.aval), x) for key, x in scalars.items() if key in written}
    if not named:
        return closed
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    order: dict[Var, Any] = {}
    eqns: list[Eqn] = []

    def constant(atom: Atom, source: Any) -> Atom:
        if type(atom) is Literal:
            if type(atom.value) is not ArrayImpl or id(atom.value._value) not in named:
                return atom
            var, order[var] = named[id(atom.value._value)]
            if var.aval == atom.aval:
                return var
            params = {"new_dtype": atom.aval.dtype, "weak_type": atom.aval.weak_type}
            converted = Var(atom.aval)
            eqns.append(Eqn([var], [converted], convert_element_type_p, params, source=source))
            return converted
        if atom in values:
            order[atom] = values[atom]
        return atom

    for eqn in jaxpr.eqns:
        invars = [constant(atom, eqn.source) for atom in eqn.invars]
        eqns.append(eqn.replace(invars=invars))
    outvars = [constant(atom, None) for atom in jaxpr.outvars]
    order.update((var, x) for var, x in values.items() if var not in order)
    new = jaxpr.replace(constvars=list(order), eqns=eqns, outvars=outvars)
    return ClosedJaxpr(new, list(order.values()))


def _read(jaxpr: Any) -> Iterator[list[Atom]]:
    """The operands of each equation, and the outputs."""
    for eqn in jaxpr.eqns:
        yield eqn.invars
    yield jaxpr.outvars


def _scalars(fun: Any) -> Iterator[ArrayImpl]:
    """The arrays without axes in the variables that `fun` closes over, in its defaults, in its
    globals by name, in what it is bound to, and in those of functions among these."""
    seen: dict[int, Any] = {}  # by address; a dict may hold itself, as a namespace does
    waiting = [fun]
    while waiting:
        x = waiting.pop()
        if type(x) is ArrayImpl:
            if not x.aval.shape:
                yield x
        elif id(x) not in seen:
            seen[id(x)] = x
            if isinstance(x, dict):  # also with keys that have no order
                waiting.extend(x.values())
            elif tree.is_tree_node(type(x)):
                waiting.extend(tree.flatten_one_level(x)[0])
            elif callable(x):
                waiting.extend(_held(x))


def _held(fun: Any) -> list[Any]:
    """The values that a function, a bound method or a `functools.partial` holds."""
    if isinstance(fun, functools.partial):
        return [fun.func, fun.args, fun.keywords]
    if isinstance(fun, types.MethodType):
        return [fun.__func__, fun.__self__]
    held = []
    if isinstance(fun, types.FunctionType):
        for cell in fun.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:  # a variable without a value yet
                continue
        held.extend([fun.__defaults__, fun.__kwdefaults__])
        spread = [fun.__globals__.get(name) for name in fun.__code__.co_names]
        held.extend([x for x in spread if type(x) is ArrayImpl])
    wrapped = getattr(fun, "__wrapped__", None)
    return held if wrapped is None else [*held, wrapped]
