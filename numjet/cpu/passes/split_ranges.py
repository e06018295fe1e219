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

# So many ranges of one loop.
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
    if not found or len(ranges) > MOST_RANGES or len(ranges) * len(inside) > MOST_EXPRESSIONS:
        return [_within(loop)]
    innermost = not any([type(s) is For for s in loop.body])
    if innermost and 2 * sum([b - a == 1 for a, b in ranges]) > n:
        return [loop]  # most of its rounds would stand alone: lanes take them together
    out: list[Stmt] = []
    for a, b in ranges:
        if b - a == 1:
            out += _block(Known({loop.var: Index.of(a)}).block(loop.body))
            continue
        var = LoopVar(loop.var.name, b - a)
        body = Known({loop.var: Index.of(var) + a}).block(loop.body)
        out.append(_within(For(var, b - a, body)))
    return out


def _within(around: Around) -> Around:
    """The kernel or loop with the loops inside it cut."""
    body = _block(around.body)
    return around if body == list(around.body) else replace(around, body=tuple(body))
