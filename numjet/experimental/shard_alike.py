"""numjet.experimental.shard_alike: two arrays laid out over the devices in the same way.

For users. The partitioner has a rule for the primitive: what is cut of one is cut of the other.
"""

from __future__ import annotations

from typing import Any

from numjet.base import tree
from numjet.core.array import as_array
from numjet.ops.arrange import shard_alike_p

__all__ = [
    "shard_alike",
]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """x and y, cut over devices along the same axes.

    x, y: pytrees of arrays of one structure, whose leaves have the same shapes (ValueError). Where
    one of two leaves is cut, the other is cut so, too. Derivative: the identity.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental.shard_alike import shard_alike
    >>> shard_alike(jnp.zeros(2), jnp.ones(2))
    (Array([0., 0.], dtype=float32), Array([1., 1.], dtype=float32))
    """
    ours, treedef = tree.tree_flatten(x)
    theirs, other = tree.tree_flatten(y)
    if treedef != other:
        raise ValueError(
            f"shard_alike: x and y have to be trees of one structure, got {treedef} and {other}."
        )
    pairs = []
    for a, b in zip(map(as_array, ours), map(as_array, theirs), strict=True):
        if a.shape != b.shape:
            raise ValueError(
                f"shard_alike: leaves of x and y have to have the same shape, got {a.shape} and "
                f"{b.shape}."
            )
        pairs.append(shard_alike_p.bind(a, b))
    return (
        tree.tree_unflatten(treedef, [a for a, _ in pairs]),
        tree.tree_unflatten(treedef, [b for _, b in pairs]),
    )
