"""Convolutions in other forms: of each feature with a kernel of its own, and of images with gaps.

The product library would run one product of a single column for each feature. Written as
elementwise operations, a term for each place of the kernel, such convolutions are one loop over the
result that fuses with its neighbours; long kernels of one feature are taken in pieces. Of images
with gaps (transposed convolutions, gradients of those with strides) it would multiply the zeros in
the gaps: results that lie as far apart as the image's numbers are a convolution without gaps, with
every so many-th place of the kernel. Used by `nodes.flatten`. What would break it: a kernel with
more places than a loop should have terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.avals import ShapedArray
from numjet.core.structural import broadcast_in_dim, convert, transpose, zeros
from numjet.core.trace import Tracer
from numjet.ops.arithmetic import add, mul
from numjet.ops.conv import conv_general_dilated_p
from numjet.ops.conv_numbers import ConvDimensionNumbers
from numjet.ops.shape import concatenate, expand_dims, pad, reshape, rev
from numjet.ops.slicing import dynamic_slice_in_dim, slice as slice_, slice_in_dim
from numjet.ops.while_loop import fori_loop

# Features from which it is done so, and places of the kernel up to which, also of a single kernel
# for a single feature.
FEWEST, MOST, MOST_OF_ONE = 4, 64, 128
# Convolutions without gaps that one with gaps becomes, at most.
MOST_PHASES = 16


def rule_of(params: dict, ins: Sequence[Any], out: ShapedArray) -> low.Expand | None:
    """The lowering of such a convolution; None of others. ins: Vals."""
    if not out.size:
        return None
    groups, (_, rs, _) = params["feature_group_count"], params["dimension_numbers"]
    kernel = ins[1].shape
    places = math.prod([kernel[a] for a in rs[2:]])
    alone = groups == 1 and kernel[rs[0]] == 1  # one feature, and one kernel
    most = MOST_OF_ONE if alone else MOST if groups >= FEWEST else 0
    if kernel[rs[1]] == 1 and 1 <= places <= most:
        return low.Expand(_by_places)
    gaps = params["lhs_dilation"]
    if math.prod(gaps) == 1:
        along = kernel[rs[-1]] == places and params["window_strides"][-1] == 1
        return low.Expand(_by_pieces) if alone and kernel[rs[1]] == 1 and along else None
    ways = zip(gaps, params["window_strides"], params["rhs_dilation"], strict=True)
    if math.prod(gaps) <= MOST_PHASES and all([g == 1 or s == d == 1 for g, s, d in ways]):
        return low.Expand(_by_phases)
    fits = [(kernel[a], *pads) == (g, g - 1, g - 1)
            for a, g, pads in zip(rs[2:], gaps, params["padding"], strict=True)]  # fmt: skip
    once = {*params["window_strides"], *params["rhs_dilation"]} == {1}
    if groups == 1 and once and all(fits):
        return low.Expand(_by_product)
    return None


def _by_places(
    image: Tracer,
    kernel: Tracer,
    *,
    window_strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    preferred_element_type: np.dtype | None,
    **_: object,
) -> Tracer:
    ls, rs, os = dimension_numbers
    out_dtype = np.dtype(preferred_element_type or image.aval.dtype)
    work = _work(out_dtype)
    axis, count = ls[1], kernel.aval.shape[rs[0]]
    image, kernel = convert(image, work), convert(kernel, work)
    if count > feature_group_count:  # each feature has several kernels
        shape = list(image.aval.shape)
        shape.insert(axis + 1, count // feature_group_count)
        kept = tuple([a for a in range(len(shape)) if a != axis + 1])
        image = broadcast_in_dim(image, tuple(shape), kept)
        image = reshape(image, (*shape[:axis], count, *shape[axis + 2 :]))
    config = [(0, 0, 0)] * len(ls)
    for a, (before, behind), step in zip(ls[2:], padding, lhs_dilation, strict=True):
        config[a] = (before, behind, step - 1)
    if any([each != (0, 0, 0) for each in config]):
        image = pad(image, work.type(0), config)
    sizes = [kernel.aval.shape[a] for a in rs[2:]]
    shape = list(image.aval.shape)
    for a, size, stride, step in zip(ls[2:], sizes, window_strides, rhs_dilation, strict=True):
        shape[a] = (shape[a] - (size - 1) * step - 1) // stride + 1
    total = None
    for place in np.ndindex(*sizes):
        start, limit, strides = [0] * len(shape), list(image.aval.shape), [1] * len(shape)
        for a, k, stride, step in zip(ls[2:], place, window_strides, rhs_dilation, strict=True):
            start[a], strides[a] = k * step, stride
            limit[a] = k * step + (shape[a] - 1) * stride + 1
        begin, end = [0] * len(rs), list(kernel.aval.shape)
        for a, k in zip(rs[2:], place, strict=True):
            begin[a], end[a] = k, k + 1
        weight = reshape(slice_(kernel, begin, end), (count,))
        term = mul(slice_(image, start, limit, strides),
                   broadcast_in_dim(weight, tuple(shape), (axis,)))  # fmt: skip
        total = term if total is None else add(total, term)
    order = [0] * len(ls)
    for source, target in zip(ls, os, strict=True):
        order[target] = source
    return convert(transpose(total, tuple(order)), out_dtype)


def _work(dtype: np.dtype) -> np.dtype:
    """The dtype in which results of `dtype` are added up."""
    narrow = dtypes.is_floating(dtype) and dtype.itemsize < 4
    return np.dtype(np.float32) if narrow else dtype


def _by_pieces(
    image: Tracer,
    kernel: Tracer,
    *,
    padding: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    preferred_element_type: np.dtype | None,
    **params: object,
) -> Tracer:
    """A long kernel along the last axis: the sum of convolutions with pieces of it, in a loop."""
    ls, rs, _ = dimension_numbers
    out_dtype = np.dtype(preferred_element_type or image.aval.dtype)
    work = _work(out_dtype)
    config = [(0, 0, 0)] * len(ls)
    for a, (before, behind) in zip(ls[2:], padding, strict=True):
        config[a] = (before, behind, 0)
    image, kernel = pad(convert(image, work), work.type(0), config), convert(kernel, work)
    places, step = kernel.aval.shape[rs[-1]], rhs_dilation[-1]
    size = image.aval.shape[ls[-1]] - (places - 1) * step

    def piece(start: Tracer | np.int32, count: int) -> Tracer:
        reach = size + (count - 1) * step
        return conv_general_dilated_p.bind(
            dynamic_slice_in_dim(image, mul(start, np.int32(step)), reach, ls[-1]),
            dynamic_slice_in_dim(kernel, start, count, rs[-1]),
            padding=((0, 0),) * len(padding), rhs_dilation=rhs_dilation,
            dimension_numbers=dimension_numbers, preferred_element_type=None, **params,
        )  # fmt: skip

    rounds = (places - 1) // MOST
    last = piece(np.int32(rounds * MOST), places - rounds * MOST)
    total = fori_loop(0, rounds, lambda k, total: add(total, piece(mul(k, MOST), MOST)), last)
    return convert(total, out_dtype)


def _by_phases(
    image: Tracer,
    kernel: Tracer,
    *,
    padding: tuple,
    lhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    **params: object,
) -> Tracer:
    """Result d·q + r of a convolution with gaps of d and a padding of p reads the places p - r,
    p - r + d, … of the kernel, modulo d, and the image's numbers from q - (p - r) // d on."""
    ls, rs, os = dimension_numbers
    gaps = [k for k, gap in enumerate(lhs_dilation) if gap > 1]
    given = {**params, "padding": padding, "lhs_dilation": lhs_dilation,
             "dimension_numbers": dimension_numbers}  # fmt: skip
    whole = conv_general_dilated_p.out_avals((image.aval, kernel.aval), given)
    sizes = [whole.shape[a] for a in os[2:]]

    def phase(at: dict[int, int]) -> Tracer:
        """The results that lie at place `at` of each axis, and so far from there on."""
        start, limit = [0] * len(rs), list(kernel.aval.shape)
        strides, pads, shape = [1] * len(rs), list(padding), list(whole.shape)
        empty = False
        for k, r in at.items():
            gap, axis = lhs_dilation[k], rs[k + 2]
            start[axis], strides[axis] = (padding[k][0] - r) % gap, gap
            places = len(range(start[axis], limit[axis], gap))
            before = (padding[k][0] - r - start[axis]) // gap
            count = shape[os[k + 2]] = -(-sizes[k] // gap)
            if not places:
                empty = True
            pads[k] = before, count + places - 1 - before - image.aval.shape[ls[k + 2]]
        if empty:  # a kernel with fewer places than gaps
            return zeros(ShapedArray(tuple(shape), whole.dtype))
        return conv_general_dilated_p.bind(
            image, slice_(kernel, start, limit, strides), padding=tuple(pads),
            lhs_dilation=(1,) * len(lhs_dilation), dimension_numbers=dimension_numbers, **params,
        )  # fmt: skip

    def joined(at: dict[int, int]) -> Tracer:
        if len(at) == len(gaps):
            return phase(at)
        k = gaps[len(at)]
        axis = os[k + 2]
        parts = [expand_dims(joined({**at, k: r}), (axis + 1,)) for r in range(lhs_dilation[k])]
        both = concatenate(parts, axis + 1)
        shape = both.aval.shape
        merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
        return slice_in_dim(reshape(both, merged), 0, sizes[k], 1, axis)

    return joined({})


def _by_product(
    image: Tracer,
    kernel: Tracer,
    *,
    padding: tuple,
    lhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    **params: object,
) -> Tracer:
    """Where the kernel is as large as the gaps each number of the image makes results of its own:
    patches, whose numbers are features of one product."""
    ls, rs, os = dimension_numbers
    n = len(lhs_dilation)
    kernel = rev(transpose(kernel, (rs[1], *rs[2:], rs[0])), tuple(range(1, n + 1)))
    features, *sizes, count = kernel.aval.shape
    kernel = reshape(kernel, (features, *[1] * n, math.prod(sizes) * count))
    result = conv_general_dilated_p.bind(
        image,
        kernel,
        padding=((0, 0),) * n,
        lhs_dilation=(1,) * n,
        dimension_numbers=ConvDimensionNumbers(
            ls, (n + 1, 0, *range(1, n + 1)), (0, n + 1, *range(1, n + 1))
        ),
        **params,
    )
    batch, *places, _ = result.aval.shape
    patches = reshape(result, (batch, *places, *sizes, count))
    order = [axis for k in range(1, n + 1) for axis in (k, k + n)]
    patches = transpose(patches, (0, *order, 2 * n + 1))
    whole = [place * size for place, size in zip(places, sizes, strict=True)]
    back = [0] * (n + 2)
    for source, target in enumerate((os[0], *os[2:], os[1])):
        back[target] = source
    return transpose(reshape(patches, (batch, *whole, count)), tuple(back))
