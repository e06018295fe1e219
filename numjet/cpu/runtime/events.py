"""Queues: native calls that run behind the caller's back, in order, one thread a queue.

For: `api.execution.dispatch`, which hands over calls that take longer than a thread's wake-up. What
would break it: a call whose memory is not kept by what is passed as `keep`, and waiting for a call
from a call of the same queue.

The queue's thread is native and a call's end is a word in memory, so a result is seen at once
even while other Python threads run bytecode (a Python worker's results came up to 10 ms late).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from numjet.base import locks
from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.runtime import build

# As `code.events` declares them.
_JOB_BYTES = 56
_STATUS, _DONE = 48, 52
_QUEUE_BYTES = 64

_starting = locks.lock()


@functools.cache
def _native_once() -> tuple[Any, Any] | None:
    """(submit, wait) for ctypes, or None on a system without threads."""
    if not host.has_threads():
        return None
    for name, address in host.thread_symbols().items():
        link.define_symbol(name, address)
    library = build.library("events", quick=True)
    pointer = ctypes.c_void_p
    submit = ctypes.CFUNCTYPE(None, pointer, pointer)(library.address("queue_submit"))
    wait = ctypes.CFUNCTYPE(None, pointer)(library.address("event_wait"))
    return submit, wait


def _native() -> tuple[Any, Any] | None:
    with _starting:
        return _native_once()


class Pending:
    """A call that was handed over. `done()` costs a memory read."""

    __slots__ = ("_done", "_job", "_keep", "_pid")

    def __init__(self, job: Any, keep: Any) -> None:
        self._job = job
        self._keep = keep
        self._done = ctypes.c_int32.from_buffer(job, _DONE)
        self._pid = os.getpid()

    def done(self) -> bool:
        """Whether the call has ended."""
        return self._done.value != 0

    def wait(self) -> int:
        """Block until the call has ended and return its status; Ctrl-C interrupts the wait."""
        if not self._done.value:
            if self._pid != os.getpid():
                raise RuntimeError(
                    "this value was being computed when the process was forked, by a thread that "
                    "the child does not have; call block_until_ready before forking"
                )
            wait = _native()[1]  # type: ignore[index]  # only threads leave calls undone
            address = ctypes.addressof(self._done)
            while not self._done.value:
                wait(address)
        self._keep = None
        return ctypes.c_int32.from_buffer(self._job, _STATUS).value


class Queue:
    """Runs what it is given one after the other on a native thread of its own.

    The thread starts with the first call and lives as long as the process.
    """

    def __init__(self) -> None:
        self._state = 0
        self._lock = threading.Lock()
        self._running: deque[Pending] = deque()  # keeps the memory of calls nobody waits for
        self._pid = 0

    def submit(self, function: int, arguments: Sequence[int | None], keep: Any = None) -> Pending:
        """Call native `int function(void *, void *, void *, void *)` at that address.

        arguments: at most four addresses (None is NULL). keep: whatever owns the memory they
        point to; it is held until the call has ended.
        """
        job = (ctypes.c_char * _JOB_BYTES)()
        fields = (ctypes.c_void_p * 6).from_buffer(job)
        fields[1] = function
        fields[2 : 2 + len(arguments)] = list(arguments)
        pending = Pending(job, keep)
        native = _native()
        address = ctypes.addressof(job)
        if native is None:
            call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(function)
            status = ctypes.c_int32.from_buffer(job, _STATUS)
            status.value = call(*fields[2:6])
            pending._done.value = 1
            return pending
        with self._lock:
            if self._pid != os.getpid():  # first call, or first in a forked child
                # Never freed: the thread reads it as long as the process lives.
                self._state = _leaked(_QUEUE_BYTES)
                self._pid = os.getpid()
                self._running.clear()
            running = self._running
            while running and running[0].done():
                running.popleft()
            running.append(pending)
            native[0](self._state, address)
        return pending

    def drain(self) -> None:
        """Wait until everything submitted has ended."""
        native = _native() if self._pid == os.getpid() else None
        for pending in list(self._running):
            while native is not None and not pending.done():
                native[1](ctypes.addressof(pending._done))


_immortal: list[Any] = []
_queues: dict[int, Queue] = {}


def _leaked(nbytes: int) -> int:
    state = (ctypes.c_char * nbytes)()
    _immortal.append(state)
    return ctypes.addressof(state)


def queue(device: int = 0) -> Queue:
    """The queue of CPU device number `device`."""
    try:
        return _queues[device]
    except KeyError:
        return _queues.setdefault(device, Queue())


def _after_fork() -> None:
    for queue in list(_queues.values()):
        queue._lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def drain_all() -> None:
    """Let running calls end, as before the interpreter goes: they may call back into Python."""
    for running in list(_queues.values()):
        running.drain()
