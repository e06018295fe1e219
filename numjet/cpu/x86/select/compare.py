"""Selection of comparisons of integers and floats, whose results are in registers or masks."""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Compare
from numjet.cpu.x86.front.types import GENERAL, MASK, Type
from numjet.cpu.x86.select.flags import (
    FLOAT_FLAGS,
    compare_floats,
    compare_general,
    compare_part,
    float_flags,
)
from numjet.cpu.x86.select.operands import compared_masks, mask_word, short
from numjet.cpu.x86.select.select import Selector, handles

# Predicates of bits: an operation, whether its operands change places, whether it is negated.
_BIT_PREDICATES = {
    "ne": ("kxor", 0, 0), "eq": ("kxor", 0, 1), "ult": ("kandn", 0, 0), "uge": ("kandn", 0, 1),
    "ugt": ("kandn", 1, 0), "ule": ("kandn", 1, 1), "sgt": ("kandn", 0, 0),
    "sle": ("kandn", 0, 1), "slt": ("kandn", 1, 0), "sge": ("kandn", 1, 1),
}  # fmt: skip


@handles("icmp", classes=(GENERAL,))
def icmp(s: Selector, instruction: Compare) -> None:
    d = s.define(instruction.name)
    a, b, predicate = instruction.a, instruction.b, instruction.predicate
    if predicate == "ne" and b == "false" and a[0] == "%":  # the bit itself
        if not s.tie(a, d):
            s.put(d, (formats.gmove, GPR["mov"], 8, d, s.need(a)))
        else:
            s.end[d] = max(s.end[d], len(s.out))
        return
    place = len(s.out)
    s.out.append(())
    condition = compare_general(s, instruction)
    s.out[place] = (formats.gset, GPR["set" + condition], d)


@handles("icmp", classes=(MASK,))
def compare_lanes(s: Selector, instruction: Compare) -> None:
    """icmp of vectors."""
    _, name, _, _, a, b, predicate, type = instruction
    if type.bits == 1:
        _compare_bits(s, name, type, s.mask(type, a), s.mask(type, b), predicate)
        return
    for part, piece in enumerate(compared_masks(s, name, type)):
        compare_part(s, instruction, piece, part, short(s, type))


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
        s.put(d, (formats.v3, OPS["kxor" + letter], d, made, ones, -1, 0, 0, None))
    x, y = (y, x) if turned else (x, y)
    s.put(made, (formats.v3, OPS[op + letter], made, x, y, -1, 0, 0, None))


@handles("fcmp", classes=(GENERAL,))
def fcmp(s: Selector, instruction: Compare) -> None:
    name, predicate = instruction.name, instruction.predicate
    k = s.masks.pop(name, -1)
    if k < 0 and predicate in FLOAT_FLAGS:
        d = s.define(name)
        place = len(s.out)
        s.out.append(())
        s.out[place] = (formats.gset, GPR["set" + float_flags(s, instruction)], d)
        return
    if k < 0:
        k = s.new(MASK)
    if name in s.reg:
        d = s.define(name)
        s.put(d, (formats.v3, OPS["kmovd_to_r"], d, -1, k, -1, 0, 0, None))
    compare_floats(s, instruction, k, 0)


@handles("fcmp", classes=(MASK,))
def compare_float_lanes(s: Selector, instruction: Compare) -> None:
    """fcmp of vectors."""
    type = instruction.of
    for part, piece in enumerate(compared_masks(s, instruction.name, type)):
        compare_floats(s, instruction, piece, part, short(s, type))
