"""Special kernels: what loops over index arithmetic would compute slowly.

`GENERATORS[name](build, node)` returns the steps of a node whose lowering rule is `Kernel(name)`,
or None where the generator does not handle its dtypes or shapes (the compiler then calls Python).
For: `cpu.special`. What would break it: a step that touches memory it does not list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.cpu.graph import Node
from numjet.cpu.kernels import (
    conv,
    cumulative,
    dot,
    factors,
    fft,
    linalg,
    scatter,
    sort,
    spectral,
    top_k,
)
from numjet.cpu.program import Step

Generator = Callable[[Any, Node], list[Step] | None]

GENERATORS: dict[str, Generator] = {
    "cholesky": linalg.cholesky,
    "conv": conv.generate,
    "dot_general": dot.generate,
    "eig": spectral.eig,
    "eigh": spectral.eigh,
    "fft": fft.generate,
    "hessenberg": spectral.hessenberg,
    "householder_product": factors.householder_product,
    "lu": factors.lu,
    "lu_pivots_to_permutation": factors.permutation,
    "qr": factors.qr,
    "scatter": scatter.generate,
    "schur": spectral.schur,
    "solve": factors.solve,
    "sort": sort.generate,
    "svd": spectral.svd,
    "top_k": top_k.generate,
    "triangular_solve": linalg.triangular_solve,
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


def expand(node: Node) -> list[Node] | None:
    """Nodes that prepare a special kernel's operands and run it, or None: run it as it is."""
    if node.rule.name == "conv":
        return conv.expand(node)
    if node.rule.name == "sort":
        return sort.expand(node)
    if node.rule.name == "dot_general" and all(v.size for v in (*node.ins, *node.outs)):
        return dot.widened(node)
    return None
