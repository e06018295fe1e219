"""One program for all sizes of a chain of elementwise operations: run on one block after the other.

`api.deferral` asks for it where operations were met before on arrays of another size. A program
is compiled for a block of a power of two elements, of which the arrays hold four to eight; the last
one begins so that it ends where they end, and computes some elements a second time, to the same
bits. So an octave of sizes has one program. What would break it: an operation whose elements depend
on more than the operands' elements at the same place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise
from numjet.core.primitive import Primitive
from numjet.cpu.program.executable import KEPT_ARENA, Executable
from numjet.cpu.runtime import memory

# Blocks of a program, at least; with fewer, too many elements are computed twice.
BLOCKS = 4
SMALLEST = 1 << 13
_ITEMS = tuple.__basicsize__  # where a tuple's items begin: a table of array objects


def is_elementwise(primitive: Primitive, avals: Sequence[ShapedArray], out: Any) -> bool:
    """Whether elements depend on those at the same place alone: of operands of one shape, and of
    operands without dimensions."""
    rule = primitive.loops
    if type(rule) is not Pointwise or not rule.elementwise or type(out) is not ShapedArray:
        return False
    return {a.shape for a in avals} <= {(), out.shape}


def common_shape(avals: Sequence[ShapedArray]) -> tuple[int, ...] | None:
    """The one shape of these avals beside (), if there is one."""
    shapes = {a.shape for a in avals} - {()}
    return shapes.pop() if len(shapes) == 1 else None


def block_of(size: int) -> int:
    """The number of elements of a block of arrays of `size`; 0: they are too small."""
    block = 1 << (max(size // BLOCKS, 1).bit_length() - 1)
    return block if block >= SMALLEST else 0


def as_block(aval: ShapedArray, block: int) -> ShapedArray:
    """What of an operand or result one block holds."""
    return aval.update(shape=(block,)) if aval.shape else aval


def run(
    program: Executable, inputs: Sequence[np.ndarray], outs: Sequence[ShapedArray],
    shape: tuple[int, ...], block: int,
) -> list[np.ndarray] | None:  # fmt: skip
    """The results of a program of one block on whole arrays, which lie row by row; None where it
    did not run."""
    results = [memory.empty(a.shape, a.dtype) for a in outs]
    flat = [x.reshape(-1) if x.shape else x for x in inputs]
    targets = [x.reshape(-1) if x.shape else x for x in results]
    call = program.prepared()
    arena = None
    if call.arenas is not None:
        try:
            arena = call.arenas.pop()
        except IndexError:  # other threads have them
            arena = program.new_arena()
    place = None if arena is None else arena[1]
    table = ctypes.addressof(call.table)
    size = int(np.prod(shape))
    status = 0
    for start in range(0, size, block):
        end = min(start + block, size)
        ins = tuple([x[end - block : end] if x.shape else x for x in flat])
        into = tuple([x[end - block : end] if x.shape else x for x in targets])
        status |= call.function(id(ins) + _ITEMS, id(into) + _ITEMS, place, table)
    if arena is not None and call.arenas is not None and program.arena_bytes <= KEPT_ARENA:
        call.arenas.append(arena)
    return None if status else results
