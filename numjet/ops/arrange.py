"""Functions of `lax` that arrange arrays by means of other primitives, and the two markers
stop_gradient and optimization_barrier.

Used by `lax` and above. Nothing here computes; a new primitive belongs into `shape` or `slicing`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes, structural
from numjet.core.array import as_array, is_arraylike
from numjet.core.lowering import Expand, elementwise_loops
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.ops.shape import canonical_axis, canonical_shape, concatenate, reshape, squeeze
from numjet.ops.slicing import index_in_dim, slice_in_dim

# ------------------------------------------------------------------ stop_gradient
stop_gradient_p = Primitive(
    "stop_gradient",
    elementwise=True,
    abstract=lambda x: x,
    reference=lambda x: x,
    jvp=lambda primals, tangents: (stop_gradient_p.bind(*primals), Zero(tangents[0].aval)),
    batch=lambda axis, args, dims: (stop_gradient_p.bind(*args), dims[0]),
    loops=elementwise_loops(lambda e, x: x),
)


def _stop(x: Any) -> Any:
    if not is_arraylike(x):
        return x
    x = as_array(x)
    return stop_gradient_p.bind(x) if dtypes.is_inexact(x.aval.dtype) else x


def stop_gradient(x: Any) -> Any:
    """`x` (a pytree), through which no derivative flows: tangents and cotangents stop here."""
    return tree.tree_map(_stop, x)


# ------------------------------------------------------------------ optimization_barrier
def _barrier_jvp(primals: tuple, tangents: tuple) -> tuple:
    outs = optimization_barrier_p.bind(*primals)
    dense = [t for t in tangents if type(t) is not Zero]
    found = iter(optimization_barrier_p.bind(*dense) if dense else [])
    return outs, [t if type(t) is Zero else next(found) for t in tangents]


def _barrier_transpose(cts: Sequence[Any], *args: Any) -> list:
    return [
        None if type(ct) is Zero or type(x) is not Linear else ct
        for ct, x in zip(cts, args, strict=True)
    ]


optimization_barrier_p = Primitive(
    "optimization_barrier",
    multiple_results=True,
    linear=True,
    abstract=lambda *avals: list(avals),
    reference=lambda *xs: list(xs),
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims)),
    loops=Expand(lambda *xs: list(xs)),
)


def optimization_barrier(operand: Any, /) -> Any:
    """`operand` (a pytree) unchanged; the compiler moves no computation across."""
    leaves, treedef = tree.tree_flatten(operand)
    return tree.tree_unflatten(
        treedef, optimization_barrier_p.bind(*map(as_array, leaves)) if leaves else []
    )


# ------------------------------------------------------------------ dtypes and constants
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """`operand` as another dtype; floats become integers by truncation, values out of range
    saturate."""
    x = as_array(operand)
    if new_dtype is None:
        raise ValueError("convert_element_type: give a dtype; None names none.")
    dtype = dtypes.canonical(new_dtype)
    if (
        dtypes.is_complex(x.aval.dtype)
        and not dtypes.is_complex(dtype)
        and not dtypes.is_bool(dtype)
    ):
        raise TypeError(
            f"convert_element_type: {x.aval.str_short()} has imaginary parts, which {dtype.name} "
            "cannot "
            "hold. Take lax.real(x) first."
        )
    return structural.convert(x, dtype)


def dtype(x: Any) -> Any:
    """The dtype of an array or scalar; of a dtype, itself."""
    if isinstance(x, type | np.dtype):
        return dtypes.canonical(x)
    return as_array(x).aval.dtype


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of `shape` whose elements are all `fill_value`, which has no dimensions."""
    shape = canonical_shape(shape)
    value = as_array(fill_value)
    if value.aval.shape:
        raise TypeError(
            f"full: fill_value must have no dimensions, got {value.aval.str_short()}. jnp.full "
            "broadcasts."
        )
    weak = dtype is None and value.aval.weak_type
    value = structural.convert(
        value, value.aval.dtype if dtype is None else dtypes.canonical(dtype), weak
    )
    return structural.broadcast_in_dim(value, shape, ()) if shape else value


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Any:
    """`full` with the shape and dtype of `x` (an array or anything with both) where they are not
    given."""
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else as_array(x).aval
    weak = dtype is None and getattr(aval, "weak_type", False)
    out = full(
        aval.shape if shape is None else shape, fill_value, aval.dtype if dtype is None else dtype
    )
    return structural.convert(out, out.aval.dtype, weak)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array of `shape`; its elements are zeros."""
    return full(shape, 0, dtype)


# ------------------------------------------------------------------ broadcasting
def broadcast_in_dim(
    operand: Any,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Any:
    """`operand` with axis i becoming axis broadcast_dimensions[i] of an array of `shape`; the
    rest repeats."""
    return structural.broadcast_in_dim(
        as_array(operand), canonical_shape(shape), tuple(map(operator.index, broadcast_dimensions))
    )


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """New leading axes of `sizes`."""
    x, sizes = as_array(operand), canonical_shape(sizes)
    n = len(sizes)
    return (
        structural.broadcast_in_dim(x, (*sizes, *x.aval.shape), tuple(range(n, n + x.aval.ndim)))
        if n
        else x
    )


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting gives. Raises ValueError where sizes differ and none is
    1."""
    try:
        # As an index each size may be large; as a shape NumPy refuses what does not fit memory.
        rank = max(map(len, shapes), default=0)
        columns = zip(*[(1,) * (rank - len(s)) + tuple(map(int, s)) for s in shapes], strict=True)
        joined = [set(column) - {1} for column in columns]
        if any(len(sizes) > 1 for sizes in joined):
            raise ValueError
        return tuple([sizes.pop() if sizes else 1 for sizes in joined])
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}. Counted "
            "from the last axis, sizes must be equal or 1."
        ) from None


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """Leading axes of size 1 until there are `rank`."""
    x = as_array(x)
    missing = rank - x.aval.ndim
    if missing < 0:
        raise ValueError(f"broadcast_to_rank: {x.aval.str_short()} has more than {rank} axes.")
    return reshape(x, (1,) * missing + x.aval.shape)


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast, by NumPy's rules, to the shape of `like_arr`."""
    x, shape = as_array(arr), as_array(like_arr).aval.shape
    if broadcast_shapes(x.aval.shape, shape) != shape:
        raise ValueError(
            f"broadcast_like: {x.aval.str_short()} does not broadcast to shape {shape}."
        )
    offset = len(shape) - x.aval.ndim
    return structural.broadcast_in_dim(x, shape, tuple(range(offset, len(shape))))


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Output axis i is input axis permutation[i]."""
    return structural.transpose(as_array(operand), tuple(map(operator.index, permutation)))


# ------------------------------------------------------------------ joining and cutting
def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Axes start_dimension to stop_dimension - 1 made one."""
    x = as_array(operand)
    shape = x.aval.shape
    lo, hi, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(
            f"collapse: stop_dimension {stop_dimension} comes before start_dimension "
            f"{start_dimension}."
        )
    return reshape(x, (*shape[:lo], math.prod(shape[lo:hi]), *shape[hi:]))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Consecutive parts of `sizes` along `axis`, which must add up to its size."""
    x, sizes = as_array(operand), canonical_shape(sizes)
    axis = canonical_axis(axis, x.aval.ndim)
    if sum(sizes) != x.aval.shape[axis] or any(n < 0 for n in sizes):
        raise ValueError(
            f"split: sizes {sizes} add up to {sum(sizes)}, but axis {axis} of "
            f"{x.aval.str_short()} has size "
            f"{x.aval.shape[axis]}."
        )
    ends = np.cumsum(sizes).tolist()
    return [slice_in_dim(x, end - n, end, 1, axis) for n, end in zip(sizes, ends, strict=True)]


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape along a new axis."""
    xs = [as_array(x) for x in operands]
    if not xs:
        raise ValueError("stack: at least one array is needed.")
    shape = xs[0].aval.shape
    for x in xs:
        if x.aval.shape != shape:
            raise TypeError(
                f"stack: operands must have one shape, got {xs[0].aval.str_short()} and "
                f"{x.aval.str_short()}."
            )
    axis = canonical_axis(axis, len(shape) + 1)
    return concatenate([reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The rows along `axis`, without it."""
    x = as_array(x)
    axis = canonical_axis(axis, x.aval.ndim)
    return tuple([squeeze(index_in_dim(x, i, axis), (axis,)) for i in range(x.aval.shape[axis])])


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """`operand` repeated reps[i] times along axis i."""
    x, reps = as_array(operand), canonical_shape(reps)
    shape = x.aval.shape
    if len(reps) != len(shape):
        raise TypeError(
            f"tile: reps {reps} needs one entry for each axis of {x.aval.str_short()}. jnp.tile "
            "adds axes."
        )
    wide = [n for pair in zip(reps, shape, strict=True) for n in pair]
    out = structural.broadcast_in_dim(x, tuple(wide), tuple(range(1, 2 * len(shape), 2)))
    return reshape(out, tuple([r * n for r, n in zip(reps, shape, strict=True)]))


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as a NumPy array of int32; no axes as an Array."""
    if not shape:
        return as_array(np.zeros(0, np.int32))
    return np.asarray(tuple(shape), np.int32)
