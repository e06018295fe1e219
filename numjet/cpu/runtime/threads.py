"""The thread pool of compiled programs: `nj_parallel_for`, a symbol their code may call.

For: linked programs (the linker asks for the symbol when an object refers to it) and the public
thread settings. The pool is native code compiled from the IR below: workers are
system threads without a Python thread state, so nothing here waits for the GIL. What would
break it: a job that never returns, or unloading the pool's code (it is leaked on purpose: a
worker may be inside when the interpreter ends).

    void nj_parallel_for(void (*fn)(void *ctx, i64 begin, i64 end), void *ctx, i64 n, i64 grain)

calls `fn` for the chunks [0, grain), [grain, 2 grain), … of [0, n), the last one shorter, each
exactly once, from this thread and the workers, and returns when all are done. The chunks do
not depend on the number of threads. A nested call, or one while another thread's job runs,
runs all its chunks itself, in order. Workers start with the first job, spin for about 50 us
after one and then sleep. After a fork the child starts its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading

from numjet.base import config
from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.link import link

# The job's fields are only written while no chunk is left to take and none is running: `word`
# holds the job's generation (24 bits), the first chunk not yet taken (20) and how many are left
# (20), so whoever takes one off by compare-and-swap owns a chunk of exactly that job, and reads
# the fields after that. The calling thread takes chunks from the front and the first worker from
# the back: kernel after kernel over the same arrays, each then finds its part in its own cache
# (33 against 45 us for 1.6 MB on two cores). Everything a worker needs to take a chunk is on the
# word's cache line: each further line would cost a transfer between cores.
_STATE = """
%Job = type { i64, ptr, ptr, i64, i64, i64, i32 }
@word = internal global %Job zeroinitializer, align 64 ; and fn, ctx, n, grain, base, pending
@lock = internal global [16 x i32] zeroinitializer, align 64
@wakes = internal global [16 x i32] zeroinitializer, align 64
@sleepers = internal global [16 x i32] zeroinitializer, align 64
@want = internal global i32 0, align 64
@have = internal global i32 0, align 64
@core = internal global i32 -1, align 64 ; the one the workers are kept off
@handles = internal global [MOST x i64] zeroinitializer, align 64
"""

_INTRINSICS = """
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)
"""

# Without threads: all chunks in order.
_SERIAL = """
define void @SERIAL(ptr %fn, ptr %ctx, i64 %n, i64 %step) {
entry:
  %grain = call i64 @llvm.smax.i64(i64 %step, i64 1)
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %out
loop:
  %begin = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %next, i64 %n)
  call void %fn(ptr %ctx, i64 %begin, i64 %end)
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""

# Take chunks and run them until none is left, or only one (`once`).
_RUN_CHUNKS = """
define internal void @run_chunks(i1 %once, i1 %back) {
entry:
  br label %look
look:
  %first = load atomic i64, ptr @word acquire, align 8
  br label %try
try:
  %word = phi i64 [ %first, %look ], [ %seen, %claim ]
  %left = and i64 %word, 1048575
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %claim
claim:
  %change = select i1 %back, i64 -1, i64 1048575 ; one less, and one further at the front
  %less = add i64 %word, %change
  %pair = cmpxchg ptr @word, i64 %word, i64 %less acq_rel acquire, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %try
run:
  %fn = load ptr, ptr getelementptr (i8, ptr @word, i64 8)
  %ctx = load ptr, ptr getelementptr (i8, ptr @word, i64 16)
  %n = load i64, ptr getelementptr (i8, ptr @word, i64 24)
  %grain = load i64, ptr getelementptr (i8, ptr @word, i64 32)
  %base = load i64, ptr getelementptr (i8, ptr @word, i64 40)
  %shifted = lshr i64 %word, 20
  %front = and i64 %shifted, 1048575
  %up = select i1 %back, i64 %left, i64 1
  %below = add i64 %front, %up
  %chunk = sub i64 %below, 1
  %offset = mul i64 %chunk, %grain
  %begin = add i64 %base, %offset
  %next = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %next, i64 %n)
  call void %fn(ptr %ctx, i64 %begin, i64 %end)
  %before = atomicrmw sub ptr getelementptr (i8, ptr @word, i64 48), i32 1 acq_rel, align 4
  br i1 %once, label %out, label %look
out:
  ret void
}
"""

# A worker spins for SPINS pauses before it sleeps, yielding now and then: a worker that was
# woken on the caller's core would otherwise keep the caller from its chunks for a time slice.
_WORKER = """
define internal ptr @worker(ptr %argument) {
entry:
  %id64 = ptrtoint ptr %argument to i64
  %id = trunc i64 %id64 to i32
  %odd = trunc i32 %id to i1
  %back = xor i1 %odd, true
  br label %idle
idle:
  %spins = phi i32 [ 0, %entry ], [ 0, %work ], [ 0, %awake ], [ %more, %spin ], [ %more, %yield ]
  %word = load atomic i64, ptr @word acquire, align 8
  %left = and i64 %word, 1048575
  %job = icmp ne i64 %left, 0
  br i1 %job, label %work, label %stay
work:
  call void @run_chunks(i1 false, i1 %back)
  br label %idle
stay:
  %want = load atomic i32, ptr @want seq_cst, align 4
  %dismissed = icmp sge i32 %id, %want
  br i1 %dismissed, label %leave, label %count
count:
  %more = add i32 %spins, 1
  %tired = icmp sgt i32 %more, SPINS
  br i1 %tired, label %tuck, label %spin
spin:
  PAUSE
  %phase = and i32 %more, 63
  %turn = icmp eq i32 %phase, 0
  br i1 %turn, label %yield, label %idle
yield:
  call void @os_yield()
  br label %idle
tuck:
  %seen = load atomic i32, ptr @wakes seq_cst, align 4
  %others = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  %word2 = load atomic i64, ptr @word seq_cst, align 8
  %left2 = and i64 %word2, 1048575
  %job2 = icmp ne i64 %left2, 0
  %want2 = load atomic i32, ptr @want seq_cst, align 4
  %dismissed2 = icmp sge i32 %id, %want2
  %up = or i1 %job2, %dismissed2
  br i1 %up, label %awake, label %sleep
sleep:
  call void @os_sleep(ptr @wakes, i32 %seen)
  br label %awake
awake:
  %rest = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  br label %idle
leave:
  %remaining = atomicrmw sub ptr @have, i32 1 seq_cst, align 4
  ret ptr null
}

define internal void @start_workers() {
entry:
  %want = load atomic i32, ptr @want monotonic, align 4
  br label %test
test:
  %have = load atomic i32, ptr @have monotonic, align 4
  %enough = icmp sge i32 %have, %want
  br i1 %enough, label %out, label %start
start:
  %id = zext i32 %have to i64
  %previous = atomicrmw add ptr @have, i32 1 seq_cst, align 4
  %handle = getelementptr i64, ptr @handles, i64 %id
  %failed = call i32 @os_thread(ptr @worker, i64 %id, ptr %handle)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %test, label %settle
settle:
  %back = atomicrmw sub ptr @have, i32 1 seq_cst, align 4
  store atomic i32 %have, ptr @want seq_cst, align 4
  br label %out
out:
  store i32 -1, ptr @core
  call void @place_workers()
  ret void
}

; With the lock held: let workers that are about to run find another core than the caller's.
define internal void @place_workers() {
entry:
  %core = call i32 @os_core()
  %before = load i32, ptr @core
  %same = icmp eq i32 %core, %before
  %unknown = icmp slt i32 %core, 0
  %skip = or i1 %same, %unknown
  br i1 %skip, label %out, label %place
place:
  store i32 %core, ptr @core
  %count = load atomic i32, ptr @have monotonic, align 4
  call void @os_keep_off(i32 %core, ptr @handles, i32 %count)
  br label %out
out:
  ret void
}
"""

# With the lock held. `once`: this thread takes one chunk and every worker is woken.
_RUN_JOB = """
define internal void @run_job(ptr %fn, ptr %ctx, i64 %n, i64 %grain, i64 %base, i64 %chunks,
                              i1 %once) {
entry:
  store ptr %fn, ptr getelementptr (i8, ptr @word, i64 8)
  store ptr %ctx, ptr getelementptr (i8, ptr @word, i64 16)
  store i64 %n, ptr getelementptr (i8, ptr @word, i64 24)
  store i64 %grain, ptr getelementptr (i8, ptr @word, i64 32)
  store i64 %base, ptr getelementptr (i8, ptr @word, i64 40)
  %count = trunc i64 %chunks to i32
  store atomic i32 %count, ptr getelementptr (i8, ptr @word, i64 48) monotonic, align 4
  %old = load atomic i64, ptr @word monotonic, align 8
  %generation = add i64 %old, 1099511627776
  %closed = and i64 %generation, -1099511627776
  %word = or i64 %closed, %chunks
  store atomic i64 %word, ptr @word seq_cst, align 8
  fence seq_cst
  call void @place_workers()
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %nobody = icmp eq i32 %asleep, 0
  br i1 %nobody, label %work, label %wake
wake:
  %others = sub i32 %count, 1
  %few = call i32 @llvm.umin.i32(i32 %asleep, i32 %others)
  %number = select i1 %once, i32 %asleep, i32 %few
  %wakes = atomicrmw add ptr @wakes, i32 1 seq_cst, align 4
  call void @os_wake(ptr @wakes, i32 %number)
  br label %work
work:
  call void @run_chunks(i1 %once, i1 false)
  br label %wait
wait:
  %spins = phi i32 [ 0, %work ], [ %more, %spin ], [ %more, %yield ]
  %pending = load atomic i32, ptr getelementptr (i8, ptr @word, i64 48) acquire, align 4
  %done = icmp eq i32 %pending, 0
  br i1 %done, label %out, label %spin
spin:
  PAUSE
  %more = add i32 %spins, 1
  %phase = and i32 %more, 63
  %turn = icmp eq i32 %phase, 0
  br i1 %turn, label %yield, label %wait
yield:
  call void @os_yield()
  br label %wait
out:
  ret void
}

define void @pool_for(ptr %fn, ptr %ctx, i64 %n, i64 %step) {
entry:
  %grain = call i64 @llvm.smax.i64(i64 %step, i64 1)
  %last = sub i64 %n, 1
  %quotient = sdiv i64 %last, %grain
  %chunks = add i64 %quotient, 1
  %many = icmp sgt i64 %chunks, 1
  %want = load atomic i32, ptr @want monotonic, align 4
  %threads = icmp sgt i32 %want, 0
  %parallel = and i1 %many, %threads
  br i1 %parallel, label %try, label %serial
try:
  %pair = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %run, label %serial
run:
  %have = load atomic i32, ptr @have monotonic, align 4
  %complete = icmp sge i32 %have, %want
  br i1 %complete, label %go, label %start
start:
  call void @start_workers()
  br label %go
go:
  br label %batch
batch: ; as many chunks at a time as the word can count
  %done = phi i64 [ 0, %go ], [ %after, %batch ]
  %rest = sub i64 %chunks, %done
  %now = call i64 @llvm.smin.i64(i64 %rest, i64 1048575)
  %base = mul i64 %done, %grain
  call void @run_job(ptr %fn, ptr %ctx, i64 %n, i64 %grain, i64 %base, i64 %now, i1 false)
  %after = add i64 %done, %now
  %more = icmp slt i64 %after, %chunks
  br i1 %more, label %batch, label %finished
finished:
  store atomic i32 0, ptr @lock release, align 4
  ret void
serial:
  call void @pool_serial(ptr %fn, ptr %ctx, i64 %n, i64 %grain)
  ret void
}
"""

# For jobs whose chunks are threads, which divide the numbers from `begin` (the low half of a word)
# to `end` (the high half) among themselves: take the first of those that are left, or with `back`
# the last, a `share`-th of them but `least` or more. Answers how many, and stores the first.
_TAKE = """
define i64 @pool_take(ptr %word, i64 %least, i64 %share, i64 %back, ptr %result) {
entry:
  %first = load atomic i64, ptr %word monotonic, align 8
  %front = icmp eq i64 %back, 0
  br label %try
try:
  %seen = phi i64 [ %first, %entry ], [ %now, %claim ]
  %begin = and i64 %seen, 4294967295
  %end = lshr i64 %seen, 32
  %left = sub i64 %end, %begin
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %claim
claim:
  %part = udiv i64 %left, %share
  %enough = call i64 @llvm.smax.i64(i64 %part, i64 %least)
  %count = call i64 @llvm.smin.i64(i64 %enough, i64 %left)
  %high = shl i64 %count, 32
  %shorter = sub i64 %seen, %high
  %later = add i64 %seen, %count
  %rest = select i1 %front, i64 %later, i64 %shorter
  %pair = cmpxchg ptr %word, i64 %seen, i64 %rest monotonic monotonic, align 8
  %now = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %take, label %try
take:
  %below = sub i64 %end, %count
  %taken = select i1 %front, i64 %begin, i64 %below
  store i64 %taken, ptr %result, align 8
  ret i64 %count
out:
  ret i64 0
}
"""

# fn(ctx, i, i + 1) for i < count, all at the same time, each on a thread of its own; for jobs
# that wait for one another (OpenBLAS). 0, with nothing done, when the pool is busy or too small.
_RENDEZVOUS = """
define i32 @pool_together(ptr %fn, ptr %ctx, i64 %count) {
entry:
  %want = load atomic i32, ptr @want monotonic, align 4
  %wide = sext i32 %want to i64
  %fits = icmp sle i64 %count, %wide
  %one = add i64 %wide, 1
  %exact = icmp eq i64 %count, %one
  %suits = or i1 %fits, %exact
  br i1 %suits, label %try, label %refuse
try:
  %pair = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %start, label %refuse
start:
  call void @start_workers()
  %have = load atomic i32, ptr @have monotonic, align 4
  %have64 = sext i32 %have to i64
  %enough = icmp sgt i64 %count, %have64
  %next = add i64 %have64, 1
  %just = icmp ne i64 %count, %next
  %short = and i1 %enough, %just
  br i1 %short, label %give_up, label %run
give_up:
  store atomic i32 0, ptr @lock release, align 4
  br label %refuse
run:
  call void @run_job(ptr %fn, ptr %ctx, i64 %count, i64 1, i64 0, i64 %count, i1 true)
  store atomic i32 0, ptr @lock release, align 4
  ret i32 1
refuse:
  ret i32 0
}
"""

# Set the number of workers; returns when those not wanted any more have left.
_RESIZE = """
define void @pool_resize(i32 %want) {
entry:
  br label %try
try:
  %pair = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %set, label %again
again:
  call void @os_yield()
  br label %try
set:
  store atomic i32 %want, ptr @want seq_cst, align 4
  %wakes = atomicrmw add ptr @wakes, i32 1 seq_cst, align 4
  call void @os_wake(ptr @wakes, i32 2147483647)
  br label %wait
wait:
  %have = load atomic i32, ptr @have seq_cst, align 4
  %over = icmp sgt i32 %have, %want
  br i1 %over, label %yield, label %out
yield:
  call void @os_yield()
  br label %wait
out:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define i32 @pool_workers() {
  %have = load atomic i32, ptr @have seq_cst, align 4
  ret i32 %have
}

define void @pool_forget() {
  %old = load atomic i64, ptr @word monotonic, align 8
  %closed = and i64 %old, -1099511627776
  store atomic i64 %closed, ptr @word seq_cst, align 8
  store atomic i32 0, ptr getelementptr (i8, ptr @word, i64 48) seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @have seq_cst, align 4
  store atomic i32 0, ptr @lock seq_cst, align 4
  ret void
}
"""

# 2,000 pauses are about 50 us on Zen 4: longer than the gap between two kernels of a program.
_SPINS = 2000

# Room for handles; more threads than this are not started.
_MOST_WORKERS = 1023

_starting = threading.Lock()


def pool_ir() -> str | None:
    """The pool's module, or None on a system without threads."""
    triple = link.target().triple
    system = host.thread_ir(triple)
    if system is None:
        return None
    declaration, pause = host.pause_ir(triple)
    serial = _SERIAL.replace("SERIAL", "pool_serial")
    text = "\n".join((declaration, _INTRINSICS, _STATE, system, serial, _RUN_CHUNKS, _WORKER,
                      _RUN_JOB, _TAKE, _RENDEZVOUS, _RESIZE))
    text = text.replace("MOST", str(_MOST_WORKERS))
    return text.replace("SPINS", str(_SPINS)).replace("PAUSE", pause)


class _Pool:
    """The linked pool and its entry points for Python; None where there are no threads."""

    def __init__(self) -> None:
        text = pool_ir()
        if text is None:
            text = _INTRINSICS + _SERIAL.replace("SERIAL", "pool_for") + _TAKE
            library = link.library(text)
            self.resize = self.workers = self.forget = self.together = None
        else:
            for name, address in host.thread_symbols().items():
                link.define_symbol(name, address)
            library = link.library(text)
            void, i32 = None, ctypes.c_int32
            self.resize = ctypes.CFUNCTYPE(void, i32)(library.address("pool_resize"))
            self.workers = ctypes.CFUNCTYPE(i32)(library.address("pool_workers"))
            self.forget = ctypes.CFUNCTYPE(void)(library.address("pool_forget"))
            self.together = library.address("pool_together")
        self.parallel_for = library.address("pool_for")
        self.take = library.address("pool_take")
        library.leak()


@functools.cache
def _pool_once() -> _Pool:
    pool = _Pool()
    if pool.resize is not None:
        pool.resize(min(num_threads() - 1, _MOST_WORKERS))
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
        pool.resize(min(num_threads() - 1, _MOST_WORKERS))


def parallel_for_address() -> int:
    """Address of `nj_parallel_for`; its threads start with the first job."""
    return _pool().parallel_for


def together_address() -> int:
    """Address of `nj_pool_together(fn, ctx, count) -> i32`; see the IR."""
    together = _pool().together
    if together is None:
        raise InternalError("nj_pool_together: this system has no threads")
    return together


def take_address() -> int:
    """Address of `nj_pool_take(word, least, share, back, result) -> i64`; see the IR."""
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
