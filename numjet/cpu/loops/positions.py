"""What loops know of their positions: where comparisons of a variable with constants change, and
statements for a part of a loop, in which their answers are known.

Concatenations, paddings and `where(arange(n) < k, ...)` ask where they stand. Used by the passes
and, for loops whose rounds are written one by one, by the emitter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.record import NamedTuple, replace
from numjet.cpu.loops.cost import cost
from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms
from numjet.cpu.loops.ir import (
    COMPARISONS,
    Cast,
    Const,
    Expr,
    For,
    FreshRewriter,
    IndexValue,
    Load,
    Op,
    Select,
    Stmt,
    Store,
    UpdateArg,
    address,
    exprs,
)

# Rounds of a loop that are written one by one, and expressions in all of them.
MOST_ROUNDS = 16
# Rounds of loops that read rows out of order.
MOST_READ = 8
MOST_EXPRESSIONS = 600


def cuts(asked: Question, var: LoopVar) -> tuple[int, ...]:
    """The values of `var` from which on a comparison says something else."""
    if len(asked.place.terms) != 1 or asked.place.terms[0][0] is not var:
        return ()
    ((_, factor),) = asked.place.terms
    return asked.changes(factor, asked.place.const)


def near_cuts(asked: Question, var: LoopVar, most: int) -> tuple[int, ...]:
    """The same of a comparison that depends on other loops as well, where at most `most` values
    of `var` do not decide it: where these begin and end."""
    factor = asked.place.coefficient(var)
    if not factor or len(asked.place.terms) < 2:
        return ()
    rest = asked.place - Index.of(var) * factor
    if rest.hi - rest.lo > most * abs(factor) or var in atoms(rest):
        return ()
    return asked.changes(factor, rest.lo) + asked.changes(factor, rest.hi)


class Question(NamedTuple):
    """A comparison of an index with a constant."""

    name: str
    place: Index
    bound: int

    def changes(self, factor: int, offset: int) -> tuple[int, ...]:
        """From which x on the answer about factor * x + offset is another."""
        # Where it would be the bound: at `at`, or between it and the next one.
        at, rest = divmod(self.bound - offset, factor)
        if self.name in ("eq", "ne"):
            return () if rest else (at, at + 1)
        # What changes where they are equal changes there or behind it; else at the next round.
        there = not rest and (self.name in ("lt", "ge")) == (factor > 0)
        return (at,) if there else (at + 1,)

    def answers(self) -> tuple[dict[Index, tuple[int, int]], dict[Index, tuple[int, int]]]:
        """What is known of the index, without its constant, where the comparison holds, and where
        not: bounds; nothing where that is more than a bound."""
        x, k = self.place, self.bound - self.place.const
        key = x - x.const
        last = {"lt": k - 1, "ge": k - 1, "le": k, "gt": k}.get(self.name)
        if last is None:
            return {}, {}
        below, above = {key: (key.lo, last)}, {key: (last + 1, key.hi)}
        return (below, above) if self.name in ("lt", "le") else (above, below)


def question(e: Expr) -> Question | None:
    """What an expression asks, if it compares an index with a constant; no index with parts that
    are read at run time, which may depend on any loop."""
    if type(e) is not Op or e.name not in COMPARISONS:
        return None
    x, y = e.args
    if type(x) is not IndexValue or type(y) is not Const:
        return None
    if any([type(atom) is Dyn for atom in atoms(x.index)]):
        return None
    return Question(e.name, x.index, int(y.value))


def questions(found: Sequence[Expr]) -> list[Question]:
    """What some expressions ask."""
    return [q for e in found if type(e) is Op and (q := question(e)) is not None]


def asks(loop: For) -> bool:
    """Whether the rounds of a short loop differ by where they stand."""
    n = loop.extent
    if type(n) is not int or n > MOST_ROUNDS:
        return False
    inside = exprs(loop.body)
    asked = {cut for q in questions(inside) for cut in cuts(q, loop.var) if 0 < cut < n}
    # A round has about one part of those between the cuts.
    return bool(asked) and n * len(inside) <= MOST_EXPRESSIONS * (1 + len(asked))


def apart(loop: For, lane: LoopVar | None) -> bool:
    """Whether the rounds of a loop inside that over the lanes `lane` are better written one by one:
    they ask where they stand or count with that, or read short rows backwards, in
    steps or in part, so that a block of them is not one of the loop's own columns."""
    if asks(loop):
        return True
    n = loop.extent
    if lane is None or type(n) is not int or n > MOST_ROUNDS:
        return False
    if n * cost(loop.body) > MOST_EXPRESSIONS:
        return False
    if counts(loop):
        return True
    if n > MOST_READ:
        return False
    stores = [s for s in loop.body if type(s) is Store]
    if any([address(s).coefficient(lane) != n for s in stores]):
        return False  # what it writes is put in its place row by row
    for e in exprs(loop.body):
        if type(e) is Load and e.part is None:
            at = address(e)
            along, row = at.coefficient(loop.var), at.coefficient(lane)
            if along not in (0, 1) or (along == 1 and n < row <= MOST_READ):
                return True
    return False


def counts(loop: For) -> bool:
    """Whether a loop computes with its variable: places in quotients or remainders, or values."""
    found = exprs(loop.body)
    # Where an extreme value is is no computing: its columns may be read in blocks.
    told = {id(s.at) for s in loop.body if type(s) is UpdateArg}
    if any([type(e) is IndexValue and loop.var in atoms(e.index) for e in found
            if id(e) not in told]):  # fmt: skip
        return True
    places = [i for e in found for i in e.indices_()]
    places += [i for s in loop.body if type(s) is Store for i in s.index]
    return any([loop.var in a.inside for i in places for a in atoms(i)])


def round_of(loop: For, k: int) -> list[Stmt]:
    """The body of round `k` of a loop, but for the places that it stores to."""
    known = Known({loop.var: Index.of(k)})

    def stored(s: Store) -> Store:
        buffer = known.buffer.get(s.buffer, s.buffer)  # scratch that begins in the round is its own
        return Store(buffer, s.index, known.expr(s.value), s.part)

    return [stored(s) if type(s) is Store else known.stmt(s) for s in loop.body]


class Known(FreshRewriter):
    """Rewrites statements for a range of a loop: comparisons of positions that it decides go.
    `bounds`: the least and greatest value of indices, without their constants, where that is known
    otherwise."""

    def __init__(
        self,
        var: dict[LoopVar, Index] | None = None,
        bounds: dict[Index, tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(var)
        self.bounds = bounds or {}

    def _needs(self, e: Expr) -> Sequence[Expr]:
        """Of a selection the condition first, and only what it selects where that is known."""
        if type(e) is not Select:
            return super()._needs(e)
        condition = self._memo.get(id(e.condition))
        if condition is None:
            return (e.condition,)
        answer = condition[1]
        if type(answer) is Const:
            return (e.then if answer.value else e.otherwise,)
        return (e.then, e.otherwise)

    def _expr(self, e: Expr) -> Expr:
        if type(e) is Select:
            condition = self._memo[id(e.condition)][1]
            if type(condition) is Const:
                return self._memo[id(e.then if condition.value else e.otherwise)][1]
        new = super()._expr(e)
        if type(new) is IndexValue and new.index.is_const:
            return Const(new.index.const, new.dtype)
        if type(new) is Cast and type(new.arg) is Const and new.arg.dtype.kind in "iu":
            # Small integers are floats of any precision.
            if new.dtype.kind in "fV" and not new.bits and abs(new.arg.value) <= 256:
                return Const(float(new.arg.value), new.dtype)
        if type(new) is Op:
            answer = self.decided(new)
            if answer is not None:
                return answer
        return new

    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        if type(new) is For and isinstance(new.extent, Index) and new.extent.is_const:
            n = new.extent.const
            if n == new.var.extent:
                return replace(new, extent=n)
            var = LoopVar(new.var.name, n)
            body = FreshRewriter(var={new.var: Index.of(var)}).block(new.body)
            return replace(new, var=var, extent=n, body=body)
        return new

    def decided(self, e: Op) -> Expr | None:
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
            known = self.bounds.get(x.index - x.index.const) if self.bounds else None
            if known is not None:
                least, most = known
                lo, hi = max(lo, least + x.index.const), min(hi, most + x.index.const)
        else:
            return None
        always: dict[str, Any] = {
            "lt": (hi < k, lo >= k), "le": (hi <= k, lo > k), "ge": (lo >= k, hi < k),
            "gt": (lo > k, hi <= k), "eq": (lo == hi == k, hi < k or lo > k),
            "ne": (hi < k or lo > k, lo == hi == k),
        }  # fmt: skip
        yes, no = always[e.name]
        return Const(bool(yes), e.dtype) if yes or no else None
