"""What callers gave as Python numbers and NumPy arrays, while transformations work on Arrays.

`api.flat` notes what it made an Array of (`note`); derivatives give it back where a function
returns it (`as_given`), and derivative rules by the user see it meanwhile (`Seen`). What would
break it: an Array in a `Noted` that is somebody else's, too: it alone says what was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.trace import Tracer, current_trace
from numjet.core.typed_numbers import TypedNdArray, typed

# The Array's id -> the Array, which keeps the id its own, what was given, and whether it has a
# dtype where it is seen. Beside them pairs of ids, of primals and tangents as a rule gave them
# (`note_tangent`).
Noted = dict[Any, tuple[Any, Any, bool]]

_seen: ContextVar[Noted | None] = ContextVar("seen", default=None)


def note(noted: Noted, array: Any, x: Any) -> None:
    """Note that `array` was made of `x`, where this is a number or a NumPy array."""
    if isinstance(x, int | float | complex | np.ndarray | np.generic):
        noted[id(array)] = array, x, False


def with_dtypes(noted: Noted) -> None:
    """Make what is noted numbers and NumPy arrays with dtypes."""
    for key, (array, x, _) in noted.items():
        noted[key] = array, x, True


def with_dtype(x: Any) -> Any:
    """A Python number or NumPy array as one that has the dtype of its Array; anything else that an
    Array can be made of as it is."""
    if isinstance(x, Array):
        return x
    if isinstance(x, np.ndarray | np.generic):
        if isinstance(x, TypedNdArray):
            return x
        return np.asarray(x, dtypes.canonical(x.dtype)).view(TypedNdArray)
    return typed(x, as_array(x).aval.dtype)


def as_given(outs: Sequence[Any], noted: Noted) -> Sequence[Any]:
    """`outs`, in which Arrays are again what they were made of."""
    return [_given(noted[id(x)]) if id(x) in noted else x for x in outs] if noted else outs


def _given(entry: tuple[Any, Any, bool]) -> Any:
    _, x, dtyped = entry
    return with_dtype(x) if dtyped else x


def note_tangent(x: Any, t: Any) -> None:
    """Note that a rule gave the tangent `t` of its result `x`, where it is one that was given."""
    noted = _seen.get()
    if noted is not None and id(t) in noted:
        noted[id(x), id(t)] = x, t, False


def tangents_as_given(outs: Sequence[Any], tangents: Sequence[Any], noted: Noted) -> list[Any]:
    """Tangents of `outs` as they were given, but for those that came through operations."""

    def kept(x: Any, t: Any) -> bool:
        return id(t) in noted and (id(x) in noted or (id(x), id(t)) in noted)

    pairs = zip(outs, tangents, strict=True)
    return [_given(noted[id(t)]) if kept(x, t) else t for x, t in pairs]


class Seen:
    """In its scope rules see what is noted, beside what was before, and note what they give."""

    __slots__ = ("noted", "token")

    def __init__(self, noted: Noted) -> None:
        self.noted = noted

    def __enter__(self) -> None:
        outer = _seen.get()
        for key, pair in (outer or {}).items():
            self.noted.setdefault(key, pair)
        self.token = _seen.set(self.noted)

    def __exit__(self, *_: Any) -> None:
        _seen.reset(self.token)


def seen(values: Sequence[Any]) -> Sequence[Any]:
    """`values` as rules see them."""
    noted = _seen.get()
    return values if noted is None else as_given(values, noted)


def is_noted(x: Any) -> bool:
    """Whether `x` belongs to the current trace, and rules see a Python number or a NumPy array in
    its place."""
    noted = _seen.get()
    if noted is None or not isinstance(x, Tracer) or x.owner is not current_trace():
        return False
    while isinstance(x, Tracer):
        x = x.concrete()
    return id(x) in noted


def array_of(x: Any) -> Any:
    """`as_array` of what a rule gave, and a note of it."""
    array = as_array(x)
    noted = _seen.get()
    if noted is not None and array is not x:
        note(noted, array, x)
    return array


__all__ = [
    "Noted",
    "Seen",
    "array_of",
    "as_given",
    "is_noted",
    "note",
    "note_tangent",
    "seen",
    "tangents_as_given",
    "with_dtype",
    "with_dtypes",
]
