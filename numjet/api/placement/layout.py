"""How arrays lie in memory: there is one way here, row by row.

`Layout` and `Format` say what a program wants. An array that was asked to lie otherwise tells so
(`order_of`), and is moved and compared as if it did; its memory is row by row as that of all arrays
is, and so is that of what is computed from it. Public as `numjet.experimental.layout`;
`api.placement.devices` loads it when `device_put` is given a `Format`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.placement.placements import ORDERS, Sharding
from numjet.base import tree
from numjet.core import hooks
from numjet.core.array import Array, as_array
from numjet.core.evaluate import another
from numjet.core.trace import EVAL, current_trace
from numjet.ops.constraint import layout_constraint_p


class AutoLayout:
    """The type of `Layout.AUTO`."""

    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """The order of an array's axes in memory, from the slowest to the fastest.

    `tiling` and `sub_byte_element_size_in_bits` are kept and compared, no array here has them.

    major_to_minor: the axes, from the slowest on.

    >>> from numjet.experimental.layout import Layout
    >>> Layout((1, 0)).major_to_minor
    (1, 0)
    """

    AUTO = AutoLayout()

    def __init__(
        self,
        major_to_minor: Sequence[int],
        tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple([tuple(t) for t in tiling])
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> tuple:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding. Raises ValueError for a layout of a sharding that is not given,
    TypeError for what is no layout or no sharding."""

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"Format: Sharding has to be concrete when layout is of type {type(layout)}. Pass "
                "a NamedSharding or a SingleDeviceSharding."
            )
        if not (layout is None or isinstance(layout, Layout | AutoLayout)):
            raise TypeError(f"Format: the layout must be a Layout, Layout.AUTO or None: {layout!r}")
        if not isinstance(sharding, Sharding | None):
            raise TypeError(
                "Format: Invalid value received for the sharding argument. Expected values are "
                f"`None` or an instance of `jax.Sharding`. Got {sharding} of type {type(sharding)}."
            )
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (
            other.layout,
            other.sharding,
        )

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def order_of(x: Any) -> Layout:
    """How an array lies, as it tells: row by row, or as somebody asked for."""
    found = ORDERS.get(id(x))
    if found is not None and found[0]() is x:
        return found[1]
    return Layout(tuple(range(x.ndim)), ())


def labelled(x: Any, layout: Any) -> Any:
    """The array as a new one that tells that it lies so: `layout` is a Layout of its axes. One of
    another kind, or None, leaves it as it is."""
    if not isinstance(layout, Layout) or order_of(x).major_to_minor == layout.major_to_minor:
        return x
    out = another(x)
    if layout.major_to_minor != tuple(range(x.ndim)):
        key = id(out)
        told = Layout(layout.major_to_minor, layout.tiling or ())
        ORDERS[key] = weakref.ref(out, lambda _: ORDERS.pop(key, None)), told
    return out


def kept(before: Any, after: Any) -> Any:
    """Arrays that were put elsewhere, in the order that they had."""
    return tree.tree_map(
        lambda x, out: labelled(out, order_of(x)) if isinstance(x, Array) else out, before, after
    )


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x` laid out as `layouts` (a Layout, or a pytree of them that is a prefix of `x`) says.

    Values are the same: programs of the CPU compute row by row, and an array's `format` tells what
    was asked for. Derivative and `vmap`: the same constraint, of the mapped axes too. Raises
    ValueError for what is no Layout, one that has another number of axes than its array, and,
    outside of traced functions, for what is no Array.

    >>> import numjet.numpy as jnp
    >>> x = with_layout_constraint(jnp.ones((2, 3)), Layout((1, 0)))
    >>> x.shape, x.format.layout.major_to_minor
    ((2, 3), (1, 0))
    """
    leaves, treedef = tree.tree_flatten(x)
    wanted = tree.broadcast_prefix(layouts, x, is_leaf=lambda n: isinstance(n, Layout))
    if not all([isinstance(layout, Layout) for layout in wanted]):
        raise ValueError(
            "layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
            f"{[type(layout) for layout in wanted]}"
        )
    found = []
    for leaf, layout in zip(leaves, wanted, strict=True):
        if current_trace() is EVAL and not isinstance(leaf, Array):
            raise ValueError(
                "with_layout_constraint in eager mode can only be applied to jax.Arrays. Got "
                f"{type(leaf)}"
            )
        check_layout("with_layout_constraint arguments", layout, np.shape(leaf))
        if isinstance(leaf, Array) and current_trace() is EVAL:
            where: Any = leaf
            found.append(labelled(hooks.device_put(where, where.sharding), layout))
        else:
            found.append(layout_constraint_p.bind(as_array(leaf), layout=layout))
    return tree.tree_unflatten(treedef, found)


def check_layout(what: str, layout: Layout, shape: tuple) -> None:
    """Raise ValueError for a layout that is no order of the axes of a shape, NotImplementedError
    for one with tiles."""
    order = layout.major_to_minor
    if len(order) != len(shape):
        raise ValueError(
            f"One of {what} is incompatible with its layout annotation {layout}: Length of "
            "major_to_minor and the rank of the value should match. Got major_to_minor="
            f"{order} and shape={tuple(shape)}"
        )
    if sorted(order) != list(range(len(shape))):
        raise ValueError(
            f"One of {what} is incompatible with its layout annotation {layout}: major_to_minor is "
            f"no order of the axes of shape={tuple(shape)}"
        )
    if layout.tiling:
        raise NotImplementedError(f"{what}: {layout} has tiles, and arrays of the CPU have none.")
