"""numjet.experimental.sparse: arrays given by the elements that are not zero.

`bcoo.py` has `BCOO`, by coordinates, `operations.py` what is done with it, `bcsr.py` `BCSR`,
matrices by rows, `sparsified.py` functions of dense arrays run on sparse ones, `derivatives.py`
derivatives with respect to their values. The older formats `COO`, `CSR` and `CSC` are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp, random
from numjet.core import dtypes
from numjet.experimental.sparse.bcoo import (
    BCOO as BCOO,
    JAXSparse as JAXSparse,
    bcoo_fromdense as bcoo_fromdense,
    bcoo_todense as bcoo_todense,
)
from numjet.experimental.sparse.bcsr import (
    BCSR as BCSR,
    bcsr_extract as bcsr_extract,
    bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates,
    bcsr_todense as bcsr_todense,
)
from numjet.experimental.sparse.derivatives import (
    grad as grad,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from numjet.experimental.sparse.operations import (
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
    bcoo_concatenate as bcoo_concatenate,
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_dynamic_slice as bcoo_dynamic_slice,
    bcoo_extract as bcoo_extract,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
    bcoo_reduce_sum as bcoo_reduce_sum,
    bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev,
    bcoo_slice as bcoo_slice,
    bcoo_sort_indices as bcoo_sort_indices,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_sum_duplicates as bcoo_sum_duplicates,
    bcoo_transpose as bcoo_transpose,
    bcoo_update_layout as bcoo_update_layout,
)
from numjet.experimental.sparse.sparsified import sparsify as sparsify, todense as todense


def _format(made: BCOO, name: str) -> Any:
    if name == "bcoo":
        return made
    if name == "bcsr":
        return BCSR.from_bcoo(made)
    raise NotImplementedError(f"sparse_format={name!r}: there are 'bcoo' and 'bcsr'.")


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:  # fmt: skip
    """An array of zeros, of which none is kept (`nse` of them, if given).

    shape, dtype: the array's. index_dtype: of the indices. sparse_format: bcoo or bcsr. kwds: nse.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    nse = kwds.pop("nse", 0)
    if kwds:
        raise NotImplementedError(f"sparse.empty: unknown arguments {sorted(kwds)}.")
    sizes = np.asarray(shape, index_dtype)
    indices = jnp.broadcast_to(sizes, (nse, len(sizes)))
    return _format(BCOO((jnp.zeros(nse, dtype), indices), shape=shape, indices_sorted=True,
                        unique_indices=True), sparse_format)  # fmt: skip


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:  # fmt: skip
    """A matrix of N rows and M columns (N) with ones on the diagonal k.

    dtype: of the values. index_dtype: of the indices. sparse_format: bcoo or bcsr. kwds: none.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.eye(2, 3, 1).todense()[0])
    [0. 1. 0.]
    """
    if kwds:
        raise NotImplementedError(f"sparse.eye: unknown arguments {sorted(kwds)}.")
    M = N if M is None else M
    count = max(0, min(N - max(0, -k), M - max(0, k)))
    places = jnp.arange(count, dtype=index_dtype)
    indices = jnp.stack([places + max(0, -k), places + max(0, k)], -1)
    return _format(BCOO((jnp.ones(count, dtype), indices), shape=(N, M), indices_sorted=True,
                        unique_indices=True), sparse_format)  # fmt: skip


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = np.float64, indices_dtype: Any = None,
    nse: float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True,
    sorted_indices: bool = False, generator: Callable = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """A random array: `nse` elements of the sparse axes, or that part of them if it is below 1,
    with values by generator(key, shape, dtype). Other elements than JAX draws.

    indices_dtype: of the indices. n_batch, n_dense: how many axes are batch and dense ones.
    unique_indices, sorted_indices: whether they are. kwds: more arguments of generator.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> from numjet import random
    >>> sparse.random_bcoo(random.key(0), (4, 4), nse=3, dtype="float32")
    BCOO(float32[4, 4], nse=3)
    """
    sizes = tuple(shape)[n_batch : len(shape) - n_dense]
    total = int(np.prod(sizes))
    count = int(np.ceil(nse * total)) if 0 < nse < 1 else int(nse)
    dtype = dtypes.canonical(dtype)
    key_places, key_values = random.split(key)
    batch = int(np.prod(shape[:n_batch]))
    draw = lambda k: (random.choice(k, total, (count,), replace=not unique_indices))
    drawn = jnp.stack([draw(k) for k in random.split(key_places, batch)]) if batch else \
        jnp.zeros((0, count), int)
    drawn = jnp.sort(drawn, -1) if sorted_indices else drawn
    columns = jnp.unravel_index(drawn, sizes) if sizes else ()
    index_dtype = np.int32 if indices_dtype is None else indices_dtype
    stacked = jnp.stack(columns, -1) if columns else jnp.zeros((batch, count, 0))
    indices = stacked.astype(index_dtype).reshape(*shape[:n_batch], count, len(sizes))
    data = generator(key_values, shape=(*shape[:n_batch], count, *shape[len(shape) - n_dense :]),
                     dtype=dtype, **kwds)  # fmt: skip
    return BCOO((data, indices), shape=shape, indices_sorted=sorted_indices,
                unique_indices=unique_indices)  # fmt: skip


def bcsr_dot_general(
    lhs: BCSR, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """`bcoo_dot_general` of a matrix by rows.

    lhs: a BCSR. rhs, dimension_numbers, precision, preferred_element_type, out_sharding: as of
    `bcoo_dot_general`.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> b, n = sparse.eye(2, sparse_format="bcsr"), (((1,), (0,)), ((), ()))
    >>> print(sparse.bcsr_dot_general(b, jnp.ones(2), dimension_numbers=n))
    [1. 1.]
    """
    return bcoo_dot_general(
        lhs.to_bcoo(), rhs, dimension_numbers=dimension_numbers, precision=precision,
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


def __dir__() -> list[str]:
    return [name for name, x in globals().items()
            if not name.startswith("_") and str(getattr(x, "__module__", "")).startswith("numjet")]
