"""index_take: parts of an array at positions along some axes. For `lax`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.array import as_array
from numjet.ops.arithmetic import add, rem
from numjet.ops.gather import gather
from numjet.ops.indexing import GatherDimensionNumbers
from numjet.ops.logic import lt
from numjet.ops.shape import canonical_axis, concatenate, expand_dims, select_n


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Any:
    """The parts of `src` at positions along `axes`.

    src: an array. idxs: for each axis a vector of integers, all of one length k, which count modulo
    the axis's length. axes: integers. Result: [k, ...] with the axes of src that are not among
    `axes`, in their order. Raises ValueError for another number of vectors, IndexError for
    an axis out of range, TypeError for axes without elements.

    >>> from numjet import lax, numpy as jnp
    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([0, 1]), jnp.array([1, 0])), (0, 1))
    Array([2, 3], dtype=int32)
    """
    src, positions = as_array(src), [as_array(x) for x in idxs]
    axes = tuple([canonical_axis(a, src.aval.ndim, IndexError) for a in axes])
    if len(positions) != len(axes) or any(p.aval.ndim != 1 for p in positions):
        raise ValueError(
            f"index_take: one vector of positions for each of the axes {axes} is needed, got "
            f"{[p.aval.str_short() for p in positions]}."
        )
    columns = []
    for p, a in zip(positions, axes):
        length = np.asarray(src.aval.shape[a], p.aval.dtype)
        p = rem(p, length)
        p = select_n(lt(p, np.asarray(0, p.aval.dtype)), p, add(p, length))
        columns.append(expand_dims(p, (1,)))
    starts = concatenate(columns, 1)
    kept = [a for a in range(src.aval.ndim) if a not in axes]
    numbers = GatherDimensionNumbers(tuple(range(1, len(kept) + 1)), tuple(sorted(axes)), axes)
    sizes = [1 if a in axes else n for a, n in enumerate(src.aval.shape)]
    return gather(src, starts, numbers, sizes, mode="promise_in_bounds")
