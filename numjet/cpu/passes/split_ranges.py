"""Loops whose elements come from elsewhere past some position are cut there.

Needs a verified kernel whose vector loops have no number of lanes yet. Does: where a loop asks
whether its variable is below a constant (concatenations, paddings, `where(arange(n) < k, ...)`),
makes a loop of each range, in which the answers are known and positions need no clamping; what is
accumulated goes on from range to range. In one loop every element would be read at a computed
position, from each operand. Keeps: order of statements, results.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

from numjet.base.record import replace
from numjet.cpu.link import link
from numjet.cpu.loops.index import Index, LoopVar, atoms, depends
from numjet.cpu.loops.ir import (
    Alloc,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Stmt,
    Store,
    While,
    address,
    exprs,
    walk,
)
from numjet.cpu.loops.positions import (
    MOST_EXPRESSIONS,
    Known,
    Question,
    cuts,
    near_cuts,
    question,
    questions,
)

# So many ranges at once; of more the loop is cut in the middle first, if that parts its body too.
MOST_RANGES = 8
# A range that is so much of a loop is cut out of it however many others there are.
MOST_OF_ALL = 0.5
# Scratch of a loop for threads of which single rounds may be cut off: these have it on the stack of
# the kernel.
MOST_SCRATCH = 3 << 17
# How often rows ask where they stand before their lanes; not of so small a part of the rows.
MOST_ASKED, SMALL_PART = 6, 8
# Rows of so few numbers are written whole, and longer ones of narrow parts: (64000, 2) beside the
# same take 21 us so and by parts 90, with AVX2 28 and 39; three of two numbers 23, 89, 33 and 41.
# Parts of 3 where there are 16 lanes (float64 36 by parts and 50 so), none with four.
SHORT_ROW, MOST_ROW, LANES = 4, 6, 8
# So many rounds of a loop for threads are looked at one by one.
MOST_LOOKED_AT = 256
Around = TypeVar("Around", Kernel, For)


def split_ranges(kernel: Kernel) -> Kernel:
    """Cut the loops where comparisons of their variables with constants change."""
    return _within(kernel)


def _block(stmts: Sequence[Stmt]) -> list[Stmt]:
    out: list[Stmt] = []
    for s in stmts:
        if type(s) is not For:
            out.append(s)
        elif _plain(s) and not any([type(x) is While or type(x) is If for x in walk(s.body)]):
            out += _loop(s)
        elif s.kind == "vector" and not s.lanes:
            out += _asked_before(s)
        else:
            out.append(_within(s))
    return out


def _plain(s: For) -> bool:
    """Whether nothing but its variable and its body says what a loop does."""
    return type(s.extent) is int and not s.lanes and s.kind != "tile"


def _loop(loop: For) -> list[Stmt]:
    """The loop, or the loops of its ranges."""
    n = loop.extent
    assert isinstance(n, int)
    inside = exprs(loop.body)
    ranges = list(itertools.pairwise([0, *_cuts(loop, n, inside), n]))
    if len(ranges) == 1:
        return _asked_before(loop)
    innermost = not any([type(s) is For for s in loop.body])
    if (innermost or loop.kind == "vector") and 2 * sum([b - a == 1 for a, b in ranges]) > n:
        return [loop]  # most of its rounds would stand alone: lanes take them together
    if not loop.grain and _one_row(loop, max([b - a for a, b in ranges])):
        return [loop]
    if len(ranges) > MOST_RANGES or len(ranges) * len(inside) > MOST_EXPRESSIONS:
        a, b = max(ranges, key=lambda r: r[1] - r[0])
        if innermost and b - a > MOST_OF_ALL * n and len(inside) <= 4 * MOST_EXPRESSIONS:
            # Only the widest stands apart: windows that reach over both ends.
            before = _range(loop, 0, a) if a else ()
            behind = _range(loop, b, n) if b < n else ()
            return [*before, *_block(_range(loop, a, b)), *behind]
        middle = ranges[len(ranges) // 2][0]
        halves = [_range(loop, 0, middle), _range(loop, middle, n)]
        parted = sum([len(exprs(half)) for half in halves]) <= 1.5 * len(inside) + MOST_RANGES
        return [s for half in halves for s in _block(half)] if parted else [_within(loop)]
    return [s for a, b in ranges for s in _block(_range(loop, a, b))]


def _one_row(loop: For, widest: int) -> bool:
    """Whether the loop writes one short row, of parts so narrow that loops of their own would put a
    few numbers here and there for each of many rows. `widest`: the rounds of the widest part."""
    nest, body = [loop], loop.body
    while len(body) == 1 and type(body[0]) is For:
        nest.append(body[0])
        body = body[0].body
    if not all([type(s) is Store and s.part is None for s in body]):
        return False
    row = 1
    for x in reversed(nest):
        if x.kind != "serial" or type(x.extent) is not int or row > MOST_ROW:
            return False
        if any([address(s).coefficient(x.var) != row for s in body if type(s) is Store]):
            return False
        row *= x.extent
    assert type(loop.extent) is int
    lanes = link.vector_bytes() // max([s.buffer.dtype.itemsize for s in body if type(s) is Store])
    part = row // loop.extent * widest
    return lanes >= LANES and (row <= SHORT_ROW or (row <= MOST_ROW and part <= min(3, lanes // 4)))


def _cuts(loop: For, n: int, inside: Sequence[Expr]) -> list[int]:
    """Where the loop is cut. One for threads loses a part of them at each place, so it is cut where
    lanes inside of it depend on it alone."""
    if loop.grain:
        inner = [s for s in walk(loop.body) if type(s) is For]
        lanes = [s.var for s in inner if s.kind == "vector"]
        asks = [
            e for e in inside if (q := question(e)) and any([v in atoms(q.place) for v in lanes])
        ]
        found = {cut for e in asks for cut in _differences(e, loop)}
        scratch = sum([s.buffer.nbytes for s in walk(loop.body) if type(s) is Alloc])
        if len(found) > MOST_RANGES // 2 or scratch > MOST_SCRATCH:
            return []
        if found and any([_ragged(s, loop.var) for s in inner]):
            found.add(n - 1)  # there all places are known
    else:
        asked = questions(inside)
        found = {cut for q in asked for cut in cuts(q, loop.var)}
        found |= {cut for q in asked for cut in near_cuts(q, loop.var, n // 2)}
    return sorted([cut for cut in found if 0 < cut < n])


def _differences(e: Expr, loop: For) -> set[int]:
    """Where what a comparison asks, or its answer, changes with the variable of a loop."""
    n, asked = loop.extent, question(e)
    if asked is None:
        return set()
    near = near_cuts(asked, loop.var, 1)
    if near or type(n) is not int or n > MOST_LOOKED_AT:
        return set(near)
    if not depends(asked.place, loop.var):
        return set()
    seen = [Known({loop.var: Index.of(k)}).expr(e) for k in range(n)]
    told = [s.value if type(s) is Const else question(s) for s in seen]
    return {k for k in range(1, n) if told[k] != told[k - 1]}


def _ragged(s: For, around: LoopVar) -> bool:
    return isinstance(s.extent, Index) and depends(s.extent, around)


def _range(loop: For, a: int, b: int) -> Sequence[Stmt]:
    """A range of a loop, in which comparisons are decided: a loop, or its body for one round."""
    if b - a == 1 and all([type(s) is Store or type(s) is For for s in loop.body]):
        return Known({loop.var: Index.of(a)}).block(loop.body)
    var = LoopVar(loop.var.name, b - a)
    body = Known({loop.var: Index.of(var) + a}).block(loop.body)
    return [replace(loop, var=var, extent=b - a, body=body)]


Bounds = dict[Index, tuple[int, int]]


def _asked_before(loop: For, bounds: Bounds | None = None, depth: int = 0) -> list[Stmt]:
    """A loop over lanes alone that asks where the loops around it stand: asked once before it.
    `bounds`: what is known of that, as in `Known`."""
    if loop.kind != "vector" or any([type(s) is For for s in loop.body]):
        return [_within(loop)]
    inside = exprs(loop.body)
    if depth == MOST_ASKED or len(inside) > MOST_EXPRESSIONS // 4:
        return [loop]
    bounds = bounds or {}
    best = _widest(inside, loop.var, bounds)
    if best is None:
        return [loop]
    e, asked = best
    ways: list[tuple[Stmt, ...]] = []
    for more in asked.answers():
        way = bounds | {key: _narrowed(key, bounds, known) for key, known in more.items()}
        var = LoopVar(loop.var.name, loop.var.extent)
        body = Known({loop.var: Index.of(var)}, way).block(loop.body)
        ways.append(tuple(_asked_before(replace(loop, var=var, body=body), way, depth + 1)))
    return [If(e, *ways)]


def _narrowed(key: Index, bounds: Bounds, known: tuple[int, int]) -> tuple[int, int]:
    lo, hi = bounds.get(key, (key.lo, key.hi))
    return max(lo, known[0]), min(hi, known[1])


def _widest(inside: Sequence[Expr], lane: LoopVar, bounds: Bounds) -> tuple[Expr, Question] | None:
    """The comparison at an end of the widest range of an index between two that are asked, apart
    from `lane`; None where what is open is a small part of an index' range."""
    open_: dict[Index, dict[int, tuple[Expr, Question]]] = {}
    for e in inside:
        asked = question(e)
        if asked is None or lane in atoms(asked.place):
            continue
        for key, (lo, hi) in asked.answers()[0].items():
            least, most = bounds.get(key, (key.lo, key.hi))
            last = hi if lo <= key.lo else lo - 1
            if least <= last < most:
                open_.setdefault(key, {})[last] = e, asked
    for key, at in open_.items():
        least, most = bounds.get(key, (key.lo, key.hi))
        if (most - least) * SMALL_PART < key.hi - key.lo:
            continue
        ends = sorted([least - 1, *at, most])
        width, a, b = max([(b - a, a, b) for a, b in itertools.pairwise(ends)])
        return at[a] if a in at else at[b]
    return None


def _within(around: Around) -> Around:
    """The kernel or loop with the loops inside it cut."""
    body = _block(around.body)
    return around if body == list(around.body) else replace(around, body=tuple(body))
