"""Selection of two bitwise operations as one: `vpternlog` computes any function of three bits.

For `select.arithmetic`, which asks here before it writes `and`, `or` or `xor` of lanes; two shifts
that make up a rotation are one instruction, too. What would break it: an inner operation with
another reader, which would be computed twice.
"""

from __future__ import annotations

from operator import and_, or_, xor

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Binary
from numjet.cpu.x86.front.types import VECTOR, Type, constant
from numjet.cpu.x86.select.operands import last, seed
from numjet.cpu.x86.select.select import Selector

_FUNCTIONS = {"and": and_, "or": or_, "xor": xor}
_SHIFTS = {"shl": "vpsll", "lshr": "vpsrl"}
# The three operands of the instruction, the overwritten one first, in its truth table.
_TABLE = (0xF0, 0xCC, 0xAA)
# What the constants of masks and shifts become is masked behind the shift.
Shift = tuple[str, int]
_INNER = frozenset(("and", "or", "xor", "shl", "lshr"))


def inner_operation(
    s: Selector, type: Type, name: str
) -> tuple[str, str, str, Shift | None] | None:
    """(operation, operand, operand, the first one's shift) of what only this operand reads."""
    made = s.defs.get(name)
    if not isinstance(made, Binary) or made.op not in _INNER or made.type is not type:
        return None
    if s.once(name, Binary) is None:
        return None
    p, q = made.a, made.b
    if made.op == "or" and rotates(s, made) is not None:
        return None
    if made.op in _FUNCTIONS:
        return made.op, p, q, None
    # A shift by a constant of what a constant masks.
    by = constant(type, q).splat if q[0] != "%" else None
    masked = s.once(p, Binary, "and") if p[0] == "%" else None
    if by is None or by >= type.bits or masked is None or masked.a[0] != "%":
        return None
    if type.bits == 8:  # there are no shifts of bytes
        return None
    mask = constant(type, masked.b).splat if masked.b[0] != "%" else None
    if mask is None:
        return None
    mask = mask << by & (1 << type.bits) - 1 if made.op == "shl" else mask >> by
    return "and", masked.a, f"splat ({type.element} {mask})", (made.op, by)


def ternary(s: Selector, instruction: Binary) -> bool:
    """Write `and`, `or` or `xor` of lanes and the one behind an operand, if there is one."""
    op, name, _, type, a, b = instruction
    if op == "or" and _rotation(s, instruction):
        return True
    for other, inner in ((b, a), (a, b)):
        found = inner_operation(s, type, inner) if inner[0] == "%" else None
        if found is None:
            continue
        inside, p, q, shift = found
        operands = [other, p, q]
        if len(set(operands)) < 3 or all(x[0] != "%" for x in operands):
            continue
        d = s.define(name)
        order = _order(s, d, operands, shift)
        table = [0, 0, 0]
        for k, bits in zip(order, _TABLE, strict=True):
            table[k] = bits
        x, y, z = table
        imm = _FUNCTIONS[op](x, _FUNCTIONS[inside](y, z)) & 0xFF
        for part in range(type.parts):
            _write(s, d, type, part, [operands[k] for k in order], imm, shift, order.index(1))
        return True
    return False


def _rotation(s: Selector, instruction: Binary) -> bool:
    """Two shifts of one value that make up a rotation."""
    found = rotates(s, instruction)
    if found is None:
        return False
    type = instruction.type
    rotated, by = found
    d = s.define(instruction.name)
    for part in range(type.parts):
        x = s.vector(type, rotated, part)
        made = OPS[f"vprol{type.letter}i"]
        s.put(d + part, (formats.v3s, made, d + part, x, type.length, by))
    return True


def rotates(s: Selector, instruction: Binary) -> tuple[str, int] | None:
    """What is rotated, and by how much to the left."""
    type, a, b = instruction.type, instruction.a, instruction.b
    if type.bits < 32 or b[0] != "%":
        return None
    left, right = s.once(a, Binary, "shl"), s.once(b, Binary, "lshr")
    if left is None:
        left, right = s.once(b, Binary, "shl"), s.once(a, Binary, "lshr")
    if left is None or right is None or left.a != right.a or left.a[0] != "%":
        return None
    if left.b[0] == "%" or right.b[0] == "%":
        return None
    by, back = constant(type, left.b).splat, constant(type, right.b).splat
    if by is None or back is None or by + back != type.bits:
        return None
    return left.a, by


def _order(s: Selector, d: int, operands: list[str], shift: Shift | None) -> list[int]:
    """Which operand is overwritten, which is a register, and which is read last, from anywhere."""
    named = [k for k, operand in enumerate(operands) if operand.startswith("%")]
    fixed = [k for k in named if s.reg.get(operands[k]) == d and not (shift and k == 1)]
    rest = [k for k in range(3) if k not in fixed[:1]]
    movable = [k for k in rest if not (shift and k == 1)]
    last = next((k for k in movable if k not in named), None)
    if last is None:
        last = next((k for k in movable if s.foldable(operands[k]) is not None), movable[-1])
    rest.remove(last)
    if fixed:
        return [fixed[0], *rest, last]
    first = None
    if shift:
        first = 1
    else:
        ties = [k for k in rest if k in named and s.foldable(operands[k]) is None]
        first = next((k for k in ties if s.tie(operands[k], d)), None)
        if first is None:
            first = next((k for k in rest if k not in named), rest[0])
    rest.remove(first)
    return [first, *rest, last]


def _write(
    s: Selector, d: int, type: Type, part: int, operands: list[str], imm: int,
    shift: Shift | None, shifted: int,
) -> None:
    first, second, third = operands
    op = OPS["vpternlog" + ("q" if type.bits == 64 else "d")]
    d += part
    if shift is None:
        last(s, op, d, s.vector(type, second, part), type, third, part, imm=imm, tied=True)
    else:
        y = s.new(VECTOR) if shifted == 1 else s.vector(type, second, part)
        last(s, op, d, y, type, third, part, imm=imm, tied=True)
        to = y if shifted == 1 else d
        made = OPS[_SHIFTS[shift[0]] + type.letter + "i"]
        x = s.vector(type, operands[shifted], part)
        s.put(to, (formats.v3s, made, to, x, type.length, shift[1]))
        if shifted == 0:
            return
    if first[0] != "%" or s.reg.get(first, -1) + part != d:
        seed(s, d, type, first, part)
