"""Small arrays in vector registers: values are cells, read at patterns of elements.

A pattern is a tuple of flat element numbers, one a lane. `Registers.at(cell, pattern)` gives those
elements as one LLVM value (a scalar where all are the same one): a shuffle of registers, a load, or
the operation that makes them, computed at just these elements where that is cheaper than computing
the whole and shuffling. What does not change in a loop is written before it. For: `regions.small`,
which walks loops and branches. What would break it: code with branches of its own written
ahead of a loop (`Cell.depth` keeps it inside).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from numjet.core.memo import remembered
from numjet.cpu.builder.builder import TYPES, Builder, Value, vector
from numjet.cpu.builder.text import Line
from numjet.cpu.emit import values as ev

Pattern = tuple[int, ...]

# Scattered elements of memory are taken from whole registers, up to so many of them.
SHUFFLED_PARTS = 4
# Registers written to memory to be read at a place known at run time; in a larger array a part is
# better read and changed in place.
SPILLED_PARTS = 2
# Lines of LLVM IR beyond which a region is not small.
MOST_LINES = 1600


class NotSmall(Exception):
    """The region holds something that does not belong in registers."""


@remembered("parts of values in registers", 1024)
def parts_of(size: int, lanes: int) -> tuple[Pattern, ...]:
    """The patterns of the registers that hold a value of `size` elements in order.

    Lanes past the end repeat the last element, so that no operation meets values of its own there.
    """
    if size == 1:
        return ((0,),)
    found = []
    for start in range(0, size, lanes):
        width = lanes
        while width > 2 and width // 2 >= size - start:
            width //= 2
        found.append(tuple([min(start + k, size - 1) for k in range(width)]))
    return tuple(found)


def lone(pattern: Pattern, parts: Sequence[Pattern]) -> bool:
    """Whether `pattern` is the only element of the last register."""
    return len(pattern) == 1 and pattern[0] == parts[-1][0] == parts[-1][-1]


class Cell:
    """A value of a region. `depth`: the frame in which it changes; `again`: what an element costs
    at a pattern that no register holds; `chain`: how many cells one behind the other may have to be
    computed before it is."""

    depth = 0
    again = 0
    chain = 0

    def __init__(self, shape: Sequence[int], dtype: np.dtype, depth: int) -> None:
        self.shape, self.dtype, self.depth = tuple(shape), np.dtype(dtype), depth
        self.size = math.prod(shape)

    def find(self, r: Registers, pattern: Pattern) -> Value:
        """Write the code for the elements of `pattern`."""
        raise NotImplementedError


class Literal(Cell):
    """A constant in every element."""

    def __init__(self, value: Any, dtype: np.dtype) -> None:
        super().__init__((), dtype, 0)
        self.value = value

    def find(self, r: Registers, pattern: Pattern) -> Value:
        return ev.constant(r.b, self.value.item(), self.dtype)


class Memory(Cell):
    """An array in memory that nobody writes while the frame of `depth` lasts."""

    def __init__(self, pointer: Value, shape: Sequence[int], dtype: np.dtype, depth: int) -> None:
        super().__init__(shape, dtype, depth)
        self.pointer, self.element = pointer, ev.memory_type(self.dtype)

    def find(self, r: Registers, pattern: Pattern) -> Value:
        b, size = r.b, len(pattern)
        if size == 1:
            return self.read(r, pattern, None)
        low, high = min(pattern), max(pattern)
        if high - low < size <= self.size:
            start = min(low, self.size - size)
            whole = self._load(r, self._place(r, start, None), size)
            return pick(b, [whole], [[(0, p - start) for p in pattern]], size)
        parts = parts_of(self.size, r.lanes)
        if len(parts) <= SHUFFLED_PARTS and pattern not in parts:
            return r.shuffled(self, parts, pattern)
        return self.read(r, pattern, None)

    def read(self, r: Registers, pattern: Pattern, offset: Value | None) -> Value:
        """The elements `pattern` after `offset`, every one of which is there."""
        b, size = r.b, len(pattern)
        first = pattern[0]
        if size == 1:
            raw = b.load(self._place(r, first, offset), self.element)
            return ev.from_memory(b, raw, self.dtype)
        if all(p == first + k for k, p in enumerate(pattern)):
            return self._load(r, self._place(r, first, offset), size)
        last = pattern[-1]
        count = last - first + 1
        kind = vector(self.element, size)
        if 0 < count < size and all(p == min(first + k, last) for k, p in enumerate(pattern)):
            mask = b.lanes([k < count for k in range(size)], "i1")
            raw = b.masked_load(self._place(r, first, offset), mask, b.const(0, kind))
            raw = b.shuffle(raw, None, [min(k, count - 1) for k in range(size)])
            return ev.from_memory(b, raw, self.dtype)
        base = self._place(r, 0, offset)
        places = b.gep(base, b.lanes(list(pattern), "i64"), self.element)
        return ev.from_memory(b, b.gather(places, kind), self.dtype)

    def gather(self, r: Registers, places: Value) -> Value:
        """The elements at places known at run time, one a lane."""
        b, lanes = r.b, TYPES[places.type].lanes
        pointers = b.gep(self.pointer, places, self.element)
        return ev.from_memory(b, b.gather(pointers, vector(self.element, lanes)), self.dtype)

    def _place(self, r: Registers, start: int, offset: Value | None) -> Value:
        address = self.pointer
        if offset is not None:
            address = r.b.gep(address, offset, self.element)
        return r.b.gep(address, start * self.dtype.itemsize) if start else address

    def _load(self, r: Registers, address: Value, size: int) -> Value:
        raw = r.b.load(address, vector(self.element, size))
        return ev.from_memory(r.b, raw, self.dtype)


class Held(Cell):
    """A value in registers."""

    again = 1

    def __init__(
        self, parts: Sequence[Value], shape: Sequence[int], dtype: np.dtype, depth: int
    ) -> None:
        super().__init__(shape, dtype, depth)
        self.parts = list(parts)

    def find(self, r: Registers, pattern: Pattern) -> Value:
        lanes = r.lanes
        whole = parts_of(self.size, lanes)
        if pattern in whole:
            # As it is, also where the last element is repeated: of such shuffles one behind the
            # other, of 64 bytes, LLVM's selection does not end (20.1, AVX-512 VBMI).
            return self.parts[whole.index(pattern)]
        return pick(r.b, self.parts, [[(p // lanes, p % lanes) for p in pattern]], len(pattern))


def pick(
    b: Builder, parts: Sequence[Value], places: Sequence[Sequence[tuple[int, int]]], size: int
) -> Value:
    """The lanes `places[0]`, (register, lane) each, as one register (a scalar when it is one)."""
    wanted = places[0]
    if size == 1:
        part = parts[wanted[0][0]]
        return b.extract(part, wanted[0][1]) if TYPES[part.type].lanes else part
    used = sorted({k for k, _ in wanted})
    if len(used) == 1:
        part, mask = parts[used[0]], [lane for _, lane in wanted]
        if TYPES[part.type].lanes == size and mask == list(range(size)):
            return part
        return b.shuffle(part, None, mask)
    width = max(TYPES[parts[k].type].lanes for k in used)
    if len(used) > 2:
        width = max(width, size)
    wide = {k: _widened(b, parts[k], width) for k in used}
    one, two = used[:2]
    mask = [{one: lane, two: width + lane}.get(k, -1) for k, lane in wanted]
    if len(used) == 2:
        return b.shuffle(wide[one], wide[two], mask)
    mask += [-1] * (width - size)
    total = b.shuffle(wide[one], wide[two], mask)
    for third in used[2:]:
        for lane, (k, _) in enumerate(wanted):
            if mask[lane] >= 0:
                mask[lane] = lane
            elif k == third:
                mask[lane] = width + wanted[lane][1]
        total = b.shuffle(total, wide[third], mask)
    return total if width == size else b.shuffle(total, None, range(size))


def _widened(b: Builder, x: Value, width: int) -> Value:
    lanes = TYPES[x.type].lanes
    if lanes == width:
        return x
    return b.shuffle(x, None, [*range(lanes), *[-1] * (width - lanes)])


class _Frame:
    """A loop or branch under construction: where it began, what is written before it."""

    __slots__ = ("hoisted", "memo", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.hoisted: list[Line] = []
        self.memo: dict[Any, Value] = {}


class Registers:
    """Reads cells in one function under construction."""

    def __init__(self, b: Builder, lanes: int) -> None:
        self.b, self.lanes = b, lanes
        self.frames = [_Frame(0)]
        self.now = 0  # the frame that code is being written into

    @property
    def top(self) -> int:
        return len(self.frames) - 1

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Code that runs in a loop or branch which begins here."""
        self.frames.append(_Frame(len(self.b.lines)))
        self.now = self.top
        yield
        frame = self.frames.pop()
        self.now = self.top
        self.b.lines[frame.start : frame.start] = frame.hoisted

    @contextmanager
    def _before(self, depth: int) -> Iterator[None]:
        """Write into the frame `depth`, before the loops that stand in it."""
        if depth >= self.now:
            yield
            return
        b, lines, now, label = self.b, self.b.lines, self.now, self.b.label
        known = b.known
        b.lines, self.now, b.known = self.frames[depth + 1].hoisted, depth, {}
        try:
            yield
        finally:
            b.lines, self.now, b.known = lines, now, known
        if b.label != label:
            raise NotSmall  # it has branches

    def at(self, cell: Cell, pattern: Pattern) -> Value:
        """The elements `pattern` of a cell: a vector, or a scalar where all are one."""
        if cell.size == 1:
            pattern = (0,)
        elif len(pattern) > 1 and pattern.count(pattern[0]) == len(pattern):
            pattern = pattern[:1]
        memo = self.frames[cell.depth].memo
        found = memo.get((cell, pattern))
        if found is None:
            if self.b.count > MOST_LINES:
                raise NotSmall
            with self._before(cell.depth):
                found = memo[cell, pattern] = cell.find(self, pattern)
        return found

    def parts(self, cell: Cell) -> list[Value]:
        """All elements in order, in registers."""
        return [
            self.widen(self.at(cell, p), len(p) if len(p) > 1 else 0)
            for p in parts_of(cell.size, self.lanes)
        ]

    def shuffled(self, cell: Cell, parts: Sequence[Pattern], pattern: Pattern) -> Value:
        """Elements taken from the registers that hold the whole value."""
        used = sorted({p // self.lanes for p in pattern})
        values = [self.widen(self.at(cell, parts[k]), len(parts[k])) for k in used]
        wanted = [(used.index(p // self.lanes), p % self.lanes) for p in pattern]
        return pick(self.b, values, [wanted], len(pattern))

    def memory(self, cell: Cell, most: int = SPILLED_PARTS) -> Memory:
        """A cell of up to `most` registers as memory, for reads at places known at run time."""
        if isinstance(cell, Memory):
            return cell
        memo = self.frames[cell.depth].memo
        place = memo.get((cell, "memory"))
        if place is None:
            if cell.size > most * self.lanes:
                raise NotSmall
            with self._before(cell.depth):
                place = memo[cell, "memory"] = self.spill(cell)
        return Memory(place, cell.shape, cell.dtype, cell.depth)

    def transposed(self, cell: Memory, step: int) -> Memory:
        """A copy of an array in which elements that were `step` apart are neighbours, made before
        the loops in which the array stays the same."""
        memo = self.frames[cell.depth].memo
        place = memo.get((cell, "transposed", step))
        if place is None:
            b, rows = self.b, cell.size // step
            with self._before(cell.depth):
                place = b.alloca("i8", cell.size * cell.dtype.itemsize)
                counts = (b.const(rows, "i64"), b.const(step, "i64"))
                b.call(self._turn(cell.element), "void", cell.pointer, place, *counts)
            memo[cell, "transposed", step] = place
        return Memory(place, (step, cell.size // step), cell.dtype, cell.depth)

    def _turn(self, element: str) -> str:
        """The function that transposes a matrix of rows × columns."""
        name = f"{self.b.name}_turn_{element}"
        if all(f.name != name for f in self.b.module.functions):
            arguments = [("from", "ptr"), ("to", "ptr"), ("rows", "i64"), ("columns", "i64")]
            b = Builder(self.b.module, name, arguments, linkage="internal")
            source, target, rows, columns = b.args
            with b.loop(0, columns) as outer:
                here = b.gep(target, b.mul(outer.index, rows), element)
                there = b.gep(source, outer.index, element)
                with b.loop(0, rows) as inner:
                    place = b.gep(there, b.mul(inner.index, columns), element)
                    b.store(b.load(place, element), b.gep(here, inner.index, element))
            b.ret()
        return name

    def spill(self, cell: Cell) -> Value:
        """Write a cell to the stack; the address."""
        place = self.b.alloca("i8", (cell.size + self.lanes) * cell.dtype.itemsize)
        self.write(cell, place, whole=True)
        return place

    def write(self, cell: Cell, place: Value, whole: bool = False) -> None:
        """Store all elements at `place`; `whole`: what lies behind the last may be overwritten."""
        b, start = self.b, 0
        for part in self.parts(cell):
            raw = ev.to_memory(b, part, cell.dtype)
            address = b.gep(place, start * cell.dtype.itemsize) if start else place
            width = TYPES[part.type].lanes or 1
            if start + width <= cell.size or whole:
                b.store(raw, address)
            else:
                mask = b.lanes([start + k < cell.size for k in range(width)], "i1")
                b.masked_store(raw, address, mask)
            start += width

    def widen(self, x: Value, lanes: int) -> Value:
        """`x` in every lane, unless it has lanes."""
        if TYPES[x.type].lanes or not lanes or lanes == 1:
            return x
        if x.ref[0] != "%":
            return Value(f"splat ({x.type} {x.ref})", vector(x.type, lanes))
        return self.b.splat(x, lanes)

    def alike(self, values: Sequence[Value]) -> list[Value]:
        """All as vectors if one is."""
        lanes = max([TYPES[v.type].lanes for v in values], default=0)
        return [self.widen(v, lanes) for v in values]
