"""What gather and scatter share: modes, dimension numbers, and the NumPy index arrays they mean.

Used by `ops.gather` and `ops.scatter`. Out-of-bounds positions are decided here once, so that a
gather and the scatter that is its transpose always agree.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from numjet.base.record import NamedTuple
from numjet.core.structural import numpy_axes


class GatherScatterMode(enum.Enum):
    """What happens to indices that reach outside the operand.

    CLIP moves the window inside; FILL_OR_DROP gives the fill value (gather) or drops the update
    (scatter); PROMISE_IN_BOUNDS says that it does not happen (a gather then clamps, a scatter
    drops).

    >>> from numjet import lax
    >>> lax.GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 1>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of its name: 'clip', 'fill', 'drop', 'promise_in_bounds'; None means fill or
        drop.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        found = _MODES.get(mode) if isinstance(mode, str | None) else None
        if found is None:
            raise ValueError(
                f"Unknown gather mode {mode!r}, or scatter mode: use 'clip', 'fill', 'drop' or "
                "'promise_in_bounds'."
            )
        return found


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """Which axes of a gather mean what; the last axis of the indices holds one start per named
    axis.

    offset_dims: output axes that walk the window; collapsed_slice_dims: operand axes of window size
    1 left out of the output; start_index_map: the operand axis of each index component;
    operand_batching_dims and start_indices_batching_dims: axes that operand and indices share.

    >>> from numjet import lax, numpy as jnp
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(jnp.array([5, 6, 7]), jnp.array([[2]]), numbers, (1,))
    Array([7], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of a scatter mean what; the mirror image of `GatherDimensionNumbers`.

    update_window_dims: axes of the updates that walk the window; inserted_window_dims: operand axes
    of window size 1 left out of the updates; scatter_dims_to_operand_dims: the operand axis of each
    index component; operand_batching_dims and scatter_indices_batching_dims: axes that operand and
    indices share.

    >>> from numjet import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[2]]), jnp.ones(1), numbers)
    Array([0., 0., 1.], dtype=float32)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def as_tuples(numbers: Any) -> Any:
    """Dimension numbers with hashable fields."""
    return type(numbers)(*[tuple([int(i) for i in field]) for field in numbers])


def mapped(numbers: Any, indices_too: bool) -> Any:
    """The numbers where the operand (and the updates) have a mapped axis in front: one of the
    window, or, where the indices have it too, a batching one."""
    moved = [numpy_axes(tuple([a + 1 for a in axes])) for axes in numbers]
    window, gone, index_map, own, shared = moved
    if indices_too:
        return type(numbers)(window, gone, index_map, (0, *own), (0, *shared))
    return type(numbers)((0, *window), gone, index_map, own, numbers[-1])


def starts_of(
    indices: np.ndarray,
    shape: tuple,
    sizes: tuple,
    index_map: tuple,
    operand_batching: tuple,
    indices_batching: tuple,
) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
    """Window starts by operand axis, moved inside; and which positions were inside (None: all).

    Starts have the batch shape `indices.shape[:-1]`.
    """
    batch = indices.shape[:-1]
    starts: dict[int, np.ndarray] = {}
    valid: np.ndarray | None = None
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    wide = indices.astype(np.int64, copy=False)
    for k, axis in enumerate(index_map):
        start, last = wide[..., k], shape[axis] - sizes[axis]
        inside = (start >= 0) & (start <= last)
        if not inside.all():
            valid = inside if valid is None else valid & inside
            start = np.clip(start, 0, max(last, 0))
        starts[axis] = start
    for axis, position in zip(operand_batching, indices_batching, strict=True):
        along = np.arange(batch[position]).reshape(
            [-1 if i == position else 1 for i in range(len(batch))]
        )
        starts[axis] = np.broadcast_to(along, batch)
    return starts, valid


def window_index(
    starts: dict[int, np.ndarray], sizes: tuple, batch_ndim: int
) -> tuple[list, list, list]:
    """Index arrays for `x.transpose(indexed + rest)`: (indexed axes, their index arrays, wide
    axes).

    The indexed result has the batch axes first, then the axes in `wide` (window size not 1), then
    the rest.
    """
    indexed = sorted(starts)
    wide = [axis for axis in indexed if sizes[axis] != 1]
    arrays = []
    for axis in indexed:
        at = starts[axis].reshape(starts[axis].shape + (1,) * len(wide))
        if axis in wide:
            along = [1] * (batch_ndim + len(wide))
            along[batch_ndim + wide.index(axis)] = sizes[axis]
            at = at + np.arange(sizes[axis]).reshape(along)
        arrays.append(at)
    return indexed, arrays, wide
