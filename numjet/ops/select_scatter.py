"""select_and_scatter: a selection picks an element of each window, and values are combined there.

For `lax.select_and_scatter_p`, which programs bind by name; pooling's own derivative is
`window.select_and_scatter_add`. The selection and the combination are jaxprs of two scalars.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core.array import as_array
from numjet.core.jaxpr import Jaxpr, eval_jaxpr
from numjet.core.structural import broadcast_in_dim
from numjet.ops.composed import composed
from numjet.ops.gather import gather
from numjet.ops.indexing import GatherDimensionNumbers
from numjet.ops.logic import bitwise_and, bitwise_not, bitwise_or, eq
from numjet.ops.scatter import ScatterDimensionNumbers, scatter
from numjet.ops.shape import expand_dims, iota, pad, reshape, select_n
from numjet.ops.slicing import slice as lax_slice
from numjet.transforms.batch import Axis, batch_call

INT32 = np.dtype(np.int32)


def _elementwise(jaxpr: Any, consts: Any, x: Any, y: Any) -> Any:
    """A jaxpr of two scalars on the elements of arrays of one shape."""
    inner: Jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    held = [*getattr(jaxpr, "consts", ()), *consts]
    size = x.aval.size
    flat = [reshape(v, (size,)) for v in (x, y)]
    (out,), (dim,) = batch_call(
        lambda a, b: eval_jaxpr(inner, held, a, b), Axis(size), flat, [0, 0]
    )
    out = broadcast_in_dim(out, (size,), ()) if dim is None else out
    return reshape(out, x.aval.shape)


def _generate(
    operand: Any,
    source: Any,
    init_value: Any,
    *,
    select_jaxpr: Any,
    select_consts: Any,
    scatter_jaxpr: Any,
    scatter_consts: Any,
    window_dimensions: tuple,
    window_strides: tuple,
    padding: tuple,
) -> Any:
    """`init_value` everywhere, combined with the source's elements where the selection picks an
    element of their window: it keeps the earlier one, or takes the next."""
    operand, source, init_value = as_array(operand), as_array(source), as_array(init_value)
    config = [(low, high, 0) for low, high in padding]
    shape = tuple([n + a + b for n, (a, b) in zip(operand.aval.shape, padding, strict=True)])
    size = math.prod(shape)
    whole = pad(operand, init_value, config)
    inside = pad(broadcast_in_dim(as_array(True), operand.aval.shape, ()), as_array(False), config)
    places = reshape(iota(INT32, size), shape)

    def windows(x: Any) -> list:
        """The elements at each position of a window, one array of the source's shape for each."""
        found = []
        for at in np.ndindex(*window_dimensions):
            ends = [
                a + (n - 1) * s + 1
                for a, n, s in zip(at, source.aval.shape, window_strides, strict=True)
            ]
            found.append(lax_slice(x, at, ends, window_strides))
        return found

    values, positions, real = windows(whole), windows(places), windows(inside)
    best, chosen, there = values[0], positions[0], real[0]
    for value, place, is_real in zip(values[1:], positions[1:], real[1:], strict=True):
        keeps = _elementwise(select_jaxpr, select_consts, best, value)
        keep = bitwise_and(there, bitwise_or(keeps, bitwise_not(is_real)))
        best, chosen = select_n(keep, value, best), select_n(keep, place, chosen)
        there = bitwise_or(there, is_real)
    out = broadcast_in_dim(init_value, (size,), ())
    axis = source.aval.ndim
    for place in positions:
        # Windows do not meet at one position in each, so these elements are distinct.
        at = expand_dims(place, (axis,))
        old = gather(
            out, at, GatherDimensionNumbers((), (0,), (0,)), (1,), mode="promise_in_bounds"
        )
        new = _elementwise(scatter_jaxpr, scatter_consts, old, source)
        new = select_n(eq(chosen, place), old, new)
        out = scatter(
            out, at, new, ScatterDimensionNumbers((), (0,), (0,)), unique_indices=True,
            mode="promise_in_bounds",
        )  # fmt: skip
    ends = [a + n for n, (a, _) in zip(operand.aval.shape, padding, strict=True)]
    return lax_slice(reshape(out, shape), [a for a, _ in padding], ends)


select_and_scatter_p = composed("select_and_scatter", _generate)
