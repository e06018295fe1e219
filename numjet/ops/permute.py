"""`ppermute` and `pshuffle`: values that change places along a named axis.

The batch rule of the map that owns the axis makes rows change places; the partitioner finds these
(`permute_rows`) and sends them. For `lax`. What would break it: positions that are not there
(refused).
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core.array import as_array
from numjet.core.lowering import Expand, Host
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_batch, linear_jvp, moveaxis, zeros
from numjet.core.trace import current_trace
from numjet.ops.collective import (
    AxisName,
    all_gather,
    axis_index,
    axis_size,
    collective_effects,
    once,
    over_processes,
)
from numjet.ops.constraint import whole
from numjet.ops.shape import concatenate
from numjet.ops.slicing import index_in_dim
from numjet.transforms.batch import Axis, axes_of_vmap, axis_env


# ------------------------------------------------------------------ rows that change places
def _rows(x: Any, *, axis: int, perm: tuple) -> Any:
    source = {dst: src for src, dst in perm}
    shape = x.aval.shape
    nothing = zeros(x.aval.update(shape=(*shape[:axis], 1, *shape[axis + 1 :])))
    parts = [
        index_in_dim(x, source[i], axis, keepdims=True) if i in source else nothing
        for i in range(shape[axis])
    ]
    return concatenate(parts, axis)


def _rows_reference(x: np.ndarray, *, axis: int, perm: tuple) -> np.ndarray:
    out = np.zeros_like(x)
    rows, news = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    for src, dst in perm:
        news[dst] = rows[src]
    return out


def _turned(perm: tuple) -> tuple:
    return tuple([(dst, src) for src, dst in perm])


def _rows_batch(mapped: Axis, args: tuple, dims: tuple, *, axis: int, perm: tuple) -> tuple:
    (x,), (dim,) = args, dims
    x = moveaxis(x, dim, 0)
    return permute_rows(x, axis + 1, perm), 0


permute_rows_p = Primitive(
    "permute_rows",
    linear=True,
    abstract=lambda x, *, axis, perm: x,
    reference=_rows_reference,
    jvp=linear_jvp(lambda: permute_rows_p),
    transpose=lambda ct, x, *, axis, perm: [permute_rows(ct, axis, _turned(perm))],
    batch=_rows_batch,
    loops=Expand(_rows),
)


def permute_rows(x: Any, axis: int, perm: tuple) -> Any:
    """Row dst along `axis` is row src of `x` for each pair of `perm`; the others are zero. What
    `ppermute` is to the map that owns its axis."""
    return permute_rows_p.bind(x, axis=axis, perm=perm)


# ------------------------------------------------------------------ ppermute
def _permute_batch(mapped: Axis, args: tuple, dims: tuple, *, axis_name: Any, perm: tuple) -> tuple:
    (x,), (dim,) = args, dims
    if mapped.name != axis_name:
        return ppermute_p.bind(x, axis_name=axis_name, perm=perm), dim
    if dim is None:
        x, dim = broadcast_batch(x, mapped.size), 0
    return permute_rows(x, dim, perm), dim


ppermute_p = Primitive(
    "ppermute",
    linear=True,
    abstract=lambda x, *, axis_name, perm: x,
    reference=over_processes("ppermute", lambda x, **_: x.shape),
    jvp=linear_jvp(lambda: ppermute_p),
    transpose=lambda ct, x, *, axis_name, perm: [
        ppermute_p.bind(ct, axis_name=axis_name, perm=tuple([(dst, src) for src, dst in perm]))
    ],
    batch=_permute_batch,
    loops=Host(),
    effects=collective_effects,
    collective=True,
)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values between members of the named axis.

    x: a pytree of arrays. axis_name: a mapped axis, or several, whose members count row by row in
    the order of the mesh. perm: pairs (source, destination), each at most once; members that
    receive nothing get zeros. Its transpose sends the other way. Raises NameError for an unbound
    axis, ValueError for positions named twice, IndexError for those that are not there;
    AssertionError for both over an axis of `vmap`, NotImplementedError for an axis that is not
    there outside of traces.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> shift = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> nj.vmap(shift, axis_name="i")(jnp.array([1, 2, 3]))
    Array([0, 1, 2], dtype=int32)
    """
    # JAX counts the members of several axes in the order of the mesh, whatever that of the names.
    given: Any = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    if current_trace().staging is None and any([n not in axis_env() for n in given]):
        raise NotImplementedError(
            f"Evaluation rule for 'ppermute' not implemented: {axis_name!r} is no axis in scope. "
            "Collectives run inside of vmap(..., axis_name=...), pmap or shard_map."
        )
    names = tuple(sorted(once(axis_name), key=[*axis_env()].index))
    if not names:
        return x
    pairs = tuple([(operator.index(src), operator.index(dst)) for src, dst in perm])
    size = axis_size(names)
    of_vmap = axes_of_vmap.get()
    for ends in ([s for s, _ in pairs], [d for _, d in pairs]):
        fits = len(set(ends)) == len(ends) and all([0 <= e < size for e in ends])
        if not fits and all([n in of_vmap for n in names]):
            raise AssertionError(
                f"Permutation doesn't match the axis size! ppermute over {axis_name!r} of size "
                f"{size} takes pairs of positions below it, each at most once, got {pairs}."
            )
        if len(set(ends)) != len(ends):
            raise ValueError(f"ppermute sources and destinations must be unique, got {pairs}.")
        if any(not 0 <= e < size for e in ends):
            raise IndexError(
                f"ppermute: sources and destinations must lie in [0, {size}), the members of "
                f"{axis_name!r}, got {pairs}."
            )
    x = tree.tree_map(lambda leaf: whole(as_array(leaf), names, "ppermute"), x)
    if len(names) != 1:
        groups, here = importlib.import_module("numjet.ops.groups"), axis_index(names)
        return tree.tree_map(
            lambda leaf: groups.sent(all_gather(leaf, names), pairs, here, size), x
        )
    return tree.tree_map(
        lambda leaf: ppermute_p.bind(leaf, axis_name=names[0], perm=pairs), x
    )


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Exchange values: member i receives that of member perm[i].

    x: a pytree of arrays. axis_name: a mapped axis. perm: a permutation of the positions
    (ValueError for others). Raises NameError for an unbound axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([5, 6, 7]))
    Array([7, 5, 6], dtype=int32)
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(
            f"pshuffle: perm does not represent a permutation: {list(perm)}. It names the member "
            "from which each receives, each once."
        )
    return ppermute(x, axis_name, [(src, dst) for dst, src in enumerate(perm)])
