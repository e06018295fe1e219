"""LLVM IR text to functions of blocks of instructions: the subset that the emitters write.

`parse(text)` gives a `Module` or raises `Unsupported`. Instructions are the records of
`instructions`; their operands stay text. What would break it: emitters that break lines inside
instructions other than `switch`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from numjet.cpu.x86.front.instructions import (
    Address,
    Alloca,
    Binary,
    Br,
    Call,
    Cast,
    Compare,
    CondBr,
    Ending,
    Extract,
    Fma,
    Insert,
    Instruction,
    Load,
    Negation,
    Phi,
    Ret,
    Select,
    Shuffle,
    Store,
    Switch,
    Unreachable,
    Value,
)
from numjet.cpu.x86.front.types import TYPES, Type, Unsupported

_INCOMING = re.compile(r"\[ (.+?), %([\w.]+) \]")
_NAME = re.compile(r"%[\w.]+")
_FLAGS = frozenset(
    "nuw nsw exact inbounds nsz nnan ninf reassoc contract arcp afn fast nneg disjoint tail".split()
)
_BINARY = (
    "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem".split()
)
_CASTS = (
    "trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp ptrtoint inttoptr bitcast".split()
)


OPEN = Unreachable("open", None, -1, None)  # the end of a block that has none so far


class Block:
    """A basic block; `term` is its last instruction; `memory` counts writes up to its end."""

    __slots__ = ("cold", "index", "instructions", "label", "memory", "phis", "term")

    def __init__(self, label: str, index: int) -> None:
        self.label, self.index = label, index
        self.phis: list[Phi] = []
        self.instructions: list[Instruction] = []
        self.term: Ending = OPEN
        self.memory = 0
        self.cold = False


class Function:
    """A function's blocks; `defs` finds the instruction of a name, `counts` how often it stands.

    `counts` also says which operations there are.
    """

    def __init__(
        self, name: str, result: str, arguments: list[tuple[str, Type]], local: bool
    ) -> None:
        self.name, self.result, self.arguments, self.local = name, result, arguments, local
        self.blocks: list[Block] = []
        self.defs: dict[str, Value] = {}
        self.counts: Counter[str] = Counter()
        self.lines = 0
        self.whole: Callable[[Any], None] | None = None  # writes the code, in place of blocks
        self.glue: Any = None  # the builder of a function that `glue` writes, in place of blocks
        self.outgoing = 0  # bytes of stack for arguments of calls, or more


class Module:
    """Functions, data (name, text, is it internal) and the functions declared as cold."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.data: dict[str, str] = {}
        self.cold: set[str] = set()


def typed(text: str) -> tuple[Type, str]:
    """A leading type and what follows it."""
    if text[0] == "<":
        end = text.index(">") + 1
        return TYPES[text[:end]], text[end + 1 :]
    word, _, rest = text.partition(" ")
    return TYPES[word], rest


def split(text: str) -> list[str]:
    """Parts between commas that stand in no brackets."""
    if "<" not in text and "(" not in text and "[" not in text and "{" not in text:
        return text.split(", ") if text else []
    whole = text.split(", ")
    if all([p.count("<") == p.count(">") and p.count("(") == p.count(")") for p in whole]):
        return whole
    parts, depth, start = [], 0, 0
    for k, c in enumerate(text):
        if c in "<([{":
            depth += 1
        elif c in ">)]}":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:k].strip())
            start = k + 1
    parts.append(text[start:].strip())
    return parts


def _unflagged(text: str) -> str:
    word, _, rest = text.partition(" ")
    while word in _FLAGS:
        text = rest
        word, _, rest = text.partition(" ")
    return text


class _Parser:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.block = Block("entry", 0)
        self.memory = 0
        function.blocks.append(self.block)

    def open(self, label: str) -> None:
        block = self.block
        if block.term is OPEN:
            if block.label == "entry" and not block.instructions:
                block.label = label
                return
            raise Unsupported("a block without an end")
        self.block = Block(label, len(self.function.blocks))
        self.function.blocks.append(self.block)

    def add(self, instruction: Instruction) -> None:
        self.block.instructions.append(instruction)
        if instruction.name is not None:
            self.function.defs[instruction.name] = instruction  # type: ignore[assignment]

    def end(self, instruction: Ending) -> None:
        self.block.term = instruction
        self.block.memory = self.memory

    # Each method reads `rest`, what follows the operation's word.

    def binary(self, op: str, dest: str, rest: str) -> None:
        if rest[0] != "<":
            rest = _unflagged(rest)
        type, rest = typed(rest)
        parts = rest.split(", ")
        if len(parts) != 2:
            parts = split(rest)
        a, b = parts
        self.add(Binary(op, dest, self.block.index, type, a, b))

    def compare(self, op: str, dest: str, rest: str) -> None:
        predicate, _, rest = _unflagged(rest).partition(" ")
        type, rest = typed(rest)
        a, b = split(rest)
        made = TYPES[f"<{type.lanes} x i1>"] if type.lanes else TYPES["i1"]
        self.add(Compare(op, dest, self.block.index, made, a, b, predicate, type))

    def cast(self, op: str, dest: str, rest: str) -> None:
        source, rest = typed(_unflagged(rest))
        x, _, to = rest.rpartition(" to ")
        self.add(Cast(op, dest, self.block.index, TYPES[to], x, source))

    def fneg(self, op: str, dest: str, rest: str) -> None:
        type, x = typed(_unflagged(rest))
        self.add(Negation(op, dest, self.block.index, type, x))

    def load(self, op: str, dest: str, rest: str) -> None:
        type, _, rest = rest.partition(", ptr ")
        pointer, _, more = rest.partition(", ")
        if "(" in pointer:
            raise Unsupported("a constant expression")
        if more and not more.startswith("align"):
            raise Unsupported(f"load {more}")
        self.add(Load(op, dest, self.block.index, TYPES[type], pointer, self.memory))

    def store(self, op: str, dest: str | None, rest: str) -> None:
        type, rest = typed(rest)
        parts = split(rest)
        value, pointer = parts[0], parts[1]
        if not pointer.startswith("ptr "):
            raise Unsupported("atomic store")
        hint = "nontemporal" in rest
        aligned = int(parts[2][6:]) if len(parts) > 2 and parts[2].startswith("align ") else 1
        self.add(
            Store(op, None, self.block.index, type, value, pointer[4:], self.memory, hint, aligned)
        )
        self.memory += 1

    def gep(self, op: str, dest: str, rest: str) -> None:
        parts = split(_unflagged(rest))
        if len(parts) != 3:
            raise Unsupported("getelementptr of structures")
        base_type, base = typed(parts[1])
        index_type, index = typed(parts[2])
        lanes = index_type.lanes or base_type.lanes
        type = TYPES[f"<{lanes} x ptr>"] if lanes else TYPES["ptr"]
        here, size = self.block.index, TYPES[parts[0]].size
        self.add(Address(op, dest, here, type, size, base, index_type, index, base_type))

    def select(self, op: str, dest: str, rest: str) -> None:
        condition, a, b = split(_unflagged(rest))
        condition_type, condition = typed(condition)
        type, a = typed(a)
        made = Select(
            op, dest, self.block.index, type, condition, a, typed(b)[1], condition_type
        )
        self.add(made)

    def phi(self, op: str, dest: str, rest: str) -> None:
        type, rest = typed(_unflagged(rest))
        incoming = {label: value for value, label in _INCOMING.findall(rest)}
        instruction = Phi(op, dest, self.block.index, type, incoming)
        self.block.phis.append(instruction)
        self.function.defs[dest] = instruction

    def alloca(self, op: str, dest: str, rest: str) -> None:
        parts = split(rest)
        count = align = 1
        for part in parts[1:]:
            word, _, number = part.partition(" ")
            if word == "align":
                align = int(number)
            elif number.isdigit():
                count = int(number)
            else:
                raise Unsupported("alloca of a size that is computed")
        size = _size(parts[0])
        self.add(Alloca(op, dest, self.block.index, TYPES["ptr"], size * count, align))

    def call(self, op: str, dest: str | None, rest: str) -> None:
        plain = _unflagged(rest)
        flags = rest[: len(rest) - len(plain)]
        head, _, arguments = plain.partition("(")
        result, _, callee = head.rpartition(" ")
        end = arguments.rfind(")")
        if end < 0:
            raise Unsupported("a call over several lines")
        arguments = arguments[:end]
        type = None if result == "void" else TYPES[result]
        if callee.startswith("@llvm.fma."):
            a, b, c = [typed(part)[1] for part in split(arguments)]
            assert type is not None
            assert dest is not None
            self.add(Fma("fma", dest, self.block.index, type, a, b, c))
            return
        index, memory = self.block.index, self.memory
        self.add(Call("call", dest, index, type, callee, arguments, memory, flags))
        if not callee.startswith("@llvm.") or "masked.s" in callee or ".mem" in callee:
            self.memory += 1
            stacked = arguments.count(",") - 5
            if stacked > 0 and not callee.startswith("@llvm."):
                self.function.outgoing = max(self.function.outgoing, 8 * stacked)

    def extract(self, op: str, dest: str, rest: str) -> None:
        vector, index = split(rest)
        type, x = typed(vector)
        index_type, k = typed(index)
        made = TYPES[type.element]
        self.add(Extract(op, dest, self.block.index, made, x, type, k, index_type))

    def insert(self, op: str, dest: str, rest: str) -> None:
        vector, scalar, index = split(rest)
        type, x = typed(vector)
        scalar_type, s = typed(scalar)
        index_type, k = typed(index)
        self.add(Insert(op, dest, self.block.index, type, x, s, scalar_type, k, index_type))

    def shuffle(self, op: str, dest: str, rest: str) -> None:
        first, second, mask = split(rest)
        type, a = typed(first)
        _, b = typed(second)
        mask_type, picked = typed(mask)
        made = TYPES[f"<{mask_type.lanes} x {type.element}>"]
        self.add(Shuffle(op, dest, self.block.index, made, a, b, type, picked, mask_type))

    def br(self, op: str, dest: None, rest: str) -> None:
        if rest.startswith("label"):
            self.end(Br("br", None, self.block.index, None, rest[7:]))
            return
        condition, then, otherwise = rest[3:].split(", label %")
        self.end(CondBr("cbr", None, self.block.index, None, condition, then, otherwise))

    def ret(self, op: str, dest: None, rest: str) -> None:
        if rest == "void":
            self.end(Ret("ret", None, self.block.index, None, None))
            return
        type, value = typed(rest)
        self.end(Ret("ret", None, self.block.index, type, value))

    def unreachable(self, op: str, dest: None, rest: str) -> None:
        self.end(Unreachable("unreachable", None, self.block.index, None))

    def switch(self, op: str, dest: None, rest: str) -> None:
        head, _, cases = rest.partition("[")
        type, head = typed(head)
        value, _, default = head.strip().partition(", label %")
        words = cases.partition("]")[0].split()  # type, number and comma, "label", name
        pairs = zip(words[1::4], words[3::4], strict=True)
        choices = [(int(number[:-1]), label[1:]) for number, label in pairs]
        self.end(Switch("switch", None, self.block.index, type, value, default.strip(), choices))


_OPERATIONS = {
    **dict.fromkeys(_BINARY, _Parser.binary),
    **dict.fromkeys(_CASTS, _Parser.cast),
    "icmp": _Parser.compare, "fcmp": _Parser.compare, "fneg": _Parser.fneg,
    "load": _Parser.load, "store": _Parser.store, "getelementptr": _Parser.gep,
    "select": _Parser.select, "phi": _Parser.phi, "alloca": _Parser.alloca, "call": _Parser.call,
    "extractelement": _Parser.extract, "insertelement": _Parser.insert,
    "shufflevector": _Parser.shuffle, "br": _Parser.br, "ret": _Parser.ret,
    "switch": _Parser.switch, "unreachable": _Parser.unreachable,
}  # fmt: skip


def _size(text: str) -> int:
    """Bytes of a type that memory is reserved for."""
    if text[0] == "[":
        count, _, inner = text[1:-1].partition(" x ")
        return int(count) * _size(inner)
    return TYPES[text].size


_HEAD = re.compile(r"define (?:(internal|private) )?(\S+|<[^>]*>) @([\w.]+)\((.*)\)([^()]*)\{$")


def _function(head: str) -> Function:
    found = _HEAD.match(head)
    if not found:
        raise Unsupported(f"define {head[:60]}")
    linkage, result, name, arguments, _ = found.groups()
    named = []
    for argument in split(arguments):
        type, rest = typed(argument)
        named.append((rest.rpartition(" ")[2], type))
    return Function(name, result, named, bool(linkage))


def _body(function: Function, lines: list[str]) -> None:
    parser = _Parser(function)
    operations = _OPERATIONS
    for line in lines:
        if line[0] == "%":
            dest, _, rest = line.partition(" = ")
        elif line[-1] == ":":
            parser.open(line[:-1])
            continue
        else:
            dest, rest = None, line
        op, _, rest = rest.partition(" ")
        read = operations.get(op)
        if read is None:
            raise Unsupported(f"operation {op}")
        function.counts[op] += 1
        read(parser, op, dest, rest)  # type: ignore[operator, arg-type]
    if parser.block.term is OPEN:
        raise Unsupported("a block without an end")
    function.lines = len(lines)


def _lines_of_body(lines: Iterator[str]) -> list[str]:
    """The instructions and labels up to a function's end, a switch with its table on one line."""
    body = []
    for line in lines:
        inner = line.strip()
        if inner == "}":
            break
        if not inner:
            continue
        if inner[-1] == "[" and inner.startswith("switch"):
            while inner[-1] != "]":
                inner += " " + next(lines).strip()
        body.append(inner)
    return body


def parse(text: str) -> Module:
    """The module that `text` spells; raises Unsupported at what only LLVM reads."""
    module = Module()
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("define "):
            body = _lines_of_body(lines)
            function = _function(line)
            # Every place where a name stands: its definition, its uses, labels too.
            function.counts = Counter(_NAME.findall("\n".join(body)))
            _body(function, body)
            module.functions.append(function)
        elif line.startswith("declare "):
            if " cold" in line:
                module.cold.add(line[line.index("@") : line.index("(")])
        elif line.startswith("@"):
            name, _, rest = line.partition(" = ")
            module.data[name] = rest
        elif line and not line.isspace() and not line.startswith((";", "!")):
            raise Unsupported(f"line {line[:40]}")
    return module
