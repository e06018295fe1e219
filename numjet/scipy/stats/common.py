"""What the distributions share: promotion of their arguments, values outside of their support."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.core import dtypes


def floats(*args: Any) -> list[Any]:
    """The arguments as arrays of one floating dtype."""
    dtype = jnp.result_type(*args)
    if not dtypes.is_inexact(dtype):
        dtype = dtypes.canonical(float)
    return [jnp.asarray(x).astype(dtype) for x in args]


def standard(x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """Where `x` is in the distribution at 0 of scale 1; the scale."""
    x, loc, scale = floats(x, loc, scale)
    return (x - loc) / scale, scale


def probability(q: Any) -> Any:
    """`q` where it is a probability, NaN elsewhere."""
    return jnp.where((q < 0) | (q > 1), jnp.nan, q)


def inside(good: Any, x: Any, safe: float) -> Any:
    """`x` where `good` does not say False, `safe` elsewhere: derivatives stay finite there."""
    return jnp.where(good, x, safe)
