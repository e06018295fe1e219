"""Counts of values: `bincount` and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, in_place, wanted
from numjet.api.placement.reshard import laid_out
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.dims import DimExpr, count_of
from numjet.core.evaluate import LARGE
from numjet.core.structural import beside
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array
from numjet.numpy.elementwise import add, divide, minimum, multiply, subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import (
    equal,
    less,
    logical_or,
    where,
)
from numjet.numpy.positions import as_constant
from numjet.numpy.promote import (
    as_arrays,
    cast,
    inexact_dtype,
    int_dtype,
    one_array,
    promote_dtypes,
    promote_inexact,
)
from numjet.numpy.ranges import linspace
from numjet.numpy.reductions import max as max_, min as min_, sum as sum_
from numjet.numpy.shape import ravel, reshape
from numjet.numpy.sorting import searchsorted

builtin_range = range


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """How often each integer occurs in x; with `weights` the sum of those.

    x: a vector of integers; negative ones count as 0 (NumPy raises ValueError). weights: of x's
    shape. minlength: the least size of the result. length: its size, needed where x is traced;
    larger integers are dropped. out_sharding: the layout of the result. Returns the default
    integer, or the dtype of the weights. TypeError for other dtypes, ConcretizationTypeError for
    traced x without length.

    >>> jnp.bincount(jnp.array([0, 2, 2, 3]))
    Array([1, 0, 2, 1], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(lambda: bincount(x, weights, minlength, length=length), out_sharding)
    x = one_array("bincount", x)
    if not dtypes.is_integer(x.aval.dtype) and x.aval.dtype != dtypes.bool_:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.aval.dtype}.")
    if x.aval.ndim != 1:
        raise ValueError(f"bincount: only 1-dimensional input supported, got {x.aval.shape}.")
    least, length = count_of(minlength), None if length is None else count_of(length)
    if length is None:
        known = concrete_or_none(x)
        if known is None:
            x._need_concrete(
                ConcretizationTypeError,
                "bincount: the result's size depends on the values",
                "Give the argument `length`.",
            )
        length = max(least, max(0, int(known._value.max())) + 1 if known._value.size else 0)
    small = type(x.aval.size) is not DimExpr and x.aval.size < LARGE
    known = concrete_or_none(x) if weights is None and small else None
    if known is not None:
        return beside(as_constant(_counts(known._value, length)), x)
    if FLAG.uses and wanted() and x.aval.dtype == dtypes.int32 and weights is None:
        return in_place("of bincount", x, None, length)
    w = (
        lax.full(x.aval.shape, 1, int_dtype())
        if weights is None
        else one_array("bincount", weights)
    )
    if w.aval.shape != x.aval.shape:
        raise ValueError(
            f"bincount: shape of weights must match shape of x, got {w.aval.shape} "
            f"and {x.aval.shape}."
        )
    if dtypes.kind(x.aval.dtype) == "u" and x.aval.dtype.itemsize >= int_dtype().itemsize:
        x = minimum(x, length)  # those above the signed integers are dropped, not negative
    if FLAG.uses and wanted() and x.aval.dtype == dtypes.int32:
        return in_place("of bincount", x, w, length)
    index = cast(x, int_dtype())
    index = where(less(index, 0), 0, index)
    return lax.full((length,), 0, w.aval.dtype).at[index].add(w, mode="drop")


def _counts(values: np.ndarray, length: int) -> np.ndarray:
    """How often 0 .. length - 1 occur; negative values count as 0, larger ones are dropped."""
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    if dtypes.kind(values.dtype) == "i":
        values = np.maximum(values, 0)
    if values.size and values.max() >= length:
        values = values[values < length]
    return np.bincount(values.astype(np.int64), minlength=length).astype(int_dtype())


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of bins for `histogram`, one more than there are bins.

    a: numbers of any shape. bins: how many of one width, a Python integer; or the edges themselves.
    range: (lowest, highest) edge, by default those of the elements. weights: not asked for.
    NotImplementedError for the names of NumPy's rules. Equal extremes share the derivative of the
    edges.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 1.0, 4.0]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram_bin_edges: bins={bins!r} is not supported. Give a "
            "number of bins or their edges."
        )
    if isinstance(bins, (list, tuple)) or getattr(bins, "ndim", False):
        x, edges = as_arrays("histogram_bin_edges", a, bins)
        return cast(promote_inexact(edges)[0], inexact_dtype(x.aval.dtype))
    count = count_of(bins)
    (x,) = promote_inexact(ravel(one_array("histogram_bin_edges", a)))
    if FLAG.uses and wanted() and x.aval.size:
        return in_place("of histogram", x, count, range)
    if range is None:
        if not x.aval.size:
            low, high = array(0.0), array(1.0)
        else:
            low, high = min_(x), max_(x)
    else:
        low, high = (array(v) for v in range)
    low, high, _ = promote_dtypes(low, high, x)
    flat = equal(low, high)
    low, high = where(flat, subtract(low, 0.5), low), where(flat, add(high, 0.5), high)
    return cast(linspace(low, high, count + 1), x.aval.dtype)


def _no_rule(name: str, bins: Any) -> None:
    if isinstance(bins, str):
        raise TypeError(
            f"{name}: NumPy's rules for the bins, such as {bins!r}, are not known. Give a number "
            "of bins or their edges."
        )


def _bin_of(x: Any, edges: Any) -> Any:
    if FLAG.uses and wanted():
        return as_call("searchsorted", edges, x, "right")
    return searchsorted(edges, x, side="right")


def _widths(edges: Any) -> Any:
    if FLAG.uses and wanted():
        return as_call("diff", edges)
    return subtract(getitem(edges, slice(1, None)), getitem(edges, slice(None, -1)))


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """(counts, edges): how many elements fall into each bin, and the bins' edges.

    a: numbers of any shape. bins, range: as in `histogram_bin_edges`; a bin holds its left edge,
    the last one both; what is outside is not counted. weights: of a's shape, added up instead of
    counting. density: divide by the total and the bins' widths. The counts are floats (NumPy's are
    integers). ValueError for weights of another size, TypeError for the names of NumPy's rules. The
    derivative of the counts is zero, that of edges as of `histogram_bin_edges`.

    >>> jnp.histogram(jnp.array([0.0, 1.0, 1.5, 4.0]), bins=2)
    (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    x = ravel(one_array("histogram", a))
    _no_rule("histogram", bins)
    if weights is None:
        (x,) = promote_inexact(x)
        w = lax.full(x.aval.shape, 1, x.aval.dtype)
    else:
        x, w = promote_inexact(x, ravel(one_array("histogram", weights)))
        if w.aval.size != x.aval.size:
            raise ValueError("histogram: weights should have the same shape as a.")
    edges = histogram_bin_edges(x, bins, range)
    n = edges.aval.shape[0] - 1
    # What is below all edges is at 0, what is above beyond the end. The last bin has both edges.
    index = _bin_of(x, edges)
    index = where(equal(x, getitem(edges, -1)), n, index)
    counts = getitem(lax.full((n + 1,), 0, w.aval.dtype).at[index].add(w), slice(1, None))
    if density:
        counts = divide(divide(counts, _widths(edges)), sum_(counts))
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Any, Any, Any]:
    """(counts, x edges, y edges) of points in the plane.

    x, y: vectors of one length n. bins: a number, edges for both, or one of these for each. range:
    a pair of (lowest, highest). weights: a vector of n. density: divide by the total and the areas.
    Returns counts with x along the rows. TypeError or ValueError for what are no vectors of one
    length. Counts are integers without `weights` and `density` (NumPy: floats).

    >>> counts, _, _ = jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)
    >>> counts
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    x, y = as_arrays("histogram2d", x, y)
    _no_rule("histogram2d", bins)
    several = isinstance(bins, (list, tuple)) or getattr(bins, "ndim", False)
    if several and len(bins) not in (1, 2):
        bins = [bins, bins]
    points = concatenate([reshape(x, (-1, 1)), reshape(y, (-1, 1))], 1)
    counts, edges = histogramdd(points, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """(counts, list of edges) of points in a space of d dimensions.

    sample: [n, d], a point in each row. bins: a number, or a sequence with a number or edges for
    each coordinate. range: for each coordinate None or (lowest, highest). weights: a vector of n.
    density: divide by the total and the volumes. ValueError where `bins` has not d entries. Counts
    are integers without `weights` and `density` (NumPy: floats); derivatives as of `histogram`.

    >>> counts, edges = jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]), bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    points = one_array("histogramdd", sample)
    if weights is None:
        (points,) = promote_inexact(points)
    else:
        points, w = promote_inexact(points, one_array("histogramdd", weights))
    if points.aval.ndim == 1:
        points = reshape(points, (-1, 1))
    n, d = points.aval.shape
    if isinstance(bins, (list, tuple)):
        each = list(bins) * (d if len(bins) == 1 else 1)
    elif getattr(bins, "ndim", False):
        each = [bins] * d if bins.ndim == 1 and bins.shape[0] != d else list(bins)
    else:
        each = [bins] * d
    if len(each) != d:
        raise ValueError(f"histogramdd: bins must give one entry for each of the {d} coordinates.")
    edges, flat, shape = [], None, []
    outside = lax.full((n,), False, dtypes.bool_)
    for i in builtin_range(d):
        x = getitem(points, (slice(None), i))
        e = cast(histogram_bin_edges(x, each[i], None if range is None else range[i]), x.aval.dtype)
        size = e.aval.shape[0] - 1
        index = subtract(searchsorted(e, x, side="right"), 1)
        index = where(equal(x, getitem(e, -1)), size - 1, index)
        outside = logical_or(logical_or(less(index, 0), less(size - 1, index)), outside)
        flat = index if flat is None else add(multiply(flat, size), index)
        edges.append(e)
        shape.append(size)
    if weights is None:
        w = lax.full((n,), 1, dtypes.canonical(dtypes.int64))
    total = int(np.prod(shape))
    counts = lax.full((total,), 0, w.aval.dtype).at[where(outside, total, flat)].add(w, mode="drop")
    counts = reshape(counts, tuple(shape))
    if density:
        counts = cast(divide(counts, sum_(counts)), points.aval.dtype)
        for i, e in enumerate(edges):
            widths = _widths(e)
            lanes = [1] * d
            lanes[i] = shape[i]
            counts = divide(counts, reshape(widths, tuple(lanes)))
    return counts, edges

