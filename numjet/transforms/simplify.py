"""Dead-code elimination in jaxprs: rematerialization drops what a split leaves unread with it."""

from __future__ import annotations

from collections.abc import Sequence

from numjet.core.jaxpr import Eqn, Jaxpr, Var


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
