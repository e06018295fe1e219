"""numjet.experimental.pallas.triton: what kernels written for Triton need to run here.

Atomic operations and assembly are not there: the points of a grid run one after the other.
"""

from __future__ import annotations

from typing import Any

from numjet.experimental.pallas.blocks import CompilerParams as CompilerParams
from numjet.numpy import (
    asarray,
    float32,
    int32,
    integer,
    issubdtype,
    matmul,
    promote_types,
    tanh,
    where,
)


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """What a reference holds, where a mask says so.

    ref: a reference, or a part of one (`ref.at[...]`). mask: bool, of its shape or broadcast to it;
    other: what stands elsewhere, 0 unless given. cache_modifier, eviction_policy, volatile: for
    GPUs.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental.pallas import triton
    >>> ref = nj.new_ref(jnp.arange(4.0))
    >>> print(triton.load(ref, mask=jnp.arange(4) < 2, other=-1.0))
    [ 0.  1. -1. -1.]
    """
    value = ref[...]
    return value if mask is None else where(mask, value, 0 if other is None else other).astype(
        value.dtype)


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Write into a reference, where a mask says so.

    ref: a reference, or a part of one (`ref.at[...]`). val: of its shape and dtype. mask: bool, of
    its shape or broadcast to it. eviction_policy: for GPUs.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental.pallas import triton
    >>> ref = nj.new_ref(jnp.arange(4.0))
    >>> triton.store(ref.at[1:], jnp.zeros(3), mask=jnp.arange(3) < 2)
    >>> print(ref[...])
    [0. 0. 0. 3.]
    """
    ref[...] = val if mask is None else where(mask, val, ref[...])


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any:
    """The product of two matrices, added up in float32 (of integers in int32).

    a, b: arrays of two axes (ValueError for others); trans_a, trans_b: turned before. allow_tf32,
    precision: how a GPU computes it, one of the two (ValueError). Result: float32 or int32; of
    float64 and int64 these.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.pallas import triton
    >>> print(triton.dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True))
    [[3. 3.]
     [3. 3.]]
    """
    if allow_tf32 is not None and precision is not None:
        raise ValueError("triton.dot: Only one of allow_tf32 and precision can be specified.")
    a, b = asarray(a), asarray(b)
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(
            f"triton.dot: `a` and `b` must be 2D arrays, got shapes {a.shape} and {b.shape}."
        )
    dtype = promote_types(a.dtype, b.dtype)
    if dtype.itemsize <= 4:
        dtype = int32 if issubdtype(dtype, integer) else float32
    return matmul(a.T if trans_a else a, b.T if trans_b else b, preferred_element_type=dtype)


def approx_tanh(x: Any) -> Any:
    """The hyperbolic tangent, here to the last bits.

    x: a floating array.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.pallas import triton
    >>> print(triton.approx_tanh(jnp.zeros(2)))
    [0. 0.]
    """
    return tanh(x)


def debug_barrier() -> None:
    """Nothing: one thread runs a point of the grid.

    >>> from numjet.experimental.pallas import triton
    >>> triton.debug_barrier()
    """


def max_contiguous(x: Any, values: Any) -> Any:
    """`x`; says how many of its elements follow one another, which nothing here uses.

    x: an array of integers. values: integers.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.pallas import triton
    >>> print(triton.max_contiguous(jnp.arange(2), 2))
    [0 1]
    """
    return x


__all__ = ["CompilerParams", "approx_tanh", "debug_barrier", "dot", "load", "max_contiguous",
           "store"]  # fmt: skip
