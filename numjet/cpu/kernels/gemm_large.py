"""Products of matrices beyond the second-level cache: symbol `nj_large_gemm_<type>`.

    void nj_large_gemm_float(ptr table, ptr a, ptr b, ptr c, ptr unused)

As `gemm`'s library, with its table, in another order: a task is some strips of C by a block of
rows. B's strips are packed, and each few rows of A, once they are in the second-level cache, are
multiplied with all of them. For: `gemm`. What would break it: loops behind the product, segments.
"""

from __future__ import annotations

from numjet.cpu import platform
from numjet.cpu.builder import Builder, Module, Value
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.common import GLUE, Fields, lanes_of, size_of
from numjet.cpu.kernels.gemm_tiles import BY_ROWS, FIELDS, SCRATCH, tile_vectors

PREFIX = "nj_large_gemm_"
# Strips of a task, 256 KB of the stack each (elsewhere than on Linux threads have 512 KB). Two and
# what is read of A leave room in a cache of 1 MB; with four, half as deep, C would be read and
# written twice as often, which takes back what A gains.
GROUP = 2 if platform.LINUX else 1
# Rows of A that stay in the second-level cache for the next strip.
ROW_BYTES = 192 << 10
# Operands and result together, above which A and C are mostly not in that cache.
BYTES = 3 << 20


def worth(size: int, m: int, n: int, k: int, a: tuple[int, int]) -> bool:
    """Whether this library is for a product; a: A's (row, column) strides. (The tiles of `gemm` ask
    ahead for an A whose rows lie next to each other, which takes more than is won here.)"""
    return a[1] == size and min(m, n, k) >= 256 and (m * k + k * n + m * n) * size >= BYTES


def written(element: str) -> Module:
    """The library for `element`."""
    module = Module()
    _task(module, element)
    b = Builder(
        module, libraries.ENTRY,
        [("table", "ptr"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("behind", "ptr")],
        attributes=GLUE,
    )  # fmt: skip
    ctx = b.alloca("[4 x ptr]")
    for i, value in enumerate(b.args[:4]):
        b.store(value, b.gep(ctx, 8 * i), 8)
    f = Fields(b, b.args[0], FIELDS)
    b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, f.tasks, f.grain)
    b.ret()
    return module


def _task(module: Module, element: str) -> None:
    """@task(ctx, begin, end): ctx = (table, a, b, c). Task = (batch1, batch2, block, group)."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal",
        attributes=GLUE,
    )  # fmt: skip
    ctx, begin, end = b.args
    lanes, size = lanes_of(element), size_of(element)
    strip_columns = tile_vectors() * lanes
    t, a0, b0, c0 = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(4)]
    f = Fields(b, t, FIELDS)
    m, n, k, brs = f.m, f.n, f.k, f.brs
    copies, packs = b.icmp("eq", f.pack, BY_ROWS), b.icmp("sgt", f.pack, BY_ROWS)
    packer = b.inttoptr(f.pack, "ptr")
    nothing = b.const(0, "ptr")
    scratch = b.alloca(f"[{GROUP * SCRATCH} x i8]")
    with b.loop(begin, end) as tasks:
        rest, first = b.udiv(tasks.index, f.strips), b.urem(tasks.index, f.strips)
        rest, block = b.udiv(rest, f.blocks), b.urem(rest, f.blocks)
        outer, inner = b.udiv(rest, f.batch2), b.urem(rest, f.batch2)
        first = b.mul(first, f.group)
        last = b.min(b.add(first, f.group), b.udiv(b.add(n, strip_columns - 1), strip_columns))

        def place(base: Value, one: Value, two: Value) -> Value:
            return b.gep(b.gep(base, b.mul(outer, one)), b.mul(inner, two))  # noqa: B023

        a1, b1, c1 = place(a0, f.a1, f.a2), place(b0, f.b1, f.b2), place(c0, f.c1, f.c2)
        with b.loop(0, k, f.depth) as parts, b.loop(0, f.pieces) as pieces:
            at, number = parts.index, pieces.index
            depth = b.min(b.sub(k, at), f.depth)
            old = b.or_(f.accumulate, b.zext(b.icmp("sgt", at, 0), "i64"))
            fresh = b.icmp("eq", number, 0)  # later rows find B packed
            row = b.add(b.mul(block, f.block_rows), b.mul(number, f.piece_rows))
            rows = b.min(f.piece_rows, b.sub(b.min(m, b.mul(b.add(block, 1), f.block_rows)), row))
            part_a = b.gep(b.gep(a1, b.mul(row, f.ars)), b.mul(at, f.acs))
            with b.loop(first, last) as strips:
                column = b.mul(strips.index, strip_columns)
                here = b.gep(scratch, b.mul(b.sub(strips.index, first), SCRATCH))
                columns = b.min(b.sub(n, column), strip_columns)
                full = b.icmp("eq", columns, strip_columns)
                width = b.and_(b.mul(b.add(columns, lanes - 1), size), -lanes * size)
                part_b = b.gep(b.gep(b1, b.mul(column, f.bcs)), b.mul(at, brs))
                part_c = b.gep(b.gep(c1, b.mul(row, f.crs)), b.mul(column, size))
                with b.if_(b.and_(packs, fresh)):
                    b.call(packer, "void", t, part_b, here, depth, columns, width)
                copied = b.and_(copies, fresh)
                source, stride = b.select(copied, part_b, here), b.select(copied, brs, width)
                to = b.select(copied, here, nothing)
                tile = b.select(full, f.tile, f.last_tile)
                tile = b.inttoptr(tile, "ptr")
                b.call(tile, "void", t, part_a, source, part_c, depth, rows, stride, old, to)
    b.ret()


libraries.provide(PREFIX, written, direct=lambda rest: True)
