"""Selection of arithmetic in vector registers, on lanes and on single floats, and of comparisons.

The last operand of most instructions may be memory: a constant (one element, read for all lanes)
or a load that nobody else reads.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS, Op
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.parse import Instruction, split, typed
from numjet.cpu.x86.front.types import GENERAL, MASK, VECTOR, Type, Unsupported, constant
from numjet.cpu.x86.select import byte_lanes
from numjet.cpu.x86.select.control import FLOAT_FLAGS, compare_floats, float_flags
from numjet.cpu.x86.select.logic import ternary
from numjet.cpu.x86.select.scalar import general_binary
from numjet.cpu.x86.select.select import Selector, handles, move

_FLOAT = {"fadd": "vadd", "fsub": "vsub", "fmul": "vmul", "fdiv": "vdiv"}
_COMMUTES = frozenset(("fadd", "fmul", "add", "mul", "and", "or", "xor"))
_INTEGER = {"add": "vpadd", "sub": "vpsub"}
_INTEGER_PREDICATES = {
    "eq": 0, "slt": 1, "ult": 1, "sle": 2, "ule": 2,
    "ne": 4, "sge": 5, "uge": 5, "sgt": 6, "ugt": 6,
}  # fmt: skip


def last(
    s: Selector, op: Op, d: int, x: int, type: Type, b: str, part: int = 0,
    k: int = -1, z: int = 0, imm: int | None = None, tied: bool = False,
) -> None:
    """Write d = op(x, b); `b` is an operand of the text, where possible read from memory."""
    length = type.length
    here: tuple
    if b[0] == "%":
        made = s.defs.get(b)
        kind = "" if made is None else made[0]
        load = s.foldable(b) if kind == "load" else None
        if load is not None and (type.size >= 16 or not type.lanes):
            base, index, scale, disp = s.address(load[4])
            memory = (base, index, scale, disp + 64 * part)
            shape = forms.v3mt if tied else forms.v3m
            here = (shape, op, d, x, memory, k, z, length, 0, imm)
        elif (
            kind == "shufflevector" and op.element * 8 == type.bits
            and (load := s.spread(b)) is not None
        ):  # fmt: skip
            shape = forms.v3mt if tied else forms.v3m
            here = (shape, op, d, x, s.address(load[4]), k, z, length, 1, imm)
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


def scales(instruction: Instruction) -> bool:
    """Whether `scaled` writes this call."""
    return instruction[4].startswith("@llvm.x86.avx512.mask.scalef.")


def scaled(s: Selector, instruction: Instruction, d: int, part: int, k: int = -1) -> None:
    """Write d = x·2^n; 0 where `k` is given and does not hold."""
    type = instruction[3]
    x, n, _, mask, *rounding = [typed(word) for word in split(instruction[5])]
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


@handles("fadd", "fsub", "fmul", "fdiv")
def float_binary(s: Selector, instruction: Instruction) -> None:
    op, name, _, type, a, b = instruction
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    if op in _COMMUTES and swap_for_memory(s, type, a, b):
        a, b = b, a
    d = s.define(name)
    made = OPS[_FLOAT[op] + type.float_suffix]
    for part in range(type.parts):
        three(s, made, d + part, type, a, b, part)


@handles("fneg")
def fneg(s: Selector, instruction: Instruction) -> None:
    _, name, _, type, x = instruction
    d = s.define(name)
    for part in range(type.parts):
        pattern(s, "xor", d + part, s.vector(type, x, part), type, 1 << (type.bits - 1))


@handles("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr",
         "sdiv", "udiv", "srem", "urem", "smulhigh", "umulhigh")
def binary(s: Selector, instruction: Instruction) -> None:
    op, name, _, type, a, b = instruction
    if type.cls == GENERAL:
        general_binary(s, instruction)
        return
    if type.cls == MASK:
        mask_binary(s, instruction)
        return
    if op in ("and", "or", "xor") and type.size >= 16 and ternary(s, instruction):
        return
    if op in _COMMUTES and swap_for_memory(s, type, a, b):
        a, b = b, a
    d = s.define(name)
    imm = None
    if op in _INTEGER:
        made = _INTEGER[op] + type.letter
    elif op in ("and", "or", "xor"):
        made = f"vp{op}{'q' if type.bits == 64 else 'd'}"
    elif op == "mul":
        if type.bits == 8:
            byte_lanes.product(s, d, type, a, b)
            return
        made = "vpmull" + type.letter
    elif op in ("shl", "lshr", "ashr"):
        shift(s, instruction, d)
        return
    elif op in ("smulhigh", "umulhigh"):
        high_product(s, instruction, d)
        return
    else:
        raise Unsupported(f"vector {op}")
    for part in range(type.parts):
        three(s, OPS[made], d + part, type, a, b, part, imm)


_SHIFTS = {"shl": "vpsll", "lshr": "vpsrl", "ashr": "vpsra"}


def shift(s: Selector, instruction: Instruction, d: int) -> None:
    """Shifts of lanes, by one number or by lanes."""
    op, _, _, type, a, b = instruction
    if type.bits == 8:
        byte_lanes.shift(s, op, d, type, a, b)
        return
    count = constant(type, b).splat if b[0] != "%" else None
    for part in range(type.parts):
        if count is not None:
            made = OPS[_SHIFTS[op] + type.letter + "i"]
            x = s.vector(type, a, part)
            # The destination of these stands in vvvv.
            s.put(d + part, (forms.v3s, made, d + part, x, type.length, min(count, 255)))
        else:
            made = OPS[_SHIFTS[op] + "v" + type.letter]
            three(s, made, d + part, type, a, b, part)


def high_product(s: Selector, instruction: Instruction, d: int) -> None:
    """The upper halves of products with a number of 32 bits, the same in all lanes.

    An instruction multiplies every other lane: the lanes between go through another.
    """
    op, _, _, type, a, b = instruction
    made = OPS["vpmuldq" if op[0] == "s" else "vpmuludq"]
    data = constant(type, b).packed(32)[:4] * 2
    length, count = type.length, (16 << type.length) // 4
    picked = [lane if lane & 1 else lane + 1 for lane in range(count)]
    table = [(lane + count * (k & 1)).to_bytes(4, "little") for k, lane in enumerate(picked)]
    for part in range(type.parts):
        numbers, odd, up = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
        x, d_ = s.vector(type, a, part), d + part
        s.put(d_, (forms.v3t, OPS["vpermt2d"], d_, numbers, odd, -1, 0, length, None))
        s.put(d_, (forms.v3c, made, d_, x, data, -1, 0, length, 1, None))
        s.put(odd, (forms.v3c, made, odd, up, data, -1, 0, length, 1, None))
        s.put(up, (forms.v3, OPS["vmovshdup"], up, -1, x, -1, 0, length, None))
        load = (forms.v3c, OPS["vmovups"], numbers, -1, b"".join(table), -1, 0, length, 0, None)
        s.put(numbers, load)


# -- masks


def mask_word(lanes: int) -> str:
    """The letter of instructions on that many mask bits."""
    return "b" if lanes <= 8 else "w" if lanes == 16 else "d" if lanes == 32 else "q"


def mask_binary(s: Selector, instruction: Instruction) -> None:
    """and, or, xor of masks; bits beyond the lanes stay 0."""
    op, name, _, type, a, b = instruction
    if a[0] != "%":
        a, b = b, a
    d = s.define(name)
    letter = mask_word(type.lanes)
    ones = (1 << type.lanes) - 1
    if op == "xor" and b[0] != "%" and constant(type, b).mask() == ones and type.lanes >= 8:
        s.put(d, (forms.v3, OPS["knot" + letter], d, -1, s.mask(type, a), -1, 0, 0, None))
        return
    if op not in ("and", "or", "xor"):
        op = {"add": "xor", "sub": "xor", "mul": "and"}.get(op, "")
        if not op:
            raise Unsupported("arithmetic of bits")
    if op == "and" and _compared_within(s, d, type, a, b):
        return
    x, y = s.mask(type, a), s.mask(type, b)
    s.put(d, (forms.v3, OPS[f"k{op}{letter}"], d, x, y, -1, 0, 0, None))


def _compared_within(s: Selector, d: int, type: Type, a: str, b: str) -> bool:
    """Write d = a and b where one is a comparison, which a mask may confine to the other."""
    for x, other in ((b, a), (a, b)):
        made = s.once(x, "fcmp") or s.once(x, "icmp")
        if made is None or made[7].parts > 1 or made[7].bits == 1:
            continue
        k = s.mask(type, other)
        if made[0] == "fcmp":
            compare_floats(s, made, d, 0, k)
        else:
            _compare_part(s, made, d, 0, k)
        return True
    return False


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
            s.put(piece, (forms.v3, op, piece, high, low, -1, 0, 0, None))
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
        s.put(d, (forms.v3, op, d, pieces[1], pieces[0], -1, 0, 0, None))
    return [*pieces]


def part_masks(s: Selector, name: str, type: Type) -> tuple[int, int] | None:
    """The masks of the two parts of `type` where a comparison of so many parts makes them."""
    made = s.defs.get(name)
    if (
        type.parts != 2 or made is None or made[0] not in ("fcmp", "icmp")
        or made[2] != s.block.index or made[7].parts != 2 or made[7].bits == 1
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
    return s.later(t, (forms.v3, op, t, -1, k, -1, 0, 0, by))


def short(s: Selector, type: Type) -> int:
    """The mask that a comparison of less than a register needs: its lanes; -1 for whole ones."""
    return -1 if type.size >= 16 else s.mask_constant((1 << type.lanes) - 1, type.lanes)


def compare_integers(s: Selector, instruction: Instruction) -> None:
    """icmp of vectors."""
    name, (a, b, predicate, type) = instruction[1], instruction[4:8]
    if type.bits == 1:
        _compare_bits(s, name, type, s.mask(type, a), s.mask(type, b), predicate)
        return
    for part, piece in enumerate(compared_masks(s, name, type)):
        _compare_part(s, instruction, piece, part, short(s, type))


# Predicates of bits: an operation, whether its operands change places, whether it is negated.
_BIT_PREDICATES = {
    "ne": ("kxor", 0, 0), "eq": ("kxor", 0, 1), "ult": ("kandn", 0, 0), "uge": ("kandn", 0, 1),
    "ugt": ("kandn", 1, 0), "ule": ("kandn", 1, 1), "sgt": ("kandn", 0, 0),
    "sle": ("kandn", 0, 1), "slt": ("kandn", 1, 0), "sge": ("kandn", 1, 1),
}  # fmt: skip


def _compare_bits(s: Selector, name: str, type: Type, x: int, y: int, predicate: str) -> None:
    """icmp of masks; with sign, a one is -1."""
    op, turned, negated = _BIT_PREDICATES[predicate]
    if predicate == "eq" and type.lanes >= 8:  # no bits beyond the lanes
        op, negated = "kxnor", 0
    d, letter = s.define(name), mask_word(type.lanes)
    made = d
    if negated:
        made = s.new(MASK)
        ones = s.mask_constant((1 << type.lanes) - 1, type.lanes)
        s.put(d, (forms.v3, OPS["kxor" + letter], d, made, ones, -1, 0, 0, None))
    x, y = (y, x) if turned else (x, y)
    s.put(made, (forms.v3, OPS[op + letter], made, x, y, -1, 0, 0, None))


def _compare_part(s: Selector, instruction: Instruction, piece: int, part: int, k: int) -> None:
    """Write mask `piece`: where a part's integers compare so, in mask `k`."""
    a, b, predicate, type = instruction[4:8]
    imm = _INTEGER_PREDICATES[predicate]
    unsigned = "u" if predicate[0] == "u" else ""
    if swap_for_memory(s, type, a, b):
        a, b, imm = b, a, {1: 6, 2: 5, 5: 2, 6: 1}.get(imm, imm)
    if b[0] != "%" and constant(type, b).splat == 0 and imm in (0, 4):
        op = OPS[("vptestm" if imm == 4 else "vptestnm") + type.letter]
        masked = s.once(a, "and") if a[0] == "%" and type.size >= 16 else None
        if masked is not None:
            x, y = masked[4:6]
            if swap_for_memory(s, type, x, y):
                x, y = y, x
            three(s, op, piece, type, x, y, part, k=k)
            return
        r = s.vector(type, a, part)
        s.put(piece, (forms.v3, op, piece, r, r, k, 0, type.length, None))
        return
    three(s, OPS[f"vpcmp{unsigned}{type.letter}"], piece, type, a, b, part, imm, k)


@handles("fcmp")
def fcmp(s: Selector, instruction: Instruction) -> None:
    name, predicate, type = instruction[1], *instruction[6:8]
    if not type.lanes:
        k = s.masks.pop(name, -1)
        if k < 0 and predicate in FLOAT_FLAGS:
            d = s.define(name)
            place = len(s.out)
            s.out.append(())
            s.out[place] = (forms.gset, GPR["set" + float_flags(s, instruction)], d)
            return
        if k < 0:
            k = s.new(MASK)
        if name in s.reg:
            d = s.define(name)
            s.put(d, (forms.v3, OPS["kmovd_to_r"], d, -1, k, -1, 0, 0, None))
        compare_floats(s, instruction, k, 0)
        return
    for part, piece in enumerate(compared_masks(s, name, type)):
        compare_floats(s, instruction, piece, part, short(s, type))
