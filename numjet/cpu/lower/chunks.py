"""Loops for reductions of few columns over many rows: chunks of rows reduced apart, then joined.

    for t: blocks of columns × chunks of rows    (threads share these)
      accumulate the chunk; part[t, ...] = what it gave
    for b: blocks of columns
      for each column: join the parts in order, then what follows from the reductions

Rows stream through whole, and the result does not depend on the number of threads. Where what
follows needs the rows again, as softmax does, the next sweep is another such pair of loops, and
values of the whole domain are stored by the tasks. Variances take one sweep here
(`lower.moments`). Rows of fewer columns than a vector has lanes are taken several at a time, as
one wide row, whose columns are joined like the parts of chunks; the rows that are left over are
added at the end. Used by `lower.columns`, whose blocks and row loops these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from numjet.cpu.link import link
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import COMPLEX_PARTS, Alloc, Buffer, Expr, For, Stmt
from numjet.cpu.lower import moments as lower_moments
from numjet.cpu.lower.moments import PIVOT_ROWS, Moments
from numjet.cpu.lower.sweeps import STACK_SCRATCH, Accumulator, Sweeps, is_reduction
from numjet.cpu.program.steps import Step

# Tasks to aim for, so that threads end together; rows of a chunk at least, and at most when the
# distance from a pivot is squared (its cancellation grows with their number).
TASKS = 16
FEWEST_ROWS, MOST_ROWS = 64, 32 * PIVOT_ROWS
# Fewer elements stay in the second-level caches: two sweeps cost little there, joining parts more.
LARGE = 1 << 19
# Columns of the narrowest block that is swept several times at once.
NARROW = 64
# Wide rows of few columns have so many vectors, there are so many of them, and so many elements in
# a chunk of them at least.
WIDE, ROUNDS, FEWEST_ELEMENTS = 4, 4, 1 << 14


def suits(columns: Any, outer: int) -> bool:
    """Whether the rows of a group are better cut into chunks than its columns alone."""
    sweeps = columns.sweeps
    reductions = [m for m in sweeps.rows if is_reduction(m)]
    if not reductions or not columns.reduced or any(m.phase < 0 for m in sweeps.rows):
        return False
    for member in reductions:
        dtype = member.node.ins[0].dtype
        if member.node.rule.op in ("argmax", "argmin") or dtype in COMPLEX_PARTS:
            return False
    size = columns.rows * columns.columns * outer
    variances = lower_moments.find(sweeps) and not _writes(sweeps)
    if (variances or sweeps.count == 1) and wide_rows(columns) > 1:
        return True
    if columns.rows < 2 * FEWEST_ROWS or size < LARGE:
        return False
    if variances:
        return True
    # Several sweeps are taken apart where no block's rows would stay in a second-level cache.
    if sweeps.count == 1:
        return outer * -(-columns.columns // columns.block_of(1)) < TASKS // 2
    return outer * max(columns.columns // NARROW, 1) < TASKS // 2


def wide_rows(columns: Any) -> int:
    """How many rows of few columns are taken as one."""
    reductions = [m for m in columns.sweeps.rows if is_reduction(m)]
    lanes = link.vector_bytes() // min([m.node.ins[0].dtype.itemsize for m in reductions])
    sweeps_apart = len(columns.reduced) > 1 or _writes(columns.sweeps)
    if sweeps_apart or columns.columns >= 2 * lanes or columns.rows <= 2 * columns.most_at_once:
        return 1  # a few rows stay in registers
    rows, across = {*columns.reduced}, {*columns.trailing}
    of_rows = any(rows & read and not across & read for read in columns.sweeps.reads())
    if of_rows and lanes % columns.columns:
        return 1  # each lane would look up its row's element: 30,000 x 30 took five times as long
    fill = lanes // math.gcd(columns.columns, lanes)
    several = max(1, WIDE * lanes // (fill * columns.columns))
    while several > 1 and columns.rows < ROUNDS * fill * several:
        several //= 2
    return fill * several if columns.rows >= ROUNDS * fill else 1


def _writes(sweeps: Sweeps) -> bool:
    """Whether values of the whole domain are stored."""
    stored = sweeps.k.group.stored
    return any(v in stored for m in sweeps.full for v in m.node.outs)


def steps(columns: Any, outer: int) -> list[Step]:
    """The kernel."""
    return _Chunks(columns, outer).steps()


class _Chunks:
    def __init__(self, columns: Any, outer: int) -> None:
        self.columns, self.k, self.outer = columns, columns.k, outer
        sweeps = columns.sweeps
        self.found = [] if _writes(sweeps) else lower_moments.find(sweeps)
        once = self.found or sweeps.count == 1
        self.wide = wide_rows(columns) if once else 1
        self.count = outer * columns.cut(columns.block_of(3 if self.found else 1))
        self.allocs: list[Stmt] = []

    def steps(self) -> list[Step]:
        columns, k = self.columns, self.k
        sweeps = columns.sweeps
        body: list[Stmt] = []
        if self.found:
            sweeps.rows = lower_moments.needed(sweeps, self.found)
            body = self.sweep(0, range(sweeps.count))
        else:
            columns.row_array = lambda dtype: self.part(dtype, self.count)
            for val in sweeps.kept():
                columns.scratch[val] = columns.lent(val) or k.work(val.dtype, tuple(k.group.shape))
            for phase in range(sweeps.count):
                body += self.sweep(phase, (phase,))
        lent = set(columns.scratch.values())
        late = {v for v in sweeps.late() if k.buffers.get(v) not in lent}
        pairs = k.same_place_pairs(late)
        return k.finish("columns", [*self.allocs, *body], pairs, annotated=True)

    def sweep(self, phase: int, joined: Iterable[int]) -> list[Stmt]:
        """All chunks, then what is known of the columns: the phases `joined`."""
        columns = self.columns
        sweeps = columns.sweeps
        self.full = [m for m in sweeps.full if sweeps.home[m] == phase]
        columns.allocs = []
        columns.take_rows(self.wide)
        running = columns.running(phase)
        moments = [Moments(columns, m, x) for m, x in self.found]
        self.divide(columns.rows_at_once(self.full, [*running, *moments]))
        tasks = self.count * self.chunks
        alone = self.chunks == 1
        part = columns.array if alone else lambda dtype: self.part(dtype, tasks)
        # Of one chunk, the accumulators themselves are the part.
        self.parts: list[tuple[Buffer, ...]] = [
            () if alone else (part(r.dtype),) for r in running
        ]
        self.parts += [tuple(part(m.dtype) for _ in range(3)) for m in moments]
        body: list[Stmt] = []
        if self.full or running or moments:
            var = LoopVar("t", tasks)
            self.task = Index.of(var) if tasks > 1 else Index.of(0)
            columns.stand(self.task // self.chunks)
            body = self.accumulate(running, moments)
        if not alone:
            body = self.over(var, [*columns.allocs, *body], 1) if body else body
            columns.allocs = []
            var = LoopVar("b", self.count)
        columns.take_rows(1)
        block = Index.of(var) if self.count > 1 else Index.of(0)
        columns.stand(block)
        each = self.join(block, running, moments, joined)
        if alone:
            work = self.columns.rows * columns.columns * self.k.weight()
            return self.over(var, [*columns.allocs, *body, *each], self.k.grain(self.count, work))
        last = [*columns.allocs, *each]
        grain = self.k.grain(self.count, 4 * self.chunks * columns.block)
        return [*body, *self.over(var, last, grain)] if last else body

    def over(self, var: LoopVar, body: list[Stmt], grain: int) -> list[Stmt]:
        """A loop that threads share, of one round or more."""
        if var.extent == 1:
            return body
        return [For(var, var.extent, tuple(body), "serial", 1, 0, grain)]

    def part(self, dtype: Any, tasks: int) -> Buffer:
        """Memory for what each task gives."""
        shape = (tasks, self.columns.block)
        if math.prod(shape) * dtype.itemsize > STACK_SCRATCH:
            return self.k.work(dtype, shape)
        buffer = Buffer(f"part{len(self.allocs)}", dtype, shape, "scratch")
        self.allocs.append(Alloc(buffer))
        return buffer

    def place(self, task: Index, at: Index) -> tuple[Index, ...]:
        """Where a part has column `at` of a task; one that is the only chunk has its own memory."""
        return (at,) if self.chunks == 1 else (task, at)

    def divide(self, together: int) -> None:
        """Choose the chunks: `each` units of the first reduced axis, the last chunk `rest`. A unit
        is a place of that axis, or `together` rows where it is the only one."""
        shape, reduced = self.k.group.shape, self.columns.reduced
        last = shape[reduced[-1]]
        wide = self.wide
        while last % together if wide == 1 else together > 1 and last < ROUNDS * together * wide:
            together //= 2
        self.together, self.alone = together, len(reduced) == 1
        self.units = shape[reduced[0]] // (together * self.wide if self.alone else 1)
        # Rows that a unit adds to each accumulator.
        self.unit_rows = together if self.alone else self.columns.rows // self.units
        self.left = last % (together * self.wide) if self.alone else 0
        chunks = -(-TASKS // self.count)
        if self.found:
            chunks = max(chunks, -(-self.columns.rows // (MOST_ROWS * self.wide)))
        chunks = max(1, min(chunks, self.columns.rows // FEWEST_ROWS, self.units))
        if self.wide > 1:
            size = self.columns.rows * self.columns.columns // self.wide
            chunks = max(1, min(chunks, size // FEWEST_ELEMENTS))
        self.each = -(-self.units // chunks)
        self.chunks = -(-self.units // self.each)
        self.rest = self.units - (self.chunks - 1) * self.each

    def length(self, chunk: Index) -> Index:
        """The units of a chunk."""
        if self.rest == self.each:
            return Index.of(self.each)
        return clamp(self.units - chunk * self.each, self.rest, self.each)

    def rows_of(self, length: Index, dtype: Any) -> Any:
        """How many rows so many units are, as a value."""
        e, rows = self.k.e, length * self.unit_rows
        return e.const(rows.const, dtype) if rows.is_const else e.index_value(rows, dtype)

    # ---- the parts

    def accumulate(self, running: list, moments: list[Moments]) -> list[Stmt]:
        """Reduce one chunk and store what it gives."""
        columns, k = self.columns, self.k
        chunk = self.task % self.chunks
        first, length = chunk * self.each, self.length(chunk)
        extent: Any = length.const if length.is_const else length
        body = self.over_columns("s", lambda at, inner: [
            r.begin(at, inner) for r in [*running, *moments]
        ])  # fmt: skip
        if moments:
            body.append(self.pivots(moments, first))
        reduced, shape = columns.reduced, k.group.shape
        if self.alone:
            row = LoopVar("r0", self.each)
            body.append(
                columns.rows_loop(
                    row, extent, self.together, first * self.together, {}, self.full,
                    [*running, *moments],
                )
            )  # fmt: skip
        else:
            sizes = [self.each, *(shape[a] for a in reduced[1:-1])]
            loops = [LoopVar(f"r0_{a}", n) for a, n in zip(reduced, sizes, strict=False)]
            places = {a: Index.of(var) for a, var in zip(reduced, loops, strict=False)}
            places[reduced[0]] += first
            row = LoopVar("r0", shape[reduced[-1]] // self.together)
            inner = columns.rows_loop(
                row, row.extent, self.together, 0, places, self.full, [*running, *moments]
            )
            for var in reversed(loops[1:]):
                inner = For(var, var.extent, (inner,))
            body.append(For(loops[0], extent, (inner,)))

        def keep(at: Index, inner: list[Stmt]) -> None:
            for n, r in enumerate(running):
                if self.chunks == 1:
                    self.parts[n] = (r.values,)
                else:
                    value = k.e.load(r.values, (at,))
                    inner.extend(k.e.store(self.parts[n][0], (self.task, at), value))
            for m, parts in zip(moments, self.parts[len(running) :], strict=True):
                made = m.part(at, self.rows_of(length, m.dtype))
                for part, value in zip(parts, made, strict=True):
                    inner.extend(k.e.store(part, self.place(self.task, at), value))

        return body + self.over_columns("p", keep)

    def pivots(self, moments: list[Moments], first: Index) -> Stmt:
        """The mean of the chunk's first rows."""
        columns, reduced = self.columns, self.columns.reduced
        most = self.rest if self.alone else self.k.group.shape[reduced[-1]] // self.together
        count = max(1, min(PIVOT_ROWS // self.together, most))
        start = first * self.together if self.alone else Index.of(0)
        places = {a: Index.of(0) for a in reduced[:-1]}
        if not self.alone:
            places[reduced[0]] = first
        share = 1 / (count * self.together)
        return columns.rows_loop(
            LoopVar("rp", count),
            count,
            self.together,
            start,
            places,
            self.full,
            [_Pivot(m, share) for m in moments],
        )

    def over_columns(self, name: str, visit: Any) -> list[Stmt]:
        """A loop over the block's columns; `visit` writes its body."""
        var, column = self.columns.column_loop(name)
        inner: list[Stmt] = []
        visit(column, inner)
        if not inner:
            return []
        return [For(var, self.columns.extent, tuple(inner), "vector")]

    # ---- the whole

    def join(
        self, block: Index, running: list, moments: list[Moments], phases: Iterable[int]
    ) -> list[Stmt]:
        """The reductions from their parts, and what follows from them."""
        columns = self.columns
        made = [(r.a.out, columns.row_array(r.dtype)) for r in running]
        made += [(m.out, columns.row_array(m.dtype)) for m in moments]

        def visit(at: Index, inner: list[Stmt]) -> None:
            for n, r in enumerate(running):
                total = self.joined(block, at, r, n, inner)
                inner.extend(self.k.e.store(made[n][1], columns.row_place(made[n][1]), total))
            for n, m in enumerate(moments, len(running)):
                total = self.joined_moments(block, at, m, n, inner)
                inner.extend(self.k.e.store(made[n][1], columns.row_place(made[n][1]), total))

        body = self.over_columns("k", visit)
        for out, buffer in made:
            columns.arrays[out] = (buffer, out.dtype)
        for phase in phases:
            columns.row_level(phase, body)
        return body

    def joined(self, block: Index, at: Index, r: Any, n: int, body: list[Stmt]) -> Any:
        accumulator = Accumulator(self.k, r.a.member)
        accumulator.define(body)

        def take(value: Expr) -> list[Stmt]:
            inner: list[Stmt] = []
            accumulator.update(inner, value, None)
            return inner

        part = self.parts[n][0]
        self.over_parts(f"c{n}", block, at, lambda p, _: take(self.k.e.load(part, p)), body)
        self.over_left(f"l{n}", r, take, body)
        return self.k.e.read_local(accumulator.local)

    def over_parts(
        self, name: str, block: Index, at: Index,
        visit: Callable[[tuple[Index, ...], Index], list[Stmt]], body: list[Stmt],
    ) -> None:  # fmt: skip
        """visit(place, chunk) of each part of a column, in order."""
        var = LoopVar(name, self.chunks * self.wide)
        chunk, row = Index.of(var) // self.wide, Index.of(var) % self.wide
        place = self.place(block * self.chunks + chunk, row * self.columns.block + at)
        body.append(For(var, var.extent, tuple(visit(place, chunk))))

    def over_left(
        self, name: str, r: _Reducer, visit: Callable[[Expr], list[Stmt]], body: list[Stmt]
    ) -> None:
        """visit(value) of what `r` reduces, in the rows that no chunk has."""
        if not self.left:
            return
        columns, k = self.columns, self.k
        kept = k.values, k.memo, k.depth, list(k.domain)
        var = LoopVar(name, self.left)
        inner: list[Stmt] = []
        first = Index.of(var) + (columns.rows - self.left)
        values = columns.elements(1, first, self.full, [r], inner)
        inner += visit(values[0][0])
        body.append(For(var, self.left, tuple(inner)))
        k.values, k.memo, k.depth, k.domain = kept

    def joined_moments(self, block: Index, at: Index, m: Moments, n: int, body: list[Stmt]) -> Any:
        k, e, dtype = self.k, self.k.e, m.dtype
        pivots, aways, parts = self.parts[n]
        first = self.place(block * self.chunks, at)

        def distance(place: tuple[Index, ...]) -> Expr:
            """From the first chunk's mean to another's, without rounding either mean."""
            pivot = e.sub(e.load(pivots, place), e.load(pivots, first))
            return e.add(pivot, e.sub(e.load(aways, place), e.load(aways, first)))

        def total(stem: str, value: Callable, left: Callable) -> Expr:
            k.names += 1
            local, stmts = e.define(f"{stem}{k.names}", e.const(0, dtype))
            body.extend(stmts)

            def visit(place: tuple[Index, ...], chunk: Index) -> list[Stmt]:
                rows = self.rows_of(self.length(chunk), dtype)
                return e.update(local, "add", value(place, rows))

            self.over_parts(f"c{k.names}", block, at, visit, body)
            self.over_left(f"l{k.names}", m, lambda x: e.update(local, "add", left(x)), body)
            return e.read_local(local)

        share = e.const(1 / self.columns.rows, dtype)
        # A row's distance is from the first chunk's mean too.
        away = lambda x: e.sub(e.sub(x, e.load(pivots, first)), e.load(aways, first))
        mean = total(
            "mean",
            lambda place, rows: e.mul(distance(place), e.mul(rows, share)),
            lambda x: e.mul(away(x), share),
        )
        mean = k.name(mean, body)

        def squares(place: tuple[Index, ...], rows: Expr) -> Expr:
            far = e.sub(distance(place), mean)
            return e.add(e.load(parts, place), e.mul(rows, e.mul(far, far)))

        def square(x: Expr) -> Expr:
            far = e.sub(away(x), mean)
            return e.mul(far, far)

        return total("moment", squares, square)


class _Reducer(Protocol):
    """What is common to the accumulators of reductions and of moments."""

    source: Any
    dtype: Any
    arg: bool


class _Pivot:
    """Stands for the accumulators while the pivots' rows are read."""

    def __init__(self, moments: Moments, share: float) -> None:
        self.source, self.dtype = moments.source, moments.dtype
        self.moments, self.share = moments, share

    def take(self, at: Index, values: list[Any], _: Index, body: list[Stmt]) -> None:
        self.moments.point(at, values, self.share, body)
