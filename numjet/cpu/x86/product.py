"""Products of a static shape as machine code at once: what `kernels.small` would write as IR.

For: functions whose `Writer.product` says what they compute. A tenth of the time of the same loops
as IR, selected and allocated: tiles, sums and registers are known beforehand. The tiles and the
order of the sums are those of `small`, so results have the same bits (tests/cpu/x86). Nothing is
checked that `small` knows: strides of whole tiles fit 32 bits.

Registers: rdi, rsi, rdx are A, B, C; rax and r8 A and C of a tile, r9 its row, r11 the row of B and
rcx the steps that are left, r10 the strips that are left; k1 the last columns; vectors 0-23 sums,
24-27 the row of B, 28-31 an element of A in all lanes.
"""

from __future__ import annotations

from typing import NamedTuple

from numjet.cpu.x86 import encode
from numjet.cpu.x86.encode import GPR, OPS, Code
from numjet.cpu.x86.opcodes import CONDITIONS

_RAX, _RCX, _RDX, _RSI, _RDI, _R8, _R9, _R10, _R11 = 0, 1, 2, 6, 7, 8, 9, 10, 11
_ROW, _ELEMENT = 24, 28
_VECTOR = 64  # bytes
_LESS, _NOT_ZERO = CONDITIONS["l"], CONDITIONS["ne"]


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


def write(code: Code, p: Product) -> None:
    """Append `void product(ptr a, ptr b, ptr c)`."""
    width = p.vectors * _VECTOR
    whole, rest = divmod(p.n * p.size, width)
    if whole > 1:
        encode.move_constant(code, _R10, whole)
        again = code.label()
        code.place(again)
    if whole:
        _strip(code, p, width)
        if whole > 1 or rest:
            encode.gr(code, GPR["addi"], 0, _RSI, 8, width)
            encode.gr(code, GPR["addi"], 0, _RDX, 8, width)
    if whole > 1:
        encode.gr(code, GPR["subi"], 0, _R10, 4, 1)
        code.jump_if(_NOT_ZERO, again)
    if rest:
        _strip(code, p, rest)
    code.buffer += encode.VZEROUPPER
    code.buffer += encode.RET


def _strip(code: Code, p: Product, nbytes: int) -> None:
    """All rows of so many bytes of columns."""
    gr, mov = encode.gr, GPR["mov"]
    over = nbytes % _VECTOR
    if over:
        encode.move_constant(code, _RAX, (1 << over // p.size) - 1)
        encode.rr(code, OPS["kmovd_r"], 1, 0, _RAX)
    if p.m == p.rows:
        gr(code, mov, _RAX, _RDI)
        gr(code, mov, _R8, _RDX)
        _tile(code, p, -(-nbytes // _VECTOR), bool(over))
        return
    gr(code, GPR["xor"], _R9, _R9, 4)
    again = code.label()
    code.place(again)
    row = _R9
    if p.m % p.rows:  # the last tile overlaps the one before
        row = _RAX
        encode.move_constant(code, row, p.m - p.rows)
        gr(code, GPR["cmp"], _R9, row)
        gr(code, GPR["cmovl"], row, _R9)
    gr(code, GPR["imuli"], _R8, row, 8, p.crs)
    gr(code, GPR["imuli"], _RAX, row, 8, p.ars)
    gr(code, GPR["add"], _R8, _RDX)
    gr(code, GPR["add"], _RAX, _RDI)
    _tile(code, p, -(-nbytes // _VECTOR), bool(over))
    gr(code, GPR["addi"], 0, _R9, 8, p.rows)
    gr(code, GPR["cmpi"], 0, _R9, 8, p.m)
    code.jump_if(_LESS, again)


def _tile(code: Code, p: Product, vectors: int, masked: bool) -> None:
    """A tile of C, whose sums stay in registers."""
    rm, rr, addi = encode.rm, encode.rr, GPR["addi"]
    kind, one = ("ps", "ss") if p.size == 4 else ("pd", "sd")
    add, spread, clear = OPS["vfmadd231" + kind], OPS["vbroadcast" + one], OPS["vpxord"]
    load, store = OPS["vmovups"], OPS["vmovups_s"]
    masks = [int(masked and v == vectors - 1) for v in range(vectors)]
    if masked and p.size == 8:
        load, store = OPS["vmovupd"], OPS["vmovupd_s"]
    for s in range(p.rows * vectors):
        rr(code, clear, s, s, s)
    encode.gr(code, GPR["mov"], _R11, _RSI)
    encode.move_constant(code, _RCX, p.k)
    code.align(32)
    again = code.label()
    code.place(again)
    for v, k in enumerate(masks):
        rm(code, load, _ROW + v, 0, _R11, None, 1, _VECTOR * v, k, k)
    for r in range(p.rows):
        if vectors == 1:
            rm(code, add, r, _ROW, _RAX, None, 1, r * p.ars, broadcast=1)
            continue
        x = _ELEMENT + r % 4
        rm(code, spread, x, 0, _RAX, None, 1, r * p.ars)
        for v in range(vectors):
            rr(code, add, r * vectors + v, x, _ROW + v)
    encode.gr(code, addi, 0, _RAX, 8, p.acs)
    encode.gr(code, addi, 0, _R11, 8, p.brs)
    encode.gr(code, GPR["subi"], 0, _RCX, 4, 1)
    code.jump_if(_NOT_ZERO, again)
    for r in range(p.rows):
        for v, k in enumerate(masks):
            rm(code, store, r * vectors + v, 0, _R8, None, 1, r * p.crs + _VECTOR * v, k)
