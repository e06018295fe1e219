"""Selection of integer arithmetic in general registers.

Bits above a type's are unspecified in a register, save that of an i1 all others are 0.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Binary, Cast, Load
from numjet.cpu.x86.front.types import GENERAL, Type, Unsupported, constant, signed
from numjet.cpu.x86.select.operands import extend, seed_general
from numjet.cpu.x86.select.select import Selector, handles, size_of

_OPS = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "mul": "imul"}


@handles("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr",
         "sdiv", "udiv", "srem", "urem", "smulhigh", "umulhigh", classes=(GENERAL,))
def general_binary(s: Selector, instruction: Binary) -> None:
    """Two-operand arithmetic of integers."""
    op, name, _, type, a, b = instruction
    if op in ("add", "mul", "and", "or", "xor") and a[0] != "%":
        a, b = b, a
    number = s.integer(type, b)
    if number is not None and not -(1 << 31) <= number < 1 << 31:
        number = None
    if number is not None and type.bits == 1:
        number &= 1
    d = s.define(name)
    size = size_of(type)
    if op in ("shl", "lshr", "ashr"):
        _shift(s, op, d, type, a, b)
    elif op in ("sdiv", "udiv", "srem", "urem"):
        divide(s, op, d, type, a, b)
    elif op in ("smulhigh", "umulhigh"):
        s.divisions.append(len(s.out))
        x, y = s.general(type, b), s.general(type, a)
        s.put(d, (formats.ghigh, GPR["imul1" if op[0] == "s" else "mul"], d, x, y))
    elif op == "add":
        _add(s, d, type, a, b, number)
    elif op == "mul":
        _multiply(s, d, type, a, b, number)
    elif number is not None:
        if op == "sub" and number != -(1 << 31) and a[0] == "%":
            _add(s, d, type, a, b, -number)
            return
        _tied(s, d, type, a, (formats.g1t, GPR[_OPS[op] + "i"], size, d, number))
    else:
        _two(s, op, d, type, a, b)
        if type.bits == 1 and op == "sub":
            raise Unsupported("difference of bits")


def _tied(s: Selector, d: int, type: Type, a: str, instruction: tuple) -> None:
    """d = op(a), by an instruction that changes d."""
    tied = a[0] == "%" and s.tie(a, d)
    s.put(d, instruction)
    if not tied:
        seed_general(s, d, type, a)


def _two(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    """d = op(a, b)."""
    size = size_of(type)
    made = GPR[_OPS[op]]
    if op != "sub" and a[0] == "%" and b[0] == "%" and a != b:
        # The operand that ends here is overwritten.
        if s.reg.get(b) == d or (a in s.reg and b not in s.reg):
            a, b = b, a
    load = s.foldable(b) if b[0] == "%" and type.bits >= 32 else None
    tied = a[0] == "%" and s.tie(a, d)
    if not tied and b[0] == "%" and s.reg.get(b) == d:
        # d -= and the like of its own operand: through a register of its own
        t = s.new(GENERAL)
        s.put(d, (formats.gmove, GPR["mov"], 8, d, t))
        d = t
    if load is not None:
        s.put(d, (formats.gmt, made, size, d, s.address(load.pointer)))
    else:
        s.put(d, (formats.g2t, made, size, d, s.general(type, b)))
    if not tied:
        seed_general(s, d, type, a)


def _add(s: Selector, d: int, type: Type, a: str, b: str, number: int | None) -> None:
    size = size_of(type)
    if type.bits == 1:
        _two(s, "xor", d, type, a, b)
    elif number is not None and a[0] == "%":
        if s.tie(a, d):
            s.put(d, (formats.g1t, GPR["addi"], size, d, number))
        else:
            s.put(d, (formats.gm, GPR["lea"], size, d, (s.need(a), None, 1, number)))
    elif a[0] == "%" and b[0] == "%":
        if s.reg.get(a) == d or s.reg.get(b) == d or s.foldable(a) or s.foldable(b):
            if s.reg.get(b) == d or (s.foldable(a) and not s.foldable(b)):
                a, b = b, a
            _two(s, "add", d, type, a, b)
        else:
            x = s.need(a)
            s.put(d, (formats.gm, GPR["lea"], size, d, (x, s.need(b), 1, 0)))
    else:
        _two(s, "add", d, type, a, b)


def _multiply(s: Selector, d: int, type: Type, a: str, b: str, number: int | None) -> None:
    size = size_of(type)
    if type.bits == 1:
        _two(s, "and", d, type, a, b)
    elif number is None:
        _two(s, "mul", d, type, a, b)
    elif number in (3, 5, 9) and a[0] == "%":
        x = s.need(a)
        s.put(d, (formats.gm, GPR["lea"], size, d, (x, x, number - 1, 0)))
    elif number > 0 and number & (number - 1) == 0:
        _tied(s, d, type, a, (formats.g1t, GPR["shli"], size, d, number.bit_length() - 1))
    else:
        s.put(d, (formats.g3i, GPR["imuli"], size, d, s.general(type, a), number))


_SHIFTS = {"shl": ("shli", "shlx"), "lshr": ("shri", "shrx"), "ashr": ("sari", "sarx")}


def _shift(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    size = size_of(type)
    number = s.integer(type, b)
    if type.bits == 1:
        raise Unsupported("a shift of one bit")
    if type.bits < 32 and op != "shl":
        t = s.new(GENERAL)
        _shift_register(s, op, d, size, t, type, b, number)
        extend(s, t, type, a, op == "ashr", 4)
    elif number is not None:
        _tied(s, d, type, a, (formats.g1t, GPR[_SHIFTS[op][0]], size, d, number))
    else:
        _shift_register(s, op, d, size, s.general(type, a), type, b, None)


def _shift_register(
    s: Selector, op: str, d: int, size: int, x: int, type: Type, b: str, number: int | None
) -> None:
    if number is not None:
        s.put(d, (formats.g1t, GPR[_SHIFTS[op][0]], size, d, number))
        s.put(d, (formats.gmove, GPR["mov"], 8, d, x))
        return
    made = OPS[_SHIFTS[op][1] + ("q" if size == 8 else "")]
    s.put(d, (formats.v3, made, d, s.general(type, b), x, -1, 0, 0, None))


def divide(s: Selector, op: str, d: int, type: Type, a: str, b: str) -> None:
    """Quotients and remainders; by powers of two without dividing."""
    signed_ = op[0] == "s"
    size = size_of(type)
    number = s.integer(type, b)
    if number is not None and not signed_ and number > 0 and number & (number - 1) == 0:
        if type.bits >= 32:
            if op == "udiv":
                _shift(s, "lshr", d, type, a, str(number.bit_length() - 1))
            elif number - 1 < 1 << 31:
                _tied(s, d, type, a, (formats.g1t, GPR["andi"], size, d, number - 1))
            else:
                _two(s, "and", d, type, a, str(number - 1))
            return
    want = 0 if op.endswith("div") else 2
    made = GPR["idiv" if signed_ else "div"]
    s.divisions.append(len(s.out))
    if type.bits >= 32:
        x, y = s.general(type, a), s.general(type, b)
        s.put(d, (formats.gdivide, made, size, d, x, y, want))
        return
    x, y = s.new(GENERAL), s.new(GENERAL)
    s.put(d, (formats.gdivide, made, size, d, x, y, want))
    extend(s, x, type, a, signed_, 4)
    extend(s, y, type, b, signed_, 4)


@handles("trunc", "zext", "sext", "ptrtoint", "inttoptr", classes=(GENERAL,))
def cast_general(s: Selector, instruction: Cast) -> None:
    """Casts between integers and pointers."""
    op, name, _, type, x, source = instruction
    d = s.define(name)
    if x[0] != "%":
        if x[0] == "@":
            s.put(d, (formats.gmove, GPR["mov"], 8, d, s.general(source, x)))
            return
        value = constant(source, x).splat or 0
        if op == "sext":
            value = signed(value, source.bits)
        s.put(d, (formats.gconst, d, value & ((1 << type.bits) - 1)))
        return
    if op == "trunc" and type.bits == 1:
        _tied(s, d, type, x, (formats.g1t, GPR["andi"], 4, d, 1))
    elif op in ("trunc", "ptrtoint", "inttoptr", "bitcast"):
        if type.bits > source.bits:
            extend(s, d, source, x, False, 8)
        elif not s.tie(x, d):
            s.put(d, (formats.gmove, GPR["mov"], 8, d, s.need(x)))
        else:
            # The same register: what defines x defines this.
            s.end[d] = max(s.end[d], len(s.out))
    else:
        load = s.foldable(x) if source.bits > 1 else None
        if load is not None:
            _extending_load(s, d, source, op == "sext", size_of(type), load)
            return
        extend(s, d, source, x, op == "sext", size_of(type))


def _extending_load(
    s: Selector, d: int, source: Type, signed_: bool, size: int, load: Load
) -> None:
    memory = s.address(load.pointer)
    if source.bits == 32:
        op = GPR["movsxd"] if signed_ else GPR["mov"]
        s.put(d, (formats.gm, op, 8 if signed_ else 4, d, memory))
    else:
        op = GPR[f"mov{'s' if signed_ else 'z'}x{source.bits}"]
        s.put(d, (formats.gm, op, size if signed_ else 4, d, memory))
