"""Walk transposed operands in tiles: reorder nests that read with a large stride.

Needs a verified kernel without annotations. Does: in a perfect nest that writes contiguously
along loop j and reads something contiguously along another loop i, cuts i into strips and those
into tiles, and annotates:

    for strip of i and part of j:  (threads may share these)
      for block of j:            32 rows of the operand, walked along memory
        for tile of the strip:
          for j in block, vector:  16 rows
            for i in tile, "tile": the operand's block is transposed in registers

so that both sides are read and written whole lines at a time, two of a row together. Keeps:
results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numjet.base.record import replace
from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.loops.cost import cost, default_lanes
from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms, clamp, stride
from numjet.cpu.loops.ir import (
    Buffer,
    Define,
    For,
    Kernel,
    Load,
    Local,
    ReadLocal,
    Rewriter,
    Skew,
    Stmt,
    Store,
    address,
    exprs,
    stored,
)
from numjet.cpu.loops.legal import independent
from numjet.cpu.loops.scope import Dependences
from numjet.cpu.passes.tile_staged import crossing, last, staged
from numjet.cpu.passes.vectorize import collapse, drop_unit_loops

# Columns walked along one block of rows before the next: long enough for the prefetchers, short
# enough that the lines being written stay in the second-level cache.
_STRIP = 512
# Strips to aim for, so that threads can share them, and pieces of all strips: more than 8 threads
# have some, and one that is held up keeps the others for a 64th of the work (4096² on two busy
# cores took 4.7 ms, with 8 pieces 12.3; lower quartiles).
_STRIPS, _PIECES = 8, 64
# Vectors of j in a block. Lines are fetched from memory in pairs, and where rows lie powers of two
# apart the second one is lost before its turn unless it follows at once: transposing 4096² took
# 3.5 ms so, else 4.1. Blocks of 4 follow more rows than prefetchers do: 6.3 ms from cold caches,
# with 2 and 1 5.4.
_BLOCK = 2
# Elements from which on several threads share them piece by piece.
_SHARED = 1 << 20
# Fewer elements than this are not worth the code.
_SMALL = 1 << 10
# A longer body is not written out once for each column of a tile.
_UNROLLED = 40
# Rows of so few results are interleaved from vectors along the operand's rows: 4 × 250,000 uint16
# transposed take 48 us so, by blocks of 4 × 4 84; rows of 7 are better off in blocks.
_FIELDS = 6
# 16×16 is what 32 vector registers hold.
_LANES = 16


def tile(kernel: Kernel) -> Kernel:
    """Tile the nests of a kernel that transpose; see the module's text."""
    if any(isinstance(s, For) and (s.kind != "serial" or s.grain) for s in kernel.body):
        return kernel
    body = drop_unit_loops(kernel.body)
    body = tuple(collapse(s) for s in body)
    deps = Dependences(stored(body))
    out: list[Stmt] = []
    for s in body:
        out += _tiled(s, deps)
    return replace(kernel, body=tuple(out))


def _tiled(s: Stmt, deps: Dependences) -> Sequence[Stmt]:
    nest: list[For] = []
    inner: Stmt = s
    while isinstance(inner, For) and inner.kind == "serial" and isinstance(inner.extent, int):
        nest.append(inner)
        if len(inner.body) != 1:
            break
        inner = inner.body[0]
    if len(nest) < 2 or not all(isinstance(x, Store | Define) for x in nest[-1].body):
        return [s]
    body = nest[-1].body
    chosen = _choose(nest, body)
    if chosen is None:
        return [s]
    j, row = chosen
    if not all([independent(x, deps) for x in (j, *row)]):
        return [s]
    rest = [x for x in nest if x is not j and x not in row]
    if len(row) == 1:
        return _build(rest, row[0].var, j.var, body)
    var, by, unit = LoopVar(row[0].var.name, math.prod([x.var.extent for x in row])), {}, 1
    for x in row:
        by[x.var] = Index.of(var) // unit % x.var.extent
        unit *= x.var.extent
    return _build(rest, var, j.var, Rewriter(var=by).block(body))


def _choose(nest: list[For], body: Sequence[Stmt]) -> tuple[For, list[For]] | None:
    """(the loop along which results lie, the loop along which an operand lies, with those around
    it along which it goes on where that one is short)."""
    total = 1
    for x in nest:
        total *= x.var.extent
    if total < _SMALL:
        return None
    stores = [address(s) for s in body if isinstance(s, Store)]
    loads = [
        address(e)
        for e in exprs(body)
        if isinstance(e, Load) and e.part is None
        and not any(type(a) is Dyn for i in e.index for a in atoms(i))
    ]  # fmt: skip
    for j in reversed(nest):
        if j.var.extent < 4 or not all(stride(x, j.var) == 1 for x in stores):
            continue
        for i in reversed(nest):
            if i is j:
                continue
            for at in loads:
                step = stride(at, j.var)
                # Short rows are moved whole when they follow each other: channels of pixels.
                worth = i.var.extent >= 4 or step == i.var.extent
                if stride(at, i.var) == 1 and step not in (None, 0, 1, -1):
                    row = [i] if worth else _goes_on(i, [x for x in nest if x is not j], at)
                    if worth or (len(row) > 1 and cost(body) <= _UNROLLED):
                        return j, row
    return None


def _goes_on(i: For, nest: list[For], at: Index) -> list[For]:
    """A short loop along which `at` lies, and those along which it goes on behind that: in a tile
    it is known where each stands."""
    row, n = [i], i.var.extent
    while n <= _LANES and _LANES % n == 0:
        following = [x for x in nest if x not in row and stride(at, x.var) == n]
        if not following:
            break
        row.append(following[0])
        n *= following[0].var.extent
    return row


def _by_lines(body: Sequence[Stmt], i: LoopVar, j: LoopVar, lanes: int) -> Buffer | None:
    """The only operand that is read, where its tiles may begin with its cache lines: rows are whole
    lines, and doing an element twice does no harm, for nothing is read where it is written.
    Transposing 4096² from an array 16 bytes past a line takes 2.6 ms so, else 3.3."""
    found = [e for e in exprs(body) if isinstance(e, Load)]
    if any(e.buffer is not found[0].buffer or e.part is not None for e in found):
        return None
    source = found[0].buffer
    for e in found:
        lin, size = address(e), source.dtype.itemsize
        row = stride(lin, j)
        if lanes * size != host.CACHE_LINE or stride(lin, i) != 1 or row in (None, 0, 1):
            return None
        if row * size % host.CACHE_LINE or lin.const * size % host.CACHE_LINE:
            return None
        if set(atoms(lin)) != {i, j}:
            return None
    return source


def _records(rest: list[For], i: LoopVar, j: LoopVar, body: Sequence[Stmt], lanes: int) -> Stmt:
    """Lanes along i, whose short rows of results are interleaved."""
    rows = For(j, j.extent, tuple(body), "tile", j.extent)
    made: Stmt = For(i, i.extent, (rows,), "vector", lanes=lanes)
    for x in reversed(rest):
        made = For(x.var, x.var.extent, (made,))
    return made


def _build(rest: list[For], i: LoopVar, j: LoopVar, body: Sequence[Stmt]) -> list[Stmt]:
    lanes = min(_LANES, default_lanes(For(j, j.extent, tuple(body)), link.vector_bytes()))
    follow = all([address(s).coefficient(i) == j.extent for s in body if isinstance(s, Store)])
    short = j.extent <= min(_FIELDS, lanes) and i.extent >= lanes
    if follow and short and cost(body) <= _UNROLLED:
        return [_records(rest, i, j, body, lanes)]
    while lanes > 2 and lanes // 2 >= j.extent:
        lanes //= 2
    tiles = i.extent // lanes
    light = cost(body) <= _UNROLLED
    out: list[Stmt] = []
    done: list[For] = []  # holds the loops around already

    def columns(start: Index, width: int) -> For:
        t = LoopVar(i.name, width)
        made = Rewriter(var={i: start + Index.of(t)}).block(body)
        return For(t, width, made, "tile" if width > 1 else "serial", width if light else 1)

    def rows(inner: Stmt) -> For:
        v = LoopVar(j.name, j.extent)
        made = Rewriter(var={j: Index.of(v)}).block([inner])
        return For(v, j.extent, made, "vector", lanes=lanes)

    def walk(along: LoopVar, extent: int | Index, part: Stmt, piece: Index, pieces: int) -> For:
        if block == lanes:
            return rows(For(along, extent, (part,)))
        v, w = LoopVar(j.name, block), LoopVar("block", blocks // pieces)
        at = piece * w.extent + Index.of(w)
        made = Rewriter(var={j: at * block + Index.of(v)}).block([part])
        inner = For(v, block, made, "vector", lanes=lanes)
        return For(w, w.extent, (For(along, extent, (inner,)),))

    around = [x.var for x in rest]
    across = crossing(i, j, math.prod([x.extent for x in around]), body, lanes)
    if across is not None:
        done = staged(i, j, around, body, across, lanes)
        if j.extent % lanes:
            out.append(last(i, j, j.extent % lanes, body, tiles * lanes, lanes))
    block = lanes * math.gcd(_BLOCK, j.extent // lanes)
    if j.extent % lanes or block == j.extent:
        block = lanes
    blocks = j.extent // block
    if tiles and across is None:
        strip = max(1, min(_STRIP // lanes, -(-tiles // _STRIPS)))
        strips = -(-tiles // strip)
        pieces = 1
        if block > lanes and not rest and i.extent * j.extent >= _SHARED:
            pieces = math.gcd(blocks, max(1, _PIECES // strips))
        outer, along = LoopVar("strip", strips * pieces), LoopVar("tile", strip)
        first = Index.of(outer) // pieces * strip
        extent: int | Index = strip
        if tiles % strip:
            extent = clamp(tiles - first, tiles - (strips - 1) * strip, strip)
        start = (first + Index.of(along)) * lanes
        before: tuple[Stmt, ...] = ()
        source = _by_lines(body, i, j, lanes)
        if source is not None and pieces > 1 and i.extent == strips * strip * lanes:
            # One tile more, and the first and last ones overlap the next.
            along = LoopVar("tile", strip + 1)
            extent = strip + (Index.of(outer) // pieces + 1) // strips
            value = Skew(source)
            skew = Local("skew", value.dtype)
            before = (Define(skew, value),)
            start = (first + Index.of(along)) * lanes - Index.of(Dyn(ReadLocal(skew), 0, lanes - 1))
            start = clamp(start, 0, i.extent - lanes)
        part = columns(start, lanes)
        piece = Index.of(outer) % pieces
        grain = int(pieces > 1)
        walked = walk(along, extent, part, piece, pieces)
        out.append(For(outer, outer.extent, (*before, walked), grain=grain))
    if i.extent % lanes:
        out.append(rows(columns(Index.of(tiles * lanes), i.extent % lanes)))
    # Loops around come last: what is done twice must not repeat their variables.
    whole: list[Stmt] = []
    for s in out:
        for x in reversed(rest):
            var = LoopVar(x.var.name, x.var.extent)
            (inner,) = Rewriter(var={x.var: Index.of(var)}).block([s])
            s = For(var, var.extent, (inner,))
        whole.append(s)
    return list(drop_unit_loops([*done, *whole]))
