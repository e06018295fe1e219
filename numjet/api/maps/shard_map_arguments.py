"""Arguments of `shard_map` that are no arrays: references, and objects that it hands on.

For `api.maps.shard_map`. What would break it: a reference that stands in two places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.api.placement.sharding import PartitionSpec
from numjet.base import tree
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
