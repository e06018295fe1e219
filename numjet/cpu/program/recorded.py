"""A program run step by step, each told of with its time: what a recording shows of compiled code.

`executable` calls it while a recording is on, for programs that are nothing but a table of steps
(`program.table`). What would break it: another form of the steps' words.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from numjet.base import spans
from numjet.base.record import NamedTuple
from numjet.cpu.link import link
from numjet.cpu.runtime.entry import (
    CALL,
    CHUNKS,
    COPY,
    HEADER,
    HOST,
    KIND_BITS,
    PLACES,
    REPEAT,
    STEPS,
)

_HEAD = struct.Struct("<iiqq")


class Piece(NamedTuple):
    """A step, or a loop of steps: what it is called, and where its words are."""

    name: str
    start: int
    size: int


def pieces(table: dict[str, Any], host_names: Sequence[str]) -> list[Piece]:
    """The steps of a program's table. `host_names`: what is called in Python, by its number."""
    words, functions, found, at = table["steps"], table["functions"], [], 0
    while at < len(words):
        word, count, one, two = _HEAD.unpack_from(words, at)
        kind, number = word & (1 << KIND_BITS) - 1, (word & 0xFFFFFFFF) >> KIND_BITS
        size = _HEAD.size + 4 * count
        if kind in (CALL, CHUNKS):
            name = functions[number]
        elif kind == COPY:
            name = f"copy of {one} bytes"
        elif kind == HOST:
            name = f"host {host_names[number - HEADER]}"
        else:
            assert kind == REPEAT
            size += two
            name = f"loop of {one} rounds"
        found.append(Piece(name, at, size))
        at += size
    return found


@functools.cache
def _functions() -> tuple[Any, Any]:
    """What computes the addresses of a program's places, and what runs a part of its steps."""
    link.resolve((PLACES, STEPS))
    pointer = ctypes.c_void_p
    places = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer, pointer)
    steps = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, ctypes.c_int64, ctypes.c_int64)
    return places(link.defined_symbol(PLACES) or 0), steps(link.defined_symbol(STEPS) or 0)


def run(
    parts: Sequence[Piece], count: int, inputs: Any, outputs: Any, arena: Any, table: Any
) -> int:
    """The program's status, as its own entry gives it. `count`: how many places it has."""
    fill, steps = _functions()
    places = (ctypes.c_void_p * max(count, 1))()
    fill(inputs, outputs, arena, table, places)
    for part in parts:
        start = perf_counter_ns()
        status = steps(table, places, part.start, part.size)
        if status:
            return status
        spans.tell("step", part.name, start, perf_counter_ns())
    return 0
