"""Slots of objects: where they lie, and names under which they can only be read.

For: classes whose slots native code reads, and that code's tests of the interpreter's layout. What
would break it: another layout of the description of a slot (PyMemberDef) than CPython has had since
its beginnings; where an object is not laid out in words, Python's own means are taken.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from typing import Any

_OBJECT, _READ_ONLY = 16, 1  # Py_T_OBJECT_EX: AttributeError where it is empty; Py_READONLY


class _Member(ctypes.Structure):
    """The interpreter's description of a slot."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    ]  # fmt: skip


def slot(cls: type, name: str) -> int | None:
    """The offset of a slot in instances of `cls`, found by planting an object there."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    planted = object()
    probe: Any = object.__new__(cls)
    setattr(probe, name, planted)
    words = (ctypes.c_size_t * (cls.__basicsize__ // 8)).from_address(id(probe))
    places = [8 * i for i, word in enumerate(words) if word == id(planted)]
    return places[0] if len(places) == 1 else None


def read_only(cls: type, name: str, of: str) -> Any:
    """What reads the slot `of` of `cls` under the name `name`, and refuses to write it.

    On CPython it is what reads slots themselves: a property takes three times as long.
    """
    offset = slot(cls, of)
    if offset is None:
        return property(operator.attrgetter(of))
    member = _Member(name.encode(), _OBJECT, offset, _READ_ONLY, None)
    # It lives as long as what is made with it, which is for ever.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(member))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMember", ctypes.pythonapi)
    )
    return make(cls, ctypes.addressof(member))
