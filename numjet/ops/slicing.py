"""slice, dynamic_slice, dynamic_update_slice, and their forms along one axis.

Used by `lax`, indexing and the loops (scan reads and writes its rows with them). Start indices of
the dynamic forms are moved inside, never refused: whoever changes that changes what gradients of
loops mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.base.errors import ShardingTypeError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray, is_lenient
from numjet.core.dims import DimExpr, index_of, largest, size_of, smallest
from numjet.core.lowering import Pointwise
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.structural import (
    broadcast_in_dim,
    convert,
    full,
    instantiate,
    linear_jvp,
    moveaxis,
    numpy_axes,
    zeros,
)
from numjet.ops.arithmetic import add, clamp, clamp_p
from numjet.ops.constraint import broadcast_mapped
from numjet.ops.families import pair
from numjet.ops.gather import GatherDimensionNumbers, gather
from numjet.ops.indexing import GatherScatterMode, ScatterDimensionNumbers
from numjet.ops.logic import lt
from numjet.ops.shape import (
    canonical_axis,
    concatenate,
    pad,
    pad_p,
    reshape,
    select_n,
    squeeze,
)
from numjet.transforms.batch import mapped_to_front, to_front


# ------------------------------------------------------------------ slice
def _slice_abstract(
    x: ShapedArray, *, start_indices: tuple, limit_indices: tuple, strides: tuple | None
) -> ShapedArray:
    if not len(start_indices) == len(limit_indices) == x.ndim or (
        strides and len(strides) != x.ndim
    ):
        raise ValueError(
            f"slice: start_indices {start_indices}, limit_indices {limit_indices} and strides "
            f"{strides} need one entry for each of the {x.ndim} axes of {x.str_short()}."
        )
    shape = []
    for axis, (start, limit) in enumerate(zip(start_indices, limit_indices, strict=True)):
        stride = strides[axis] if strides else 1
        if not stride:
            raise ZeroDivisionError(f"slice: a stride of 0 for axis {axis} of {x.str_short()}.")
        if not 0 <= start <= limit <= x.shape[axis] or stride < 1:
            told = tuple([b - a for a, b in zip(start_indices, limit_indices, strict=True)])
            bound = (
                f"greater than or equal to zero, got slice_sizes of {told}" if limit < start else
                f"less than or equal to operand shape, got slice_sizes {told} for operand shape "
                f"{x.shape}"
            )  # fmt: skip
            raise TypeError(
                f"slice slice_sizes must be {bound}: axis {axis} of {x.str_short()} needs 0 <= "
                f"start <= limit <= {x.shape[axis]} and stride >= 1, got start {start}, limit "
                f"{limit}, stride {stride}."
            )
        shape.append((limit - start + stride - 1) // stride)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _slice_reference(
    x: np.ndarray, *, start_indices: tuple, limit_indices: tuple, strides: tuple | None
) -> np.ndarray:
    spans = zip(start_indices, limit_indices, strides or (1,) * x.ndim, strict=True)
    return x[tuple([_span(*span) for span in spans])]


_span: Any = slice  # the builtin, before this file's function takes the name


def _slice_loops(
    e: Any,
    index: list,
    x: Any,
    *,
    start_indices: tuple,
    limit_indices: tuple,
    strides: tuple | None,
) -> Any:
    steps = strides or (1,) * len(index)
    return x(
        *[i * step + start for i, step, start in zip(index, steps, start_indices, strict=True)]
    )


def _slice_transpose(
    ct: Any, x: Any, *, start_indices: tuple, limit_indices: tuple, strides: tuple | None
) -> list:
    widths, steps = [], strides is not None and set(strides) != {1}
    for axis, start in enumerate(start_indices):
        stride, n = strides[axis] if strides else 1, ct.aval.shape[axis]
        if n == 0:
            return [zeros(x.aval)]
        behind = x.aval.shape[axis] - start - (n - 1) * stride - 1
        between = numpy_axes((stride - 1,)) if steps else (0,)
        widths.append((start, *numpy_axes((behind,)), *between))
    zero = zeros(ShapedArray((), ct.aval.dtype))
    if config.jax_form():
        return [pad_p.bind(ct, zero, padding_config=tuple(widths))]
    return [pad(ct, zero, widths)]


def _slice_batch(
    axis: Any,
    args: tuple,
    dims: tuple,
    *,
    start_indices: tuple,
    limit_indices: tuple,
    strides: tuple | None,
) -> tuple:
    (x,), (dim,) = args, dims

    def insert(values: tuple, own: int) -> tuple:
        return (*values[:dim], own, *values[dim:])

    return slice_p.bind(
        x,
        start_indices=insert(start_indices, 0),
        limit_indices=insert(limit_indices, x.shape[dim]),
        strides=None if strides is None else insert(strides, 1),
    ), dim


slice_p = Primitive(
    "slice",
    linear=True,
    abstract=_slice_abstract,
    reference=_slice_reference,
    jvp=linear_jvp(lambda: slice_p),
    transpose=_slice_transpose,
    batch=_slice_batch,
    loops=Pointwise(_slice_loops),
)


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],  # noqa: A001 - lax's name
    strides: Sequence[int] | None = None,
) -> Any:
    """operand[start:limit:stride] along every axis.

    operand: an array. start_indices, limit_indices, strides (1 by default): Python integers for
    each axis, not negative. Result: ceil((limit - start) / stride) elements along each axis,
    operand's dtype. Derivative: zeros with the cotangent in its places. Raises TypeError where the
    box does not fit; Python's slices are cut off. Raises ValueError for another number of indices
    than axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.slice(jnp.arange(6), (1,), (5,), (2,))
    Array([1, 3], dtype=int32)
    """
    x = as_array(operand)
    start, limit = (
        tuple(map(size_of, start_indices)),
        tuple(map(size_of, limit_indices)),
    )
    step = None if strides is None else tuple(map(index_of, strides))
    if step is not None and set(step) <= {1}:
        step = None
    if step is None and limit == x.aval.shape and not any(start):
        return x
    return slice_p.bind(x, start_indices=start, limit_indices=limit, strides=step)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """operand[start:limit:stride] along one axis.

    operand: an array. start_index, limit_index: Python integers or None; negative ones count from
    the end. stride, axis: integers. Result: ceil((limit - start) / stride) elements along the axis,
    else operand's shape, and its dtype. Derivative: as of `slice`. Raises TypeError or ValueError
    for what is out of range. Raises IndexError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.slice_in_dim(jnp.arange(6), 1, -1, stride=2)
    Array([1, 3], dtype=int32)
    """
    x = as_array(operand)
    shape, axis = x.aval.shape, canonical_axis(axis, x.aval.ndim, IndexError)
    size = shape[axis]
    start = 0 if start_index is None else index_of(start_index)
    limit = size if limit_index is None else index_of(limit_index)
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    steps[axis] = index_of(stride)
    return slice(x, starts, limits, steps)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """operand[index] along one axis.

    operand: an array. index: a Python integer, negative ones from the end. axis: an integer.
    keepdims: the axis stays, with size 1. Raises IndexError for an index or an axis out of range.
    For traced indices: `dynamic_index_in_dim`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.index_in_dim(jnp.array([5, 6, 7]), -1, keepdims=False)
    Array(7, dtype=int32)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.aval.ndim, IndexError)
    size, index = x.aval.shape[axis], index_of(index)
    if not -size <= index < size:
        raise IndexError(
            f"index_in_dim: index {index} is out of range for axis {axis} of {x.aval.str_short()}."
        )
    index %= size
    row = slice_in_dim(x, index, index + 1, 1, axis)
    return row if keepdims else _drop(row, axis)


def _drop(x: Any, axis: int) -> Any:
    if config.jax_form():
        return squeeze(x, (axis,))
    shape = x.aval.shape
    return reshape(x, shape[:axis] + shape[axis + 1 :])


# ------------------------------------------------------------------ start indices
def _check_starts(name: str, x: ShapedArray, starts: tuple) -> None:
    if len(starts) != x.ndim:
        raise TypeError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {x.shape}): {name} takes one for each axis."
        )
    for start in starts:
        if start.shape or not dtypes.is_integer(start.dtype):
            raise TypeError(
                f"index arguments to {name} must be integers of the same type, without "
                f"dimensions, got: {start.str_short()}."
            )


def _start_list(name: str, x: Any, start_indices: Any, negative: Any) -> list[Any]:
    """One integer scalar per axis; negative ones count from the end where `negative` says so."""
    if isinstance(start_indices, Array | np.ndarray):
        whole = as_array(start_indices)
        if whole.aval.ndim != 1:
            raise TypeError(
                f"{name}: start_indices must be a sequence of scalars or a one-dimensional array, "
                f"got {whole.aval.str_short()}."
            )
        start_indices = [index_in_dim(whole, k, 0, False) for k in range(whole.aval.shape[0])]
    if len(start_indices) != x.aval.ndim:
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(start_indices)} vs {x.aval.shape}): {name} takes one for each axis."
        )
    own = {i.dtype for i in start_indices if type(i) is not int and hasattr(i, "dtype")}
    if len(own) > 1 and len({dtypes.canonical(d) for d in own}) > 1:
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got "
            f"{', '.join(sorted(map(str, own)))}. Convert them with .astype()."
        )
    flags = [bool(negative)] * x.aval.ndim if isinstance(negative, bool) else list(negative)
    dtype = index_dtype(*x.aval.shape)
    return [
        _start(i, n, flag, dtype)
        for i, n, flag in zip(start_indices, x.aval.shape, flags, strict=True)
    ]


def _start(index: Any, size: int, negative: bool, numbers: np.dtype) -> Any:
    if isinstance(index, bool):
        raise TypeError(f"slices start at integers, got {index}.")
    if isinstance(index, np.integer):
        index = index.astype(dtypes.canonical(index.dtype))  # as in arrays: the low bits
    if isinstance(index, int | np.integer | DimExpr):
        index = index_of(index)
        # Clamped here, so that sizes and indices beyond 32 bits never wrap.
        index = index + size if negative and index < 0 else index
        if type(index) is int and type(size) is int:
            return full((), max(0, min(index, size)), numbers)
        return full((), largest(0, smallest(index, size)), numbers)
    index = as_array(index)
    dtype = index.aval.dtype
    if dtypes.is_integer(dtype) and negative and dtypes.kind(dtype) == "i":
        end = full((), smallest(size, dtypes.iinfo(dtype).max), dtype)
        below = lt(index, full((), 0, dtype))
        # Two numbers of different weak types are made alike, which jaxprs show.
        own = convert(index, dtype) if config.jax_form() else index
        index = select_n(below, index, add(own, end))
    return index if not index.aval.weak_type else convert(index, dtype)


def _moved(starts: Sequence[np.ndarray], shape: tuple, sizes: tuple) -> list[int]:
    return [min(max(int(s), 0), n - k) for s, n, k in zip(starts, shape, sizes, strict=True)]


# ------------------------------------------------------------------ dynamic_slice
def _dynamic_slice_abstract(
    x: ShapedArray, *starts: ShapedArray, slice_sizes: tuple
) -> ShapedArray:
    _check_starts("dynamic_slice", x, starts)
    if len(slice_sizes) != x.ndim:
        raise ValueError(
            f"dynamic_slice: slice_sizes {slice_sizes} must have an entry for each of the axes of "
            f"{x.str_short()}."
        )
    if any(
        not 0 <= k <= n for k, n in zip(slice_sizes, x.shape, strict=True)
    ):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape: dynamic_slice got "
            f"slice_sizes {slice_sizes}, which must fit inside {x.str_short()}, axis by axis."
        )
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _dynamic_slice_reference(x: np.ndarray, *starts: np.ndarray, slice_sizes: tuple) -> np.ndarray:
    return x[
        tuple(
            [
                _span(s, s + k)
                for s, k in zip(_moved(starts, x.shape, slice_sizes), slice_sizes, strict=True)
            ]
        )
    ]


def _dynamic_slice_loops(e: Any, index: list, x: Any, *starts: Any, slice_sizes: tuple) -> Any:
    return x(
        *[
            i if k == n else e.index_clamp(e.value_index(start()), 0, n - k) + i
            for i, start, n, k in zip(index, starts, x.shape, slice_sizes, strict=True)
        ]
    )


def _dynamic_slice_jvp(primals: tuple, tangents: tuple, *, slice_sizes: tuple) -> tuple:
    x, *starts = primals
    out = dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)
    if type(tangents[0]) is Zero or tangents[0].aval.dtype == dtypes.float0:
        return out, Zero(out.aval.tangent())
    return out, dynamic_slice_p.bind(tangents[0], *starts, slice_sizes=slice_sizes)


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: tuple) -> list:
    nothing = [None] * len(starts)
    if type(x) is not Linear:
        return [None, *nothing]
    return [dynamic_update_slice_p.bind(zeros(x.aval.strong()), ct, *starts), *nothing]


def index_dtype(*sizes: int) -> np.dtype:
    """The dtype of positions on axes of these sizes, their ends included: int32 where it holds
    them."""
    for n in sizes:
        if type(n) is DimExpr:
            return dtypes.int32  # calls are held to it (`transforms.concrete_sizes`)
        if n >= 2**31:
            return dtypes.int64
    return dtypes.int32


def narrow_index(i: Any, dtype: np.dtype) -> Any:
    """Positions as `dtype`; those it cannot hold stay beyond the same end of an axis."""
    held, own = dtypes.iinfo(dtype), dtypes.iinfo(i.aval.dtype)
    if own.max > held.max:
        scalar = ShapedArray((), i.aval.dtype)  # of 64 bits outside of `enable_x64` too
        least, most = (
            ArrayImpl(np.asarray(n, scalar.dtype), scalar)
            for n in (max(held.min, own.min), held.max)
        )
        i = clamp_p.bind(least, i, most)
    return convert(i, dtype)


def _stacked(
    starts: Sequence[Any], dims: Sequence[int | None], size: int, shape: Sequence[int]
) -> Any:
    """Start indices as int[batch, axes], for the gather or scatter that a mapped start needs in
    axes of `shape`."""
    dtype = index_dtype(*shape)
    if config.jax_form():
        fronts = mapped_to_front(starts, dims)
        own = {s.aval.dtype for s in fronts}
        if len(own) > 1 or dtypes.kind(min(own)) == "i":
            fronts = [narrow_index(s, dtype) for s in fronts]
        columns = [
            broadcast_in_dim(s, (size, 1), () if d is None else (0,))
            for s, d in zip(fronts, dims, strict=True)
        ]
    else:
        columns = [
            reshape(narrow_index(to_front(s, d, size), dtype), (size, 1))
            for s, d in zip(starts, dims, strict=True)
        ]
    return concatenate(columns, 1)


def _dynamic_slice_batch(axis: Any, args: tuple, dims: tuple, *, slice_sizes: tuple) -> tuple:
    x, *starts = args
    if config.jax_form() and dims[0] is not None and starts:
        return _gathered(axis, x, dims[0], starts, dims[1:], slice_sizes)
    if all(d is None for d in dims[1:]):
        dim = dims[0]
        zero = full((), 0, dtypes.int32)
        sizes = (*slice_sizes[:dim], axis.size, *slice_sizes[dim:])
        return dynamic_slice_p.bind(x, *starts[:dim], zero, *starts[dim:], slice_sizes=sizes), dim
    shape = [n for k, n in enumerate(x.aval.shape) if k != dims[0]]
    indices = _stacked(starts, dims[1:], axis.size, shape)
    ndim = len(slice_sizes)
    window, every = tuple(range(1, ndim + 1)), tuple(range(ndim))
    if dims[0] is None:
        numbers = GatherDimensionNumbers(window, (), every)
        return gather(x, indices, numbers, slice_sizes, mode="clip"), 0
    numbers = GatherDimensionNumbers(window, (), window, (0,), (0,))
    return gather(
        moveaxis(x, dims[0], 0), indices, numbers, (min(1, axis.size), *slice_sizes), mode="clip"
    ), 0


def _gathered(
    axis: Any, x: Any, dim: int, starts: Sequence[Any], dims: Sequence, slice_sizes: tuple
) -> tuple:
    """Slices of mapped arrays as JAX has them, which `make_jaxpr` shows: each example has one."""
    window = numpy_axes(tuple(range(1, len(slice_sizes) + 1)))
    shape = [n for k, n in enumerate(x.aval.shape) if k != dim]
    if any(d is not None for d in dims):
        indices = _stacked(starts, dims, axis.size, shape)
        numbers = GatherDimensionNumbers(window, (), window, (0,), (0,))
        sizes = (min(1, axis.size), *slice_sizes)
    else:
        indices = concatenate([broadcast_in_dim(s, (1,), ()) for s in starts], 0)
        numbers = GatherDimensionNumbers((0, *window), (), window)
        sizes = (axis.size, *slice_sizes)
    return REGISTRY["gather"].bind(
        moveaxis(x, dim, 0), indices, dimension_numbers=numbers, slice_sizes=sizes,
        mode=GatherScatterMode.CLIP, unique_indices=True, indices_are_sorted=True, fill_value=None,
    ), 0  # fmt: skip


dynamic_slice_p = Primitive(
    "dynamic_slice",
    linear=True,
    abstract=_dynamic_slice_abstract,
    reference=_dynamic_slice_reference,
    jvp=_dynamic_slice_jvp,
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    loops=Pointwise(_dynamic_slice_loops),
)


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A box of fixed size at start indices that may be traced.

    operand: an array. start_indices: one integer scalar for each axis, or a vector of them;
    negative ones count from the end unless allow_negative_indices (a boolean, or one for each axis)
    is False; a box that would reach out is moved inside. slice_sizes: Python integers. Result:
    shape slice_sizes, operand's dtype. Derivative: zeros with the cotangent in the box; none in the
    indices. Raises TypeError where the box is larger than operand. Raises ValueError for another
    number of indices than axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_slice(jnp.arange(5), (3,), (3,))
    Array([2, 3, 4], dtype=int32)
    """
    x = as_array(operand)
    starts = _start_list("dynamic_slice", x, start_indices, allow_negative_indices)
    if isinstance(slice_sizes, int):
        slice_sizes = (slice_sizes,)
    return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(map(size_of, slice_sizes)))


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """slice_size rows from start_index along one axis, where start_index may be traced.

    operand: an array. start_index: an integer scalar, moved so that the slice lies inside; negative
    ones count from the end unless allow_negative_indices is False. slice_size, axis: Python
    integers. Result: operand's dtype and shape but for the axis, of slice_size. Derivative: as of
    `dynamic_slice`. Raises TypeError where the slice is larger than the axis. Raises IndexError for
    an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.aval.ndim, IndexError)
    starts: list[Any] = [0] * x.aval.ndim
    sizes = list(x.aval.shape)
    starts[axis], sizes[axis] = start_index, slice_size
    starts = starts if config.jax_form() else _alike(starts, axis)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """operand[index] along one axis, where `index` may be traced.

    operand: an array. index: an integer scalar, moved inside where it would reach out; negative
    ones count from the end unless allow_negative_indices is False. axis: an integer. keepdims: the
    axis stays, with size 1. Derivative: zeros with the cotangent at the index. Raises IndexError
    for an axis out of range. Raises TypeError for an axis without elements.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_index_in_dim(jnp.array([5, 6, 7]), 1, keepdims=False)
    Array(6, dtype=int32)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.aval.ndim, IndexError)
    row = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return row if keepdims else _drop(row, axis)


def _alike(starts: list[Any], axis: int) -> list[Any]:
    """The zeros beside a start index that is an array, in its dtype."""
    index = starts[axis]
    if isinstance(index, int | np.integer):
        return starts
    aval = as_array(index).aval
    if not dtypes.is_integer(aval.dtype):
        return starts
    zero = full((), 0, aval.dtype)
    return [index if i == axis else zero for i in range(len(starts))]


# ------------------------------------------------------------------ dynamic_update_slice
def _update_abstract(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    _check_starts("dynamic_update_slice", x, starts)
    if update.dtype != x.dtype:
        raise TypeError(
            "lax.dynamic_update_slice requires arguments to have the same dtypes, got "
            f"{x.dtype.name}, {update.dtype.name}. Convert one with lax.convert_element_type."
        )
    if update.ndim != x.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {x.shape}."
        )
    if any(k > n for k, n in zip(update.shape, x.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape: the update "
            f"{update.str_short()} must fit inside the operand {x.str_short()}, axis by axis."
        )
    return ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type)


def _update_reference(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = x.copy()
    at = zip(_moved(starts, x.shape, update.shape), update.shape, strict=True)
    out[tuple([_span(s, s + k) for s, k in at])] = update
    return out


def _update_loops(e: Any, index: list, x: Any, update: Any, *starts: Any) -> Any:
    inside, place = None, []
    if 0 in update.shape:
        return x(*index)
    for i, start, n, k in zip(index, starts, x.shape, update.shape, strict=True):
        if k == n:
            place.append(i)
            continue
        j = i - e.index_clamp(e.value_index(start()), 0, n - k)
        test = e.index_in_range(j, 0, k)
        inside = test if inside is None else e.and_(inside, test)
        place.append(e.index_clamp(j, 0, k - 1))
    new = update(*place)
    return new if inside is None else e.select(inside, new, x(*index))


def _update_jvp(primals: tuple, tangents: tuple) -> tuple:
    x, update, *starts = primals
    out = dynamic_update_slice_p.bind(*primals)
    t_x, t_update = tangents[:2]
    if (type(t_x) is Zero and type(t_update) is Zero) or not dtypes.is_inexact(out.aval.dtype):
        return out, Zero(out.aval.tangent())
    return out, dynamic_update_slice_p.bind(instantiate(t_x), instantiate(t_update), *starts)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list:
    ct_x = ct_update = None
    if type(x) is Linear:
        ct_x = dynamic_update_slice_p.bind(
            ct, zeros(ShapedArray(update.aval.shape, ct.aval.dtype)), *starts
        )
    if type(update) is Linear:
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=update.aval.shape)
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    x, update, *starts = args
    x, looked_at = broadcast_mapped(x, dims[0], axis), config.jax_form()
    if looked_at and any([d is not None for d in dims[2:]]):
        indices = _stacked(starts, dims[2:], axis.size, x.aval.shape[1:])
    update = broadcast_mapped(update, dims[1], axis)
    if all(d is None for d in dims[2:]):
        zero = full((), 0, dtypes.int32)
        return dynamic_update_slice_p.bind(x, update, zero, *starts), 0
    ndim = len(starts)
    window = numpy_axes(tuple(range(1, ndim + 1)))
    limits = [n - k for n, k in zip(x.aval.shape[1:], update.aval.shape[1:], strict=True)]
    dtype = index_dtype(*x.aval.shape[1:])
    if not looked_at:
        inside = [
            clamp(0, narrow_index(s, dtype), limit)
            for s, limit in zip(starts, limits, strict=True)
        ]
        indices = _stacked(inside, dims[2:], axis.size, x.aval.shape[1:])
    numbers = ScatterDimensionNumbers(window, (), window, (0,), (0,))
    return REGISTRY["scatter"].bind(
        x,
        indices,
        update,
        dimension_numbers=numbers,
        indices_are_sorted=looked_at,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    ), 0


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    linear=True,
    abstract=_update_abstract,
    reference=_update_reference,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    loops=Pointwise(_update_loops),
)


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """operand with the box at start_indices replaced by update.

    operand, update: arrays of one dtype and rank, update no larger. start_indices: one integer
    scalar for each axis, or a vector of them; negative ones count from the end unless
    allow_negative_indices (a boolean, or one for each axis) is False; a box that would reach out is
    moved inside. Result: operand's shape and dtype. Linear in operand and update. Raises TypeError
    for dtypes and sizes that do not fit. Raises ValueError for another number of indices than axes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_update_slice(jnp.arange(5), jnp.array([0, 0]), (1,))
    Array([0, 0, 0, 3, 4], dtype=int32)
    """
    x, new = pair(operand, update)
    if x.aval.placed is not None and new.aval.placed is None and not is_lenient():
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand "
            f"sharding {x.aval} and update sharding {new.aval}. Lay the update out as the operand "
            "with numjet.reshard, or use x.at[...].set."
        )
    starts = _start_list("dynamic_update_slice", x, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(x, new, *starts)


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """operand with rows from start_index along one axis replaced by update.

    operand, update: arrays of one dtype and rank, equal in all other sizes. start_index: an integer
    scalar, moved so that the rows lie inside; negative ones count from the end unless
    allow_negative_indices is False. axis: an integer. Result: operand's shape and dtype. Linear in
    operand and update. Raises TypeError for dtypes and sizes that do not fit. Raises IndexError for
    an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_update_slice_in_dim(jnp.arange(5), jnp.array([0, 0]), 3, 0)
    Array([0, 1, 2, 0, 0], dtype=int32)
    """
    x = as_array(operand)
    axis = canonical_axis(axis, x.aval.ndim, IndexError)
    starts: list[Any] = [0] * x.aval.ndim
    starts[axis] = start_index
    return dynamic_update_slice(
        x, update, _alike(starts, axis), allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """operand with its row `index` along one axis replaced by update.

    operand: an array. update: of the same dtype, a row with or without the axis. index: an integer
    scalar, moved inside where it would reach out; negative ones count from the end unless
    allow_negative_indices is False. axis: an integer. Result: operand's shape and dtype. Linear in
    operand and update. Raises TypeError for dtypes and sizes that do not fit. Raises ValueError for
    an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dynamic_update_index_in_dim(jnp.arange(3), 9, 1, 0)
    Array([0, 9, 2], dtype=int32)
    """
    x, new = pair(operand, update)
    axis = canonical_axis(axis, x.aval.ndim)
    if new.aval.ndim != x.aval.ndim:
        if new.aval.ndim + 1 != x.aval.ndim:
            raise TypeError(
                f"dynamic_update_index_in_dim: the update {new.aval.str_short()} must have the "
                f"axes of {x.aval.str_short()}, with or without axis {axis}."
            )
        others = tuple([i for i in range(x.aval.ndim) if i != axis])
        one_wide = (*new.aval.shape[:axis], 1, *new.aval.shape[axis:])
        shown = config.jax_form()
        new = broadcast_in_dim(new, one_wide, others) if shown else reshape(new, one_wide)
    return dynamic_update_slice_in_dim(
        x, new, index, axis, allow_negative_indices=allow_negative_indices
    )
