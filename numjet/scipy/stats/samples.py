"""numjet.scipy.stats: statistics of samples."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.scipy.stats.common import floats


def sem(
    a: Any,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The standard error of the mean along `axis` (of all elements if None).

    ddof: what the number of values exceeds the degrees of freedom by. nan_policy: "propagate", or
    "omit" to leave NaN out.

    >>> import numjet.numpy as jnp
    >>> print(sem(jnp.array([1.0, 2.0, 3.0, 6.0])).round(4))
    1.0801
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}.")
    (x,) = floats(a)
    kept = ~jnp.isnan(x) if nan_policy == "omit" else jnp.ones(x.shape, bool)
    count = jnp.sum(kept, axis, keepdims=keepdims)
    spread = jnp.nanstd if nan_policy == "omit" else jnp.std
    return spread(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))


def rankdata(
    a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Any:
    """The ranks of elements along `axis` (of all in one row if None), from 1 on, as floats.

    method: what equal elements get of their ranks: the "average", "min" or "max", their places in
    order ("ordinal"), or the rank among different elements ("dense"). Rows with NaN are NaN.

    >>> import numjet.numpy as jnp
    >>> print(rankdata(jnp.array([30, 10, 10])))
    [3.  1.5 1.5]
    """
    if method not in _METHODS:
        raise ValueError(f"rankdata: unknown method {method!r}. Use one of {list(_METHODS)}.")
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"rankdata: nan_policy {nan_policy!r} is not supported. Use 'propagate'."
        )
    x = jnp.ravel(a) if axis is None else jnp.moveaxis(jnp.asarray(a), axis, -1)
    order = jnp.argsort(x, -1, stable=True)
    row = jnp.take_along_axis(x, order, -1)
    dtype = jnp.result_type(float)
    places = jnp.arange(1, x.shape[-1] + 1, dtype=dtype)
    ranks = _METHODS[method](row[..., 1:] != row[..., :-1], jnp.broadcast_to(places, x.shape))
    ranks = jnp.take_along_axis(ranks, jnp.argsort(order, -1), -1)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        ranks = jnp.where(jnp.any(jnp.isnan(x), -1, keepdims=True), jnp.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


# Ranks of sorted rows: of which elements differ from the one before them, and the places from 1.


def _least(new: Any, places: Any) -> Any:
    begun = jnp.concatenate([places[..., :1], jnp.where(new, places[..., 1:], 0)], -1)
    return lax.cummax(begun, places.ndim - 1)


def _greatest(new: Any, places: Any) -> Any:
    ended = jnp.concatenate([jnp.where(new, places[..., :-1], jnp.inf), places[..., -1:]], -1)
    return lax.cummin(ended, places.ndim - 1, reverse=True)


def _dense(new: Any, places: Any) -> Any:
    first = jnp.ones_like(places[..., :1])
    return jnp.cumsum(jnp.concatenate([first, new.astype(places.dtype)], -1), -1)


_METHODS = {
    "average": lambda new, places: (_least(new, places) + _greatest(new, places)) / 2,
    "min": _least,
    "max": _greatest,
    "dense": _dense,
    "ordinal": lambda new, places: places,
}
