"""Products of integers of at most 16 bits, two or four steps of the depth at a time.

x86 multiplies pairs of 16-bit integers and adds the two products in one instruction (PMADDWD), and
where it has VNNI fours of unsigned and signed bytes, to a sum (VPDPBUSD). `packed(node)` puts the
depths of both operands in pairs or fours, each the 32 bits of one element, so that the product
library (`gemm`) runs the rest with `PAIRS` or `FOURS` as the element: half or a quarter as deep,
`multiply_add` where it has a fused multiplication of floats. Sums are those of 32-bit integers,
which wrap around. For: `dot`, `conv`, `tiles`. What would break it: operands of more than 16 bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.structural import convert_element_type_p
from numjet.cpu.builder.builder import Builder, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels.idioms import FOURS, PAIRS
from numjet.cpu.link import link
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import Expr

# Of fewer steps of the depth, rows or columns, or multiplications loops are as fast: those that
# form the product in 32 bits or more, and those that do in fewer, with more lanes.
_WIDE, _NARROW = (8, 4, 1 << 15), (32, 16, 1 << 17)
Read = Callable[..., Expr]  # an operand's element at these indices
_INT8, _UINT8, _INT32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)
_OPERANDS = _INT8, _UINT8, np.dtype(np.int16)
_INSTRUCTIONS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}
# Left bytes are unsigned for VPDPBUSD and right ones signed. Of other operands one is moved there
# by 128, which inverts the highest bit of each byte, and what the result is then too large by is
# 128 times this (below 0: too small) and the sum of the other one over the depth.
_MOVED = {(_UINT8, _INT8): None, (_INT8, _INT8): (0, 1), (_UINT8, _UINT8): (1, -1)}


def multiply_add(b: Builder, element: str, x: Value, y: Value, z: Value, lanes: int) -> Value:
    """z plus the products of each pair or four of x and y."""
    kind = f"<{lanes} x i32>"
    if element == FOURS:
        return b.call(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", kind, z, x, y)
    words = f"<{2 * lanes} x i16>"
    both = b.call(_INSTRUCTIONS[lanes], kind, b.bitcast(x, words), b.bitcast(y, words))
    return b.add(z, both)


def _in_fours(operands: Sequence[Val]) -> bool:
    """Whether the target multiplies fours of these operands' elements."""
    target, kinds = link.target(), tuple([v.dtype for v in operands])
    return kinds in _MOVED and target.has("avx512vnni" if link.vector_bytes() == 64 else "avxvnni")


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


def packed(node: Node, work: np.dtype) -> list[Node] | None:
    """Nodes that put the operands in pairs or fours, the product of these, and what makes its sums
    those of the operands, of the result's dtype; None where loops are better. work: the dtype in
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
    element = FOURS if _in_fours(node.ins) else PAIRS
    moved = _MOVED[node.ins[0].dtype, node.ins[1].dtype] if element == FOURS else None
    nodes = []

    def apply(
        ins: list[Val], shape: tuple[int, ...], params: dict[str, object],
        primitive: Primitive | None = None, rule: Pointwise | None = None,
    ) -> Val:  # fmt: skip
        made = Val.of(ShapedArray(shape, _INT32))
        nodes.append(node.instead(ins, [made], params, primitive, rule))
        return made

    for k, (v, contracted, batched, free) in enumerate(sides):
        axes = (*batched, contracted, *free) if k else (*batched, *free, contracted)
        flipped = moved is not None and moved[0] == k
        nodes.append(packing(node, v, axes, contracted, element, flipped))
    left, right = (made.outs[0] for made in nodes)
    batches = tuple(range(len(lb)))
    numbers = (((len(left.shape) - 1,), (len(lb),)), (batches, batches))
    params: dict[str, object]
    params = {"dimension_numbers": numbers, "preferred_element_type": None, "element": element}
    whole = apply([left, right], out.shape, params)
    if moved is not None:
        v, contracted, batched, free = sides[1 - moved[0]]
        begin = len(batched) + (len(sides[0][3]) if moved[0] == 0 else 0)
        places = {a: batched.index(a) if a in batched else begin + free.index(a)
                  for a in range(len(v.shape)) if a != contracted}  # fmt: skip
        wide = apply([v], v.shape, {"new_dtype": _INT32, "weak_type": False},
                     convert_element_type_p)  # fmt: skip
        sums = apply([wide], tuple([v.shape[a] for a in places]), {"axes": (contracted,)},
                     REGISTRY["reduce_sum"])  # fmt: skip

        def moved_back(e: ExprEmitter, index: Sequence[Index], x: Read, y: Read) -> Expr:
            sums = y(*[index[i] for i in places.values()])
            return e.sub(x(*index), e.mul(sums, 128 * moved[1]))

        whole = apply([whole, sums], out.shape, {}, rule=Pointwise(moved_back))
    if out.dtype != _INT32:
        to = {"new_dtype": out.dtype, "weak_type": False}
        nodes.append(node.instead([whole], [out], to, convert_element_type_p))
    else:
        nodes[-1].outs, out.node = [out], nodes[-1]
    return nodes


def packing(
    node: Node, v: Val, axes: Sequence[int], contracted: int, element: str, flipped: bool = False
) -> Node:
    """A node, a part of the work of `node`, that puts two or four neighbours of `v` along
    `contracted` into 32 bits, the first into the lowest; the axes of the result are those of `v`,
    in this order. Beyond the last are zeros. flipped: the highest bit of each byte is inverted."""
    depth, count = v.shape[contracted], 4 if element == FOURS else 2
    bits = 32 // count

    def pack(e: ExprEmitter, index: Sequence[Index], x: Read) -> Expr:
        at = [index[axes.index(a)] for a in range(len(axes))]
        first = at[contracted] * count
        parts = []
        for k in range(count):
            step = first + k
            whole = k == 0 or depth % count == 0
            here = step if whole else e.index_clamp(step, 0, depth - 1)
            part = e.cast(x(*at[:contracted], here, *at[contracted + 1 :]), _INT32)
            if k < count - 1:
                part = e.and_(part, (1 << bits) - 1)
            if k:
                part = e.shl(part, bits * k)
            if not whole:
                part = e.select(e.index_in_range(step, 0, depth), part, 0)
            parts.append(part)
        word = functools.reduce(e.or_, parts)
        return e.xor(word, -0x7F7F7F80) if flipped else word

    shape = tuple([-(-depth // count) if a == contracted else v.shape[a] for a in axes])
    made = Val.of(ShapedArray(shape, _INT32))
    return node.instead([v], [made], {}, rule=Pointwise(pack))
