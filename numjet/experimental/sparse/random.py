"""Random sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp, random
from numjet.core import dtypes
from numjet.experimental.sparse.bcoo import BCOO


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = np.float64, indices_dtype: Any = None,
    nse: float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True,
    sorted_indices: bool = False, generator: Callable = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """A random array: `nse` elements of the sparse axes, or that part of them if it is below 1,
    with values by generator(key, shape, dtype). Other elements than JAX draws.

    indices_dtype: of the indices. n_batch, n_dense: how many axes are batch and dense ones.
    unique_indices, sorted_indices: whether they are. kwds: more arguments of generator. Raises
    ValueError for more elements, or more of these axes, than there are.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> m = sparse.eye(2)
    >>> from numjet import random
    >>> sparse.random_bcoo(random.key(0), (4, 4), nse=3, dtype="float32")
    BCOO(float32[4, 4], nse=3)
    """
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={tuple(shape)}.")
    sizes = tuple(shape)[n_batch : len(shape) - n_dense]
    total = int(np.prod(sizes))
    if not 0 <= nse <= total:
        raise ValueError(f"random_bcoo: got nse={nse}, expected to be between 0 and {total}.")
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


__all__ = ["random_bcoo"]
