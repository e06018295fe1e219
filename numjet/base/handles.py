"""Numbers that stand for something outside of Python: addresses, handles of other libraries.

For every layer. What has a `__del__` and is searched by the garbage collector may be finalized
before other objects of its cycle, whose finalizers then find it destroyed (an array of an object
with a `__del__` of its own; a compiled function). A handle is an integer that the collector does
not search: it lives as long as anybody refers to it. What would break it: a handle that refers to
other objects.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

# Other interpreters than CPython have no such list of what is searched.
_untrack: Callable[[int], None] = (
    ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyObject_GC_UnTrack", ctypes.pythonapi))
    if hasattr(getattr(ctypes, "pythonapi", None), "PyObject_GC_UnTrack")
    else lambda _: None
)


def handles(free: Callable[[int], None]) -> Callable[[int], int]:
    """A function that makes handles of integers, for each of which `free` is called when nobody has
    it any more."""

    # The default keeps the name alive during interpreter shutdown.
    def __del__(self, free=free):  # type: ignore[no-untyped-def]
        free(self)

    kind = type("Handle", (int,), {"__slots__": (), "__del__": __del__})
    untrack = _untrack

    def handle(number: int) -> int:
        made: int = kind(number)
        untrack(made)
        return made

    return handle
