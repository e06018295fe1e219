"""Operations on BCOO: sums, products, functions of each element.

Each kind of axis keeps its kind where it can; products with dense arrays make batch and dense axes
sparse first (`flat`), as many values as before.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.compiled.abstract import eval_shape
from numjet.core import dtypes
from numjet.core.array import Array
from numjet.core.trace import Tracer
from numjet.experimental.sparse.bcoo import (
    BCOO,
    DIVIDED,
    OPERATIONS,
    JAXSparse,
    broadcast_batch,
    over_batch,
)
from numjet.experimental.sparse.layouts import (
    axis_of,
    bcoo_dynamic_slice,
    bcoo_sort_indices,
    bcoo_squeeze,
    bcoo_transpose,
    bcoo_update_layout,
    each_axis,
    flat,
    inside,
    inside_of,
    kept,
    no_sharding,
    part,
    place,
    relaid,
    reshape,
    rows_joined,
    sparse_sizes,
    sum_duplicates,
    wide,
)
from numjet.numpy.at import accumulated


# ------------------------------------------------------------------ sums and products
def reduce_sum(mat: BCOO, axis: Any = None, dtype: Any = None) -> Any:
    """`mat.sum(axis, dtype)`."""
    if dtype is not None:
        mat = mat.astype(dtype)
    axes = range(mat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    found = bcoo_reduce_sum(mat, axes=tuple(axes))
    return found.todense() if not found.ndim else found


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over `axes`: coordinates of sparse ones go, elements of batch ones come together,
    dense ones are added up. Small integers become those of `jnp.sum`.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_reduce_sum(m, axes=(0,)).todense())
    [1. 1.]
    """
    gone = {axis_of("bcoo_reduce_sum", a, mat.ndim) for a in axes}
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = kept(*broadcast_batch(mat), inside(mat), sparse_sizes(mat))
    dense = tuple([a - last + batch + 1 for a in gone if a >= last])
    data = data.astype(eval_shape(jnp.sum, data).dtype)
    data = data.sum(dense) if dense else data
    lead, summed = [[a for a in range(batch) if (a in gone) == g] for g in (False, True)]
    if summed:
        rows = math.prod([mat.shape[a] for a in summed]) * mat.nse
        sizes = [mat.shape[a] for a in lead]
        data, indices = [
            x.transpose([*lead, *summed, *range(batch, x.ndim)])
            .reshape(*sizes, rows, *x.shape[batch + 1 :])
            for x in (data, indices)
        ]  # fmt: skip
    columns = [a for a in range(mat.n_sparse) if a + batch not in gone]
    indices = indices[..., np.asarray(columns, int)]
    return BCOO((data, indices), shape=[n for a, n in enumerate(mat.shape) if a not in gone])


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The values of sp_mat times those of `v`, which broadcasts to its shape, at their places: the
    data of the product, whose indices are those of sp_mat.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_multiply_dense(m, jnp.arange(2.0)))
    [0. 1.]
    """
    return _with_dense(sp_mat, v, jnp.multiply).data


def picked(mat: BCOO, v: Any, fill: Any) -> Any:
    """What `v`, which broadcasts to the shape of mat, has at each row of its indices."""
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    indices = broadcast_batch(mat)[1] if batch else mat.indices
    at: list[Any] = []
    for a in range(last):
        if v.shape[a] == 1 != mat.shape[a]:
            at.append(jnp.zeros((), indices.dtype))
        elif a < batch:
            along = [mat.shape[a] if k == a else 1 for k in range(batch + 1)]
            at.append(jnp.arange(mat.shape[a], dtype=indices.dtype).reshape(along))
        else:
            at.append(indices[..., a - batch])
    rows = indices.shape[:-1]
    if not at:
        return jnp.broadcast_to(v, (*rows, *v.shape))
    at[0] = jnp.broadcast_to(at[0], rows)
    return v.at[tuple(at)].get(mode="fill", fill_value=fill)


def _with_dense(mat: BCOO, v: Any, combine: Callable) -> BCOO:
    v = jnp.asarray(v)
    if not v.ndim:
        return BCOO((combine(mat.data, v), mat.indices), **mat._static())
    if v.ndim > mat.ndim or any(
        k not in (1, n) for k, n in zip(v.shape[::-1], mat.shape[::-1], strict=False)
    ):
        raise ValueError(f"BCOO: shapes {mat.shape} and {v.shape} do not broadcast to the first.")
    data = broadcast_batch(mat)[0] if mat.n_batch else mat.data
    made = combine(data, picked(mat, v, 1))
    return BCOO((made, mat.indices), **mat._static())


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product, element by element, of two sparse arrays: every element of one times every
    element of the other, of which those at the same place are no padding, and come first. Axes of
    size 1 broadcast.

    lhs, rhs: the arrays, with as many axes and dense axes.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_multiply_sparse(m, m).todense()[1])
    [0. 1.]
    """
    if lhs.ndim != rhs.ndim or lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            "bcoo_multiply_sparse: arrays with differing numbers of axes or of dense axes: "
            f"{lhs} and {rhs}."
        )
    if any(a != b and 1 not in (a, b) for a, b in zip(lhs.shape, rhs.shape, strict=True)):
        raise TypeError(
            f"bcoo_multiply_sparse got incompatible shapes for broadcasting: {lhs.shape} and "
            f"{rhs.shape}."
        )
    batch = min(lhs.n_batch, rhs.n_batch)
    m, w = [relaid(x, batch, x.n_dense) for x in (lhs, rhs)]
    shape = np.broadcast_shapes(m.shape, w.shape)
    (left, i), (right, j) = broadcast_batch(m), broadcast_batch(w)
    meet = inside(m)[..., :, None] & inside(w)[..., None, :]
    columns = []
    for k, (a, b) in enumerate(zip(sparse_sizes(m), sparse_sizes(w), strict=True)):
        mine, theirs = i[..., :, None, k], j[..., None, :, k]
        meet = meet & (mine == theirs) if a == b else meet
        columns.append(jnp.broadcast_to(mine if b == 1 or a == b else theirs, meet.shape))
    rows = (*meet.shape[:-2], m.nse * w.nse)
    data = jnp.expand_dims(left, batch + 1) * jnp.expand_dims(right, batch)
    data = data.reshape(*rows, *data.shape[batch + 2 :])
    empty = jnp.zeros((*meet.shape, 0), i.dtype)
    indices = (jnp.stack(columns, -1) if columns else empty).reshape(*rows, m.n_sparse)
    sizes = shape[batch : batch + m.n_sparse]
    meet = meet.reshape(rows)
    first = jnp.argsort(~meet, axis=-1, stable=True)  # what is no padding
    data, indices, meet = [
        jnp.take_along_axis(x, wide(first, x), axis=batch) for x in (data, indices, meet)
    ]
    return BCOO(kept(data, indices, meet, sizes), shape=shape)


def multiply(
    mat: Any, other: Any, combine: Callable = jnp.multiply, shared: bool = False
) -> Any:
    """mat * other, or mat / other, by a sparse or a dense array; element by element where both
    share their indices and `shared` says that this counts."""
    if isinstance(other, JAXSparse):
        if combine is not jnp.multiply:
            raise NotImplementedError(DIVIDED)
        other = _coordinates(other)
        same = shared and mat.indices is other.indices
        if same and mat.unique_indices and mat.shape == other.shape:
            return BCOO((mat.data * other.data, mat.indices), **mat._static())
        return bcoo_multiply_sparse(mat, other)
    other = jnp.asarray(other)
    if other.ndim > mat.ndim:
        raise NotImplementedError(
            f"BCOO: the product of shapes {mat.shape} and {other.shape} would be larger than the "
            "sparse array."
        )
    return _with_dense(mat, other, combine)


def add(mat: Any, other: Any, shared: bool = False) -> Any:
    """The sum of two sparse arrays: the elements of both, added up at once where they share their
    indices and `shared` says that this counts. A dense array and a sparse one of no larger shape
    have a dense sum."""
    if not isinstance(other, JAXSparse):
        if isinstance(other, int | float) and other == 0:
            return mat
        other = jnp.asarray(other)
        if jnp.broadcast_shapes(mat.shape, other.shape) == other.shape:
            return mat.todense() + other
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            f"output shape is larger than Y.shape. Y.shape is {other.shape} and X.shape "
            f"{mat.shape}: all elements would be stored. Use X.todense()."
        )
    if mat.shape != other.shape:
        raise TypeError(
            f"BCOO: add got incompatible shapes for broadcasting: {mat.shape} and {other.shape}. "
            "Sparse arrays are added without broadcasting."
        )
    other = _coordinates(other)
    if (mat.n_batch, mat.n_dense) != (other.n_batch, other.n_dense):
        mat, other = flat(mat), flat(other)
    elif shared and mat.indices is other.indices:
        return BCOO((mat.data + other.data, mat.indices), **mat._static())
    return rows_joined([broadcast_batch(mat), broadcast_batch(other)], mat.shape, mat.n_batch)


def subtract(x: Any, y: Any) -> Any:
    """x - y of sparse arrays; the sign is changed in the dtype of the result."""
    x, y = _coordinates(x), _coordinates(y)
    return add(x, -y.astype(jnp.result_type(x.data, y.data)))


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
        raise ValueError(
            f"BCOO: matmul input operand {int(bool(lhs.ndim))} must have ndim at least 1, but it "
            "has ndim 0. Multiply by numbers with *."
        )
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
    no_sharding("bcoo_dot_general", out_sharding)
    contract, batch = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    sparse = isinstance(lhs, JAXSparse), isinstance(rhs, JAXSparse)
    if sparse == (True, True):
        found: Any = _sparse_product(_coordinates(lhs), _coordinates(rhs), contract, batch)
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


def _coordinates(mat: Any) -> BCOO:
    return mat if isinstance(mat, BCOO) else mat.to_bcoo()


def _dense_product(m: BCOO, v: Any, contract: tuple, batch: tuple) -> Any:
    """Every element times the rows of `v` at its coordinates, added up where it belongs."""
    mine, theirs = [*batch[0], *contract[0]], [*batch[1], *contract[1]]
    if [m.shape[a] for a in mine] != [v.shape[a] for a in theirs]:
        raise TypeError(
            f"dot_general: contracting or batch sizes differ: {m.shape} at axes {mine} and "
            f"{v.shape} at axes {theirs}."
        )
    columns = [m.indices[:, a] for a in range(m.n_sparse)]
    free = [a for a in range(m.ndim) if a not in mine]
    rest = [a for a in range(v.ndim) if a not in theirs]
    dtype = dtypes.promote((m.data.dtype, False), (v.dtype, v.weak_type))[0]
    v = v.astype(dtype).transpose([*theirs, *rest])
    at = tuple([columns[a] for a in mine])
    whole = (m.nse, *v.shape)
    picked = v.at[at].get(mode="fill", fill_value=0) if at else jnp.broadcast_to(v, whole)
    data = jnp.where(inside(m), m.data, 0) if m.ndim else m.data
    terms = data.astype(dtype).reshape(m.nse, *[1] * len(rest)) * picked
    to = [*batch[0], *free]
    if not to:
        return terms.sum(0, dtype=dtype)
    out = jnp.zeros((*[m.shape[a] for a in to], *v.shape[len(theirs) :]), dtype)
    return accumulated(out, tuple([columns[a] for a in to]), terms)


def _batch_axes(mat: BCOO, shared: Sequence[int], summed: Sequence[int]) -> int | None:
    """How many leading axes may stay batch axes; None where they cannot hold the shared ones."""
    if any(a >= mat.n_batch for a in shared):
        return None
    if all(a >= mat.n_batch for a in summed):
        return mat.n_batch
    return len(shared) if sorted(shared) == list(range(len(shared))) else None


def _sparse_product(m: BCOO, w: BCOO, contract: tuple, batch: tuple) -> BCOO:
    """Every element of one times every element of the other that it meets; at most as many as the
    result has places. Batch axes stay such where they come first in the result."""
    mine, theirs = [*batch[0], *contract[0]], [*batch[1], *contract[1]]
    if [m.shape[a] for a in mine] != [w.shape[a] for a in theirs]:
        raise TypeError(
            f"dot_general: contracting or batch sizes of {m.shape} and {w.shape} differ."
        )
    free = [a for a in range(m.ndim) if a not in mine]
    rest = [a for a in range(w.ndim) if a not in theirs]
    shape = [m.shape[a] for a in [*batch[0], *free]] + [w.shape[a] for a in rest]
    k = len(batch[0])
    p, q = [_batch_axes(x, b, c) for x, b, c in zip((m, w), batch, contract, strict=True)]
    if p is not None and q is not None and q > k and any(a >= p for a in free):
        # Sparse axes of the first come before what only the second has.
        q = k if sorted(batch[1]) == list(range(k)) else None
    out: list[int] = []
    if p is None or q is None:
        p = q = 0
        out = list(batch[0])
    m, w = relaid(m, p, 0), relaid(w, q, 0)
    own, other = [a for a in free if a < p], [b for b in rest if b < q]
    # Batch axes in the result's order; those that only one has are of size 1 in the other.
    shared = [] if out else list(batch[0])
    left, i = [_spread(x, [*shared, *own], p, len(shared) + len(own), len(other))
               for x in broadcast_batch(m)]  # fmt: skip
    shared = [] if out else list(batch[1])
    right, j = [_spread(x, [*shared, *other], q, len(shared), len(own)) for x in broadcast_batch(w)]
    meet = inside_of(i, sparse_sizes(m))[..., :, None] & inside_of(j, sparse_sizes(w))[..., None, :]
    for a, b in zip(mine, theirs, strict=True):
        if a >= p:
            meet = meet & (i[..., :, None, a - p] == j[..., None, :, b - q])
    first = [a for a in [*out, *free] if a >= p]
    second = [b for b in rest if b >= q]
    columns = [i[..., :, None, a - p] for a in first] + [j[..., None, :, b - q] for b in second]
    rows = (*meet.shape[:-2], m.nse * w.nse)
    empty = jnp.zeros((*meet.shape, 0), i.dtype)
    stacked = [jnp.broadcast_to(c, meet.shape) for c in columns]
    indices = (jnp.stack(stacked, -1) if stacked else empty).reshape(*rows, len(columns))
    data = (left[..., :, None] * right[..., None, :]).reshape(rows)
    sizes = shape[len(meet.shape) - 2 :]
    found = BCOO(kept(data, indices, meet.reshape(rows), sizes), shape=shape)
    most = min(m.nse * w.nse, math.prod(sizes))
    # Where one operand is all summed over, the other's elements say where the result has some.
    most = min(most, m.nse if not second else most)
    most = min(most, w.nse if not first else most)
    if most < found.nse:
        found = sum_duplicates(found, most, False)
    return BCOO((found.data, found.indices), shape=shape)


def _spread(x: Any, order: Sequence[int], batch: int, at: int, ones: int) -> Any:
    """`x` with its batch axes in another order, and axes of size 1 put in before the one `at`."""
    x = x.transpose([*order, *range(batch, x.ndim)])
    return x.reshape(*x.shape[:at], *[1] * ones, *x.shape[at:])


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The values of `arr` at the places of `sparr`; of a place that is named twice the second is 0,
    unless assume_unique.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_extract(m, jnp.ones((2, 2))).data)
    [1. 1.]
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shapes {sparr.shape} and {arr.shape} differ.")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    values, sizes = picked(sparr, arr, 0), sparse_sizes(sparr)
    if not unique:
        most, rows = math.prod(sizes), jnp.arange(sparr.nse)

        def core(data: Any, at: Any, inner: Any) -> Any:
            at = jnp.where(inner, at, most)
            first = jnp.full(most + 1, sparr.nse).at[at].min(rows)
            return jnp.where(wide(first[at] == rows, data), data, jnp.zeros((), data.dtype))

        places = place(broadcast_batch(sparr)[1], sizes)
        inner = jnp.broadcast_to(inside(sparr), places.shape)
        values = over_batch(core, sparr.n_batch)(values, places, inner)
    return BCOO((values, sparr.indices), **sparr._static())


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """The values of dot_general(A, B) at the rows of `indices`: the data of a BCOO with these.

    indices: (*batch, nse, n_sparse), of the first axes of the product. dimension_numbers: as of
    `lax.dot_general`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> v = jnp.ones((2, 2))
    >>> n = (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general_sampled(v, v, m.indices, dimension_numbers=n))
    [2. 2.]
    """
    product = lax.dot_general(jnp.asarray(A), jnp.asarray(B), dimension_numbers)
    return extracted(indices, product, assume_unique=True)


def extracted(indices: Any, arr: Any, *, assume_unique: bool) -> Array:
    """The values of `arr` at the rows of indices, whose leading axes are batch axes."""
    batch, sparse = indices.ndim - 2, indices.shape[-1]
    rows = (*indices.shape[:-1], *arr.shape[batch + sparse :])
    mat = BCOO((jnp.zeros(rows, arr.dtype), indices), shape=arr.shape)
    return bcoo_extract(mat, arr, assume_unique=assume_unique).data


def bcoo_gather(
    operand: BCOO, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None,
    fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """`lax.gather`: a slice of the operand for each row of start_indices.

    operand: a BCOO. start_indices, dimension_numbers, slice_sizes, mode: as of `lax.gather`; places
    out of bounds are clamped with mode="clip", and must not occur without it. unique_indices and
    indices_are_sorted promise what helps nothing here. Raises NotImplementedError for a fill_value,
    for starts that are not known to be in bounds unless `mode` says what to do, and for operand
    batching axes.

    >>> from numjet import lax, numpy as jnp
    >>> from numjet.experimental import sparse
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> found = sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), numbers, (1, 3))
    >>> print(found.todense())
    [[0. 0. 1.]
     [1. 0. 0.]]
    """
    del unique_indices, indices_are_sorted
    if fill_value is not None or dimension_numbers.operand_batching_dims:
        raise NotImplementedError("bcoo_gather: fill_value and batching axes; use todense().")
    starts, sizes = jnp.asarray(start_indices), [operator.index(n) for n in slice_sizes]
    along = tuple(dimension_numbers.start_index_map)
    gone = sorted(dimension_numbers.collapsed_slice_dims)
    if len(sizes) != operand.ndim or starts.shape[-1] != len(along) or any(
        sizes[a] != 1 for a in gone
    ):  # fmt: skip
        raise TypeError(
            f"bcoo_gather: slice_sizes {tuple(sizes)} and start_indices of shape {starts.shape} do "
            f"not fit {operand} and {dimension_numbers}."
        )
    mode = lax.GatherScatterMode.from_any(mode)
    if mode is lax.GatherScatterMode.FILL_OR_DROP:
        most = np.asarray([operand.shape[a] - sizes[a] for a in along])
        if isinstance(starts, Tracer) or np.any((np.asarray(starts) < 0) | (starts > most)):
            raise NotImplementedError(
                "bcoo_gather: starts that may be out of bounds would fill what is no zero; say "
                "mode='clip' or mode='promise_in_bounds'."
            )
    limits = jnp.asarray(np.asarray([operand.shape[a] - sizes[a] for a in along], starts.dtype))
    starts = jnp.clip(starts, 0, limits)

    def one(start: Any) -> BCOO:
        at = [jnp.zeros((), starts.dtype)] * operand.ndim
        for k, a in enumerate(along):
            at[a] = start[k]
        return bcoo_squeeze(bcoo_dynamic_slice(operand, at, sizes), dimensions=gone)

    found = over_batch(one, starts.ndim - 1)(starts)
    # The batch axes of starts stand first; they belong between the axes of the slices.
    offsets = list(dimension_numbers.offset_dims)
    order = [0] * found.ndim
    for k, a in enumerate([a for a in range(found.ndim) if a not in offsets] + offsets):
        order[a] = k
    if order == list(range(found.ndim)):
        return found
    return bcoo_transpose(found, permutation=order)


def _plain(item: Any) -> Any:
    """An index whose lists are arrays and whose booleans are new axes."""
    items = [np.asarray(i) if isinstance(i, list) else i
             for i in (item if isinstance(item, tuple) else (item,))]  # fmt: skip
    logical = [k for k, i in enumerate(items) if isinstance(i, bool | np.bool_)]
    if logical:
        arrays = any(isinstance(i, Array | np.ndarray) and i.ndim for i in items)
        if len(logical) > 1 or not items[logical[0]] or arrays:
            raise NotImplementedError(
                f"BCOO: of booleans in an index there may be one True alone, got {item!r}. Use "
                "todense()."
            )
        items[logical[0]] = None
    return tuple(items)


def getitem(mat: BCOO, item: Any) -> Any:
    """mat[item]; arrays of integers or booleans pick as in NumPy, those of integers that are out of
    bounds the nearest places. True stands for a new axis."""
    item = _plain(item)
    chosen: list[Any] = []
    for i in each_axis(mat, item):
        if isinstance(i, Array | np.ndarray) and i.dtype == bool:
            chosen += jnp.nonzero(i)
        else:
            chosen.append(i)
    if not any(isinstance(i, Array | np.ndarray) and (i.ndim or isinstance(i, Tracer))
               for i in chosen):  # fmt: skip
        return part(mat, item)
    picked = [k for k, i in enumerate(chosen) if i is not None and not isinstance(i, slice)]
    operand = part(mat, tuple([slice(None) if k in picked else i for k, i in enumerate(chosen)]))
    places = []
    for k in picked:
        i, n = jnp.asarray(chosen[k]), operand.shape[k]
        if not jnp.issubdtype(i.dtype, jnp.integer):
            raise TypeError(f"BCOO: an index must be integers or booleans, got {i.aval}.")
        places.append(jnp.where(i < 0, i + n, i))
    starts = jnp.stack(jnp.broadcast_arrays(*places), -1)
    # The axes of the places stand where the first one picked, or in front where slices lie between.
    first = picked[0] if picked[-1] - picked[0] == len(picked) - 1 else 0
    rest = operand.ndim - len(picked)
    offsets = [a if a < first else a + starts.ndim - 1 for a in range(rest)]
    numbers = lax.GatherDimensionNumbers(tuple(offsets), tuple(picked), tuple(picked))
    sizes = [1 if a in picked else n for a, n in enumerate(operand.shape)]
    return bcoo_gather(operand, starts, numbers, sizes, mode="clip")


OPERATIONS.update({
    function.__name__: function for function in (
        add, bcoo_sort_indices, bcoo_transpose, bcoo_update_layout, getitem, matmul, multiply,
        power, reduce_sum, reshape, subtract, sum_duplicates, zero_map)
})  # fmt: skip
