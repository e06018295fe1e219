"""`shard_map`: a function of one device's part, run for every device of a mesh.

On virtual devices all parts are computed by one program: arguments are cut into blocks, the
function is mapped over an axis for each axis of the mesh (which collectives see by name), and the
blocks of the results are put together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.flat import array_leaves, check_callable
from numjet.api.mapping import vmap
from numjet.api.sharding import Mesh, NamedSharding, PartitionSpec, axes_of, get_mesh
from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.structural import broadcast_in_dim, transpose
from numjet.ops.shape import reshape
from numjet.ops.slicing import index_in_dim


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Callable:
    """`f` applied to each device's block of the arguments; collectives join the devices.

    in_specs, out_specs: pytree prefixes of PartitionSpecs that say which dimensions are cut over
    which axes of `mesh` (or of the current mesh). An output that is not cut over an axis must be
    equal along it; the first device's value is taken. Raises ValueError when a dimension is no
    multiple of the parts it is cut into.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> f = nj.shard_map(lambda x: nj.lax.psum(x, "x"), mesh=mesh, in_specs=nj.P("x"),
    ...                  out_specs=nj.P())
    >>> print(f(jnp.arange(3.0)))
    [0. 1. 2.]
    """
    del check_vma
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names
        )
    check_callable("shard_map", f)
    if axis_names and mesh is not None and set(axis_names) != set(mesh.axis_names):
        raise NotImplementedError(
            "shard_map: axis_names must name every axis of the mesh. Make a mesh of those axes."
        )

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        where = mesh if mesh is not None else get_mesh()
        if isinstance(where, Mesh) and where.empty:
            raise ValueError("shard_map: pass mesh=..., or call it inside `with mesh:`.")
        if in_specs is None:
            raise NotImplementedError("shard_map: pass in_specs, one PartitionSpec an argument.")
        leaves, in_tree = array_leaves("shard_map", args)
        specs = _spread("in_specs", in_specs, args)
        blocks = [_cut(where, spec, x) for spec, x in zip(specs, leaves, strict=True)]
        out_tree: list = []

        def local(*values: Any) -> list[Any]:
            out = f(*tree.tree_unflatten(in_tree, values))
            outs, treedef = array_leaves("shard_map", out, "output")
            out_tree.append((treedef, _spread("out_specs", out_specs, out)))
            return outs

        run: Callable = local
        for name, size in reversed(where.shape.items()):
            run = vmap(run, axis_name=name, axis_size=size)
        outs = run(*blocks)
        treedef, wanted = out_tree[0]
        joined = [_join(where, spec, x) for spec, x in zip(wanted, outs, strict=True)]
        return tree.tree_unflatten(treedef, joined)

    return mapped


def _spread(what: str, specs: Any, value: Any) -> list[PartitionSpec]:
    """A PartitionSpec for each leaf of `value`."""
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    if is_spec(specs):
        found = [specs] * len(tree.tree_leaves(value))
    else:
        if isinstance(specs, list):
            specs = tuple(specs) if isinstance(value, tuple) else specs
        try:
            found = tree.broadcast_prefix(specs, value, is_leaf=is_spec)
        except ValueError as error:
            raise ValueError(
                f"shard_map: {what} must be a prefix of the structure it describes. {error}"
            ) from None
    return [PartitionSpec() if s is None else s for s in found]


def _cut(mesh: Mesh, spec: PartitionSpec, x: Any) -> Any:
    """`x` with an axis in front for each axis of the mesh: device by device its block."""
    x = as_array(x)
    shape = x.aval.shape
    block = NamedSharding(mesh, spec).shard_shape(shape)
    sizes = mesh.shape
    split: list[int] = []
    place: dict[Any, int] = {}  # mesh axis -> axis of the split array
    inner: list[int] = []
    for i, n in enumerate(block):
        for name in axes_of(spec[i]) if i < len(spec) else ():
            place[name] = len(split)
            split.append(sizes[name])
        inner.append(len(split))
        split.append(n)
    x = reshape(x, tuple(split))
    used = [name for name in mesh.axis_names if name in place]
    x = transpose(x, tuple([*[place[name] for name in used], *inner]))
    # Axes that do not cut the argument see all of it.
    lead = [k for k, name in enumerate(mesh.axis_names) if name in place]
    m = len(mesh.axis_names)
    full = tuple(sizes[name] for name in mesh.axis_names) + tuple(block)
    return broadcast_in_dim(x, full, tuple([*lead, *range(m, m + len(block))]))


def _join(mesh: Mesh, spec: PartitionSpec, x: Any) -> Any:
    """The whole array of blocks that have an axis in front for each axis of the mesh."""
    ndim = x.ndim - len(mesh.axis_names)
    if len(spec) > ndim:
        raise ValueError(
            f"shard_map: out_specs has {spec} for an output with {ndim} dimension(s) on each "
            "device."
        )
    named = [axes_of(spec[i]) if i < len(spec) else () for i in range(ndim)]
    cut: Sequence[Any] = [name for names in named for name in names]
    kept = list(mesh.axis_names)
    for name in mesh.axis_names:
        if name not in cut:
            x = index_in_dim(x, 0, kept.index(name), keepdims=False)
            kept.remove(name)
    order, shape = [], []
    for i, names in enumerate(named):
        order += [kept.index(name) for name in names] + [len(kept) + i]
        shape.append(math.prod(mesh.shape[name] for name in names) * x.shape[len(kept) + i])
    return reshape(transpose(x, tuple(order)), tuple(shape))
