"""Special kernels: what loops over index arithmetic would compute slowly.

`generator(name)(build, node)` returns the steps of a node whose lowering rule is `Kernel(name)`,
or None where the generator does not handle its dtypes or shapes (the compiler then calls Python).
For: `cpu.fusion.standalone`. Most families are loaded when a program needs them: together they take
longer than a small program does to compile. What would break it: a step that touches memory it
does not list.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.products import dot
from numjet.cpu.program.steps import Step

Generator = Callable[[Any, Node], list[Step] | None]

# Kernel -> the module and the function that generate it.
_GENERATORS = {
    "cholesky": "linalg.linalg.cholesky",
    "conv": "conv.generate",
    "dot_general": "products.dot.generate",
    "eig": "linalg.spectral.eig",
    "eigh": "linalg.spectral.eigh",
    "fft": "fft.generate",
    "geqrf": "linalg.reflectors.geqrf",
    "hessenberg": "linalg.spectral.hessenberg",
    "householder_product": "linalg.factors.householder_product",
    "lu": "linalg.factors.lu",
    "lu_pivots_to_permutation": "linalg.factors.permutation",
    "ormqr": "linalg.reflectors.ormqr",
    "qr": "linalg.factors.qr",
    "scatter": "scatter.generate",
    "schur": "linalg.spectral.schur",
    "solve": "linalg.factors.solve",
    "sort": "sorting.sort.generate",
    "svd": "linalg.spectral.svd",
    "top_k": "sorting.top_k.generate",
    "triangular_solve": "linalg.linalg.triangular_solve",
    "tridiagonal": "linalg.reflectors.tridiagonal",
    "tridiagonal_solve": "linalg.reflectors.tridiagonal_solve",
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), "cumulative.generate"
    ),
}


def _family(name: str) -> Any:
    return importlib.import_module(f"numjet.cpu.kernels.{name}")


def generator(name: str) -> Generator | None:
    """What generates the kernels of a name, if there is such a kernel."""
    if name not in _GENERATORS:
        return None
    family, _, function = _GENERATORS[name].rpartition(".")
    return getattr(_family(family), function)


def claims(node: Node) -> bool:
    """Whether a product or a scatter is better as a special kernel than as loops."""
    if node.primitive.name == "dot_general":
        return dot.claims(node)
    return _family("scatter").claims(node)


def expand(node: Node) -> list[Node] | None:
    """Nodes that prepare a special kernel's operands and run it, or None: run it as it is."""
    if node.rule.name in ("conv", "sort"):
        return _family(_GENERATORS[node.rule.name].rpartition(".")[0]).expand(node)
    if node.rule.name == "cumsum" and node.ins[0].size:
        return _family("complex_parts").cumsum(node)
    if node.rule.name == "dot_general" and all(v.size for v in (*node.ins, *node.outs)):
        return dot.widened(node)
    return None
