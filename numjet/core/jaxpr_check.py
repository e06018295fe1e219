"""The type checker of jaxprs: run on every derived jaxpr in tests and with `config.check_ir`."""

from __future__ import annotations

from typing import Any

from numjet.base.errors import InternalError
from numjet.core.effects import HostEffect
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, subjaxprs
from numjet.core.primitive import Stretched


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise InternalError unless every variable is bound once before use and every equation's
    outputs have the shape and dtype that its abstract rule gives."""
    if isinstance(jaxpr, ClosedJaxpr):
        if len(jaxpr.consts) != len(jaxpr.jaxpr.constvars):
            raise InternalError(
                f"{len(jaxpr.consts)} constants for {len(jaxpr.jaxpr.constvars)} constvars."
            )
        jaxpr = jaxpr.jaxpr
    bound: set[Var] = set()

    def bind(var: Var) -> None:
        if var in bound:
            raise InternalError(f"Variable '{_name(var, jaxpr)}' already bound.")
        bound.add(var)

    def read(atom: Any) -> None:
        if type(atom) is Var and atom not in bound:
            raise InternalError(f"Variable '{_name(atom, jaxpr)}' not defined.")
        if type(atom) not in (Var, Literal):
            raise InternalError(f"{atom!r} is neither variable nor literal in\n{jaxpr}")

    for var in (*jaxpr.constvars, *jaxpr.invars):
        bind(var)
    for eqn in jaxpr.eqns:
        try:
            for atom in eqn.invars:
                read(atom)
            _check_branches(eqn)
            for sub in subjaxprs(eqn.params):
                check_jaxpr(sub)
            _check_types(eqn)
            for var in eqn.outvars:
                bind(var)
            for effect in eqn.effects:
                if isinstance(effect, HostEffect) and effect not in jaxpr.effects:
                    raise InternalError(
                        f"Equation effect not present in jaxpr effects: {effect} is not in "
                        f"{set(jaxpr.effects)}."
                    )
        except InternalError as error:
            told = str(error)
            if "in equation:" not in told:  # the innermost tells most
                told = f"{told}\n\nin equation:\n\n{eqn}"
            raise InternalError(told) from None
    for atom in jaxpr.outvars:
        read(atom)


def _name(var: Var, jaxpr: Jaxpr) -> str:
    """The letters of `var` where `jaxpr` is printed and nothing in it has a name of its own."""
    each = [(*eqn.outvars, *eqn.invars) for eqn in jaxpr.eqns]
    atoms = [*jaxpr.constvars, *jaxpr.invars, *[a for some in each for a in some], *jaxpr.outvars]
    number = list(dict.fromkeys([a for a in atoms if type(a) is Var])).index(var) + 1
    letters = ""
    while number:
        number, k = divmod(number - 1, 26)
        letters = chr(ord("a") + k) + letters
    return letters


def _check_branches(eqn: Eqn) -> None:
    if eqn.primitive.name != "cond":
        return
    first, *others = [len(branch.jaxpr.invars) for branch in eqn.params["branches"]]
    for k, count in enumerate(others, 1):
        if count != first:
            raise InternalError(f"cond branch 0 takes {first} inputs, branch {k} takes {count}.")


def _check_types(eqn: Eqn) -> None:
    try:
        avals = eqn.primitive.out_avals(tuple(v.aval for v in eqn.invars), eqn.params)
    except Stretched as operands:
        avals = operands.out
    want = list(avals) if eqn.primitive.multiple_results else [avals]
    have = [v.aval for v in eqn.outvars]
    same = len(want) == len(have) and all(
        w.shape == h.shape and w.dtype == h.dtype for w, h in zip(want, have, strict=True)
    )
    if not same:
        raise InternalError(
            f"{eqn.primitive.name}: abstract rule gives {want}, the equation has {have}."
        )
