"""Shapes and layouts: reshape, transpose, join, split, repeat, pad, roll."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numjet.api.sharding import laid_out
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes, structural
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import another
from numjet.core.trace import Tracer, concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import minimum, remainder
from numjet.numpy.fast import eager
from numjet.numpy.indexing import getitem
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    canonical_shape,
    cast,
    join_shapes,
    not_an_array,
    one_array,
    promote_dtypes,
    refuse,
)


# ------------------------------------------------------------------ questions
def shape(a: Any) -> tuple[int, ...]:
    """The shape of `a`, a tuple of Python integers.

    a: anything with a shape, or what NumPy takes for an array.

    >>> jnp.shape(jnp.zeros((2, 3))), jnp.shape(5.0)
    ((2, 3), ())
    """
    if hasattr(a, "shape"):
        return tuple(a.shape)
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes of `a`, a Python integer.

    a: anything with a shape, or what NumPy takes for an array.

    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return a.ndim if hasattr(a, "ndim") else len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of `a`, or the length of `axis`; a Python integer.

    a: anything with a shape, or what NumPy takes for an array. axis: an integer, or a tuple whose
    lengths are multiplied. AxisError for an axis that is not there.

    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), 1)
    (6, 3)
    """
    own = shape(a)
    if axis is None:
        return math.prod(own)
    return math.prod([own[i] for i in canonical_axes(axis, len(own), "size")])


# ------------------------------------------------------------------ reshape
def reshape(
    a: Any,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Any:
    """The elements of `a` in another shape.

    a: an array of any dtype. shape: an integer or a tuple, with as many elements; one length may be
    -1 and follows from the others. order: in which elements are read and written: 'C' row by row,
    'F' column by column. copy: has no effect. out_sharding: the layout of the result. Always a new
    Array, which may share memory; but what NumPy's own reshape gives, and raises, for a NumPy
    array, as in JAX: under a transformation too it is a value. TypeError for a shape of another
    size, ConcretizationTypeError for a traced one, NotImplementedError for other orders.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(reshape(a, shape, order), out_sharding)
    if isinstance(a, np.ndarray | np.generic):
        return a.reshape(shape, order=order)  # type: ignore[call-overload]
    x = one_array("reshape", a)
    if order == "C" and type(x) is ArrayImpl and type(shape) in (int, tuple) and eager():
        try:
            value = x._value.reshape(shape)
        except (ValueError, TypeError):
            pass  # the complete way below says what is wrong
        else:
            # Versions of NumPy take any negative size for one that follows.
            if shape >= -1 if type(shape) is int else value.shape == shape or -1 in shape:
                return ArrayImpl(value, ShapedArray(value.shape, x.aval.dtype, x.aval.weak_type))
    new = _new_shape(x.aval, shape)
    if order == "C":
        return _reshape(x, new)
    if order == "F":
        turned = lax.transpose(x, tuple(range(x.aval.ndim))[::-1])
        return lax.transpose(_reshape(turned, new[::-1]), tuple(range(len(new)))[::-1])
    raise NotImplementedError(f"reshape: order={order!r} is not supported. Use 'C' or 'F'.")


def _reshape(x: Any, new: tuple[int, ...]) -> Any:
    if x.aval.shape == new:
        return another(x)
    if type(x) is ArrayImpl and eager():
        return ArrayImpl(x._value.reshape(new), ShapedArray(new, x.aval.dtype, x.aval.weak_type))
    return lax.reshape(x, new)


def _new_shape(aval: ShapedArray, new: Any) -> tuple[int, ...]:
    if type(new) is int:
        new = (new,)
    elif isinstance(new, (Array, np.ndarray, np.generic)) or not isinstance(new, Sequence):
        new = (new,) if not getattr(new, "ndim", False) else tuple(np.asarray(new).tolist())
    sizes = []
    for n in new:
        if type(n) is not int:
            if isinstance(n, Tracer) and n.concrete() is None:
                raise n._need_concrete(
                    ConcretizationTypeError,
                    "reshape: shapes must be 1D sequences of concrete integers",
                    "Take sizes from x.shape, or make the argument static.",
                )
            n = operator.index(n)
        sizes.append(n)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise TypeError(f"reshape: only one size can be -1, got {tuple(sizes)}.")
    if unknown:
        rest = math.prod([n for n in sizes if n != -1])
        if not rest or aval.size % rest:
            raise TypeError(
                f"reshape: cannot reshape array of shape {aval.shape} (size "
                f"{aval.size}) into shape {tuple(sizes)}: {aval.size} is not a "
                f"multiple of {rest}. The sizes must multiply to the array's size."
            )
        sizes[unknown[0]] = aval.size // rest
    if math.prod(sizes) != aval.size or any(n < 0 for n in sizes):
        raise TypeError(
            f"reshape: cannot reshape array of shape {aval.shape} (size {aval.size}) "
            f"into shape {tuple(sizes)} (size {math.prod(sizes)}). The sizes must "
            "multiply to the array's size; -1 stands for one that follows."
        )
    return tuple(sizes)


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements of `a` in one dimension.

    a: an array of any dtype. order: 'C' (or 'K') row by row, 'F' column by column;
    NotImplementedError for others. out_sharding: the layout of the result.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    a = one_array("ravel", a)
    order = "C" if order == "K" else order
    return reshape(a, (-1,) if a.aval.size else (0,), order, out_sharding=out_sharding)


def squeeze(a: Any, axis: Any = None) -> Any:
    """`a` without axes of length 1.

    a: an array of any dtype. axis: an integer or a tuple, which to leave out; by default all of
    length 1. ValueError for an axis of another length.

    >>> jnp.squeeze(jnp.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = one_array("squeeze", a)
    own = x.aval.shape
    if axis is None:
        axes: tuple[int, ...] = tuple([i for i, n in enumerate(own) if n == 1])
    else:
        axes = canonical_axes(axis, len(own), "squeeze")
        if any(own[i] != 1 for i in axes):
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not "
                f"equal to one, got shape={own} and axes={axes}."
            )
    return lax.squeeze(x, axes) if axes else x


def expand_dims(a: Any, axis: Any) -> Any:
    """`a` with new axes of length 1.

    a: an array of any dtype. axis: an integer or a tuple, the positions of the new axes in the
    result. AxisError where they are out of range, ValueError for one that comes twice.

    >>> jnp.expand_dims(jnp.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = one_array("expand_dims", a)
    if (
        type(x) is ArrayImpl
        and type(axis) is int
        and eager()
        and -x.aval.ndim - 1 <= axis <= (x.aval.ndim)
    ):
        value = np.expand_dims(x._value, axis)
        return ArrayImpl(value, ShapedArray(value.shape, x.aval.dtype, x.aval.weak_type))
    if isinstance(axis, Iterable) and not isinstance(axis, (str, Array, np.ndarray)):
        axis = tuple(axis)
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = canonical_axes(axis, x.aval.ndim + count, "expand_dims")
    return lax.expand_dims(x, axes) if axes else x


def atleast_1d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least one axis.

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    out = [_reshape(x, (1,)) if not x.aval.ndim else x for x in as_arrays("atleast_1d", *arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least two axes, new ones in front.

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    out = [
        _reshape(x, (1,) * (2 - x.aval.ndim) + x.aval.shape) if x.aval.ndim < 2 else x
        for x in as_arrays("atleast_2d", *arys)
    ]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least three axes: vectors become (1, n, 1), matrices (m, n,
    1).

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """
    out = []
    for x in as_arrays("atleast_3d", *arys):
        own = x.aval.shape
        new = {0: (1, 1, 1), 1: (1, *own, 1), 2: (*own, 1)}.get(len(own), own)
        out.append(_reshape(x, new))
    return out[0] if len(out) == 1 else out


# ------------------------------------------------------------------ axes
def transpose(a: Any, axes: Any = None) -> Any:
    """`a` with its axes in another order.

    a: an array of any dtype. axes: for each axis of the result that of `a`; reversed by default.
    TypeError unless each is named once.

    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = one_array("transpose", a)
    if axes is None:
        order = tuple(range(x.aval.ndim))[::-1]
    else:
        order = tuple([canonical_axis(i, x.aval.ndim, "transpose") for i in axes])
        if sorted(order) != list(range(x.aval.ndim)):
            raise TypeError(
                f"transpose: axes {tuple(axes)} must name each of the {x.aval.ndim} "
                f"axes of shape {x.aval.shape} once."
            )
    return structural.transpose(x, order)


def permute_dims(a: Any, /, axes: Any) -> Any:
    """`transpose` under the array API's name, with `axes` always given.

    a: an array of any dtype. axes: for each axis of the result that of `a`.

    >>> jnp.permute_dims(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """x with the last two axes exchanged, not conjugated.

    x: (..., m, n) of any dtype. Returns (..., n, m). ValueError for fewer than two axes.

    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = one_array("matrix_transpose", x)
    if x.aval.ndim < 2:
        raise ValueError(f"matrix_transpose: needs at least two dimensions, got {x.aval.shape}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """`a` with the axes `axis1` and `axis2` exchanged.

    a: an array of any dtype. AxisError for axes that are not there.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = one_array("swapaxes", a)
    i, j = (canonical_axis(k, x.aval.ndim, "swapaxes") for k in (axis1, axis2))
    order = list(range(x.aval.ndim))
    order[i], order[j] = order[j], order[i]
    return structural.transpose(x, tuple(order))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`a` with the axes `source` moved to `destination`; the others keep their order.

    a: an array of any dtype. source, destination: integers, or tuples of one length (ValueError).

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = one_array("moveaxis", a)
    n = x.aval.ndim
    sources = canonical_axes(source, n, "moveaxis")
    destinations = canonical_axes(destination, n, "moveaxis")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis: source {source} and destination {destination} must have the "
            "same number of axes."
        )
    order = [i for i in range(n) if i not in sources]
    for to, from_ in sorted(zip(destinations, sources)):
        order.insert(to, from_)
    return structural.transpose(x, tuple(order))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`a` with `axis` moved to before the axis `start`. `moveaxis` is easier to read.

    a: an array of any dtype. start: in [-ndim, ndim] (ValueError).

    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = one_array("rollaxis", a)
    n = x.aval.ndim
    axis = canonical_axis(axis, n, "rollaxis")
    if not -n <= start <= n:
        raise ValueError(f"rollaxis: start={start} must be in [{-n}, {n}].")
    start = start + n if start < 0 else start
    return moveaxis(x, axis, start - 1 if start > axis else start)


def flip(m: Any, axis: Any = None) -> Any:
    """`m` in reverse order along `axis`.

    m: an array of any dtype. axis: an integer, a tuple of them, or None for all.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = one_array("flip", m)
    return lax.rev(x, canonical_axes(axis, x.aval.ndim, "flip"))


def fliplr(m: Any) -> Any:
    """`m` in reverse order along axis 1: its columns.

    m: an array of two or more axes (AxisError).

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """`m` in reverse order along axis 0: its rows.

    m: an array of one or more axes (AxisError).

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """`m` turned by `k` times 90 degrees in the plane of two axes, from the first of `axes` to the
    second.

    m: an array of two or more axes. k: a Python integer; negative ones turn back.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = one_array("rot90", m)
    first, second = canonical_axes(axes, x.aval.ndim, "rot90")
    k = k % 4
    if k == 0:
        return x
    if k == 2:
        return flip(flip(x, first), second)
    if k == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


# ------------------------------------------------------------------ broadcasting
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """`array` repeated to `shape`.

    array: an array of any dtype, each of whose lengths is 1 or that of `shape`, from the last axis
    on (ValueError). out_sharding: the layout of the result. The derivative adds up over what was
    repeated.

    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = one_array("broadcast_to", array)
    wanted = canonical_shape(shape, "broadcast_to")
    own = x.aval.shape
    if len(own) > len(wanted) or any(n not in (1, m) for n, m in zip(own[::-1], wanted[::-1])):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {own} and requested shape "
            f"{wanted}. broadcast_to: sizes must be equal or 1, from the last axis."
        )
    out = broadcast(x, wanted)
    return out if out_sharding is None else laid_out(out, out_sharding)


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """The arrays `args`, each repeated to their common shape; a tuple.

    Their dtypes stay. ValueError for shapes that do not broadcast.

    >>> x, y = jnp.broadcast_arrays(jnp.zeros((3, 1)), jnp.arange(2))
    >>> x.shape, y.shape
    ((3, 2), (3, 2))
    """
    arrays = as_arrays("broadcast_arrays", *args)
    common = broadcast_shapes(*[x.aval.shape for x in arrays])
    return tuple([broadcast(x, common) for x in arrays])


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of the given `shapes` broadcast to.

    shapes: tuples or integers. ValueError for ones that do not fit.

    >>> jnp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return join_shapes("broadcast_shapes", [canonical_shape(s) for s in shapes], ValueError)


# ------------------------------------------------------------------ joining
def _sequence(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, (Array, np.ndarray)):
        if not arrays.ndim:
            raise ValueError(f"{name}: needs a sequence of arrays, got one without dimensions.")
        return as_arrays(name, *list(arrays))
    if not isinstance(arrays, Sequence) or isinstance(arrays, str):
        raise TypeError(
            f"{name}: needs a sequence of arrays, got {arrays!r} of type {type(arrays).__name__}."
        )
    if not len(arrays):
        raise ValueError(f"{name}: needs at least one array to join.")
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
            "concatenate: zero-dimensional arrays cannot be concatenated. Use stack, "
            "or give them an axis with x[None]."
        )
    rank = parts[0].aval.ndim
    axis = canonical_axis(axis, rank, "concatenate")
    for i, x in enumerate(parts):
        if x.aval.ndim != rank or any(
            n != m for k, (n, m) in enumerate(zip(x.aval.shape, parts[0].aval.shape)) if k != axis
        ):
            raise TypeError(
                "concatenate: shapes must be equal except along the joined axis "
                f"{axis}, got {parts[0].aval.shape} and {x.aval.shape} (argument {i}). "
                "Join along another axis, or reshape or pad first."
            )
    parts = promote_dtypes(*parts)
    if dtype is not None:
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
                f"stack: all arrays must have the same shape, got {first} and "
                f"{x.aval.shape} (argument {i})."
            )
    widened = first[:axis] + (1,) + first[axis:]
    return concatenate([_reshape(x, widened) for x in parts], axis, dtype)


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
    return tuple([lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.aval.shape[axis])])


def _joined(a: Any, rank: int, lead: int, axis: int, dtype: Any) -> Any:
    """The arrays that `a` consists of, joined along `axis`: each reshaped to `rank` dimensions
    first, `lead` of them before its own."""
    a = as_arrays("concatenate", a)[0]
    shape = a.aval.shape[1:]
    shape = (1,) * lead + shape if len(shape) < rank else shape
    shape = shape + (1,) * (rank - len(shape))
    n = a.aval.shape[0]
    a = moveaxis(_reshape(a, (n, *shape)), 0, axis)
    a = _reshape(a, (*shape[:axis], n * shape[axis], *shape[axis + 1 :]))
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
        parts.append(_reshape(x, (x.aval.size, 1)) if x.aval.ndim < 2 else x)
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

    def depth(x: Any) -> int:
        return 1 + (depth(x[0]) if x else 0) if isinstance(x, list) else 0

    levels = depth(arrays)
    rank = max(levels, _max_rank(arrays))

    def join(x: Any, level: int) -> Any:
        if isinstance(x, list):
            if not x:
                raise ValueError("block: lists must not be empty.")
            return concatenate([join(v, level + 1) for v in x], rank - levels + level)
        if isinstance(x, tuple):
            raise TypeError("block: tuples are not allowed, use lists.")
        x = one_array("block", x)
        return _reshape(x, (1,) * (rank - x.aval.ndim) + x.aval.shape)

    return join(arrays, 0)


def _max_rank(x: Any) -> int:
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
        else concatenate([ravel(arr), ravel(values)])
    )


# ------------------------------------------------------------------ splitting
def _split(name: str, ary: Any, sections: Any, axis: int, exact: bool) -> list[Any]:
    x = one_array(name, ary)
    axis = canonical_axis(axis, x.aval.ndim, name)
    n = x.aval.shape[axis]
    if isinstance(sections, (list, tuple)) or getattr(sections, "ndim", False):
        cuts = [
            int(c)
            for c in (
                np.asarray(sections).tolist()
                if not isinstance(sections, (list, tuple))
                else sections
            )
        ]
        bounds = [0] + [slice(None, c).indices(n)[1] for c in cuts] + [n]
    else:
        parts = operator.index(sections)
        if parts <= 0:
            raise ValueError(f"{name}: the number of sections must be positive, got {parts}.")
        if n % parts and exact:
            raise ValueError(
                f"{name}: array split does not result in an equal division: axis "
                f"{axis} of size {n} into {parts} parts. Use array_split."
            )
        small, larger = n // parts, n % parts
        sizes = [small + 1] * larger + [small] * (parts - larger)
        bounds = [0, *np.cumsum(sizes).tolist()]
    return [
        lax.slice_in_dim(x, lo, max(lo, hi), axis=axis) for lo, hi in zip(bounds[:-1], bounds[1:])
    ]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of `ary` along `axis`, a list.

    ary: an array of any dtype. indices_or_sections: a number of equal parts (ValueError where they
    are not; see `array_split`), or the positions to cut at.

    >>> jnp.split(jnp.arange(5), [1, 4])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32), Array([4], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of `ary` along `axis`, a list; the first ones may be longer by one.

    ary: an array of any dtype. indices_or_sections: a number of parts, or the positions to cut at.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 0: `split` there.

    indices_or_sections: a number of equal parts, or the positions to cut at.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 1, of vectors along axis 0.

    indices_or_sections: a number of equal parts, or the positions to cut at.

    >>> jnp.hsplit(jnp.array([[1, 2, 3]]), [1])
    [Array([[1]], dtype=int32), Array([[2, 3]], dtype=int32)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if ndim(ary) == 1 else 1, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """The parts of `ary` along axis 2: `split` there.

    indices_or_sections: a number of equal parts, or the positions to cut at.

    >>> [part.shape for part in jnp.dsplit(jnp.zeros((2, 2, 6)), 2)]
    [(2, 2, 3), (2, 2, 3)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)


# ------------------------------------------------------------------ repetition
def tile(A: Any, reps: Any) -> Any:
    """`A` laid side by side `reps` times along each axis.

    A: an array of any dtype. reps: an integer or a tuple; the shorter of it and A's shape gets ones
    in front.

    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = one_array("tile", A)
    reps = canonical_shape(reps, "tile")
    rank = max(len(reps), x.aval.ndim)
    reps = (1,) * (rank - len(reps)) + reps
    own = (1,) * (rank - x.aval.ndim) + x.aval.shape
    if all(r == 1 for r in reps):
        return _reshape(x, own)
    wide = tuple([n for r, m in zip(reps, own) for n in (r, m)])
    kept = tuple(range(1, 2 * rank, 2))
    return _reshape(
        lax.broadcast_in_dim(_reshape(x, own), wide, kept),
        tuple([r * n for r, n in zip(reps, own)]),
    )


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Each element of `a` repeated along `axis`.

    a: an array of any dtype. repeats: an integer, or one for each element of the axis (ValueError).
    axis: an integer, or None for the flattened array. total_repeat_length: the result's length,
    needed where `repeats` is traced (ConcretizationTypeError); longer ones are cut, the last
    element fills up shorter ones. out_sharding: the layout of the result. TypeError for lists.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    if out_sharding is not None:
        out = repeat(a, repeats, axis, total_repeat_length=total_repeat_length)
        return laid_out(out, out_sharding)
    x = one_array("repeat", a)
    if isinstance(repeats, (list, tuple)):
        raise TypeError(not_an_array("repeat", repeats, 1))
    if axis is None:
        x, axis = ravel(x), 0
    if not x.aval.ndim:
        x = _reshape(x, (1,))
    axis = canonical_axis(axis, x.aval.ndim, "repeat")
    n = x.aval.shape[axis]
    known = np.asarray(repeats) if isinstance(repeats, (list, tuple)) else concrete_or_none(repeats)
    if known is not None and total_repeat_length is None:
        counts = np.asarray(known)
        if counts.dtype.kind not in "iub":
            raise TypeError(f"repeat: repeats must be integers, got dtype {counts.dtype}.")
        if counts.size == 1:
            return _repeat_each(x, int(counts.reshape(())), axis)
        if counts.shape != (n,):
            raise ValueError(
                f"repeat: repeats of shape {counts.shape} must have one entry for "
                f"each of the {n} elements of axis {axis}."
            )
        indices = np.repeat(np.arange(n, dtype=np.int32), counts)
        return _rows(x, ArrayImpl(indices, ShapedArray(indices.shape, dtypes.int32)), axis)
    if total_repeat_length is None:
        repeats._need_concrete(
            ConcretizationTypeError,
            "repeat: the result's size depends on `repeats`",
            "Give total_repeat_length.",
        )
    counts = broadcast(cast(one_array("repeat", repeats), dtypes.int32), (n,))
    length = operator.index(total_repeat_length)  # type: ignore[arg-type]
    ends = lax.cumsum(counts)
    position = lax.iota(dtypes.int32, length)
    shape2 = (length, n)
    before = lax.le(
        lax.broadcast_in_dim(ends, shape2, (1,)), lax.broadcast_in_dim(position, shape2, (0,))
    )
    index = minimum(structural.reduce_sum(cast(before, dtypes.int32), (1,)), max(n - 1, 0))
    return _rows(x, index, axis)


def _rows(x: Any, index: Any, axis: int) -> Any:
    return getitem(x, (slice(None),) * axis + (index,))


def _repeat_each(x: Any, count: int, axis: int) -> Any:
    own = x.aval.shape
    wide = own[: axis + 1] + (count,) + own[axis + 1 :]
    kept = tuple([i for i in range(len(wide)) if i != axis + 1])
    return _reshape(
        lax.broadcast_in_dim(x, wide, kept), own[:axis] + (own[axis] * count,) + own[axis + 1 :]
    )


def resize(a: Any, new_shape: Any) -> Any:
    """The elements of `a`, row by row, repeated or cut to `new_shape`.

    a: an array of any dtype; an empty one gives zeros. new_shape: an integer or a tuple.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    new = canonical_shape(new_shape, "resize")
    flat = ravel(a)
    total, n = math.prod(new), flat.aval.size
    if not n or not total:
        return lax.full(new, 0, flat.aval.dtype)
    return _reshape(lax.slice_in_dim(tile(flat, -(-total // n)), 0, total, axis=0), new)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`a` shifted along axes; what leaves at one end enters at the other.

    a: an array of any dtype. shift: an integer, also a traced one, or one for each axis. axis: an
    integer, a tuple of them, or None for the flattened array. ValueError for numbers of shifts and
    axes that differ.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = one_array("roll", a)
    if axis is None:
        return _reshape(roll(ravel(x), shift, 0), x.aval.shape)
    axes = canonical_axes_repeated(axis, x.aval.ndim, "roll")
    shifts = (
        list(shift)
        if isinstance(shift, (list, tuple)) or getattr(shift, "ndim", False)
        else [shift]
    )
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: shift {shift} and axis {axis} must have one entry for each other.")
    for amount, i in zip(shifts, axes):
        n = x.aval.shape[i]
        if not n:
            continue
        if isinstance(amount, Tracer):
            start = remainder(lax.neg(cast(amount, dtypes.int32)), n)
            x = lax.dynamic_slice_in_dim(lax.concatenate([x, x], i), start, n, i)
            continue
        k = int(amount) % n
        if k:
            x = lax.concatenate(
                [lax.slice_in_dim(x, n - k, n, axis=i), lax.slice_in_dim(x, 0, n - k, axis=i)], i
            )
    return x


def canonical_axes_repeated(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Axes counted from the front; one may come more than once."""
    if isinstance(axis, (Array, np.ndarray)) and axis.ndim:
        axis = np.asarray(axis).tolist()
    axes = axis if isinstance(axis, (list, tuple)) else (axis,)
    return tuple([canonical_axis(i, ndim, name) for i in axes])


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`filt` without the zeros at its ends.

    filt: an array, whose values must be known (ConcretizationTypeError while tracing). trim: 'f'
    for the front, 'b' for the back, 'fb' for both. axis: an integer, a tuple, or None for all.

    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = one_array("trim_zeros", filt)
    known = concrete_or_none(x)
    if known is None:
        x._need_concrete(
            ConcretizationTypeError,
            "trim_zeros: the result's size depends on the values",
            "Call it outside of transformations.",
        )
    value = np.asarray(known)
    out = x
    for i in canonical_axes(axis, value.ndim, "trim_zeros"):
        others = tuple([k for k in range(value.ndim) if k != i])
        used = np.flatnonzero((value != 0).any(axis=others))
        lo = int(used[0]) if "f" in trim.lower() and used.size else 0
        hi = int(used[-1]) + 1 if "b" in trim.lower() and used.size else value.shape[i]
        if not used.size:
            lo = hi = 0
        out = lax.slice_in_dim(out, lo, hi, axis=i)
    return cast(out, x.aval.dtype)
