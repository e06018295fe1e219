"""approx_max_k and approx_min_k: the largest elements, where some may be missed.

For `lax`. The selection here is exact (`top_k` reads a row once), so that any recall is met.
"""
from __future__ import annotations

from typing import Any

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.dims import any_symbolic, index_of
from numjet.ops.complex_ops import neg
from numjet.ops.composed import composed
from numjet.ops.shape import canonical_axis
from numjet.ops.sort import top_k


def _select(operand: Any, *, k: int, reduction_dimension: int, is_max_k: bool, **_: Any) -> tuple:
    values, places = top_k(operand if is_max_k else neg(operand), k, axis=reduction_dimension)
    return (values if is_max_k else neg(values)), places


approx_top_k_p = composed("approx_top_k", _select, several=True)


def _approximate(name: str, operand: Any, k: int, axis: int, recall: float, override: int,
                 aggregate: bool, largest: bool) -> list[Any]:
    x = as_array(operand)
    axis = canonical_axis(axis, x.aval.ndim, IndexError)
    if not aggregate and any_symbolic((k, x.aval.shape[axis])):
        raise NotImplementedError(
            f"{name} with aggregate_to_topk=False where k ({k}) or the size of the reduced axis "
            f"({x.aval.shape[axis]}) is symbolic."
        )
    if k <= 0:
        raise ValueError(f"{name}: k must be positive, got {k}")
    if k > x.aval.shape[axis]:
        raise ValueError(f"{name}: k must be smaller than the size of reduction_dim "
                         f"{x.aval.shape[axis]}, got {k}")
    if not dtypes.is_floating(x.aval.dtype):
        raise ValueError(f"{name}: operand must be a floating type, got {x.aval.str_short()}")
    if not 0 < recall <= 1:
        raise ValueError(f"{name}: recall_target must lie in (0, 1], got {recall}")
    values, places = approx_top_k_p.bind(
        x, k=index_of(k), reduction_dimension=axis, recall_target=float(recall), is_max_k=largest,
        reduction_input_size_override=int(override), aggregate_to_topk=bool(aggregate))
    return [values, places]


def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Any]:
    """The k largest elements along an axis, falling: [values, indices].

    operand: real floats. k: how many. reduction_dimension: the axis. The result is exact, so that
    any recall_target in (0, 1] is met, and of k elements and sorted whether they are aggregated or
    not: reduction_input_size_override and aggregate_to_topk change nothing. Result: operand's shape
    with k elements along the axis; values have its dtype, indices are int32. Derivative: that of
    taking the elements at these indices. Raises ValueError for k out of range and other dtypes.
    IndexError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)
    [Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approximate("approx_max_k", operand, k, reduction_dimension, recall_target,
                        reduction_input_size_override, aggregate_to_topk, True)


def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Any]:
    """The k smallest elements along an axis, rising: [values, indices].

    operand, k, reduction_dimension, recall_target, reduction_input_size_override,
    aggregate_to_topk: as of `approx_max_k`; the result is exact. Raises ValueError for k out of
    range and other dtypes. IndexError for an axis out of range.

    >>> from numjet import lax, numpy as jnp
    >>> lax.approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)
    [Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approximate("approx_min_k", operand, k, reduction_dimension, recall_target,
                        reduction_input_size_override, aggregate_to_topk, False)
