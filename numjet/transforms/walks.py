"""Backward passes of concrete values, derived once for records that are alike and run as a whole.

A function that is differentiated again and again leaves records of the same operations with the
same operands. `transpose_tape` tells records apart by that, and takes the general way through one
(`transforms.transpose`) until it was met some times. Then the passes through its operations, which
`transforms.eager` derived one by one, become one jaxpr. Where values wait (`core.deferred`) it is
written down at once as a plan; elsewhere it is one Python function. Both hold whatever the values.

What would break it: what `transforms.eager` says, and a record whose equations read anything else
than variables, residuals and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import config
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import Placed, ShapedArray, any_placed
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Jaxpr, Literal, Var
from numjet.core.memo import WeighedMemo
from numjet.core.primitive import Zero
from numjet.core.structural import add_any_p
from numjet.core.trace import EVAL, current_trace
from numjet.transforms import transpose as general
from numjet.transforms.eager import plan_of, reversed_part, written
from numjet.transforms.linear_steps import LinearStep
from numjet.transforms.simplify import dce_jaxpr

CHECKS = config.numeric_checks
USES_BEFORE_DERIVING = 8
# Longer records are not looked at.
LONGEST = 4096
_KNOWN = frozenset({ArrayImpl, DeferredArray})


class Walk:
    """A backward pass. `avals` are those of the cotangents that there are; `reads` says which
    residuals are read: of which entry of the record, and which; `run` is a function of the
    cotangents and a tuple of the residuals. `plan` is the same as operations to be written down,
    whose values are numbered as `gives` names the inputs' cotangents (None: zero)."""

    __slots__ = ("avals", "reads", "run", "plan", "gives", "size")

    def __init__(
        self, avals: list[ShapedArray], reads: list[tuple[int, int]], run: Callable, plan: Plan,
        gives: list[int | None],
    ) -> None:  # fmt: skip
        self.avals, self.reads, self.run, self.plan, self.gives = avals, reads, run, plan, gives
        self.size = 2048 * (1 + len(plan.equations))


# By what `_key` gives: a Walk, the number of uses while there is none yet, or None where there can
# be none.
_walks = WeighedMemo(
    "backward passes", 1024, 1 << 25, lambda x: x.size if type(x) is Walk else 1024
)


def transpose_tape(
    tape: Sequence[Any], in_vars: Sequence[Var], out_tangents: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents of `in_vars` (`Zero` where none arrives) from those of the outputs."""
    key = None
    placed = Placed.active and _any_placed(tape, in_vars)
    short = 0 < len(tape) <= LONGEST
    if short and current_trace() is EVAL and not CHECKS[0] and not placed:
        flags = config.trace_key(), hooks.executor
        key = hooks.record_key(tape, in_vars, out_tangents, cts, *flags)
        if key is None:
            key = _key(tape, in_vars, out_tangents, cts, flags)
    if key is None:
        return general.transpose_tape(tape, in_vars, out_tangents, cts)
    try:
        walk = _walks.get(key, 0)
    except TypeError:  # params without a hash
        walk = None
    if type(walk) is not Walk:
        found = general.transpose_tape(tape, in_vars, out_tangents, cts)
        if walk is not None:
            uses = walk + 1
            _walks[key] = (
                _derive(tape, in_vars, out_tangents, cts) if uses > USES_BEFORE_DERIVING else uses
            )
        return found
    given = [
        ct for ct, t in zip(cts, out_tangents, strict=True)
        if type(t) is Var and type(ct) is not Zero
    ]  # fmt: skip
    residuals = hooks.residuals(tape, walk.reads) or _residuals(tape, walk.reads)
    kinds = {*map(type, given), *map(type, residuals)}
    if not kinds <= _KNOWN:
        return general.transpose_tape(tape, in_vars, out_tangents, cts)
    values: Any = None
    if DeferredArray in kinds:
        operands = given + residuals
        made = hooks.defer_plan(walk.plan, operands)
        if made is not None:
            values = [*operands, *walk.plan.constants, *made]
    if values is None:
        results = walk.run(*given, tuple(residuals))
    else:
        results = [None if k is None else values[k] for k in walk.gives]
    return [Zero(v.aval) if x is None else x for x, v in zip(results, in_vars, strict=True)]


def _residuals(tape: Sequence[Any], places: list[tuple[int, int]]) -> list[Any]:
    found = []
    for i, k in places:
        entry = tape[i]
        found.append((entry.residuals if type(entry) is LinearStep else entry.invars)[k])
    return found


def _any_placed(tape: Sequence[Any], in_vars: Sequence[Var]) -> bool:
    """Whether a variable of a record is cut over Explicit axes of a mesh."""
    return any_placed([v.aval for v in in_vars]) or any(
        [any_placed([v.aval for v in entry.outvars]) for entry in tape]
    )


def _key(
    tape: Sequence[Any], in_vars: Sequence[Var], out_tangents: Sequence[Any], cts: Sequence[Any],
    flags: tuple,
) -> tuple | None:  # fmt: skip
    """What tells a record from others: its operations and their operands, and the flags and what
    makes executors; None where it has more than steps and plain equations."""
    n = len(in_vars)
    numbers = dict(zip(in_vars, range(n), strict=True))
    key: list[Any] = [n]
    try:
        for entry in tape:
            if type(entry) is LinearStep:
                key.append(entry.rule)
                for v in entry.invars:
                    key.append(numbers[v])
            else:
                primitive = entry.primitive
                if primitive.multiple_results or primitive.higher_order or entry.effects:
                    return None
                key.append(primitive)
                for x in entry.invars:
                    if type(x) is Var:  # a step's rule knows the avals of its operands
                        key.append((numbers[x], x.aval))
                    elif type(x) in _KNOWN:
                        key.append(x.aval)
                    else:
                        return None
                if entry.params:
                    key.append(tuple(entry.params.items()))
            numbers[entry.outvars[0]] = n
            n += 1
    except KeyError:
        return None
    for t, ct in zip(out_tangents, cts, strict=True):
        if type(t) is Var and type(ct) is not Zero:
            if t not in numbers:
                return None
            key.append(numbers[t])
            key.append(ct.aval)
        else:
            key.append(None)
    return (*key, *flags)


# ------------------------------------------------------------------ making walks
class _NoWalk(Exception):
    """A part of the record has no backward pass that holds for all values."""


def _derive(
    tape: Sequence[Any], in_vars: Sequence[Var], out_tangents: Sequence[Any], cts: Sequence[Any]
) -> Walk | None:
    eqns: list[Eqn] = []
    parts: dict[Var, Any] = {}  # of the record's variables: their cotangents as atoms
    given: list[Var] = []
    residuals: dict[tuple[int, int], Var] = {}

    def add(v: Var, part: Any) -> None:
        have = parts.get(v)
        if have is not None:
            avals = have.aval, part.aval
            out = Var(add_any_p.out_avals(avals, {}))
            eqns.append(Eqn([have, part], [out], add_any_p, {}))
            part = out
        parts[v] = part

    for t, ct in zip(out_tangents, cts, strict=True):
        if type(t) is Var and type(ct) is not Zero:
            given.append(Var(ct.aval))
            add(t, given[-1])
    try:
        for i in reversed(range(len(tape))):
            entry = tape[i]
            part = parts.pop(entry.outvars[0], None)
            if part is not None:
                for v, x in _entry_back(entry, i, part, residuals, eqns):
                    add(v, x)
    except _NoWalk:
        return None
    outs = [parts.get(v) for v in in_vars]
    jaxpr = Jaxpr([], [*given, *residuals.values()], [x for x in outs if x is not None], eqns)
    jaxpr, used = dce_jaxpr(jaxpr)
    read = [(place, v) for place, v in residuals.items() if v in _read(jaxpr)]
    run = written(jaxpr, [], given, None, outs, [v for _, v in read])
    if run is None:
        return None
    plan, gives = plan_of([*given, *[v for _, v in read]], jaxpr.eqns, outs)
    return Walk([v.aval for v in given], [place for place, _ in read], run, plan, gives)


def _read(jaxpr: Jaxpr) -> set[Any]:
    return {x for eqn in jaxpr.eqns for x in eqn.invars if type(x) is Var} | {
        x for x in jaxpr.outvars if type(x) is Var
    }


def _entry_back(
    entry: Any, i: int, ct: Any, residuals: dict[tuple[int, int], Var], eqns: list[Eqn]
) -> list[tuple[Var, Any]]:
    """Write the equations of the pass through the record's entry `i`; the variables that it reads
    with the atoms of what they get."""
    active: list[Var]
    if type(entry) is LinearStep:
        rule = entry.rule
        if rule.reverse is None or ct.aval is not rule.aval:
            raise _NoWalk
        jaxpr, outs = rule.reverse
        places = list(range(len(entry.residuals)))
        active = list(entry.invars)
    else:
        aval = entry.outvars[0].aval
        if ct.aval is not aval or entry.primitive.transpose is None:
            raise _NoWalk
        places = [k for k, x in enumerate(entry.invars) if type(x) is not Var]
        active = [x for x in entry.invars if type(x) is Var]
        known = [Var(entry.invars[k].aval) for k in places]
        fresh = [Var(v.aval) for v in active]
        ins, others = iter(fresh), iter(known)
        invars = [next(ins if type(x) is Var else others) for x in entry.invars]
        out = Var(aval)
        one = Eqn(invars, [out], entry.primitive, entry.params)
        turned = reversed_part(Jaxpr([], [*known, *fresh], [out], [one]), len(fresh))
        if turned is None:
            raise _NoWalk
        jaxpr, outs = turned
    env: dict[Any, Any] = {jaxpr.invars[-1]: ct}
    for v, k in zip(jaxpr.invars[:-1], places, strict=True):
        # A variable of its own: other entries have the same rule.
        env[v] = residuals.setdefault((i, k), Var(v.aval))

    def atom(x: Any) -> Any:
        return x if type(x) is Literal else env[x]

    for eqn in jaxpr.eqns:
        if eqn.primitive.multiple_results or eqn.effects is not NO_EFFECTS and eqn.effects:
            raise _NoWalk
        (old,) = eqn.outvars
        env[old] = Var(old.aval)
        eqns.append(eqn.replace(invars=[atom(x) for x in eqn.invars], outvars=[env[old]]))
    return [(v, atom(x)) for v, x in zip(active, outs, strict=True) if x is not None]


__all__ = ["transpose_tape"]
