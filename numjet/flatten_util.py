"""numjet.flatten_util: a pytree of arrays as one vector, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import zeros
from numjet.numpy.promote import cast, one_array
from numjet.numpy.shape import ravel, reshape


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a pytree as one vector, and the function that turns such a vector back.

    pytree: arrays and numbers, whose dtypes promote to that of the vector. Result: (vector [n],
    unravel); unravel gives the tree, each leaf at its own shape and dtype, and raises ValueError
    for another length and TypeError for another dtype. Differentiable.

    >>> from numjet import flatten_util, numpy as jnp
    >>> vector, unravel = flatten_util.ravel_pytree({"a": jnp.zeros(2), "b": 1.0})
    >>> print(vector, unravel(vector)["b"])
    [0. 0. 1.] 1.0
    """
    leaves, structure = tree.tree_flatten(pytree)
    flat, unravel = _ravel_leaves(leaves)
    return flat, lambda vector: tree.tree_unflatten(structure, unravel(vector))


def _ravel_leaves(leaves: list[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    if not leaves:
        return zeros(0), lambda vector: []
    arrays = [as_array(x) for x in leaves]
    avals = [x.aval for x in arrays]
    dtype, _ = dtypes.promote(*[(a.dtype, a.weak_type) for a in avals])
    flat = [ravel(x if x.aval.dtype == dtype else cast(x, dtype)) for x in arrays]
    vector = flat[0] if len(flat) == 1 else lax.concatenate(flat, 0)
    return vector, lambda v: _unravel(avals, dtype, v)


def _unravel(avals: list[ShapedArray], dtype: Any, vector: Any) -> list[Any]:
    vector = one_array("unravel", vector)
    total = sum(a.size for a in avals)
    if vector.aval.shape != (total,):
        raise ValueError(
            f"The unraveling function expected an array of shape ({total},), got shape "
            f"{vector.aval.shape}."
        )
    mixed = any([a.dtype != dtype for a in avals])
    if vector.aval.dtype != dtype and mixed:
        raise TypeError(
            f"The unraveling function expected dtype {dtype}, got dtype "
            f"{vector.aval.dtype}. Convert with .astype()."
        )
    ends = np.cumsum([a.size for a in avals]).tolist()
    out = []
    for aval, end in zip(avals, ends):
        part = lax.slice_in_dim(vector, end - aval.size, end, axis=0)
        with warnings.catch_warnings():
            # Complex to real only happens when the pytree itself mixed them.
            warnings.simplefilter("ignore")
            out.append(cast(reshape(part, aval.shape), aval.dtype if mixed else part.aval.dtype))
    return out


__all__ = ["ravel_pytree"]


def __dir__() -> list[str]:
    return [*__all__]
