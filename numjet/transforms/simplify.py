"""Rewrites of jaxprs that keep their meaning: dead-code elimination and inlining.

Used by rematerialization and the backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var


def dce_jaxpr(jaxpr: Jaxpr, used: Sequence[bool] | None = None) -> tuple[Jaxpr, list[bool]]:
    """Drop unused outputs and every equation without effects that nothing needs.

    Returns the jaxpr with all its inputs kept, and which inputs it still reads.
    """
    outvars = (
        [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
        if used is not None
        else jaxpr.outvars
    )
    needed = {v for v in outvars if type(v) is Var}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is Var)
    kept.reverse()
    return jaxpr.replace(eqns=kept, outvars=outvars, effects=None), [
        v in needed for v in jaxpr.invars
    ]


CALLS = frozenset({"jit", "remat", "custom_jvp_call", "custom_vjp_call"})


def inline_calls(jaxpr: Jaxpr, names: frozenset[str] = CALLS) -> Jaxpr:
    """Replace call equations by the equations of their jaxprs, to any depth.

    Calls whose jaxpr has constants of its own stay.
    """
    eqns: list[Eqn] = []
    env: dict = {}
    _inline(jaxpr, env, eqns, names, fresh=False)
    return jaxpr.replace(eqns=eqns, outvars=[_read(env, v) for v in jaxpr.outvars])


def _read(env: dict, atom: Any) -> Any:
    return env.get(atom, atom) if type(atom) is Var else atom


def _inline(jaxpr: Jaxpr, env: dict, out: list[Eqn], names: frozenset[str], fresh: bool) -> None:
    """Append `jaxpr`'s equations to `out`; `fresh` renames, since a jaxpr may be called many
    times."""
    for eqn in jaxpr.eqns:
        invars = [_read(env, v) for v in eqn.invars]
        call = (
            eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
            if eqn.primitive.name in names
            else None
        )
        if isinstance(call, ClosedJaxpr) and not call.consts:
            inner: dict = dict(zip(call.jaxpr.invars, invars, strict=True))
            _inline(call.jaxpr, inner, out, names, fresh=True)
            env.update(
                (v, _read(inner, atom))
                for v, atom in zip(eqn.outvars, call.jaxpr.outvars, strict=True)
            )
            continue
        outvars = eqn.outvars
        if fresh:
            outvars = [Var(v.aval) for v in outvars]
            env.update(zip(eqn.outvars, outvars, strict=True))
        out.append(eqn.replace(invars=invars, outvars=outvars))
