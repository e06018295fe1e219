"""Matrix products as one library for each element type: symbol `nj_gemm_<type>`.

    void nj_gemm_float(ptr table, ptr a, ptr b, ptr c, ptr behind)    C = A·B, or C += A·B

The table (see `plan`) holds sizes, byte strides, how to cut the work into tasks and up to two
levels of batch loops, all known when a program is compiled. So that a program with ten products
compiles none of them, the library is a module of its own, compiled once and cached on disk.

A is read in place by broadcast loads, whatever its strides. B is packed in strips of up to NR
columns by K, unless it can be read in place. Tiles are 6 rows by 4 (2 with 16 registers) vectors;
the columns that are left have a tile function of exactly their number, masked (`gemm_tiles`). The
last tile of a block overlaps the one before it, or repeats the last row where it may not. Operands
beyond the second-level cache are `gemm_large`'s.
For: `dot` and `conv`. What would break it: C's columns not next to each other, or K·NR beyond the
scratch (K is cut at `k_block`).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from numjet.base.record import record
from numjet.cpu import link, platform
from numjet.cpu.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import gemm_large, libraries
from numjet.cpu.kernels.common import (
    GLUE,
    Fields,
    lanes_of,
    prefix_mask,
    size_of,
    table,
    transpose_block,
)
from numjet.cpu.kernels.gemm_tiles import (
    BY_ROWS,
    FIELDS,
    GENERAL,
    IN_PLACE,
    LARGE,
    ONCE,
    SCRATCH,
    TILE_PREFIX,
    TILE_ROWS,
    k_block,
    tile_rows,
    tile_vectors,
)
from numjet.cpu.program import Function
from numjet.cpu.x86.pack import pack_columns

PACK_PREFIX = "nj_pack_"
PREFIX = "nj_gemm_"
# Rows of a piece, with what follows a product run on each: 48 or more, so that its columns (256
# bytes) are in the nearest cache beside those of the operands that are read with it.
PIECE_ROWS = 48
PIECE_BYTES = 1 << 15
# Pointers that loops behind a product may have, where its pieces are kept on the stack.
MOST_POINTERS = 32
# Below this many operations the pool costs more than it brings.
PARALLEL_FLOPS = 1_500_000


@record(frozen=True, slots=True)
class Epilogue:
    """Loops behind a product: `void name(ptr pointers, i64 piece, i64 end)`, written by `write`,
    are run on each piece of C by the thread that has finished it. Pieces are numbered in the order
    of batches, blocks, strips. They have `count` pointers, of which C is number `place`; where C is
    `kept` it is no memory but a piece on the stack, which is the first of them. `inline` writes
    what is done with one piece into a function under construction, from pointers and a number."""

    name: str
    count: int
    kept: bool
    place: int
    write: Callable[[Module], object]
    inline: Callable[[Builder, Sequence[Value], Value | int], None]

    def pointers(self, b: Builder, operands: Value) -> tuple[Value, Value]:
        """(C, the loops' pointers) from the operands: A, B and then these (without a kept C)."""
        if self.kept:
            return b.const(0, "ptr"), b.gep(operands, 8)
        rest = b.gep(operands, 16)
        return b.load(b.gep(rest, 8 * self.place), "ptr", 8), rest


class Cut(NamedTuple):
    """How C is cut into tasks: strips of columns by blocks of rows; and these into pieces, which
    what follows the product takes one by one."""

    columns: int  # of a strip
    strips: int
    blocks: int
    block_rows: int
    pieces: int
    piece_rows: int


def cut(
    element: str,
    m: int,
    n: int,
    k: int,
    b: tuple[int, int],
    batches: Sequence[tuple[int, int, int, int]] = (),
    segments: tuple[int, int] = (1, 0),
    pieces: bool = False,
) -> Cut:
    """The cut of a product (see `plan`); `pieces`: into such as stay in the nearest cache."""
    size, lanes = size_of(element), lanes_of(element)
    width = tile_vectors() * lanes
    strips = max(-(-n // width), 1)
    repeats = math.prod([batch[0] for batch in batches])
    flops = 2 * m * n * k * repeats * segments[0]
    cores = platform.cpu_count()
    wanted = _wanted(b, size, n, strips * repeats)
    blocks = 1
    height = tile_rows(min(-(-n // lanes), tile_vectors()))
    if flops >= PARALLEL_FLOPS and strips * repeats < wanted:
        blocks = max(1, min(-(-wanted // (strips * repeats)), m // 48))
        if strips * repeats * blocks < cores:
            blocks = max(1, min(-(-cores // (strips * repeats)), m // (2 * height)))
    block_rows = -(-m // (blocks * height)) * height
    count = 1
    if pieces and k * segments[0] <= k_block(element):
        count = max(1, block_rows // PIECE_ROWS)
        block_rows = -(-m // (blocks * count * height)) * height * count
    blocks = max(-(-m // block_rows), 1) if m else 0
    return Cut(width, strips, blocks, block_rows, count, block_rows // count)


def _wanted(b: tuple[int, int], size: int, n: int, strips: int) -> int:
    """How many tasks keep all cores busy."""
    cores = platform.cpu_count()
    if b[1] != size and n > 1 and strips % cores == 0:
        return cores  # each block of rows would turn its strip of B anew
    return 4 * cores


def plan(
    element: str,
    m: int,
    n: int,
    k: int,
    a: tuple[int, int],
    b: tuple[int, int],
    crs: int,
    batches: Sequence[tuple[int, int, int, int]] = (),
    accumulate: bool = False,
    segments: tuple[int, int] = (1, 0),
    general: bool = False,
    epilogue: Epilogue | None = None,
) -> list[int | str]:
    """The table of a product. a, b: (row, column) strides in bytes; batches: up to two of
    (count, stride of a, of b, of c), the outer one first. segments: (count, stride of a): the
    depth is `count` times k, A jumps by the stride after each k; together at most `k_block`.
    general: use the tiles that accumulating products need too."""
    size = size_of(element)
    width, strips, blocks, block_rows, pieces, piece_rows = cut(
        element, m, n, k, b, batches, segments, epilogue is not None
    )
    outer = [*[(1, 0, 0, 0)] * (2 - len(batches)), *batches]
    repeats = outer[0][0] * outer[1][0]
    flops = 2 * m * n * k * repeats * segments[0]
    tasks = strips * blocks * repeats
    brs, bcs = b
    large = epilogue is None and segments[0] == 1 and gemm_large.worth(size, m, n, k, a)
    if bcs == size or n == 1:
        small = k * segments[0] * brs <= 1 << 15 or brs == width * size
        pack: int | str = BY_ROWS
        if (block_rows <= 24 or small and block_rows <= 96) and not large:
            pack = IN_PLACE
    elif brs == size or k == 1:
        pack = f"{PACK_PREFIX}columns_{element}"
    else:
        pack = f"{PACK_PREFIX}elements_{element}"
    grain = 1 if flops >= PARALLEL_FLOPS else tasks
    if grain == 1 and flops // tasks < PARALLEL_FLOPS // 8:
        wanted = _wanted(b, size, n, strips * repeats)
        grain = max(1, min(tasks // wanted, PARALLEL_FLOPS // 8 // max(flops // tasks, 1)))
    depth = max(k, 1) if pack == IN_PLACE else k_block(element) // segments[0]
    last_rows = m - (blocks - 1) * block_rows
    few_rows = (last_rows - 1) % piece_rows + 1 < TILE_ROWS + 2  # no tile has more
    general = general or accumulate or depth < k or segments[0] > 1 or few_rows
    kind = last_kind = GENERAL if general else ONCE
    group = 1
    if large:
        kind, last_kind = LARGE, GENERAL
        depth = min(depth, -(-k // (8 * -(-k // depth))) * 8)
        groups = -(-strips // gemm_large.GROUP)
        if groups * blocks * repeats >= _wanted(b, size, n, groups * repeats):
            group, strips, tasks = gemm_large.GROUP, groups, groups * blocks * repeats
        piece_rows = max(gemm_large.ROW_BYTES // (depth * size * TILE_ROWS), 1) * TILE_ROWS
        pieces = -(-block_rows // piece_rows)
    tiles = [
        f"{TILE_PREFIX}{of}_{columns}_{element}" if columns else 0
        for of, columns in ((kind, width if n >= width else 0), (last_kind, n % width))
    ]
    kept = epilogue.count if epilogue is not None and epilogue.kept else 0
    values = {
        "m": m,
        "n": n,
        "k": k,
        "ars": a[0],
        "acs": a[1],
        "brs": brs,
        "bcs": bcs,
        "crs": width * size if kept else crs,
        "strips": strips,
        "blocks": blocks,
        "block_rows": block_rows,
        "tasks": tasks,
        "pack": pack,
        "accumulate": int(accumulate),
        "grain": max(grain, 1),
        "segments": segments[0],
        "segment_step": segments[1],
        "batch1": outer[0][0],
        "a1": outer[0][1],
        "b1": outer[0][2],
        "c1": outer[0][3],
        "batch2": outer[1][0],
        "a2": outer[1][1],
        "b2": outer[1][2],
        "c2": outer[1][3],
        "depth": depth,
        "tile": tiles[0],
        "last_tile": tiles[1],
        "pieces": pieces,
        "piece_rows": piece_rows,
        "epilogue": epilogue.name if epilogue is not None else 0,
        "kept": kept,
        "group": group,
    }
    return [values[name] for name in FIELDS]  # type: ignore[misc]


def function(
    element: str,
    m: int,
    n: int,
    k: int,
    a: tuple[int, int],
    b: tuple[int, int],
    crs: int,
    loops: Sequence[tuple[int, int, int, int]] = (),
    depths: Sequence[tuple[int, int]] = ((0, 0),),
    segments: tuple[int, int] = (1, 0),
    epilogue: Epilogue | None = None,
) -> Function:
    """The function of the product (see `plan`) on the addresses of A, B and C.

    loops: any number of batch loops; all but the two longest are written out. depths: offsets of
    A and B whose products are summed. Begins to make what the product needs of the library.
    epilogue: its pointers stand behind those of A and B (see `Epilogue.pointers`).
    """
    loops = sorted(loops, key=lambda loop: loop[0])
    several = len(depths) > 1
    first, more = [
        plan(element, m, n, k, a, b, crs, loops[-2:], accumulate, segments, several, epilogue)
        for accumulate in (False, True)
    ]
    places = [(0, 0, 0)]
    for count, x, y, z in loops[:-2]:
        places = [(i + x * t, j + y * t, k + z * t) for i, j, k in places for t in range(count)]
    symbols = [word for word in first if isinstance(word, str) and word.startswith("nj_")]
    library = symbol(element, first)
    libraries.start(library, *symbols)

    def write(module: Module) -> None:
        if epilogue is not None:
            epilogue.write(module)
        builder = Builder(module, name, [("operands", "ptr")], attributes=GLUE)
        operands = builder.args[0]
        pointers = [builder.load(builder.gep(operands, 8 * i), "ptr", 8) for i in range(2)]
        if epilogue is None:
            c, rest = builder.load(builder.gep(operands, 16), "ptr", 8), builder.const(0, "ptr")
        else:
            c, rest = epilogue.pointers(builder, operands)
        pointers.append(c)
        for place in places:
            for i, (x, y) in enumerate(depths):
                moved = [
                    builder.gep(p, d) if d else p
                    for p, d in zip(pointers, (place[0] + x, place[1] + y, place[2]), strict=True)
                ]
                sizes = table(module, more if i else first)
                builder.call(library, "void", sizes, *moved, rest)
        builder.ret()

    words = (first, places, tuple(depths))
    name = f"product_{element}_{hashlib.sha256(repr(words).encode()).hexdigest()[:16]}"
    if epilogue is not None:
        name = f"product_with_{epilogue.name}"
    return Function(name, write)


def symbol(element: str, table: Sequence[int | str]) -> str:
    """The function that computes the product of such a table."""
    tile = table[FIELDS.index("tile")]
    large = isinstance(tile, str) and tile.startswith(TILE_PREFIX + LARGE)
    return (gemm_large.PREFIX if large else PREFIX) + element


def written(element: str) -> Module:
    """The library for `element`."""
    module = Module()
    _task(module, element)
    _entry(module)
    return module


# B's strip into rows of `width` bytes.
_PACKER = [
    ("table", "ptr"), ("from", "ptr"), ("to", "ptr noalias"), ("k", "i64"), ("columns", "i64"),
    ("width", "i64"),
]  # fmt: skip


class _KnownPacker(Builder):
    """A packer that the direct generator knows; IR only for LLVM."""

    def __init__(self, module: Module, element: str) -> None:
        super().__init__(module, libraries.ENTRY, _PACKER)
        bcs = 8 * FIELDS.index("bcs")
        self.whole = functools.partial(pack_columns, size=size_of(element), field=bcs)
        self.element = element

    def body(self) -> list[str]:
        if not self.lines:
            _pack_columns(self, self.element)
        return super().body()


def _pack_columns(b: Builder, element: str) -> None:
    """K next to each other: turn squares in registers. Writes K rounded up to a square."""
    t, source, to, k, columns, width = b.args
    size = size_of(element)
    side = min(lanes_of(element), 8)  # larger squares are hardly faster and slow to compile
    kind = vector(element, side)
    bcs = Fields(b, t, FIELDS).bcs
    count = b.div(width, size)
    last = b.sub(columns, 1)
    with b.loop(0, count, side) as groups:
        starts = []
        for j in range(side):
            column = b.min(b.add(groups.index, j), last)
            starts.append(b.gep(source, b.mul(column, bcs)))
        place = b.gep(to, b.mul(groups.index, size))
        with b.loop(0, k, side) as rows:
            mask = prefix_mask(b, b.sub(k, rows.index), side)
            offset = b.mul(rows.index, size)
            zero = const(0, kind)
            block = [b.masked_load(b.gep(s, offset), mask, zero, size) for s in starts]
            end = b.gep(place, b.mul(rows.index, width))
            for row in transpose_block(b, block):
                b.store(row, end, side * size)
                end = b.gep(end, width)
    b.ret()


def _pack_elements(b: Builder, element: str) -> None:
    """Any strides: element by element."""
    t, source, to, k, columns, width = b.args
    size = size_of(element)
    field = Fields(b, t, FIELDS)
    brs, bcs = field.brs, field.bcs
    count = b.div(width, size)
    last = b.sub(columns, 1)
    with b.loop(0, k) as rows:
        start = b.gep(source, b.mul(rows.index, brs))
        end = b.gep(to, b.mul(rows.index, width))
        with b.loop(0, count) as line:
            value = b.load(b.gep(start, b.mul(b.min(line.index, last), bcs)), element, size)
            b.store(value, b.gep(end, b.mul(line.index, size)), size)
    b.ret()


def _task(module: Module, element: str) -> None:
    """@task(ctx, begin, end): ctx = (table, a, b, c, pointers of the loops behind it).
    Task = (batch1, batch2, block, strip)."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal",
        attributes=GLUE,
    )  # fmt: skip
    ctx, begin, end = b.args
    lanes, size = lanes_of(element), size_of(element)
    strip_columns = tile_vectors() * lanes
    t, a0, b0, c0, behind = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(5)]
    f = Fields(b, t, FIELDS)
    m, n, k, brs, pieces = f.m, f.n, f.k, f.brs, f.pieces
    scratch = b.alloca(f"[{SCRATCH} x i8]")
    nothing = b.const(0, "ptr")
    copies = b.icmp("eq", f.pack, BY_ROWS)
    packs = b.icmp("sgt", f.pack, BY_ROWS)
    packer = b.inttoptr(f.pack, "ptr")
    kept = b.icmp("sgt", f.kept, 0)
    piece, pointers = b.alloca(f"[{PIECE_BYTES} x i8]"), b.alloca(f"[{MOST_POINTERS} x ptr]")
    with b.loop(0, b.mul(f.kept, 8), 8) as copy:
        b.store(b.load(b.gep(behind, copy.index), "ptr", 8), b.gep(pointers, copy.index), 8)
    b.store(piece, pointers, 8)
    pointers = b.select(kept, pointers, behind)
    epilogue = b.inttoptr(f.epilogue, "ptr")
    with b.loop(begin, end) as tasks:
        rest, strip = b.udiv(tasks.index, f.strips), b.urem(tasks.index, f.strips)
        rest, block = b.udiv(rest, f.blocks), b.urem(rest, f.blocks)
        outer, inner = b.udiv(rest, f.batch2), b.urem(rest, f.batch2)
        column, block_rows = b.mul(strip, strip_columns), f.block_rows
        columns = b.sub(n, column)
        full = b.icmp("sge", columns, strip_columns)
        columns = b.min(columns, strip_columns)
        tile = b.inttoptr(b.select(full, f.tile, f.last_tile), "ptr")
        width = b.and_(b.mul(b.add(columns, lanes - 1), size), -lanes * size)

        def place(base: Value, one: Value, two: Value, at: Value, step: Value) -> Value:
            base = b.gep(b.gep(base, b.mul(outer, one)), b.mul(inner, two))  # noqa: B023
            return b.gep(base, b.mul(at, step))

        bb = place(b0, f.b1, f.b2, column, f.bcs)
        with b.loop(0, pieces) as part_rows:
            number = part_rows.index
            row = b.add(b.mul(block, block_rows), b.mul(number, f.piece_rows))
            rows = b.min(f.piece_rows, b.sub(m, row))
            a = place(a0, f.a1, f.a2, row, f.ars)
            c = b.gep(place(c0, f.c1, f.c2, row, f.crs), b.mul(column, size))
            c = b.select(kept, piece, c)
            later = b.icmp("sgt", number, 0)  # B is packed already
            with b.if_(b.icmp("sgt", rows, 0)):
                # Once even for K = 0: it writes zeros.
                with b.loop(0, b.max(k, 1), f.depth) as parts:
                    depth = b.min(b.sub(k, parts.index), f.depth)
                    part_a = b.gep(a, b.mul(parts.index, f.acs))
                    part_b = b.gep(bb, b.mul(parts.index, brs))
                    old = b.or_(f.accumulate, b.zext(b.icmp("sgt", parts.index, 0), "i64"))
                    with b.if_(b.and_(packs, b.icmp("eq", number, 0))):
                        whole = b.mul(depth, f.segments)
                        b.call(packer, "void", t, part_b, scratch, whole, columns, width)
                    packed = b.or_(packs, b.and_(copies, later))
                    here, stride = b.select(packed, scratch, part_b), b.select(packed, width, brs)
                    copied = b.select(b.and_(copies, b.icmp("eq", number, 0)), scratch, nothing)
                    b.call(tile, "void", t, part_a, here, c, depth, rows, stride, old, copied)
                with b.if_(b.icmp("ne", f.epilogue, 0)):
                    at = b.add(b.mul(tasks.index, pieces), number)
                    b.call(epilogue, "void", pointers, at, b.add(at, 1))
    b.ret()


def _entry(module: Module) -> None:
    b = Builder(
        module, libraries.ENTRY,
        [("table", "ptr"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("behind", "ptr")],
        attributes=GLUE,
    )  # fmt: skip
    ctx = b.alloca("[5 x ptr]")
    for i, value in enumerate(b.args):
        b.store(value, b.gep(ctx, 8 * i), 8)
    f = Fields(b, b.args[0], FIELDS)
    tasks, grain = f.tasks, f.grain
    with b.if_(b.icmp("sgt", tasks, grain)) as wide:
        b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, tasks, grain)
    with wide.else_():
        b.call("task", "void", ctx, b.const(0, "i64"), tasks)
    b.ret()


def _packer_module(name: str) -> Module:
    layout, element = name.split("_")
    module = Module()
    if layout == "columns" and link.generates():
        _KnownPacker(module, element)
        return module
    b = Builder(module, libraries.ENTRY, _PACKER)
    (_pack_columns if layout == "columns" else _pack_elements)(b, element)
    return module


libraries.provide(PREFIX, written, direct=lambda rest: True)
libraries.provide(PACK_PREFIX, _packer_module, direct=lambda rest: True)
