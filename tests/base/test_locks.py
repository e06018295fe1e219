"""Locks in forked processes, and properties that are computed once."""

from __future__ import annotations

import os
import threading

from numjet.base import locks


class Holder:
    computed = 0

    @locks.once
    def value(self) -> int:
        """Counted."""
        self.computed += 1
        return 3


def test_a_property_is_computed_once() -> None:
    holder = Holder()
    assert holder.value == holder.value == 3 and holder.computed == 1
    assert Holder.value.__doc__ == "Counted."


def test_a_forked_process_finds_locks_free() -> None:
    lock, held, stop = locks.lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            stop.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        child = os.fork()
        if not child:
            os._exit(0 if lock.acquire(timeout=5) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lock.locked()
    finally:
        stop.set()
        thread.join()
        locks._locks.remove(lock)
