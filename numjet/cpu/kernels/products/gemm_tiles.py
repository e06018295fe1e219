"""The tiles of products: a strip of C, some rows at a time, in accumulators that stay in registers.

    void nj_tile_<kind>_<columns>_<type>(ptr table, ptr a, ptr b, ptr c, i64 depth, i64 rows,
                                         i64 brs, i64 old, ptr scratch)

Kinds: `once` where nothing is added to what C holds, `general`, and `large` for operands beyond the
second-level cache. Each is a library of its own, so that a program compiles those it needs, side by
side; the direct generator writes those of `once` and `general` itself (`x86.whole.product`,
`x86.whole.segments`). For: `gemm`, whose tables (`FIELDS`) they read. What would break it: a tile
that does not fit the registers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import Fields, lanes_of, size_of
from numjet.cpu.kernels.products.tiles import Line
from numjet.cpu.link import link
from numjet.cpu.x86.whole import product, segments
from numjet.cpu.x86.whole.tiles import AHEAD, Strip

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
    "segments",
    "segment_step",
    "depth",
    "tile",
    "last_tile",
    "pieces",
    "piece_rows",
    "epilogue",
    "kept",
    "group",
    "round",
    "every",
    "runs",
    "least",
    "share",
    "together",
)
TILE_PREFIX = "nj_tile_"
ONCE, GENERAL, LARGE = "once", "general", "large"
IN_PLACE, BY_ROWS = 0, 1  # how B is brought in; else the address of a function that packs it
# Packed strips lie on the stack (threads have 512 KB at least) and in a second-level cache.
SCRATCH = 1 << 18
# Steps of the depth between which a large tile prefetches lines, and after how many for the next
# row of C. (More prefetches or other places of them, and code generation spills sums.)
STEPS, STEPS_PER_ROW = 4, 32


def tile_vectors() -> int:
    """Vectors in a tile's row: 24 or 12 accumulators."""
    return 4 if link.registers() == 32 else 2


def k_block(element: str) -> int:
    """Most of K that one packed strip holds."""
    return SCRATCH // (tile_vectors() * lanes_of(element) * size_of(element))


def tile_rows(vectors: int) -> int:
    """Rows of a tile by its vectors: as many accumulators as leave room for A and B."""
    if link.registers() == 32:
        return {4: TILE_ROWS}.get(vectors, 8)
    return {2: TILE_ROWS}.get(vectors, 8)


def _module(name: str) -> Module:
    kind, columns, element = name.split("_")
    module = Module(link.features())
    if kind != LARGE and element in _FLOATS and link.direct():
        _Known(module, element, int(columns), kind == GENERAL)
        return module
    b = Builder(module, libraries.ENTRY, _ARGUMENTS)
    if kind == LARGE:
        _large(b, element, int(columns))
    else:
        _tiles(b, element, int(columns), kind == GENERAL)
    return module


_FLOATS = ("float", "double")  # whose strips the direct generator knows
_ARGUMENTS = [
    ("table", "ptr"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("depth", "i64"),
    ("rows", "i64"), ("brs", "i64"), ("old", "i64"), ("scratch", "ptr"),
]  # fmt: skip


class _Known(Builder):
    """A strip that the direct generator knows; IR only for LLVM."""

    def __init__(self, module: Module, element: str, columns: int, general: bool) -> None:
        super().__init__(module, libraries.ENTRY, _ARGUMENTS)
        rows = tile_rows(-(-columns // lanes_of(element)))
        fields = [8 * FIELDS.index(name) for name in ("ars", "acs", "crs")]
        known = Strip(size_of(element), columns, rows, *fields)
        if general:
            count, step = (8 * FIELDS.index(name) for name in ("segments", "segment_step"))
            self.whole = functools.partial(segments.strip, p=known, segments=count, step=step)
        else:
            self.whole = functools.partial(product.strip, p=known)
        self.element, self.columns, self.general = element, columns, general

    def body(self) -> list[str]:
        if not self.lines:
            _tiles(self, self.element, self.columns, self.general)
        return super().body()


def _copied(
    b: Builder, line: Line, source: Value, brs: Value, lines: Value, scratch: Value
) -> tuple[Value, Value]:
    """Copy B's rows next to each other unless `scratch` is null: where they are, their stride."""
    with b.if_(b.icmp("ne", scratch, 0), otherwise=[source, brs]) as packs:
        with b.loop(0, lines, carried=[source, scratch]) as copy:
            here, to = copy.values
            line.store(b, line.load(b, here), to, masked=False)
            copy.yield_(b.gep(here, brs), b.gep(to, line.nbytes))
        packs.yield_(scratch, b.const(line.nbytes, "i64"))
    return packs.results[0], packs.results[1]


def _tiles(b: Builder, element: str, columns: int, general: bool) -> None:
    """One strip of C, `columns` wide, tile by tile; the vectors' last lanes are masked.

    old (0 or 1): add to what C holds. scratch (or null): where the rows of B are copied to first.
    Unless `general`, old is 0, there is one segment, and there are enough rows for the last tile to
    overlap the one before it.
    """
    t, a, source, c, depth, rows, brs, old, scratch = b.args
    line = Line(element, columns)
    height = tile_rows(line.vectors)
    field = Fields(b, t, FIELDS)
    ars, acs, crs = field.ars, field.acs, field.crs
    ahead = b.mul(acs, AHEAD)
    if general:
        count, segment_step = field.segments, field.segment_step
    lines = b.mul(depth, count) if general else depth
    source, stride = _copied(b, line, source, brs, lines, scratch)
    with b.loop(0, rows, height) as tiles:
        if general:
            row, left = tiles.index, b.sub(rows, tiles.index)
            there = [b.icmp("sgt", left, r) for r in range(1, height)]
        else:
            row = b.min(tiles.index, b.sub(rows, height))

        def each_row(base: Value, step: Value) -> list[Value]:
            """The addresses of the tile's rows; in general those beyond the last are the last."""
            found = [b.gep(base, b.mul(row, step))]  # noqa: B023
            for r in range(height - 1):
                by = b.select(there[r], step, 0) if general else step  # noqa: B023
                found.append(b.gep(found[-1], by))
            return found

        a_rows = each_row(a, ars)

        def add_up(offset: Value, here: Value, sums: Sequence[Value]) -> tuple[Value, ...]:
            """Add `depth` steps from `offset` in A and from the address `here` on."""
            with b.loop(0, depth, carried=(offset, here, *sums)) as steps:
                offset, here, *sums = steps.values
                places = [b.gep(x, offset) for x in a_rows]  # noqa: B023
                b.prefetch(b.gep(places[0], ahead))
                sums = line.multiply(b, places, here, sums)
                steps.yield_(b.add(offset, acs), b.gep(here, stride), *sums)
            return steps.results

        start = (b.const(0, "i64"), source, *line.zeros() * height)
        if general:
            with b.loop(0, count, carried=start, at_least_once=True) as part:
                offset, here, *sums = part.values
                _, *ends = add_up(offset, here, sums)
                part.yield_(b.add(offset, segment_step), *ends)
            sums = list(part.results[2:])
            c_rows = each_row(c, crs)
            with b.if_(b.icmp("ne", old, 0), otherwise=sums) as more:
                before = [x for place in c_rows for x in line.load(b, place)]
                more.yield_(*[b.add(x, y) for x, y in zip(sums, before, strict=True)])
            sums = list(more.results)
        else:
            sums = list(add_up(start[0], source, start[2:])[2:])
            c_rows = each_row(c, crs)
        parts = len(line.kinds)
        for r, place in enumerate(c_rows):
            line.store(b, sums[r * parts : (r + 1) * parts], place)
    b.ret()


def _large(b: Builder, element: str, columns: int) -> None:
    """As `_tiles` for one segment, prefetching the lines of C between the first steps of the depth:
    when they come all at once, those of B have to wait (2 % of the time)."""
    t, a, source, c, depth, rows, brs, old, scratch = b.args
    line = Line(element, columns)
    height = tile_rows(line.vectors)
    field = Fields(b, t, FIELDS)
    ars, acs, crs = field.ars, field.acs, field.crs
    source, stride = _copied(b, line, source, brs, depth, scratch)
    whole = b.and_(depth, -STEPS)
    fetching = b.min(whole, height * STEPS_PER_ROW)
    with b.loop(0, rows, height) as tiles:
        left = b.sub(rows, tiles.index)

        def each_row(base: Value, step: Value) -> list[Value]:
            """The addresses of the tile's rows; those beyond the last are the last."""
            found = [b.gep(base, b.mul(tiles.index, step))]  # noqa: B023
            for r in range(1, height):
                by = b.select(b.icmp("sgt", left, r), step, 0)  # noqa: B023
                found.append(b.gep(found[-1], by))
            return found

        a_rows, c_rows = each_row(a, ars), each_row(c, crs)

        def multiply(values: Sequence[Value]) -> tuple[Value, ...]:
            offset, here, *sums = values
            places = [b.gep(x, offset) for x in a_rows]  # noqa: B023
            sums = line.multiply(b, places, here, sums)
            return b.add(offset, acs), b.gep(here, stride), *sums

        zero = b.const(0, "i64")
        start = (zero, source, *line.zeros() * height)
        with b.loop(0, fetching, STEPS, carried=start) as first:
            values = first.values
            line_of_c = b.gep(c_rows[0], b.mul(b.udiv(first.index, STEPS_PER_ROW), crs))
            for step in range(STEPS):
                if step * host.CACHE_LINE < line.nbytes:
                    b.prefetch(b.gep(line_of_c, step * host.CACHE_LINE), locality=2)
                values = multiply(values)
            first.yield_(*values)
        with b.loop(fetching, whole, STEPS, carried=first.results) as some:
            values = some.values
            for _ in range(STEPS):
                values = multiply(values)
            some.yield_(*values)
        values = some.results
        with b.loop(whole, depth, carried=values) as few:
            few.yield_(*multiply(few.values))
        sums = few.results[2:]
        with b.if_(b.icmp("ne", old, 0), otherwise=sums) as more:
            before = [x for place in c_rows for x in line.load(b, place)]
            more.yield_(*[b.add(x, y) for x, y in zip(sums, before, strict=True)])
        parts = len(line.kinds)
        for r, place in enumerate(c_rows):
            line.store(b, more.results[r * parts : (r + 1) * parts], place)
    b.ret()


# Selected from lines, large tiles are a tenth to a quarter slower than LLVM's.
libraries.provide(
    TILE_PREFIX, _module,
    direct=lambda rest: not rest.startswith(LARGE) and rest.endswith(_FLOATS),
)
