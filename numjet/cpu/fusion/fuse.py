"""Fusion: partition a graph into kernels, special kernels, control regions and host calls.

`fuse(build, graph)` returns the steps that compute `graph`. Nodes are visited once, in order:

1. Wanted values (results, operands of steps that are not loops) are found.
2. Each pointwise node or reduction joins a `Group`, the nodes of one kernel: the group that makes
   its newest operand where loops and indices agree, or one with the same domain, or a new one.
   Groups run in the order of their numbers, so a value may only be read in its own group at the
   loops' own position, or from groups before it. Nodes that only move elements are in no group.
3. Backwards: which members are needed, and which are stored. A value used by a later group is
   stored, or computed again there when that is cheaper or its only use.
4. Each group is lowered to a kernel.

Linear in the number of nodes. What would break it: a node that is given a group whose number is
lower than that of a group it reads.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numjet.base import config
from numjet.core import lowering as low
from numjet.core.memo import remembered
from numjet.cpu.fusion import added_parts, chains, epilogues, recompute, standalone, turned
from numjet.cpu.fusion.recompute import UNREACHABLE
from numjet.cpu.graph import rejoined, scan_sums, stacked
from numjet.cpu.graph.nodes import Graph, Node, Val, drop_dead, is_reshape
from numjet.cpu.lower import update as lower_update
from numjet.cpu.lower.access import OTHER, Access, access, compose, every_axis, is_real, same_places
from numjet.cpu.lower.groups import Compilation, Fusion, Group, Member
from numjet.cpu.lower.lower import lower
from numjet.cpu.program.steps import Step

# A single element is computed anew by each kernel that reads it, up to this cost.
SCALAR_COST = 40
# Movers in a row that are looked through; a longer chain is stored in between.
MAX_HOPS = 24
# Kernels beyond this many nodes compile slowly. Values that fit no register lie in the first cache.
MAX_MEMBERS = 2000
# So much smaller than the largest value of a program are those that are computed before it.
_MUCH_SMALLER = 8

REDUCTIONS = frozenset(["add", "mul", "max", "min", "and", "or", "xor", "argmax", "argmin"])


def fuse(
    build: Compilation,
    graph: Graph,
    turning: Mapping[Val, int] = MappingProxyType({}),
    join: bool = True,
) -> list[Step]:
    """The steps that compute `graph`; its results get memory.

    turning: of the body of a loop, the large carries among the arguments, and which result is the
    next value of each. join: whether scans over one domain may become one step.
    """
    return _Fusion(build, graph, turning, join).run()


class _Fusion(Fusion):
    def __init__(
        self, build: Compilation, graph: Graph, turning: Mapping[Val, int], join: bool
    ) -> None:
        super().__init__(build, graph)
        self.turning, self.join_scans = turning, join
        self.by_shape: dict[tuple, Group] = {}
        self.users: dict[Val, set[int]] = {}  # groups that read it
        self.turned: set[Val] = set()  # copies that lie as they are read, by kernels of their own
        self.hops: dict[Val, int] = {}  # how many movers stand between it and a member

    def run(self) -> list[Step]:
        self.expand()
        self.find_wanted()
        self.read.update([v.root()[0] for v in self.graph.outs])
        for node in self.graph.nodes:
            self.place(node)
        for group in reversed(self.groups):
            self.settle(group)
        waiting = epilogues.pair(self)
        held = {product.number for product, _ in waiting.values()}
        for group in self.groups:
            if group.make is not None:
                if group.number not in held:
                    self.steps.extend(self.build.started(group.make()))
            elif any(m.live for m in group.members):
                if group.number in waiting:
                    steps = epilogues.steps(self, group, *waiting[group.number])
                else:
                    steps = self.lower(group)
                self.steps.extend(self.build.started(steps))
        return self.steps

    def expand(self) -> None:
        """Replace nodes that are better run as loops by nodes that are loops."""
        nodes: list[Node] = []
        before = self.graph.nodes
        self.graph.nodes = scan_sums.hoist_all(before)
        stacked.rewrite(self.graph)
        added_parts.rewrite(self.graph)
        rejoined.rewrite(self.graph)
        changed = standalone.join_transposes(self.graph) or self.graph.nodes is not before
        for node in self.graph.nodes:
            found = standalone.expand(node) if type(node.rule) is low.Kernel else None
            if found is None:
                nodes.append(node)
            else:
                nodes += found
                changed = changed or len(found) != 1 or found[0] is not node
        self.graph.nodes = small_first(nodes)
        changed = standalone.turn_results(self.graph) or changed
        copies, stored = turned.rewrite(self.graph)
        self.turned.update(copies)
        self.wanted.update([*copies, *stored])
        if changed or copies:
            drop_dead(self.graph)
        if self.join_scans:
            chains.join(self.graph)

    # ---- 1: what must be in memory

    def find_wanted(self) -> None:
        wanted = self.wanted
        wanted.update(self.graph.outs)
        for node in reversed(self.graph.nodes):
            rule = type(node.rule)
            if self.is_update(node):
                wanted.add(node.ins[0])
                updates = lower_update.updates_of(node)
                if updates.size > 1:
                    wanted.add(lower_update.repeated(updates) or updates)
                if lower_update.dear_places(node):
                    wanted.add(node.ins[1])
            elif rule is low.Pointwise:
                out = node.outs[0]
                if out in wanted and is_reshape(node):
                    # The same bytes: the operand goes to memory, this is a view of it.
                    wanted.add(node.ins[0])
                wanted.update(rejoined.groups(node))
            elif rule is not low.Reduce:
                wanted.update(node.ins)

    # ---- 2: groups

    def place(self, node: Node) -> None:
        rule = node.rule
        loops = False
        if self.is_update(node):
            loops = self.place_update(node)
        elif type(rule) is low.Pointwise:
            loops = self.place_pointwise(node)
        elif type(rule) is low.Reduce:
            loops = self.place_reduction(node)
        if not loops:
            self.place_step(node)

    def place_step(self, node: Node) -> None:
        """A node that is a step of its own: region, special kernel or host call."""
        build = self.build
        for k, val in enumerate(node.ins):
            self.wanted.add(val)
            if val in self.inline:
                # It was thought to be only read by loops: a kernel of its own moves the elements.
                mover = self.inline[val]
                twin = Val.of(val.aval) if val.aval is not None else Val(val.shape, val.dtype)
                copy = mover.instead(mover.ins, [twin])
                node.ins = [*node.ins[:k], twin, *node.ins[k + 1 :]]
                self.wanted.add(twin)
                self.accesses[copy] = self.accesses[mover]
                self.costs[twin] = self.costs[val]
                self.join(copy, twin.shape, None, self.accesses[copy])
        group = Group(len(self.groups), ())
        if type(node.rule) is low.Region:
            group.make = lambda: build.region(build, node)
        else:
            group.make = lambda: standalone.steps(build, node)
        group.reads, group.node = list(node.ins), node
        self.add(group)
        for out in node.outs:
            self.level[out] = group.number
            self.costs[out] = 1

    def is_update(self, node: Node) -> bool:
        if not lower_update.writes_parts(node):
            return False
        carried = (
            bool(node.ins and node.outs)
            and node.ins[0] in self.build.carries
            and any(v is node.outs[0] for v in self.graph.outs)
        )
        return lower_update.is_update(node, carried) and all(native(v.dtype) for v in node.ins)

    def is_window(self, node: Node) -> bool:
        """Whether an update may be written beside a carry's old value instead of over it: the rest
        is the same in both, since the window never moves and nothing else is written."""
        at = self.turning.get(node.ins[0])
        outs, out, new = self.graph.outs, node.outs[0], node.ins[1]
        return (
            at is not None
            and node.primitive.name == "dynamic_update_slice"
            and outs[at] is out
            and sum(v is out for v in outs) == 1
            and not any(v is new for v in outs)
            and sum(v is new for other in self.graph.nodes for v in other.ins) == 1
            and all(v.literal is not None for v in node.ins[2:])
            and 2 * new.size >= node.ins[0].size
        )

    def place_update(self, node: Node) -> bool:
        """A scatter or dynamic_update_slice: a step with a loop that may read through movers."""
        group = Group(len(self.groups), lower_update.updates_of(node).shape)
        group.reads = list(node.ins)

        def make() -> list[Step]:
            if self.is_window(node) and lower_update.redirect(self.steps, node):
                self.build.windows.add(node.ins[0])
                return []
            try:
                return lower_update.lower(self.build, self, group, node)
            except NotImplementedError:
                return self.host_steps([node], group)

        group.make = make
        self.add(group)
        out = node.outs[0]
        self.level[out] = group.number
        self.costs[out] = 1
        seen: set[Val] = set()
        for val in node.ins:
            self.note_use(val, group.number, seen)
        return True

    def add(self, group: Group) -> None:
        self.groups.append(group)

    def place_pointwise(self, node: Node) -> bool:
        out = node.outs[0]
        if is_reshape(node) and self.in_memory(node.ins[0]):
            out.base = node.ins[0]
            self.level[out] = self.level_of(node.ins[0])
            self.costs[out] = 1
            return True
        empty = False
        for val in node.ins:
            if not native(val.dtype):
                return False
            empty = empty or val.size == 0
        if not all([native(v.dtype) for v in node.outs]):
            return False
        if out.size == 0:
            self.level[out] = -1
            self.costs[out] = 1
            return True
        if empty:
            return False
        found = self.access_of(node)
        if found is None:
            return False
        self.accesses[node] = found
        cost, hops = found.cost, 1
        for val, reads in zip(node.ins, found.reads, strict=True):
            if val.literal is None:
                cost += reads * self.costs.get(val, 1)
                hops = max(hops, 1 + self.hops.get(val, 0))
        wanted = False
        for val in node.outs:
            self.costs[val] = min(cost, UNREACHABLE)
            wanted = wanted or val in self.wanted
        passes = found.moves or self.is_cheap_scalar(node)
        if passes and not wanted and hops <= MAX_HOPS:
            self.hops[out] = hops
            level = max([self.level_of(v) for v in node.ins], default=-1)
            for val in node.outs:
                self.level[val] = level
                self.inline[val] = node
            return True
        self.join(node, out.shape, None, found)
        return True

    def is_cheap_scalar(self, node: Node) -> bool:
        """A single element computed from memory: each reader does it anew, outside its loops."""
        if node.outs[0].size != 1 or self.costs[node.outs[0]] > SCALAR_COST:
            return False
        return all(v not in self.member for v in node.ins)

    def access_of(self, node: Node) -> Access | None:
        try:
            return access(node)
        except NotImplementedError:
            return None
        except Exception as error:
            if config.check_ir.value:
                raise
            warnings.warn(
                f"numjet: the loop rule of {node.primitive.name} failed ({type(error).__name__}: "
                f"{error}); it runs through NumPy. Please report this.",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    def place_reduction(self, node: Node) -> bool:
        source, out = node.ins[0], node.outs[0]
        op = node.rule.op
        if op not in REDUCTIONS or len(node.outs) != 1 or len(node.ins) != 1:
            return False
        if not native(source.dtype) or source.size == 0 or out.size == 0:
            return False
        if not is_real(source.dtype) and op not in ("add", "mul"):
            return False
        axes = (
            tuple(sorted(a % len(source.shape) for a in node.params["axes"]))
            if source.shape
            else ()
        )
        if not axes:
            return False
        self.accesses[node] = Access([tuple(range(len(source.shape)))], [1], 1, False)
        self.costs[out] = 1
        self.join(node, source.shape, axes, self.accesses[node])
        return True

    def join(self, node: Node, shape: tuple, reduced: tuple | None, found: Access) -> None:
        level = max([self.level_of(v) for v in node.ins], default=-1)
        member = group = None
        alone = node.outs[0] in self.turned
        for candidate in (
            self.groups[level] if level >= 0 else None,
            self.by_shape.get((shape, reduced)),
            self.by_shape.get((shape, None)),
        ):
            if alone or candidate is None or candidate.make is not None or candidate.closed:
                continue
            if candidate.number >= level:
                member, group = self.fits(candidate, node, shape, reduced, found), candidate
                if member is not None:
                    break
        if member is None or group is None:
            group = Group(len(self.groups), shape, closed=alone)
            self.add(group)
            member = self.fits(group, node, shape, reduced, found)
            assert member is not None
        if reduced is not None:
            group.reduced = reduced
            self.by_shape[shape, reduced] = group
        else:
            self.by_shape[shape, None] = group
        group.members.append(member)
        for val in node.outs:
            self.level[val] = group.number
            self.member[val] = member
        seen: set[Val] = set()
        for val in node.ins:
            self.note_use(val, group.number, seen)

    def note_use(self, val: Val, number: int, seen: set[Val]) -> None:
        """Remember that group `number` reads `val` (through nodes that move elements)."""
        if val not in self.inline:
            if val in self.member:
                self.users.setdefault(val, set()).add(number)
            return
        todo = [val]
        while todo:
            val = todo.pop()
            if val in seen:
                continue
            seen.add(val)
            node = self.inline.get(val)
            if node is not None:
                todo.extend(node.ins)
            elif val in self.member:
                self.users.setdefault(val, set()).add(number)

    def fits(
        self, group: Group, node: Node, shape: tuple, reduced: tuple | None, found: Access
    ) -> Member | None:
        """The member that `node` would be in `group`, or None where loops do not agree."""
        if len(group.members) >= MAX_MEMBERS:
            return None
        if reduced is not None:
            if shape != group.shape or (group.reduced is not None and group.reduced != reduced):
                return None
            phase = self.phase_of(group, node, found, every_axis(len(shape)), row=False)
            if phase is None or (phase > 0 and not group.many_phases):
                return None
            kept = tuple(a for a in range(len(shape)) if a not in reduced)
            return Member(node, kept, True, phase)
        for axes, row in positions(group.shape, group.reduced, shape):
            phase = self.phase_of(group, node, found, axes, row)
            if phase is not None and (phase <= 0 or row or group.many_phases):
                return Member(node, axes, row, phase)
        return None

    def phase_of(
        self, group: Group, node: Node, found: Access, axes: tuple, row: bool
    ) -> int | None:
        """The first phase in which `node` can run at `axes` of the domain; None if it cannot."""
        phase = -1 if row else 0
        for val, reading in zip(node.ins, found.maps, strict=True):
            if reading is None:
                continue
            need = self.ready(group, val, compose(axes, reading), row)
            if need is None:
                return None
            phase = max(phase, need)
        return phase

    def ready(self, group: Group, val: Val, at: Any, row: bool) -> int | None:
        level = self.level_of(val)
        if level < group.number:
            return -1
        if level > group.number:
            return None
        member = self.member.get(val)
        if member is not None:
            if not same_places(at, member.axes, val.shape) or (row and not member.row):
                return None
            return member.phase + (1 if member.row and not row else 0)
        node = self.inline.get(val)
        if node is None or at is OTHER:
            return None
        phase = -1
        for operand, reading in zip(node.ins, self.accesses[node].maps, strict=True):
            if reading is None:
                continue
            need = self.ready(group, operand, compose(at, reading), row)
            if need is None:
                return None
            phase = max(phase, need)
        return phase

    # ---- 3: what is live and what is stored

    def settle(self, group: Group) -> None:
        if group.number in self.asked:
            recompute.decide(self, group)
        for val in group.reads:
            self.use(group, val, math.prod(group.shape))
        for member in reversed(group.members):
            for val in member.node.outs:
                if val in self.wanted:
                    group.stored[val] = val
                    member.live = True
            if not member.live and not member.node.effects:
                continue
            self.use_operands(group, member.node)

    # ---- 4: kernels

    def lower(self, group: Group) -> list[Step]:
        try:
            return lower(self.build, self, group)
        except NotImplementedError:
            return self.fall_back(group)
        except Exception as error:
            if config.check_ir.value:
                raise
            warnings.warn(
                f"numjet: lowering a kernel failed ({type(error).__name__}: {error}); it runs "
                "through NumPy. Please report this.",
                RuntimeWarning,
                stacklevel=2,
            )
            return self.fall_back(group)

    def fall_back(self, group: Group) -> list[Step]:
        """Host calls for everything a kernel would have computed."""
        return self.host_steps([m.node for m in group.members if m.live], group)

    def host_steps(self, nodes: list[Node], group: Group) -> list[Step]:
        """Host calls for `nodes` and for what they would have computed on the way."""
        steps: list[Step] = []
        done: set[Node] = set()

        def compute(val: Val) -> None:
            node = val.node
            if val.literal is not None or val.base is not None or node is None or node in done:
                return
            if val in self.wanted and self.level_of(val) != group.number:
                return
            if val in self.member or val in self.inline:
                run(node)

        def run(node: Node) -> None:
            done.add(node)
            for operand in node.ins:
                compute(operand)
            steps.append(self.build.host(node))

        for node in nodes:
            if node not in done:
                run(node)
        return steps


def small_first(nodes: list[Node]) -> list[Node]:
    """`nodes` with those in front that compute small values of the arguments alone.

    Groups run in the order in which they were begun, so a group for a few numbers (powers of a
    depth's pressure, say) that is begun amid a long chain over large arrays cuts that chain in two.
    """
    largest = max([v.size for node in nodes for v in node.outs], default=0)
    late: set[Val] = set()  # what is large, or needs something large
    front: list[Node] = []
    rest: list[Node] = []
    for node in nodes:
        if (
            type(node.rule) is low.Pointwise
            and not node.effects
            and all([_MUCH_SMALLER * v.size <= largest for v in node.outs])
            and not any([v in late for v in node.ins])
        ):
            front.append(node)
        else:
            rest.append(node)
            late.update(node.outs)
    return front + rest


@remembered("positions in domains", 1024)
def positions(
    domain: tuple[int, ...], reduced: tuple[int, ...] | None, shape: tuple[int, ...]
) -> list[tuple[tuple, bool]]:
    """How a value of `shape` may lie in a group's domain: as all of it, or one a row."""
    out: list[tuple[tuple, bool]] = []
    if shape == domain:
        out.append((every_axis(len(shape)), False))
    if reduced is not None:
        kept = tuple([a for a in range(len(domain)) if a not in reduced])
        if shape == tuple([domain[a] for a in kept]):
            out.append((kept, True))
        elif len(shape) == len(domain) and all(
            n == (domain[a] if a in kept else 1) for a, n in enumerate(shape)
        ):
            out.append((tuple([a if a in kept else None for a in range(len(shape))]), True))
        elif all(n == 1 for n in shape) and all(domain[a] == 1 for a in kept):
            out.append(((None,) * len(shape), True))
    return out


def native(dtype: Any) -> bool:
    """Whether the loop IR holds values of this dtype."""
    found = _native.get(dtype)
    if found is None:
        found = _native[dtype] = (
            dtype.kind in "fiubc" and dtype.name not in _FOREIGN or dtype.name == "bfloat16"
        )
    return found


_native: dict[Any, bool] = {}
_FOREIGN = frozenset(["longdouble", "float128", "clongdouble", "complex256"])
