"""Instruction selection, from the last instruction of a function to its first.

Backwards, what nobody reads is never selected; an address, a load with one reader or a comparison
is written where it is used, and not where it stands; and the operand that an instruction
overwrites can be the one that is read here for the last time. The families of operations are in
modules beside this one; they register themselves in `HANDLERS` and `INTRINSICS` by the operation
and the class of registers its result is in, and none imports another (tests/cpu/x86/select).

A function of a family first asks for the register of its result (`Selector.define`), and then puts
the instruction that runs last before those that run earlier (`put`, `emit`), each with the
registers that it reads (`need`, `vector`). What it does not know raises Unsupported, and the whole
module is left to LLVM. What would break it: an instruction put in the order in which it runs.

A virtual register's life is an interval of places in `out`, which grows backwards in time:
`start` is its last use, `end` its first definition. One that is used in a loop it was not made in
lives until the loop's end. Several parts of one value have consecutive numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numjet.base.record import NamedTuple
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import (
    Address,
    Alloca,
    Argument,
    Binary,
    Br,
    Call,
    CondBr,
    Insert,
    Instruction,
    Load,
    Shuffle,
    Switch,
    Value,
)
from numjet.cpu.x86.front.parse import Block, Function, Module
from numjet.cpu.x86.front.types import (
    GENERAL,
    MASK,
    PTR,
    VECTOR,
    VECTORS,
    Constant,
    Type,
    Unsupported,
    constant,
    signed,
)  # fmt: skip

Handler = Callable[["Selector", Any], None]
# What writes an operation, for results of each register class (those without a result: GENERAL).
HANDLERS: tuple[dict[str, Handler], dict[str, Handler], dict[str, Handler]] = ({}, {}, {})
# The same where the registers are those of AVX2, for what is written otherwise there.
NARROW: tuple[dict[str, Handler], dict[str, Handler], dict[str, Handler]] = ({}, {}, {})
R = TypeVar("R", bound=Value)
FRAME = 0  # the virtual register that is the stack pointer

# Operations that put a number into all lanes.
_SCALES = frozenset(("add", "shl", "mul"))
_BROADCASTS = frozenset(("insertelement", "shufflevector"))
# What a use counts for at each depth of loops, when registers are short.
_WEIGHTS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_COLD_WEIGHT = 1e-3


def handles(
    *operations: str, classes: tuple[int, ...] = (GENERAL, VECTOR, MASK), narrow: bool = False
) -> Callable[[Handler], Handler]:
    """Register what writes operations whose results are in registers of these classes.

    narrow: in place of what else is registered, where registers are those of AVX2.
    """

    def register(handler: Handler) -> Handler:
        for kind in classes:
            (NARROW if narrow else HANDLERS)[kind].update(dict.fromkeys(operations, handler))
        return handler

    return register


class Intrinsic(NamedTuple):
    """What writes calls of an intrinsic function, of which it is given the operands.

    alike: all are of the result's type, and are given without it.
    """

    write: Callable[[Selector, Call, list[str]], None]
    alike: bool


INTRINSICS: dict[str, Intrinsic] = {}  # by what follows `llvm.`
NARROW_INTRINSICS: dict[str, Intrinsic] = {}


def intrinsic(*names: str, alike: bool = False, narrow: bool = False) -> Callable:
    """Register what writes calls of intrinsic functions; narrow: as by `handles`."""

    def register(write: Callable) -> Callable:
        table = NARROW_INTRINSICS if narrow else INTRINSICS
        table.update(dict.fromkeys(names, Intrinsic(write, alike)))
        return write

    return register


class Loop:
    """Blocks lo to hi; `place` is where its end lies in `out`."""

    __slots__ = ("depth", "hi", "lo", "parent", "place")

    def __init__(self, lo: int, hi: int, parent: Loop | None) -> None:
        self.lo, self.hi, self.parent = lo, hi, parent
        self.depth = parent.depth + 1 if parent else 1
        self.place = 0


class Span(NamedTuple):
    """Where a block's instructions lie in `out`: from `first` to before `end`."""

    first: int
    end: int


class Selector:
    """One function's instructions in `out`, and the intervals of its virtual registers."""

    def __init__(self, module: Module, function: Function, labels: dict[str, int]) -> None:
        self.module, self.function, self.labels = module, function, labels
        self.defs, self.counts = function.defs, function.counts
        self.blocks = {block.label: block for block in function.blocks}
        self.out: list[tuple] = []
        self.classes = [GENERAL]
        self.start = [0]
        self.end = [0]
        self.weight = [0.0]
        self.parent: dict[int, int] = {}
        self.reg: dict[str, int] = {}
        self.masks: dict[str, int] = {}  # of comparisons of two floats, where choices read them
        # The masks of both parts of comparisons, where choices read them (`masks` names them too).
        self.pieces: dict[str, tuple[int, int]] = {}
        self.joined: set[int] = set()  # defined in several places
        self.own: set[int] = set()  # made for one name, which nothing else shares so far
        self.merge: dict[str, tuple[int, float]] = {}
        self.follow: dict[str, str] = {}
        self.pending: list[tuple[int, tuple]] = []
        self.constants: list[tuple[int, tuple]] = []
        self.holding = False
        self.hoisted: dict[tuple, int] = {}
        self.calls: list[int] = []
        self.divisions: list[int] = []
        # Bytes of stack for arguments of calls and for allocas.
        self.frame = -(-function.outgoing // 64) * 64
        self.allocas: dict[str, int] = {}
        # What copies and moves of whole registers have to keep. Where only 16 bytes are used, an
        # instruction of 64 bytes would close a unit of Intel's processors to all the others.
        self.widest = _widest(function)
        self.calling = _calls(function)
        for name, type in function.arguments:
            self.defs[name] = Argument("argument", name, 0, type)
        for instruction in function.blocks[0].instructions:
            if isinstance(instruction, Alloca):
                self._reserve(instruction)
        self.loop_of = _loops(function, self.blocks)
        self._lift()
        self.block = function.blocks[-1]
        self.loop: Loop | None = None
        self.use_weight = 1.0
        self.memory = 0
        self.places: list[Span] = []  # of blocks in `out`

    def _reserve(self, alloca: Alloca) -> None:
        size, align = alloca.size, alloca.align
        if align > 64:
            raise Unsupported("alignment of the stack")
        self.frame = -(-self.frame // max(align, 8)) * max(align, 8)
        self.allocas[alloca.name] = self.frame
        self.frame += size

    def _lift(self) -> None:
        """Move broadcasts in a loop to where their number is known, before it."""
        blocks = self.function.blocks
        for block in blocks:
            loop = self.loop_of[block.index]
            if loop is None or _BROADCASTS.isdisjoint([i.op for i in block.instructions]):
                continue
            kept = []
            for instruction in block.instructions:
                source = None
                if type(instruction) is Insert and instruction.x in ("poison", "undef"):
                    # A lane with a computed number stays where the number is known.
                    if instruction.lane[0] != "%":
                        source = self.defs.get(instruction.scalar)
                elif type(instruction) is Shuffle and instruction.picked == "zeroinitializer":
                    source = self.defs.get(instruction.a)
                    if type(source) is not Insert:
                        source = None
                if source is None or source.block >= loop.lo or instruction.type.cls != VECTOR:
                    kept.append(instruction)
                    continue
                moved = instruction._replace(block=source.block)
                self.defs[moved.name] = moved  # type: ignore[index, assignment]
                blocks[source.block].instructions.append(moved)
            block.instructions = kept

    # -- virtual registers

    def new(self, cls: int, count: int = 1) -> int:
        """A register (or several) whose last use is the instruction about to be written."""
        if cls == MASK and VECTORS.narrow:
            raise Unsupported("a register of masks")
        made = len(self.classes)
        if count == 1:
            self.classes.append(cls)
            self.start.append(len(self.out))
            self.end.append(-1)
            self.weight.append(self.use_weight)
        else:
            self.classes += [cls] * count
            self.start += [len(self.out)] * count
            self.end += [-1] * count
            self.weight += [self.use_weight] * count
        return made

    def need(self, name: str) -> int:
        """The register of a named value, which the next instruction reads."""
        r = self.reg.get(name)
        if r is not None:
            self.weight[r] += self.use_weight
            return r
        made = self.defs.get(name)
        if made is None:
            raise Unsupported(f"undefined {name}")
        type = made.type
        r = self.reg[name] = self.new(type.cls, type.parts)
        self.own.add(r)
        loop = self.loop
        where = made.block
        if loop is not None and not loop.lo <= where <= loop.hi:
            while loop.parent is not None and not loop.parent.lo <= where <= loop.parent.hi:
                loop = loop.parent
            for part in range(r, r + type.parts):
                self.start[part] = loop.place
        return r

    def define(self, name: str) -> int:
        """The register that the next instruction writes as its first definition of `name`."""
        r = self.reg[name]
        parts = self.defs[name].type.parts
        wish = self.merge.pop(name, None)
        if wish is not None and self.weight[wish[0]] == wish[1]:
            target = wish[0]
            for k in range(parts):
                self.parent[r + k] = target + k
                self.weight[target + k] += self.weight[r + k]
                if self.start[r + k] < self.start[target + k]:
                    self.start[target + k] = self.start[r + k]
            self.reg[name] = r = target
            if name in self.follow:
                self._join(self.follow[name], target, parts)
        here = len(self.out)
        for part in range(r, r + parts):
            self.end[part] = here
        return r

    def define_alike(self, name: str) -> tuple[int, int]:
        """As `define`, of a value whose parts are all the same: its register, and how many parts
        are to be written (one, where they can share it)."""
        before, parts = self.reg[name], self.defs[name].type.parts
        d = self.define(name)
        if d != before or d not in self.own or d in self.joined or d in self.parent:
            return d, parts
        for part in range(d + 1, d + parts):
            self.parent[part] = d
            self.weight[d] += self.weight[part]
            self.start[d] = min(self.start[d], self.start[part])
        return d, 1

    def _join(self, name: str, target: int, parts: int) -> None:
        """Make the registers of a phi behind a loop those of what the loop carries."""
        r = self.reg[name]
        if r == target or any([r + k in self.parent for k in range(parts)]):
            return
        for k in range(parts):
            self.parent[r + k] = target + k
            self.weight[target + k] += self.weight[r + k]
            if self.start[r + k] < self.start[target + k]:
                self.start[target + k] = self.start[r + k]
        self.reg[name] = target

    def emit(self, instruction: tuple) -> None:
        """Write an instruction, and before it (in time) what its operands wait for."""
        self.out.append(instruction)
        if (self.pending or self.constants) and not self.holding:
            self.flush()

    def flush(self) -> None:
        """Write what operands wait for; constants, which others may read, come first in time."""
        pending = self.pending + self.constants
        self.pending, self.constants = [], []
        for register, made in pending:
            if register >= 0:
                self.end[register] = len(self.out)
            self.out.append(made)

    def put(self, d: int, instruction: tuple) -> None:
        """Write an instruction that defines `d` (so far the first that does)."""
        out = self.out
        self.end[d] = len(out)
        out.append(instruction)
        if (self.pending or self.constants) and not self.holding:
            self.flush()

    def later(self, register: int, instruction: tuple) -> int:
        """Have `instruction`, which defines `register`, written before the next one emitted."""
        self.pending.append((register, instruction))
        return register

    def before(self, register: int, instruction: tuple) -> int:
        """As `later`, of an instruction that reads no register."""
        self.constants.append((register, instruction))
        return register

    def inside(self, where: int) -> bool:
        """Whether block number `where` belongs to the innermost loop here."""
        loop = self.loop
        return loop is None or loop.lo <= where <= loop.hi

    def heads(self, where: int) -> bool:
        """Whether a loop begins with block number `where`."""
        loop = self.loop_of[where]
        return loop is not None and loop.lo == where

    def tie(self, name: str, d: int, part: int = 0) -> bool:
        """Whether `d`, being defined here, may be the register of `name` too, used here last.

        For the first part the answer binds; further parts follow it.
        """
        r = self.reg.get(name)
        if r is not None:
            return r + part == d
        if part or d in self.joined:
            return False
        made = self.defs.get(name)
        if made is None or not self.inside(made.block):
            return False
        if made.op == "phi":
            self.joined.add(d)
        self.reg[name] = d
        self.own.discard(d)
        self.weight[d] += self.use_weight
        return True

    def wish(self, name: str, d: int) -> None:
        """Have what makes `name`, in this block, write `d` itself where nothing speaks against it.

        `d` is a copy of `name` that is written here.
        """
        made = self.defs.get(name)
        if (
            made is not None and name not in self.reg and made.block == self.block.index
            and made.op not in ("phi", "argument")
        ):  # fmt: skip
            self.merge[name] = (d, self.weight[d])

    def once(self, name: str, record: type[R], operation: str = "") -> R | None:
        """The instruction behind `name`: one of this kind in this block that is only used here."""
        made = self.defs.get(name)
        if (
            type(made) is record and made.block == self.block.index
            and self.counts[name] == 2 and name not in self.reg
            and (not operation or made.op == operation)
        ):  # fmt: skip
            return made
        return None

    def foldable(self, name: str) -> Load | None:
        """The load behind `name` where it may be an operand of the instruction here."""
        return self.repeatable(name) if self.counts[name] == 2 else None

    def repeatable(self, name: str) -> Load | None:
        """The load behind `name` where the instruction here may load the same once more."""
        made = self.defs.get(name)
        if (
            type(made) is Load and made.block == self.block.index
            and made.memory == self.memory and name not in self.reg
        ):  # fmt: skip
            return made
        return None

    def broadcast_load(self, name: str) -> Load | None:
        """The load of one number that fills all lanes of `name`, where an operand may be that."""
        made = self.once(name, Shuffle)
        if made is None or made.picked != "zeroinitializer" or made.type.bits < 32:
            return None
        if VECTORS.narrow:  # instructions read whole registers
            return None
        if made.type.parts > 1:  # each part would read it
            return None
        inner = self.once(made.a, Insert)
        if inner is None or inner.x not in ("poison", "undef") or inner.lane != "0":
            return None
        return self.foldable(inner.scalar)

    def readable(self, name: str) -> bool:
        """Whether an instruction may read `name` from memory."""
        made = self.defs.get(name)
        if made is None:
            return False
        if type(made) is Load:
            return self.foldable(name) is not None
        return type(made) is Shuffle and self.broadcast_load(name) is not None

    # -- operands

    def integer(self, type: Type, text: str) -> int | None:
        """A scalar integer constant, signed (one bit: 0 or 1); None for a name."""
        if text[0] in "%@":
            return None
        if type.bits == 1:
            return constant(type, text).splat or 0
        return signed(constant(type, text).splat or 0, type.bits)

    def general(self, type: Type, text: str) -> int:
        """The general register of a scalar operand."""
        if text[0] == "%":
            if self.calling and type is PTR and text not in self.reg:
                return self._pointer(text)
            return self.need(text)
        t = self.new(GENERAL)
        if text[0] == "@":
            if text in self.labels:
                return self.before(t, (formats.gtable, t, self.labels[text]))
            return self.before(t, (formats.gsymbol, t, text[1:]))
        value = constant(type, text).splat or 0
        return self.before(t, (formats.gconst, t, value))

    def _pointer(self, name: str) -> int:
        """A pointer in a function that calls: one beside an argument or in the frame is made anew.

        Registers that last across calls are few.
        """
        disp, base = 0, name
        while base not in self.allocas:
            made = self.defs.get(base)
            if type(made) is not Address or made.offset[0] == "%":
                break
            number = constant(made.offset_type, made.offset).splat or 0
            disp += made.size * signed(number, made.offset_type.bits)
            base = made.base
        known = base in self.allocas or (base in self.defs and type(self.defs[base]) is Argument)
        if not known or base == name and base not in self.allocas or abs(disp) >> 31:
            return self.need(name)
        t = self.new(GENERAL)
        if base in self.allocas:
            where = (FRAME, None, 1, disp + self.allocas[base])
            return self.before(t, (formats.gm, GPR["lea"], 8, t, where))
        return self.later(t, (formats.gm, GPR["lea"], 8, t, (self.need(base), None, 1, disp)))

    def vector(self, type: Type, text: str, part: int = 0) -> int:
        """The vector register of an operand's part."""
        if text[0] == "%":
            return self.need(text) + part
        t = self.new(VECTOR)
        self.fill(t, type, constant(type, text), part, self.before)
        return t

    def fill(
        self, d: int, type: Type, value: Constant, part: int, write: Callable[[int, tuple], Any]
    ) -> None:
        """Set vector register `d` to a constant."""
        if value.splat == 0:
            write(d, (formats.v3, OPS["vpxord"], d, d, d, -1, 0, 0, None))
            return
        bits = type.bits
        if type.lanes and value.splat is not None and bits >= 8:
            op = {8: "vpbroadcastb", 16: "vpbroadcastw", 32: "vbroadcastss"}.get(bits)
            op = op or ("vbroadcastsd" if type.length else "vmovddup")
            single = value.splat.to_bytes(bits // 8, "little")
            write(d, (formats.v3c, OPS[op], d, -1, single, -1, 0, type.length, 0, None))
            return
        data = self.data(type, value, part)
        if not type.lanes:
            op = {32: "vmovss", 64: "vmovsd"}.get(bits)
            if op is None:
                op, data = "vmovss", data + bytes(2)
            write(d, (formats.v3c, OPS[op], d, -1, data, -1, 0, 0, 0, None))
        else:
            length = {16: 0, 32: 1, 64: 2}[len(data)]
            write(d, (formats.v3c, OPS["vmovups"], d, -1, data, -1, 0, length, 0, None))

    def data(self, type: Type, value: Constant, part: int) -> bytes:
        """Bytes of a constant's part, filled up to a register."""
        if type.bits < 8:
            raise Unsupported("data of bits")
        data = value.packed(type.bits)[part * VECTORS.bytes : (part + 1) * VECTORS.bytes]
        if type.lanes and len(data) < 16:
            data += bytes(16 - len(data))
        return data

    def mask(self, type: Type, text: str) -> int:
        """The mask register of an operand."""
        if text[0] == "%":
            return self.need(text)
        return self.mask_constant(constant(type, text).mask(), type.lanes)

    def mask_constant(self, bits: int, lanes: int) -> int:
        """A constant mask: made once, before the loops."""
        if self.loop is None:
            t = self.new(MASK)
            return self.before(t, (formats.kconst, t, bits, lanes))
        return self.hoist(MASK, (formats.kconst, bits, lanes))

    def hoist(self, cls: int, key: tuple) -> int:
        """A register that `key` (format, operands behind the destination) defines at the entry."""
        t = self.hoisted.get(key)
        outer = self.loop
        while outer is not None and outer.parent is not None:
            outer = outer.parent
        if t is None:
            t = self.hoisted[key] = self.new(cls)
            if outer is not None:
                self.start[t] = outer.place
        self.weight[t] += self.use_weight
        return t

    def address(self, name: str) -> tuple[int | None, int | None, int, int]:
        """A pointer operand as [base + index*scale + displacement]."""
        disp, scale, index = 0, 1, None
        depth = self.loop.depth if self.loop is not None else 0
        while name[0] == "%" and name not in self.reg:
            made = self.defs.get(name)
            if type(made) is not Address or made.type.lanes:
                break
            size, base, index_type, offset = made.size, made.base, made.offset_type, made.offset
            if offset[0] != "%":
                step = size * signed(constant(index_type, offset).splat or 0, index_type.bits)
                if not -(1 << 31) <= disp + step < 1 << 31:
                    break
                disp += step
            elif (
                index is None and size in (1, 2, 4, 8) and index_type.bits == 64
                and self._depth(made.block) >= depth
            ):  # fmt: skip
                index, scale = offset, size
            else:
                break
            name = base
        if name in self.allocas:
            return self._indexed(FRAME, index, scale, disp + self.allocas[name])
        return self._indexed(self.general(PTR, name), index, scale, disp)

    def _depth(self, where: int) -> int:
        loop = self.loop_of[where]
        return loop.depth if loop is not None else 0

    def _indexed(
        self, base: int | None, index: str | None, scale: int, disp: int
    ) -> tuple[int | None, int | None, int, int]:
        if index is None:
            return base, None, 1, disp
        depth = self.loop.depth if self.loop is not None else 0
        while index not in self.reg:
            made = self.defs.get(index)
            if type(made) is not Binary or made.op not in _SCALES or made.b[0] == "%":
                break
            if made.a[0] != "%":
                break
            number = signed(constant(made.type, made.b).splat or 0, 64)
            if made.op == "add" and -(1 << 31) <= disp + number * scale < 1 << 31:
                disp += number * scale
            else:
                by = 1 << number if made.op == "shl" and 0 <= number < 4 else number
                wider = made.op != "add" and by > 0 and scale * by in (2, 4, 8)
                if not wider or self._depth(made.block) < depth:
                    break
                scale *= by
            index = made.a
        return base, self.need(index), scale, disp

    # -- walking the function

    def run(self) -> None:
        """Select the whole function."""
        blocks = self.function.blocks
        places = [Span(0, 0)] * len(blocks)
        for block in reversed(blocks):
            self.enter(block)
            first = len(self.out)
            self.terminate(block)
            self.body(block)
            places[block.index] = Span(first, len(self.out))
        self.places = places
        self._entry()

    def enter(self, block: Block) -> None:
        """Be at the end of `block`."""
        self.block = block
        self.memory = block.memory
        loop = self.loop = self.loop_of[block.index]
        depth = 0
        if loop is not None:
            depth = loop.depth
            ending: Loop | None = loop
            while ending is not None and ending.hi == block.index:
                ending.place = len(self.out)
                ending = ending.parent
        self.use_weight = _COLD_WEIGHT if block.cold else _WEIGHTS[min(depth, 6)]

    def body(self, block: Block) -> None:
        """The instructions of a block but its last."""
        reg, masks = self.reg, self.masks
        for instruction in reversed(block.instructions):
            op, dest = instruction.op, instruction.name
            if dest in reg or op in ("store", "call") or dest in masks:
                # Several instructions of one operation may read what is written before them.
                self.holding = True
                self.write(instruction)
                self.holding = False
                if self.pending or self.constants:
                    self.flush()

    def terminate(self, block: Block) -> None:
        """The last instruction of a block; in `jumps`."""
        HANDLERS[GENERAL][block.term.op](self, block.term)

    def write(self, instruction: Instruction) -> None:
        """Have the family that registered for it write an instruction."""
        type = instruction.type
        kind = GENERAL if type is None else type.cls
        handler = NARROW[kind].get(instruction.op) if VECTORS.narrow else None
        if handler is None:
            handler = HANDLERS[kind].get(instruction.op)
        if handler is None:
            raise Unsupported(instruction.op)
        handler(self, instruction)

    def _entry(self) -> None:
        """Hoisted constants, then where the arguments come from."""
        self.loop, self.use_weight = None, 1.0
        for (format, *operands), t in self.hoisted.items():
            self.end[t] = len(self.out)
            self.out.append((format, operands[0], t, *operands[1:])
                            if format is not formats.kconst else (format, t, *operands))
        for name, type in self.function.arguments:
            r = self.reg.get(name)
            if r is not None:
                for part in range(r, r + type.parts):
                    self.end[part] = len(self.out)
        for name in self.reg:
            r = self.reg[name]
            if self.end[r] < self.start[r]:
                raise Unsupported(f"{name} is used before its definition")


def _widest(function: Function) -> int:
    """The length of the longest vectors of a function: 0, 1, 2 for 16, 32, 64 bytes."""
    blocks = function.blocks
    types: set[Type | None] = {given for _, given in function.arguments}
    types |= {i.type for block in blocks for i in block.instructions}
    types |= {i.type for block in blocks for i in (*block.phis, block.term)}
    found = max([each.length for each in types if each is not None], default=0)
    if found < VECTORS.length and [
        1 for block in blocks for i in block.instructions if type(i) is Call and "<" in i.arguments
    ]:
        return VECTORS.length
    return found


def _calls(function: Function) -> bool:
    """Whether a function calls another, save where it is cold."""
    return any([
        type(i) is Call and (i.callee[:6] != "@llvm." or ".mem" in i.callee)
        for block in function.blocks if not block.cold for i in block.instructions
    ])  # fmt: skip


def _loops(function: Function, blocks: dict[str, Block]) -> list[Loop | None]:
    """The innermost loop of each block; loops are runs of blocks entered at their first."""
    edges = [
        (block.index, blocks[label].index)
        for block in function.blocks
        for label in successors(block)
    ]
    ends: dict[int, int] = {}
    for source, target in edges:
        if target <= source:
            ends[target] = max(ends.get(target, 0), source)
    found: list[Loop | None] = [None] * len(function.blocks)
    stack: Loop | None = None
    for k in range(len(found)):
        while stack is not None and stack.hi < k:
            stack = stack.parent
        if k in ends:
            if stack is not None and ends[k] > stack.hi:
                raise Unsupported("loops that overlap")
            stack = Loop(k, ends[k], stack)
        found[k] = stack
    for source, target in edges:
        loop = found[target]
        while loop is not None:
            if not loop.lo <= source <= loop.hi and target != loop.lo:
                raise Unsupported("a loop that is entered at several places")
            loop = loop.parent
    return found


def successors(block: Block) -> list[str]:
    """The labels that control may go to."""
    term = block.term
    if type(term) is Br:
        return [term.label]
    if type(term) is CondBr:
        return [term.then, term.otherwise]
    if type(term) is Switch:
        return [term.default, *[label for _, label in term.choices]]
    return []


def size_of(type: Type) -> int:
    """Bytes that an instruction on general registers works on: 4 or 8."""
    return 8 if type.bits == 64 else 4


def move(selector: Selector, type: Type, d: int, s: int) -> None:
    """Write a copy between registers of a type's class."""
    if type.cls == GENERAL:
        selector.emit((formats.gmove, GPR["mov"], 8, d, s))
    elif type.cls == VECTOR:
        selector.emit((formats.vmove, OPS["vmovaps"], d, s, type.length))
    else:
        selector.emit((formats.vmove, OPS["kmovq"], d, s, 0))
