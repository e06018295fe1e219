"""The type checker of jaxprs: run on every derived jaxpr in tests and with `config.check_ir`."""

from __future__ import annotations

from typing import Any

from numjet.base.errors import InternalError
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
            raise InternalError(f"variable {var} is bound twice in\n{jaxpr}")
        bound.add(var)

    def read(atom: Any) -> None:
        if type(atom) is Var and atom not in bound:
            raise InternalError(f"variable {atom} is used before it is bound in\n{jaxpr}")
        if type(atom) not in (Var, Literal):
            raise InternalError(f"{atom!r} is neither variable nor literal in\n{jaxpr}")

    for var in (*jaxpr.constvars, *jaxpr.invars):
        bind(var)
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            read(atom)
        for sub in subjaxprs(eqn.params):
            check_jaxpr(sub)
        _check_types(eqn, jaxpr)
        for var in eqn.outvars:
            bind(var)
    for atom in jaxpr.outvars:
        read(atom)


def _check_types(eqn: Eqn, jaxpr: Jaxpr) -> None:
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
            f"{eqn.primitive.name}: abstract rule gives {want}, the equation has {have} in\n{jaxpr}"
        )
