"""The thread pool (`runtime.threads`).

The job's fields are only written while no chunk is left to take and none is running: `word` holds
the job's generation (24 bits), the first chunk not yet taken (20) and how many are left (20), so
whoever takes one off by compare-and-swap owns a chunk of exactly that job, and reads the fields
after that. The calling thread takes chunks from the front and the first worker from the back:
kernel after kernel over the same arrays, each then finds its part in its own cache (33 against 45
us for 1.6 MB on two cores). Everything a worker needs to take a chunk is on the word's cache line:
each further line would cost a transfer between cores.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    ACQUIRE,
    ACQUIRE_RELEASE,
    NULL,
    RELAXED,
    RELEASE,
    SEQUENTIAL,
    Array,
    Inline,
    Int,
    Int32,
    Pointer,
    Record,
    Static,
    atomic_add,
    atomic_load,
    atomic_store,
    compare_exchange,
    fence,
    lshr,
    native,
    pause,
    place,
)
from numjet.cpu.runtime.code.system import (
    os_clock,
    os_core,
    os_keep_off,
    os_sleep,
    os_thread,
    os_wake,
    os_yield,
)
from numjet.cpu.runtime.entry import MOST_WORKERS

Body = Callable[[Pointer, Int, Int], None]  # of a loop: context, begin, end
# 2,000 pauses are about 50 us on Zen 4: longer than the gap between two kernels of a program.
SPINS = 2000
# So many at most, where jobs come in quick succession: the caller of an eager program writes the
# next one down for 20 to 200 us, and waking a worker takes it 30 us.
MOST_SPINS = 4 * SPINS
SOON = 200_000  # ns
COUNT = (1 << 20) - 1  # the bits of a job's word that say how many chunks are left
GENERATION = 1 << 40
ALL = 0x7FFFFFFF


class Job(Record):
    """The job that runs, or ran last."""

    word: Int
    fn: Body
    ctx: Pointer
    n: Int
    grain: Int
    base: Int
    pending: Int32


class Cell(Record):
    """A number on a cache line of its own."""

    value: Int32


class Handles(Record):
    """The workers' handles."""

    room = {"values": MOST_WORKERS}
    values: Inline[Int]


job = Static(Job, "job")
lock = Static(Cell, "lock")
wakes = Static(Cell, "wakes")
sleepers = Static(Cell, "sleepers")
want = Static(Cell, "want")
have = Static(Cell, "have")
core = Static(Cell, "core", {"value": -1})  # the one the workers are kept off
handles = Static(Handles, "handles")


@native
def pool_serial(fn: Body, ctx: Pointer, n: Int, step: Int) -> None:
    """All chunks in order."""
    grain = max(step, 1)
    begin = 0
    while begin < n:
        fn(ctx, begin, min(begin + grain, n))
        begin += grain


@native
def run_chunks(once: bool, back: bool) -> None:
    """Take chunks and run them until none is left, or only one (`once`)."""
    change = -1 if back else COUNT  # one less, and one further at the front
    while True:
        word = atomic_load(place(job, "word"), ACQUIRE)
        while True:
            if word & COUNT == 0:
                return
            seen = compare_exchange(
                place(job, "word"), word, Int(word + change), ACQUIRE_RELEASE, ACQUIRE
            )
            if seen == word:
                break
            word = seen
        chunk = lshr(word, 20) & COUNT
        if back:
            chunk = chunk + (word & COUNT) - 1
        begin = job.base + chunk * job.grain
        job.fn(job.ctx, begin, min(begin + job.grain, job.n))
        atomic_add(place(job, "pending"), -1, ACQUIRE_RELEASE)
        if once:
            return


@native
def any_work() -> bool:
    """Whether a chunk is left to take."""
    return atomic_load(place(job, "word"), SEQUENTIAL) & COUNT != 0


@native
def dismissed(number: Int) -> bool:
    """Whether a worker is not wanted any more."""
    return number >= atomic_load(place(want, "value"), SEQUENTIAL)


@native
def tuck(number: Int) -> None:
    """Sleep until there may be work."""
    seen = atomic_load(place(wakes, "value"), SEQUENTIAL)
    atomic_add(place(sleepers, "value"), 1, SEQUENTIAL)
    if not any_work() and not dismissed(number):
        os_sleep(place(wakes, "value"), seen)
    atomic_add(place(sleepers, "value"), -1, SEQUENTIAL)


@native
def spins_after(spins: Int, slept: Int) -> Int:
    """How long a worker spins that slept for so many ns after so many spins: longer, if a job would
    have come soon, and else as long as at first. 0 ns: nobody knows."""
    if slept > 0 and slept < SOON:
        return min(2 * spins, MOST_SPINS)
    return SPINS


@native
def worker(argument: Pointer) -> Pointer:
    """A worker's life. It spins for a while before it sleeps, yielding now and then: a worker that
    was woken on the caller's core would otherwise keep the caller from its chunks for a time
    slice."""
    number = Int(argument)
    spins = 0
    most = SPINS
    while True:
        if atomic_load(place(job, "word"), ACQUIRE) & COUNT != 0:
            run_chunks(False, number & 1 == 0)
            spins = 0
            continue
        if dismissed(number):
            break
        spins += 1
        if spins > most:
            since = os_clock()
            tuck(number)
            most = spins_after(most, os_clock() - since)
            spins = 0
        else:
            pause()
            if spins & 63 == 0:
                os_yield()
    atomic_add(place(have, "value"), -1, SEQUENTIAL)
    return NULL


@native
def place_workers() -> None:
    """With the lock held: let workers that are about to run find another core than the caller's."""
    here = os_core()
    if here == core.value or here < 0:
        return
    core.value = here
    os_keep_off(here, handles.values, atomic_load(place(have, "value"), RELAXED))


@native
def start_workers() -> None:
    """With the lock held: have as many workers as are wanted, or can be had."""
    while True:
        number = atomic_load(place(have, "value"), RELAXED)
        if number >= atomic_load(place(want, "value"), RELAXED):
            break
        atomic_add(place(have, "value"), 1, SEQUENTIAL)
        if os_thread(worker, number, handles.values[number:]) != 0:
            atomic_add(place(have, "value"), -1, SEQUENTIAL)
            atomic_store(place(want, "value"), number, SEQUENTIAL)
            break
    core.value = -1
    place_workers()


@native
def run_job(
    fn: Body, ctx: Pointer, n: Int, grain: Int, base: Int, chunks: Int, once: bool
) -> None:
    """With the lock held: a job. `once`: this thread takes one chunk and every worker is woken."""
    job.fn = fn
    job.ctx = ctx
    job.n = n
    job.grain = grain
    job.base = base
    atomic_store(place(job, "pending"), chunks, RELAXED)
    closed = Int(atomic_load(place(job, "word"), RELAXED) + GENERATION) & -GENERATION
    atomic_store(place(job, "word"), closed | chunks, SEQUENTIAL)
    fence(SEQUENTIAL)
    place_workers()
    asleep = atomic_load(place(sleepers, "value"), SEQUENTIAL)
    if asleep != 0:
        atomic_add(place(wakes, "value"), 1, SEQUENTIAL)
        os_wake(place(wakes, "value"), asleep if once else min(asleep, chunks - 1))
    run_chunks(once, False)
    spins = 0
    while atomic_load(place(job, "pending"), ACQUIRE) != 0:
        pause()
        spins += 1
        if spins & 63 == 0:
            os_yield()


@native
def take_lock() -> bool:
    """Whether the pool is this thread's now."""
    return compare_exchange(place(lock, "value"), 0, 1, ACQUIRE, RELAXED) == 0


@native
def give_lock() -> None:
    """Let others have the pool."""
    atomic_store(place(lock, "value"), 0, RELEASE)


@native
def pool_for(fn: Body, ctx: Pointer, n: Int, step: Int) -> None:
    """`nj_parallel_for`."""
    grain = max(step, 1)
    chunks = (n - 1) // grain + 1
    wanted = atomic_load(place(want, "value"), RELAXED)
    if chunks <= 1 or wanted <= 0 or not take_lock():
        pool_serial(fn, ctx, n, grain)
        return
    if atomic_load(place(have, "value"), RELAXED) < wanted:
        start_workers()
    done = 0
    while done < chunks:  # as many chunks at a time as the word can count
        now = min(chunks - done, COUNT)
        run_job(fn, ctx, n, grain, done * grain, now, False)
        done += now
    give_lock()


@native
def pool_take(word: Array[Int], least: Int, share: Int, back: Int, result: Array[Int]) -> Int:
    """For jobs whose chunks are threads, which divide the numbers from `begin` (the low half of a
    word) to `end` (the high half) among themselves: take the first of those that are left, or with
    `back` the last, a `share`-th of them but `least` or more. Answers how many, and stores the
    first."""
    seen = atomic_load(word, RELAXED)
    while True:
        begin = seen & 0xFFFFFFFF
        end = lshr(seen, 32)
        left = end - begin
        if left == 0:
            return 0
        count = min(max(left // share, least), left)
        rest = Int(seen - (count << 32)) if back != 0 else Int(seen + count)
        now = compare_exchange(word, seen, rest, RELAXED, RELAXED)
        if now == seen:
            result[0] = end - count if back != 0 else begin
            return count
        seen = now


@native
def pool_together(fn: Body, ctx: Pointer, count: Int) -> Int32:
    """fn(ctx, i, i + 1) for i < count, all at the same time, each on a thread of its own; for jobs
    that wait for one another (OpenBLAS). 0, with nothing done, when the pool is busy or too small:
    the caller is one of the threads."""
    if count > atomic_load(place(want, "value"), RELAXED) + 1 or not take_lock():
        return 0
    start_workers()
    if count > atomic_load(place(have, "value"), RELAXED) + 1:
        give_lock()
        return 0
    run_job(fn, ctx, count, 1, 0, count, True)
    give_lock()
    return 1


@native
def pool_resize(count: Int32) -> None:
    """Set the number of workers; returns when those not wanted any more have left."""
    while not take_lock():
        os_yield()
    atomic_store(place(want, "value"), count, SEQUENTIAL)
    atomic_add(place(wakes, "value"), 1, SEQUENTIAL)
    os_wake(place(wakes, "value"), ALL)
    while atomic_load(place(have, "value"), SEQUENTIAL) > count:
        os_yield()
    give_lock()


@native
def pool_workers() -> Int32:
    """Workers that run now."""
    return atomic_load(place(have, "value"), SEQUENTIAL)


@native
def pool_forget() -> None:
    """In a forked child, which has no workers."""
    closed = atomic_load(place(job, "word"), RELAXED) & -GENERATION
    atomic_store(place(job, "word"), closed, SEQUENTIAL)
    atomic_store(place(job, "pending"), 0, SEQUENTIAL)
    atomic_store(place(sleepers, "value"), 0, SEQUENTIAL)
    atomic_store(place(have, "value"), 0, SEQUENTIAL)
    atomic_store(place(lock, "value"), 0, SEQUENTIAL)


def functions() -> list[object]:
    """The module of a system with threads."""
    return [pool_serial, pool_for, pool_take, pool_together, pool_resize, pool_workers, pool_forget]


def functions_without() -> list[object]:
    """The module of a system without."""
    return [pool_serial, pool_take]
