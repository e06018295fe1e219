"""Work done on other threads while the compiler writes on: LLVM's, which needs no interpreter.

`Jobs` is for `backend`: `start` hands a piece of work over at once, `finish` helps with what is
left and returns the results. What would break it: work that waits for other work of the same Jobs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from numjet.cpu import host


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
