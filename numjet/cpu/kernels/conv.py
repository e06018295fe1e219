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
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.structural import broadcast_in_dim_p, convert_element_type_p, transpose_p
from numjet.cpu.graph.nodes import Node, Val, literal
from numjet.cpu.kernels.idioms import merge, strides as strides_of
from numjet.cpu.kernels.products import dot, gemm
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values
from numjet.ops.shape import pad_p, reshape_p
from numjet.ops.slicing import slice_p

_MOST_CALLS = 256
# Neighbours that are features of one place, least and most, and how many such places there are.
_BLOCKS, _FEWEST = (16, 64), 4


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
    if lhs.dtype != rhs.dtype:
        return None
    block = _block(node)
    if not block and lhs.dtype == out.dtype == work and _is_plain(node):
        return None
    nodes: list[Node] = []

    def apply(
        primitive: Any, x: Val, sizes: tuple[int, ...], dtype: Any, *more: Val, **params: Any
    ) -> Val:
        made = Val.of(ShapedArray(sizes, np.dtype(dtype)))
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
    if block:
        # One number a place: `block` of them are the features of one place.
        *others, size, _ = shape
        count = -(-size // block)
        missing = (count * block + kernel.shape[-3] - 1) - image.shape[-2]
        if missing > 0:
            zero = literal(0, ShapedArray((), work))
            config = (*[(0, 0, 0)] * (ndim - 2), (0, missing, 0), (0, 0, 0))
            longer = (*image.shape[:-2], image.shape[-2] + missing, 1)
            image = apply(pad_p, image, longer, work, zero, padding_config=config)
        kernel = _bands(apply, kernel, block, work)
        params["window_strides"] = (*params["window_strides"][:-1], block)
        blocks = (*others, count, block)
        result = apply(node.primitive, image, blocks, work, kernel, **params)
        row = (*others, count * block, 1)
        result = apply(reshape_p, result, row, work, new_sizes=row, dimensions=None)
        if count * block > size:
            result = apply(
                slice_p, result, shape, work,
                start_indices=(0,) * ndim, limit_indices=shape, strides=None,
            )  # fmt: skip
    else:
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


def _block(node: Node) -> int:
    """How many neighbours of a convolution of one feature with one kernel are computed as the
    features of one place; 0 where that gains nothing. A product of one column reads a window for
    each of its results: 1,000,000 numbers with 9 took 2.8 ms, with 64 18 ms."""
    lhs, rhs = node.ins
    ls, rs, os = node.params["dimension_numbers"]
    if len(ls) < 3 or lhs.shape[ls[1]] != 1 or rhs.shape[rs[0]] != 1:
        return 0
    strides, dilations = node.params["window_strides"], node.params["rhs_dilation"]
    if strides[-1] != 1 or dilations[-1] != 1 or node.params["feature_group_count"] != 1:
        return 0
    width, size = rhs.shape[rs[-1]], node.outs[0].shape[os[-1]]
    block = min(max(1 << (width - 1).bit_length(), _BLOCKS[0]), _BLOCKS[1])
    return block if width > 1 and size >= _FEWEST * block else 0


def _bands(apply: Callable[..., Val], kernel: Val, block: int, work: np.dtype) -> Val:
    """A kernel of one feature at `block` places of a window that holds all of them."""
    *outer, width, _, _ = kernel.shape
    wide, rank = width + block, len(outer)

    def shaped(x: Val, shape: tuple[int, ...]) -> Val:
        return apply(reshape_p, x, shape, work, new_sizes=shape, dimensions=None)

    zero = literal(0, ShapedArray((), work))
    config = (*[(0, 0, 0)] * rank, (0, block, 0))
    padded = apply(pad_p, shaped(kernel, (*outer, width)), (*outer, wide), work, zero,
                   padding_config=config)  # fmt: skip
    rows = (*outer, block, wide)
    at = (*range(rank), rank + 1)
    every = apply(broadcast_in_dim_p, padded, rows, work, shape=rows, broadcast_dimensions=at)
    flat = shaped(every, (*outer, block * wide))
    # A row that is one shorter begins one later: each window's numbers move by one.
    last = (*outer, block * (wide - 1))
    cut = apply(slice_p, flat, last, work, start_indices=(0,) * len(last), limit_indices=last,
                strides=None)  # fmt: skip
    bands = shaped(cut, (*outer, block, wide - 1))
    turned = (*outer, wide - 1, block)
    made = apply(transpose_p, bands, turned, work, permutation=(*range(rank), rank + 1, rank))
    return shaped(made, (*outer, wide - 1, 1, block))


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
