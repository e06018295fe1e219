"""The formats of machine instructions before registers are known, and how each is encoded.

An instruction is a tuple (format, opcode, operands...); the format is a function here that appends
the bytes, given where each virtual register is. `ROLES` says which operands a format writes and
reads, for the code that is put around spilled registers. A virtual register is a number, -1 for
none; memory operands are (base, index, scale, displacement), base and index None for none.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front.types import VECTORS

Where = list[int]


def v3(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, b, k, z, length, imm): d = op(a, b) on registers."""
    encode.rr(code, m[1], at[m[2]], at[m[3]], at[m[4]], at[m[5]], m[6], m[7], m[8])


def v3m(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, memory, k, z, length, broadcast, imm)."""
    base, index, scale, disp = m[4]
    encode.rm(
        code, m[1], at[m[2]], at[m[3]], None if base is None else at[base],
        None if index is None else at[index], scale, disp, at[m[5]], m[6], m[7], m[8], m[9],
    )  # fmt: skip


def v3c(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, bytes, k, z, length, broadcast, imm): the last operand is a constant."""
    data, broadcast, length = m[4], m[8], m[7]
    if broadcast and VECTORS.narrow:  # instructions read whole registers there
        data, broadcast = data * ((16 << length) // len(data)), 0
    encode.rip(
        code, m[1], at[m[2]], at[m[3]], code.constant(data), at[m[5]], m[6], length, broadcast, m[9]
    )


def v4(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, b, mask, 0, length, None): d = b in lanes whose sign is set in the mask, else a.

    The mask is a vector, whose number stands in the immediate (VEX).
    """
    encode.rr(code, m[1], at[m[2]], at[m[3]], at[m[4]], 0, 0, m[7], at[m[5]] << 4)


def v4m(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, memory, mask, 0, length, 0, None): as `v4`."""
    base, index, scale, disp = m[4]
    encode.rm(
        code, m[1], at[m[2]], at[m[3]], None if base is None else at[base],
        None if index is None else at[index], scale, disp, 0, 0, m[7], 0, at[m[5]] << 4,
    )  # fmt: skip


def v4c(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, bytes, mask, 0, length, broadcast, None): as `v4`, of a constant."""
    data, length = m[4], m[7]
    if m[8]:
        data = data * ((16 << length) // len(data))
    label = code.constant(data)
    encode.rip(code, m[1], at[m[2]], at[m[3]], label, 0, 0, length, 0, at[m[5]] << 4)


def ygather(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, memory, mask, length): lanes with their sign set in the mask, which is cleared."""
    base, index, scale, disp = m[3]
    encode.rm(code, m[1], at[m[2]], at[m[4]], at[base], at[index], scale, disp, 0, 0, m[5])


def _alias(format: Any, doc: str) -> Any:
    """Another format that is encoded the same way; `ROLES` tells them apart."""
    same = FunctionType(format.__code__, format.__globals__)
    same.__doc__ = doc
    return same


v3t = _alias(v3, "As v3; d is read too.")
v3mt = _alias(v3m, "As v3m; d is read too.")
v3ct = _alias(v3c, "As v3c; d is read too.")
vstore = _alias(v3m, "As v3m; d is a source.")
vout = _alias(v3, "As v3; d is a source and b the destination.")
vread = _alias(v3, "As v3; nothing but the flags is written.")
vreadm = _alias(v3m, "As v3m; nothing but the flags is written.")
vreadc = _alias(v3c, "As v3c; nothing but the flags is written.")


def v3s(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, length, imm): d = a shifted by imm."""
    encode.rr(code, m[1], 0, at[m[2]], at[m[3]], 0, 0, m[4], m[5])


def vgather(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, memory, k, length): k is cleared; the index is a vector."""
    base, index, scale, disp = m[3]
    encode.rm(code, m[1], at[m[2]], 0, at[base], at[index], scale, disp, at[m[4]], 0, m[5])


vscatter = _alias(vgather, "As vgather; d is a source.")


def g2(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, s): d = op(s)."""
    encode.gr(code, m[1], at[m[3]], at[m[4]], m[2])


def g2t(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, s): d = op(d, s)."""
    encode.gr(code, m[1], at[m[3]], at[m[4]], m[2])


gread = _alias(g2, "As g2; both are sources.")


def gmove(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, s): a copy, left out where both are one register."""
    if at[m[3]] != at[m[4]]:
        encode.gr(code, m[1], at[m[3]], at[m[4]], m[2])


def vmove(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, s, length): as `gmove`."""
    if at[m[2]] != at[m[3]]:
        encode.rr(code, m[1], at[m[2]], 0, at[m[3]], 0, 0, m[4])


def g1t(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, imm or None): d = op(d)."""
    encode.gr(code, m[1], 0, at[m[3]], m[2], m[4])


g1read = _alias(g1t, "As g1t; d is a source.")
g1 = _alias(g1t, "As g1t; d is not read.")


def gm(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, memory)."""
    base, index, scale, disp = m[4]
    encode.gm(
        code, m[1], at[m[3]], None if base is None else at[base],
        None if index is None else at[index], scale, disp, m[2],
    )  # fmt: skip


gmt = _alias(gm, "As gm; d is read too.")
gmread = _alias(gm, "As gm; d is a source, nothing but memory or the flags is written.")


def gmi(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, memory, imm): memory with an immediate."""
    base, index, scale, disp = m[3]
    encode.gm(
        code, m[1], 0, None if base is None else at[base],
        None if index is None else at[index], scale, disp, m[2], m[4],
    )  # fmt: skip


def gprefetch(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, memory)."""
    base, index, scale, disp = m[2]
    encode.gm(
        code, m[1], 0, None if base is None else at[base],
        None if index is None else at[index], scale, disp,
    )  # fmt: skip


def g3i(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, s, imm): d = op(s, imm)."""
    encode.gr(code, m[1], at[m[3]], at[m[4]], m[2], m[5])


def gconst(code: encode.Code, at: Where, m: tuple) -> None:
    """(d, value)."""
    encode.move_constant(code, at[m[1]], m[2])


def gtable(code: encode.Code, at: Where, m: tuple) -> None:
    """(d, label): the address of data of the module."""
    encode.grip(code, GPR["lea"], at[m[1]], m[2])


def gsymbol(code: encode.Code, at: Where, m: tuple) -> None:
    """(d, symbol): the address of something outside, or of a function of the module."""
    encode.grip(code, GPR["mov"], at[m[1]], code.slot(m[2]))


def gset(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d): a condition as 0 or 1."""
    d = at[m[2]]
    encode.gr(code, m[1], 0, d, 1)
    encode.gr(code, GPR["movzx8"], d, d, 4)


def kconst(code: encode.Code, at: Where, m: tuple) -> None:
    """(d, bits, lanes): lanes of ones and zeros, through r11, which is nobody's here."""
    _, d, bits, lanes = m
    word = "kmovq_r" if lanes > 32 else "kmovd_r"
    encode.move_constant(code, SCRATCH, bits)
    encode.rr(code, OPS[word], at[d], 0, SCRATCH)


SCRATCH = 11
_RAX, _RDX = 0, 2


def gdivide(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, size, d, a, b, want): quotient (want 0) or remainder (2) through rax and rdx."""
    _, op, size, d, a, b, want = m
    mov = GPR["mov"]
    if at[a] != _RAX:
        encode.gr(code, mov, _RAX, at[a], size)
    if op.name == "idiv":
        code.buffer += encode.CQO if size == 8 else encode.CDQ
    else:
        encode.gr(code, GPR["xor"], _RDX, _RDX, 4)
    encode.gr(code, op, 0, at[b], size)
    if at[d] != want:
        encode.gr(code, mov, at[d], want, size)


def ghigh(code: encode.Code, at: Where, m: tuple) -> None:
    """(op, d, a, b): the upper 64 bits of a product, through rax and rdx."""
    _, op, d, a, b = m
    encode.gr(code, GPR["mov"], _RAX, at[a])
    encode.gr(code, op, 0, at[b])
    if at[d] != _RDX:
        encode.gr(code, GPR["mov"], at[d], _RDX)


# format -> (places of what it writes, places of what it reads, place of memory or 0)
ROLES: dict[Any, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    v3: ((2,), (3, 4, 5), 0), v3t: ((2,), (2, 3, 4, 5), 0),
    v3m: ((2,), (3, 5), 4), v3mt: ((2,), (2, 3, 5), 4),
    v3c: ((2,), (3, 5), 0), v3ct: ((2,), (2, 3, 5), 0),
    vstore: ((), (2, 3, 5), 4), vout: ((4,), (2, 3, 5), 0),
    vread: ((), (2, 3, 4, 5), 0), vreadm: ((), (2, 3, 5), 4), vreadc: ((), (2, 3, 5), 0),
    vgather: ((2, 4), (2, 4), 3), vscatter: ((4,), (2, 4), 3),
    ygather: ((2, 4), (2, 4), 3),
    v4: ((2,), (3, 4, 5), 0), v4m: ((2,), (3, 5), 4), v4c: ((2,), (3, 5), 0),
    vmove: ((2,), (3,), 0), v3s: ((2,), (3,), 0),
    g2: ((3,), (4,), 0), g2t: ((3,), (3, 4), 0), gread: ((), (3, 4), 0), gmove: ((3,), (4,), 0),
    g1t: ((3,), (3,), 0), g1read: ((), (3,), 0), g1: ((3,), (), 0),
    gm: ((3,), (), 4), gmt: ((3,), (3,), 4), gmread: ((), (3,), 4), gmi: ((), (), 3),
    gprefetch: ((), (), 2),
    g3i: ((3,), (4,), 0), gconst: ((1,), (), 0), gtable: ((1,), (), 0), gsymbol: ((1,), (), 0),
    gset: ((2,), (), 0), kconst: ((1,), (), 0), gdivide: ((3,), (4, 5), 0),
    ghigh: ((2,), (3, 4), 0),
}  # fmt: skip
