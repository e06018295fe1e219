"""Operations on BCOO: each takes the coordinates apart, and leaves the values as they are.

Batch and dense axes become sparse ones first (`flat`), as many values as before; the rules are
then written for coordinates and values alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.core import dtypes
from numjet.core.array import Array
from numjet.experimental.sparse.bcoo import (
    BCOO,
    OPERATIONS,
    JAXSparse,
    bcoo_fromdense,
    over_batch,
    spread_batch,
)


class SparseEfficiencyError(ValueError):
    """A layout that would keep many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """The same, as a warning."""


def flat(mat: Any) -> BCOO:
    """A BCOO without batch and dense axes, of the same elements."""
    if not isinstance(mat, BCOO):
        mat = mat.to_bcoo()
    batch, dense, nse = mat.n_batch, mat.n_dense, mat.nse
    if not batch and not dense:
        return mat
    data, indices = spread_batch(mat)
    sizes = (*mat.shape[:batch], nse, *mat.shape[mat.ndim - dense :])

    def place(n: int, axis: int) -> Any:
        along = [n if a == axis else 1 for a in range(len(sizes))]
        return jnp.broadcast_to(jnp.arange(n, dtype=indices.dtype).reshape(along), sizes)

    columns = [place(mat.shape[a], a) for a in range(batch)]
    columns += [
        jnp.broadcast_to(indices[..., a].reshape(sizes[: batch + 1] + (1,) * dense), sizes)
        for a in range(mat.n_sparse)
    ]
    columns += [place(sizes[a], a) for a in range(batch + 1, len(sizes))]
    count = math.prod(sizes)
    columns = [c.reshape(count) for c in columns]
    rows = jnp.stack(columns, -1) if columns else indices.reshape(count, 0)
    return BCOO((data.reshape(count), rows), shape=mat.shape, unique_indices=mat.unique_indices)


def _made(data: Any, columns: Sequence[Any], shape: Sequence[int], inside: Any = None,
          unique: bool = False) -> BCOO:  # fmt: skip
    """A flat BCOO; rows that are not `inside` become padding."""
    if not columns:
        data = data if inside is None else jnp.where(inside, data, 0)
        return BCOO((data, jnp.zeros((data.shape[0], 0), np.int32)), shape=shape)
    if inside is not None:
        columns = [jnp.where(inside, c, n) for c, n in zip(columns, shape, strict=True)]
        data = jnp.where(inside, data, 0)
    return BCOO((data, jnp.stack(columns, -1)), shape=shape, unique_indices=unique)


def _columns(mat: BCOO) -> list:
    return [mat.indices[:, a] for a in range(mat.n_sparse)]


def _inside(mat: BCOO) -> Any:
    return jnp.all(mat.indices < np.asarray(mat.shape, mat.indices.dtype), axis=-1)


# ------------------------------------------------------------------ shapes
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The axes in the order of `permutation`.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_transpose(m, permutation=(1, 0))
    BCOO(float32[2, 2], nse=2)
    """
    order = [operator.index(a) % mat.ndim for a in permutation]
    if sorted(order) != list(range(mat.ndim)):
        raise ValueError(f"bcoo_transpose: {tuple(permutation)} is no order of {mat.ndim} axes.")
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    shape = [mat.shape[a] for a in order]
    kinds = [(a >= batch) + (a >= last) for a in order]
    if kinds != sorted(kinds):
        mat, batch, last = flat(mat), 0, mat.ndim
    data, indices = spread_batch(mat)
    sparse = [a - batch for a in order[batch:last]]
    data = data.transpose([*order[:batch], batch, *[a - last + batch + 1 for a in order[last:]]])
    indices = indices.transpose([*order[:batch], batch, batch + 1])[..., np.asarray(sparse, int)]
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def reshape(mat: BCOO, sizes: Any, dimensions: Any = None) -> BCOO:
    """`bcoo_reshape`, with a size of -1."""
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    known = math.prod([n for n in sizes if n != -1])
    sizes = tuple([mat.size // max(1, known) if n == -1 else n for n in sizes])
    return bcoo_reshape(mat, new_sizes=sizes, dimensions=dimensions)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None,
                 sharding: Any = None) -> BCOO:  # fmt: skip
    """The elements in another shape, in the order of their indices.

    mat: a BCOO. new_sizes: the shape. dimensions: an order of the axes to read them in. sharding:
    None alone.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_reshape(m, new_sizes=(4,)).todense())
    [1. 0. 0. 1.]
    """
    _no_sharding("bcoo_reshape", sharding)
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    if math.prod(new_sizes) != mat.size:
        raise TypeError(
            f"bcoo_reshape: {mat.shape} has {mat.size} elements, {tuple(new_sizes)} has not."
        )
    if tuple(new_sizes) == mat.shape:
        return mat
    m = flat(mat)
    place = _linear(m)
    strides = [math.prod(new_sizes[a + 1 :]) for a in range(len(new_sizes))]
    columns = [place // s % n for s, n in zip(strides, new_sizes, strict=True)]
    return _made(m.data, columns, new_sizes, _inside(m), m.unique_indices)


def _linear(m: BCOO) -> Any:
    """The place of each row of indices, in one number; of those out of bounds any number."""
    if m.size > np.iinfo(m.indices.dtype).max:
        raise NotImplementedError(
            f"BCOO: places in shape {m.shape} do not fit {m.indices.dtype}. Give indices of int64 "
            "(index_dtype, with enable_x64)."
        )
    total = jnp.zeros(m.nse, m.indices.dtype)
    for c, n in zip(_columns(m), m.shape, strict=True):
        total = total * n + c
    return total


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Without the axes `dimensions`, of size 1.

    arr: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_squeeze(m[:1], dimensions=(0,))
    BCOO(float32[2], nse=2)
    """
    gone = {operator.index(a) % arr.ndim for a in dimensions}
    if any(arr.shape[a] != 1 for a in gone):
        raise ValueError(f"bcoo_squeeze: axes {tuple(dimensions)} of {arr.shape} are not all 1.")
    m = flat(arr)
    kept = [a for a in range(m.ndim) if a not in gone]
    columns = _columns(m)
    return _made(m.data, [columns[a] for a in kept], [m.shape[a] for a in kept], _inside(m),
                 m.unique_indices)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCOO:  # fmt: skip
    """`lax.broadcast_in_dim`: every element once for each place of a new axis.

    mat: a BCOO. shape, broadcast_dimensions: as of `lax.broadcast_in_dim`. sharding: None alone.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=6)
    """
    _no_sharding("bcoo_broadcast_in_dim", sharding)
    m, columns, inside = flat(mat), {}, _inside(flat(mat))
    own = dict(zip(broadcast_dimensions, zip(_columns(m), m.shape, strict=True), strict=True))
    data, count = m.data, m.nse
    new = [a for a, n in enumerate(shape) if a not in own or own[a][1] != n]
    times = math.prod([shape[a] for a in new])
    repeat = lambda x: jnp.broadcast_to(x[:, None], (count, times)).reshape(count * times)
    stride = times
    for a in new:
        stride //= shape[a]
        part = jnp.arange(times, dtype=m.indices.dtype) // stride % shape[a]
        columns[a] = jnp.broadcast_to(part, (count, times)).reshape(count * times)
    for a, (column, _) in own.items():
        columns.setdefault(a, repeat(column))
    return _made(repeat(data), [columns[a] for a in range(len(shape))], shape, repeat(inside),
                 m.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The operands one behind the other along `dimension`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_concatenate([m, m], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    parts, start, axis = [], 0, operator.index(dimension) % operands[0].ndim
    total = sum(m.shape[axis] for m in operands)
    shape = [total if a == axis else n for a, n in enumerate(operands[0].shape)]
    for m in map(flat, operands):
        if [n for a, n in enumerate(m.shape) if a != axis] != shape[:axis] + shape[axis + 1 :]:
            raise ValueError(
                f"bcoo_concatenate: shapes {[m.shape for m in operands]} differ beside axis {axis}."
            )
        moved = [c + start if a == axis else c for a, c in enumerate(_columns(m))]
        parts.append(_made(m.data, moved, shape, _inside(m)))
        start += m.shape[axis]
    return _joined(parts, shape, all(m.unique_indices for m in operands))


def _joined(parts: Sequence[BCOO], shape: Sequence[int], unique: bool = False) -> BCOO:
    data = jnp.concatenate([m.data for m in parts])
    indices = jnp.concatenate([m.indices for m in parts])
    return BCOO((data, indices), shape=shape, unique_indices=unique)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:  # fmt: skip
    """`lax.slice`: the elements outside become padding.

    mat: a BCOO. start_indices, limit_indices, strides: a number for each axis.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_slice(m, start_indices=(1, 0), limit_indices=(2, 2)).todense())
    [[0. 1.]]
    """
    m, steps = flat(mat), strides or [1] * mat.ndim
    shape = [max(0, -(-(b - a) // s)) for a, b, s in zip(start_indices, limit_indices, steps,
                                                         strict=True)]
    return _picked(m, start_indices, shape, steps)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """`lax.dynamic_slice`.

    mat: a BCOO. start_indices: where the slice begins. slice_sizes: its shape.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_dynamic_slice(m, (1, 0), (1, 2)).todense()
    Array([[0., 1.]], dtype=float32)
    """
    m = flat(mat)
    starts = [jnp.clip(jnp.asarray(s), 0, n - k).astype(m.indices.dtype)
              for s, n, k in zip(start_indices, m.shape, slice_sizes, strict=True)]  # fmt: skip
    return _picked(m, starts, slice_sizes, [1] * m.ndim)


def _picked(m: BCOO, starts: Sequence[Any], shape: Sequence[int], steps: Sequence[int]) -> BCOO:
    inside, columns = _inside(m), []
    for c, start, n, step in zip(_columns(m), starts, shape, steps, strict=True):
        moved = c - start
        inside = inside & (moved >= 0) & (moved < n * step) & (moved % step == 0)
        columns.append(moved // step)
    return _made(m.data, columns, shape, inside, m.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The elements in reverse along `dimensions`.

    operand: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_rev(m, (0,)).todense()[0])
    [0. 1.]
    """
    m, turned = flat(operand), {operator.index(a) % operand.ndim for a in dimensions}
    columns = [n - 1 - c if a in turned else c
               for a, (c, n) in enumerate(zip(_columns(m), m.shape, strict=True))]  # fmt: skip
    return _made(m.data, columns, m.shape, _inside(m), m.unique_indices)


def getitem(mat: BCOO, item: Any) -> Any:
    """mat[item] for integers, slices, None and Ellipsis."""
    items = list(item) if isinstance(item, tuple) else [item]
    named = sum(i is not None and i is not Ellipsis for i in items)
    if Ellipsis in [i for i in items if i is Ellipsis]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [slice(None)] * (mat.ndim - named)
    items += [slice(None)] * (mat.ndim - sum(i is not None for i in items))
    starts, limits, strides, turned, sizes = [], [], [], [], []
    axis = 0
    for i in items:
        if i is None:
            sizes.append(1)
            continue
        n = mat.shape[axis]
        if isinstance(i, slice):
            places = range(*i.indices(n))
            low, high = (min(places), max(places) + 1) if places else (0, 0)
            if places and places.step < 0:
                turned.append(axis)
            step = abs(places.step)
            sizes.append(len(places))
        else:
            try:
                low = operator.index(i)
            except TypeError:
                raise NotImplementedError(
                    f"BCOO: an index must be an integer, a slice, None or Ellipsis, got {i!r}."
                ) from None
            if not -n <= low < n:
                raise IndexError(f"BCOO: index {low} is out of bounds for axis {axis} of size {n}.")
            low, high, step = low % n, low % n + 1, 1
        starts.append(low)
        limits.append(high)
        strides.append(step)
        axis += 1
    if axis != mat.ndim:
        raise IndexError(f"BCOO: {axis} indices for an array of {mat.ndim} axes.")
    found = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=strides)
    found = bcoo_rev(found, turned) if turned else found
    return bcoo_reshape(found, new_sizes=sizes)


# ------------------------------------------------------------------ duplicates and layouts
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same, its rows of indices in order.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_sort_indices(m.T)
    BCOO(float32[2, 2], nse=2)
    """
    def core(data: Any, indices: Any) -> tuple:
        if not mat.n_sparse:
            return data, indices
        order = jnp.lexsort([indices[:, a] for a in reversed(range(mat.n_sparse))])
        return data[order], indices[order]

    data, indices = over_batch(core, mat.n_batch)(*spread_batch(mat))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """`mat.sum_duplicates(nse, remove_zeros=False)`.

    mat: a BCOO. nse: how many elements there may be.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_sum_duplicates(m)
    BCOO(float32[2, 2], nse=2)
    """
    return sum_duplicates(mat, nse, False)


def sum_duplicates(mat: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """The same, each element named once and in order. nse: how many there may be (more are
    dropped); without it as many as there are, or could be where that is not known."""
    ordered = bcoo_sort_indices(mat)
    sizes = np.asarray(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
    axes = tuple(range(1, 1 + mat.n_dense))

    def number(data: Any, indices: Any) -> tuple:
        """Which of the distinct rows each is (rows that do not count come last), and how many."""
        inside = jnp.all(indices < sizes, -1)
        if remove_zeros:
            inside = inside & (jnp.any(data != 0, axes) if axes else data != 0)
        last = jnp.where(inside, jnp.arange(len(indices)), -1)
        before = jnp.concatenate([jnp.full(1, -1), lax.cummax(last)[:-1]])
        same = jnp.all(indices == indices[before], -1) & (before >= 0)
        seen = jnp.cumsum(inside & ~same)
        return jnp.where(inside, seen - 1, len(indices)), seen[-1] if len(indices) else 0

    numbers, counts = over_batch(number, mat.n_batch)(ordered.data, ordered.indices)
    if nse is None:
        most = min(mat.nse, math.prod(sizes.tolist()))
        known = counts if isinstance(counts, int) else counts.max() if counts.size else 0
        try:
            nse = int(known)
        except TypeError:  # traced
            nse = most

    def core(data: Any, indices: Any, place: Any) -> tuple:
        place = jnp.where(place < nse, place, nse)
        summed = jnp.zeros((nse, *data.shape[1:]), data.dtype).at[place].add(data, mode="drop")
        rows = jnp.broadcast_to(sizes, (nse, len(sizes)))
        return summed, rows.at[place].set(indices, mode="drop")

    data, indices = over_batch(core, mat.n_batch)(ordered.data, ordered.indices, numbers)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:  # fmt: skip
    """The same with other numbers of batch and dense axes.

    on_inefficient: what a layout that keeps more zeros does: "error" raises SparseEfficiencyError,
    "warn" warns, None goes on.

    mat: a BCOO. n_batch, n_dense: the numbers, as they are without one.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_update_layout(m, n_batch=1, on_inefficient=None)
    BCOO(float32[2, 2], nse=1, n_batch=1)
    """
    batch = mat.n_batch if n_batch is None else n_batch
    dense = mat.n_dense if n_dense is None else n_dense
    if batch == mat.n_batch and dense == mat.n_dense:
        return mat
    if batch == dense == 0:
        return flat(mat)
    if batch > mat.n_batch or dense > mat.n_dense:
        text = (f"bcoo_update_layout: more batch or dense axes of {mat} keep zeros; pass "
                "on_inefficient='warn' or None to do so.")  # fmt: skip
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        if on_inefficient == "warn":
            import warnings

            warnings.warn(text, SparseEfficiencyWarning, stacklevel=2)
    return bcoo_fromdense(mat.todense(), n_batch=batch, n_dense=dense,
                          index_dtype=mat.indices.dtype)


# ------------------------------------------------------------------ sums and products
def reduce_sum(mat: BCOO, axis: Any = None) -> Any:
    """`mat.sum(axis)`."""
    axes = range(mat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    found = bcoo_reduce_sum(mat, axes=tuple(axes))
    return found.todense() if not found.ndim else found


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over `axes`: their coordinates go, the values stay.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_reduce_sum(m, axes=(0,)).todense())
    [1. 1.]
    """
    gone = {operator.index(a) % mat.ndim for a in axes}
    m = flat(mat)
    kept, columns = [a for a in range(m.ndim) if a not in gone], _columns(m)
    return _made(m.data, [columns[a] for a in kept], [m.shape[a] for a in kept], _inside(m))


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The values of sp_mat times those of `v`, which broadcasts to its shape, at their places.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_multiply_dense(m, jnp.arange(2.0)).data)
    [0. 1.]
    """
    return _with_dense(sp_mat, v, jnp.multiply)


def _with_dense(mat: BCOO, v: Any, combine: Callable) -> BCOO:
    v = jnp.asarray(v)
    if not v.ndim:
        return BCOO((combine(mat.data, v), mat.indices), **mat._static())
    m = flat(mat)
    spread = jnp.broadcast_to(v, m.shape) if v.shape != m.shape else v
    picked = spread.at[tuple(_columns(m))].get(mode="fill", fill_value=1)
    return BCOO((combine(m.data, picked), m.indices), **m._static())


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product, element by element, of two sparse arrays of one shape.

    lhs, rhs: the arrays.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_multiply_sparse(m, m).todense()[1])
    [0. 1.]
    """
    if lhs.shape != rhs.shape:
        raise ValueError(f"bcoo_multiply_sparse: shapes {lhs.shape} and {rhs.shape} differ.")
    axes = tuple(range(lhs.ndim))
    return _sparse_product(flat(lhs), flat(rhs), ((), ()), (axes, axes))


def multiply(mat: Any, other: Any, combine: Callable = jnp.multiply) -> Any:
    """mat * other, or mat / other, by a sparse or a dense array."""
    if isinstance(other, JAXSparse):
        if combine is not jnp.multiply:
            raise NotImplementedError("BCOO: division by a sparse array; use todense().")
        other = flat(other)
        if mat.indices is other.indices and mat.unique_indices:
            return BCOO((mat.data * other.data, mat.indices), **mat._static())
        return bcoo_multiply_sparse(mat, other)
    other = jnp.asarray(other)
    if other.ndim > mat.ndim:
        raise NotImplementedError(
            f"BCOO: the product of shapes {mat.shape} and {other.shape} would be larger than the "
            "sparse array."
        )
    return _with_dense(mat, other, combine)


def add(mat: Any, other: Any) -> BCOO:
    """The sum of two sparse arrays: the elements of both."""
    if not isinstance(other, JAXSparse):
        if isinstance(other, int | float) and other == 0:
            return mat
        raise NotImplementedError(
            "BCOO: addition of a sparse and a dense array is not implemented, the result would be "
            "dense. Use todense()."
        )
    if mat.shape != other.shape:
        raise ValueError(f"BCOO: shapes {mat.shape} and {other.shape} differ.")
    mat, other = flat(mat), flat(other)
    if mat.indices is other.indices:
        return BCOO((mat.data + other.data, mat.indices), **mat._static())
    return _joined([mat, other], mat.shape)


def zero_map(mat: BCOO, function: Callable, linear: bool = False) -> BCOO:
    """A function with f(0) = 0, of every element."""
    if not linear and not mat.unique_indices:
        mat = sum_duplicates(mat, min(mat.nse, max(1, mat.size)), False)
    return BCOO((function(mat.data), mat.indices), **mat._static())


def power(mat: BCOO, n: Any) -> BCOO:
    """mat ** n for a positive number."""
    if not isinstance(n, int | float) or n <= 0:
        raise NotImplementedError(f"BCOO: power {n!r} of a sparse array; it must be positive.")
    return zero_map(mat, lambda x: x**n)


def matmul(lhs: Any, rhs: Any) -> Any:
    """lhs @ rhs, one of them sparse or both."""
    lhs, rhs = [x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (lhs, rhs)]
    if not lhs.ndim or not rhs.ndim:
        raise ValueError("BCOO @: operands without axes.")
    axis = max(0, rhs.ndim - 2)
    if lhs.shape[-1] != rhs.shape[axis]:
        raise TypeError(
            f"BCOO @: expected shapes that fit, got {lhs.shape} and {rhs.shape}: "
            f"{lhs.shape[-1]} columns meet {rhs.shape[axis]} rows."
        )
    if lhs.ndim < 3 or rhs.ndim < 3:
        numbers: tuple = (((lhs.ndim - 1,), (axis,)), ((), ()))
        found = bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)
        if lhs.ndim < 2 or rhs.ndim < 3:
            return found
        # The rows of a matrix stand before the matrices they met: they belong before the columns.
        order = [*range(1, rhs.ndim - 1), 0, rhs.ndim - 1]
        return found.transpose(order)
    if lhs.shape[:-2] != rhs.shape[:-2]:
        raise NotImplementedError("BCOO @: leading axes that are not equal; broadcast them first.")
    axes = tuple(range(lhs.ndim - 2))
    numbers = (((lhs.ndim - 1,), (axis,)), (axes, axes))
    return bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """`lax.dot_general` with one sparse operand, whose result is dense, or two: then it is sparse.

    `precision` changes nothing, as in `lax.dot_general`.

    lhs, rhs: the operands. dimension_numbers, preferred_element_type: as of
    `lax.dot_general`. out_sharding: None alone.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ()))))
    [1. 1.]
    """
    _no_sharding("bcoo_dot_general", out_sharding)
    contract, batch = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    sparse = isinstance(lhs, JAXSparse), isinstance(rhs, JAXSparse)
    if sparse == (True, True):
        found: Any = _sparse_product(flat(lhs), flat(rhs), contract, batch)
    elif sparse == (True, False):
        found = _dense_product(flat(lhs), jnp.asarray(rhs), contract, batch)
    elif sparse == (False, True):
        turned = _dense_product(flat(rhs), jnp.asarray(lhs), contract[::-1], batch[::-1])
        n = len(batch[0])
        own, other = rhs.ndim - n - len(contract[0]), jnp.ndim(lhs) - n - len(contract[0])
        order = [*range(n), *range(n + own, n + own + other), *range(n, n + own)]
        found = turned.transpose(order)
    else:
        raise TypeError("bcoo_dot_general: one of the operands must be sparse.")
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def _dense_product(m: BCOO, v: Any, contract: tuple, batch: tuple) -> Any:
    """Every element times the rows of `v` at its coordinates, added up where it belongs."""
    mine, theirs = [*batch[0], *contract[0]], [*batch[1], *contract[1]]
    if [m.shape[a] for a in mine] != [v.shape[a] for a in theirs]:
        raise TypeError(
            f"dot_general: contracting or batch sizes differ: {m.shape} at axes {mine} and "
            f"{v.shape} at axes {theirs}."
        )
    columns = _columns(m)
    free = [a for a in range(m.ndim) if a not in mine]
    rest = [a for a in range(v.ndim) if a not in theirs]
    dtype = dtypes.promote((m.data.dtype, False), (v.dtype, v.weak_type))[0]
    v = v.astype(dtype).transpose([*theirs, *rest])
    at = tuple([columns[a] for a in mine])
    whole = (m.nse, *v.shape)
    picked = v.at[at].get(mode="fill", fill_value=0) if at else jnp.broadcast_to(v, whole)
    data = jnp.where(_inside(m), m.data, 0) if m.ndim else m.data
    terms = data.astype(dtype).reshape(m.nse, *[1] * len(rest)) * picked
    to = [*batch[0], *free]
    if not to:
        return terms.sum(0, dtype=dtype)
    out = jnp.zeros((*[m.shape[a] for a in to], *v.shape[len(theirs) :]), dtype)
    return out.at[tuple([columns[a] for a in to])].add(terms, mode="drop")


def _sparse_product(m: BCOO, w: BCOO, contract: tuple, batch: tuple) -> BCOO:
    """Every element of one times every element of the other that it meets; at most as many as the
    result has places."""
    mine, theirs = [*batch[0], *contract[0]], [*batch[1], *contract[1]]
    if [m.shape[a] for a in mine] != [w.shape[a] for a in theirs]:
        raise TypeError(
            f"dot_general: contracting or batch sizes of {m.shape} and {w.shape} differ."
        )
    left, right = _columns(m), _columns(w)
    meet = _inside(m)[:, None] & _inside(w)[None, :]
    for a, b in zip(mine, theirs, strict=True):
        meet = meet & (left[a][:, None] == right[b][None, :])
    count = m.nse * w.nse
    over = lambda column, axis: jnp.broadcast_to(
        column[:, None] if axis == 0 else column[None, :], (m.nse, w.nse)).reshape(count)
    free = [a for a in range(m.ndim) if a not in mine]
    rest = [a for a in range(w.ndim) if a not in theirs]
    columns = [over(left[a], 0) for a in [*batch[0], *free]] + [over(right[a], 1) for a in rest]
    shape = [m.shape[a] for a in [*batch[0], *free]] + [w.shape[a] for a in rest]
    data = (m.data[:, None] * w.data[None, :]).reshape(count)
    found = _made(data, columns, shape, meet.reshape(count))
    most = min(count, math.prod(shape))
    if not contract[0] and not free and not rest:  # element by element
        most = min(m.nse, w.nse) if m.unique_indices or w.unique_indices else most
    return found if count <= most else sum_duplicates(found, most, False)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The values of `arr` at the places of `sparr`; of a place that is named twice the second is 0,
    unless assume_unique.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_extract(m, jnp.ones((2, 2))).data)
    [1. 1.]
    """
    m = flat(sparr)
    unique = m.unique_indices if assume_unique is None else assume_unique
    values = jnp.asarray(arr).at[tuple(_columns(m))].get(mode="fill", fill_value=0)
    if not unique:
        place = jnp.where(_inside(m), _linear(m), m.size)
        first = jnp.full(m.size + 1, m.nse).at[place].min(jnp.arange(m.nse))
        values = jnp.where(first[place] == jnp.arange(m.nse), values, 0)
    return BCOO((values, m.indices), **m._static())


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """The values of dot_general(A, B) at the rows of `indices`.

    dimension_numbers: as of `lax.dot_general`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> v = jnp.ones((2, 2))
    >>> n = (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general_sampled(v, v, m.indices, dimension_numbers=n))
    [2. 2.]
    """
    product = lax.dot_general(jnp.asarray(A), jnp.asarray(B), dimension_numbers)
    at = tuple([indices[..., a] for a in range(indices.shape[-1])])
    return product.at[at].get(mode="fill", fill_value=0)


def _no_sharding(name: str, sharding: Any) -> None:
    if sharding is not None:
        raise NotImplementedError(
            f"{name}: sparse arrays take no sharding; their data and indices have one each."
        )


OPERATIONS.update({
    function.__name__: function for function in (
        add, bcoo_sort_indices, bcoo_transpose, bcoo_update_layout, getitem, matmul, multiply,
        power, reduce_sum, reshape, sum_duplicates, zero_map)
})  # fmt: skip
