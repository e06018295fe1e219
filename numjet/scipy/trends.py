"""Removal of means and lines from time series: numjet.scipy.signal.detrend, which spectra use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import config
from numjet.numpy.creation import taking_lists
from numjet.numpy.promote import as_arrays, cast, promote_inexact


def broadcasting(function: Callable) -> Callable:
    """`function`, whose own operations join ranks whatever `numpy_rank_promotion` says of the
    user's."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        with config.numpy_rank_promotion("allow"):
            return function(*args, **options)

    return called


@taking_lists
@broadcasting
def detrend(
    data: Any,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Any:
    """A series without its mean, or without its line of least squares.

    data: a real or complex array; integers as floats. axis: of time. type: "linear" or "constant"
    (ValueError for others). bp: breakpoints; between them each part has its own line.
    overwrite_data must be None (NotImplementedError). Result: data's shape. Linear in data.
    IndexError for an axis out of range.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> signal.detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
    Array([-2., -1.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data argument not implemented. Leave it out.")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: Trend type must be 'linear' or 'constant', got {type!r}.")
    (x,) = promote_inexact(*as_arrays("detrend", data))
    if type == "constant":
        return x - x.mean(axis, keepdims=True)
    n = x.shape[axis]
    breaks = np.atleast_1d(np.asarray(bp))
    if np.any(breaks < 0) or np.any(breaks > n):
        raise ValueError(
            "detrend: Breakpoints must be non-negative and less than length of data along given "
            f"axis, {n}; got {breaks.tolist()}."
        )
    ends = np.unique(np.concatenate([[0], breaks, [n]])).astype(int).tolist()
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return jnp.moveaxis(jnp.concatenate(parts, -1) if len(parts) > 1 else parts[0], -1, axis)


def _without_line(x: Any) -> Any:
    n = x.shape[-1]
    # About the middle the constant and the slope do not depend on each other.
    t = np.arange(n) - (n - 1) / 2
    steps = jnp.asarray(t.astype(x.dtype))
    centered = x - x.mean(-1, keepdims=True)
    slope = (centered @ steps) / (float(t @ t) if n > 1 else 1.0)
    return cast(centered - slope[..., None] * steps, x.dtype, x.aval.weak_type)
