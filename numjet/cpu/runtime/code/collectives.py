"""Collectives of compiled programs as calls of the MPI library (`runtime.mpi`).

A program's step calls `collective` with a table: what is to be done (`Collective`), the operand,
the result. Arguments that MPI declares as 32-bit integers or as handles are passed as 64 bits: in
the calling conventions of 64-bit systems these lie in one place each, of which C reads its part.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    Array,
    Double,
    External,
    Int,
    Int8,
    Int32,
    Pointer,
    Record,
    Single,
    copy,
    native,
    stack,
)

memset = External("memset", Callable[[Pointer, Int32, Int], Pointer])

# What a call is: of MPI_Allreduce or MPI_Reduce_scatter_block, of MPI_Allgather or MPI_Alltoall, of
# MPI_Sendrecv, or of nothing (a process that sends to itself); MPI_Iallreduce and its MPI_Wait.
REDUCE, GATHER, EXCHANGE, STAY, START, WAIT = range(6)
STATUS_BYTES = 256  # more than any MPI's MPI_Status

Reduce = Callable[[Pointer, Pointer, Int, Int, Int, Int], Int32]
Start = Callable[[Int, Pointer, Int, Int, Int, Int, Pointer], Int32]
Wait = Callable[[Pointer, Pointer], Int32]
Gather = Callable[[Pointer, Int, Int, Pointer, Int, Int, Int], Int32]
Exchange = Callable[
    [Pointer, Int, Int, Int, Int, Pointer, Int, Int, Int, Int, Int, Pointer], Int32
]
Report = Callable[[Int], Int32]


class State(Record):
    """What a process does: the address of the collective that it waits in, 0 outside of them, and
    how many it has begun. The watch reads it."""

    call: Int
    begun: Int


class Collective(Record):
    """A collective of a program: which function of MPI, and its arguments beside the memory.

    bytes: of the result. part: how many elements go to one call of a reduction, of `width` bytes
    each. request: where MPI's word for what was begun stands. inplace: what MPI takes in the place
    of an operand that lies in the result. report: what is called with MPI's error code.
    """

    kind: Int
    reduce: Reduce
    gather: Gather
    exchange: Exchange
    start: Start
    wait: Wait
    count: Int
    part: Int
    width: Int
    type: Int
    op: Int
    comm: Int
    target: Int
    source: Int
    nobody: Int
    bytes: Int
    request: Array[Int]
    inplace: Int
    state: State
    report: Report


@native
def exchange(call: Collective, sent: Pointer, got: Pointer) -> Int32:
    """Send to one process and receive from another; what nobody sends to is zero."""
    if call.source == call.nobody:
        memset(got, 0, call.bytes)
    status = stack(Int8, STATUS_BYTES)
    return call.exchange(
        sent, call.count, call.type, call.target, 0,
        got, call.count, call.type, call.source, 0, call.comm, status,
    )  # fmt: skip


@native
def reduce(call: Collective, sent: Pointer, got: Pointer) -> Int32:
    """A reduction, part by part."""
    code = 0
    done = 0
    while done < call.count and code == 0:
        count = min(call.part, call.count - done)
        at = done * call.width
        code = call.reduce(
            Pointer(Int(sent) + at), Pointer(Int(got) + at), count, call.type, call.op, call.comm
        )
        done += count
    return code


@native
def move(call: Collective, source: Pointer, target: Pointer) -> None:
    """Copy the operand to the result, where they are not the same memory."""
    if source != target:
        copy(Array[Int8](target), Array[Int8](source), call.bytes)


@native
def collective(operands: Array[Pointer]) -> Int32:
    """One collective; 1 when it failed."""
    call = Collective(operands[0])
    state = call.state
    sent = operands[1]
    got = operands[2]
    state.begun = state.begun + 1
    state.call = Int(call)
    code = 0
    if call.kind == REDUCE:
        code = reduce(call, sent, got)
    elif call.kind == GATHER:
        code = call.gather(sent, call.count, call.type, got, call.count, call.type, call.comm)
    elif call.kind == EXCHANGE:
        code = exchange(call, sent, got)
    elif call.kind == START:
        move(call, sent, got)
        code = call.start(
            call.inplace, got, call.count, call.type, call.op, call.comm, call.request
        )
    elif call.kind == WAIT:
        status = stack(Int8, STATUS_BYTES)
        code = call.wait(call.request, status)
        move(call, sent, got)
    else:
        move(call, sent, got)
    state.call = 0
    return 0 if code == 0 else call.report(code)


# ------------------------------------------------------------------ extremes that keep NaN


@native
def most_f32(a: Array[Single], b: Array[Single], count: Array[Int32], kind: Pointer) -> None:
    """b = max(a, b), element by element; NaN where one is."""
    for k in range(count[0]):
        x = a[k]
        if x > b[k] or x != x:
            b[k] = x


@native
def most_f64(a: Array[Double], b: Array[Double], count: Array[Int32], kind: Pointer) -> None:
    """b = max(a, b), element by element; NaN where one is."""
    for k in range(count[0]):
        x = a[k]
        if x > b[k] or x != x:
            b[k] = x


@native
def least_f32(a: Array[Single], b: Array[Single], count: Array[Int32], kind: Pointer) -> None:
    """b = min(a, b), element by element; NaN where one is."""
    for k in range(count[0]):
        x = a[k]
        if x < b[k] or x != x:
            b[k] = x


@native
def least_f64(a: Array[Double], b: Array[Double], count: Array[Int32], kind: Pointer) -> None:
    """b = min(a, b), element by element; NaN where one is."""
    for k in range(count[0]):
        x = a[k]
        if x < b[k] or x != x:
            b[k] = x


def functions() -> list[object]:
    """The module."""
    return [collective, most_f32, most_f64, least_f32, least_f64]
