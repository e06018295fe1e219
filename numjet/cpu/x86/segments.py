"""The strips of products that `gemm_tiles` calls `general`, as machine code at once.

They add up several segments of the depth, as rows of a kernel that slides over an image are, may
go on from what C holds, and have any number of rows: those that are left below the last whole tile
are a tile of exactly their number. Otherwise they are as `product.strip`, whose registers and
stack they use. What would break it: another order of the sums than that of the IR (tests/cpu/x86).
"""

from __future__ import annotations

from numjet.cpu.x86 import encode
from numjet.cpu.x86.encode import GPR, OPS, Code
from numjet.cpu.x86.product import (
    _BRS,
    _DEPTH,
    _EQUAL,
    _GREATER,
    _LEFT,
    _LOCALS,
    _NOT_ZERO,
    _R8,
    _R9,
    _R11,
    _R12,
    _RAX,
    _RBP,
    _RBX,
    _RCX,
    _RDI,
    _RDX,
    _RSI,
    _RSP,
    _SAVED,
    _VECTOR,
    AHEAD,
    Strip,
    _clear,
    _copied,
    _multiply,
    _rows,
    _store,
)

_ADDS = _BRS + 8  # on the stack: whether C holds something to go on from


def strip(code: Code, p: Strip, segments: int, step: int) -> None:
    """Append the function of `gemm_tiles` whose kind is `general`.

    segments, step: where the table has their number, and how far apart they are in A. Registers
    are those of `product.strip`.
    """
    gr, gm, mov = encode.gr, encode.gm, GPR["mov"]
    vectors, over = -(-p.columns * p.size // _VECTOR), p.columns * p.size % _VECTOR
    for register in _SAVED:
        encode.push(code, register)
    gr(code, GPR["subi"], 0, _RSP, 8, _LOCALS)
    if over:
        encode.move_constant(code, _RAX, (1 << over // p.size) - 1)
        encode.rr(code, OPS["kmovd_r"], 1, 0, _RAX)
    gm(code, GPR["mov_s"], _R8, _RSP, None, 1, _DEPTH)
    gm(code, GPR["imul"], _R8, _RDI, None, 1, segments)
    _copied(code, p, vectors, bool(over))
    gm(code, mov, _R8, _RSP, None, 1, _DEPTH)
    gm(code, mov, _RBX, _RDI, None, 1, p.acs)
    gr(code, GPR["xor"], _R11, _R11, 4)
    tiles, rest, finished = code.label(), code.label(), code.label()
    code.place(tiles)
    gm(code, GPR["lea"], _RAX, _R11, None, 1, p.rows)
    gr(code, GPR["cmp"], _RAX, _R9)
    code.jump_if(_GREATER, rest)
    _tile(code, p, segments, step, vectors, bool(over))
    gr(code, GPR["addi"], 0, _R11, 8, p.rows)
    code.jump(tiles)
    code.place(rest)
    gr(code, mov, _RAX, _R9)
    gr(code, GPR["sub"], _RAX, _R11)
    few = [code.label() for _ in range(p.rows - 1)]
    for number, label in enumerate(few, 1):
        gr(code, GPR["cmpi"], 0, _RAX, 8, number)
        code.jump_if(_EQUAL, label)
    code.jump(finished)
    for number, label in enumerate(few, 1):
        code.place(label)
        _tile(code, p._replace(rows=number), segments, step, vectors, bool(over))
        if number < len(few):
            code.jump(finished)
    code.place(finished)
    gr(code, GPR["addi"], 0, _RSP, 8, _LOCALS)
    for register in reversed(_SAVED):
        encode.pop(code, register)
    code.buffer += encode.VZEROUPPER
    code.buffer += encode.RET


def _tile(code: Code, p: Strip, segments: int, step: int, vectors: int, masked: bool) -> None:
    """A tile of C from row r11 on."""
    gr, gm, mov, add = encode.gr, encode.gm, GPR["mov"], GPR["add"]
    segment, again, summed, stores = (code.label() for _ in range(4))
    gr(code, mov, _RAX, _R11)
    rows = _rows(code, p.ars, p.rows)
    gr(code, add, _RAX, _RSI)
    _clear(code, p.rows * vectors)
    gr(code, mov, _RBP, _RDX)
    gm(code, mov, _R12, _RDI, None, 1, segments)
    gm(code, GPR["mov_s"], _R12, _RSP, None, 1, _LEFT)
    gr(code, GPR["test"], _R8, _R8)
    code.jump_if(_EQUAL, summed)
    code.place(segment)
    gr(code, mov, _R12, _R8)
    code.align(32)
    code.place(again)
    gm(code, GPR["prefetcht0"], 0, _RAX, _RBX, AHEAD, 0)
    _multiply(code, p.size, rows, _RBP, vectors, masked)
    gr(code, add, _RAX, _RBX)
    gm(code, add, _RBP, _RSP, None, 1, _BRS)
    gr(code, GPR["subi"], 0, _R12, 8, 1)
    code.jump_if(_NOT_ZERO, again)
    gr(code, mov, _R12, _R8)  # back to where the segment began, and to the next
    gr(code, GPR["imul"], _R12, _RBX)
    gr(code, GPR["sub"], _RAX, _R12)
    gm(code, add, _RAX, _RDI, None, 1, step)
    gm(code, GPR["subi"], 0, _RSP, None, 1, _LEFT, 8, 1)
    code.jump_if(_NOT_ZERO, segment)
    code.place(summed)
    gr(code, mov, _RAX, _R11)
    rows = _rows(code, p.crs, p.rows)
    gr(code, add, _RAX, _RCX)
    gm(code, GPR["cmpi"], 0, _RSP, None, 1, _ADDS, 8, 0)
    code.jump_if(_EQUAL, stores)
    total = OPS["vaddps" if p.size == 4 else "vaddpd"]
    for r, (base, index, scale, _) in enumerate(rows):
        for v in range(vectors):
            k, at = int(masked and v == vectors - 1), r * vectors + v
            encode.rm(code, total, at, at, base, index, scale, _VECTOR * v, k)
    code.place(stores)
    _store(code, p.size, rows, vectors, masked)
