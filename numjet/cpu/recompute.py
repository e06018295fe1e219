"""Which values of a group are kept for later groups, and which are computed again there.

`decide(fusion, group)` answers for all values of a group that later ones read, when all of these
are known: a value is computed again where that is cheap and keeps no more bytes alive; several
values that follow cheaply from another one (tanh and its slope) are computed from that one.
Called by `fuse`. What would break it: a call before every later group is settled.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from numjet.core import lowering as low
from numjet.cpu.graph import Node, Val

# A value read by several kernels is computed again up to this cost (an addition is 1, exp 8),
# about what storing and reloading an element costs.
RECOMPUTE_COST = 10
# One that is read by a single other kernel moves there whole, up to this cost.
MOVE_COST = 64
# A broadcast value is computed again for each element it goes to: only when nearly free.
BROADCAST_COST = 3
# An operation that costs more is better kept than done again, if what follows from it is not.
CHEAP_OPERATION = 3
UNREACHABLE = 10**6


class Asked:
    """A value that later groups read: `groups` by number."""

    __slots__ = ("val", "groups")

    def __init__(self, val: Val) -> None:
        self.val = val
        self.groups: dict[int, Any] = {}


def decide(fusion: Any, group: Any) -> None:
    """Mark the values of `group` that are kept as wanted; ask for what the others are made from."""
    asked: dict[int, Asked] = fusion.asked[group.number]
    costs = None
    if any(not _trivial(fusion, a.val) for a in asked.values()):
        costs = _Costs(fusion, group, asked)
        for member in group.members:
            costs.add(member)
        dear = [a for a in asked.values() if not costs.allow(a)]
        if dear:
            _keep(fusion, group, dear)
            # Earlier members first: what follows from them may then be cheap.
            costs = _Costs(fusion, group, asked)
            for member in group.members:
                costs.add(member)
                for val in member.node.outs:
                    if id(val) in asked and not costs.allow(asked[id(val)]):
                        keep(fusion, val)
    # Later members first: they ask for earlier ones.
    for member in reversed(group.members):
        for val in member.node.outs:
            found = asked.get(id(val))
            if found is None or id(val) in fusion.wanted:
                continue
            allowed = _trivial(fusion, val) or (costs is not None and costs.allow(found))
            if not allowed or _prolongs(fusion, group, val):
                keep(fusion, val)
                continue
            for reader in found.groups.values():
                for operand in member.node.ins:
                    fusion.use(reader, operand)


def keep(fusion: Any, val: Val) -> None:
    """Decide that `val` will lie in memory."""
    fusion.wanted.add(id(val))
    fusion.read.add(id(val))


def _trivial(fusion: Any, val: Val) -> bool:
    """Whether any reader may compute `val`, without a closer look."""
    reduction = val.node is None or type(val.node.rule) is low.Reduce
    return not reduction and fusion.cost_of(val) <= BROADCAST_COST


class _Costs:
    """Costs of an element of the group's values, from what lies in memory: `total`, and
    `repeated`, the part that the group does anyway for what it stores. Only of members that
    `asked` values follow from."""

    def __init__(self, fusion: Any, group: Any, asked: Container[int]) -> None:
        self.fusion = fusion
        self.total: dict[int, int] = {}
        self.repeated: dict[int, int] = {}
        wanted = fusion.wanted
        self.live: set[int] = set()
        self.needed: set[int] = set()
        for member in reversed(group.members):
            outs = member.node.outs
            live = needed = False
            for val in outs:
                key = id(val)
                live = live or key in wanted or key in self.live
                needed = needed or key in asked or key in self.needed
            if not (live or needed):
                continue
            reads = _through(fusion, member.node.ins)
            if live:
                self.live.update([id(v) for v in outs])
                self.live.update(reads)
            if needed:
                self.needed.update([id(v) for v in outs])
                self.needed.update(reads)

    def add(self, member: Any) -> None:
        """Note the costs of a member; those before it are known."""
        node = member.node
        if id(node.outs[0]) not in self.needed:
            return
        if type(node.rule) is low.Reduce:
            total = repeated = 1  # it will lie in memory
        else:
            total, repeated = self.of(node)
            if id(node.outs[0]) not in self.live:
                repeated -= self.fusion.accesses[id(node)].cost
        for val in node.outs:
            self.total[id(val)], self.repeated[id(val)] = total, repeated

    def of(self, node: Node) -> tuple[int, int]:
        """Both costs of a pointwise node, itself counted."""
        fusion = self.fusion
        found = fusion.accesses[id(node)]
        total = repeated = found.cost
        for val, reads in zip(node.ins, found.reads, strict=True):
            if val.literal is not None:
                continue
            if fusion.in_memory(val):
                each = 1, 1
            elif id(val) in self.total:
                each = self.total[id(val)], self.repeated[id(val)]
            elif id(val) in fusion.inline:
                each = self.of(fusion.inline[id(val)])
            else:
                each = fusion.cost_of(val), fusion.cost_of(val)
            total += reads * each[0]
            repeated += reads * each[1]
        return min(total, UNREACHABLE), min(repeated, UNREACHABLE)

    def allow(self, asked: Asked) -> bool:
        """Whether the value lies in memory or may be computed again."""
        val = asked.val
        if id(val) in self.fusion.wanted:
            return True
        if val.node is None or type(val.node.rule) is low.Reduce:
            return False
        total = self.total[id(val)]
        for group in asked.groups.values():
            size = 1
            for n in group.shape:
                size *= n
            if size > val.size:
                return total <= BROADCAST_COST
        if len(asked.groups) > 1:
            return total <= RECOMPUTE_COST
        return total <= MOVE_COST and self.repeated[id(val)] <= RECOMPUTE_COST


def _through(fusion: Any, vals: Sequence[Val]) -> list[int]:
    """Ids of what is read when `vals` are, through nodes that move elements."""
    out = []
    todo = list(vals)
    while todo:
        val = todo.pop()
        node = fusion.inline.get(id(val))
        if node is not None:
            todo.extend(node.ins)
        else:
            out.append(id(val))
    return out


def _keep(fusion: Any, group: Any, dear: list[Asked]) -> None:
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
            if id(val) not in wanted and all(key in wanted or key in new for key in found)
        ]
        if new and sum([v.nbytes for v in new.values()]) < sum([v.nbytes for v in followers]):
            wanted.update(new)
            fusion.read.update(new)


def _origins(fusion: Any, group: Any, val: Val) -> dict[int, Val]:
    """The dear results in the group that `val` follows from by cheap operations."""
    out: dict[int, Val] = {}
    seen: set[int] = set()
    todo = [val]
    while todo:
        val = todo.pop()
        if val.literal is not None or id(val) in seen:
            continue
        seen.add(id(val))
        node = fusion.inline.get(id(val))
        if node is None:
            member = fusion.member.get(id(val))
            if member is None or fusion.level[id(val)] != group.number:
                continue
            node = member.node
            if type(node.rule) is low.Reduce or fusion.accesses[id(node)].cost > CHEAP_OPERATION:
                out[id(val)] = val
                continue
        todo.extend(node.ins)
    return out


def _prolongs(fusion: Any, group: Any, val: Val) -> bool:
    """Whether computing `val` again keeps more bytes alive than keeping it: of values that nobody
    after the group reads otherwise."""
    held = 0
    seen: set[int] = set()
    todo = list(fusion.member[id(val)].node.ins)
    while todo:
        operand = todo.pop()
        if operand.literal is not None:
            continue
        operand = operand.root()[0]
        if id(operand) in seen:
            continue
        seen.add(id(operand))
        node = fusion.inline.get(id(operand))
        if node is not None:
            todo.extend(node.ins)
        elif not fusion.in_memory(operand):
            maker = fusion.member[id(operand)].node
            if type(maker.rule) is low.Reduce:
                held += operand.nbytes
            elif fusion.level[id(operand)] == group.number:
                todo.extend(maker.ins)
        elif fusion.level_of(operand) >= 0 and id(operand) not in fusion.read:
            held += operand.nbytes
        if held > val.nbytes:
            return True
    return False
