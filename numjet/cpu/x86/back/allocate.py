"""Registers for virtual registers: a linear scan over their intervals.

Intervals count places of `Selector.out`, so backwards in time: `start` is the last use. When the
registers of a class run out, what is used least for its length stays in memory, and `spill` puts
loads and stores around its instructions, for which a few registers are kept free then. What lives
across a call in a register that the call may change is kept in memory during the call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush

from numjet.cpu.x86.front.types import GENERAL, MASK, VECTOR, VECTORS
from numjet.cpu.x86.select.jumps import Call
from numjet.cpu.x86.select.select import FRAME, Selector

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
CALLEE_SAVED = (RBX, 12, 13, 14, 15)
_VOLATILE = (RAX, RCX, RDX, RSI, RDI, 8, 9, 10)
# Registers, the preferred first (of vectors the first sixteen have shorter code); nothing ever
# lives in r11.
_REGISTERS = {
    GENERAL: (*_VOLATILE, *CALLEE_SAVED),
    MASK: tuple(range(1, 8)),
}
ARGUMENTS = (RDI, RSI, RDX, RCX, 8, 9)


def registers(cls: int) -> tuple[int, ...]:
    """The registers of a class, the preferred first."""
    return tuple(range(VECTORS.count)) if cls == VECTOR else _REGISTERS[cls]


def scratch(cls: int) -> tuple[int, ...]:
    """Registers that are kept free when a class has spilled."""
    if cls != VECTOR:
        return (11, 10) if cls == GENERAL else (7, 6)
    return (15, 14, 13) if VECTORS.narrow else (31, 30)


class Allocation:
    """`at`: the register of each virtual one, or -2 - its slot where it lives in memory.

    The last entry serves -1, no register. `slots` counts the 64-byte slots; `used` are the
    registers to keep for the caller.
    """

    def __init__(self, count: int) -> None:
        self.at = [0] * (count + 1)
        self.slots = 0
        self.used: set[int] = set()
        self.spilled: list[int] = []


class _Short(Exception):
    """A class has run out of registers."""


def allocate(s: Selector) -> Allocation:
    """Give every virtual register of the selected function its place."""
    intervals = _intervals(s)
    scarce: set[int] = set()
    while True:
        made = Allocation(len(s.classes))
        made.at[FRAME] = RSP
        try:
            _scan(s, intervals, made, scarce)
            break
        except _Short as short:
            scarce.add(short.args[0])
    for r, target in s.parent.items():
        while target in s.parent:
            target = s.parent[target]
        made.at[r] = made.at[target]
    _keep(s, intervals, made)
    return made


def _intervals(s: Selector) -> list[tuple[int, int, int]]:
    """(start, end, register) of all that are used, by start."""
    parent, start, end = s.parent, s.start, s.end
    for r, target in parent.items():
        while target in parent:
            target = parent[target]
        if start[r] < start[target]:
            start[target] = start[r]
        if end[r] > end[target]:
            end[target] = end[r]
        s.weight[target] += s.weight[r]
    found = [
        (first, last, r)
        for r, (first, last) in enumerate(zip(start, end, strict=True))
        if last >= 0 and r not in parent and r != FRAME
    ]
    found.sort()
    return found


def _scan(
    s: Selector, intervals: list[tuple[int, int, int]], made: Allocation, scarce: set[int]
) -> None:
    classes, at = s.classes, made.at
    free: dict[int, list[int]] = {}
    order = {cls: registers(cls) for cls in (GENERAL, VECTOR, MASK)}
    for cls, all_ in order.items():
        kept = scratch(cls) if cls in scarce else ()
        free[cls] = [k for k, r in enumerate(all_) if r not in kept]
    rank = {cls: {r: k for k, r in enumerate(rs)} for cls, rs in order.items()}
    active: list[tuple[int, int]] = []  # (end, virtual register), of all classes
    calls, divisions = s.calls, s.divisions
    for first, last, r in intervals:
        while active and active[0] < (first + 1,):
            _, gone = heappop(active)
            if at[gone] >= 0:
                cls = classes[gone]
                heappush(free[cls], rank[cls][at[gone]])
        cls = classes[r]
        pool = free[cls]
        if cls == GENERAL:
            k = _general(pool, calls, divisions, first, last)
        else:
            k = heappop(pool) if pool else -1
        if k < 0:
            if cls not in scarce:
                raise _Short(cls)
            k = _evict(s, made, active, rank, r, first, last)
            if k < 0:
                continue
        at[r] = chosen = order[cls][k]
        if cls == GENERAL and chosen in CALLEE_SAVED:
            made.used.add(chosen)
        heappush(active, (last, r))


def _crosses(places: list[int], first: int, last: int) -> bool:
    """Whether a place lies strictly inside an interval."""
    k = bisect_right(places, first)
    return k < len(places) and places[k] < last


def _general(
    pool: list[int], calls: list[int], divisions: list[int], first: int, last: int
) -> int:
    """A free general register (its rank), of the kind that lasts across calls where one is."""
    if not pool:
        return -1
    if divisions:
        k = bisect_left(divisions, first)
        if k < len(divisions) and divisions[k] < last:
            allowed = [x for x in pool if _VOLATILE[x : x + 1] not in ((RAX,), (RDX,))]
            if not allowed:
                return -1
            pick = allowed[0] if not _crosses(calls, first, last) else max(allowed)
            pool.remove(pick)
            pool.sort()
            return pick
    if calls and _crosses(calls, first, last):
        pick = max(pool)
        pool.remove(pick)
        pool.sort()
        return pick
    return heappop(pool)


def _evict(
    s: Selector, made: Allocation, active: list[tuple[int, int]],
    rank: dict[int, dict[int, int]], r: int, first: int, last: int,
) -> int:
    """Send to memory what is cheapest there; the rank of the register that is free then, or -1."""
    cls, at = s.classes[r], made.at
    cheapest = s.weight[r] / (last - first + 1)
    chosen = r
    for end, other in active:
        if s.classes[other] == cls and at[other] >= 0:
            cost = s.weight[other] / (end - s.start[other] + 1)
            if cost < cheapest:
                if cls == GENERAL and at[other] in (RAX, RDX) and s.divisions:
                    continue
                cheapest, chosen = cost, other
    register = at[chosen]
    made.spilled.append(chosen)
    at[chosen] = -2 - made.slots
    made.slots += 1
    return -1 if chosen == r else rank[cls][register]


def _keep(s: Selector, intervals: list[tuple[int, int, int]], made: Allocation) -> None:
    """Note at each call which registers have to be kept in memory during it."""
    if not s.calls:
        return
    slots: dict[int, int] = {}
    places = sorted(s.calls)
    calls: dict[int, Call] = {place: s.out[place][1] for place in places}
    results = {place: _results(s, call) for place, call in calls.items()}
    for first, last, r in intervals:
        register = made.at[r]
        if register < 0 or (s.classes[r] == GENERAL and register in CALLEE_SAVED):
            continue
        k = bisect_right(places, first)
        while k < len(places) and places[k] < last:
            if r in results[places[k]]:  # carried round a loop: the call sets it anew
                k += 1
                continue
            slot = slots.get(r)
            if slot is None:
                slot = slots[r] = made.slots
                made.slots += 1
            calls[places[k]].saved.append((r, slot))
            k += 1


def _results(s: Selector, call: Call) -> set[int]:
    """The registers that a call's result is put into."""
    if call.result < 0 or call.result_type is None:
        return set()
    found = set()
    for r in range(call.result, call.result + call.result_type.parts):
        while r in s.parent:
            r = s.parent[r]
        found.add(r)
    return found
