"""Loops whose elements come from elsewhere past some position are cut there.

Needs a verified kernel without annotations. Does: where a loop of stores alone asks whether its
variable is below a constant (concatenations, paddings, `where(arange(n) < k, ...)`), makes a loop
of each range, in which the answers are known and positions need no clamping. In one loop every
element would be read at a computed position, from each operand. Keeps: order of stores, results.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

from numjet.base.record import replace
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import (
    COMPARISONS,
    Const,
    Expr,
    For,
    FreshRewriter,
    IndexValue,
    Kernel,
    Op,
    Select,
    Stmt,
    Store,
    exprs,
    walk,
)

# So many ranges of one loop, and so many expressions in all of them.
MOST_RANGES = 8
MOST_EXPRESSIONS = 600
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
    cuts = sorted({cut for e in inside for cut in _cuts(e, loop.var) if 0 < cut < n})
    ranges = list(itertools.pairwise([0, *cuts, n]))
    if not cuts or len(ranges) > MOST_RANGES or len(ranges) * len(inside) > MOST_EXPRESSIONS:
        return [_within(loop)]
    innermost = not any([type(s) is For for s in loop.body])
    if innermost and 2 * sum([b - a == 1 for a, b in ranges]) > n:
        return [loop]  # most of its rounds would stand alone: lanes take them together
    out: list[Stmt] = []
    for a, b in ranges:
        if b - a == 1:
            out += _block(_Known({loop.var: Index.of(a)}).block(loop.body))
            continue
        var = LoopVar(loop.var.name, b - a)
        body = _Known({loop.var: Index.of(var) + a}).block(loop.body)
        out.append(_within(For(var, b - a, body)))
    return out


def _within(around: Around) -> Around:
    """The kernel or loop with the loops inside it cut."""
    body = _block(around.body)
    return around if body == list(around.body) else replace(around, body=tuple(body))


def _cuts(e: Expr, var: LoopVar) -> tuple[int, ...]:
    """The values of `var` from which on a comparison says something else."""
    if type(e) is not Op or e.name not in COMPARISONS:
        return ()
    x, y = e.args
    if type(x) is not IndexValue or type(y) is not Const or len(x.index.terms) != 1:
        return ()
    ((atom, factor),) = x.index.terms
    if atom is not var or factor not in (1, -1):
        return ()
    # Where the index is `at`; what changes there changes before it or behind it.
    at = (int(y.value) - x.index.const) * factor
    if e.name in ("eq", "ne"):
        return at, at + 1
    return (at,) if (e.name in ("lt", "ge")) == (factor == 1) else (at + 1,)


class _Known(FreshRewriter):
    """Rewrites statements for a range of a loop: comparisons of positions that it decides go."""

    def _expr(self, e: Expr) -> Expr:
        new = super()._expr(e)
        if type(new) is IndexValue and new.index.is_const:
            return Const(new.index.const, new.dtype)
        if type(new) is Select and type(new.condition) is Const:
            return new.then if new.condition.value else new.otherwise
        if type(new) is Op:
            answer = _decided(new)
            if answer is not None:
                return answer
        return new


def _decided(e: Op) -> Expr | None:
    """What a comparison or a conjunction comes to, as far as that is known."""
    if e.name == "and" and e.dtype.kind == "b":
        for one, other in (e.args, e.args[::-1]):
            if type(one) is Const:
                return other if one.value else one
    if e.name not in COMPARISONS or type(e.args[1]) is not Const:
        return None
    x, k = e.args[0], e.args[1].value
    if type(x) is Const and x.dtype.kind in "iu":
        lo = hi = x.value
    elif type(x) is IndexValue:
        lo, hi = x.index.lo, x.index.hi
    else:
        return None
    always: dict[str, Any] = {
        "lt": (hi < k, lo >= k), "le": (hi <= k, lo > k), "ge": (lo >= k, hi < k),
        "gt": (lo > k, hi <= k), "eq": (lo == hi == k, hi < k or lo > k),
        "ne": (hi < k or lo > k, lo == hi == k),
    }  # fmt: skip
    yes, no = always[e.name]
    return Const(bool(yes), e.dtype) if yes or no else None
