"""Primitives for what is recorded as others: split, stack, tile, unstack, stage and empty.

For `lax` and for interpreters that write jaxprs themselves. The functions of `ops.arrange` record
slices and concatenations, which kernels look through.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.structural import reduce_sum
from numjet.ops.arrange import split, stack, tile, unstack
from numjet.ops.composed import composed
from numjet.ops.shape import concatenate, reshape

empty_p = composed(
    "empty2",
    lambda *, dtype, memory_space, weak_type: ArrayImpl(
        np.zeros((), dtype), ShapedArray((), dtype, weak_type)
    ),
    differentiable=False,
)
stage_p = composed("stage", lambda x: x)


def _beside(operands: Any, *, axis: int, **params: Any) -> tuple[dict, int]:
    """The mapped axis before the others."""
    return {"axis": axis + 1, **params}, 0


split_p = composed(
    "split",
    split,
    several=True,
    transposed=lambda cts, _, *, sizes, axis: [concatenate(cts, axis)],
    batched=_beside,
)
stack_p = composed(
    "stack",
    lambda *xs, axis: stack(xs, axis),
    transposed=lambda cts, *_, axis: unstack_p.bind(*cts, axis=axis),
    # An axis before the mapped one stays there.
    batched=lambda operands, *, axis: ({"axis": axis and axis + 1}, 0 if axis else 1),
)


def _untile(cts: list, x: Any, *, reps: tuple) -> list:
    """The sum of the copies."""
    pairs = [n for pair in zip(reps, x.aval.shape, strict=True) for n in pair]
    return [reduce_sum(reshape(cts[0], pairs), tuple(range(0, len(pairs), 2)))]


tile_p = composed(
    "tile",
    tile,
    transposed=_untile,
    batched=lambda operands, *, reps: ({"reps": (1, *reps)}, 0),
)
unstack_p = composed(
    "unstack",
    unstack,
    several=True,
    transposed=lambda cts, _, *, axis: [stack_p.bind(*cts, axis=axis)],
    batched=_beside,
)


def stage(x: Any, /) -> Any:
    """x, a number or an array, as an Array, or as a value of the function being traced.

    Within a traced function a constant so becomes part of the program. Result: x's shape and dtype.
    Raises TypeError for other objects.

    >>> from numjet import lax
    >>> lax.stage(1.5)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return as_array(x) if isinstance(x, Array) else stage_p.bind(as_array(x))
