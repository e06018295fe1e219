"""Comparisons, boolean and bit operations, rounding, and the test for finite values.

For `lax`, `numpy` and all that is made of primitives. Results of comparisons are booleans; none of
these has a derivative but zero.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.ops.families import (
    ANY,
    INTEGRAL,
    INTEGRAL_OR_BOOL,
    ORDERED,
    REAL_FLOATING,
    elementwise,
    pair,
)


def _boolean(_: Any) -> Any:
    return dtypes.bool_


def _comparison(name: str, reference: Any, loops: Any, direction: str) -> Any:
    return elementwise(
        name,
        accepts=ANY if direction in ("EQ", "NE") else ORDERED,
        reference=reference,
        jvp=None,
        result=_boolean,
        loops=loops,
    )


eq_p = _comparison("eq", np.equal, lambda e, x, y: e.eq(x, y), "EQ")
ne_p = _comparison("ne", np.not_equal, lambda e, x, y: e.ne(x, y), "NE")
lt_p = _comparison("lt", np.less, lambda e, x, y: e.lt(x, y), "LT")
le_p = _comparison("le", np.less_equal, lambda e, x, y: e.le(x, y), "LE")
gt_p = _comparison("gt", np.greater, lambda e, x, y: e.gt(x, y), "GT")
ge_p = _comparison("ge", np.greater_equal, lambda e, x, y: e.ge(x, y), "GE")

and_p = elementwise(
    "and",
    accepts=INTEGRAL_OR_BOOL,
    reference=np.bitwise_and,
    jvp=None,
    loops=lambda e, x, y: e.and_(x, y),
)
or_p = elementwise(
    "or",
    accepts=INTEGRAL_OR_BOOL,
    reference=np.bitwise_or,
    jvp=None,
    loops=lambda e, x, y: e.or_(x, y),
)
xor_p = elementwise(
    "xor",
    accepts=INTEGRAL_OR_BOOL,
    reference=np.bitwise_xor,
    jvp=None,
    loops=lambda e, x, y: e.xor(x, y),
)
not_p = elementwise(
    "not",
    accepts=INTEGRAL_OR_BOOL,
    reference=np.invert,
    jvp=None,
    loops=lambda e, x: e.not_(x),
)


# ------------------------------------------------------------------ shifts
def _too_far(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shifts by the width or more, or by a negative number."""
    bits = x.dtype.itemsize * 8
    return (y < 0) | (y >= bits) if y.dtype.kind == "i" else y >= bits


def _safe_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(_too_far(x, y), y.dtype.type(0), y)


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _shl(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(_too_far(x, y), x.dtype.type(0), np.left_shift(x, _safe_shift(x, y)))


def _signed(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"i{dtype.itemsize}")


def _shr_arith(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The highest bit is the sign, in unsigned dtypes too."""
    dtype = x.dtype
    x = np.asarray(x).view(_signed(dtype))
    last = np.right_shift(x, x.dtype.type(dtype.itemsize * 8 - 1))
    safe = np.asarray(_safe_shift(x, y)).astype(x.dtype)
    return np.where(_too_far(x, y), last, np.right_shift(x, safe)).astype(dtype)


def _shr_logical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    shifted = np.right_shift(_unsigned(x), _unsigned(np.asarray(_safe_shift(x, y)))).astype(x.dtype)
    return np.where(_too_far(x, y), x.dtype.type(0), shifted)


shift_left_p = elementwise(
    "shift_left",
    accepts=INTEGRAL,
    reference=_shl,
    jvp=None,
    loops=lambda e, x, y: e.shl(x, y),
)
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic",
    accepts=INTEGRAL,
    reference=_shr_arith,
    jvp=None,
    loops=lambda e, x, y: e.shr_arith(x, y),
)
shift_right_logical_p = elementwise(
    "shift_right_logical",
    accepts=INTEGRAL,
    reference=_shr_logical,
    jvp=None,
    loops=lambda e, x, y: e.shr_logical(x, y),
)

population_count_p = elementwise(
    "population_count",
    accepts=INTEGRAL,
    reference=lambda x: np.bitwise_count(_unsigned(x)).astype(x.dtype),
    jvp=None,
    loops=lambda e, x: e.call("popcount", x),
)


def _clz_reference(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    bits = x.dtype.itemsize * 8
    u = _unsigned(x).astype(np.uint64)
    count = np.zeros(x.shape, np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        high = u >> np.uint64(shift)
        big = high != 0
        count += np.where(big, shift, 0)
        u = np.where(big, high, u)
    return (bits - 1 - count + (u == 0)).astype(x.dtype)


clz_p = elementwise(
    "clz",
    accepts=INTEGRAL,
    reference=_clz_reference,
    jvp=None,
    loops=lambda e, x: e.call("clz", x),
)


# ------------------------------------------------------------------ rounding


def _round_away(x: np.ndarray) -> np.ndarray:
    """Half away from zero. Adding 0.5 would round 0.49999997 up, so compare the fraction."""
    whole = np.trunc(x)
    return np.where(
        np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), np.copysign(whole, x)
    ).astype(x.dtype)


floor_p = elementwise(
    "floor",
    accepts=REAL_FLOATING,
    reference=np.floor,
    jvp=None,
    loops=lambda e, x: e.call("floor", x),
)
ceil_p = elementwise(
    "ceil",
    accepts=REAL_FLOATING,
    reference=np.ceil,
    jvp=None,
    loops=lambda e, x: e.call("ceil", x),
)
round_away_p = elementwise(
    "round",
    accepts=REAL_FLOATING,
    reference=_round_away,
    jvp=None,
    loops=lambda e, x: e.call("round", x),
)
round_even_p = elementwise(
    "round_even",
    accepts=REAL_FLOATING,
    reference=np.rint,
    jvp=None,
    loops=lambda e, x: e.call("round_even", x),
)
is_finite_p = elementwise(
    "is_finite",
    accepts=REAL_FLOATING,
    reference=np.isfinite,
    jvp=None,
    result=_boolean,
    loops=lambda e, x: e.call("is_finite", x),
)


# ------------------------------------------------------------------ functions
def eq(x: Any, y: Any) -> Any:
    """x == y, elementwise."""
    return eq_p.bind(*pair(x, y))


def ne(x: Any, y: Any) -> Any:
    """x != y, elementwise."""
    return ne_p.bind(*pair(x, y))


def lt(x: Any, y: Any) -> Any:
    """x < y, elementwise."""
    return lt_p.bind(*pair(x, y))


def le(x: Any, y: Any) -> Any:
    """x <= y, elementwise."""
    return le_p.bind(*pair(x, y))


def gt(x: Any, y: Any) -> Any:
    """x > y, elementwise."""
    return gt_p.bind(*pair(x, y))


def ge(x: Any, y: Any) -> Any:
    """x >= y, elementwise."""
    return ge_p.bind(*pair(x, y))


def bitwise_and(x: Any, y: Any) -> Any:
    """x & y."""
    return and_p.bind(*pair(x, y))


def bitwise_or(x: Any, y: Any) -> Any:
    """x | y."""
    return or_p.bind(*pair(x, y))


def bitwise_xor(x: Any, y: Any) -> Any:
    """x ^ y."""
    return xor_p.bind(*pair(x, y))


def bitwise_not(x: Any) -> Any:
    """The bits of x, each inverted; of booleans, not x.

    x: an integer or boolean array, of any shape, or a Python number. Result: x's shape and dtype.
    Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return not_p.bind(as_array(x))


def shift_left(x: Any, y: Any) -> Any:
    """x << y; shifts by the width or more give 0."""
    return shift_left_p.bind(*pair(x, y))


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """x >> y, filling with the sign."""
    return shift_right_arithmetic_p.bind(*pair(x, y))


def shift_right_logical(x: Any, y: Any) -> Any:
    """x >> y, filling with zeros."""
    return shift_right_logical_p.bind(*pair(x, y))


def population_count(x: Any) -> Any:
    """The number of bits of x that are set.

    x: an integer array, of any shape, or a Python number. Result: x's shape and dtype. Raises
    TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.population_count(jnp.array([7, -1]))
    Array([ 3, 32], dtype=int32)
    """
    return population_count_p.bind(as_array(x))


def clz(x: Any) -> Any:
    """The number of leading zero bits of x.

    x: an integer array, of any shape, or a Python number. Result: x's shape and dtype. Raises
    TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.clz(jnp.array([1, 255], jnp.uint8))
    Array([7, 0], dtype=uint8)
    """
    return clz_p.bind(as_array(x))


def floor(x: Any) -> Any:
    """The largest integer that is not greater than x, as a float.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 0. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.floor(jnp.array([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """
    return floor_p.bind(as_array(x))


def ceil(x: Any) -> Any:
    """The smallest integer that is not less than x, as a float.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 0. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.ceil(jnp.array([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """
    return ceil_p.bind(as_array(x))


class RoundingMethod(enum.IntEnum):
    """How `lax.round` treats halves.

    >>> from numjet import lax
    >>> print(lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
    2.0
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """x rounded to an integer, as a float.

    x: a real floating array. rounding_method: RoundingMethod.AWAY_FROM_ZERO (0; halves away from
    zero) or TO_NEAREST_EVEN (1; halves to the even neighbour). Result: x's shape and dtype.
    Derivative: 0. Raises TypeError for other dtypes. `numpy.round` rounds halves to even and takes
    decimals.

    >>> from numjet import lax, numpy as jnp
    >>> lax.round(jnp.array([0.5, 2.5])), lax.round(jnp.array([0.5, 2.5]), 1)
    (Array([1., 3.], dtype=float32), Array([0., 2.], dtype=float32))
    """
    even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    return (round_even_p if even else round_away_p).bind(as_array(x))


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN.

    x: a real floating array of any shape. Result: booleans of its shape. No derivative flows.
    Raises TypeError for other dtypes; `numpy.isfinite` takes all.

    >>> from numjet import lax, numpy as jnp
    >>> lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    return is_finite_p.bind(as_array(x))
