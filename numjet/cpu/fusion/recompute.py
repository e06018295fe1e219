"""Which values of a group are kept for later groups, and which are computed again there.

`decide(fusion, group)` answers for all values of a group that later ones read, when all of these
are known: a value is computed again where that is cheap and keeps no more bytes alive; several
values that follow cheaply from another one (tanh and its slope) are computed from that one.
Called by `fuse`. What would break it: a call before every later group is settled.
"""

from __future__ import annotations

import math
from collections.abc import Container

from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Val
from numjet.cpu.lower.groups import Asked, Fusion, Group

# A value read by several kernels is computed again up to this cost (an addition is 1, exp 8),
# about what storing and reloading an element costs.
RECOMPUTE_COST = 10
# The same of a value of at least LARGE bytes, beyond the caches next to a core; and of one for
# which less than 1/LESS of its bytes are read.
LARGE, LARGE_COST = 1 << 20, 16
LESS, LIGHT_COST = 8, 24
# One that is read by a single other kernel moves there whole, up to this cost.
MOVE_COST = 64
# A broadcast value is computed again for each element it goes to: only when nearly free.
BROADCAST_COST = 3
# A reader larger by less than this part has edges beside the value's elements (a padding, a
# concatenation), each of which it reads once.
JOINED = 8
# Loops of stores are cut where a concatenation's operands of this size meet, or their lanes hold
# elements of one operand: each reads its own elements once, as well. Smaller ones may lie in one
# vector, which computes all operands; so do reductions.
PIECE = 1024
# An operation that costs more is better kept than done again, if what follows from it is not.
CHEAP_OPERATION = 3
UNREACHABLE = 10**6


def decide(fusion: Fusion, group: Group) -> None:
    """Mark the values of `group` that are kept as wanted; ask for what the others are made from."""
    asked: dict[Val, Asked] = fusion.asked[group.number]
    dear = [a for a in asked.values() if not _allowed(fusion, group, a)]
    if dear:
        _keep(fusion, group, dear)
        # Earlier members first: what follows from them may then be cheap.
        for member in group.members:
            for val in member.node.outs:
                if val in asked and not _allowed(fusion, group, asked[val]):
                    _wanted(fusion, val)
    # Later members first: they ask for earlier ones.
    for member in reversed(group.members):
        for val in member.node.outs:
            found = asked.get(val)
            if found is None or val in fusion.wanted:
                continue
            if not _allowed(fusion, group, found) or _prolongs(fusion, group, val):
                _wanted(fusion, val)
                continue
            for number, reader in found.groups.items():
                fusion.use_operands(reader, member.node, found.times[number])


def _wanted(fusion: Fusion, val: Val) -> None:
    """Decide that `val` will lie in memory."""
    fusion.wanted.add(val)
    fusion.read.add(val)


def _allowed(fusion: Fusion, group: Group, asked: Asked) -> bool:
    """Whether the value lies in memory or may be computed again."""
    val = asked.val
    if val in fusion.wanted:
        return True
    if val.node is None or type(val.node.rule) is low.Reduce:
        return False
    if fusion.cost_of(val) <= BROADCAST_COST:
        return True
    again = _again(fusion, group, val)
    most, joined = val.size + val.size // JOINED, False
    for number, reader in asked.groups.items():
        if math.prod(reader.shape) > most:
            joined = val.size >= PIECE and asked.times[number] <= most and reader.reduced is None
            if not joined:
                return again.total <= BROADCAST_COST
    limit = RECOMPUTE_COST
    if val.nbytes >= LARGE:
        light = LESS * sum([v.nbytes for v in again.reads]) <= val.nbytes
        limit = LIGHT_COST if light else LARGE_COST
    if again.total <= limit:
        return True
    # What operands of a concatenation have in common, as the sine and cosine of a rotation, each of
    # them would compute: their places differ.
    if joined or len(asked.groups) > 1 or again.total > MOVE_COST:
        return False
    return again.repeated(_live(fusion, group)) <= limit


def _again(fusion: Fusion, group: Group, val: Val) -> _Again:
    """`_Again` of a value, found once as long as no further value is wanted."""
    found = fusion.again.get(val)
    if found is None or found[0] != len(fusion.wanted):
        found = fusion.again[val] = len(fusion.wanted), _Again(fusion, group, val)
    return found[1]


class _Again:
    """What computing an element of `val` anew takes: `total`, its cost from what lies in memory;
    `reads`, what is read; `done`, the cost of each of the group's values on the way."""

    __slots__ = ("total", "reads", "done")

    def __init__(self, fusion: Fusion, group: Group, val: Val) -> None:
        self.reads: list[Val] = []
        self.done: dict[Val, int] = {}
        times: dict[Val, int] = {}
        total = 0
        todo = [(val, 1)]
        while todo:
            val, count = todo.pop()
            if val.literal is not None:
                continue
            before = times.get(val, 0)
            if before >= count:
                continue
            times[val] = count
            node = fusion.inline.get(val)
            if node is None:
                member = fusion.member.get(val)
                kept = fusion.in_memory(val)
                if member is None or kept or type(member.node.rule) is low.Reduce:
                    if not before:
                        self.reads.append(val.root()[0])
                        total += 1
                    continue
                if fusion.level[val] != group.number:
                    total += (count - before) * fusion.cost_of(val)
                    continue
                node = member.node
                self.done[val] = count * fusion.accesses[node].cost
            found = fusion.accesses[node]
            total += (count - before) * found.cost
            for operand, reads in zip(node.ins, found.reads, strict=True):
                todo.append((operand, count * reads))
        self.total = total

    def repeated(self, live: Container[Val]) -> int:
        """The part that the group does anyway for what it stores."""
        return self.total - sum([cost for val, cost in self.done.items() if val not in live])


def _live(fusion: Fusion, group: Group) -> set[Val]:
    """The values that the group computes for what it stores; found once as long as no
    further value is wanted."""
    wanted = fusion.wanted
    found = fusion.again.get(group)
    if found is not None and found[0] == len(wanted):
        return found[1]
    live: set[Val] = set()
    fusion.again[group] = len(wanted), live
    for member in reversed(group.members):
        outs = member.node.outs
        if not any([v in wanted or v in live for v in outs]):
            continue
        live.update([v for v in outs])
        todo = list(member.node.ins)
        while todo:
            val = todo.pop()
            node = fusion.inline.get(val)
            if node is not None:
                todo.extend(node.ins)
            else:
                live.add(val)
    return live


def _keep(fusion: Fusion, group: Group, dear: list[Asked]) -> None:
    """Keep what dear values follow from cheaply, where this is fewer bytes than they are."""
    wanted = fusion.wanted
    origins = [(a.val, _origins(fusion, group, a.val)) for a in dear]
    origins.sort(key=lambda pair: len(pair[1]))
    for _, first in origins:
        new = {key: val for key, val in first.items() if key not in wanted}
        # All that follow from the same values: the sum of their bytes is what is saved.
        followers = [
            val
            for val, found in origins
            if val not in wanted and all(key in wanted or key in new for key in found)
        ]
        if new and sum([v.nbytes for v in new.values()]) < sum([v.nbytes for v in followers]):
            wanted.update(new)
            fusion.read.update(new)


def _origins(fusion: Fusion, group: Group, val: Val) -> dict[Val, Val]:
    """The dear results in the group that `val` follows from by cheap operations."""
    out: dict[Val, Val] = {}
    seen: set[Val] = set()
    todo = [val]
    while todo:
        val = todo.pop()
        if val.literal is not None or val in seen:
            continue
        seen.add(val)
        node = fusion.inline.get(val)
        if node is None:
            member = fusion.member.get(val)
            if member is None or fusion.level[val] != group.number:
                continue
            node = member.node
            if type(node.rule) is low.Reduce or fusion.accesses[node].cost > CHEAP_OPERATION:
                out[val] = val
                continue
        todo.extend(node.ins)
    return out


def _prolongs(fusion: Fusion, group: Group, val: Val) -> bool:
    """Whether computing `val` again keeps more bytes alive than keeping it: of values that nobody
    after the group reads otherwise."""
    held = 0
    seen: set[Val] = set()
    for operand in _again(fusion, group, val).reads:
        if fusion.level_of(operand) >= 0 and operand not in fusion.read:
            if operand not in seen:
                seen.add(operand)
                held += operand.nbytes
    return held > val.nbytes
