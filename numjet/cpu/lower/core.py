"""Lowering: one fused group to one loop-IR kernel and the step that runs it.

`lower(build, fusion, group)` chooses the loops: flat or nested for elementwise groups
(`lower.flat`), a row at a time for reductions over the last axes (`lower.rows`), blocks of columns
for the others (`lower.columns`). `Lowering` holds what they share: how an element of a value is
obtained, where it is read in the kernel. What would break it: a member read at another place than
the loops' own (`fuse` decides that it is not).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numjet.base.errors import InternalError
from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import Buffer, Kernel, Stmt
from numjet.cpu.lower.access import KernelEmitter
from numjet.cpu.lower.groups import Compilation, Fusion, Group, Member
from numjet.cpu.program.steps import KernelStep, Step

# Below this much work (elements times cost) a kernel runs on the calling thread.
PARALLEL_WORK = 1 << 17
# Work that a thread takes at once, in the same unit.
CHUNK_WORK = 1 << 15
# How deep an expression may grow before it is given a name.
NAMED_DEPTH = 24


class Reader:
    """An operand as a rule sees it: call it with indices for an element."""

    __slots__ = ("lowering", "val", "shape", "dtype")

    def __init__(self, lowering: Lowering, val: Val) -> None:
        self.lowering, self.val, self.shape, self.dtype = lowering, val, val.shape, val.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *index: Any) -> Any:
        at = tuple([Index.of(i) for i in index]) if self.shape else ()
        return self.lowering.element(self.val, at)


class Lowering:
    """State of one kernel under construction."""

    def __init__(self, build: Compilation, fusion: Fusion, group: Group) -> None:
        self.build, self.fusion, self.group = build, fusion, group
        self.e = KernelEmitter()
        self.members = [m for m in group.members if m.live]
        self.buffers: dict[Val, Buffer] = {}
        self.operands: dict[Val, Val] = {}
        self.writes: list[Val] = []
        self.works: list[tuple[Buffer, Val]] = []
        self.flat = False  # whole values are one axis long
        self.domain: list[Index] = []
        self.values: dict[Val, Any] = {}  # members' elements at the loops' position
        self.depth: dict[Val, int] = {}
        self.memo: dict[tuple, Any] = {}
        self.stray: set[Val] = set()  # inputs read elsewhere than where the loops stand
        self.names = 0
        for val in group.stored.values():
            if val.root()[0] is not val and val.base is not None:
                raise InternalError(f"{val!r} is a view and cannot be a kernel's result")
            self.output(val)

    # ---- memory

    def shape_of(self, val: Val) -> tuple[int, ...]:
        if self.flat and val.size != 1:
            return (val.size,)
        return val.shape

    def output(self, val: Val) -> Buffer:
        buffer = Buffer(f"out{len(self.writes)}", val.dtype, val.shape, "out")
        self.buffers[val], self.operands[val] = buffer, val
        self.writes.append(val)
        return buffer

    def flatten_outputs(self) -> None:
        """After `flat` is set: outputs have one axis too."""
        for k, val in enumerate(self.writes):
            self.buffers[val] = Buffer(f"out{k}", val.dtype, self.shape_of(val), "out")

    def input(self, val: Val) -> Buffer:
        buffer = self.buffers.get(val)
        if buffer is None:
            count = len(self.buffers) - len(self.writes)
            buffer = Buffer(f"in{count}", val.dtype, self.shape_of(val))
            self.buffers[val], self.operands[val] = buffer, val
        return buffer

    def work(self, dtype: Any, shape: tuple[int, ...]) -> Buffer:
        """Memory of the arena for this kernel alone."""
        buffer = Buffer(f"work{len(self.works)}", dtype, shape, "work")
        self.works.append((buffer, self.build.temporary(Val(shape, dtype))))
        return buffer

    # ---- elements

    def element(self, val: Val, at: tuple) -> Any:
        """The value of `val` at the indices `at`."""
        if val.literal is not None:
            return self.e.const(val.literal, val.dtype)
        key = val
        found = self.values.get(key)
        if found is not None:
            return found
        again = (key, at)
        found = self.memo.get(again)
        if found is None:
            found = self.memo[again] = self._element(val, at)
        return found

    def _element(self, val: Val, at: tuple) -> Any:
        fusion, group = self.fusion, self.group
        node = fusion.inline.get(val)
        if node is not None:
            return self.rule(node, at, val)
        member = fusion.member.get(val)
        if member is not None:
            if fusion.level[val] == group.number:
                return self.own(val, member, at)
            if val not in fusion.wanted:
                return self.rule(member.node, at, val)
        buffer = self.input(val)
        if self.flat and val.size != 1:
            index: tuple = (self.domain[0],)
        else:
            index = at
        if val.size != 1 and index != tuple(self.domain):
            self.stray.add(val)
        return self.e.load(buffer, index)

    def own(self, val: Val, member: Member, at: tuple) -> Any:
        """A member of this group that is not among the current values."""
        return self.rule(member.node, at, val)

    def rule(self, node: Node, at: Sequence[Any], out: Val) -> Any:
        """Run a pointwise rule at the index `at` of its result."""
        if type(node.rule) is not low.Pointwise:
            raise InternalError(f"{node!r} is read inside a kernel that does not hold it")
        result = self.run_rule(node, at)
        if len(node.outs) > 1 or isinstance(result, tuple | list):
            result = list(result)
            return result[next(k for k, v in enumerate(node.outs) if v is out)]
        return result

    def run_rule(self, node: Node, at: Sequence[Any]) -> Any:
        """What a pointwise rule gives for the index `at`."""
        index = list(at)
        if self.flat and not node.rule.elementwise:
            # One element repeated: there is an index an axis, and none matters.
            index = [Index.of(0)] * len(node.outs[0].shape)
        return node.rule.fn(self.e, index, *[Reader(self, v) for v in node.ins], **node.params)

    def compute(self, member: Member, at: Sequence[Any], body: list[Stmt]) -> None:
        """Evaluate a member's results at `at` into `values`; deep ones get a name in `body`."""
        node = member.node
        result = self.run_rule(node, at)
        results = (
            list(result) if len(node.outs) > 1 or isinstance(result, tuple | list) else [result]
        )
        depth = 1 + max([self.depth.get(v, 0) for v in node.ins], default=0)
        for val, value in zip(node.outs, results, strict=True):
            if depth >= NAMED_DEPTH:
                value = self.name(value, body)
            self.values[val] = value
            self.depth[val] = depth % NAMED_DEPTH

    def name(self, value: Any, body: list[Stmt], stem: str = "t") -> Any:
        """Give `value` a local; returns the reading of it."""
        self.names += 1
        local, stmts = self.e.define(f"{stem}{self.names}", value)
        body.extend(stmts)
        return self.e.read_local(local)

    def forget(self) -> None:
        """Leave the loops: what was computed there is no longer at hand."""
        self.values = {}
        self.depth = {}
        self.memo = {}

    def stores(self, vals: Sequence[Val], at: dict[Val, Sequence[Any]], body: list[Stmt]) -> None:
        """Store members' values; all are computed before the first is written, since a result may
        lie in the memory of an operand."""
        named = []
        for val in vals:
            value = self.values[val]
            if len(vals) > 1:
                value = self.name(value, body)
            named.append(value)
        for val, value in zip(vals, named, strict=True):
            body.extend(self.e.store(self.buffers[val], tuple(at[val]), value))

    # ---- costs

    def weight(self) -> int:
        """Rough cost of the group's nodes for one element."""
        return sum(self.fusion.accesses[m.node].cost for m in self.members) + len(self.buffers)

    def grain(self, iterations: int, each: float) -> int:
        """Iterations a thread takes at once; 0 when the whole is not worth several threads."""
        if iterations * each < PARALLEL_WORK:
            return 0
        return max(1, int(CHUNK_WORK / max(each, 1)))

    # ---- the end

    def finish(
        self,
        name: str,
        body: Sequence[Stmt],
        inplace: Sequence[tuple[Val, Val]] = (),
        annotated: bool = False,
    ) -> list[Step]:
        """The kernel and its step."""
        operands = list(self.operands.values())
        buffers = [self.buffers[v] for v in operands]
        reads = operands[len(self.writes) :]
        work_buffers = [b for b, _ in self.works]
        work_vals = [v for _, v in self.works]
        kernel = Kernel(
            self.build.kernel_name(name),
            (*buffers, *work_buffers),
            tuple(body),
            {"annotated": annotated},
        )
        cost = sum(self.fusion.accesses[m.node].cost for m in self.members)
        flops = math.prod(self.group.shape) * cost
        return [
            KernelStep(
                kernel,
                [*operands, *work_vals],
                reads,
                [*self.writes, *work_vals],
                list(inplace),
                flops,
            )
        ]

    def same_place_pairs(self, late: set[Val] | None = None) -> list[tuple[Val, Val]]:
        """(result, operand) pairs that may share memory: touched only where the loops stand.

        late: the results (ids) written when no later sweep reads operands (default: all).
        """
        pairs = []
        domain = 1
        for n in self.group.shape:
            domain *= n
        # Two operands may be views of one memory.
        reads = list(self.operands.values())[len(self.writes) :]
        stray = {v.root()[0] for v in reads if v in self.stray}
        for write in self.writes:
            if late is not None and write not in late:
                continue
            for read in reads:
                if (
                    write.nbytes == read.nbytes
                    and write.size == read.size == domain
                    and read.root()[0] not in stray
                ):
                    pairs.append((write, read))
        return pairs


def unflatten(i: Index, shape: Sequence[int]) -> list[Index]:
    """The index along each axis of the row-major position `i`."""
    out: list[Index] = []
    step = 1
    for n in reversed(shape):
        out.append((i // step) % n if n > 1 else Index.of(0))
        step *= n
    out.reverse()
    # The outermost needs no wrapping: i is in range.
    first = next((k for k, n in enumerate(shape) if n > 1), None)
    if first is not None:
        out[first] = i // math.prod(shape[first + 1 :])
    return out
