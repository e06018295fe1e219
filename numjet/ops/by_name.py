"""Primitives of JAX's names that functions here do without: for interpreters that look them up or
write jaxprs themselves.

For `lax`. Each is the function of the same name (`ops.composed`); functions among the parameters
are compared by identity.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.ops import reduce as reductions, window
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.composed import composed
from numjet.ops.logic import bitwise_and, bitwise_xor, eq, le, lt, shift_right_arithmetic
from numjet.transforms.jvp import jvp_call


def _ordered(x: Any) -> Any:
    """Integers in the total order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    dtype = x.aval.dtype
    if not dtypes.is_floating(dtype):
        return x
    whole = np.dtype(f"int{8 * dtype.itemsize}")
    bits = bitcast_convert_type(x, whole)
    negative = shift_right_arithmetic(bits, whole.type(8 * dtype.itemsize - 1))
    return bitwise_xor(bits, bitwise_and(negative, whole.type(np.iinfo(whole).max)))


def _total(compare: Any) -> Any:
    return lambda x, y: compare(_ordered(x), _ordered(y))


eq_to_p, le_to_p, lt_to_p = [
    composed(name, _total(compare), differentiable=False, batched=lambda operands: ({}, 0))
    for name, compare in (("eq_to", eq), ("le_to", le), ("lt_to", lt))
]


def _reduce(*operands_and_starts: Any, computation: Any, dimensions: tuple) -> list:
    half = len(operands_and_starts) // 2
    operands, starts = operands_and_starts[:half], operands_and_starts[half:]
    if half == 1:
        return [reductions.reduce(operands[0], starts[0], computation, dimensions)]
    return list(reductions.reduce(operands, starts, computation, dimensions))


def _window(*operands_and_starts: Any, computation: Any, **geometry: Any) -> list:
    half = len(operands_and_starts) // 2
    operands, starts = operands_and_starts[:half], operands_and_starts[half:]
    if half == 1:
        return [window.reduce_window(operands[0], starts[0], computation, **geometry)]
    return list(window.reduce_window(operands, starts, computation, **geometry))


reduce_p = composed("reduce", _reduce, several=True)
reduce_window_p = composed("reduce_window", _window, several=True)


def _scatter_add(source: Any, operand: Any, *, select_prim: Any, window_dimensions: tuple,
                 window_strides: tuple, padding: tuple) -> Any:
    """The source's elements added where `select_prim` (ge_p: the largest) finds the window's."""
    return window.select_and_scatter_add(source, operand, select_prim.name in ("ge", "gt"),
                                         window_dimensions, window_strides, padding)


def _gather_add(tangents: Any, operand: Any, *, select_prim: Any, window_dimensions: tuple,
                window_strides: tuple, padding: tuple, base_dilation: tuple,
                window_dilation: tuple) -> Any:
    """The tangents where `select_prim` (ge_p: the largest) finds the window's element."""
    largest = select_prim.name in ("ge", "gt")
    extreme = window.reduce_window_max_p if largest else window.reduce_window_min_p
    geometry = dict(window_dimensions=window_dimensions, window_strides=window_strides,
                    padding=padding, base_dilation=base_dilation, window_dilation=window_dilation)
    _, (out,), _trace = jvp_call(lambda x: [extreme.bind(x, **geometry)], [operand], [tangents])
    return out


select_and_scatter_add_p = composed("select_and_scatter_add", _scatter_add)
select_and_gather_add_p = composed("select_and_gather_add", _gather_add)
