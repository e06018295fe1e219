"""Chains of scans over one domain, and what feeds them, as one kernel: a few vectors at a time.

`lower(build, node)` gives the step of a node that `fusion.chains` made. A piece of the domain runs
one scan after the other; what a scan stacks for the next lies in scratch memory that stays in the
first cache. What feeds the scans is computed where a row is read, or, where that would compute an
expensive value for more than one row of a round, for all rows before. What would break it: what
would break `lanes`.
"""

from __future__ import annotations

from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import Buffer, For, Stmt
from numjet.cpu.lower.access import access
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.program.steps import Step
from numjet.cpu.regions.lane_cells import At, Cell, Domain, Made, Memory, NotLanes, Pointwise
from numjet.cpu.regions.lanes import MOST_EXPRESSIONS, MOST_VECTORS, LaneKernel, Sizes
from numjet.cpu.regions.loop_kernel import failed

# Bytes of scratch memory that a piece may have. Of 32 and 64 KiB a tridiagonal solve of 32 levels
# takes the same time with half the vectors, of 64 a twentieth less; so much is in the second cache.
MOST_SCRATCH = 1 << 16
# What costs so much, an addition being 1, is computed once a row and kept.
EXPENSIVE = 6


def lower(build: Compilation, node: Node) -> list[Step] | None:
    """The kernel of a chain, or None."""
    vectors, kept = MOST_VECTORS, frozenset[Node]()
    try:
        while True:
            kernel = _Chain(build, node, vectors, kept)
            steps = kernel.steps()
            again = kernel.expensive()
            if again:
                kept |= again
            elif kernel.e.count > MOST_EXPRESSIONS or kernel.scratch_bytes() > MOST_SCRATCH:
                if kernel.vectors == 1:
                    return steps if kernel.scratch_bytes() <= MOST_SCRATCH else None
                vectors = kernel.vectors // 2
            else:
                return steps
    except (NotLanes, NotImplementedError):
        return None
    except Exception as error:
        failed("a chain of scans", error)
    return None


class _Kept(Cell):
    """What a piece has in scratch memory: a row of the piece's elements for each index ahead."""

    __slots__ = ("buffer", "kernel")

    def __init__(self, k: _Chain, val: Val) -> None:
        super().__init__(val)
        ahead = val.shape[: len(val.shape) - len(k.domain.shape)]
        self.kernel = k
        self.buffer = Buffer(f"kept{len(k.scratch)}", val.dtype, (*ahead, k.width), "scratch")
        k.scratch.append(self.buffer)

    def place(self, at: At) -> At:
        """Where the element at an index lies."""
        k = self.kernel
        ahead = len(at) - len(k.domain.shape)
        piece = k.pieces.get(tuple(at[ahead:]))
        if piece is None:
            raise NotLanes
        return (*at[:ahead], piece * k.lanes + Index.of(k.lane))

    def read(self, at: At) -> object:
        return self.kernel.e.load(self.buffer, self.place(at))


class _Chain(LaneKernel):
    def __init__(self, build: Compilation, node: Node, vectors: int, kept: frozenset[Node]) -> None:
        super().__init__(build, node, Domain(node.params["domain"], False), True, vectors)
        self.kept = kept
        self.within: list[Node] = node.params["nodes"]
        self.cells: dict[Val, Cell] = {}
        self.computed: dict[Node, Pointwise] = {}

    def steps(self) -> list[Step]:
        node = self.node
        for given, now in zip(node.params["ins"], node.ins, strict=True):
            self.cells[given] = self.operand(now)
        sizes = [Sizes(n, self.domain) for n in self.within if type(n.rule) is low.Region]
        most = max(sizes, key=lambda s: s.carried)
        most.operations = max([s.operations for s in sizes])
        most.widest = max([s.widest for s in sizes])
        self.cut(most)
        body: list[Stmt] = []
        for inner in self.within:
            if type(inner.rule) is low.Region:
                self.one_scan(inner, body)
            else:
                self.compute(inner, body)
        return self.finish(body, ())

    def cell(self, val: Val) -> Cell:
        found = self.cells.get(val)
        return self.operand(val) if found is None else found

    def one_scan(self, node: Node, body: list[Stmt]) -> None:
        count = node.params["num_carry"]
        for val in node.outs[count:]:
            if val not in self.node.outs:
                self.cells[val] = _Kept(self, val)
        outs = self.scan(node, [self.cell(v) for v in node.ins], body, True)
        wanted = []
        for val, cell in zip(node.outs[:count], outs, strict=False):
            assert cell is not None
            self.cells[val] = cell
            if val in self.node.outs:
                wanted.append((val, cell))
        self.results([v for v, _ in wanted], [c for _, c in wanted], body)

    def stack(self, val: Val, row: Index, out: Cell, body: list[Stmt]) -> None:
        cell = self.cells.get(val)
        if isinstance(cell, _Kept):
            self.keep(cell, (row,), out, body)
        elif val in self.node.outs:
            super().stack(val, row, out, body)
            # It is read from where it was stored just now.
            self.cells[val] = Memory(self, val, self.outputs[-1][0])

    def keep(self, cell: _Kept, ahead: At, value: Cell, body: list[Stmt]) -> None:
        for piece in self.pieces:
            at = (*ahead, *piece)
            found = value.read(at if len(value.shape) == len(at) else piece)
            body.extend(self.e.store(cell.buffer, cell.place(at), found))

    def compute(self, node: Node, body: list[Stmt]) -> None:
        """A pointwise node: found where it is read, or kept."""
        made = self.computed[node] = Pointwise(self, node, [self.cell(v) for v in node.ins])
        out = node.outs[0]
        value = Made(made, 0, out)
        if node not in self.kept:
            self.cells[out] = value
            return
        cell = self.cells[out] = _Kept(self, out)
        if len(out.shape) == len(self.domain.shape):
            self.keep(cell, (), value, body)
            return
        self.names += 1
        var = LoopVar(f"r{self.names}", out.shape[0])
        inside: list[Stmt] = []
        self.keep(cell, (Index.of(var),), value, inside)
        body.append(For(var, var.extent, tuple(inside)))

    # ---- what is computed several times

    def expensive(self) -> frozenset[Node]:
        """What is computed for several rows at once, the last of such a row of operations, if all
        of them together cost much."""
        several = {n for n, made in self.computed.items() if len(made.found) > len(self.pieces)}
        costs: dict[Val, int] = {}
        for node in self.within:
            if node in several:
                costs[node.outs[0]] = access(node).cost + sum([costs.get(v, 0) for v in node.ins])
        moved: set[Val] = set()  # what is read once, but for operations that only move it
        for node in reversed(self.within):
            if type(node.rule) is low.Region or node not in several:
                moved.update(node.ins)
            elif access(node).moves and node.outs[0] in moved:
                moved.update(node.ins)
        return frozenset(
            node
            for node in several - self.kept
            if node.outs[0] in moved and not access(node).moves and costs[node.outs[0]] >= EXPENSIVE
        )

    def scratch_bytes(self) -> int:
        """How much memory of its own a piece has."""
        return sum([buffer.nbytes for buffer in self.scratch])
