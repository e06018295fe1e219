"""Dead-code elimination in jaxprs: what a split or a transposition leaves unread is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numjet.core import jit_params
from numjet.core.jaxpr import HELD, ClosedJaxpr, Eqn, Jaxpr, Var


def dce_jaxpr(
    jaxpr: Jaxpr, used: Sequence[bool] | None = None, calls: bool = False
) -> tuple[Jaxpr, list[bool]]:
    """Drop unused outputs and every equation without effects that nothing needs.

    Returns the jaxpr with all its inputs kept, and which inputs it still reads. Loops and branches
    lose the results that nothing needs, and what is computed for them alone; so do calls (`jit`,
    `checkpoint`) where `calls` says so: elsewhere they stay as they are, to be compiled once.
    """
    outvars = (
        [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
        if used is not None
        else jaxpr.outvars
    )
    needed = {v for v in outvars if type(v) is Var}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in needed for v in eqn.outvars]
        if type(eqn.primitive.prune) is EquationRule:
            reads, left = eqn.primitive.prune.rule(used, eqn)
            needed.update(v for v, r in zip(eqn.invars, reads, strict=True) if r and type(v) is Var)
            if left is not None:
                kept.append(left)
        elif eqn.effects or any(used):
            eqn = _pruned_call(eqn, used) if calls and _is_call(eqn) else _pruned(eqn, used)
            kept.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is Var)
    kept.reverse()
    return jaxpr.replace(eqns=kept, outvars=outvars, effects=None), [
        v in needed for v in jaxpr.invars
    ]


class EquationRule:
    """A rule by the user, as a primitive's `prune`: `rule(used, equation)` gives which operands are
    read, and the equation with those results alone that are used, or None. Who has no equation
    leaves all as it is."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[[list[bool], Eqn], tuple[list[bool], Eqn | None]]) -> None:
        self.rule = rule

    def __call__(self, params: dict, used: tuple[bool, ...]) -> None:
        return None


def _pruned(eqn: Eqn, used: Sequence[bool]) -> Eqn:
    prune = eqn.primitive.prune
    found = prune(eqn.params, tuple(used)) if prune is not None and not all(used) else None
    if found is None:
        return eqn
    params, ins, outs = found
    return eqn.replace(
        params=params,
        invars=[eqn.invars[i] for i in ins],
        outvars=[eqn.outvars[i] for i in outs],
    )


def _is_call(eqn: Eqn) -> bool:
    return eqn.primitive.name in ("jit", "remat2") and "jaxpr" in eqn.params


def _pruned_call(eqn: Eqn, used: Sequence[bool]) -> Eqn:
    closed = eqn.params["jaxpr"]
    key = ("call_pruned", tuple(used))
    if key not in closed.cache:
        inner, reads = dce_jaxpr(closed.jaxpr, used, calls=True)
        invars = [v for v, read in zip(inner.invars, reads, strict=True) if read]
        pruned = ClosedJaxpr(inner.replace(invars=invars), closed.consts)
        if HELD in closed.cache:
            pruned.cache[HELD] = sum(reads[: closed.cache[HELD]])
        closed.cache[key] = pruned, reads
    pruned, reads = closed.cache[key]
    ins = [i for i, read in enumerate(reads) if read]
    outs = [i for i, u in enumerate(used) if u]
    told = {name: value for name, value in eqn.params.items() if name in jit_params.NAMES}
    return eqn.replace(
        params={**eqn.params, **jit_params.derived(told, ins, outs), "jaxpr": pruned},
        invars=[eqn.invars[i] for i in ins],
        outvars=[eqn.outvars[i] for i in outs],
    )


def prune_loop(
    closed: ClosedJaxpr, num_consts: int, used: Sequence[bool], carry: Sequence[bool]
) -> tuple[ClosedJaxpr, list[int], list[int]] | None:
    """The body of a loop of (consts, carry, xs) -> (carry, ys) with the outputs that are used.

    A carry also stays where another one that stays, or an output, is computed from it; `carry` are
    flags of those that stay in any case. Returns the body and the inputs and outputs it keeps, or
    None where all stay. Remembered with the jaxpr.
    """
    n = len(carry)
    key = ("prune", num_consts, tuple(used), tuple(carry))
    if key in closed.cache:
        return closed.cache[key]
    flags = [a or b for a, b in zip(used, carry, strict=False)] + list(used[n:])
    while True:
        body, reads = dce_jaxpr(closed.jaxpr, flags)
        grown = [a or b for a, b in zip(flags, reads[num_consts : num_consts + n], strict=False)]
        if grown == flags[:n]:
            break
        flags[:n] = grown
    reads[num_consts : num_consts + n] = flags[:n]
    ins = [i for i, read in enumerate(reads) if read]
    outs = [i for i, flag in enumerate(flags) if flag]
    found = None
    if len(outs) < len(flags):
        body = body.replace(invars=[body.invars[i] for i in ins])
        found = ClosedJaxpr(body, closed.consts), ins, outs
    closed.cache[key] = found
    return found
