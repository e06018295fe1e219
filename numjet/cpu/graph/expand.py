"""Tracing of `Expand` lowerings: a primitive written in terms of others, as a jaxpr.

Used by `graph.flatten`. Remembered by primitive, params and operand avals.
"""

from __future__ import annotations

from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.memo import Memo
from numjet.cpu.graph.nodes import Node
from numjet.transforms.stage import stage_closed

_known: dict[Any, ClosedJaxpr] = Memo("expanded operations", 512)


def trace(node: Node) -> ClosedJaxpr:
    """The jaxpr of `node.rule.fn` on operands like `node.ins`."""
    avals = tuple(v.aval or ShapedArray(v.shape, v.dtype) for v in node.ins)
    try:
        key = (node.primitive, tuple(sorted(node.params.items())), avals)
        found = _known.get(key)
    except TypeError:  # unhashable or unordered params: traced each time
        return _trace(node, avals)
    if found is None:
        found = _known[key] = _trace(node, avals)
    return found


def _trace(node: Node, avals: tuple) -> ClosedJaxpr:
    params = node.params

    def run(*args: Any) -> list:
        out = node.rule.fn(*args, **params)
        return list(out) if isinstance(out, tuple | list) else [out]

    return stage_closed(run, avals)
