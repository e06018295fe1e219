"""Loops for reductions over the last axes: rows one after the other, each swept as often as needed.

A row stays in cache between its sweeps (softmax reads memory once). The loops are plain: the passes
of the loop IR make them vectors and cut them into chunks for threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numjet.cpu.graph.nodes import Val
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import Alloc, Buffer, For, Stmt
from numjet.cpu.lower.core import Lowering
from numjet.cpu.lower.flat import in_step, reads_flat
from numjet.cpu.lower.groups import Member
from numjet.cpu.lower.sweeps import STACK_SCRATCH, Accumulator, Sweeps, is_reduction, position
from numjet.cpu.program.steps import Step

# Dear results of short rows (an activation behind a small product) are finished in a loop of their
# own over the rows, which then are lanes: from this cost, for so many rows at least and at most at
# a time, of many at least a block, and up to so many elements of a row. Many rows of fewer elements
# than MIDDLING_ROW are lanes anyway.
DEAR = 8
FEW_ROWS, FEW_BLOCK, MANY_ROWS, MIDDLING_ROW, LONG_ROW = 4, 32, 4096, 64, 512


def lower(k: Lowering) -> list[Step]:
    """The kernel of a group whose reductions run over the last axes."""
    group = k.group
    plan = _Rows(k)
    return plan.rows(math.prod([group.shape[a] for a in plan.kept_axes]), math.prod(group.shape))


class _Rows:
    def __init__(self, k: Lowering) -> None:
        self.k = k
        group = k.group
        axes = group.reduced or ()
        self.reduced = tuple(a for a in axes if group.shape[a] > 1)
        self.kept_axes = [a for a in range(len(group.shape)) if a not in axes]
        self.sweeps = Sweeps(k)
        self.scratch: dict[Val, tuple[Buffer, bool]] = {}
        self.row_values: dict[Val, Any] = {}
        self.blocks = 0  # loops around blocks of rows
        self.cuts: dict[int, tuple[int, int]] = {}  # axis -> (blocks, its rounds in one)
        self.phase = -1
        self.outer: Index | None = None
        k.own = self.own  # type: ignore[method-assign]
        if (
            self.reduced
            and not any(group.shape[a] > 1 for a in self.kept_axes)
            and all(reads_flat(k, m.node) for m in self.sweeps.full)
            and all(
                _reduces_flat(k, m) if is_reduction(m) else reads_flat(k, m.node)
                for m in self.sweeps.rows
            )
        ):
            k.flat = True
            k.flatten_outputs()

    # ---- several sweeps over each row

    def rows(self, kept: int, total: int) -> list[Step]:
        k, last = self.k, self.sweeps.count - 1
        body: list[Stmt] = []
        apart = self.finishes_apart(kept, total // kept)
        base, loops = self.row_loops("i")
        self.make_scratch(body, total // kept, kept)
        self.row_level(-1, base, body)
        for phase in range(self.sweeps.count):
            self.sweep(phase, base, body)
            if phase < last or not apart:
                self.row_level(phase, base, body)
        if apart:
            around, inner = loops[: self.blocks], loops[self.blocks :]
            allocs = self.keep_rows(inner, body)
            tail: list[Stmt] = []
            base, loops = self.row_loops("k", around)
            at = [Index.of(var) for var in loops[self.blocks :]]
            for key, buffer in self.per_row.items():
                self.row_values[key] = k.e.load(buffer, at)
            self.row_level(last, base, tail)
            body = [*allocs, *_wrap(inner, body), *_wrap(loops[self.blocks :], tail)]
            loops = around
        body = _wrap(loops, body)
        return k.finish("rows", body, k.same_place_pairs(self.sweeps.late()))

    def row_loops(
        self, stem: str, around: Sequence[LoopVar] = ()
    ) -> tuple[list[Index], list[LoopVar]]:
        """Loops over the kept axes, the first of them `around`; sets the number of the row."""
        shape = self.k.group.shape
        base: list[Index] = [Index.of(0)] * len(shape)
        loops: list[LoopVar] = []
        self.outer = Index.of(0)
        for a in self.kept_axes:
            if shape[a] == 1:
                continue
            for n in self.cuts.get(a, (shape[a],)):
                known = len(loops) < len(around)
                loops.append(around[len(loops)] if known else LoopVar(f"{stem}{len(loops)}", n))
                base[a] = base[a] * n + Index.of(loops[-1])
            self.outer = self.outer * shape[a] + base[a]
        return base, loops

    def finishes_apart(self, kept: int, length: int) -> bool:
        """Whether what follows from a row's results is dear enough for lanes over the rows. Of many
        rows so many at a time: sets the number of loops around those, and the axis that is cut."""
        last = self.sweeps.count - 1
        cost = sum(
            self.k.fusion.accesses[m.node].cost
            for m in self.sweeps.rows
            if m.phase == last and not is_reduction(m)
        )
        if cost < DEAR or kept < FEW_ROWS or not FEW_ROWS <= length <= LONG_ROW:
            return False
        if kept > MANY_ROWS and length < MIDDLING_ROW:
            return False
        for axis in [a for a in self.kept_axes if self.k.group.shape[a] > 1]:
            if kept <= MANY_ROWS:
                break
            n = self.k.group.shape[axis]
            self.blocks += 1
            kept //= n
            if kept < FEW_BLOCK:
                # Some rounds of this axis: a divisor of its length.
                found = [d for d in range(1, n + 1) if n % d == 0 and d * kept <= MANY_ROWS]
                if found[-1] * kept < FEW_BLOCK:
                    return False
                self.cuts[axis] = (n // found[-1], found[-1])
                break
        return True

    def keep_rows(self, loops: list[LoopVar], body: list[Stmt]) -> list[Stmt]:
        """Store every value of the row for the loop that follows."""
        k = self.k
        vals = {v: v for m in self.sweeps.rows for v in m.node.outs}
        sizes = tuple(var.extent for var in loops)
        at = [Index.of(var) for var in loops]
        self.per_row: dict[Val, Buffer] = {}
        for key, value in self.row_values.items():
            buffer = Buffer(f"rows{len(self.per_row)}", vals[key].dtype, sizes, "scratch")
            self.per_row[key] = buffer
            body.extend(k.e.store(buffer, at, value))
        return [Alloc(buffer) for buffer in self.per_row.values()]

    def make_scratch(self, body: list[Stmt], length: int, kept: int) -> None:
        k = self.k
        for val in self.sweeps.kept():
            size = length * val.dtype.itemsize
            if size <= STACK_SCRATCH:
                buffer = Buffer(f"row{len(self.scratch)}", val.dtype, (length,), "scratch")
                body.append(Alloc(buffer))
                self.scratch[val] = buffer, False
            else:
                self.scratch[val] = k.work(val.dtype, (kept, length)), True

    def scratch_at(self, buffer: Buffer, own_rows: bool) -> tuple:
        at = self.inner
        if len(buffer.shape) == 1:
            return (at,)
        return (self.outer if own_rows else Index.of(0), at)

    def own(self, val: Any, member: Member, at: tuple) -> Any:
        """A member's value from an earlier sweep."""
        k = self.k
        found = self.scratch.get(val)
        if found is not None:
            return k.e.load(found[0], self.scratch_at(*found))
        if val in k.group.stored:
            index = (self.inner,) if k.flat else tuple(k.domain)
            return k.e.load(k.buffers[val], index)
        return k.rule(member.node, at, val)

    def sweep(self, phase: int, base: list[Index], body: list[Stmt]) -> None:
        """One pass over the row."""
        k, sweeps = self.k, self.sweeps
        full = [m for m in sweeps.full if sweeps.home[m] == phase]
        accumulators = [
            Accumulator(k, m) for m in sweeps.rows if is_reduction(m) and m.phase == phase
        ]
        if not full and not accumulators:
            return
        for accumulator in accumulators:
            accumulator.define(body)
        loops = self.loops(base, phase)
        inner: list[Stmt] = []
        self.visit(full, accumulators, inner)
        for var in reversed(loops):
            inner = [For(var, var.extent, tuple(inner))]
        body.extend(inner)
        self.leave(accumulators)

    def loops(self, base: list[Index], phase: int) -> list[LoopVar]:
        """Fresh loops over the reduced axes; sets the domain and the position in the row."""
        k, shape = self.k, self.k.group.shape
        self.phase = phase
        k.forget()
        k.values.update(self.row_values)
        if k.flat:
            var = LoopVar(f"j{phase}", math.prod(shape))
            k.domain = [Index.of(var)]
            self.inner = Index.of(var)
            return [var]
        k.domain = list(base)
        loops = []
        for a in self.reduced:
            var = LoopVar(f"j{phase}_{a}", shape[a])
            k.domain[a] = Index.of(var)
            loops.append(var)
        self.inner = position(self.reduced, k.domain, shape)
        return loops

    def visit(self, full: list, accumulators: list[Accumulator], inner: list[Stmt]) -> None:
        """What happens at one element: members, stores, accumulations."""
        k = self.k
        for member in full:
            k.compute(member, k.domain, inner)
        for accumulator in accumulators:
            at = self.inner if accumulator.arg else None
            accumulator.update(inner, k.element(accumulator.source, tuple(k.domain)), at)
        vals = [v for m in full for v in m.node.outs if v in k.group.stored]
        k.stores(vals, {v: k.domain for v in vals}, inner)
        for member in full:
            for val in member.node.outs:
                if val in self.scratch:
                    buffer, own_rows = self.scratch[val]
                    inner.extend(
                        k.e.store(buffer, self.scratch_at(buffer, own_rows), k.values[val])
                    )

    def leave(self, accumulators: list[Accumulator]) -> None:
        self.k.forget()
        for accumulator in accumulators:
            self.row_values[accumulator.out] = accumulator.result()

    def row_level(self, phase: int, base: list[Index], body: list[Stmt]) -> None:
        """Values that exist once a row, after sweep `phase`."""
        k = self.k
        k.forget()
        k.values.update(self.row_values)
        k.domain = list(base)
        done = []
        for member in self.sweeps.rows:
            if member.phase != phase:
                continue
            at = [Index.of(0) if a is None else base[a] for a in member.axes]
            if not is_reduction(member):
                k.compute(member, at, body)
                for val in member.node.outs:
                    k.values[val] = k.name(k.values[val], body)
            for val in member.node.outs:
                self.row_values[val] = k.values[val]
                if val in k.group.stored:
                    done.append((val, at))
        k.stores([v for v, _ in done], {v: at for v, at in done}, body)


def _reduces_flat(k: Lowering, member: Member) -> bool:
    return in_step(k, member.node.ins[0], 0)


def _wrap(loops: list[LoopVar], body: list[Stmt]) -> list[Stmt]:
    for var in reversed(loops):
        body = [For(var, var.extent, tuple(body))]
    return body
