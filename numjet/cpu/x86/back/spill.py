"""Loads and stores around the instructions whose registers live in memory.

For `generate`, behind allocation and before `finish`. An operand that is read last may be read
where it lies, in instructions with a format for that (`_FOLDED`). What would break it: a format
that `ROLES` describes wrongly.
"""

from __future__ import annotations

from numjet.cpu.x86.back.allocate import Allocation, scratch
from numjet.cpu.x86.back.encode import GPR, OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.types import GENERAL, MASK, VECTOR, Unsupported
from numjet.cpu.x86.select.jumps import branch, call, leap, leave
from numjet.cpu.x86.select.select import FRAME, Selector, Span


def spill(s: Selector, allocation: Allocation) -> None:
    """Rewrite `out` so that every operand is in a register; `finish` sees to branches and calls."""
    if not any(place < 0 for place in allocation.at[:-1]):
        return
    _Spiller(s, allocation).run()


def crowded(s: Selector) -> bool:
    """Whether loops wait for what was put into memory: LLVM moves instructions to avoid that."""
    slots, moved, all_ = -(-s.frame // 64) * 64, 0, 0
    for block in s.function.blocks:
        if s.loop_of[block.index] is None or block.cold:
            continue
        for m in s.out[s.places[block.index].first : s.places[block.index].end]:
            all_ += 1
            memory = formats.ROLES[m[0]][2] if m[0] in formats.ROLES else 0
            if memory and m[memory][0] == FRAME and m[memory][3] >= slots:
                moved += m[1].name[:6] == "vmovup"
    return moved * _SHARE > all_


# Formats whose last operand may be memory, and what they are then.
_FOLDED = {formats.v3: formats.v3m, formats.v3t: formats.v3mt, formats.vread: formats.vreadm,
           formats.v4: formats.v4m}  # fmt: skip
# Those on general registers that have forms for memory.
# Loops of which one instruction in so many moves values to or from memory are crowded.
_SHARE = 10
_GENERAL = frozenset((formats.gmove, formats.g2t, formats.gread, formats.g1read, formats.g1t))
_FOLDS = frozenset(_FOLDED.values())
_COMMUTES = frozenset(
    ("vadd", "vmul", "vand", "vor", "vxor", "vfmadd231", "vfmsub231", "vfnmadd231")
)


class _Spiller:
    def __init__(self, s: Selector, allocation: Allocation) -> None:
        self.s, self.at = s, allocation.at
        self.slots_at = -(-s.frame // 64) * 64
        # Virtual registers that stand for the scratch registers.
        none = self.at.pop()
        self.scratch: dict[int, list[int]] = {}
        for cls in (GENERAL, VECTOR, MASK):
            self.scratch[cls] = []
            for register in scratch(cls):
                self.scratch[cls].append(len(self.at))
                self.at.append(register)
                s.classes.append(cls)
        self.at.append(none)

    def run(self) -> None:
        s = self.s
        out: list[tuple] = []
        moved = []  # where each instruction's replacements begin
        for m in s.out:
            moved.append(len(out))
            out += self.around(m)
        moved.append(len(out))
        s.out, s.places = out, [Span(moved[first], moved[end]) for first, end in s.places]

    def memory(self, slot: int) -> tuple[int, None, int, int]:
        return (FRAME, None, 1, self.slots_at + 64 * slot)

    def load(self, cls: int, register: int, slot: int) -> tuple:
        where = self.memory(slot)
        if cls == GENERAL:
            return (formats.gm, GPR["mov"], 8, register, where)
        op = OPS["vmovups" if cls == VECTOR else "kmovq"]
        return (formats.v3m, op, register, -1, where, -1, 0, self.s.widest, 0, None)

    def store(self, cls: int, register: int, slot: int) -> tuple:
        where = self.memory(slot)
        if cls == GENERAL:
            return (formats.gmread, GPR["mov_s"], 8, register, where)
        op = OPS["vmovups_s" if cls == VECTOR else "kmovq_s"]
        return (formats.vstore, op, register, -1, where, -1, 0, self.s.widest, 0, None)

    def around(self, m: tuple) -> list[tuple]:
        """The instruction with its loads and stores, the last of them first."""
        format, at = m[0], self.at
        if format in (branch, call, leap, leave):
            return [m]
        writes, reads, memory = formats.ROLES[format]
        found = [m[k] for k in (*writes, *reads) if at[m[k]] < 0]
        where = m[memory] if memory else None
        if where is not None:
            found += [r for r in where[:2] if r is not None and at[r] < 0]
        if not found:
            return [m]
        spilled = set(found)
        if format in _GENERAL:
            folded = self._in_memory(m)
            if folded is not None:
                return folded
        if len(spilled) == 1 and format in _FOLDED:
            m = self._folded(m, spilled.pop())
            format = m[0]
            if format in _FOLDS:
                return [m]
        return self._with(list(m), writes, reads, memory, where)

    def _in_memory(self, m: tuple) -> list[tuple] | None:
        """An instruction on general registers with its spilled operand in memory, where it can."""
        format, op, size, d, other = m
        at = self.at
        out = at[d] < 0
        if format in (formats.g1read, formats.g1t):
            # A change of four bytes would leave the others, which a register's are not.
            if format is formats.g1t and size != 8:
                return None
            return [(formats.gmi, op, size, self.memory(-2 - at[d]), other)]
        if out and at[other] < 0 and format is formats.gmove:
            t = self.scratch[GENERAL][0]
            return [self.store(GENERAL, t, -2 - at[d]), self.load(GENERAL, t, -2 - at[other])]
        if out and format is formats.gmove:
            return [self.store(GENERAL, other, -2 - at[d])]
        if out or at[other] >= 0:
            return None
        if format is formats.gmove:
            return [self.load(GENERAL, d, -2 - at[other])]
        made = formats.gmt if format is formats.g2t else formats.gmread
        return [(made, op, size, d, self.memory(-2 - at[other]))]

    def _folded(self, m: tuple, r: int) -> tuple:
        """`m` with its spilled operand `r` read from memory, where the instruction can."""
        format, op, d, a, b, k, z, length, imm = m
        if a == r and b != r and op.name[:-2] in _COMMUTES:
            a, b = b, a
        if b != r or r in (a, d) or self.s.classes[r] != VECTOR:
            return m
        if op.units == (1, 1, 1) or op.name in ("vmovss", "vmovsd"):
            return m
        where = self.memory(-2 - self.at[r])
        return (_FOLDED[format], op, d, a, where, k, z, length, 0, imm)

    def _with(
        self, m: list, writes: tuple, reads: tuple, memory: int, where: tuple | None
    ) -> list[tuple]:
        at, classes = self.at, self.s.classes
        free = {cls: list(registers) for cls, registers in self.scratch.items()}
        given: dict[int, int] = {}
        before: list[tuple] = []
        after: list[tuple] = []
        if where is not None:
            m[memory] = self._address(where, free, given, before)
        written = [m[k] for k in writes if at[m[k]] < 0]
        for r in dict.fromkeys([m[k] for k in reads if at[m[k]] < 0]):
            cls = classes[r]
            if r not in given:
                if not free[cls]:
                    raise Unsupported("too many registers in memory")
                given[r] = free[cls].pop(0)
                before.append(self.load(cls, given[r], -2 - at[r]))
        for r in written:
            cls = classes[r]
            if r not in given:
                # What is only written may take the place of what is only read.
                given[r] = free[cls].pop(0) if free[cls] else self.scratch[cls][0]
            after.append(self.store(cls, given[r], -2 - at[r]))
        for k in {*writes, *reads}:
            if m[k] in given:
                m[k] = given[m[k]]
        return [*after, tuple(m), *reversed(before)]

    def _address(
        self, where: tuple, free: dict[int, list[int]], given: dict[int, int], before: list[tuple]
    ) -> tuple:
        base, index, scale, disp = where
        at = self.at
        base_out = base is not None and at[base] < 0
        index_out = index is not None and at[index] < 0
        if not base_out and not index_out:
            return where
        if index_out and self.s.classes[index] == VECTOR:
            lanes = free[VECTOR].pop(0)
            before.append(self.load(VECTOR, lanes, -2 - at[index]))
            index, index_out = lanes, False
            if not base_out:
                return (base, index, scale, disp)
        t = free[GENERAL].pop(0)
        if base_out:
            before.append(self.load(GENERAL, t, -2 - at[base]))
            if not index_out:
                given[base] = t
                return (t, index, scale, disp)
            u = free[GENERAL][0]
            before.append(self.load(GENERAL, u, -2 - at[index]))
            before.append((formats.gm, GPR["lea"], 8, t, (t, u, scale, 0)))
            return (t, None, 1, disp)
        before.append(self.load(GENERAL, t, -2 - at[index]))
        return (base, t, scale, disp)
