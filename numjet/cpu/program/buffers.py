"""Buffer planning: liveness of slots, memory shared in place, one arena for a program.

`plan(program)` gives every arena slot its offset. Needs: every step's values have places. Keeps:
the steps, except that copies within one place are dropped by the emitter. A slot written before a
loop and used inside it stays alive to the loop's end; one that is written inside and used after is
alive from the loop's beginning. What would break it: a step that reads or writes memory it does not
list.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence

from numjet.base.config import check_bounds
from numjet.cpu.graph.nodes import Val
from numjet.cpu.program import fences
from numjet.cpu.program.steps import Apart, LoopStep, Program, Slot, Step, WhileStep, place_of

ALIGNMENT = 64
# Smaller results are not worth the search, and lie at addresses that are aligned to less.
LEAST_HOST = 1 << 16
# Slots are placed by size where placing them by time takes so much more than lives at once; it
# costs the square of their number.
SPLIT, MOST_BY_SIZE = 1.02, 400


class _Life:
    """First and last time at which each slot is used."""

    def __init__(self) -> None:
        self.first: dict[Slot, int] = {}
        self.last: dict[Slot, int] = {}
        self.steps: list[tuple[int, Step]] = []
        self.time = 0
        self.loops: list[int] = []  # when the loops around began
        self.home: dict[Slot, tuple[int, ...]] = {}  # the loops that a slot belongs to

    def touch(self, val: Val, used: set[Slot]) -> None:
        slot = val.root()[0].place.slot
        home = self.home.get(slot)
        if home is None:
            self.first[slot], self.home[slot] = self.time, tuple(self.loops)
        else:
            depth = 0
            for one, other in zip(home, self.loops):  # noqa: B905  the shorter one decides
                if one != other:
                    break
                depth += 1
            if depth < len(home):
                # It outlives a loop: each iteration leaves alone what earlier ones wrote.
                self.first[slot] = min(self.first[slot], home[depth])
                self.home[slot] = home[:depth]
        self.last[slot] = self.time
        used.add(slot)

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
                self.touch(val, used)
            inner: set[Slot] = set()
            loop = isinstance(step, WhileStep | LoopStep)
            if loop:
                self.loops.append(start)
            for block in step.blocks():
                inner |= self.block(block)
                if isinstance(step, WhileStep) and block is step.cond:
                    self.time += 1
                    self.touch(step.test, inner)
            if loop:
                self.loops.pop()
            if inner:
                if loop:
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
        pairs = step.inplace
        if program.donated and len(pairs) > 1:
            # A result lies in a donated argument rather than a temporary in the result.
            pairs = sorted(pairs, key=lambda pair: pair[1].root()[0].place.slot.kind != "input")
        for write, read in pairs:
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
            elif target.kind == "output" and target.donor is None:
                source.donor = target
                first[target] = min(time, first[source])
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


class _Memory:
    """Best fit over a free list; `limit` None: it grows as needed."""

    def __init__(self, limit: int | None = None) -> None:
        self.free: list[tuple[int, int]] = []  # (offset, size), by offset
        self.end = 0
        if limit is not None:
            self.free.append((0, limit))
        self.grows = limit is None

    def take(self, size: int) -> int:
        """Offset of `size` free bytes; -1 where there are none."""
        best = -1
        for k, (_, room) in enumerate(self.free):
            if room >= size and (best < 0 or room < self.free[best][1]):
                best = k
                if room == size:
                    break
        if best < 0:
            if not self.grows:
                return -1
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
    """Give every arena slot of `program` an offset; sets `arena_bytes`.

    Temporaries that are dead before a result is first written lie in the result's memory.
    """
    life = _Life()
    life.block(program.steps)
    life.time += 1
    for val in program.outs:
        life.touch(val, set())
    _share(program, life)
    if check_bounds.value:
        _fence(program, life)
        return
    hosts = _hosts(program, life)
    slots = [s for s in life.first if s.kind == "arena" and s.donor is None]
    slots.sort(key=lambda s: life.first[s])
    arena = _Memory()
    inside: list[tuple[Slot, int]] = []  # slots in the arena, and their sizes
    busy: list[tuple[int, int, _Memory, int, int]] = []  # (last use, tie, where, offset, size)
    for tie, slot in enumerate(slots):
        start, last = life.first[slot], life.last[slot]
        while busy and busy[0][0] < start:
            _, _, memory, offset, size = heapq.heappop(busy)
            memory.give(offset, size)
        size = -(-max(slot.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        slot.offset = -1
        for begin, host, memory in hosts:
            if last < begin and size <= host.nbytes:
                slot.offset = memory.take(size)
                if slot.offset >= 0:
                    slot.kind, slot.index = host.kind, host.index
                    break
        if slot.offset < 0:
            memory = arena
            slot.offset = arena.take(size)
            inside.append((slot, size))
        heapq.heappush(busy, (last, tie, memory, slot.offset, size))
    program.arena_bytes = _by_size(inside, life, arena.end)


def _fence(program: Program, life: _Life) -> None:
    """Give each slot memory of its own, with a page behind it that nobody may touch."""
    slots = [s for s in life.first if s.kind == "arena" and s.donor is None]
    sizes = [slot.nbytes for slot in slots]
    offsets, program.guards, program.arena_bytes = fences.place(sizes)
    program.temporaries = list(zip(offsets, sizes, strict=True))
    for slot, offset in zip(slots, offsets, strict=True):
        slot.offset = offset


def _by_size(slots: list[tuple[Slot, int]], life: _Life, end: int) -> int:
    """Place the largest slots first where this takes fewer than `end` bytes; returns the end.

    In order of time, small slots may split the room of large ones that come later.
    """
    if len(slots) > MOST_BY_SIZE or end <= _least(slots, life) * SPLIT:
        return end
    placed: list[tuple[int, int, int, int]] = []  # (offset, size, first, last), by offset
    offsets = []
    highest = 0
    for slot, size in sorted(slots, key=lambda pair: -pair[1]):
        first, last = life.first[slot], life.last[slot]
        offset = at = 0
        room = -1
        for begin, taken, one, other in placed:
            if other < first or one > last:
                continue
            if size <= begin - at and (room < 0 or begin - at < room):
                offset, room = at, begin - at
            at = max(at, begin + taken)
        if room < 0:
            offset = at
        bisect.insort(placed, (offset, size, first, last))
        offsets.append((slot, offset))
        highest = max(highest, offset + size)
    if highest >= end:
        return end
    for slot, offset in offsets:
        slot.offset = offset
    return highest


def _least(slots: list[tuple[Slot, int]], life: _Life) -> int:
    """The most bytes that live at one time."""
    changes = [(life.first[slot], size) for slot, size in slots]
    changes += [(life.last[slot] + 1, -size) for slot, size in slots]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _hosts(program: Program, life: _Life) -> list[tuple[int, Slot, _Memory]]:
    """Results whose memory may hold temporaries before they are written, by when they are."""
    out = []
    for val in program.outs:
        slot = val.place.slot
        if slot.donor is None and slot.nbytes >= LEAST_HOST:
            out.append((life.first[slot], slot, _Memory(slot.nbytes // ALIGNMENT * ALIGNMENT)))
    out.sort(key=lambda host: host[0])
    return out


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
