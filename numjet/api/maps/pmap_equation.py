"""`pmap` as `make_jaxpr` shows it: a jitted `shard_map` whose function is given one slice.

For `mapping.pmap`, which runs the function as a `vmap`; both mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit import JitFunction
from numjet.api.maps.shard_map import unchecked
from numjet.api.placement.mesh import Mesh
from numjet.api.placement.sharding import PartitionSpec
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.structural import broadcast_in_dim
from numjet.ops.shape import squeeze


def _spec(axis: int | None, name: Any) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _with_axis(x: Any, axis: int | None) -> Any:
    """`x` with an axis of length 1 in this place."""
    x = as_array(x)
    if axis is None:
        return x
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return broadcast_in_dim(x, shape, tuple([i for i in range(len(shape)) if i != axis]))


def mapped(
    fun: Callable, mesh: Mesh, leaves: Sequence[Any], dims: Sequence[int | None], out_axes: Any,
    donated: Sequence[int],
) -> Any:  # fmt: skip
    """The results of `fun(*slices)`, a pytree, on the devices of `mesh`.

    dims: where each of the leaves is cut, None where it is not; out_axes: a tree prefix of the
    results of axes that do not count from the end; donated: the leaves that are given away.
    """
    name = mesh.axis_names[0]
    dims = [None if d is None else d % np.ndim(x) for x, d in zip(leaves, dims, strict=True)]

    def local(*blocks: Any) -> Any:
        pairs = zip(blocks, dims, strict=True)
        found = fun(*[x if d is None else squeeze(x, (d,)) for x, d in pairs])
        outs, treedef = tree.tree_flatten(found)
        places = tree.flatten_axes("pmap out_axes", treedef, out_axes)
        wide = [_with_axis(x, p) for x, p in zip(outs, places, strict=True)]
        return tree.tree_unflatten(treedef, wide)

    specs = tree.tree_map(lambda axis: _spec(axis, name), out_axes, is_leaf=lambda a: a is None)

    def _fun(*xs: Any) -> Any:
        ins = tuple([_spec(d, name) for d in dims])
        return unchecked(local, mesh, ins, specs, check_vma=False)(*xs)

    return JitFunction(_fun, (), (), tuple(donated), ())(*leaves)
