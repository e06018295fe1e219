"""Lowering: one fused group to one loop-IR kernel and the step that runs it.

`lower(build, fusion, group)` chooses the loops: flat or nested for elementwise groups
(`lower.flat`), a row at a time for reductions over the last axes (`lower.rows`), blocks of columns
for the others (`lower.columns`). Groups that compute the same on other values (the layers of a
network) are lowered once: `_form` is what they share. What would break it: a lowering that depends
on a fact about the group that is not part of its form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.record import record
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.lower import columns as lower_columns, flat as lower_flat, rows as lower_rows
from numjet.cpu.lower.core import Lowering
from numjet.cpu.lower.groups import Compilation, Fusion, Group
from numjet.cpu.program.steps import KernelStep, Step


def lower(build: Compilation, fusion: Fusion, group: Group) -> list[Step]:
    """The steps (one kernel) that compute the stored values of `group`."""
    form = _form(fusion, group)
    found = None if form is None else build.lowered.get(form[0])
    if form is not None and found is not None:
        return [found.step(build, form[1])]
    steps = _lower(build, fusion, group)
    if form is not None:
        template = _Template.of(steps, form[1])
        if template is not None:
            build.lowered[form[0]] = template
    return steps


def _lower(build: Compilation, fusion: Fusion, group: Group) -> list[Step]:
    lowering = Lowering(build, fusion, group)
    if group.reduced is None or not any(m.row for m in lowering.members):
        return lower_flat.lower(lowering)
    last = (
        max(a for a, n in enumerate(group.shape) if n > 1)
        if any(n > 1 for n in group.shape)
        else -1
    )
    if last < 0 or last in group.reduced:
        return lower_rows.lower(lowering)
    return lower_columns.lower(lowering)


# ---- equal groups


@record(slots=True)
class _Template:
    """A lowered group: its step with the numbers of values in place of values."""

    kernel: Any
    operands: list[Any]  # a number, or (shape, dtype) of memory for the kernel alone
    reads: list[int]
    writes: list[int]  # operands, those of memory for the kernel alone too, by position
    inplace: list[tuple[int, int]]
    flops: int

    @classmethod
    def of(cls, steps: Sequence[Step], vals: Sequence[Val]) -> _Template | None:
        """The template of a group's steps; None when they are not one kernel on known values."""
        if len(steps) != 1 or type(steps[0]) is not KernelStep:
            return None
        step = steps[0]
        numbers = {v: n for n, v in enumerate(vals)}
        position = {v: k for k, v in enumerate(step.operands)}
        return cls(
            step.kernel,
            [numbers.get(v, (v.shape, v.dtype)) for v in step.operands],
            [position[v] for v in step.reads],
            [position[v] for v in step.writes],
            [(position[w], position[r]) for w, r in step.inplace],
            step.flops,
        )

    def step(self, build: Compilation, vals: Sequence[Val]) -> KernelStep:
        """The step on other values."""
        at = [
            vals[x] if type(x) is int else build.temporary(Val(x[0], x[1])) for x in self.operands
        ]
        return KernelStep(
            self.kernel,
            at,
            [at[k] for k in self.reads],
            [at[k] for k in self.writes],
            [(at[w], at[r]) for w, r in self.inplace],
            self.flops,
        )


def _form(fusion: Fusion, group: Group) -> tuple[Any, list[Val]] | None:
    """(what equal groups share, the group's values in order of appearance), or None."""
    numbers: dict[Val, int] = {}
    vals: list[Val] = []
    parts: list[Any] = []
    wanted, level, number = fusion.wanted, fusion.level, group.number

    def see(val: Val) -> None:
        """Describe `val`, and what it is computed from inside the kernel, at its first use."""
        if val.literal is not None:
            parts.append((val.dtype, val.literal.tobytes(), val.shape))
            return
        known = numbers.get(val)
        if known is not None:
            parts.append(known)
            return
        numbers[val] = len(vals)
        vals.append(val)
        node = fusion.inline.get(val)
        if node is None:
            member = fusion.member.get(val)
            if member is not None and level[val] != number and val not in wanted:
                node = member.node
        if node is None:
            parts.append((val.shape, val.dtype, level.get(val) == number))
            return
        parts.append((*described(node), len(node.outs) > 1 and _position(node, val)))
        for operand in node.ins:
            see(operand)

    def described(node: Node) -> tuple:
        return (
            node.primitive,
            node.rule,
            tuple(node.params.items()),
            tuple([(v.shape, v.dtype) for v in node.outs]),
        )

    for member in group.members:
        if not member.live:
            continue
        node = member.node
        stored = tuple([v in group.stored for v in node.outs])
        parts.append((*described(node), member.axes, member.row, member.phase, stored))
        for val in node.ins:
            see(val)
        for val in node.outs:
            numbers[val] = len(vals)
            vals.append(val)
    try:
        order = tuple([numbers[v] for v in group.stored.values()])
        key = (group.shape, group.reduced, order, tuple(parts))
        hash(key)
    except (KeyError, TypeError):
        return None
    return key, vals


def _position(node: Node, val: Val) -> int:
    return next(k for k, v in enumerate(node.outs) if v is val)
