"""The steps of a program walked as data, the entry that takes array objects, lent memory, and
library functions lane by lane (`runtime.programs`; `runtime.entry` describes the tables)."""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    ACQUIRE,
    RELAXED,
    RELEASE,
    Array,
    Double,
    External,
    Inline,
    Int,
    Int8,
    Int32,
    Pointer,
    Record,
    Records,
    Single,
    Static,
    atomic_exchange,
    atomic_load,
    compare_exchange,
    copy,
    lshr,
    native,
    stack,
)
from numjet.cpu.runtime.entry import (
    CALL,
    CHUNKS,
    CONTIGUOUS_ALIGNED,
    COPY,
    DATA_OFFSET,
    FLAGS_OFFSET,
    HOST,
    KIND_BITS,
)

malloc = External("malloc", Callable[[Int], Pointer])
free = External("free", Callable[[Pointer], None])

# Blocks of memory that functions borrow while they run, in place of much of the stack: each size
# has slots for warm blocks that nobody has, and larger ones come from malloc.
SLOTS, SMALLEST, SIZES = 64, 14, 9  # 16 KiB to 4 MiB
ALIGNMENT = 64
# A table of so many pointers lies on the stack.
FEW = 512


class Blocks(Record):
    """The blocks that nobody has, by size."""

    room = {"address": SLOTS * SIZES}
    address: Inline[Int]


class BlockHead(Record):
    """What stands before a block: its size's number and the address that malloc gave."""

    number: Int
    raw: Pointer


HEAD = 16
blocks = Static(Blocks, "blocks")


@native
def size_number(bytes: Int) -> Int:
    """The number of the smallest size that is large enough."""
    number = 0
    while 1 << (SMALLEST + number) < bytes:
        number += 1
    return number


@native
def program_take(bytes: Int) -> Pointer:
    """Lend memory."""
    number = size_number(bytes)
    if number < SIZES:
        slots = blocks.address[number * SLOTS:]
        for k in range(SLOTS):
            if atomic_load(slots[k:], RELAXED) != 0:
                got = atomic_exchange(slots[k:], 0, ACQUIRE)
                if got != 0:
                    return Pointer(got)
    raw = malloc((1 << (SMALLEST + number)) + 2 * ALIGNMENT)
    block = Pointer((Int(raw) + 2 * ALIGNMENT - 1) & -ALIGNMENT)
    head = BlockHead(block + -HEAD)
    head.number = number
    head.raw = raw
    return block


@native
def program_give(block: Pointer) -> None:
    """Take memory back."""
    head = BlockHead(block + -HEAD)
    if head.number < SIZES:
        slots = blocks.address[head.number * SLOTS:]
        for k in range(SLOTS):
            if compare_exchange(slots[k:], 0, Int(block), RELEASE, RELAXED) == 0:
                return
    free(head.raw)


# ------------------------------------------------------------------ programs

Main = Callable[[Array[Pointer], Array[Pointer], Pointer, Pointer], Int32]
ParallelFor = Callable[[Pointer, Array[Pointer], Int, Int], None]


class Place(Record):
    """A place of a program: which table, which of its entries (both as byte offsets), an offset."""

    table: Int32
    entry: Int32
    offset: Int


class Program(Record):
    """What a program is as data (`entry.PROGRAM`)."""

    sized = {"places": "count"}
    count: Int
    places: Records[Place]
    functions: Array[Pointer]
    steps: Pointer
    bytes: Int
    most: Int


class Consts(Record):
    """The head of a program's table of constants (`entry.CONSTS`)."""

    program: Program
    main: Main
    inputs: Int
    outputs: Int
    parallel_for: ParallelFor


class Step(Record):
    """A step: number and kind, how many operands, two numbers, and the operands' places. They lie
    at multiples of four bytes."""

    packed = True
    sized = {"places": "count"}
    word: Int32
    count: Int32
    one: Int
    two: Int
    places: Inline[Int32]


Kernel = Callable[[Array[Pointer]], None]
Callback = Callable[[Array[Pointer]], Int32]
STEP_BYTES = 24  # of a step without operands


@native
def read_data(objects: Array[Pointer], pointers: Array[Pointer], n: Int) -> Int:
    """The data pointers of NumPy arrays, and the flags that all of them have."""
    flags = -1
    for k in range(n):
        array = objects[k]
        flags = flags & Array[Int32](array + FLAGS_OFFSET)[0]
        pointers[k] = Array[Pointer](array + DATA_OFFSET)[0]
    return flags


@native
def program_objects(
    inputs: Array[Pointer], outputs: Array[Pointer], arena: Pointer, consts: Consts
) -> Int32:
    """A program on NumPy arrays; 2, and nothing done, when one is not contiguous and aligned."""
    count = consts.inputs + consts.outputs
    pointers = stack(Pointer, count) if count <= FEW else Array[Pointer](program_take(8 * count))
    results = pointers[consts.inputs:]
    flags = read_data(inputs, pointers, consts.inputs)
    flags = flags & read_data(outputs, results, consts.outputs)
    status = 2
    if flags & CONTIGUOUS_ALIGNED == CONTIGUOUS_ALIGNED:
        status = consts.main(pointers, results, arena, consts)
    if count > FEW:
        program_give(pointers)
    return status


@native
def program_places(
    inputs: Array[Pointer], outputs: Array[Pointer], arena: Pointer, consts: Consts,
    places: Array[Pointer],
) -> None:  # fmt: skip
    """The addresses of a program's places."""
    tables = stack(Pointer, 4)  # as `entry.TABLES` has them
    arenas = stack(Pointer)
    arenas[0] = arena
    tables[0] = arenas
    tables[1] = inputs
    tables[2] = outputs
    tables[3] = consts
    program = consts.program
    for k in range(program.count):
        x = program.places[k]
        table = Array[Pointer](Pointer(tables) + x.table)[0]
        places[k] = Array[Pointer](table + x.entry)[0] + x.offset


@native
def program_steps(consts: Consts, places: Array[Pointer], start: Int, bytes: Int) -> Int32:
    """A part of a program's steps on its places; 1 when a callback into Python failed."""
    program = consts.program
    most = program.most
    operands = stack(Pointer, most) if most <= FEW else Array[Pointer](program_take(8 * most))
    at = program.steps + start
    end = at + bytes
    failed = 0
    while failed == 0 and at < end:
        step = Step(at)
        for k in range(step.count):
            operands[k] = places[step.places[k]]
        kind = step.word & (1 << KIND_BITS) - 1
        number = lshr(step.word & 0xFFFFFFFF, KIND_BITS)
        at = at + (STEP_BYTES + 4 * step.count)
        if kind == CALL:
            Array[Kernel](program.functions)[number](operands)
        elif kind == CHUNKS:
            consts.parallel_for(program.functions[number], operands, step.one, step.two)
        elif kind == COPY:
            copy(Array[Int8](operands[0]), Array[Int8](operands[1]), step.one)
        elif kind == HOST:
            status = operands[step.count:]
            status[0] = Pointer(1)
            failed = Array[Callback](consts)[number](operands)
            if step.one == 0:  # what it returned says nothing: `HostStep`
                failed = Int(status[0])
        else:
            inside = Int(at) - Int(program.steps)
            for _ in range(step.one):
                failed = program_steps(consts, places, inside, step.two)
                if failed != 0:
                    break
            at = at + step.two
    if most > FEW:
        program_give(operands)
    return 1 if failed != 0 else 0


@native
def program_run(
    inputs: Array[Pointer], outputs: Array[Pointer], arena: Pointer, consts: Consts
) -> Int32:
    """A program that is all data."""
    program = consts.program
    n = program.count
    places = stack(Pointer, n) if n <= FEW else Array[Pointer](program_take(8 * n))
    program_places(inputs, outputs, arena, consts, places)
    status = program_steps(consts, places, 0, program.bytes)
    if n > FEW:
        program_give(places)
    return status


# ------------------------------------------------------------------ library functions

Unary = Callable[[Double], Double]
Binary = Callable[[Double, Double], Double]


@native
def lanes_f32_1(function: Unary, n: Int, x: Array[Single]) -> None:
    """x = function(x), element by element, in double precision."""
    for k in range(n):
        x[k] = Single(function(Double(x[k])))


@native
def lanes_f32_2(function: Binary, n: Int, x: Array[Single], y: Array[Single]) -> None:
    """x = function(x, y), element by element, in double precision."""
    for k in range(n):
        x[k] = Single(function(Double(x[k]), Double(y[k])))


@native
def lanes_f64_1(function: Unary, n: Int, x: Array[Double]) -> None:
    """x = function(x), element by element."""
    for k in range(n):
        x[k] = function(x[k])


@native
def lanes_f64_2(function: Binary, n: Int, x: Array[Double], y: Array[Double]) -> None:
    """x = function(x, y), element by element."""
    for k in range(n):
        x[k] = function(x[k], y[k])


def functions() -> list[object]:
    """The module."""
    return [
        program_take, program_give, program_objects, program_places, program_steps, program_run,
        lanes_f32_1, lanes_f32_2, lanes_f64_1, lanes_f64_2,
    ]  # fmt: skip
