"""`smap`: `shard_map` over one axis of the current mesh, told by axes in the place of specs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.api.mesh import context_mesh
from numjet.api.reshard import reshard
from numjet.api.shard_map import Infer, shard_map
from numjet.api.sharding import PartitionSpec, axes_of
from numjet.base import tree


def _specs(axes: Any, axis_name: str) -> Any:
    """PartitionSpecs that cut the axes (a tree of integers and None) over the mesh's axis."""

    def spec(axis: int | None) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if axis < 0:
            raise ValueError(f"smap: axes count from the front, got {axis}. Write 0 or more.")
        return PartitionSpec(*[None] * axis, axis_name)

    return tree.tree_map(spec, axes, is_leaf=lambda x: x is None)


def _laid_out(args: tuple, axes: list, axis_name: str) -> tuple:
    """The arguments, those with `axis_name` in their types cut over it where `axes` say."""
    leaves, treedef = tree.tree_flatten(args)
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        placed = getattr(getattr(x, "aval", None), "placed", None)
        if placed is None:
            continue
        entries = [[a for a in axes_of(entry) if a != axis_name] for entry in placed.spec]
        if axis is not None and 0 <= axis < len(entries):  # shard_map refuses others
            entries[axis].insert(0, axis_name)
        wanted = placed.of_entries([tuple(a) for a in entries])
        leaves[i] = x if wanted == placed else reshard(x, wanted)
    return tree.tree_unflatten(treedef, leaves)


def _prefix(axes: Any, args: tuple) -> list:
    """An entry of `axes` for each leaf of the arguments."""
    is_axis = lambda x: x is None or isinstance(x, int)  # noqa: E731
    if is_axis(axes):
        return [axes] * len(tree.tree_leaves(args))
    axes = tuple(axes) if isinstance(axes, list) else axes
    return tree.flatten_axes("smap in_axes", tree.tree_structure(args), axes, is_axis)


def smap(
    f: Callable | None = None,
    /,
    *,
    in_axes: Any = Infer,
    out_axes: Any,
    axis_name: str,
) -> Callable:
    """`f` applied to the parts of its arguments along one axis of the current mesh.

    in_axes: which axis of the arguments is cut over `axis_name`, None for none: an integer for all,
    or a tuple with an entry (or tree) each; may be left out for an axis of type Explicit, where
    types tell it (TypeError for others). out_axes: the same for the results. axis_name: an axis of
    the mesh of `set_mesh`. Raises ValueError where there is no mesh.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",))):
    ...     nj.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        if context_mesh().empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `numjet.set_mesh(mesh)` to enter into a "
                "mesh context."
            )
        if in_axes is not Infer:
            args = _laid_out(args, _prefix(in_axes, args), axis_name)
        elif axis_name not in context_mesh().explicit_axes:
            raise TypeError(
                f"in_axes was not specified when axis_name={axis_name!r} was not of type "
                "AxisType.Explicit: arrays do not say how they are cut over it. Pass in_axes."
            )
        return shard_map(
            f,
            in_specs=Infer if in_axes is Infer else _specs(in_axes, axis_name),
            out_specs=_specs(out_axes, axis_name),
            axis_names={axis_name},
        )(*args)

    return mapped
