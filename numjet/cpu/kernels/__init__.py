"""Special kernels: what loops over index arithmetic would compute slowly.

`GENERATORS[name](build, node)` returns the steps of a node whose lowering rule is `Kernel(name)`,
or None where the generator does not handle its dtypes or shapes (the compiler then calls Python).
For: `cpu.special`. What would break it: a step that touches memory it does not list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.cpu.graph import Node
from numjet.cpu.kernels import cumulative, dot, scatter, sort
from numjet.cpu.program import Step

Generator = Callable[[Any, Node], list[Step] | None]

GENERATORS: dict[str, Generator] = {
    "dot_general": dot.generate,
    "scatter": scatter.generate,
    "sort": sort.generate,
    **{
        name: cumulative.generate
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
    },
}


def claims(node: Node) -> bool:
    """Whether a product or a scatter is better as a special kernel than as loops."""
    if node.primitive.name == "dot_general":
        return dot.claims(node)
    return scatter.claims(node)
