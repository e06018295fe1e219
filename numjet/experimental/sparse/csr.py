"""CSR and CSC: matrices by rows, and by columns; `BCSR` is the newer format.

`indptr` says where a row's elements (a column's) begin. Products and `todense` are primitives
(`csr_matvec_p`, ...); what stands behind the last row is padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import tree
from numjet.core.array import Array
from numjet.experimental.sparse.bcoo import BCOO, JAXSparse, bcoo_fromdense
from numjet.experimental.sparse.bcsr import pointers, rows_of
from numjet.experimental.sparse.coo import dense, matmul, product
from numjet.ops.composed import composed


class _Compressed(JAXSparse):
    """What CSR and CSC have in common."""

    n_batch = n_dense = 0
    n_sparse = 2

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = [jnp.asarray(x) for x in args]
        self.shape = tuple([int(n) for n in shape])
        if len(self.shape) != 2:
            raise ValueError(f"{type(self).__name__}: expected the shape of a matrix, got {shape}.")

    nse = property(lambda self: self.data.size)

    def tree_flatten(self) -> tuple[tuple, dict]:
        """The leaves, and what else there is."""
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    def _turned(self, kind: type, axes: Sequence[int] | None) -> Any:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError("transpose: axes must be None or (1, 0).")
        return kind((self.data, self.indices, self.indptr), shape=self.shape[::-1])


class CSR(_Compressed):
    """A sparse matrix: the values `data` and columns `indices` of row i stand at the places from
    indptr[i] to indptr[i + 1].

    >>> import numjet.numpy as jnp
    >>> m = CSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m.indptr, m @ jnp.array([1.0, 10.0]), m.T)
    [0 1 2] [20.  3.] CSC(float32[2, 2], nse=2)
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSR:
        """The same matrix."""
        mat = mat if mat.indices_sorted else mat.sort_indices()
        rows = mat.indices[:, 0]
        return cls((mat.data, mat.indices[:, 1], pointers(rows, mat.shape[0])), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The same matrix, by coordinates."""
        rows = rows_of(self.indptr, self.nse, self.indices.dtype)
        return BCOO((self.data, jnp.stack([rows, self.indices], -1)), shape=self.shape)

    def todense(self) -> Array:
        """The whole matrix, zeros included."""
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """The matrix with rows and columns exchanged, by columns."""
        return self._turned(CSC, axes)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other, csr_matvec, csr_matmat)


class CSC(_Compressed):
    """A sparse matrix by columns: the values `data` and rows `indices` of column i stand at the
    places from indptr[i] to indptr[i + 1].

    >>> import numjet.numpy as jnp
    >>> m = CSC.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m.indices, m @ jnp.array([1.0, 10.0]))
    [1 0] [20.  3.]
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSC:
        """The same matrix."""
        return CSR.from_bcoo(mat.T).T

    def to_bcoo(self) -> BCOO:
        """The same matrix, by coordinates."""
        return self.T.to_bcoo().T

    def todense(self) -> Array:
        """The whole matrix, zeros included."""
        return jnp.transpose(csr_todense(self.T))

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """The matrix with rows and columns exchanged, by rows."""
        return self._turned(CSR, axes)

    def __matmul__(self, other: Any) -> Any:
        return matmul(
            self.T, other, lambda m, v: csr_matvec(m, v, transpose=True),
            lambda m, v: csr_matmat(m, v, transpose=True),
        )  # fmt: skip


def _register(kind: type) -> None:
    def of_children(static: tuple, children: Any) -> Any:
        made: Any = object.__new__(kind)
        made.data, made.indices, made.indptr = children
        (made.shape,) = static
        return made

    tree.register_pytree_node(
        kind, lambda m: ((m.data, m.indices, m.indptr), (m.shape,)), of_children
    )


_register(CSR)
_register(CSC)


# ------------------------------------------------------------------ operations on arrays
def _dense(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]) -> Any:
    return dense(data, rows_of(indptr, data.size, indices.dtype), indices, shape)


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
    found = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return [found.data, found.indices[:, 1], pointers(found.indices[:, 0], mat.shape[0])]


def _product(
    data: Any, indices: Any, indptr: Any, x: Any, *, shape: tuple[int, int], transpose: bool
) -> Any:
    rows = rows_of(indptr, data.size, indices.dtype)
    return product(data, rows, indices, x, shape, transpose)


csr_todense_p = composed("csr_todense", _dense)
csr_fromdense_p = composed("csr_fromdense", _fromdense, several=True)
csr_matvec_p = composed("csr_matvec", _product)
csr_matmat_p = composed("csr_matmat", _product)


def csr_todense(mat: CSR) -> Array:
    """`mat.todense()`.

    mat: a CSR.

    >>> from numjet.experimental import sparse
    >>> print(sparse.csr_todense(sparse.eye(2, sparse_format="csr"))[0])
    [1. 0.]
    """
    return csr_todense_p.bind(mat.data, mat.indices, mat.indptr, shape=mat.shape)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """A CSR of the elements of `mat` that are not zero.

    nse: how many are kept; as many as there are, without it, which has to be known. index_dtype:
    of the indices.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if nse is None:
        nse = int((mat != 0).sum())
    parts = csr_fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype))
    return CSR(tuple(parts), shape=mat.shape)


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector.

    mat: a CSR. v: the vector. transpose: whether it is the transpose.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> print(sparse.csr_matvec(sparse.eye(2, sparse_format="csr"), jnp.arange(2.0)))
    [0. 1.]
    """
    v = jnp.asarray(v)
    return csr_matvec_p.bind(
        mat.data, mat.indices, mat.indptr, v, shape=mat.shape, transpose=transpose
    )


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix.

    mat: a CSR. B: the other matrix. transpose: whether it is the transpose of mat.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> print(sparse.csr_matmat(sparse.eye(2, sparse_format="csr"), jnp.ones((2, 3)))[0])
    [1. 1. 1.]
    """
    B = jnp.asarray(B)
    return csr_matmat_p.bind(
        mat.data, mat.indices, mat.indptr, B, shape=mat.shape, transpose=transpose
    )
