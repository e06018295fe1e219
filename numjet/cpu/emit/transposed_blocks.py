"""Blocks of memory whose rows are lanes, transposed in registers.

In a vector loop, an access contiguous along an inner loop and strided over the lanes would be
a gather or a scatter. A loop of kind "tile" moves a block of lanes × extent at once instead: one
contiguous vector a lane, and log2(lanes) rounds of shuffles. `Tile` is one such block: its
columns are vectors over the lanes, kept in registers when the loop is unrolled, else in
scratch. Only the emitter uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu.builder.builder import Builder, Value, vector
from numjet.cpu.builder.types import TYPES
from numjet.cpu.loops.index import LoopVar


class Tile:
    """The columns of one block, by the value of the tile loop's variable."""

    def __init__(self, b: Builder, var: LoopVar, element: str, lanes: int, unrolled: bool):
        self.var, self.type, self.width = var, vector(element, lanes), var.extent
        self.columns: list[Value | None] = [None] * self.width
        self.place = None if unrolled else b.alloca(self.type, self.width, 64)
        # Columns lie one behind the other, a vector each.
        self.align = min(64, lanes * TYPES[element].bits // 8)

    def _slot(self, b: Builder, column: Value | int) -> Value:
        assert self.place is not None
        return b.gep(self.place, column, self.type)

    def fill(self, b: Builder, columns: Sequence[Value]) -> None:
        """Set all columns."""
        for k, x in enumerate(columns):
            if self.place is None:
                self.columns[k] = x
            else:
                b.store(x, self._slot(b, k), self.align)

    def get(self, b: Builder, vars: dict[LoopVar, tuple[Value | None, int]]) -> Value:
        """The column at the loop's present position."""
        index, offset = vars[self.var]
        if index is None and self.place is None:
            found = self.columns[offset]
            assert found is not None
            return found
        return b.load(self._slot(b, offset if index is None else index), self.type)

    def put(
        self, b: Builder, value: Value, vars: dict[LoopVar, tuple[Value | None, int]]
    ) -> None:
        """Set the column at the loop's present position."""
        index, offset = vars[self.var]
        if index is None and self.place is None:
            self.columns[offset] = value
        else:
            b.store(value, self._slot(b, offset if index is None else index), self.align)

    def all(self, b: Builder) -> list[Value]:
        """Every column, after the loop."""
        if self.place is not None:
            return [b.load(self._slot(b, k), self.type, self.align) for k in range(self.width)]
        assert all(x is not None for x in self.columns)
        return [x for x in self.columns if x is not None]


def transpose(b: Builder, rows: Sequence[Value], lanes: int) -> list[Value]:
    """`lanes` vectors of `lanes` elements transposed; missing rows are unspecified."""
    type = rows[0].type
    rows = [*rows, *[Value("poison", type)] * (lanes - len(rows))]
    if lanes * TYPES[TYPES[type].element].bits != 256:
        return _zipped(b, rows, lanes, 1)
    # An instruction of AVX2 zips inside each half of a register: half of the rows at a time, and
    # then the halves are exchanged.
    half = lanes // 2
    first, second = [_zipped(b, rows[k : k + half], half, 2) for k in (0, half)]
    low = [*range(half), *range(lanes, lanes + half)]
    high = [k + half for k in low]
    pairs = list(zip(first, second, strict=True))
    return [_zip(b, x, y, order) for order in (low, high) for x, y in pairs]


def _zipped(b: Builder, rows: Sequence[Value], count: int, blocks: int) -> list[Value]:
    """`count` vectors of `count` elements transposed, in each of so many blocks of their lanes."""
    half, lanes = count // 2, count * blocks
    starts = range(0, lanes, count)
    low = [start + k // 2 + k % 2 * lanes for start in starts for k in range(count)]
    high = [k + half for k in low]
    for _ in range(count.bit_length() - 1):
        # Zipping row k with row k + half, over and over, moves row bits into the lanes.
        rows = [
            _zip(b, rows[k // 2], rows[k // 2 + half], high if k % 2 else low)
            for k in range(count)
        ]
    return list(rows)


def _zip(b: Builder, x: Value, y: Value, order: list[int]) -> Value:
    if x.ref == "poison" and y.ref == "poison":
        return x
    return b.shuffle(x, y, order)


def picked(b: Builder, vectors: Sequence[Value], places: Sequence[int]) -> list[Value]:
    """Of each two vectors these elements."""
    pairs = zip(vectors[::2], vectors[1::2], strict=True)
    return [b.shuffle(x, y, places) for x, y in pairs]


def deinterleave(b: Builder, vectors: Sequence[Value], lanes: int) -> list[Value]:
    """Consecutive vectors of records to one vector a field; as many fields as vectors. An even
    number of fields is two records of half as many, of every second field."""
    fields = len(vectors)
    columns = []
    if fields % 2 == 0:
        halves = [
            deinterleave(b, picked(b, vectors, range(odd, 2 * lanes, 2)), lanes) for odd in (0, 1)
        ]
        return [x for pair in zip(*halves, strict=True) for x in pair]
    for c in range(fields):
        places = [c + fields * k for k in range(lanes)]
        made = vectors[0]
        for v in range(1, fields):
            made = b.shuffle(made, vectors[v], [
                lanes + p % lanes if p // lanes == v
                else -1 if p // lanes > v else (p if v == 1 else k)
                for k, p in enumerate(places)
            ])  # fmt: skip
        columns.append(made)
    return columns


def interleave(b: Builder, columns: Sequence[Value], lanes: int) -> list[Value]:
    """One vector a field to consecutive vectors of records."""
    fields = len(columns)
    vectors = []
    if fields % 2 == 0:
        halves = [interleave(b, columns[odd::2], lanes) for odd in (0, 1)]
        low = [k // 2 + k % 2 * lanes for k in range(lanes)]
        high = [p + lanes // 2 for p in low]
        for x, y in zip(*halves, strict=True):
            vectors += [b.shuffle(x, y, low), b.shuffle(x, y, high)]
        return vectors
    for v in range(fields):
        places = [divmod(v * lanes + k, fields) for k in range(lanes)]  # (record, field)
        made = columns[0]
        for c in range(1, fields):
            made = b.shuffle(made, columns[c], [
                lanes + record if field == c
                else -1 if field > c else (record if c == 1 else k)
                for k, (record, field) in enumerate(places)
            ])  # fmt: skip
        vectors.append(made)
    return vectors
