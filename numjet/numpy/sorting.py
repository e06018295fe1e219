"""Sorting, searching, histograms, and positions where a mask holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.reshard import laid_out
from numjet.api.shown import FLAG, as_call, in_place, wanted
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr, count_of, index_of
from numjet.core.evaluate import LARGE
from numjet.core.structural import beside, scalar
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import add, divide, minimum, multiply, subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate
from numjet.numpy.logic import (
    as_bool,
    equal,
    isnan_of,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    canonical_dtype,
    cast,
    inexact_dtype,
    int_dtype,
    one_array,
    promote_dtypes,
    promote_inexact,
    refuse,
    strong,
)
from numjet.numpy.ranges import linspace
from numjet.numpy.reductions import max as max_, min as min_, sum as sum_
from numjet.numpy.shape import flip, moveaxis, ravel, reshape
from numjet.ops.slicing import index_dtype


def need_concrete(name: str, x: Any) -> np.ndarray:
    """The value of x, or ConcretizationTypeError naming `size` as the remedy."""
    known = concrete_or_none(x)
    if known is None:
        x._need_concrete(
            ConcretizationTypeError,
            f"{name}: the result's size depends on the values",
            "Give the argument `size`, or call it outside of transformations.",
        )
    return known._value


def as_constant(value: np.ndarray) -> ArrayImpl:
    """A NumPy array of a canonical dtype as an Array."""
    value = np.asarray(value)
    return ArrayImpl(value, ShapedArray(value.shape, value.dtype))


# ------------------------------------------------------------------ sorting
def _checked(
    name: str, a: Any, axis: Any, kind: Any, order: Any, stable: Any
) -> tuple[Any, int]:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False."
        )
    if order is not None:
        raise TypeError(f"{name}: the argument 'order' is not supported: there are no fields.")
    if not isinstance(stable, bool | np.bool_):
        raise TypeError(f"{name}: stable must be True or False, got {stable!r}.")
    x = one_array(name, a)
    if axis is None:
        x, axis = ravel(x), 0
    return x, canonical_axis(axis, x.aval.ndim, name)


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """A sorted copy along `axis`, rising; NaN comes last.

    a: an array of any dtype; complex numbers are ordered by real part, then imaginary part. axis:
    an integer, or None for the flattened array. descending: falling, NaN first. stable: has no
    effect on values. The derivative follows the elements. TypeError for `kind`, `order` and a
    `stable` that is no bool. ValueError for an axis out of range.

    >>> jnp.sort(jnp.array([3.0, jnp.nan, 1.0]))
    Array([ 1.,  3., nan], dtype=float32)
    """
    x, axis = _checked("sort", a, axis, kind, order, stable)
    out = lax.sort(x, dimension=axis, is_stable=stable)
    return flip(out, axis) if descending else out


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The positions that sort `a` along `axis`.

    a: an array of any dtype; NaN comes last, complex numbers are ordered by real part, then
    imaginary part. axis: an integer, or None for the flattened array. stable: equal elements keep
    their order, as they do by default (in NumPy they need not); otherwise falling ones are in the
    opposite order. descending: falling. dtype: of the result, by default the default integer.
    TypeError for `kind` and `order`. ValueError for an axis out of range.

    >>> jnp.argsort(jnp.array([3, 1, 2, 1]))
    Array([1, 3, 2, 0], dtype=int32)
    """
    x, axis = _checked("argsort", a, axis, kind, order, stable)
    dtype = int_dtype() if dtype is None else canonical_dtype(dtype, "argsort")
    index = lax.broadcasted_iota(dtype, x.aval.shape, axis)
    if descending and stable:
        # Reversed before and after, so that equal elements keep their order.
        x, index = flip(x, axis), flip(index, axis)
    _, out = lax.sort_key_val(x, index, dimension=axis, is_stable=stable)
    return flip(out, axis) if descending else out


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The positions that sort by several keys: by the last one, and where it is equal by that
    before it.

    keys: a sequence of arrays of one shape, or an array of them. axis: along which to sort. Returns
    the default integer; equal elements keep their order. TypeError without keys, ValueError for
    keys of several shapes.

    >>> jnp.lexsort((jnp.array([9, 4, 1]), jnp.array([1, 2, 1])))
    Array([2, 0, 1], dtype=int32)
    """
    # The elements of a vector are keys of one position each: not taken one by one.
    arrays = [keys[0]] if getattr(keys, "ndim", 0) == 1 and len(keys) else list(keys)
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort. Give at least one.")
    arrays = as_arrays("lexsort", *arrays)
    if len({x.aval.shape for x in arrays}) > 1:
        raise ValueError(
            f"lexsort: all keys need to have the same shape, got {[x.aval.shape for x in arrays]}."
        )
    if not arrays[0].aval.ndim:
        return lax.full((), 0, int_dtype())
    axis = canonical_axis(axis, arrays[0].aval.ndim, "lexsort")
    index = lax.broadcasted_iota(int_dtype(), arrays[0].aval.shape, axis)
    return lax.sort((*arrays[::-1], index), dimension=axis, num_keys=len(arrays))[-1]


def sort_complex(a: Any) -> Any:
    """`a` as complex numbers, sorted along the last axis by real part, then imaginary part.

    a: numbers with at least one dimension. float64 becomes complex128, other real dtypes complex64.
    ValueError for scalars. The derivative goes where the elements go.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 5j, 2 - 1j]))
    Array([1.+5.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    x = one_array("sort_complex", a)
    out = lax.sort(x, dimension=x.aval.ndim - 1)
    if dtypes.is_complex(out.aval.dtype):
        return strong(out)
    return cast(
        out,
        dtypes.canonical(
            dtypes.complex_of(
                out.aval.dtype if dtypes.is_floating(out.aval.dtype) else dtypes.float32
            )
        ),
    )


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """`a` rearranged along `axis`: what is before `kth` is not larger, what is behind it not
    smaller.

    a: an array of real numbers (NotImplementedError for complex ones, TypeError for booleans).
    kth: a Python integer. What is before `kth` ascends here, what is
    behind it descends. ValueError for a position out of range. The derivative goes where the
    elements go. NumPy leaves the order there open; its `kind` and `order` are not taken.

    >>> jnp.partition(jnp.array([4, 1, 3, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    x = _ordered("partition", a)
    axis = canonical_axis(axis, x.aval.ndim, "partition")
    kth = canonical_axis(index_of(kth), x.aval.shape[axis], "partition: kth")
    below, above = _halves(sort(x, axis), kth, axis)
    return lax.concatenate([below, lax.rev(above, (axis,))], axis)


def _ordered(name: str, a: Any) -> Any:
    """The array, of numbers that JAX parts: no complex ones, and no booleans."""
    x = one_array(name, a)
    if dtypes.is_complex(x.aval.dtype):
        raise NotImplementedError(f"{name} of complex numbers is not implemented. Use argsort.")
    if dtypes.is_bool(x.aval.dtype):
        raise TypeError(f"{name} does not accept dtype bool. Convert it with .astype(int).")
    return x


def _halves(x: Any, kth: int, axis: int) -> tuple[Any, Any]:
    n = x.aval.shape[axis]
    return lax.slice_in_dim(x, 0, kth + 1, axis=axis), lax.slice_in_dim(x, kth + 1, n, axis=axis)


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """Positions that part `a`: of the smallest elements, ascending, up to place `kth`; then others.

    a: as in `partition`. kth: a Python integer. axis: along which. Returns int32; the positions
    behind `kth` ascend themselves. ValueError for an axis out of range. The order behind `kth` may
    differ from NumPy's, which has `kind` and `order` too.

    >>> jnp.argpartition(jnp.array([4, 1, 3, 2]), 1)[1]
    Array(3, dtype=int32)
    """
    x = _ordered("argpartition", a)
    axis = canonical_axis(axis, x.aval.ndim, "argpartition")
    kth = canonical_axis(index_of(kth), x.aval.shape[axis], "argpartition: kth")
    below, above = _halves(argsort(x, axis), kth, axis)
    places = lax.concatenate([below, sort(above, axis)], axis)
    return cast(places, dtypes.int32, x.aval.weak_type)


# ------------------------------------------------------------------ searching
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Where to insert the values `v` into the sorted vector `a` to keep it sorted.

    a: a sorted vector, NaN last; v: an array of any shape, which the result has, as int32. side:
    'left' before equal elements, 'right' behind them. sorter: positions that sort `a`, where it is
    not. method: all of JAX's are understood; it is bisection each time. ValueError for others and
    for `a` of another rank.

    >>> jnp.searchsorted(jnp.array([1, 3, 3, 5]), jnp.array([3, 4]))
    Array([1, 3], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(
            f"searchsorted: invalid argument side={side!r}, expected 'left' or "
            "'right'."
        )
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(f"searchsorted: invalid argument method={method!r}.")
    a, v = as_arrays("searchsorted", a, v)
    if a.aval.ndim != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional, got {a.aval.shape}.")
    if sorter is not None:
        a = getitem(a, one_array("searchsorted", sorter))
    a, v = promote_dtypes(a, v)
    n = a.aval.shape[0]
    dtype = index_dtype(n)
    if not n:
        return lax.full(v.aval.shape, 0, dtype)
    table, wanted = concrete_or_none(a), concrete_or_none(v)
    if table is not None and wanted is not None and a.aval.dtype.kind in "biuf":
        found = np.searchsorted(table._value, wanted._value, "right" if side == "right" else "left")
        return beside(as_constant(np.asarray(found, dtype)), v, whole=False)
    low = lax.full(v.aval.shape, 0, dtype)
    high = lax.full(v.aval.shape, n, dtype)
    # Bisection, unrolled: the interval's length halves until it is empty.
    for _ in range(32 if type(n) is DimExpr else n.bit_length()):
        middle = add(low, lax.shift_right_logical(subtract(high, low), _like(1, low)))
        value = getitem(a, minimum(n - 1, middle))
        goes_right = _precedes(value, v) if side == "left" else logical_not(_precedes(v, value))
        open_ = less(low, high)
        low = where(logical_and(goes_right, open_), add(middle, 1), low)
        high = where(logical_and(logical_not(goes_right), open_), middle, high)
    return low


def _like(value: int, x: Any) -> Any:
    return broadcast(scalar(value, x.aval.dtype), x.aval.shape)


def _precedes(x: Any, y: Any) -> Any:
    """x < y in sorting order, where NaN is the largest value."""
    if not dtypes.is_floating(x.aval.dtype):
        return less(x, y)
    return logical_or(less(x, y), logical_and(isnan_of(y), equal(x, x)))


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The number of the bin that each element of x falls into: bins[i - 1] <= x < bins[i].

    x: an array of any shape, which the result has, as int32. bins: a vector that rises or falls.
    right: the right edge belongs to the bin, and not the left one. 0 and len(bins) are outside.
    method: not asked for. ValueError for bins of another rank.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    x, bins = as_arrays("digitize", x, bins)
    if bins.aval.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins.aval.shape}.")
    if not bins.aval.shape[0]:
        return lax.full(x.aval.shape, 0, dtypes.int32)
    side = "right" if not right else "left"
    rising = less_equal(getitem(bins, 0), getitem(bins, -1))
    up = searchsorted(bins, x, side=side)
    down = subtract(bins.aval.shape[0], searchsorted(flip(bins), x, side=side))
    return where(rising, up, cast(down, up.aval.dtype))


# ------------------------------------------------------------------ counting
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


builtin_range = range


# ------------------------------------------------------------------ positions of non-zeros
def first_true(mask: Any, size: int, rest: int | None = None) -> Any:
    """The positions of the first `size` true elements, then `rest` (the last position)."""
    n, size = mask.aval.shape[0], count_of(size)
    rest = max(n - 1, 0) if rest is None else rest
    known = concrete_or_none(mask)
    if known is not None:
        places = np.full(size, rest, int_dtype())
        found = np.flatnonzero(known._value)[:size]
        places[: len(found)] = found
        return beside(as_constant(places), mask)
    # Every element is written where the next true one belongs, and of those that meet the last one
    # wins: 10^6 take 1.7 ms so; with only the true ones written, a branch that is not predicted, 8.
    ones = cast(mask, int_dtype())
    place = subtract(cumsum(ones), ones)
    place_of = where(mask, lax.iota(int_dtype(), n), rest)
    start = lax.full((size,), rest, int_dtype())
    return start.at[place].set(place_of, mode="drop")


def true_positions(name: str, mask: Any, size: int | None) -> tuple[Any, Any]:
    """Where the mask is true, `size` positions, and which of these exist; all of a concrete mask,
    and None, without `size`."""
    if size is None:
        found = np.flatnonzero(need_concrete(name, mask))
        return beside(as_constant(found.astype(int_dtype())), mask), None
    total = sum_(cast(mask, int_dtype()))
    return first_true(mask, size), less(lax.iota(int_dtype(), size), total)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The positions of the non-zero elements: a tuple with one vector for each axis.

    a: an array with at least one dimension (ValueError). size: how many positions to give, needed
    where `a` is traced (ConcretizationTypeError): further ones are left out, missing ones are
    `fill_value` (0, or a tuple with one for each axis). Returns the default integer, in the order
    of rows.

    >>> jnp.nonzero(jnp.array([[1, 0], [0, 5]]))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    >>> jnp.nonzero(jnp.array([0, 7]), size=3, fill_value=-1)
    (Array([ 1, -1, -1], dtype=int32),)
    """
    x = one_array("nonzero", a)
    if not x.aval.ndim:
        raise ValueError(
            "nonzero: arrays without dimensions are not supported. Use jnp.atleast_1d(x)."
        )
    mask = as_bool(x)
    if size is None:
        found = np.nonzero(need_concrete("nonzero", mask))
        return tuple([beside(as_constant(v.astype(int_dtype())), x) for v in found])
    size = count_of(size)
    if type(size) is int and size < 0:
        raise TypeError(f"nonzero: size must be nonnegative, got {size}.")
    if FLAG.uses and wanted() and x.aval.size:
        return in_place("of nonzero", mask, size, fill_value)
    flat = ravel(mask)
    n = flat.aval.shape[0]
    position = first_true(flat, size) if n else lax.full((size,), 0, int_dtype())
    valid = less(lax.iota(int_dtype(), size), sum_(cast(flat, int_dtype())))
    fills: Sequence[Any] = (
        fill_value if isinstance(fill_value, tuple) else ((fill_value,) * x.aval.ndim)
    )
    if len(fills) != x.aval.ndim:
        raise ValueError(
            f"nonzero: fill_value {fill_value} must have one entry for each of {x.aval.ndim} axes."
        )
    out = []
    stride = n
    for n_axis, fill in zip(x.aval.shape, fills):
        stride = stride // n_axis if n_axis else 1
        index = position
        if x.aval.ndim > 1:
            index = lax.rem(
                lax.div(index, _like(max(stride, 1), index)), _like(max(n_axis, 1), index)
            )
        out.append(
            where(
                valid,
                index,
                cast(one_array("nonzero", 0 if fill is None else fill), index.aval.dtype),
            )
        )
    return tuple(out)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the non-zero elements in the flattened array.

    a: an array of any shape. size, fill_value: as in `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[1, 0], [0, 5]]))
    Array([0, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the non-zero elements, one row for each.

    a: an array of any shape. size, fill_value: as in `nonzero`. Returns [count, a.ndim] of the
    default integer.

    >>> jnp.argwhere(jnp.array([[1, 0], [0, 5]]))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    x = one_array("argwhere", a)
    if not x.aval.ndim:
        found = nonzero(reshape(x, (1,)), size=size)[0]
        return lax.full((found.aval.shape[0], 0), 0, int_dtype())
    if FLAG.uses and wanted() and size is not None:
        found = nonzero(as_call("atleast_1d", x), size=size, fill_value=fill_value)
        return lax.transpose(concatenate([as_call("atleast_2d", v) for v in found], 0), (1, 0))
    found = nonzero(x, size=size, fill_value=fill_value)
    return concatenate([reshape(v, (-1, 1)) for v in found], 1)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of `arr` where `condition` holds, as a vector.

    condition: an array of as many elements. size: how many to give, needed where it is traced
    (ConcretizationTypeError); missing ones are `fill_value`. ValueError for a condition that is
    longer than `arr`.

    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: Any = None,
) -> Any:
    """The slices of `a` along `axis` where the vector `condition` holds.

    condition: a vector at most as long as the axis. axis: an integer, or None for the flattened
    array. size: how many to give, needed where the condition is traced (ConcretizationTypeError);
    missing ones are `fill_value`. ValueError for another rank of the condition, one that holds
    beyond the axis (not with `size`), and a size beyond the axis or it; `out`: NotImplementedError.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[1, 3],
           [4, 6]], dtype=int32)
    """
    refuse("compress", out=out)
    condition, x = as_arrays("compress", condition, a)
    if condition.aval.ndim != 1:
        raise ValueError(f"compress: condition must have one dimension, got {condition.aval}.")
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, axis, 0)
    n = condition.aval.shape[0]
    condition = as_bool(condition)
    if size is not None and not 0 <= size <= min(n, x.aval.shape[0]):
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"size={size} for an axis of {x.aval.shape[0]} and a condition of {n}."
        )
    if n > x.aval.shape[0]:
        rest = getitem(condition, slice(x.aval.shape[0], None))
        if size is None and need_concrete("compress", rest).any():
            raise ValueError("compress: condition is longer than the axis.")
        condition = getitem(condition, slice(None, x.aval.shape[0]))
    else:
        x = getitem(x, slice(None, n))
    index, valid = true_positions("compress", condition, size)
    rows = getitem(x, index)
    if valid is None:
        return moveaxis(rows, 0, axis)
    valid = reshape(valid, (-1,) + (1,) * (rows.aval.ndim - 1))
    return moveaxis(
        where(valid, rows, cast(one_array("compress", fill_value), rows.aval.dtype)), 0, axis
    )


def where_or_nonzero(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """x where `condition` is true, else y, element by element.

    condition: booleans, or what is compared with 0; x, y: arrays or numbers. The three broadcast to
    one shape, x and y to one dtype. Both branches are computed: where one of them is infinite or
    NaN its derivative is NaN even where the other is taken, so make its argument safe first. With
    `condition` alone: its `nonzero`, with `size` and `fill_value`. ValueError for these with x and
    y, TypeError for x without y.

    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 0)
    Array([1, 0], dtype=int32)
    """
    if x is not None and y is not None:
        if size is not None or fill_value is not None:
            raise ValueError("where: size and fill_value belong to where(condition) only.")
        return where(condition, x, y)
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    raise TypeError(
        f"where requires ndarray or scalar arguments, got {type(None)} at position "
        f"{1 if x is None else 2}. It takes either condition alone, or condition, x and y."
    )


where_or_nonzero.__name__ = where_or_nonzero.__qualname__ = "where"
