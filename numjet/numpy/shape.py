"""The shape of one array: what it is, and the same elements under another one.

Questions (shape, ndim, size), reshape, ravel, the order and direction of axes, broadcasting.
Every module of `numjet.numpy` may call it, those below `joining` and `repetition` in particular,
which build on it; `reshaped` takes an array and a complete shape, without checks. What would break
it: an import of a module that joins or repeats arrays, since those import this one.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, wanted
from numjet.api.placement.reshard import laid_out
from numjet.base.errors import InconclusiveDimensionOperation
from numjet.core import structural
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr, any_symbolic, size_of
from numjet.core.evaluate import another
from numjet.core.structural import may_equal
from numjet.numpy import lax_names as lax
from numjet.numpy.fast import eager
from numjet.numpy.promote import (
    apart,
    as_arrays,
    broadcast,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    join_shapes,
    one_array,
)
from numjet.transforms.again import as_one
from numjet.transforms.eager import LinearTracer


# ------------------------------------------------------------------ questions
def shape(a: Any) -> tuple[int, ...]:
    """The shape of `a`, a tuple of Python integers.

    a: anything with a shape, or a number; lists are taken with a DeprecationWarning.

    >>> jnp.shape(jnp.zeros((2, 3))), jnp.shape(5.0)
    ((2, 3), ())
    """
    return _shape_of("shape", a)


def _shape_of(name: str, a: Any) -> tuple[int, ...]:
    if hasattr(a, "shape"):
        return tuple(a.shape)
    if hasattr(a, "__jax_array__") and type(a) is not DimExpr:
        return one_array(name, a).aval.shape
    if isinstance(a, (list, tuple)) or hasattr(a, "__array__"):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)}. Make an array of it.",
            DeprecationWarning,
            stacklevel=3,
        )
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes of `a`, a Python integer.

    a: anything with a shape, or a number; lists are taken with a DeprecationWarning.

    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return a.ndim if hasattr(a, "ndim") else len(_shape_of("ndim", a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of `a`, or the length of `axis`; a Python integer.

    a: anything with a shape, or a number; lists are taken with a DeprecationWarning. axis: an
    integer, or a tuple whose lengths are multiplied. ValueError for an axis that is not there.

    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), 1)
    (6, 3)
    """
    own = _shape_of("size", a)
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

    a: an array of any dtype. shape: an integer or several, with as many elements; one length may
    be -1 and follows from the others. order: in which elements are read and written: 'C' row by
    row, 'F' column by column. copy: has no effect. out_sharding: the layout of the result. Always
    a new Array, which may share memory; but what NumPy's own reshape gives, and raises, for a NumPy
    array, as in JAX: under a transformation too it is a value. TypeError for a shape of another
    size, ConcretizationTypeError for a traced one, NotImplementedError for other orders.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(functools.partial(reshape, a, shape, order), out_sharding)
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
    if type(x) is LinearTracer:
        linear = as_one(_complete_reshape, (x, shape, order))
        if linear is not None:
            return linear
    return _complete_reshape(x, shape, order)


def _complete_reshape(x: Any, shape: Any, order: str) -> Any:
    new = _new_shape(x.aval, shape)
    if order == "C":
        return reshaped(x, new)
    if order == "F":
        turned = lax.transpose(x, tuple(range(x.aval.ndim))[::-1])
        return lax.transpose(reshaped(turned, new[::-1]), tuple(range(len(new)))[::-1])
    if order != "A":
        raise ValueError(f"reshape: unexpected value for order: {order!r}. Use 'C' or 'F'.")
    raise NotImplementedError("reshape: order='A' is not supported. Use 'C' or 'F'.")


def reshaped(x: Any, new: tuple[int, ...]) -> Any:
    """The array x in a shape of as many elements."""
    if x.aval.shape == new:
        return another(x)
    if type(x) is ArrayImpl and eager():
        return ArrayImpl(x._value.reshape(new), ShapedArray(new, x.aval.dtype, x.aval.weak_type))
    return lax.reshape(x, new)


def _new_shape(aval: ShapedArray, new: Any) -> tuple[int, ...]:
    if type(new) is int:
        new = (new,)
    elif isinstance(new, (Array, np.ndarray, np.generic)) or not isinstance(new, Sequence):
        ndim = getattr(new, "ndim", None)
        if ndim is None and isinstance(new, Iterable):
            new = tuple(new)
        else:
            new = tuple(np.asarray(new).tolist()) if ndim else (new,)
    sizes = []
    for n in new:
        if type(n) is not int:
            if not hasattr(n, "__index__") and type(n) is not DimExpr:
                raise TypeError(
                    "Shapes must be 1D sequences of concrete values of integer type, got "
                    f"{n!r} for reshape."
                )
            n = size_of(n)
        sizes.append(n)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise TypeError(
            "reshape: can only specify one unknown axis size with a `-1` value, got "
            f"{tuple(sizes)}."
        )
    if unknown:
        rest = math.prod([n for n in sizes if n != -1])
        if type(rest) is DimExpr or type(aval.size) is DimExpr:
            if aval.size % rest != 0:
                raise InconclusiveDimensionOperation(
                    f"Cannot divide evenly the sizes of shapes {aval.shape} and {tuple(sizes)}. "
                    f"The remainder {aval.size % rest} should be 0; give a constraint or sizes "
                    "that make it so."
                )
        elif not rest or aval.size % rest:
            raise TypeError(
                f"reshape: cannot reshape array of shape {aval.shape} (size "
                f"{aval.size}) into shape {tuple(sizes)}: {aval.size} is not a "
                f"multiple of {rest}. The sizes must multiply to the array's size."
            )
        sizes[unknown[0]] = aval.size // rest
    if not may_equal(math.prod(sizes), aval.size) or any(n < 0 for n in sizes):
        raise TypeError(
            f"reshape: cannot reshape array of shape {aval.shape} (size {aval.size}) "
            f"into shape {tuple(sizes)} (size {math.prod(sizes)}). The sizes must "
            "multiply to the array's size; -1 stands for one that follows."
        )
    return tuple(sizes)


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements of `a` in one dimension.

    a: an array of any dtype. order: 'C' row by row, 'F' column by column; NotImplementedError for
    'K', ValueError for others. out_sharding: the layout of the result.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    a = one_array("ravel", apart(a))
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not there. Use 'C' or 'F'.")
    return reshape(a, (-1,) if a.aval.size else (0,), order, out_sharding=out_sharding)


def squeeze(a: Any, axis: Any = None) -> Any:
    """`a` without axes of length 1.

    a: an array of any dtype. axis: an integer or a tuple, which to leave out; by default all of
    length 1. ValueError for an axis of another length.

    >>> jnp.squeeze(jnp.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = one_array("squeeze", apart(a))
    own = x.aval.shape
    if axis is None:
        if any_symbolic(own):
            raise ValueError(
                "jnp.squeeze with axis=None is not supported with shape polymorphism: the shape is "
                f"{own}. Name the axes."
            )
        axes: tuple[int, ...] = tuple([i for i, n in enumerate(own) if n == 1])
    else:
        axes = canonical_axes(axis, len(own), "squeeze")
        if any(own[i] != 1 for i in axes):
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not "
                f"equal to one, got shape={own} and axes={axes}."
            )
    return lax.squeeze(x, axes) if axes else another(x)


def expand_dims(a: Any, axis: Any) -> Any:
    """`a` with new axes of length 1.

    a: an array of any dtype. axis: an integer or a tuple, the positions of the new axes in the
    result. ValueError where they are out of range and for one that comes twice.

    >>> jnp.expand_dims(jnp.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = one_array("expand_dims", apart(a))
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
    if axis is None:
        raise TypeError("expand_dims: an axis must be an integer or several, got None.")
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = canonical_axes(axis, x.aval.ndim + count, "expand_dims")
    return lax.expand_dims(x, axes) if axes else x


def atleast_1d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least one axis.

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    if FLAG.uses and wanted():
        return as_call("atleast_1d", *arys)
    arrays = as_arrays("atleast_1d", *map(apart, arys))
    out = [reshaped(x, (1,)) if not x.aval.ndim else x for x in arrays]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least two axes, new ones in front.

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    if FLAG.uses and wanted():
        return as_call("atleast_2d", *arys)
    out = [
        reshaped(x, (1,) * (2 - x.aval.ndim) + x.aval.shape) if x.aval.ndim < 2 else x
        for x in as_arrays("atleast_2d", *map(apart, arys))
    ]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: Any) -> Any:
    """Each of the arrays `arys` with at least three axes: vectors become (1, n, 1), matrices (m, n,
    1).

    Returns an Array for one argument, a list for several (NumPy gives a tuple).

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """
    if FLAG.uses and wanted():
        return as_call("atleast_3d", *arys)
    out = []
    for x in as_arrays("atleast_3d", *map(apart, arys)):
        own = x.aval.shape
        new = {0: (1, 1, 1), 1: (1, *own, 1), 2: (*own, 1)}.get(len(own), own)
        out.append(reshaped(x, new))
    return out[0] if len(out) == 1 else out


# ------------------------------------------------------------------ axes
def transpose(a: Any, axes: Any = None) -> Any:
    """`a` with its axes in another order.

    a: an array of any dtype. axes: for each axis of the result that of `a`; reversed by default.
    TypeError unless each is named once. ValueError for axes that are not there.

    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = one_array("transpose", apart(a))
    if type(x) is LinearTracer:
        linear = as_one(_complete_transpose, (x, axes))
        if linear is not None:
            return linear
    return _complete_transpose(x, axes)


def _complete_transpose(x: Any, axes: Any) -> Any:
    if axes is None:
        order = tuple(range(x.aval.ndim))[::-1]
    else:
        order = tuple([canonical_axis(i, x.aval.ndim, "transpose") for i in axes])
        if sorted(order) != list(range(x.aval.ndim)):
            raise TypeError(
                "transpose permutation isn't a permutation of operand dimensions, got permutation "
                f"{tuple(axes)} for operand shape {x.aval.shape}. It must name each axis once."
            )
    if type(x) is ArrayImpl and len(order) > 1 and order != tuple(range(len(order))) and eager():
        value = x._value.transpose(order)
        return ArrayImpl(value, ShapedArray(value.shape, x.aval.dtype, x.aval.weak_type))
    return structural.transpose(x, order)


def permute_dims(a: Any, /, axes: Any) -> Any:
    """`transpose` under the array API's name, with `axes` always given.

    a: an array of any dtype. axes: for each axis of the result that of `a`. ValueError for axes
    that are not there.

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
    x = one_array("matrix_transpose", apart(x))
    if x.aval.ndim < 2:
        raise ValueError(f"matrix_transpose: needs at least two dimensions, got {x.aval.shape}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """`a` with the axes `axis1` and `axis2` exchanged.

    a: an array of any dtype. IndexError for axes that are not there.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = one_array("swapaxes", apart(a))
    i, j = (canonical_axis(k, x.aval.ndim, "swapaxes", IndexError) for k in (axis1, axis2))
    order = list(range(x.aval.ndim))
    order[i], order[j] = order[j], order[i]
    return structural.transpose(x, tuple(order))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`a` with the axes `source` moved to `destination`; the others keep their order.

    a: an array of any dtype. source, destination: integers, or tuples of one length (ValueError),
    without an axis twice (TypeError).

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = one_array("moveaxis", apart(a))
    n = x.aval.ndim
    sources = canonical_axes(source, n, "moveaxis", twice=TypeError)
    destinations = canonical_axes(destination, n, "moveaxis", twice=TypeError)
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
    x = one_array("rollaxis", apart(a))
    n = x.aval.ndim
    axis = canonical_axis(axis, n, "rollaxis")
    if not -n <= start <= n:
        raise ValueError(f"rollaxis: start={start} must be in [{-n}, {n}].")
    start = start + n if start < 0 else start
    return moveaxis(x, axis, start - 1 if start > axis else start)


def flip(m: Any, axis: Any = None) -> Any:
    """`m` in reverse order along `axis`.

    m: an array of any dtype. axis: an integer, a tuple of them, or None for all. ValueError for an
    axis out of range.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = one_array("flip", apart(m))
    return lax.rev(x, canonical_axes(axis, x.aval.ndim, "flip", twice=TypeError))


def fliplr(m: Any) -> Any:
    """`m` in reverse order along axis 1: its columns.

    m: an array of two or more axes (ValueError).

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """`m` in reverse order along axis 0: its rows.

    m: an array of one or more axes (ValueError).

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """`m` turned by `k` times 90 degrees in the plane of two axes, from the first of `axes` to the
    second.

    m: an array of two or more axes. k: a Python integer; negative ones turn back. ValueError for
    axes that are not there.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    if FLAG.uses and wanted():
        return as_call("rot90", m, k, axes=tuple(axes))
    x = one_array("rot90", apart(m))
    if x.aval.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument "
            f"of shape {x.aval.shape}. Give it a matrix, or use flip."
        )
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
    x = one_array("broadcast_to", apart(array))
    own = x.aval.shape
    if isinstance(shape, tuple) and any([
        type(n) is int and n < 0 and m != 1 for n, m in zip(shape[::-1], own[::-1])
    ]):  # fmt: skip
        raise ValueError(f"Incompatible types for broadcasting: shapes {own} and {shape}.")
    wanted = canonical_shape(shape, "broadcast_to")
    if len(own) > len(wanted) or any(n not in (1, m) for n, m in zip(own[::-1], wanted[::-1])):
        raise ValueError(
            f"Incompatible types for broadcasting: input type={x.aval.str_short()} and requested "
            f"type={x.aval.update(shape=wanted).str_short()}. "
            + ("Cannot broadcast to shape with fewer dimensions" if len(own) > len(wanted) else
               "Incompatible shapes for broadcasting")
            + f": {own} to {wanted}. Sizes must be equal or 1, from the last axis."
        )
    if out_sharding is not None:
        return laid_out(functools.partial(broadcast, x, wanted), out_sharding, anew=True)
    return broadcast(x, wanted)


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """The arrays `args`, each repeated to their common shape; a tuple.

    Their dtypes stay. ValueError for shapes that do not broadcast.

    >>> x, y = jnp.broadcast_arrays(jnp.zeros((3, 1)), jnp.arange(2))
    >>> x.shape, y.shape
    ((3, 2), (3, 2))
    """
    arrays = as_arrays("broadcast_arrays", *map(apart, args))
    common = broadcast_shapes(*[x.aval.shape for x in arrays])
    return tuple([broadcast(x, common) for x in arrays])


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of the given `shapes` broadcast to.

    shapes: tuples or integers. ValueError for ones that do not fit.

    >>> jnp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return join_shapes("broadcast_shapes", [canonical_shape(s) for s in shapes], ValueError)
