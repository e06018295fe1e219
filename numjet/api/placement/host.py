"""Arrays on the way to the host: `device_get`, `block_until_ready`, `copy_to_host_async`.

Public names. What would break it: a kind of array that has no `block_until_ready`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl
from numjet.core.trace import Tracer


def device_get(x: Any) -> Any:
    """The pytree `x` with NumPy arrays in the place of Arrays.

    Waits until they are computed. Python numbers, PRNG keys and traced values stay what they are.
    The NumPy arrays may share memory with the Arrays and are read-only then.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.device_get([jnp.arange(2)])
    [array([0, 1], dtype=int32)]
    """

    def get(leaf: Any) -> Any:
        known = isinstance(leaf, Array) and not isinstance(leaf, Tracer)
        return np.asarray(leaf) if known and not dtypes.is_key(leaf.dtype) else leaf

    return tree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until every Array in the pytree `x` is computed; returns `x`.

    Operations may run in the background after the call has returned; timings need this. What a
    computation raised arrives here. Leaves that are no Arrays pass through.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.block_until_ready({"a": jnp.ones(2)})
    {'a': Array([1., 1.], dtype=float32)}
    """
    for leaf in tree.tree_leaves(x):
        if type(leaf) is ArrayImpl:
            try:
                leaf._value  # noqa: B018 - `block_until_ready`, written out
            except RuntimeError:
                leaf.block_until_ready()  # which says it of a deleted array
                raise
        elif isinstance(leaf, ArrayImpl):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start to copy the Arrays of the pytree `x` to the host's memory; returns `x`.

    On the CPU there is nothing to copy. With a plugin's device a later `np.asarray` finds the bytes
    there. Other leaves that have a method of this name are asked by it; the rest pass through.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.copy_to_host_async(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    for leaf in tree.tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x
