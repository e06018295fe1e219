"""The normal distribution between bounds that both lie in one of its tails.

There the error function is so near to ±1 that few of its values are left: none from 5.9 on in
single precision. Probabilities are taken in units of the tail's, by exp(-x²/2) erfcx(x/√2) / 2, and
the quantile is found by Newton's method. Called by `random.truncated_normal`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.structural import convert, full
from numjet.ops import arithmetic as ar, special_tables as tables
from numjet.ops.logic import ge, lt
from numjet.ops.shape import select_n
from numjet.ops.special_series import chebyshev
from numjet.ops.transcendental import expm1, log, log1p, sqrt

# From here on inversion of the error function loses more than Newton's method.
START = 2.0
# Beyond the nearer bound by so much nothing is left of the tail.
_WIDEST = 40.0
# From the first guess, off by at most 0.2, to the last digit of double and of single precision.
_ROUNDS, _ROUNDS_OF_SINGLE = 4, 3


def may_be_far(lower: Any, upper: Any) -> bool:
    """Whether bounds, as they were given, may lie in a tail: True where they are not known."""

    def some(x: Any, sign: float) -> bool:
        if not isinstance(x, (int, float, np.ndarray, np.generic, ArrayImpl)):
            return True
        return bool(np.any(np.asarray(x, np.float64) * sign >= START))

    return some(lower, 1) or some(upper, -1)


def _scaled(x: Any) -> Any:
    """exp(x²/2) times the probability of values beyond x >= 0, times 2."""
    w = 3.0 / (x * math.sqrt(0.5) + 3.0)
    return w * chebyshev(tables.ERFCX, w)


def far_normal(part: Any, lower: Any, upper: Any) -> Any:
    """The value below which `part` in [0, 1) of the probability between the bounds lies. Bounds
    that lie in no tail give some number."""
    dtype = part.aval.dtype
    if dtype.itemsize < 4:
        part, lower, upper = [convert(x, dtypes.float32) for x in (part, lower, upper)]
    constant = lambda value: full(part.aval.shape, value, part.aval.dtype)  # noqa: E731
    below = lt(upper, constant(0))
    near = select_n(below, lower, ar.neg(upper))
    far = select_n(below, upper, ar.neg(lower))
    sound = ge(near, constant(START))
    near, far = select_n(sound, constant(START), near), select_n(sound, constant(START), far)
    far = ar.min(far, near + _WIDEST)
    # What lies between the value and the nearer bound; all of it would be the infinite bound.
    inner = select_n(below, part, 1.0 - part)
    inner = ar.min(inner, constant(1 - float(np.finfo(part.aval.dtype).epsneg)))
    start = _scaled(near)
    beyond = log(_scaled(far) / start) - (far - near) * (far + near) * 0.5
    fall = ar.neg(log1p(inner * expm1(beyond)))
    x = near * sqrt(2.0 * fall / near / near + 1.0)
    for _ in range(_ROUNDS if part.aval.dtype == np.float64 else _ROUNDS_OF_SINGLE):
        here = _scaled(x)
        over = (x - near) * (x + near) * 0.5 - log(here / start) - fall
        x = x - over * here * math.sqrt(math.pi / 2)
    return convert(select_n(below, x, ar.neg(x)), dtype)
