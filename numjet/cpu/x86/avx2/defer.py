"""What is cheap and read once is computed where it is read, if its operands still live there.

`defer(function)` moves comparisons and arithmetic of lanes down their block: their results took a
register on the way, of which AVX2 has sixteen, and their operands keep theirs anyway. For:
`generate`, behind the passes that rename. What would break it: moving what touches memory.
"""

from __future__ import annotations

from numjet.cpu.x86.front.instructions import Binary, Compare, Instruction
from numjet.cpu.x86.front.parse import Block, Function
from numjet.cpu.x86.front.types import VECTOR
from numjet.cpu.x86.middle.schedule import names

# Shorter blocks do not run out of registers, and shorter ways are no gain.
_LEAST, _NEAR = 24, 4


def defer(function: Function) -> None:
    """Reorder the instructions of a function's blocks."""
    for block in function.blocks:
        if len(block.instructions) >= _LEAST and not block.cold:
            _Deferring(function, block).run()


class _Deferring:
    def __init__(self, function: Function, block: Block) -> None:
        self.block, self.instructions = block, block.instructions
        self.counts = function.counts
        self.reads = [names(i) for i in self.instructions]
        # Where the names that are made here are read here.
        self.readers: dict[str, list[int]] = {i.name: [] for i in self.instructions if i.name}
        for k, operands in enumerate(self.reads):
            for name in operands:
                if name in self.readers:
                    self.readers[name].append(k)
        self.place = list(range(len(self.instructions)))
        self.ends: dict[str, int] = {}  # the last of those, as instructions are placed so far
        self.moved: dict[int, list[int]] = {}  # to which instruction which others, last first

    def run(self) -> None:
        for k in range(len(self.instructions) - 1, -1, -1):
            self.move(k, self.instructions[k])
            for name in self.reads[k]:
                self.ends[name] = max(self.ends.get(name, -1), self.place[k])
        if not self.moved:
            return
        out: list[Instruction] = []
        for k in range(len(self.instructions)):
            if self.place[k] == k:
                self.write(k, out)
        self.block.instructions = out

    def move(self, k: int, i: Instruction) -> None:
        """Place instruction `k` before its reader, if that frees a register on the way."""
        if not isinstance(i, (Compare, Binary)) or i.type.cls != VECTOR:
            return
        readers = self.readers[i.name]
        if len(readers) != 1 or self.counts[i.name] != 2:
            return
        there = self.place[readers[0]]
        if there - k >= _NEAR and all([self.lives(name, there) for name in self.reads[k]]):
            self.place[k] = there
            self.moved.setdefault(readers[0], []).append(k)

    def lives(self, name: str, there: int) -> bool:
        """Whether a name has its register at an instruction in any case."""
        readers = self.readers.get(name)
        if readers is None or self.counts[name] > len(readers) + 1:
            return True  # made before this block, or read behind it
        return self.ends.get(name, -1) >= there

    def write(self, k: int, out: list[Instruction]) -> None:
        for other in reversed(self.moved.get(k, ())):
            self.write(other, out)
        out.append(self.instructions[k])
