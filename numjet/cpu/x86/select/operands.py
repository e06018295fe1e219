"""Vector operands of an instruction: registers, constants, loads that nobody else reads.

The last operand of most instructions may be memory: a constant (one element, read for all lanes)
or a load. For the families of instructions in this folder.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS, Op
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.instructions import Call
from numjet.cpu.x86.front.parse import split, typed
from numjet.cpu.x86.front.types import Type, Unsupported, constant
from numjet.cpu.x86.select.select import Selector, move


def last(
    s: Selector, op: Op, d: int, x: int, type: Type, b: str, part: int = 0,
    k: int = -1, z: int = 0, imm: int | None = None, tied: bool = False,
) -> None:
    """Write d = op(x, b); `b` is an operand of the text, where possible read from memory."""
    length = type.length
    here: tuple
    if b[0] == "%":
        made = s.defs.get(b)
        kind = "" if made is None else made.op
        load = s.foldable(b) if kind == "load" else None
        if load is not None and (type.size >= 16 or not type.lanes):
            base, index, scale, disp = s.address(load.pointer)
            memory = (base, index, scale, disp + 64 * part)
            shape = forms.v3mt if tied else forms.v3m
            here = (shape, op, d, x, memory, k, z, length, 0, imm)
        elif (
            kind == "shufflevector" and op.element * 8 == type.bits
            and (load := s.spread(b)) is not None
        ):  # fmt: skip
            shape = forms.v3mt if tied else forms.v3m
            here = (shape, op, d, x, s.address(load.pointer), k, z, length, 1, imm)
        else:
            shape = forms.v3t if tied else forms.v3
            here = (shape, op, d, x, s.need(b) + part, k, z, length, imm)
    else:
        value = constant(type, b)
        shape = forms.v3ct if tied else forms.v3c
        if not type.lanes:
            here = (shape, op, d, x, s.data(type, value, part), k, z, 0, 0, imm)
        elif value.splat is not None and op.element * 8 == type.bits:
            data = value.splat.to_bytes(op.element, "little")
            here = (shape, op, d, x, data, k, z, length, 1, imm)
        elif type.size >= 16:
            here = (shape, op, d, x, s.data(type, value, part), k, z, length, 0, imm)
        else:
            shape = forms.v3t if tied else forms.v3
            here = (shape, op, d, x, s.vector(type, b, part), k, z, length, imm)
    s.put(d, here)


def three(
    s: Selector, op: Op, d: int, type: Type, a: str, b: str, part: int = 0,
    imm: int | None = None, k: int = -1, z: int = 0,
) -> None:
    """Write d = op(a, b)."""
    last(s, op, d, s.vector(type, a, part), type, b, part, k, z, imm)


def full_mask(mask: tuple[Type, str], rounding: list[tuple[Type, str]]) -> None:
    """Refuse an AVX-512 intrinsic with a mask or a rounding mode of its own."""
    if mask[1] != "-1" or any(text != "4" for _, text in rounding):
        raise Unsupported("a masked intrinsic")


def scales(instruction: Call) -> bool:
    """Whether `scaled` writes this call."""
    return instruction.callee.startswith("@llvm.x86.avx512.mask.scalef.")


def scaled(s: Selector, instruction: Call, d: int, part: int, k: int = -1) -> None:
    """Write d = x·2^n; 0 where `k` is given and does not hold."""
    type = instruction.type
    x, n, _, mask, *rounding = [typed(word) for word in split(instruction.arguments)]
    full_mask(mask, rounding)
    three(s, OPS["vscalef" + type.float_suffix], d, type, x[1], n[1], part, k=k, z=int(k >= 0))


def pattern(s: Selector, op: str, d: int, x: int, type: Type, bits: int) -> None:
    """Write d = op(x, the same bits in every lane), where op is "and" or "xor" of floats."""
    data = bits.to_bytes(type.bits // 8, "little")
    if type.bits == 16:
        data += data
    made = OPS[f"v{op}{'pd' if type.bits == 64 else 'ps'}"]
    s.put(d, (forms.v3c, made, d, x, data, -1, 0, type.length, 1, None))


def seed(s: Selector, d: int, type: Type, text: str, part: int = 0) -> None:
    """Write the copy of an operand to `d`, which an instruction written already changes further."""
    s.end[d] = len(s.out)
    if text[0] == "%":
        move(s, type, d, s.need(text) + part)
        s.end[d] = len(s.out) - 1
        return

    def write(register: int, instruction: tuple) -> None:
        s.put(register, instruction)

    s.fill(d, type, constant(type, text), part, write)


def swap_for_memory(s: Selector, type: Type, a: str, b: str) -> bool:
    """Whether exchanging the operands lets a constant or a load come last."""
    if a[0] != "%":
        return b[0] == "%"
    return b[0] == "%" and s.readable(a) and not s.readable(b)
