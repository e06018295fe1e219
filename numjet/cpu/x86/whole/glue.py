"""Functions that find addresses and call others, as machine code without selection or allocation.

For: functions written with `kernels.idioms.GLUE`, whose lines run once for many of those they call.
Every value has a place on the stack and is in a register for one instruction, but those that most
addresses begin with. A fifth of the time that registers for all would take. `able(writer)` says
whether a function holds nothing else than what is known here. What would break it: an inner loop in
such a function, which would be slow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, Code
from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.whole.functions import (
    R8,
    R9,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    RSI,
    RSP,
)

if TYPE_CHECKING:
    from numjet.cpu.builder.module import Function

_ARGUMENTS = (RDI, RSI, RDX, RCX, R8, R9)
_LASTING = (RBX, R12, R13, R14, R15)
_NARROW = 1 << 31  # immediates and displacements are smaller
_ALLOCA = re.compile(r"\s*(%\w+) = alloca \[(\d+) x (i8|ptr|i64)\], i64 1, align (?:8|16|32|64)")
_WORDS = {"i64", "ptr"}
_NAMED = {"null": 0, "true": 1, "false": 0}
_PREDICATES = {
    "eq": "e", "ne": "ne", "slt": "l", "sle": "le", "sgt": "g", "sge": "ge", "ult": "b",
    "ule": "be", "ugt": "a", "uge": "ae",
}  # fmt: skip
# The move that puts the second operand in the place of the first.
_EXTREMA = {
    "@llvm.smin.i64": "cmovg", "@llvm.smax.i64": "cmovl", "@llvm.umin.i64": "cmova",
    "@llvm.umax.i64": "cmovb",
}  # fmt: skip
# `mov` between each register and [rsp + four bytes], which is most of what is written here.
_READ, _WRITE = [
    [bytes((0x48 | r >> 3 << 2, opcode, 0x84 | (r & 7) << 3, 0x24)) for r in range(16)]
    for opcode in (0x8B, 0x89)
]
# Operations by their types; what else a line holds is looked at by `_known`.
_BINARY = dict.fromkeys("add sub mul udiv urem".split(), {"i64"})
_BINARY |= dict.fromkeys("and or xor".split(), {"i64", "i1"})
_TYPES: dict[str, set[str]] = {
    **_BINARY,
    "load": _WORDS, "store": _WORDS, "getelementptr": {"ptr"}, "icmp": {"i1"}, "select": _WORDS,
    "zext": {"i64"}, "inttoptr": {"ptr"}, "ptrtoint": {"i64"}, "phi": _WORDS,
    "call": {"i64", "ptr", "void"}, "ret": {"i64", "ptr", "void"},
}  # fmt: skip


def able(writer: Function) -> bool:
    """Whether `write` knows all of a function."""
    stacked, lines = writer.finished()
    return (
        all([value.type in _WORDS for value in writer.args])
        and all([_ALLOCA.fullmatch(line) for line in stacked])
        and all([_known(line) for line in lines])
    )


def _known(line: Any) -> bool:
    if line.__class__ is not tuple:
        return line[-1] == ":"
    written = line[1]
    op = written[0]
    if op in ("br", "cbr"):
        return True
    if written[1] not in _TYPES.get(op, ()):
        return False
    if op == "getelementptr":
        return written[2] == "i8" and written[5] == "i64"
    if op == "icmp":
        return written[3] in _WORDS
    if op == "select":
        return written[2] == "i1"
    if op == "zext":
        return written[2] == "i1"
    if op == "call":
        callee = written[2]
        return (callee in _EXTREMA or callee[:6] != "@llvm.") and _WORDS.issuperset(written[3])
    return True


def write(code: Code, labels: dict[str, int], writer: Function) -> None:
    """Append the function. labels: of the module's data and functions, by "@" and their name."""
    _Glue(code, labels, writer).run()


class _Glue:
    """The writing of one function."""

    def __init__(self, code: Code, labels: dict[str, int], writer: Function) -> None:
        self.code, self.labels, self.writer = code, labels, writer
        self.lines: list[Any]
        self.stacked, self.lines = writer.finished()
        self.blocks: dict[str, int] = {}
        # By block and the block before: the places that phis read, with what they become.
        self.edges: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.at: dict[str, int] = {}  # places on the stack
        self.same: dict[str, tuple[str, int]] = {}  # values that are others plus a constant
        self.spaces: dict[str, int] = {}
        self.kept: dict[str, int] = {}  # values in registers that calls keep
        self.block, self.held = "entry", ""  # whose value is in rax
        self.before: tuple = ()  # the instruction before
        self.size = self._lay_out()

    def _lay_out(self) -> int:
        """Labels, edges and places; returns the size of the frame."""
        labels, block, most = self.blocks, "entry", 6
        phis: list[tuple[str, Any]] = []
        bases: list[str] = []
        for line in self.lines:
            if line.__class__ is not tuple:
                block = line[:-1]
                labels[block] = self.code.label()
                continue
            _, written = line
            match written:
                case ("phi", *_):
                    phis.append((block, line))
                case ("getelementptr", _, _, _, base, _, _):
                    bases.append(base)
                case ("call", _, _, _, operands, _):
                    most = max(most, len(operands))
        at = 8 * (most - 6)
        for value in self.writer.args:
            self.at[value.ref] = at
            at += 8
        for block, (dest, (_, _, pairs)) in phis:
            self.at[dest + ":"] = at
            for value, before in pairs:
                self.edges.setdefault((before, block), []).append((at, value))
            at += 8
        for line in self.lines:
            if line.__class__ is tuple and line[0]:
                self.at[line[0]] = at
                at += 8
        for line in self.stacked:
            found = _ALLOCA.fullmatch(line)
            assert found is not None
            at += -at % 64
            self.spaces[found[1]] = at
            at += int(found[2]) * (1 if found[3] == "i8" else 8)
        often = [ref for ref, _ in Counter(bases).most_common() if ref in self.at]
        self.kept = dict(zip(often, _LASTING, strict=False))
        return at + -at % 64

    def run(self) -> None:
        """The whole function."""
        code, gr = self.code, encode.gr
        encode.push(code, RBP)
        gr(code, GPR["mov"], RBP, RSP)
        for register in self.kept.values():
            encode.push(code, register)
        if self.size:
            encode.reserve(code, self.size)
        gr(code, GPR["andi"], 0, RSP, 8, -64)
        for number, value in enumerate(self.writer.args):
            register = _ARGUMENTS[number] if number < 6 else RAX
            if number >= 6:
                encode.gm(code, GPR["mov"], RAX, RBP, None, 1, 16 + 8 * (number - 6))
            self._keep(value.ref, register)
        lines = self.lines
        for number, line in enumerate(lines):
            if line.__class__ is not tuple:
                self.block, self.held, self.before = line[:-1], "", ()
                code.place(self.blocks[self.block])
                continue
            dest, written = line
            op = written[0]
            if op in ("br", "cbr"):
                following = lines[number + 1] if number + 1 < len(lines) else ""
                self._branch(written, following)
            else:
                _WRITERS[op](self, dest, written)
            self.before = written

    # -- operands

    def _put(self, place: int, register: int) -> None:
        self.code.buffer += _WRITE[register] + place.to_bytes(4, "little")

    def _get(self, register: int, place: int) -> None:
        self.code.buffer += _READ[register] + place.to_bytes(4, "little")

    def _keep(self, dest: str, register: int = RAX) -> None:
        """What is in a register is the value `dest`."""
        if dest in self.kept:
            encode.gr(self.code, GPR["mov"], self.kept[dest], register)
        else:
            self._put(self.at[dest], register)
        if register == RAX:
            self.held = dest

    def _fetch(self, register: int, ref: str) -> None:
        """Bring a value into a register; the others and the flags stay as they are."""
        if register == RAX:
            if self.held == ref:
                return
            self.held = ""
        code = self.code
        if ref[0] == "%":
            base, offset = self.same.get(ref, (ref, 0))
            if base in self.spaces:
                offset += self.spaces[base]
                encode.gm(code, GPR["lea"], register, RSP, None, 1, offset)
            elif base in self.kept:
                if offset:
                    encode.gm(code, GPR["lea"], register, self.kept[base], None, 1, offset)
                else:
                    encode.gr(code, GPR["mov"], register, self.kept[base])
            elif base is ref:
                self._get(register, self.at[ref])
            else:
                self._fetch(register, base)
                if offset:
                    encode.gm(code, GPR["lea"], register, register, None, 1, offset)
        elif ref[0] == "@":
            label = self.labels.get(ref)
            if label is None:
                encode.grip(code, GPR["mov"], register, code.slot(ref[1:]))
            else:
                encode.grip(code, GPR["lea"], register, label)
        else:
            encode.move_constant(code, register, _constant(ref))

    def _address(self, ref: str) -> tuple[int, int]:
        """A pointer as register and displacement; uses rax."""
        base, offset = self.same.get(ref, (ref, 0))
        if base in self.spaces:
            return RSP, self.spaces[base] + offset
        if base in self.kept:
            return self.kept[base], offset
        self._fetch(RAX, base)
        return RAX, offset

    def _with(self, op: str, ref: str) -> None:
        """An instruction on rax and a value."""
        if ref in self.kept and ref not in self.same:
            encode.gr(self.code, GPR[op], RAX, self.kept[ref])
            return
        if ref in self.at and ref not in self.same:
            encode.gm(self.code, GPR[op], RAX, RSP, None, 1, self.at[ref])
            return
        value = None if ref[0] in "%@" else _constant(ref)
        if value is not None and -_NARROW <= value < _NARROW:
            register = RAX if op == "imul" else 0
            encode.gr(self.code, GPR[op + "i"], register, RAX, 8, value)
            return
        self._fetch(RCX, ref)
        encode.gr(self.code, GPR[op], RAX, RCX)

    # -- operations

    def load(self, dest: str, written: tuple) -> None:
        register, offset = self._address(written[2])
        encode.gm(self.code, GPR["mov"], RAX, register, None, 1, offset)
        self._keep(dest)

    def store(self, dest: None, written: tuple) -> None:
        self._fetch(RCX, written[2])
        register, offset = self._address(written[3])
        encode.gm(self.code, GPR["mov_s"], RCX, register, None, 1, offset)

    def gep(self, dest: str, written: tuple) -> None:
        _, _, _, _, base, _, by = written
        if by[0] != "%":
            source, offset = self.same.get(base, (base, 0))
            offset += int(by)
            if -_NARROW // 2 <= offset < _NARROW // 2:
                self.same[dest] = source, offset
                return
        self._fetch(RAX, base)
        self._with("add", by)
        self._keep(dest)

    def binary(self, dest: str, written: tuple) -> None:
        op, _, a, b = written
        self._fetch(RAX, a)
        self._with("imul" if op == "mul" else op, b)
        self._keep(dest)

    def divide(self, dest: str, written: tuple) -> None:
        op, kind, a, b = written
        if op == "urem" and self.before == ("udiv", kind, a, b):
            self._keep(dest, RDX)
            return
        self._fetch(RAX, a)
        self._fetch(RCX, b)
        encode.gr(self.code, GPR["xor"], RDX, RDX, 4)
        encode.gr(self.code, GPR["div"], 0, RCX)
        self.held = ""
        self._keep(dest, RDX if op == "urem" else RAX)

    def compare(self, dest: str, written: tuple) -> None:
        _, _, predicate, _, a, b = written
        self._fetch(RAX, a)
        self._with("cmp", b)
        encode.gr(self.code, GPR["set" + _PREDICATES[predicate]], 0, RAX, 1)
        encode.gr(self.code, GPR["movzx8"], RAX, RAX, 4)
        self._keep(dest)

    def select(self, dest: str, written: tuple) -> None:
        _, _, _, condition, a, b = written
        self._fetch(RDX, condition)
        self._fetch(RCX, a)
        self._fetch(RAX, b)
        encode.gr(self.code, GPR["test"], RDX, RDX, 4)
        encode.gr(self.code, GPR["cmovne"], RAX, RCX)
        self._keep(dest)

    def cast(self, dest: str, written: tuple) -> None:
        x = written[3]
        self.same[dest] = self.same.get(x, (x, 0))

    def phi(self, dest: str, written: tuple) -> None:
        self.held = ""
        self._get(RAX, self.at[dest + ":"])
        self._keep(dest)

    def call(self, dest: str | None, written: tuple) -> None:
        _, _, callee, _, operands, _ = written
        code = self.code
        if callee in _EXTREMA:
            assert dest is not None
            self._fetch(RAX, operands[0])
            self._fetch(RCX, operands[1])
            encode.gr(code, GPR["cmp"], RAX, RCX)
            encode.gr(code, GPR[_EXTREMA[callee]], RAX, RCX)
            self._keep(dest)
            return
        for number, operand in enumerate(operands[6:]):
            self._fetch(RAX, operand)
            self.held = ""
            self._put(8 * number, RAX)
        for register, operand in zip(_ARGUMENTS, operands, strict=False):
            self._fetch(register, operand)
        if callee[0] == "%":
            self._fetch(RAX, callee)
            encode.gr(code, GPR["call_r"], 0, RAX)
        elif callee in self.labels:
            code.call(self.labels[callee])
        else:
            code.call_symbol(callee[1:])
        self.held = ""
        if dest:
            self._keep(dest)

    def ret(self, dest: None, written: tuple) -> None:
        if written[2]:
            self._fetch(RAX, written[2])
        encode.gm(self.code, GPR["lea"], RSP, RBP, None, 1, -8 * len(self.kept))
        for register in (*reversed(self.kept.values()), RBP):
            encode.pop(self.code, register)
        self.code.buffer += encode.RET

    def _branch(self, written: tuple, following: Any) -> None:
        """Jump, unless to the line that follows. Phis read what is put by here, also where
        another way is taken: nothing else reads it."""
        code, targets = self.code, written[1 if written[0] == "br" else 2 :]
        for target in targets:
            for place, value in self.edges.get((self.block, target), ()):
                self._fetch(RCX, value)
                self._put(place, RCX)
        *first, last = targets
        if first:
            self._fetch(RAX, written[1])
            encode.gr(code, GPR["test"], RAX, RAX, 4)
            code.jump_if(CONDITIONS["ne"], self.blocks[first[0]])
        if following != f"{last}:":
            code.jump(self.blocks[last])


def _constant(text: str) -> int:
    return _NAMED[text] if text in _NAMED else int(text)


_WRITERS: dict[str, Callable[[_Glue, Any, tuple], None]] = {
    **dict.fromkeys("add sub mul and or xor".split(), _Glue.binary),
    "udiv": _Glue.divide, "urem": _Glue.divide, "load": _Glue.load, "store": _Glue.store,
    "getelementptr": _Glue.gep, "icmp": _Glue.compare, "select": _Glue.select,
    **dict.fromkeys(("zext", "inttoptr", "ptrtoint"), _Glue.cast),
    "phi": _Glue.phi, "call": _Glue.call, "ret": _Glue.ret,
}  # fmt: skip
