"""A builder's module to functions of blocks of instructions, without text in between.

`read(module)` gives what `parse` gives for `module.text()`, or raises Unsupported. Lines that are
text are parsed one by one. What would break it: an operation of `builder.text` that is not here,
and instructions whose form here is another than that of `parse`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numjet.cpu.builder.text import CASTS, Instruction as Written, arguments
from numjet.cpu.x86.front.instructions import (
    Address,
    Binary,
    Br,
    Call,
    Cast,
    Compare,
    CondBr,
    Extract,
    Fma,
    Insert,
    Load,
    Negation,
    Phi,
    Ret,
    Select,
    Shuffle,
    Store,
    Unreachable,
    Value,
)
from numjet.cpu.x86.front.parse import _OPERATIONS, OPEN, Function, Module, _Parser, parse
from numjet.cpu.x86.front.types import TYPES, Unsupported
from numjet.cpu.x86.whole import glue

if TYPE_CHECKING:
    from numjet.cpu.builder.module import Function as WrittenFunction, Module as Writing

_NAME = re.compile(r"%[\w.]+")
_WRITERS = ("masked.s", ".mem")


def read(writing: Writing) -> Module:
    """The module that a builder has written."""
    if writing.raw:
        return parse(writing.text())
    module = Module()
    for name, line in writing._globals.items():
        module.data["@" + name] = line.partition(" = ")[2]
    for name, line in writing._declared.items():
        if " cold" in line:
            module.cold.add("@" + name)
    module.functions = [_function(writer) for writer in writing.functions]
    return module


def _function(writer: WrittenFunction) -> Function:
    named = [(value.ref, TYPES[value.type]) for value in writer.args]
    function = Function(writer.name, writer.result, named, writer.local)
    if writer.whole is not None:
        function.whole = writer.whole
        return function
    if writer.glue and glue.able(writer):
        function.glue = writer
        return function
    stacked, finished = writer.finished()
    lines = [*stacked, *finished]
    function.lines = len(lines)
    _Reader(function, lines).run()
    return function


class _Reader(_Parser):
    """Reads the lines of one function."""

    def __init__(self, function: Function, lines: list[Any]) -> None:
        super().__init__(function)
        self.lines = lines
        # What stands where a value is made or used; more does no harm.
        self.names: list[Any] = []

    def run(self) -> None:
        """Fill in the function."""
        defs, names, makers, special = self.function.defs, self.names, _MAKERS, _SPECIAL
        block = self.block
        index, append = block.index, block.instructions.append
        for line in self.lines:
            if line.__class__ is tuple:
                dest, written = line
                op = written[0]
                make = makers.get(op)
                if make is not None:
                    names += written
                    names.append(dest)
                    made = make(dest, index, written)
                    append(made)
                    defs[dest] = made
                    continue
                special[op](self, dest, written)
            elif line[-1] == ":":
                self.open(line[:-1])
                block = self.block
                index, append = block.index, block.instructions.append
            else:
                self.text(line.strip())
        if self.block.term is OPEN:
            raise Unsupported("a block without an end")
        self.function.counts = Counter(names)

    def text(self, line: str) -> None:
        """A line of text."""
        self.names += _NAME.findall(line)
        dest, _, rest = line.partition(" = ") if line[0] == "%" else (None, "", line)
        op, _, rest = rest.partition(" ")
        self.names.append(op)
        parse_rest = _OPERATIONS.get(op)
        if parse_rest is None:
            raise Unsupported(f"operation {op}")
        parse_rest(self, op, dest, rest)  # type: ignore[operator, arg-type]

    def load_(self, dest: str, written: Written) -> None:
        _, type, pointer, _ = written
        if "(" in pointer:
            raise Unsupported("a constant expression")
        self.names += (dest, pointer)
        self.add(Load("load", dest, self.block.index, TYPES[type], pointer, self.memory))

    def store_(self, dest: None, written: Written) -> None:
        _, type, value, pointer, align, nontemporal = written
        self.names += (value, pointer)
        index, kind, memory = self.block.index, TYPES[type], self.memory
        self.block.instructions.append(
            Store("store", None, index, kind, value, pointer, memory, nontemporal, align)
        )
        self.memory += 1

    def call_(self, dest: str | None, written: Written) -> None:
        _, result, callee, types, operands, flags = written
        names = self.names
        names += operands
        names += (dest, callee)
        type = None if result == "void" else TYPES[result]
        ours = not callee.startswith("@llvm.")
        # Operands that are all of the result's type stand alone.
        given: Any = operands
        if ours or types.count(result) != len(types):
            given = arguments(types, operands)
        self.add(Call("call", dest, self.block.index, type, callee, given, self.memory, flags))
        if ours or any([word in callee for word in _WRITERS]):
            self.memory += 1
            stacked = len(types) - 6
            if stacked > 0 and ours:
                self.function.outgoing = max(self.function.outgoing, 8 * stacked)

    def phi_(self, dest: str, written: Written) -> None:
        _, type, pairs = written
        self.names.append(dest)
        self.names += [value for value, _ in pairs]
        incoming = {label: value for value, label in pairs}
        made = Phi("phi", dest, self.block.index, TYPES[type], incoming)
        self.block.phis.append(made)
        self.function.defs[dest] = made

    def br_(self, dest: None, written: Written) -> None:
        self.end(Br("br", None, self.block.index, None, written[1]))

    def cbr_(self, dest: None, written: Written) -> None:
        self.names.append(written[1])
        self.end(CondBr("cbr", None, self.block.index, None, *written[1:]))

    def ret_(self, dest: None, written: Written) -> None:
        _, type, value = written
        self.names.append(value)
        kind = None if type == "void" else TYPES[type]
        self.end(Ret("ret", None, self.block.index, kind, value or None))

    def unreachable_(self, dest: None, written: Written) -> None:
        self.end(Unreachable("unreachable", None, self.block.index, None))


def _binary(dest: str, index: int, i: Written) -> Value:
    op, type, a, b = i
    return Binary(op, dest, index, TYPES[type], a, b)


def _fneg(dest: str, index: int, i: Written) -> Value:
    return Negation("fneg", dest, index, TYPES[i[1]], i[2])


def _fma(dest: str, index: int, i: Written) -> Value:
    _, type, a, b, c = i
    return Fma("fma", dest, index, TYPES[type], a, b, c)


def _compare(dest: str, index: int, i: Written) -> Value:
    op, made, predicate, type, a, b = i
    return Compare(op, dest, index, TYPES[made], a, b, predicate, TYPES[type])


def _cast(dest: str, index: int, i: Written) -> Value:
    op, to, source, x = i
    return Cast(op, dest, index, TYPES[to], x, TYPES[source])


def _select(dest: str, index: int, i: Written) -> Value:
    op, type, kind, condition, a, b = i
    return Select(op, dest, index, TYPES[type], condition, a, b, TYPES[kind])


def _gep(dest: str, index: int, i: Written) -> Value:
    op, type, element, base_type, base, index_type, by = i
    size = TYPES[element].size
    kind, offset_type, base_kind = TYPES[type], TYPES[index_type], TYPES[base_type]
    return Address(op, dest, index, kind, size, base, offset_type, by, base_kind)


def _extract(dest: str, index: int, i: Written) -> Value:
    op, type, kind, x, lane_type, lane = i
    return Extract(op, dest, index, TYPES[type], x, TYPES[kind], lane, TYPES[lane_type])


def _insert(dest: str, index: int, i: Written) -> Value:
    op, type, x, scalar_type, scalar, lane_type, lane = i
    scalar_kind = TYPES[scalar_type]
    lane_kind = TYPES[lane_type]
    return Insert(op, dest, index, TYPES[type], x, scalar, scalar_kind, lane, lane_kind)


def _shuffle(dest: str, index: int, i: Written) -> Value:
    op, made, type, a, b, mask_type, mask = i
    return Shuffle(op, dest, index, TYPES[made], a, b, TYPES[type], mask, TYPES[mask_type])


_MAKERS: dict[str, Callable[[str, int, Written], Value]] = {
    **dict.fromkeys(
        "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem".split(),
        _binary,
    ),
    **dict.fromkeys(CASTS, _cast),
    "fneg": _fneg, "fma": _fma, "icmp": _compare, "fcmp": _compare, "select": _select,
    "getelementptr": _gep,
    "extractelement": _extract, "insertelement": _insert, "shufflevector": _shuffle,
}  # fmt: skip
_SPECIAL: dict[str, Callable[[_Reader, Any, Written], None]] = {
    "load": _Reader.load_, "store": _Reader.store_, "call": _Reader.call_, "phi": _Reader.phi_,
    "br": _Reader.br_, "cbr": _Reader.cbr_, "ret": _Reader.ret_,
    "unreachable": _Reader.unreachable_,
}  # fmt: skip
