"""numjet.scipy.ndimage: reading arrays between their elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.hashed import hold
from numjet.api.eager.large import as_program
from numjet.core import dtypes


def _mirror(i: Any, n: int) -> Any:
    """Turned round at the centers of the end elements."""
    period = max(2 * n - 2, 1)
    return jnp.abs((i + n - 1) % period - (n - 1)) if n > 1 else jnp.zeros_like(i)


def _reflect(i: Any, n: int) -> Any:
    """Turned round at the outer edges of the end elements."""
    j = i % (2 * n)
    return jnp.minimum(j, 2 * n - 1 - j)


_MODES: dict[str, Callable] = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirror,
    "reflect": _reflect,
}


def _neighbours(order: int, place: Any, dtype: Any) -> list[tuple[Any, Any]]:
    """The elements read along an axis, as numbers and weights (None: 1)."""
    if order == 0:
        return [(lax.round(place * 1.0).astype(jnp.int32), None)]
    low = jnp.floor(place)
    upper = (place - low).astype(dtype)
    low = low.astype(jnp.int32)
    return [(low, 1 - upper), (low + 1, upper)]


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Any:
    """`input` at `coordinates`, one array for each axis, all of one shape: that of the result.

    order: 0, the nearest element; 1, linear in each axis. mode, for places outside: "constant"
    (cval), "nearest", "wrap" (periodic), "mirror" and "reflect" (turned round at the end elements'
    centers or outer edges). Integers are rounded, halves away from 0. Result: the coordinates'
    shape, `input`'s dtype; linear in it, and differentiable in the coordinates for order 1. Raises
    ValueError for another number of coordinates than axes, TypeError for an `input` without
    elements, NotImplementedError for other orders and modes. Booleans are True where the value is
    not 0 (SciPy rounds down); its `output` and prefilter are not there.

    >>> import numjet.numpy as jnp
    >>> print(map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.25])], order=1))
    [ 5.  12.5]
    """
    x = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    fill = jnp.asarray(cval, x.dtype)
    if len(places) != x.ndim:
        raise ValueError(
            f"map_coordinates: coordinates must be a sequence of length input.ndim, but "
            f"{len(places)} != {x.ndim}."
        )
    if mode not in _MODES:
        raise NotImplementedError(
            f"map_coordinates does not yet support mode {mode}. Currently supported modes are "
            f"{sorted(_MODES)}."
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"jax.scipy.ndimage.map_coordinates currently requires order<=1, got order={order!r}."
        )
    return _interpolated(x, fill, order, mode, *places)


def _interpolate(x: Any, fill: Any, order: int, mode: str, *places: Any) -> Any:
    exact = not dtypes.is_inexact(x.dtype)
    weights_in = dtypes.canonical(float) if exact else dtypes.real_of(x.dtype)
    along = []
    for place, n in zip(places, x.shape, strict=True):
        choices = []
        for i, weight in _neighbours(order, place, weights_in):
            inside = (i >= 0) & (i < n) if mode == "constant" else None
            choices.append((_MODES[mode](i, n), inside, weight))
        along.append(choices)
    total: Any = None
    for corner in itertools.product(*along):
        value = x[tuple(i for i, _, _ in corner)] if corner else x
        checks = [inside for _, inside, _ in corner if inside is not None]
        if checks:
            value = jnp.where(math.prod(checks[1:], start=checks[0]), value, fill)
        for _, _, weight in corner:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    if dtypes.is_integer(x.dtype) and dtypes.is_inexact(total.dtype):
        total = lax.round(total)
    return total.astype(x.dtype)


_interpolated = as_program(_interpolate, large=False)

__all__ = ["map_coordinates"]

hold(globals(), __name__)


def __dir__() -> list[str]:
    return [*__all__]
