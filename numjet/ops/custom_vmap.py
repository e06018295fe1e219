"""The call primitive behind `custom_vmap`: a function with a batching rule of its own.

Operands are flat; `call_jaxpr` is the function; `rule(size, mapped, *args) -> (outs, mapped_out)`
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
from numjet.transforms.batch import Axis, mapped_to_front, to_front
from numjet.transforms.jvp import jvp_call, jvp_jaxpr


def _abstract(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def _evaluate(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_closed(call_jaxpr, *args)


def _batch(
    axis: Axis, args: tuple, dims: tuple, *, call_jaxpr: ClosedJaxpr, rule: Callable, name: str
) -> tuple:
    flags = [d is not None for d in dims]
    outs, mapped = rule(axis.size, flags, *mapped_to_front(args, dims))
    return outs, [0 if m else None for m in mapped]


def _jvp(
    primals: tuple, tangents: tuple, *, call_jaxpr: ClosedJaxpr, rule: Callable, name: str
) -> tuple:
    n = len(primals)
    derived, _ = jvp_jaxpr(call_jaxpr, [True] * n, True)

    def derived_rule(size: int, mapped: Sequence[bool], *args: Any) -> tuple:
        # A primal and its tangent are mapped together.
        either = [a or b for a, b in zip(mapped[:n], mapped[n:], strict=True)]
        full = [
            to_front(x, None, size) if e and not m else x
            for x, m, e in zip(args, mapped, [*either, *either], strict=True)
        ]
        found: list = []

        def run(*xs: Any) -> list[Any]:
            outs, mapped_out = rule(size, either, *xs)
            found.extend(mapped_out)
            return outs

        outs, out_tangents, _ = jvp_call(run, full[:n], full[n:])
        return [*outs, *[instantiate(t) for t in out_tangents]], [*found, *found]

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
