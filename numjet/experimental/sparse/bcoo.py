"""BCOO: arrays given by the coordinates and values of the elements that are not zero.

An array's axes are batch axes first, then sparse ones, then dense ones: `data` has the shape
(*batch, nse, *dense) and `indices` (*batch, nse, n_sparse). It is a pytree whose leaves these two
are, so that it passes through `jit`, `grad` and `vmap`; a mapped one has a batch axis more.
Operations on it (`operations.py`) are gathers and scatters of ordinary arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.api.maps.mapping import vmap
from numjet.base import tree
from numjet.core.array import Array, is_arraylike
from numjet.numpy.at import accumulated
from numjet.transforms.batch import BatchTracer


class JAXSparse:
    """What the formats have in common: `shape`, and names that follow from it."""

    data: Any
    shape: tuple[int, ...]
    nse: Any
    n_batch: Any
    n_dense: Any
    __array_ufunc__ = None  # NumPy then leaves array @ matrix to us.

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.data, *_ = args
        self.shape = tuple([int(n) for n in shape])

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self.transpose())

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            dtype, nse, batch, dense = self.dtype, self.nse, self.n_batch, self.n_dense
        except (AttributeError, IndexError, TypeError):  # leaves that are no arrays
            return f"{type(self).__name__}(shape={self.shape})"
        more = [f"nse={nse}", *([f"n_batch={batch}"] if batch else []),
                *([f"n_dense={dense}"] if dense else [])]
        return f"{type(self).__name__}({dtype}{list(self.shape)}, {', '.join(more)})"

    @classmethod
    def tree_unflatten(cls, aux_data: dict, children: Sequence[Any]) -> Any:
        """The matrix whose `tree_flatten` gave these leaves, and what else there is."""
        return cls(tuple(children), **aux_data)

    def _missing(self, name: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.{name}: use BCOO, or todense().")

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """The sum over `axis`, of formats that have it."""
        return self._missing("sum")

    def transpose(self, axes: Any = None) -> Any:
        """The axes in another order, of formats that have it."""
        return self._missing("transpose")

    __pos__ = __neg__ = lambda self: self._missing("__neg__")
    __add__ = __radd__ = lambda self, other: self._missing("__add__")
    __sub__ = __rsub__ = lambda self, other: self._missing("__sub__")
    __mul__ = __rmul__ = lambda self, other: self._missing("__mul__")
    __truediv__ = __pow__ = lambda self, other: self._missing("__truediv__")
    __matmul__ = __rmatmul__ = lambda self, other: self._missing("__matmul__")
    __getitem__ = lambda self, item: self._missing("__getitem__")

    def block_until_ready(self) -> Any:
        """This, when its values are there."""
        for leaf in tree.tree_leaves(self):
            leaf.block_until_ready()
        return self


class BCOO(JAXSparse):
    """A sparse array of `data`, shape (*batch, nse, *dense), at the rows of `indices`, shape
    (*batch, nse, n_sparse).

    Elements that are named twice add up; rows of indices out of bounds are padding.
    `indices_sorted` and `unique_indices` are promises.

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
        self.data, self.indices = [jnp.asarray(x) for x in args]
        self.shape = tuple([int(n) for n in shape])
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        batch, dense = self.n_batch, self.n_dense
        fits = batch >= 0 and dense >= 0 and self.ndim == batch + self.n_sparse + dense
        sizes = [*self.data.shape[:batch], *self.indices.shape[:batch]] if fits else []
        if not fits or any(n not in (1, m) for n, m in zip(sizes, self.shape[:batch] * 2)) or (
            self.data.shape[batch:] != (self.nse, *self.shape[self.ndim - dense :])
        ):  # fmt: skip
            raise ValueError(
                f"BCOO: invalid data and indices for shape {self.shape}: expected data of shape "
                "(*batch, nse, *dense) and indices of shape (*batch, nse, n_sparse), got "
                f"{self.data.shape} and {self.indices.shape}."
            )

    nse = property(lambda self: self.indices.shape[-2])
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)

    # ---------------------------------------------------------- from and to
    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:  # fmt: skip
        """The elements of `mat` that are not zero; `nse` of them, padded, where it is traced."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """A matrix of scipy.sparse."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse: n_dense and n_batch must be 0.")
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=1).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=mat.shape)

    def todense(self) -> Array:
        """The whole array, zeros included."""
        return bcoo_todense(self)

    def tree_flatten(self) -> tuple[tuple, dict]:
        """The leaves, and what else there is."""
        return (self.data, self.indices), self._static()

    def _static(self) -> dict:
        return {"shape": self.shape, "indices_sorted": self.indices_sorted,
                "unique_indices": self.unique_indices}  # fmt: skip

    # ---------------------------------------------------------- operations
    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """The values in another dtype; elements that are named twice are added up before they
        become integers."""
        kept = jnp.issubdtype(jnp.empty(0, self.dtype).astype(*args, **kwargs).dtype, jnp.inexact)
        return _op("zero_map")(self, lambda data: data.astype(*args, **kwargs), linear=kept)

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """The sum over `axis`: sparse, and an Array where all axes are summed over. dtype: what is
        added up in."""
        return _op("reduce_sum")(self, axis, dtype)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The axes in another order; reversed without `axes`."""
        order = tuple(axes) if axes is not None else tuple(reversed(range(self.ndim)))
        made = _op("bcoo_transpose")(self, permutation=order)
        sparse = range(self.n_batch, self.n_batch + self.n_sparse)
        if made.n_batch == self.n_batch and list(order[sparse.start : sparse.stop]) == [*sparse]:
            made.indices_sorted = self.indices_sorted  # their axes stay in order
        return made

    def reshape(self, *args: Any, order: str = "C", **kwargs: Any) -> BCOO:
        """The elements in another shape; order "F": the first axis runs fastest."""
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        if order == "C":
            return _op("reshape")(self, sizes, **kwargs)
        if order != "F" or kwargs:
            raise ValueError(f"BCOO.reshape: order must be 'C' or 'F', got {order!r}, {kwargs}.")
        return _op("reshape")(self.T, (sizes,) if isinstance(sizes, int) else sizes[::-1]).T

    def sort_indices(self) -> BCOO:
        """The same, its rows of indices in order."""
        return _op("bcoo_sort_indices")(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same, each element named once; `nse` of them, padded."""
        return _op("sum_duplicates")(self, nse, remove_zeros)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None,
        on_inefficient: str = "error",
    ) -> BCOO:  # fmt: skip
        """The same with other numbers of batch and dense axes."""
        return _op("bcoo_update_layout")(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def __getitem__(self, item: Any) -> Any:
        return _op("getitem")(self, item)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(self.shape[0])])

    __matmul__ = lambda self, other: _op("matmul")(self, _operand("dot", other))
    __rmatmul__ = lambda self, other: _op("matmul")(_operand("dot", other), self)
    __mul__ = lambda self, other: _op("multiply")(self, _operand("mul", other))
    __rmul__ = lambda self, other: _op("multiply")(self, _operand("mul", other))
    __truediv__ = lambda self, other: _op("multiply")(
        self, _operand("div", other), jnp.true_divide
    )
    __rtruediv__ = lambda self, other: _refused("div", other)
    __add__ = lambda self, other: _op("add")(self, _operand("add", other))
    __radd__ = lambda self, other: _op("add")(self, _operand("add", other))
    __sub__ = lambda self, other: _op("subtract")(self, _sparse(other))
    __rsub__ = lambda self, other: _op("subtract")(_sparse(other), self)
    __lt__ = lambda self, other: _refused("lt", other)
    __le__ = lambda self, other: _refused("le", other)
    __gt__ = lambda self, other: _refused("gt", other)
    __ge__ = lambda self, other: _refused("ge", other)
    __eq__ = lambda self, other: _refused("eq", other)
    __ne__ = lambda self, other: _refused("ne", other)
    __hash__ = None  # type: ignore[assignment]
    __pos__ = lambda self: _op("zero_map")(self, jnp.positive, linear=True)
    __neg__ = lambda self: _op("zero_map")(self, jnp.negative, linear=True)
    __abs__ = lambda self: _op("zero_map")(self, jnp.abs)
    __pow__ = lambda self, n: _op("power")(self, _operand("pow", n))


# The operations make BCOOs, so they stand above this file: they enter themselves here.
OPERATIONS: dict[str, Callable] = {}


def _op(name: str) -> Callable:
    return OPERATIONS[name]


def _sparse(x: Any) -> Any:
    if not isinstance(_operand("sub", x), JAXSparse):
        raise NotImplementedError(
            "BCOO: Subtraction between sparse and dense array is not implemented. Use todense()."
        )
    return x


def _operand(name: str, x: Any) -> Any:
    """What an operation is done with. Raises TypeError for what is no array and no number."""
    if not isinstance(x, JAXSparse) and not is_arraylike(x):
        raise TypeError(
            f"BCOO: {name} requires ndarray or scalar arguments, got {type(x)}. Whether a name "
            "stands for None is asked with `is`."
        )
    return x


DIVIDED = (
    "Division by a sparse array is not implemented because it would result in dense output. If "
    "this is your intent, use sparse.todense() to convert your arguments to a dense array."
)
# Operations that make other numbers of zeros.
_DENSE = ("acos", "acosh", "bessel_i0e", "cos", "cosh", "eq", "exp", "ge", "gt", "le", "lt", "log",
          "ne", "xor")  # fmt: skip


def unknown_rule(name: str) -> str:
    """What is said of an operation without a rule for sparse arrays."""
    text = f"sparse rule for {name} is not implemented"
    if name not in _DENSE:
        return f"{text}."
    return (
        f"{text} because it would result in dense output. If this is your intent, use "
        "sparse.todense() to convert your arguments to dense matrices."
    )


def _refused(name: str, other: Any) -> Any:
    _operand(name, other)
    raise NotImplementedError(DIVIDED if name == "div" else unknown_rule(name))


class Static(tuple):
    """What a matrix is in a tree besides its leaves: (shape, n_batch, indices_sorted,
    unique_indices). Printed as what `tree_flatten` says of it."""

    def __repr__(self) -> str:
        shape, _, ordered, unique = self
        return str({"shape": shape, "indices_sorted": ordered, "unique_indices": unique})


def _flatten(m: BCOO) -> tuple[tuple, Static]:
    batch = getattr(m.indices, "ndim", 2) - 2
    return (m.data, m.indices), Static((m.shape, batch, m.indices_sorted, m.unique_indices))


def _of_children(static: tuple, children: Any) -> BCOO:
    # Without the checks: transformations put other things than arrays into trees.
    made = object.__new__(BCOO)
    made.data, made.indices = children
    shape, batch, made.indices_sorted, made.unique_indices = static
    made.shape = mapped_shape(shape, batch, made.indices, 2)
    return made


def mapped_shape(shape: tuple, batch: int, indices: Any, own: int) -> tuple:
    """The shape of a matrix with `batch` batch axes when it was made a tree, whose leaves may have
    an axis less (inside of vmap) or more (what it returns) now. own: the axes of `indices` that are
    not of the batch."""
    extra = getattr(indices, "ndim", batch + own) - own - batch
    if extra < 0:
        if -extra > batch and isinstance(indices, BatchTracer):
            raise ValueError(
                f"Cannot map in_axis=0 for BCOO array with n_batch={batch}: vmap takes batch axes "
                "of sparse arrays alone. Make one by update_layout."
            )
        # Which axis was mapped the sizes of the others say; the first where they do not.
        rest = max(0, batch + extra)
        for stay in reversed(list(itertools.combinations(range(batch), rest))):
            if all(n in (1, shape[a]) for n, a in zip(indices.shape, stay, strict=False)):
                return (*[shape[a] for a in stay], *shape[batch:])
        return shape[-extra:]
    return (*indices.shape[:extra], *shape) if extra else shape


tree.register_pytree_node(BCOO, _flatten, _of_children)


def over_batch(core: Any, n_batch: int) -> Any:
    """`core` of one element of the batch, mapped over `n_batch` leading axes."""
    for _ in range(n_batch):
        core = vmap(core)
    return core


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:  # fmt: skip
    """A BCOO of the elements of `mat` that are not zero.

    n_batch, n_dense: how many leading axes are batch axes and trailing ones dense: an element of
    the sparse axes is then a whole array. nse: how many are kept for each batch element; the most
    there are, without it, which has to be known.

    index_dtype: of the indices. Booleans become integers.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_fromdense(jnp.array([0.0, 2.0])).data
    Array([2.], dtype=float32)
    """
    mat = jnp.asarray(mat)
    if mat.dtype == bool:
        mat = mat.astype(int)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"BCOO: n_batch={n_batch} and n_dense={n_dense} do not fit an array of {mat.ndim} axes."
        )
    there = mat != 0
    if n_dense:
        there = there.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        counts = there.sum(tuple(range(n_batch, there.ndim)))
        nse = int(counts.max()) if counts.size else 0
    sizes = mat.shape[n_batch : n_batch + n_sparse]

    def core(mat: Any, there: Any) -> tuple:
        if not n_sparse:
            found = jnp.zeros((nse, 0), index_dtype)
            return jnp.where(jnp.arange(nse).reshape(nse, *[1] * n_dense) < there, mat, 0), found
        found = jnp.nonzero(there, size=nse, fill_value=sizes)
        data = mat.at[found].get(mode="fill", fill_value=0)
        return data, jnp.stack([i.astype(index_dtype) for i in found], axis=-1)

    data, indices = over_batch(core, n_batch)(mat, there)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Array:
    """`mat.todense()`.

    mat: a BCOO.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.bcoo_todense(m)[0])
    [1. 0.]
    """
    batch, n_sparse = mat.n_batch, mat.n_sparse
    sizes = mat.shape[batch:]

    def core(data: Any, indices: Any) -> Any:
        if not n_sparse:
            return data.sum(0, dtype=data.dtype)
        out = jnp.zeros(sizes, data.dtype)
        return accumulated(out, tuple([indices[:, a] for a in range(n_sparse)]), data)

    return over_batch(core, batch)(*broadcast_batch(mat))


def broadcast_batch(mat: BCOO) -> tuple[Any, Any]:
    """Data and indices with all batch axes at their full sizes: one of size 1 stands for all."""
    return _with_batch(mat, mat.shape[: mat.n_batch])


def joined_batch(mat: BCOO) -> tuple[Any, Any]:
    """Data and indices with the same sizes of batch axes: 1 where one stands for all in both."""
    shapes = [x.shape[: mat.n_batch] for x in (mat.data, mat.indices)]
    return _with_batch(mat, jnp.broadcast_shapes(*shapes))


def _with_batch(mat: BCOO, batch: tuple[int, ...]) -> tuple[Any, Any]:
    return (jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[len(batch) :])),
            jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[len(batch) :])))  # fmt: skip
