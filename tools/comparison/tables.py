"""All tables together, and the functions that are in none, each with its reason."""

from __future__ import annotations

from comparison import (
    table_lax,
    table_linear,
    table_models,
    table_numpy,
    table_shapes,
    table_types,
)
from comparison.families import Table

TABLE: Table = {
    **table_numpy.TABLE,
    **table_shapes.TABLE,
    **table_linear.TABLE,
    **table_lax.TABLE,
    **table_models.TABLE,
    **table_types.TABLE,
}

# Functions without gradients to compare.
NO_GRADIENT: frozenset[str] = frozenset()

# The function that stands in a case's text, where it is another than the name says.
CALLED = {
    **table_types.CALLED,
    **{
        f"nn.initializers.{name}": "initializer"
        for name in """
    constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal
    kaiming_uniform lecun_normal lecun_uniform normal orthogonal truncated_normal uniform
    variance_scaling xavier_normal xavier_uniform""".split()
    },
}

# Public functions that are not compared, each with the reason.
EXCEPTIONS = table_types.EXCEPTIONS
