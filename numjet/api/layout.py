"""How arrays lie in memory: there is one way here, row by row.

`Layout` and `Format` say what a program wants; a layout that is not row by row is refused where it
would have to be made. Public as `numjet.experimental.layout`; `api.devices` loads it when
`device_put` is given a `Format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.api.placements import Sharding
from numjet.base import tree


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


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x` laid out as `layouts` (a Layout, or a pytree of them that is a prefix of `x`) says.

    Raises NotImplementedError for a layout that is not row by row, ValueError for one that has
    another number of axes than its array.

    >>> import numjet.numpy as jnp
    >>> with_layout_constraint(jnp.ones((2, 3)), Layout((0, 1))).shape
    (2, 3)
    """
    leaves = tree.tree_leaves(x)
    wanted = tree.broadcast_prefix(layouts, x, is_leaf=lambda n: isinstance(n, Layout))
    for leaf, layout in zip(leaves, wanted, strict=True):
        check_layout("with_layout_constraint", layout, leaf.ndim)
    return x


def check_layout(name: str, layout: Layout, ndim: int) -> None:
    """Raise ValueError for a layout of another number of axes, NotImplementedError for one that is
    not row by row."""
    order = layout.major_to_minor
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"{name}: {layout} is no order of {ndim} axes.")
    if order != tuple(range(ndim)) or layout.tiling:
        raise NotImplementedError(
            f"{name}: arrays lie row by row, got {layout}. Transpose the array."
        )
