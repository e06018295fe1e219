"""The library of products itself: how threads divide C among themselves, and pack B as they go.

    void nj_gemm_<type>(ptr table, ptr a, ptr b, ptr c, ptr behind)

`gemm` says what the table holds and what is computed. Each thread takes pieces of C until none is
left: half of the threads from the front, the others from the back, many at first, few when little
is left (`pool_take` in `runtime.threads`). So a strip of B is packed once, by the thread that
multiplies with it, but where threads meet; and however fast each of them is, they are done together
(1024² on two cores, one of them taken by something else for a third of the time: 17.5 ms where
eight tasks took 19.5). For: `gemm`. What would break it: more than 2³² pieces.
"""

from __future__ import annotations

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import GLUE, Fields, lanes_of, size_of
from numjet.cpu.kernels.products.gemm_tiles import BY_ROWS, FIELDS, IN_PLACE, SCRATCH, tile_vectors
from numjet.cpu.link import link

PREFIX = "nj_gemm_"
# Strips that a large product multiplies with at a time, 256 KB of the stack each (elsewhere than on
# Linux threads have 512 KB). Two and what is read of A leave room in a cache of 1 MB; with four,
# half as deep, C would be read and written twice as often, which takes back what A gains.
GROUP = 2 if host.LINUX else 1
# What loops behind a product find: a piece of so many bytes, and so many pointers.
PIECE_BYTES, MOST_POINTERS = 1 << 15, 32
# What tasks are given: table, a, b, c, behind, where the depth begins; on a line of its own, which
# pieces are left.
_CONTEXT, _BEGIN, _LEFT = 16, 40, 64


def written(element: str) -> Module:
    """The library for `element`."""
    module = Module(link.features())
    _Task(module, element).write()
    _entry(module)
    return module


class _Task:
    """@task(ctx, begin, end): takes pieces from the back where `begin` is odd. They are numbered as
    (batch1, batch2, group of strips, piece of rows)."""

    def __init__(self, module: Module, element: str) -> None:
        b = self.b = Builder(
            module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")],
            linkage="internal", attributes=GLUE,
        )  # fmt: skip
        self.size, self.lanes = size_of(element), lanes_of(element)
        self.columns = tile_vectors() * self.lanes
        ctx = b.args[0]
        self.pointers = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(5)]
        f = self.f = Fields(b, self.pointers[0], FIELDS)
        self.scratch = b.alloca(f"[{GROUP * SCRATCH} x i8]")
        self.at = b.load(b.gep(ctx, _BEGIN), "i64", 8)
        self.until = b.min(b.add(self.at, f.round), f.k)
        self.nothing = b.const(0, "ptr")
        self.copies, self.packs = b.icmp("eq", f.pack, BY_ROWS), b.icmp("sgt", f.pack, BY_ROWS)
        self.in_place = b.icmp("eq", f.pack, IN_PLACE)
        # A strip in several parts does not stay packed.
        self.repacks = b.icmp("sgt", b.sub(self.until, self.at), f.depth)
        self.kept = b.icmp("sgt", f.kept, 0)

    def write(self) -> None:
        b, f = self.b, self.f
        ctx, begin, _ = b.args
        pieces, together = f.pieces, f.together
        for name in ("m", "n", "depth", "brs", "ars", "crs", "acs", "bcs"):
            getattr(f, name)  # read before the loops
        behind = self._behind()
        epilogue = b.inttoptr(f.epilogue, "ptr")
        result, left, back = b.alloca("[1 x i64]"), b.gep(ctx, _LEFT), b.and_(begin, 1)
        with b.while_([b.const(-1, "i64")]) as takes:
            count = b.call("nj_pool_take", "i64", left, f.least, f.share, back, result)
            takes.test(b.icmp("sgt", count, 0))
            first = b.load(result, "i64", 8)
            end = b.add(first, count)
            with b.while_([first, *takes.values]) as each:
                at, packed = each.values
                each.test(b.icmp("slt", at, end))
                line, number = b.udiv(at, pieces), b.urem(at, pieces)
                some = b.min(b.min(together, b.sub(end, at)), b.sub(pieces, number))
                fresh = b.or_(self.repacks, b.icmp("ne", line, packed))
                self._rows(line, number, b.add(number, some), fresh)
                with b.if_(b.icmp("ne", f.epilogue, 0)):
                    b.call(epilogue, "void", behind, at, b.add(at, 1))
                each.yield_(b.add(at, some), line)
            takes.yield_(each.results[1])
        b.ret()

    def _behind(self) -> Value:
        """The pointers of the loops behind the product, with a piece of the stack for a kept C."""
        b, f, behind = self.b, self.f, self.pointers[4]
        piece, pointers = b.alloca(f"[{PIECE_BYTES} x i8]"), b.alloca(f"[{MOST_POINTERS} x ptr]")
        with b.loop(0, b.mul(f.kept, 8), 8) as copy:
            b.store(b.load(b.gep(behind, copy.index), "ptr", 8), b.gep(pointers, copy.index), 8)
        b.store(piece, pointers, 8)
        self.piece = piece
        return b.select(self.kept, pointers, behind)

    def _rows(self, line: Value, number: Value, end: Value, fresh: Value) -> None:
        """Multiply the pieces [number, end) of a group of strips; fresh: these are not packed."""
        b, f = self.b, self.f
        rest, group = b.udiv(line, f.strips), b.urem(line, f.strips)
        outer, inner = b.udiv(rest, f.batch2), b.urem(rest, f.batch2)
        row = b.mul(number, f.piece_rows)
        below = b.select(b.icmp("eq", end, f.pieces), f.m, b.mul(end, f.piece_rows))

        def place(base: Value, one: Value, two: Value, at: Value, step: Value) -> Value:
            base = b.gep(b.gep(base, b.mul(outer, one)), b.mul(inner, two))
            return b.gep(base, b.mul(at, step))

        _, a, matrix0, c, _ = self.pointers
        a = place(a, f.a1, f.a2, row, f.ars)
        c = place(c, f.c1, f.c2, row, f.crs)
        columns = b.mul(f.group, self.columns)
        first = b.mul(group, columns)
        last = b.min(b.add(first, columns), b.max(f.n, 1))
        with b.loop(first, last, self.columns) as strips:
            column = strips.index
            matrix = place(matrix0, f.b1, f.b2, column, f.bcs)
            scratch = b.gep(self.scratch, b.mul(b.sub(column, first), SCRATCH // self.columns))
            here = b.select(self.kept, self.piece, b.gep(c, b.mul(column, self.size)))
            self._strip(column, a, matrix, here, scratch, b.sub(below, row), fresh)

    def _strip(
        self, column: Value, a: Value, matrix: Value, c: Value, scratch: Value, rows: Value,
        fresh: Value,
    ) -> None:  # fmt: skip
        """Some rows of one strip, a part of the depth at a time."""
        b, f, t = self.b, self.f, self.pointers[0]
        lanes = self.lanes
        columns = b.sub(f.n, column)
        full = b.icmp("sge", columns, self.columns)
        columns = b.min(columns, self.columns)
        tile = b.inttoptr(b.select(full, f.tile, f.last_tile), "ptr")
        width = b.and_(b.mul(b.add(columns, lanes - 1), self.size), -lanes * self.size)
        copying = b.and_(self.copies, fresh)
        there = b.or_(copying, self.in_place)
        # Once even for K = 0: it writes zeros.
        with b.loop(self.at, b.max(self.until, 1), f.depth) as parts:
            at = parts.index
            depth = b.min(b.sub(self.until, at), f.depth)
            old = b.or_(f.accumulate, b.zext(b.icmp("sgt", at, 0), "i64"))
            part = b.gep(matrix, b.mul(at, f.brs))
            with b.if_(b.and_(self.packs, fresh)):
                whole = b.mul(depth, f.segments)
                packer = b.inttoptr(f.pack, "ptr")
                b.call(packer, "void", t, part, scratch, whole, columns, width)
            source, stride = b.select(there, part, scratch), b.select(there, f.brs, width)
            to = b.select(copying, scratch, self.nothing)
            part_a = b.gep(a, b.mul(at, f.acs))
            b.call(tile, "void", t, part_a, source, c, depth, rows, stride, old, to)


def _entry(module: Module) -> None:
    b = Builder(
        module, libraries.ENTRY,
        [("table", "ptr"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("behind", "ptr")],
        attributes=GLUE,
    )  # fmt: skip
    ctx = b.alloca(f"[{_CONTEXT} x ptr]")
    for i, value in enumerate(b.args):
        b.store(value, b.gep(ctx, 8 * i), 8)
    f = Fields(b, b.args[0], FIELDS)
    every, runs = f.every, f.runs
    with b.loop(0, b.max(f.k, 1), f.round) as rounds:
        b.store(rounds.index, b.gep(ctx, _BEGIN), 8)
        b.store(every, b.gep(ctx, _LEFT), 8)
        with b.if_(b.icmp("sgt", runs, 1)) as wide:
            b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, runs, b.const(1, "i64"))
        with wide.else_():
            b.call("task", "void", ctx, b.const(0, "i64"), runs)
    b.ret()


libraries.provide(PREFIX, written, direct=lambda rest: True)
