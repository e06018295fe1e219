"""Arrays without axes that a function closes over, as constants of its jaxpr.

Traces write an array without axes in place, as a literal, wherever it comes from. In jaxprs that
are made to be read one that the function's own variables hold is a constant, as in JAX: how many
constants there are does not depend on whether a value is known while tracing. Loops, branches,
checkpointed functions and rules by the user take it as an operand, jitted functions as a constant
of their own (`core.jaxpr_held`). One that was converted to another dtype on the way is still a
literal. What would break it: a trace that copies the memory of such an array before it writes it
down, or an equation whose operands are not those of its jaxprs.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numjet.base import tree
from numjet.core import jit_params
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import CONSTS, HELD, PART, Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.core.structural import convert_element_type_p

# Variables of arrays without axes, by the identities of their values, in the order of reading.
_Scalars = dict[int, Var]


def with_named_scalars(fun: Callable, closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed`, the jaxpr of `fun`, whose literals that variables of `fun` hold are constants.

    The constants come in the order in which they are first read. `closed` itself
    stays as it is.
    """
    scalars = {id(x._value): x for x in _scalars(fun)}
    if not scalars:  # of the most functions, which are told quickly
        return closed
    jaxpr, found = _Lifting(scalars).jaxpr(closed.jaxpr)
    if not found:
        return closed
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= {var: scalars[key] for key, var in found.items()}
    place = _places(jaxpr)
    order = sorted(values, key=lambda var: place.get(var, len(place)))
    return ClosedJaxpr(jaxpr.replace(constvars=order), [values[var] for var in order])


class _Lifting:
    """Jaxprs with variables in place of literals; one that stands in several places is written
    once."""

    def __init__(self, scalars: dict[int, ArrayImpl]) -> None:
        self.scalars = scalars
        self.known: dict[int, tuple[Jaxpr, _Scalars]] = {}
        self.kept: list[Jaxpr] = []  # whose `id` is a key

    def jaxpr(self, jaxpr: Jaxpr) -> tuple[Jaxpr, _Scalars]:
        """The jaxpr, and variables that it reads and does not bind."""
        made = self.known.get(id(jaxpr))
        if made is not None:
            return made
        self.kept.append(jaxpr)
        found: _Scalars = {}
        eqns: list[Eqn] = []

        def constant(atom: Atom, source: Any) -> Atom:
            if type(atom) is not Literal or type(atom.value) is not ArrayImpl:
                return atom
            x = self.scalars.get(id(atom.value._value))
            if x is None:
                return atom
            var = self.variable(found, id(x._value))
            if var.aval == atom.aval:
                return var
            params = {"new_dtype": atom.aval.dtype, "weak_type": atom.aval.weak_type}
            converted = Var(atom.aval)
            eqns.append(Eqn([var], [converted], convert_element_type_p, params, source=source))
            return converted

        if not any([hasattr(effect, "input_index") for effect in jaxpr.effects]):
            for old in jaxpr.eqns:
                eqn = self.inside(old, found) if old.primitive.higher_order else old
                invars = [constant(atom, eqn.source) for atom in eqn.invars]
                eqns.append(eqn if invars == eqn.invars else eqn.replace(invars=invars))
            outvars = [constant(atom, None) for atom in jaxpr.outvars]
        new = jaxpr.replace(eqns=eqns, outvars=outvars) if found else jaxpr
        made = self.known[id(jaxpr)] = new, found
        return made

    def variable(self, found: _Scalars, key: int) -> Var:
        var = found.get(key)
        if var is None:
            var = found[key] = Var(self.scalars[key].aval)
        return var

    def inside(self, eqn: Eqn, found: _Scalars) -> Eqn:
        """An equation whose jaxprs take what they read of these arrays."""
        kind, params = eqn.primitive.name, {**eqn.params}
        taken = functools.partial(self.taken, found=found)
        invars = eqn.invars
        if kind == "jit":
            closed = params["jaxpr"]
            held = closed.cache.get(HELD, 0)
            (new,), front = taken([closed], invars, held)
            if PART not in closed.cache:
                new.cache[HELD] = len(front)
            names = {name: params[name] for name in jit_params.NAMES if name in params}
            if names:
                n_in = len(front) + len(invars) - held
                params |= jit_params.completed(names, n_in, len(eqn.outvars))
            params["jaxpr"], invars = new, [*front, *invars[held:]]
        elif kind == "cond":
            branches = params["branches"]
            count = branches[0].cache.get(CONSTS, 0)
            chosen = branches[::-1] if len(branches) == 2 else branches  # that for True is first
            new, front = taken(chosen, invars[1:], count)
            params["branches"] = tuple(new[::-1] if len(branches) == 2 else new)
            invars = [invars[0], *front, *invars[1 + count :]]
        elif kind == "while":
            front, rest = [], invars
            for name in ("cond", "body"):
                count = params[f"{name}_nconsts"]
                (params[f"{name}_jaxpr"],), own = taken([params[f"{name}_jaxpr"]], rest, count)
                params[f"{name}_nconsts"] = len(own)
                front, rest = [*front, *own], rest[count:]
            invars = [*front, *rest]
        else:
            name = "jaxpr" if kind in ("scan", "remat2") else "call_jaxpr"
            counted = kind in ("scan", "custom_jvp_call", "custom_vjp_call")
            if not counted and kind != "remat2":
                return eqn
            count = params["num_consts"] if counted else _closed(params[name]).cache.get(CONSTS, 0)
            (params[name],), front = taken([params[name]], invars, count)
            if counted:
                params["num_consts"] = len(front)
            invars = [*front, *invars[count:]]
        return eqn if len(invars) == len(eqn.invars) else eqn.replace(invars=invars, params=params)

    def taken(
        self, bodies: Sequence[Any], operands: Sequence[Atom], count: int, found: _Scalars
    ) -> tuple[list[Any], list[Atom]]:
        """Jaxprs that take the same operands, of which the first `count` are constants, with more
        such in front, and all operands that are constants then."""
        read = [self.jaxpr(_closed(body).jaxpr) for body in bodies]
        keys = dict.fromkeys([key for _, own in read for key in own])
        if not keys:
            return [*bodies], [*operands[:count]]
        entries: list[Any] = [*range(count)]  # places, and keys as tuples
        first = [self.first_read(read, entry) for entry in entries]
        for key in keys:
            at = self.first_read(read, (key,))
            place = next((i for i, other in enumerate(first) if other > at), len(first))
            entries.insert(place, (key,))
            first.insert(place, at)
        new = []
        for body, (jaxpr, own) in zip(bodies, read, strict=True):
            invars = [
                jaxpr.invars[entry] if type(entry) is int else self.of(own, entry[0])
                for entry in entries
            ]
            whole = jaxpr.replace(invars=[*invars, *jaxpr.invars[count:]])
            new.append(
                ClosedJaxpr(whole, body.consts) if isinstance(body, ClosedJaxpr) else whole
            )
        front = [
            operands[entry] if type(entry) is int else self.variable(found, entry[0])
            for entry in entries
        ]
        return new, front

    def of(self, own: _Scalars, key: int) -> Var:
        return own[key] if key in own else Var(self.scalars[key].aval)

    def first_read(
        self, read: Sequence[tuple[Jaxpr, _Scalars]], entry: Any
    ) -> tuple[int, int]:
        """Where an operand or an array is read first: in which jaxpr, and where there."""
        for i, (jaxpr, own) in enumerate(read):
            var = own.get(entry[0]) if type(entry) is tuple else jaxpr.invars[entry]
            place = _places(jaxpr).get(var)
            if place is not None:
                return i, place
        return len(read), 0


def _closed(body: Any) -> ClosedJaxpr:
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, [])


def _places(jaxpr: Jaxpr) -> dict[Any, int]:
    """For each variable where it is first read."""
    read = [atom for eqn in jaxpr.eqns for atom in eqn.invars]
    places: dict[Any, int] = {}
    for i, atom in enumerate([*read, *jaxpr.outvars]):
        if type(atom) is Var:
            places.setdefault(atom, i)
    return places


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
    """The values that a function, a bound method, a `functools.partial` or an object that is called
    holds."""
    if isinstance(fun, functools.partial):
        return [fun.func, fun.args, fun.keywords]
    if isinstance(fun, types.MethodType):
        return [fun.__func__, fun.__self__, getattr(fun.__self__, "__dict__", None)]
    held = []
    if isinstance(fun, types.FunctionType):
        if (fun.__module__ or "").startswith(_OWN):
            return []
        for cell in fun.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:  # a variable without a value yet
                continue
        held.extend([fun.__defaults__, fun.__kwdefaults__])
        spread = [fun.__globals__.get(name) for name in _names(fun.__code__)]
        held.extend([x for x in spread if type(x) is ArrayImpl or callable(x)])
    elif not isinstance(fun, type):
        held.append(getattr(fun, "__dict__", None))
    wrapped = getattr(fun, "__wrapped__", None)
    return held if wrapped is None else [*held, wrapped]


_OWN = __name__.partition(".")[0] + "."


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a function's code reads, and those of functions written in it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
