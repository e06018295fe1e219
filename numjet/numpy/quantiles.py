"""Quantiles, percentiles and medians, with and without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.placement.reshard import laid_out
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import ones_like
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import add, divide, maximum, minimum, multiply, subtract
from numjet.numpy.fast import eager
from numjet.numpy.logic import isnan_of, less, less_equal, logical_or, where
from numjet.numpy.positions import as_constant
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    cast,
    one_array,
    promote_inexact,
)
from numjet.numpy.reductions import all as all_, any as any_, sum as sum_
from numjet.numpy.shape import expand_dims, moveaxis, reshape
from numjet.numpy.sorting import argsort
from numjet.numpy.take import take_along_axis

# So many positions of so many elements NumPy finds sooner than all are sorted: 10^4 elements take
# 200 us instead of 400, but 10^5 take 1200 instead of 700.
_FEW, _SMALL = 8, 20_000
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: bool,
    skip_nans: bool,
    weights: Any = None,
) -> Any:
    x, q = as_arrays(name, a, q)
    if method not in _METHODS:
        raise ValueError(f"{name}: method can only be one of {_METHODS}, got {method!r}.")
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError(f"{name} does not support complex numbers: they have no order.")
    if not dtypes.is_floating(q.aval.dtype):
        raise TypeError(f"{name} does not accept dtype {q.aval.dtype} for q. Give floats: 1.0.")
    (x,) = promote_inexact(x)
    result = x.aval.dtype  # whatever the dtype of q
    wider = dtypes.float32 if result.itemsize < 4 else result
    x, q = [_converted(v, wider) for v in (x, q)]
    if q.aval.ndim > 1:
        raise ValueError(f"{name}: q must have rank <= 1, got shape {q.aval.shape}.")
    axes = canonical_axes(axis, x.aval.ndim, name)
    rows = _as_rows(x, axes)
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{name}: {method} doesn't support weights. Only method 'inverted_cdf' supports "
            "weights."
        )
    made = (*q.aval.shape, *rows.aval.shape[:-1])
    if not rows.aval.shape[-1] and (0 not in made or not (skip_nans or 0 in q.aval.shape)):
        error = IndexError if skip_nans and len(rows.aval.shape) == 1 else TypeError
        raise error(f"{name}: the array has no elements along the axis, so there is no quantile.")
    if method == "inverted_cdf":
        if weights is None:
            mass = ones_like(rows)
        else:
            mass = cast(_as_rows(_weights_of(name, weights, x, axis, axes), axes), wider)
        out = _of_weighted_rows(rows, mass, q, skip_nans)
    else:
        known = not skip_nans and type(rows) is type(q) is ArrayImpl and eager()
        out = _of_known_rows(rows, q, method) if known else None
        if out is None:
            out = _of_rows(rows, q, method, skip_nans)
    if keepdims:
        shape = tuple([1 if i in axes else s for i, s in enumerate(x.aval.shape)])
        out = reshape(out, q.aval.shape + shape)
    return cast(out, result)


def _converted(x: Any, dtype: Any) -> Any:
    """`x` as `dtype`, not weakly typed. Its gradient is not either where that is its own dtype."""
    if x.aval.dtype != dtype or not x.aval.weak_type:
        return cast(x, dtype)
    return lax.mul(x, scalar(1, dtype))


def _as_rows(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with `axes` as its one last axis."""
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    rows = moveaxis(x, tuple(kept), tuple(range(len(kept)))) if kept else x
    return reshape(
        rows, tuple([x.aval.shape[i] for i in kept]) + (math.prod([x.aval.shape[i] for i in axes]),)
    )


def _weights_of(name: str, weights: Any, x: Any, axis: Any, axes: tuple[int, ...]) -> Any:
    """A weight for each element of `x`, from one for each or for each place along `axes`."""
    weights = one_array(name, weights)
    if dtypes.is_complex(weights.aval.dtype):
        raise ValueError(f"{name}: Weights cannot be complex types.")
    if weights.aval.shape == x.aval.shape:
        return weights
    if axis is None:
        raise ValueError(
            f"{name}: Weights shape must match 'a' shape when axis is None: got "
            f"{weights.aval.shape} and {x.aval.shape}."
        )
    want = tuple([x.aval.shape[i] for i in axes])
    if weights.aval.shape != want:
        raise ValueError(
            f"{name}: Weights shape {weights.aval.shape} must match reduction axes {want}, or the "
            f"array's shape {x.aval.shape}."
        )
    return lax.broadcast_in_dim(weights, x.aval.shape, axes)


def _of_weighted_rows(rows: Any, mass: Any, q: Any, skip_nans: bool) -> Any:
    """The first element of each row up to which at least the part `q` of the row's weight lies."""
    lead, n = rows.aval.shape[:-1], rows.aval.shape[-1]
    nans = isnan_of(rows)
    if skip_nans:
        mass = where(nans, 0, mass)
    order = argsort(rows, -1)
    below = cumsum(take_along_axis(mass, order, -1), -1)
    share = divide(below, lax.slice_in_dim(below, n - 1, n, axis=len(lead)))
    wide = (*q.aval.shape, *lead, n)
    level = lax.broadcast_in_dim(q, wide, tuple(range(q.aval.ndim)))
    before = sum_(cast(less(broadcast(share, wide), level), dtypes.int32), -1)
    index = minimum(before, n - 1)
    flat = moveaxis(index, 0, -1) if q.aval.ndim else expand_dims(index, -1)
    found = take_along_axis(take_along_axis(rows, order, -1), flat, -1)
    out = moveaxis(found, -1, 0) if q.aval.ndim else reshape(found, lead)
    bad = any_(less(mass, 0), -1)
    bad = logical_or(bad, all_(nans, -1) if skip_nans else any_(nans, -1))
    return where(broadcast(bad, out.aval.shape), scalar(np.nan, out.aval.dtype), out)


def _of_known_rows(rows: ArrayImpl, q: ArrayImpl, method: str) -> Any:
    """`_of_rows` of values: NumPy brings the few elements that matter to their places, and need not
    sort. None where it would not be quicker, or the positions are not within the rows."""
    values, share = rows._value, q._value
    if values.dtype.kind != "f" or values.size > _SMALL or share.size > _FEW:
        return None
    if not ((share >= 0) & (share <= 1)).all():
        return None
    last = values.shape[-1] - 1
    at = share * values.dtype.type(last)
    low = np.floor(at)
    below, above = (np.minimum(v, last).astype(np.intp) for v in (low, np.ceil(at)))
    placed = np.partition(values, sorted({last, *below.flat, *above.flat}), -1)
    lead = values.shape[:-1]

    def broadcast(v: np.ndarray) -> ArrayImpl:
        v = np.reshape(v, share.shape + (1,) * len(lead))
        return as_constant(np.broadcast_to(v, share.shape + lead).copy())

    def pick(index: np.ndarray) -> ArrayImpl:
        found = placed[..., index]
        return as_constant(np.array(np.moveaxis(found, -1, 0) if share.ndim else found, order="C"))

    out = _between(method, pick(below), pick(above), broadcast(at - low))
    nans = np.isnan(placed[..., -1])
    if not nans.any():
        return out
    return as_constant(np.where(nans, values.dtype.type(np.nan), out._value))


def _of_rows(rows: Any, q: Any, method: str, skip_nans: bool) -> Any:
    """The quantiles of the last axis, which has elements; those of `q` in front."""
    n = rows.aval.shape[-1]
    lead = rows.aval.shape[:-1]
    nans = isnan_of(rows)
    rows = lax.sort(rows, dimension=rows.aval.ndim - 1)
    if skip_nans:
        count = subtract(
            cast(scalar(n, rows.aval.dtype), rows.aval.dtype),
            sum_(cast(nans, rows.aval.dtype), -1),
        )
        last = subtract(count, 1)
    else:
        last = lax.full(lead, n - 1, rows.aval.dtype)
    wide = q.aval.shape + lead
    at = multiply(lax.broadcast_in_dim(q, wide, tuple(range(q.aval.ndim))), broadcast(last, wide))
    low, high = lax.floor(at), lax.ceil(at)
    weight = subtract(at, low)
    top = broadcast(maximum(last, 0), wide)

    def pick(position: Any) -> Any:
        index = cast(minimum(maximum(position, 0), top), dtypes.int32)
        flat = moveaxis(index, 0, -1) if q.aval.ndim else expand_dims(index, -1)
        found = take_along_axis(rows, flat, -1)
        return moveaxis(found, -1, 0) if q.aval.ndim else reshape(found, lead)

    out = _between(method, pick(low), pick(high), weight)
    bad = less(count, 1) if skip_nans else any_(nans, -1)
    return where(broadcast(bad, wide), scalar(np.nan, out.aval.dtype), out)


def _between(method: str, below: Any, above: Any, weight: Any) -> Any:
    """The quantile that lies `weight` of the way from the element below it to the one above."""
    if method == "linear":
        return add(multiply(below, subtract(1, weight)), multiply(above, weight))
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "midpoint":
        return multiply(add(below, above), 0.5)
    return where(less_equal(weight, 0.5), below, above)  # nearest


def _no_place(name: str, out: Any, overwrite_input: bool) -> None:
    if out is not None or overwrite_input:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None: arrays are "
            "immutable, results are always returned. Leave them out."
        )


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """The values below which the parts `q` of the sorted elements over `axis` lie.

    a: real numbers of any shape; integers are converted to floats, whose dtype the result has. q: a
    float in [0, 1] or a vector of them, which then is the first axis of the result; TypeError for
    integers, and for nothing along `axis` (`nanquantile` of a whole array: IndexError). axis: an
    integer, a tuple of them, or None for all. method: what stands between two elements: 'linear',
    'lower', 'higher', 'midpoint', 'nearest' (the lower of two as near) or 'inverted_cdf' (the first
    element up to which the part q lies); ValueError for NumPy's others. keepdims: reduced axes stay
    with size 1. weights: for 'inverted_cdf' (NotImplementedError for others), how much each element
    counts, of `a`'s shape or that of `axis`; NaN where one is negative. NaN where an element is.
    The derivative goes to the elements that were interpolated. ValueError for complex numbers and
    weights of another shape; out and overwrite_input raise ValueError. Source: Hyndman and Fan,
    Sample quantiles in statistical packages (1996), types 7 and 1 for 'linear' and 'inverted_cdf'.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([0.0, 0.5]))
    Array([1., 3.], dtype=float32)
    """
    _no_place("quantile", out, overwrite_input)
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` of what is not NaN; NaN where nothing is left.

    a, q, axis, out, overwrite_input, method, keepdims, weights: as in `quantile`.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 4.0]), 0.5)
    Array(2.5, dtype=float32)
    """
    _no_place("nanquantile", out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The values below which `q` percent of the sorted elements over `axis` lie.

    q: a number in [0, 100] or a vector of them. a, axis, out, overwrite_input, method, keepdims,
    weights: as in `quantile`. out_sharding: the layout of the result.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0, 8.0]), 50)
    Array(3., dtype=float32)
    """
    (q,) = promote_inexact(one_array("percentile", q))

    def found() -> Any:
        part = divide(q, 100)
        return quantile(a, part, axis, out, overwrite_input, method, keepdims, weights=weights)

    return found() if out_sharding is None else laid_out(found, out_sharding)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """`percentile` of what is not NaN; NaN where nothing is left.

    q: a number in [0, 100] or a vector of them. a, axis, out, overwrite_input, method, keepdims,
    weights: as in `quantile`.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 4.0]), 50)
    Array(2.5, dtype=float32)
    """
    (q,) = promote_inexact(one_array("nanpercentile", q))
    return nanquantile(
        a, divide(q, 100), axis, out, overwrite_input, method, keepdims, weights=weights
    )


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """The middle of the sorted elements over `axis`; the mean of both for an even number.

    a: real numbers of any shape; integers count as floats. axis: an integer, a tuple of them, or
    None for all. keepdims: reduced axes stay with size 1. NaN where an element is. out and
    overwrite_input raise ValueError. The derivative goes to the elements in the middle of a stable
    sort.

    >>> jnp.median(jnp.array([[1, 7, 2], [3, 4, 8]]), axis=1)
    Array([2., 4.], dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """The median of what is not NaN; NaN where nothing is left.

    a, axis, out, overwrite_input, keepdims: as in `median`; IndexError for an array without
    elements. Derivative as of `median`.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.5, dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)
