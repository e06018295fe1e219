"""Collectives made of others: pbroadcast, pcast, psend, precv, ragged_all_to_all; and
`first_member`, one value for all of a map's members.

For `lax`. See `ops.collective` for how a named axis is interpreted.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from numjet.base import tree
from numjet.core import hooks
from numjet.core.array import as_array
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.core.shared import Shared
from numjet.core.structural import broadcast_in_dim, convert, linear_jvp, moveaxis
from numjet.core.trace import current_trace
from numjet.ops.arithmetic import add, clamp, div, sub
from numjet.ops.collective import all_gather, all_to_all, axis_size, varied
from numjet.ops.composed import composed
from numjet.ops.constraint import pending_axes
from numjet.ops.groups import rows_at
from numjet.ops.logic import bitwise_and, ge, lt
from numjet.ops.shape import iota, select_n
from numjet.ops.slicing import index_in_dim
from numjet.transforms.batch import Axis, axes_of_vmap, axis_env as named_axes
from numjet.transforms.varying import manual_type, unknown, varies


def _first_batch(mapped: Axis, args: tuple, dims: tuple, *, axis: int) -> tuple:
    (x,), (dim,) = args, dims
    return first_member_p.bind(moveaxis(x, dim, 0), axis=axis + 1), 0


def _shared_out(ct: Any, x: Any, *, axis: int) -> list:
    shape = x.aval.shape
    share = div(ct, convert(as_array(shape[axis]), ct.aval.dtype))
    kept = tuple([i for i in range(len(shape)) if i != axis])
    return [broadcast_in_dim(share, shape, kept)]


first_member_p = Primitive(
    "first_member",
    linear=True,
    abstract=lambda x, *, axis: x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :])),
    reference=lambda x, *, axis: np.take(x, 0, axis),
    jvp=linear_jvp(lambda: first_member_p),
    transpose=_shared_out,
    batch=_first_batch,
    loops=Expand(lambda x, *, axis: index_in_dim(x, 0, axis, False)),
)


def first_member(x: Any, axis: int) -> Any:
    """The first value along an axis whose values are taken to be equal, as those that are one for
    all devices: the cotangent is shared out among them, as JAX does."""
    return first_member_p.bind(x, axis=axis)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value that member `source` of the named axis has, for every member.

    x: a pytree of arrays. axis_name: a mapped axis. source: a Python integer. Raises NameError for
    an unbound axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([5, 6, 7]))
    Array([6, 6, 6], dtype=int32)
    """
    return tree.tree_map(
        lambda leaf: index_in_dim(all_gather(leaf, axis_name), source, 0, False), x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x as a value that is known to vary over named axes, or not.

    x: a pytree of arrays. axis_name: mapped axes. to: 'varying', 'unreduced' (parts that are still
    to be added up) or 'reduced'. Inside of `shard_map` a value that is cast to varying is one of
    each member's, whose gradient each gets its own of; the others stay as they are. Raises
    ValueError outside of all axes, for another word, for a value that varies already, or over one
    of several axes, and for parts of what does not vary; NameError for an axis that is not there.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> nj.pmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.array([1]))
    Array([1], dtype=int32)
    """
    words = ("reduced", "unreduced", "varying")
    if to not in words:
        raise ValueError(f"Got unexpected `to` value. Allowed `to` values are: {set(words)}, got "
                         f"{to!r}.")
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    if isinstance(axis_name, set | frozenset):
        raise TypeError(f"pcast: {axis_name=} must be a tuple or a str. Got {axis_name}.")
    if names and not named_axes() and current_trace().staging is None:
        what = "pvary" if to == "varying" else f"p{to}"
        raise ValueError(
            f"{what} should be called under jax.shard_map: no axis {names[0]!r} is in scope."
        )
    axis_size(names)
    _check_mapped(names, to)

    def own(leaf: Any) -> Any:
        leaf = as_array(leaf)
        _check_cast(leaf, names, to)
        if to == "unreduced":
            return hooks.pending_sum(leaf, names)
        return varied(leaf, names) if to == "varying" else leaf

    return tree.tree_map(own, x)


def _check_mapped(names: Sequence, to: str) -> None:
    """Refuse casts over axes of `vmap` alone, which no value is known to vary over."""
    of_vmap = axes_of_vmap.get()
    alone = [n for n in names if n in of_vmap]
    if alone and to == "varying":
        raise ValueError(
            f"pvary should be called under jax.shard_map: {alone[0]!r} is an axis of vmap alone."
        )
    if alone and to == "unreduced":
        raise ValueError(
            f"Unsupported pcast from=invarying, to={to!r}: {alone[0]!r} is an axis of vmap alone."
        )
    if alone:
        raise NotImplementedError(
            f"pcast: to={to!r} is for axes of shard_map; {alone[0]!r} is one of vmap alone."
        )


def _check_cast(x: Any, names: Sequence, to: str) -> None:
    """Raise ValueError where a value cannot be cast, over axes of which it is known."""
    known = [n for n, _ in Shared.axes.get() if n in names and unknown(n) is None]
    pending = [n for n in names if n in pending_axes(x)]
    states = {"varying" if varies(x, n) else "invarying" for n in known if n not in pending}
    if pending:
        states.add("unreduced")
    if len(states) > 1:
        kind = x.aval.update_manual_axis_type(manual_type(x))
        raise ValueError(
            "jax.lax.pcast can only accept axis_name which corresponds to one of varying, "
            f"unreduced, reduced or invarying state of the input. Got input type: {kind}, axes: "
            f"{tuple(names)} and input state: {states}. Cast over one axis after the other, those "
            "over which the value varies left out (numjet.typeof tells)."
        )
    if (
        states == {"varying"} and to != "unreduced"
        or states == {"invarying"} and to == "unreduced"
        or states == {"unreduced"}
    ):  # fmt: skip
        one = (
            " jax.lax.pcast can only accept axis_name which corresponds to one of varying, "
            "unreduced, reduced or invarying state of the input: cast over one axis after the "
            "other." if len(names) > 1 else ""
        )
        raise ValueError(
            f"Unsupported pcast from={states.pop()}, to={to!r}: the value is "
            f"{x.aval.update_manual_axis_type(manual_type(x))}.{one}"
        )


def _no_channels(name: str) -> NoReturn:
    raise NotImplementedError(f"{name}: sends and receives between two devices are not there. Use "
                              "lax.ppermute, which does both.")


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Not there: raises NotImplementedError. `ppermute` sends and receives.

    x, axis_name, perm: what JAX's takes.

    >>> from numjet import lax
    >>> lax.psend(1.0, "i", [(0, 1)])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _no_channels("psend")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Not there: raises NotImplementedError. `ppermute` sends and receives.

    token, out_shape, axis_name, perm: what JAX's takes.

    >>> from numjet import lax
    >>> lax.precv(lax.create_token(), (2,), "i", [(0, 1)])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    _no_channels("precv")


def _ragged(operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any,
            recv_sizes: Any, *, axis_name: Any, axis_index_groups: Any) -> Any:
    places = (input_offsets, output_offsets, recv_sizes)
    count = input_offsets.aval.shape[0]
    members = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    groups = {"axis_index_groups": axis_index_groups}
    each = count // members
    everyone = all_gather(operand, axis_name, **groups)
    # What each member finds: where its slices begin in the senders' operands and in its result.
    begins, targets = (all_to_all(p, axis_name, 0, 0, tiled=True, **groups) for p in places[:2])
    rows = iota(np.dtype(np.int32), output.aval.shape[0])
    last = np.int32(operand.aval.shape[0] - 1)
    for i in range(count):
        begin, target, size = (broadcast_in_dim(index_in_dim(p, i, 0, False), rows.aval.shape, ())
                               for p in (begins, targets, places[2]))
        offset = sub(rows, target)
        mine = bitwise_and(ge(offset, np.int32(0)), lt(offset, size))
        found = rows_at(index_in_dim(everyone, i // each, 0, False),
                      clamp(np.int32(0), add(begin, offset), last))
        output = select_n(broadcast_in_dim(mine, output.aval.shape, (0,)), output, found)
    return output


ragged_all_to_all_p = composed("ragged_all_to_all", _ragged)
# The members differ where no operand does: by their places on the axis.
ragged_all_to_all_p.every_map = ragged_all_to_all_p.collective = True


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: Any,
                      axis_index_groups: Any = None) -> Any:
    """`output` with slices of the members' operands written in.

    operand: [n, ...], output: [m, ...] of one dtype; the others integers[k], k a multiple of the
    axis's size p. Slice i of `operand`, input_offsets[i] and send_sizes[i] long, goes to member i
    // (k / p), which writes it at output_offsets[i]; recv_sizes[i] is the length of what comes from
    there, so that it is member i // (k / p)'s send size for this one. Raises ValueError where k is
    no multiple of p.

    axis_name: a mapped axis. axis_index_groups must be None (NotImplementedError). Raises
    RuntimeError where no map around has the axis.

    >>> import numjet as nj
    >>> from numjet import lax, numpy as jnp
    >>> one, zero = jnp.array([1, 1]), jnp.array([0, 0])
    >>> def exchange(x, i):
    ...     return lax.ragged_all_to_all(
    ...         x, jnp.zeros(2), jnp.arange(2), one, jnp.full(2, i), one, axis_name="i")
    >>> nj.vmap(exchange, axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.arange(2))
    Array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    operand, output = as_array(operand), as_array(output)
    try:
        axis_size(axis_name)
    except NameError as error:
        raise RuntimeError(
            "ragged_all_to_all must be used within a mapped context like vmap or shard_map: "
            f"{error}"
        ) from None
    places = [convert(as_array(v), np.dtype(np.int32))
              for v in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    count = places[0].aval.size
    members = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    if any(p.aval.shape != (count,) for p in places) or count % members:
        raise ValueError("ragged_all_to_all: offsets and sizes must be vectors of one length, a "
                         f"multiple of the {members} members, got "
                         f"{', '.join(p.aval.str_short() for p in places)}.")
    groups = axis_index_groups and tuple(map(tuple, axis_index_groups))
    return ragged_all_to_all_p.bind(operand, output, *places, axis_name=axis_name,
                                    axis_index_groups=groups)
