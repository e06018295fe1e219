"""`jit(in_shardings, out_shardings)`: layouts of the arguments and results of a jitted function.

For `api.jit`, which asks for it where a function was given such. A sharding may stand for a whole
subtree of the arguments (a pytree prefix); None leaves a leaf as it is. What would break it: static
arguments among those that in_shardings counts (they are left out).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.api import dispatch
from numjet.api.devices import Sharding, SingleDeviceSharding, place
from numjet.api.reshard import constrained, of_context
from numjet.api.sharding import PartitionSpec
from numjet.base import tree
from numjet.core.array import ArrayImpl
from numjet.core.hooks import Remote, Spread
from numjet.core.spread import SpreadArray
from numjet.core.trace import Tracer
from numjet.ops.jit_call import jit_p


def call(
    core: Any, entry: Any, leaves: list, treedef: Any, args: tuple, kwargs: dict, traced: bool
) -> list:
    """A call of a function that was given in_shardings or out_shardings."""
    _, dynamic, kw = core._split(args, kwargs)
    ins = of_arguments(core.layouts[0], dynamic, kw, treedef)
    wanted = of_results(core.layouts[1], entry.out_tree)
    checked_results(entry.out_avals, wanted)
    leaves[:] = laid_out(leaves, ins, lambda: core._arg_names(treedef))
    if traced:
        outs = jit_p.bind(*entry.consts, *leaves, jaxpr=entry.closed, name=entry.name)
        return [x if s is None else constrained(x, s) for x, s in zip(outs, wanted, strict=True)]
    return run(core, entry, leaves, wanted)


def run(core: Any, entry: Any, leaves: list, wanted: list | None) -> list:
    """A call with arrays that are laid out over devices."""

    def execute(values: list) -> list:
        if entry.donate:  # what looks whole to the program is somebody's layout
            return dispatch.run(entry.closed, values, entry.name)
        return core._execute(entry, values[len(entry.consts) :])

    values = [*entry.consts, *leaves]
    if Remote.active:
        place = core._place_for(entry, leaves) or Remote.within(entry.closed, wanted or ())
        if place is not None:
            donate = [i + len(entry.consts) for i in entry.donate]
            return Remote.run(entry.closed, values, place, entry.name, donate, False, wanted)
    outs = Spread.run(entry.closed, values, entry.name, wanted, execute)
    for i in entry.donate:
        leaves[i].delete()
    return outs


def _is_leaf(x: Any) -> bool:
    return x is None or isinstance(x, Sharding | PartitionSpec) or hasattr(x, "platform")


def resolved(x: Any, what: str) -> Any:
    """A sharding from what the user wrote: a Sharding, a device, a PartitionSpec or None."""
    x = of_context(f"jit {what}", x)
    if x is None or isinstance(x, Sharding):
        return x
    if hasattr(x, "platform"):
        return SingleDeviceSharding(x)
    raise ValueError(
        f"jit: {what} must be made of shardings, PartitionSpecs and None, got {x!r} of type "
        f"{type(x).__name__}."
    )


def _leaves(what: str, given: Any, structure: Any) -> list[Any]:
    """A sharding, or None, for each leaf of `structure`, a treedef."""
    if _is_leaf(given):
        return [resolved(given, what)] * structure.num_leaves
    return [resolved(x, what) for x in tree.flatten_axes(f"jit {what}", structure, given, _is_leaf)]


def of_arguments(given: Any, args: tuple, kwargs: dict, structure: Any) -> list[Any]:
    """The shardings of the dynamic leaves: those of (args, kwargs), which `structure` is of."""
    if given is None:
        return [None] * structure.num_leaves
    if kwargs:
        raise ValueError("jit does not support kwargs when in_shardings is specified.")
    if isinstance(given, list):
        given = tuple(given)
    if isinstance(given, tuple) and not _is_leaf(given) and len(given) != len(args):
        raise ValueError(
            "jit in_shardings must be a tree prefix of the positional arguments tuple: a sharding, "
            f"or a tuple of length equal to their number. Got {len(given)} for {len(args)} "
            "arguments."
        )
    positional, _ = structure.children()
    return _leaves("in_shardings", given, positional)


def of_results(given: Any, structure: Any) -> list[Any]:
    """The shardings of the results, None where they follow."""
    if given is None:
        return [None] * structure.num_leaves
    return _leaves("out_shardings", given, structure)


def laid_out(leaves: Sequence[Any], shardings: Sequence[Any], names: Any) -> list[Any]:
    """The arguments as in_shardings say.

    Raises ValueError for an array that lies otherwise already, and where a shape does not fit.
    """
    out = []
    for i, (x, sharding) in enumerate(zip(leaves, shardings, strict=True)):
        if sharding is None:
            out.append(x)
            continue
        _fits(sharding, x, lambda i=i: f"argument {names()[i]}")
        if isinstance(x, Tracer):
            x = constrained(x, sharding)
        elif type(x) is SpreadArray or isinstance(x, ArrayImpl) and x._sharding is not None:
            if not x._sharding.is_equivalent_to(sharding, x.ndim):  # type: ignore[union-attr]
                raise ValueError(
                    "Sharding passed to jit does not match the sharding on the respective arg. Got "
                    f"jit sharding: {sharding},\narg sharding: {x._sharding} for argument "
                    f"{names()[i]}. Move it with numjet.device_put."
                )
        else:
            x = place(x, sharding)
        out.append(x)
    return out


def checked_results(outs: Sequence[Any], shardings: Sequence[Any]) -> None:
    """Raise ValueError where a result's shape does not fit its sharding."""
    for i, (aval, sharding) in enumerate(zip(outs, shardings, strict=True)):
        if sharding is not None:
            _fits(sharding, aval, lambda i=i: f"output number {i}")


def _fits(sharding: Any, x: Any, name: Any) -> None:
    try:
        sharding.shard_shape(tuple(x.shape))
    except ValueError as error:
        raise type(error)(f"jit: {name()} of shape {tuple(x.shape)}: {error}") from None
