"""Tracing of `Expand` lowerings: a primitive written in terms of others, as a jaxpr.

Used by `graph.nodes` and `graph.storage`. Remembered by primitive, params and operand avals.
"""

from __future__ import annotations

from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.memo import Memo
from numjet.cpu.graph.nodes import Node
from numjet.transforms.stage import stage_expansion

_known: dict[Any, ClosedJaxpr] = Memo("expanded operations", 512)


def trace(node: Node) -> ClosedJaxpr:
    """The jaxpr of `node.rule.fn` on operands like `node.ins`."""
    avals = tuple(v.aval or ShapedArray(v.shape, v.dtype) for v in node.ins)
    try:
        key = (node.primitive, tuple(sorted(node.params.items())), avals)
        found = _known.get(key)
    except TypeError:  # unhashable or unordered params: traced each time
        return stage_expansion(node.rule, node.params, avals)
    if found is None:
        found = _known[key] = stage_expansion(node.rule, node.params, avals)
    return found
