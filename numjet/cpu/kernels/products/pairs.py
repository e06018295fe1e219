"""Products of integers of at most 16 bits, two steps of the depth at a time.

x86 multiplies pairs of 16-bit integers and adds the two products in one instruction (PMADDWD).
`in_pairs(node)` puts the depths of both operands in pairs, each the 32 bits of one element, so that
the product library (`gemm`) runs the rest with `PAIRS` as the element: half as deep, `multiply_add`
where it has a fused multiplication of floats. Sums are those of 32-bit integers, which wrap around.
For: `dot`, `conv`, `tiles`. What would break it: operands of more than 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise
from numjet.core.structural import convert_element_type_p
from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.link import link
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import Expr

# Of fewer steps of the depth, rows or columns, or multiplications loops are as fast: those that
# form the product in 32 bits or more, and those that do in fewer, with more lanes.
_WIDE, _NARROW = (8, 4, 1 << 15), (32, 16, 1 << 17)
_OPERANDS = tuple([np.dtype(name) for name in ("int8", "uint8", "int16")])
_INSTRUCTIONS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}


def multiply_add(b: Builder, x: Value, y: Value, z: Value, lanes: int) -> Value:
    """z plus the two products of each pair of x and y."""
    words = f"<{2 * lanes} x i16>"
    kind = f"<{lanes} x i32>"
    both = b.call(_INSTRUCTIONS[lanes], kind, b.bitcast(x, words), b.bitcast(y, words))
    return b.add(z, both)


def suits(operands: Sequence[Val], depth: int, work: np.dtype) -> bool:
    """Whether the target multiplies pairs of these operands' elements, and sums of so many, wrapped
    around in 32 bits, are those of `work`."""
    target = link.target()
    if any(v.dtype not in _OPERANDS for v in operands) or not target.triple.startswith("x86_64"):
        return False
    if link.vector_bytes() == 64 and not target.has("avx512bw"):
        return False
    ranges = [np.iinfo(v.dtype) for v in operands]
    largest = math.prod([max(-int(values.min), int(values.max)) for values in ranges])
    return work.itemsize <= 4 or depth * largest < 1 << 31


def in_pairs(node: Node, work: np.dtype) -> list[Node] | None:
    """Nodes that put the operands in pairs, the product of these, and a conversion of its sums
    where the result is of another dtype than int32; None where loops are better. work: the dtype in
    which the product is formed."""
    out = node.outs[0]
    (lc, rc), (lb, rb) = node.params["dimension_numbers"]
    if len(lc) != 1 or not suits(node.ins, node.ins[0].shape[lc[0]], work):
        return None
    depth = node.ins[0].shape[lc[0]]
    sides = []
    for v, contracted, batched in ((node.ins[0], lc[0], lb), (node.ins[1], rc[0], rb)):
        free = [a for a in range(len(v.shape)) if a != contracted and a not in batched]
        sides.append((v, contracted, batched, free))
    deep, side, many = _WIDE if work.itemsize >= 4 else _NARROW
    if depth < deep or depth * out.size < many:
        return None
    if min([math.prod([v.shape[a] for a in free]) for v, _, _, free in sides]) < side:
        return None
    nodes = []
    for (v, contracted, batched, free), last in zip(sides, (True, False), strict=True):
        axes = (*batched, *free, contracted) if last else (*batched, contracted, *free)
        nodes.append(pairing(node, v, axes, contracted))
    left, right = (made.outs[0] for made in nodes)
    whole = out if out.dtype == np.int32 else Val.of(ShapedArray(out.shape, np.dtype(np.int32)))
    batches = tuple(range(len(lb)))
    numbers = (((len(left.shape) - 1,), (len(lb),)), (batches, batches))
    params = {"dimension_numbers": numbers, "preferred_element_type": None, "pairs": True}
    nodes.append(node.instead([left, right], [whole], params, rule=node.rule))
    if whole is not out:
        to = {"new_dtype": out.dtype, "weak_type": False}
        nodes.append(node.instead([whole], [out], to, convert_element_type_p))
    return nodes


def pairing(node: Node, v: Val, axes: Sequence[int], contracted: int) -> Node:
    """A node, a part of the work of `node`, that puts two neighbours of `v` along `contracted` into
    the low and the high half of 32 bits; the axes of the result are those of `v`, in this order.
    The last of an odd number is beside a zero."""
    depth = v.shape[contracted]

    def pair(e: ExprEmitter, index: Sequence[Index], x: Callable[..., Expr]) -> Expr:
        at = [index[axes.index(a)] for a in range(len(axes))]
        first = at[contracted] * 2
        second = first + 1

        def read(step: Index) -> Expr:
            element = x(*[*at[:contracted], step, *at[contracted + 1 :]])
            return e.cast(element, np.dtype(np.int32))

        low = e.and_(read(first), 0xFFFF)
        if depth % 2 == 0:
            return e.or_(e.shl(read(second), 16), low)
        high = e.shl(read(e.index_clamp(second, 0, depth - 1)), 16)
        return e.or_(e.select(e.index_in_range(second, 0, depth), high, 0), low)

    shape = tuple([-(-depth // 2) if a == contracted else v.shape[a] for a in axes])
    made = Val.of(ShapedArray(shape, np.dtype(np.int32)))
    return node.instead([v], [made], {}, rule=Pointwise(pair))
