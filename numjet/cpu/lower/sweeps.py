"""What kernels with reductions share: accumulators, phases of members, what is kept between sweeps.

A sweep runs over one row (or block of columns) of the domain. `Sweeps` says which members each
sweep computes, and which values are kept in scratch from one to the next. Used by `lower.rows` and
`lower.columns`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Val
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import COMPLEX_PARTS, Stmt, Update, UpdateArg
from numjet.cpu.lower.access import OTHER, compose, every_axis
from numjet.cpu.lower.core import Lowering
from numjet.cpu.lower.groups import Member

# Up to this cost a value is computed again in a later sweep instead of being kept.
AGAIN_COST = 5
# Scratch beyond this lies in the arena instead of the stack.
STACK_SCRATCH = 1 << 16


class Sweeps:
    """Members of a group by sweep; `home`: the sweep that computes a member of the whole domain."""

    def __init__(self, k: Lowering) -> None:
        self.k = k
        self.full = [m for m in k.members if not m.row]
        self.rows = [m for m in k.members if m.row]
        self.home: dict[Member, int] = {}
        self.later: dict[Val, Member] = {}  # member whose values later sweeps need
        self._plan()
        phases = [p for p in self.home.values()] + [m.phase for m in self.rows if is_reduction(m)]
        self.count = max(phases, default=-1) + 1

    def _plan(self) -> None:
        """Move members to the first sweep that uses them; find those used by several."""
        used: dict[Member, set[int]] = {}
        for member in reversed(self.k.members):
            key = member
            if member.row and not is_reduction(member):
                continue
            if member.row:
                phase = member.phase
            else:
                uses = used.get(key, set())
                stored = any(v in self.k.group.stored for v in member.node.outs)
                phase = member.phase if stored or not uses else max(min(uses), member.phase)
                self.home[key] = phase
                if any(p > phase for p in uses):
                    for val in member.node.outs:
                        self.later[val] = member
            for other in self.operands(member):
                if not other.row:
                    used.setdefault(other, set()).add(phase)

    def operands(self, member: Member) -> list[Any]:
        """Members of the group that `member` reads, through nodes that move elements."""
        fusion, number = self.k.fusion, self.k.group.number
        found, todo, seen = [], list(member.node.ins), set()
        while todo:
            val = todo.pop()
            if val in seen or fusion.level_of(val) != number:
                continue
            seen.add(val)
            other = fusion.member.get(val)
            if other is not None:
                found.append(other)
            elif val in fusion.inline:
                todo.extend(fusion.inline[val].ins)
        return found

    def reads(self) -> list[set[int | None]]:
        """For each operand the axes of the domain along which its places differ, in the members of
        the whole domain and in reductions."""
        fusion, group = self.k.fusion, self.k.group
        whole = every_axis(len(group.shape))
        pending = [(m.node, m.axes) for m in self.full]
        pending += [(m.node, whole) for m in self.rows if is_reduction(m)]
        found: list[set[int | None]] = []
        while pending:
            node, axes = pending.pop()
            for val, reading in zip(node.ins, fusion.accesses[node].maps, strict=True):
                read = None if reading is None else compose(axes, reading)
                if read is None or read is OTHER:
                    continue
                found.append({*read})
                known = val.literal is not None or fusion.level_of(val) == group.number
                if not known and not fusion.in_memory(val):
                    moved = fusion.inline.get(val)
                    pending.append((moved or fusion.member[val].node, read))
        return found

    def late(self) -> set[Val]:
        """Results written in the last sweep: only they may take over an operand's memory."""
        return {v for m in self.full if self.home[m] == self.count - 1 for v in m.node.outs}

    def kept(self) -> list[Val]:
        """Values that need scratch: used by later sweeps, dear, and not stored anyway."""
        k = self.k
        out = []
        self._costs: dict[Val, int] = {}
        for member in self.full:  # in order: operands before what is computed from them
            cost = self._again(member)
            for val in member.node.outs:
                self._costs[val] = cost
                if val in self.later and val not in k.group.stored and cost > AGAIN_COST:
                    out.append(val)
                    self._costs[val] = 1
        return out

    def _again(self, member: Member) -> int:
        """The cost of an element in a later sweep: rows' values are at hand there."""
        fusion = self.k.fusion
        cost = fusion.accesses[member.node].cost
        for val in member.node.ins:
            while val in fusion.inline and fusion.inline[val].ins:
                val = fusion.inline[val].ins[0]
            other = fusion.member.get(val)
            if other is not None and fusion.level_of(val) == self.k.group.number:
                cost += 0 if other.row else self._costs.get(val, 1)
            else:
                cost += 1 if fusion.in_memory(val) else fusion.cost_of(val)
        return cost


def is_reduction(member: Member) -> bool:
    return type(member.node.rule) is low.Reduce


class Accumulator:
    """The running value of one reduction: locals, their start, an update, the result."""

    def __init__(self, k: Lowering, member: Member) -> None:
        self.k, self.member = k, member
        self.op: str = member.node.rule.op
        source, out = member.node.ins[0], member.node.outs[0]
        self.source, self.out = source, out
        dtype = source.dtype
        self.arg = self.op in ("argmax", "argmin")
        if self.arg and dtype == np.dtype(bool):
            dtype = np.dtype(np.int8)
        if self.op in ("add", "mul") and dtype.itemsize == 2 and dtype.kind not in "iu":
            # Sums of 16-bit floats run in float32, as the reference does.
            dtype = np.dtype(np.float32)
        self.dtype = dtype
        self.start = identity(self.op, dtype)

    def initial(self) -> Any:
        return self.k.e.const(self.start, self.dtype)

    def define(self, body: list[Stmt]) -> None:
        """Begin: locals with nothing accumulated."""
        e = self.k.e
        self.k.names += 1
        self.local, stmts = e.define(f"acc{self.k.names}", self.initial())
        body.extend(stmts)
        if self.arg:
            self.position, stmts = e.define(f"at{self.k.names}", e.const(0, self.out.dtype))
            body.extend(stmts)

    def update(self, body: list[Stmt], value: Any, at: Any) -> None:
        """Take in one element (`at`: its position, for argmax and argmin)."""
        e = self.k.e
        value = e.cast(value, self.dtype)
        if self.arg:
            body.append(
                UpdateArg(
                    self.local, self.position, self.op[3:], value, e.index_value(at, self.out.dtype)
                )
            )
        elif self.dtype in COMPLEX_PARTS:
            body.extend(e.update(self.local, self.op, value))
        else:
            body.append(Update(self.local, self.op, value))

    def result(self) -> Any:
        e = self.k.e
        if self.arg:
            return e.read(self.position)
        return e.cast(e.read_local(self.local), self.out.dtype)


def identity(op: str, dtype: np.dtype) -> Any:
    """What a reduction of nothing gives; the worst value for argmax and argmin."""
    if op == "add" or op == "or" or op == "xor":
        return 0
    if op == "mul":
        return 1
    if op == "and":
        return True if dtype == np.dtype(bool) else -1
    high = op in ("min", "argmin")
    if dtype == np.dtype(bool):
        return high
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if high else info.min
    return float("inf") if high else float("-inf")


def position(reduced: tuple[int, ...], domain: list[Index], shape: tuple[int, ...]) -> Index:
    """The row-major position along the reduced axes."""
    at = Index.of(0)
    for axis in reduced:
        at = at * shape[axis] + domain[axis]
    return at
