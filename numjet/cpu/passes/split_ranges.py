"""Loops whose elements come from elsewhere past some position are cut there.

Needs a verified kernel without annotations. Does: where a loop of stores alone asks whether its
variable is below a constant (concatenations, paddings, `where(arange(n) < k, ...)`), makes a loop
of each range, in which the answers are known and positions need no clamping. In one loop every
element would be read at a computed position, from each operand. Keeps: order of stores, results.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

from numjet.base.record import replace
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import For, Kernel, Stmt, Store, exprs, walk
from numjet.cpu.loops.positions import MOST_EXPRESSIONS, Known, cuts

# So many ranges at once; of more the loop is cut in the middle first, if that parts its body too.
MOST_RANGES = 8
Around = TypeVar("Around", Kernel, For)


def split_ranges(kernel: Kernel) -> Kernel:
    """Cut the loops of stores where comparisons of their variables with constants change."""
    return _within(kernel)


def _block(stmts: Sequence[Stmt]) -> list[Stmt]:
    out: list[Stmt] = []
    for s in stmts:
        if type(s) is For and all([_plain(inner) for inner in walk([s])]):
            out += _loop(s)
        else:
            out.append(s)
    return out


def _plain(s: Stmt) -> bool:
    if type(s) is For:
        return s.kind == "serial" and not s.grain and type(s.extent) is int
    return type(s) is Store


def _loop(loop: For) -> list[Stmt]:
    """The loop, or the loops of its ranges."""
    n = loop.extent
    assert isinstance(n, int)
    inside = exprs(loop.body)
    found = sorted({cut for e in inside for cut in cuts(e, loop.var) if 0 < cut < n})
    ranges = list(itertools.pairwise([0, *found, n]))
    if not found:
        return [_within(loop)]
    innermost = not any([type(s) is For for s in loop.body])
    if innermost and 2 * sum([b - a == 1 for a, b in ranges]) > n:
        return [loop]  # most of its rounds would stand alone: lanes take them together
    if len(ranges) > MOST_RANGES or len(ranges) * len(inside) > MOST_EXPRESSIONS:
        middle = found[len(found) // 2]
        halves = [_range(loop, 0, middle), _range(loop, middle, n)]
        parted = sum([len(exprs(half)) for half in halves]) <= 1.5 * len(inside) + MOST_RANGES
        return [s for half in halves for s in _block(half)] if parted else [_within(loop)]
    return [s for a, b in ranges for s in _block(_range(loop, a, b))]


def _range(loop: For, a: int, b: int) -> Sequence[Stmt]:
    """A range of a loop, in which comparisons are decided: a loop, or its body for one round."""
    if b - a == 1:
        return Known({loop.var: Index.of(a)}).block(loop.body)
    var = LoopVar(loop.var.name, b - a)
    return [For(var, b - a, Known({loop.var: Index.of(var) + a}).block(loop.body))]


def _within(around: Around) -> Around:
    """The kernel or loop with the loops inside it cut."""
    body = _block(around.body)
    return around if body == list(around.body) else replace(around, body=tuple(body))
