"""What differs between the members of an axis of `shard_map`, also while a function is staged.

A mapped value varies, one that is not mapped does not. Of a traced value the answer lies in the
equations that made it: an axis's flow (`core.shared.Flow`) tells which arguments of the function
vary, and follows the equations from there when somebody asks. For `api.maps.shared_gradients`, and
for who stages functions whose arguments it holds (`along`). What would break it: a function that is
staged without a flow, whose values nobody knows anything of.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core import hooks
from numjet.core.array import Array
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.core.shared import NOTHING_MANUAL, Flow, ManualAxisType, Shared
from numjet.core.trace import current_trace
from numjet.transforms.batch import Axis, AxisEffect, BatchTrace, BatchTracer, batch_jaxpr
from numjet.transforms.jvp import JVPTracer
from numjet.transforms.stage import StageTrace, StageTracer


def varies(x: Any, name: Any) -> bool:
    """Whether a value differs between the members of a mapped axis."""
    while True:
        kind = type(x)
        if kind is JVPTracer:
            x = x.primal
        elif kind is BatchTracer:
            if x.owner.axis.name == name:
                return True
            x = x.value
        elif kind is StageTracer:
            trace = x.owner
            flow = (trace.flows or {}).get(name)
            if flow is None:
                return False
            _follow(flow, name, trace.invars, trace.constvars, trace.consts, trace.eqns)
            return x.jaxpr_var in flow.varying
        else:
            return kind is ShapedArray and name in x.manual_axis_type.varying


def manual_type(x: Any) -> ManualAxisType:
    """Over which axes of the shard_maps around a value differs. Where nobody knows, the function
    that is being traced has to run in place (`Shared.note`)."""
    names, placed = [], getattr(x.aval, "placed", None)
    pending = frozenset() if placed is None else placed.sums[0]
    for name, _ in Shared.axes.get():
        if unknown(name) is not None:
            Shared.note()
        elif name not in pending and varies(x, name):
            names.append(name)
    return ManualAxisType(varying=frozenset(names)) if names else NOTHING_MANUAL


_MANUAL = property(manual_type, doc="Over which axes of the shard_maps around it differs.")
hooks.install(Array, {"mat": _MANUAL, "manual_axis_type": _MANUAL})


def unknown(name: Any) -> StageTrace | None:
    """The trace that keeps values of the current one from telling if they vary along an axis of
    `shard_map`; None: they tell."""
    trace: Any = current_trace()
    while trace is not None:
        if type(trace) is BatchTrace and trace.axis.name == name:
            return None
        if type(trace) is StageTrace:
            return None if name in (trace.flows or {}) else trace
        trace = getattr(trace, "parent", None)
    return None


def is_mapped(name: Any) -> bool:
    """Whether the axis is mapped around the current trace."""
    trace: Any = current_trace()
    while trace is not None:
        if type(trace) is BatchTrace and trace.axis.name == name:
            return True
        trace = getattr(trace, "parent", None)
    return False


def along(values: Sequence[Any]) -> dict[Any, Flow]:
    """A flow for each axis of the shard_maps around of which it is known what varies along it, for
    a function whose arguments are going to be `values`."""
    return {
        name: Flow([varies(x, name) for x in values])
        for name, _ in Shared.axes.get() if unknown(name) is None
    }


def results(flow: Flow, name: Any, jaxpr: Jaxpr, consts: Sequence[Any]) -> list[bool]:
    """Which results of a function that was staged with this flow vary."""
    _follow(flow, name, jaxpr.invars, jaxpr.constvars, consts, jaxpr.eqns)
    return [x in flow.varying for x in jaxpr.outvars]


def manual_results(
    flows: dict[Any, Flow], jaxpr: Jaxpr, consts: Sequence[Any]
) -> list[ManualAxisType]:
    """For each result of a function that was staged with these flows, along which axes it varies.
    For those who are still inside of the shard_maps."""
    names: list[set] = [set() for _ in jaxpr.outvars]
    for name, flow in flows.items():
        for found, flag in zip(names, results(flow, name, jaxpr, consts), strict=True):
            if flag:
                found.add(name)
    return [ManualAxisType(varying=frozenset(n)) for n in names]


def grown(flows: dict[Any, Flow], count: int) -> bool:
    """Whether some of the first `count` results of a loop's body vary where the carries that they
    become did not, and somebody asked. The flows begin anew, with these."""
    found = False
    for flow in flows.values():
        before = flow.given
        after = [a or b for a, b in zip(before[:count], flow.results, strict=False)]
        if flow.asked and after != before[:count]:
            found, flow.given = True, after + before[count:]
        flow.restart()
    return found


def _follow(
    flow: Flow, name: Any, invars: Sequence[Any], constvars: Sequence[Any], consts: Sequence[Any],
    eqns: Sequence[Eqn],
) -> None:  # fmt: skip
    """Bring a flow up to the last equation."""
    flow.asked = True
    varying = flow.varying
    if not flow.begun:
        flow.begun = True
        # What follows the arguments are references from outside, of which nothing is known.
        flags = [*flow.given, *[True] * (len(invars) - len(flow.given))]
        varying.update([v for v, flag in zip(invars, flags, strict=False) if flag])
    while flow.consts < len(constvars):
        if varies(consts[flow.consts], name):
            varying.add(constvars[flow.consts])
        flow.consts += 1
    while flow.eqns < len(eqns):
        eqn = eqns[flow.eqns]
        flags = [isinstance(x, Var) and x in varying for x in eqn.invars]
        for v, flag in zip(eqn.outvars, of_equation(eqn, name, flags), strict=True):
            if flag:
                varying.add(v)
        flow.eqns += 1


def of_equation(eqn: Eqn, name: Any, flags: list[bool]) -> list[bool]:
    """Which results of an equation vary along a tested axis, from which operands do."""
    primitive = eqn.primitive
    touches = primitive.collective or AxisEffect(name) in eqn.effects
    if not (touches or any(flags)):
        return [False] * len(eqn.outvars)
    if not (touches or primitive.higher_order):
        return [True] * len(eqn.outvars)
    invars = [x for x in eqn.invars if isinstance(x, Var)]
    known = [flag for x, flag in zip(eqn.invars, flags, strict=True) if isinstance(x, Var)]
    closed = ClosedJaxpr(Jaxpr([], invars, eqn.outvars, [eqn], eqn.effects), [])
    return batch_jaxpr(closed, Axis(dict(Shared.axes.get())[name], name, name), known)[1]
