"""The strips of products that `gemm_tiles` calls `general`, as machine code at once.

They add up several segments of the depth, as rows of a kernel that slides over an image are, may
go on from what C holds, and have any number of rows: those that are left below the last whole tile
are a tile of exactly their number. Otherwise they are as `product.strip`, whose registers and
stack they use. What would break it: another order of the sums than that of the IR (tests/cpu/x86).
"""

from __future__ import annotations

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, Code
from numjet.cpu.x86.whole.functions import (
    EQUAL,
    GREATER,
    NOT_ZERO,
    R8,
    R9,
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
    LEFT,
    LOCALS,
    Strip,
    add,
    add_up,
    clear,
    copied,
    mask_columns,
    row_places,
    store,
)

_ADDS = BRS + 8  # on the stack: whether C holds something to go on from


def strip(code: Code, p: Strip, segments: int, step: int) -> None:
    """Append the function of `gemm_tiles` whose kind is `general`.

    segments, step: where the table has their number, and how far apart they are in A. Registers
    are those of `product.strip`.
    """
    gr, gm, mov = encode.gr, encode.gm, GPR["mov"]
    enter(code, LOCALS)
    vectors, masked = mask_columns(code, p.size, p.columns * p.size)
    gm(code, GPR["mov_s"], R8, RSP, None, 1, DEPTH)
    gm(code, GPR["imul"], R8, RDI, None, 1, segments)
    copied(code, p, vectors, masked)
    gm(code, mov, R8, RSP, None, 1, DEPTH)
    gm(code, mov, RBX, RDI, None, 1, p.acs)
    gr(code, GPR["xor"], R11, R11, 4)
    tiles, rest, finished = code.label(), code.label(), code.label()
    code.place(tiles)
    gm(code, GPR["lea"], RAX, R11, None, 1, p.rows)
    gr(code, GPR["cmp"], RAX, R9)
    code.jump_if(GREATER, rest)
    _tile(code, p, segments, step, vectors, masked)
    gr(code, GPR["addi"], 0, R11, 8, p.rows)
    code.jump(tiles)
    code.place(rest)
    gr(code, mov, RAX, R9)
    gr(code, GPR["sub"], RAX, R11)
    few = [code.label() for _ in range(p.rows - 1)]
    for number, label in enumerate(few, 1):
        gr(code, GPR["cmpi"], 0, RAX, 8, number)
        code.jump_if(EQUAL, label)
    code.jump(finished)
    for number, label in enumerate(few, 1):
        code.place(label)
        _tile(code, p._replace(rows=number), segments, step, vectors, masked)
        if number < len(few):
            code.jump(finished)
    code.place(finished)
    leave(code, LOCALS)


def _tile(code: Code, p: Strip, segments: int, step: int, vectors: int, masked: bool) -> None:
    """A tile of C from row r11 on."""
    gr, gm, mov, plus = encode.gr, encode.gm, GPR["mov"], GPR["add"]
    segment, summed, stores = (code.label() for _ in range(3))
    gr(code, mov, RAX, R11)
    rows = row_places(code, p.ars, p.rows)
    gr(code, plus, RAX, RSI)
    clear(code, p.rows * vectors)
    gr(code, mov, RBP, RDX)
    gm(code, mov, R12, RDI, None, 1, segments)
    gm(code, GPR["mov_s"], R12, RSP, None, 1, LEFT)
    gr(code, GPR["test"], R8, R8)
    code.jump_if(EQUAL, summed)
    code.place(segment)
    gr(code, mov, R12, R8)
    add_up(code, p, rows, vectors, masked)
    gr(code, mov, R12, R8)  # back to where the segment began, and to the next
    gr(code, GPR["imul"], R12, RBX)
    gr(code, GPR["sub"], RAX, R12)
    gm(code, plus, RAX, RDI, None, 1, step)
    gm(code, GPR["subi"], 0, RSP, None, 1, LEFT, 8, 1)
    code.jump_if(NOT_ZERO, segment)
    code.place(summed)
    gr(code, mov, RAX, R11)
    rows = row_places(code, p.crs, p.rows)
    gr(code, plus, RAX, RCX)
    gm(code, GPR["cmpi"], 0, RSP, None, 1, _ADDS, 8, 0)
    code.jump_if(EQUAL, stores)
    for r, where in enumerate(rows):
        for v in range(vectors):
            add(code, p.size, r * vectors + v, where, v, masked and v == vectors - 1)
    code.place(stores)
    store(code, p.size, rows, vectors, masked)
