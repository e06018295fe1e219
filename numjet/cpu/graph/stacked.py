"""Reductions over the axis along which arrays were stacked, as operations on the arrays.

`min(stack([a, b, c]), 0)` is `min(min(a, b), c)`: one kernel that computes a, b and c and keeps
none of them, where the stack would be written to memory, or read through a test for each element.
`fusion.fuse` asks for it. What would break it: a reduction of another meaning than its operation
between two elements.
"""

from __future__ import annotations

from collections import Counter

from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Reduce
from numjet.core.primitive import REGISTRY, Primitive
from numjet.cpu.graph.nodes import Graph, Node, Val

# As many arrays as one loop reads side by side.
MOST = 32
_EXACT = ("max", "min", "and", "or", "xor")  # others round: sums of narrow floats are kept wider


def rewrite(graph: Graph) -> None:
    """Replace such reductions of stacks that nobody else reads, by a new list of nodes."""
    if not any([node.primitive.name == "concatenate" for node in graph.nodes]):
        return
    uses: Counter = Counter(graph.outs)
    for node in graph.nodes:
        uses.update(node.ins)
    found = {node: _combined(node) for node in graph.nodes if _fits(node, uses)}
    if found:
        graph.nodes = [new for node in graph.nodes for new in found.get(node, [node])]


def _fits(node: Node, uses: Counter) -> bool:
    if type(node.rule) is not Reduce or node.rule.op not in (*_EXACT, "add", "mul"):
        return False
    whole = node.ins[0]
    joined = whole.node
    if joined is None or joined.primitive.name != "concatenate" or uses[whole] != 1:
        return False
    if whole is not joined.outs[0] or node.outs[0].dtype != whole.dtype:
        return False
    if node.rule.op not in _EXACT and dtypes.is_floating(whole.dtype) and whole.dtype.itemsize < 4:
        return False
    axis = joined.params["dimension"]
    return (
        axis in node.params["axes"]
        and 2 <= len(joined.ins) <= MOST
        and all([v.shape[axis] == 1 for v in joined.ins])
    )


def _combined(node: Node) -> list[Node]:
    """The nodes that compute a reduction's result from the arrays of the stack."""
    joined = node.ins[0].node
    assert joined is not None  # _fits
    axis = joined.params["dimension"]
    axes = tuple([a - (a > axis) for a in node.params["axes"] if a != axis])
    made: list[Node] = []

    def put(primitive: Primitive, params: dict, ins: list[Val], outs: list[Val]) -> Val:
        made.append(node.instead(ins, outs, params, primitive))
        return outs[0]

    def flat(part: Val) -> Val:
        """An array as it was before it got the axis."""
        shape = (*part.shape[:axis], *part.shape[axis + 1 :])
        if part.node is not None and part.node.primitive.name == "reshape":
            inner = part.node.ins[0]
            if inner.shape == shape:
                return inner
        out = Val.of(ShapedArray(shape, part.aval.dtype))
        return put(REGISTRY["squeeze"], {"dimensions": (axis,)}, [part], [out])

    first, *others = [flat(part) for part in joined.ins]
    for k, part in enumerate(others):
        last = not axes and k == len(others) - 1
        outs = node.outs if last else [Val.of(ShapedArray(first.shape, first.aval.dtype))]
        first = put(REGISTRY[node.rule.op], {}, [first, part], outs)
    if axes:
        put(node.primitive, {**node.params, "axes": axes}, [first], node.outs)
    return made
