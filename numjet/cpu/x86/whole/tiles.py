"""Pieces of tiles of products as machine code.

Of AVX-512 vectors 0-23 are sums, 24-27 the row of B, 28-31 an element of A in all lanes; k1 has the
last columns. Of AVX2 0-11 are sums, 12 and 13 the row of B, 14 an element of A; 15 has the columns.
For: `product`, and `segments` whose strips share registers and stack with those there.
"""

from __future__ import annotations

from numjet.base.record import NamedTuple
from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, OPS, Code, Op
from numjet.cpu.x86.front.types import VECTORS
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
)


class Registers(NamedTuple):
    """Where the row of B begins, the elements of A, how many of these there are, and the mask."""

    row: int
    element: int
    elements: int
    mask: int


_WIDE, _NARROW = Registers(24, 28, 4, 1), Registers(12, 14, 1, 15)
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


def registers() -> Registers:
    """Those of the vectors that code is made for."""
    return _NARROW if VECTORS.narrow else _WIDE


def _each(code: Code, op: Op, operands: list[tuple[int, int, int]]) -> None:
    """`op` on each of (register, register, register), of whole vectors."""
    if not VECTORS.narrow:
        encode.rrs(code, op, operands)
        return
    for one in operands:
        encode.rr(code, op, *one, length=VECTORS.length)


def clear(code: Code, sums: int) -> None:
    _each(code, OPS["vpxord"], [(s, s, s) for s in range(sums)])


def _move(code: Code, size: int, vector: int, where: Memory, v: int, masked: bool, to: str) -> None:
    base, index, scale, disp = where
    kind, disp = "ps" if size == 4 else "pd", disp + VECTORS.bytes * v
    if masked and VECTORS.narrow:
        op = OPS[f"vmaskmov{kind}{to}"]
        encode.rm(code, op, vector, _NARROW.mask, base, index, scale, disp, length=1)
        return
    k = int(masked)
    op = OPS[f"vmovu{kind}{to}"]
    encode.rm(code, op, vector, 0, base, index, scale, disp, k, 0 if to else k, VECTORS.length)


def load(code: Code, size: int, vector: int, where: Memory, v: int, masked: bool) -> None:
    """Read the `v`th vector from an address on; lanes beyond a mask are not read and become 0."""
    _move(code, size, vector, where, v, masked, "")


def add(code: Code, size: int, vector: int, where: Memory, v: int, masked: bool) -> None:
    """Add what lies there to a vector."""
    op = OPS["vaddps" if size == 4 else "vaddpd"]
    if masked and VECTORS.narrow:
        load(code, size, _NARROW.element, where, v, masked)
        encode.rr(code, op, vector, vector, _NARROW.element, length=1)
        return
    base, index, scale, disp = where
    disp += VECTORS.bytes * v
    k = int(masked)
    encode.rm(code, op, vector, vector, base, index, scale, disp, k, length=VECTORS.length)


def load_row(code: Code, size: int, at: int, vectors: int, masked: bool) -> None:
    """The row of B at a register's address."""
    for v in range(vectors):
        last = masked and v == vectors - 1
        load(code, size, registers().row + v, (at, None, 1, 0), v, last)


def multiply(
    code: Code, size: int, rows: list[Memory], at: int, vectors: int, masked: bool
) -> None:
    """One step of the depth: the sums plus each element of A at `rows` times the row of B."""
    kind, one = ("ps", "ss") if size == 4 else ("pd", "sd")
    fma, broadcast = OPS["vfmadd231" + kind], OPS["vbroadcast" + one]
    row, element, elements, _ = registers()
    load_row(code, size, at, vectors, masked)
    for r, where in enumerate(rows):
        if vectors == 1 and not VECTORS.narrow:
            encode.rm(code, fma, r, row, *where, broadcast=1)
            continue
        x = element + r % elements
        encode.rm(code, broadcast, x, 0, *where, length=VECTORS.length)
        _each(code, fma, [(r * vectors + v, x, row + v) for v in range(vectors)])


def store(code: Code, size: int, rows: list[Memory], vectors: int, masked: bool) -> None:
    """Write the sums to C."""
    for r, where in enumerate(rows):
        for v in range(vectors):
            last = masked and v == vectors - 1
            _move(code, size, r * vectors + v, where, v, last, "_s")


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
    gm(code, GPR["movi"], 0, RSP, None, 1, BRS, 8, vectors * VECTORS.bytes)
    gr(code, mov, R12, R8)
    gr(code, GPR["test"], R12, R12)
    code.jump_if(EQUAL, finished)
    code.place(again)
    load_row(code, p.size, R11, vectors, masked)
    for v in range(vectors):
        _move(code, p.size, registers().row + v, (RAX, None, 1, 0), v, False, "_s")
    gr(code, GPR["add"], R11, RBX)
    gr(code, GPR["addi"], 0, RAX, 8, vectors * VECTORS.bytes)
    gr(code, GPR["subi"], 0, R12, 8, 1)
    code.jump_if(NOT_ZERO, again)
    code.place(finished)


def mask_columns(code: Code, size: int, nbytes: int) -> tuple[int, bool]:
    """The vectors of a row, and whether the last one is not whole: the mask has its lanes then."""
    vectors, over = -(-nbytes // VECTORS.bytes), nbytes % VECTORS.bytes
    if over and VECTORS.narrow:
        lanes = code.constant(bytes([255] * over + [0] * (VECTORS.bytes - over)))
        encode.rip(code, OPS["vmovups"], _NARROW.mask, 0, lanes, length=1)
    elif over:
        encode.move_constant(code, RAX, (1 << over // size) - 1)
        encode.rr(code, OPS["kmovd_r"], _WIDE.mask, 0, RAX)
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
