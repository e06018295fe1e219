"""Selection of arithmetic in vector registers, on lanes and on single floats, and of comparisons.

The last operand of most instructions may be memory: a constant (one element, read for all lanes)
or a load that nobody else reads.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Binary, Compare, Negation
from numjet.cpu.x86.front.types import MASK, VECTOR, VECTORS, Type, Unsupported, constant
from numjet.cpu.x86.select import byte_lanes
from numjet.cpu.x86.select.flags import compare_floats, compare_part
from numjet.cpu.x86.select.logic import ternary
from numjet.cpu.x86.select.operands import mask_word, pattern, swap_for_memory, three
from numjet.cpu.x86.select.select import Selector, handles

_FLOAT = {"fadd": "vadd", "fsub": "vsub", "fmul": "vmul", "fdiv": "vdiv"}
_COMMUTES = frozenset(("fadd", "fmul", "add", "mul", "and", "or", "xor"))
_INTEGER = {"add": "vpadd", "sub": "vpsub"}


@handles("fadd", "fsub", "fmul", "fdiv")
def float_binary(s: Selector, instruction: Binary) -> None:
    op, name, _, type, a, b = instruction
    if type.bits == 16:
        raise Unsupported("half arithmetic")
    if op in _COMMUTES and swap_for_memory(s, a, b):
        a, b = b, a
    d = s.define(name)
    made = OPS[_FLOAT[op] + type.float_suffix]
    for part in range(type.parts):
        three(s, made, d + part, type, a, b, part)


@handles("fneg")
def fneg(s: Selector, instruction: Negation) -> None:
    _, name, _, type, x = instruction
    d = s.define(name)
    for part in range(type.parts):
        pattern(s, "xor", d + part, s.vector(type, x, part), type, 1 << (type.bits - 1))


@handles("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr",
         "sdiv", "udiv", "srem", "urem", "smulhigh", "umulhigh", classes=(VECTOR,))
def binary(s: Selector, instruction: Binary) -> None:
    op, name, _, type, a, b = instruction
    if (
        op in ("and", "or", "xor") and type.size >= 16 and not VECTORS.narrow
        and ternary(s, instruction)
    ):  # fmt: skip
        return
    if op in _COMMUTES and swap_for_memory(s, a, b):
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


def shift(s: Selector, instruction: Binary, d: int) -> None:
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
            s.put(d + part, (formats.v3s, made, d + part, x, type.length, min(count, 255)))
        else:
            made = OPS[_SHIFTS[op] + "v" + type.letter]
            three(s, made, d + part, type, a, b, part)


def high_product(s: Selector, instruction: Binary, d: int) -> None:
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
        s.put(d_, (formats.v3t, OPS["vpermt2d"], d_, numbers, odd, -1, 0, length, None))
        s.put(d_, (formats.v3c, made, d_, x, data, -1, 0, length, 1, None))
        s.put(odd, (formats.v3c, made, odd, up, data, -1, 0, length, 1, None))
        s.put(up, (formats.v3, OPS["vmovshdup"], up, -1, x, -1, 0, length, None))
        load = (formats.v3c, OPS["vmovups"], numbers, -1, b"".join(table), -1, 0, length, 0, None)
        s.put(numbers, load)


@handles("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr",
         "sdiv", "udiv", "srem", "urem", classes=(MASK,))
def mask_binary(s: Selector, instruction: Binary) -> None:
    """and, or, xor of masks; bits beyond the lanes stay 0."""
    op, name, _, type, a, b = instruction
    if a[0] != "%":
        a, b = b, a
    d = s.define(name)
    letter = mask_word(type.lanes)
    ones = (1 << type.lanes) - 1
    if op == "xor" and b[0] != "%" and constant(type, b).mask() == ones and type.lanes >= 8:
        s.put(d, (formats.v3, OPS["knot" + letter], d, -1, s.mask(type, a), -1, 0, 0, None))
        return
    if op not in ("and", "or", "xor"):
        op = {"add": "xor", "sub": "xor", "mul": "and"}.get(op, "")
        if not op:
            raise Unsupported("arithmetic of bits")
    if op == "and" and _compared_within(s, d, type, a, b):
        return
    x, y = s.mask(type, a), s.mask(type, b)
    s.put(d, (formats.v3, OPS[f"k{op}{letter}"], d, x, y, -1, 0, 0, None))


def _compared_within(s: Selector, d: int, type: Type, a: str, b: str) -> bool:
    """Write d = a and b where one is a comparison, which a mask may confine to the other."""
    for x, other in ((b, a), (a, b)):
        made = s.once(x, Compare)
        if made is None or made.of.parts > 1 or made.of.bits == 1:
            continue
        k = s.mask(type, other)
        if made.op == "fcmp":
            compare_floats(s, made, d, 0, k)
        else:
            compare_part(s, made, d, 0, k)
        return True
    return False
