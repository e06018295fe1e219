"""The axes of BCOO: shapes, slices and layouts, each kind of axis (batch, sparse, dense) by itself.

What stays of its kind keeps its kind; what mixes kinds makes the batch and dense axes that are in
the way sparse first. Elements that fall out of a slice become padding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.experimental.sparse.bcoo import BCOO, broadcast_batch, joined_batch, over_batch
from numjet.numpy.at import accumulated


class SparseEfficiencyError(ValueError):
    """A layout that would keep many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """The same, as a warning."""


# ------------------------------------------------------------------ parts
def axis_of(name: str, axis: Any, ndim: int, error: type[Exception] = ValueError) -> int:
    """An axis counted from the front; `error` where there is no such axis."""
    if not -ndim <= operator.index(axis) < ndim:
        raise error(f"{name}: axis {axis} is out of bounds for {ndim} axes.")
    return operator.index(axis) % ndim


def sparse_sizes(mat: BCOO) -> tuple[int, ...]:
    """The sizes of the sparse axes."""
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def inside(mat: BCOO) -> Any:
    """Which rows of indices are elements, not padding."""
    return inside_of(mat.indices, sparse_sizes(mat))


def inside_of(indices: Any, sizes: Sequence[int]) -> Any:
    """Which rows of indices are places of axes of these sizes."""
    return jnp.all(indices < np.asarray(sizes, indices.dtype), axis=-1)


def wide(per_row: Any, data: Any) -> Any:
    """Values for each row, with axes of size 1 for the dense axes of `data`."""
    return per_row.reshape(per_row.shape + (1,) * (data.ndim - per_row.ndim))


def kept(data: Any, indices: Any, keep: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Data and indices whose rows that are not to `keep` are padding for these sizes."""
    zero = jnp.zeros((), data.dtype)
    out = jnp.asarray(np.asarray(sizes, indices.dtype))
    return jnp.where(wide(keep, data), data, zero), jnp.where(keep[..., None], indices, out)


def place(indices: Any, sizes: Sequence[int]) -> Any:
    """The place of each row of indices in the order of the elements; of padding any number."""
    if math.prod(sizes) > np.iinfo(indices.dtype).max:
        raise NotImplementedError(
            f"BCOO: places in sparse axes {tuple(sizes)} do not fit {indices.dtype}. Give indices "
            "of int64 (index_dtype, with enable_x64)."
        )
    total = jnp.zeros(indices.shape[:-1], indices.dtype)
    for a, n in enumerate(sizes):
        total = total * n + indices[..., a]
    return total


# ------------------------------------------------------------------ kinds of axes
def _batch_to_sparse(data: Any, indices: Any, batch: tuple[int, ...], count: int) -> tuple:
    """The last `count` batch axes as the first sparse ones."""
    for n in reversed(batch[len(batch) - count :]):
        at = indices.ndim - 3
        along = jnp.arange(n, dtype=indices.dtype).reshape(n, 1, 1)
        column = jnp.broadcast_to(along, (*indices.shape[:-1], 1))
        indices = jnp.concatenate([column, indices], -1)
        indices = indices.reshape(*indices.shape[:at], -1, indices.shape[-1])
        data = data.reshape(*data.shape[:at], -1, *data.shape[at + 2 :])
    return data, indices


def _dense_to_sparse(data: Any, indices: Any, count: int) -> tuple:
    """The first `count` dense axes as the last sparse ones."""
    at = indices.ndim - 2
    for _ in range(count):
        n, rows = data.shape[at + 1], data.shape[at]
        column = jnp.broadcast_to(
            jnp.arange(n, dtype=indices.dtype)[:, None], (*indices.shape[:at], rows, n, 1)
        )
        outer = jnp.broadcast_to(
            indices[..., None, :], (*indices.shape[:at], rows, n, indices.shape[-1])
        )
        indices = jnp.concatenate([outer, column], -1)
        indices = indices.reshape(*indices.shape[:at], rows * n, indices.shape[-1])
        data = data.reshape(*data.shape[:at], rows * n, *data.shape[at + 2 :])
    return data, indices


def _sparse_to_batch(data: Any, indices: Any, sizes: Sequence[int], count: int) -> tuple:
    """The first `count` sparse axes as the last batch ones; every batch element has all rows."""
    for k in range(count):
        n, at = sizes[k], indices.ndim - 2
        along = jnp.arange(n, dtype=indices.dtype)[:, None]
        mine = jnp.expand_dims(indices[..., 0], at) == along
        rest = jnp.broadcast_to(
            jnp.expand_dims(indices[..., 1:], at), (*mine.shape, indices.shape[-1] - 1)
        )
        whole = jnp.broadcast_to(
            jnp.expand_dims(data, at), (*data.shape[:at], n, *data.shape[at:])
        )
        data, indices = kept(whole, rest, mine, sizes[k + 1 :])
    return data, indices


def _sparse_to_dense(data: Any, indices: Any, sizes: Sequence[int], count: int) -> tuple:
    """The last `count` sparse axes as the first dense ones; every row has a whole array."""
    at = indices.ndim - 1
    for k in range(count):
        n = sizes[len(sizes) - 1 - k]
        along = jnp.arange(n, dtype=indices.dtype)
        mine = indices[..., -1:] == along
        mine = mine.reshape(mine.shape + (1,) * (data.ndim - at))
        data = jnp.where(mine, jnp.expand_dims(data, at), jnp.zeros((), data.dtype))
        indices = indices[..., :-1]
    return data, indices


def relaid(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    """The same array with these numbers of batch and dense axes."""
    batch, dense = mat.n_batch, mat.n_dense
    if (batch, dense) == (n_batch, n_dense):
        return mat
    data, indices = broadcast_batch(mat)
    unique = mat.unique_indices
    if n_batch < batch:
        data, indices = _batch_to_sparse(data, indices, mat.shape[:batch], batch - n_batch)
        batch = n_batch
    if n_dense < dense:
        data, indices = _dense_to_sparse(data, indices, dense - n_dense)
        dense = n_dense
    if n_batch > batch:
        sizes = mat.shape[batch : mat.ndim - dense]
        data, indices = _sparse_to_batch(data, indices, sizes, n_batch - batch)
        unique = False
    if n_dense > dense:
        sizes = mat.shape[n_batch : mat.ndim - dense]
        data, indices = _sparse_to_dense(data, indices, sizes, n_dense - dense)
        unique = False
    return BCOO((data, indices), shape=mat.shape, unique_indices=unique)


def flat(mat: Any) -> BCOO:
    """A BCOO without batch and dense axes, of the same elements."""
    return relaid(mat if isinstance(mat, BCOO) else mat.to_bcoo(), 0, 0)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:  # fmt: skip
    """The same with other numbers of batch and dense axes.

    on_inefficient: what a layout that keeps more zeros does: "error" raises SparseEfficiencyError,
    "warn" warns, None goes on.

    mat: a BCOO. n_batch, n_dense: the numbers, as they are without one. Raises ValueError for
    numbers that the array has no axes for.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_update_layout(m, n_batch=1, on_inefficient=None).data.shape
    (2, 2)
    """
    batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected 'error', 'warn' or None.")
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={batch} and n_dense={dense} must not be negative, and "
            f"together at most {mat.ndim}, the axes of {mat}."
        )
    if batch > mat.n_batch or dense > mat.n_dense:
        text = (f"bcoo_update_layout: more batch or dense axes of {mat} keep zeros; pass "
                "on_inefficient='warn' or None to do so.")  # fmt: skip
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        if on_inefficient == "warn":
            import warnings

            warnings.warn(text, SparseEfficiencyWarning, stacklevel=2)
    if (batch, dense) == (mat.n_batch, mat.n_dense):
        return mat
    found = relaid(mat, batch, dense)
    return BCOO((found.data, found.indices), shape=mat.shape)


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
    order = [axis_of("bcoo_transpose", a, mat.ndim, TypeError) for a in permutation]
    if sorted(order) != list(range(mat.ndim)):
        raise TypeError(f"bcoo_transpose: {tuple(permutation)} is no order of {mat.ndim} axes.")
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    shape = [mat.shape[a] for a in order]
    kinds = [(a >= batch) + (a >= last) for a in order]
    if kinds != sorted(kinds):
        mat, batch, last = flat(mat), 0, mat.ndim
    data, indices = mat.data, mat.indices
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


def _split(groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[int]] | None:
    """`sizes` cut into as many groups of the same products; None where they do not fit. Sizes of 1
    belong to what stands before them, leading ones to the first group."""
    found: list[list[int]] = []
    rest = list(sizes)
    for k, group in enumerate(groups):
        mine: list[int] = []
        target, product = math.prod(group), 1
        while (group or not k) and rest and (
            product < target or rest[0] == 1 or product and not target
        ):  # fmt: skip
            product *= rest[0]
            mine.append(rest.pop(0))
        if product != target:
            return None
        found.append(mine)
    return None if rest else found


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None,
                 sharding: Any = None) -> BCOO:  # fmt: skip
    """The elements in another shape, in the order of their indices.

    Batch, sparse and dense axes stay so: the new sizes come of them one after the other. Raises
    ValueError where they do not.

    mat: a BCOO. new_sizes: the shape. dimensions: an order of the axes to read them in. sharding:
    None alone.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_reshape(m, new_sizes=(4,)).todense())
    [1. 0. 0. 1.]
    """
    no_sharding("bcoo_reshape", sharding)
    new_sizes = tuple([operator.index(n) for n in new_sizes])
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    if math.prod(new_sizes) != mat.size:
        raise TypeError(
            f"bcoo_reshape: {mat.shape} has {mat.size} elements, {new_sizes} has not."
        )
    if new_sizes == mat.shape:
        return mat
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    groups = _split([mat.shape[:batch], mat.shape[batch:last], mat.shape[last:]], new_sizes)
    if groups is None:
        behind = _split([mat.shape[:batch], mat.shape[batch:]], new_sizes)
        kinds = "sparse and dense" if behind else "batch and sparse"
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix {kinds} dimensions; got shape={mat.shape} and "
            f"new_sizes={new_sizes} with n_batch={batch} and n_dense={mat.n_dense}. Change the "
            "layout before (update_layout)."
        )
    data, indices = broadcast_batch(mat)
    old, (lead, sparse, dense) = sparse_sizes(mat), groups
    keep = inside(mat)
    if old or sparse:
        at = place(indices, old)
        strides = [math.prod(sparse[a + 1 :]) for a in range(len(sparse))]
        columns = [at // s % n for s, n in zip(strides, sparse, strict=True)]
        empty = jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
        indices = jnp.stack(columns, -1) if columns else empty
        data, indices = kept(data, indices, keep, sparse)
    data = data.reshape(*lead, mat.nse, *dense)
    return BCOO((data, indices.reshape(*lead, mat.nse, len(sparse))), shape=new_sizes)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Without the axes `dimensions`, of size 1.

    arr: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_squeeze(m[:1], dimensions=(0,))
    BCOO(float32[2], nse=2)
    """
    gone = {axis_of("bcoo_squeeze", a, arr.ndim) for a in dimensions}
    if any(arr.shape[a] != 1 for a in gone):
        raise ValueError(f"bcoo_squeeze: axes {tuple(dimensions)} of {arr.shape} are not all 1.")
    batch, last = arr.n_batch, arr.n_batch + arr.n_sparse
    data, indices = broadcast_batch(arr)
    dropped = [a - batch for a in gone if batch <= a < last]
    if dropped:
        data, indices = kept(data, indices, inside(arr), sparse_sizes(arr))
    columns = [a for a in range(arr.n_sparse) if a not in dropped]
    leading = tuple([a for a in gone if a < batch])
    data = data.squeeze((*leading, *[a - last + batch + 1 for a in gone if a >= last]))
    indices = indices[..., np.asarray(columns, int)].squeeze(leading)
    shape = [n for a, n in enumerate(arr.shape) if a not in gone]
    return BCOO((data, indices), shape=shape, indices_sorted=arr.indices_sorted,
                unique_indices=arr.unique_indices)  # fmt: skip


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCOO:  # fmt: skip
    """`lax.broadcast_in_dim`: new axes before the first sparse one are batch axes, those behind the
    last sparse one dense where there are dense axes, others sparse.

    mat: a BCOO. shape, broadcast_dimensions: as of `lax.broadcast_in_dim`. sharding: None alone.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    no_sharding("bcoo_broadcast_in_dim", sharding)
    shape = tuple([operator.index(n) for n in shape])
    dims = [operator.index(a) for a in broadcast_dimensions]
    fits = len(dims) == mat.ndim and dims == sorted(set(dims)) and all(
        0 <= a < len(shape) for a in dims)  # fmt: skip
    if not fits or any(n not in (1, shape[a]) for n, a in zip(mat.shape, dims, strict=True)):
        raise ValueError(
            f"bcoo_broadcast_in_dim: axes {tuple(dims)} of shape {shape} do not fit {mat.shape}."
        )
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    lead = dims[batch] if batch < mat.ndim else len(shape)
    dense = dims[last] if mat.n_dense else len(shape)
    data, indices = broadcast_batch(mat)
    rows = mat.nse
    # Batch and dense axes where they belong, of size 1 where they are new.
    at = {a: mat.shape[k] for k, a in enumerate(dims)}
    leading = [at.get(a, 1) for a in range(lead)]
    trailing = [at.get(a, 1) for a in range(dense, len(shape))]
    data = data.reshape(*leading, rows, *trailing)
    indices = indices.reshape(*leading, rows, mat.n_sparse)
    data = jnp.broadcast_to(data, (*shape[:lead], rows, *shape[dense:]))
    indices = jnp.broadcast_to(indices, (*shape[:lead], rows, mat.n_sparse))
    # Sparse axes: those that grow take each row as often as they have places.
    sizes, own = shape[lead:dense], dict(zip(dims[batch:last], range(mat.n_sparse), strict=True))
    grow = [k for k in range(len(sizes)) if lead + k not in own or at[lead + k] != sizes[k]]
    times = math.prod([sizes[k] for k in grow])
    keep = jnp.all(indices < np.asarray(sparse_sizes(mat), indices.dtype), -1)
    repeat = lambda x: jnp.repeat(x, times, axis=lead) if times != 1 else x  # noqa: E731
    data, indices, keep = repeat(data), repeat(indices), repeat(keep)
    new = jnp.tile(jnp.arange(times, dtype=indices.dtype), rows)
    columns, stride = [], times
    for k, n in enumerate(sizes):
        if k in grow:
            stride //= n
            columns.append(jnp.broadcast_to(new // stride % n, keep.shape))
        else:
            columns.append(indices[..., own[lead + k]])
    empty = jnp.zeros((*keep.shape, 0), indices.dtype)
    data, indices = kept(data, jnp.stack(columns, -1) if columns else empty, keep, sizes)
    return BCOO((data, indices), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The operands one behind the other along `dimension`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_concatenate([m, m], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    if not operands:
        raise ValueError("bcoo_concatenate: operands must not be empty.")
    operands = list(operands)
    axis = axis_of("bcoo_concatenate", dimension, operands[0].ndim, TypeError)
    total = sum(m.shape[axis] for m in operands)
    shape = [total if a == axis else n for a, n in enumerate(operands[0].shape)]
    for m in operands:
        if [n for a, n in enumerate(m.shape) if a != axis] != shape[:axis] + shape[axis + 1 :]:
            raise TypeError(
                f"bcoo_concatenate: shapes {[m.shape for m in operands]} differ beside axis {axis}."
            )
    layouts = {(m.n_batch, m.n_dense) for m in operands}
    if len(layouts) > 1 or axis >= operands[0].ndim - operands[0].n_dense:
        operands = [flat(m) for m in operands]
    batch = operands[0].n_batch
    if axis < batch:
        return _batches_joined(operands, shape, axis)
    parts, start = [], 0
    sizes = shape[batch : batch + operands[0].n_sparse]
    for m in operands:
        data, indices = broadcast_batch(m)
        moved = indices.at[..., axis - batch].add(start)
        parts.append(kept(data, moved, inside(m), sizes))
        start += m.shape[axis]
    return rows_joined(parts, shape, batch)


def _batches_joined(operands: Sequence[BCOO], shape: Sequence[int], axis: int) -> BCOO:
    """Along a batch axis; those with fewer elements get padding."""
    most = max(m.nse for m in operands)
    parts = []
    for m in operands:
        data, indices = broadcast_batch(m)
        rows = [(0, most - m.nse if a == m.n_batch else 0) for a in range(data.ndim)]
        out = jnp.broadcast_to(
            jnp.asarray(np.asarray(sparse_sizes(m), indices.dtype)),
            (*indices.shape[:-2], most - m.nse, m.n_sparse),
        )
        parts.append((jnp.pad(data, rows), jnp.concatenate([indices, out], -2)))
    return rows_joined(parts, shape, axis)


def rows_joined(parts: Sequence[tuple], shape: Sequence[int], axis: int) -> BCOO:
    """The elements of all, which have one layout, along an axis of the arrays that hold them."""
    data = jnp.concatenate([d for d, _ in parts], axis)
    return BCOO((data, jnp.concatenate([i for _, i in parts], axis)), shape=shape)


# ------------------------------------------------------------------ slices
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
    starts, limits = [[operator.index(a) for a in x] for x in (start_indices, limit_indices)]
    steps = [1] * mat.ndim if strides is None else [operator.index(s) for s in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: expected {mat.ndim} starts, limits and strides of {mat}.")
    for a, z, s, n in zip(starts, limits, steps, mat.shape, strict=True):
        if not 0 <= a <= z <= n or s < 1:
            raise TypeError(
                f"bcoo_slice: start {a}, limit {z} and stride {s} do not fit an axis of {n}."
            )
    at = [slice(a, z, s) for a, z, s in zip(starts, limits, steps, strict=True)]
    shape = [-(-(z - a) // s) for a, z, s in zip(starts, limits, steps, strict=True)]
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = broadcast_batch(mat)
    data, indices = data[(*at[:batch], slice(None), *at[last:])], indices[tuple(at[:batch])]
    return _cut(mat, data, indices, starts[batch:last], shape, steps[batch:last])


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """`lax.dynamic_slice`.

    mat: a BCOO. start_indices: where the slice begins. slice_sizes: its shape.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_dynamic_slice(m, (1, 0), (1, 2)).todense()
    Array([[0., 1.]], dtype=float32)
    """
    sizes = [operator.index(n) for n in slice_sizes]
    if not len(start_indices) == len(sizes) == mat.ndim:
        raise ValueError(f"bcoo_dynamic_slice: expected {mat.ndim} starts and sizes of {mat}.")
    if any(not 0 <= k <= n for k, n in zip(sizes, mat.shape, strict=True)):
        raise TypeError(f"bcoo_dynamic_slice: sizes {tuple(sizes)} do not fit {mat.shape}.")
    starts = []
    for start, k, n in zip(start_indices, sizes, mat.shape, strict=True):
        start = jnp.asarray(start)
        starts.append(jnp.clip(jnp.where(start < 0, start + n, start), 0, n - k))
    batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = broadcast_batch(mat)
    zero = jnp.zeros((), int)
    at = [s.astype(int) for s in starts]
    data = lax.dynamic_slice(data, [*at[:batch], zero, *at[last:]],
                             [*sizes[:batch], mat.nse, *sizes[last:]])  # fmt: skip
    indices = lax.dynamic_slice(indices, [*at[:batch], zero, zero],
                                [*sizes[:batch], mat.nse, mat.n_sparse])  # fmt: skip
    steps = [1] * mat.n_sparse
    return _cut(mat, data, indices, starts[batch:last], sizes, steps)


def _cut(mat: BCOO, data: Any, indices: Any, starts: Sequence[Any], shape: Sequence[int],
         steps: Sequence[int]) -> BCOO:  # fmt: skip
    """What of the elements lies in the sparse axes' slice; at most as many as it has places."""
    if not mat.n_sparse:
        return BCOO((data, indices), shape=shape)
    sizes = shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    old, dtype = np.asarray(sparse_sizes(mat), indices.dtype), indices.dtype
    moved = indices - jnp.stack([jnp.asarray(s).astype(dtype) for s in starts])
    stride = np.asarray(steps, dtype)
    keep = (indices < old) & (moved >= 0) & (moved < np.asarray(sizes, dtype) * stride)
    keep = jnp.all(keep & (moved % stride == 0), -1)
    data, indices = kept(data, moved // stride, keep, sizes)
    made = BCOO((data, indices), shape=shape)
    most = math.prod(sizes)
    if most < mat.nse:
        made = sum_duplicates(made, most, False)
    return BCOO((made.data, made.indices), shape=shape)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The elements in reverse along `dimensions`.

    operand: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_rev(m, (0,)).todense()[0])
    [0. 1.]
    """
    turned = {axis_of("bcoo_rev", a, operand.ndim, TypeError) for a in dimensions}
    batch, last = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = operand.data, operand.indices
    leading = [a for a in turned if a < batch]
    sizes = sparse_sizes(operand)
    for a in turned:
        if batch <= a < last:
            column = indices[..., a - batch]
            inner = column < operand.shape[a]
            indices = indices.at[..., a - batch].set(
                jnp.where(inner, operand.shape[a] - 1 - column, sizes[a - batch])
            )
    data = lax.rev(data, [*leading, *[a - last + batch + 1 for a in turned if a >= last]])
    return BCOO((data, lax.rev(indices, leading)), shape=operand.shape)


def each_axis(mat: BCOO, item: Any) -> list:
    """What `item` says of each axis in turn, and the Nones between."""
    items = list(item) if isinstance(item, tuple) else [item]
    named = sum(i is not None and i is not Ellipsis for i in items)
    at = [k for k, i in enumerate(items) if i is Ellipsis]
    if at:
        items[at[0] : at[0] + 1] = [slice(None)] * (mat.ndim - named)
    return items + [slice(None)] * (mat.ndim - sum(i is not None for i in items))


def part(mat: BCOO, item: Any) -> Any:
    """mat[item] for integers, slices, None and Ellipsis."""
    items = each_axis(mat, item)
    starts, limits, strides, turned, gone, sizes, dims = [], [], [], [], [], [], []
    axis = 0
    for i in items:
        if i is None:
            sizes.append(1)
            continue
        if axis == mat.ndim:
            raise IndexError(f"BCOO: more than {mat.ndim} indices for {mat}.")
        n = mat.shape[axis]
        if isinstance(i, slice):
            places = range(*i.indices(n))
            low, high = (min(places), max(places) + 1) if places else (0, 0)
            if places and places.step < 0:
                turned.append(axis)
            step = abs(places.step)
            dims.append(len(sizes))
            sizes.append(len(places))
        else:
            try:
                low = operator.index(i)
            except TypeError:
                raise TypeError(
                    f"BCOO: an index must be an integer, a slice, None or Ellipsis, got {i!r}."
                ) from None
            if not n:
                raise IndexError(f"BCOO: index {low} of axis {axis}, which has no places.")
            # The nearest place, as of arrays.
            low = min(max(low + n if low < 0 else low, 0), n - 1)
            high, step = low + 1, 1
            gone.append(axis)
        starts.append(low)
        limits.append(high)
        strides.append(step)
        axis += 1
    found = mat
    cuts = zip(starts, limits, strides, mat.shape, strict=True)
    if any(z - a < n or s > 1 for a, z, s, n in cuts):
        found = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=strides)
    found = bcoo_rev(found, turned) if turned else found
    found = bcoo_squeeze(found, dimensions=gone) if gone else found
    if len(dims) == len(sizes):
        return found
    return bcoo_broadcast_in_dim(found, shape=sizes, broadcast_dimensions=dims)


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

    data, indices = over_batch(core, mat.n_batch)(*joined_batch(mat))
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
        if not len(indices):
            return jnp.zeros(0, int), 0
        inside = jnp.all(indices < sizes, -1)
        if remove_zeros:
            inside = inside & (jnp.any(data != 0, axes) if axes else data != 0)
        last = jnp.where(inside, jnp.arange(len(indices)), -1)
        before = jnp.concatenate([jnp.full(1, -1), lax.cummax(last)[:-1]])
        same = jnp.all(indices == indices[before], -1) & (before >= 0)
        seen = jnp.cumsum(inside & ~same)
        return jnp.where(inside, seen - 1, len(indices)), seen[-1]

    numbers, counts = over_batch(number, mat.n_batch)(ordered.data, ordered.indices)
    if nse is None and not mat.n_sparse:
        nse = 1  # The sum of all rows, whether or not it is zero.
    if nse is None:
        most = min(mat.nse, math.prod(sizes.tolist()))
        known = counts if isinstance(counts, int) else counts.max() if counts.size else 0
        try:
            nse = int(known)
        except TypeError:  # traced
            nse = most

    def core(data: Any, indices: Any, place: Any) -> tuple:
        place = jnp.where(place < nse, place, nse)
        summed = accumulated(jnp.zeros((nse, *data.shape[1:]), data.dtype), place, data)
        rows = jnp.broadcast_to(sizes, (nse, len(sizes)))
        return summed, rows.at[place].set(indices, mode="drop")

    data, indices = over_batch(core, mat.n_batch)(ordered.data, ordered.indices, numbers)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)




def no_sharding(name: str, sharding: Any) -> None:
    """Raises NotImplementedError for a sharding."""
    if sharding is not None:
        raise NotImplementedError(
            f"{name}: sparse arrays take no sharding; their data and indices have one each."
        )
