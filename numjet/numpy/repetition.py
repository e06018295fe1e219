"""Elements again, or elsewhere along their axis: tile, repeat, resize, roll; and trim_zeros.

For every module above `shape`. What would break it: counts that are known at run time only, since
they make the results' shapes (`repeat` takes them with total_repeat_length); shifts of `roll` may
be traced.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, wanted
from numjet.api.placement.mesh import context_mesh
from numjet.api.placement.reshard import laid_out
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes, structural
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray, is_lenient
from numjet.core.dims import DimExpr, index_of
from numjet.core.trace import Tracer, concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import minimum, remainder
from numjet.numpy.indexing import getitem
from numjet.numpy.promote import (
    broadcast,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    cast,
    not_an_array,
    one_array,
)
from numjet.numpy.shape import ravel, reshaped
from numjet.ops.named import tile_p


# ------------------------------------------------------------------ repetition
def tile(A: Any, reps: Any) -> Any:
    """`A` laid side by side `reps` times along each axis.

    A: an array of any dtype. reps: an integer or a tuple; the shorter of it and A's shape gets ones
    in front.

    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = one_array("tile", A)
    reps = canonical_shape(reps, "tile")
    rank = max(len(reps), x.aval.ndim)
    reps = (1,) * (rank - len(reps)) + reps
    own = (1,) * (rank - x.aval.ndim) + x.aval.shape
    if all(r == 1 for r in reps):
        return reshaped(x, own)
    if FLAG.uses and wanted():
        return tile_p.bind(lax.expand_dims(x, range(len(own) - x.aval.ndim)), reps=reps)
    wide: list = []  # an axis that is repeated has its copies in front
    kept = []
    for r, m in zip(reps, own):
        wide += [m] if r == 1 else [r, m]
        kept.append(len(wide) - 1)
    return reshaped(
        lax.broadcast_in_dim(reshaped(x, own), tuple(wide), tuple(kept)),
        tuple([r * n for r, n in zip(reps, own)]),
    )


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Each element of `a` repeated along `axis`.

    a: an array of any dtype. repeats: an integer, or one for each element of the axis (ValueError),
    not negative (TypeError).
    axis: an integer, or None for the flattened array. total_repeat_length: the result's length,
    needed where `repeats` is traced (ConcretizationTypeError); longer ones are cut, the last
    element fills up shorter ones. out_sharding: the layout of the result. NumPy has neither.
    TypeError for lists.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(
            functools.partial(repeat, a, repeats, axis, total_repeat_length=total_repeat_length),
            out_sharding,
        )
    x = one_array("repeat", a)
    if isinstance(repeats, (list, tuple)):
        raise TypeError(not_an_array("repeat", repeats, 1))
    if axis is None:
        x, axis = ravel(x), 0
    if not x.aval.ndim:
        x = reshaped(x, (1,))
    axis = canonical_axis(axis, x.aval.ndim, "repeat")
    placed = x.aval.placed
    if placed is not None and placed.spec[axis] and not (is_lenient() or context_mesh().empty):
        raise ValueError(
            "Please pass sharding to `jnp.repeat` via `out_sharding` parameter: axis "
            f"{axis} of {x.aval.str_short()} is cut."
        )
    n = x.aval.shape[axis]
    if type(repeats) is DimExpr:
        if total_repeat_length is not None:
            raise ValueError(
                "jnp.repeat with a non-constant `repeats` is supported only when "
                f"`total_repeat_length` is None. ({repeats=} {total_repeat_length=})"
            )
        return _repeat_each(x, repeats, axis)
    known = np.asarray(repeats) if isinstance(repeats, (list, tuple)) else concrete_or_none(repeats)
    if known is not None and total_repeat_length is None:
        counts = np.ravel(known)
        if counts.dtype.kind not in "iub":
            raise TypeError(f"repeat: repeats must be integers, got dtype {counts.dtype}.")
        if (counts < 0).any():
            raise TypeError(
                "repeat: repeats must not be negative; broadcast_in_dim shape must have every "
                f"element be nonnegative, got {counts}."
            )
        if counts.size == 1:
            return _repeat_each(x, int(counts.reshape(())), axis)
        if counts.shape != (n,):
            raise ValueError(
                "operands could not be broadcast together: repeats of shape "
                f"{counts.shape} must have one entry for each of the {n} elements of axis {axis}."
            )
        indices = np.repeat(np.arange(n, dtype=np.int32), counts.astype(np.int64))
        return _rows(x, ArrayImpl(indices, ShapedArray(indices.shape, dtypes.int32)), axis)
    if total_repeat_length is None:
        repeats._need_concrete(
            ConcretizationTypeError,
            "repeat: the result's size depends on `repeats`",
            "Give total_repeat_length.",
        )
    counts = cast(one_array("repeat", repeats), dtypes.int32)
    counts = reshaped(counts, (counts.aval.size,))
    if counts.aval.shape not in ((1,), (n,)):
        raise ValueError(
            "repeat: Incompatible types for broadcasting: repeats of shape "
            f"{counts.aval.shape} must have one entry for each of the {n} elements of axis {axis}."
        )
    counts = broadcast(counts, (n,))
    length = index_of(total_repeat_length)  # type: ignore[arg-type]
    if not n:      # nothing to fill up with
        return x
    ends = lax.cumsum(counts)
    index = minimum(_ends_before(ends, length), max(n - 1, 0))
    return _rows(x, index, axis)


def _ends_before(ends: Any, length: int) -> Any:
    """How many of the ends, which do not fall, are at or before each of `length` positions."""
    if ends.aval.size <= FEW_ENDS:
        position = lax.iota(dtypes.int32, length)
        shape = (length, ends.aval.size)
        before = lax.le(
            lax.broadcast_in_dim(ends, shape, (1,)), lax.broadcast_in_dim(position, shape, (0,))
        )
        return structural.reduce_sum(cast(before, dtypes.int32), (1,))
    marks = lax.scatter_add(
        lax.full((length,), 0, dtypes.int32),
        reshaped(ends, (ends.aval.size, 1)),
        lax.full(ends.aval.shape, 1, dtypes.int32),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )
    return lax.cumsum(marks)


# Comparisons of each position with each end are vectors and fuse with what reads them, but their
# number is a product: 2,250 of both take 180 us, marks and their sums 4 us.
FEW_ENDS = 16


def _rows(x: Any, index: Any, axis: int) -> Any:
    return getitem(x, (slice(None),) * axis + (index,))


def _repeat_each(x: Any, count: Any, axis: int) -> Any:
    own = x.aval.shape
    wide = own[: axis + 1] + (count,) + own[axis + 1 :]
    kept = tuple([i for i in range(len(wide)) if i != axis + 1])
    return reshaped(
        lax.broadcast_in_dim(x, wide, kept), own[:axis] + (own[axis] * count,) + own[axis + 1 :]
    )


def resize(a: Any, new_shape: Any) -> Any:
    """The elements of `a`, row by row, repeated or cut to `new_shape`.

    a: an array of any dtype; an empty one gives zeros. new_shape: an integer or a tuple, of
    none below 0 (ValueError).

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    sizes = new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,)
    if any(isinstance(n, int) and n < 0 for n in sizes):
        raise ValueError(f"resize: all elements of {new_shape} must be non-negative.")
    new = canonical_shape(new_shape, "resize")
    flat = ravel(a)
    total, n = math.prod(new), flat.aval.size
    if not n or not total:
        return cast(lax.full(new, 0, flat.aval.dtype), flat.aval.dtype, flat.aval.weak_type)
    if n == 1:
        return broadcast(flat, new) if new else reshaped(flat, new)
    return reshaped(lax.slice_in_dim(tile(flat, -(-total // n)), 0, total, axis=0), new)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`a` shifted along axes; what leaves at one end enters at the other.

    a: an array of any dtype. shift: an integer, also a traced one, or one for each axis. axis: an
    integer, a tuple of them, or None for the flattened array. ValueError for numbers of shifts and
    axes that differ.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = one_array("roll", a)
    if hasattr(shift, "__jax_array__") and type(shift) is not DimExpr:
        shift = one_array("roll", shift)
    if axis is None:
        return reshaped(roll(ravel(x), shift, 0), x.aval.shape)
    axes = canonical_axes_repeated(axis, x.aval.ndim, "roll")
    shifts = (
        list(shift)
        if isinstance(shift, (list, tuple)) or getattr(shift, "ndim", False)
        else [shift]
    )
    if any([getattr(n, "ndim", False) for n in shifts]):
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D arrays.")
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: shift {shift} and axis {axis} must have one entry for each other.")
    if FLAG.uses and wanted() and not any([isinstance(n, Tracer | DimExpr) for n in shifts]):
        return as_call("_roll_static", x, tuple(map(int, shifts)), tuple(axes))
    for amount, i in zip(shifts, axes):
        n = x.aval.shape[i]
        if not n:
            continue
        if isinstance(amount, Tracer):
            start = remainder(lax.neg(cast(amount, dtypes.int32)), n)
            x = lax.dynamic_slice_in_dim(lax.concatenate([x, x], i), start, n, i)
            continue
        k = (amount if type(amount) is DimExpr else int(amount)) % n
        if k != 0:
            x = lax.concatenate(
                [lax.slice_in_dim(x, n - k, n, axis=i), lax.slice_in_dim(x, 0, n - k, axis=i)], i
            )
    return x


def canonical_axes_repeated(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Axes counted from the front; one may come more than once."""
    if isinstance(axis, (Array, np.ndarray)) and axis.ndim:
        axis = np.asarray(axis).tolist()
    axes = axis if isinstance(axis, (list, tuple)) else (axis,)
    return tuple([canonical_axis(i, ndim, name) for i in axes])


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`filt` without the zeros at its ends.

    filt: an array, whose values must be known (ConcretizationTypeError while tracing). trim: 'f'
    for the front, 'b' for the back, 'fb' for both. axis: an integer, a tuple, or None for all.

    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = one_array("trim_zeros", filt)
    known = concrete_or_none(x)
    if known is None:
        x._need_concrete(
            ConcretizationTypeError,
            "trim_zeros: the result's size depends on the values",
            "Call it outside of transformations.",
        )
    value = np.asarray(known)
    out = x
    for i in canonical_axes(axis, value.ndim, "trim_zeros"):
        others = tuple([k for k in range(value.ndim) if k != i])
        used = np.flatnonzero((value != 0).any(axis=others))
        lo = int(used[0]) if "f" in trim.lower() and used.size else 0
        hi = int(used[-1]) + 1 if "b" in trim.lower() and used.size else value.shape[i]
        if not used.size:
            lo = hi = 0
        out = lax.slice_in_dim(out, lo, hi, axis=i)
    return cast(out, x.aval.dtype, x.aval.weak_type)
