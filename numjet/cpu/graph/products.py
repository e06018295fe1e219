"""dot_general as loops: a product over all axes, then a sum over the contracted ones.

`expand(node)` gives the nodes; they fuse with their neighbours like any others (bias and activation
behind a small product run in its kernel). Used where no special kernel does better: small
products, vectors, integers. The product itself is never stored.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise, Reduce, elementwise_loops
from numjet.core.structural import convert_element_type_p, reduce_sum_p
from numjet.cpu.graph.nodes import Node, Val
from numjet.ops.dot import product_dtypes

_SUM, _ANY = Reduce("add"), Reduce("or")


def expand(node: Node) -> list[Node]:
    """Nodes that compute a dot_general node's result."""
    lhs, rhs = node.ins
    out = node.outs[0]
    (lc, rc), (lb, rb) = node.params["dimension_numbers"]
    lf = [a for a in range(len(lhs.shape)) if a not in lc and a not in lb]
    rf = [a for a in range(len(rhs.shape)) if a not in rc and a not in rb]
    # Axes of the product, as (axis of lhs, axis of rhs): batch, free ones of lhs, contracted ones,
    # free ones of rhs. A matrix that meets a vector is read in its own order, row by row.
    inner = [*[(i, -1) for i in lf], *zip(lc, rc, strict=True), *[(-1, j) for j in rf]]
    if not rf or not lf:
        inner.sort(key=itemgetter(1 if rf else 0))
    pairs = [*zip(lb, rb, strict=True), *inner]
    shape = tuple([lhs.shape[i] if i >= 0 else rhs.shape[j] for i, j in pairs])
    at_lhs = _places([i for i, _ in pairs])
    at_rhs = _places([j for _, j in pairs])
    _, work = product_dtypes(lhs.dtype, rhs.dtype, node.params["preferred_element_type"])
    boolean = work == np.dtype(bool)

    def product(e: Any, index: list, x: Any, y: Any) -> Any:
        one = e.cast(x(*[index[a] for a in at_lhs]), work)
        two = e.cast(y(*[index[a] for a in at_rhs]), work)
        return e.and_(one, two) if boolean else e.mul(one, two)

    whole = Val.of(ShapedArray(shape, work))
    nodes = [node.instead([lhs, rhs], [whole], {}, rule=Pointwise(product))]
    axes = tuple(sorted([at_lhs[i] for i in lc]))
    if not axes:
        summed = whole
    else:
        summed = out if work == out.dtype else Val.of(ShapedArray(out.shape, work))
        rule = _ANY if boolean else _SUM
        nodes.append(node.instead([whole], [summed], {"axes": axes}, reduce_sum_p, rule))
    if summed is not out:
        cast = elementwise_loops(lambda e, x, **_: e.cast(x, out.dtype))
        params = {"new_dtype": out.dtype, "weak_type": False}
        nodes.append(node.instead([summed], [out], params, convert_element_type_p, cast))
    return nodes


def _places(axes: list[int]) -> list[int]:
    """Where in `axes` each of an operand's axes stands; those of -1 are the other operand's."""
    places = {a: k for k, a in enumerate(axes) if a >= 0}
    return [places[a] for a in range(len(places))]
