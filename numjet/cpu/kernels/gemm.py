"""Matrix products as one library for each element type: symbol `nj_gemm_<type>`.

    void nj_gemm_float(ptr table, ptr a, ptr b, ptr c)        C = A·B, or C += A·B

The table (see `plan`) holds sizes, byte strides, how to cut the work into tasks and up to two
levels of batch loops, all known when a program is compiled. So that a program with ten products
compiles none of them, the library is a module of its own, compiled once and cached on disk.

A is read in place by broadcast loads, whatever its strides. B is packed in strips of up to NR
columns by K, unless it can be read in place. Tiles are 6 rows by 4 (2 with 16 registers) vectors,
or by one vector for the columns that are left; rows beyond the last are clamped to it and so
computed twice, columns are masked.
For: `dot` and `conv`. What would break it: C's columns not next to each other, or K·NR beyond the
scratch (K is cut at `k_block`).
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu import link, platform
from numjet.cpu.builder import Builder, Module, Value, const, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.common import (
    SCRATCH_BYTES,
    Fields,
    fused,
    lanes_of,
    prefix_mask,
    scratch_functions,
    size_of,
    table,
    transpose_block,
)

TILE_ROWS = 6
FIELDS = (
    "m",
    "n",
    "k",
    "ars",
    "acs",
    "brs",
    "bcs",
    "crs",
    "strips",
    "blocks",
    "block_rows",
    "tasks",
    "pack",
    "accumulate",
    "batch1",
    "a1",
    "b1",
    "c1",
    "batch2",
    "a2",
    "b2",
    "c2",
    "grain",
    "segments",
    "segment_step",
)
PACK_PREFIX = "nj_pack_"
IN_PLACE, ROWS = 0, 1  # how B is brought in; else the address of a function that packs it
PREFIX = "nj_gemm_"
# Below this many operations the pool costs more than it brings.
PARALLEL_FLOPS = 1_500_000


def registers() -> int:
    """Vector registers of the target."""
    host = link.target()
    return 32 if host.vector_bytes == 64 or not host.triple.startswith("x86_64") else 16


def tile_vectors() -> int:
    """Vectors in a tile's row: 24 or 12 accumulators."""
    return 4 if registers() == 32 else 2


def k_block(element: str) -> int:
    """Most of K that one packed strip holds."""
    return SCRATCH_BYTES // (tile_vectors() * lanes_of(element) * size_of(element))


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
) -> list[int | str]:
    """The table of a product. a, b: (row, column) strides in bytes; batches: up to two of
    (count, stride of a, of b, of c), the outer one first. segments: (count, stride of a): the
    depth is `count` times k, A jumps by the stride after each k; together at most `k_block`."""
    size, lanes = size_of(element), lanes_of(element)
    width = tile_vectors() * lanes
    strips = max(-(-n // width), 1)
    outer = [*[(1, 0, 0, 0)] * (2 - len(batches)), *batches]
    repeats = outer[0][0] * outer[1][0]
    flops = 2 * m * n * k * repeats * segments[0]
    wanted = 4 * platform.cpu_count()
    blocks = 1
    if flops >= PARALLEL_FLOPS and strips * repeats < wanted:
        blocks = max(1, min(-(-wanted // (strips * repeats)), m // 48))
    block_rows = -(-m // (blocks * TILE_ROWS)) * TILE_ROWS
    blocks = max(-(-m // block_rows), 1) if m else 0
    tasks = strips * blocks * repeats
    brs, bcs = b
    if bcs == size or n == 1:
        small = k * segments[0] * brs <= 1 << 15 or brs == width * size
        pack: int | str = ROWS
        if (
            n % lanes == 0
            and (block_rows <= 24 or small and block_rows <= 96)
            and k <= k_block(element)
        ):
            pack = IN_PLACE
    elif brs == size or k == 1:
        pack = f"{PACK_PREFIX}columns_{element}"
    else:
        pack = f"{PACK_PREFIX}elements_{element}"
    grain = 1 if flops >= PARALLEL_FLOPS else tasks
    if grain == 1 and flops // tasks < PARALLEL_FLOPS // 8:
        grain = max(1, min(tasks // wanted, PARALLEL_FLOPS // 8 // max(flops // tasks, 1)))
    values = {
        "m": m,
        "n": n,
        "k": k,
        "ars": a[0],
        "acs": a[1],
        "brs": brs,
        "bcs": bcs,
        "crs": crs,
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
    }
    return [values[name] for name in FIELDS]


def calls(
    b: Builder,
    element: str,
    values: Sequence[int | str],
    around: Sequence[tuple[int, int, int, int]],
    depths: Sequence[tuple[int, int]],
    pointers: Sequence[Value],
) -> None:
    """Write the calls with the table `values`: for all loops `around` (count, strides of a, b and
    c) and all offsets `depths` of a and b. pointers: a, b, c."""
    if not depths:
        return
    offsets = [(0, 0, 0)]
    for count, x, y, z in around:
        offsets = [(i + x * t, j + y * t, k + z * t) for i, j, k in offsets for t in range(count)]
    address = table(b.module, values)
    for x, y, z in offsets:
        for dx, dy in depths:
            moved = [
                b.gep(p, d) if d else p for p, d in zip(pointers, (x + dx, y + dy, z), strict=True)
            ]
            b.call(PREFIX + element, "void", address, *moved)


def module_text(element: str) -> str:
    """The library for `element` as LLVM IR."""
    module = Module()
    for count in (tile_vectors(), 1):
        _tiles(module, element, count)
    _pack_rows(module, element)
    scratch_functions(module)
    _task(module, element)
    _entry(module, element)
    return module.text()


def _tiles(module: Module, element: str, vectors: int) -> None:
    """@tiles_<v>(table, a, b, brs, c, k, rows, columns, old): a strip of `vectors` vectors.

    old (0 or 1): add to what C holds.
    """
    b = Builder(
        module,
        f"tiles_{vectors}",
        [
            ("table", "ptr"),
            ("a", "ptr"),
            ("b", "ptr"),
            ("brs", "i64"),
            ("c", "ptr"),
            ("k", "i64"),
            ("rows", "i64"),
            ("columns", "i64"),
            ("old", "i64"),
        ],
        linkage="internal",
    )
    t, a, source, brs, c, k, rows, columns, old = b.args
    lanes, size = lanes_of(element), size_of(element)
    kind = vector(element, lanes)
    field = Fields(b, t, FIELDS)
    ars, acs, crs = field.ars, field.acs, field.crs
    segments, segment_step = field.segments, field.segment_step
    mask = prefix_mask(b, b.sub(columns, (vectors - 1) * lanes), lanes)
    full = b.icmp("sge", columns, vectors * lanes)
    keep = b.splat(b.icmp("ne", old, 0), lanes)
    keep_last = b.and_(keep, mask)
    zero = const(0, kind)
    with b.loop(0, rows, TILE_ROWS) as tiles:
        last = b.sub(b.sub(rows, tiles.index), 1)
        a_rows, c_rows = [], []
        for r in range(TILE_ROWS):
            row = b.add(tiles.index, b.min(last, r) if r else b.const(0, "i64"))
            a_rows.append(b.gep(a, b.mul(row, ars)))
            c_rows.append(b.gep(c, b.mul(row, crs)))
        initial = []
        for r in range(TILE_ROWS):
            for v in range(vectors):
                at = b.gep(c_rows[r], v * lanes * size) if v else c_rows[r]
                initial.append(
                    b.masked_load(at, keep_last if v == vectors - 1 else keep, zero, size)
                )
        start = (b.const(0, "i64"), source, *initial)
        with b.loop(0, segments, carried=start, at_least_once=True) as part:
            with b.loop(0, k, carried=part.values) as steps:
                offset, here, *sums = steps.values
                columns_now = [
                    b.load(b.gep(here, v * lanes * size) if v else here, kind, size)
                    for v in range(vectors)
                ]
                for r in range(TILE_ROWS):
                    x = b.splat(b.load(b.gep(a_rows[r], offset), element, size), lanes)
                    for v in range(vectors):
                        place = r * vectors + v
                        sums[place] = fused(b, x, columns_now[v], sums[place])
                steps.yield_(b.add(offset, acs), b.gep(here, brs), *sums)
            following = b.add(part.values[0], segment_step)
            part.yield_(following, *steps.results[1:])
        sums = list(part.results[2:])
        for r in range(TILE_ROWS):
            for v in range(vectors - 1):
                b.store(
                    sums[r * vectors + v],
                    b.gep(c_rows[r], v * lanes * size) if v else c_rows[r],
                    size,
                )
        ends = [b.gep(c_rows[r], (vectors - 1) * lanes * size) for r in range(TILE_ROWS)]
        with b.if_(full) as whole:
            for r in range(TILE_ROWS):
                b.store(sums[r * vectors + vectors - 1], ends[r], size)
        with whole.else_():
            for r in range(TILE_ROWS):
                b.masked_store(sums[r * vectors + vectors - 1], ends[r], mask, size)
    b.ret()


def _packer(module: Module, name: str, linkage: str = "") -> Builder:
    """A function (table, from, to, k, columns, width): B's strip into rows of `width` bytes."""
    return Builder(
        module,
        name,
        [
            ("table", "ptr"),
            ("from", "ptr"),
            ("to", "ptr noalias"),
            ("k", "i64"),
            ("columns", "i64"),
            ("width", "i64"),
        ],
        linkage=linkage,
    )


def _pack_rows(module: Module, element: str) -> None:
    """Columns of B next to each other: copy vectors, the last one masked."""
    b = _packer(module, "pack_rows", "internal")
    t, source, to, k, columns, width = b.args
    lanes, size = lanes_of(element), size_of(element)
    kind = vector(element, lanes)
    brs = Fields(b, t, FIELDS).brs
    step = lanes * size
    last = b.sub(width, step)
    rest = b.sub(columns, b.div(last, size))
    mask = prefix_mask(b, rest, lanes)
    with b.loop(0, k) as rows:
        start = b.gep(source, b.mul(rows.index, brs))
        end = b.gep(to, b.mul(rows.index, width))
        with b.loop(0, last, step) as chunks:
            b.store(b.load(b.gep(start, chunks.index), kind, size), b.gep(end, chunks.index), step)
        b.store(
            b.masked_load(b.gep(start, last), mask, const(0, kind), size), b.gep(end, last), step
        )
    b.ret()


def _pack_columns(module: Module, element: str) -> None:
    """K next to each other: turn squares in registers. Writes K rounded up to a square."""
    b = _packer(module, libraries.ENTRY)
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


def _pack_elements(module: Module, element: str) -> None:
    """Any strides: element by element."""
    b = _packer(module, libraries.ENTRY)
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
    """@task(ctx, begin, end): ctx = (table, a, b, c). Task = (batch1, batch2, block, strip)."""
    b = Builder(
        module, "task", [("ctx", "ptr"), ("begin", "i64"), ("end", "i64")], linkage="internal"
    )
    ctx, begin, end = b.args
    lanes, size, vectors = lanes_of(element), size_of(element), tile_vectors()
    strip_columns = vectors * lanes
    t, a0, b0, c0 = [b.load(b.gep(ctx, 8 * i), "ptr", 8) for i in range(4)]
    f = Fields(b, t, FIELDS)
    m, n, k, ars, acs, brs, bcs, crs = f.m, f.n, f.k, f.ars, f.acs, f.brs, f.bcs, f.crs
    strips, blocks, block_rows, pack, accumulate = (
        f.strips,
        f.blocks,
        f.block_rows,
        f.pack,
        f.accumulate,
    )
    batch2, a1, b1, c1, a2, b2, c2 = f.batch2, f.a1, f.b1, f.c1, f.a2, f.b2, f.c2
    segments = f.segments
    packs = b.icmp("ne", pack, IN_PLACE)
    with b.if_(packs, otherwise=[b.const(0, "ptr")]) as needed:
        needed.yield_(b.call(Value("@take_scratch", "ptr"), "ptr"))
    scratch = needed.results[0]
    block_k = k_block(element)
    with b.loop(begin, end) as tasks:
        rest, strip = tasks.index, None
        strip = b.urem(rest, strips)
        rest = b.udiv(rest, strips)
        block = b.urem(rest, blocks)
        rest = b.udiv(rest, blocks)
        inner = b.urem(rest, batch2)
        outer = b.udiv(rest, batch2)
        row = b.mul(block, block_rows)
        rows = b.min(block_rows, b.sub(m, row))
        column = b.mul(strip, strip_columns)
        columns = b.min(b.sub(n, column), strip_columns)
        count = b.udiv(b.add(columns, lanes - 1), lanes)
        a = b.gep(b.gep(b.gep(a0, b.mul(outer, a1)), b.mul(inner, a2)), b.mul(row, ars))
        bb = b.gep(b.gep(b.gep(b0, b.mul(outer, b1)), b.mul(inner, b2)), b.mul(column, bcs))
        c = b.gep(b.gep(b.gep(c0, b.mul(outer, c1)), b.mul(inner, c2)), b.mul(row, crs))
        c = b.gep(c, b.mul(column, size))
        with b.loop(0, b.max(k, 1), block_k) as parts:  # once even for K = 0: it writes zeros
            depth = b.min(b.sub(k, parts.index), block_k)
            whole = b.mul(depth, segments)
            part_a = b.gep(a, b.mul(parts.index, acs))
            part_b = b.gep(bb, b.mul(parts.index, brs))
            old = b.or_(accumulate, b.zext(b.icmp("sgt", parts.index, 0), "i64"))
            width = b.mul(count, lanes * size)
            with b.if_(packs, otherwise=[part_b, brs]) as packed:
                with b.if_(b.icmp("eq", pack, ROWS)) as rowwise:
                    b.call("pack_rows", "void", t, part_b, scratch, whole, columns, width)
                with rowwise.else_():
                    packer = b.emit(f"inttoptr i64 {pack.ref} to ptr", "ptr")
                    b.call(packer, "void", t, part_b, scratch, whole, columns, width)
                packed.yield_(scratch, width)
            here, stride = packed.results
            with b.if_(b.icmp("eq", count, vectors)) as wide:
                b.call(
                    f"tiles_{vectors}", "void", t, part_a, here, stride, c, depth, rows, columns,
                    old,
                )  # fmt: skip
            with wide.else_(), b.loop(0, count) as single:
                offset = b.mul(single.index, lanes * size)
                rest = b.sub(columns, b.mul(single.index, lanes))
                b.call(
                    "tiles_1", "void", t, part_a, b.gep(here, offset), stride,
                    b.gep(c, offset), depth, rows, rest, old,
                )  # fmt: skip
    with b.if_(packs):
        b.call(Value("@give_scratch", "ptr"), "void", scratch)
    b.ret()


def _entry(module: Module, element: str) -> None:
    b = Builder(
        module, libraries.ENTRY, [("table", "ptr"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr")]
    )
    ctx = b.alloca("[4 x ptr]")
    for i, value in enumerate(b.args):
        b.store(value, b.gep(ctx, 8 * i), 8)
    f = Fields(b, b.args[0], FIELDS)
    tasks, grain = f.tasks, f.grain
    with b.if_(b.icmp("sgt", tasks, grain)) as wide:
        b.call("nj_parallel_for", "void", Value("@task", "ptr"), ctx, tasks, grain)
    with wide.else_():
        b.call("task", "void", ctx, b.const(0, "i64"), tasks)
    b.ret()


def start(element: str, values: Sequence[int | str]) -> None:
    """Begin to make what a product with the table `values` needs."""
    libraries.start(PREFIX + element, *[word for word in values if isinstance(word, str)])


def _packer_text(name: str) -> str:
    layout, element = name.split("_")
    module = Module()
    (_pack_columns if layout == "columns" else _pack_elements)(module, element)
    return module.text()


libraries.provide(PREFIX, module_text)
libraries.provide(PACK_PREFIX, _packer_text)
