"""Products as machine code at once: what `kernels.small` and `gemm_tiles` would write as IR.

For: functions whose `Writer.whole` is `product` or `strip` here. A tenth of the time of the same
loops as IR, selected and allocated: tiles, sums and registers are known beforehand. The tiles and
the order of the sums are those of the IR, so results have the same bits (tests/cpu/x86). Nothing is
checked that its writers know: strides of whole tiles of static shape fit 32 bits.

Vectors 0-23 are sums, 24-27 the row of B, 28-31 an element of A in all lanes; k1 has the last
columns. In `product`, rdi, rsi, rdx are A, B, C; rax and r8 A and C of a tile, r9 its row, r11 the
row of B, rcx the steps that are left and r10 the strips.
"""

from __future__ import annotations

from typing import NamedTuple

from numjet.cpu.x86 import encode
from numjet.cpu.x86.encode import GPR, OPS, Code
from numjet.cpu.x86.opcodes import CONDITIONS

_RAX, _RCX, _RDX, _RBX, _RSP, _RBP, _RSI, _RDI = range(8)
_R8, _R9, _R10, _R11, _R12, _R13, _R14, _R15 = range(8, 16)
_ROW, _ELEMENT = 24, 28
_VECTOR = 64  # bytes
_LESS, _EQUAL, _NOT_ZERO = CONDITIONS["l"], CONDITIONS["e"], CONDITIONS["ne"]
_GREATER, _LESS_OR_EQUAL = CONDITIONS["g"], CONDITIONS["le"]
_Memory = tuple[int, int | None, int, int]  # base, index, scale, displacement


# Steps of the depth for which a strip asks for A ahead: a scale of addresses.
AHEAD = 8


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
    addi = GPR["addi"]
    _clear(code, p.rows * vectors)
    encode.gr(code, GPR["mov"], _R11, _RSI)
    encode.move_constant(code, _RCX, p.k)
    code.align(32)
    again = code.label()
    code.place(again)
    rows: list[_Memory] = [(_RAX, None, 1, r * p.ars) for r in range(p.rows)]
    _multiply(code, p.size, rows, _R11, vectors, masked)
    encode.gr(code, addi, 0, _RAX, 8, p.acs)
    encode.gr(code, addi, 0, _R11, 8, p.brs)
    encode.gr(code, GPR["subi"], 0, _RCX, 4, 1)
    code.jump_if(_NOT_ZERO, again)
    _store(code, p.size, [(_R8, None, 1, r * p.crs) for r in range(p.rows)], vectors, masked)


def _clear(code: Code, sums: int) -> None:
    encode.rrs(code, OPS["vpxord"], [(s, s, s) for s in range(sums)])


def _load(code: Code, size: int, at: int, vectors: int, masked: bool) -> None:
    """The row of B at a register's address; lanes beyond the columns are not read and become 0."""
    load = OPS["vmovups" if size == 4 else "vmovupd"]
    for v in range(vectors):
        k = int(masked and v == vectors - 1)
        encode.rm(code, load, _ROW + v, 0, at, None, 1, _VECTOR * v, k, k)


def _multiply(
    code: Code, size: int, rows: list[_Memory], at: int, vectors: int, masked: bool
) -> None:
    """One step of the depth: the sums plus each element of A at `rows` times the row of B."""
    rm, rrs = encode.rm, encode.rrs
    kind, one = ("ps", "ss") if size == 4 else ("pd", "sd")
    add, spread = OPS["vfmadd231" + kind], OPS["vbroadcast" + one]
    _load(code, size, at, vectors, masked)
    for r, where in enumerate(rows):
        if vectors == 1:
            rm(code, add, r, _ROW, *where, broadcast=1)
            continue
        x = _ELEMENT + r % 4
        rm(code, spread, x, 0, *where)
        rrs(code, add, [(r * vectors + v, x, _ROW + v) for v in range(vectors)])


def _store(code: Code, size: int, rows: list[_Memory], vectors: int, masked: bool) -> None:
    """Write the sums to C."""
    store = OPS["vmovups_s" if size == 4 else "vmovupd_s"]
    for r, (base, index, scale, disp) in enumerate(rows):
        for v in range(vectors):
            k = int(masked and v == vectors - 1)
            encode.rm(
                code, store, r * vectors + v, 0, base, index, scale, disp + _VECTOR * v, k
            )


class Strip(NamedTuple):
    """A strip of C of so many columns, tile by tile of so many rows: bytes of an element, and
    where a table of 64-bit integers has A's strides along rows and depth, and C's along rows."""

    size: int
    columns: int
    rows: int
    ars: int
    acs: int
    crs: int


_SAVED = (_RBX, _RBP, _R12, _R13, _R14, _R15)
# On the stack: where A and B began, the depth, how much of it is left, whether C holds a part; and
# what the caller has put there, behind the registers and the return address.
_FROM_A, _FROM_B, _DEPTH, _LEFT, _OLD, _LOCALS = range(0, 48, 8)
_BRS, _SCRATCH = [_LOCALS + 8 * len(_SAVED) + x for x in (8, 24)]
# Steps of the depth that go through all rows before the next ones begin, so that so many rows of B
# (24 KB) stay in the first-level cache: for at least so many times their number, and tiles, where
# each step reads other lines of A (a tenth less for the gradients of weights; an A whose depth is
# in order gains nothing).
PART, MANY_PARTS, MANY_TILES = 96, 1.5, 5


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
    vectors, over = -(-p.columns * p.size // _VECTOR), p.columns * p.size % _VECTOR
    for register in _SAVED:
        encode.push(code, register)
    gr(code, GPR["subi"], 0, _RSP, 8, _LOCALS)
    if over:
        encode.move_constant(code, _RAX, (1 << over // p.size) - 1)
        encode.rr(code, OPS["kmovd_r"], 1, 0, _RAX)
    _copied(code, p, vectors, bool(over))
    gm(code, mov, _RBX, _RDI, None, 1, p.acs)
    for register, place in ((_RSI, _FROM_A), (_RDX, _FROM_B), (_R8, _DEPTH), (_R8, _LEFT)):
        gm(code, GPR["mov_s"], register, _RSP, None, 1, place)
    gm(code, GPR["movi"], 0, _RSP, None, 1, _OLD, 8, 0)
    parts, tiles, ends, last, finished = (code.label() for _ in range(5))
    gr(code, GPR["cmpi"], 0, _RBX, 8, _VECTOR)
    code.jump_if(_LESS_OR_EQUAL, parts)
    gr(code, GPR["cmpi"], 0, _R8, 8, int(MANY_PARTS * PART))
    code.jump_if(_LESS, parts)
    gr(code, GPR["cmpi"], 0, _R9, 8, MANY_TILES * p.rows)
    code.jump_if(_LESS, parts)
    encode.move_constant(code, _R8, PART)
    code.place(parts)
    gr(code, GPR["xor"], _R11, _R11, 4)
    code.place(tiles)
    gm(code, GPR["lea"], _RAX, _R11, None, 1, p.rows)
    gr(code, GPR["cmp"], _RAX, _R9)
    code.jump_if(_GREATER, ends)
    _part_of_tile(code, p, vectors, bool(over))
    gr(code, GPR["addi"], 0, _R11, 8, p.rows)
    code.jump(tiles)
    code.place(ends)
    gm(code, GPR["sub_s"], _R8, _RSP, None, 1, _LEFT)
    code.jump_if(_LESS_OR_EQUAL, last)
    gr(code, mov, _RAX, _R8)
    gr(code, GPR["imul"], _RAX, _RBX)
    gr(code, add, _RSI, _RAX)
    gr(code, mov, _RAX, _R8)
    gm(code, GPR["imul"], _RAX, _RSP, None, 1, _BRS)
    gr(code, add, _RDX, _RAX)
    gm(code, GPR["movi"], 0, _RSP, None, 1, _OLD, 8, 1)
    gm(code, GPR["cmp"], _R8, _RSP, None, 1, _LEFT)
    gm(code, GPR["cmovg"], _R8, _RSP, None, 1, _LEFT)
    code.jump(parts)
    code.place(last)
    gr(code, GPR["cmp"], _R11, _R9)
    code.jump_if(_EQUAL, finished)
    for register, place in ((_RSI, _FROM_A), (_RDX, _FROM_B), (_R8, _DEPTH)):
        gm(code, mov, register, _RSP, None, 1, place)
    gm(code, GPR["mov_s"], _R8, _RSP, None, 1, _LEFT)
    gm(code, GPR["movi"], 0, _RSP, None, 1, _OLD, 8, 0)
    gm(code, GPR["lea"], _R11, _R9, None, 1, -p.rows)
    code.jump(tiles)
    code.place(finished)
    gr(code, GPR["addi"], 0, _RSP, 8, _LOCALS)
    for register in reversed(_SAVED):
        encode.pop(code, register)
    code.buffer += encode.VZEROUPPER
    code.buffer += encode.RET


def _part_of_tile(code: Code, p: Strip, vectors: int, masked: bool) -> None:
    """A tile's sums of a part of the depth, from 0 or what C holds on, written to C."""
    gr, gm, mov, add = encode.gr, encode.gm, GPR["mov"], GPR["add"]
    again, begins, ready, finished = (code.label() for _ in range(4))
    gm(code, GPR["cmpi"], 0, _RSP, None, 1, _OLD, 8, 0)
    code.jump_if(_EQUAL, begins)
    gr(code, mov, _RAX, _R11)
    rows = _rows(code, p.crs, p.rows)
    gr(code, add, _RAX, _RCX)
    load = OPS["vmovups" if p.size == 4 else "vmovupd"]
    for r, (base, index, scale, _) in enumerate(rows):
        for v in range(vectors):
            k = int(masked and v == vectors - 1)
            encode.rm(code, load, r * vectors + v, 0, base, index, scale, _VECTOR * v, k, k)
    code.jump(ready)
    code.place(begins)
    _clear(code, p.rows * vectors)
    code.place(ready)
    gr(code, mov, _RAX, _R11)
    rows = _rows(code, p.ars, p.rows)
    gr(code, add, _RAX, _RSI)
    gr(code, mov, _RBP, _RDX)
    gr(code, mov, _R12, _R8)
    gr(code, GPR["test"], _R12, _R12)
    code.jump_if(_EQUAL, finished)
    code.align(32)
    code.place(again)
    gm(code, GPR["prefetcht0"], 0, _RAX, _RBX, AHEAD, 0)
    _multiply(code, p.size, rows, _RBP, vectors, masked)
    gr(code, add, _RAX, _RBX)
    gm(code, add, _RBP, _RSP, None, 1, _BRS)
    gr(code, GPR["subi"], 0, _R12, 8, 1)
    code.jump_if(_NOT_ZERO, again)
    code.place(finished)
    gr(code, mov, _RAX, _R11)
    rows = _rows(code, p.crs, p.rows)
    gr(code, add, _RAX, _RCX)
    _store(code, p.size, rows, vectors, masked)


def _rows(code: Code, field: int, count: int) -> list[_Memory]:
    """The tile's rows from rax on: it becomes its product with a stride, that of the table."""
    gr, gm, lea = encode.gr, encode.gm, GPR["lea"]
    gm(code, GPR["mov"], _R13, _RDI, None, 1, field)
    gr(code, GPR["imul"], _RAX, _R13)
    gm(code, lea, _R14, _R13, _R13, 2)
    gm(code, lea, _R15, _R13, _R13, 4)
    rows: list[_Memory] = [
        (_RAX, None, 1, 0), (_RAX, _R13, 1, 0), (_RAX, _R13, 2, 0), (_RAX, _R14, 1, 0),
        (_RAX, _R13, 4, 0), (_RAX, _R15, 1, 0), (_RAX, _R14, 2, 0), (_RAX, _R10, 1, 0),
    ]  # fmt: skip
    if count > 7:
        gm(code, lea, _R10, _R14, _R13, 4)
    return rows[:count]


def _copied(code: Code, p: Strip, vectors: int, masked: bool) -> None:
    """Copy B's rows next to each other unless `scratch` is null; rdx and the stride follow."""
    gr, gm, mov = encode.gr, encode.gm, GPR["mov"]
    again, finished = code.label(), code.label()
    gm(code, mov, _RAX, _RSP, None, 1, _SCRATCH)
    gr(code, GPR["test"], _RAX, _RAX)
    code.jump_if(_EQUAL, finished)
    gr(code, mov, _R11, _RDX)
    gr(code, mov, _RDX, _RAX)
    gm(code, mov, _RBX, _RSP, None, 1, _BRS)
    gm(code, GPR["movi"], 0, _RSP, None, 1, _BRS, 8, vectors * _VECTOR)
    gr(code, mov, _R12, _R8)
    gr(code, GPR["test"], _R12, _R12)
    code.jump_if(_EQUAL, finished)
    code.place(again)
    _load(code, p.size, _R11, vectors, masked)
    for v in range(vectors):
        encode.rm(code, OPS["vmovups_s"], _ROW + v, 0, _RAX, None, 1, _VECTOR * v)
    gr(code, GPR["add"], _R11, _RBX)
    gr(code, GPR["addi"], 0, _RAX, 8, vectors * _VECTOR)
    gr(code, GPR["subi"], 0, _R12, 8, 1)
    code.jump_if(_NOT_ZERO, again)
    code.place(finished)
