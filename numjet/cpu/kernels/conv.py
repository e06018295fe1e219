"""conv_general_dilated as products over shifted rows of a padded image, by the product library.

`expand(node)` brings a convolution to its plain form: channels last, padding and gaps written out,
kernel axes first; the layout changes fuse with their neighbours. `generate` runs that form: the
row of outputs along the longest axis is a matrix whose rows overlap in memory, one product of
depth (kernel width times channels), once for each row of the kernel. No patches are copied.
For: `cpu.fusion.standalone` and `kernels.generator`. What would break it: padding left in a plain
node.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.structural import convert_element_type_p, transpose_p
from numjet.cpu.graph.nodes import Node, Val, literal
from numjet.cpu.kernels.idioms import PAIRS, merge, strides as strides_of
from numjet.cpu.kernels.products import dot, gemm, packed
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values
from numjet.ops.shape import pad_p

_MOST_CALLS = 256
_ELEMENTS = {**dot.ELEMENTS, **dot.INTEGERS}


def _specs(ndim: int) -> tuple[tuple[int, ...], ...]:
    spatial = tuple(range(1, ndim - 1))
    kernel = (ndim - 1, ndim - 2, *range(ndim - 2))
    return (0, ndim - 1, *spatial), kernel, (0, ndim - 1, *spatial)


def _is_plain(node: Node) -> bool:
    params = node.params
    specs = _specs(len(node.ins[0].shape))
    return (
        all(tuple(a) == b for a, b in zip(params["dimension_numbers"], specs, strict=True))
        and all(tuple(p) == (0, 0) for p in params["padding"])
        and all(d == 1 for d in params["lhs_dilation"])
    )


def expand(node: Node) -> list[Node] | None:
    """Nodes that lead to a plain convolution and from it; None where it is plain already."""
    out, operands = node.outs[0], node.ins
    (_, rs, _), kernel = node.params["dimension_numbers"], operands[1].shape
    features, depth = kernel[rs[1]], operands[1].size // max(kernel[rs[0]], 1)
    even = node.params["feature_group_count"] == 1 or features % 2 == 0
    if features > 1 and even and packed.suits(operands, depth, out.dtype):
        found = _expanded(node, True)
        if found is not None and all(_products(x) for x in found if x.params.get("element")):
            return found
    return _expanded(node, False)


def _expanded(node: Node, paired: bool) -> list[Node] | None:
    """As `expand`; paired: with operands whose features are in pairs (`products.packed`)."""
    lhs, rhs = node.ins
    out = node.outs[0]
    work = _work(out.dtype)
    if work.name not in _ELEMENTS or not (lhs.size and rhs.size and out.size):
        return None
    if lhs.dtype != rhs.dtype or (lhs.dtype == out.dtype == work and _is_plain(node)):
        return None
    params = node.params
    ls, rs, os = params["dimension_numbers"]
    if paired:
        work = np.dtype(np.int32)
    nodes: list[Node] = []

    def apply(
        primitive: Any, x: Val, shape: tuple[int, ...], dtype: Any, *more: Val, **params: Any
    ) -> Val:
        made = Val.of(ShapedArray(shape, np.dtype(dtype)))
        nodes.append(node.instead([x, *more], [made], params, primitive))
        return made

    def turn(x: Val, order: tuple[int, ...]) -> Val:
        if order == tuple(range(len(order))):
            return x
        shape = tuple([x.shape[a] for a in order])
        return apply(transpose_p, x, shape, x.dtype, permutation=order)

    def cast(x: Val, dtype: np.dtype) -> Val:
        if x.dtype == dtype:
            return x
        return apply(convert_element_type_p, x, x.shape, dtype, new_dtype=dtype, weak_type=False)

    def pair(x: Val, contracted: int) -> Val:
        made = packed.packing(node, x, range(len(x.shape)), contracted, PAIRS)
        nodes.append(made)
        return made.outs[0]

    ndim = len(lhs.shape)
    given = lhs.dtype if paired else work
    image = turn(cast(lhs, given), (ls[0], *ls[2:], ls[1]))
    gaps = zip(params["padding"], params["lhs_dilation"], strict=True)
    padding = ((0, 0, 0), *[(int(a), int(b), int(d) - 1) for (a, b), d in gaps], (0, 0, 0))
    if any(p != (0, 0, 0) for p in padding):
        shape = tuple(
            [
                n + low + high + max(n - 1, 0) * inner
                for n, (low, high, inner) in zip(image.shape, padding, strict=True)
            ]
        )
        zero = literal(0, ShapedArray((), given))
        image = apply(pad_p, image, shape, given, zero, padding_config=padding)
    kernel = turn(cast(rhs, given), (*rs[2:], rs[1], rs[0]))
    if paired:
        image, kernel = pair(image, ndim - 1), pair(kernel, ndim - 2)
    spatial = [out.shape[os[i + 2]] for i in range(ndim - 2)]
    shape = (out.shape[os[0]], *spatial, out.shape[os[1]])
    params = {
        **params,
        "dimension_numbers": type(params["dimension_numbers"])(*_specs(ndim)),
        "padding": ((0, 0),) * (ndim - 2),
        "lhs_dilation": (1,) * (ndim - 2),
        "preferred_element_type": None,
        "element": PAIRS if paired else None,
    }
    result = apply(node.primitive, image, shape, work, kernel, **params)
    order = [0] * ndim
    order[os[0]], order[os[1]] = 0, ndim - 1
    for i in range(ndim - 2):
        order[os[i + 2]] = i + 1
    result = cast(turn(result, tuple(order)), out.dtype)
    # The last node writes the value that the others know.
    last = nodes[-1]
    last.outs = [out]
    out.node = last
    return nodes


def _work(dtype: np.dtype) -> np.dtype:
    """The dtype in which results of `dtype` are computed."""
    if dtype.name in ("float16", "bfloat16"):
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtype.kind in "iu" and dtype.itemsize < 4 else dtype


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of a plain convolution, or None where its products would be too many."""
    products = _products(node)
    if products is None:
        return None
    out = node.outs[0]
    flops = 2 * out.size * math.prod(node.ins[1].shape[:-1])
    reads = [build.materialize(v) for v in node.ins]
    return [SpecialStep("conv", reads, [out], gemm.function(*products), flops=flops)]


def _products(node: Node) -> tuple | None:
    """What `gemm.function` takes for a plain convolution, or None where that is not to run it."""
    lhs, rhs = node.ins
    out = node.outs[0]
    element = node.params.get("element") or _ELEMENTS.get(out.dtype.name)
    if element is None or lhs.dtype != out.dtype or rhs.dtype != out.dtype or not _is_plain(node):
        return None
    size = out.dtype.itemsize
    groups = node.params["feature_group_count"]
    strides, dilations = node.params["window_strides"], node.params["rhs_dilation"]
    a_strides, b_strides, c_strides = (strides_of(v.shape, size) for v in (lhs, rhs, out))
    spatial = len(strides)
    rows = merge(
        [(out.shape[0], a_strides[0], c_strides[0])]
        + [
            (out.shape[i + 1], a_strides[i + 1] * strides[i], c_strides[i + 1])
            for i in range(spatial)
        ]
    ) or [(1, 0, c_strides[-2])]
    m, ars, crs = rows.pop(max(range(len(rows)), key=lambda i: rows[i][0]))
    columns = rhs.shape[-1] // groups
    loops = [(count, x, 0, z) for count, x, z in rows]
    if groups > 1:
        loops.append((groups, rhs.shape[-2] * size, columns * size, columns * size))
    # The depth: input features, with the last kernel axis where they follow one another.
    kernel = [(rhs.shape[i], a_strides[i + 1] * dilations[i], b_strides[i]) for i in range(spatial)]
    depth = rhs.shape[-2]
    if kernel and groups == 1 and (dilations[-1] == 1 or kernel[-1][0] == 1):
        depth *= kernel.pop()[0]
    segments = (1, 0)
    if kernel and kernel[-1][0] * depth <= gemm.k_block(element):
        segments = kernel.pop()[:2]
    offsets = [(0, 0)]
    for count, x, y in kernel:
        offsets = [(i + x * t, j + y * t) for i, j in offsets for t in range(count)]
    loops.sort()
    around = loops[:-2]
    if len(offsets) * math.prod([loop[0] for loop in around]) > _MOST_CALLS:
        return None
    return (
        element, m, columns, depth, (ars, size), (b_strides[-2], size), crs, loops, offsets,
        segments,
    )  # fmt: skip
