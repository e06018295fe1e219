"""`smap`: `shard_map` over one axis of the current mesh, told by axes in the place of specs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.api.maps.shard_map import Infer, shard_map
from numjet.api.placement.mesh import context_mesh
from numjet.api.placement.sharding import PartitionSpec
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
    >>> with nj.set_mesh(nj.make_mesh((1,), ("x",), nj.sharding.AxisType.Auto)):
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
        if in_axes is Infer and axis_name not in context_mesh().explicit_axes:
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
