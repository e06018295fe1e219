"""From selected instructions with registers to bytes: frame, blocks in order, copies, calls.

Cold blocks are written behind the others. The frame holds allocas and 64-byte slots of registers
that live in memory; it is addressed from the stack pointer, which is a multiple of 64 inside. rbp
keeps the caller's stack.
"""

from __future__ import annotations

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.allocate import ARGUMENTS, RBP, RSP, Allocation, scratch
from numjet.cpu.x86.back.encode import GPR, OPS, Code
from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Br, CondBr
from numjet.cpu.x86.front.parse import Block
from numjet.cpu.x86.front.types import GENERAL, MASK, VECTOR, VECTORS, Constant, Type, Unsupported
from numjet.cpu.x86.select.jumps import Branch, Call, Copy, branch, call, leap, leave
from numjet.cpu.x86.select.select import Selector, successors

_MOV = GPR["mov"]
_EQUAL = CONDITIONS["e"]


class Finisher:
    """Writes one function behind the others of `code`."""

    def __init__(self, code: Code, s: Selector, allocation: Allocation) -> None:
        self.code, self.s, self.allocation = code, s, allocation
        self.at = allocation.at
        self.blocks = [code.label() for _ in s.function.blocks]
        self.deferred: list[tuple[int, list[Copy], int]] = []  # edges that are written at the end
        self.slots_at = -(-s.frame // 64) * 64
        self.saved = sorted(allocation.used)
        size = self.slots_at + 64 * allocation.slots
        self.size = size
        stacked = sum([type.cls == GENERAL for _, type in s.function.arguments]) > 6
        self.framed = bool(size or s.calls or self.saved or stacked)
        self.current = self.following = -1  # the block that is being written, and the next one
        self.wide = any(cls == VECTOR for cls in s.classes)

    def write(self) -> None:
        """The whole function."""
        code, s = self.code, self.s
        self._prologue()
        last = len(s.out)
        self._arguments()
        self._encode(s.out[s.places[0].end : last][::-1])
        order = self._order()
        for number, block in enumerate(order):
            self.current = block.index
            self.following = order[number + 1].index if number + 1 < len(order) else -1
            if self._begins_inner(block.index):
                code.align(32)
            code.place(self.blocks[block.index])
            first, last = s.places[block.index]
            self._encode(s.out[first:last][::-1])
        self.following = -1
        for label, copies, target in self.deferred:
            code.place(label)
            self.copy(copies)
            code.jump(self.blocks[target])

    def _order(self) -> list[Block]:
        """The blocks as they are written: cold ones last, conditions of loops behind their bodies.

        A loop that asks at its begin and goes back at its end then jumps once a round, not twice.
        """
        blocks, loops = self.s.function.blocks, self.s.loop_of
        behind: dict[int, Block] = {}
        for block in blocks:
            loop = loops[block.index]
            if loop is None or loop.lo != block.index or block.cold:
                continue
            if not isinstance(block.term, CondBr):
                continue
            last = blocks[loop.hi]
            ways = [loop.lo < self.s.blocks[label].index <= loop.hi for label in successors(block)]
            if ways[0] != ways[1] and isinstance(last.term, Br) and last.term.label == block.label:
                behind[loop.hi] = block
        moved = {block.index for block in behind.values()}
        order = []
        for block in blocks:
            if not block.cold and block.index not in moved:
                order.append(block)
                while order[-1].index in behind:
                    order.append(behind.pop(order[-1].index))
        self.first = {
            loop.lo: loop.lo + (loop.lo in moved) for loop in loops if loop is not None
        }
        order += behind.values()  # of loops whose ends are cold
        return order + [b for b in blocks if b.cold]

    def _begins_inner(self, index: int) -> bool:
        """Whether a loop without loops inside begins with this block, as they are written."""
        loops = self.s.loop_of
        loop = loops[index]
        if loop is None or self.first[loop.lo] != index:
            return False
        return all([loops[k] is loop for k in range(loop.lo, loop.hi + 1)])

    def _encode(self, instructions: list[tuple]) -> None:
        code, at = self.code, self.at
        special = {branch: self.branch, call: self.call, leap: self.leap, leave: self.leave}
        for m in instructions:
            shape = m[0]
            if shape in special:
                special[shape](m)
            else:
                shape(code, at, m)

    # -- frame

    def _prologue(self) -> None:
        if not self.framed:
            return
        code = self.code
        encode.push(code, RBP)
        encode.gr(code, _MOV, RBP, RSP)
        for register in self.saved:
            encode.push(code, register)
        if self.size or self.s.calls:
            if self.size:
                encode.reserve(code, self.size)
            encode.gr(code, GPR["andi"], 0, RSP, 8, -64)

    def leave(self, m: tuple) -> None:
        """Give the result and go back."""
        code = self.code
        _, copies, type = m
        self._results(copies)
        if self.wide and (type is None or not type.lanes):
            code.buffer += encode.VZEROUPPER
        if self.framed:
            encode.gm(code, GPR["lea"], RSP, RBP, None, 1, -8 * len(self.saved))
            for register in reversed(self.saved):
                encode.pop(code, register)
            encode.pop(code, RBP)
        code.buffer += encode.RET

    def _results(self, copies: list[Copy]) -> None:
        moves = []
        for number, (d, source, value, kind) in enumerate(copies):
            if source >= 0:
                moves.append((kind.cls, number, self.at[source]))
            else:
                self._place(number, d, source, value, kind)
        self._parallel(moves)

    def _arguments(self) -> None:
        """Move the arguments to their registers."""
        general = vector = 0
        moves: list[tuple[int, int, int]] = []
        stacked = 0
        late = []
        for name, type in self.s.function.arguments:
            r = self.s.reg.get(name)
            to = None if r is None else self.at[r]
            if type.cls == GENERAL:
                if general < 6:
                    if to is not None:
                        moves.append((GENERAL, to, ARGUMENTS[general]))
                    general += 1
                else:
                    if to is not None:
                        late.append((to, 16 + 8 * stacked))
                    stacked += 1
            elif type.cls == MASK or vector + type.parts > 8:
                raise Unsupported("arguments in memory")
            else:
                for part in range(type.parts if r is not None else 0):
                    assert r is not None
                    moves.append((VECTOR, self.at[r + part], vector + part))
                vector += type.parts
        self._parallel(moves)
        for to, offset in late:
            if to >= 0:
                encode.gm(self.code, _MOV, to, RBP, None, 1, offset)
            else:
                encode.gm(self.code, _MOV, formats.SCRATCH, RBP, None, 1, offset)
                self._store_slot(GENERAL, -2 - to, formats.SCRATCH)

    # -- copies

    def copy(self, copies: list[Copy]) -> None:
        """All at once: registers first, then constants."""
        at = self.at
        moves = []
        for d, source, _, type in copies:
            if source >= 0 and at[d] != at[source]:
                moves.append((type.cls, at[d], at[source]))
        self._parallel(moves)
        for d, source, value, type in copies:
            if source < 0:
                self._place(at[d], d, source, value, type)

    def _parallel(self, moves: list[tuple[int, int, int]]) -> None:
        """(class, to, from): a move waits for the readers of its target; circles are swapped."""
        moves = [move for move in moves if move[1] != move[2]]
        while moves:
            read = {(cls, source) for cls, _, source in moves}
            ready = [move for move in moves if (move[0], move[1]) not in read]
            if ready:
                for cls, to, source in ready:
                    self.move(cls, to, source)
                moves = [move for move in moves if (move[0], move[1]) in read]
                continue
            cls, to, source = moves[0]
            # A circle: exchange through memory below the stack or a scratch register.
            self._exchange(cls, to, source)
            moves = [
                (c, t, to if (c, f) == (cls, source) else source if (c, f) == (cls, to) else f)
                for c, t, f in moves[1:]
            ]
            moves = [move for move in moves if move[1] != move[2]]

    def _exchange(self, cls: int, a: int, b: int) -> None:
        """Swap two registers."""
        if a < 0 or b < 0:
            raise Unsupported("a circle of copies in memory")
        code = self.code
        if cls == GENERAL:
            encode.gr(code, GPR["xchg"], a, b, 8)
        elif cls == VECTOR:
            op = OPS["vpxorq"]
            for to in (a, b, a):
                encode.rr(code, op, to, a, b, length=VECTORS.length)
        else:
            op = OPS["kxorq"]
            encode.rr(code, op, a, a, b)
            encode.rr(code, op, b, a, b)
            encode.rr(code, op, a, a, b)

    def move(self, cls: int, to: int, source: int) -> None:
        """Copy between two places, registers or slots."""
        code = self.code
        if to < 0 and source < 0:
            between = scratch(cls)[0]
            self._load_slot(cls, between, -2 - source)
            self._store_slot(cls, -2 - to, between)
        elif to < 0:
            self._store_slot(cls, -2 - to, source)
        elif source < 0:
            self._load_slot(cls, to, -2 - source)
        elif cls == GENERAL:
            encode.gr(code, _MOV, to, source)
        elif cls == VECTOR:
            encode.rr(code, OPS["vmovaps"], to, 0, source, length=self.s.widest)
        else:
            encode.rr(code, OPS["kmovq"], to, 0, source)

    def _load_slot(self, cls: int, register: int, slot: int) -> None:
        where = self.slots_at + 64 * slot
        if cls == GENERAL:
            encode.gm(self.code, _MOV, register, RSP, None, 1, where)
        else:
            op = OPS["vmovups" if cls == VECTOR else "kmovq"]
            encode.rm(self.code, op, register, 0, RSP, None, 1, where, length=self.s.widest)

    def _store_slot(self, cls: int, slot: int, register: int) -> None:
        where = self.slots_at + 64 * slot
        if cls == GENERAL:
            encode.gm(self.code, GPR["mov_s"], register, RSP, None, 1, where)
        else:
            op = OPS["vmovups_s" if cls == VECTOR else "kmovq_s"]
            encode.rm(self.code, op, register, 0, RSP, None, 1, where, length=self.s.widest)

    def _place(self, to: int, d: int, source: int, value: object, type: Type) -> None:
        """Set place `to` to a register or a constant. The flags may change."""
        cls = type.cls
        if source >= 0:
            if self.at[source] != to:
                self.move(cls, to, self.at[source])
            return
        if to < 0:
            between = scratch(cls)[0]
            self._place(between, d, source, value, type)
            self._store_slot(cls, -2 - to, between)
            return
        code = self.code
        if isinstance(value, int):
            encode.grip(code, GPR["lea"], to, value)
        elif isinstance(value, str):
            encode.grip(code, _MOV, to, code.slot(value))
        else:
            constant, part = value  # type: ignore[misc]
            self._constant(cls, to, type, constant, part)

    def _constant(self, cls: int, to: int, type: Type, constant: Constant, part: int) -> None:
        code = self.code
        if cls == GENERAL:
            number = constant.splat or 0
            if number:
                encode.move_constant(code, to, number)
            else:
                encode.gr(code, GPR["xor"], to, to, 4)
        elif cls == MASK:
            encode.move_constant(code, formats.SCRATCH, constant.mask())
            encode.rr(code, OPS["kmovq_r"], to, 0, formats.SCRATCH)
        else:
            at = [to, 0]

            def write(_: int, m: tuple) -> None:
                m[0](code, at, m)

            self.s.fill(0, type, constant, part, write)

    # -- ends of blocks

    def branch(self, m: tuple) -> None:
        """Go on where the flags say, with the copies of that way."""
        code, made = self.code, m[1]
        for x, size, number, target, copies in made.cases:
            register = self.at[x]
            if register < 0:
                self._load_slot(GENERAL, formats.SCRATCH, -2 - register)
                register = formats.SCRATCH
            encode.gr(code, GPR["cmpi"], 0, register, size, number)
            code.jump_if(_EQUAL, self._way(copies, target))
        if made.condition < 0:
            self.copy(made.then_copies)
            if made.then != self.following:
                code.jump(self.blocks[made.then])
            return
        self._two_ways(made)

    def leap(self, m: tuple) -> None:
        """Go where the flags say, or on."""
        _, condition, target, copies = m
        self.code.jump_if(condition, self._way(copies, target))

    def _way(self, copies: list[Copy], target: int) -> int:
        """A label from which `copies` are made and `target` follows."""
        at = self.at
        if all(source >= 0 and at[d] == at[source] for d, source, _, _ in copies):
            return self.blocks[target]
        label = self.code.label()
        self.deferred.append((label, copies, target))
        return label

    def _two_ways(self, made: Branch) -> None:
        code = self.code
        then, otherwise, condition = made.then, made.otherwise, made.condition
        first, second = made.then_copies, made.otherwise_copies
        falls = self.following
        # What goes on directly, or is the hot way, comes last: its copies need no jump.
        back = then <= self.current
        if then == falls or (back and self._copies(first) and otherwise == falls):
            then, otherwise, first, second = otherwise, then, second, first
            condition ^= 1
        code.jump_if(condition, self._way(first, then))
        self.copy(second)
        if otherwise != falls:
            code.jump(self.blocks[otherwise])

    def _copies(self, copies: list[Copy]) -> bool:
        at = self.at
        return any(source < 0 or at[d] != at[source] for d, source, _, _ in copies)

    # -- calls

    def call(self, m: tuple) -> None:
        """A call by the System V convention, with what has to be kept put by."""
        code, at, made = self.code, self.at, m[1]
        classes = self.s.classes
        for r, slot in made.saved:
            self._store_slot(classes[r], slot, at[r])
        self._call_arguments(made)
        if self.wide and not any(type.lanes for _, _, _, type in made.arguments):
            code.buffer += encode.VZEROUPPER
        if made.label >= 0:
            code.call(made.label)
        elif made.symbol:
            code.call_symbol(made.symbol)
        else:
            encode.gr(code, GPR["call_r"], 0, formats.SCRATCH)
        if made.result >= 0:
            self._result(made)
        for r, slot in made.saved:
            self._load_slot(classes[r], at[r], slot)
        for m in made.reloads:
            m[0](code, at, m)

    def _call_arguments(self, made: Call) -> None:
        general = vector = 0
        moves = []
        late = []
        for d, source, value, type in made.arguments:
            if type.cls == GENERAL:
                general += 1
                if general > 6:
                    self._stacked(8 * (general - 7), d, source, value, type)
        general = 0
        if made.register >= 0:
            # Before the arguments: it may lie in one of their registers.
            self.move(GENERAL, formats.SCRATCH, self.at[made.register])
        for d, source, value, type in made.arguments:
            if type.cls == GENERAL:
                general += 1
                if general > 6:
                    continue
                to = ARGUMENTS[general - 1]
            else:
                to = vector
                vector += 1
            if source >= 0:
                moves.append((type.cls, to, self.at[source]))
            else:
                late.append((to, d, source, value, type))
        self._parallel(moves)
        for to, d, source, value, type in late:
            self._place(to, d, source, value, type)

    def _stacked(self, place: int, d: int, source: int, value: object, type: Type) -> None:
        """An argument on the stack."""
        register = self.at[source] if source >= 0 else -2
        if register < 0:
            self._place(formats.SCRATCH, d, source, value, type)
            register = formats.SCRATCH
        encode.gm(self.code, GPR["mov_s"], register, RSP, None, 1, place)

    def _result(self, made: Call) -> None:
        type = made.result_type
        assert type is not None
        if type.cls == GENERAL and type.bits == 1:
            encode.gr(self.code, GPR["andi"], 0, 0, 4, 1)
        moves = [(type.cls, self.at[made.result + part], part) for part in range(type.parts)]
        self._parallel(moves)
