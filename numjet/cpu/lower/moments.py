"""Variances of columns in one sweep: sums of squared distances from a mean that the sweep computes.

`find(sweeps)` recognizes Σ(x − Σx/n)² in a group; `Moments` accumulates it over some of the rows
without knowing the mean. With p a pivot near the data, d = x − p, and m rows:

    mean = p + Σd/m        M = Σ(x − mean)² = Σd² − (Σd)²/m

The pivot is the mean of the first q of these rows. They alone contribute q·(mean − p)² to M, so
(Σd)²/m <= M·m/q: cancellation multiplies the rounding error by at most 1 + m/q, and hardly at all
unless those rows are outliers. Parts with m, m', … rows are joined by
M = Σ M' + Σ m'·(mean' − mean)² (Chan, Golub, LeVeque 1983).
"""

from __future__ import annotations

from typing import Any

from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Val
from numjet.cpu.lower.groups import Member
from numjet.cpu.lower.sweeps import Sweeps, is_reduction

# Rows whose mean is the pivot.
PIVOT_ROWS = 64


def find(sweeps: Sweeps) -> list[tuple[Any, Val]]:
    """(reduction, its x) for the second sweep, if all its reductions are such sums and nothing
    else needs that sweep; else an empty list."""
    if sweeps.count != 2:
        return []
    found: list[tuple[Any, Val]] = []
    own: set[Val] = set()
    for member in sweeps.rows:
        if is_reduction(member) and member.phase == 1:
            source = _source(sweeps, member, own)
            if source is None:
                return []
            found.append((member, source))
    full = [m for m in sweeps.full if sweeps.home[m] == 1]
    stored = sweeps.k.group.stored
    if any(v not in own or v in stored for m in full for v in m.node.outs):
        return []
    return found


def _source(sweeps: Sweeps, member: Member, own: set[Val]) -> Val | None:
    """The x of a sum of (x − mean of x)²; what is computed on the way is added to `own`."""
    k = sweeps.k
    dtype = member.node.outs[0].dtype
    if member.node.rule.op != "add" or dtype.kind != "f" or dtype.itemsize < 4:
        return None
    square = _maker(k, member.node.ins[0])
    if square is None:
        return None
    name = square.primitive.name
    twice = name == "mul" and square.ins[0] is square.ins[1]
    if not (twice or name == "square" or (name == "integer_pow" and square.params["y"] == 2)):
        return None
    distance = _maker(k, square.ins[0])
    if distance is None or distance.primitive.name != "sub":
        return None
    own.update((square.outs[0], distance.outs[0]))
    for x, centre in (distance.ins, distance.ins[::-1]):
        if _is_mean(sweeps, centre, x) and x.dtype == dtype:
            return x
    return None


def needed(sweeps: Sweeps, moments: list[tuple[Any, Val]]) -> list[Any]:
    """The members of rows that are still needed when these sums need no mean any more."""
    wanted = {m for m, _ in moments}
    stored = sweeps.k.group.stored
    for member in reversed(sweeps.rows):
        if any(v in stored for v in member.node.outs):
            wanted.add(member)
        if member in wanted and not is_reduction(member):
            wanted.update([m for m in sweeps.operands(member)])
    for member in sweeps.full:
        if sweeps.home[member] == 0:
            wanted.update([m for m in sweeps.operands(member)])
    return [m for m in sweeps.rows if m in wanted]


def _is_mean(sweeps: Sweeps, val: Val, x: Val) -> bool:
    """Whether `val` is Σx/n, over the axes that the group reduces, repeated along them."""
    k = sweeps.k
    quotient = _maker(k, _behind_movers(k, val))
    if quotient is None or quotient.primitive.name != "div":
        return False
    total, count = quotient.ins
    if count.literal is None:
        return False
    rows = 1
    for axis in k.group.reduced or ():
        rows *= k.group.shape[axis]
    if float(count.literal) != rows:
        return False
    reduction = k.fusion.member.get(_behind_movers(k, total))
    return (
        reduction is not None
        and any(m is reduction for m in sweeps.rows)
        and is_reduction(reduction)
        and reduction.node.rule.op == "add"
        and reduction.node.ins[0] is x
    )


def _maker(k: Any, val: Val) -> Any:
    """The node of this group that makes `val`, or None."""
    if k.fusion.level_of(val) != k.group.number:
        return None
    member = k.fusion.member.get(val)
    return None if member is None else member.node


def _behind_movers(k: Any, val: Val) -> Val:
    """What a value repeats, through nodes that only add axes of extent 1 or repeat."""
    while True:
        node = k.fusion.inline.get(val)
        if node is None or node.primitive.name not in ("broadcast_in_dim", "reshape"):
            return val
        if type(node.rule) is not low.Pointwise or len(node.ins) != 1:
            return val
        val = node.ins[0]


class Moments:
    """Σd and Σd² of one member over a block of columns, and the pivot they are taken from."""

    def __init__(self, columns: Any, member: Member, source: Val) -> None:
        self.columns, self.source = columns, source
        self.out = member.node.outs[0]
        self.dtype, self.arg = self.out.dtype, False
        self.pivot, self.first, self.second = (columns.array(self.dtype) for _ in range(3))

    def begin(self, at: Any, body: list[Any]) -> None:
        """Nothing accumulated, no pivot yet."""
        e = self.columns.k.e
        for buffer in (self.pivot, self.first, self.second):
            body.extend(e.store(buffer, (at,), e.const(0, self.dtype)))

    def point(self, at: Any, values: list[Any], share: float, body: list[Any]) -> None:
        """Take elements of one column into the pivot, a mean; scaled first: sums may overflow."""
        e = self.columns.k.e
        part = e.mul(e.const(share, self.dtype), values[0])
        for x in values[1:]:
            part = e.add(part, e.mul(e.const(share, self.dtype), x))
        body.extend(e.store(self.pivot, (at,), e.add(e.load(self.pivot, (at,)), part)))

    def take(self, at: Any, values: list[Any], _: Any, body: list[Any]) -> None:
        """Accumulate elements of one column."""
        k = self.columns.k
        e, pivot = k.e, k.e.load(self.pivot, (at,))
        away = [k.name(e.sub(x, pivot), body) for x in values]
        total = pairwise(e.add, away)
        squares = pairwise(e.add, [e.mul(d, d) for d in away])
        body.extend(e.store(self.first, (at,), e.add(e.load(self.first, (at,)), total)))
        body.extend(e.store(self.second, (at,), e.add(e.load(self.second, (at,)), squares)))

    def part(self, at: Any, rows: Any) -> tuple[Any, Any, Any]:
        """(p, mean − p, M) of the rows taken in, whose number is the value `rows`."""
        e = self.columns.k.e
        first, second = e.load(self.first, (at,)), e.load(self.second, (at,))
        away = e.div(first, rows)
        lost = e.mul(first, away)
        # Squares that overflow give an infinite M, as they do when the mean is known.
        infinite = e.const(float("inf"), self.dtype)
        over = e.and_(e.eq(lost, infinite), e.lt(e.abs(first), infinite))
        lost = e.select(over, e.const(0, self.dtype), lost)
        return e.load(self.pivot, (at,)), away, e.sub(second, lost)


def pairwise(combine: Any, values: list[Any]) -> Any:
    """`values` combined as a tree."""
    while len(values) > 1:
        pairs = [combine(x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]
