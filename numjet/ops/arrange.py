"""Functions of `lax` that arrange arrays by means of other primitives, and the two markers
stop_gradient and optimization_barrier.

Used by `lax` and above. Nothing here computes; a new primitive belongs into `shape` or `slicing`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numjet.base import config, tree
from numjet.base.errors import ShardingTypeError
from numjet.core import dtypes, hooks, structural
from numjet.core.array import Array, ArrayImpl, as_array, wrapped
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray
from numjet.core.dims import any_symbolic, index_of
from numjet.core.evaluate import LARGE
from numjet.core.lowering import Expand, elementwise_loops
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.sharded import ShardedArray
from numjet.core.shared import Shared
from numjet.core.trace import EVAL, current_trace
from numjet.core.typed_numbers import typed
from numjet.ops.collective import varied_like
from numjet.ops.complex_ops import real
from numjet.ops.shape import (
    canonical_axis,
    canonical_shape,
    concatenate,
    reshape,
    sizes_of,
)
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
    number = x
    x = as_array(x)
    if type(x) in (ArrayImpl, DeferredArray, ShardedArray) and current_trace().at_once:
        return x if type(number) not in (bool, int, float, complex) else typed(number, x.dtype)
    return stop_gradient_p.bind(x) if dtypes.is_inexact(x.aval.dtype) else x


def stop_gradient(x: Any) -> Any:
    """x (a pytree), through which no derivative flows: tangents and cotangents stop here.

    The value is x's own; leaves that are not floating pass through.

    >>> import numjet as nj
    >>> from numjet import lax
    >>> print(nj.grad(lambda x: x * lax.stop_gradient(x))(3.0))
    3.0
    """
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
    """operand (a pytree of arrays) unchanged; the compiler moves no computation across.

    Result: the same pytree, shapes and dtypes. Derivative: the identity.

    >>> from numjet import lax, numpy as jnp
    >>> lax.optimization_barrier(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    leaves, treedef = tree.tree_flatten(operand)
    return tree.tree_unflatten(
        treedef, optimization_barrier_p.bind(*map(as_array, leaves)) if leaves else []
    )


# ------------------------------------------------------------------ shard_alike
def _alike_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    ins = [
        structural.broadcast_batch(x, size) if d is None else structural.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    return shard_alike_p.bind(*ins), [0, 0]


# Two values as they are, which `partition.families` lays out in the same way.
shard_alike_p = Primitive(
    "shard_alike",
    multiple_results=True,
    linear=True,
    abstract=lambda *avals: list(avals),
    reference=lambda *xs: list(xs),
    jvp=lambda primals, tangents: (shard_alike_p.bind(*primals), list(tangents)),
    transpose=_barrier_transpose,
    batch=_alike_batch,
    loops=Expand(lambda *xs: list(xs)),
)


# ------------------------------------------------------------------ dtypes and constants
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """operand as another dtype.

    operand: an array or number. new_dtype: a dtype; a Python type (float) gives a weakly typed
    result of its default width. Floats become integers by truncation; values out of range saturate,
    NaN gives 0. Derivative: the identity, between floating dtypes. Of complex numbers real dtypes
    keep the real part, of which a ComplexWarning tells.

    >>> from numjet import lax, numpy as jnp
    >>> lax.convert_element_type(jnp.array([1.7, -1.7, 300.0]), jnp.int8)
    Array([  1,  -1, 127], dtype=int8)
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: give a dtype; None names none.")
    dtype = dtypes.requested(new_dtype, "convert_element_type", 3)
    if type(operand) is complex and dtypes.is_bool(dtype):
        operand = bool(operand)
    elif type(operand) is complex and not dtypes.is_complex(dtype):
        raise TypeError(
            f"convert_element_type: the complex number {operand!r} does not become {dtype}. "
            "Take .real."
        )
    if type(operand) is int and dtypes.is_inexact(dtype) and operand.bit_length() > 31:
        operand = float(operand)  # which no integer dtype need hold
    x = wrapped(operand, dtype)
    if dtypes.is_key(dtype) and dtype != x.aval.dtype:
        raise ValueError(
            f"convert_element_type: {x.aval.str_short()} does not become {dtype}. Make keys with "
            "random.wrap_key_data."
        )
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(dtype):
        structural.warn_of_lost_part(x.aval.dtype, dtype)
        if not dtypes.is_bool(dtype):
            x = real(x)
    return structural.convert(x, dtype)


def dtype(x: Any) -> Any:
    """The dtype of an array or scalar; of a dtype, itself.

    x: an array, Python number (its default dtype) or dtype. Raises TypeError for other objects.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dtype(1.0), lax.dtype(jnp.int8)
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, type | np.dtype):
        return dtypes.canonical(x)
    return as_array(x).aval.dtype


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of `shape` whose elements are all fill_value.

    shape: a sequence of integers. fill_value: a number without dimensions; of an integer that does
    not fit the lowest bits count. dtype: by default that of fill_value. sharding: the layout.
    Result: shape and dtype as said. Derivative: linear in fill_value, the sum over all elements.
    Raises TypeError for a value with dimensions (`numpy.full` broadcasts), a complex number where
    dtype is real, and negative sizes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.full((2,), 7, jnp.float32)
    Array([7., 7.], dtype=float32)
    """
    if sharding is not None:
        made = full(shape, fill_value, dtype)
        if hasattr(sharding, "shard_shape"):
            sharding.shard_shape(made.aval.shape)  # IndexError for a PartitionSpec too long
        return hooks.place_again(structural.convert(made, made.aval.dtype, False), sharding)
    if fill_value is None:
        raise ValueError("full: fill_value must be a number, got None.")
    shape = sizes_of("full", shape)
    dtype = None if dtype is None else dtypes.requested(dtype, "full", 3)
    if type(fill_value) is complex and dtypes.is_bool(dtypes.canonical(dtype or complex)):
        fill_value = bool(fill_value)
    value = wrapped(fill_value, dtype)
    if value.aval.shape:
        raise TypeError(
            f"full must be called with scalar fill_value, got {value.aval.str_short()}. jnp.full "
            "broadcasts."
        )
    weak = dtype is None and value.aval.weak_type
    if type(fill_value) is complex and dtype is not None and not dtypes.is_complex(dtype):
        raise TypeError(
            f"full: the complex number {fill_value!r} does not become {dtypes.canonical(dtype)}. "
            "Take .real."
        )
    value = structural.convert(
        value, value.aval.dtype if dtype is None else dtypes.canonical(dtype), weak
    )
    return structural.broadcast_in_dim(value, shape, ()) if shape else value


def place_like(x: Any, shape: Sequence[int]) -> Any:
    """The sharding, or PartitionSpec over the current mesh, of what is made like `x`; None where
    nothing is told, and for another shape but of one device."""
    if type(x) is ArrayImpl or not hasattr(x, "shape"):
        return None
    if tuple(x.shape) != tuple(shape):
        alone = type(x) is ShardedArray and x.committed and not hasattr(x.sharding, "mesh") and (
            x.sharding.num_devices == 1
        )
        return x.sharding if alone else None
    if isinstance(x, Array):
        if type(x) is ShardedArray:
            return x.sharding if x.committed else None
        placed = x.aval.placed
        inside = placed is not None and not placed.sums[0].isdisjoint(Shared.mapped.get())
        return None if inside else placed  # of a part of a sum: where one device runs
    told: Any = getattr(x, "sharding", None)  # of a shape alone
    mesh = getattr(told, "mesh", None)
    if mesh is None or hasattr(mesh, "devices_in_order"):
        return told if current_trace() is EVAL else None
    return told.spec if mesh.explicit_axes and any(told.spec) else None


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Any:
    """An array like x whose elements are all fill_value.

    x: an array or anything with shape and dtype. fill_value: a number without dimensions. dtype,
    shape, sharding: by default those of x. Result: that shape and dtype. No derivative flows to x.
    Raises TypeError for a value with dimensions.

    >>> from numjet import lax, numpy as jnp
    >>> lax.full_like(jnp.zeros(2), 7)
    Array([7., 7.], dtype=float32)
    """
    if sharding is not None:
        made = full_like(x, fill_value, dtype, shape)
        if hasattr(sharding, "shard_shape"):
            sharding.shard_shape(made.aval.shape)
        return hooks.place_again(made, sharding)
    sharding = place_like(x, getattr(x, "shape", ()) if shape is None else shape)
    if sharding is not None:
        weak = getattr(x, "weak_type", False)
        known = isinstance(x, Array) or not (hasattr(x, "shape") and hasattr(x, "dtype"))
        bare = as_array(x).aval.bare() if known else ShapedArray(x.shape, x.dtype, weak)
        return hooks.laid_out(
            functools.partial(full_like, bare, fill_value, dtype, shape), sharding
        )
    if x is None:
        raise ValueError("full_like: x must be an array or a scalar, got None.")
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else as_array(x).aval
    weak = dtype is None and getattr(aval, "weak_type", False)
    kind = dtypes.canonical(aval.dtype) if dtype is None else dtype
    out = full(aval.shape if shape is None else shape, fill_value, kind)
    # An array of 64 bits is one where these are not the default, too.
    own = x.aval.dtype if isinstance(x, Array) and dtype is None else out.aval.dtype
    if weak and type(out) is ArrayImpl and not out.aval.shape:
        out = ArrayImpl(out._value.astype(own), ShapedArray((), own, True))  # no equation
    out = structural.convert(out, own, weak)
    return varied_like(out, x) if Shared.axes.get() else out


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose elements nobody should rely on; here they are zeros.

    shape: a sequence of integers. dtype: anything that names one. out_sharding: the layout.

    >>> from numjet import lax, numpy as jnp
    >>> lax.empty((2,), jnp.int8).shape
    (2,)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


# ------------------------------------------------------------------ broadcasting
def broadcast_in_dim(
    operand: Any,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Any:
    """operand as part of an array of `shape`, repeated along the other axes.

    operand: an array; its axis i becomes axis broadcast_dimensions[i], whose size it must have, or
    1; as it is where it has as many axes as the result and none is named. shape: of the result.
    out_sharding: the layout of the result. Derivative: the sum over what was repeated. Raises
    TypeError for sizes that do not fit, dimensions named twice, and where it would only exchange
    axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        given = operand, shape, broadcast_dimensions
        return hooks.laid_out(functools.partial(broadcast_in_dim, *given), out_sharding, None, True)
    x, sizes = as_array(operand), canonical_shape(shape)
    places = tuple(map(operator.index, broadcast_dimensions))
    if not places and isinstance(operand, Array) and x.aval.ndim == len(sizes):
        return x  # as it is, whatever its sizes
    if x.aval.shape == sizes and places != tuple(range(len(sizes))):
        # The layers below take equal shapes for an operand that stays as it is.
        raise TypeError(
            f"broadcast_in_dim: broadcast_dimensions {places} must name, in ascending order, an "
            f"axis of shape {sizes} for each axis of {x.aval.str_short()}. Use lax.transpose."
        )
    order = sorted(range(len(places)), key=places.__getitem__)
    if order != [*range(x.aval.ndim)] and len({*places}) == x.aval.ndim:
        x, places = transpose(x, order), tuple(sorted(places))
    return structural.broadcast_in_dim(x, sizes, places)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """operand repeated along new leading axes.

    operand: an array. sizes: the sizes of the new axes. out_sharding: the layout of the result.
    Result: shape (*sizes, *operand.shape). Derivative: the sum over the new axes. Raises TypeError
    for negative sizes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        made = functools.partial(broadcast, operand, sizes)
        return hooks.laid_out(made, out_sharding, None, True)
    if isinstance(sizes, int):
        raise TypeError(f"broadcast: sizes must be a sequence of integers, got {sizes}.")
    x, sizes = as_array(operand), sizes_of("broadcast", sizes)
    n = len(sizes)
    return (
        structural.broadcast_in_dim(x, (*sizes, *x.aval.shape), tuple(range(n, n + x.aval.ndim)))
        if n
        else x
    )


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting gives.

    shapes: tuples of integers. Sizes are compared from the last axis; a size of 1 stretches. Raises
    ValueError where sizes differ and none is 1.

    >>> from numjet import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        # As an index each size may be large; as a shape NumPy refuses what does not fit memory.
        rank = max(map(len, shapes), default=0)
        full = [(1,) * (rank - len(s)) + tuple(map(index_of, s)) for s in shapes]
        columns = zip(*full, strict=True)
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
    """x with leading axes of size 1 until there are `rank`, or as it is where it has as many.

    x: an array. rank: an integer. Result: x's dtype.

    >>> from numjet import lax, numpy as jnp
    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 3).shape
    (1, 1, 2)
    """
    x = as_array(x)
    missing = rank - x.aval.ndim
    if missing < 1:
        return x
    return reshape(x, (1,) * missing + x.aval.shape)


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast, by NumPy's rules, to the shape of `like_arr`.

    arr, like_arr: arrays; the dtype of the second does not matter. Result: like_arr's shape and
    arr's dtype. Raises ValueError for shapes that do not fit.

    >>> from numjet import lax, numpy as jnp
    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x, shape = as_array(arr), as_array(like_arr).aval.shape
    if x.aval.shape != shape and broadcast_shapes(x.aval.shape, shape) != shape:
        raise ValueError(
            f"broadcast_like: {x.aval.str_short()} does not broadcast to shape {shape}."
        )
    offset = len(shape) - x.aval.ndim
    return structural.broadcast_in_dim(x, shape, tuple(range(offset, len(shape))))


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """operand with its axes in another order: output axis i is input axis permutation[i].

    operand: an array. permutation: each axis once (TypeError for others). Result: operand's dtype.
    Derivative: the cotangent with the axes put back. `numpy.transpose` reverses the axes where none
    are given.

    >>> from numjet import lax, numpy as jnp
    >>> lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return structural.transpose(as_array(operand), tuple(map(operator.index, permutation)))


# ------------------------------------------------------------------ joining and cutting
def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """operand with neighbouring axes made one.

    operand: an array. start_dimension: the first of the axes; stop_dimension: behind the last one,
    by default all the rest; negative ones count from the end. Result: one axis in their place, of
    the product of their sizes; operand's dtype. Raises ValueError for a range out of order.

    >>> from numjet import lax, numpy as jnp
    >>> lax.collapse(jnp.zeros((2, 3, 4)), 1, 3).shape
    (2, 12)
    """
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
    """Consecutive parts of an array along an axis.

    operand: an array. sizes: how long the parts are; they must add up to the axis's size
    (ValueError). axis: an integer. Result: a list. `numpy.split` takes positions.

    >>> from numjet import lax, numpy as jnp
    >>> lax.split(jnp.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    if isinstance(sizes, int):
        raise TypeError(f"split: sizes must be a sequence of integers, got {sizes}.")
    x, sizes = as_array(operand), canonical_shape(sizes)
    axis = canonical_axis(axis, x.aval.ndim)
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {sizes}.")
    if sum(sizes) != x.aval.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
            f"{list(x.aval.shape)}: split takes {sizes}."
        )
    ends = np.cumsum(sizes).tolist()
    try:
        return [slice_in_dim(x, end - n, end, 1, axis) for n, end in zip(sizes, ends, strict=True)]
    except ShardingTypeError as error:
        raise ShardingTypeError(str(error).replace("slicing", "split", 1)) from None


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype along a new axis.

    operands: at least one array. axis: where the new axis is in the result. Raises TypeError for
    shapes or dtypes that differ, ValueError for no operand; `numpy.stack` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
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
    aval = xs[0].aval
    if all([x.aval is aval for x in xs]) and are_plain(xs) and len(xs) * aval.size < LARGE:
        value = np.stack([x._value for x in xs], axis)
        return ArrayImpl(value, aval.update(shape=value.shape))
    return concatenate([reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The rows of x along an axis, without it: a tuple of arrays.

    x: an array. axis: an integer (ValueError out of range). Result: as many as the axis is long,
    each of x's other axes and dtype. The inverse of `stack`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = as_array(x)
    axis = canonical_axis(axis, x.aval.ndim)
    if are_plain([x]):
        return tuple(views(x, axis))
    return tuple([index_in_dim(x, i, axis, keepdims=False) for i in range(x.aval.shape[axis])])


def are_plain(xs: Sequence[Any]) -> bool:
    """Whether nothing traces and these are NumPy's arrays."""
    if current_trace() is not EVAL or config.numeric_checks[0]:
        return False
    return all([type(x) is ArrayImpl and type(x.aval.dtype) is not dtypes.KeyDType for x in xs])


def views(x: ArrayImpl, axis: int = 0) -> Iterator[ArrayImpl]:
    """The parts of a plain array along an axis, without it: views, made when they are asked for."""
    value = np.moveaxis(x._value, axis, 0) if axis else x._value
    part = x.aval.update(shape=value.shape[1:])
    return (ArrayImpl(value[i, ...], part) for i in range(len(value)))


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """operand repeated reps[i] times along axis i.

    operand: an array. reps: an integer for each axis (TypeError for another number). Result: shape
    (reps[i] * n_i, ...), operand's dtype. Derivative: the sum over the copies. `numpy.tile` adds
    axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
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
    """A shape as a NumPy array of int32; of no axes, or with dimension variables, as an Array.

    shape: a tuple of integers, or of sizes of `export.symbolic_shape`.

    >>> from numjet import lax
    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    if not shape:
        return as_array(np.zeros(0, np.int32))
    if any_symbolic(shape):
        sizes = [structural.scalar(n, dtypes.int32) for n in shape]
        return concatenate([reshape(n, (1,)) for n in sizes], 0)
    return np.asarray(tuple(shape), np.int32)
