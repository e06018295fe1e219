"""What `accuracy=` of lax's elementary functions takes, and whether what is asked for is met.

Used by `ops.transcendental`; the two classes are public in `lax`. The functions of this package
have one implementation each, within 2 ulp of the true value (tests/cpu/test_math.py), so that
`accuracy` chooses nothing: it is checked, and refused where it asks for more.
"""
from __future__ import annotations

import enum
from typing import Any

# The bound that the elementary functions keep, in units in the last place.
BOUND = 2


class AccuracyMode(enum.Enum):
    """Which implementation of a function is asked for: the most exact, or the default.

    >>> from numjet import lax
    >>> print(lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How far a result may be from the true value.

    atol: absolutely; rtol: relatively; ulps: in units in the last place. What is not set is not
    asked for. At least one must be set, none may be negative (ValueError).

    >>> from numjet import lax
    >>> lax.Tolerance(rtol=1e-6).rtol
    1e-06
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerances must be non-negative, got atol={atol}, rtol={rtol}, "
                             f"ulps={ulps}.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerance) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple:
        return self.atol, self.rtol, self.ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(name: str, accuracy: Any) -> None:
    """Raise unless the function `name` is as exact as `accuracy` asks for."""
    hash(accuracy)  # raises TypeError
    if isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise NotImplementedError(f"{name}: accuracy {accuracy!r} not supported. Pass an "
                                  "AccuracyMode, a Tolerance or None.")
    if 0 < accuracy.ulps < BOUND and not accuracy.atol and not accuracy.rtol:
        raise NotImplementedError(f"{name}: {accuracy!r} asks for more than the {BOUND} ulp that "
                                  "the function keeps. Compute in a wider dtype.")
