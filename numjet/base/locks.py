"""Locks that a forked process finds free, whichever thread of its parent held them.

For every layer: `lock()` and `reentrant()` in place of threading's for what lasts as long as the
process; and `once`, a property that is computed when it is first read, without a lock (that of
`functools.cached_property` belongs to the class in Python 3.11, and stays held in a child). What
would break it: a lock that guards what must not be seen half done by a child.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

_locks: list[Any] = []


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


def _after_fork() -> None:
    for held in _locks:
        held._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class once:
    """A property whose value replaces it in the instance; two threads may both compute it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__
        self.name = function.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))
