"""The call primitive behind `jit`: a closed jaxpr applied to operands. `api.jit` makes its
equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.lowering import Region
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.trace import set_trace
from numjet.transforms.batch import Axis, batch_jaxpr, to_front
from numjet.transforms.jvp import jvp_jaxpr
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.transpose import transpose_jaxpr


def _evaluate(*args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    return run_compiled(jaxpr, args, name)


def _jvp(primals: tuple, tangents: tuple, *, jaxpr: ClosedJaxpr, name: str) -> tuple:
    derived, nonzero_out = jvp_jaxpr(jaxpr, [type(t) is not Zero for t in tangents])
    outs = call(derived, [*primals, *[t for t in tangents if type(t) is not Zero]], name)
    n = len(jaxpr.jaxpr.outvars)
    given = iter(outs[n:])
    return outs[:n], [
        next(given) if nz else Zero(a.tangent())
        for nz, a in zip(nonzero_out, jaxpr.out_avals, strict=True)
    ]


def _batch(axis: Axis, args: tuple, dims: tuple, *, jaxpr: ClosedJaxpr, name: str) -> tuple:
    batched, mapped_out = batch_jaxpr(jaxpr, axis, [d is not None for d in dims])
    outs = call(
        batched,
        [x if d is None else to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)],
        name,
    )
    return outs, [0 if m else None for m in mapped_out]


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    closed, name = params["jaxpr"], params["name"]
    unknown = [trace.is_unknown(x) for x in args]
    known_jaxpr, unknown_jaxpr, unknown_out, residual_avals = partial_eval_jaxpr(closed, unknown)
    with set_trace(trace.parent):
        outs = call(known_jaxpr, [x for x, unk in zip(args, unknown, strict=True) if not unk], name)
    n_known = len(outs) - len(residual_avals)
    operands = [*outs[n_known:], *[x for x, unk in zip(args, unknown, strict=True) if unk]]
    later = iter(
        trace.record(jit_p, operands, {"jaxpr": unknown_jaxpr, "name": name})
        if any(unknown_out)
        else ()
    )
    known = iter(outs[:n_known])
    return [next(later) if unk else next(known) for unk in unknown_out]


def _transpose(cts: list, *args: Any, jaxpr: ClosedJaxpr, name: str) -> list:
    linear = [type(x) is Linear for x in args]
    transposed, nonzero_out = transpose_jaxpr(jaxpr, linear, [type(ct) is not Zero for ct in cts])
    values = [x for x in args if type(x) is not Linear] + [ct for ct in cts if type(ct) is not Zero]
    outs, flags = iter(call(transposed, values, name)), iter(nonzero_out)
    return [
        (next(outs) if next(flags) else Zero(x.aval)) if lin else None
        for x, lin in zip(args, linear, strict=True)
    ]


jit_p = Primitive(
    "jit",
    multiple_results=True,
    higher_order=True,
    linear=True,
    abstract=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    transpose=_transpose,
    partial_eval=_partial_eval,
    loops=Region("jit"),
    effects=lambda jaxpr, **_: jaxpr.effects,
)


def call(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Apply a closed jaxpr as one call equation; its constants become operands."""
    if closed.consts:
        args = [*closed.consts, *args]
        closed = hoisted(closed)
    return jit_p.bind(*args, jaxpr=closed, name=name)


def hoisted(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with its constants as leading operands. Remembered with the jaxpr."""
    found = closed.cache.get("hoisted")
    if found is None:
        jaxpr = closed.jaxpr
        found = ClosedJaxpr(
            jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), []
        )
        closed.cache["hoisted"] = found
    return found
