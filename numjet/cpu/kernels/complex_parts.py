"""Sorts and running sums of complex numbers, as those of their real and imaginary parts.

Complex numbers are ordered by their real parts, and where these are alike by their imaginary parts;
parts of numbers that are moved along go each for itself. For: `kernels.expand`. What would break
it: an order that asks both parts at once.
"""

from __future__ import annotations

from typing import Any

from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.cpu.graph.nodes import Node, Val
from numjet.ops.complex_ops import complex_p, imag_p, real_p


class Parts:
    """Nodes that take complex values apart and put them together again, in place of `node`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes: list[Node] = []

    def add(self, primitive: Any, ins: list[Val], outs: list[Val], params: dict) -> None:
        """One more node."""
        self.nodes.append(self.node.instead(ins, outs, params, primitive))

    def of(self, x: Val) -> list[Val]:
        """The real and the imaginary part of a complex value, any other value as it is."""
        if x.dtype.kind != "c":
            return [x]
        parts = self.empty(x)
        for primitive, part in zip((real_p, imag_p), parts, strict=True):
            self.add(primitive, [x], [part], {})
        return parts

    def empty(self, x: Val) -> list[Val]:
        """Values that are to become the parts of `x`; itself where it has none."""
        if x.dtype.kind != "c":
            return [x]
        aval = ShapedArray(x.shape, dtypes.real_of(x.dtype))
        return [Val.of(aval), Val.of(aval)]

    def join(self, parts: list[Val], out: Val) -> None:
        """`out` becomes what these are the parts of."""
        if len(parts) == 2:
            self.add(complex_p, parts, [out], {})


def sort(node: Node) -> tuple[list[Node], Node, list[Node]]:
    """A sort in which there are complex numbers as one of real numbers: the nodes before it, itself
    and those after it."""
    before, after = Parts(node), Parts(node)
    ins = [before.of(x) for x in node.ins]
    outs = [after.empty(x) for x in node.outs]
    keys = sum([len(parts) for parts in ins[: node.params["num_keys"]]])
    inner = node.instead(sum(ins, []), sum(outs, []), {**node.params, "num_keys": keys})
    for parts, out in zip(outs, node.outs, strict=True):
        after.join(parts, out)
    return before.nodes, inner, after.nodes


def cumsum(node: Node) -> list[Node] | None:
    """The running sums of both parts; None where the numbers are real."""
    (x,), (out,) = node.ins, node.outs
    if x.dtype.kind != "c":
        return None
    made = Parts(node)
    sums = made.empty(out)
    for part, total in zip(made.of(x), sums, strict=True):
        made.add(node.primitive, [part], [total], node.params)
    made.join(sums, out)
    return made.nodes
