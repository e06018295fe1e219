"""A stencil that writes its result over what it reads, row by row.

`rolled(kernel, out, old, work)` gives the kernel that may have the result `out` in the memory of
the operand `old`, where a row of the result (the elements behind the first axis longer than 1)
needs of `old` that row, the one before and the one after: copies of the row at hand and of the one
before it are kept in scratch memory. Rows run in chunks; of `old`, the row before each and the one
behind it are saved first. Results of single rows (at the edges, where they read what they like) and
of rows that fill no chunk are computed before all others and stored after them. So a step of such a
loop has half the memory. Called by `regions.control` for large carries of loops. Needs a verified
kernel without annotations. What would break it: a pass that moves a load of `old` behind the store
of a later row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numjet.base.record import replace
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Buffer,
    Define,
    Expr,
    For,
    FreshRewriter,
    Kernel,
    Load,
    Stmt,
    Store,
    exprs,
    walk,
)
from numjet.cpu.passes.split_ranges import split_ranges

# Bytes from which on the result had better lie in the operand's memory. Steps of 4000 x 2000 floats
# take 0.80 to 0.87 of their time, of 1000 x 2000, which the third cache holds twice, 0.94 to 1.02.
LEAST_BYTES = 6 << 20
# Bytes of a row: two and what they become are to stay in the first caches; copying short ones takes
# longer than it saves (of 500 floats 1.1 times as long, of 100 1.3).
LEAST_ROW_BYTES, MOST_ROW_BYTES = 1 << 12, 1 << 16
FEWEST_ROWS = 64
# Rows of a chunk, of which two are copied once more: as many as leave the fewest over.
CHUNK_ROWS = range(64, 31, -1)

Work = Callable[[np.dtype, tuple[int, ...]], Buffer]


def rolled(kernel: Kernel, out: Buffer, old: Buffer, work: Work) -> Kernel | None:
    """The kernel whose `out` may be the memory of `old`, or None; `work(dtype, shape)` gives memory
    that only it uses. Its buffers follow the kernel's."""
    if out.shape != old.shape or out.dtype != old.dtype or out.dtype in COMPLEX_PARTS:
        return None
    if sum([b.role != "in" for b in kernel.buffers]) > 1 or out.nbytes < LEAST_BYTES:
        return None
    axis = next((a for a, n in enumerate(out.shape) if n > 1), len(out.shape))
    rows = out.shape[axis] if axis < len(out.shape) else 1
    if rows < FEWEST_ROWS or not LEAST_ROW_BYTES <= out.nbytes // rows <= MOST_ROW_BYTES:
        return None
    return _Rolling(kernel, out, old, axis).kernel_(work)


class _Rolling:
    def __init__(self, kernel: Kernel, out: Buffer, old: Buffer, axis: int) -> None:
        self.whole, self.out, self.old, self.axis = kernel, out, old, axis
        self.lead: tuple[Index, ...] = tuple([Index.of(0)] * axis)
        self.trail = out.shape[axis + 1 :]

    def kernel_(self, work: Work) -> Kernel | None:
        body = split_ranges(self.whole).body
        loop, first = None, 0
        edges: dict[int, int] = {}  # rows that are computed alone -> where they are kept meanwhile
        for s in body:
            row = self.row_of(s)
            if row is None:
                return None
            if row.is_const:
                edges.setdefault(row.const, len(edges))
                continue
            if loop is not None or type(s) is not For or not isinstance(s.extent, int):
                return None
            first = (row - Index.of(s.var)).const
            if not (row - Index.of(s.var)).is_const or not self.near(s, row):
                return None
            loop = s
        if loop is None:
            return None
        assert isinstance(loop.extent, int)
        n = loop.extent
        if n < FEWEST_ROWS or set(edges) & set(range(first, first + n)):
            return None
        length = min(CHUNK_ROWS, key=lambda k: n % k)
        chunks, left = n // length, n % length
        dtype, count = self.out.dtype, len(edges)
        self.saved = work(dtype, (2 * chunks, *self.trail))
        works = [self.saved]
        if count + left:
            self.apart = work(dtype, (count + left, *self.trail))
            works.append(self.apart)
        elsewhere = _Elsewhere(self, {row: Index.of(k) for row, k in edges.items()}, {})
        stmts: list[Stmt] = [elsewhere.stmt(s) for s in body if s is not loop]
        end = first + chunks * length
        if left:
            var = LoopVar("row", left)
            at_end = {loop.var: Index.of(var) + chunks * length}
            elsewhere = _Elsewhere(self, {}, at_end, end - count)
            stmts.append(For(var, left, elsewhere.block(loop.body)))
        chunk = LoopVar("chunk", chunks)
        start = Index.of(chunk) * length + first
        last = self.out.shape[self.axis] - 1
        save = [
            self.copy(self.saved, (Index.of(chunk) * 2 + k,), self.old, (*self.lead, at))
            for k, at in enumerate([clamp(start - 1, 0, last), clamp(start + length, 0, last)])
        ]
        stmts.append(For(chunk, chunks, tuple(save)))
        chunk = LoopVar("chunk", chunks)
        stmts.append(For(chunk, chunks, self.chunk(loop, first, Index.of(chunk), length)))
        for edge, k in edges.items():
            at = (*self.lead, Index.of(edge))
            stmts.append(self.copy(self.out, at, self.apart, (Index.of(k),)))
        if left:
            var = LoopVar("row", left)
            at = (*self.lead, Index.of(var) + end)
            stmts.append(
                For(var, left, (self.copy(self.out, at, self.apart, (Index.of(var) + count,)),))
            )
        return replace(
            self.whole, buffers=(*self.whole.buffers, *works), body=tuple(stmts),
            notes={**self.whole.notes, "annotated": True, "interrupted": True},
        )  # fmt: skip

    def row_of(self, s: Stmt) -> Index | None:
        """The row of the result that a statement writes, where that is one."""
        found = None
        for inner in walk([s]):
            if type(inner) is Store and inner.buffer is self.out:
                row = inner.index[self.axis]
                if found is not None and row != found:
                    return None
                found = row
            elif type(inner) not in (For, Define):
                return None
        return found

    def near(self, s: Stmt, row: Index) -> bool:
        """Whether a statement reads of the operand but the row it writes and those beside it."""
        for e in exprs([s]):
            if type(e) is Load and e.buffer is self.old:
                away = e.index[self.axis] - row
                if not away.is_const or abs(away.const) > 1:
                    return False
        return True

    def copy(
        self, to: Buffer, at: tuple[Index, ...], source: Buffer, place: tuple[Index, ...]
    ) -> Stmt:
        """A row from one buffer to another."""
        loops = [LoopVar(f"e{a}", n) for a, n in enumerate(self.trail)]
        inside = tuple([Index.of(v) for v in loops])
        stmt: Stmt = Store(to, (*at, *inside), Load(source, (*place, *inside)))
        for var in reversed(loops):
            stmt = For(var, var.extent, (stmt,))
        return stmt

    def chunk(self, loop: For, first: int, number: Index, length: int) -> tuple[Stmt, ...]:
        """The statements of one chunk of rows, the last of which reads what was saved behind it."""
        kept = Buffer("kept", self.out.dtype, (2, *self.trail), "scratch")
        start = number * length + first
        var = LoopVar("row", length - 1)
        return (
            Alloc(kept),
            self.copy(kept, (Index.of(1),), self.saved, (number * 2,)),
            For(var, length - 1, self.one(loop, first, start, Index.of(var), kept, None)),
            *self.one(loop, first, start, Index.of(length - 1), kept, number * 2 + 1),
        )

    def one(
        self, loop: For, first: int, start: Index, k: Index, kept: Buffer, behind: Index | None
    ) -> tuple[Stmt, ...]:
        """The statements of row `k` of a chunk: it is copied, and computed of the copies and of the
        row after it, which was saved as row `behind` or is not written yet. A sweep of its own
        copies whole lines, where one with the results would store across them: that took 1.2 times
        as long."""
        row = start + k

        def load(e: Load) -> Expr | None:
            if e.buffer is not self.old:
                return None
            away = (e.index[self.axis] - row).const
            inside = e.index[self.axis + 1 :]
            if away < 1:
                return Load(kept, ((k - away) % 2, *inside))
            return None if behind is None else Load(self.saved, (behind, *inside))

        keep = self.copy(kept, (k % 2,), self.old, (*self.lead, row))
        return keep, *FreshRewriter(var={loop.var: row - first}, load=load).block(loop.body)


class _Elsewhere(FreshRewriter):
    """Stores results of rows in memory of their own: where `rows` says, or so many rows before."""

    def __init__(
        self, rolling: _Rolling, rows: dict[int, Index], var: dict[LoopVar, Index], before: int = 0
    ) -> None:
        super().__init__(var=dict(var))
        self.rolling, self.rows, self.before = rolling, rows, before

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if type(s) is Store:
            axis = self.rolling.axis
            row = s.index[axis]
            at = self.rows[row.const] if row.is_const and self.rows else row - self.before
            return Store(self.rolling.apart, (at, *s.index[axis + 1 :]), s.value, s.part)
        return s
