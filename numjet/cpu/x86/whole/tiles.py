"""Pieces of tiles of products as machine code.

Vectors 0-23 are sums, 24-27 the row of B, 28-31 an element of A in all lanes; k1 has the last
columns. For: `product`, and `segments` whose strips share registers and stack with those there.
"""

from __future__ import annotations

from typing import NamedTuple

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, OPS, Code
from numjet.cpu.x86.whole.functions import (
    EQUAL,
    NOT_ZERO,
    R8,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBP,
    RBX,
    RDI,
    RDX,
    RSP,
    SAVED,
    VECTOR,
)

ROW, ELEMENT = 24, 28
Memory = tuple[int, int | None, int, int]  # base, index, scale, displacement
# Steps of the depth by which a strip prefetches A, a scale of addresses: the hardware's prefetchers
# miss the lines of an A whose rows are next to each other, each of which is on another page (1.6 to
# 3.5 times as fast).
AHEAD = 8


class Strip(NamedTuple):
    """A strip of C of so many columns, tile by tile of so many rows: bytes of an element, and
    where a table of 64-bit integers has A's strides along rows and depth, and C's along rows."""

    size: int
    columns: int
    rows: int
    ars: int
    acs: int
    crs: int


# On the stack: where A and B began, the depth, how much of it is left, whether C holds a part; and
# what the caller has put there, behind the registers and the return address.
FROM_A, FROM_B, DEPTH, LEFT, OLD, LOCALS = range(0, 48, 8)
BRS, SCRATCH = [LOCALS + 8 * len(SAVED) + x for x in (8, 24)]


def clear(code: Code, sums: int) -> None:
    encode.rrs(code, OPS["vpxord"], [(s, s, s) for s in range(sums)])


def load_row(code: Code, size: int, at: int, vectors: int, masked: bool) -> None:
    """The row of B at a register's address; lanes beyond the columns are not read and become 0."""
    load = OPS["vmovups" if size == 4 else "vmovupd"]
    for v in range(vectors):
        k = int(masked and v == vectors - 1)
        encode.rm(code, load, ROW + v, 0, at, None, 1, VECTOR * v, k, k)


def multiply(
    code: Code, size: int, rows: list[Memory], at: int, vectors: int, masked: bool
) -> None:
    """One step of the depth: the sums plus each element of A at `rows` times the row of B."""
    rm, rrs = encode.rm, encode.rrs
    kind, one = ("ps", "ss") if size == 4 else ("pd", "sd")
    add, broadcast = OPS["vfmadd231" + kind], OPS["vbroadcast" + one]
    load_row(code, size, at, vectors, masked)
    for r, where in enumerate(rows):
        if vectors == 1:
            rm(code, add, r, ROW, *where, broadcast=1)
            continue
        x = ELEMENT + r % 4
        rm(code, broadcast, x, 0, *where)
        rrs(code, add, [(r * vectors + v, x, ROW + v) for v in range(vectors)])


def store(code: Code, size: int, rows: list[Memory], vectors: int, masked: bool) -> None:
    """Write the sums to C."""
    store = OPS["vmovups_s" if size == 4 else "vmovupd_s"]
    for r, (base, index, scale, disp) in enumerate(rows):
        for v in range(vectors):
            k = int(masked and v == vectors - 1)
            encode.rm(
                code, store, r * vectors + v, 0, base, index, scale, disp + VECTOR * v, k
            )


def row_places(code: Code, field: int, count: int) -> list[Memory]:
    """The tile's rows from rax on: it becomes its product with a stride, that of the table."""
    gr, gm, lea = encode.gr, encode.gm, GPR["lea"]
    gm(code, GPR["mov"], R13, RDI, None, 1, field)
    gr(code, GPR["imul"], RAX, R13)
    gm(code, lea, R14, R13, R13, 2)
    gm(code, lea, R15, R13, R13, 4)
    rows: list[Memory] = [
        (RAX, None, 1, 0), (RAX, R13, 1, 0), (RAX, R13, 2, 0), (RAX, R14, 1, 0),
        (RAX, R13, 4, 0), (RAX, R15, 1, 0), (RAX, R14, 2, 0), (RAX, R10, 1, 0),
    ]  # fmt: skip
    if count > 7:
        gm(code, lea, R10, R14, R13, 4)
    return rows[:count]


def copied(code: Code, p: Strip, vectors: int, masked: bool) -> None:
    """Copy B's rows next to each other unless `scratch` is null; rdx and the stride follow."""
    gr, gm, mov = encode.gr, encode.gm, GPR["mov"]
    again, finished = code.label(), code.label()
    gm(code, mov, RAX, RSP, None, 1, SCRATCH)
    gr(code, GPR["test"], RAX, RAX)
    code.jump_if(EQUAL, finished)
    gr(code, mov, R11, RDX)
    gr(code, mov, RDX, RAX)
    gm(code, mov, RBX, RSP, None, 1, BRS)
    gm(code, GPR["movi"], 0, RSP, None, 1, BRS, 8, vectors * VECTOR)
    gr(code, mov, R12, R8)
    gr(code, GPR["test"], R12, R12)
    code.jump_if(EQUAL, finished)
    code.place(again)
    load_row(code, p.size, R11, vectors, masked)
    for v in range(vectors):
        encode.rm(code, OPS["vmovups_s"], ROW + v, 0, RAX, None, 1, VECTOR * v)
    gr(code, GPR["add"], R11, RBX)
    gr(code, GPR["addi"], 0, RAX, 8, vectors * VECTOR)
    gr(code, GPR["subi"], 0, R12, 8, 1)
    code.jump_if(NOT_ZERO, again)
    code.place(finished)

def mask_columns(code: Code, p: Strip) -> tuple[int, bool]:
    """The vectors of a row, and whether the last one is not whole: k1 has its columns then."""
    vectors, over = -(-p.columns * p.size // VECTOR), p.columns * p.size % VECTOR
    if over:
        encode.move_constant(code, RAX, (1 << over // p.size) - 1)
        encode.rr(code, OPS["kmovd_r"], 1, 0, RAX)
    return vectors, bool(over)

def add_up(code: Code, p: Strip, rows: list[Memory], vectors: int, masked: bool) -> None:
    """The sums over r12 > 0 steps of the depth, from rax in A and rbp in B on."""
    again = code.label()
    code.align(32)
    code.place(again)
    encode.gm(code, GPR["prefetcht0"], 0, RAX, RBX, AHEAD, 0)
    multiply(code, p.size, rows, RBP, vectors, masked)
    encode.gr(code, GPR["add"], RAX, RBX)
    encode.gm(code, GPR["add"], RBP, RSP, None, 1, BRS)
    encode.gr(code, GPR["subi"], 0, R12, 8, 1)
    code.jump_if(NOT_ZERO, again)
