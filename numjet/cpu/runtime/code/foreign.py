"""Calls of compiled functions of others, without Python (`runtime.foreign`).

A program's step calls `foreign` with a table: what the call is (`Foreign`), the operands, the
results, and a word that becomes 0 when all went well. The frame that the handler gets was made
before; only the addresses of arrays change in it.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    ACQUIRE,
    NULL,
    RELAXED,
    RELEASE,
    Array,
    Int,
    Int8,
    Int32,
    Pointer,
    Record,
    atomic_store,
    compare_exchange,
    copy,
    native,
    place,
)

ALIGNMENT = 64  # that XLA promises its handlers


class Foreign(Record):
    """A place of a program that calls a handler.

    busy: 1 while a thread uses the frame, and as long as there is none: calls go through Python
    then (`otherwise`). operands, count: how many operands there are, and arrays in all. data: where
    the frame has the address of each. alias: the result, by its number among the arrays, whose
    memory an operand is put into, or 0; bytes: of each array. aside: aligned memory for each, or
    NULL. runs: counts the calls. left: not 0 when the handler left something for `ended` to see to,
    as its error or its future is; that clears it when all is well. The last three are of the
    interpreter: whether this thread has its lock, giving it up, taking it.
    """

    busy: Int32
    handler: Callable[[Pointer], Pointer]
    frame: Pointer
    future: Array[Pointer]
    operands: Int
    count: Int
    data: Array[Array[Pointer]]
    alias: Array[Int]
    bytes: Array[Int]
    aside: Array[Pointer]
    runs: Int
    left: Int
    otherwise: Callable[[Array[Pointer]], Int32]
    ended: Callable[[Pointer], None]
    holds: Callable[[], Int32]
    release: Callable[[], Pointer]
    take: Callable[[Pointer], None]


@native
def aligned(at: Pointer) -> bool:
    """Whether a handler may be given this address."""
    return Int(at) & (ALIGNMENT - 1) == 0


@native
def placed(call: Foreign, arrays: Array[Pointer]) -> Int:
    """Write addresses into the frame, and operands where they have to be; 0 where one cannot be."""
    for k in range(call.count):
        if not aligned(arrays[k]) and call.aside[k] == NULL:
            return 0
    for r in range(call.operands, call.count):
        call.data[r][0] = arrays[r] if aligned(arrays[r]) else call.aside[r]
    for k in range(call.operands):
        at = arrays[k] if aligned(arrays[k]) else call.aside[k]
        if call.alias[k] != 0:
            at = call.data[call.alias[k]][0]
        if at != arrays[k]:
            copy(Array[Int8](at), Array[Int8](arrays[k]), call.bytes[k])
        call.data[k][0] = at
    return 1


@native
def fetch(call: Foreign, arrays: Array[Pointer]) -> None:
    """Copy results that were written aside to where they belong."""
    for r in range(call.operands, call.count):
        at = call.data[r][0]
        if at != arrays[r]:
            copy(Array[Int8](arrays[r]), Array[Int8](at), call.bytes[r])


@native
def foreign(table: Array[Pointer]) -> Int32:
    """One call of a handler, by the thread that comes first; another's goes through Python."""
    call = Foreign(table[0])
    busy = place(call, "busy")
    if compare_exchange(busy, 0, 1, ACQUIRE, RELAXED) != 0:
        return call.otherwise(table)
    if placed(call, table[1:]) == 0:
        atomic_store(busy, 0, RELEASE)
        return call.otherwise(table)
    call.runs = call.runs + 1
    thread = NULL
    held = call.holds()
    if held != 0:
        thread = call.release()
    error = call.handler(call.frame)
    if held != 0:
        call.take(thread)
    if error != NULL or call.future[0] != NULL or call.left != 0:
        call.left = 1
        call.ended(error)
    if call.left == 0:
        fetch(call, table[1:])
        table[call.count + 1] = NULL
    call.left = 0
    atomic_store(busy, 0, RELEASE)
    return 0


def functions() -> list[object]:
    """The module."""
    return [foreign]
