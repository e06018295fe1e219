"""The rows of a product's tile: wide vectors that code generation splits over registers.

A row of 64 floats is one value of 64 lanes and not four of 16, which makes a quarter of the text
to write and to parse for the same machine code. Parts have a power of two of vectors each: others
are widened by code generation, which takes ten times as long. For: `gemm` and `small`. What would
break it: more values than the target has registers, which would be spilled in the innermost loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.cpu.builder.builder import Builder, Value, const, const_lanes, vector
from numjet.cpu.kernels.idioms import FOURS, PAIRS, fused, lanes_of, size_of, stored
from numjet.cpu.kernels.products.packed import multiply_add


class Line:
    """`columns` neighbouring elements as vectors; the lanes beyond them are masked."""

    def __init__(self, element: str, columns: int) -> None:
        lanes = lanes_of(element)
        self.element, self.size = element, size_of(element)
        self.vectors = -(-columns // lanes)
        self.nbytes = self.vectors * lanes * self.size
        self.kinds: list[str] = []
        self.offsets: list[int] = []
        at = 0
        while at < self.vectors:
            width = 1 if element in (PAIRS, FOURS) else 1 << ((self.vectors - at).bit_length() - 1)
            self.kinds.append(vector(stored(element), width * lanes))
            self.offsets.append(at * lanes * self.size)
            at += width
        inside = columns - self.offsets[-1] // self.size
        width *= lanes
        self.mask = (
            const_lanes([j < inside for j in range(width)], "i1") if inside < width else None
        )

    def zeros(self) -> list[Value]:
        """A line of zeros."""
        return [const(0, kind) for kind in self.kinds]

    def load(self, b: Builder, at: Value) -> list[Value]:
        """The line at an address; masked lanes are zeros and are not read."""
        found = []
        for kind, offset in zip(self.kinds, self.offsets, strict=True):
            place = b.gep(at, offset) if offset else at
            if self.mask is None or offset < self.offsets[-1]:
                found.append(b.load(place, kind, self.size))
            else:
                found.append(b.masked_load(place, self.mask, const(0, kind), self.size))
        return found

    def store(self, b: Builder, line: Sequence[Value], at: Value, masked: bool = True) -> None:
        """Write a line; its last lanes too unless `masked`."""
        for x, offset in zip(line, self.offsets, strict=True):
            place = b.gep(at, offset) if offset else at
            if self.mask is None or offset < self.offsets[-1] or not masked:
                b.store(x, place, self.size)
            else:
                b.masked_store(x, place, self.mask, self.size)

    def multiply(
        self, b: Builder, rows: Sequence[Value], columns: Value, sums: Sequence[Value]
    ) -> list[Value]:
        """The sums (row by row) plus each element at the addresses `rows` times the line at
        `columns`."""
        parts, found = self.load(b, columns), []
        for r, row in enumerate(rows):
            x = b.load(row, stored(self.element), self.size)
            for v, y in enumerate(parts):
                lanes = int(y.type[1:].partition(" ")[0])
                wide, sum_ = b.splat(x, lanes), sums[r * len(parts) + v]
                if self.element in (PAIRS, FOURS):
                    found.append(multiply_add(b, self.element, wide, y, sum_, lanes))
                else:
                    found.append(fused(b, wide, y, sum_))
        return found
