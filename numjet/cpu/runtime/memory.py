"""The memory pool: arrays for results and scratch for programs, from memory used before.

For: compiled programs and their dispatch. Writing 64 MB of fresh memory takes over twice as
long as writing memory that has been touched before (page faults), so blocks go back to a free list
when the last NumPy view of them dies. What would break it: native code that keeps a pointer
into a block without keeping an array (or an unreleased `allocate`) on it.

What is idle is bounded by what was in use at one time lately, so that a process which meets ever
new sizes takes about twice what it needs, or FLOOR where it needs less.

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

# So many idle bytes may stay whatever was in use, where they are no quarter of all memory.
FLOOR = 512 << 20
# "Lately" is after so many releases of large blocks, and so many before that.
_EPOCH = 4096

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
_in_hand: dict[int, _SizeClass] = {}  # blocks given out by `allocate`
_lock = locks.lock()  # creation of size classes and trimming


def _idle_limit() -> int:
    asked = os.environ.get("NUMJET_POOL_BYTES")
    if asked is not None:
        return int(asked)
    return min(host.memory_bytes() // 4, 8 << 30)


class _Peaks:
    """How much large memory was in use at one time, lately and in the epoch before."""

    def __init__(self) -> None:
        self.now = self.before = self.releases = 0

    def note(self, used: int) -> int:
        """A block was released, and so many bytes are used: the most that were."""
        self.releases += 1
        if self.releases > _EPOCH:
            self.releases, self.before, self.now = 0, self.now, used
        elif used > self.now:
            self.now = used
        return max(self.now, self.before)


class _SizeClass:
    """Blocks of one size: their free addresses and the type that owns one while it is used.
    `backing`: the memory that blocks lie in, by address."""

    __slots__ = ("backing", "free", "owner", "size", "used")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free: list[int] = []
        self.backing: dict[int, np.ndarray] = {}
        self.used = 0
        self.owner = _large_owner(self) if size >= LARGE else _small_owner(self)

    def take(self) -> int:
        """Address of a block that nobody uses."""
        self.used = next(_clock)
        try:
            return self.free.pop()
        except IndexError:
            return _new_block(self)

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """A new array on a block of this class, contents undefined."""
        return _new_array(shape, dtype, self.owner.from_address(self.take()))


def _small_owner(size_class: _SizeClass) -> type[ctypes.Array]:
    most = max(1, IDLE_PER_SMALL_CLASS // size_class.size)

    # The defaults keep the names alive during interpreter shutdown.
    def release(
        self, free=size_class.free, address=ctypes.addressof, backing=size_class.backing
    ):
        if len(free) < most:
            free.append(address(self))
        else:
            del backing[address(self)]

    members = {"__del__": release, "from_pool": True}
    return type("Block", (ctypes.c_char * size_class.size,), members)


def _large_owner(size_class: _SizeClass) -> type[ctypes.Array]:
    def release(
        self, free=size_class.free, address=ctypes.addressof, bound=_bound_idle,
        size=size_class.size,
    ):  # fmt: skip
        free.append(address(self))
        bound(size)

    members = {"__del__": release, "from_pool": True}
    return type("Block", (ctypes.c_char * size_class.size,), members)


def _uninitialized(size: int) -> np.ndarray:
    return np.empty(size, np.uint8)


def _new_block(size_class: _SizeClass) -> int:
    size = size_class.size
    unit = _PAGE if size >= LARGE else host.CACHE_LINE
    make = host.fresh if size >= LARGE else _uninitialized
    try:
        raw = make(size + 2 * unit)
    except MemoryError:
        trim()
        raw = make(size + 2 * unit)
    skip = -raw.ctypes.data % unit
    if size >= LARGE:
        skip += next(_places)
    address = raw.ctypes.data + skip
    size_class.backing[address] = raw[skip : skip + size]
    return address


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


def lasting(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """`empty` for an array that is made once and read often: from the pool if it has a page or
    more, so that operations may wait that read it, or views of it, though others see it, too."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _PAGE:
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
        _bound_idle(size_class.size)


def _bound_idle(released: int) -> None:
    """Free idle blocks when they are more than is allowed: those of sizes unused for longest. A
    block of `released` bytes has just become idle."""
    if _large is None or _peaks is None:  # the interpreter is ending, and with it this module
        return
    idle = reserved = 0
    for size_class in _large:
        idle += size_class.size * len(size_class.free)
        reserved += size_class.size * len(size_class.backing)
    allowed = min(max(FLOOR, _peaks.note(reserved - idle + released)), _limit)
    if idle > allowed:
        trim(allowed - allowed // 4)


_limit = _idle_limit()
_peaks = _Peaks()


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
                del size_class.backing[address]
                idle -= size_class.size
    finally:
        _lock.release()


def stats() -> dict[str, int]:
    """Bytes: `reserved` from the system, `idle` in free lists, `used` by arrays; `blocks`."""
    classes = list(_classes.values())
    reserved = sum([c.size * len(c.backing) for c in classes])
    idle = sum([c.size * len(c.free) for c in classes])
    blocks = sum([len(c.backing) for c in classes])
    return {"reserved": reserved, "idle": idle, "used": reserved - idle, "blocks": blocks}
