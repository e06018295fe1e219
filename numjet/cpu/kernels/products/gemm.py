"""Matrix products by one library for each element type, `gemm_task`: C = A·B, or C += A·B.

Its table (see `plan`) holds sizes, byte strides, how C is cut into pieces and up to two levels of
batch loops, all known when a program is compiled. So that a program with ten products compiles none
of them, the library is a module of its own, compiled once and cached on disk.

A is read in place by broadcast loads, whatever its strides. B is packed in strips of up to NR
columns by K, unless it can be read in place. Tiles are 6 rows by 4 (2 with 16 registers) vectors;
the columns that are left have a tile function of exactly their number, masked (`gemm_tiles`). The
last tile of some rows overlaps the one before it, or repeats the last row where it may not. Where
operands are beyond the second-level cache, each few rows of A are multiplied with several strips.
For: `dot` and `conv`. What would break it: C's columns not next to each other, or K·NR beyond the
scratch (K is cut at `k_block`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from numjet.base.record import NamedTuple, record
from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import (
    GLUE,
    Fields,
    lanes_of,
    prefix_mask,
    size_of,
    stored,
    table,
    transpose_block,
)
from numjet.cpu.kernels.products.gemm_task import GROUP, PREFIX
from numjet.cpu.kernels.products.gemm_tiles import (
    BY_ROWS,
    FIELDS,
    GENERAL,
    IN_PLACE,
    LARGE,
    ONCE,
    TILE_PREFIX,
    TILE_ROWS,
    k_block,
    tile_rows,
    tile_vectors,
)
from numjet.cpu.link import link
from numjet.cpu.program.steps import Function
from numjet.cpu.x86.whole.pack import pack_columns

PACK_PREFIX = "nj_pack_"
# Rows of a piece, with what follows a product run on each: about 48, so that its columns (256
# bytes) are in the nearest cache beside those of the operands that are read with it.
PIECE_ROWS = 48
# Rows of A that stay in the second-level cache for a large product's next strip, and bytes of its
# operands and result together, above which A and C are mostly not in that cache.
ROW_BYTES, LARGE_BYTES = 192 << 10, 3 << 20
# Of a depth beyond the first parts of the second are added up each, and then together: one after
# the other, 10^5 numbers lose 7 bits of 24.
PLAIN_DEPTH, PART_DEPTH = 4096, 1024
# Below this many operations the pool costs more than it brings.
PARALLEL_FLOPS = 1_500_000
# Operations that a thread takes at once, at least: some microseconds' worth.
CLAIM_FLOPS = 400_000


@record(frozen=True, slots=True)
class Epilogue:
    """Loops behind a product: `void name(ptr pointers, i64 piece, i64 end)`, written by `write`,
    are run on each piece of C by the thread that has finished it. Pieces are numbered in the order
    of batches, strips, rows. They have `count` pointers, of which C is number `place`; where C is
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
    """How C is cut: into strips of columns, and these into pieces of rows, which threads take one
    or some at a time. A product with nothing behind it has small ones, the last of which has what
    is left of the rows as well."""

    columns: int  # of a strip
    strips: int
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
    behind: bool = False,
) -> Cut:
    """The cut of a product (see `plan`); `behind`: one with loops behind it, whose pieces stay in
    the nearest cache."""
    size, lanes = size_of(element), lanes_of(element)
    width = tile_vectors() * lanes
    strips = max(-(-n // width), 1)
    heights = _heights(element, n)
    if k * segments[0] > k_block(element):
        # Whoever takes a piece packs all of its strip: as few as keep the cores busy.
        repeats = math.prod([batch[0] for batch in batches])
        cores, blocks = host.cpu_count(), 1
        wanted = -(-_wanted(b, size, n, strips * repeats) // (strips * repeats))
        if 2 * m * n * k * repeats * segments[0] >= PARALLEL_FLOPS and wanted > 1:
            blocks = max(1, min(wanted, m // 48))
            if strips * repeats * blocks < cores:
                few = -(-cores // (strips * repeats))
                blocks = max(1, min(few, m // (2 * heights[0])))
        rows = -(-m // (blocks * heights[0])) * heights[0]
    elif behind:
        rows = -(-m // (max(1, round(m / PIECE_ROWS)) * heights[0])) * heights[0]
    else:
        rows = math.lcm(*heights)
        return Cut(width, strips, max(m // rows, 1), rows)
    return Cut(width, strips, max(-(-m // max(rows, 1)), 1), rows)


def _heights(element: str, n: int) -> list[int]:
    """Rows of the tiles that a product of n columns needs."""
    whole, rest = divmod(-(-max(n, 1) // lanes_of(element)), tile_vectors())
    return [tile_rows(vectors) for vectors in (tile_vectors() if whole else 0, rest) if vectors]


def _large(size: int, m: int, n: int, k: int, a: tuple[int, int]) -> bool:
    """Whether a few rows of A at a time, once they are in the second-level cache, are multiplied
    with several strips; a: A's (row, column) strides. (Tiles of others prefetch an A whose
    rows lie next to each other, which takes more than is won here.)"""
    return a[1] == size and min(m, n, k) >= 256 and (m * k + k * n + m * n) * size >= LARGE_BYTES


def _wanted(b: tuple[int, int], size: int, n: int, strips: int) -> int:
    """How many pieces keep all cores busy."""
    cores = host.cpu_count()
    if b[1] != size and n > 1 and strips % cores == 0:
        return cores  # each would turn its strip of B anew
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
    width, strips, pieces, piece_rows = cut(
        element, m, n, k, b, batches, segments, epilogue is not None
    )
    outer = [*[(1, 0, 0, 0)] * (2 - len(batches)), *batches]
    repeats = outer[0][0] * outer[1][0]
    flops = 2 * m * n * k * repeats * segments[0]
    cores = host.cpu_count()
    runs = min(cores, flops // (PARALLEL_FLOPS // 4)) if flops >= PARALLEL_FLOPS else 1
    brs, bcs = b
    large = epilogue is None and segments[0] == 1 and _large(size, m, n, k, a)
    if bcs == size or n == 1:
        small = k * segments[0] * brs <= 1 << 15 or brs == width * size
        pack: int | str = BY_ROWS
        rows = m // max(runs // (strips * repeats), 1)  # that one thread multiplies with a strip
        if (rows <= 24 or small and rows <= 96) and not large:
            pack = IN_PLACE
    elif brs == size or k == 1:
        pack = f"{PACK_PREFIX}columns_{element}"
    else:
        pack = f"{PACK_PREFIX}elements_{element}"
    depth = max(k, 1) if pack == IN_PLACE else k_block(element) // segments[0]
    if pack == IN_PLACE and segments[0] == 1 and k > PLAIN_DEPTH:
        depth = PART_DEPTH
    last_rows = m - (pieces - 1) * piece_rows
    few_rows = min(last_rows, piece_rows) < max(_heights(element, n))
    general = general or accumulate or depth < k or segments[0] > 1 or few_rows
    kind = last_kind = GENERAL if general else ONCE
    group = 1
    if large:
        kind, last_kind = LARGE, GENERAL
        depth = min(depth, -(-k // (8 * -(-k // depth))) * 8)
        groups = -(-strips // GROUP)
        if groups * repeats >= cores:
            group, strips = GROUP, groups
        piece_rows = max(ROW_BYTES // (depth * size * TILE_ROWS), 1) * TILE_ROWS
        pieces = -(-m // piece_rows)
    tiles = [
        f"{TILE_PREFIX}{of}_{columns}_{element}" if columns else 0
        for of, columns in ((kind, width if n >= width else 0), (last_kind, n % width))
    ]
    kept = epilogue.count if epilogue is not None and epilogue.kept else 0
    count = strips * pieces * repeats if m else 0
    runs = max(min(runs, count), 1)
    piece_flops = 2 * piece_rows * min(n, width) * k * segments[0] * group
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
        "pack": pack,
        "accumulate": int(accumulate),
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
        "round": depth if large else max(k, 1),
        "every": count << 32,  # begin and end, as the pool takes of them
        "runs": runs,
        "least": -(-CLAIM_FLOPS // max(piece_flops, 1)) if runs > 1 else max(count, 1),
        "share": 4 * runs if runs > 1 else 1,
        "together": pieces if epilogue is None else 1,
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
    library = PREFIX + element
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
    name = f"product_{element}_{host.blake2(repr(words).encode()).hex()[:16]}"
    if epilogue is not None:
        name = f"product_with_{epilogue.name}"
    return Function(name, write)


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
    kind = vector(stored(element), side)
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
            place = b.gep(start, b.mul(b.min(line.index, last), bcs))
            value = b.load(place, stored(element), size)
            b.store(value, b.gep(end, b.mul(line.index, size)), size)
    b.ret()


def _packer_module(name: str) -> Module:
    layout, element = name.split("_")
    module = Module(link.features())
    if layout == "columns" and link.direct():
        _KnownPacker(module, element)
        return module
    b = Builder(module, libraries.ENTRY, _PACKER)
    (_pack_columns if layout == "columns" else _pack_elements)(b, element)
    return module


libraries.provide(PACK_PREFIX, _packer_module, direct=lambda rest: True)
