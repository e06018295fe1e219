"""Work that waits until nobody is in a hurry: entries of the cache, code that is nice to have.

`later(seconds, work)`. One thread does all of it, since starting one takes 70 us of the program
that is compiled meanwhile, and the interpreter from it. It ends when nothing is left. A forked
process begins without work; the end of a process waits for none. What would break it: work that
raises, or that waits for other work of this kind.
"""

from __future__ import annotations

import _thread
import itertools
import os
from collections.abc import Callable
from time import monotonic


class _Later:
    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Know of no work."""
        # Not those of `threading`, whose events run as Python.
        self._lock, self._bell = _thread.allocate_lock(), _thread.allocate_lock()
        self._todo: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._serving = False
        self._until = 0.0  # when the thread wakes, if it sleeps

    def __call__(self, seconds: float, work: Callable[[], object]) -> None:
        """Have `work()` done after so many seconds, if the process lasts as long. Raises
        RuntimeError where there are no more threads."""
        when = monotonic() + seconds
        with self._lock:
            self._todo.append((when, next(self._numbers), work))
            if not self._serving:
                try:
                    # Not `threading.Thread`, whose start waits until the thread runs.
                    _thread.start_new_thread(self._serve, ())
                except RuntimeError:
                    self._todo.pop()
                    raise
                self._serving = True
            elif when < self._until:
                self._until = 0.0
                self._bell.release()

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._todo:
                    self._serving = False
                    return
                first = min(self._todo)
                wait = first[0] - monotonic()
                if wait <= 0:
                    self._todo.remove(first)
                else:
                    self._until = first[0]
                    self._bell.acquire(blocking=False)  # so that it can be rung
            if wait <= 0:
                first[2]()
            else:
                self._bell.acquire(timeout=wait)


later = _Later()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=later.begin)
