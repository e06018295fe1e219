"""Locks that a forked process finds free, whichever thread of its parent held them.

Python's own locks of modules are among them: a child of a process in which another thread is
importing would find the module half made and its lock held for ever, so a fork waits for imports of
this package and of what it is made with. (Others' may never end: a program may run in one.) What
begins between the end of that wait and the fork itself is imported anew in the child.

For every layer: `lock()` and `reentrant()` in place of threading's for what lasts as long as the
process, `of_thread()` for what does not; and `once`, a property that is computed when it is first
read, without a lock (that of `functools.cached_property` belongs to the class in Python 3.11, and
stays held in a child). What would break it: a lock that guards what must not be seen half done by a
child.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from importlib import _bootstrap  # type: ignore[attr-defined]
from typing import Any

_locks: list[Any] = []
_of_threads: weakref.WeakSet = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock for the life of the process."""
    made = threading.Lock()
    _locks.append(made)
    return made


def reentrant() -> Any:
    """A lock for the life of the process that its thread may take again."""
    made = threading.RLock()
    _locks.append(made)
    return made


def of_thread() -> Any:
    """A lock for the life of a thread, or of what belongs to it, that its holder may take again."""
    made = threading.RLock()
    _of_threads.add(made)
    return made


# Packages whose modules the compiler imports when it needs them.
_PACKAGES = {"numjet", "numpy", "scipy", "llvmlite", "ml_dtypes", *sys.stdlib_module_names}


def _imported_elsewhere() -> list[str]:
    """The modules of these packages that other threads are importing."""
    me, found = threading.get_ident(), []
    for name, reference in list(getattr(_bootstrap, "_module_locks", {}).items()):
        held = reference()
        if getattr(held, "owner", None) not in (None, me) and name.split(".")[0] in _PACKAGES:
            found.append(name)
    return found


def _wait_for_imports() -> None:
    waited: set[str] = set()  # once each: who waits for an import of ours would never end
    while names := set(_imported_elsewhere()) - waited:
        for name in names:
            _bootstrap._lock_unlock_module(name)  # type: ignore[attr-defined]
        waited |= names


def _after_fork() -> None:
    for held in (*_locks, *_of_threads):
        held._at_fork_reinit()
    for name in _imported_elsewhere():
        sys.modules.pop(name, None)
        _bootstrap._module_locks.pop(name, None)  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_after_fork)


class once:
    """A property whose value replaces it in the instance; two threads may both compute it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__
        self.name = function.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))
