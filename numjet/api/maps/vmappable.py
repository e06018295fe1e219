"""Values that say themselves how they are mapped: `interpreters.batching.register_vmappable`.

A rule is asked twice: before the map with a function that notes which arrays are mapped and where,
and in it with one that hands these arrays over as they are there; so it may not depend on what the
arrays hold. For `mapping.vmap`. What would break it: a rule that asks for its arrays in another
order the second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numjet.base import tree
from numjet.base.record import NamedTuple

# data type -> (type of its axes, type of its size, to_elt, from_elt, make_iota).
TABLE: dict[type, tuple] = {}


def is_one(x: Any) -> bool:
    """Whether a value is of a type with a rule."""
    return type(x) in TABLE


def is_spec(x: Any) -> bool:
    """Whether this says how values of such a type are mapped, and is no integer."""
    return any([type(x) is rule[0] for rule in TABLE.values()])


def _no_iota() -> Any:
    raise NotImplementedError(
        "A rule of register_vmappable asked for the position of the example. Give to_elt an array "
        "of positions as a part of the value."
    )


def _element(take: Callable[[Any, Any], Any], x: Any, spec: Any) -> Any:
    """A value as the mapped function sees it. take(array, axis): an array that is mapped."""
    if is_one(x):
        return TABLE[type(x)][2](lambda v, axis: _element(take, v, axis), _no_iota, x, spec)
    return x if spec is None else take(x, spec)


def _whole(place: Callable[[Any, Any], Any], size: int, x: Any, spec: Any) -> Any:
    """A value of the mapped function as the caller sees it. place(array, axis): one with an
    axis."""
    if is_one(x):
        return TABLE[type(x)][3](
            lambda n, v, axis: _whole(place, n, v, axis), size, x, spec
        )
    return place(x, spec)


class Arguments(NamedTuple):
    """Arguments taken apart: arrays that are mapped or handed on, and the axis of each. `leaves`
    and `axes` are those of the arguments, with values of types with rules as leaves."""

    arrays: list[Any]
    array_axes: list[Any]
    leaves: list[Any]
    axes: list[Any]

    @classmethod
    def of(cls, leaves: list[Any], axes: list[Any]) -> Arguments:
        """Take apart."""
        arrays: list[Any] = []
        array_axes: list[Any] = []

        def note(x: Any, axis: Any) -> Any:
            arrays.append(x)
            array_axes.append(axis)
            return x

        for x, axis in zip(leaves, axes, strict=True):
            if not is_one(x):
                note(x, axis)
            elif axis is not None:
                _element(note, x, axis)
        return cls(arrays, array_axes, leaves, axes)

    def within(self, values: Sequence[Any]) -> list[Any]:
        """The leaves that the function gets. values: the arrays, as they are in the map."""
        given: Iterator[Any] = iter(values)

        def take(_: Any, __: Any) -> Any:
            return next(given)

        return [
            next(given) if not is_one(x) else x if axis is None else _element(take, x, axis)
            for x, axis in zip(self.leaves, self.axes, strict=True)
        ]


class Results:
    """What the function gave, taken apart: `arrays`, and the axis in the results of each."""

    def __init__(self, out: Any, out_axes: Any, size: int) -> None:
        self.leaves, self.treedef = tree.tree_flatten(out, is_leaf=is_one)
        if is_spec(out_axes):
            self.axes = [out_axes] * len(self.leaves)
        else:
            self.axes = tree.flatten_axes("vmap out_axes", self.treedef, out_axes)
        self.size = size
        self.arrays: list[Any] = []
        self.array_axes: list[Any] = []
        self._all(self._note)

    def _note(self, x: Any, axis: Any) -> Any:
        self.arrays.append(x)
        self.array_axes.append(axis)
        return x

    def _all(self, place: Callable[[Any, Any], Any]) -> list[Any]:
        return [
            _whole(place, self.size, x, axis)
            for x, axis in zip(self.leaves, self.axes, strict=True)
        ]

    def whole(self, values: Sequence[Any]) -> Any:
        """The results. values: the arrays, with their axes."""
        given = iter(values)
        return tree.tree_unflatten(self.treedef, self._all(lambda *_: next(given)))
