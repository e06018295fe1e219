"""BCSR, matrices by rows: `indptr` says where a row begins. Operations are those of BCOO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import tree
from numjet.core.array import Array
from numjet.experimental.sparse.bcoo import (
    BCOO,
    JAXSparse,
    Static,
    bcoo_fromdense,
    broadcast_batch,
    mapped_shape,
    over_batch,
)
from numjet.experimental.sparse.layouts import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    sum_duplicates,
)
from numjet.experimental.sparse.operations import (
    bcoo_dot_general,
    bcoo_extract,
    getitem,
    matmul,
    reduce_sum,
)


def pointers(rows: Any, count: int) -> Any:
    """Where each of `count` rows begins, and the last ends, among rows in order."""
    return jnp.searchsorted(rows, jnp.arange(count + 1, dtype=rows.dtype)).astype(rows.dtype)


def rows_of(indptr: Any, nse: int, dtype: Any) -> Any:
    """The row of each of `nse` elements; of padding it is out of bounds."""
    places = jnp.arange(nse, dtype=indptr.dtype)
    return jnp.searchsorted(indptr, places, side="right").astype(dtype) - 1


class BCSR(JAXSparse):
    """A sparse matrix, or a batch of them, with dense axes behind: the values `data`, shape
    (*batch, nse, *dense), and the columns `indices`, shape (*batch, nse), of row i stand at the
    places from indptr[..., i] to indptr[..., i + 1].

    >>> import numjet.numpy as jnp
    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m.indptr, m @ jnp.array([1.0, 10.0]))
    [0 1 2] [20.  3.]
    """

    n_sparse = 2

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.indices, self.indptr = [jnp.asarray(x) for x in args]
        self.shape = tuple([int(n) for n in shape])
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        batch, dense = self.n_batch, self.n_dense
        fits = batch >= 0 and dense >= 0 and self.ndim == batch + 2 + dense
        rows = (*self.shape[:batch], self.shape[batch] + 1) if fits else ()
        whole = (*self.shape[:batch], self.nse, *self.shape[batch + 2 :]) if fits else ()
        if not fits or self.indptr.shape != rows or self.data.shape != whole or (
            self.indices.shape[:-1] != self.shape[:batch]
        ):  # fmt: skip
            raise ValueError(
                f"BCSR: invalid data, indices and indptr for shape {self.shape}: expected data of "
                "shape (*batch, nse, *dense), indices of shape (*batch, nse) and indptr of shape "
                f"(*batch, rows + 1), got {self.data.shape}, {self.indices.shape} and "
                f"{self.indptr.shape}."
            )

    nse = property(lambda self: self.indices.shape[-1])
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)  # fmt: skip

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same matrix, by rows."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: expected two sparse axes, got {arr}.")
        ordered = arr if arr.indices_sorted else arr.sort_indices()
        data, indices = broadcast_batch(ordered)
        count = arr.shape[arr.n_batch]
        starts = over_batch(lambda rows: pointers(rows, count), arr.n_batch)(indices[..., 0])
        return cls((data, indices[..., 1], starts), shape=arr.shape,
                   indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_batch: int = 0, n_dense: int = 0
    ) -> BCSR:
        """A matrix of scipy.sparse."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse: n_dense and n_batch must be 0.")
        rows, dtype = mat.tocsr(), index_dtype or np.int32
        parts = (rows.data, rows.indices.astype(dtype), rows.indptr.astype(dtype))
        return cls(parts, shape=rows.shape)

    def to_bcoo(self) -> BCOO:
        """The same matrix, by coordinates; what stands behind the last row is padding."""
        batch, dtype = self.n_batch, self.indices.dtype
        count, columns = self.shape[batch : batch + 2]
        rows = over_batch(lambda starts: rows_of(starts, self.nse, dtype), batch)(self.indptr)
        indices = jnp.stack([rows, jnp.where(rows < count, self.indices, columns)], -1)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)  # fmt: skip

    def todense(self) -> Array:
        """The whole matrix, zeros included."""
        return self.to_bcoo().todense()

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """The axes in another order; reversed without `axes`."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """The sum over `axis`: sparse (by coordinates), and an Array over all axes."""
        return reduce_sum(self.to_bcoo(), axis, dtype)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same, each element named once; `nse` of them, padded."""
        return BCSR.from_bcoo(sum_duplicates(self.to_bcoo(), nse, remove_zeros))

    def tree_flatten(self) -> tuple[tuple, dict]:
        """The leaves, and what else there is."""
        static = {"shape": self.shape, "indices_sorted": self.indices_sorted,
                  "unique_indices": self.unique_indices}  # fmt: skip
        return (self.data, self.indices, self.indptr), static

    def _with_data(self, data: Any) -> BCSR:
        return BCSR((data, self.indices, self.indptr), **self.tree_flatten()[1])

    def __getitem__(self, item: Any) -> BCSR:
        found = getitem(self.to_bcoo(), item)
        if found.n_sparse != 2:
            raise NotImplementedError(
                f"BCSR: a part with {found.n_sparse} sparse axes is no BCSR. Use to_bcoo()."
            )
        return BCSR.from_bcoo(found)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(self.shape[0])])

    def __matmul__(self, other: Any) -> Any:
        return matmul(self.to_bcoo(), other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self.to_bcoo())

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, JAXSparse) and not jnp.ndim(other):
            return self._with_data(self.data * other)
        return self.to_bcoo() * other

    __rmul__ = __mul__

    def __neg__(self) -> BCSR:
        return self._with_data(-self.data)

    def __add__(self, other: Any) -> BCOO:
        return self.to_bcoo() + other

    def __sub__(self, other: Any) -> BCOO:
        return self.to_bcoo() - other


def _of_children(static: tuple, children: Any) -> BCSR:
    made = object.__new__(BCSR)
    made.data, made.indices, made.indptr = children
    shape, batch, made.indices_sorted, made.unique_indices = static
    made.shape = mapped_shape(shape, batch, made.indices, 1)
    return made


def _flatten(m: BCSR) -> tuple[tuple, Static]:
    static = Static((m.shape, getattr(m.indices, "ndim", 1) - 1, m.indices_sorted,
                     m.unique_indices))  # fmt: skip
    return (m.data, m.indices, m.indptr), static


tree.register_pytree_node(BCSR, _flatten, _of_children)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:  # fmt: skip
    """`BCSR.fromdense`.

    mat: a matrix, with n_batch axes before and n_dense ones behind. nse: how many elements of each
    are kept. index_dtype: of indices. Raises ValueError for other numbers of axes than two between.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcsr_fromdense(jnp.eye(2)).indptr)
    [0 1 2]
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: must have 2 sparse dimensions, got shape {mat.shape} with "
            f"n_batch={n_batch} and n_dense={n_dense}."
        )
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                         index_dtype=index_dtype))  # fmt: skip


def bcsr_todense(mat: BCSR) -> Array:
    """`mat.todense()`.

    mat: a BCSR.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcsr_todense(sparse.eye(2, sparse_format="bcsr"))[1])
    [0. 1.]
    """
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The values of the matrix `mat` at the places that indices and indptr name.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> b = sparse.eye(2, sparse_format="bcsr")
    >>> print(sparse.bcsr_extract(b.indices, b.indptr, jnp.ones((2, 2))))
    [1. 1.]
    """
    mat, indices, indptr = [jnp.asarray(x) for x in (mat, indices, indptr)]
    batch = indices.ndim - 1
    data = jnp.zeros((*indices.shape, *mat.shape[batch + 2 :]), mat.dtype)
    found = BCSR((data, indices, indptr), shape=mat.shape)
    return bcoo_extract(found.to_bcoo(), mat, assume_unique=True).data


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """`mat.sum_duplicates(nse, remove_zeros=False)`.

    mat: a BCSR. nse: how many elements there may be.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcsr_sum_duplicates(sparse.eye(2, sparse_format="bcsr"))
    BCSR(float32[2, 2], nse=2)
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """`bcoo_dot_general` of a matrix by rows.

    lhs: a BCSR, or rhs. dimension_numbers, precision, preferred_element_type, out_sharding: as of
    `bcoo_dot_general`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> b, n = sparse.eye(2, sparse_format="bcsr"), (((1,), (0,)), ((), ()))
    >>> print(sparse.bcsr_dot_general(b, jnp.ones(2), dimension_numbers=n))
    [1. 1.]
    """
    return bcoo_dot_general(
        *[x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)],
        dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type, out_sharding=out_sharding,
    )  # fmt: skip


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The matrices one behind the other along `dimension`.

    operands: BCSRs.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> b = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_concatenate([b, b], dimension=0)
    BCSR(float32[4, 2], nse=4)
    """
    made = bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension)
    return BCSR.from_bcoo(made)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCSR:  # fmt: skip
    """`lax.broadcast_in_dim`: new axes before the rows are batch axes, those behind the columns
    dense where there are dense axes. Raises NotImplementedError for new axes between.

    mat: a BCSR. shape, broadcast_dimensions: as of `lax.broadcast_in_dim`. sharding: None alone.

    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_broadcast_in_dim(m, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    made = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape,
                                 broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    return BCSR.from_bcoo(made)
