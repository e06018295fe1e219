"""One array of several, and several of one: concatenate, stack, block; split and others.

For every module that has arrays to put together or to take apart; operands promote to one dtype.
What would break it: numbers of parts, or places to cut at, that are known at run time only, since
they make the results' shapes.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit import jit
from numjet.api.compiled.shown import FLAG, as_call, wanted, written_apart
from numjet.core.array import Array, ArrayImpl
from numjet.core.dims import DimExpr, largest, smallest
from numjet.core.sharded import ShardedArray
from numjet.numpy import lax_names as lax
from numjet.numpy.fast import eager
from numjet.numpy.promote import (
    as_arrays,
    canonical_axis,
    canonical_dtype,
    cast,
    one_array,
    promote_dtypes,
    refuse,
)
from numjet.numpy.shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    moveaxis,
    ndim,
    ravel,
    reshaped,
)
from numjet.ops.named import split_p, stack_p, unstack_p


# ------------------------------------------------------------------ joining
def _sequence(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, (Array, np.ndarray)):
        if not arrays.ndim:
            raise ValueError(f"{name}: needs a sequence of arrays, got one without dimensions.")
        return as_arrays(name, *list(arrays))
    if not isinstance(arrays, Sequence) or isinstance(arrays, str):
        # What can be walked again is taken for one, as containers of libraries are. Of an iterator
        # JAX takes none or all, as the function happens to read it.
        again = isinstance(arrays, Iterable) or hasattr(type(arrays), "__getitem__")
        if not again or isinstance(arrays, str | Iterator | Mapping):
            raise TypeError(
                f"{name}: needs a sequence of arrays, got {arrays!r} of type "
                f"{type(arrays).__name__}."
            )
        arrays = list(arrays)
    if not len(arrays):
        verb = "concatenate" if name == "concatenate" else "stack"
        raise ValueError(f"Need at least one array to {verb}.")
    return as_arrays(name, *arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """The arrays joined along an existing axis.

    arrays: a sequence of arrays with one shape but for the length along `axis` (TypeError), or an
    array, whose slices are joined. axis: an integer, or None to flatten them first. dtype: that of
    the result; by default they promote. ValueError for none, and for arrays without axes: `stack`
    them.

    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3.5])])
    Array([1. , 2. , 3.5], dtype=float32)
    """
    if _is_one(arrays) and axis is not None and arrays.ndim >= 2:
        rank = arrays.ndim - 1
        return _joined(arrays, rank, 0, canonical_axis(axis, rank, "concatenate"), dtype)
    parts = _sequence("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    if not parts[0].aval.ndim:
        raise ValueError(
            "Zero-dimensional arrays cannot be concatenated: use stack, or give them an axis with "
            "x[None]."
        )
    rank = parts[0].aval.ndim
    axis = canonical_axis(axis, rank, "concatenate")
    for i, x in enumerate(parts):
        if x.aval.ndim != rank or any(
            n != m for k, (n, m) in enumerate(zip(x.aval.shape, parts[0].aval.shape)) if k != axis
        ):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                "one being concatenated: concatenate: shapes must be equal except along the "
                f"joined axis {axis}, got {parts[0].aval.shape} and {x.aval.shape} (argument {i}). "
                "Join along another axis, or reshape or pad first."
            )
    if dtype is None:
        parts = promote_dtypes(*parts)
    else:
        wanted = canonical_dtype(dtype, "concatenate")
        parts = [cast(x, wanted) for x in parts]
    if len(parts) == 1:
        return parts[0]
    if eager() and all([type(x) is ArrayImpl for x in parts]):
        value = np.concatenate([x._value for x in parts], axis)
        return ArrayImpl(value, parts[0].aval.update(shape=value.shape))
    return lax.concatenate(parts, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """`concatenate` under the array API's name: the arrays joined along an existing axis.

    arrays, axis: as in `concatenate`.

    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


@written_apart
def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.

    arrays: a sequence of arrays, or an array. axis: the position of the new axis in the result.
    dtype: that of the result; by default they promote. ValueError for several shapes and for none;
    `out` raises NotImplementedError.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse("stack", out=out)
    if _is_one(arrays):
        (whole,) = as_arrays("stack", arrays)
        whole = moveaxis(whole, 0, canonical_axis(axis, arrays.ndim, "stack"))
        return whole if dtype is None else cast(whole, canonical_dtype(dtype, "stack"))
    parts = _sequence("stack", arrays)
    first = parts[0].aval.shape
    axis = canonical_axis(axis, len(first) + 1, "stack")
    for i, x in enumerate(parts):
        if x.aval.shape != first:
            raise ValueError(
                f"All input arrays must have the same shape. stack got {first} and "
                f"{x.aval.shape} (argument {i})."
            )
    parts = promote_dtypes(*parts)
    if dtype is not None:
        target = canonical_dtype(dtype, "stack")
        parts = [cast(x, target) for x in parts]
    if FLAG.uses and wanted():
        return stack_p.bind(*parts, axis=axis)
    return lax.stack(parts, axis)


@written_apart
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices of x along `axis`, a tuple: what `stack` joins.

    x: an array with at least one axis (ValueError).

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = one_array("unstack", x)
    if not x.aval.ndim:
        raise ValueError("unstack: needs an array with at least one dimension.")
    axis = canonical_axis(axis, x.aval.ndim, "unstack")
    if FLAG.uses and wanted():
        return tuple(unstack_p.bind(x, axis=axis))
    return lax.unstack(x, axis)


def _joined(a: Any, rank: int, lead: int, axis: int, dtype: Any) -> Any:
    """The arrays that `a` consists of, joined along `axis`: each reshaped to `rank` dimensions
    first, `lead` of them before its own."""
    a = as_arrays("concatenate", a)[0]
    shape = a.aval.shape[1:]
    shape = (1,) * lead + shape if len(shape) < rank else shape
    shape = shape + (1,) * (rank - len(shape))
    n = a.aval.shape[0]
    a = moveaxis(reshaped(a, (n, *shape)), 0, axis)
    a = reshaped(a, (*shape[:axis], n * shape[axis], *shape[axis + 1 :]))
    return a if dtype is None else cast(a, canonical_dtype(dtype, "concatenate"))


def _is_one(tup: Any) -> bool:
    """Whether a sequence of arrays is one array."""
    return isinstance(tup, (Array, np.ndarray)) and tup.ndim > 0 and tup.size > 0


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined below each other: along axis 0, vectors being rows.

    tup: a sequence of arrays, or an array. dtype: that of the result; by default they promote.
    Errors as of `concatenate`.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4]])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if _is_one(tup):
        return _joined(tup, 2, 2 - min(tup.ndim - 1, 2), 0, dtype)
    parts = [atleast_2d(x) for x in _sequence("vstack", tup)]
    return concatenate(parts, 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined beside each other: along axis 1, vectors along axis 0.

    tup: a sequence of arrays, or an array. dtype: that of the result; by default they promote.
    Errors as of `concatenate`.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    if _is_one(tup):
        return _joined(tup, 1, 0, 0 if tup.ndim <= 2 else 1, dtype)
    parts = [atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(parts, 0 if parts[0].aval.ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined behind each other: along axis 2, after `atleast_3d`.

    tup: a sequence of arrays, or an array. dtype: that of the result; by default they promote.
    Errors as of `concatenate`.

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    if _is_one(tup):
        return _joined(tup, 3, int(tup.ndim <= 2), 2, dtype)
    return concatenate([atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


def column_stack(tup: Any) -> Any:
    """Vectors as the columns of a matrix; matrices beside each other.

    tup: a sequence of arrays, or an array. Errors as of `concatenate`.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if _is_one(tup):
        return _joined(tup, 2, int(tup.ndim == 1), 1, None)
    parts = []
    for x in _sequence("column_stack", tup):
        if x.aval.ndim < 2 and FLAG.uses and wanted():
            parts.append(as_call("atleast_2d", x).T)
            continue
        parts.append(reshaped(x, (x.aval.size, 1)) if x.aval.ndim < 2 else x)
    return concatenate(parts, 1)


def block(arrays: Any) -> Any:
    """One array of nested lists of blocks: the innermost lists are joined along the last axis,
    those around them along the one before.

    arrays: an array, or lists of one depth. TypeError for tuples, ValueError for empty lists.

    >>> a, b = jnp.ones((2, 2)), jnp.zeros((2, 1))
    >>> jnp.block([[a, b]])
    Array([[1., 1., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    levels = _depth(arrays)
    return _block(arrays, levels, max(levels, _max_rank(arrays)))


def _depth(x: Any) -> int:
    return 1 + (_depth(x[0]) if x else 0) if isinstance(x, list) else 0


def _block(x: Any, levels: int, rank: int) -> Any:
    """Lists nested `levels` deep, of arrays of `rank` axes, as one."""
    if isinstance(x, list) != (levels > 0):
        raise ValueError("block: the lists are nested to different depths.")
    if isinstance(x, list):
        if not x:
            raise ValueError("block does not allow empty list arguments.")
        return concatenate([_block(v, levels - 1, rank) for v in x], rank - levels)
    x = one_array("block", x)
    return reshaped(x, (1,) * (rank - x.aval.ndim) + x.aval.shape)


def _max_rank(x: Any) -> int:
    if isinstance(x, tuple):
        raise ValueError(f"block does not allow tuples, got {x}. Use lists.")
    return max(map(_max_rank, x), default=0) if isinstance(x, list) else ndim(x)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`values` joined to the end of `arr`: a new array.

    arr, values: arrays, which promote. axis: along which, or None for both flattened. Errors as of
    `concatenate`.

    >>> jnp.append(jnp.array([1, 2]), jnp.array([[3], [4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    arr, values = as_arrays("append", arr, values)
    return (
        concatenate([arr, values], axis)
        if axis is not None
        else concatenate([x if x.aval.ndim == 1 else ravel(x) for x in (arr, values)])
    )


# ------------------------------------------------------------------ splitting
def _cut(place: Any, n: Any) -> Any:
    """Where a slice that stops at `place` ends."""
    if type(place) is DimExpr or type(n) is DimExpr:
        return largest(0, n + place) if place < 0 else smallest(place, n)
    return slice(None, place).indices(n)[1]


@written_apart
def _split(name: str, ary: Any, sections: Any, axis: int, exact: bool) -> list[Any]:
    x = one_array(name, ary)
    axis = canonical_axis(axis, x.aval.ndim, name, IndexError)
    n = x.aval.shape[axis]
    if isinstance(sections, (list, tuple)) or getattr(sections, "ndim", False):
        cuts = [
            c if type(c) is DimExpr else operator.index(c)
            for c in (
                np.asarray(sections).tolist()
                if not isinstance(sections, (list, tuple))
                else sections
            )
        ]
        bounds = [0] + [_cut(c, n) for c in cuts] + [n]
    else:
        if type(sections) is DimExpr:
            raise ValueError(
                f"jax.numpy.{name} with a symbolic number of sections is not supported: {sections}."
            )
        parts = int(sections)
        if not parts:
            raise ZeroDivisionError(f"{name}: the number of sections must be positive, got 0.")
        if parts < 0:
            raise ValueError(f"{name}: the number of sections must be positive, got {parts}.")
        if n % parts != 0 and (exact or type(n) is DimExpr):
            raise ValueError(
                f"{name}: array split does not result in an equal division: axis "
                f"{axis} of size {n} into {parts} parts. Use array_split."
            )
        small, larger = n // parts, n % parts
        sizes = [small + 1] * larger + [small] * (parts - larger)
        bounds = [0, *itertools.accumulate(sizes)]
    if FLAG.uses and wanted() and bounds == sorted(bounds):
        widths = tuple([np.int64(hi - lo) for lo, hi in zip(bounds[:-1], bounds[1:])])
        return split_p.bind(x, sizes=widths, axis=axis)
    if type(x) is ShardedArray and x.aval.placed is None:
        return _parts_as_program(x, tuple(bounds), axis)
    return _parts(x, bounds, axis)


def _parts(x: Any, bounds: Sequence, axis: int) -> list[Any]:
    return [
        lax.slice_in_dim(x, lo, largest(lo, hi), axis=axis)
        for lo, hi in zip(bounds[:-1], bounds[1:])
    ]


# Parts of one program stay cut along an axis that is; slices by themselves are whole.
_parts_as_program = jit(_parts, static_argnums=(1, 2))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of `ary` along `axis`, a list.

    ary: an array of any dtype. indices_or_sections: a number of equal parts (ValueError where they
    are not; see `array_split`), or the positions to cut at. IndexError for an axis out of range.

    >>> jnp.split(jnp.arange(5), [1, 4])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32), Array([4], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of `ary` along `axis`, a list; the first ones may be longer by one.

    ary: an array of any dtype. indices_or_sections: a number of parts, or the positions to cut at.
    IndexError for an axis out of range.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 0: `split` there.

    indices_or_sections: a number of equal parts, or the positions to cut at. IndexError for an axis
    out of range.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 1, of vectors along axis 0.

    indices_or_sections: a number of equal parts, or the positions to cut at. ValueError for axes
    that are not there. IndexError for an axis out of range.

    >>> jnp.hsplit(jnp.array([[1, 2, 3]]), [1])
    [Array([[1]], dtype=int32), Array([[2, 3]], dtype=int32)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if ndim(ary) == 1 else 1, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 2: `split` there.

    indices_or_sections: a number of equal parts, or the positions to cut at. IndexError for an axis
    out of range.

    >>> [part.shape for part in jnp.dsplit(jnp.zeros((2, 2, 6)), 2)]
    [(2, 2, 3), (2, 2, 3)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)
