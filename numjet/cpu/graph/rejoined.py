"""Concatenations in another form: of neighbouring slices, of many single elements.

`stack([x[0], x[1], x[2]])` is a copy of `x[0:3]`. Where elements next to each other come from
different operands each is chosen among all; of more than `MANY` operands the result is one of
groups, each in memory, so that n operands cost n √n choices instead of n². `fusion.fuse` asks for
it. What would break it: a primitive in `_SHAPES` that changes the order of elements.
"""

from __future__ import annotations

import math

from numjet.base.record import NamedTuple
from numjet.core.avals import ShapedArray
from numjet.core.primitive import REGISTRY
from numjet.cpu.graph.nodes import Graph, Node, Val

MANY = 16
_SHAPES = ("reshape", "squeeze")


class Cut(NamedTuple):
    """Elements `start` to `stop` of one axis of `source`, which are `rows` rows of the result."""

    source: Val
    axis: int
    start: int
    stop: int
    rows: int


def rewrite(graph: Graph) -> None:
    """Put neighbours together, and many operands into groups, by a new list of nodes if needed."""
    for change in (_joined, _grouped):
        joins = [node for node in graph.nodes if node.primitive.name == "concatenate"]
        found = {node: new for node in joins if (new := change(node))}
        if found:
            graph.nodes = [new for node in graph.nodes for new in found.get(node, [node])]


def groups(node: Node) -> list[Val]:
    """Operands of a concatenation that are to be in memory, since they have many themselves."""
    if node.primitive.name != "concatenate":
        return []
    made = [(v, v.node) for v in node.ins if v.node and v.node.primitive.name == "concatenate"]
    return [v for v, inner in made if len(inner.ins) * len(node.ins) > MANY]


def _grouped(node: Node) -> list[Node] | None:
    """A concatenation of about as many groups as each has operands, of many single elements."""
    dimension, size = node.params["dimension"], math.isqrt(len(node.ins)) + 1
    singles = sum([math.prod(v.shape[dimension:]) == 1 for v in node.ins])
    if len(node.ins) <= MANY or 2 * singles < len(node.ins):
        return None
    made, outs = [], []
    for start in range(0, len(node.ins), size):
        ins, shape = node.ins[start : start + size], list(node.outs[0].shape)
        shape[dimension] = sum([v.shape[dimension] for v in ins])
        out = Val.of(ShapedArray(tuple(shape), node.outs[0].aval.dtype))
        made.append(node.instead(ins, [out]))
        outs.append(out)
    return [*made, node.instead(outs, node.outs)]


def _cut(part: Val, dimension: int) -> Cut | None:
    """Where an operand was cut from, if in the order that it is joined in."""
    val = part
    while (node := val.node) is not None and node.primitive.name in _SHAPES:
        val = node.ins[0]
    if node is None or node.primitive.name != "slice" or node.params["strides"] is not None:
        return None
    source, starts = node.ins[0], node.params["start_indices"]
    axes = [a for a, n in enumerate(val.shape) if n != source.shape[a]]
    if len(axes) != 1 or math.prod(val.shape[: axes[0]]) != math.prod(part.shape[:dimension]):
        return None
    start = starts[axes[0]]
    return Cut(source, axes[0], start, start + val.shape[axes[0]], part.shape[dimension])


def _joined(node: Node) -> list[Node] | None:
    """The nodes of a concatenation of fewer operands; None where no two are neighbours."""
    dimension = node.params["dimension"]
    runs: list[tuple[Val, Cut | None, bool]] = []  # an operand, what it covers, if more than one
    for part in node.ins:
        cut = _cut(part, dimension)
        last = runs[-1][1] if runs else None
        if cut and last and cut[:3] == (last.source, last.axis, last.stop):
            joined = last._replace(stop=cut.stop, rows=last.rows + cut.rows)
            runs[-1] = runs[-1][0], joined, True
        else:
            runs.append((part, cut, False))
    if len(runs) == len(node.ins):
        return None
    made: list[Node] = []

    def put(name: str, params: dict, ins: list[Val], out: Val) -> Val:
        made.append(node.instead(ins, [out], params, REGISTRY[name]))
        return out

    def new(shape: list[int]) -> Val:
        return Val.of(ShapedArray(tuple(shape), node.outs[0].aval.dtype))

    def whole(part: Val, cut: Cut) -> Val:
        """What lies together, in the shape in which it is joined."""
        source, axis, start, stop, rows = cut
        starts, limits, shape = [0] * len(source.shape), list(source.shape), list(part.shape)
        starts[axis], limits[axis], shape[dimension] = start, stop, rows
        if limits[axis] - start != source.shape[axis]:
            inside = [n - m for m, n in zip(starts, limits)]
            places = {"start_indices": tuple(starts), "limit_indices": tuple(limits)}
            source = put("slice", {**places, "strides": None}, [source], new(inside))
        out = node.outs[0] if len(runs) == 1 else new(shape)
        sizes = {"new_sizes": out.shape, "dimensions": None}
        return put("reshape", sizes, [source], out)

    ins = [whole(part, cut) if several and cut else part for part, cut, several in runs]
    if len(ins) > 1:
        put("concatenate", node.params, ins, node.outs[0])
    return made
