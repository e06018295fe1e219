"""Vector times matrix, y = x·B with B's columns next to each other: symbol `nj_vecmat_<type>`.

    void nj_vecmat_float(ptr table, ptr x, ptr b, ptr y)

Eight rows of B at a time are added into y, which stays in the nearest cache: B streams through at
the speed of memory. Threads take ranges of rows; each adds into a y of its own, and these are
summed at the end. For: `dot`. What would break it: parts · n elements beyond the scratch block.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import (
    GLUE,
    Fields,
    fused,
    lanes_of,
    prefix_mask,
    size_of,
)
from numjet.cpu.link import link

PREFIX = "nj_vecmat_"
FIELDS = ("n", "k", "xs", "brs", "parts", "rows", "batch", "xb", "bb", "yb", "grain")
ROWS = 8
# Bytes of B below which one thread does it all.
PARALLEL_BYTES = 1 << 19
# Parts are added up in so much memory.
SCRATCH_BYTES = 1 << 20


def plan(
    element: str, n: int, k: int, xs: int, brs: int, batch: Sequence[int] = (1, 0, 0, 0)
) -> list[int]:
    """The table: sizes, byte strides of x and of B's rows, (count, strides of x, b and y)."""
    size = size_of(element)
    total = n * k * size * batch[0]
    parts = 1
    if total >= PARALLEL_BYTES and batch[0] < 2 * host.cpu_count():
        parts = min(
            2 * host.cpu_count(), SCRATCH_BYTES // (n * size), total // (PARALLEL_BYTES // 4)
        )
        parts = max(parts if batch[0] == 1 else 1, 1)
    rows = max(-(-k // (parts * ROWS)) * ROWS, ROWS)
    parts = max(-(-k // rows), 1)
    tasks = parts * batch[0]
    grain = max(1, tasks // (4 * host.cpu_count())) if total >= PARALLEL_BYTES else tasks
    return [n, k, xs, brs, parts, rows, batch[0], batch[1], batch[2], batch[3], max(grain, 1)]


def written(element: str) -> Module:
    """The library for `element`."""
    module = Module(link.features())
    for rows in (ROWS, 1):
        _add_rows(module, element, rows)
    _task(module, element)
    _entry(module, element)
    return module


def _add_rows(module: Module, element: str, rows: int) -> None:
    """@add_<rows>(x, xs, b, brs, y, n, old): y = x[:rows]·B, plus y when old."""
    b = Builder(module, f"add_{rows}", [
        ("x", "ptr"), ("xs", "i64"), ("b", "ptr"), ("brs", "i64"), ("y", "ptr"), ("n", "i64"),
        ("old", "i1")], linkage="internal")  # fmt: skip
    x, xs, matrix, brs, y, n, old = b.args
    lanes, size = lanes_of(element), size_of(element)
    kind = vector(element, lanes)
    factors = [b.splat(b.load(b.gep(x, b.mul(xs, r)), element, size), lanes) for r in range(rows)]
    starts = [b.gep(matrix, b.mul(brs, r)) for r in range(rows)]
    keep = b.splat(old, lanes)

    def columns(offset: Value, mask: Value | None) -> None:
        at = b.gep(y, offset)
        before = keep if mask is None else b.and_(keep, mask)
        zero = const(0, kind)
        sums = [b.masked_load(at, before, zero, size)]
        for r in range(rows):
            place = b.gep(starts[r], offset)
            if mask is None:
                row = b.load(place, kind, size)
            else:
                row = b.masked_load(place, mask, zero, size)
            if r % 2 == 1 and len(sums) == 1:
                sums.append(b.mul(factors[r], row))
            else:
                sums[r % 2] = fused(b, factors[r], row, sums[r % 2])
        total = sums[0] if len(sums) == 1 else b.add(*sums)
        if mask is None:
            b.store(total, at, size)
        else:
            b.masked_store(total, at, mask, size)

    whole = b.and_(n, -lanes)
    with b.loop(0, b.mul(whole, size), lanes * size) as chunks:
        columns(chunks.index, None)
    with b.if_(b.icmp("slt", whole, n)):
        columns(b.mul(whole, size), prefix_mask(b, b.sub(n, whole), lanes))
    b.ret()


def _task(module: Module, element: str) -> None:
    """@task(ctx, begin, end): ctx = (table, x, b, y, partial sums)."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal",
        attributes=GLUE,
    )  # fmt: skip
    ctx, begin, end = b.args
    size = size_of(element)
    t, x0, b0, y0, partial = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(5)]
    f = Fields(b, t, FIELDS)
    n, k, xs, brs, parts, rows = f.n, f.k, f.xs, f.brs, f.parts, f.rows
    xb, bb, yb = f.xb, f.bb, f.yb
    alone = b.icmp("eq", parts, 1)
    with b.loop(begin, end) as tasks:
        part = b.urem(tasks.index, parts)
        outer = b.udiv(tasks.index, parts)
        first = b.mul(part, rows)
        last = b.min(b.add(first, rows), k)
        x = b.gep(x0, b.mul(outer, xb))
        matrix = b.gep(b0, b.mul(outer, bb))
        y = b.select(
            alone, b.gep(y0, b.mul(outer, yb)), b.gep(partial, b.mul(part, b.mul(n, size)))
        )
        whole = b.add(first, b.and_(b.sub(last, first), -ROWS))
        for start, stop, step in ((first, whole, ROWS), (whole, last, 1)):
            with b.loop(start, stop, step) as lines:
                old = b.icmp("ne", lines.index, first)
                b.call(f"add_{step}", "void", b.gep(x, b.mul(lines.index, xs)), xs,
                       b.gep(matrix, b.mul(lines.index, brs)), brs, y, n, old)  # fmt: skip
    b.ret()


def _entry(module: Module, element: str) -> None:
    b = Builder(
        module, libraries.ENTRY, [("table", "ptr"), ("x", "ptr"), ("b", "ptr"), ("y", "ptr")]
    )
    size, lanes = size_of(element), lanes_of(element)
    kind = vector(element, lanes)
    f = Fields(b, b.args[0], FIELDS)
    n, parts, batch, grain = f.n, f.parts, f.batch, f.grain
    ctx = b.alloca("[5 x ptr]")
    for i, value in enumerate(b.args):
        b.store(value, b.gep(ctx, 8 * i), 8)
    several = b.icmp("sgt", parts, 1)
    with b.if_(several, otherwise=[b.const(0, "ptr")]) as needed:
        needed.yield_(b.call("nj_program_take", "ptr", b.mul(b.mul(parts, n), size)))
    partial = needed.results[0]
    b.store(partial, b.gep(ctx, 32), 8)
    tasks = b.mul(parts, batch)
    with b.if_(b.icmp("sgt", tasks, grain)) as wide:
        b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, tasks, grain)
    with wide.else_():
        b.call("task", "void", ctx, b.const(0, "i64"), tasks)
    with b.if_(several):
        stride = b.mul(n, size)
        with b.loop(0, n, lanes) as chunks:
            mask = prefix_mask(b, b.sub(n, chunks.index), lanes)
            offset = b.mul(chunks.index, size)
            zero = const(0, kind)
            start = (b.gep(partial, offset), zero)
            with b.loop(0, parts, carried=start) as sums:
                here, total = sums.values
                sums.yield_(
                    b.gep(here, stride), b.add(total, b.masked_load(here, mask, zero, size))
                )
            b.masked_store(sums.results[1], b.gep(b.args[3], offset), mask, size)
        b.call("nj_program_give", "void", partial)
    b.ret()


libraries.provide(PREFIX, written)
