"""Arguments of `shard_map` that are no arrays: references, objects that it hands on, and values
that hold arrays.

For `api.maps.shard_map`. What would break it: a reference that stands in two places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.api.placement.sharding import PartitionSpec
from numjet.base import tree
from numjet.core import hi
from numjet.core.array import as_array, is_arraylike
from numjet.core.refs import AbstractRef, Ref


def without_objects(f: Callable, in_specs: Any, args: tuple) -> Any:
    """The function of the arrays among arguments, the specs of these, and they themselves: what is
    no array and has None for a spec is handed to it as it is. None: all are arrays, or will be
    refused."""
    leaves, treedef = tree.tree_flatten(args)
    objects = {i: x for i, x in enumerate(leaves) if not is_arraylike(x) and type(x) is not Ref}
    if not objects:
        return None
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    specs = [in_specs] * len(leaves) if is_spec(in_specs) else (
        tree.flatten_axes("shard_map in_specs", treedef, in_specs, is_spec))  # fmt: skip
    if any([specs[i] is not None for i in objects]):
        return None

    @functools.wraps(f)
    def inner(*arrays: Any) -> Any:
        rest = iter(arrays)
        return f(*treedef.unflatten(
            [objects[i] if i in objects else next(rest) for i in range(len(leaves))]
        ))  # fmt: skip

    kept = [i for i in range(len(leaves)) if i not in objects]
    return inner, tuple([specs[i] for i in kept]), [leaves[i] for i in kept]


def values_of(args: tuple) -> list:
    """The arguments as arrays, those that references hold in the place of these."""
    return [as_array(x.value() if type(x) is Ref else x) for x in tree.tree_leaves(args)]


def of_values(f: Callable, args: tuple) -> tuple[Callable, dict[int, Ref]]:
    """The function of values, which gives its result and what the references hold at the end; and
    the references, by their places."""
    leaves, treedef = tree.tree_flatten(args)
    refs = {i: x for i, x in enumerate(leaves) if type(x) is Ref}

    @functools.wraps(f)
    def inner(*parts: Any) -> Any:
        made = [Ref(AbstractRef(x.aval), x) if i in refs else x for i, x in enumerate(parts)]
        out = f(*treedef.unflatten(made))
        return out, [made[i].value() for i in refs]

    return inner, refs


def array_specs(what: str, specs: list, value: Any) -> list:
    """The specs of all leaves, of some for values that are no arrays: those stand for each of the
    arrays that such a value, a node in `value`, holds."""
    found: list = []
    for x in tree.tree_leaves(value, is_leaf=lambda x: type(x) is hi.LoweredValue):
        n = len(x.arrays) if type(x) is hi.LoweredValue else 1
        spec = specs[len(found)]
        if not isinstance(spec, hi.HiPspec):
            found += specs[len(found) : len(found) + n]
            continue
        if type(x) is not hi.LoweredValue:
            raise ValueError(
                f"shard_map {what}: a spec of class {type(spec).__name__} is given for an array. "
                "Give a PartitionSpec."
            )
        if hi.carriers_of(x.type):
            raise NotImplementedError(
                f"shard_map: values of type {x.type}, whose tangents are other arrays than theirs, "
                "are no arguments or results. Make them inside of it."
            )
        told = list(spec.to_lo())
        if len(told) != n:
            raise ValueError(
                f"shard_map {what}: {spec} gives {len(told)} PartitionSpecs for a value of {n} "
                "arrays. Give one for each."
            )
        found += told
    return found
