"""Turn blocks of transposed operands in a core's own caches, then read them like the others.

Needs: what `tile` chose, a loop i along which some operands lie and a loop j along which results
and maybe others do. Does: cuts both into blocks,

    for piece of i, j and the loops around:   (threads share these)
      scratch block
      for tiles of the block:                 the operand, transposed in registers into `block`
      for i in the block:
        for j in the block, vector:           the body, reading `block`

so that every operand and the result are read and written a kilobyte at a time. Tiles alone read
what lies along j, and write where rows begin at no line, a line or two of a row at a time between
the rows of the other: more rows than prefetchers follow, and lines that are fetched to be
written. Keeps: results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.loops.cost import default_lanes
from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms, clamp, stride
from numjet.cpu.loops.ir import (
    Alloc,
    Buffer,
    Expr,
    For,
    Load,
    Rewriter,
    Stmt,
    Store,
    address,
    exprs,
)
from numjet.cpu.passes import stream

# Bytes and elements of a block's rows, and bytes of all blocks. a.T + b of 4096 x 4096 float32 on
# two threads, prototypes, medians of one run: 6.7 ms so, with rows of 512 bytes 7.6, of 256 9.7, of
# 2,048 7.4; without blocks 8.1.
_ROW, _COLUMNS = 1024, 512
_BYTES = 256 << 10
# Bytes of a result beside an operand along j, of so many bytes itself, from which on it pays: a.T +
# b of 2048 x 2048 took 1.31 ms so, else 1.25. Where tiles fill no lines it does as soon as results
# are non-temporal: of 3000 x 3000 2.9 and 10, the transpose alone 2.3 and 9.5.
_LARGE, _BESIDE = 24 << 20, 4 << 20


def crossing(
    i: LoopVar, j: LoopVar, around: int, body: Sequence[Stmt], lanes: int
) -> list[Load] | None:
    """The operands that lie along i, where blocks of them should be transposed first; `around`
    is how often the loops around run."""
    results = [s for s in body if isinstance(s, Store)]
    size = max([s.buffer.dtype.itemsize for s in results])
    written = around * i.extent * j.extent * size
    if written < stream.RESULT_BYTES or i.extent < lanes or j.extent * size < _ROW // 2:
        return None
    across: dict[tuple, Load] = {}
    needed = not all(_whole_lines(s, j, lanes) for s in results)
    for e in exprs(body):
        if not isinstance(e, Load):
            continue
        at = address(e)
        along, step = stride(at, i), stride(at, j)
        if e.part is not None or any(type(a) is Dyn for x in e.index for a in atoms(x)):
            return None
        if along == 1 and step not in (None, 0, 1):
            across.setdefault((e.buffer, at), e)
        elif step == 1:
            needed |= e.buffer.nbytes >= _BESIDE and written >= _LARGE
        elif step != 0:
            return None
    return list(across.values()) if needed and across else None


def _whole_lines(s: Store, j: LoopVar, lanes: int) -> bool:
    """Whether tiles of `lanes` write lines of memory whole."""
    at, size = address(s), s.buffer.dtype.itemsize
    apart = [k for atom, k in at.terms if atom is not j] + [at.const, lanes]
    return s.part is None and all(k * size % host.CACHE_LINE == 0 for k in apart)


def staged(
    i: LoopVar, j: LoopVar, around: Sequence[LoopVar], body: Sequence[Stmt],
    across: Sequence[Load], lanes: int,
) -> list[For]:  # fmt: skip
    """The nests over all of j and the loops around, and of i as much as tiles of `lanes` fill."""
    size = max([e.dtype.itemsize for e in across])
    whole, rest = divmod(j.extent, lanes)
    most = max(1, min(_ROW // size, _COLUMNS) // lanes)
    # Equal blocks where they are not much narrower.
    width = next((n for n in range(most, most // 2, -1) if whole % n == 0), min(most, whole))
    height = max(1, _BYTES // (width * lanes * size * len(across)) // lanes)
    made: list[For] = []
    made.append(_Blocks(i, j, around, (width, height), body, across, lanes).nest(0, whole // width))
    if whole % width:
        blocks = _Blocks(i, j, around, (whole % width, height), body, across, lanes)
        made.append(blocks.nest(whole - whole % width, 1))
    return made


class _Blocks:
    """Blocks of i and j: `shape` is the number of vectors in a row and of tiles of rows."""

    def __init__(
        self, i: LoopVar, j: LoopVar, around: Sequence[LoopVar], shape: tuple[int, int],
        body: Sequence[Stmt], across: Sequence[Load], lanes: int,
    ) -> None:  # fmt: skip
        self.i, self.j, self.around, self.lanes = i, j, around, lanes
        self.body, self.across = body, across
        self.tiles = i.extent // lanes
        self.width, self.height = shape[0], min(shape[1], self.tiles)
        rows, row = self.height * lanes, self.width * lanes
        self.blocks = {}
        for k, e in enumerate(across):
            # A line more: the lines of a tile do not fall into few sets of the first-level cache.
            shape = rows, row + host.CACHE_LINE // e.dtype.itemsize
            self.blocks[_place(e)] = Buffer(f"block{k}", e.dtype, shape, "scratch")

    def nest(self, first: int, count: int) -> For:
        """`count` blocks in a row, beginning with vector `first` of j."""
        height, lanes = self.height, self.lanes
        down = -(-self.tiles // height)
        times = math.prod([x.extent for x in self.around])
        piece = LoopVar("piece", down * count * times)
        tile = Index.of(piece) // count % down * height
        column = (Index.of(piece) % count * self.width + first) * lanes
        by, inner = {}, down * count
        for x in reversed(self.around):
            by[x] = Index.of(piece) // inner % x.extent
            inner *= x.extent
        here: int | Index = height
        if self.tiles % height:
            here = clamp(self.tiles - tile, self.tiles % height, height)
        allocs = [Alloc(x) for x in self.blocks.values()]
        body = [*allocs, self._turn(by, tile, column, here), self._use(by, tile, column, here)]
        return For(piece, piece.extent, tuple(body), grain=1)

    def _turn(self, by: dict, first: Index, column: Index, tiles: int | Index) -> Stmt:
        """Write the blocks, `lanes` rows of the operands after another."""
        lanes = self.lanes
        group, tile = LoopVar("group", self.width), LoopVar("tile", self.height)
        u, t = LoopVar(self.j.name, lanes), LoopVar(self.i.name, lanes)
        down, right = Index.of(tile) * lanes + Index.of(t), Index.of(group) * lanes + Index.of(u)
        there = Rewriter(var={**by, self.i: first * lanes + down, self.j: column + right})
        transposed = [
            Store(self.blocks[_place(e)], (down, right), there.expr(e)) for e in self.across
        ]
        inner = For(t, lanes, tuple(transposed), "tile", lanes)
        walk = For(tile, tiles, (For(u, lanes, (inner,), "vector", lanes=lanes),))
        return For(group, self.width, (walk,))

    def _use(self, by: dict, first: Index, column: Index, tiles: int | Index) -> Stmt:
        """The body over one block."""
        lanes = self.lanes
        row, v = LoopVar(self.i.name, self.height * lanes), LoopVar(self.j.name, self.width * lanes)
        i, j = Index.of(row), Index.of(v)

        def transposed(e: Load) -> Expr | None:
            block = self.blocks.get(_place(e))
            return Load(block, (i, j)) if block else None

        body = Rewriter(load=transposed).block(self.body)
        body = Rewriter(var={**by, self.i: first * lanes + i, self.j: column + j}).block(body)
        inner = For(v, v.extent, body, "vector")
        wide = default_lanes(inner, link.vector_bytes())
        return For(row, tiles * lanes, (For(v, v.extent, body, "vector", lanes=wide),))


def last(i: LoopVar, j: LoopVar, count: int, body: Sequence[Stmt], extent: int, lanes: int) -> For:
    """The last `count` of j, fewer than lanes, for the first `extent` of i."""
    while lanes > 2 and lanes // 2 >= count:
        lanes //= 2
    tile, v, t = LoopVar("tile", extent // lanes), LoopVar(j.name, count), LoopVar(i.name, lanes)
    by = {i: Index.of(tile) * lanes + Index.of(t), j: Index.of(v) + (j.extent - count)}
    inner = For(t, lanes, Rewriter(var=by).block(body), "tile", lanes)
    return For(tile, tile.extent, (For(v, count, (inner,), "vector", lanes=lanes),))


def _place(e: Load) -> tuple[Buffer, Index]:
    return e.buffer, address(e)
