"""Products as machine code at once: what `kernels.small` and `gemm_tiles` would write as IR.

For: functions whose `Writer.whole` is `product` or `strip` here. A tenth of the time of the same
loops as IR, selected and allocated: tiles, sums and registers are known beforehand. The tiles and
the order of the sums are those of the IR, so results have the same bits (tests/cpu/x86). Nothing is
checked that its writers know: strides of whole tiles of static shape fit 32 bits.

Vectors are used as `tiles` says. In `product`, rdi, rsi, rdx are A, B, C; rax and r8 A and C of a
tile, r9 its row, r11 the row of B, rcx the steps that are left and r10 the strips.
"""

from __future__ import annotations

from numjet.base.record import NamedTuple
from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, Code
from numjet.cpu.x86.front.types import VECTORS
from numjet.cpu.x86.whole.functions import (
    EQUAL,
    GREATER,
    LESS,
    LESS_OR_EQUAL,
    NOT_ZERO,
    R8,
    R9,
    R10,
    R11,
    R12,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    RSI,
    RSP,
    enter,
    leave,
)
from numjet.cpu.x86.whole.tiles import (
    BRS,
    DEPTH,
    FROM_A,
    FROM_B,
    LEFT,
    LOCALS,
    OLD,
    Memory,
    Strip,
    add_up,
    clear,
    copied,
    load,
    mask_columns,
    multiply,
    row_places,
    store,
)


class Product(NamedTuple):
    """C = A·B: sizes, bytes of an element (4 or 8), strides in bytes (A's along rows and depth, B's
    and C's along rows), and the vectors and rows of a tile."""

    size: int
    m: int
    n: int
    k: int
    ars: int
    acs: int
    brs: int
    crs: int
    vectors: int
    rows: int


def product(code: Code, p: Product) -> None:
    """Append `void product(ptr a, ptr b, ptr c)`."""
    width = p.vectors * VECTORS.bytes
    whole, rest = divmod(p.n * p.size, width)
    if whole > 1:
        encode.move_constant(code, R10, whole)
        again = code.label()
        code.place(again)
    if whole:
        _strip(code, p, width)
        if whole > 1 or rest:
            encode.gr(code, GPR["addi"], 0, RSI, 8, width)
            encode.gr(code, GPR["addi"], 0, RDX, 8, width)
    if whole > 1:
        encode.gr(code, GPR["subi"], 0, R10, 4, 1)
        code.jump_if(NOT_ZERO, again)
    if rest:
        _strip(code, p, rest)
    code.buffer += encode.VZEROUPPER
    code.buffer += encode.RET


def _strip(code: Code, p: Product, nbytes: int) -> None:
    """All rows of so many bytes of columns."""
    gr, mov = encode.gr, GPR["mov"]
    vectors, masked = mask_columns(code, p.size, nbytes)
    if p.m == p.rows:
        gr(code, mov, RAX, RDI)
        gr(code, mov, R8, RDX)
        _tile(code, p, vectors, masked)
        return
    gr(code, GPR["xor"], R9, R9, 4)
    again = code.label()
    code.place(again)
    row = R9
    if p.m % p.rows:  # the last tile overlaps the one before
        row = RAX
        encode.move_constant(code, row, p.m - p.rows)
        gr(code, GPR["cmp"], R9, row)
        gr(code, GPR["cmovl"], row, R9)
    gr(code, GPR["imuli"], R8, row, 8, p.crs)
    gr(code, GPR["imuli"], RAX, row, 8, p.ars)
    gr(code, GPR["add"], R8, RDX)
    gr(code, GPR["add"], RAX, RDI)
    _tile(code, p, vectors, masked)
    gr(code, GPR["addi"], 0, R9, 8, p.rows)
    gr(code, GPR["cmpi"], 0, R9, 8, p.m)
    code.jump_if(LESS, again)


def _tile(code: Code, p: Product, vectors: int, masked: bool) -> None:
    """A tile of C, whose sums stay in registers."""
    addi = GPR["addi"]
    clear(code, p.rows * vectors)
    encode.gr(code, GPR["mov"], R11, RSI)
    encode.move_constant(code, RCX, p.k)
    code.align(32)
    again = code.label()
    code.place(again)
    rows: list[Memory] = [(RAX, None, 1, r * p.ars) for r in range(p.rows)]
    multiply(code, p.size, rows, R11, vectors, masked)
    encode.gr(code, addi, 0, RAX, 8, p.acs)
    encode.gr(code, addi, 0, R11, 8, p.brs)
    encode.gr(code, GPR["subi"], 0, RCX, 4, 1)
    code.jump_if(NOT_ZERO, again)
    store(code, p.size, [(R8, None, 1, r * p.crs) for r in range(p.rows)], vectors, masked)


# Steps of the depth that go through all rows before the next ones begin, so that so many rows of B
# (24 KB) stay in the first-level cache: for at least so many times their number, and tiles, where
# each step reads other lines of A (a tenth less for the gradients of weights; an A whose depth is
# in order gains nothing).
PART, MANY_PARTS, MANY_TILES = 96, 1.5, 5
_LINE = 64  # bytes of a line of the cache


def strip(code: Code, p: Strip) -> None:
    """Append the function of `gemm_tiles` whose kind is `once`.

    rdi, rsi, rdx, rcx, r8, r9 are table, A, B, C, depth and rows; the third, second and fifth are
    those of a part of the depth. rbx is A's stride along the depth, r11 the row of the tile, rax
    and rbp where A and B are read, r12 the steps that are left. r13 is the stride of A's or C's
    rows; r14, r15, r10 are 3, 5 and 7 times that. Sums go on from what C holds of the parts before,
    so that parts do not change them. The last tile overlaps the one before, and takes all of the
    depth at once.
    """
    gr, gm, mov, add = encode.gr, encode.gm, GPR["mov"], GPR["add"]
    enter(code, LOCALS)
    vectors, masked = mask_columns(code, p.size, p.columns * p.size)
    copied(code, p, vectors, masked)
    gm(code, mov, RBX, RDI, None, 1, p.acs)
    for register, place in ((RSI, FROM_A), (RDX, FROM_B), (R8, DEPTH), (R8, LEFT)):
        gm(code, GPR["mov_s"], register, RSP, None, 1, place)
    gm(code, GPR["movi"], 0, RSP, None, 1, OLD, 8, 0)
    parts, tiles, ends, last, finished = (code.label() for _ in range(5))
    gr(code, GPR["cmpi"], 0, RBX, 8, _LINE)
    code.jump_if(LESS_OR_EQUAL, parts)
    gr(code, GPR["cmpi"], 0, R8, 8, int(MANY_PARTS * PART))
    code.jump_if(LESS, parts)
    gr(code, GPR["cmpi"], 0, R9, 8, MANY_TILES * p.rows)
    code.jump_if(LESS, parts)
    encode.move_constant(code, R8, PART)
    code.place(parts)
    gr(code, GPR["xor"], R11, R11, 4)
    code.place(tiles)
    gm(code, GPR["lea"], RAX, R11, None, 1, p.rows)
    gr(code, GPR["cmp"], RAX, R9)
    code.jump_if(GREATER, ends)
    _part_of_tile(code, p, vectors, masked)
    gr(code, GPR["addi"], 0, R11, 8, p.rows)
    code.jump(tiles)
    code.place(ends)
    gm(code, GPR["sub_s"], R8, RSP, None, 1, LEFT)
    code.jump_if(LESS_OR_EQUAL, last)
    gr(code, mov, RAX, R8)
    gr(code, GPR["imul"], RAX, RBX)
    gr(code, add, RSI, RAX)
    gr(code, mov, RAX, R8)
    gm(code, GPR["imul"], RAX, RSP, None, 1, BRS)
    gr(code, add, RDX, RAX)
    gm(code, GPR["movi"], 0, RSP, None, 1, OLD, 8, 1)
    gm(code, GPR["cmp"], R8, RSP, None, 1, LEFT)
    gm(code, GPR["cmovg"], R8, RSP, None, 1, LEFT)
    code.jump(parts)
    code.place(last)
    gr(code, GPR["cmp"], R11, R9)
    code.jump_if(EQUAL, finished)
    for register, place in ((RSI, FROM_A), (RDX, FROM_B), (R8, DEPTH)):
        gm(code, mov, register, RSP, None, 1, place)
    gm(code, GPR["mov_s"], R8, RSP, None, 1, LEFT)
    gm(code, GPR["movi"], 0, RSP, None, 1, OLD, 8, 0)
    gm(code, GPR["lea"], R11, R9, None, 1, -p.rows)
    code.jump(tiles)
    code.place(finished)
    leave(code, LOCALS)


def _part_of_tile(code: Code, p: Strip, vectors: int, masked: bool) -> None:
    """A tile's sums of a part of the depth, from 0 or what C holds on, written to C."""
    gr, gm, mov, add = encode.gr, encode.gm, GPR["mov"], GPR["add"]
    begins, ready, finished = (code.label() for _ in range(3))
    gm(code, GPR["cmpi"], 0, RSP, None, 1, OLD, 8, 0)
    code.jump_if(EQUAL, begins)
    gr(code, mov, RAX, R11)
    rows = row_places(code, p.crs, p.rows)
    gr(code, add, RAX, RCX)
    for r, where in enumerate(rows):
        for v in range(vectors):
            load(code, p.size, r * vectors + v, where, v, masked and v == vectors - 1)
    code.jump(ready)
    code.place(begins)
    clear(code, p.rows * vectors)
    code.place(ready)
    gr(code, mov, RAX, R11)
    rows = row_places(code, p.ars, p.rows)
    gr(code, add, RAX, RSI)
    gr(code, mov, RBP, RDX)
    gr(code, mov, R12, R8)
    gr(code, GPR["test"], R12, R12)
    code.jump_if(EQUAL, finished)
    add_up(code, p, rows, vectors, masked)
    code.place(finished)
    gr(code, mov, RAX, R11)
    rows = row_places(code, p.crs, p.rows)
    gr(code, add, RAX, RCX)
    store(code, p.size, rows, vectors, masked)
