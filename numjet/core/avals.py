"""Abstract values: what is known of an array before it is computed.

Avals are interned: two are equal exactly when they are the same object, so dispatch compares
identities. Never build one by other means than calling the class.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from typing import Any

import numpy as np

from numjet.core import dtypes, hooks
from numjet.core.memo import Memo


class AbstractValue:
    """What is known of a value before it is computed."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    `weak_type` marks values that came from Python scalars: their dtype gives way in promotion.
    `narrow`: computed with in a wider dtype (`core.narrow`). Where an array lies is no part of its
    aval: the other arguments are understood and left out.
    """

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "narrow", "_tangent", "__weakref__")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    narrow: bool
    _tangent: Any
    _known: dict[tuple, ShapedArray] = Memo("avals", 8192)

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False, **_: Any
    ) -> ShapedArray:
        try:
            found = _recall((shape, dtype, weak_type))
        except TypeError:  # a list
            found = None
        return _interned(shape, dtype, weak_type) if found is None else found

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
        """How many bytes the elements have."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """How many bytes an element has."""
        return self.dtype.itemsize

    @property
    def sharding(self) -> Any:
        """Types say nothing of devices: over a mesh without axes, not split."""
        return hooks.aval_sharding(self.ndim)

    def str_short(self, short_dtypes: bool = False, *_: Any, **__: Any) -> str:
        """`float32[2,3]`, with short dtypes `f32[2,3]`."""
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.long_name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


_recall = ShapedArray._known.get  # bound once: a memo's method takes as long to find as to call
# All avals that anybody has: what was forgotten as seldom used is found here as long as it lives.
_alive: dict[tuple, weakref.KeyedRef] = {}
_making = threading.RLock()  # reentrant, since finalizers may run anywhere


def _interned(shape: Any, dtype: Any, weak_type: Any) -> ShapedArray:
    shape = tuple([int(n) for n in shape])
    if not isinstance(dtype, np.dtype | dtypes.KeyDType):
        dtype = np.dtype(dtype)
    key = (shape, dtype, bool(weak_type))
    with _making:
        ref = _alive.get(key)
        found = None if ref is None else ref()
        if found is None:
            made: Any = object.__new__(ShapedArray)
            made.shape, made.dtype, made.weak_type = key
            made.ndim, made.size = len(shape), math.prod(shape)
            made.narrow = dtype in dtypes.NARROW
            made._tangent = None
            new = weakref.KeyedRef(made, _died, key)
            ref = _alive.get(key)  # again: a finalizer may have made it meanwhile
            found = None if ref is None else ref()
            if found is None:
                _alive[key], found = new, made
    ShapedArray._known[key] = found
    return found


def _died(ref: weakref.KeyedRef) -> None:
    with _making:
        if _alive.get(ref.key) is ref:
            del _alive[ref.key]


def _after_fork() -> None:
    global _making
    _making = threading.RLock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
