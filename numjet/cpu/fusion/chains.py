"""Scans over one domain, and what is computed for them alone, as one node: a chain.

`join(graph)` finds scans whose rounds work on each element of a domain alone (the columns of a
grid, say), puts those of one domain together with the elementwise operations that feed them, and
leaves one node of the rule `CHAIN` for each such set, its nodes in the params. So a tridiagonal
solve - coefficients, elimination, substitution - goes through its levels a few vectors of columns
at a time, and what one part hands to the next is in the first cache. For: `fuse`; lowered by
`regions.chain`. What would break it: a rule that says of itself that it is elementwise and reads
elsewhere.
"""

from __future__ import annotations

import heapq
import math

from numjet.core import lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, unclosed
from numjet.cpu.graph.nodes import LOOPS, Graph, Node, Val, called
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import COMPLEX_PARTS
from numjet.cpu.lower.access import accessed, loop_vars

CHAIN = low.Region("chain")
# Fewer elements are too few pieces for several threads, and what is computed for all rounds of a
# scan at once runs on more.
FEWEST_ELEMENTS = 4096
# Expressions are found by calls as deep as what is computed for a scan.
MOST_COMPUTED = 48
# Bytes that one piece of a single vector may hand from scan to scan: 64 an element of 4 bytes.
MOST_ROWS = 512
_LANES = frozenset("fiub")

Shape = tuple[int, ...]


class _Chain:
    """Nodes that work on each element of `domain` alone: scans, and pointwise ones before them."""

    def __init__(self, domain: Shape) -> None:
        self.domain = domain
        self.nodes: set[Node] = set()
        self.scans: list[Node] = []


def join(graph: Graph) -> bool:
    """Put chains in the place of their nodes; whether there are any."""
    scans = {node: domain for node in graph.nodes if (domain := _domain(node)) is not None}
    if not scans:
        return False
    finder = _Finder(graph)
    for node, domain in scans.items():
        finder.take(node, domain)
    found = [chain for chain in (*finder.closed, *finder.chains) if len(chain.nodes) > 1]
    for chain in found:
        graph.nodes = _replaced(graph, chain)
    return bool(found)


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = {node: k for k, node in enumerate(graph.nodes)}
        self.makers = {v: node for node in graph.nodes for v in node.outs}
        self.users: dict[Val, list[Node]] = {}
        for node in graph.nodes:
            for v in node.ins:
                self.users.setdefault(v, []).append(node)
        self.wanted = set(graph.outs)
        self.chains: list[_Chain] = []  # at most one for a domain
        self.closed: list[_Chain] = []

    def take(self, scan: Node, domain: Shape) -> None:
        """Let a scan join the last chain over its domain, or begin one."""
        for k, chain in enumerate(self.chains):
            if chain.domain == domain:
                longer = self.extended(chain, scan)
                if longer is not None:
                    self.chains[k] = longer
                    return
                self.closed.append(self.chains.pop(k))
                break
        alone = self.extended(_Chain(domain), scan)
        if alone is not None:
            self.chains.append(alone)

    def extended(self, chain: _Chain, scan: Node) -> _Chain | None:
        """The chain with one more scan and what is computed for it alone, or None."""
        longer = _Chain(chain.domain)
        longer.scans = [*chain.scans, scan]
        longer.nodes = {*chain.nodes, scan}
        self.absorb(longer)
        if chain.scans:
            handed = [
                v.shape[0]
                for node in chain.scans
                for v in node.outs[node.params["num_carry"] :]
                if any([user in longer.nodes for user in self.users.get(v, ())])
            ]
            if not handed or sum(handed) > MOST_ROWS or self.returns(longer):
                return None
        return longer

    def absorb(self, chain: _Chain) -> None:
        """Add the pointwise nodes that only the chain reads, each at its own element."""
        waiting: list[int] = []  # the latest first, so that all that read a node are known
        seen: set[Node] = set()

        def ask(reader: Node) -> None:
            for v in reader.ins:
                node = self.makers.get(v)
                if node is not None and node not in seen and node not in chain.nodes:
                    seen.add(node)
                    heapq.heappush(waiting, -self.order[node])

        for node in chain.nodes:
            ask(node)
        computed = len(chain.nodes) - len(chain.scans)
        while waiting and computed < MOST_COMPUTED:
            node = self.graph.nodes[-heapq.heappop(waiting)]
            if not _may_join(node, chain.domain) or node.outs[0] in self.wanted:
                continue
            out = node.outs[0]
            users = self.users.get(out, ())
            if all([u in chain.nodes and _reads_own(u, out, chain.domain) for u in users]):
                chain.nodes.add(node)
                computed += 1
                ask(node)

    def returns(self, chain: _Chain) -> bool:
        """Whether something else depends on the chain and is read by it."""
        places = [self.order[node] for node in chain.nodes]
        behind: set[Val] = set()  # results of the chain, and what others make of them
        others: set[Val] = set()
        for node in self.graph.nodes[min(places) : max(places) + 1]:
            if node in chain.nodes:
                if any([v in others for v in node.ins]):
                    return True
                behind.update(node.outs)
            elif any([v in behind for v in node.ins]):
                behind.update(node.outs)
                others.update(node.outs)
        return False


def _domain(node: Node) -> Shape | None:
    """The shape of what a scan carries, if its rounds work on each element of that alone."""
    if type(node.rule) is not low.Region or node.rule.name != "scan":
        return None
    params = node.params
    consts, carries = params["num_consts"], params["num_carry"]
    domain: Shape = max([v.shape for v in node.outs[:carries]], key=len, default=())
    if not domain or math.prod(domain) < FEWEST_ELEMENTS or not params["length"] or node.effects:
        return None
    may = (domain, ())
    whole = [*node.ins[: consts + carries], *node.outs[:carries]]
    rows = [*node.ins[consts + carries :], *node.outs[carries:]]
    if not all([v.shape in may for v in whole]) or not all([v.shape[1:] in may for v in rows]):
        return None
    if not all([_plain(v) for v in (*whole, *rows)]) or not _alone(params["jaxpr"], domain):
        return None
    return domain


def _alone(jaxpr: ClosedJaxpr | Jaxpr, domain: Shape) -> bool:
    """Whether all that a jaxpr does is done for each element of the domain alone."""
    inner, consts = unclosed(jaxpr)
    if any([getattr(c, "shape", ()) for c in consts]):
        return False
    for eqn in inner.eqns:
        rule = eqn.primitive.loops
        if eqn.effects:
            return False
        ins, outs = (
            [getattr(a.aval, "shape", ()) for a in atoms] for atoms in (eqn.invars, eqn.outvars)
        )
        if not all([shape in (domain, ()) for shape in (*ins, *outs)]):
            return False
        body = called(eqn.params) if type(rule) is low.Region and rule.name not in LOOPS else None
        if body is not None:
            if not _alone(body, domain):
                return False
        elif type(rule) is not low.Pointwise:
            return False
        elif not rule.elementwise and any(ins):
            return False
    return True


def _may_join(node: Node, domain: Shape) -> bool:
    """Whether a node's result could be computed a piece of the domain at a time."""
    if type(node.rule) is not low.Pointwise or node.effects or len(node.outs) != 1:
        return False
    out = node.outs[0]
    rank = len(domain)
    if len(out.shape) not in (rank, rank + 1) or out.shape[-rank:] != domain or not out.size:
        return False
    return all([_plain(v) and v.size for v in (*node.ins, out)])


def _reads_own(node: Node, val: Val, domain: Shape) -> bool:
    """Whether a node reads of an operand only the element of the domain that it computes."""
    rank = len(domain)
    if type(node.rule) is low.Region:
        first = node.params["num_consts"]
        return not any([v is val for v in node.ins[:first]])
    if node.rule.elementwise:
        return True
    own = [Index.of(i) for i in loop_vars(node.outs[0].shape)]
    for v, seen in zip(node.ins, accessed(node, own), strict=True):
        if v is val and any([list(at[-rank:]) != own[-rank:] for at in seen]):
            return False
    return True


def _plain(val: Val) -> bool:
    return val.dtype.kind in _LANES and val.dtype not in COMPLEX_PARTS and val.dtype.itemsize <= 8


def _replaced(graph: Graph, chain: _Chain) -> list[Node]:
    """The graph's nodes with the chain as one, where the last of its nodes was; what reads its
    results follows."""
    held = [node for node in graph.nodes if node in chain.nodes]
    made = {v for node in held for v in node.outs}
    read = {v for node in graph.nodes if node not in chain.nodes for v in node.ins}
    read.update(graph.outs)
    ins = list(
        dict.fromkeys([v for node in held for v in node.ins if v not in made and v.literal is None])
    )
    outs = [v for node in held for v in node.outs if v in read]
    one = Node(
        chain.scans[0].primitive, {"nodes": held, "domain": chain.domain, "ins": tuple(ins)}, ins,
        outs, CHAIN, frozenset(), chain.scans[0].source,
    )  # fmt: skip
    nodes: list[Node] = []
    behind: list[Node] = []
    late = set(made)
    for node in graph.nodes:
        if node in chain.nodes:
            if node is held[-1]:
                nodes += [one, *behind]
                behind = []
                late = set()
        elif any([v in late for v in node.ins]):
            behind.append(node)
            late.update(node.outs)
        else:
            nodes.append(node)
    for v in outs:
        v.node = one
    return nodes


def separate(node: Node) -> Graph:
    """The nodes of a chain by themselves, on the operands that the chain has now."""
    now = dict(zip(node.params["ins"], node.ins, strict=True))
    graph = Graph(node.ins)
    graph.nodes = node.params["nodes"]
    for inner in graph.nodes:
        inner.ins = [now.get(v, v) for v in inner.ins]
    graph.outs = list(node.outs)
    return graph
