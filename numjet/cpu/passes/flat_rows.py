"""Short rows are walked as one: vectors hold parts of several.

Needs a verified kernel. Does: where results lie one behind the other along a loop and the short
loops inside of it, but operands do not - rows that are turned round, repeated, picked from longer
ones, small matrices that are transposed or joined with others -, cuts the results into blocks of
whole rows and whole vectors, and writes

    for block of the results:
      for lane, vector   (once for each vector of a block)

so that a vector's places in a row are known, and what it reads lies in a few vectors too, from
which the emitter picks it (`cpu/emit/known_lanes.py`). Rows that are lanes would be taken apart and
put together again. Keeps: results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numjet.base.record import replace
from numjet.cpu.link import link
from numjet.cpu.loops.cost import cost, default_lanes
from numjet.cpu.loops.index import Div, Dyn, Index, LoopVar, Mod, atoms, lanes_of
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Define,
    For,
    IndexValue,
    Kernel,
    Load,
    Local,
    Rewriter,
    Select,
    Stmt,
    Store,
    address,
    exprs,
    substitute,
)
from numjet.cpu.loops.positions import question
from numjet.cpu.passes.vectorize import collapse, drop_unit_loops

# Fewer elements than this are not worth the code.
_SMALL = 1 << 10
# Rows of so many vectors are walked as they are.
_LONG = 2
# Loops are two where each round of the outer one has so many of the inner one.
_SPLIT = 4
# Vectors of a block, and instructions that are written for them.
_VECTORS, _WRITTEN = 16, 400
# Vectors from which one is picked: each beyond the first is a shuffle (with AVX2 several).
_WINDOW = 3


def flat_rows(kernel: Kernel) -> Kernel:
    """Walk short rows of results as one; see the module's text."""
    if any([isinstance(s, For) and (s.kind != "serial" or s.grain) for s in kernel.body]):
        return kernel
    out: list[Stmt] = []
    for s in drop_unit_loops(kernel.body):
        s = _split(s)
        joined = collapse(s)
        if joined is s or not _is_flat(joined):
            # Joined loops may count with quotients in which lanes and blocks are mixed.
            out += _flat(s) or _flat(joined) or [joined]
        else:
            out.append(joined)
    return replace(kernel, body=tuple(out))


def _split(s: Stmt) -> Stmt:
    """Loops whose variable is divided by one number are two: a transposed matrix that is walked as
    one row is a transpose."""
    if type(s) is not For or s.kind != "serial" or s.grain or type(s.extent) is not int:
        return s
    if len(s.body) == 1 and type(s.body[0]) is For:
        return replace(s, body=(_split(s.body[0]),))
    found = {
        a.divisor
        for e in exprs(s.body)
        if type(e) is Load
        for i in e.index
        for a in atoms(i)
        if isinstance(a, Div | Mod) and a.arg == Index.of(s.var)
    }
    if len(found) != 1 or s.extent % max(found) or max(found) < _SPLIT:
        return s
    (by,) = found
    outer, inner = LoopVar(s.var.name, s.extent // by), LoopVar(s.var.name, by)
    body = substitute(s.body, s.var, Index.of(outer) * by + Index.of(inner))
    return For(outer, outer.extent, (For(inner, by, body),))


def _is_flat(s: Stmt) -> bool:
    """Whether a nest is a single loop."""
    return isinstance(s, For) and not isinstance(s.body[0], For)


def _flat(s: Stmt) -> list[Stmt] | None:
    """A nest with its short rows walked as one; None where it has none, or gains nothing."""
    nest: list[For] = []
    inner: Stmt = s
    while type(inner) is For and inner.kind == "serial" and type(inner.extent) is int:
        nest.append(inner)
        if len(inner.body) != 1:
            break
        inner = inner.body[0]
    if len(nest) < 2 or not all([type(x) is Store and x.part is None for x in nest[-1].body]):
        return None
    if math.prod([x.var.extent for x in nest]) < _SMALL:
        return None
    body = nest[-1].body
    lanes = default_lanes(For(nest[-1].var, 1, body), link.vector_bytes())
    found = _rows(nest, lanes)
    if found is None or not _may(body, nest):
        return None
    return _Walked(nest[: -len(found)], found, body, lanes).written()


def _rows(nest: Sequence[For], lanes: int) -> list[For] | None:
    """The innermost loops along which all results lie, as many as make a block: the outermost of
    them is walked, the others are its rows."""
    places = [address(s) for s in nest[-1].body if type(s) is Store]
    unit = 1
    found: list[For] = []
    for x in reversed(nest):
        if any([place.coefficient(x.var) != unit for place in places]):
            return None
        width, unit = unit, unit * x.var.extent
        found.insert(0, x)
        if width > 1 and width % lanes:
            if width >= _LONG * lanes:
                return None
            if unit >= math.lcm(width, lanes):
                return found
    return None


def _may(body: Sequence[Stmt], nest: Sequence[For]) -> bool:
    """Whether every operand is read at places that the loops alone say, and none here and another
    there: rounds that are written one by one compute each its own."""
    written = {s.buffer for s in body if type(s) is Store}
    inside = {x.var for x in nest}
    for e in exprs(body):
        if type(e) is Load and (e.buffer in written or e.buffer.dtype in COMPLEX_PARTS):
            return False
        if type(e) is Select and _joins(e):
            return False
        if type(e) is not Load and type(e) is not IndexValue:
            continue
        found = [a for i in e.indices_() for a in atoms(i)]
        if any([type(a) is Dyn for a in found]):
            return False
        if any([type(a) is LoopVar and a not in inside for a in found]):
            return False
    return True


def _joins(e: Select) -> bool:
    """Whether one operand or another is read by where a loop stands."""
    arms = [exprs([Define(Local("arm", x.dtype), x)]) for x in (e.then, e.otherwise)]
    return question(e.condition) is not None and all(
        any([type(x) is Load for x in arm]) for arm in arms
    )


class _Walked:
    """The walk of one nest: `around` are the loops that stay, `rows` those that become one."""

    def __init__(
        self, around: Sequence[For], rows: Sequence[For], body: Sequence[Stmt], lanes: int
    ) -> None:
        self.around, self.rows, self.body, self.lanes = around, rows, body, lanes
        self.width = math.prod([x.var.extent for x in rows[1:]])
        self.total = self.width * rows[0].var.extent
        self.block = math.lcm(self.width, lanes)

    def written(self) -> list[Stmt] | None:
        """The loops, or None where they gain nothing."""
        vectors = self.block // self.lanes
        if vectors > _VECTORS or vectors * cost(self.body) > _WRITTEN:
            return None
        block = LoopVar("block", self.total // self.block)
        start = Index.of(block) * self.block
        rounds = [self.vector(start + u * self.lanes) for u in range(vectors)]
        if not all([self.gains(x) for x in rounds]):
            return None
        made: list[Stmt] = [For(block, block.extent, tuple(rounds))]
        rest = self.total % self.block
        if rest and self.again():
            first = Index.of(self.total - self.block)
            made += [self.vector(first + u * self.lanes) for u in range(vectors)]
        elif rest:
            made.append(self.one_by_one(rest // self.width))
        for x in reversed(self.around):
            made = [replace(x, body=tuple(made))]
        return made

    def vector(self, start: Index) -> For:
        """The results from `start` on, in lanes."""
        lane = LoopVar("lane", self.lanes)
        at, unit, by = start + Index.of(lane), 1, {}
        for x in reversed(self.rows):
            by[x.var] = at // unit % x.var.extent if x is not self.rows[0] else at // unit
            unit *= x.var.extent
        return For(lane, self.lanes, Rewriter(var=by).block(self.body), "vector", lanes=self.lanes)

    def gains(self, made: For) -> bool:
        """Whether what a vector reads lies in a few vectors."""
        for e in exprs(made.body):
            if type(e) is Load:
                places = lanes_of(address(e), made.var, 0, self.lanes)
                if places is None or max(places) - min(places) >= _WINDOW * self.lanes:
                    return False
        return True

    def again(self) -> bool:
        """Whether results may be computed twice: nothing is read where it is written, perhaps in
        the same memory."""
        places = {address(s) for s in self.body if type(s) is Store}
        return not any([type(e) is Load and address(e) in places for e in exprs(self.body)])

    def one_by_one(self, count: int) -> For:
        """The last rows, in loops as they were."""
        outer, *inner = self.rows
        var = LoopVar(outer.var.name, count)
        body: Sequence[Stmt] = self.body
        for x in reversed(inner):
            body = (replace(x, body=tuple(body)),)
        last = outer.var.extent - count
        return For(var, count, Rewriter(var={outer.var: last + Index.of(var)}).block(body))
