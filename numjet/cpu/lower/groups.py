"""Groups of nodes that share a kernel, and what is known of a program's values while they are made.

`fusion` fills these in; lowering reads them. `Compilation` is what the blocks of one program share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numjet.base.record import field, record
from numjet.cpu.graph.nodes import Graph, Node, Val
from numjet.cpu.lower.access import Access
from numjet.cpu.program.steps import Program, Step
from numjet.cpu.program.values import Values

# Rows kept in cache between phases need either many rows (to run on all cores) or little work.
MIN_ROWS, SMALL_DOMAIN = 16, 1 << 16


class Compilation(Values):
    """What the blocks of one program share while they are fused and lowered.

    `region(compilation, node)` gives the steps of a loop or branch; `started(steps)` begins to
    compile what is final in steps, and gives them back.
    """

    def __init__(
        self,
        program: Program,
        region: Callable[[Compilation, Node], list[Step]],
        started: Callable[[list[Step]], list[Step]],
    ) -> None:
        super().__init__(program)
        self.region, self.started = region, started
        self.lowered: dict[Any, Any] = {}  # what equal groups share -> how they are lowered
        self.specials: dict[Any, Any] = {}  # the same of special kernels
        self.epilogues: dict[Any, Any] = {}  # what is behind a product -> its function
        self.carries: set[Val] = set()  # what loops carry
        self.windows: set[Val] = set()  # of these, where rounds only write one window


@record(eq=False, slots=True)
class Member:
    """A node in a group: `axes[k]` is the domain axis of the value's axis k (None: extent 1).

    `row` tells values that exist once a row (reductions and what follows from them); `phase` counts
    the sweeps over the row that must have ended before.
    """

    node: Node
    axes: tuple
    row: bool
    phase: int
    live: bool = False


@record(eq=False, slots=True)
class Group:
    """One kernel to be: members over the domain `shape`; `reduced` axes once one is a reduction."""

    number: int
    shape: tuple[int, ...]
    reduced: tuple[int, ...] | None = None
    members: list[Member] = field(default_factory=list)
    make: Callable[[], list[Step]] | None = None  # for what is not a loop
    node: Node | None = None  # what such a step computes
    reads: list[Val] = field(default_factory=list)  # what such a step reads
    stored: dict[Val, Val] = field(default_factory=dict)
    closed: bool = False  # whether no other node joins it

    @property
    def many_phases(self) -> bool:
        """Whether sweeping rows several times is worth while."""
        total = rows = 1
        for axis, n in enumerate(self.shape):
            total *= n
            if axis not in (self.reduced or ()):
                rows *= n
        return total <= SMALL_DOMAIN or rows >= MIN_ROWS


class Asked:
    """A value that later groups read: `groups` by number, and `times`, how many elements of it
    each reads, one as often as it is read."""

    __slots__ = ("val", "groups", "times")

    def __init__(self, val: Val) -> None:
        self.val = val
        self.groups: dict[int, Group] = {}
        self.times: dict[int, int] = {}


class Fusion:
    """What is known of a block's values while its kernels are made."""

    def __init__(self, compilation: Compilation, graph: Graph) -> None:
        self.build, self.graph = compilation, graph
        self.groups: list[Group] = []
        self.level: dict[Val, int] = {}  # number of the group that makes it
        self.member: dict[Val, Member] = {}
        self.inline: dict[Val, Node] = {}  # the node that only moves elements
        self.accesses: dict[Node, Access] = {}
        self.costs: dict[Val, int] = {}  # of computing an element from memory
        self.wanted: set[Val] = set()  # what has to be in memory
        self.asked: dict[int, dict[Val, Asked]] = {}  # group -> values read by later ones
        # How many values were wanted then, and what `recompute` found.
        self.again: dict[Val | Group, tuple[int, Any]] = {}
        self.read: set[Val] = set()  # what settled groups read from memory
        self.steps: list[Step] = []
        # What `use` has been through, by group: how many elements were read.
        self.computed: dict[tuple[int, Val], int] = {}

    def level_of(self, val: Val) -> int:
        """The number of the group that makes it; -1 for none."""
        return self.level.get(val, -1)

    def cost_of(self, val: Val) -> int:
        """What computing an element from memory costs."""
        return 0 if val.literal is not None else self.costs.get(val, 1)

    def in_memory(self, val: Val) -> bool:
        """Whether `val` will lie in memory: an argument, a step's result, or wanted."""
        if val.literal is not None:
            return False
        return val in self.wanted or (val not in self.member and val not in self.inline)

    def use_operands(self, group: Group, node: Node, times: int = 0) -> None:
        """`group` computes the results of `node`, `times` elements (by default, of its domain)."""
        self._use(group, _operands(node, times or math.prod(group.shape)))

    def use(self, group: Group, val: Val, times: int) -> None:
        """`group` reads elements of `val`: mark what must be live, ask for what earlier groups
        compute."""
        self._use(group, [(val, times)])

    def _use(self, group: Group, todo: list[tuple[Val, int]]) -> None:
        while todo:
            val, times = todo.pop()
            if val.literal is not None or self.computed.get((group.number, val), 0) >= times:
                continue
            self.computed[group.number, val] = times
            if val.base is not None:
                val = val.root()[0]
            node = self.inline.get(val)
            if node is not None:
                todo += _operands(node, times)
                continue
            member = self.member.get(val)
            if member is None:
                self.read.add(val)
            elif self.level[val] == group.number:
                member.live = True
            elif val in self.wanted:
                self.read.add(val)
            else:
                asked = self.asked.setdefault(self.level[val], {})
                entry = asked.setdefault(val, Asked(val))
                entry.groups[group.number] = group
                entry.times[group.number] = max(entry.times.get(group.number, 0), times)

    def lower(self, group: Group) -> list[Step]:
        """The steps of a group."""
        raise NotImplementedError


def _operands(node: Node, times: int) -> list[tuple[Val, int]]:
    """The operands of a node, with how many elements of each are read for `times` of a result."""
    if node.primitive.name != "concatenate":
        return [(val, times) for val in node.ins]
    size = node.outs[0].size
    return [(val, -(-times * val.size // size)) for val in node.ins]
