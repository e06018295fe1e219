"""Numbers that stand for something outside of Python: addresses, handles of other libraries.

For every layer. The garbage collector runs the finalizers of all objects of a cycle before it
clears any of them, so that one of these may still need a handle that was finalized before it (an
array of an object with a `__del__` of its own; a compiled function). A handle that the collector
finalizes while somebody refers to it is therefore kept, and freed when the collection has ended and
nobody does. What would break it: a handle that refers to other objects.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

# Other interpreters than CPython count no references, and run finalizers last.
_count: Callable[[object], int] = getattr(sys, "getrefcount", lambda _: 0)


def _probed() -> tuple[int, int]:
    """The count that a finalizer sees of an object to which nobody refers, and that of one in a
    list which `_sweep` looks at."""
    seen: list[int] = []

    def __del__(self, count=_count):  # type: ignore[no-untyped-def]
        seen.append(count(self))

    type("Probe", (int,), {"__slots__": (), "__del__": __del__})(1)
    held = [object()]
    return seen[0], [_count(x) for x in held][0]


_ALONE, _LISTED = _probed()
# Handles that the collector finalized, each with what frees it.
_kept: list[tuple[list[int], Callable[[int], None]]] = []


def _keep(handle: int, free: Callable[[int], None]) -> None:
    """Free a handle when a collection has ended and nobody refers to it."""
    _kept.append(([handle], free))
    if _sweep not in gc.callbacks:
        gc.callbacks.append(_sweep)


def _sweep(phase: str, _: object) -> None:
    """Free the kept handles that nobody refers to."""
    if phase != "stop":
        return
    for entry in _kept[:]:
        held, free = entry
        if [_count(x) for x in held][0] <= _LISTED:
            _kept.remove(entry)
            free(held[0])
    if not _kept:
        gc.callbacks.remove(_sweep)


def handles(free: Callable[[int], None]) -> Callable[[int], int]:
    """What makes handles of integers, for each of which `free` is called when nobody has it any
    more."""

    # The defaults keep the names alive during interpreter shutdown.
    def __del__(self, free=free, count=_count, alone=_ALONE, keep=_keep):  # type: ignore[no-untyped-def]
        if count(self) > alone:
            keep(self, free)
        else:
            free(self)

    return type("Handle", (int,), {"__slots__": (), "__del__": __del__})
