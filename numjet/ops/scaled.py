"""scaled_dot: products of operands that carry scales, as blocks of narrow floats do. For `lax`."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import broadcast_in_dim, convert
from numjet.ops.arithmetic import mul
from numjet.ops.dot import dot_general
from numjet.ops.shape import reshape

_BF16, _F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)


def _stretched(x: Any, scale: Any, side: str, contracting: tuple, dtype: Any) -> Any:
    """`x` times its scales, each of which stands for several neighbours along contracted axes."""
    x = convert(x, dtype)
    if scale is None:
        return x
    scale = as_array(scale)
    shape = x.aval.shape
    if scale.aval.ndim != len(shape):
        raise TypeError(f"scaled_dot: {side}_scale must have as many axes as {side}, got "
                        f"{scale.aval.str_short()} for {x.aval.str_short()}.")
    wide: list[int] = []
    places: list[int] = []
    for axis, (n, k) in enumerate(zip(shape, scale.aval.shape, strict=True)):
        places.append(len(wide))
        if axis not in contracting and n != k:
            raise TypeError(f"scaled_dot: {side}_scale has {k} elements along axis {axis}, {side} "
                            f"has {n}; they must be equal but along contracted axes.")
        if not k or n % k:
            raise TypeError(f"scaled_dot: {side} contracting dim {axis} of size {n} must be "
                            f"divisible by its scale's dim size {k}.")
        wide += [k, n // k]
    factors = reshape(broadcast_in_dim(convert(scale, dtype), tuple(wide), tuple(places)), shape)
    return mul(x, factors)


def scaled_dot(lhs: Any, rhs: Any, *, lhs_scale: Any = None, rhs_scale: Any = None,
               dimension_numbers: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of operands that are scaled block by block.

    lhs, rhs: of any float dtype. lhs_scale, rhs_scale: of the operand's shape, but along contracted
    axes one element for each block of equally many neighbours. Computed as (lhs · lhs_scale) @ (rhs
    · rhs_scale) in bfloat16, added up in float32. dimension_numbers: as of `dot_general`; for
    matrices, and for batches of them, those of `matmul` by default. preferred_element_type:
    bfloat16 (the default) or float32. Raises TypeError for shapes that do not fit. Linear in each
    operand and scale; derivatives are rounded to bfloat16 as the products are.

    >>> from numjet import lax, numpy as jnp
    >>> scale = jnp.full((1, 1), 2.0, jnp.bfloat16)
    >>> lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=scale, rhs_scale=scale)
    Array([[16]], dtype=bfloat16)
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    if dimension_numbers is None:
        if lhs.aval.ndim != rhs.aval.ndim or lhs.aval.ndim not in (2, 3):
            raise TypeError(f"scaled_dot: pass dimension_numbers for {lhs.aval.str_short()} and "
                            f"{rhs.aval.str_short()}.")
        flat = lhs.aval.ndim == 2
        dimension_numbers = ((((1,), (0,)), ((), ())) if flat else (((2,), (1,)), ((0,), (0,))))
    preferred = _BF16 if preferred_element_type is None else dtypes.canonical(
        preferred_element_type)
    if preferred not in (_BF16, _F32):
        raise TypeError("scaled_dot: preferred_element_type must be bfloat16 or float32, got "
                        f"{preferred}.")
    (lc, rc), _ = dimension_numbers
    lhs = _stretched(lhs, lhs_scale, "lhs", tuple(lc), _BF16)
    rhs = _stretched(rhs, rhs_scale, "rhs", tuple(rc), _BF16)
    return convert(dot_general(lhs, rhs, dimension_numbers, None, _F32), preferred)
