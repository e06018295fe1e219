"""Small real matrices factored side by side, a matrix a lane: LU, systems, Cholesky, triangular.

A group of matrices is transposed so that element e of all of them is one vector. Each lane
exchanges its own rows: those that some lane exchanges are blended. One symbol an operation and
element type, `nj_side_<operation>_<type>`, serves all sizes: `entry(context, begin, end)` is what
the thread pool runs, over groups. A group's last lanes repeat the last matrix, and write the same
results. For: `factors` and `linalg`. What would break it: more elements than `SCRATCH` holds
(`fits`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu import host
from numjet.cpu.builder.builder import TYPES, Builder, Module, Value, vector
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import (
    Fields,
    fused,
    lanes_of,
    prefix_mask,
    size_of,
    table,
    transpose_block,
)
from numjet.cpu.link import link
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

PREFIX = "nj_side_"
# Vectors of a group on the stack (threads have 512 KB at least).
SCRATCH = 320 << 10
# LU factors of 100 float32 matrices on two cores, in us, and LAPACK's: 2.6 and 31 with 6 rows, 13
# and 113 with 16, 72 and 290 with 32, 231 and 809 with 48, 597 and 1226 with 64.
MOST_ROWS = 64
# A group takes as long with one matrix as with one in each lane: LAPACK is faster with less than a
# matrix for so many rows (14 us against 4 times 3.2 with 32 rows, 144 against 18 with 64).
_ROWS_OF_ONE = 8
# Vector operations of all groups below which the pool costs more than it brings.
_PARALLEL = 20_000
_POINTERS = 4
FIELDS = ("count", "rows", "columns", "sides", "ars", "acs", "brs", "bcs", "backward", "unit",
          "in1", "in2", "out1", "out2", "out3")  # fmt: skip
_TYPES = {"float32": "float", "float64": "double"}


def fits(dtype: Any, count: int, rows: int, columns: int, sides: int = 0) -> bool:
    """Whether matrices with `sides` right-hand columns are faster side by side than by LAPACK."""
    element = _TYPES.get(dtype.name)
    if element is None or max(rows, columns) > MOST_ROWS or link.vector_bytes() < 16:
        return False
    vectors = rows * (columns + sides) + 2 * rows + 4 * lanes_of(element)
    enough = _ROWS_OF_ONE * count >= max(rows, columns)
    return enough and vectors * link.vector_bytes() <= SCRATCH


def step(build: Values, node: Node, operation: str, inplace: bool, **sizes: int) -> list[Step]:
    """The step that runs `operation` on all matrices of a node's operands; sizes: as `FIELDS`."""
    element = _TYPES[node.ins[0].dtype.name]
    reads = [build.materialize(v) for v in node.ins]
    outs = list(node.outs)
    count = math.prod(node.ins[0].shape[:-2])
    rows, columns, sides = (sizes.get(name, 0) for name in ("rows", "columns", "sides"))
    nbytes = {f"in{k}": v.nbytes // count for k, v in enumerate(reads, 1)}
    nbytes |= {f"out{k}": v.nbytes // count for k, v in enumerate(outs, 1)}
    known = {"count": count, **sizes, **nbytes}
    values = [known.get(name, 0) for name in FIELDS]
    groups = -(-count // lanes_of(element))
    work = rows * columns * (min(rows, columns) // 3 + sides + 4)
    grain = groups
    if groups > 1 and groups * work >= _PARALLEL:
        grain = max(1, groups // (4 * host.cpu_count()), _PARALLEL // 4 // work)
    symbol = f"{PREFIX}{operation}_{element}"
    libraries.start(symbol)

    def emit(b: Builder, ins: list[Value], results: list[Value]) -> None:
        context = b.alloca("ptr", 1 + 2 * _POINTERS)
        pointers = [*ins, *[ins[0]] * (_POINTERS - len(ins)), *results]
        for k, pointer in enumerate([table(b.module, values), *pointers]):
            b.store(pointer, b.gep(context, 8 * k), 8)
        b.module.declare(symbol, "void", ("ptr", "i64", "i64"))
        many = b.const(groups, "i64")
        if groups > grain:
            b.call("nj_parallel_for", "void", Value(f"@{symbol}", "ptr"), context, many,
                   b.const(grain, "i64"))  # fmt: skip
        else:
            b.call(symbol, "void", context, b.const(0, "i64"), many)

    pairs = [(outs[0], reads[-1])] if inplace else []
    return [SpecialStep(node.primitive.name, reads, outs, emit, inplace=pairs,
                        flops=2 * count * work)]  # fmt: skip


class Group:
    """Writes a library: what is done with one group of matrices, in a loop over groups.

    fields: the names of what the table holds, `count` among them; the context is the table, the
    operands and the results. lanes: of its vectors (those of a full register).
    """

    def __init__(
        self, element: str, fields: Sequence[str] = FIELDS, lanes: int | None = None
    ) -> None:
        self.fields = fields
        self.element, self.lanes, self.size = element, lanes or lanes_of(element), size_of(element)
        self.kind = vector(element, self.lanes)
        self.index = vector("i32", self.lanes)
        self.row = self.lanes * self.size  # bytes of a vector
        self.module = Module(link.features())

    def write(self, body: Callable[[Group], None]) -> Module:
        """The module: `body` is called with the state of one group."""
        b = Builder(
            self.module, libraries.ENTRY, [("context", "ptr"), ("begin", "i64"), ("end", "i64")]
        )
        context, begin, end = b.args
        self.b = b
        words = [b.load(b.gep(context, 8 * k), "ptr", 8) for k in range(1 + 2 * _POINTERS)]
        self.ins, self.outs = words[1 : 1 + _POINTERS], words[1 + _POINTERS :]
        self.f = Fields(b, words[0], self.fields)
        for name in self.fields:
            getattr(self.f, name)
        self.scratch = b.alloca(f"[{SCRATCH} x i8]")
        with b.loop(begin, end) as groups:
            self.number = groups.index
            self.first = b.mul(groups.index, self.lanes)
            body(self)
        b.ret()
        return self.module

    # ---- memory

    def at(self, base: Value, place: Value | int) -> Value:
        """The vector number `place` after `base`."""
        b = self.b
        return b.gep(base, b.mul(place, self.row) if isinstance(place, Value) else place * self.row)

    def load(self, place: Value) -> Value:
        """A vector of elements."""
        return self.b.load(place, self.kind, self.row)

    def store(self, value: Value, place: Value) -> None:
        """Write a vector of elements."""
        self.b.store(value, place, self.row)

    def _lines(self, b: Builder, base: Value, first: Value, count: Value, nbytes: Value) -> list:
        """Where each lane's matrix begins."""
        last = b.sub(count, 1)
        return [b.gep(base, b.mul(b.min(b.add(first, k), last), nbytes)) for k in range(self.lanes)]

    def bring(self, base: Value, elements: Value, nbytes: Value, target: Value,
              early: bool = False) -> None:  # fmt: skip
        """Turn the group's matrices: up to a vector's lanes of vectors too many are written. early:
        fetch the next group's into the caches."""
        name, element, lanes, size = "bring", self.element, self.lanes, self.size
        if not any(function.name == name for function in self.module.functions):
            b = self._mover(name)
            base_, start, count, elements_, nbytes_, target_ = b.args
            lines = self._lines(b, base_, start, count, nbytes_)
            kind, ahead = vector(element, lanes), b.mul(nbytes_, lanes)

            def block(first: Value, mask: Value | None) -> None:
                offset, zero = b.mul(first, size), b.const(0, kind)
                for x in lines if early else ():  # the next group's
                    b.prefetch(b.gep(x, b.add(offset, ahead)))
                rows = [
                    b.load(b.gep(x, offset), kind, size) if mask is None
                    else b.masked_load(b.gep(x, offset), mask, zero, size) for x in lines
                ]  # fmt: skip
                place = b.gep(target_, b.mul(first, self.row))
                for x in transpose_block(b, rows):
                    b.store(x, place, self.row)
                    place = b.gep(place, self.row)

            self._blocks(b, elements_, block)
            b.ret()
        self.b.call(name, "void", base, self.first, self.f.count, elements, nbytes, target)

    def give(self, base: Value, elements: Value, nbytes: Value, source: Value,
             element: str | None = None, early: bool = False) -> None:  # fmt: skip
        """Write the vectors at `source` back to the group's matrices. early: as in `bring`."""
        element = element or self.element
        name, lanes, size = f"give_{element}", self.lanes, size_of(element)
        if not any(function.name == name for function in self.module.functions):
            b = self._mover(name)
            base_, start, count, elements_, nbytes_, source_ = b.args
            lines = self._lines(b, base_, start, count, nbytes_)
            row, ahead = lanes * size, b.mul(nbytes_, lanes)

            def block(first: Value, mask: Value | None) -> None:
                offset = b.mul(first, size)
                for x in lines if early else ():
                    b.prefetch(b.gep(x, b.add(offset, ahead)), write=True)
                place, columns = b.gep(source_, b.mul(first, row)), []
                for _ in range(lanes):
                    columns.append(b.load(place, vector(element, lanes), row))
                    place = b.gep(place, row)
                for line, x in zip(lines, transpose_block(b, columns), strict=True):
                    if mask is None:
                        b.store(x, b.gep(line, offset), size)
                    else:
                        b.masked_store(x, b.gep(line, offset), mask, size)

            self._blocks(b, elements_, block)
            b.ret()
        self.b.call(name, "void", base, self.first, self.f.count, elements, nbytes, source)

    def _blocks(
        self, b: Builder, elements: Value, block: Callable[[Value, Value | None], None]
    ) -> None:
        """A vector's lanes of elements after another, by their first and, where there are fewer,
        a mask. The last block begins early: without AVX-512 a masked store takes as long as many
        plain ones."""
        lanes = self.lanes
        if self.module.has("avx512f"):
            with b.loop(0, elements, lanes) as each:
                block(each.index, prefix_mask(b, b.sub(elements, each.index), lanes))
            return
        with b.if_(b.icmp("sge", elements, lanes)):
            last = b.sub(elements, lanes)
            with b.loop(0, elements, lanes) as each:
                block(b.min(each.index, last), None)
        with b.if_(b.icmp("slt", elements, lanes)):
            block(b.const(0, "i64"), prefix_mask(b, elements, lanes))

    def _mover(self, name: str) -> Builder:
        names = ("base", "first", "count", "elements", "nbytes", "vectors")
        kinds = ("ptr", "i64", "i64", "i64", "i64", "ptr")
        return Builder(self.module, name, list(zip(names, kinds, strict=True)), linkage="internal")

    # ---- arithmetic

    def inverse(self, x: Value) -> tuple[Value, Value]:
        """(s, 1/(s·x)): y/x is s·y times the second, which overflows for no x but 0."""
        b = self.b
        tiny = {"float": 2.0**-126, "double": 2.0**-1022}[self.element]
        small = b.fcmp("olt", b.abs(x), tiny)
        scale = b.select(small, b.const(2.0**64, self.kind), b.const(1.0, self.kind))
        return scale, b.div(b.const(1.0, self.kind), b.mul(x, scale))

    def subtract(
        self, first: Value | int, last: Value, factor: Callable[[Value], Value],
        parts: Sequence[tuple[Value, Value, Value, Value | int, Value, Value | int]],
    ) -> None:  # fmt: skip
        """For rows r in [first, last): row r -= factor(r) · the row at `source`, in each part.

        parts: (source, rows, bytes from row to row, first and last column, bytes from column to
        column).
        """
        b = self.b
        first = b.value(first, "i64")
        pairs = b.and_(b.sub(last, first), -2)

        def together(row: Value, height: int) -> None:
            minus = [b.neg(factor(b.add(row, k))) for k in range(height)]
            for source, rows, by, start, end, across in parts:
                lines = [b.gep(rows, b.mul(b.add(row, k), by)) for k in range(height)]
                with b.loop(start, end) as column:
                    offset = b.mul(column.index, across)
                    x = self.load(b.gep(source, offset))
                    for line, y in zip(lines, minus, strict=True):
                        place = b.gep(line, offset)
                        self.store(fused(b, x, y, self.load(place)), place)

        middle = b.add(first, pairs)
        with b.loop(first, middle, 2) as row:
            together(row.index, 2)
        with b.if_(b.icmp("slt", middle, last)):
            together(middle, 1)

    def nan_where(self, bad: Value, base: Value, elements: Value) -> None:
        """NaN in the lanes `bad` of `elements` vectors."""
        b = self.b
        with b.if_(b.any(bad)), b.loop(0, elements) as each:
            place = self.at(base, each.index)
            self.store(b.select(bad, b.const(math.nan, self.kind), self.load(place)), place)

    def exchange(self, mask: Value, one: Value, two: Value, vectors: Value, kind: str) -> None:
        """Exchange two rows of vectors in the lanes of `mask`."""
        b = self.b
        width = self.lanes * TYPES[kind].bits // 8
        with b.loop(0, vectors) as each:
            offset = b.mul(each.index, width)
            here, there = b.gep(one, offset), b.gep(two, offset)
            x, y = b.load(here, kind, width), b.load(there, kind, width)
            b.store(b.select(mask, y, x), here, width)
            b.store(b.select(mask, x, y), there, width)

    def eliminate(
        self, a: Value, rows: Value, columns: Value, sides: Value | None, others: Value | None,
        record: tuple[Value, Value] | None = None,
    ) -> Value:  # fmt: skip
        """LU factors with row exchanges in place of `a`; which lanes met a zero pivot.

        others: `sides` right-hand columns to which the same is done. record: where the pivots are
        written, and the numbers 0, 1, … that are exchanged as the rows are.
        """
        b = self.b
        by = b.mul(columns, self.row)
        along = b.const(self.row, "i64")
        none = b.const(False, vector("i1", self.lanes))
        with b.loop(0, b.min(rows, columns), 1, [none]) as step:
            c = step.index
            line = b.gep(a, b.mul(c, by))
            place = self.at(line, c)
            here = b.splat(b.trunc(c, "i32"), self.lanes)
            below = b.add(c, 1)
            with b.loop(below, rows, 1, [b.abs(self.load(place)), here]) as search:
                best, where = search.values
                size = b.abs(self.load(self.at(b.gep(a, b.mul(search.index, by)), c)))
                more = b.fcmp("ogt", size, best)
                number = b.splat(b.trunc(search.index, "i32"), self.lanes)
                search.yield_(b.select(more, size, best), b.select(more, number, where))
            where = search.results[1]
            if record is not None:
                b.store(where, b.gep(record[0], b.mul(c, 4 * self.lanes)), 4 * self.lanes)
            with (
                b.if_(b.any(b.icmp("ne", where, here))),
                b.loop(below, rows) as other,
            ):
                r = other.index
                mask = b.icmp("eq", where, b.splat(b.trunc(r, "i32"), self.lanes))
                with b.if_(b.any(mask)):
                    self.exchange(mask, line, b.gep(a, b.mul(r, by)), columns, self.kind)
                    if others is not None and sides is not None:
                        one, two = (b.gep(others, b.mul(b.mul(x, sides), along)) for x in (c, r))
                        self.exchange(mask, one, two, sides, self.kind)
                    if record is not None:
                        one, two = (b.gep(record[1], b.mul(x, 4 * self.lanes)) for x in (c, r))
                        self.exchange(mask, one, two, b.const(1, "i64"), self.index)
            pivot = self.load(place)
            zero = b.fcmp("oeq", pivot, 0.0)
            scale, inverse = self.inverse(b.select(zero, b.const(1.0, self.kind), pivot))

            def factor(r: Value) -> Value:
                to = self.at(b.gep(a, b.mul(r, by)), c)  # noqa: B023
                x = b.mul(b.mul(self.load(to), scale), inverse)  # noqa: B023
                self.store(x, to)
                return x

            parts: list = [(line, a, by, below, columns, along)]
            if others is not None and sides is not None:
                width = b.mul(sides, along)
                source = b.gep(others, b.mul(c, width))
                parts.append((source, others, width, 0, sides, along))
            self.subtract(below, rows, factor, parts)
            step.yield_(b.or_(step.values[0], zero))
        return step.results[0]

    def substitute(
        self, a: Value, n: Value, by: Value, across: Value, x: Value, sides: Value, xrs: Value,
        xcs: Value, backward: Value, unit: Value,
    ) -> None:  # fmt: skip
        """Solve a triangular system in place of x; rows and columns by their strides in bytes."""
        b = self.b
        with b.loop(0, n) as step:
            c = b.select(backward, b.sub(b.sub(n, 1), step.index), step.index)
            line = b.gep(x, b.mul(c, xrs))
            with b.if_(b.not_(unit)):
                diagonal = b.gep(a, b.add(b.mul(c, by), b.mul(c, across)))
                scale, inverse = self.inverse(self.load(diagonal))
                with b.loop(0, sides) as column:
                    place = b.gep(line, b.mul(column.index, xcs))
                    self.store(b.mul(b.mul(self.load(place), scale), inverse), place)
            first = b.select(backward, b.const(0, "i64"), b.add(c, 1))
            last = b.select(backward, c, n)

            def factor(r: Value) -> Value:
                return self.load(b.gep(a, b.add(b.mul(r, by), b.mul(c, across))))  # noqa: B023

            self.subtract(first, last, factor, [(line, x, xrs, 0, sides, xcs)])


# ------------------------------------------------------------------ operations
def _lu(g: Group) -> None:
    b, f = g.b, g.f
    elements = b.mul(f.rows, f.columns)
    order = g.scratch
    pivots = g.at(order, f.rows)
    a = g.at(pivots, f.rows)
    g.bring(g.ins[0], elements, f.in1, a)
    with b.loop(0, f.rows) as each:
        place = b.gep(order, b.mul(each.index, 4 * g.lanes))
        b.store(b.splat(b.trunc(each.index, "i32"), g.lanes), place, 4 * g.lanes)
    g.eliminate(a, f.rows, f.columns, None, None, (pivots, order))
    g.give(g.outs[0], elements, f.out1, a)
    g.give(g.outs[1], b.min(f.rows, f.columns), f.out2, pivots, "i32")
    g.give(g.outs[2], f.rows, f.out3, order, "i32")


def _solve(g: Group) -> None:
    b, f = g.b, g.f
    elements, several = b.mul(f.rows, f.columns), b.mul(f.rows, f.sides)
    a = g.scratch
    x = g.at(a, elements)
    # The matrices first: up to a vector's lanes too many vectors are written behind them.
    g.bring(g.ins[0], elements, f.in1, a)
    g.bring(g.ins[1], several, f.in2, x)
    g.eliminate(a, f.rows, f.columns, f.sides, x)
    along = b.const(g.row, "i64")
    by, width = b.mul(f.columns, along), b.mul(f.sides, along)
    true, false = b.const(True, "i1"), b.const(False, "i1")
    g.substitute(a, f.rows, by, along, x, f.sides, width, along, true, false)
    g.give(g.outs[0], several, f.out1, x)


def _triangular(g: Group) -> None:
    b, f = g.b, g.f
    elements, several = b.mul(f.rows, f.columns), b.mul(f.rows, f.sides)
    a = g.scratch
    x = g.at(a, elements)
    g.bring(g.ins[0], elements, f.in1, a)
    g.bring(g.ins[1], several, f.in2, x)
    ars, acs, brs, bcs = (b.mul(stride, g.row) for stride in (f.ars, f.acs, f.brs, f.bcs))
    backward, unit = b.icmp("ne", f.backward, 0), b.icmp("ne", f.unit, 0)
    g.substitute(a, f.rows, ars, acs, x, f.sides, brs, bcs, backward, unit)
    g.give(g.outs[0], several, f.out1, x)


def _cholesky(g: Group) -> None:
    b, f = g.b, g.f
    n, a = f.rows, g.scratch
    elements = b.mul(n, n)
    g.bring(g.ins[0], elements, f.in1, a)
    by = b.mul(n, g.row)
    none = b.const(False, vector("i1", g.lanes))
    with b.loop(0, n, 1, [none]) as step:
        c = step.index
        line = b.gep(a, b.mul(c, by))
        place = g.at(line, c)
        square = g.load(place)
        bad = b.not_(b.fcmp("ogt", square, 0.0))
        root = b.sqrt(square)
        g.store(root, place)
        inverse = b.div(b.const(1.0, g.kind), root)
        below = b.add(c, 1)
        with b.loop(below, n) as row:
            to = g.at(b.gep(a, b.mul(row.index, by)), c)
            g.store(b.mul(g.load(to), inverse), to)
            # Zeros above the diagonal.
            g.store(b.const(0.0, g.kind), g.at(line, row.index))
        with b.loop(below, n) as row:
            there = b.gep(a, b.mul(row.index, by))
            minus = b.neg(g.load(g.at(there, c)))
            with b.loop(below, b.add(row.index, 1)) as column:
                x = g.load(g.at(b.gep(a, b.mul(column.index, by)), c))
                to = g.at(there, column.index)
                g.store(fused(b, x, minus, g.load(to)), to)
        step.yield_(b.or_(step.values[0], bad))
    with b.if_(b.any(step.results[0])), b.loop(0, n) as row:
        line = b.gep(a, b.mul(row.index, by))
        g.nan_where(step.results[0], line, b.add(row.index, 1))
    g.give(g.outs[0], elements, f.out1, a)


_BODIES: dict[str, Callable[[Group], None]] = {
    "lu": _lu,
    "solve": _solve,
    "triangular": _triangular,
    "cholesky": _cholesky,
}


def _module(name: str) -> Module:
    operation, element = name.split("_")
    return Group(element).write(_BODIES[operation])


libraries.provide(PREFIX, _module, direct=lambda rest: True)
