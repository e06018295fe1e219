"""Operations of the user's, before a program is compiled: written in ours, or left as calls.

`backend` asks for it where a program has any. `Primitive.expansion` of such an operation gives a
closed jaxpr of its operands, or None where Python is to be called (its loops rule is `Host`). The
rewritten program is what the disk cache knows, so that another rule makes another program. What
would break it: an expansion that gives another number of results, or other shapes, than the
operation's abstract rule (it raises TypeError).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from numjet.core.trace import set_trace
from numjet.transforms.stage import StageTrace, with_jaxprs


def expanded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with the user's operations written in ours, in functions of its equations too."""
    trace = StageTrace("an operation's lowering")
    with set_trace(trace):
        args = [trace.new_arg(v.aval) for v in closed.jaxpr.invars]
        outs = _run(trace, closed.jaxpr, closed.consts, args)
        jaxpr, consts = trace.finish(outs)
    return ClosedJaxpr(jaxpr, consts)


def _run(trace: StageTrace, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.value if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        trace.source = eqn.source
        inner = None
        if eqn.primitive.expansion is not None:
            inner = eqn.primitive.expansion(
                tuple([v.aval for v in eqn.invars]), [v.aval for v in eqn.outvars], eqn.params
            )
        if inner is not None:
            _check(eqn, inner)
            outs = _run(trace, inner.jaxpr, inner.consts, values)
        else:
            params = {name: with_jaxprs(value, expanded) for name, value in eqn.params.items()}
            found = trace.record(eqn.primitive, values, params)
            outs = found if eqn.primitive.multiple_results else [found]
        env.update(zip(eqn.outvars, outs, strict=True))
    trace.source = None
    return [read(v) for v in jaxpr.outvars]


def _check(eqn: Any, inner: ClosedJaxpr) -> None:
    want, have = [v.aval for v in eqn.outvars], inner.out_avals
    if [(a.shape, a.dtype) for a in want] != [(a.shape, a.dtype) for a in have]:
        raise TypeError(
            f"The lowering of {eqn.primitive.name} gives {_texts(have)}, its abstract evaluation "
            f"rule {_texts(want)}. Let both give the same."
        )


def _texts(avals: Sequence[Any]) -> str:
    return "(" + ", ".join([a.str_short() for a in avals]) + ")"
