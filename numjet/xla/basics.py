"""What the factorizations are written with: batches of matrices, selections, reflections.

Tracers in, tracers out; matrices have one batch axis in front. For `xla.linalg` and
`xla.linalg_general`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.structural import broadcast_in_dim, convert, full, reduce_sum
from numjet.ops.shape import broadcasted_iota, reshape, select_n
from numjet.ops.transcendental import sqrt

INDEX = np.dtype(np.int32)


def broadcast(x: Any, shape: tuple) -> Any:
    """`x` repeated to a shape; its axes are the last ones, or of size one."""
    if x.shape == shape:
        return x
    first = len(shape) - x.ndim
    kept = [a for a in range(x.ndim) if x.shape[a] == shape[first + a]]
    x = reshape(x, tuple(x.shape[a] for a in kept))
    return broadcast_in_dim(x, shape, tuple(first + a for a in kept))


def where(condition: Any, x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return select_n(broadcast(condition, shape), broadcast(y, shape), broadcast(x, shape))


def zeros(x: Any, shape: tuple) -> Any:
    return full(shape, 0, x.dtype)


def flattened(x: Any, kept: int = 2) -> tuple[Any, tuple]:
    """One batch axis in front, and the batch's shape."""
    batch = x.shape[: x.ndim - kept]
    return reshape(x, (math.prod(batch), *x.shape[x.ndim - kept :])), batch


def places(shape: tuple, axis: int) -> Any:
    return broadcasted_iota(INDEX, shape, axis)


def eye(x: Any, count: int, m: int, n: int) -> Any:
    same = places((count, m, n), 1) == places((count, m, n), 2)
    return convert(same, x.dtype)


def column_of(x: Any, k: Any) -> Any:
    """x[:, :, k], by a sum over one: `k` is known only as the program runs."""
    return reduce_sum(where(places(x.shape, 2) == k, x, zeros(x, ())), (2,))


def row_of(x: Any, k: Any) -> Any:
    """x[:, k, :], where k is one number or one for each matrix."""
    k = k if getattr(k, "ndim", 0) == 0 else k[:, None, None]
    return reduce_sum(where(places(x.shape, 1) == k, x, zeros(x, ())), (1,))


def conjugate_transpose(x: Any) -> Any:
    """xᴴ"""
    return x.swapaxes(-1, -2).conj()


def reflector(x: Any, rows: Any, k: Any) -> tuple[Any, Any, Any]:
    """(v, tau, beta): (1 - conj(tau) v vᴴ) x has beta at place k and zeros behind it, and v has a
    one at k and zeros before it, as LAPACK's larfg; x: [matrices, m], rows: the places."""
    alpha = where(rows == k, x, zeros(x, ())).sum(1)
    below = where(rows > k, x, zeros(x, ()))
    scale = where(rows >= k, abs(x), full((), 0, abs(x).dtype)).max(1)
    scale = where(scale > 0, scale, full((), 1, scale.dtype))  # squares stay in range
    rest = abs(below) / scale[:, None]
    rest = (rest * rest).sum(1)
    lead = abs(alpha) / scale
    norm = sqrt(lead * lead + rest) * scale
    way = where(alpha.real < 0, full((), -1, norm.dtype), full((), 1, norm.dtype))
    nothing = rest == 0
    if dtypes.is_complex(x.dtype):
        nothing = nothing & (alpha.imag == 0)
    beta = convert(-way * norm, x.dtype)
    one = full((), 1, x.dtype)
    tau = where(nothing, zeros(x, ()), (beta - alpha) / where(nothing, one, beta))
    gap = where(nothing, one, alpha - beta)
    v = where(rows == k, one, below / gap[:, None])
    return v, tau, where(nothing, alpha, beta)
