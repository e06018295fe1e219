"""Nodes that are not loops as they stand: special kernels, products as loops, calls to Python."""

from __future__ import annotations

from typing import Any

from numjet.core import lowering as low
from numjet.cpu import kernels, products
from numjet.cpu.graph import Graph, Node
from numjet.cpu.program import Step


def expand(node: Node) -> list[Node] | None:
    """Nodes that compute the same and are better compiled, or None to run `node` as it is."""
    if (
        node.rule.name != "dot_general"
        or not node.outs[0].size
        or not all(v.size for v in node.ins)
    ):
        return kernels.expand(node)
    node = _without_transposes(node)
    if kernels.claims(node):
        return [node]
    found = kernels.expand(node)
    return products.expand(node) if found is None else found


def join_transposes(graph: Graph) -> None:
    """Turn `transpose(dot_general(a, b))` that swaps rows and columns into `dot_general(b, a)`."""
    uses: dict[int, int] = {}
    for val in (*graph.outs, *[v for node in graph.nodes for v in node.ins]):
        uses[id(val)] = uses.get(id(val), 0) + 1
    for node in graph.nodes:
        if node.primitive.name != "transpose":
            continue
        maker = node.ins[0].node
        if maker is None or maker.primitive.name != "dot_general" or uses[id(node.ins[0])] > 1:
            continue
        (lc, rc), (lb, rb) = maker.params["dimension_numbers"]
        batch, lhs, rhs = len(lb), len(maker.ins[0].shape), len(maker.ins[1].shape)
        left, right = lhs - batch - len(lc), rhs - batch - len(rc)
        swapped = [*range(batch + left, batch + left + right), *range(batch, batch + left)]
        if tuple(node.params["permutation"]) != (*range(batch), *swapped):
            continue
        # The transpose becomes the product, in its place; the old product is dead.
        node.primitive, node.rule = maker.primitive, maker.rule
        node.params = {**maker.params, "dimension_numbers": ((rc, lc), (rb, lb))}
        node.ins = [maker.ins[1], maker.ins[0]]


def _without_transposes(node: Node) -> Node:
    """A product that reads what its transposed operands were made from (other dimensions)."""
    ins = list(node.ins)
    contract, batch = [list(x) for x in node.params["dimension_numbers"]]
    for side in (0, 1):
        maker = ins[side].node
        while (
            maker is not None and maker.primitive.name == "transpose" and ins[side].literal is None
        ):
            order = maker.params["permutation"]
            free = [
                order[a]
                for a in range(len(order))
                if a not in contract[side] and a not in batch[side]
            ]
            if free != sorted(free):
                break
            contract[side] = tuple([order[a] for a in contract[side]])
            batch[side] = tuple([order[a] for a in batch[side]])
            ins[side] = maker.ins[0]
            maker = ins[side].node
    if ins == node.ins:
        return node
    params = {**node.params, "dimension_numbers": (tuple(contract), tuple(batch))}
    made = Node(node.primitive, params, ins, node.outs, node.rule, node.effects, node.source)
    for out in made.outs:
        out.node = made
    return made


def steps(build: Any, node: Node) -> list[Step]:
    """The steps of a node with a `Kernel` or `Host` rule (or that no loop can hold)."""
    if type(node.rule) is low.Kernel and all(v.size for v in (*node.ins, *node.outs)):
        generator = kernels.GENERATORS.get(node.rule.name)
        found = generator(build, node) if generator is not None else None
        if found is not None:
            return found
    return [build.host(node)]
