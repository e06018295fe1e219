"""The call primitive behind `custom_vmap`: a function with a batching rule of its own.

Operands are flat; `call_jaxpr` is the function; `rule(axis, mapped, *args) -> (outs, mapped_out)`
is flat too and runs under the trace outside of the vmap. Reverse mode differentiates the function
itself where no vmap has been met yet. `numjet.custom_batching` makes its equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.lowering import Region
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import instantiate
from numjet.core.trace import set_trace
from numjet.transforms.batch import Axis, batch_again, mapped_to_front, to_front
from numjet.transforms.jvp import jvp_call, jvp_jaxpr


def _abstract(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def _evaluate(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_closed(call_jaxpr, *args)


def _batch(
    axis: Axis, args: tuple, dims: tuple, *, call_jaxpr: ClosedJaxpr, rule: Callable, name: str
) -> tuple:
    flags = [d is not None for d in dims]
    outs, mapped = rule(axis, flags, *mapped_to_front(args, dims))
    return outs, [0 if m else None for m in mapped]


def _jvp(
    primals: tuple, tangents: tuple, *, call_jaxpr: ClosedJaxpr, rule: Callable, name: str
) -> tuple:
    n = len(primals)
    derived, _ = jvp_jaxpr(call_jaxpr, [True] * n, True)

    def derived_rule(axis: Axis, mapped: Sequence[bool], *args: Any) -> tuple:
        pairs = list(zip(mapped[:n], mapped[n:], strict=True))
        found: list = []

        def jvp_of_rule(flags: list[bool], values: Sequence[Any]) -> list[Any]:
            def run(*xs: Any) -> list[Any]:
                outs, found[:] = rule(axis, flags, *xs)
                return outs

            outs, out_tangents, _ = jvp_call(run, values[:n], values[n:])
            return [*outs, *[instantiate(t) for t in out_tangents]]

        if not any([a and b for a, b in pairs]):
            # Of no argument both are mapped: the rule is asked of one example, which vmap maps.
            dims = [0 if m else None for m in mapped]
            outs, out_dims = batch_again(
                lambda *xs: jvp_of_rule([False] * n, xs), axis.trace, args, dims
            )
            if not any(found):
                pairs_out = zip(outs, out_dims, strict=True)
                outs = [x if d is None else to_front(x, d, axis.size) for x, d in pairs_out]
                return outs, [d is not None for d in out_dims]
        # A primal and its tangent are mapped together.
        either = [a or b for a, b in pairs]
        full = [
            to_front(x, None, axis.size) if e and not m else x
            for x, m, e in zip(args, mapped, [*either, *either], strict=True)
        ]
        return jvp_of_rule(either, full), [*found, *found]

    tangents = tuple([instantiate(t) if type(t) is Zero else t for t in tangents])
    outs = custom_vmap_p.bind(*primals, *tangents, call_jaxpr=derived, rule=derived_rule, name=name)
    half = len(outs) // 2
    return outs[:half], outs[half:]


def _partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    call = params["call_jaxpr"]
    with set_trace(trace):
        return eval_closed(call, *args)


custom_vmap_p = Primitive(
    "custom_vmap_call",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    partial_eval=_partial_eval,
    loops=Region("call"),
    effects=lambda *, call_jaxpr, **_: call_jaxpr.effects,
)
