"""The packer of a transposed B as machine code at once: what `products.gemm` would write as IR.

For: `gemm`'s packer whose columns lie next to each other along K. Squares of eight by eight, of
AVX2 of four by four doubles, are transposed in registers; what is written is what the IR writes,
padding included (tests/cpu/x86). What would break it: a strip without columns.
"""

from __future__ import annotations

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, OPS, Code
from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.front.types import VECTORS
from numjet.cpu.x86.whole.functions import (
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
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

_COLUMNS = (RAX, RBX, RBP, R10, R11, R12, R13, R14)
# Places on the stack: the last column, k, the stride of columns, the end of a row.
_LAST, _DEPTH, _STRIDE, _END = range(0, 32, 8)
# The shuffles of each stage (for the first and the second of two rows, with immediates) and how
# far apart these two are. Behind them the rows stand as `_ORDER` says.
_Stage = tuple[int, tuple[str, int | None], tuple[str, int | None]]
_HALVES = ("vperm2f128", 0x20), ("vperm2f128", 0x31)
_NARROW_STAGES: dict[int, tuple[_Stage, ...]] = {
    4: (
        (1, ("vunpcklps", None), ("vunpckhps", None)),
        (2, ("vunpcklpd", None), ("vunpckhpd", None)),
        (4, *_HALVES),
    ),
    8: ((1, ("vunpcklpd", None), ("vunpckhpd", None)), (2, *_HALVES)),
}
_STAGES: dict[int, tuple[_Stage, ...]] = {
    4: (
        (1, ("vunpcklps", None), ("vunpckhps", None)),
        (2, ("vunpcklpd", None), ("vunpckhpd", None)),
        (4, ("vshuff32x4", 0), ("vshuff32x4", 3)),
    ),
    8: (
        (1, ("vunpcklpd", None), ("vunpckhpd", None)),
        (2, ("vshuff64x2", 0x88), ("vshuff64x2", 0xDD)),
        (4, ("vshuff64x2", 0x88), ("vshuff64x2", 0xDD)),
    ),
}
_ORDER = {4: (0, 2, 1, 3, 4, 6, 5, 7), 8: tuple(range(8))}


def _side(size: int) -> int:
    return min(VECTORS.bytes // size, 8)


def pack_columns(code: Code, size: int, field: int) -> None:
    """Append `void pack(ptr table, ptr from, ptr to, i64 k, i64 columns, i64 width)`.

    size: of an element, 4 or 8; field: where the table has the stride of B's columns.
    rsi, rdx, r9 are from, to and width throughout, rdi a group's first column; `_COLUMNS` are the
    addresses of its columns, r15 how far they are read, rcx the rows that are left, r8 where the
    next goes. The lanes that are read are those of k1, k2 is a whole mask; AVX2 reads whole vectors
    but for the last square, whose mask is vector 15.
    """
    gr, gm, mov = encode.gr, encode.gm, GPR["mov"]
    side = _side(size)
    enter(code, 0)
    gr(code, GPR["addi"], 0, R8, 8, -1)
    gr(code, mov, RAX, RDX)
    gr(code, GPR["add"], RAX, R9)
    encode.push(code, RAX)
    gm(code, mov, RDI, RDI, None, 1, field)
    for register in (RDI, RCX, R8):
        encode.push(code, register)
    if not VECTORS.narrow:
        encode.move_constant(code, RAX, (1 << side) - 1)
        encode.rr(code, OPS["kmovd_r"], 2, 0, RAX)
    gr(code, GPR["xor"], RDI, RDI, 4)
    groups, squares, full, finished = (code.label() for _ in range(4))
    code.place(groups)
    _addresses(code, side)
    gm(code, mov, RCX, RSP, None, 1, _DEPTH)
    gr(code, GPR["test"], RCX, RCX)
    code.jump_if(CONDITIONS["le"], finished)
    gr(code, mov, R8, RDX)
    gr(code, GPR["xor"], R15, R15, 4)
    if not VECTORS.narrow:
        encode.rr(code, OPS["kmovq"], 1, 0, 2)
    code.align(32)
    code.place(squares)
    gr(code, GPR["cmpi"], 0, RCX, 8, side)
    code.jump_if(CONDITIONS["ge"], full)
    encode.push(code, RDI)
    if VECTORS.narrow:
        lanes = code.block(bytes([255] * VECTORS.bytes + [0] * VECTORS.bytes), 64)
        encode.grip(code, GPR["lea"], RDI, lanes)
        gm(code, GPR["lea"], RDI, RDI, None, 1, VECTORS.bytes)
        for _ in range(size):
            gr(code, GPR["sub"], RDI, RCX)
        encode.rm(code, OPS["vmovups"], 15, 0, RDI, length=1)
        encode.pop(code, RDI)
        _square(code, size, masked=True)
        code.jump(finished)
    else:
        encode.move_constant(code, RDI, 1)
        gr(code, GPR["shl_cl"], 0, RDI, 4)
        gr(code, GPR["addi"], 0, RDI, 4, -1)
        encode.rr(code, OPS["kmovd_r"], 1, 0, RDI)
        encode.pop(code, RDI)
    code.place(full)
    _square(code, size, masked=not VECTORS.narrow)
    gr(code, GPR["addi"], 0, R15, 8, side * size)
    gr(code, GPR["subi"], 0, RCX, 8, side)
    code.jump_if(CONDITIONS["g"], squares)
    code.place(finished)
    gr(code, GPR["addi"], 0, RDX, 8, side * size)
    gr(code, GPR["addi"], 0, RDI, 8, side)
    gm(code, GPR["cmp"], RDX, RSP, None, 1, _END)
    code.jump_if(CONDITIONS["b"], groups)
    leave(code, 32)


def _addresses(code: Code, side: int) -> None:
    """Where the columns of a group begin; those beyond the last are the last."""
    gm = encode.gm
    for number, column in enumerate(_COLUMNS[:side]):
        gm(code, GPR["lea"], column, RDI, None, 1, number)
        gm(code, GPR["cmp"], column, RSP, None, 1, _LAST)
        gm(code, GPR["cmovg"], column, RSP, None, 1, _LAST)
        gm(code, GPR["imul"], column, RSP, None, 1, _STRIDE)
        encode.gr(code, GPR["add"], column, RSI)


def _square(code: Code, size: int, masked: bool) -> None:
    """Read a square at the columns plus r15, turn it, write it to r8 on."""
    side = _side(size)
    length = side * size // 32  # a half or a whole vector
    kind = "ps" if size == 4 else "pd"
    for number, column in enumerate(_COLUMNS[:side]):
        if VECTORS.narrow and masked:
            op = OPS["vmaskmov" + kind]
            encode.rm(code, op, number, 15, column, R15, length=length)
            continue
        k = int(masked)
        encode.rm(code, OPS["vmovu" + kind], number, 0, column, R15, 1, 0, k, k, length)
    rows, free = list(range(side)), list(range(side, 2 * side))
    for apart, (low, low_imm), (high, high_imm) in (
        _NARROW_STAGES if VECTORS.narrow else _STAGES
    )[size]:
        made = [0] * side
        for k in [k for k in range(side) if not k & apart]:
            one, two = rows[k], rows[k + apart]
            encode.rr(code, OPS[low], free[k], one, two, 0, 0, length, low_imm)
            encode.rr(code, OPS[high], free[k + apart], one, two, 0, 0, length, high_imm)
            made[k], made[k + apart] = free[k], free[k + apart]
        rows, free = made, rows
    for number in _ORDER[size] if side == 8 else range(side):
        store = OPS[f"vmovu{kind}_s"]
        encode.rm(code, store, rows[number], 0, R8, None, 1, 0, 0, 0, length)
        encode.gr(code, GPR["add"], R8, R9)
