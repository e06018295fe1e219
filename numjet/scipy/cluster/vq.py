"""numjet.scipy.cluster.vq: the nearest codes of observations."""

from __future__ import annotations

from typing import Any

from numjet import numpy as jnp
from numjet.numpy.promote import as_arrays, promote_inexact


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The number of the nearest code (int32) and its Euclidean distance, for each observation.

    obs: [m, n], or [m] of numbers. code_book: [k, n], or [k]. check_finite: without effect, values
    are not known while tracing. Of equal distances the first code counts. Integers become floats.
    Raises ValueError where ranks or n differ, and without codes. The derivative of a distance 0 is
    NaN.

    >>> import numjet.numpy as jnp
    >>> codes, distances = vq(jnp.array([0.0, 1.2, 5.0]), jnp.array([1.0, 4.0]))
    >>> print(codes, distances.round(3))
    [0 0 1] [1.  0.2 1. ]
    """
    obs, codes = promote_inexact(*as_arrays("vq", obs, code_book))
    if obs.ndim != codes.ndim:
        raise ValueError(
            f"vq: Observation and code_book should have the same rank, got shapes {obs.shape} and "
            f"{codes.shape}."
        )
    if obs.ndim not in (1, 2):
        raise ValueError(f"vq: ndim different than 1 or 2 are not supported, got {obs.ndim}.")
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.shape[1] != codes.shape[1]:
        raise TypeError(
            f"vq: observations have {obs.shape[1]} features, codes {codes.shape[1]}. They must "
            "have as many."
        )
    away = jnp.linalg.norm(obs[:, None] - codes[None], axis=-1)
    nearest = jnp.argmin(away, 1)
    return nearest, jnp.take_along_axis(away, nearest[:, None], 1)[:, 0]


__all__ = ["vq"]


def __dir__() -> list[str]:
    return [*__all__]
