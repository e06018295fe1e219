"""What every compiled program needs, compiled once: the steps of a program walked as data, the
entry that takes array objects, and library functions lane by lane.

For: `executable` (the first two) and generated code, which refers to the rest. Compiling these
functions with each program took longer than compiling a small kernel. `entry` describes the tables.
What would break it: a table that dies while a program runs on it.

    i32 nj_program_run(ptr inputs, ptr outputs, ptr arena, ptr consts)

runs a program that is all data; 1 when a callback into Python failed. `nj_program_objects` does the
same to any program, on tables of NumPy array objects: it reads their data pointers itself, and
returns 2, having done nothing, when one is not contiguous and aligned. `nj_program_places` computes
the addresses of a program's places, `nj_program_steps` runs a part of its steps on them.

    ptr nj_program_take(i64 bytes)          void nj_program_give(ptr block)

lend memory, aligned to 64 bytes, to functions that need more of it than fits the stack.

    void nj_lanes_TYPE_ARITY(ptr function, i64 n, ptr values...)

calls a C function of doubles with every element, and leaves the results in the first array.
"""

from __future__ import annotations

import functools

from numjet.base import locks
from numjet.cpu.link import link
from numjet.cpu.runtime import build
from numjet.cpu.runtime.entry import LANES

_starting = locks.lock()


@functools.cache
def _library_once() -> link.Library:
    return build.library("programs")


def address(name: str) -> int:
    """The address of one of the module's functions, whose names begin with "nj_" outside of it."""
    with _starting:
        return _library_once().address(name.removeprefix("nj_"))


link.provide("nj_program_", address)
link.provide(LANES, address)
