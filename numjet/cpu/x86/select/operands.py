"""Operands of instructions: registers, constants, loads that nobody else reads, masks.

The last operand of most instructions may be memory: a constant (one element, read for all lanes)
or a load. For the families of instructions in this folder.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS, Op
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, Cast, Compare
from numjet.cpu.x86.front.parse import split, typed
from numjet.cpu.x86.front.types import MASK, VECTORS, Type, Unsupported, constant
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
            memory = (base, index, scale, disp + VECTORS.bytes * part)
            format = formats.v3mt if tied else formats.v3m
            here = (format, op, d, x, memory, k, z, length, 0, imm)
        elif (
            kind == "shufflevector" and op.element * 8 == type.bits
            and (load := s.broadcast_load(b)) is not None
        ):  # fmt: skip
            format = formats.v3mt if tied else formats.v3m
            here = (format, op, d, x, s.address(load.pointer), k, z, length, 1, imm)
        else:
            format = formats.v3t if tied else formats.v3
            here = (format, op, d, x, s.need(b) + part, k, z, length, imm)
    else:
        value = constant(type, b)
        format = formats.v3ct if tied else formats.v3c
        if not type.lanes:
            here = (format, op, d, x, s.data(type, value, part), k, z, 0, 0, imm)
        elif value.splat is not None and (op.element * 8 == type.bits or VECTORS.narrow):
            data = value.splat.to_bytes(type.bits // 8, "little")
            here = (format, op, d, x, data, k, z, length, 1, imm)
        elif type.size >= 16:
            here = (format, op, d, x, s.data(type, value, part), k, z, length, 0, imm)
        else:
            format = formats.v3t if tied else formats.v3
            here = (format, op, d, x, s.vector(type, b, part), k, z, length, imm)
    s.put(d, here)


def three(
    s: Selector, op: Op, d: int, type: Type, a: str, b: str, part: int = 0,
    imm: int | None = None, k: int = -1, z: int = 0,
) -> None:
    """Write d = op(a, b)."""
    last(s, op, d, s.vector(type, a, part), type, b, part, k, z, imm)


def full_mask(mask: tuple[Type, str], rounding: list[tuple[Type, str]]) -> None:
    """Refuse an AVX-512 intrinsic with a mask or a rounding mode of its own."""
    _, given = mask
    if given != "-1" or any(text != "4" for _, text in rounding):
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
    s.put(d, (formats.v3c, made, d, x, data, -1, 0, type.length, 1, None))


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


def swap_for_memory(s: Selector, a: str, b: str) -> bool:
    """Whether exchanging the operands lets a constant or a load come last."""
    if a[0] != "%":
        return b[0] == "%"
    return b[0] == "%" and s.readable(a) and not s.readable(b)


# -- general registers


def seed_general(s: Selector, d: int, type: Type, text: str) -> None:
    """Write the copy of an operand to `d`, which an instruction written already changes further."""
    if text[0] == "%":
        here = len(s.out)
        s.emit((formats.gmove, GPR["mov"], 8, d, s.need(text)))
        s.end[d] = here
        return
    value = s.integer(type, text)
    if value is None:
        s.put(d, (formats.gmove, GPR["mov"], 8, d, s.general(type, text)))
    else:
        s.put(d, (formats.gconst, d, value))


def extend(s: Selector, d: int, type: Type, text: str, signed_: bool, size: int) -> None:
    """Write d = the operand with its upper bits filled, 4 or 8 bytes."""
    x = s.general(type, text)
    extend_register(s, d, type, x, signed_, size)


def extend_register(s: Selector, d: int, type: Type, x: int, signed_: bool, size: int) -> None:
    """As `extend`, from a register."""
    bits = type.bits
    if bits == 64:
        s.put(d, (formats.gmove, GPR["mov"], 8, d, x))
    elif bits == 32:
        if signed_ and size == 8:
            s.put(d, (formats.g2, GPR["movsxd"], 8, d, x))
        else:
            s.put(d, (formats.g2, GPR["mov"], 4, d, x))
    elif bits == 1:
        if signed_:
            s.put(d, (formats.g1t, GPR["neg"], size, d, None))
        s.put(d, (formats.gmove, GPR["mov"], 8, d, x))
    else:
        op = GPR[f"mov{'s' if signed_ else 'z'}x{bits}"]
        s.put(d, (formats.g2, op, size if signed_ else 4, d, x))


# -- masks


def mask_word(lanes: int) -> str:
    """The letter of instructions on that many mask bits."""
    return "b" if lanes <= 8 else "w" if lanes == 16 else "d" if lanes == 32 else "q"


def join_masks(s: Selector, d: int, type: Type, count: int) -> list[int]:
    """Registers for the masks of `count` parts, whose bits together become `d`'s."""
    lanes = type.lanes // count
    if count == 1:
        return [d]
    if lanes < 8:
        raise Unsupported("short masks")
    pieces = [d]
    span = type.lanes
    while len(pieces) < count:
        span //= 2
        op = OPS["kunpck" + {8: "bw", 16: "wd", 32: "dq"}[span]]
        halves = []
        for piece in pieces:
            low, high = s.new(MASK), s.new(MASK)
            s.put(piece, (formats.v3, op, piece, high, low, -1, 0, 0, None))
            halves += [low, high]
        pieces = halves
    return pieces


def compared_masks(s: Selector, name: str, type: Type) -> list[int]:
    """Registers for the masks of the parts of comparison `name`, which are put together at need."""
    s.masks.pop(name, None)
    pieces = s.pieces.pop(name, None)
    if pieces is None:
        return join_masks(s, s.define(name), type, type.parts)
    if name in s.reg:
        d = s.define(name)
        op = OPS["kunpck" + {8: "bw", 16: "wd", 32: "dq"}[type.lanes // 2]]
        s.put(d, (formats.v3, op, d, pieces[1], pieces[0], -1, 0, 0, None))
    return [*pieces]


def part_masks(s: Selector, name: str, type: Type) -> tuple[int, int] | None:
    """The masks of the two parts of `type` where a comparison of so many parts makes them."""
    made = s.defs.get(name)
    if (
        type.parts != 2 or not isinstance(made, Compare)
        or made.block != s.block.index or made.of.parts != 2 or made.of.bits == 1
        or type.lanes < 16
    ):  # fmt: skip
        return None
    pieces = s.pieces.get(name)
    if pieces is None:
        first = s.new(MASK, 2)
        pieces = s.pieces[name] = (first, first + 1)
        s.masks[name] = -1
    return pieces


def part_mask(s: Selector, k: int, type: Type, part: int) -> int:
    """The bits of mask `k` that belong to a part of `type`."""
    if not part:
        return k
    t = s.new(MASK)
    op = OPS["kshiftrq" if type.lanes > 32 else "kshiftrd" if type.lanes > 16 else "kshiftrw"]
    by = part * (type.lanes // type.parts)
    return s.later(t, (formats.v3, op, t, -1, k, -1, 0, 0, by))


def short(s: Selector, type: Type) -> int:
    """The mask that a comparison of less than a register needs: its lanes; -1 for whole ones."""
    return -1 if type.size >= 16 else s.mask_constant((1 << type.lanes) - 1, type.lanes)


# -- names


def widened(s: Selector, instruction: Cast, op: str, made: Type) -> str:
    """The name of an operand's lanes as lanes of 32 bits; `s.write` of its record has to follow.

    Nothing that stands between may wait for the end of the instruction: it would come before.
    """
    name, x, source = f"{instruction.name}.w", instruction.x, instruction.source
    s.defs[name] = Cast(op, name, s.block.index, made, x, source)
    s.counts[name] = 2
    return name
