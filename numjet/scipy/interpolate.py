"""numjet.scipy.interpolate: values between the points of a rectangular grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.numpy.promote import inexact_dtype

_METHODS = ("linear", "nearest")


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(
            f"RegularGridInterpolator: method {method!r} is not defined. Use one of {_METHODS}."
        )


class RegularGridInterpolator:
    """A function that reads `values`, given on a grid, at points between.

    points: for each of the first axes of `values` the rising coordinates of the grid. values:
    floats or complex numbers, integers as floats; axes behind those of the grid stay. method:
    "linear" or "nearest". fill_value: the result at points outside of the grid; None: extrapolated.
    bounds_error must be False: values are not known while tracing.

    Called with points [..., n] (or a tuple of n arrays, which broadcast); of shape [...] and the
    axes that stay. Differentiable in the values, and in the points for "linear".

    >>> import numjet.numpy as jnp
    >>> f = RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 10.0, 40.0]))
    >>> print(f(jnp.array([[0.5], [1.5], [9.0]])))
    [ 5. 25. nan]
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: `bounds_error` takes no effect under JIT. Leave it out; "
                "points outside get fill_value."
            )
        values = jnp.asarray(values)
        values = values.astype(inexact_dtype(values.dtype))
        if len(points) > values.ndim:
            raise ValueError(
                f"RegularGridInterpolator: there are {len(points)} point arrays, but values has "
                f"{values.ndim} dimensions."
            )
        self.grid = tuple(jnp.asarray(p) for p in points)
        for i, p in enumerate(self.grid):
            if p.ndim != 1:
                raise ValueError(
                    f"RegularGridInterpolator: the points in dimension {i} must be 1-dimensional, "
                    f"got shape {p.shape}."
                )
            if values.shape[i] < len(p):
                raise ValueError(
                    f"RegularGridInterpolator: there are {len(p)} points and {values.shape[i]} "
                    f"values in dimension {i}."
                )
        self.values, self.method, self.fill_value = values, method, fill_value
        self.bounds_error = bounds_error

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values at `xi`, by `method` where it is given."""
        method = self.method if method is None else method
        _check_method(method)
        count = len(self.grid)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*[jnp.asarray(x) for x in xi]), -1)
        else:
            xi = jnp.asarray(xi)
            if xi.ndim == 1:
                xi = xi[None] if count > 1 else xi[:, None]
        if xi.shape[-1] != count:
            raise ValueError(
                f"RegularGridInterpolator: the requested sample points xi have dimension "
                f"{xi.shape[-1]}, but this RegularGridInterpolator has dimension {count}."
            )
        shape = xi.shape[:-1]
        xi = xi.reshape(-1, count)
        lows, parts, outside = [], [], jnp.zeros(xi.shape[0], bool)
        for i, p in enumerate(self.grid):
            x = xi[:, i]
            low = jnp.clip(jnp.searchsorted(p, x) - 1, 0, max(len(p) - 2, 0))
            width = p[jnp.minimum(low + 1, len(p) - 1)] - p[low]
            lows.append(low)
            parts.append((x - p[low]) / jnp.where(width == 0, 1, width))
            outside |= (x < p[0]) | (x > p[-1])
        read = self._linear if method == "linear" else self._nearest
        out = read(lows, parts)
        rest = (1,) * (out.ndim - 1)
        if self.fill_value is not None:
            out = jnp.where(outside.reshape(-1, *rest), self.fill_value, out)
        unknown = jnp.isnan(xi).any(-1)
        out = jnp.where(unknown.reshape(-1, *rest), jnp.nan, out)
        return out.reshape(*shape, *self.values.shape[count:])

    def _nearest(self, lows: list, parts: list) -> Any:
        return self.values[
            tuple(jnp.where(t <= 0.5, i, i + 1) for i, t in zip(lows, parts, strict=True))
        ]

    def _linear(self, lows: list, parts: list) -> Any:
        total: Any = 0
        rest = (1,) * (self.values.ndim - len(self.grid))
        pairs = [((i, 1 - t), (i + 1, t)) for i, t in zip(lows, parts, strict=True)]
        for corner in itertools.product(*pairs):
            weight: Any = 1
            for _, t in corner:
                weight = weight * t
            total = total + self.values[tuple(i for i, _ in corner)] * weight.reshape(-1, *rest)
        return total


__all__ = ["RegularGridInterpolator"]


def __dir__() -> list[str]:
    return [*__all__]
