"""The memory pool: arrays for results and scratch for programs, from memory used before.

For: compiled programs and their dispatch. Writing 64 MB of fresh memory takes over twice as
long as writing memory that has been touched before (page faults), so blocks go back to a free list
when the last NumPy view of them dies. What would break it: native code that keeps a pointer
into a block without keeping an array (or an unreleased `allocate`) on it.

Blocks are 64-byte aligned; arrays below `SMALL` bytes come from NumPy itself and are aligned to
16 bytes only, so generated code must not assume more than the element's alignment. Every list
operation here is atomic, hence no lock on the hot path.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import locks
from numjet.cpu import host

# Below this malloc reuses warm memory and a pooled view (500 ns, np.empty 110) does not pay; from
# here on alignment alone does: 1,024 vector stores that straddle cache lines cost 0.3 us.
SMALL = 65536

# From this size on a release looks at the total of idle memory; smaller classes are bounded one
# by one, each to IDLE_PER_SMALL_CLASS bytes.
LARGE = 1 << 20
IDLE_PER_SMALL_CLASS = 4 << 20

# Where in a page large blocks begin. A load waits for an earlier store whose address has the same
# last 12 bits: a.T + b for 4,096 x 4,096 took 17 ms with all arrays at one place of their pages
# and 10 ms at different ones. Blocks that follow one another lie far apart, and none lies where a
# page begins, as large arrays of other allocators do.
_PAGE = 4096
_places = itertools.cycle([k * 256 for k in (8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15)])

_new_array: Any = np.ndarray  # its type does not know that a ctypes array is a buffer
_clock = itertools.count()
_classes: dict[int, _SizeClass] = {}
_large: list[_SizeClass] = []
_backing: dict[int, np.ndarray] = {}  # address of a block -> the memory it lies in
_in_hand: dict[int, _SizeClass] = {}  # blocks given out by `allocate`
_lock = locks.lock()  # creation of size classes and trimming


def _idle_limit() -> int:
    asked = os.environ.get("NUMJET_POOL_BYTES")
    if asked is not None:
        return int(asked)
    return min(host.memory_bytes() // 4, 8 << 30)


class _SizeClass:
    """Blocks of one size: their free addresses and the type that owns one while it is used."""

    __slots__ = ("free", "owner", "size", "used")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free: list[int] = []
        self.used = 0
        self.owner = _large_owner(self) if size >= LARGE else _small_owner(self)

    def take(self) -> int:
        """Address of a block that nobody uses."""
        self.used = next(_clock)
        try:
            return self.free.pop()
        except IndexError:
            return _new_block(self.size)

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """A new array on a block of this class, contents undefined."""
        return _new_array(shape, dtype, self.owner.from_address(self.take()))


def _small_owner(size_class: _SizeClass) -> type[ctypes.Array]:
    most = max(1, IDLE_PER_SMALL_CLASS // size_class.size)

    # The defaults keep the names alive during interpreter shutdown.
    def release(self, free=size_class.free, address=ctypes.addressof, discard=_discard):
        if len(free) < most:
            free.append(address(self))
        else:
            discard(address(self))

    members = {"__del__": release, "from_pool": True}
    return type("Block", (ctypes.c_char * size_class.size,), members)


def _large_owner(size_class: _SizeClass) -> type[ctypes.Array]:
    def release(self, free=size_class.free, address=ctypes.addressof, bound=_bound_idle):
        free.append(address(self))
        bound()

    members = {"__del__": release, "from_pool": True}
    return type("Block", (ctypes.c_char * size_class.size,), members)


def _new_block(size: int) -> int:
    # NumPy itself asks the kernel for huge pages from 4 MB on.
    unit = _PAGE if size >= LARGE else host.CACHE_LINE
    try:
        raw = np.empty(size + 2 * unit, np.uint8)
    except MemoryError:
        trim()
        raw = np.empty(size + 2 * unit, np.uint8)
    skip = -raw.ctypes.data % unit
    if size >= LARGE:
        skip += next(_places)
    address = raw.ctypes.data + skip
    _backing[address] = raw[skip : skip + size]
    return address


def _discard(address: int, backing: dict = _backing) -> None:
    """Give a block's memory back to the system."""
    del backing[address]


def _class_of(nbytes: int) -> _SizeClass:
    # Eight sizes an octave: a block is at most an eighth larger than what is asked for.
    shift = (nbytes - 1).bit_length() - 4
    size = (((nbytes - 1) >> shift) + 1) << shift
    try:
        return _classes[size]
    except KeyError:
        pass
    with _lock:
        size_class = _classes.get(size)
        if size_class is None:
            size_class = _SizeClass(size)
            if size >= LARGE:
                _large.append(size_class)
            _classes[size] = size_class
        return size_class


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A C-contiguous array with undefined contents, from the pool.

    shape: tuple of ints. dtype: an np.dtype. Views keep the memory; it returns to the pool when
    the last one dies.
    """
    nbytes = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    if nbytes < SMALL:
        return np.empty(shape, dtype)
    return _class_of(nbytes).array(shape, dtype)


def maker(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], np.ndarray]:
    """A function of no arguments that returns `empty(shape, dtype)`, with all decided ahead."""
    nbytes = math.prod(shape) * dtype.itemsize
    empty_array = np.empty
    if nbytes < SMALL:
        return lambda: empty_array(shape, dtype)
    size_class = _class_of(nbytes)
    if nbytes >= LARGE:
        return lambda: size_class.array(shape, dtype)
    new_array, take, pop = _new_array, size_class.take, size_class.free.pop
    owner = size_class.owner.from_address

    def make() -> np.ndarray:
        try:
            address = pop()
        except IndexError:
            address = take()
        return new_array(shape, dtype, owner(address))

    return make


def allocate(nbytes: int) -> int:
    """Address of at least `nbytes` bytes, 64-byte aligned, for native code; see `release`."""
    size_class = _class_of(max(nbytes, SMALL))
    address = size_class.take()
    _in_hand[address] = size_class
    return address


def release(address: int) -> None:
    """Take back what `allocate` gave."""
    size_class = _in_hand.pop(address)
    size_class.free.append(address)
    if size_class.size >= LARGE:
        _bound_idle()


def _bound_idle() -> None:
    """Free idle blocks when they are more than the limit: those of sizes unused for longest."""
    if _large is None or _limit is None:  # the interpreter is ending, and with it this module
        return
    idle = 0
    for size_class in _large:
        idle += size_class.size * len(size_class.free)
    if idle > _limit:
        trim(_limit - _limit // 4)


_limit = _idle_limit()


def trim(keep: int = 0) -> None:
    """Give idle memory back to the system until at most `keep` bytes of it are left."""
    # A finalizer may run anywhere, also inside this function: the second one leaves.
    if not _lock.acquire(blocking=False):
        return
    try:
        classes = sorted(list(_classes.values()), key=lambda c: c.used)
        idle = sum(c.size * len(c.free) for c in classes)
        for size_class in classes:
            while idle > keep:
                try:
                    address = size_class.free.pop(0)
                except IndexError:
                    break
                _discard(address)
                idle -= size_class.size
    finally:
        _lock.release()


def stats() -> dict[str, int]:
    """Bytes: `reserved` from the system, `idle` in free lists, `used` by arrays; `blocks`."""
    reserved = sum(block.nbytes for block in list(_backing.values()))
    idle = sum(c.size * len(c.free) for c in list(_classes.values()))
    return {
        "reserved": reserved, "idle": idle, "used": reserved - idle, "blocks": len(_backing),
    }
