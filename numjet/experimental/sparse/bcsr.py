"""BCSR, matrices by rows: `indptr` says where a row begins. Operations are those of BCOO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import tree
from numjet.core.array import Array
from numjet.experimental.sparse.bcoo import BCOO, JAXSparse, bcoo_fromdense
from numjet.experimental.sparse.operations import matmul, reduce_sum, sum_duplicates


class BCSR(JAXSparse):
    """A sparse matrix: the values `data` and columns `indices` of row i stand at the places from
    indptr[i] to indptr[i + 1]. Raises NotImplementedError for batch and dense axes.

    >>> import numjet.numpy as jnp
    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m.indptr, m @ jnp.array([1.0, 10.0]))
    [0 1 2] [20.  3.]
    """

    n_batch = n_dense = 0
    n_sparse = 2

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.indices, self.indptr = [jnp.asarray(x) for x in args]
        self.shape = tuple([int(n) for n in shape])
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if len(self.shape) != 2 or self.data.ndim != 1 or self.indices.ndim != 1:
            raise NotImplementedError(
                "BCSR: batch and dense axes are not supported; use BCOO. Expected a matrix, data "
                f"and indices of one axis, got shape {self.shape}, data {self.data.shape} and "
                f"indices {self.indices.shape}."
            )

    nse = property(lambda self: self.indices.shape[-1])

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        made = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)  # fmt: skip
        return cls.from_bcoo(made)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same matrix, by rows."""
        if arr.ndim != 2 or arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: expected a matrix without batch and dense "
                                      f"axes, got {arr}.")  # fmt: skip
        arr = arr if arr.indices_sorted else arr.sort_indices()
        rows, columns = arr.indices[:, 0], arr.indices[:, 1]
        starts = jnp.arange(arr.shape[0] + 1, dtype=rows.dtype)
        indptr = jnp.searchsorted(rows, starts).astype(rows.dtype)
        return cls((arr.data, columns, indptr), shape=arr.shape, indices_sorted=True,
                   unique_indices=arr.unique_indices)  # fmt: skip

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
        places = jnp.arange(self.nse, dtype=self.indptr.dtype)
        rows = jnp.searchsorted(self.indptr, places, side="right").astype(self.indices.dtype) - 1
        columns = jnp.where(rows < self.shape[0], self.indices, self.shape[1])
        indices = jnp.stack([rows, columns], -1)
        return BCOO((self.data, indices), **self.tree_flatten()[1])

    def todense(self) -> Array:
        """The whole matrix, zeros included."""
        return self.to_bcoo().todense()

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """The axes in another order; reversed without `axes`."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum(self, axis: Any = None) -> Any:
        """The sum over `axis`: sparse (by coordinates), and an Array over all axes."""
        return reduce_sum(self.to_bcoo(), axis)

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
    made.shape, made.indices_sorted, made.unique_indices = static
    return made


tree.register_pytree_node(
    BCSR,
    lambda m: ((m.data, m.indices, m.indptr), (m.shape, m.indices_sorted, m.unique_indices)),
    _of_children,
)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:  # fmt: skip
    """`BCSR.fromdense`.

    mat: a matrix. nse: how many elements are kept. n_batch, n_dense: 0. index_dtype: of indices.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcsr_fromdense(jnp.eye(2)).indptr)
    [0 1 2]
    """
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


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
    mat = jnp.asarray(mat)
    found = BCSR((jnp.zeros(jnp.shape(indices), mat.dtype), indices, indptr), shape=mat.shape)
    at = found.to_bcoo().indices
    return mat.at[at[:, 0], at[:, 1]].get(mode="fill", fill_value=0)


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
