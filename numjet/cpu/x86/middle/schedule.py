"""The order of a long block's instructions, so that chains which do not depend on each other mix.

A processor looks ahead over a hundred instructions or two. Where a block holds one long chain of
dependent instructions behind another (a function of sixteen scalars, written sixteen times), it
sees one or two chains at a time and waits for their latencies. Here instructions are ordered as a
machine would start them that takes several a cycle in order and knows latencies, from a window of
the text, and as long as the values that live fit the vector registers. Reads of memory stay between
the writes they stand between; writes and calls keep their order.
"""

from __future__ import annotations

import re
from bisect import insort

from numjet.cpu.x86.front.instructions import Call, Ending, Instruction, Load, Store
from numjet.cpu.x86.front.parse import Block, Function
from numjet.cpu.x86.front.types import VECTOR, VECTORS, Type

_NAME = re.compile(r"%[\w.]+")
# Shorter blocks fit the processor's own window.
_LEAST = 128
_WINDOW = 192
_WIDTH = 3  # instructions a cycle
_FREE = 26, 12  # registers of 32 and of 16: some are needed for constants and copies
_LATENCIES = {
    "fadd": 4, "fsub": 4, "fmul": 4, "fdiv": 11, "load": 6, "fcmp": 4, "select": 2, "call": 4,
    "fma": 4, "bitcast": 1, "sitofp": 5, "fptosi": 5, "fpext": 4, "fptrunc": 4,
    "extractelement": 3, "insertelement": 3, "shufflevector": 3, "mul": 4,
}  # fmt: skip


def schedule(function: Function) -> None:
    """Reorder the instructions of long blocks."""
    for block in function.blocks:
        if len(block.instructions) >= _LEAST and not block.cold:
            block.instructions = _Block(function, block).order()


def names(instruction: Instruction | Ending) -> list[str]:
    """The names an instruction reads."""
    found: list[str] = []
    for field in instruction[3:]:
        if isinstance(field, str):
            if "%" in field:
                found += _NAME.findall(field)
        elif isinstance(field, tuple):
            found += [x for x in field if x[0] == "%"]
    return found


def touches(instruction: Instruction) -> int:
    """2 for what writes memory or has to keep its place, 1 for what reads it, else 0."""
    kind = type(instruction)
    if kind is Store:
        return 2
    if kind is Load:
        return 1
    if type(instruction) is Call:
        callee = instruction.callee
        if instruction.name is None or not callee.startswith("@llvm."):
            return 2
        return 1 if "masked." in callee else 0
    return 0


class _Block:
    """One block's instructions with what each waits for."""

    def __init__(self, function: Function, block: Block) -> None:
        self.instructions = block.instructions
        n = len(self.instructions)
        made = {i.name: k for k, i in enumerate(self.instructions) if i.name is not None}
        self.after: list[list[int]] = [[] for _ in range(n)]
        self.waits = [0] * n
        self.reads: list[list[int]] = []
        inside: dict[int, int] = {}
        outside: set[str] = set()
        write, readers = -1, []
        for k, instruction in enumerate(self.instructions):
            read = names(instruction)
            sources = {made[name] for name in read if name in made}
            outside.update(name for name in read if name not in made)
            for name in read:
                if name in made:
                    inside[made[name]] = inside.get(made[name], 0) + 1
            self.reads.append([made[name] for name in read if name in made])
            kind = touches(instruction)
            waits = set(sources)
            if kind and write >= 0:
                waits.add(write)
            if kind == 1:
                readers.append(k)
            elif kind == 2:
                waits.update(readers)
                write, readers = k, []
            for source in waits:
                self.after[source].append(k)
            self.waits[k] = len(waits)
        counts = function.counts
        # Uses left before a value ends; what is used behind the block does not end.
        self.left = [
            inside.get(k, 0) if i.name and counts[i.name] == inside.get(k, 0) + 1 else 1 << 30
            for k, i in enumerate(self.instructions)
        ]
        self.size = [_registers(i) for i in self.instructions]
        held = sum(
            _registers(function.defs[name]) for name in outside if name in function.defs
        )
        room = _FREE[VECTORS.narrow]
        self.room = max(room - held, room - 2)

    def order(self) -> list[Instruction]:
        """The instructions in their new order."""
        n = len(self.instructions)
        ready = [0] * n  # the cycle in which operands are there
        available = [k for k in range(n) if not self.waits[k]]
        done = [False] * n
        out: list[Instruction] = []
        first = cycle = issued = live = 0
        while available:
            while done[first]:
                first += 1
            chosen = -1
            if live >= self.room:
                chosen = available[0]
            else:
                soonest = 1 << 60
                for k in available:
                    if k >= first + _WINDOW:
                        break
                    if ready[k] <= cycle:
                        chosen = k
                        break
                    soonest = min(soonest, ready[k])
                if chosen < 0:
                    cycle, issued = soonest, 0
                    continue
            available.remove(chosen)
            done[chosen] = True
            instruction = self.instructions[chosen]
            out.append(instruction)
            live += self._change(chosen)
            issued += 1
            if issued == _WIDTH:
                cycle, issued = cycle + 1, 0
            finish = max(cycle, ready[chosen]) + _LATENCIES.get(instruction.op, 1)
            for k in self.after[chosen]:
                ready[k] = max(ready[k], finish)
                self.waits[k] -= 1
                if not self.waits[k]:
                    insort(available, k)
            if first < n - 1 and done[first]:
                first += 1
        return out

    def _change(self, k: int) -> int:
        """How many registers more live behind instruction `k`."""
        change = self.size[k] if self.left[k] else 0
        for source in self.reads[k]:
            self.left[source] -= 1
            if not self.left[source]:
                change -= self.size[source]
        return change


def _registers(instruction: Instruction) -> int:
    """Vector registers that an instruction's result takes."""
    type = instruction.type if instruction.name is not None else None
    return type.parts if isinstance(type, Type) and type.cls == VECTOR else 0
