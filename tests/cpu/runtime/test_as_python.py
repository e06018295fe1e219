"""The runtime's native functions, run as Python, do what their code does."""

from __future__ import annotations

import ctypes
import random
import time

import numpy as np
import pytest

from numjet.cpu import host
from numjet.cpu.builder.records import Array, Call, Int, Pointer, layout_of
from numjet.cpu.runtime import build, programs, threads
from numjet.cpu.runtime.code import collectives, programs as code, system, threads as pool

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture
def body():
    """A loop's body that notes its chunks, by its address."""
    chunks: list[tuple[int, int]] = []
    keep = FUNCTION(lambda _, begin, end: chunks.append((begin, end)))
    return Call(pool.Body, ctypes.cast(keep, ctypes.c_void_p).value), chunks, keep


def test_jobs_without_workers(body) -> None:
    fn, chunks, keep = body
    native = ctypes.CFUNCTYPE(None, FUNCTION, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        threads.parallel_for_address()
    )
    for n in (0, 1, 7, 10):
        for grain in (-1, 1, 3, 10, 11):
            chunks.clear()
            pool.pool_for(fn, Pointer(0), n, grain)
            found = list(chunks)
            chunks.clear()
            native(keep, None, n, grain)
            assert found == sorted(chunks)
            # As with the lock held: the caller takes all chunks itself, from the front.
            chunks.clear()
            pool.run_job(fn, Pointer(0), n, max(grain, 1), 0, len(found), False)
            assert chunks == found and not pool.any_work() and pool.job.pending == 0


def test_a_worker_takes_chunks_from_the_back(body) -> None:
    fn, chunks, _ = body
    pool.run_job(fn, Pointer(0), 0, 1, 0, 0, False)
    pool.job.n, pool.job.grain, pool.job.base, pool.job.pending = 10, 3, 0, 4
    pool.job.word = pool.job.word | 4
    for back, wanted in ((True, (9, 10)), (False, (0, 3)), (True, (6, 9)), (True, (3, 6))):
        pool.run_chunks(True, back)
        assert chunks[-1] == wanted
    assert pool.job.pending == 0 and not pool.any_work()


def test_workers_spin_longer_where_jobs_come_soon() -> None:
    spins, seen = pool.SPINS, []
    for _ in range(5):
        spins = pool.spins_after(spins, pool.SOON - 1)
        seen.append(spins)
    assert seen == sorted(seen) and seen[0] > pool.SPINS and seen[-1] == pool.MOST_SPINS
    for slept in (0, pool.SOON, 10**12, -1):
        assert pool.spins_after(spins, slept) == pool.SPINS
    if not host.WINDOWS:
        before = system.os_clock()
        time.sleep(0.002)
        assert 2_000_000 <= system.os_clock() - before < 10**11


def test_shares_of_a_word() -> None:
    native = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p, *[ctypes.c_int64] * 3],
                              ctypes.c_void_p)(threads.take_address())  # fmt: skip
    draw = random.Random(1)
    for _ in range(60):
        begin = draw.randrange(1000)
        words = np.array([[draw.randrange(begin, 2000) << 32 | begin, 0]] * 2)
        least, share, back = draw.randrange(1, 9), draw.randrange(1, 5), draw.randrange(2)
        one, two = words[0].ctypes.data, words[1].ctypes.data
        while True:
            count = native(one, least, share, back, one + 8)
            array = Array[Int](two)
            assert pool.pool_take(array, least, share, back, array[1:]) == count
            assert (words[0] == words[1]).all()
            if not count:
                break


def test_lent_memory() -> None:
    if host.WINDOWS:
        pytest.skip("the C library's functions are not global")
    for size in (1, 1 << 14, (1 << 14) + 1, 1 << 22, (1 << 22) + 1):
        block = code.program_take(size)
        assert block._at % 64 == 0 and code.BlockHead(block + -16).number == code.size_number(size)
        assert 1 << 14 + code.size_number(size) >= size
        ctypes.memset(block._at, 1, size)
        code.program_give(block)
        again = code.program_take(size)
        assert (again == block) or size > 1 << 22
        code.program_give(again)


def test_lanes() -> None:
    libm = ctypes.CDLL(None)
    cos = ctypes.cast(libm.cos, ctypes.c_void_p).value
    atan2 = ctypes.cast(libm.atan2, ctypes.c_void_p).value
    for dtype, kind in ((np.float32, "f32"), (np.float64, "f64")):
        x, y = np.linspace(-3, 3, 7).astype(dtype), np.linspace(5, -2, 7).astype(dtype)
        for function, others in ((cos, ()), (atan2, (y,))):
            name = f"lanes_{kind}_{1 + len(others)}"
            one, two = x.copy(), x.copy()
            pointers = [ctypes.c_void_p] * (1 + len(others))
            run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, *pointers)(
                programs.address(f"nj_{name}")
            )
            rest = [other.ctypes.data for other in others]
            run(function, 7, one.ctypes.data, *rest)
            native = getattr(code, name)
            native(Call(native.types()[0][0], function), 7, two.ctypes.data, *rest)
            assert (one == two).all() and (one != x).any()


@pytest.mark.parametrize("native", [False, True])
def test_collectives_tell_where_they_are_and_what_failed(native: bool) -> None:
    seen, errors = [], []
    word = ctypes.c_int64

    @ctypes.CFUNCTYPE(ctypes.c_int32, *[word] * 6)
    def reduce(sent: int, got: int, count: int, kind: int, op: int, comm: int) -> int:
        seen.append((state.call, state.begun, sent, got, count, kind & 0xFFFFFFFF, op, comm))
        return 7 if count == 5 else 0

    @ctypes.CFUNCTYPE(ctypes.c_int32, word)
    def report(error: int) -> int:
        errors.append(error)
        return 1

    def made(kind: type) -> object:
        memory = (word * (layout_of(kind).size // 8))()
        return kind(ctypes.addressof(memory), memory)

    def address(function: object) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    state, call = made(collectives.State), made(collectives.Collective)
    call.state, call.reduce, call.report = state, address(reduce), address(report)
    call.kind, call.type, call.op, call.comm = collectives.REDUCE, 0x4C00040A, 2, 3
    table = (ctypes.c_void_p * 3)(call._at, 1000, 2000)
    if native:
        entry = build.library("collectives").address("collective")
        run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(entry)
    else:
        run = collectives.collective
    for count, status in ((4, 0), (5, 1)):
        call.count = call.part = count
        assert run(ctypes.addressof(table)) == status
        assert state.call == 0
    assert errors == [7]
    assert seen == [(call._at, k + 1, 1000, 2000, 4 + k, 0x4C00040A, 2, 3) for k in range(2)]
    call.kind, call.bytes = collectives.STAY, 8
    memory = (word * 2)(1, 2)
    table[1], table[2] = ctypes.addressof(memory), ctypes.addressof(memory) + 8
    assert run(ctypes.addressof(table)) == 0 and memory[1] == 1


@pytest.mark.parametrize("name", ["most_f32", "most_f64", "least_f32", "least_f64"])
def test_extremes_keep_nan(name: str) -> None:
    dtype = np.float32 if name.endswith("32") else np.float64
    ufunc = np.maximum if name.startswith("most") else np.minimum
    values = [1, -1, np.nan, np.inf, -np.inf, 0]
    a = np.repeat(values, 6).astype(dtype)
    b = np.tile(values, 6).astype(dtype)
    count = np.array([36], np.int32)
    for run in (getattr(collectives, name), ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(
            build.library("collectives").address(name))):  # fmt: skip
        into = b.copy()
        run(a.ctypes.data, into.ctypes.data, count.ctypes.data, 0)
        np.testing.assert_array_equal(into, ufunc(a, b))
