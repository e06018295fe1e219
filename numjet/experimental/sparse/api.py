"""Sparse arrays of every format: `empty`, `eye`, `todense`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from numjet.experimental.sparse.bcsr import BCSR
from numjet.experimental.sparse.coo import COO
from numjet.experimental.sparse.csr import CSC, CSR
from numjet.experimental.sparse.transform import todense as todense, todense_p as todense_p

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(made: BCOO, name: str) -> Any:
    if name not in _FORMATS:
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of {[*_FORMATS]}")
    return made if name == "bcoo" else _FORMATS[name].from_bcoo(made)


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:  # fmt: skip
    """An array of zeros, of which none is kept (`nse` of them, if given).

    shape, dtype: the array's. index_dtype: of the indices. sparse_format: bcoo, bcsr, coo, csr or
    csc. kwds: nse, and of bcoo n_batch and n_dense, how many axes are batch and dense ones.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    nse, batch, dense = [kwds.pop(name, 0) for name in ("nse", "n_batch", "n_dense")]
    if kwds or sparse_format != "bcoo" and (batch or dense):
        raise NotImplementedError(
            f"sparse.empty: unknown arguments {sorted([*kwds, 'n_batch', 'n_dense'])}."
        )
    shape = tuple(shape)
    if sparse_format == "bcsr" and len(shape) != 2:
        raise ValueError(f"BCSR sparse.empty: must have 2 sparse dimensions, got shape {shape}.")
    lead, behind = shape[:batch], shape[len(shape) - dense :]
    sizes = np.asarray(shape[batch : len(shape) - dense], index_dtype)
    indices = jnp.broadcast_to(sizes, (*lead, nse, len(sizes)))
    data = jnp.zeros((*lead, nse, *behind), dtype)
    return _format(BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True),
                   sparse_format)  # fmt: skip


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:  # fmt: skip
    """A matrix of N rows and M columns (N) with ones on the diagonal k.

    dtype: of the values. index_dtype: of the indices. sparse_format: bcoo, bcsr, coo, csr or csc.
    kwds: of bcoo n_batch and n_dense, how many axes are batch and dense ones.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> print(sparse.eye(2, 3, 1).todense()[0])
    [0. 1. 0.]
    """
    batch, dense = kwds.pop("n_batch", 0), kwds.pop("n_dense", 0)
    if kwds or sparse_format != "bcoo" and (batch or dense):
        raise NotImplementedError(
            f"sparse.eye: unknown arguments {sorted([*kwds, 'n_batch', 'n_dense'])}."
        )
    M = N if M is None else M
    if batch < 0 or dense < 0 or batch + dense > 2:
        raise ValueError(f"sparse.eye: shape {(N, M)} has no n_batch={batch} and n_dense={dense}.")
    count = max(0, min(N - max(0, -k), M - max(0, k)))
    if batch or dense:
        ones = jnp.eye(N, M, k, dtype)
        made = bcoo_fromdense(ones, n_batch=batch, n_dense=dense, index_dtype=index_dtype)
        return made if ones.dtype == made.dtype else made.astype(ones.dtype)
    places = jnp.arange(count, dtype=index_dtype)
    indices = jnp.stack([places + max(0, -k), places + max(0, k)], -1)
    return _format(BCOO((jnp.ones(count, dtype), indices), shape=(N, M), indices_sorted=True,
                        unique_indices=True), sparse_format)  # fmt: skip
