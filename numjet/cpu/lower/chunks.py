"""Loops for reductions of few columns over many rows: chunks of rows reduced apart, then joined.

    for t: blocks of columns × chunks of rows    (threads share these)
      accumulate the chunk; part[t, ...] = what it gave
    for b: blocks of columns
      for each column: join the parts in order, then what follows from the reductions

Rows stream through whole, and the result does not depend on the number of threads. Where what
follows needs the rows again, as softmax does, the next sweep is another such pair of loops, and
values of the whole domain are stored by the tasks. Variances take one sweep here
(`lower.moments`). Used by `lower.columns`, whose blocks and row loops these are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import COMPLEX_PARTS, Alloc, Buffer, For, Stmt
from numjet.cpu.lower import moments as lower_moments
from numjet.cpu.lower.core import product
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
    if columns.rows < 2 * FEWEST_ROWS or size < LARGE:
        return False
    if lower_moments.find(sweeps) and not _writes(sweeps):
        return True
    # Several sweeps are taken apart where no block's rows would stay in a second-level cache.
    if sweeps.count == 1:
        return outer * -(-columns.columns // columns.block_of(1)) < TASKS // 2
    return outer * max(columns.columns // NARROW, 1) < TASKS // 2


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
        running = columns.running(phase)
        moments = [Moments(columns, m, x) for m, x in self.found]
        self.divide(columns.rows_at_once(self.full, [*running, *moments]))
        tasks = self.count * self.chunks
        self.parts: list[tuple[Buffer, ...]] = [(self.part(r.dtype, tasks),) for r in running]
        self.parts += [tuple(self.part(m.dtype, tasks) for _ in range(3)) for m in moments]
        body: list[Stmt] = []
        if self.full or running or moments:
            var = LoopVar("t", tasks)
            self.task = Index.of(var) if tasks > 1 else Index.of(0)
            columns.stand(self.task // self.chunks, self.outer)
            each = self.accumulate(running, moments)
            body = [*columns.allocs, *each]
            if tasks > 1:
                body = [For(var, tasks, tuple(body), "serial", 1, 0, 1)]
        columns.allocs = []
        var = LoopVar("b", self.count)
        block = Index.of(var) if self.count > 1 else Index.of(0)
        columns.stand(block, self.outer)
        each = self.join(block, running, moments, joined)
        last: list[Stmt] = [*columns.allocs, *each]
        if self.count > 1 and last:
            grain = self.k.grain(self.count, 4 * self.chunks * columns.block)
            last = [For(var, self.count, tuple(last), "serial", 1, 0, grain)]
        return body + last

    def part(self, dtype: Any, tasks: int) -> Buffer:
        """Memory for what each task gives."""
        shape = (tasks, self.columns.block)
        if product(shape) * dtype.itemsize > STACK_SCRATCH:
            return self.k.work(dtype, shape)
        buffer = Buffer(f"part{len(self.allocs)}", dtype, shape, "scratch")
        self.allocs.append(Alloc(buffer))
        return buffer

    def divide(self, together: int) -> None:
        """Choose the chunks: `each` units of the first reduced axis, the last chunk `rest`. A unit
        is a place of that axis, or `together` rows where it is the only one."""
        shape, reduced = self.k.group.shape, self.columns.reduced
        while shape[reduced[-1]] % together:
            together //= 2
        self.together, self.alone = together, len(reduced) == 1
        self.units = shape[reduced[0]] // (together if self.alone else 1)
        self.unit_rows = self.columns.rows // self.units
        chunks = -(-TASKS // self.count)
        if self.found:
            chunks = max(chunks, -(-self.columns.rows // MOST_ROWS))
        chunks = max(1, min(chunks, self.columns.rows // FEWEST_ROWS, self.units))
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
            for r, (part,) in zip(running, self.parts, strict=False):
                inner.extend(k.e.store(part, (self.task, at), k.e.load(r.values, (at,))))
            for m, parts in zip(moments, self.parts[len(running) :], strict=True):
                made = m.part(at, self.rows_of(length, m.dtype))
                for part, value in zip(parts, made, strict=True):
                    inner.extend(k.e.store(part, (self.task, at), value))

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
        var = LoopVar(f"c{n}", self.chunks)
        inner: list[Stmt] = []
        place = block * self.chunks + Index.of(var)
        accumulator.update(inner, self.k.e.load(self.parts[n][0], (place, at)), None)
        body.append(For(var, self.chunks, tuple(inner)))
        return self.k.e.read_local(accumulator.local)

    def joined_moments(self, block: Index, at: Index, m: Moments, n: int, body: list[Stmt]) -> Any:
        k, e, dtype = self.k, self.k.e, m.dtype
        pivots, aways, parts = self.parts[n]
        start = block * self.chunks

        def distance(place: Any) -> Any:
            """From the first chunk's mean to another's, without rounding either mean."""
            first = (start, at)
            pivot = e.sub(e.load(pivots, place), e.load(pivots, first))
            return e.add(pivot, e.sub(e.load(aways, place), e.load(aways, first)))

        def total(stem: str, value: Any) -> Any:
            k.names += 1
            local, stmts = e.define(f"{stem}{k.names}", e.const(0, dtype))
            body.extend(stmts)
            var = LoopVar(f"c{k.names}", self.chunks)
            chunk = Index.of(var)
            rows = self.rows_of(self.length(chunk), dtype)
            inner = e.update(local, "add", value((start + chunk, at), rows))
            body.append(For(var, self.chunks, tuple(inner)))
            return e.read_local(local)

        share = e.const(1 / self.columns.rows, dtype)
        mean = total("mean", lambda place, rows: e.mul(distance(place), e.mul(rows, share)))
        mean = k.name(mean, body)

        def squares(place: Any, rows: Any) -> Any:
            away = e.sub(distance(place), mean)
            return e.add(e.load(parts, place), e.mul(rows, e.mul(away, away)))

        return total("moment", squares)


class _Pivot:
    """Stands for the accumulators while the pivots' rows are read."""

    def __init__(self, moments: Moments, share: float) -> None:
        self.source, self.dtype = moments.source, moments.dtype
        self.moments, self.share = moments, share

    def take(self, at: Index, values: list[Any], _: Index, body: list[Stmt]) -> None:
        self.moments.point(at, values, self.share, body)
