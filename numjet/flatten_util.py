"""numjet.flatten_util: a pytree of arrays as one vector, and back."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array
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
    if not leaves:
        return zeros(0), Unravel(structure, (), ())
    arrays = [as_array(x) for x in leaves]
    avals = [x.aval for x in arrays]
    dtype, _ = dtypes.promote(*[(a.dtype, a.weak_type) for a in avals])
    flat = [ravel(x if x.aval.dtype == dtype else cast(x, dtype)) for x in arrays]
    vector = flat[0] if len(flat) == 1 else lax.concatenate(flat, 0)
    kinds = tuple([a.dtype for a in avals])
    kinds = (dtype, *kinds) if set(kinds) != {dtype} else ()
    return vector, Unravel(structure, tuple([a.shape for a in avals]), kinds)


@dataclasses.dataclass(frozen=True, slots=True)
class Unravel:
    """Turns a vector back into the tree that it came of.

    Two are equal where structures, shapes and dtypes are, so that pytrees can hold one as static
    data. dtypes: that of the vector, then those of the leaves; none where all are one: then the
    leaves get the dtype of the vector that is given.
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    def __call__(self, vector: Any) -> Any:
        leaves = _unravel(self.shapes, self.dtypes, vector) if self.shapes else []
        return tree.tree_unflatten(self.structure, leaves)


def _unravel(
    shapes: tuple[tuple[int, ...], ...], kinds: tuple[Any, ...], vector: Any
) -> list[Any]:
    sizes = [math.prod(shape) for shape in shapes]
    vector = one_array("unravel", vector)
    total = sum(sizes)
    if vector.aval.shape != (total,):
        raise ValueError(
            f"The unraveling function expected an array of shape ({total},), got shape "
            f"{vector.aval.shape}."
        )
    if kinds and vector.aval.dtype != kinds[0]:
        raise TypeError(
            f"The unraveling function was given an array of dtype {vector.aval.dtype}, but "
            f"expected dtype {kinds[0]}. Convert with .astype()."
        )
    ends = np.cumsum(sizes).tolist()
    each = kinds[1:] or (None,) * len(shapes)
    out = []
    for shape, kind, size, end in zip(shapes, each, sizes, ends):
        part = lax.slice_in_dim(vector, end - size, end, axis=0)
        with warnings.catch_warnings():
            # Complex to real only happens when the pytree itself mixed them.
            warnings.simplefilter("ignore")
            part = reshape(part, shape)
            out.append(part if kind is None else cast(part, kind))
    return out


__all__ = ["ravel_pytree"]


def __dir__() -> list[str]:
    return [*__all__]
