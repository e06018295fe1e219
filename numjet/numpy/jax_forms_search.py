"""Functions that search in the operations that JAX makes them of, as `numpy.jax_forms` has the
others: for who looks at jaxprs (`api.compiled.shown`).

What runs has no loop. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, as_call, form, in_place
from numjet.api.maps.mapping import vmap
from numjet.core import dtypes
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.calculus import diff, interp
from numjet.numpy.creation import array
from numjet.numpy.elementwise import clip, constant, floor_divide
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import where
from numjet.numpy.promote import as_arrays, int_dtype, one_array, promote_dtypes, promote_inexact
from numjet.numpy.ranges import linspace
from numjet.numpy.reductions import ptp
from numjet.numpy.sorting import digitize, lexsort, searchsorted
from numjet.ops.scan_functions import scan

_INT, _UNSIGNED = np.dtype(np.int32), np.dtype(np.uint32)
_floor_divide = Shown(floor_divide, "floor_divide")
_ptp = Shown(ptp, "_ptp")


def _total(x: Any) -> Any:
    """x with one zero and one NaN, for comparisons in the total order."""
    if not dtypes.is_floating(x.aval.dtype):
        return x
    zeros = lax.select_n(lax.eq(x, constant(0, x)), x, _whole(0, x))
    return lax.select_n(lax.ne(x, x), zeros, _whole(np.nan, x))


def _whole(value: Any, x: Any) -> Any:
    one = constant(value, x)
    return broadcast_in_dim(one, x.aval.shape, ()) if x.aval.shape else one


def _bisected(a: Any, v: Any, side: str, unroll: bool) -> Any:
    """The place of one value."""
    n = a.aval.shape[0]
    before = REGISTRY["le_to" if side == "left" else "lt_to"]

    def halve(state: tuple, _: Any) -> tuple:
        low, high = state
        middle = lax.add(low, _floor_divide.call((lax.sub(high, low), 2), {}))
        value = lax.squeeze(REGISTRY["dynamic_slice"].bind(a, middle, slice_sizes=(1,)), (0,))
        left = before.bind(_total(v), _total(value))
        return (lax.select_n(left, middle, low), lax.select_n(left, high, middle)), None

    ends = scalar(0, _UNSIGNED), scalar(n, _UNSIGNED)
    rounds = n.bit_length()
    (_, high), _ = scan(halve, ends, (), length=rounds, unroll=rounds if unroll else 1)
    return convert(high, _INT)


_one = Shown(_bisected, "_searchsorted_scan_impl")


def _each(a: Any, v: Any, side: str, unroll: bool) -> Any:
    whole = lax.reshape(v, (v.aval.size,)) if v.aval.ndim > 1 else v
    out = vmap(lambda one: _one.call((a, one, side, unroll), {}))(whole)
    return lax.reshape(out, v.aval.shape) if v.aval.ndim > 1 else out


def _compared(a: Any, v: Any, side: str) -> Any:
    """By comparison with all elements."""
    rank = v.aval.ndim
    column = lambda x: broadcast_in_dim(x, (*x.aval.shape, *[1] * rank), (0,))  # noqa: E731
    row = lambda x: broadcast_in_dim(x, (1, *x.aval.shape), tuple(range(1, rank + 1)))  # noqa: E731
    before = REGISTRY["lt_to" if side == "left" else "le_to"]
    wanted, held = row(_total(v)), column(_total(a))
    return lax.reduce_sum(convert(before.bind(held, wanted), _INT), (0,))


_all, _both = (
    Shown(_each, "_searchsorted_scan_impl"),
    Shown(_compared, "_searchsorted_compare_all_impl"),
)


@form("searchsorted")
def searchsorted_in_jax(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Bisection in a loop."""
    x, y = promote_dtypes(*as_arrays("searchsorted", a, v))
    plain = x.aval.ndim == 1 and x.aval.size and sorter is None and side in ("left", "right")
    if not plain or method not in ("scan", "default", "scan_unrolled", "compare_all"):
        return searchsorted(a, v, side, sorter, method=method)
    if method == "compare_all" and y.aval.ndim:
        return _both.call((x, y, side), {})
    return (_all if y.aval.ndim else _one).call((x, y, side, method == "scan_unrolled"), {})


_searchsorted = Shown(searchsorted_in_jax, "searchsorted")


form("diff")(diff)


@form("digitize")
def digitize_in_jax(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    x, edges = as_arrays("digitize", x, bins)
    if edges.aval.ndim != 1 or not edges.aval.size:
        return digitize(x, bins, right)
    n, side = edges.aval.size, "left" if right else "right"
    rising = lax.ge(getitem(edges, (-1,)), getitem(edges, (0,)))
    up = _searchsorted.call((edges, x, side), {})
    down = lax.sub(scalar(n, _INT), _searchsorted.call((lax.rev(edges, (0,)), x, side), {}))
    return where(rising, up, down)


@form("_interp")
def interp_in_jax(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    given = promote_inexact(*as_arrays("interp", x, xp, fp))
    real = all([dtypes.is_floating(v.aval.dtype) for v in given])
    if not real or given[1].aval.ndim != 1 or given[1].aval.shape != given[2].aval.shape:
        return interp(x, xp, fp, left, right, period)
    x, xp, fp = given
    if period is not None:
        return interp(x, xp, fp, left, right, period)
    place = _searchsorted.call((xp, x, "right"), {})
    i = clip(place, 1, xp.aval.size - 1)
    before = lambda of: getitem(of, lax.sub(i, scalar(1, i.aval.dtype)))  # noqa: E731
    rise = lax.sub(getitem(fp, i), before(fp))
    width = lax.sub(getitem(xp, i), before(xp))
    offset = lax.sub(x, before(xp))
    flat = lax.le(lax.abs(width), constant(np.spacing(np.finfo(width.aval.dtype).eps), width))
    at = before(fp)
    along = lambda: lax.mul(lax.div(offset, where(flat, 1, width)), rise)  # noqa: E731
    out = where(flat, at, lax.add(before(fp), along()))
    if not isinstance(left, str):
        least = getitem(fp, (0,)) if left is None else left
        out = where(lax.lt(x, getitem(xp, (0,))), least, out)
    if not isinstance(right, str):
        most = getitem(fp, (-1,)) if right is None else right
        out = where(lax.gt(x, getitem(xp, (-1,))), most, out)
    return out


@form("of histogram")
def edges_in_jax(x: Any, count: int, range: Any) -> Any:
    """`histogram_bin_edges` of a vector of floats."""
    if range is None:
        low, high = lax.reduce_min(x, (0,)), lax.reduce_max(x, (0,))
        ends = array([low, high])
    else:
        ends = one_array("histogram_bin_edges", np.asarray(range, x.aval.dtype))
    half = constant(0.5, ends)
    end = lambda i, move: where(  # noqa: E731
        lax.eq(_ptp.call((ends,), {}), constant(0, ends)), move(getitem(ends, (i,)), half),
        getitem(ends, (i,)),
    )  # fmt: skip
    return linspace(end(0, lax.sub), end(1, lax.add), count + 1)


# ------------------------------------------------------------------ distinct elements
def _sorted_mask(x: Any, equal_nan: bool) -> tuple[Any, Any, Any]:
    """The elements in order, where a run of equal ones begins, and their places."""
    n = x.aval.size
    turned = lax.rev(lax.transpose(lax.reshape(x, (n, 1)), (1, 0)), (0,))
    order = _lexsort.call((turned,), {})
    rising = getitem(x, (order,))
    begins = lax.full((n,), True, np.dtype(bool))
    later, earlier = getitem(rising, (slice(1, None),)), getitem(rising, (slice(None, -1),))
    differ = lax.ne(later, earlier)
    if equal_nan and dtypes.is_floating(x.aval.dtype):
        both = lax.bitwise_and(lax.ne(later, later), lax.ne(earlier, earlier))
        differ = lax.bitwise_and(differ, lax.bitwise_not(both))
    differ = REGISTRY["reduce_or"].bind(differ, axes=())
    return rising, begins.at[1:].set(differ), order


_lexsort, _mask = Shown(lexsort, "lexsort"), Shown(_sorted_mask, "_unique_sorted_mask")


@form("of unique")
def unique_in_jax(
    x: Any, index: bool, inverse: bool, counts: bool, equal_nan: bool, size: int, fill_value: Any
) -> tuple[Any, ...]:
    """`unique` of a vector."""
    n = x.aval.size
    rising, begins, order = _mask.call((x, equal_nan), {})
    (starts,) = in_place("of nonzero", begins, size, None)

    def valid() -> Any:
        places = lax.iota(int_dtype(), size)
        return lax.lt(places, lax.reduce_sum(convert(begins, int_dtype()), (0,)))

    values = getitem(rising, (starts,))
    if fill_value is not None:
        fill = convert(one_array("unique", fill_value), x.aval.dtype)
        values = where(valid(), values, fill)
    out = [values]
    if index:
        out.append(getitem(order, (starts,)))
    if inverse:
        ranks = lax.sub(as_call("cumsum", begins), scalar(1, int_dtype()))
        out.append(lax.full((n,), 0, int_dtype()).at[order].set(ranks))
    if counts:
        (ends,) = in_place("of nonzero", begins, size + 1, None)
        rest = slice(1, None)
        ends = ends.at[1:].set(where(getitem(ends, (rest,)), getitem(ends, (rest,)), n))
        out.append(as_call("diff", ends))
    return tuple(out)
