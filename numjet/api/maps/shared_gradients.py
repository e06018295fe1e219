"""Gradients inside of `shard_map`: what the members of an axis have in common counts once.

Transposition takes each member's value for one of its own: a `psum` of cotangents is the transpose
of a `psum`, the gradient is that of the sum of all members' results, and each member gets its share
of it. With `check_vma` a value that does not vary along an axis is one value: as a result it counts
once and not once a member, as an argument its gradient is the sum of all shares. For
`api.derivatives.pullbacks`, which pull cotangents back. What would break it: a traced value of a
function that is staged inside of `shard_map` without a word of its arguments
(`transforms.varying`); `jit` runs such functions in place, others are refused.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.base.record import record
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.primitive import Zero
from numjet.core.shared import Shared, Told, rule_error
from numjet.core.structural import convert
from numjet.core.trace import current_trace
from numjet.ops.arithmetic import div, mul
from numjet.ops.collective import psum, pvary_p
from numjet.transforms.batch import AxisEffect
from numjet.transforms.stage import StageTrace
from numjet.transforms.varying import along, is_mapped, results, unknown, varies


@record(frozen=True)
class Sharing:
    """once: for each axis of whose results none varies along it, its size; some: for each of the
    others, for each result whether it does not vary; ins: for each axis, for each argument whether
    it does not vary."""

    once: dict[Any, int]
    some: dict[Any, tuple[int, list[bool]]]
    ins: dict[Any, list[bool]]

    def add(self, name: Any, size: int, ins: Sequence[bool], outs: Sequence[bool]) -> None:
        """An axis, with which arguments and results vary along it."""
        shared = [not flag for flag in outs]
        if all(shared):
            self.once[name] = size
        else:
            self.some[name] = size, shared
        self.ins[name] = [not flag for flag in ins]

    def seeds(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the results, a share for each member of what is one value."""
        found = list(cts)
        for size, shared in self.some.values():
            found = [_scaled(ct, size, div) if s else ct for ct, s in zip(found, shared)]
        return found

    def gradients(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the arguments, from each member's."""
        found = list(cts)
        for name, shared in self.ins.items():
            size = self.once.get(name, 1)
            found = [
                _joined(ct, name, size) if s else _own(_scaled(ct, size, div), name)
                for ct, s in zip(found, shared, strict=True)
            ]
        return found


def _joined(ct: Any, name: Any, size: int) -> Any:
    """The sum of the members' shares of a cotangent, of results that count once for `size`."""
    if type(ct) is Zero or ct.aval.dtype == dtypes.float0:
        return ct
    if varies(ct, name):
        total = _scaled(psum(ct, name), size, div)
        return convert(total, total.aval.dtype, True) if ct.aval.weak_type else total
    members = dict(Shared.axes.get())[name]
    return ct if members == size else _scaled(ct, members, mul)


def _own(ct: Any, name: Any) -> Any:
    """The cotangent of an argument that varies, which varies too."""
    return pvary_p.bind(ct, axis_name=name) if _flows(ct) and not varies(ct, name) else ct


def _scaled(ct: Any, size: int, how: Any) -> Any:
    if size == 1 or type(ct) is Zero or ct.aval.dtype == dtypes.float0:
        return ct
    return how(ct, convert(as_array(size), ct.aval.dtype))


def sharing(leaves: Sequence[Any], outs: Sequence[Any], tape: Sequence[Any]) -> Sharing | None:
    """What of the arguments and results of a function, whose linear part `tape` is, does not vary
    along the axes of `shard_map`; None outside of it.

    Raises NotImplementedError for collectives where nobody will ever know.
    """
    axes = Shared.axes.get()
    if not axes:
        return None
    found = Sharing({}, {}, {})
    for name, size in axes:
        trace = unknown(name)
        if trace is None:
            flags = [[varies(x, name) for x in values] for values in (leaves, outs)]
            found.add(name, size, *flags)
        elif trace.flows is None and any([eqn.primitive.collective for eqn in tape]):
            raise NotImplementedError(
                f"A gradient of collectives in {trace.fun_name or 'a function'}, which is traced "
                "apart from its arguments, inside of shard_map. Take the gradient outside of it, "
                "or pass check_vma=False to shard_map, where each device's value is one of its own."
            )
        else:
            Shared.note()
    return found


def sharing_of(closed: ClosedJaxpr, leaves: Sequence[Any]) -> Sharing | None:
    """`sharing` for a function that has been staged, of arguments like `leaves`: values, or what
    has their type alone, which do not vary."""
    found = Sharing({}, {}, {})
    for name, flow in along(leaves).items():
        outs = results(flow, name, closed.jaxpr, closed.consts)
        found.add(name, dict(Shared.axes.get())[name], flow.given, outs)
    return found if found.ins else None


@record(frozen=True)
class RuleSharing:
    """What of a custom_vjp function's arguments and results does not vary.

    A rule by the user gets cotangents, and gives them, as JAX has them: of what does not vary the
    whole, which is one value for all members, where transposition has each member's share."""

    told: Told

    def run(self, back: Callable, residuals: Any, cts: Sequence[Any]) -> list[Any]:
        """The rule's shares, from each member's cotangents. It may run when shard_map has ended,
        where the gradient is taken outside of it."""
        before = Shared.axes.set(self.told.around)
        try:
            for name, _, _, outs in self.told.axes:
                cts = [
                    _own(ct, name) if not s else psum(ct, name) if _flows(ct) else ct
                    for ct, s in zip(cts, outs, strict=True)
                ]
            return self._shares(back(residuals, cts))
        finally:
            Shared.axes.reset(before)

    def _shares(self, cts: Sequence[Any]) -> list[Any]:
        """Each member's cotangents of the arguments, from the rule's. Raises ValueError where one
        varies and its argument does not, or the other way."""
        found = list(cts)
        for name, size, ins, _ in self.told.axes:
            told = unknown(name) is None
            for i, (ct, s) in enumerate(zip(found, ins, strict=True)):
                if not _flows(ct):
                    continue
                if told and varies(ct, name) is s:
                    raise rule_error(i, ct.aval, name, s)
                if s:
                    found[i] = pvary_p.bind(_scaled(ct, size, div), axis_name=name)
        return found


def _flows(ct: Any) -> bool:
    return ct is not None and type(ct) is not Zero and ct.aval.dtype != dtypes.float0


def rule_sharing(
    leaves: Sequence[Any], outs: Sequence[Any], told: Told | None, ruled: frozenset
) -> RuleSharing | None:
    """`sharing` for the rule of a custom_vjp function; None where there is nothing to tell. told:
    what was known when the call was staged; ruled: axes that need no word. Nor do those along which
    nothing is mapped where the gradient is taken outside of `shard_map`."""
    found = [] if told is None else list(told.axes)
    names = {name for name, *_ in found} | ruled
    for name, size in Shared.axes.get():
        if name not in names and unknown(name) is None:
            flags = [[not varies(x, name) for x in values] for values in (leaves, outs)]
            found.append((name, size, *flags))
    found = [axis for axis in found if axis[0] not in ruled and is_mapped(axis[0])]
    around = Shared.axes.get() or (() if told is None else told.around)
    return RuleSharing(Told(around, found)) if found else None


def note_rule() -> None:
    """A function with a rule by the user is called: a `jit` around it runs in place, as its
    derivative would be traced apart from the arguments."""
    if Shared.axes.get() and type(current_trace().staging) is StageTrace:
        Shared.note()


def run_rule(
    call: Callable[[], Any], what: str, told: Told | None = None, ruled: frozenset = frozenset()
) -> Any:
    """What a rule by the user gives. Raises NotImplementedError where it has collectives and nobody
    will know what varies: its cotangents might be the whole or a share. told, ruled: what is known
    of its call, which is not of those inside."""
    if told is None and not ruled:
        return _run_rule(call, what, ruled) if Shared.axes.get() else call()
    known = ruled | {name for name, *_ in (() if told is None else told.axes)}
    before = Shared.told.set(None), Shared.ruled.set(frozenset())
    try:
        return _run_rule(call, what, known)
    finally:
        Shared.told.reset(before[0])
        Shared.ruled.reset(before[1])


def _run_rule(call: Callable[[], Any], what: str, known: frozenset) -> Any:
    traces = [(name, unknown(name)) for name, _ in Shared.axes.get() if name not in known]
    apart = [(name, trace) for name, trace in traces if trace is not None and trace.flows is None]
    if not apart:
        return call()
    trace = apart[0][1]
    before, trace.effects = trace.effects, frozenset()
    try:
        found = call()
        used = trace.effects
    finally:
        trace.effects = before | trace.effects
    if any([AxisEffect(name) in used for name, _ in apart]):
        raise NotImplementedError(
            f"{what}: a custom_vjp rule with collectives in a function that is traced apart from "
            "its arguments, and differentiated inside of shard_map. Take the gradient outside of "
            "it, or pass check_vma=False to shard_map, where each device's value is one of its own."
        )
    return found
