"""A matrix times a vector, or times a few of them, both contiguous along the depth: symbol
`nj_matvec_<vectors>_<type>`.

    void nj_matvec_3_float(ptr table, ptr x, ptr a, ptr y)

Each vector of A's rows that is loaded meets all of x, and several rows at a time share each vector
of x, so that A streams in at the speed of memory. For: `dot`; where A is small, products with one
vector are loops. What would break it: an x or an A whose depths are not next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import Fields, fused, lanes_of, prefix_mask, size_of
from numjet.cpu.link import link

PREFIX = "nj_matvec_"
FIELDS = ("n", "k", "ars", "xrs", "yrs", "ycs", "groups", "batch", "xb", "ab", "yb", "grain")
# Rows that are taken together; of fewer, each sum waits for the one before it.
ROWS = 8
# With 16 registers, for numbers of vectors (300 x 300 with 3: 7 us by 3 rows, 12 by 4).
ROWS_OF_16 = {2: 6, 3: 3, 4: 2, 5: 2}
# So many vectors at most: more are a matrix, whose tiles hold them as lanes.
MOST_VECTORS = 8
# How many bytes ahead each row is prefetched: the processor's own prefetch stops at a page's end.
AHEAD = 1024
# Of a greater depth parts are added up each: 10^6 floats, one after the other, lose 7 bits.
PART_DEPTH = 1 << 14


def rows_at_once(vectors: int) -> int:
    """Rows of A whose sums with all vectors fit in the registers, beside the vectors and a row."""
    if vectors == 1:
        return ROWS
    if link.vector_bytes() < 64:
        return ROWS_OF_16.get(vectors, 1)
    return min(ROWS, 31 // vectors - 1)


def plan(
    n: int, k: int, ars: int, batch: Sequence[int] = (1, 0, 0, 0), vectors: int = 1,
    steps: tuple[int, int, int] = (0, 0, 0),
) -> list[int]:  # fmt: skip
    """The table: A's sizes, the byte stride of its rows, (count, strides of x, a, y); steps: from
    one of the vectors to the next, from one of A's rows to the next in y, of vectors there."""
    groups = -(-n // rows_at_once(vectors))
    total = groups * batch[0]
    grain = total // (8 * host.cpu_count())
    return [n, k, ars, *steps, groups, *batch, max(grain, 1)]


def written(rest: str) -> Module:
    """The library for so many vectors of a type."""
    count, element = rest.split("_")
    module = Module(link.features())
    _task(module, element, int(count))
    b = Builder(
        module, libraries.ENTRY, [("table", "ptr"), ("x", "ptr"), ("a", "ptr"), ("y", "ptr")]
    )
    ctx = b.alloca("[4 x ptr]")
    for i, value in enumerate(b.args):
        b.store(value, b.gep(ctx, 8 * i), 8)
    f = Fields(b, b.args[0], FIELDS)
    tasks = b.mul(f.groups, f.batch)
    b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, tasks, f.grain)
    b.ret()
    return module


def _task(module: Module, element: str, vectors: int) -> None:
    """@task(ctx, begin, end): ctx = (table, x, a, y); a task is some of A's rows."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal"
    )
    ctx, begin, end = b.args
    lanes, size = lanes_of(element), size_of(element)
    rows = rows_at_once(vectors)
    kind = vector(element, lanes)
    t, x0, a0, y0 = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(4)]
    f = Fields(b, t, FIELDS)
    n, k, ars, groups, xb, ab, yb = f.n, f.k, f.ars, f.groups, f.xb, f.ab, f.yb
    whole = b.sub(k, b.urem(k, lanes))
    parts = b.mul(b.udiv(b.sub(b.max(k, 1), 1), PART_DEPTH), PART_DEPTH)
    zero = const(0, kind)

    with b.loop(begin, end) as tasks:
        outer = b.udiv(tasks.index, groups)
        first = b.mul(b.urem(tasks.index, groups), rows)
        x, a, y = (b.gep(p, b.mul(outer, s)) for p, s in ((x0, xb), (a0, ab), (y0, yb)))
        places = [b.min(b.add(first, r), b.sub(n, 1)) for r in range(rows)]
        starts = [b.gep(a, b.mul(place, ars)) for place in places]
        others = [b.gep(x, b.mul(f.xrs, v)) if v else x for v in range(vectors)]

        def round_(offset: Value, sums: Sequence[Value], mask: Value | None) -> list[Value]:
            def part(start: Value) -> Value:
                place = b.gep(start, offset)
                if mask is None:
                    return b.load(place, kind, size)
                return b.masked_load(place, mask, zero, size)

            across = [part(start) for start in others]
            if mask is None:
                for start in starts:
                    b.prefetch(b.gep(b.gep(start, offset), AHEAD))
            lines = [part(start) for start in starts]
            return [
                fused(b, row, x, sums[r * vectors + v])
                for r, row in enumerate(lines)
                for v, x in enumerate(across)
            ]

        def walk(begin: Value | int, end: Value, sums: Sequence[Value]) -> Sequence[Value]:
            with b.loop(begin, end, lanes, carried=sums) as chunks:
                chunks.yield_(*round_(b.mul(chunks.index, size), chunks.values, None))
            return chunks.results

        none = [zero] * (rows * vectors)
        with b.loop(0, parts, PART_DEPTH, carried=none) as totals:
            sums = walk(totals.index, b.add(totals.index, PART_DEPTH), none)
            totals.yield_(*map(b.add, totals.values, sums))
        chunks = walk(parts, whole, totals.results)
        with b.loop(whole, k, lanes, carried=chunks) as tail:
            mask = prefix_mask(b, b.sub(k, tail.index), lanes)
            tail.yield_(*round_(b.mul(tail.index, size), tail.values, mask))
        for r in range(rows):
            line = b.gep(y, b.mul(places[r], f.yrs if vectors > 1 else size))
            for v in range(vectors):
                place = b.gep(line, b.mul(f.ycs, v)) if v else line
                b.store(b.reduce("add", tail.results[r * vectors + v]), place, size)
    b.ret()


libraries.provide(PREFIX, written)
