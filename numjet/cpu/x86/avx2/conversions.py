"""Conversions between integers and floats that AVX2 has no instruction for, by others.

`expand(function)` rewrites them as arithmetic, comparisons and the conversions that there are: of
signed numbers of 32 bits, and of single ones of 64. For: `generate`, before `masks.widen`. What
would break it: a step that rounds, where the result is not what is rounded once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeGuard

from numjet.cpu.x86.front import instructions as ir
from numjet.cpu.x86.front.parse import Function, typed
from numjet.cpu.x86.front.types import TYPES, Type

_FROM = frozenset(("fptosi", "fptoui"))
_TO = frozenset(("sitofp", "uitofp"))
_SATURATING = ("@llvm.fptosi.sat.", "@llvm.fptoui.sat.")


def expand(function: Function) -> None:
    """Rewrite every conversion of a function that has no instruction."""
    for block in function.blocks:
        if any([_asks(i) for i in block.instructions]):
            writer = _Expander(function, block.index)
            for i in block.instructions:
                if not (_asks(i) and writer.rewrite(i)):
                    writer.made.append(i)
            block.instructions = writer.made


def _asks(i: ir.Instruction) -> TypeGuard[ir.Cast | ir.Call]:
    if isinstance(i, ir.Call):
        return i.callee.startswith(_SATURATING)
    return i.op in _FROM or i.op in _TO


class _Expander:
    def __init__(self, function: Function, block: int) -> None:
        self.function, self.block = function, block
        self.made: list[Any] = []
        self.root, self.number = "", 0

    # -- writing; every step gives the name of its result

    def add(self, kind: Callable[..., ir.Value], op: str, type: Type, *operands: object) -> str:
        self.number += 1
        return self.write(kind(op, f"{self.root}.c{self.number}", self.block, type, *operands))

    def write(self, instruction: ir.Value) -> str:
        counts = self.function.counts
        self.made.append(instruction)
        self.function.defs[instruction.name] = instruction
        for word in (instruction.name, *instruction[4:]):
            for each in word if isinstance(word, tuple) else (word,):
                if isinstance(each, str):
                    counts[each] += 1
        return str(instruction.name)

    def last(self, old: ir.Cast | ir.Call) -> None:
        """What was written last takes the name of what is replaced."""
        counts, made = self.function.counts, self.made.pop()
        for word in [x for x in old[4:] if isinstance(x, str)]:
            counts[word] -= 1
        if isinstance(old, ir.Call):  # the operand stands behind its type
            counts[typed(old.arguments)[1]] -= 1
        counts[made.name] -= 1
        del self.function.defs[made.name]
        made = made._replace(name=old.name)
        self.made.append(made)
        self.function.defs[old.name] = made

    def binary(self, op: str, type: Type, a: str, b: str) -> str:
        return self.add(ir.Binary, op, type, a, b)

    def cast(self, op: str, type: Type, x: str, source: Type) -> str:
        return self.add(ir.Cast, op, type, x, source)

    def select(self, type: Type, condition: str, a: str, b: str) -> str:
        return self.add(ir.Select, "select", type, condition, a, b, self.bits(type))

    def compare(self, predicate: str, of: Type, a: str, b: str) -> str:
        op = "fcmp" if of.float else "icmp"
        return self.add(ir.Compare, op, self.bits(of), a, b, predicate, of)

    def call(self, name: str, type: Type, *operands: str) -> str:
        flags = "nnan nsz" if name in ("maximum", "minimum") else ""
        callee = f"@llvm.{name}.{type.text}"
        return self.add(ir.Call, "call", type, callee, operands, 0, flags)

    # -- types and constants as wide as another

    def like(self, type: Type, element: str) -> Type:
        return TYPES[f"<{type.lanes} x {element}>" if type.lanes else element]

    def bits(self, type: Type) -> Type:
        return self.like(type, "i1")

    def all(self, type: Type, value: float) -> str:
        """A number in all lanes."""
        text = str(value)
        if type.float:
            text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return f"splat ({type.element} {text})" if type.lanes else text

    # -- which conversion

    def rewrite(self, i: ir.Cast | ir.Call) -> bool:
        """Write a conversion otherwise, where there is no instruction."""
        self.root, self.number = i.name, 0
        if isinstance(i, ir.Cast) and i.op in _TO:
            x, source, type = i.x, i.source, i.type
            if source.bits < 32 or type.bits < 32 or x[0] != "%":
                return False
            found = self.to_float(x, source, type, i.op == "sitofp")
        else:
            saturate = isinstance(i, ir.Call)
            if isinstance(i, ir.Call):
                source, x = typed(i.arguments)
                signed = i.callee.startswith(_SATURATING[0])
            else:
                x, source, signed = i.x, i.source, i.op == "fptosi"
            type = i.type
            if type.bits < 8 or x[0] != "%" or source.element == "bfloat":
                return False
            found = self.to_integer(x, source, type, signed, saturate)
        if found:
            self.last(i)
        return found

    def to_float(self, x: str, source: Type, type: Type, signed: bool) -> bool:
        if source.bits == 32:
            if signed or not type.lanes:
                return False
            if type.bits == 64:
                words = self.like(type, "i64")
                self.from_52_bits(type, self.cast("zext", words, x, source))
                return True
            # Both halves are exact; their sum rounds.
            upper = self.binary("lshr", source, x, self.all(source, 16))
            lower = self.binary("and", source, x, self.all(source, 0xFFFF))
            high = self.cast("sitofp", type, upper, source)
            low = self.cast("sitofp", type, lower, source)
            self.binary("fadd", type, self.binary("fmul", type, high, self.all(type, 65536.0)), low)
            return True
        if signed and not type.lanes or type.lanes and type.bits == 64:
            return False
        if signed:
            self.each(type, x, source)
            return True
        # Of large numbers a half, whose last bit says whether something is lost, is doubled.
        negative = self.compare("slt", source, x, self.all(source, 0))
        half = self.binary("lshr", source, x, self.all(source, 1))
        half = self.binary("or", source, half, self.binary("and", source, x, self.all(source, 1)))
        given = self.select(source, negative, half, x)
        found = self.each(type, given, source) if type.lanes else self.cast(
            "sitofp", type, given, source)  # fmt: skip
        twice = self.binary("fadd", type, found, found)
        if type.lanes:
            self.select(type, self.compare("slt", source, x, self.all(source, 0)), twice, found)
        else:
            self.select(type, negative, twice, found)
        return True

    def each(self, type: Type, x: str, source: Type) -> str:
        """Lanes of 64 bits as floats, one by one."""
        found, index = "poison", TYPES["i64"]
        word, single = TYPES[source.element], TYPES[type.element]
        for lane in range(type.lanes):
            one = self.add(ir.Extract, "extractelement", word, x, source, str(lane), index)
            made = self.cast("sitofp", single, one, word)
            found = self.add(
                ir.Insert, "insertelement", type, found, made, single, str(lane), index
            )
        return found

    def from_52_bits(self, type: Type, x: str) -> str:
        """A number of 52 bits as a double: the last bits of one that is larger by 2^52."""
        words = self.like(type, "i64")
        whole = self.binary("or", words, x, self.all(words, 0x433 << 52))
        return self.binary(
            "fsub", type, self.cast("bitcast", type, whole, words), self.all(type, 2.0**52)
        )

    def to_integer(self, x: str, source: Type, type: Type, signed: bool, saturate: bool) -> bool:
        if type.bits == 32 and signed and source.bits > 16 and (type.lanes or not saturate):
            return False
        if type.bits == 64 and signed and not type.lanes and not saturate and source.bits > 16:
            return False
        if source.bits == 16:
            wide = self.like(source, "float")
            x, source = self.cast("fpext", wide, x, source), wide
            if type.bits == 32 and signed and type.lanes:
                self.directly(x, source, type, saturate)
                return True
        if source.bits == 32 and (type.bits == 64 or type.bits == 32 and not signed):
            wide = self.like(source, "double")
            x, source = self.cast("fpext", wide, x, source), wide
        top = type.bits - signed
        known = x
        if saturate:
            zero = self.all(source, 0.0)
            known = self.select(source, self.compare("ord", source, x, x), x, zero)
            least = self.all(source, -(2.0**top) if signed else 0.0)
            known = self.call("maximum", source, known, least)
        exact = top <= (24 if source.bits == 32 else 53)
        if saturate and exact:
            known = self.call("minimum", source, known, self.all(source, 2.0**top - 1))
        word = self.like(type, "i32")
        if type.bits < 32:
            found = self.cast("fptosi", word, known, source)
            self.cast("trunc", type, found, word)
            return True
        words = self.like(type, "i64")
        if type.bits == 32 and not signed:
            whole = self.binary("fadd", source, self.call("trunc", source, known),
                                self.all(source, 2.0**52))  # fmt: skip
            self.cast("trunc", type, self.cast("bitcast", words, whole, source), words)
            return True
        if signed and not type.lanes:
            found = self.cast("fptosi", type, known, source)
        else:
            found = self.halves(known, source, words)
        if saturate and not exact:
            large = self.compare("oge", source, known, self.all(source, 2.0**top))
            self.select(type, large, self.all(type, (1 << top) - 1), found)
        return True

    def directly(self, x: str, source: Type, type: Type, saturate: bool) -> None:
        """Floats as signed numbers of 32 bits, for which there is an instruction."""
        if saturate:
            callee = f"{_SATURATING[0]}{type.text}.{source.text}"
            self.add(ir.Call, "call", type, callee, f"{source.text} {x}", 0, "")
            self.function.counts[x] += 1
        else:
            self.cast("fptosi", type, x, source)

    def halves(self, x: str, source: Type, words: Type) -> str:
        """A double as a number of 64 bits, by two of 32."""
        whole = self.call("trunc", source, x)
        part = self.binary("fmul", source, whole, self.all(source, 2.0**-32))
        high = self.call("floor", source, part)
        above = self.binary("fmul", source, high, self.all(source, 2.0**32))
        low = self.binary("fsub", source, whole, above)
        high = self.binary("fadd", source, high, self.all(source, 1.5 * 2.0**52))
        low = self.binary("fadd", source, low, self.all(source, 2.0**52))
        upper = self.binary("shl", words, self.cast("bitcast", words, high, source),
                            self.all(words, 32))  # fmt: skip
        lower = self.binary("and", words, self.cast("bitcast", words, low, source),
                            self.all(words, (1 << 32) - 1))  # fmt: skip
        return self.binary("or", words, upper, lower)
