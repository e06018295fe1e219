"""Index grids, diagonals and triangles: meshgrid, indices, ix_, mgrid, r_, diag, tril_indices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, as_call, in_place, wanted
from numjet.base import config
from numjet.base.errors import ConcretizationTypeError
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import any_symbolic, index_of, is_symbolic, largest, smallest
from numjet.core.trace import Tracer, concrete_or_none
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array, ones, placed
from numjet.numpy.elementwise import (
    add,
    clip,
    constant,
    floor_divide,
    multiply,
    remainder,
    subtract,
)
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate, stack
from numjet.numpy.logic import where
from numjet.numpy.positions import nonzero
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    canonical_axis,
    canonical_dtype,
    canonical_shape,
    cast,
    int_dtype,
    one_array,
    promote_dtypes,
    promoted,
    refuse,
    strong,
)
from numjet.numpy.ranges import arange, linspace, tri
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import moveaxis, ravel, reshape, shape as shape_of


def _of(value: np.ndarray, dtype: Any = None) -> ArrayImpl:
    value = np.asarray(value).astype(dtype or int_dtype())
    return ArrayImpl(value, ShapedArray(value.shape, value.dtype))


# ------------------------------------------------------------------ diagonals
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis of the result.

    a: an array of two or more axes (ValueError). offset: 0 for the main diagonal, positive above,
    negative below; a Python integer. axis1, axis2: rows and columns. A new array, never a view.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]), offset=1)
    Array([2], dtype=int32)
    """
    x = one_array("diagonal", a)
    if x.aval.ndim < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got {x.aval}.")
    shown = FLAG.uses and wanted()
    if shown and x.aval.ndim == 2 and (axis1, axis2) in ((0, 1), (-2, -1)):
        return as_call("diagonal", x, offset)
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    n, m = x.aval.shape[-2:]
    offset = index_of(offset)
    count = largest(0, smallest(n + min(offset, 0), m - max(offset, 0)))
    if is_symbolic(count) or shown:  # arrays of indices would be operands of calls
        found = lax.iota(dtypes.int32, count)
        return getitem(x, (..., found - min(offset, 0), found + max(offset, 0)))
    rows = np.arange(count)
    if count and not offset and n == m:     # as in JAX, where this diagonal is a product by a mask
        x = strong(x)
    return getitem(
        x, (..., _of(rows - min(offset, 0), np.int32), _of(rows + max(offset, 0), np.int32))
    )


def diag(v: Any, k: int = 0) -> Any:
    """The matrix with `v` on its diagonal `k`, zeros elsewhere; of a matrix its diagonal `k`.

    v: a vector or a matrix (ValueError for others). k: 0 for the main diagonal, positive above,
    negative below; a Python integer.

    >>> jnp.diag(jnp.array([1, 2])), jnp.diag(jnp.array([[1, 2], [3, 4]]))
    (Array([[1, 0],
           [0, 2]], dtype=int32), Array([1, 4], dtype=int32))
    """
    if FLAG.uses and wanted():
        return as_call("_diag", v, k)
    x = one_array("diag", v)
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got {x.aval}.")
    return cast(diagflat(x, k), x.aval.dtype, x.aval.weak_type)


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the elements of `v` on its diagonal `k`, zeros elsewhere.

    v: an array of any shape, flattened. k: 0 for the main diagonal, positive above, negative below.

    >>> jnp.diagflat(jnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    x = ravel(v)
    k = index_of(k)
    n = x.aval.size
    size = n + abs(k)
    x = strong(x)
    zero = lax.full((), 0, x.aval.dtype)
    rows = lax.broadcasted_iota(dtypes.int32, (size, size), 0)
    columns = lax.broadcasted_iota(dtypes.int32, (size, size), 1)
    on = lax.eq(add(rows, k), columns)
    # Row i holds element i (shifted down for k < 0); elsewhere zeros.
    padded = lax.pad(x, zero, [(max(-k, 0), max(k, 0), 0)])
    return where(on, lax.broadcast_in_dim(padded, (size, size), (0,)), constant(0, x))


def strided_diagonal(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    """`diagonal` by a slice whose stride is a row and an element: its elements alone are read."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    *lead, n, m = x.aval.shape
    count = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    if not count:
        return lax.full((*lead, 0), 0, x.aval.dtype)
    start = max(offset, 0) - min(offset, 0) * m
    stop = start + (count - 1) * (m + 1) + 1
    flat = reshape(x, (*lead, n * m))
    return lax.slice_in_dim(flat, start, stop, m + 1, len(lead))


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum of the diagonal of two axes.

    a: an array of two or more axes (ValueError). offset: 0 for the main diagonal, positive above,
    negative below; may be traced. axis1, axis2: rows and columns, two (ValueError). dtype: what is
    added up and returned, by default as in `sum`. `out` raises NotImplementedError.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse("trace", out=out)
    x = one_array("trace", a)
    if x.aval.ndim < 2:
        raise ValueError(
            f"axis {x.aval.ndim} is out of bounds for array of dimension {x.aval.ndim}: trace "
            f"requires an array of at least two dimensions, got {x.aval}."
        )
    axes = [canonical_axis(axis, x.aval.ndim, "trace") for axis in (axis1, axis2)]
    if axes[0] == axes[1]:
        raise ValueError(f"trace: axis1 and axis2 can not be same, got {axis1} and {axis2}.")
    dtype = None if dtype is None else canonical_dtype(dtype, "trace")
    if FLAG.uses and wanted() and (*axes, x.aval.ndim) == (0, 1, 2):
        return as_call("trace", x, offset, dtype=dtype)
    if type(offset) is int and not any_symbolic(x.aval.shape):
        return sum_(strided_diagonal(x, offset, axis1, axis2), -1, dtype)
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    shape = x.aval.shape
    n = x.aval.ndim
    rows = lax.broadcasted_iota(dtypes.int32, shape, n - 2)
    columns = lax.broadcasted_iota(dtypes.int32, shape, n - 1)
    on = lax.eq(add(rows, offset), columns)
    kept = where(on, x, lax.full((), 0, x.aval.dtype))
    return sum_(kept, (-2, -1), dtype)


# ------------------------------------------------------------------ indices of regions
def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The positions of the diagonal of an array of `ndim` axes of length n: a tuple to index with.

    n, ndim: integers, not negative (ValueError).

    >>> jnp.zeros((2, 2)).at[jnp.diag_indices(2)].set(1)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    n, ndim = index_of(n), index_of(ndim)
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}.")
    made = is_symbolic(n) or FLAG.uses and wanted()
    return (arange(n) if made else _of(np.arange(n)),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """`diag_indices` for the shape of `arr`.

    arr: an array of two or more axes of one length (ValueError).

    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = arr.aval.shape if isinstance(arr, Array) else shape_of(arr)
    if len(shape) < 2:
        raise ValueError("diag_indices_from: input array must be at least 2-d.")
    if len(set(shape)) > 1:
        raise ValueError(
            f"diag_indices_from: all dimensions of input must be of equal length, got {shape}."
        )
    return diag_indices(shape[0], len(shape))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """(rows, columns) of the lower triangle of an n x m array.

    n, m: integers, m by default n. Result: two vectors of the default integer. k: the highest
    diagonal that belongs to it, 0 the main one.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    if any_symbolic((n, m)):
        m = n if m is None else m
        return nonzero(tri(n, m, k), size=_below(n, k, m))
    rows, columns = np.tril_indices(n, k, m)
    if FLAG.uses and wanted():
        return nonzero(as_call("tril", ones((n, n if m is None else m)), k), size=len(rows))
    return _of(rows), _of(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """(rows, columns) of the upper triangle of an n x m array.

    n, m: integers, m by default n. Result: two vectors of the default integer. k: the lowest
    diagonal that belongs to it, 0 the main one.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    if any_symbolic((n, m)):
        m = n if m is None else m
        return nonzero(lax.bitwise_not(tri(n, m, k - 1, np.bool_)), size=_below(m, -k, n))
    rows, columns = np.triu_indices(n, k, m)
    if FLAG.uses and wanted():
        return nonzero(as_call("triu", ones((n, n if m is None else m)), k), size=len(rows))
    return _of(rows), _of(columns)


def _below(n: Any, k: int, m: Any) -> Any:
    """How many elements of an n x m array are on the diagonal k or below it."""
    if k > 0:
        return n * m - _below(m, -1 - k, n)  # those above it are such of the transposed array
    rows = largest(n + k, 0)
    short = smallest(rows, m)  # of 1 to `short` elements; the other rows are full
    return short * (short + 1) // 2 + (rows - short) * m


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape if hasattr(arr, "shape") else one_array(name, arr).aval.shape)
    if len(shape) != 2:
        raise ValueError(f"{name}: the input array must be 2-d, got shape {shape}.")
    return shape  # type: ignore[return-value]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """`tril_indices` for the shape of the matrix `arr`.

    arr: an array of two axes (ValueError). k: the highest diagonal that belongs to it.

    >>> jnp.tril_indices_from(jnp.zeros((2, 3)), k=-1)
    (Array([1], dtype=int32), Array([0], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """`triu_indices` for the shape of the matrix `arr`.

    arr: an array of two axes (ValueError). k: the lowest diagonal that belongs to it.

    >>> jnp.triu_indices_from(jnp.zeros((2, 3)), k=1)
    (Array([0, 0, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def mask_indices(
    n: int,
    mask_func: Callable,
    k: int = 0,
    *,
    size: int | None = None,
) -> tuple[Any, Any]:
    """(rows, columns) where `mask_func` leaves something of an n x n matrix.

    n: an integer. mask_func: called as mask_func(ones((n, n)), k), such as `tril`. size: how many
    positions to give, needed where the mask is traced.

    >>> jnp.mask_indices(2, jnp.tril)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    found = nonzero(mask_func(lax.full((n, n), 1, int_dtype()), k), size=size)
    return found[0], found[1]


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Positions in a flattened array as one array of positions for each axis.

    indices: integers of any shape; negative ones count from the end. shape: that of the array, its
    sizes numbers, traced ones too, or one array of them (ValueError where that has several axes).
    What is outside is moved to the nearest end (NumPy raises ValueError). TypeError for complex
    numbers.

    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    index = one_array("unravel_index", indices)
    weak = index.aval.weak_type
    if isinstance(shape, Array) and (shape.ndim or isinstance(shape, Tracer)) or (
        isinstance(shape, tuple | list) and any([isinstance(n, Tracer) for n in shape])
    ):
        return _unraveled(index, shape)
    sizes = canonical_shape(shape, "unravel_index")
    if any_symbolic(sizes):
        return tuple([cast(x, index.aval.dtype, weak) for x in _unraveled(index, sizes)])
    if FLAG.uses and wanted() and not weak and all(sizes):
        return in_place("of unravel_index", index, sizes)
    total = int(np.prod(sizes)) if sizes else 1
    index = where(lax.lt(index, lax.full((), 0, index.aval.dtype)), add(index, total), index)
    index = lax.clamp(
        lax.full((), 0, index.aval.dtype), index, lax.full((), max(total - 1, 0), index.aval.dtype)
    )
    out = []
    for n in sizes[::-1]:
        size = broadcast(lax.full((), max(n, 1), index.aval.dtype), index.aval.shape)
        out.append(lax.rem(index, size))
        index = floor_divide(index, size)
    return tuple([cast(x, x.aval.dtype, weak) for x in out[::-1]])


def _unraveled(index: Any, shape: Any) -> tuple[Any, ...]:
    """`unravel_index` of sizes that are arrays, whose dtypes join the index's."""
    if isinstance(shape, Array):
        if shape.ndim > 1:
            raise ValueError(
                "unravel_index: shape should be a scalar or 1D sequence, got an array of shape "
                f"{shape.shape}."
            )
        shape = list(shape) if shape.ndim else [shape]
    sizes = as_arrays("unravel_index", *shape)
    total = functools.reduce(multiply, sizes)
    index = clip(where(index < 0, add(index, total), index), 0, subtract(total, 1))
    out = []
    for n in sizes[::-1]:
        out.append(remainder(index, n))
        index = floor_divide(index, n)
    return tuple(out[::-1])


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Any:
    """One array of positions for each axis as positions in the flattened array.

    multi_index: as many arrays of integers (ValueError) as `dims` has lengths (ValueError). mode:
    what is out of bounds: 'raise' (ValueError; needs known values, TypeError while tracing),
    'clip', 'wrap', or 'ignore' (they are taken as they are). order: 'C' row by row, 'F' column by
    column. dtype: of the result, by default that to which they promote.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
    Array([1, 5], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise ValueError(
            f"ravel_multi_index: {len(multi_index)} index arrays for {len(dims)} axes."
        )
    dims = canonical_shape(dims, "ravel_multi_index")
    parts = as_arrays("ravel_multi_index", *multi_index)
    common = promoted(*parts)[0] if parts else int_dtype()
    for part, n in zip(parts, dims):
        if not dtypes.is_integer(part.aval.dtype):
            raise ValueError(
                f"ravel_multi_index: only int indices permitted, got {part.aval.dtype}."
            )
        if mode == "raise":
            known = concrete_or_none(part)
            if known is None:
                part._need_concrete(
                    ConcretizationTypeError,
                    "The error occurred because ravel_multi_index was jit-compiled with "
                    "mode='raise'. Use mode='wrap' or mode='clip' instead. It asks the indices",
                    "",
                )
            if known._value.size and (known._value.min() < 0 or known._value.max() >= n):
                raise ValueError("ravel_multi_index: invalid entry in coordinates array.")
    if mode == "clip":
        parts = [clip(p, 0, n - 1) for p, n in zip(parts, dims)]
    elif mode == "wrap":
        wrap = functools.partial(as_call, "remainder") if FLAG.uses and wanted() else _wrapped
        parts = [wrap(p, n) for p, n in zip(parts, dims)]
    elif mode not in ("raise", "ignore"):
        raise ValueError(f"ravel_multi_index: invalid mode={mode!r}.")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}.")
    if dtype is not None:
        common = canonical_dtype(dtype, "ravel_multi_index")
    out = cast(as_array(0), common)
    for i, part in enumerate(parts):
        stride = math.prod(dims[i + 1 :] if order == "C" else dims[:i])
        out = add(out, multiply(cast(part, common), stride))
    return out


def _wrapped(x: Any, n: int) -> Any:
    size = broadcast(lax.full((), n, x.aval.dtype), x.aval.shape)
    rest = lax.rem(x, size)
    return where(lax.lt(rest, lax.full((), 0, rest.aval.dtype)), add(rest, n), rest)


# ------------------------------------------------------------------ grids
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    """The coordinates of a grid: for each of the vectors `xi` an array that varies along its axis.

    indexing: 'xy' has the first vector along axis 1 and the second along axis 0, 'ij' in their
    order (ValueError for others). sparse: axes of length 1 instead of repetition. copy: must be
    True, as arrays are immutable (ValueError). Returns a tuple. ValueError for arguments with more
    than one axis.

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([5, 6, 7]), sparse=True)
    (Array([[1, 2]], dtype=int32), Array([[5],
           [6],
           [7]], dtype=int32))
    """
    if not copy:
        raise ValueError("meshgrid: copy=False is not supported, arrays are immutable.")
    if indexing not in ("xy", "ij"):
        raise ValueError(
            "meshgrid: valid values for indexing are 'xy' and 'ij', got "
            f"{indexing!r}."
        )
    vectors = as_arrays("meshgrid", *xi)
    if any(v.aval.ndim != 1 for v in vectors):
        raise ValueError(
            f"meshgrid: Arguments must be 1D, got shapes {[v.aval.shape for v in vectors]}."
        )
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) >= 2:
        order[0], order[1] = 1, 0
    shape = [0] * len(vectors)
    for v, axis in zip(vectors, order):
        shape[axis] = v.aval.shape[0]
    out = {}
    for axis, v in sorted(zip(order, vectors), key=lambda pair: pair[0]):
        own = tuple([n if i == axis else 1 for i, n in enumerate(shape)])
        out[axis] = reshape(v, own) if sparse else lax.broadcast_in_dim(v, tuple(shape), (axis,))
    return tuple([out[axis] for axis in order])


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The positions along each axis of an array of the shape `dimensions`.

    dimensions: a tuple of integers. dtype: by default the default integer. Returns
    [len(dimensions), *dimensions]; with `sparse` a tuple of arrays with axes of length 1.

    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    dimensions = canonical_shape(tuple(dimensions), "indices")
    wanted = int_dtype() if dtype is None else canonical_dtype(dtype, "indices")
    out = []
    for i, n in enumerate(dimensions):
        line = placed(lax.iota(wanted, n), None)
        if sparse:
            out.append(reshape(line, tuple([n if k == i else 1 for k in range(len(dimensions))])))
        else:
            out.append(lax.broadcast_in_dim(line, dimensions, (i,)))
    if sparse:
        return tuple(out)
    return stack(out) if out else array([], dtype=wanted)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors shaped so that they index the grid of their combinations.

    args: vectors of integers, no lists (TypeError) and no booleans (NotImplementedError). Result: a
    tuple of arrays, each with its vector along an axis of its own. ValueError for other ranks.

    >>> jnp.arange(6).reshape(2, 3)[jnp.ix_(jnp.array([1]), jnp.array([0, 2]))]
    Array([[3, 5]], dtype=int32)
    """
    out = []
    for i, x in enumerate(as_arrays("ix_", *args)):
        if x.aval.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got {x.aval}.")
        if x.aval.dtype == dtypes.bool_:
            raise NotImplementedError("ix_ of booleans is not implemented. Use jnp.nonzero(x)[0].")
        if not x.aval.size:
            x = cast(x, int_dtype())
        out.append(reshape(x, tuple([x.aval.shape[0] if k == i else 1 for k in range(len(args))])))
    return tuple(out)


def _known_bounds(key: slice, name: str) -> tuple[Any, Any, Any]:
    """Start, stop and step of a slice, whose values give the length of a result."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    for part, value in (("start", start), ("stop", key.stop), ("step", step)):
        if isinstance(value, Tracer) and value.concrete() is None:
            value._need_concrete(
                ConcretizationTypeError,
                f"It is the slice {part} of jnp.{name}, by which the result's size is decided",
                "Write numbers there.",
            )
    return start, key.stop, step


class _Grid:
    """Base of mgrid and ogrid."""

    name = "mgrid"
    sparse = False

    def __getitem__(self, key: Any) -> Any:
        single = isinstance(key, slice)
        keys = (key,) if single else key
        lines = []
        for k in keys:
            start, stop, step = _known_bounds(k, self.name)
            if isinstance(step, complex):
                lines.append(linspace(start, stop, int(abs(step))))
            else:
                lines.append(arange(start, stop, step))
        if single:
            return lines[0]
        if not lines:
            return [] if self.sparse else array([], dtype=int_dtype())
        # Integers and fractions are mixed by their nature: no promotion that somebody forgot.
        with config.numpy_dtype_promotion("standard"):
            lines = promote_dtypes(*lines)
        grids = meshgrid(*lines, indexing="ij", sparse=self.sparse)
        return list(grids) if self.sparse else stack(grids)


class _Mgrid(_Grid):
    """`mgrid[a:b, c:d]`: the coordinates of a grid, one array for each slice, stacked.

    A step that is imaginary, such as 5j, is a number of values, and the end is one of them.

    >>> jnp.mgrid[0:2, 1:3][1]
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """


class _Ogrid(_Grid):
    """`ogrid[a:b, c:d]`: the coordinates of a grid, with axes of length 1 instead of repetition.

    A step that is imaginary, such as 5j, is a number of values, and the end is one of them.

    >>> jnp.ogrid[0:2, 1:3]
    [Array([[0],
           [1]], dtype=int32), Array([[1, 2]], dtype=int32)]
    """

    name = "ogrid"
    sparse = True


mgrid, ogrid = _Mgrid(), _Ogrid()


class _AxisConcatenator:
    """Base of r_ and c_: joins slices, scalars and arrays written as an index."""

    name = "r_"
    axis, least, place = 0, 1, -1

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        axis, least, place = self.axis, self.least, self.place
        matrix = None
        if keys and isinstance(keys[0], str):
            directive, keys = keys[0], keys[1:]
            if directive in ("r", "c"):
                matrix, directive = directive, f"{axis}"
            try:
                numbers = [int(v) for v in directive.split(",")]
            except ValueError:
                raise ValueError(
                    f"could not understand directive {directive!r}. Write the axis, the least rank "
                    "and the place of new axes, as in '0,2,1', or 'r' or 'c' for a matrix."
                ) from None
            axis = numbers[0]
            least = numbers[1] if len(numbers) > 1 else least
            place = numbers[2] if len(numbers) > 2 else place
        if not keys:
            raise IndexError("nothing to join. Give at least one slice, number or array.")
        parts = []
        for k in keys:
            if isinstance(k, str):
                raise ValueError(
                    f"string directive must be placed at the beginning, got {k!r} behind others."
                )
            if isinstance(k, slice):
                start, stop, step = _known_bounds(k, self.name)
                x = (
                    linspace(start, stop, int(abs(step)))
                    if isinstance(step, complex)
                    else arange(start, stop, step)
                )
                parts.append(self._widen(x, least, place))
            else:
                x = array(k)
                parts.append(self._widen(reshape(x, (1,)) if not x.aval.ndim else x, least, place))
        out = concatenate(parts, axis)
        if matrix is not None and out.aval.ndim == 1:
            out = reshape(out, (1, -1) if matrix == "r" else (-1, 1))
        return out

    @staticmethod
    def _widen(x: Any, least: int, place: int) -> Any:
        missing = least - x.aval.ndim
        if missing <= 0:
            return x
        own = x.aval.ndim
        at = place if place >= 0 else least - own + place + 1
        shape = [1] * least
        shape[at : at + own] = list(x.aval.shape)
        return reshape(x, tuple(shape))


class RClass(_AxisConcatenator):
    """`r_[1:3, 0, x]`: slices, numbers and arrays joined along the first axis.

    Text first in the brackets, such as '0,2', gives the axis, the least rank and where new axes go,
    as in NumPy; 'r' makes a row of a vector, 'c' a column. Other text, and text behind others,
    raises ValueError, nothing IndexError.

    >>> jnp.r_[1:3, 0, jnp.array([7, 8])]
    Array([1, 2, 0, 7, 8], dtype=int32)
    """


class CClass(_AxisConcatenator):
    """`c_[x, y]`: slices, numbers and arrays joined as columns.

    >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """

    name = "c_"
    axis, least, place = -1, 2, 0


r_, c_ = RClass(), CClass()
s_, index_exp = np.s_, np.index_exp
