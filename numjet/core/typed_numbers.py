"""Python numbers with a dtype: what transformations give for a number that a function returns as it
was given. And the zeros of dtype float0 that they give for integers.

For `api.flat`, the derivatives' public functions and, under JAX's names, for libraries. What would
break it: arithmetic that keeps the dtype; results are plain numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.avals import ShapedArray


class _Typed:
    """A Python number with a dtype, as `TypedInt(3, dtype)` makes it."""

    dtype: np.dtype
    weak_type = True

    def __new__(cls, value: Any, dtype: Any) -> Any:
        made = super().__new__(cls, value)  # type: ignore[call-arg]
        made.dtype = np.dtype(dtype)
        return made

    def __init__(self, value: Any, dtype: Any) -> None:
        """Nothing is left to do."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_plain(self)!r}, dtype={self.dtype.name})"

    @property
    def aval(self) -> ShapedArray:
        """The type of the Array that is made of it."""
        return ShapedArray((), self.dtype, True)

    def __getnewargs__(self) -> tuple:
        return _plain(self), self.dtype


class TypedInt(_Typed, int):
    """A Python integer with a dtype."""


class TypedFloat(_Typed, float):
    """A Python float with a dtype."""

    def __str__(self) -> str:
        return str(_plain(self))


class TypedComplex(_Typed, complex):
    """A Python complex number with a dtype."""


_KINDS = {int: TypedInt, float: TypedFloat, complex: TypedComplex}


def _plain(x: Any) -> Any:
    for kind in _KINDS:
        if isinstance(x, kind):
            return kind(x)
    raise TypeError(f"{type(x).__name__} is no kind of number.")


def typed(x: Any, dtype: Any) -> Any:
    """A Python number with the dtype; booleans and what has one already as they are."""
    made = _KINDS.get(type(x))
    return x if made is None else made(x, dtype)


class TypedNdArray(np.ndarray):
    """A NumPy array that transformations give, or that was given to them. What NumPy computes of
    it is a plain array."""

    weak_type = False

    @property
    def aval(self) -> ShapedArray:
        """The type of the Array that is made of it."""
        return ShapedArray(self.shape, self.dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(np.ndarray)
        return plain[()] if plain.ndim == 0 else plain

    def __repr__(self) -> str:
        start = f"{type(self).__name__}("
        values = np.array2string(self.view(np.ndarray), separator=", ", prefix=start)
        return f"{start}{values}, dtype={self.dtype.name})"


def no_tangents(shape: tuple[int, ...]) -> np.ndarray:
    """The tangents, or cotangents, of integers: an array of dtype float0."""
    return np.zeros(shape, dtypes.float0).view(TypedNdArray)
