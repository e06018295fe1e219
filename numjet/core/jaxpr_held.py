"""Jaxprs as JAX writes them: what a jitted function closes over is a constant of its own jaxpr.

Ours has these values as operands of the call, from the constants of the whole (`HELD` in the cache
of the called jaxpr says how many of the first). `with_held` gives the jaxpr to print: inside of
loops, branches and checkpointed functions, too, which then do not take the values. Nothing runs
what it returns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from numjet.core.jaxpr import HELD, ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.core.jit_params import without_first

# Equations whose body takes constants first, by the param that counts them.
_COUNTED = {
    kind: "num_consts"
    for kind in ("scan", "custom_jvp_call", "custom_vjp_call", "call_hi_primitive")
}


def with_held(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with the constants of calls inside of their jaxprs."""
    return _Rewriting().jaxpr(jaxpr, jaxpr.constvars) if jaxpr.constvars else jaxpr


def _used(jaxpr: Jaxpr) -> set[Any]:
    return {v for eqn in jaxpr.eqns for v in eqn.invars} | {*jaxpr.outvars}


class _Rewriting:
    """One jaxpr and those inside of it; one that stands in several places is written once."""

    def __init__(self) -> None:
        self.known: dict[tuple, Jaxpr] = {}
        self.kept: list[Jaxpr] = []  # those whose `id` is a part of a key

    def jaxpr(self, jaxpr: Jaxpr, constants: Collection[Any]) -> Jaxpr:
        """Rewritten, where these of its variables are constants of the whole."""
        key = (id(jaxpr), *[id(v) for v in constants])
        found = self.known.get(key)
        if found is None:
            held = {*constants}
            self.kept.append(jaxpr)
            eqns = [self.eqn(eqn, held) for eqn in jaxpr.eqns]
            found = jaxpr
            if any([new is not old for new, old in zip(eqns, jaxpr.eqns, strict=True)]):
                found = jaxpr.replace(eqns=eqns)
                gone = _used(jaxpr) - _used(found)
                found.constvars = [v for v in jaxpr.constvars if v not in gone]
            self.known[key] = found
        return found

    def eqn(self, eqn: Eqn, held: set[Any]) -> Eqn:
        if held.isdisjoint([v for v in eqn.invars if type(v) is Var]):
            return eqn
        params, kind = eqn.params, eqn.primitive.name
        if kind == "jit":
            return self.call(eqn, held)
        if kind == "remat2":
            return self.body(eqn, held, "jaxpr", len(eqn.invars), None)
        if kind in _COUNTED:
            name = "jaxpr" if kind == "scan" else "call_jaxpr"
            return self.body(eqn, held, name, params[_COUNTED[kind]], _COUNTED[kind])
        if kind == "while":
            return self.loop(eqn, held)
        return self.branches(eqn, held) if kind == "cond" else eqn

    def call(self, eqn: Eqn, held: set[Any]) -> Eqn:
        closed = eqn.params["jaxpr"]
        inner = closed.jaxpr
        n = inner.cache.get(HELD, 0)
        if not n or not all([v in held for v in eqn.invars[:n]]):
            return eqn
        key = (id(inner),)
        found = self.known.get(key)
        if found is None:
            found = inner.replace(constvars=inner.invars[:n], invars=inner.invars[n:])
            found = self.known[key] = self.jaxpr(found, found.constvars)
        params = without_first(eqn.params, n)
        params["jaxpr"] = ClosedJaxpr(found, closed.consts)
        return eqn.replace(invars=eqn.invars[n:], params=params)

    def inside(
        self, jaxprs: Sequence[Jaxpr], operands: Sequence[Any], held: set[Any]
    ) -> tuple[list[Jaxpr], list[bool]]:
        """Jaxprs that take the same operands, rewritten, and which operands one still reads."""
        new = []
        for each in jaxprs:
            pairs = zip(each.invars, operands, strict=False)
            new.append(self.jaxpr(each, [v for v, x in pairs if type(x) is Var and x in held]))
        stays = [
            all([a is b for a, b in zip(jaxprs, new, strict=True)]) or any(
                [e.invars[i] in _used(b) or e.invars[i] not in _used(e)
                 for e, b in zip(jaxprs, new, strict=True)]
            ) for i in range(len(operands))
        ]  # fmt: skip
        kept = []
        for each in new:
            gone = {each.invars[i] for i, stay in enumerate(stays) if not stay}
            kept.append(
                each.replace(invars=[v for v in each.invars if v not in gone]) if gone else each
            )
        return kept, stays

    def body(self, eqn: Eqn, held: set[Any], name: str, count: int, counted: str | None) -> Eqn:
        closed = eqn.params[name]
        (new,), stays = self.inside([_open(closed)], eqn.invars[:count], held)
        if new is _open(closed):
            return eqn
        params = {**eqn.params, name: _like(closed, new)}
        if counted is not None:
            params[counted] = sum(stays)
        invars = [v for v, stay in zip(eqn.invars, stays, strict=False) if stay]
        return eqn.replace(invars=[*invars, *eqn.invars[count:]], params=params)

    def loop(self, eqn: Eqn, held: set[Any]) -> Eqn:
        params, rest, before = {**eqn.params}, [*eqn.invars], []
        for name, counted in (("cond_jaxpr", "cond_nconsts"), ("body_jaxpr", "body_nconsts")):
            closed, count = params[name], params[counted]
            own, rest = rest[:count], rest[count:]
            (new,), stays = self.inside([_open(closed)], own, held)
            params[name], params[counted] = _like(closed, new), sum(stays)
            before += [v for v, stay in zip(own, stays, strict=True) if stay]
        return eqn.replace(invars=[*before, *rest], params=params)

    def branches(self, eqn: Eqn, held: set[Any]) -> Eqn:
        branches = eqn.params["branches"]
        old = [_open(b) for b in branches]
        new, stays = self.inside(old, eqn.invars[1:], held)
        if all([a is b for a, b in zip(old, new, strict=True)]):
            return eqn
        params = {**eqn.params, "branches": tuple(map(_like, branches, new))}
        invars = [v for v, stay in zip(eqn.invars[1:], stays, strict=True) if stay]
        return eqn.replace(invars=[eqn.invars[0], *invars], params=params)


def _open(value: Any) -> Jaxpr:
    return value.jaxpr if isinstance(value, ClosedJaxpr) else value


def _like(given: Any, jaxpr: Jaxpr) -> Any:
    return ClosedJaxpr(jaxpr, given.consts) if isinstance(given, ClosedJaxpr) else jaxpr
