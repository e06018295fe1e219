"""Convolutions of each feature with a kernel of its own, as sums of products of shifted images.

The product library would run one product of a single column for each feature. Written as
elementwise operations, a term for each place of the kernel, they are one loop over the result that
fuses with its neighbours. Used by `nodes.flatten`. What would break it: a kernel with more places
than a loop should have terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.structural import broadcast_in_dim, convert, transpose
from numjet.core.trace import Tracer
from numjet.ops.arithmetic import add, mul
from numjet.ops.conv_numbers import ConvDimensionNumbers
from numjet.ops.shape import pad, reshape
from numjet.ops.slicing import slice as slice_

# Features from which it is done so, and places of the kernel up to which.
FEWEST, MOST = 4, 64


def rule_of(params: dict, ins: Sequence[Any]) -> low.Expand | None:
    """The lowering of such a convolution; None of others. ins: Vals."""
    groups, (_, rs, _) = params["feature_group_count"], params["dimension_numbers"]
    kernel = ins[1].shape
    places = math.prod([kernel[a] for a in rs[2:]])
    if groups < FEWEST or kernel[rs[1]] != 1 or not 1 <= places <= MOST:
        return None
    return low.Expand(_by_places)


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
    narrow = dtypes.is_floating(out_dtype) and out_dtype.itemsize < 4
    work = np.dtype(np.float32) if narrow else out_dtype
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
