"""Whether objects lie in memory as `objects` declares them, found out by trying each field.

For code that reads objects natively: prebuilt calls of compiled functions, operators on small
arrays, recording. What would break it: a field that is declared and not tried (`layout` refuses
it), and an entry of NumPy's table that is used without being tried here.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from numjet.base.slots import slot
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.remote import Held, RemoteArray
from numjet.core.trace import EVAL, _current
from numjet.cpu.builder.records import Pointer, Record, place_fields, words
from numjet.cpu.host import python_function
from numjet.native import objects
from numjet.native.objects import Bytes, Dict, Float, List, NdArray, Object, Sized, Tuple
from numjet.transforms.eager import LinearizeTrace

# Places in the table of functions that NumPy exports to extension modules.
NEW_ARRAY, SET_BASE = 94, 282  # PyArray_NewFromDescr, PyArray_SetBaseObject
_Table = ctypes.c_size_t * 300  # a class, made once: each that is made is a cycle of references


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
    descriptions are read once more when the last garbage collection frees them."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


def slots_of(record: type[Record], cls: Any, exact: bool = True) -> bool:
    """Find the declared slots of a class; False when one is not found. exact: objects are of no
    class derived from it."""
    places = {name: slot(cls, name) for name in record.__annotations__}
    if None in places.values():
        return False
    place_fields(record, {name: place for name, place in places.items() if place is not None})
    record.python = cls if exact else None
    return True


@functools.cache
def layout() -> str:
    """Why native code cannot read objects here; "" when it can: each declared field was tried."""
    if sys.implementation.name != "cpython":
        return "the interpreter is not CPython"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "addresses do not have 64 bits"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "the interpreter runs without its global lock"
    tried: dict[type[Record], set[str]] = {}
    for record, name, found, wanted in _trials():
        if (found._at if isinstance(found, Pointer) else found) != wanted:
            return f"{record.__name__}.{name} does not lie where it is declared"
        tried.setdefault(record, set()).add(name)
    for record, names in tried.items():
        missing = set(record.__annotations__) - names
        if missing:
            return f"{record.__name__}.{missing.pop()} is declared and was not tried"
    for record, cls in ((objects.ShapedArray, ShapedArray), (objects.ArrayImpl, ArrayImpl),
                        (objects.RemoteArray, RemoteArray), (objects.Held, Held)):
        if not slots_of(record, cls, cls is not Held):
            return f"the slots of {record.__name__} were not found"
    return _trial_of_table()


def _trials() -> Iterator[tuple[type[Record], str, Any, Any]]:
    """Each declared field of a known object: what is found there, and what it must be."""
    a, b = object(), object()
    x = Object(id(a))
    before, again = x.refcount, a
    yield Object, "refcount", x.refcount, before + 1
    yield Object, "type", x.type, id(type(again))
    pair, row, table, number, text = (a, b), [a, b], {a: b, b: a}, 1.5, b"text"
    yield Sized, "size", Sized(id(pair)).size, 2
    yield Sized, "size", List(id(row)).size, 2
    for k, item in enumerate(pair):
        yield Tuple, "items", Tuple(id(pair)).items[k], id(item)
        yield List, "items", List(id(row)).items[k], id(item)
    yield Bytes, "text", Bytes(id(text)).text[1], text[1]
    yield Dict, "used", Dict(id(table)).used, 2
    yield Float, "value", Float(id(number)).value, number
    grid = np.zeros((3, 5), np.float32)
    for array in (grid, grid.T):
        seen = NdArray(id(array))
        yield NdArray, "data", seen.data, array.__array_interface__["data"][0]
        yield NdArray, "rank", seen.rank, 2
        for k in range(2):
            yield NdArray, "dims", seen.dims[k], array.shape[k]
            yield NdArray, "strides", seen.strides[k], array.strides[k]
        yield NdArray, "base", seen.base, 0 if array is grid else id(grid)
        yield NdArray, "dtype", seen.dtype, id(array.dtype)
        dense = objects.DENSE if array is grid else objects.DENSE & ~1
        yield NdArray, "flags", seen.flags & objects.DENSE, dense
        yield NdArray, "flags", seen.flags & objects.WRITEABLE, objects.WRITEABLE
    grid.flags.writeable = False
    yield NdArray, "flags", NdArray(id(grid)).flags & objects.WRITEABLE, 0


def _trial_of_table() -> str:
    """Why the entries of NumPy's table that native code calls are not what they should be."""
    try:
        api = array_api()
    except (AttributeError, ImportError):
        return "NumPy exports no table of its functions"
    pointer, number = ctypes.c_void_p, ctypes.c_int
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, ctypes.py_object, number, pointer, pointer, pointer, number,
        pointer,
    )(api[NEW_ARRAY])  # fmt: skip
    dtype = np.dtype(np.float32)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # taken over
    dims = (ctypes.c_ssize_t * 2)(2, 3)
    made = new(id(np.ndarray), dtype, 2, dims, None, None, 0, None)
    if type(made) is not np.ndarray or made.shape != (2, 3) or made.dtype is not dtype:
        return "NumPy's table does not have PyArray_NewFromDescr where it was"
    holder = np.zeros(1)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))  # taken over
    set_base = ctypes.PYFUNCTYPE(number, ctypes.py_object, ctypes.py_object)(api[SET_BASE])
    if set_base(made, holder) != 0 or made.base is not holder:
        return "NumPy's table does not have PyArray_SetBaseObject where it was"
    return ""


def array_api() -> Any:
    """NumPy's table of functions, as addresses."""
    from numpy._core._multiarray_umath import _ARRAY_API

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Table.from_address(pointer(_ARRAY_API, None))


def context_of(record: type[Record], known: dict[str, int]) -> np.ndarray:
    """A context's words: what every one begins with, what is known by name, and the interpreter's
    functions (`Py...`).

    Raises AttributeError where the interpreter does not have one of them.
    """
    known = {
        "trace": id(_current), "eval": id(EVAL), "linearize_trace": id(LinearizeTrace), **known,
    }  # fmt: skip
    return np.array(
        [known[name] if name in known else python_function(name) for name in words(record)],
        np.uint64,
    )
