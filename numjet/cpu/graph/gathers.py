"""Gathers at positions of several axes that were computed apart, as gathers along one axis.

`x[i, j]` gathers at the concatenation of i and j, which would have to be written to memory: what
reads one part of a concatenation at a known place has to stand in a later kernel. So the axes are
joined, and the places i·n + j of the joined one are computed where they are read. Used by
`nodes.flatten`. What would break it: joined axes of more elements than an int32 counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.dtypes import KeyDType
from numjet.core.primitive import REGISTRY
from numjet.core.structural import convert, full
from numjet.core.trace import Tracer
from numjet.ops.arithmetic import add, clamp, mul
from numjet.ops.gather import GatherDimensionNumbers, GatherScatterMode
from numjet.ops.logic import bitwise_and, ge, lt
from numjet.ops.shape import expand_dims, reshape, select_n, squeeze

_LARGEST = np.iinfo(np.int32).max


def along_one_axis(params: dict, ins: Sequence[Any]) -> tuple[list[Any], low.Expand] | None:
    """The operands (Vals) of such a gather, the positions apart, and its lowering; None of
    others."""
    table, places = ins
    joined = places.node
    if joined is None or joined.primitive.name != "concatenate":
        return None
    numbers, parts = params["dimension_numbers"], joined.ins
    axes, last = numbers.start_index_map, len(places.shape) - 1
    first, stop = min(axes, default=0), max(axes, default=0) + 1
    if (
        len(axes) < 2
        or numbers.operand_batching_dims
        or sorted(axes) != list(range(first, stop))
        or sorted(numbers.collapsed_slice_dims) != sorted(axes)
        or joined.params["dimension"] != last
        or any([v.shape[last] != 1 or v.literal is not None for v in parts])
        or not places.dtype.kind == "i"
        or math.prod(table.shape[first:stop]) > _LARGEST
        or table.aval is None
        or type(table.aval.dtype) is KeyDType
    ):
        return None
    return [table, *parts], low.Expand(_joined)


def _joined(
    table: Tracer,
    *parts: Tracer,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    mode: GatherScatterMode,
    **params: object,
) -> Tracer:
    shape, axes = table.aval.shape, dimension_numbers.start_index_map
    first, stop = min(axes), max(axes) + 1
    fills = mode is GatherScatterMode.FILL_OR_DROP
    inside: Any = None
    place: Any = None
    for axis, part in zip(axes, parts, strict=True):
        part = squeeze(part, (-1,))
        if part.aval.dtype.itemsize < 4:
            part = convert(part, dtypes.int32)
        number = part.aval.dtype.type
        if fills:
            within = bitwise_and(ge(part, number(0)), lt(part, number(shape[axis])))
            inside = within if inside is None else bitwise_and(inside, within)
        else:
            part = clamp(number(0), part, number(shape[axis] - 1))
        stride = np.int32(math.prod(shape[axis + 1 : stop]))
        along = convert(part, dtypes.int32)
        along = along if stride == 1 else mul(along, stride)
        place = along if place is None else add(place, along)
    if inside is not None:
        place = select_n(inside, full(place.aval.shape, -1, dtypes.int32), place)
    count = math.prod(shape[first:stop])
    return REGISTRY["gather"].bind(
        reshape(table, (*shape[:first], count, *shape[stop:])),
        expand_dims(place, (-1,)),
        dimension_numbers=dimension_numbers._replace(
            collapsed_slice_dims=(first,), start_index_map=(first,)
        ),
        slice_sizes=(*slice_sizes[:first], 1, *slice_sizes[stop:]),
        mode=mode,
        **params,
    )
