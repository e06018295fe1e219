"""Sums of an array and of zeros with something in a window of them, as updates of the window.

`rewrite(graph)`:

    x + dynamic_update_slice(zeros, window, places)
        becomes dynamic_update_slice(x, dynamic_slice(x, places) + window, places)
    x + scatter-add(zeros, places, rows)
        becomes scatter-add(x, places, rows)

where x is given from outside and is read nowhere else, and the sum is a result. Reading a row in
each round of a loop makes such a gradient: the whole array would be read and written in every
round, where an update is done in place. For: `fuse`. Keeps: values, but that -0 elsewhere
stays -0.
"""

from __future__ import annotations

from numjet.base.record import NamedTuple
from numjet.core.avals import ShapedArray
from numjet.core.primitive import REGISTRY
from numjet.cpu.graph.nodes import Graph, Node, Val

_SUMS = ("add", "add_any")
_UPDATES = ("dynamic_update_slice", "scatter-add")
# An array of fewer elements is as quickly added as a whole, as is one that the window is much of.
FEWEST, PARTS = 256, 4


class _Sum(NamedTuple):
    node: Node
    whole: Val
    updates: list[Node]


def rewrite(graph: Graph) -> None:
    """Put updates in place of such sums, by a new list of nodes if there are any."""
    found = _sums(graph)
    if found:
        graph.nodes = [new for node in graph.nodes for new in _instead(found.get(node), node)]


def _sums(graph: Graph) -> dict[Node, _Sum]:
    if not any([node.primitive.name in _UPDATES for node in graph.nodes]):
        return {}
    candidates = [n for n in graph.nodes if n.primitive.name in _SUMS and n.outs[0].size >= FEWEST]
    uses: dict[Val, int] = {}
    for val in (*graph.outs, *[v for node in graph.nodes for v in node.ins]):
        uses[val] = uses.get(val, 0) + 1
    # What a value outside is made of is not the graph's: it may be a row of what its node made.
    made = {val: node for node in graph.nodes for val in node.outs}
    outside, chained = set(graph.args), {}
    for node in candidates:
        for whole, part in (node.ins, node.ins[::-1]):
            if (whole in outside or whole in chained) and uses[whole] == 1:
                updates = _updates(part, made, uses)
                if updates and PARTS * sum([_new(u).size for u in updates]) <= whole.size:
                    chained[node.outs[0]] = _Sum(node, whole, updates)
                    break
    results, kept = set(graph.outs), {}
    for out, found in reversed(chained.items()):
        if out in results and uses[out] == 1:
            kept[found.node] = found
            results.add(found.whole)
    return kept


def _new(update: Node) -> Val:
    """What an update writes."""
    return update.ins[1 if update.primitive.name == _UPDATES[0] else 2]


def _updates(part: Val, made: dict[Val, Node], uses: dict[Val, int]) -> list[Node]:
    """The updates of zeros whose sum a value is; none where it is anything else."""
    node = made.get(part)
    if node is None or uses[part] != 1:
        return []
    if node.primitive.name in _SUMS:
        first, second = [_updates(v, made, uses) for v in node.ins]
        return [*first, *second] if first and second else []
    if node.primitive.name not in _UPDATES:
        return []
    base = node.ins[0].node
    if base is None or base.primitive.name != "broadcast_in_dim" or base.ins[0].literal is None:
        return []
    return [node] if base.ins[0].literal == 0 else []


def _instead(found: _Sum | None, node: Node) -> list[Node]:
    if found is None:
        return [node]
    made: list[Node] = []
    whole = found.whole
    for update in found.updates:
        last = update is found.updates[-1]
        out = node.outs[0] if last else Val.of(ShapedArray(whole.shape, whole.dtype))
        made += _added(node, update, whole, out)
        whole = out
    return made


def _added(node: Node, update: Node, whole: Val, out: Val) -> list[Node]:
    """The nodes that make `out`, which is `whole` with what `update` adds to zeros."""
    if update.primitive.name != _UPDATES[0]:
        return [update.instead([whole, *update.ins[1:]], [out])]
    _, window, *places = update.ins
    old, new = [Val.of(ShapedArray(window.shape, whole.dtype)) for _ in range(2)]
    sizes = {"slice_sizes": window.shape}
    return [
        node.instead([whole, *places], [old], sizes, REGISTRY["dynamic_slice"]),
        node.instead([old, window], [new]),
        update.instead([whole, new, *places], [out]),
    ]
