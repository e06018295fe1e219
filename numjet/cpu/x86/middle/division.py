"""Divisions of integers by constants as multiplications and shifts, and remainders from quotients.

`divide(function)` rewrites a function: single integers, and lanes of 32 bits by one number. What it
writes may use `smulhigh` and `umulhigh`, the upper half of a product, which no text spells. For:
`generate`. Source of the multipliers: Granlund & Montgomery 1994.
"""

from __future__ import annotations

from numjet.cpu.x86.front.instructions import Binary, Cast, Instruction
from numjet.cpu.x86.front.parse import Block, Function
from numjet.cpu.x86.front.types import TYPES, Type, constant, signed

_OPS = ("sdiv", "udiv", "srem", "urem")


def divide(function: Function) -> None:
    """Replace divisions by constants, and remainders of what is divided too."""
    if any([function.counts[op] for op in _OPS]):
        for block in function.blocks:
            if any([i.op in _OPS for i in block.instructions]):
                _Block(function, block).run()


class _Block:
    """A block's instructions, written anew."""

    def __init__(self, function: Function, block: Block) -> None:
        self.function, self.block = function, block
        self.made: list[Instruction] = []
        self.divided = {
            (i.op, i.type, i.a, i.b) for i in block.instructions
            if isinstance(i, Binary) and i.op in _OPS[:2]
        }  # fmt: skip
        self.quotients: dict[tuple, str] = {}  # those that have been written

    def run(self) -> None:
        """Rewrite the block."""
        instructions, self.block.instructions = self.block.instructions, self.made
        for i in instructions:
            if not isinstance(i, Binary) or i.op not in _OPS or not self.division(i):
                self.made.append(i)

    def put(self, name: str, op: str, type: Type, a: str, b: str | int) -> str:
        """Write `name` = op(a, b); a number is the same in all lanes."""
        if not isinstance(b, str):
            b = _number(type, b)
        return self.add(Binary(op, name, self.block.index, type, a, b))

    def add(self, instruction: Binary | Cast) -> str:
        name = instruction.name
        self.made.append(instruction)
        self.function.defs[name] = instruction
        for word in (name, *[x for x in instruction[4:] if isinstance(x, str)]):
            self.function.counts[word] += 1
        return name

    def division(self, i: Binary) -> bool:
        """Write a quotient or remainder; False where it stays."""
        op, name, _, type, a, b = i
        sign, counts = op[0], self.function.counts
        wanted = (f"{sign}div", type, a, b) in self.divided
        if a[0] != "%" or type.bits < 32:
            return False
        by = 0 if b[0] == "%" else constant(type, b).splat or 0
        if type.lanes:
            if type.bits != 32 or not by:
                return False
        else:
            short = b[0] != "%" and _possible(sign, type.bits, by)
            if not short and (b[0] != "%" or not wanted or op.endswith("div")):
                return False
        # The instruction's own names are counted again where they are written again.
        for word in (name, a, b):
            counts[word] -= 1
        if op.endswith("div"):
            self.quotient(name, sign, type, a, b, by)
            return True
        q = self.quotient(f"{name}.q", sign, type, a, b, by)
        self.put(name, "sub", type, a, self.put(f"{name}.p", "mul", type, q, b))
        return True

    def quotient(self, name: str, sign: str, type: Type, x: str, b: str, by: int) -> str:
        """Write x / b as `name`, or find it; by: the bits of b where that is a number, else 0."""
        key = (sign, type, x, b)
        if key in self.quotients:
            if name.endswith(".q"):
                return self.quotients[key]
            made = self.quotients[key]
            return self.add(Cast("bitcast", name, self.block.index, type, made, type))
        self.quotients[key] = name
        if not by:
            return self.put(name, f"{sign}div", type, x, b)
        divisor = signed(by, type.bits) if sign == "s" else by
        size = abs(divisor)
        end = name if divisor > 0 else f"{name}.n"
        if size == 1:
            self.add(Cast("bitcast", end, self.block.index, type, x, type))
        elif not size & (size - 1):
            self.shifted(end, sign, type, x, size.bit_length() - 1)
        elif type.lanes:
            self.lanes(end, sign, type, x, size)
        elif type.bits == 32:
            self.narrow(end, sign, x, size)
        else:
            self.wide(end, sign, x, size)
        return end if divisor > 0 else self.put(name, "sub", type, _number(type, 0), end)

    def shifted(self, end: str, sign: str, t: Type, x: str, by: int) -> None:
        """A quotient by 2**by: a shift, after what makes negative numbers round up."""
        if sign == "u":
            self.put(end, "lshr", t, x, by)
            return
        up = x if by == 1 else self.put(f"{end}.a", "ashr", t, x, t.bits - 1)
        up = self.put(f"{end}.b", "lshr", t, up, t.bits - by)
        self.put(end, "ashr", t, self.put(f"{end}.c", "add", t, x, up), by)

    def narrow(self, end: str, sign: str, x: str, size: int) -> None:
        """A quotient of 32 bits, by a product of 64."""
        put, index, half, t = self.put, self.block.index, TYPES["i32"], TYPES["i64"]
        m, s = _multiplier(32, 32 if sign == "u" else 31, size)
        wide = self.add(Cast(f"{'z' if sign == 'u' else 's'}ext", f"{end}.w", index, t, x, half))
        if sign == "u" and m >> 32:
            h = put(f"{end}.h", "umulhigh", t, wide, -(-(1 << 64) // size))
        elif sign == "u":
            h = put(f"{end}.h", "lshr", t, put(f"{end}.m", "mul", t, wide, m), 32 + s)
        else:
            product = put(f"{end}.m", "mul", t, wide, m)
            h = put(f"{end}.h", "ashr", t, product, 32 + s)
            h = put(f"{end}.i", "add", t, h, put(f"{end}.s", "lshr", t, product, 63))
        self.add(Cast("trunc", end, index, half, h, t))

    def lanes(self, end: str, sign: str, t: Type, x: str, size: int) -> None:
        """Quotients of lanes of 32 bits, by the upper halves of products."""
        put = self.put
        m, s = _multiplier(32, 32 if sign == "u" else 31, size)
        h = put(f"{end}.h", f"{sign}mulhigh", t, x, m & 0xFFFFFFFF)
        if sign == "u" and m >> 32:  # x + h has 33 bits: half of what x is more, and h
            h = put(f"{end}.j", "lshr", t, put(f"{end}.i", "sub", t, x, h), 1)
            put(end, "lshr", t, put(f"{end}.k", "add", t, h, f"{end}.h"), s - 1)
        elif sign == "u":
            put(end, "lshr", t, h, s)
        else:
            if m >> 31:  # the instruction takes m - 2**32
                h = put(f"{end}.i", "add", t, h, x)
            if s:
                h = put(f"{end}.j", "ashr", t, h, s)
            put(end, "add", t, h, put(f"{end}.s", "lshr", t, h, 31))

    def wide(self, end: str, sign: str, x: str, size: int) -> None:
        """A quotient of 64 bits, by the upper half of a product of 128."""
        put, t = self.put, TYPES["i64"]
        m, s = _multiplier(64, 64 if sign == "u" else 63, size)
        h = put(f"{end}.h", f"{sign}mulhigh", t, x, m)
        if sign == "u":
            put(end, "lshr", t, h, s)
            return
        if m >> 63:  # the instruction takes m - 2**64
            h = put(f"{end}.i", "add", t, h, x)
        if s:
            h = put(f"{end}.j", "ashr", t, h, s)
        put(end, "add", t, h, put(f"{end}.s", "lshr", t, h, 63))


def _number(type: Type, value: int) -> str:
    """The text of a number, in all lanes where there are lanes."""
    return f"splat ({type.element} {value})" if type.lanes else str(value)


def _multiplier(bits: int, precision: int, size: int) -> tuple[int, int]:
    """(m, s): x / size is x·m / 2**(bits + s), rounded down, for 0 <= x < 2**precision."""
    for s in range(bits + 1):
        power = 1 << bits + s
        m = -(-power // size)
        if (m * size - power) << precision <= power:
            return m, s
    raise AssertionError(size)


def _possible(sign: str, bits: int, by: int) -> bool:
    """Whether there is a short way to divide by a number (its bits).

    Powers of two divide numbers without sign by a shift, which selection knows.
    """
    if sign == "s":
        return 2 <= abs(signed(by, bits)) < 1 << (bits - 1)
    if by < 2 or not by & (by - 1):
        return False
    return bits == 32 or _multiplier(64, 64, by)[0] < 1 << 64
