"""Selection of gathers and scatters: addresses that are a base and a vector of indices."""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.instructions import Address, Call, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import MASK, PTR, TYPES, VECTOR, Type, Unsupported, constant, signed
from numjet.cpu.x86.select.operands import seed
from numjet.cpu.x86.select.select import Selector


def _where(s: Selector, pointers: str, lanes: int) -> tuple[int, Type, str, int]:
    """(base register, type of the indices, the indices, scale) behind a vector of pointers."""
    made = s.defs.get(pointers)
    if not isinstance(made, Address) or made.base_type.lanes:
        raise Unsupported("pointers of lanes from elsewhere")
    size, base, index_type, index = made.size, made.base, made.offset_type, made.offset
    if size not in (1, 2, 4, 8) or index_type.bits not in (32, 64):
        raise Unsupported("indices of lanes in other units")
    if index[0] != "%" and index_type.bits == 64:
        numbers = [signed(lane or 0, 64) for lane in constant(index_type, index).lanes]
        if all(-(1 << 31) <= number < 1 << 31 for number in numbers):
            index_type = TYPES[f"<{lanes} x i32>"]
            index = f"<{', '.join(f'i32 {number}' for number in numbers)}>"
    if index_type.parts > 1:
        raise Unsupported("indices in several registers")
    return s.general(PTR, base), index_type, index, size


def _plan(s: Selector, type: Type, pointers: str, word: str) -> tuple:
    """(opcode, base, index register, scale, length)."""
    if type.bits not in (32, 64) or type.parts > 1:
        raise Unsupported(f"{word} of {type.text}")
    base, index_type, index, scale = _where(s, pointers, type.lanes)
    total = max(type.bits, index_type.bits) * type.lanes
    length = 0 if total <= 128 else 1 if total == 256 else 2
    op = OPS[f"v{word}{'q' if index_type.bits == 64 else 'd'}{type.float_suffix}"
             + ("_s" if word == "scatter" else "")]
    return op, base, s.vector(index_type, index), scale, length


def _mask(s: Selector, type: Type, mask_type: Type, mask: str) -> int:
    """A register of its own for the mask, which the instruction clears."""
    k = s.new(MASK)
    if mask[0] == "%":
        s.later(k, (forms.vmove, OPS["kmovq"], k, s.need(mask), 0))
        return k
    bits = constant(mask_type, mask).mask()
    if bits == (1 << type.lanes) - 1 and type.lanes == 8:
        s.later(k, (forms.v3, OPS["kxnorb"], k, k, k, -1, 0, 0, None))
    elif bits == (1 << type.lanes) - 1 and type.lanes == 16:
        s.later(k, (forms.v3, OPS["kxnorw"], k, k, k, -1, 0, 0, None))
    else:
        s.later(k, (forms.vmove, OPS["kmovq"], k, s.mask_constant(bits, type.lanes), 0))
    return k


def gather(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.masked.gather"""
    name, type = result_of(instruction)
    pointers = typed(parts[0])[1]
    mask_type, mask = typed(parts[2])
    other = typed(parts[3])[1]
    d = s.define(name)
    op, base, index, scale, length = _plan(s, type, pointers, "gather")
    k = _mask(s, type, mask_type, mask)
    if index == d:
        t = s.new(VECTOR)
        s.put(d, (forms.vmove, OPS["vmovaps"], d, t, type.length))
        d = t
    s.put(d, (forms.vgather, op, d, (base, index, scale, 0), k, length))
    if other[0] != "%" or not s.tie(other, d):
        seed(s, d, type, other)


def scatter(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.masked.scatter: in the order of lanes."""
    type, value = typed(parts[0])
    pointers = typed(parts[1])[1]
    mask_type, mask = typed(parts[3])
    s.memory = instruction.memory
    op, base, index, scale, length = _plan(s, type, pointers, "scatter")
    x = s.vector(type, value)
    k = _mask(s, type, mask_type, mask)
    s.emit((forms.vscatter, op, x, (base, index, scale, 0), k, length))

