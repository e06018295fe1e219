"""Selecting by arrays of positions: take, take_along_axis, choose, select, piecewise; and writes
like put, place and fill_diagonal that return new arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.compiled.jit import jit
from numjet.api.compiled.shown import FLAG, wanted
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr, is_symbolic, smallest
from numjet.core.evaluate import LARGE
from numjet.core.trace import Tracer, concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array
from numjet.numpy.cumulative import cumsum
from numjet.numpy.elementwise import add, clip, remainder, subtract
from numjet.numpy.indexing import get, getitem, normalized
from numjet.numpy.joining import stack
from numjet.numpy.logic import as_bool, equal, less, where
from numjet.numpy.positions import compress as compress
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    cast,
    int_dtype,
    join_shapes,
    not_an_array,
    one_array,
    promote_dtypes,
    refuse,
    strong,
)
from numjet.numpy.shape import ravel, reshape
from numjet.numpy.sorting import argsort
from numjet.ops.slicing import index_dtype

_LIST = (list, tuple)


def _positions(name: str, indices: Any) -> Any:
    if isinstance(indices, _LIST):
        indices = array(indices)
    index = one_array(name, indices)
    if not dtypes.is_integer(index.aval.dtype) and index.aval.dtype != dtypes.bool_:
        raise (ValueError if name == "take" else TypeError)(
            f"{name} requires integer indices: {name} indices must be of integer type, got "
            f"{index.aval.dtype}. Convert them with .astype(int)."
        )
    return cast(index, dtypes.int32) if index.aval.dtype == dtypes.bool_ else index


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: Any = None,
    mode: Any = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The slices of `a` at `indices` along `axis`.

    indices: integers of any shape, which takes the axis's place; negative ones count from the end.
    axis: an integer, or None for the flattened array. mode: what is out of bounds: 'fill' (the
    default) gives `fill_value`, by default NaN, the smallest signed or the largest unsigned
    integer, or True; 'clip' the element at that end; 'wrap' counts on from the other end; 'raise'
    is not supported (NotImplementedError). unique_indices, indices_are_sorted: promises. TypeError
    for a list and other dtypes; `out` raises NotImplementedError. ValueError for an axis out of
    range and for indices that are no integers. IndexError where an axis without elements is asked
    for some.

    >>> jnp.take(jnp.array([[1, 2], [3, 4], [5, 6]]), jnp.array([2, 0]), axis=0)
    Array([[5, 6],
           [1, 2]], dtype=int32)
    """
    refuse("take", out=out)
    x = one_array("take", a)
    if isinstance(indices, (list, tuple)):
        raise TypeError(not_an_array("take", indices, 1))
    index = _positions("take", indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "take")
    n = x.aval.shape[axis]
    if n == 0 and index.aval.size:
        raise IndexError("take: cannot do a non-empty jnp.take from an axis without elements.")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode='raise' is not supported: values are not known while "
            "tracing. Use 'fill' or 'clip'."
        )
    known = concrete_or_none(index) if mode is None and fill_value is None else None
    known = None if known is not None and known.aval.size >= LARGE else known  # a program asks
    inside = known is not None and type(n) is not DimExpr and (
        not known.aval.size or (known._value.min() >= -n and known._value.max() < n)
    )
    if mode == "wrap":
        if index.aval.dtype != dtypes.uint64:  # whose values int64 may not have
            index = cast(index, int_dtype())
        index, mode = remainder(index, n), "clip"
    elif mode == "clip":
        index = where(less(index, 0), 0, index)
    elif mode is None:
        mode = None if inside else "fill"
    where_ = (slice(None),) * axis + (index,)
    return get(
        x,
        where_,
        mode=mode,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """The elements of `arr` at `indices` along `axis`: each row is indexed by its own positions.

    arr, indices: of one rank (ValueError), broadcast on the other axes; indices are integers,
    negative ones count from the end unless `wrap_negative_indices` is False. axis: an integer, or
    None for the flattened array. mode: what is out of bounds: 'fill' (the default) gives
    `fill_value`, by default as in `take`; 'clip' the element at that end, 'one_hot' zero. Of an
    axis without elements zeros are read. Undoes `argsort`: the sorted array is that at its
    positions.

    >>> x = jnp.array([[3, 1, 2], [9, 8, 7]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [7, 8, 9]], dtype=int32)
    """
    x, index = one_array("take_along_axis", arr), _positions("take_along_axis", indices)
    if axis is None:
        if index.aval.ndim != 1:
            raise ValueError("take_along_axis: with axis=None the indices must have one dimension.")
        x, axis = ravel(x), 0
    rank = x.aval.ndim
    if index.aval.ndim != rank:
        raise ValueError(
            "take_along_axis: indices and arr must have the same number of "
            f"dimensions: {index.aval.ndim} vs. {rank}."
        )
    axis = canonical_axis(axis, rank, "take_along_axis")
    n = x.aval.shape[axis]
    lead_x = x.aval.shape[:axis] + (1,) + x.aval.shape[axis + 1 :]
    lead_i = index.aval.shape[:axis] + (1,) + index.aval.shape[axis + 1 :]
    lead = join_shapes("take_along_axis", [lead_x, lead_i], ValueError)
    x = broadcast(x, lead[:axis] + (n,) + lead[axis + 1 :])
    index = broadcast(index, lead[:axis] + (index.aval.shape[axis],) + lead[axis + 1 :])
    if not n or not index.aval.size:
        return lax.full(index.aval.shape, 0, x.aval.dtype)
    if mode is not None and lax.GatherScatterMode.from_any(mode) is lax.GatherScatterMode.ONE_HOT:
        mode, fill_value = "fill", 0
    wrap = True if wrap_negative_indices is None else wrap_negative_indices
    if mode == "promise_in_bounds" and wrap_negative_indices is None:
        wrap = False
    index = normalized(index, n, wrap)
    # Each of the other axes is a batch axis that both share.
    batch = tuple([i for i in range(rank) if i != axis])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return lax.gather(
        x,
        reshape(index, (*index.aval.shape, 1)),
        numbers,
        (1,) * rank,
        mode="fill" if mode is None else mode,
        fill_value=fill_value,
    )


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Any:
    """`arr` with `values` at `indices` along `axis`: the counterpart of `take_along_axis`.

    arr: an array of any dtype, which the result has. indices: integers of its rank; values:
    broadcast to them. axis: an integer, or None for the flattened array. mode: as in
    `x.at[...].set`. Arrays are immutable: give inplace=False (ValueError) and use the result. NumPy
    changes `arr` and has neither `inplace` nor `mode`.

    >>> jnp.put_along_axis(jnp.zeros((2, 3)), jnp.array([[0], [2]]), 5.0, axis=1, inplace=False)
    Array([[5., 0., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    _not_in_place("put_along_axis", inplace)
    x, index = one_array("put_along_axis", arr), _positions("put_along_axis", indices)
    shape = x.aval.shape
    if axis is None:
        x, axis = ravel(x), 0
    if x.aval.ndim != index.aval.ndim:
        raise ValueError(
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={x.aval.ndim} and indices.ndim={index.aval.ndim}."
        )
    axis = canonical_axis(axis, x.aval.ndim, "put_along_axis")
    lead = join_shapes(
        "put_along_axis",
        [
            x.aval.shape[:axis] + (1,) + x.aval.shape[axis + 1 :],
            index.aval.shape[:axis] + (1,) + index.aval.shape[axis + 1 :],
        ],
        ValueError,
    )
    index = broadcast(index, lead[:axis] + (index.aval.shape[axis],) + lead[axis + 1 :])
    dtype = index_dtype(*index.aval.shape)
    where_ = [lax.broadcasted_iota(dtype, index.aval.shape, i) for i in range(x.aval.ndim)]
    where_[axis] = index
    return reshape(x.at[tuple(where_)].set(values, mode=mode), shape)


def _not_in_place(name: str, inplace: bool, error: type[Exception] = ValueError) -> None:
    if inplace:
        raise error(
            f"{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass "
            f"inplace=False and use the result."
        )


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """`a` with the values `v` at the positions `ind` of the flattened array.

    a: an array of any dtype, which the result has. ind: integers; v: repeated where it is shorter.
    mode: what is out of bounds: None and 'clip' take the nearest position (with 'clip' that of
    negative ones is the first), 'wrap' goes around. Arrays are immutable: give inplace=False
    (ValueError) and use the result. TypeError for a list as ind. NumPy changes `a` and has no
    `inplace`.

    >>> jnp.put(jnp.zeros((2, 2)), jnp.array([0, 3]), jnp.array([1.0, 2.0]), inplace=False)
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    _not_in_place("put", inplace)
    x = one_array("put", a)
    if isinstance(ind, (list, tuple)):
        raise TypeError(not_an_array("put", ind, 1))
    index = ravel(_positions("put", ind))
    values = ravel(array(v))
    if not index.aval.size or not values.aval.size:
        return x
    n = index.aval.size
    values = _resized(values, n)
    if mode == "wrap":
        index = remainder(index, x.aval.size)
    elif mode == "clip":
        index = where(less(index, 0), 0, index)
    elif mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.put is not supported: use 'clip' or 'wrap'."
        )
    elif mode is not None:
        raise ValueError(f"put: mode must be None, 'clip' or 'wrap', got {mode!r}.")
    flat = ravel(x).at[index].set(values, mode="clip")
    return reshape(flat, x.aval.shape)


def _resized(values: Any, n: int) -> Any:
    size = values.aval.size
    if size >= n:
        return getitem(values, slice(None, n))
    position = np.arange(n, dtype=index_dtype(n)) % size
    return getitem(values, as_array(position))


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """`arr` with the values `vals`, one after another, where `mask` holds.

    arr: an array of any dtype, which the result has. mask: of its size (ValueError). vals: repeated
    where there are fewer, not empty (ValueError). Arrays are immutable: give inplace=False
    (ValueError) and use the result. NumPy changes `arr` and has no `inplace`.

    >>> jnp.place(jnp.arange(4), jnp.array([1, 0, 1, 1]), jnp.array([8, 9]), inplace=False)
    Array([8, 1, 9, 8], dtype=int32)
    """
    x, mask, values = as_arrays("place", arr, mask, vals)
    _not_in_place("place", inplace)
    values = ravel(values)
    if x.aval.size != mask.aval.size:
        raise ValueError(f"place: mask {mask.aval} must have the size of {x.aval}.")
    if not values.aval.size:
        if x.aval.size:
            raise ValueError("place: Cannot place values from an empty array.")
        return x
    flag = ravel(as_bool(mask))
    flags = cast(flag, index_dtype(flag.aval.size))
    rank = remainder(add(cumsum(flags), -1), values.aval.size)
    values = cast(getitem(values, rank), x.aval.dtype, x.aval.weak_type)
    out = where(flag, values, ravel(x))
    return reshape(out, x.aval.shape)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """`a` with `val` on its diagonal.

    a: an array of two or more axes (ValueError), whose dtype the result has. val: a scalar, or a
    vector that is repeated. Arrays are immutable: give inplace=False (NotImplementedError) and use
    the result. wrap=True raises NotImplementedError. ValueError for more than two axes that differ.
    NumPy changes `a` and has no `inplace`.

    >>> jnp.fill_diagonal(jnp.zeros((2, 3)), 7.0, inplace=False)
    Array([[7., 0., 0.],
           [0., 7., 0.]], dtype=float32)
    """
    _not_in_place("fill_diagonal", inplace, NotImplementedError)
    x, value = as_arrays("fill_diagonal", a, val)
    if wrap:
        raise NotImplementedError(
            "fill_diagonal: wrap=True is not supported. Set the diagonal with "
            "x.at[rows, columns].set."
        )
    if x.aval.ndim < 2:
        raise ValueError("fill_diagonal: needs at least two dimensions.")
    if x.aval.ndim > 2 and len(set(x.aval.shape)) > 1:
        raise ValueError(
            "fill_diagonal: All dimensions of input must be of equal length, got "
            f"{x.aval.shape}."
        )
    n = smallest(*x.aval.shape) if x.aval.ndim == 2 else x.aval.shape[0]
    dtype = index_dtype(n)
    shown = FLAG.uses and wanted()
    as_iota = shown or is_symbolic(n)
    index = lax.iota(dtype, n) if as_iota else as_array(np.arange(n, dtype=dtype))
    value = value if not value.aval.ndim else getitem(_resized(ravel(value), n), slice(None))
    return x.at[(index,) * x.aval.ndim].set(value, unique_indices=not shown)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element of `a` the element at its place in the array of that number among `choices`.

    a: integers (ValueError); choices: a sequence of arrays of one dtype after promotion; all
    broadcast to one shape. mode: what is out of range: 'raise' (ValueError; needs known values,
    TypeError while tracing), 'clip' or 'wrap'. `out` raises NotImplementedError.

    >>> jnp.choose(jnp.array([1, 0, 1]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
    Array([10,  2, 30], dtype=int32)
    """
    refuse("choose", out=out)
    index = one_array("choose", a)
    if not dtypes.is_integer(index.aval.dtype):
        raise ValueError("choose: `a` array must be integer typed.")
    arrays = as_arrays("choose", *list(choices))
    n = len(arrays)
    if mode == "raise":
        known = concrete_or_none(index)
        if known is None:
            index._need_concrete(
                ConcretizationTypeError,
                "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use "
                "mode='wrap' or mode='clip' instead. It asks the indices",
                "",
            )
        if known._value.size and (known._value.min() < 0 or known._value.max() >= n):
            raise ValueError(
                f"invalid entry in choice array: choose takes entries in [0, {n})."
            )
    elif mode == "wrap":
        index = remainder(index, n)
    elif mode == "clip":
        index = lax.clamp(
            lax.full((), 0, index.aval.dtype), index, lax.full((), n - 1, index.aval.dtype)
        )
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    arrays = promote_dtypes(*arrays)
    shape = join_shapes("choose", [index.aval.shape, *[c.aval.shape for c in arrays]], ValueError)
    index = broadcast(index, shape)
    arrays = [strong(broadcast(c, shape)) for c in arrays]
    out_ = arrays[-1]
    for i in range(n - 2, -1, -1):
        out_ = where(equal(index, i), arrays[i], out_)
    return out_


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds, else `default`.

    condlist: a sequence of arrays of booleans, choicelist: as many arrays (ValueError); they
    broadcast to one shape, the choices and `default` to one dtype.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x - 10, x + 10], default=5)
    Array([-10,   5,   5,  13], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "select: condlist must have length equal to choicelist, got "
            f"{len(condlist)} and {len(choicelist)}."
        )
    if not len(condlist):
        raise ValueError("select: condlist must be non-empty.")
    out, *choices = promote_dtypes(*as_arrays("select", default, *choicelist))
    conditions = as_arrays("select", *condlist)
    shapes = {x.aval.shape for x in conditions}
    if FLAG.uses and wanted() and len(shapes) == 1:
        shape = join_shapes("select", [*shapes, *[x.aval.shape for x in (out, *choices)]])
        if shape in shapes:
            none = lax.full(shape, False, dtypes.bool_)
            first = lax.argmax(stack([none, *conditions]), 0, dtypes.int32)
            return lax.select_n(first, *[broadcast(x, shape) for x in (out, *choices)])
    for condition, choice in list(zip(conditions, choices))[::-1]:
        out = where(condition, choice, out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Functions by conditions, element by element: the value of that of the last condition that
    holds.

    x: an array, whose dtype the result has. condlist: arrays of booleans, or numbers that hold for
    all; an array is a list of its rows. funclist: as many functions, called as f(x, *args, **kw) on
    all of x, or numbers; one more (0 by default) is for the elements where none holds. ValueError
    for another number of them. TypeError for booleans.

    >>> x = jnp.array([-2.0, 0.5, 3.0])
    >>> jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, jnp.square, 0.0])
    Array([2., 0., 9.], dtype=float32)
    """
    x = one_array("piecewise", x)
    conditions = [as_bool(one_array("piecewise", c)) for c in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions = [*functions, 0]
    elif len(functions) == len(conditions) + 1:
        functions = [*functions]
    else:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(functions)} (piecewise)."
        )
    called = tuple([f if callable(f) else None for f in functions])
    numbers = [None if callable(f) else one_array("piecewise", f) for f in functions]
    try:
        hash(called)
    except TypeError:
        return _piecewise(called, x, conditions, numbers, args, kw)
    return _PIECES(called, x, conditions, numbers, args, kw)


def _piecewise(called: tuple, x: Any, conditions: list, numbers: list, args: Any, kw: Any) -> Any:
    def value(f: Any, number: Any) -> Any:
        out = number if f is None else one_array("piecewise", f(x, *args, **kw))
        return broadcast(cast(out, x.aval.dtype), x.aval.shape)

    *pieces, out = map(value, called, numbers)
    for condition, piece in zip(conditions, pieces):
        out = where(condition, piece, out)
    return out


# Functions are traced once for each kind of arguments, as they are in JAX.
_PIECES = jit(_piecewise, static_argnums=(0,))


def _integers_or_mask(name: str, obj: Any) -> np.ndarray:
    """Known positions as integers or booleans, else ValueError."""
    at = np.asarray(obj)
    if not (at.dtype == bool or np.issubdtype(at.dtype, np.integer)):
        raise ValueError(
            f"jnp.{name}(): index array must be integer typed; got {obj!r}. Positions are integers "
            "or booleans."
        )
    return at


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """`arr` with `values` put before the positions `obj` along `axis`.

    arr: an array of any dtype, which the result has. obj: an integer, an array of them (known or
    traced), booleans or a slice; positions count in `arr` and are moved inside its bounds (NumPy
    raises IndexError). values: broadcast to what is inserted. axis: an integer, or None for the
    flattened array. TypeError for a list as obj, ValueError for positions that are no integers.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, jnp.array([8, 9]))
    Array([1, 8, 9, 2, 3], dtype=int32)
    """
    x = one_array("insert", arr)
    if isinstance(obj, (list, tuple)):
        raise TypeError(not_an_array("insert", obj, 1))
    if isinstance(values, (list, tuple)):
        raise TypeError(not_an_array("insert", values, 2))
    y = array(values)
    if hasattr(obj, "__jax_array__") and type(obj) is not DimExpr:
        obj = as_array(obj)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "insert")
    n = x.aval.shape[axis]
    if isinstance(obj, Tracer) and obj.concrete() is None:
        return _insert_traced(x, obj, y, axis)
    if type(n) is DimExpr:
        if isinstance(obj, slice):
            raise NotImplementedError(f"insert: a slice of an axis of symbolic size, {n}.")
        return _insert_traced(x, as_array(obj), y, axis)
    if isinstance(obj, slice):
        at = np.arange(n)[obj]
    else:
        at = _integers_or_mask("insert", obj)
        if at.dtype == bool:
            at = np.flatnonzero(at)
    scalar = at.ndim == 0
    at = np.atleast_1d(at).astype(np.int64)
    if at.ndim != 1:
        raise ValueError("insert: obj must be an integer or have one dimension.")
    at = np.where(at < 0, at + n, at)
    at = np.clip(at, 0, n)
    y = cast(y, x.aval.dtype)
    rest = x.aval.shape[:axis] + x.aval.shape[axis + 1 :]
    if scalar:
        y = reshape(y, (1,) * (x.aval.ndim - y.aval.ndim) + y.aval.shape)
        # NumPy moves the first axis of the values to `axis` for a single position.
        y = _front_to(y, axis)
        count = y.aval.shape[axis]
        y = broadcast(y, rest[:axis] + (count,) + rest[axis:])
        at = np.repeat(at, count)
    else:
        y = broadcast(y, rest[:axis] + (len(at),) + rest[axis:])
    order = np.argsort(at, kind="stable")
    target = at.copy()
    target[order] += np.arange(len(at))
    total = n + len(at)
    old, dtype = np.setdiff1d(np.arange(total), target), index_dtype(total)
    out = lax.full(x.aval.shape[:axis] + (total,) + x.aval.shape[axis + 1 :], 0, x.aval.dtype)
    out = cast(out, x.aval.dtype, x.aval.weak_type)
    lead = (slice(None),) * axis
    out = out.at[(*lead, as_array(old.astype(dtype)))].set(x, unique_indices=True)
    return out.at[(*lead, as_array(target.astype(dtype)))].set(y, unique_indices=True)


def _insert_traced(x: Any, obj: Any, y: Any, axis: int) -> Any:
    """`insert` before positions that are not known while tracing."""
    if not dtypes.is_integer(obj.aval.dtype) or obj.aval.ndim > 1:
        raise TypeError(
            f"insert: traced positions must be integers with at most one dimension, got {obj.aval}."
        )
    n, shape = x.aval.shape[axis], x.aval.shape
    positions = index_dtype(n + obj.aval.size)
    at, y = cast(obj, positions), cast(y, x.aval.dtype)
    at = clip(where(less(at, 0), add(at, n), at), 0, n)
    if not at.aval.ndim:
        y = _front_to(reshape(y, (1,) * (x.aval.ndim - y.aval.ndim) + y.aval.shape), axis)
        at = broadcast(at, (y.aval.shape[axis],))
    count = at.aval.shape[0]
    y = broadcast(y, (*shape[:axis], count, *shape[axis + 1 :]))
    order = argsort(at)
    steps = lax.iota(positions, count)
    target = at.at[order].add(steps, unique_indices=True)
    is_new = lax.full((n + count,), 0, positions).at[target].set(1, unique_indices=True)
    # Element p of the result was number p less the new ones before it.
    source = subtract(lax.iota(positions, n + count), cumsum(is_new))
    lead = (slice(None),) * axis
    out = getitem(x, (*lead, clip(source, 0, max(n - 1, 0)))) if n else lax.full(
        y.aval.shape, 0, x.aval.dtype)  # fmt: skip
    return out.at[(*lead, target)].set(y, unique_indices=True)


def _front_to(y: Any, axis: int) -> Any:
    """The first axis moved to `axis`."""
    return lax.transpose(y, (*range(1, axis + 1), 0, *range(axis + 1, y.aval.ndim)))


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """`arr` without the positions `obj` along `axis`.

    obj: an integer, an array of them or of booleans, or a slice. axis: an integer, or None for the
    flattened array. assume_unique_indices: that traced positions do not repeat, which makes the
    result's size known; else they raise TypeError; NumPy does not have it. IndexError for known
    positions out of bounds, TypeError for a list. ValueError for floats and masks of another
    length.

    >>> jnp.delete(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
    Array([2, 4], dtype=int32)
    """
    x = one_array("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.aval.ndim, "delete")
    if isinstance(obj, (list, tuple)):
        raise TypeError(not_an_array("delete", obj, 1))
    if hasattr(obj, "__jax_array__") and type(obj) is not DimExpr:
        obj = as_array(obj)
    n = x.aval.shape[axis]
    if type(n) is DimExpr:
        if isinstance(obj, slice):
            raise NotImplementedError(f"delete: a slice of an axis of symbolic size, {n}.")
        if not isinstance(obj, Tracer):
            obj = np.unique(np.asarray(obj))
            if obj.size and obj[0] < 0 <= obj[-1]:
                raise NotImplementedError(
                    f"delete: places from both ends of an axis of symbolic size, {n}."
                )
            return _delete_traced(x, as_array(obj), axis, True)
        return _delete_traced(x, obj, axis, assume_unique_indices)
    if isinstance(obj, slice):
        gone = np.arange(n)[obj]
    elif isinstance(obj, (Array, np.ndarray)):
        known = concrete_or_none(obj)
        if known is None:
            return _delete_traced(x, obj, axis, assume_unique_indices)
        gone = _integers_or_mask("delete", known)
        if gone.dtype == bool:
            if gone.shape != (n,):
                raise ValueError(f"delete: the mask must have shape ({n},), got {gone.shape}.")
            gone = np.flatnonzero(gone)
        if gone.size == 0:
            gone = gone.astype(np.int64)
    else:
        gone = _integers_or_mask("delete", obj)
    gone = np.atleast_1d(gone).ravel()
    if gone.size and (gone.min() < -n or gone.max() >= n):
        raise (IndexError if np.ndim(obj) else ValueError)(
            f"axis {obj} is out of bounds for array of dimension {n} (delete, axis {axis})."
        )
    if isinstance(obj, int | np.integer) and FLAG.uses and wanted():
        place = int(gone[0]) % n
        cut = lambda first, last: lax.slice_in_dim(x, first, last, axis=axis)  # noqa: E731
        return lax.concatenate([cut(0, place), cut(place + 1, n)], axis)
    kept = np.delete(np.arange(n, dtype=index_dtype(n)), gone.astype(np.int64))
    index = ArrayImpl(kept, ShapedArray(kept.shape, kept.dtype))
    return getitem(x, (slice(None),) * axis + (index,))


def _delete_traced(x: Any, obj: Any, axis: int, unique_given: bool) -> Any:
    if obj.aval.dtype == dtypes.bool_:
        obj._need_concrete(
            ConcretizationTypeError,
            "delete: the result's size depends on the mask",
            "Use jnp.where, or positions whose number is known.",
        )
    if obj.aval.ndim and not unique_given:
        obj._need_concrete(
            ConcretizationTypeError,
            "delete: traced positions may repeat, so the result's size is unknown",
            "Pass assume_unique_indices=True if they do not.",
        )
    n = x.aval.shape[axis]
    gone = normalized(ravel(obj), n)
    count = n - gone.aval.size
    mask = lax.full((n,), True, dtypes.bool_).at[gone].set(False, mode="drop")
    dtype = index_dtype(n)
    place_ = where(mask, add(cumsum(cast(mask, dtype)), -1), count)
    index = lax.full((count,), 0, dtype).at[place_].set(lax.iota(dtype, n), mode="drop")
    return getitem(x, (slice(None),) * axis + (index,))
