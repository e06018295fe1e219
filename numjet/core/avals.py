"""Abstract values: what is known of an array before it is computed.

Avals are interned: two are equal exactly when they are the same object, so dispatch compares
identities. Never build one by other means than calling the class.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.core import dtypes


class AbstractValue:
    """What is known of a value before it is computed."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    `weak_type` marks values that came from Python scalars: their dtype gives way in promotion.
    Where an array lies is no part of its aval: the other arguments are understood and left out.
    """

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "_tangent")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    _tangent: Any
    _known: dict[tuple, ShapedArray] = {}

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False, **_: Any
    ) -> ShapedArray:
        try:
            found = cls._known.get((shape, dtype, weak_type))
        except TypeError:  # a list
            found = None
        if found is None:
            shape = tuple([int(n) for n in shape])
            if not isinstance(dtype, np.dtype | dtypes.KeyDType):
                dtype = np.dtype(dtype)
            key = (shape, dtype, weak_type)
            if key in cls._known:
                return cls._known[key]
            found = object.__new__(cls)
            found.shape, found.dtype, found.weak_type = shape, dtype, bool(weak_type)
            found.ndim, found.size = len(shape), math.prod(shape)
            found._tangent = None
            found = cls._known.setdefault(key, found)
        return found

    def update(
        self, shape: Any = None, dtype: Any = None, weak_type: Any = None, **_: Any
    ) -> ShapedArray:
        """This aval with some fields replaced."""
        return ShapedArray(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    def strong(self) -> ShapedArray:
        """This aval without weak type."""
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def tangent(self) -> ShapedArray:
        """The aval of tangents: same shape, float0 for integers and booleans."""
        if self._tangent is None:
            self._tangent = ShapedArray(
                self.shape, dtypes.tangent_dtype(self.dtype), self.weak_type
            )
        return self._tangent

    def to_tangent_aval(self) -> ShapedArray:
        """`tangent`."""
        return self.tangent()

    to_cotangent_aval = to_ct_aval = to_tangent_aval

    def strip_weak_type(self) -> ShapedArray:
        """`strong`."""
        return self.strong()

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """This aval with that weak type."""
        return ShapedArray(self.shape, self.dtype, weak_type)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def sharding(self) -> None:
        return None

    def str_short(self, *_: Any, **__: Any) -> str:
        """`f32[2,3]`."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        dtype = self.dtype if type(self.dtype) is dtypes.KeyDType else self.dtype.name
        if dtype == "void0" or self.dtype == dtypes.float0:
            dtype = "float0"
        return f"ShapedArray({dtype}[{','.join(map(str, self.shape))}]{weak})"

    __str__ = str_short

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)
