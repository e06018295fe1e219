"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.dims import DimExpr, index_of
from numjet.core.structural import beside
from numjet.core.trace import concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import add, minimum, subtract
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import (
    equal,
    isnan_of,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from numjet.numpy.positions import as_constant, like
from numjet.numpy.promote import (
    as_arrays,
    canonical_axis,
    canonical_dtype,
    cast,
    int_dtype,
    one_array,
    promote_dtypes,
    strong,
)
from numjet.numpy.shape import flip, ravel
from numjet.ops.slicing import index_dtype


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

    a: numbers with at least one dimension. Dtypes of 64 bits become complex128, other real ones
    complex64.
    ValueError for scalars. The derivative goes where the elements go.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 5j, 2 - 1j]))
    Array([1.+5.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    x = one_array("sort_complex", a)
    out = lax.sort(x, dimension=x.aval.ndim - 1)
    if dtypes.is_complex(out.aval.dtype):
        return strong(out)
    wide = out.aval.dtype.itemsize == 8
    return cast(out, dtypes.canonical(dtypes.complex128 if wide else dtypes.complex64))


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
        made, cut = as_constant(np.asarray(found, dtype)), wanted._sharding is not None
        return beside(made, wanted if cut else table, whole=not cut)
    low = lax.full(v.aval.shape, 0, dtype)
    high = lax.full(v.aval.shape, n, dtype)
    # Bisection, unrolled: the interval's length halves until it is empty.
    for _ in range(32 if type(n) is DimExpr else n.bit_length()):
        middle = add(low, lax.shift_right_logical(subtract(high, low), like(1, low)))
        value = getitem(a, minimum(n - 1, middle))
        goes_right = _precedes(value, v) if side == "left" else logical_not(_precedes(v, value))
        open_ = less(low, high)
        low = where(logical_and(goes_right, open_), add(middle, 1), low)
        high = where(logical_and(logical_not(goes_right), open_), middle, high)
    return low


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
