"""Queues: native calls that run behind the caller's back, in order, one thread a queue.

For: `api.dispatch`, which hands over calls that take longer than a thread's wake-up. What would
break it: a call whose memory is not kept by what is passed as `keep`, and waiting for a call
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
from collections.abc import Callable, Sequence
from typing import Any

from numjet.cpu import host
from numjet.cpu.link import link

# Job: next, function, four arguments, status, done. Queue: first, last, lock, wakes, handle,
# started, the core its thread is kept off.
_QUEUE = """
%Job = type { ptr, ptr, [4 x ptr], i32, i32 }
%Queue = type { ptr, ptr, i32, i32, i64, i32, i32 }

define internal void @lock(ptr %queue) {
entry:
  %p = getelementptr %Queue, ptr %queue, i64 0, i32 2
  br label %try
try:
  %pair = cmpxchg ptr %p, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %out, label %again
again:
  call void @os_yield()
  br label %try
out:
  ret void
}

define internal void @unlock(ptr %queue) {
  %p = getelementptr %Queue, ptr %queue, i64 0, i32 2
  store atomic i32 0, ptr %p release, align 4
  ret void
}

define internal void @execute(ptr %job) {
  %fn_p = getelementptr %Job, ptr %job, i64 0, i32 1
  %fn = load ptr, ptr %fn_p
  %a_p = getelementptr %Job, ptr %job, i64 0, i32 2, i64 0
  %b_p = getelementptr %Job, ptr %job, i64 0, i32 2, i64 1
  %c_p = getelementptr %Job, ptr %job, i64 0, i32 2, i64 2
  %d_p = getelementptr %Job, ptr %job, i64 0, i32 2, i64 3
  %a = load ptr, ptr %a_p
  %b = load ptr, ptr %b_p
  %c = load ptr, ptr %c_p
  %d = load ptr, ptr %d_p
  %status = call i32 %fn(ptr %a, ptr %b, ptr %c, ptr %d)
  %status_p = getelementptr %Job, ptr %job, i64 0, i32 3
  store i32 %status, ptr %status_p
  %done = getelementptr %Job, ptr %job, i64 0, i32 4
  store atomic i32 1, ptr %done seq_cst, align 4
  call void @os_wake(ptr %done, i32 2147483647)
  ret void
}

define internal ptr @serve(ptr %queue) {
entry:
  %wakes = getelementptr %Queue, ptr %queue, i64 0, i32 3
  %last = getelementptr %Queue, ptr %queue, i64 0, i32 1
  br label %look
look:
  %seen = load atomic i32, ptr %wakes seq_cst, align 4
  call void @lock(ptr %queue)
  %job = load ptr, ptr %queue
  %none = icmp eq ptr %job, null
  br i1 %none, label %sleep, label %take
take:
  %next = load ptr, ptr %job
  store ptr %next, ptr %queue
  %empty = icmp eq ptr %next, null
  br i1 %empty, label %clear, label %run
clear:
  store ptr null, ptr %last
  br label %run
run:
  call void @unlock(ptr %queue)
  call void @execute(ptr %job)
  br label %look
sleep:
  call void @unlock(ptr %queue)
  call void @os_sleep(ptr %wakes, i32 %seen)
  br label %look
}

define void @queue_submit(ptr %queue, ptr %job) {
entry:
  %last_p = getelementptr %Queue, ptr %queue, i64 0, i32 1
  %wakes = getelementptr %Queue, ptr %queue, i64 0, i32 3
  %handle = getelementptr %Queue, ptr %queue, i64 0, i32 4
  %started_p = getelementptr %Queue, ptr %queue, i64 0, i32 5
  %core_p = getelementptr %Queue, ptr %queue, i64 0, i32 6
  call void @lock(ptr %queue)
  %started = load i32, ptr %started_p
  %runs = icmp ne i32 %started, 0
  br i1 %runs, label %append, label %start
start:
  %id = ptrtoint ptr %queue to i64
  %failed = call i32 @os_thread(ptr @serve, i64 %id, ptr %handle)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %note, label %inline
inline: ; no thread to be had
  call void @unlock(ptr %queue)
  call void @execute(ptr %job)
  ret void
note:
  store i32 1, ptr %started_p
  store i32 -1, ptr %core_p
  br label %append
append:
  %last = load ptr, ptr %last_p
  store ptr %job, ptr %last_p
  %first = icmp eq ptr %last, null
  %link = select i1 %first, ptr %queue, ptr %last
  store ptr %job, ptr %link
  %core = call i32 @os_core()
  %before = load i32, ptr %core_p
  %same = icmp eq i32 %core, %before
  %unknown = icmp slt i32 %core, 0
  %stay = or i1 %same, %unknown
  br i1 %stay, label %wake, label %place
place:
  store i32 %core, ptr %core_p
  call void @os_keep_off(i32 %core, ptr %handle, i32 1)
  br label %wake
wake:
  call void @unlock(ptr %queue)
  %old = atomicrmw add ptr %wakes, i32 1 seq_cst, align 4
  call void @os_wake(ptr %wakes, i32 1)
  ret void
}

; Sleep until the word is not 0, or a signal comes.
define void @event_wait(ptr %done) {
entry:
  %now = load atomic i32, ptr %done seq_cst, align 4
  %over = icmp ne i32 %now, 0
  br i1 %over, label %out, label %sleep
sleep:
  call void @os_sleep(ptr %done, i32 0)
  br label %out
out:
  ret void
}
"""

_JOB_BYTES = 56
_STATUS, _DONE = 48, 52
_QUEUE_BYTES = 64

_starting = threading.Lock()


@functools.cache
def _native_once() -> tuple[Any, Any] | None:
    """(submit, wait) for ctypes, or None on a system without threads."""
    system = host.thread_ir(link.target().triple)
    if system is None:
        return None
    for name, address in host.thread_symbols().items():
        link.define_symbol(name, address)
    library = link.library(system + _QUEUE, quick=True)
    library.leak()  # a queue's thread may be inside when the interpreter ends
    pointer = ctypes.c_void_p
    submit = ctypes.CFUNCTYPE(None, pointer, pointer)(library.address("queue_submit"))
    wait = ctypes.CFUNCTYPE(None, pointer)(library.address("event_wait"))
    return submit, wait


def _native() -> tuple[Any, Any] | None:
    with _starting:
        return _native_once()


class Pending:
    """A call that was handed over. `done()` costs a memory read."""

    __slots__ = ("_done", "_failures", "_job", "_keep", "_pid")

    def __init__(self, job: Any, keep: Any, failures: Sequence[BaseException] = ()) -> None:
        self._job = job
        self._keep = keep
        self._done = ctypes.c_int32.from_buffer(job, _DONE)
        self._pid = os.getpid()
        self._failures = failures

    def done(self) -> bool:
        """Whether the call has ended."""
        return self._done.value != 0

    def wait(self) -> int:
        """Block until the call has ended and return its status; Ctrl-C interrupts the wait.

        An exception of a submitted Python function is raised here.
        """
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
        if self._failures:
            raise self._failures[0]
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
        return self._submit(function, arguments, keep, ())

    def _submit(
        self, function: int, arguments: Sequence[int | None], keep: Any,
        failures: Sequence[BaseException],
    ) -> Pending:
        job = (ctypes.c_char * _JOB_BYTES)()
        fields = (ctypes.c_void_p * 6).from_buffer(job)
        fields[1] = function
        fields[2 : 2 + len(arguments)] = list(arguments)
        pending = Pending(job, keep, failures)
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

    def submit_python(self, function: Callable[[], object]) -> Pending:
        """Call a Python function on the queue's thread (it takes the GIL while it runs)."""
        failures: list[BaseException] = []

        def run(*_ignored: Any) -> int:
            try:
                function()
            except BaseException as error:  # raised by Pending.wait
                failures.append(error)
                return 1
            return 0

        entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(run)
        address = ctypes.cast(entry, ctypes.c_void_p).value or 0
        return self._submit(address, (), entry, failures)

    def drain(self) -> None:
        """Wait until everything submitted has ended; failures stay with their `Pending`s."""
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
def _drain_all() -> None:
    """Let running calls end before the interpreter goes: they may call back into Python."""
    for running in list(_queues.values()):
        running.drain()
