"""What stands between OpenBLAS and our pool (`runtime.blas`).

OpenBLAS's jobs of one call wait for one another, so each must have a thread at once. Where the pool
is busy (another caller, or a call from inside a parallel loop) they get new threads.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    NULL,
    SEQUENTIAL,
    External,
    Int,
    Int32,
    Pointer,
    Record,
    atomic_add,
    atomic_load,
    native,
    place,
    stack_of,
    stack_records,
)
from numjet.cpu.runtime.code.system import os_thread, os_yield

pool_together = External(
    "nj_pool_together", Callable[[Callable[[Pointer, Int, Int], None], Pointer, Int], Int32]
)


class Job(Record):
    """A call of OpenBLAS's: what to do with each of its items, and threads that are at work."""

    dojob: Callable[[Int32, Pointer, Int32], None]
    data: Pointer
    size: Int
    extra: Int32
    busy: Int32


class Slot(Record):
    """A new thread's job, number and handle."""

    job: Job
    number: Int
    handle: Int


@native
def run(context: Pointer, number: Int, end: Int) -> None:
    """One item."""
    job = Job(context)
    job.dojob(number, job.data + number * job.size, job.extra)


@native
def thread(argument: Pointer) -> Pointer:
    """A thread's item."""
    slot = Slot(argument)
    run(slot.job, slot.number, 0)
    atomic_add(place(slot.job, "busy"), -1, SEQUENTIAL)
    return NULL


@native
def adapter(
    sync: Int32, dojob: Callable[[Int32, Pointer, Int32], None], jobs: Int32, size: Int,
    data: Pointer, extra: Int32,
) -> None:  # fmt: skip
    """OpenBLAS's call of its threads."""
    job = stack_of(Job)
    job.dojob = dojob
    job.data = data
    job.size = size
    job.extra = extra
    job.busy = 0
    if jobs > 1:
        if pool_together(run, job, jobs) != 0:
            return
        slots = stack_records(Slot, jobs)
        for k in range(1, jobs):
            slot = slots[k]
            slot.job = job
            slot.number = k
            atomic_add(place(job, "busy"), 1, SEQUENTIAL)
            if os_thread(thread, Int(slot), place(slot, "handle")) != 0:
                thread(slot)  # no thread to be had: in order is the best that is left
    run(job, 0, 0)
    while atomic_load(place(job, "busy"), SEQUENTIAL) != 0:
        os_yield()


def functions() -> list[object]:
    """The module."""
    return [adapter]
