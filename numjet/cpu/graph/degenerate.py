"""Equations that have no kernel, or a dearer one than they need: on arrays without elements,
reductions of one element each, sums that run over a few, and products and extremes of complex
numbers that run along an axis.

For these kernels have no form: each would be a call of Python, in a loop one a round. Used by
`nodes.flatten`. What would break it: a reduction whose result over no elements is not one number,
or whose result of one element is another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.dtypes import KeyDType
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.structural import broadcast_in_dim, convert, full, zeros
from numjet.core.trace import Tracer
from numjet.ops.scan_functions import associative_scan

_SUMS = ("conv_general_dilated", "dot_general")
# What combines elements that come one after the other; so few elements, and beside so few others,
# are written out.
RUNNING = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
FEW_STEPS, FEW_BESIDE = 4, 32
# Products that are made side by side, and how many rows are, by a kernel that has one in each lane.
SIDES, _IN_LANES = 64, 16
# What gives its operands where the axis of this parameter has one place.
_ALONG = {
    "sort": "dimension", "cumsum": "axis", "cumprod": "axis", "cummax": "axis", "cummin": "axis",
    "cumlogsumexp": "axis",
}  # fmt: skip


def rule_of(primitive: Primitive, params: dict, ins: Sequence[Any], outs: Sequence[Any]) -> Any:
    """The lowering of an operation on operands of which some are empty; None where its own will
    do. ins: Vals; outs: avals."""
    rule = primitive.loops
    if type(rule) is low.Region or primitive.effects:
        return None
    if any([type(v.aval.dtype) is KeyDType for v in ins if v.aval is not None]):
        return None
    if not any([math.prod(out.shape) for out in outs]):
        if type(rule) is low.Pointwise:
            return None  # never made
        return low.Expand(lambda *args, **params: [zeros(out) for out in outs])
    out = outs[0]
    if primitive.reference and (type(rule) is low.Reduce or primitive.name in _SUMS):
        operands = [np.zeros(v.shape, v.dtype) for v in ins]
        value = np.asarray(primitive.reference(*operands, **params)).flat[0]
        return low.Expand(lambda *args, **params: full(out.shape, value, out.dtype, out.weak_type))
    if primitive.name == "pad":
        return low.Expand(lambda x, value, **params: broadcast_in_dim(value, out.shape, ()))
    if primitive.name == "dynamic_update_slice":
        return low.Expand(lambda x, update, *starts, **params: x)
    return None


def of_one(primitive: Primitive, params: dict, ins: Sequence[Any], outs: Sequence[Any]) -> Any:
    """The lowering of a reduction over axes of one element, and of what moves along such an axis;
    None over others."""
    if type(primitive.loops) is low.Reduce:
        axes = params["axes"]
        if any([ins[0].shape[a] != 1 for a in axes]):
            return None
        if "index_dtype" in params:
            return low.Expand(lambda x, **params: zeros(outs[0]))
        return low.Expand(lambda x, **params: REGISTRY["squeeze"].bind(x, dimensions=axes))
    if primitive.name == "top_k" and ins[0].shape[params["axis"]] == 1:
        return low.Expand(lambda x, **params: [x, zeros(outs[1])])
    along = _ALONG.get(primitive.name)
    if along is None or ins[0].shape[params[along]] != 1:
        return None
    return low.Expand(lambda *args, **params: list(args))


def of_complex(primitive: Primitive, params: dict, dtype: np.dtype) -> Any:
    """The lowering of running products and extremes of complex numbers, as an associative scan;
    None of others, which have kernels."""
    if dtype.kind != "c" or primitive.name == "cumsum":
        return None
    combine = REGISTRY[RUNNING[primitive.name]].bind
    return low.Expand(
        lambda x, *, axis, reverse: associative_scan(combine, x, reverse=reverse, axis=axis)
    )


def long_product(
    primitive: Primitive, params: dict[str, tuple[int, ...]], shape: Sequence[int],
    dtype: np.dtype,
) -> low.Expand | None:
    """The lowering of few products of many complex numbers each, which the kernel would make one
    after the other: `SIDES` products side by side, and their product. None of others."""
    kept = len(shape) - len(params["axes"])
    beside, count = tuple(shape[:kept]), math.prod(shape[kept:])
    along = sorted(params["axes"]) == list(range(kept, len(shape)))
    if dtype.kind != "c" or not along or count < 4 * SIDES or math.prod(beside) >= _IN_LANES:
        return None
    rounds = count // SIDES

    def reshape(x: Tracer, shape: tuple[int, ...]) -> Tracer:
        return REGISTRY["reshape"].bind(x, new_sizes=shape, dimensions=None)

    def part(x: Tracer, start: int, limit: int) -> Tracer:
        starts, limits = (0,) * kept + (start,), (*beside, limit)
        return REGISTRY["slice"].bind(x, start_indices=starts, limit_indices=limits, strides=None)

    def parts(x: Tracer, **_: object) -> Tracer:
        x = reshape(x, (*beside, count))
        sides = reshape(part(x, 0, rounds * SIDES), (*beside, rounds, SIDES))
        found = primitive.bind(sides, axes=(kept,))
        if count % SIDES:
            rest = part(x, rounds * SIDES, count)
            found = REGISTRY["concatenate"].bind(found, rest, dimension=kept)
        return primitive.bind(found, axes=(kept,))

    return low.Expand(parts)


def few_steps(primitive: Primitive, params: dict, shape: Sequence[int]) -> Any:
    """The lowering of sums and the like that run over few elements which lie side by side: one part
    an element; None over others, which have kernels of their own."""
    axis = params["axis"]
    count = shape[axis]
    if not 1 < count <= FEW_STEPS or math.prod(shape[axis + 1 :]) > FEW_BESIDE:
        return None
    combine = REGISTRY[RUNNING[primitive.name]]

    def parts(x: Tracer, **_: object) -> Any:
        dtype = x.aval.dtype
        if dtype.itemsize == 2 and dtypes.is_floating(dtype):
            x = convert(x, dtypes.float32)  # rounded once each, as by the kernels
        order = range(count - 1, -1, -1) if params["reverse"] else range(count)
        made: dict[int, Any] = {}
        total = None
        for k in order:
            start = tuple([k if a == axis else 0 for a in range(len(shape))])
            limit = tuple([k + 1 if a == axis else n for a, n in enumerate(shape)])
            part = REGISTRY["slice"].bind(
                x, start_indices=start, limit_indices=limit, strides=None
            )
            total = made[k] = part if total is None else combine.bind(total, part)
        found = [made[k] for k in range(count)]
        return convert(REGISTRY["concatenate"].bind(*found, dimension=axis), dtype)

    return low.Expand(parts)
