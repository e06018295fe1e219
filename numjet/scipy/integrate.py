"""numjet.scipy.integrate: integration of samples."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.api.compiled.shown import shown


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples `y` along `axis`, by the trapezoidal rule.

    x: where the samples were taken; without it they are `dx` apart. y: numbers of any shape.
    Result: y's shape without the axis, in the promoted floating dtype. Linear in y. Promotes to
    floats.

    >>> print(trapezoid([1.0, 2.0, 3.0]))
    4.0
    """
    y = jnp.asarray(y) if isinstance(y, list | tuple) else y
    return jnp.trapezoid(y, x, dx, axis)


trapezoid = shown(trapezoid)

__all__ = ["trapezoid"]


def __dir__() -> list[str]:
    return [*__all__]
