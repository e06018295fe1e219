"""Evaluation of Chebyshev series, for the special functions here and in numjet.scipy.

Written with the arrays' operators, so that it runs on values and on whatever traces them.
"""

from __future__ import annotations

from typing import Any

from numjet.core import dtypes

# Below this part of the largest one a coefficient does not count in single precision.
SINGLE = 1e-9


def chebyshev(table: tuple, x: Any) -> Any:
    """The series `table` of special_tables at `x`, which must lie in its interval (Clenshaw)."""
    (low, high), coefficients = table
    if x.dtype != dtypes.float64:
        largest = max(map(abs, coefficients))
        last = max(k for k, c in enumerate(coefficients) if abs(c) > SINGLE * largest)
        coefficients = coefficients[: last + 1]
    double = (x - (low + high) / 2) * (4 / (high - low))
    one: Any = double * 0.0
    two = one
    for c in reversed(coefficients[1:]):
        one, two = double * one - two + c, one
    return double * one * 0.5 - two + coefficients[0]


def polynomial(coefficients: Any, x: Any) -> Any:
    """Σ c_k x^k, by Horner's rule."""
    total: Any = x * 0.0
    for c in reversed(tuple(coefficients)):
        total = total * x + c
    return total
