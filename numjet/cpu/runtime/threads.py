"""The thread pool of compiled programs: `nj_parallel_for`, a symbol their code may call.

For: linked programs (the linker asks for the symbol when an object refers to it) and the public
thread settings. The pool is native code (`code.threads`): workers are system threads without a
Python thread state, so nothing here waits for the GIL. What would break it: a job that never
returns, or unloading the pool's code (it is leaked on purpose: a worker may be inside when the
interpreter ends).

    void nj_parallel_for(void (*fn)(void *ctx, i64 begin, i64 end), void *ctx, i64 n, i64 grain)

calls `fn` for the chunks [0, grain), [grain, 2 grain), … of [0, n), the last one shorter, each
exactly once, from this thread and the workers, and returns when all are done. The chunks do
not depend on the number of threads. A nested call, or one while another thread's job runs,
runs all its chunks itself, in order. Workers start with the first job, spin for about 50 us
after one (longer, where jobs were found to come soon after) and then sleep. After a fork the child
starts its own.
"""

from __future__ import annotations

import ctypes
import functools
import os

from numjet.base import config, locks
from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.runtime import build
from numjet.cpu.runtime.entry import MOST_WORKERS

_starting = locks.lock()


class _Pool:
    """The linked pool and its entry points for Python; None where there are no threads."""

    def __init__(self) -> None:
        if not host.has_threads():
            library = build.library("threads", "functions_without")
            self.resize = self.workers = self.forget = self.together = None
            self.parallel_for = library.address("pool_serial")
        else:
            for name, address in host.thread_symbols().items():
                link.define_symbol(name, address)
            library = build.library("threads")
            void, i32 = None, ctypes.c_int32
            self.resize = ctypes.CFUNCTYPE(void, i32)(library.address("pool_resize"))
            self.workers = ctypes.CFUNCTYPE(i32)(library.address("pool_workers"))
            self.forget = ctypes.CFUNCTYPE(void)(library.address("pool_forget"))
            self.together = library.address("pool_together")
            self.parallel_for = library.address("pool_for")
        self.take = library.address("pool_take")


@functools.cache
def _pool_once() -> _Pool:
    pool = _Pool()
    if pool.resize is not None:
        pool.resize(min(num_threads() - 1, MOST_WORKERS))
        config.num_threads.on_change(_resize)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=pool.forget)
    return pool


def _pool() -> _Pool:
    with _starting:
        return _pool_once()


def _resize(_value: int) -> None:
    pool = _pool()
    if pool.resize is not None:
        pool.resize(min(num_threads() - 1, MOST_WORKERS))


def parallel_for_address() -> int:
    """Address of `nj_parallel_for`; its threads start with the first job."""
    return _pool().parallel_for


def together_address() -> int:
    """Address of `nj_pool_together(fn, ctx, count) -> i32`; see `code.threads`."""
    together = _pool().together
    if together is None:
        raise InternalError("nj_pool_together: this system has no threads")
    return together


def take_address() -> int:
    """Address of `nj_pool_take(word, least, share, back, result) -> i64`; see `code.threads`."""
    return _pool().take


def num_threads() -> int:
    """Threads a job uses: the flag `num_threads` (NUMJET_NUM_THREADS), by default one a core."""
    return config.num_threads.value or host.cpu_count()


def set_num_threads(count: int) -> None:
    """Use `count` threads (the calling one included) from now on; 0 means one a core."""
    if count < 0:
        raise ValueError(f"set_num_threads: expected a count of at least 0, got {count}")
    config.num_threads.set(count)
    if _pool_once.cache_info().currsize == 0:
        return  # the pool reads the flag when it is made


link.provide("nj_pool_together", lambda name: together_address())
link.provide("nj_pool_take", lambda name: take_address())


def workers() -> int:
    """Worker threads that run now (0 before the first job)."""
    pool = _pool()
    return pool.workers() if pool.workers is not None else 0
