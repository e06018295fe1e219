"""`undisturbed`: a stretch of work among which Python collects no garbage.

For importing, tracing and compiling, which make many objects that are there to stay or go at once.
What would break it: a setting of the whole process's that is not given back, or taken from whoever
set it meanwhile.
"""

from __future__ import annotations

import gc
import os
import sys
import threading

# Machine code is made by calls that last milliseconds and hold no interpreter; their threads ask
# for it in between. At Python's own 5 ms they would wait longer than they work.
_SWITCH_SECONDS = 1e-4
# So many young objects start a garbage collection: never, and by nobody else's number.
_NEVER = (1 << 30) + 7919
# So many objects, or what one compilation made, may go to the oldest generation uncollected between
# two full collections: a few dozen programs, some ten megabytes if all were garbage.
_UNCOLLECTED = 50_000
# So many young objects are collected although a thread is inside: of many that compile by turns
# there may always be one.
_MOST_YOUNG = 100_000
# A collection comes soon when a quarter of the objects are there that it waits for.
_SOON = 4


class _Undisturbed:
    """While any thread is inside, Python collects no garbage and hands over quickly.

    A compilation makes a hundred thousand objects and drops them at its end: garbage
    collections among them are a tenth of its time. What is left is there to stay.

    Both settings are the whole process's. Whether Python collects garbage at all (`gc.enable`) is
    never touched, only how many objects it waits for; and what somebody else sets meanwhile stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._threads: dict[int, int] = {}  # how often each is inside
        self._threshold, self._interval = gc.get_threshold()[0], 0.005  # before
        self._uncollected = 0
        self._full_collections = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._threshold = gc.get_threshold()[0]
                gc.set_threshold(_NEVER)
                self._interval = before = sys.getswitchinterval()
                if before > _SWITCH_SECONDS:
                    sys.setswitchinterval(_SWITCH_SECONDS)
            self._inside += 1
            thread = threading.get_ident()
            self._threads[thread] = self._threads.get(thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            thread = threading.get_ident()
            self._threads[thread] -= 1
            if not self._threads[thread]:
                del self._threads[thread]
            if not self._inside:
                self._restore()
                return
            untouched = gc.isenabled() and gc.get_threshold()[0] == _NEVER
        if untouched and gc.get_count()[0] > _MOST_YOUNG:
            gc.collect()  # without the lock: finalizers may compile

    def busy(self) -> bool:
        """Whether a thread is inside."""
        return self._inside > 0

    def _restore(self) -> None:
        if gc.get_threshold()[0] == _NEVER:
            if gc.isenabled():
                self._settle()
            gc.set_threshold(self._threshold)
        ours = abs(sys.getswitchinterval() - _SWITCH_SECONDS) < 1e-9  # it counts microseconds
        if ours and self._interval > _SWITCH_SECONDS:
            sys.setswitchinterval(self._interval)

    def forked(self) -> None:
        """In a child process: the other threads, which may have been inside, are not here."""
        self._lock = threading.Lock()
        thread = threading.get_ident()
        was, self._inside = self._inside, self._threads.get(thread, 0)
        self._threads = {thread: self._inside} if self._inside else {}
        if was and not self._inside:
            self._restore()

    def lasting(self) -> None:
        """What was made so far is there to stay: modules, which are not what the bound is for."""
        self._uncollected = 0

    def _settle(self) -> None:
        """Hand all young objects to the oldest generation where a collection of them is near.

        It would find nothing and takes a millisecond of the four in which a cached program is
        traced and loaded, since what importing left is young as well; 0.15 ms of two where there
        are few, when it falls into the next trace.
        """
        young = gc.get_count()[0]
        if not 0 < self._threshold < _SOON * young or gc.get_freeze_count():
            return  # nothing to do; or the user keeps objects apart, which `unfreeze` would end
        full = gc.get_stats()[-1]["collections"]
        if full != self._full_collections:
            self._full_collections, self._uncollected = full, 0
        if self._uncollected < _UNCOLLECTED:
            self._uncollected += young
            gc.freeze()
            gc.unfreeze()


undisturbed = _Undisturbed()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=undisturbed.forked)
