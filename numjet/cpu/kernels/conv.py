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
from numjet.cpu.kernels.idioms import merge, strides as strides_of
from numjet.cpu.kernels.products import dot, gemm
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values
from numjet.ops.shape import pad_p

_MOST_CALLS = 256


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
    lhs, rhs = node.ins
    out = node.outs[0]
    work = np.dtype(np.float32) if out.dtype.name in ("float16", "bfloat16") else out.dtype
    if work.name not in dot.ELEMENTS or not (lhs.size and rhs.size and out.size):
        return None
    if lhs.dtype != rhs.dtype or (lhs.dtype == out.dtype == work and _is_plain(node)):
        return None
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

    ls, rs, os = node.params["dimension_numbers"]
    ndim = len(lhs.shape)
    image = turn(cast(lhs, work), (ls[0], *ls[2:], ls[1]))
    gaps = zip(node.params["padding"], node.params["lhs_dilation"], strict=True)
    padding = ((0, 0, 0), *[(int(a), int(b), int(d) - 1) for (a, b), d in gaps], (0, 0, 0))
    if any(p != (0, 0, 0) for p in padding):
        shape = tuple(
            [
                n + low + high + max(n - 1, 0) * inner
                for n, (low, high, inner) in zip(image.shape, padding, strict=True)
            ]
        )
        zero = literal(0, ShapedArray((), work))
        image = apply(pad_p, image, shape, work, zero, padding_config=padding)
    kernel = turn(cast(rhs, work), (*rs[2:], rs[1], rs[0]))
    spatial = [out.shape[os[i + 2]] for i in range(ndim - 2)]
    shape = (out.shape[os[0]], *spatial, out.shape[os[1]])
    params = {
        **node.params,
        "dimension_numbers": type(node.params["dimension_numbers"])(*_specs(ndim)),
        "padding": ((0, 0),) * (ndim - 2),
        "lhs_dilation": (1,) * (ndim - 2),
        "preferred_element_type": None,
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


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of a plain convolution, or None where its products would be too many."""
    lhs, rhs = node.ins
    out = node.outs[0]
    element = dot.ELEMENTS.get(out.dtype.name)
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

    function = gemm.function(
        element, m, columns, depth, (ars, size), (b_strides[-2], size), crs, loops, offsets,
        segments,
    )  # fmt: skip
    flops = 2 * out.size * math.prod(rhs.shape[:-1])
    reads = [build.materialize(v) for v in node.ins]
    return [SpecialStep("conv", reads, list(node.outs), function, flops=flops)]
