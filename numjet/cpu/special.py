"""Nodes that are not loops as they stand: special kernels, products as loops, calls to Python."""

from __future__ import annotations

from typing import Any

from numjet.core import lowering as low
from numjet.cpu import kernels, products
from numjet.cpu.graph import Node
from numjet.cpu.program import Step


def expand(node: Node) -> list[Node] | None:
    """Nodes with loop rules that compute the same, or None to run `node` as it is."""
    if type(node.rule) is low.Kernel and node.rule.name == "dot_general" and node.outs[0].size \
            and all(v.size for v in node.ins) and not kernels.claims(node):
        return products.expand(node)
    return None


def steps(build: Any, node: Node) -> list[Step]:
    """The steps of a node with a `Kernel` or `Host` rule (or that no loop can hold)."""
    generator = kernels.GENERATORS.get(node.rule.name) if type(node.rule) is low.Kernel else None
    found = generator(build, node) if generator is not None else None
    return [build.host(node)] if found is None else found
