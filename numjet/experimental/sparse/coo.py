"""COO: matrices by the row, the column and the value of each element; the format before `BCOO`.

Products and `todense` are primitives (`coo_matvec_p`, ...) that are composed of gathers and
scatters. Elements out of bounds are padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array
from numjet.experimental.sparse.bcoo import BCOO, JAXSparse, bcoo_fromdense
from numjet.experimental.sparse.util import COOInfo
from numjet.numpy.at import accumulated
from numjet.ops.composed import composed


class COO(JAXSparse):
    """A sparse matrix of `data` at the rows `row` and the columns `col`; elements that are named
    twice add up. `rows_sorted` and `cols_sorted` are promises.

    >>> import numjet.numpy as jnp
    >>> m = COO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m @ jnp.array([1.0, 10.0]), m)
    [20.  3.] COO(float32[2, 2], nse=2)
    """

    n_batch = n_dense = 0
    n_sparse = 2

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.row, self.col = [jnp.asarray(x) for x in args]
        self.shape = tuple([int(n) for n in shape])
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted
        if len(self.shape) != 2:
            raise ValueError(f"COO: expected the shape of a matrix, got {self.shape}.")

    nse = property(lambda self: self.data.size)
    _info = property(lambda self: COOInfo(self.shape, self.rows_sorted, self.cols_sorted))

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> COO:
        """The same matrix."""
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape,
                   rows_sorted=mat.indices_sorted)  # fmt: skip

    def to_bcoo(self) -> BCOO:
        """The same matrix."""
        indices = jnp.stack([self.row, self.col], -1)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=False)

    def todense(self) -> Array:
        """The whole matrix, zeros included."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The matrix with rows and columns exchanged."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError("COO.transpose: axes must be None or (1, 0).")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1],
                   rows_sorted=self.cols_sorted, cols_sorted=self.rows_sorted)  # fmt: skip

    def tree_flatten(self) -> tuple[tuple, dict]:
        """The leaves, and what else there is."""
        return (self.data, self.row, self.col), self._info._asdict()

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other, coo_matvec, coo_matmat)


def matmul(mat: Any, other: Any, by_vector: Any, by_matrix: Any) -> Any:
    """mat @ other for a vector or a matrix."""
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"{type(mat).__name__} @ an array of shape {other.shape}.")
    return (by_vector if other.ndim == 1 else by_matrix)(mat, other)


def _of_children(static: tuple, children: Any) -> COO:
    made = object.__new__(COO)
    made.data, made.row, made.col = children
    made.shape, made.rows_sorted, made.cols_sorted = static
    return made


tree.register_pytree_node(
    COO, lambda m: ((m.data, m.row, m.col), (m.shape, m.rows_sorted, m.cols_sorted)), _of_children
)


# ------------------------------------------------------------------ operations on arrays
def dense(data: Any, row: Any, col: Any, shape: tuple[int, int]) -> Any:
    """The whole matrix."""
    return accumulated(jnp.zeros(shape, data.dtype), (row, col), data)


def product(data: Any, row: Any, col: Any, x: Any, shape: tuple[int, int], transpose: bool) -> Any:
    """The matrix, or its transpose, times a vector or a matrix."""
    if transpose:
        row, col, shape = col, row, shape[::-1]
    if x.shape[0] != shape[1]:
        raise TypeError(
            f"sparse product: shapes {shape} and {x.shape} do not fit: {shape[1]} columns meet "
            f"{x.shape[0]} rows."
        )
    dtype = dtypes.promote((data.dtype, False), (x.dtype, False))[0]
    picked = x.astype(dtype).at[col].get(mode="fill", fill_value=0)
    # Of padding no coordinate counts, whichever is out of bounds.
    inner = (row < shape[0]) & (col < shape[1])
    values = jnp.where(inner, data.astype(dtype), jnp.zeros((), dtype))
    terms = values.reshape(values.shape + (1,) * (x.ndim - 1)) * picked
    return accumulated(jnp.zeros((shape[0], *x.shape[1:]), dtype), row, terms)


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
    found = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return [found.data.astype(mat.dtype), found.indices[:, 0], found.indices[:, 1]]


def _by_vector(data: Any, row: Any, col: Any, x: Any, *, spinfo: COOInfo, transpose: bool) -> Any:
    return product(data, row, col, x, spinfo.shape, transpose)  # type: ignore[arg-type]


coo_todense_p = composed(
    "coo_todense", lambda data, row, col, *, spinfo: dense(data, row, col, spinfo.shape)
)
coo_fromdense_p = composed("coo_fromdense", _fromdense, several=True)
coo_matvec_p = composed("coo_matvec", _by_vector)
coo_matmat_p = composed("coo_matmat", _by_vector)


def coo_todense(mat: COO) -> Array:
    """`mat.todense()`.

    mat: a COO.

    >>> from numjet.experimental import sparse
    >>> print(sparse.coo_todense(sparse.eye(2, sparse_format="coo"))[0])
    [1. 0.]
    """
    return coo_todense_p.bind(mat.data, mat.row, mat.col, spinfo=mat._info)


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """A COO of the elements of `mat` that are not zero.

    nse: how many are kept; as many as there are, without it, which has to be known. index_dtype:
    of rows and columns.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2)).col
    Array([0, 1], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if nse is None:
        nse = int((mat != 0).sum())
    parts = coo_fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype))
    return COO(tuple(parts), shape=mat.shape, rows_sorted=True)


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector.

    mat: a COO. v: the vector. transpose: whether it is the transpose.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> print(sparse.coo_matvec(sparse.eye(2, sparse_format="coo"), jnp.arange(2.0)))
    [0. 1.]
    """
    v = jnp.asarray(v)
    return coo_matvec_p.bind(mat.data, mat.row, mat.col, v, spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix.

    mat: a COO. B: the other matrix. transpose: whether it is the transpose of mat.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> print(sparse.coo_matmat(sparse.eye(2, sparse_format="coo"), jnp.ones((2, 3)))[0])
    [1. 1. 1.]
    """
    B = jnp.asarray(B)
    return coo_matmat_p.bind(mat.data, mat.row, mat.col, B, spinfo=mat._info, transpose=transpose)
