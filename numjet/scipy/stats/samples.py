"""numjet.scipy.stats: statistics of samples."""

from __future__ import annotations

from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.hashed import hold
from numjet.api.eager.large import as_program
from numjet.base.record import NamedTuple
from numjet.numpy.promote import as_arrays
from numjet.scipy.stats.arguments import floats


def sem(
    a: Any,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The standard error of the mean along an axis.

    a: a real array. axis: an integer, or None for all elements. ddof: what the number of values
    exceeds the degrees of freedom by. nan_policy: "propagate", or "omit" to leave NaN out
    (ValueError for others). keepdims: the axis stays, with size 1. Result: floats of a's shape
    without the axis. The derivative is NaN where all elements are equal. IndexError for an axis
    that a does not have, ValueError where NaN is left out.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import stats
    >>> stats.sem(jnp.array([1.0, 2.0, 3.0, 6.0])).round(4)
    Array(1.0801, dtype=float32)
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}.")
    (x,) = floats("sem", a)
    propagates = nan_policy == "propagate"
    if propagates and isinstance(axis, int) and not -x.ndim <= axis < x.ndim:
        raise IndexError(f"sem: axis {axis} is out of range for an array of {x.ndim} dimensions.")
    kept = ~jnp.isnan(x) if nan_policy == "omit" else jnp.ones(x.shape, bool)
    count = jnp.sum(kept, axis, keepdims=keepdims)
    spread = jnp.nanstd if nan_policy == "omit" else jnp.std
    return spread(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))


class ModeResult(NamedTuple):
    """What `mode` found: the values, and how often they are there."""

    mode: Any
    count: Any


def _check_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"{name}: Illegal nan_policy value {nan_policy!r}; expected one of 'propagate', 'omit' "
            "and 'raise'."
        )
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{name}: Logic for `nan_policy` of {nan_policy} is not implemented. Use 'propagate'."
        )


def mode(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value along an axis, and how often it is there.

    a: an array. axis: an integer, or None for all elements. nan_policy: must be "propagate"
    (NotImplementedError). keepdims: the axis stays, with size 1. Of values that are as frequent,
    the least; NaN counts as one value, greater than others; NaN, with a count of 0, where there is
    no element. Result: ModeResult(mode, count), count in the default integer dtype. Raises
    ValueError for an axis out of range. The derivative goes to the first of the equal elements.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import stats
    >>> print(*stats.mode(jnp.array([1, 2, 2, 3, 3])))
    2 2
    """
    _check_policy("mode", nan_policy)
    (x,) = as_arrays("mode", a)
    if not x.ndim or axis is None:
        shape = (1,) * max(x.ndim, 1) if keepdims else ()
        x, axis = x.reshape(-1), 0
    else:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"mode: axis {axis} is out of bounds for array of dimension {x.ndim}.")
        axis %= x.ndim
        middle = (1,) if keepdims else ()
        shape = (*x.shape[:axis], *middle, *x.shape[axis + 1 :])
    rows = jnp.sort(jnp.moveaxis(x, axis, -1), -1)
    n = rows.shape[-1]
    if not n:
        dtype = jnp.result_type(float)
        return ModeResult(jnp.full(shape, jnp.nan, dtype), jnp.zeros(shape, dtype))
    new = rows[..., 1:] != rows[..., :-1]
    if jnp.issubdtype(x.dtype, jnp.inexact):
        new &= ~(jnp.isnan(rows[..., 1:]) & jnp.isnan(rows[..., :-1]))
    new = jnp.concatenate([jnp.ones((*new.shape[:-1], 1), bool), new], -1)
    places = jnp.broadcast_to(jnp.arange(n), rows.shape)
    lengths = places - lax.cummax(jnp.where(new, places, 0), new.ndim - 1) + 1
    best = jnp.argmax(lengths, -1, keepdims=True)
    count = jnp.take_along_axis(lengths, best, -1)
    # The first of the equal ones has the derivative.
    value = jnp.take_along_axis(rows, best - count + 1, -1)
    return ModeResult(value.reshape(shape), count.reshape(shape))


def rankdata(
    a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Any:
    """The ranks of elements along an axis, from 1 on, as floats.

    a: a real array. method: what equal elements get of their ranks: the "average", "min" or "max",
    their places in order ("ordinal"), or the rank among different elements ("dense"). axis: an
    integer, or None for all elements in one row. Result: a's shape (a vector for axis None),
    floats; the derivative is zero. nan_policy: must be "propagate" (NotImplementedError): rows with
    NaN are NaN. Raises ValueError for another method.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import stats
    >>> stats.rankdata(jnp.array([30, 10, 10]))
    Array([3. , 1.5, 1.5], dtype=float32)
    """
    if method not in _METHODS:
        raise ValueError(f"rankdata: unknown method {method!r}. Use one of {list(_METHODS)}.")
    _check_policy("rankdata", nan_policy)
    (x,) = as_arrays("rankdata", a)
    return _ranks(x, method, axis)


@as_program
def _ranks(x: Any, method: str, axis: int | None) -> Any:
    x = jnp.ravel(x) if axis is None else jnp.moveaxis(x, axis, -1)
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

hold(globals(), __name__)
