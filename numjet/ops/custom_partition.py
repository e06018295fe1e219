"""custom_partitioning: a function with its own way of being cut over the devices of a mesh.

For `api.maps.custom_partition`, which makes the equations. To the compiler it is a call; the
partitioner asks `rules` which layouts results have (`layouts`, or `rule`, a `partition.rules.Rule`)
and what each device runs (`parts`). As in JAX it has no derivative and no batching rule of its own.
"""
from __future__ import annotations

from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.lowering import Region
from numjet.core.primitive import Primitive


def _evaluate(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list:
    return eval_closed(call_jaxpr, *args)


def _jvp(*_: Any, **params: Any) -> Any:
    raise NotImplementedError(
        "Differentiation rule for 'custom_partitioning' not implemented. Give the function that "
        "calls it a custom_jvp or custom_vjp."
    )


def _batch(*_: Any, **params: Any) -> Any:
    raise NotImplementedError(
        "Batching rule for 'custom_partitioning' not implemented. Give the function that calls it "
        "a rule with custom_batching.custom_vmap, or another axis of its own."
    )


custom_partitioning_p = Primitive(
    "custom_partitioning",
    multiple_results=True,
    higher_order=True,
    abstract=lambda *avals, call_jaxpr, **_: call_jaxpr.out_avals,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    loops=Region("call"),
    shard=lambda avals, outs, params: params["rules"].rule(avals, outs),
    effects=lambda *, call_jaxpr, **_: call_jaxpr.effects,
)
