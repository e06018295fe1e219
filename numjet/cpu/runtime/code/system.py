"""Threads of the operating system, sleeping on a word of memory, and a clock.

For the pool, the queues and the adapter of BLAS. Each system has its own functions of these names;
what they call is named in `host`, which says whether there are any. What would break it: an
operating system or C library whose calls differ from the ones declared here.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu import host
from numjet.cpu.builder.records import (
    NULL,
    Array,
    External,
    Int,
    Int32,
    Pointer,
    native,
    ones,
    stack,
)

# SIG_SETMASK; CLOCK_MONOTONIC; FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG;
# UL_COMPARE_AND_WAIT, and with ULF_WAKE_ALL; STACK_SIZE_PARAM_IS_A_RESERVATION.
SET_MASK = 3 if host.MACOS else 2
MONOTONIC = 6 if host.MACOS else 1
FUTEX, WAIT, WAKE = host.futex_number() or 0, 128, 129
COMPARE_AND_WAIT, WAKE_ALL = 1, 0x101
RESERVATION = 0x10000

if not host.WINDOWS:
    pthread_create = External(
        "pthread_create",
        Callable[[Array[Int], Pointer, Callable[[Pointer], Pointer], Pointer], Int32],
    )
    pthread_attr_init = External("pthread_attr_init", Callable[[Pointer], Int32])
    pthread_attr_setstacksize = External(
        "pthread_attr_setstacksize", Callable[[Pointer, Int], Int32]
    )
    pthread_attr_destroy = External("pthread_attr_destroy", Callable[[Pointer], Int32])
    pthread_detach = External("pthread_detach", Callable[[Int], Int32])
    pthread_sigmask = External("pthread_sigmask", Callable[[Int32, Pointer, Pointer], Int32])
    sched_yield = External("sched_yield", Callable[[], Int32])
    clock_gettime = External("clock_gettime", Callable[[Int32, Array[Int]], Int32])

    @native
    def os_thread(start: Callable[[Pointer], Pointer], number: Int, handle: Array[Int]) -> Int:
        """Run start(number) on a new detached thread with a stack of STACK_BYTES and all signals
        blocked, and leave its handle; 0 when it worked."""
        every = stack(Int, 16)
        before = stack(Int, 16)
        settings = stack(Int, 16)  # 56 or 64 bytes in each C library
        for k in range(16):
            every[k] = -1
        pthread_attr_init(settings)
        pthread_attr_setstacksize(settings, host.STACK_BYTES)
        pthread_sigmask(SET_MASK, every, before)
        failed = pthread_create(handle, settings, start, Pointer(number))
        pthread_sigmask(SET_MASK, before, NULL)
        pthread_attr_destroy(settings)
        if failed == 0:
            pthread_detach(handle[0])
        return failed

    @native
    def os_yield() -> None:
        """Let another thread have the core."""
        sched_yield()

    @native
    def os_clock() -> Int:
        """Nanoseconds since some time."""
        now = stack(Int, 2)
        clock_gettime(MONOTONIC, now)
        return now[0] * 1_000_000_000 + now[1]


if host.MACOS:
    ulock_wait = External("__ulock_wait", Callable[[Int32, Array[Int32], Int, Int32], Int32])
    ulock_wake = External("__ulock_wake", Callable[[Int32, Array[Int32], Int], Int32])

    @native
    def os_sleep(word: Array[Int32], seen: Int) -> None:
        """Sleep while the word is `seen`; may return early."""
        ulock_wait(COMPARE_AND_WAIT, word, seen & 0xFFFFFFFF, 0)

    @native
    def os_wake(word: Array[Int32], count: Int) -> None:
        """Wake the sleepers: the call wakes one or all, so all."""
        ulock_wake(WAKE_ALL, word, 0)


elif host.WINDOWS:
    create_thread = External(
        "CreateThread",
        Callable[[Pointer, Int, Callable[[Pointer], Pointer], Pointer, Int32, Pointer], Pointer],
    )
    close_handle = External("CloseHandle", Callable[[Pointer], Int32])
    switch_to_thread = External("SwitchToThread", Callable[[], Int32])
    wait_on_address = External(
        "WaitOnAddress", Callable[[Array[Int32], Array[Int32], Int, Int32], Int32]
    )
    wake_by_address_all = External("WakeByAddressAll", Callable[[Array[Int32]], None])

    @native
    def os_thread(start: Callable[[Pointer], Pointer], number: Int, handle: Array[Int]) -> Int:
        """Run start(number) on a new thread; 0 when it worked."""
        made = create_thread(NULL, host.STACK_BYTES, start, Pointer(number), RESERVATION, NULL)
        if made == NULL:
            return 1
        close_handle(made)
        return 0

    @native
    def os_yield() -> None:
        """Let another thread have the core."""
        switch_to_thread()

    @native
    def os_clock() -> Int:
        """Unknown: the system's clocks count milliseconds, or take long."""
        return 0

    @native
    def os_sleep(word: Array[Int32], seen: Int) -> None:
        """Sleep while the word is `seen`; may return early."""
        known = stack(Int32)
        known[0] = seen
        wait_on_address(word, known, 4, -1)

    @native
    def os_wake(word: Array[Int32], count: Int) -> None:
        """Wake the sleepers."""
        wake_by_address_all(word)


else:
    syscall = External(
        "syscall", Callable[[Int, Array[Int32], Int, Int32, Pointer, Pointer], Int], variadic=1
    )

    @native
    def os_sleep(word: Array[Int32], seen: Int) -> None:
        """Sleep while the word is `seen`; may return early."""
        syscall(FUTEX, word, WAIT, seen, NULL, NULL)

    @native
    def os_wake(word: Array[Int32], count: Int) -> None:
        """Wake so many sleepers."""
        syscall(FUTEX, word, WAKE, count, NULL, NULL)


# Linux wakes a thread on the core it last ran on even when that is busy with the thread that wakes
# it and another core is idle (it does not search for idle cores when a small machine is half
# used), so worker and caller shared a core for milliseconds. On larger machines it does search.
WORDS = 16  # of a set of cores: 1,024 of them
SMALL = 16  # cores

if host.LINUX:
    sched_getcpu = External("sched_getcpu", Callable[[], Int32])
    getpid = External("getpid", Callable[[], Int32])
    sched_getaffinity = External("sched_getaffinity", Callable[[Int32, Int, Array[Int]], Int32])
    pthread_setaffinity = External(
        "pthread_setaffinity_np", Callable[[Int, Int, Array[Int]], Int32]
    )

    @native
    def os_core() -> Int:
        """The core this thread runs on."""
        return sched_getcpu()

    @native
    def os_keep_off(core: Int, handles: Array[Int], count: Int) -> None:
        """Let these threads run on any core that the process's first thread may use, but one."""
        cores = stack(Int, WORDS)
        if core < 0 or core >= 64 * WORDS or sched_getaffinity(getpid(), 8 * WORDS, cores) != 0:
            return
        cores[core // 64] = cores[core // 64] & ~(1 << (core & 63))
        others = 0
        for k in range(WORDS):
            others += ones(cores[k])
        if others > 0 and others < SMALL:
            for k in range(count):
                pthread_setaffinity(handles[k], 8 * WORDS, cores)


else:

    @native
    def os_core() -> Int:
        """Unknown."""
        return -1

    @native
    def os_keep_off(core: Int, handles: Array[Int], count: Int) -> None:
        """This system places threads itself."""
