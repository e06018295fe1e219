"""Comparisons as flags and as masks, for all who read them.

A comparison is written where its result is read: as flags for branches and choices, as a mask for
lanes.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Binary, Call, Compare
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import MASK, TYPES, VECTOR, VECTORS, Type, Unsupported, constant
from numjet.cpu.x86.select.operands import swap_for_memory, three
from numjet.cpu.x86.select.select import Selector

_SIGNED = {
    "eq": "e", "ne": "ne", "slt": "l", "sle": "le", "sgt": "g", "sge": "ge",
    "ult": "b", "ule": "be", "ugt": "a", "uge": "ae",
}  # fmt: skip
SWAPPED = {
    "slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "ult": "ugt", "ule": "uge",
    "ugt": "ult", "uge": "ule", "eq": "eq", "ne": "ne",
}  # fmt: skip
# The immediate of a comparison of floats.
FLOAT_PREDICATES = {
    "oeq": 0, "olt": 17, "ole": 18, "uno": 3, "une": 4, "uge": 21, "ugt": 22, "ord": 7,
    "ueq": 8, "ult": 25, "ule": 26, "false": 11, "one": 12, "oge": 29, "ogt": 30, "true": 15,
}  # fmt: skip
# (condition, whether the operands change places) where a comparison of floats sets the flags: what
# is no number counts as below and as equal.
FLOAT_FLAGS = {
    "ogt": ("a", False), "oge": ("ae", False), "olt": ("a", True), "ole": ("ae", True),
    "ult": ("b", False), "ule": ("be", False), "ugt": ("b", True), "uge": ("be", True),
    "uno": ("p", False), "ord": ("np", False), "ueq": ("e", False), "one": ("ne", False),
}  # fmt: skip
_ANY_ALL = ("@llvm.nj.any", "@llvm.nj.all")
_INTEGER_PREDICATES = {
    "eq": 0, "slt": 1, "ult": 1, "sle": 2, "ule": 2,
    "ne": 4, "sge": 5, "uge": 5, "sgt": 6, "ugt": 6,
}  # fmt: skip


def flags(s: Selector, condition: str) -> str:
    """Write, before what was emitted last, what sets the flags; the condition that holds then.

    A comparison with several readers is repeated for each: it costs no more than a look at a bit.
    """
    made = s.defs.get(condition)
    if made is not None and condition not in s.reg and made.block == s.block.index:
        once = s.counts[condition] == 2
        if isinstance(made, Compare) and made.op == "icmp" and not made.type.lanes:
            if made.predicate == "ne" and made.b == "false" and made.a[0] == "%":
                return flags(s, made.a)
            return compare_general(s, made)
        if isinstance(made, Compare) and made.op == "fcmp" and not made.type.lanes:
            if made.predicate in FLOAT_FLAGS:
                return float_flags(s, made)
            if once and not VECTORS.narrow:
                k = s.new(MASK)
                s.emit((formats.vread, OPS["kortestw"], k, -1, k, -1, 0, 0, None))
                compare_floats(s, made, k, 0)
                return "ne"
        elif isinstance(made, Binary) and made.op == "and" and once and made.b[0] == "%":
            bit = TYPES["i1"]
            x = s.general(bit, made.a)
            s.emit((formats.gread, GPR["test"], 4, x, s.general(bit, made.b)))
            return "ne"
        elif isinstance(made, Binary) and made.op == "xor" and once and made.b == "true":
            return negated(flags(s, made.a))
        elif isinstance(made, Call) and once and (
            "vector.reduce." in made.callee or made.callee in _ANY_ALL
        ):
            found = _any_or_all(s, made)
            if found:
                return found
    r = s.general(TYPES["i1"], condition)
    s.emit((formats.g1read, GPR["testi"], 1, r, 1))
    return "ne"


def float_flags(s: Selector, made: Compare) -> str:
    """Compare two single floats; the condition that holds then where the comparison does."""
    a, b, predicate, type = made.a, made.b, made.predicate, made.of
    if type.bits == 16:
        raise Unsupported("comparison of half floats")
    found, turned = FLOAT_FLAGS[predicate]
    if turned:
        a, b = b, a
    op = OPS["vucomi" + type.float_suffix]
    x = s.vector(type, a)
    load = s.foldable(b) if b[0] == "%" else None
    if b[0] != "%":
        data = s.data(type, constant(type, b), 0)
        s.emit((formats.vreadc, op, x, -1, data, -1, 0, 0, 0, None))
    elif load is not None:
        s.emit((formats.vreadm, op, x, -1, s.address(load.pointer), -1, 0, 0, 0, None))
    else:
        s.emit((formats.vread, op, x, -1, s.vector(type, b), -1, 0, 0, None))
    return found


def compare_general(s: Selector, made: Compare) -> str:
    a, b, predicate, type = made.a, made.b, made.predicate, made.of
    return flags_between(s, type, a, b, predicate)


def flags_between(s: Selector, type: Type, a: str, b: str, predicate: str) -> str:
    """Compare two integers; the condition that holds then where `predicate` does."""
    if a[0] not in "%@":
        a, b, predicate = b, a, SWAPPED[predicate]
    size = max(type.bits // 8, 1)
    number = s.integer(type, b)
    if type.bits == 1:
        if number is not None:
            number &= 1
        if predicate[0] == "s":
            raise Unsupported("order of bits")
    folded = s.foldable(b) if b[0] == "%" else None
    if number is not None and -(1 << 31) <= number < 1 << 31:
        folded = s.foldable(a) if a[0] == "%" else None
        if folded is not None:
            memory = s.address(folded.pointer)
            s.emit((formats.gmi, GPR["cmpi"], size, memory, number))
        elif number == 0:
            x = s.general(type, a)
            s.emit((formats.gread, GPR["test"], size, x, x))
        else:
            s.emit((formats.g1read, GPR["cmpi"], size, s.general(type, a), number))
    elif folded is not None:
        x, memory = s.general(type, a), s.address(folded.pointer)
        s.emit((formats.gmread, GPR["cmp"], size, x, memory))
    else:
        x = s.general(type, a)
        s.emit((formats.gread, GPR["cmp"], size, x, s.general(type, b)))
    return _SIGNED[predicate]


def compare_floats(
    s: Selector, made: Compare, k: int, part: int, within: int = -1
) -> None:
    """Write mask `k`: where a comparison of floats holds, in one part and in mask `within`."""
    a, b, predicate, type = made.a, made.b, made.predicate, made.of
    if type.bits == 16:
        raise Unsupported("comparison of half floats")
    imm = FLOAT_PREDICATES[predicate]
    if a[0] != "%" or (b[0] == "%" and swap_for_memory(s, a, b)):
        a, b, imm = b, a, swap_float(imm)
    three(s, OPS["vcmp" + type.float_suffix], k, type, a, b, part, imm, within)


def swap_float(imm: int) -> int:
    """The predicate for exchanged operands."""
    return {17: 30, 30: 17, 18: 29, 29: 18, 21: 26, 26: 21, 22: 25, 25: 22}.get(imm, imm)


def _any_or_all(s: Selector, made: Call) -> str:
    """Flags of a reduction of a mask by `or` or `and`; "" where it is another reduction."""
    type, x = typed(made.arguments)
    if made.callee in _ANY_ALL:
        return flags_of_lanes(s, type, x, made.callee == "@llvm.nj.any")
    kind = made.callee.split(".")[3]
    if type.cls != MASK or kind not in ("or", "and") or type.lanes < 8 or x[0] != "%":
        return ""
    word = {8: "b", 16: "w", 32: "d", 64: "q"}[type.lanes]
    k = s.need(x)
    s.emit((formats.vread, OPS["kortest" + word], k, -1, k, -1, 0, 0, None))
    return "ne" if kind == "or" else "b"


def flags_of_lanes(s: Selector, type: Type, x: str, any_: bool) -> str:
    """Whether any or all lanes are ones, of lanes that are ones or zeros (AVX2)."""
    r = s.vector(type, x) if type.parts == 1 else s.new(VECTOR)
    op, whole = OPS["vptest"], type.size >= 16
    if any_ and whole:
        s.emit((formats.vread, op, r, -1, r, -1, 0, type.length, None))
    else:
        ones = (b"\xff" * type.size).ljust(16, b"\0")[: 16 << type.length]
        s.emit((formats.vreadc, op, r, -1, ones, -1, 0, type.length, 0, None))
    join = OPS["vpord" if any_ else "vpandd"]
    for part in range(type.parts - 1, 0, -1):
        before = s.new(VECTOR) if part > 1 else s.vector(type, x)
        y = s.vector(type, x, part)
        s.put(r, (formats.v3, join, r, before, y, -1, 0, type.length, None))
        r = before
    return "ne" if any_ else "b"


def negated(condition: str) -> str:
    number = CONDITIONS[condition] ^ 1
    return next(name for name, k in CONDITIONS.items() if k == number)


def compare_part(s: Selector, instruction: Compare, piece: int, part: int, k: int) -> None:
    """Write mask `piece`: where a part's integers compare so, in mask `k`."""
    _, _, _, _, a, b, predicate, type = instruction
    imm = _INTEGER_PREDICATES[predicate]
    unsigned = "u" if predicate[0] == "u" else ""
    if swap_for_memory(s, a, b):
        a, b, imm = b, a, {1: 6, 2: 5, 5: 2, 6: 1}.get(imm, imm)
    if b[0] != "%" and constant(type, b).splat == 0 and imm in (0, 4):
        op = OPS[("vptestm" if imm == 4 else "vptestnm") + type.letter]
        masked = s.once(a, Binary, "and") if a[0] == "%" and type.size >= 16 else None
        if masked is not None:
            x, y = masked.a, masked.b
            if swap_for_memory(s, x, y):
                x, y = y, x
            three(s, op, piece, type, x, y, part, k=k)
            return
        r = s.vector(type, a, part)
        s.put(piece, (formats.v3, op, piece, r, r, k, 0, type.length, None))
        return
    three(s, OPS[f"vpcmp{unsigned}{type.letter}"], piece, type, a, b, part, imm, k)
