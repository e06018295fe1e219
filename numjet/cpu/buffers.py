"""Buffer planning: liveness of slots, memory shared in place, one arena for a program.

`plan(program)` gives every arena slot its offset. Needs: every step's values have places. Keeps:
the steps, except that copies within one place are dropped by the emitter. A slot written before a
loop and used inside it stays alive to the loop's end. What would break it: a step that reads or
writes memory it does not list.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence

from numjet.cpu.graph import Val
from numjet.cpu.program import Apart, CopyStep, LoopStep, Program, Slot, Step, WhileStep, place_of

ALIGNMENT = 64


class _Life:
    """First and last time at which each slot is used."""

    def __init__(self) -> None:
        self.first: dict[Slot, int] = {}
        self.last: dict[Slot, int] = {}
        self.written: dict[Slot, int] = {}
        self.steps: list[tuple[int, Step]] = []
        self.time = 0

    def touch(self, val: Val, used: set[Slot], write: bool = False) -> None:
        slot = val.root()[0].place.slot
        self.first.setdefault(slot, self.time)
        self.last[slot] = self.time
        used.add(slot)
        if write:
            self.written.setdefault(slot, self.time)

    def block(self, steps: Sequence[Step]) -> set[Slot]:
        """Walk a block; returns the slots it uses."""
        used: set[Slot] = set()
        for step in steps:
            self.time += 1
            start = self.time
            self.steps.append((start, step))
            for val in step.reads:
                self.touch(val, used)
            held = {val.root()[0].place.slot for val in step.reads}
            for val in step.writes:
                self.touch(val, used, write=True)
            inner: set[Slot] = set()
            for block in step.blocks():
                inner |= self.block(block)
                if isinstance(step, WhileStep) and block is step.cond:
                    self.time += 1
                    self.touch(step.test, inner)
            if inner:
                if isinstance(step, WhileStep | LoopStep):
                    self.time += 1
                    for slot in inner | held:
                        if self.first[slot] <= start:
                            self.last[slot] = self.time
                used |= inner
        return used


def _whole(val: Val) -> Slot | None:
    """The slot of which `val` is all, or None."""
    root, start, terms = val.root()
    place = root.place
    if start or terms or place.offset or place.terms or place.slot.nbytes != val.nbytes:
        return None
    return place.slot


def _share(program: Program, life: _Life) -> None:
    """Let writes take over the memory of what dies at the same step."""
    first, last = life.first, life.last

    for time, step in life.steps:
        taken: set[Slot] = set()
        for write, read in step.inplace:
            target, source = _whole(write), _whole(read)
            if target is None or source is None or target.nbytes != source.nbytes:
                continue
            target, source = target.owner(), source.owner()
            if target is source or source in taken:
                continue
            if first.get(target) != time or last.get(source) != time:
                continue
            if source.kind == "input":
                if _donate(program, source, target):
                    last[source] = last[target]
                    taken.add(source)
            elif source.kind != "arena":
                continue
            elif target.kind == "arena":
                target.donor = source
                last[source] = last[target]
                taken.add(source)
            elif target.kind == "output" and isinstance(step, CopyStep):
                source.donor = target
                taken.add(source)

    for source in [program.args[k].place.slot for k in sorted(program.donated)]:
        for target in [v.place.slot for v in program.outs]:
            if last.get(source, 0) < first.get(target, 0) and _donate(program, source, target):
                break


def _donate(program: Program, source: Slot, target: Slot) -> bool:
    """Let a result lie in the memory of a donated argument, if dtype and size agree."""
    if target.kind != "output" or target.donor is not None or source.index not in program.donated:
        return False
    arg, out = program.args[source.index], program.outs[target.index]
    if (
        arg.dtype != out.dtype
        or arg.nbytes != out.nbytes
        or source.index in program.aliases.values()
    ):
        return False
    target.donor = source
    program.aliases[target.index] = source.index
    return True


class _Arena:
    """First fit by address over a free list."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []  # (offset, size), by offset
        self.end = 0

    def take(self, size: int) -> int:
        best = -1
        for k, (_, room) in enumerate(self.free):
            if room >= size and (best < 0 or room < self.free[best][1]):
                best = k
                if room == size:
                    break
        if best < 0:
            if self.free and self.free[-1][0] + self.free[-1][1] == self.end:
                offset, _ = self.free.pop()
            else:
                offset = self.end
            self.end = offset + size
            return offset
        offset, room = self.free.pop(best)
        if room > size:
            self.free.insert(best, (offset + size, room - size))
        return offset

    def give(self, offset: int, size: int) -> None:
        k = bisect.bisect(self.free, (offset, 0))
        if k < len(self.free) and self.free[k][0] == offset + size:
            size += self.free.pop(k)[1]
        if k and self.free[k - 1][0] + self.free[k - 1][1] == offset:
            k -= 1
            before = self.free.pop(k)
            offset, size = before[0], before[1] + size
        self.free.insert(k, (offset, size))


def plan(program: Program) -> None:
    """Give every arena slot of `program` an offset; sets `arena_bytes`."""
    life = _Life()
    life.block(program.steps)
    _share(program, life)
    slots = [s for s in life.first if s.kind == "arena" and s.donor is None]
    slots.sort(key=lambda s: life.first[s])
    memory = _Arena()
    busy: list[tuple[int, int, int, int]] = []  # (last use, tie, offset, size)
    total = 0
    for tie, slot in enumerate(slots):
        start = life.first[slot]
        while busy and busy[0][0] < start:
            _, _, offset, size = heapq.heappop(busy)
            memory.give(offset, size)
        size = -(-max(slot.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        total += size
        slot.offset = memory.take(size)
        heapq.heappush(busy, (life.last[slot], tie, slot.offset, size))
    program.arena_bytes = memory.end
    program.naive_bytes = total


def same_place(a: Val, b: Val) -> bool:
    """Whether two values lie at the same address (after planning)."""
    one, two = place_of(a), place_of(b)
    return (
        one.slot.owner() is two.slot.owner()
        and one.offset == two.offset
        and sorted([(id(c), _step(s)) for c, s in one.terms])
        == sorted([(id(c), _step(s)) for c, s in two.terms])
    )


def _step(stride: int | Apart) -> tuple[int, ...]:
    """What equal strides share."""
    return (stride,) if isinstance(stride, int) else (id(stride.here), id(stride.there))
