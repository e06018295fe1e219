"""numjet.experimental.layout: how arrays lie in memory. There is one way here, row by row."""

from numjet.api.placement.layout import (
    Format as Format,
    Layout as Layout,
    with_layout_constraint as with_layout_constraint,
)

__all__ = ["Format", "Layout", "with_layout_constraint"]
