"""A forward rule whose residuals may not be needed: `custom_vjp.defvjp(optimize_remat=True)`.

The equation computes outputs and residuals by the rule. Where nobody reads the residuals, as in the
pass of `checkpoint` that keeps none, it is pruned to a call of the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, Var, eval_closed
from numjet.core.lowering import Region
from numjet.core.primitive import Primitive
from numjet.core.trace import aval_of, set_trace
from numjet.transforms.batch import Axis, batch_call, batch_jaxpr, mapped_to_front
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import hoist_consts, stage


def _run(call_jaxpr: ClosedJaxpr) -> Callable[..., list]:
    return lambda *xs: eval_closed(call_jaxpr, *xs)


def _batch(
    axis: Axis, args: tuple, dims: tuple, *, call_jaxpr: ClosedJaxpr, value: ClosedJaxpr
) -> tuple:
    flags = [d is not None for d in dims]
    rule, mapped = batch_jaxpr(call_jaxpr, axis, flags)
    alone, mapped_alone = batch_jaxpr(value, axis, flags)
    if mapped[: len(mapped_alone)] != mapped_alone:
        return batch_call(_run(call_jaxpr), axis, args, dims)
    outs = remat_opt_p.bind(*mapped_to_front(args, dims), call_jaxpr=rule, value=alone)
    return outs, [0 if m else None for m in mapped]


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    with set_trace(trace):
        return eval_closed(params["call_jaxpr"], *args)


def _prune(params: dict, used: tuple[bool, ...]) -> tuple[dict, list[int], list[int]] | None:
    value = params["value"]
    n = len(value.out_avals)
    if params["call_jaxpr"] is value or any(used[n:]):
        return None
    return {**params, "call_jaxpr": value}, [*range(len(value.in_avals))], [*range(n)]


remat_opt_p = Primitive(
    "remat_opt",
    multiple_results=True,
    higher_order=True,
    abstract=lambda *_, call_jaxpr, **__: call_jaxpr.out_avals,
    evaluate=lambda *args, call_jaxpr, **_: eval_closed(call_jaxpr, *args),
    jvp=lambda primals, tangents, *, call_jaxpr, **_: jvp_call(
        _run(call_jaxpr), primals, tangents
    )[:2],
    batch=_batch,
    partial_eval=_partial_eval,
    prune=_prune,
    loops=Region("call"),
    effects=lambda call_jaxpr, **_: call_jaxpr.effects,
)


def optimized(rule: Callable, value: Callable, primals: Sequence[Any]) -> tuple[list, list]:
    """What `rule(*primals)` gives, a pair of flat outputs and residuals, as one equation, which is
    one of `value(*primals)` where the residuals are not read."""
    avals = [aval_of(x) for x in primals]
    count: list[int] = []

    def both(*xs: Any) -> list[Any]:
        outs, residuals = rule(*xs)
        count.append(len(outs))
        return [*outs, *residuals]

    jaxpr, consts = stage(both, avals)
    alone, alone_consts = stage(value, avals)
    n, n_alone = len(consts), len(alone_consts)
    # What is kept of the arguments and of what the rule closes over is no result.
    operands = [*consts, *alone_consts, *primals]
    whole = hoist_consts(jaxpr).jaxpr
    place = {v: i if i < n else i + n_alone for i, v in enumerate(whole.invars)}
    handed_on = [place.get(v) if type(v) is Var else None for v in whole.outvars[count[0] :]]
    kept = [v for v, i in zip(whole.outvars[count[0] :], handed_on, strict=True) if i is None]
    invars = [*whole.invars[:n], *[Var(aval_of(x)) for x in alone_consts], *whole.invars[n:]]
    # Without residuals there is one result that nobody reads: equations all of whose results are
    # read are not pruned.
    kept = kept or [*whole.invars[-1:]]
    rule_jaxpr = whole.replace(invars=invars, outvars=[*whole.outvars[: count[0]], *kept])
    lone = hoist_consts(alone).jaxpr
    lone = lone.replace(invars=[*[Var(aval_of(x)) for x in consts], *lone.invars])
    found = remat_opt_p.bind(
        *operands, call_jaxpr=ClosedJaxpr(rule_jaxpr, []), value=ClosedJaxpr(lone, [])
    )
    rest = iter(found[count[0] :])
    return found[: count[0]], [next(rest) if i is None else operands[i] for i in handed_on]
