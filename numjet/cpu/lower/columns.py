"""Loops for reductions over axes before the last: blocks of columns, accumulated row by row.

A block of accumulators lies in the first-level cache while rows are added into it; nothing is
transposed. Values that exist once a column are arrays over the block. Several sweeps over a block
(softmax along the first axis) stay in cache too. Where columns are few, chunks of the rows are
reduced apart (`lower.chunks`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.cpu.graph.nodes import Val
from numjet.cpu.link import link
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import Alloc, Buffer, Expr, For, Stmt
from numjet.cpu.lower import chunks as lower_chunks
from numjet.cpu.lower.core import PARALLEL_WORK, Lowering, unflatten
from numjet.cpu.lower.groups import Member
from numjet.cpu.lower.moments import pairwise
from numjet.cpu.lower.sweeps import STACK_SCRATCH, Accumulator, Sweeps, is_reduction, position
from numjet.cpu.program.steps import Step

# Bytes of a block's accumulators, all reductions together: those of a first-level cache.
BLOCK_BYTES = 1 << 15
# Rows added up before they go into the accumulators: each pass over those costs a load and a store
# (128 MB in rows of 512 KB took 4.5 ms with eight rows at once, 5.1 with four, 6.2 with one).
# What is computed of them in one round is bounded: values that do not fit registers cost more
# (sums of exponentials took 0.4 of the time by two as by eight, with 16 vectors and with 32).
# Of FEW columns each round waits for the accumulators of the one before: the more rows the better.
ROWS_AT_ONCE = 8
LIGHT = 24
FEW = 16
# Bytes of the rows of few columns that are walked once for each vector of these: a half of a
# first-level cache.
NEAR = 1 << 14
# So few rows need no accumulators, whatever their length: 1,000 times 3 rows of 4 KB took 223 us
# with them, so 95.
FEW_ROWS = 4
# Rows of up to SHORT_ROW bytes that follow each other are read in order, about that many bytes at
# once: more rows are many streams within few pages, which prefetchers do not follow, fewer go
# through the accumulators more often. Against one by one, rows of 1 KB (float32) took 0.97 of the
# time by two and 0.96 by four, of 2 KB (float64) 0.93 and 1.03, variances of 1.2 KB 0.99 and 0.95.
# Of operands beyond LARGE, of which a shared cache keeps a part from call to call as long as they
# are read in order, it is fewer bytes: sums of 25 MB in rows of 256 bytes took 0.6 ms one by one
# and by two, 1.1 by four and 1.6 by eight, of 60 MB in rows of 2 KB 2.0 one by one, 4.4 by two.
SHORT_ROW, SHORT_ROW_OF_LARGE, LARGE = 4096, 256, 1 << 24
# Elements of a block over all its rows, when swept several times: what a second-level cache holds.
BLOCK_ELEMENTS = 1 << 16
# Blocks to aim for when several threads run.
BLOCKS = 8

# A step of argmax in such steps: a comparison and two selections.
_ARG_STEP = 3

_METHODS = {"and": "and_", "or": "or_"}


def lower(k: Lowering) -> list[Step]:
    """The kernel of a group whose reductions leave the last axis."""
    return Columns(k).steps()


class Columns:
    def __init__(self, k: Lowering) -> None:
        self.k = k
        shape = k.group.shape
        axes = k.group.reduced or ()
        self.reduced = tuple(a for a in axes if shape[a] > 1)
        last = max(self.reduced, default=-1)
        kept = [a for a in range(len(shape)) if a not in axes]
        self.leading = [a for a in kept if a < last]
        self.trailing = [a for a in kept if a > last]
        self.sweeps = Sweeps(k)
        self.columns = math.prod([shape[a] for a in self.trailing])
        self.rows = math.prod([shape[a] for a in self.reduced])
        self.arrays: dict[Val, tuple[Buffer, Any]] = {}  # the array over the block, final cast
        self.scratch: dict[Val, Buffer] = {}
        self.allocs: list[Stmt] = []
        self.wide = 1  # how many rows are taken as one wide row
        self.most_at_once = ROWS_AT_ONCE
        # What makes an array of values that exist once a column, where sweeps are apart.
        self.row_array: Any = self.array
        k.own = self.own  # type: ignore[method-assign]

    def steps(self) -> list[Step]:
        k, shape = self.k, self.k.group.shape
        outer = math.prod([shape[a] for a in self.leading])
        self.cut(self.block_size(outer))
        # A few rows that fill a vector are better off than as wide rows, whose parts are joined.
        bytes_of_row = self.columns * max(self.row_bytes() // self.columns, 4)
        full = self.rows <= 4 * FEW and 2 * bytes_of_row > link.vector_bytes()
        alone = full and outer >= BLOCKS and self.in_registers()
        if not alone and lower_chunks.suits(self, outer):
            return lower_chunks.steps(self, outer)
        count = outer * self.cut(self.block_size(outer))
        var = LoopVar("b", count)
        self.stand(Index.of(var))
        body: list[Stmt] = []
        self.make_scratch()
        self.row_level(-1, body)
        for phase in range(self.sweeps.count):
            if self.in_registers():
                self.at_once(body)
            else:
                self.sweep(phase, body)
                self.row_level(phase, body)
        body = [*self.allocs, *body]
        if count > 1:
            each = math.prod(shape) // count * k.weight()
            body = [For(var, count, tuple(body), "serial", 1, 0, k.grain(count, each))]
        lent = set(self.scratch.values())
        late = {v for v in self.sweeps.late() if k.buffers.get(v) not in lent}
        return k.finish("columns", body, k.same_place_pairs(late), annotated=True)

    def cut(self, block: int) -> int:
        """Choose blocks of so many columns; answers how many there are."""
        self.block = block
        return -(-self.columns // block)

    def take_rows(self, wide: int) -> None:
        """Take so many rows of all columns as one wide row, whose columns the block then is."""
        if wide != self.wide:
            self.columns = self.columns // self.wide * wide
            self.block = self.block // self.wide * wide
            self.wide = wide

    def stand(self, whole: Index) -> None:
        """Be at the block number `whole`, those of one place of the leading axes together."""
        shape, block = self.k.group.shape, self.block
        blocks = -(-self.columns // block)
        self.start = whole % blocks * block if blocks > 1 else Index.of(0)
        self.extent: Any = block
        if self.columns % block:
            self.extent = clamp(self.columns - self.start, 1, block)
        self.number = whole
        base: list[Index] = [Index.of(0)] * len(shape)
        sizes = [shape[a] for a in self.leading]
        for a, i in zip(self.leading, unflatten(whole // blocks, sizes), strict=True):
            base[a] = i
        self.base = base

    def block_size(self, outer: int) -> int:
        """Columns of a block; of several axes a divisor of their number, so that all are full."""
        line = self.line()
        if line:
            return line
        block = min(self.columns, self.most_columns(1))
        if self.sweeps.count > 1:
            block = min(block, max(64, BLOCK_ELEMENTS // self.rows // 16 * 16))
        work = self.rows * self.columns * outer * self.k.weight()
        if outer < BLOCKS and work >= 2 * PARALLEL_WORK:
            block = min(block, max(64, -(-self.columns * outer // BLOCKS // 64) * 64))
        return self.whole(block)

    def line(self) -> int:
        """The length of a line along the last of several axes, if it is a long one and an operand
        has one element for it, or one line for all: in a block of several lines each lane would
        look it up. Else 0."""
        shape = self.k.group.shape
        long = [a for a in self.trailing if shape[a] > 1]
        if len(long) < 2:
            return 0
        lanes = link.vector_bytes() // self.k.group.members[-1].node.ins[0].dtype.itemsize
        found = 0
        for read in self.sweeps.reads():
            axes = [k for k, a in enumerate(long) if a in read]
            if not axes or len(axes) == len(long):
                continue
            alike = axes[-1] == len(long) - 1
            line = math.prod([shape[a] for a in long[axes[0] if alike else axes[-1] + 1 :]])
            short = 2 * line < lanes or (alike and line % lanes == 0)
            if not short and line < self.columns and line <= self.most_columns(1):
                found = max(found, line)
        return found

    def block_of(self, arrays: int) -> int:
        """Columns of a block of so many accumulators that is not cut further for threads."""
        return self.line() or self.whole(min(self.columns, self.most_columns(arrays)))

    def most_columns(self, arrays: int) -> int:
        """As many as have room with `arrays` accumulators each for every reduction."""
        found = [m for m in self.sweeps.rows if is_reduction(m)]
        size = sum(max(m.node.ins[0].dtype.itemsize, 4) for m in found)
        return max(BLOCK_BYTES // max(size, 4) // arrays // 64 * 64, 64)

    def whole(self, block: int) -> int:
        """About so many columns; of several axes whole ones of the last of them and a divisor of
        the one before, so that a block's columns follow each other at places that are known."""
        sizes = [n for n in [self.k.group.shape[a] for a in self.trailing] if n > 1]
        if len(sizes) < 2:
            return block
        found, inner = [1], 1
        for n in reversed(sizes):
            found += [inner * d for d in range(2, n + 1) if n % d == 0]
            inner *= n
        return min(found, key=lambda n: abs(n - block) + (0 if n % 16 == 0 else block // 2))

    def make_scratch(self) -> None:
        k = self.k
        for val in self.sweeps.kept():
            if self.rows * self.block * val.dtype.itemsize <= STACK_SCRATCH * 4:
                self.scratch[val] = self.array(val.dtype, self.rows * self.block)
            else:
                self.scratch[val] = self.lent(val) or k.work(val.dtype, tuple(k.group.shape))

    def lent(self, val: Val) -> Buffer | None:
        """A result's memory for a value that is kept: one that is written last, at the place where
        the value was read for the last time."""
        k, late = self.k, self.sweeps.late()
        for out in k.group.stored:
            same = out.dtype == val.dtype and tuple(out.shape) == tuple(k.group.shape)
            if same and out in late and k.buffers[out] not in self.scratch.values():
                return k.buffers[out]
        return None

    def array(self, dtype: Any, size: int | None = None) -> Buffer:
        """Scratch over the block."""
        count = len(self.allocs)
        buffer = Buffer(f"block{count}", dtype, (size or self.block,), "scratch")
        self.allocs.append(Alloc(buffer))
        return buffer

    # ---- positions

    def column_loop(self, name: str) -> tuple[LoopVar, Index]:
        """A loop over the block's columns; sets the domain's trailing axes."""
        k, shape = self.k, self.k.group.shape
        var = LoopVar(name, self.block)
        k.forget()
        k.domain = list(self.base)
        sizes = [shape[a] for a in self.trailing]
        at = self.start + Index.of(var)
        if self.wide > 1:
            self.row, *places = unflatten(at, [self.wide, *sizes])
            for a, i in zip(self.trailing, places, strict=True):
                k.domain[a] = i
        elif len(self.trailing) == 1:
            k.domain[self.trailing[0]] = at
        else:
            for a, i in zip(self.trailing, unflatten(at, sizes), strict=True):
                k.domain[a] = i
        self.column = Index.of(var)
        for key, (buffer, dtype) in self.arrays.items():
            k.values[key] = k.e.cast(k.e.load(buffer, self.row_place(buffer)), dtype)
        return var, self.column

    def row_place(self, buffer: Buffer) -> tuple:
        """Where the column stands in an array over the block, or over all blocks."""
        return (self.number, self.column) if len(buffer.shape) > 1 else (self.column,)

    def scratch_at(self, buffer: Buffer) -> tuple:
        if len(buffer.shape) > 1:
            return tuple(self.k.domain)
        return (
            position(self.reduced, self.k.domain, self.k.group.shape) * self.block + self.column,
        )

    def own(self, val: Any, member: Member, at: tuple) -> Any:
        k = self.k
        buffer = self.scratch.get(val)
        if buffer is not None:
            return k.e.load(buffer, self.scratch_at(buffer))
        if val in k.group.stored:
            return k.e.load(k.buffers[val], tuple(k.domain))
        return k.rule(member.node, at, val)

    # ---- one sweep

    def sweep(self, phase: int, body: list[Stmt]) -> None:
        shape, sweeps = self.k.group.shape, self.sweeps
        full = [m for m in sweeps.full if sweeps.home[m] == phase]
        running = self.running(phase)
        if not full and not running:
            return
        if running:
            var, column = self.column_loop(f"s{phase}")
            start: list[Stmt] = []
            for r in running:
                r.begin(column, start)
            body.append(For(var, self.extent, tuple(start), "vector"))
        final = self.reduced[-1] if self.reduced else None
        rows = shape[final] if final is not None else 1
        together = min(self.rows_at_once(full, running), rows)
        outer = {a: LoopVar(f"r{phase}_{a}", shape[a]) for a in self.reduced[:-1]}
        places = {a: Index.of(var) for a, var in outer.items()}
        inner: list[Stmt] = []
        main = rows // together
        if main:
            part = LoopVar(f"r{phase}", main)
            inner.append(self.rows_loop(part, main, together, 0, places, full, running))
        if rows % together:
            part = LoopVar(f"r{phase}t", rows % together)
            inner.append(
                self.rows_loop(part, part.extent, 1, main * together, places, full, running)
            )
        for var in reversed(outer.values()):
            inner = [For(var, var.extent, tuple(inner), "serial")]
        body.extend(inner)
        for r in running:
            self.arrays[r.a.out] = (r.places if r.a.arg else r.values, r.a.out.dtype)

    def in_registers(self) -> bool:
        """Whether all rows are added up before anything is stored, in one sweep: a few, or those of
        few columns, which stay in the first cache."""
        if self.sweeps.count != 1 or len(self.reduced) != 1:
            return False
        full, running = self.sweeps.full, self.running(0)
        if self.rows_at_once(full, running) >= self.rows:
            return True
        near = self.columns <= FEW and self.rows * self.row_bytes() <= NEAR
        return bool(running) and near and not self.writes_rows(full)

    def at_once(self, body: list[Stmt]) -> None:
        """The only sweep, of few rows or columns: no accumulators in memory, whose masked stores
        would be waited for by the loads behind them (a product of two 3×3 matrices took five times
        as long, sums of 16 rows of 3 integers as well)."""
        k, running = self.k, self.running(0)
        var, _ = self.column_loop("j0")
        inner: list[Stmt] = []
        if self.rows_at_once(self.sweeps.full, running) >= self.rows:
            self.few_rows(running, inner)
        else:
            self.few_columns(running, inner)
        k.domain[self.reduced[0]] = Index.of(0)
        self.row_members(0, inner)
        body.append(For(var, self.extent, tuple(inner), "vector"))

    def few_rows(self, running: list, inner: list[Stmt]) -> None:
        """All rows of a column in one expression."""
        k = self.k
        totals = self.elements(self.rows, Index.of(0), self.sweeps.full, running, inner)
        last = position(self.reduced, k.domain, k.group.shape)
        for r, values in zip(running, totals, strict=True):
            if r.arg:
                place = k.e.const(0, r.a.out.dtype)
                _, total = r.better_of(r.a.initial(), place, values, last, inner)
            else:
                total = r.combine(r.a.initial(), pairwise(r.combine, values))
            k.values[r.a.out] = k.e.cast(k.name(total, inner), r.a.out.dtype)

    def few_columns(self, running: list, inner: list[Stmt]) -> None:
        """All rows of a column in a loop of its own."""
        k, full = self.k, self.sweeps.full
        kept = dict(k.values)
        for r in running:
            r.a.define(inner)
        together = self.rows_at_once(full, running)
        whole = self.rows // together
        parts = [(0, whole, together), (whole * together, 1, self.rows % together)]
        for start, rounds, count in [part for part in parts if part[2]]:
            row = LoopVar("r0", rounds)
            round_: list[Stmt] = []
            totals = self.elements(count, Index.of(row) * count + start, full, running, round_)
            last = position(self.reduced, k.domain, k.group.shape)
            for r, values in zip(running, totals, strict=True):
                if r.arg:
                    for n, value in enumerate(values, 1 - count):
                        r.a.update(round_, value, last + n)
                else:
                    r.a.update(round_, r.together(values), last)
            inner.append(For(row, rounds, tuple(round_)))
        k.values, k.memo, k.depth = kept, {}, {}
        for r in running:
            k.values[r.a.out] = r.a.result()

    def running(self, phase: int) -> list[_Running]:
        """Accumulators of the reductions of a sweep."""
        found = [m for m in self.sweeps.rows if is_reduction(m) and m.phase == phase]
        return [_Running(self, m) for m in found]

    def rows_at_once(self, full: list, running: list) -> int:
        """How many rows are added up before they go into the accumulators."""
        k = self.k
        if not running or self.writes_rows(full):
            return 1
        steps = sum([_ARG_STEP if r.arg else 1 for r in running])
        cost = sum([k.fusion.accesses[m.node].cost for m in full]) + steps
        together = ROWS_AT_ONCE
        while together > 1 and together * cost > LIGHT and self.columns > FEW:
            together //= 2
        if self.rows <= min(together, FEW_ROWS):
            return together
        apart = self.row_bytes()
        if self.block == self.columns and apart <= SHORT_ROW:
            large = apart // self.columns * math.prod(k.group.shape) > LARGE
            most = SHORT_ROW_OF_LARGE if large else SHORT_ROW
            while together > 1 and 2 * together * apart > 3 * most:
                together //= 2
        # LLVM writes one position back by masked stores, which loads behind them wait for: 4 rows
        # of 896 integers took eight times as long.
        return max(together, 2) if any([r.arg for r in running]) else together

    def row_bytes(self) -> int:
        """The bytes from a row to the next in an operand that has the domain's shape."""
        sizes = [m.node.ins[0].dtype.itemsize for m in self.sweeps.rows if is_reduction(m)]
        return self.columns * max(sizes, default=4)

    def writes_rows(self, full: list) -> bool:
        return any(
            v in self.k.group.stored or v in self.scratch for m in full for v in m.node.outs
        )

    def rows_loop(
        self,
        row: LoopVar,
        extent: int | Index,
        together: int,
        first: int | Index,
        places: dict[int, Index],
        full: list,
        running: list,
    ) -> Stmt:
        """`extent` rounds of `together` rows from row `first` of the last reduced axis on; the
        others are at `places`."""
        k = self.k
        var, column = self.column_loop("j" + row.name[1:])
        inner: list[Stmt] = []
        for a, i in places.items():
            k.domain[a] = i
        start = Index.of(row) * together + first
        totals = self.elements(together, start, full, running, inner)
        at = position(self.reduced, k.domain, k.group.shape)
        for total, r in zip(totals, running, strict=True):
            r.take(column, total, at, inner)
        if together == 1:
            # After the reductions: a result may lie in the memory of what they read.
            self.keep(full, inner)
        loop = For(var, self.extent, tuple(inner), "vector")
        return For(row, extent, (loop,), "serial")

    def elements(
        self, count: int, first: Index, full: list, running: list, body: list[Stmt]
    ) -> list[list[Any]]:
        """What `count` rows from row `first` of the last reduced axis on give each reduction."""
        k = self.k
        arrays = dict(k.values)
        found: list[list[Any]] = [[] for _ in running]
        for n in range(count):
            k.values, k.memo, k.depth = dict(arrays), {}, {}
            if self.reduced:
                row = first + n
                k.domain[self.reduced[-1]] = row * self.wide + self.row if self.wide > 1 else row
            for member in full:
                k.compute(member, k.domain, body)
            for values, r in zip(found, running, strict=True):
                values.append(k.e.cast(k.element(r.source, tuple(k.domain)), r.dtype))
        return found

    def keep(self, full: list, body: list[Stmt]) -> None:
        """Store what members of the whole domain give at one element."""
        k = self.k
        for val in [v for m in full for v in m.node.outs if v in self.scratch]:
            buffer = self.scratch[val]
            body.extend(k.e.store(buffer, self.scratch_at(buffer), k.values[val]))
        vals = [v for m in full for v in m.node.outs if v in k.group.stored]
        k.stores(vals, {v: k.domain for v in vals}, body)

    def row_level(self, phase: int, body: list[Stmt]) -> None:
        """Values that exist once a column, after sweep `phase`."""
        if all(m.phase != phase for m in self.sweeps.rows):
            return
        var, _ = self.column_loop(f"e{phase}" if phase >= 0 else "e")
        inner: list[Stmt] = []
        self.row_members(phase, inner)
        if inner:
            body.append(For(var, self.extent, tuple(inner), "vector"))

    def row_members(self, phase: int, inner: list[Stmt]) -> None:
        """The same in a loop over columns where the reductions' results are known."""
        k, sweeps = self.k, self.sweeps
        done = []
        new: list[tuple[Any, Buffer]] = []
        for member in [m for m in sweeps.rows if m.phase == phase]:
            at = [Index.of(0) if a is None else k.domain[a] for a in member.axes]
            if not is_reduction(member):
                k.compute(member, at, inner)
            for val in member.node.outs:
                if not is_reduction(member):
                    k.values[val] = k.name(k.values[val], inner)
                    if phase < sweeps.count - 1:
                        new.append((val, self.row_array(val.dtype)))
                if val in k.group.stored:
                    done.append((val, at))
        k.stores([v for v, _ in done], {v: at for v, at in done}, inner)
        for val, buffer in new:
            inner.extend(k.e.store(buffer, self.row_place(buffer), k.values[val]))
            self.arrays[val] = (buffer, val.dtype)


class _Running:
    """A reduction's accumulators, an array over the block (two for argmax and argmin)."""

    def __init__(self, columns: Columns, member: Member) -> None:
        self.columns = columns
        self.a = Accumulator(columns.k, member)
        self.source, self.dtype, self.arg = self.a.source, self.a.dtype, self.a.arg
        self.combine: Any = getattr(columns.k.e, _METHODS.get(self.a.op, self.a.op), None)

    def begin(self, at: Index, body: list[Stmt]) -> None:
        e = self.columns.k.e
        self.values = self.columns.array(self.dtype)
        self.places = self.columns.array(self.a.out.dtype) if self.arg else self.values
        body.extend(e.store(self.values, (at,), self.a.initial()))
        if self.a.arg:
            body.extend(e.store(self.places, (at,), e.const(0, self.a.out.dtype)))

    def take(self, at: Index, values: list[Any], row: Index, body: list[Stmt]) -> None:
        """Accumulate elements of one column, the last of them in the place `row`."""
        e = self.columns.k.e
        held = e.load(self.values, (at,))
        if self.a.arg:
            place = e.load(self.places, (at,))
            value, place = self.better_of(held, place, values, row, body)
            body.extend(e.store(self.places, (at,), place))
            body.extend(e.store(self.values, (at,), value))
            return
        # The accumulator last: of `maximum`, LLVM chooses its first operand where that is NaN, and
        # would write one in memory back by masked stores, which loads behind them wait for.
        body.extend(e.store(self.values, (at,), self.combine(self.together(values), held)))

    def better_of(
        self, held: Expr, place: Expr, values: list[Expr], last: Index, body: list[Stmt]
    ) -> tuple[Expr, Expr]:
        """(the best so far, its place) after these elements, the last of them at `last`."""
        e, name = self.columns.k.e, self.columns.k.name
        dtype = self.a.out.dtype
        floats = np.issubdtype(self.a.dtype, np.inexact) or self.a.dtype.name == "bfloat16"
        for n, value in enumerate(values, 1 - len(values)):
            better = (e.gt if self.a.op == "argmax" else e.lt)(value, held)
            if floats:
                better = e.or_(better, e.and_(e.ne(value, value), e.eq(held, held)))
            place = name(e.select(better, e.index_value(last + n, dtype), place), body)
            held = name(e.select(better, value, held), body)
        return held, place

    def together(self, values: list[Expr]) -> Expr:
        """The elements of some rows combined. Of most and least floats each step would look for
        NaN: three instructions an element, while one comparison answers for two elements."""
        e, op = self.columns.k.e, self.a.op
        floats = op in ("max", "min") and self.dtype.name in ("float32", "float64")
        if not floats or len(values) < 4:
            return pairwise(self.combine, values)

        def named(name: str) -> Any:
            return lambda x, y: e.op(name, x, y)

        best = pairwise(named(f"{op}_of_numbers"), values)
        pairs = zip(values[::2], [*values[1::2], values[-1]], strict=False)
        nan = [e.op("either_nan", x, y, dtype=bool) for x, y in pairs]
        return e.select(pairwise(e.or_, nan), e.const(float("nan"), self.dtype), best)
