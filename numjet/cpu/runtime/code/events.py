"""Queues: a native thread each, which runs jobs in order (`runtime.events`).

Native functions, compiled with the runtime; `system` has what they ask of the platform. What would
break it: a job that waits for a later one of its own queue.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    ACQUIRE,
    NULL,
    RELAXED,
    RELEASE,
    SEQUENTIAL,
    Array,
    Int,
    Int32,
    Pointer,
    Record,
    atomic_add,
    atomic_load,
    atomic_store,
    compare_exchange,
    native,
    place,
)
from numjet.cpu.runtime.code.system import (
    os_core,
    os_keep_off,
    os_sleep,
    os_thread,
    os_wake,
    os_yield,
)

ALL = 0x7FFFFFFF


class Job(Record):
    """A call that was handed over; the words after `function` are its arguments."""

    next: Job
    function: Callable[[Pointer, Pointer, Pointer, Pointer], Int32]
    a: Pointer
    b: Pointer
    c: Pointer
    d: Pointer
    status: Int32
    done: Int32


class Queue(Record):
    """Jobs that wait, and the thread: its handle, whether it was started, and the core that it is
    kept off."""

    first: Job
    last: Job
    lock: Int32
    wakes: Int32
    handle: Int
    started: Int32
    core: Int32


@native
def take_lock(queue: Queue) -> None:
    """Have the queue for this thread alone."""
    while compare_exchange(place(queue, "lock"), 0, 1, ACQUIRE, RELAXED) != 0:
        os_yield()


@native
def give_lock(queue: Queue) -> None:
    """Let others have it."""
    atomic_store(place(queue, "lock"), 0, RELEASE)


@native
def execute(job: Job) -> None:
    """A job, and whoever waits for it is woken."""
    job.status = job.function(job.a, job.b, job.c, job.d)
    done = place(job, "done")
    atomic_store(done, 1, SEQUENTIAL)
    os_wake(done, ALL)


@native
def serve(argument: Pointer) -> Pointer:
    """The life of a queue's thread."""
    queue = Queue(argument)
    while True:
        seen = atomic_load(place(queue, "wakes"), SEQUENTIAL)
        take_lock(queue)
        job = queue.first
        if job == NULL:
            give_lock(queue)
            os_sleep(place(queue, "wakes"), seen)
            continue
        queue.first = job.next
        if job.next == NULL:
            queue.last = NULL
        give_lock(queue)
        execute(job)


@native
def queue_submit(queue: Queue, job: Job) -> None:
    """Hand a job over; it is run here when no thread is to be had."""
    take_lock(queue)
    if queue.started == 0:
        if os_thread(serve, Int(queue), place(queue, "handle")) != 0:
            give_lock(queue)
            execute(job)
            return
        queue.started = 1
        queue.core = -1
    if queue.last == NULL:
        queue.first = job
    else:
        queue.last.next = job
    queue.last = job
    here = os_core()
    if here >= 0 and here != queue.core:
        queue.core = here
        os_keep_off(here, place(queue, "handle"), 1)
    give_lock(queue)
    atomic_add(place(queue, "wakes"), 1, SEQUENTIAL)
    os_wake(place(queue, "wakes"), 1)


@native
def event_wait(done: Array[Int32]) -> None:
    """Sleep until the word is not 0, or a signal comes."""
    if atomic_load(done, SEQUENTIAL) == 0:
        os_sleep(done, 0)


def functions() -> list[object]:
    """The module."""
    return [queue_submit, event_wait]
