"""Tangents of values that are no arrays, in the arguments and results of differentiated functions.

A value is flat arrays there (`core.hi.LoweredValue`), and so are its tangents. What the user gives
and gets are values of the tangents' type, or arrays. For: `grad`, `vjp`, `jvp`, `linearize`. What
would break it: a type whose values hold other arrays than its `lo_ty()` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes, hi
from numjet.core.avals import ShapedArray
from numjet.core.hi import LoweredValue
from numjet.core.structural import zeros


def flat_form(primals: Any, tangents: Any) -> Any:
    """`tangents` with the arrays of values as those of a tree of the structure `primals`. As it is
    where no value is among the primals, or where it has another structure."""
    if not hi.TYPES:
        return tangents
    nodes = hi.unflatten_as(LoweredValue, primals, range(primals.num_leaves))
    leaves, treedef = tree.tree_flatten(nodes, is_leaf=lambda x: type(x) is LoweredValue)
    if LoweredValue not in map(type, leaves):
        return tangents
    try:
        given = treedef.flatten_up_to(tangents)
    except ValueError:
        return tangents  # the caller says how the structures differ
    return treedef.unflatten([
        _node(node.type, x) if type(node) is LoweredValue else x
        for node, x in zip(leaves, given, strict=True)
    ])  # fmt: skip


def _node(ty: Any, tangent: Any) -> Any:
    held = hi.lowered(tangent)
    arrays = held.arrays[: len(held.type.lo_ty())] if type(held) is LoweredValue else [held]
    if not hi.carriers_of(ty):
        return LoweredValue(ty, arrays)
    own = [
        np.zeros(a.shape, dtypes.float0) if a.tangent().dtype == dtypes.float0 else zeros(a)
        for a in ty.lo_ty()
    ]
    return LoweredValue(ty, [*own, *arrays])


def values(treedef: Any, leaves: Sequence[Any], cotangents: bool = False) -> Any:
    """The tangents, or cotangents, of a tree of primals with these flat ones."""
    if not hi.TYPES:
        return tree.tree_unflatten(treedef, leaves)

    def made(ty: Any, arrays: list) -> Any:
        n = len(hi.carriers_of(ty))
        of = hi.raised_type(ty, cotangents)
        arrays = arrays[len(arrays) - n :] if n else arrays
        return arrays[0] if isinstance(of, ShapedArray) else hi.raised(of, arrays)

    return hi.unflatten_as(made, treedef, leaves)


def without_own(treedef: Any) -> set[int]:
    """Which leaves of a tree of primals have no tangents, as other arrays carry them."""
    found: set[int] = set()

    def noted(ty: Any, places: list) -> Any:
        n = len(hi.carriers_of(ty))
        found.update(places[: len(places) - n] if n else ())

    if hi.TYPES:
        hi.unflatten_as(noted, treedef, range(treedef.num_leaves))
    return found


__all__ = ["flat_form", "values", "without_own"]
