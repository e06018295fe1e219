"""numjet.experimental.sparse: matrices and arrays given by the elements that are not zero.

`BCOO` holds coordinates and values. It is a pytree, so that it passes through `jit`, `vmap` and
`grad` (derivatives are with respect to the values). Sums over coordinates are scatters of ordinary
arrays. There are no batch axes and no dense axes, and no other formats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base import tree
from numjet.core.array import Array


class BCOO:
    """A sparse array: `data`, shape (nse,), at the rows of `indices`, shape (nse, ndim).

    Elements that are named twice add up; rows of indices out of bounds are padding. Raises
    NotImplementedError for batch or dense axes.

    >>> import numjet.numpy as jnp
    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(m @ jnp.array([1.0, 10.0]))
    [20.  3.]
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices = args
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        ndim = getattr(self.indices, "ndim", 2)
        if ndim != 2 or getattr(self.data, "ndim", 1) != 1:
            raise NotImplementedError(
                "BCOO: batch and dense axes are not supported: data must have shape (nse,) and "
                f"indices (nse, {len(self.shape)})."
            )

    __array_ufunc__ = None  # NumPy then leaves array @ BCOO to us.
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    dtype = property(lambda self: self.data.dtype)
    nse = property(lambda self: self.indices.shape[0])
    n_batch = n_dense = 0
    n_sparse = property(lambda self: self.ndim)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> BCOO:
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        mat = jnp.asarray(mat)
        if nse is None:
            nse = int(jnp.count_nonzero(mat))
        found = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
        indices = jnp.stack([i.astype(index_dtype) for i in found], axis=1)
        data = mat.at[found].get(mode="fill", fill_value=0)
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = np.int32) -> BCOO:
        """A matrix of scipy.sparse."""
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=1).astype(index_dtype)
        return cls((jnp.asarray(coo.data), jnp.asarray(indices)), shape=mat.shape)

    def _columns(self) -> tuple[Array, ...]:
        return tuple([self.indices[:, axis] for axis in range(self.ndim)])

    def todense(self) -> Array:
        """The whole array, zeros included."""
        out = jnp.zeros(self.shape, self.data.dtype)
        return out.at[self._columns()].add(self.data, mode="drop")

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The axes in another order; reversed without `axes`."""
        order = tuple(axes) if axes is not None else tuple(reversed(range(self.ndim)))
        indices = self.indices[:, np.asarray(order, np.int32)]
        return BCOO((self.data, indices), shape=[self.shape[a] for a in order])

    T = property(lambda self: self.transpose())

    def sum(self, axis: int | None = None) -> Any:
        """The sum of all elements, or a dense array of the sums along `axis` of a matrix."""
        if axis is None:
            inside = jnp.all(self.indices < np.asarray(self.shape, np.int32), axis=1)
            return jnp.sum(jnp.where(inside, self.data, 0))
        if self.ndim != 2:
            raise NotImplementedError("BCOO.sum: along an axis of matrices only; use todense().")
        ones = jnp.ones(self.shape[axis], self.data.dtype)
        return self.T @ ones if axis % 2 == 0 else self @ ones

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, BCOO):
            other = other.todense()
        other = jnp.asarray(other)
        if self.ndim != 2 or not other.ndim or self.shape[1] != other.shape[-2:][0]:
            raise TypeError(
                f"BCOO @: expected a matrix, and a vector or matrices that fit, got shapes "
                f"{self.shape} and {other.shape}."
            )
        if other.ndim > 2:  # the matrices side by side are one
            *batch, inner, width = other.shape
            beside = jnp.moveaxis(other, -2, 0).reshape(inner, -1)
            out = (self @ beside).reshape(self.shape[0], *batch, width)
            return jnp.moveaxis(out, 0, -2)
        rows, columns = self._columns()
        picked = other.at[columns].get(mode="fill", fill_value=0)
        data = self.data if other.ndim == 1 else self.data[:, None]
        terms = data * picked
        out = jnp.zeros((self.shape[0], *other.shape[1:]), terms.dtype)
        return out.at[rows].add(terms, mode="drop")

    def __rmatmul__(self, other: Any) -> Any:
        other = jnp.asarray(other)
        if other.ndim < 2:
            return self.T @ other
        return (self.T @ other.mT).mT

    def __mul__(self, other: Any) -> BCOO:
        other = jnp.asarray(other)
        if other.ndim:
            spread = jnp.broadcast_to(other, self.shape)
            other = spread.at[self._columns()].get(mode="fill", fill_value=0)
        return BCOO(
            (self.data * other, self.indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    __rmul__ = __mul__

    def __neg__(self) -> BCOO:
        return self * -1

    def __repr__(self) -> str:
        dtype = getattr(self.data, "dtype", None)
        return f"BCOO({dtype}{list(self.shape)}, nse={getattr(self.indices, 'shape', '?')[0]})"


tree.register_pytree_node(
    BCOO,
    lambda m: ((m.data, m.indices), (m.shape, m.indices_sorted, m.unique_indices)),
    lambda static, children: _of_children(static, tuple(children)),
)


def _of_children(static: tuple, children: tuple) -> BCOO:
    # Without the checks: transformations put other things than arrays into trees.
    made = object.__new__(BCOO)
    made.data, made.indices = children
    made.shape, made.indices_sorted, made.unique_indices = static
    return made


def bcoo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> BCOO:
    """The sparse array of a dense one: `BCOO.fromdense`.

    mat: an array. nse: how many elements are stored, those that are not 0 unless given; needed
    while tracing. index_dtype: of the indices.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.array([0.0, 2.0])).data
    Array([2.], dtype=float32)
    """
    return BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a sparse one: `mat.todense()`.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> sparse.bcoo_todense(sparse.bcoo_fromdense(jnp.array([0.0, 2.0])))
    Array([0., 2.], dtype=float32)
    """
    return mat.todense()


def todense(arr: Any) -> Any:
    """A dense array of a sparse one; others as they are.

    arr: an array of either kind.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> sparse.todense(sparse.bcoo_fromdense(jnp.array([0.0, 2.0])))
    Array([0., 2.], dtype=float32)
    """
    return arr.todense() if isinstance(arr, BCOO) else arr


def sparsify(f: Callable) -> Callable:
    """`f` for arguments that may be sparse: it is given dense arrays, and returns what it makes of
    them. Memory is that of the dense arrays.

    >>> import numjet.numpy as jnp
    >>> print(sparsify(jnp.sum)(BCOO.fromdense(jnp.eye(3))))
    3.0
    """

    @functools.wraps(f)
    def dense(*args: Any, **kwargs: Any) -> Any:
        return f(*tree.tree_map(todense, args, is_leaf=_is_sparse),
                 **tree.tree_map(todense, kwargs, is_leaf=_is_sparse))  # fmt: skip

    return dense


def _is_sparse(x: Any) -> bool:
    return isinstance(x, BCOO)


__all__ = ["BCOO", "bcoo_fromdense", "bcoo_todense", "sparsify", "todense"]


def __dir__() -> list[str]:
    return [*__all__]
