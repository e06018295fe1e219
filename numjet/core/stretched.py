"""Elementwise operations of operands with axes of size 1, which stretch.

Functions repeat such operands before they bind (`broadcast_in_dim`), and rules and compilers rely
on it. The equations that `make_jaxpr` shows take them as they are, as in JAX (the flag
`jax_equations`): `Primitive.out_avals` lets them pass there alone, and raises `Stretched`
elsewhere, upon which `bind` repeats them. `written_out` gives the jaxpr that compilers take; who
stages or runs a jaxpr asks for it. What would break it: a jaxpr of `make_jaxpr`'s that reaches a
compiler another way.
"""
from __future__ import annotations

import operator
from typing import Any

from numjet.core import hooks
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, subjaxprs
from numjet.core.primitive import REGISTRY, Met
from numjet.core.ref_equations import Made, RefPrimitive
from numjet.core.structural import broadcast_in_dim


def stretched(args: tuple, shape: tuple[int, ...]) -> list[Any]:
    """The operands repeated to a shape, but for those without axes."""
    axes = tuple(range(len(shape)))
    return [broadcast_in_dim(x, shape, axes) if getattr(x, "shape", ()) else x for x in args]


def written_out(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with operands of one shape (or none) everywhere, and without references."""
    if not Met.stretched:
        return closed
    jaxpr = _plain(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _plain(jaxpr: Jaxpr) -> Jaxpr:
    found = jaxpr.cache.get("written out")
    if found is None:
        if Made.any and any([type(eqn.primitive) is RefPrimitive for eqn in jaxpr.eqns]):
            found = hooks.without_refs(jaxpr)
        else:
            eqns: list[Eqn] = []
            for eqn in jaxpr.eqns:
                eqns.extend(_equation(eqn))
            same = len(eqns) == len(jaxpr.eqns) and all(map(operator.is_, eqns, jaxpr.eqns))
            found = jaxpr if same else jaxpr.replace(eqns=eqns)
        # Of one that is its own True: it does not hold itself.
        jaxpr.cache["written out"] = True if found is jaxpr else found
        found.cache["written out"] = True
    return jaxpr if found is True else found


def _equation(eqn: Eqn) -> list[Eqn]:
    if eqn.primitive.elementwise:
        shape = eqn.outvars[0].aval.shape
        made, operands = [], []
        for x in eqn.invars:
            if x.aval.shape not in ((), shape) and type(x) is not Literal:
                params = {"shape": shape, "broadcast_dimensions": tuple(range(len(shape)))}
                whole = Var(x.aval.update(shape=shape))
                repeat = REGISTRY["broadcast_in_dim"]
                made.append(Eqn([x], [whole], repeat, params, source=eqn.source))
                x = whole
            operands.append(x)
        return [*made, eqn.replace(invars=operands)] if made else [eqn]
    eqn = Met.plain[eqn.primitive](eqn) if eqn.primitive in Met.plain else eqn
    if not any([_plain(inner) is not inner for inner in subjaxprs(eqn.params)]):
        return [eqn]
    params = {name: written_out_param(value) for name, value in eqn.params.items()}
    return [eqn.replace(params=params)]


def written_out_param(value: Any) -> Any:
    """A param of an equation, the jaxprs in it written out."""
    if isinstance(value, ClosedJaxpr):
        return written_out(value)
    if isinstance(value, Jaxpr):
        return _plain(value)
    if type(value) in (tuple, list):
        made = [written_out_param(x) for x in value]
        return value if all(map(operator.is_, made, value)) else type(value)(made)
    return value
