"""Calls of programs on memory that ends where arrays end, for `config.check_bounds`.

For `executable` and `buffers`. Every argument, result and constant lies on pages of its own between
two that nobody may touch, once against the page behind it and once against that before, so that
each load and store of either code generator, of whole routines and of libraries is held to the
byte: one outside ends the process with a fault at its address. Arguments that are not donated and
constants cannot be written. Temporaries lie in an arena whose every value is followed by such a
page, aligned to `ALIGNMENT` bytes as always; what is written into the gaps before them is noticed
after the call. What would break it: a program that looks at memory that is not among its tables.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base.errors import InternalError
from numjet.cpu import host

PAGE = mmap.PAGESIZE
ALIGNMENT = 64
_MARK = 0xA5  # in bytes that belong to nobody


def _pages(nbytes: int) -> int:
    return -(-nbytes // PAGE) * PAGE


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Fence:
    """Memory for one array, as `array`, between pages that nobody may touch.

    at_end: the array ends at the page behind it; else it begins at the end of the page before.
    """

    def __init__(self, shape: tuple, dtype: np.dtype, at_end: bool) -> None:
        empty = np.empty(shape, dtype)
        size = _pages(max(empty.nbytes, 1))
        self._memory = np.frombuffer(mmap.mmap(-1, size + 2 * PAGE), np.uint8)
        self._inside = self._memory[PAGE : PAGE + size]
        self._inside[:] = _MARK
        start = size - empty.nbytes if at_end else 0
        self._around = (self._inside[:start], self._inside[start + empty.nbytes :])
        self.array = np.ndarray(shape, dtype, self._inside.data, start)
        host.protect(_address(self._memory), PAGE, host.NOTHING)
        host.protect(_address(self._inside) + size, PAGE, host.NOTHING)

    def freeze(self) -> np.ndarray:
        """The array, which cannot be written any more."""
        host.protect(_address(self._inside), self._inside.nbytes, host.READ)
        return self.array

    def check(self, what: str) -> None:
        """Raise InternalError where something was written beside the array."""
        for part in self._around:
            _unmarked(part, what)


def _unmarked(part: np.ndarray, what: str) -> None:
    if (part != _MARK).any():
        raise InternalError(f"a compiled program wrote outside of {what}; please report it.")


class Arena:
    """Memory for the temporaries of a program whose pages `guards` nobody may touch.

    values: (offset, bytes) of each temporary.
    """

    def __init__(self, nbytes: int, guards: Sequence[int], values: Sequence[tuple[int, int]]):
        self._memory = np.frombuffer(mmap.mmap(-1, _pages(nbytes) + PAGE), np.uint8)
        self.address = _address(self._memory)
        self._gaps, end = list[np.ndarray](), 0
        for guard in sorted(guards):
            inside = [value for value in values if end <= value[0] < guard]
            first = min([offset for offset, _ in inside], default=guard)
            self._gaps.append(self._memory[end:first])
            self._gaps.append(self._memory[max([sum(v) for v in inside], default=guard) : guard])
            end = guard + PAGE
        for gap in self._gaps:
            gap[:] = _MARK
        for guard in guards:
            host.protect(self.address + guard, PAGE, host.NOTHING)

    def check(self) -> None:
        """Raise InternalError where something was written between the temporaries."""
        for gap in self._gaps:
            _unmarked(gap, "a temporary value")


def place(sizes: Sequence[int]) -> tuple[list[int], list[int], int]:
    """Offsets of temporaries of these sizes, of the pages that guard them, and the arena's end."""
    offsets, guards, end = [], [], 0
    for size in sizes:
        room = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        guard = end + _pages(room)
        offsets.append(guard - room)
        guards.append(guard)
        end = guard + PAGE
    return offsets, guards, end


def constant(array: np.ndarray) -> np.ndarray:
    """A copy of a constant that cannot be written, with nothing behind it."""
    fence = Fence(array.shape, array.dtype, True)
    fence.array[...] = array
    return fence.freeze()


def call(
    run: Callable[[list[int], list[int], int], int],
    arrays: Sequence[np.ndarray],
    outs: Sequence[tuple[tuple, np.dtype]],
    aliases: dict[int, int],
    arena: Arena | None,
    at_end: bool,
) -> tuple[int, list[np.ndarray]]:
    """The status and the results of `run(addresses of arguments, of results, of the arena)`.

    aliases: result -> the donated argument in whose memory it lies.
    """
    given = [Fence(x.shape, x.dtype, at_end) for x in arrays]
    for fence, x in zip(given, arrays, strict=True):
        fence.array[...] = x
    made = [
        given[aliases[k]] if k in aliases else Fence(shape, dtype, at_end)
        for k, (shape, dtype) in enumerate(outs)
    ]
    for k, fence in enumerate(given):
        if k not in aliases.values():
            fence.freeze()
    status = run(
        [_address(f.array) for f in given], [_address(f.array) for f in made],
        0 if arena is None else arena.address,
    )  # fmt: skip
    for k, fence in enumerate(given):
        fence.check(f"argument {k}")
    for k, fence in enumerate(made):
        fence.check(f"result {k}")
    if arena is not None:
        arena.check()
    results: list[Any] = [
        np.array(fence.array, copy=True).reshape(shape) for fence, (shape, _) in zip(made, outs)
    ]
    return status, results
