"""`explain_sharding`: what the partitioner makes of a function, and what it costs.

For users, through `numjet.debug`. Nothing is run.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.compiled.jit import JitFunction
from numjet.api.compiled.sharded_evaluation import common_sharding, layout_in
from numjet.base import tree
from numjet.core.array import ArrayImpl
from numjet.partition.emit import Partitioned, partition


class _Described(ArrayImpl):
    """An argument of which shape, dtype and sharding are known."""

    __slots__ = ()

    def __init__(self, aval: Any, sharding: Any) -> None:
        self._aval, self._sharding = aval, sharding


def explain_sharding(fun: Callable, *args: Any, **kwargs: Any) -> Partitioned:
    """The program of one device for `fun(*args, **kwargs)`, whose arguments are laid out over a
    mesh (arrays, or ShapeDtypeStructs with a sharding).

    Its text is the jaxpr on one device's parts and a line for each collective: over which axes, how
    many bytes a device gets by it, for which operation, why, and where that stands in the source.
    `.moves` has these as records, `.ins` and `.outs` the layouts. Raises ValueError where no
    argument is laid out over a mesh.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> mesh = nj.make_mesh((1,), ("x",))
    >>> x = nj.device_put(jnp.ones((4, 4)), nj.NamedSharding(mesh, nj.P("x")))
    >>> nj.debug.explain_sharding(jnp.sum, x).outs
    [()]
    """
    core = fun._core if isinstance(fun, JitFunction) else JitFunction(fun, (), (), (), ())._core
    entry = core.trace(*args, **kwargs)._entry
    leaves = tree.tree_leaves((args, kwargs))
    avals = entry.closed.in_avals[len(entry.consts) :]
    given = [
        _Described(a, getattr(x, "sharding", None) if hasattr(x, "sharding") else None)
        for x, a in zip(leaves, avals, strict=True)
    ]
    sharded = [x for x in given if hasattr(x._sharding, "layout")]
    over, _ = common_sharding(sharded, entry.name)
    if over is None:
        raise ValueError(
            "explain_sharding: no argument is laid out over a mesh. Pass arrays from device_put(x, "
            "NamedSharding(mesh, spec)), or ShapeDtypeStruct(shape, dtype, sharding=...)."
        )
    ins = [None] * len(entry.consts) + [layout_in(over.mesh, x) for x in given]
    return partition(entry.closed, ins, [None] * len(entry.out_avals), over.mesh.shape)
