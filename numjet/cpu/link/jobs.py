"""Work done on other threads while the compiler writes on: LLVM's, which needs no interpreter.

`Jobs` is for `backend`: `start` hands a piece of work over at once, `finish` helps with what is
left and returns the results. What would break it: work that waits for other work of the same Jobs.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from numjet.cpu import host

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


class Jobs:
    """Pieces of work in the order of `start`, which as many threads do as there are cores."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._todo: deque[tuple[int, Callable[[], Any]]] = deque()
        self._results: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._closed = False
        self._failure: BaseException | None = None

    def start(self, work: Callable[[], Any]) -> None:
        """Have `work()` done, beginning now where a core is free."""
        with self._changed:
            self._todo.append((len(self._results), work))
            self._results.append(None)
            if len(self._todo) <= self._waiting:
                self._changed.notify()
            elif len(self._threads) < host.cpu_count() - 1:
                thread = threading.Thread(target=self._serve, daemon=True)
                self._threads.append(thread)
                thread.start()

    def idle(self) -> bool:
        """Whether a thread would begin at once with what is started next."""
        with self._changed:
            free = self._waiting + host.cpu_count() - 1 - len(self._threads)
            return len(self._todo) < free

    def finish(self) -> list[Any]:
        """The results, once all work is done; raises the first failure."""
        while self._step(wait=False):
            pass
        self.close()
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self._results

    def close(self) -> None:
        """Let the threads go: what has not begun is not done any more."""
        with self._changed:
            self._closed = True
            self._todo.clear()
            self._changed.notify_all()

    def _serve(self) -> None:
        while self._step(wait=True):
            pass

    def _step(self, wait: bool) -> bool:
        """Do one piece of work; False when there is none (`wait`: and will be none)."""
        with self._changed:
            while wait and not self._todo and not self._closed:
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            if not self._todo:
                return False
            number, work = self._todo.popleft()
        try:
            self._results[number] = work()
        except BaseException as failure:  # raised by `finish`, in the caller's thread
            with self._changed:
                self._failure = self._failure or failure
                self._todo.clear()
        return True
