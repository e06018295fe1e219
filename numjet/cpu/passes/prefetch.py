"""Prefetch what vector loops stream from memory: note the loads that announce later ones.

Needs an annotated kernel. Does: notes["ahead"] maps (buffer, index) of loads to the bytes by which
the emitter looks ahead of them. Prefetchers of the hardware stop at the end of a page and follow
few streams at once; a load that asks for the line one page on has it by then. Blocks that are
transposed first (`tile_staged`) prefetch the rows that come next. notes["rows"] maps loop variables
to the rows, found by numbers in memory, that are prefetched some rounds before, as (buffer, index,
bytes). Keeps: results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from numjet.base.record import replace
from numjet.cpu.host import CACHE_LINE
from numjet.cpu.link import processor
from numjet.cpu.loops.cost import cost
from numjet.cpu.loops.index import Atom, Dyn, Index, LoopVar, atoms, clamp, stride
from numjet.cpu.loops.ir import (
    Alloc,
    Buffer,
    For,
    Kernel,
    Load,
    ReadLocal,
    Rewriter,
    Stmt,
    address,
    blocks,
    exprs,
    operands,
    stored,
    walk,
)

# What fits into a core's own caches needs no announcement.
LARGE = 4 << 20
# One page: 64 lines, about the latency of memory at the bandwidth of one core. Two pages ahead and
# into the second-level cache plain sums gain 3 %, softmax loses 10 and variances 6.
AHEAD = 4096


def looks_ahead() -> bool:
    """Whether loads along memory look ahead. On AMD's processors, whose prefetchers go on, they
    wait for what they asked for: on one core of Zen 4 -x of 3,000,000 numbers takes 0.86 ms so and
    0.59 else, of 16,000,000 x · y 4.8 and 4.2, where(k > 25, x, y) 8.2 and 7.1, x + y 5.4 and 5.0.
    A kernel whose notes say "interrupted", since other sweeps come between those that read a row
    and the next, is the exception: a stencil in place on 4000 x 2000 takes 2.4 ms and 3.3 else.
    """
    return not processor.is_amd()


# A body of more instructions waits for them, not for memory.
LIGHT = 60
# Within rows that are apart, where at most an eighth of what is prefetched lies past the row's end.
WITHIN = 1024

# Rows ahead of which rows anywhere are asked for, at most so many bytes of each, and into the
# second-level cache: requests for the first wait in its few buffers, which such stores need too.
# 10^6 rows of 256 bytes on two threads: 14 ms so, 17 into the first-level cache, 16 or 20 ahead of
# nothing.
ROWS_AHEAD, ROW_AHEAD = 32, 1024

# Rows ahead of what lies beside a block. a.T + b on two threads, medians, with these and each tile
# asking for the rows below its own, and without: of 4096 x 4096 6.8 and 7.6 ms, of 3000 x 3000 3.1
# and 3.1.
ROWS_BELOW = 2

# Rows up to this stay in a core's caches between sweeps. Softmax of 10,000 x 1,000 from cold caches
# took 4.9 ms with the sweep that takes exponentials asking for the next row, 5.5 with both asking.
ROW = 256 << 10


def prefetch(kernel: Kernel) -> Kernel:
    """Note the loads of a kernel that look ahead; see the module's text."""
    large = {x for x in kernel.buffers if x.role == "in" and x.nbytes >= LARGE}
    if not large:
        return kernel
    page = AHEAD if looks_ahead() or kernel.notes.get("interrupted") else 0
    ahead = _blocks_of_rows(kernel, large)
    heaviest: dict[tuple, tuple[int, tuple]] = {}  # where a row begins -> (cost, its load)
    for around, loop in _vector_loops(kernel.body, ()):
        if cost(loop.body) > LIGHT:
            continue
        for found in _addresses(loop, large):
            for key, lin in found.items():
                size = key[0].dtype.itemsize
                far = _distance(lin, loop, around, len(found), size, page)
                if not far:
                    continue
                if around and loop.var.extent * size <= ROW:
                    # Sweeps over one row: the one with most to do while lines arrive asks.
                    rest = frozenset(t for t in lin.terms if t[0] is not loop.var)
                    row = key[0], around, lin.const, rest
                    before = heaviest.get(row)
                    if before is not None and before[0] > cost(loop.body):
                        continue
                    if before is not None:
                        ahead.pop(before[1], None)
                    heaviest[row] = cost(loop.body), key
                ahead[key] = far
    rows = _rows_anywhere(kernel, large)
    if not ahead and not rows:
        return kernel
    return replace(kernel, notes={**kernel.notes, "ahead": ahead, "rows": rows})


def _addresses(loop: For, large: set[Buffer]) -> Iterable[dict[tuple, Index]]:
    """For each of the large buffers, its loads in a loop that are at no place read from memory:
    buffer and index -> address."""
    found: dict[Buffer, dict[tuple, Index]] = {}
    for e in exprs(loop.body):
        if isinstance(e, Load) and e.buffer in large and e.part is None:
            if not any(type(a) is Dyn for i in e.index for a in atoms(i)):
                found.setdefault(e.buffer, {})[e.buffer, e.index] = address(e)
    return found.values()


def _blocks_of_rows(kernel: Kernel, large: set[Buffer]) -> dict[tuple, int]:
    """What blocks ask for: tiles what the next tile below reads, where they are transposed, and
    rows beside them a later row. Both read a kilobyte of a row, as long as prefetchers take to
    begin."""
    ahead: dict[tuple, int] = {}
    for piece in kernel.body:
        if not (isinstance(piece, For) and any(isinstance(s, Alloc) for s in piece.body)):
            continue
        nests = [s for s in walk(piece.body) if isinstance(s, For)]
        if not any(s.kind == "tile" for s in nests):
            continue
        for loop in nests:
            inner = loop.body[0]
            if len(loop.body) > 1 or not isinstance(inner, For) or cost(inner.body) > LIGHT:
                continue
            if (loop.kind, inner.kind) == ("vector", "tile"):
                along, rows = 1, loop.var.extent
            elif (loop.kind, inner.kind) == ("serial", "vector"):
                along, rows = max(inner.lanes, 1), ROWS_BELOW
            else:
                continue
            for e in exprs(inner.body):
                if not (isinstance(e, Load) and e.buffer in large and e.part is None):
                    continue
                lin = address(e)
                apart = stride(lin, loop.var, max(loop.lanes, 1))
                if stride(lin, inner.var, along) == 1 and apart and apart > inner.var.extent:
                    ahead[e.buffer, e.index] = rows * apart * e.buffer.dtype.itemsize
    return ahead


def _rows_anywhere(kernel: Kernel, large: set[Buffer]) -> dict[LoopVar, list[tuple]]:
    """Rows that are read whole in vectors, whose place is read from memory in each round."""
    rows: dict[LoopVar, list[tuple]] = {}
    written = stored(kernel.body)
    for loop in walk(kernel.body):
        if not (isinstance(loop, For) and loop.kind == "serial" and isinstance(loop.extent, int)):
            continue
        vectors = [s for s in loop.body if isinstance(s, For) and s.kind == "vector"]
        later = clamp(Index.of(loop.var) + ROWS_AHEAD, 0, loop.extent - 1)
        for inner in vectors:
            within = {s.var for s in (inner, *walk(inner.body)) if isinstance(s, For)}
            ahead = Rewriter(var={loop.var: later, **dict.fromkeys(within, Index.of(0))})
            for e in exprs(inner.body):
                if not (isinstance(e, Load) and e.buffer in large and e.part is None):
                    continue
                lin = address(e)
                size = inner.var.extent * e.buffer.dtype.itemsize
                if stride(lin, inner.var, max(inner.lanes, 1)) != 1 or size < CACHE_LINE:
                    continue
                numbers = [_sources(a, written) for a in atoms(lin) if type(a) is Dyn]
                if not any(n is not None and loop.var in n for n in numbers):
                    continue
                if any(n is None or not within.isdisjoint(n) for n in numbers):
                    continue
                fetched = e.buffer, ahead.indices(e.index), min(size, ROW_AHEAD)
                if fetched not in rows.setdefault(loop.var, []):
                    rows[loop.var].append(fetched)
    return rows


def _sources(number: Dyn, written: set[Buffer]) -> set[Atom] | None:
    """The atoms that a number depends on, or None where it depends on more than these and memory
    that nobody writes."""
    pending, found = [number.expr], set[Atom]()
    while pending:
        e = pending.pop()
        if isinstance(e, ReadLocal) or (isinstance(e, Load) and e.buffer in written):
            return None
        found |= {a for i in e.indices_() for a in atoms(i)}
        pending += operands(e)
    return found


def _vector_loops(stmts: Sequence[Stmt], around: tuple[LoopVar, ...]) -> Iterator[tuple]:
    """Each vector loop, with the variables of the loops around it, outer first."""
    for s in stmts:
        if isinstance(s, For) and s.kind == "vector":
            if not any(isinstance(x, For) for x in s.body):
                yield around, s
        else:
            inner = (*around, s.var) if isinstance(s, For) else around
            for block in blocks(s):
                yield from _vector_loops(block, inner)


def _distance(
    lin: Index, loop: For, around: Sequence[LoopVar], together: int, size: int, page: int
) -> int:
    """The bytes by which a load looks ahead, `page` where it goes on; 0 for not at all."""
    if stride(lin, loop.var, max(loop.lanes, 1)) != 1:
        return 0
    length = loop.var.extent
    for var in reversed(around):
        step = stride(lin, var)
        if step == 0:
            continue
        if step is None or step < 0:
            return 0
        if 8 * step <= 9 * length * together:
            # The next round continues where this one ends, or nearly so.
            return page
        return WITHIN if length * size >= 8 * WITHIN else 0
    return page
