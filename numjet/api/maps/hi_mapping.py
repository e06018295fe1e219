"""`vmap` over values that are no arrays: the axes of the arrays that they hold.

What of such a value is mapped is said by a spec of the user's (`core.hi.MappingSpec`), in `in_axes`
and `out_axes`. The function is given a value of its type `dec_rank(size, spec)`. What would break
it: a spec that names other axes than those of the arrays in the order of `lower_val`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import hi
from numjet.core.hi import Held, LoweredValue, MappingSpec


def among(axes: Any) -> bool:
    """Whether there is a spec in `in_axes` or `out_axes`."""
    return isinstance(axes, MappingSpec) or isinstance(axes, tuple | list | dict) and any(
        [isinstance(x, MappingSpec) for x in tree.tree_leaves(axes)]
    )


def taken_apart(
    leaves: list, in_tree: Any, axes: list, size: int | None
) -> tuple[list, Any, list]:
    """Arguments with the arrays that values hold in the places of these, and the axis of each."""
    for x, axis in zip(leaves, axes, strict=True):
        if size is None and type(axis) is int and hasattr(x, "shape"):
            size = x.shape[axis]
    if size is None:
        raise ValueError(
            "vmap: axis_size must be specified where no array is mapped. The axes of values that "
            "are no arrays do not say it."
        )
    nodes, found = [], []
    for x, axis in zip(leaves, axes, strict=True):
        if not isinstance(axis, MappingSpec):
            nodes.append(x)
            found.append(axis)
            continue
        if type(x) not in hi.TYPES:
            raise ValueError(
                f"vmap in_axes: a spec of class {type(axis).__name__} is given for an argument of "
                f"type {type(x).__name__}, which is an array. Give an integer or None."
            )
        held = Held(x)
        if hi.carried(x) is not None:
            raise _refused(held.type)
        inner = held.type.dec_rank(size, axis)
        nodes.append(LoweredValue(inner, held.arrays))
        whole, rows = map(np.shape, held.arrays), [a.shape for a in inner.lo_ty()]
        found += _dims(axis, [*whole], rows, size)
    leaves, treedef = tree.tree_flatten(in_tree.unflatten(nodes))
    return leaves, treedef, found


class Places:
    """The results of a mapped function, among which are values that are no arrays."""

    def __init__(self, out: Any) -> None:
        held = lambda x: type(x) is LoweredValue  # noqa: E731
        self.nodes, self.treedef = tree.tree_flatten(out, is_leaf=held)

    def of(self, out_axes: Any, size: int, dims: Sequence[int | None]) -> list:
        """Where each array is to be mapped. Raises ValueError where values are mapped otherwise
        than their specs say."""
        found: list = []
        for x, axis in zip(
            self.nodes, tree.flatten_axes("vmap out_axes", self.treedef, out_axes), strict=True
        ):
            if type(x) is not LoweredValue:
                found.append(axis)
                continue
            have = list(dims[len(found) : len(found) + len(x.arrays)])
            own = len(have) - len(hi.carriers_of(x.type))
            have, beside = have[:own], have[own:]
            if not isinstance(axis, MappingSpec):
                found += [axis] * len(x.arrays)
                continue
            if any([d is not None for d in beside]):
                raise _refused(x.type)
            want = _dims(axis, None, [*map(np.shape, x.arrays[:own])], size)
            if [d is None for d in want] != [d is None for d in have]:
                raise ValueError(
                    f"at vmap out_axes, got axis spec {axis} but output was batched on the axes "
                    f"{have} of its arrays. Say None for those that are not mapped."
                )
            found += [*want, *beside]
        return found

    def value(self, arrays: Sequence[Any]) -> Any:
        """The results of these arrays."""
        given, leaves = iter(arrays), []
        for x in self.nodes:
            if type(x) is LoweredValue:
                leaves.append(hi.raised(x.type, [next(given) for _ in x.arrays]))
            else:
                leaves.append(next(given))
        return self.treedef.unflatten(leaves)


def _refused(ty: Any) -> NotImplementedError:
    return NotImplementedError(
        f"vmap: values of type {ty}, whose tangents are other arrays than theirs, are no mapped "
        "arguments or results of a function that is differentiated. Make them inside of it."
    )


def _dims(spec: Any, whole: list | None, rows: list, size: int) -> list[int | None]:
    """The mapped axis of each array that a value holds: as the spec says, or as the shapes of the
    whole arrays and of one example's tell."""
    told = _told(spec)
    if len(told) == len(rows) and (
        whole is None
        or all([_row(n, d, size) == r for n, d, r in zip(whole, told, rows, strict=True)])
    ):
        return told
    found: list[int | None] = []
    for shape, row in zip(whole or (), rows, strict=False):
        fits = [d for d in (None, *range(len(shape))) if _row(shape, d, size) == row]
        found += fits[:1] if len(fits) == 1 else []
    if len(found) != len(rows):
        raise NotImplementedError(
            f"vmap: {spec} does not tell which axes of the {len(rows)} arrays of a value are "
            "mapped. Give a spec that holds an axis, or None, for each of them."
        )
    return found


def _row(shape: Sequence[int], axis: int | None, size: int) -> Any:
    """The shape of one example; None where there is no such axis."""
    if axis is None:
        return tuple(shape)
    return (*shape[:axis], *shape[axis + 1 :]) if shape[axis : axis + 1] == (size,) else None


def _told(spec: Any) -> list:
    if spec is None or type(spec) is int:
        return [spec]
    parts = spec if isinstance(spec, tuple | list) else vars(spec).values()
    return [x for part in parts for x in _told(part)]
