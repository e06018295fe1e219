"""The memory pool: alignment, reuse, lifetime of views, bounds."""

import gc
import os
import random

import numpy as np
import pytest
from resident import STATM, resident
from together import together

from numjet.cpu.runtime import memory

F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def clean_pool():
    gc.collect()
    memory.trim()
    yield
    gc.collect()
    memory.trim()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (5, 3), (300, 401), (1000, 1001)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128, np.bool_])
def test_shape_dtype_and_alignment(shape, dtype):
    dtype = np.dtype(dtype)
    for array in (memory.empty(shape, dtype), memory.maker(shape, dtype)()):
        assert array.shape == shape and array.dtype == dtype
        assert array.flags.c_contiguous and array.flags.writeable and type(array) is np.ndarray
        if array.nbytes >= memory.SMALL:
            assert array.ctypes.data % 64 == 0
        array[...] = 1
        assert (array == 1).all()


def test_large_blocks_begin_at_different_places_of_their_pages():
    blocks = [memory.empty((memory.LARGE,), np.dtype(np.int8)) for _ in range(15)]
    places = [block.ctypes.data % 4096 for block in blocks]
    assert len(set(places)) == 15 and min(places) >= 256 and max(places) <= 4096 - 256
    apart = [abs(p - q) for p, q in zip(places, places[1:])]
    assert min(apart) >= 512
    for block in blocks:
        block.fill(1)
    assert memory.stats()["used"] >= 15 * memory.LARGE


@pytest.mark.parametrize("count", [20_000, 500_000])
def test_memory_is_reused(count):
    make = memory.maker((count,), F32)
    first = make().ctypes.data
    assert make().ctypes.data == first
    assert memory.empty((count,), F32).ctypes.data == first


@pytest.mark.parametrize("count", [20_000, 500_000])
def test_views_keep_memory(count):
    array = memory.empty((count,), F32)
    array.fill(7)
    view = array[10:].reshape(2, -1).T
    address = array.ctypes.data
    del array
    others = [memory.empty((count,), F32) for _ in range(3)]
    for other in others:
        other.fill(0)
    assert all(other.ctypes.data != address for other in others)
    assert (view == 7).all()
    del view
    assert memory.empty((count,), F32).ctypes.data == address


def test_allocate_and_release():
    address = memory.allocate(100_000)
    assert address % 64 == 0
    other = memory.allocate(100_000)
    assert other != address
    memory.release(address)
    assert memory.allocate(100_000) == address
    memory.release(address)
    memory.release(other)
    with pytest.raises(KeyError):
        memory.release(1)


def test_idle_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "_limit", 10 << 20)
    for megabytes in range(1, 9):
        arrays = [memory.empty((megabytes << 18,), F32) for _ in range(4)]
        del arrays
        assert memory.stats()["idle"] <= 10 << 20
    # What was used last is what stays.
    assert memory.stats()["idle"] > 0
    address = memory.empty((8 << 18,), F32).ctypes.data
    assert memory.empty((8 << 18,), F32).ctypes.data == address


def test_trim_gives_everything_back():
    array = memory.empty((500_000,), F32)
    memory.empty((400_000,), F32)
    assert memory.stats()["idle"] > 0
    memory.trim()
    assert memory.stats()["idle"] == 0
    assert memory.stats()["used"] >= array.nbytes


def test_reserved_memory_stays_flat_under_stress():
    generator = random.Random(0)
    held = {}
    peak = 0
    used = memory.stats()["used"]
    for step in range(4000):
        slot = generator.randrange(30)
        count = int(2 ** generator.uniform(8, 19))
        array = memory.empty((count,), F32)
        array.fill(step)
        old = held.pop(slot, None)
        if old is not None:
            assert old[0][0] == old[0][-1] == old[1]
        held[slot] = (array[1:] if step % 3 else array, step)
        del array, old
        if step == 1000:
            peak = memory.stats()["reserved"]
    # Sizes go on changing; idle blocks of all classes add up, but no block is lost.
    assert memory.stats()["reserved"] <= 2.5 * peak
    held.clear()
    assert memory.stats()["used"] == used


def test_threads_never_share_a_block():
    def work(seed):
        generator = random.Random(seed)
        for _ in range(400):
            arrays = [memory.empty((generator.choice([17_000, 20_000, 300_000]),), F32)
                      for _ in range(3)]
            for i, array in enumerate(arrays):
                array.fill(seed * 10 + i)
            for i, array in enumerate(arrays):
                assert array[0] == array[-1] == seed * 10 + i

    together(work, range(4))


def test_idle_memory_is_what_was_in_use_lately(monkeypatch):
    monkeypatch.setattr(memory, "FLOOR", 8 << 20)
    monkeypatch.setattr(memory, "_peaks", memory._Peaks())
    gc.collect()  # what other tests left in cycles would come back in between
    used = memory.stats()["used"]
    for step in range(60):  # of ever new sizes, one after the other
        memory.empty(((1 << 20) + step * (1 << 18),), F32)
    largest = (1 << 22) + 60 * (1 << 20)
    assert memory.stats()["reserved"] - used <= 2.5 * largest
    arrays = [memory.empty((1 << 20,), F32) for _ in range(40)]  # 160 MiB at one time
    del arrays
    assert memory.stats()["idle"] >= 100 << 20
    monkeypatch.setattr(memory, "_EPOCH", 5)
    for _ in range(12):
        memory.empty((1 << 20,), F32)
    # Other tests' arrays are in use, too, and as much may be idle.
    assert memory.stats()["idle"] <= max(8 << 20, memory.stats()["used"] + (4 << 20))


@pytest.mark.skipif(not os.path.exists(STATM), reason="reads this process's memory")
def test_large_blocks_that_are_given_back_are_the_systems():
    before = resident()
    generator, held = random.Random(0), []
    for _ in range(120):
        held.append(memory.empty((int(2 ** generator.uniform(18, 22)),), F32))
        held[-1].fill(1)
        if len(held) > 20:
            del held[generator.randrange(20)]
    most = resident() - before
    held.clear()
    memory.trim()
    assert resident() - before < most / 4


def test_what_lasts_is_of_the_pool_from_a_page_on():
    dtype = np.dtype(np.float32)
    for shape in ((), (1023,), (32, 31)):
        assert memory.lasting(shape, dtype).base is None
    for shape in ((1024,), (16, 1000), (300, 300)):
        made = memory.lasting(shape, dtype)
        assert made.shape == shape and made.dtype == dtype and made.base.from_pool
