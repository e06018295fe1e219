"""Reductions without NaN and quantiles in the operations that JAX makes them of, as
`numpy.jax_forms` has others: for who looks at jaxprs (`api.compiled.shown`).

What runs has fewer operations. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, as_call, form
from numjet.core import dtypes
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax, nan_reductions as runs
from numjet.numpy.averages import mean
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import (
    clip,
    constant,
    divide,
    floor_divide,
    remainder,
    subtract,
)
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import isnan_of, logical_not, where
from numjet.numpy.promote import canonical_axis, cast, int_dtype, one_array, promote_inexact
from numjet.numpy.quantiles import (
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
)
from numjet.numpy.reductions import all, argmax, argmin, sum
from numjet.numpy.shape import ravel
from numjet.ops.indexing import GatherDimensionNumbers, GatherScatterMode

_INT = np.dtype(np.int32)


@form("_var")
def var_in_jax(
    x: Any, ddof: Any, *, axes: tuple, computed: Any, result: Any, keepdims: bool
) -> Any:
    """NaN where nothing is left to divide by."""
    x = cast(x, computed, x.aval.weak_type and computed == x.aval.dtype)
    squares = lax.square(subtract(x, mean(x, axes, keepdims=True)))
    count = scalar(math.prod([x.aval.shape[i] for i in axes]), computed)
    count = subtract(count, cast(one_array("var", ddof), computed))
    out = divide(sum(squares, axes, keepdims=keepdims), count)
    out = cast(out, result)
    return where(lax.gt(count, constant(0, count)), out, np.nan)


# ------------------------------------------------------------------ without NaN
def _position(name: str, find: Callable, instead: float) -> None:
    def position(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
        x = one_array(name, a)
        if not dtypes.is_floating(x.aval.dtype):
            return getattr(runs, name)(a, axis, out, keepdims)
        nans = isnan_of(x)
        found = find(where(nans, instead, x), axis, out, keepdims)
        return where(all(nans, axis, keepdims=bool(keepdims)), -1, found)

    form(f"_{name}")(position)


_position("nanargmax", argmax, -np.inf)
_position("nanargmin", argmin, np.inf)
_nansum = Shown(runs.nansum, "nansum")


@form("nanmean")
def nanmean_in_jax(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """The sum, a call, divided by the number of its terms."""
    x = one_array("nanmean", a)
    plain = dtype is None and where is None and out is None
    if not dtypes.is_floating(x.aval.dtype) or not plain:
        return runs.nanmean(a, axis, dtype, out, keepdims, where)
    there = convert(_terms(x), x.aval.dtype)
    count = sum(there, axis, keepdims=keepdims)
    return divide(_nansum.call((x,), {"axis": axis, "keepdims": keepdims}), count)


def _terms(x: Any) -> Any:
    """1 for numbers, 0 for NaN."""
    return cast(logical_not(isnan_of(x)), _INT)


_nanmean = Shown(nanmean_in_jax, "nanmean")


@form("nanvar")
def nanvar_in_jax(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: bool = False, where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    """The sum of squared distances from the mean, a call, and the number of its terms."""
    x = one_array("nanvar", a)
    plain = dtype is None and where is None and mean is None and out is None
    if not dtypes.is_floating(x.aval.dtype) or not plain:
        return runs.nanvar(a, axis, dtype, out, ddof, keepdims, where, mean)
    center = _nanmean.call((x,), {"axis": axis, "keepdims": True})
    apart = _where(isnan_of(x), 0, subtract(x, center))
    squares = lax.square(apart)
    count = subtract(sum(_terms(x), axis, keepdims=keepdims), ddof)
    none = lax.le(count, constant(0, count))
    total = _where(none, np.nan, sum(squares, axis, keepdims=keepdims))
    return lax.div(total, convert(_where(none, 1, count), x.aval.dtype))


_where = where
_nanvar = Shown(nanvar_in_jax, "nanvar", whole=False)


@form("nanstd")
def nanstd_in_jax(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: bool = False, where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    plain = dtype is None and where is None and mean is None and out is None
    if not plain:
        return runs.nanstd(a, axis, dtype, out, ddof, keepdims, where, mean)
    return lax.sqrt(_nanvar.call((a,), {"axis": axis, "ddof": ddof, "keepdims": keepdims}))


# ------------------------------------------------------------------ counts
@form("of bincount")
def counts_in_jax(x: Any, weights: Any, length: int) -> Any:
    """How often integers occur in a vector of them, or the sums of their weights."""
    dtype = int_dtype() if weights is None else weights.aval.dtype
    zeros = lax.full((length,), 0, dtype)
    return zeros.at[clip(x, 0)].add(1 if weights is None else weights)


@form("of nonzero")
def nonzero_in_jax(mask: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    """The positions of what is True: each is the number of elements before which fewer are."""
    seen = as_call("cumsum", mask)
    flat = as_call("cumsum", counts_in_jax(seen, None, size))
    shape, out = mask.aval.shape, []
    for i, n in enumerate(shape):
        part = _floor_divide.call((flat, scalar(math.prod(shape[i + 1 :]), int_dtype())), {})
        out.append(_remainder.call((part, n), {}))
    if fill_value is None:
        return tuple(out)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(shape)
    missing = lax.ge(lax.iota(int_dtype(), size), sum(cast(mask, int_dtype())))
    return tuple([where(missing, fill, i) for fill, i in zip(fills, out, strict=True)])


form("cumsum")(cumsum)
_floor_divide, _remainder = Shown(floor_divide, "floor_divide"), Shown(remainder, "remainder")


# ------------------------------------------------------------------ quantiles
def _plain(x: Any, part: Any, axis: Any, method: str, keepdims: bool) -> bool:
    """Whether these are quantiles along one axis, or of all, as JAX's equations are known."""
    return (
        dtypes.is_floating(x.aval.dtype) and part.aval.dtype == x.aval.dtype
        and part.aval.ndim <= 1 and x.aval.size > 0 and (axis is None or isinstance(axis, int))
        and method in ("linear", "midpoint", "lower", "higher", "nearest")
        and not (keepdims and (part.aval.ndim or axis is None and x.aval.ndim != 1))
    )  # fmt: skip


def _ranks(part: Any, n: Any, within: Callable) -> tuple[list, Any, Any]:
    """(positions of the neighbours, how far above the lower one, how far below the higher) of a
    quantile among n sorted numbers. within: cuts a position, between the least and the most."""
    one = constant(1, n)
    place = lax.mul(part, lax.sub(n, one))
    ends = lax.floor(place), lax.ceil(place)
    above = lax.sub(place, ends[0])
    below = lax.sub(one, above)
    inside = [within(constant(0, n), end, lax.sub(n, one)) for end in ends]
    return [convert(i, _INT) for i in inside], above, below


def _between(low: Any, high: Any, above: Any, below: Any, method: str) -> Any:
    """What lies between two neighbours, `above` the lower one and `below` the higher."""
    if method in ("lower", "higher"):
        return low if method == "lower" else high
    if method == "nearest":
        return lax.select(lax.le(above, constant(0.5, above)), low, high)
    if method == "midpoint":
        return lax.mul(lax.add(low, high), constant(0.5, low))
    if 0 < above.aval.ndim < low.aval.ndim:
        below, above = [
            broadcast_in_dim(v, low.aval.shape, tuple(range(v.aval.ndim))) for v in (below, above)
        ]
    return lax.add(lax.mul(low, below), lax.mul(high, above))


@form("quantile")
def quantile_in_jax(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, **more: Any,
) -> Any:  # fmt: skip
    """Between the neighbours in the sorted array, all NaN where there is one."""
    (x,), part = promote_inexact(one_array("quantile", a)), one_array("quantile", q)
    if isinstance(axis, tuple) and len(axis) == x.aval.ndim and not keepdims:
        axis = None  # of all elements
    if more or out is not None or not _plain(x, part, axis, method, keepdims):
        return quantile(a, q, axis, out, overwrite_input, method, keepdims, **more)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "quantile")
    shape = x.aval.shape
    one_wide = tuple([1 if i == axis else n for i, n in enumerate(shape)])
    others = tuple([i for i in range(len(shape)) if i != axis])
    sick = broadcast_in_dim(lax.reduce_or(lax.ne(x, x), (axis,)), one_wide, others)
    rising = lax.sort(where(sick, np.nan, x), dimension=axis)
    rows, above, below = _ranks(part, constant(shape[axis], x), lax.clamp)
    low, high = [_taken(rising, i, axis, keepdims) for i in rows]
    return _between(low, high, above, below, method)


def _taken(x: Any, i: Any, axis: int, keepdims: bool) -> Any:
    """Element i of each vector along the axis."""
    kept = x.aval.ndim if keepdims else x.aval.ndim - 1
    numbers = GatherDimensionNumbers(
        tuple(range(i.aval.ndim, i.aval.ndim + kept)), () if keepdims else (axis,), (axis,)
    )
    sizes = tuple([1 if k == axis else n for k, n in enumerate(x.aval.shape)])
    return REGISTRY["gather"].bind(
        x, broadcast_in_dim(i, (*i.aval.shape, 1), tuple(range(i.aval.ndim))),
        dimension_numbers=numbers, slice_sizes=sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        unique_indices=False, indices_are_sorted=False, fill_value=None,
    )  # fmt: skip


@form("nanquantile")
def nanquantile_in_jax(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, **more: Any,
) -> Any:  # fmt: skip
    """Between the neighbours among the numbers of a vector, which are sorted before its NaN."""
    (x,), part = promote_inexact(one_array("nanquantile", a)), one_array("nanquantile", q)
    if (
        more or out is not None or part.aval.ndim or not _plain(x, part, axis, method, keepdims)
        or keepdims or axis is not None and x.aval.ndim != 1
    ):  # fmt: skip
        return nanquantile(a, q, axis, out, overwrite_input, method, keepdims, **more)
    x = ravel(x) if x.aval.ndim != 1 else x
    rising = lax.sort(where(lax.ne(x, x), np.nan, x))
    n = lax.reduce_sum(convert(_terms(rising), x.aval.dtype), (0,))
    rows, above, below = _ranks(
        part, n, lambda least, end, most: lax.max(least, lax.min(end, most))
    )
    low, high = [getitem(rising, (i,)) for i in rows]
    return _between(low, high, above, below, method)


def _halfway(name: str, run: Callable, whole: Shown) -> None:
    def middle(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        x = one_array(name, a)
        if out is not None or dtypes.is_complex(x.aval.dtype):
            return run(a, axis, out, overwrite_input, keepdims)
        return whole.call((x, 0.5, axis), {"method": "midpoint", "keepdims": keepdims})

    form(name)(middle)


def _hundredth(name: str, run: Callable, whole: Shown) -> None:
    def percent(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        method: str = "linear", keepdims: bool = False, **more: Any,
    ) -> Any:  # fmt: skip
        x, part = one_array(name, a), promote_inexact(one_array(name, q))[0]
        (wide,) = promote_inexact(x)
        if more or out is not None or not _plain(wide, part, axis, method, keepdims):
            return run(a, q, axis, out, overwrite_input, method, keepdims, **more)
        part = lax.div(part, constant(100, part))
        return whole.call((x, part, axis), {"method": method, "keepdims": keepdims})

    form(name)(percent)


_quantile, _nanquantile = Shown(quantile, "quantile"), Shown(nanquantile, "nanquantile")
_halfway("median", median, _quantile)
_halfway("nanmedian", nanmedian, _nanquantile)
_hundredth("percentile", percentile, _quantile)
_hundredth("nanpercentile", nanpercentile, _nanquantile)
