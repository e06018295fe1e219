"""gather: windows of an array at computed positions, the operation behind x[indices].

numjet.numpy's indexing, `take` and batched slices call `gather`. The transpose is scatter-add,
found by name in the registry because the scatters are built from gather.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of
from numjet.core.lowering import Pointwise
from numjet.core.primitive import REGISTRY, Linear, Primitive, Zero
from numjet.core.structural import moveaxis, zeros
from numjet.ops.dimension_checks import gather_numbers
from numjet.ops.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_tuples,
    mapped,
    starts_of,
    window_index,
)


def _fail(text: str) -> TypeError:
    return TypeError(f"gather: {text}")


def _abstract(
    operand: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    **_: Any,
) -> ShapedArray:
    numbers = dimension_numbers
    if not dtypes.is_integer(indices.dtype):
        raise ValueError(
            "gather: indices must have an integer type: start_indices must be integers, got "
            f"{indices.str_short()}."
        )
    if not indices.ndim:
        raise _fail(
            "start_indices needs a last axis that holds the index components; add one with [..., "
            "None]."
        )
    gather_numbers(operand.shape, indices.shape, numbers, tuple(slice_sizes))
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [n for axis, n in enumerate(slice_sizes) if axis not in gone]
    ndim = len(window) + indices.ndim - 1
    batch, windows = iter(indices.shape[:-1]), iter(window)
    shape = tuple([next(windows) if d in numbers.offset_dims else next(batch) for d in range(ndim)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def default_fill(dtype: Any) -> Any:
    """What mode 'fill' gives: NaN, the smallest signed or largest unsigned integer, True."""
    dtype = dtypes.physical(dtype)
    if dtypes.is_inexact(dtype):
        return float("nan")
    if dtypes.is_bool(dtype):
        return True
    info = dtypes.iinfo(dtype)
    return int(info.max if info.min == 0 else info.min)


def _reference(
    operand: np.ndarray,
    indices: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    mode: GatherScatterMode,
    fill_value: Any,
    **_: Any,
) -> np.ndarray:
    numbers, batch = dimension_numbers, indices.shape[:-1]
    starts, valid = starts_of(
        indices,
        operand.shape,
        slice_sizes,
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
    )
    indexed, arrays, wide = window_index(starts, slice_sizes, len(batch))
    rest = [axis for axis in range(operand.ndim) if axis not in starts]
    if any(slice_sizes[axis] != operand.shape[axis] for axis in rest):
        operand = operand[
            tuple(
                [
                    slice(None) if axis in starts else slice(0, slice_sizes[axis])
                    for axis in range(operand.ndim)
                ]
            )
        ]
    ordered = operand.transpose(indexed + rest)
    empty = any(operand.shape[axis] == 0 and slice_sizes[axis] == 0 for axis in indexed)
    if arrays and not empty:
        out = ordered[tuple(arrays)]
    else:
        out = np.broadcast_to(
            ordered if not empty else np.zeros((), operand.dtype),
            batch + tuple([slice_sizes[axis] for axis in wide + rest]),
        )
    # Window axes in the operand's order; axes of size 1 come and go by reshaping.
    have = wide + rest
    nb = len(batch)
    out = out.transpose([*range(nb), *[nb + have.index(axis) for axis in sorted(have)]])
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [n for axis, n in enumerate(slice_sizes) if axis not in gone]
    out = out.reshape((*batch, *window))
    if valid is not None and mode is GatherScatterMode.FILL_OR_DROP:
        fill = np.asarray(default_fill(operand.dtype) if fill_value is None else fill_value).astype(
            operand.dtype
        )
        out = np.where(valid.reshape(batch + (1,) * len(window)), out, fill)
    order, of_batch, of_window = [], iter(range(nb)), iter(range(nb, out.ndim))
    for d in range(out.ndim):
        order.append(next(of_window) if d in numbers.offset_dims else next(of_batch))
    return out.transpose(order)


def _loops(
    e: Any,
    index: list,
    operand: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    mode: GatherScatterMode,
    fill_value: Any,
    **_: Any,
) -> Any:
    numbers = dimension_numbers
    batch = [i for d, i in enumerate(index) if d not in numbers.offset_dims]
    offsets = iter([index[d] for d in numbers.offset_dims])
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    at = [e.index_const(0) if axis in gone else next(offsets) for axis in range(len(slice_sizes))]
    for axis, position in zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    ):
        at[axis] = batch[position]
    inside = None
    for k, axis in enumerate(numbers.start_index_map):
        start = e.value_index(indices(*batch, e.index_const(k)))
        last = operand.shape[axis] - slice_sizes[axis]
        if mode is GatherScatterMode.FILL_OR_DROP:
            test = e.index_in_range(start, 0, last + 1)
            inside = test if inside is None else e.and_(inside, test)
        at[axis] = e.index_clamp(start, 0, last) + at[axis]
    value = operand(*at)
    if inside is None:
        return value
    dtype = dtypes.physical(operand.dtype)
    return e.select(
        inside, value, e.const(default_fill(dtype) if fill_value is None else fill_value, dtype)
    )


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    operand, indices = primals
    out = gather_p.bind(operand, indices, **params)
    if type(tangents[0]) is Zero:
        return out, Zero(out.aval.tangent())
    return out, gather_p.bind(tangents[0], indices, **{**params, "fill_value": 0})


def _transpose(
    ct: Any,
    operand: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    mode: GatherScatterMode,
    fill_value: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> list:
    if type(operand) is not Linear:
        return [None, None]
    return [
        REGISTRY["scatter-add"].bind(
            zeros(operand.aval.strong()),
            indices,
            ct,
            dimension_numbers=ScatterDimensionNumbers(*dimension_numbers),
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        ),
        None,
    ]


def _batch(
    axis: Any,
    args: tuple,
    dims: tuple,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple,
    **params: Any,
) -> tuple:
    (operand, indices), (operand_dim, indices_dim) = args, dims
    numbers = dimension_numbers

    if indices_dim is None:
        operand = moveaxis(operand, operand_dim, 0)
        numbers = mapped(numbers, indices_too=False)
        sizes = (axis.size, *slice_sizes)
    elif operand_dim is None:
        indices = moveaxis(indices, indices_dim, 0)
        numbers = numbers._replace(
            offset_dims=tuple([a + 1 for a in numbers.offset_dims]),
            start_indices_batching_dims=tuple([a + 1 for a in numbers.start_indices_batching_dims]),
        )
        sizes = slice_sizes
    else:
        operand, indices = moveaxis(operand, operand_dim, 0), moveaxis(indices, indices_dim, 0)
        numbers = mapped(numbers, indices_too=True)
        sizes = (min(1, axis.size), *slice_sizes)
    return gather_p.bind(
        operand, indices, dimension_numbers=numbers, slice_sizes=sizes, **params
    ), 0


gather_p = Primitive(
    "gather",
    linear=True,
    abstract=_abstract,
    reference=_reference,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loops=Pointwise(_loops),
)


class _NegativeZero(float):
    """-0.0 as a parameter, which is not equal to 0.0: what an operation did is remembered by its
    parameters."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _NegativeZero

    def __hash__(self) -> int:
        return hash(_NegativeZero)


def plain_fill(fill_value: Any, dtype: Any) -> Any:
    """`fill_value` as a Python scalar, None where it is the default."""
    if fill_value is None:
        return None
    value = np.asarray(fill_value).item()
    if not value and type(value) is float and math.copysign(1.0, value) < 0:
        return _NegativeZero(value)
    return None if dtypes.is_inexact(dtype) and value != value else value


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """Windows of an array at many positions, each of one size.

    operand: an array. start_indices: integers [..., k], the last axis holds the components of one
    position. dimension_numbers: GatherDimensionNumbers, which say what axes mean. slice_sizes: the
    window, an integer for each axis of operand. unique_indices, indices_are_sorted: promises about
    the positions. mode: 'clip' moves windows inside; 'fill' or 'drop' gives fill_value outside, by
    default NaN, the smallest signed, the largest unsigned integer; 'promise_in_bounds' (the
    default; clamps). Its transpose is `scatter_add`. Raises TypeError when shapes do not fit.
    `numpy`'s indexing is easier. Raises ValueError for indices that are no integers.

    >>> from numjet import lax, numpy as jnp
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(jnp.array([5, 6, 7]), jnp.array([[2], [0]]), numbers, (1,))
    Array([7, 5], dtype=int32)
    """
    operand, start_indices = as_array(operand), as_array(start_indices)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if mode is GatherScatterMode.ONE_HOT:
        raise NotImplementedError(
            "gather: mode 'one_hot' is not supported. Use mode='fill', fill_value=0."
        )
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    if not isinstance(dimension_numbers, GatherDimensionNumbers):
        raise AttributeError(
            f"{dimension_numbers!r} has no attribute 'offset_dims': dimension_numbers must be "
            "GatherDimensionNumbers."
        )
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=as_tuples(dimension_numbers),
        slice_sizes=tuple([index_of(n) for n in slice_sizes]),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=mode,
        fill_value=plain_fill(fill_value, operand.aval.dtype),
    )
