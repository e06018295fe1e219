"""Steps of nodes that are not loops: special kernels of `numjet.cpu.kernels`, else calls to Python."""

from __future__ import annotations

from typing import Any

from numjet.cpu.graph import Node
from numjet.cpu.program import Step


def steps(build: Any, node: Node) -> list[Step]:
    """The steps of a node with a `Kernel` or `Host` rule (or that no loop can hold)."""
    return [build.host(node)]
