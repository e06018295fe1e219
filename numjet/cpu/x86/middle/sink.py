"""What only one way behind a branch reads is computed on that way.

`sink(function)` moves such instructions to the begin of the block they are read in, or from which
they go into values that meet (phis). For: `generate`. What would break it: moving what reads or
writes memory, and moving into a loop: blocks that instructions are moved to are entered from the
block they stood in, and from nowhere else.
"""

from __future__ import annotations

from collections import Counter

from numjet.cpu.x86.front.instructions import Alloca, CondBr, Instruction
from numjet.cpu.x86.front.parse import Block, Function
from numjet.cpu.x86.middle.schedule import names, touches
from numjet.cpu.x86.select.select import successors

_NOBODY: dict[int, int] = {}


def sink(function: Function) -> None:
    """Move instructions from blocks that end in a branch to the ways that begin there."""
    found = [(block, ways) for block, ways in _branches(function) if _used_behind(function, block)]
    if not found:
        return
    readers = _readers(function)
    for block, ways in reversed(found):
        moved: dict[int, list[Instruction]] = {way.index: [] for way in ways}
        kept = []
        for instruction in reversed(block.instructions):
            name, here = instruction.name, instruction.block
            there = readers.get(name, _NOBODY)
            where = next(iter(there), -1)
            stays = touches(instruction) or type(instruction) is Alloca
            if len(there) != 1 or where not in moved or stays:
                kept.append(instruction)
                continue
            made = function.defs[name] = instruction._replace(block=where)
            moved[where].append(made)
            for operand in names(instruction):
                found_in = readers[operand]
                found_in[where] = found_in.get(where, 0) + 1
                found_in[here] -= 1
                if not found_in[here]:
                    del found_in[here]
        block.instructions = kept[::-1]
        for way in ways:
            way.instructions[:0] = moved[way.index][::-1]


def _used_behind(function: Function, block: Block) -> bool:
    """Whether a block computes what it does not read itself: a look before the whole function."""
    read = set(names(block.term))
    for instruction in block.instructions:
        read.update(names(instruction))
    return any([
        i.name is not None and i.name not in read and function.counts[i.name] > 1 and not touches(i)
        for i in block.instructions
    ])  # fmt: skip


def _readers(function: Function) -> dict[str, dict[int, int]]:
    """How often each name is read in which blocks; by values that meet, where they come from."""
    read: dict[str, dict[int, int]] = {}
    numbers = {block.label: block.index for block in function.blocks}
    for block in function.blocks:
        here = [(name, block.index) for i in block.instructions for name in names(i)]
        here += [(name, block.index) for name in names(block.term)]
        for phi in block.phis:
            here += [(name, numbers[label]) for label, name in phi.incoming.items()]
        for name, where in here:
            found = read.setdefault(name, {})
            found[where] = found.get(where, 0) + 1
    return read


def _branches(function: Function) -> list[tuple[Block, list[Block]]]:
    """Blocks that end in a branch forward, and those behind it that nothing else leads to."""
    numbers = {block.label: block.index for block in function.blocks}
    forward = [
        block for block in function.blocks
        if type(block.term) is CondBr
        and numbers[block.term.then] > block.index < numbers[block.term.otherwise]
    ]  # fmt: skip
    if not forward:
        return []
    entered = Counter([label for block in function.blocks for label in successors(block)])
    found = []
    for block in forward:
        ways = [function.blocks[numbers[x]] for x in successors(block) if entered[x] == 1]
        if ways:
            found.append((block, ways))
    return found
