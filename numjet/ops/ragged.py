"""Products of arrays one axis of which is cut into groups: ragged_dot and ragged_dot_general.

For `lax`. Each group's part of the left operand is the operand with zeros elsewhere, so that the
whole is one dot_general, whose derivative, vmap and kernels serve; it multiplies as many times as
there are groups.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import broadcast_in_dim, convert, moveaxis, transpose
from numjet.ops.arithmetic import sub
from numjet.ops.composed import composed
from numjet.ops.cumulative import cumsum
from numjet.ops.dot import canonical_precision, dot_general
from numjet.ops.families import constant_like
from numjet.ops.logic import bitwise_and, ge, lt
from numjet.ops.shape import broadcasted_iota, select_n


class RaggedDotDimensionNumbers:
    """Which axes of a ragged product mean what.

    dot_dimension_numbers: as of `lax.dot_general`; lhs_ragged_dimensions: the one axis of lhs that
    is cut into groups; rhs_group_dimensions: the axis of rhs that counts them, or none.

    >>> from numjet import lax
    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions
    (0,)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Sequence[int],
                 rhs_group_dimensions: Sequence[int]) -> None:
        self.dot_dimension_numbers = tuple(
            [tuple([tuple(map(int, axes)) for axes in pair]) for pair in dot_dimension_numbers])
        self.lhs_ragged_dimensions = tuple(map(int, lhs_ragged_dimensions))
        self.rhs_group_dimensions = tuple(map(int, rhs_group_dimensions))

    def _fields(self) -> tuple:
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (f"RaggedDotDimensionNumbers(dot_dimension_numbers={self.dot_dimension_numbers}, "
                f"lhs_ragged_dimensions={self.lhs_ragged_dimensions}, "
                f"rhs_group_dimensions={self.rhs_group_dimensions})")


def _checked(lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers) -> tuple:
    """(kind of the ragged axis, the axes of lhs that sizes may have before its last)."""
    name = "ragged_dot_general"
    if not dtypes.is_integer(sizes.aval.dtype):
        raise TypeError(f"{name} requires that group_sizes.dtype is subtype of np.integer, got "
                        f"{sizes.aval.str_short()}.")
    for side, x, axes in (
        ("lhs", lhs, numbers.lhs_ragged_dimensions),
        ("lhs", lhs, [a for pair in numbers.dot_dimension_numbers for a in pair[0]]),
        ("rhs", rhs, numbers.rhs_group_dimensions),
        ("rhs", rhs, [a for pair in numbers.dot_dimension_numbers for a in pair[1]]),
    ):
        if any([a >= x.aval.ndim for a in axes]):
            raise TypeError(f"{name}: {side} must have the axes {(*axes,)}, got "
                            f"{x.aval.str_short()}.")
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension, got "
                        f"{numbers.lhs_ragged_dimensions}.")
    (axis,), groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    (contracting, _), (batch, _) = numbers.dot_dimension_numbers
    free = [a for a in range(lhs.aval.ndim) if a not in contracting and a not in batch]
    if axis in batch:
        kind, outer = "batch", [*batch[:batch.index(axis)]]
    elif axis in contracting:
        kind, outer = "contracting", [*batch, *contracting[:contracting.index(axis)]]
    else:
        kind, outer = "free", [*batch, *free[:free.index(axis)]]
    if kind == "free" and len(groups) != 1:
        raise TypeError(f"{name} requires exactly one rhs group dimension when lhs ragged "
                        f"dimension is noncontracting, got {groups}.")
    if kind != "free" and groups:
        raise TypeError(f"{name} requires zero group dimensions in the rhs when lhs ragged "
                        f"dimension is contracting or batch, got {groups}.")
    shape, want = sizes.aval.shape, tuple([lhs.aval.shape[a] for a in outer])
    if len(shape) > 1 and shape[:-1] != want or not shape:
        raise TypeError(f"{name}: group_sizes must have shape (groups,) or {(*want, 'groups')}, "
                        f"got {sizes.aval.str_short()}.")
    if kind == "free" and rhs.aval.shape[groups[0]] != shape[-1]:
        raise TypeError(f"{name} expected rhs group dimension size to be {shape[-1]}, got "
                        f"{rhs.aval.shape[groups[0]]}.")
    return kind, outer if len(shape) > 1 else []


def _general(lhs: Any, rhs: Any, sizes: Any, *, numbers: RaggedDotDimensionNumbers, precision: Any,
             preferred_element_type: Any) -> Any:
    kind, outer = _checked(lhs, rhs, sizes, numbers)
    dtype = dtypes.promote((lhs.aval.dtype, False), (rhs.aval.dtype, False))[0]
    lhs, rhs = convert(lhs, dtype), convert(rhs, dtype)
    (axis,) = numbers.lhs_ragged_dimensions
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    if kind == "batch":  # the groups' products lie side by side
        return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    sizes = convert(sizes, np.dtype(np.int32))
    ends = cumsum(sizes, sizes.aval.ndim - 1)
    starts = sub(ends, sizes)
    shape = (ends.aval.shape[-1], *lhs.aval.shape)
    order = sorted(range(len(outer)), key=lambda i: outer[i])
    turn = (len(outer), *order) if outer else (0,)
    starts, ends = transpose(starts, turn), transpose(ends, turn)
    places = (0, *[outer[i] + 1 for i in order])
    position = broadcasted_iota(np.dtype(np.int32), shape, axis + 1)
    mine = bitwise_and(ge(position, broadcast_in_dim(starts, shape, places)),
                       lt(position, broadcast_in_dim(ends, shape, places)))
    wide = broadcast_in_dim(lhs, shape, tuple(range(1, len(shape))))
    zero = broadcast_in_dim(constant_like(lhs, 0), shape, ())
    parts = select_n(mine, convert(zero, dtype), wide)
    up = lambda axes: tuple([a + 1 for a in axes])  # noqa: E731
    if kind == "contracting":
        out = dot_general(parts, rhs, ((up(lc), rc), (up(lb), rb)), precision,
                          preferred_element_type)
        return moveaxis(out, len(lb), 0)
    groups = numbers.rhs_group_dimensions
    return dot_general(parts, rhs, (((0, *up(lc)), (*groups, *rc)), (up(lb), rb)), precision,
                       preferred_element_type)


ragged_dot_general_p = composed("ragged_dot_general", _general)


def ragged_dot_general(lhs: Any, rhs: Any, group_sizes: Any,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: Any = None, preferred_element_type: Any = None,
                       group_offset: Any = None, out_sharding: Any = None) -> Any:
    """A dot_general of groups: rows of one axis of lhs, `group_sizes` many each.

    lhs, rhs: arrays. group_sizes: integers[groups], or with the sizes for each element of the axes
    before the ragged one. ragged_dot_dimension_numbers: RaggedDotDimensionNumbers. precision,
    preferred_element_type: as of `dot_general`. Where the ragged axis is none of those contracted
    or of the batch, each group multiplies its own matrix of rhs, along its group axis; where it is
    contracted, each group gives a product of its own, along a new leading axis; where it is of the
    batch, the groups change nothing. Rows behind the last group count as zeros in the first two.
    Differentiable in lhs and rhs. Raises TypeError for numbers and shapes that do not fit;
    group_offset and out_sharding are refused (NotImplementedError).

    >>> from numjet import lax, numpy as jnp
    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> rows = jnp.ones((3, 1))
    >>> lax.ragged_dot_general(rows, rows, jnp.array([1, 2]), numbers).ravel()
    Array([1., 2.], dtype=float32)
    """
    for name, value in (("group_offset", group_offset), ("out_sharding", out_sharding)):
        if value is not None:
            raise NotImplementedError(f"ragged_dot_general: {name} is not there. Leave it away.")
    preferred = preferred_element_type
    return ragged_dot_general_p.bind(
        as_array(lhs), as_array(rhs), as_array(group_sizes), numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=None if preferred is None else dtypes.canonical(preferred))


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: Any = None,
               preferred_element_type: Any = None, group_offset: Any = None,
               out_sharding: Any = None) -> Any:
    """The rows of `lhs`, group by group, each times its group's matrix.

    lhs: [m, k], rhs: [groups, k, n], group_sizes: integers[groups], how many rows each group has.
    precision, preferred_element_type: as of `dot_general`. group_offset, out_sharding: must be None
    (NotImplementedError). Result: [m, n]; rows behind the last group are zero. Differentiable in
    lhs and rhs. See `ragged_dot_general`.

    >>> from numjet import lax, numpy as jnp
    >>> matrices = jnp.array([[[1.0]], [[10.0]]])
    >>> lax.ragged_dot(jnp.ones((3, 1)), matrices, jnp.array([1, 2])).ravel()
    Array([ 1., 10., 10.], dtype=float32)
    """
    return ragged_dot_general(lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type,
                              group_offset, out_sharding)
