"""Matrix times vector, y = A·x with A's rows contiguous: symbol `nj_matvec_<type>`.

    void nj_matvec_float(ptr table, ptr x, ptr a, ptr y)

Several rows at a time share each vector of x, so that A streams in at the speed of memory. For:
`dot`, where A is larger than the caches; smaller products are loops. What would break it: an x
that is not contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import Fields, fused, lanes_of, prefix_mask, size_of
from numjet.cpu.link import link

PREFIX = "nj_matvec_"
FIELDS = ("n", "k", "ars", "groups", "batch", "xb", "ab", "yb", "grain")
ROWS = 8
UNROLL = 1
# How many bytes ahead each row is prefetched: the processor's own prefetch stops at a page's end.
AHEAD = 1024


def plan(n: int, k: int, ars: int, batch: Sequence[int] = (1, 0, 0, 0)) -> list[int]:
    """The table: A's sizes, the byte stride of its rows, (count, strides of x, a, y)."""
    groups = -(-n // ROWS)
    total = groups * batch[0]
    grain = total // (8 * host.cpu_count())
    return [n, k, ars, groups, *batch, max(grain, 1)]


def written(element: str) -> Module:
    """The library for `element`."""
    module = Module(link.features())
    _task(module, element)
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


def _task(module: Module, element: str) -> None:
    """@task(ctx, begin, end): ctx = (table, x, a, y); a task is ROWS rows."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal"
    )
    ctx, begin, end = b.args
    lanes, size = lanes_of(element), size_of(element)
    kind = vector(element, lanes)
    t, x0, a0, y0 = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(4)]
    f = Fields(b, t, FIELDS)
    n, k, ars, groups, xb, ab, yb = f.n, f.k, f.ars, f.groups, f.xb, f.ab, f.yb
    step = lanes * UNROLL
    whole = b.sub(k, b.urem(k, step))
    zero = const(0, kind)
    with b.loop(begin, end) as tasks:
        outer = b.udiv(tasks.index, groups)
        first = b.mul(b.urem(tasks.index, groups), ROWS)
        x, a, y = (b.gep(p, b.mul(outer, s)) for p, s in ((x0, xb), (a0, ab), (y0, yb)))
        places = [b.min(b.add(first, r), b.sub(n, 1)) for r in range(ROWS)]
        starts = [b.gep(a, b.mul(place, ars)) for place in places]
        with b.loop(0, whole, step, carried=[zero] * (ROWS * UNROLL)) as chunks:
            sums = list(chunks.values)
            for u in range(UNROLL):
                offset = b.mul(b.add(chunks.index, u * lanes), size)
                part = b.load(b.gep(x, offset), kind, size)
                for r in range(ROWS):
                    place = b.gep(starts[r], offset)
                    b.prefetch(b.gep(place, AHEAD))
                    row = b.load(place, kind, size)
                    sums[r * UNROLL + u] = fused(b, row, part, sums[r * UNROLL + u])
            chunks.yield_(*sums)
        totals = []
        for r in range(ROWS):
            total = chunks.results[r * UNROLL]
            for u in range(1, UNROLL):
                total = b.add(total, chunks.results[r * UNROLL + u])
            totals.append(total)
        with b.loop(whole, k, lanes, carried=totals) as tail:
            mask = prefix_mask(b, b.sub(k, tail.index), lanes)
            offset = b.mul(tail.index, size)
            part = b.masked_load(b.gep(x, offset), mask, zero, size)
            rows = [b.masked_load(b.gep(s, offset), mask, zero, size) for s in starts]
            tail.yield_(*[fused(b, row, part, s) for row, s in zip(rows, tail.values, strict=True)])
        for r in range(ROWS):
            value = b.reduce("add", tail.results[r])
            b.store(value, b.gep(y, b.mul(places[r], size)), size)
    b.ret()


libraries.provide(PREFIX, written)
