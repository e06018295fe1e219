"""Where the interpreter and NumPy keep things in memory, found out by trying.

For code that reads objects natively: prebuilt calls of compiled functions, and operators on small
arrays. What would break it: reading an object by an offset that was not tested here.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl

# Places in the table of functions that NumPy exports to extension modules.
NEW_ARRAY, SET_BASE = 94, 282  # PyArray_NewFromDescr, PyArray_SetBaseObject
_TABLE_SIZE = 300
_ITEMS = tuple.__basicsize__


class Method(ctypes.Structure):
    """The interpreter's description of a native function or method."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]  # fmt: skip


class Property(ctypes.Structure):
    """The interpreter's description of a native attribute."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("get", ctypes.c_void_p), ("set", ctypes.c_void_p),
        ("doc", ctypes.c_char_p), ("closure", ctypes.c_void_p),
    ]  # fmt: skip


def forever(x: Any) -> Any:
    """`x`, which will not even die when the interpreter ends: what native objects point to. Their
    descriptions are read once more when the last search for cycles frees them."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


def slot(cls: type, name: str) -> int | None:
    """The offset of a slot in instances of `cls`, found by planting an object there."""
    value = np.zeros(1)
    probe: Any = object.__new__(cls)
    setattr(probe, name, value)
    words = (ctypes.c_size_t * (cls.__basicsize__ // 8)).from_address(id(probe))
    places = [8 * i for i, word in enumerate(words) if word == id(value)]
    return places[0] if len(places) == 1 else None


def layout() -> tuple[int, int] | None:
    """Offsets of an Array's `aval` and `_value`, when objects lie as the native code reads them."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    a, b = object(), object()
    pair, row = (a, b), [a, b]

    def word(x: Any, offset: int) -> int:
        return ctypes.c_size_t.from_address(id(x) + offset).value

    items = (ctypes.c_size_t * 2).from_address(word(row, 24))
    grid = np.zeros((3, 5), np.float32)
    dims = (ctypes.c_size_t * 2).from_address(word(grid, 32))
    good = (
        word(a, 8) == id(object)
        and (word(pair, 16), word(pair, _ITEMS), word(pair, _ITEMS + 8)) == (2, id(a), id(b))
        and word(row, 16) == 2
        and list(items) == [id(a), id(b)]
        and ctypes.c_double.from_address(id(x := 1.5) + 16).value == x
        and word(grid, 16) == grid.__array_interface__["data"][0]
        and word(grid, 24) & 0xFFFFFFFF == 2
        and list(dims) == [3, 5]
        and word(grid, 56) == id(grid.dtype)
        and word(grid, 64) & 0x101 == 0x101
        and word(grid.T, 64) & 0x101 == 0x100
    )
    aval, value = slot(ArrayImpl, "aval"), slot(ArrayImpl, "_value")
    return (aval, value) if good and aval is not None and value is not None else None


def array_api() -> Any:
    """NumPy's table of functions, as addresses."""
    from numpy._core._multiarray_umath import _ARRAY_API

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return (ctypes.c_size_t * _TABLE_SIZE).from_address(pointer(_ARRAY_API, None))
