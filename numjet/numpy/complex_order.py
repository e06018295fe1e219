"""Extremes of complex numbers, which NumPy orders by their real parts first.

For `numpy.reductions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.indexing import getitem
from numjet.numpy.logic import equal, logical_and, not_equal, where
from numjet.numpy.shape import expand_dims, ravel, reshape


def complex_extremum(x: Any, axes: tuple, extreme: Callable, nothing: float) -> Any:
    """Extremes of complex numbers, by their real parts, of these by the imaginary ones: the first
    such number, or as NumPy has it the first NaN."""
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    shape = tuple([x.aval.shape[i] for i in kept])
    count = math.prod([x.aval.shape[i] for i in axes])
    if not count:  # what loses against the `initial` that there is
        return lax.full(shape, complex(nothing, nothing), x.aval.dtype)
    x = reshape(lax.transpose(x, (*kept, *axes)), (*shape, count))
    last = (len(shape),)
    best = lambda part: expand_dims(extreme(part, last), last)
    real, imaginary = lax.real(x), lax.imag(x)
    alike = equal(real, best(real))
    unlike = scalar(nothing, real.aval.dtype)
    wins = logical_and(alike, equal(imaginary, best(where(alike, imaginary, unlike))))
    nan = not_equal(x, x)
    wins = where(expand_dims(lax.reduce_or(nan, last), last), nan, wins)
    place = ravel(lax.argmax(wins, last[0], np.int32))
    rows = lax.broadcasted_iota(np.int32, place.aval.shape, 0)
    return reshape(getitem(reshape(x, (-1, count)), (rows, place)), shape)
