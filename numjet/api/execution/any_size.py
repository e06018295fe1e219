"""One program for all sizes of operations whose elements, or rows, do not depend on each other.

`api.eager.deferral` asks for it where operations were met before on arrays of another size: chains
of elementwise operations, and operations row by row (reductions, softmax and norms of rows), where
the number of rows is the size. A program is compiled for a block of a power of two elements or
rows, of which the arrays hold four to eight; the last one begins so that it ends where they end,
and computes some a second time, to the same bits. So an octave of sizes has one program. What would
break it: an operation whose elements depend on more than `roles` says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base.record import NamedTuple
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Pointwise, Reduce
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


class Step(NamedTuple):
    """An operation as `roles` sees it: its operands and its result as codes."""

    primitive: Primitive
    params: dict[str, Any]
    operands: tuple[int, ...]
    avals: Sequence[ShapedArray]
    code: int
    out: ShapedArray


def roles(steps: Sequence[Step], outs: Sequence[int], n: int) -> dict[int, bool] | None:
    """Which values are cut into rows along their first axis, of n; the others are needed whole.
    None where rows depend on other rows. What is not needed has no role."""
    found = dict.fromkeys(outs, True)
    for step in reversed(steps):
        cut = found.get(step.code)
        if cut is None:
            continue
        if cut:
            if step.out.shape[:1] != (n,):
                return None
            wanted = _by_rows(step, n)
        else:
            wanted = [False] * len(step.operands)
        for code, role in zip(step.operands, wanted or (), strict=wanted is not None):
            if found.setdefault(code, role) is not role:
                return None
        if wanted is None:
            return None
    return found


def _by_rows(step: Step, n: int) -> list[bool] | None:
    """The roles of operands where the result is cut."""
    shapes, params, name = [a.shape for a in step.avals], step.params, step.primitive.name
    if is_elementwise(step.primitive, step.avals, step.out):
        return [bool(shape) for shape in shapes]
    if any([shape[:1] != (n,) for shape in shapes]) and name != "broadcast_in_dim":
        return None
    if name == "broadcast_in_dim":
        ((own, places),) = [(shapes[0], params["broadcast_dimensions"])]
        if 0 not in places or own[places.index(0)] == 1:
            return [False]
        return [True] if places[0] == 0 else None
    if name == "squeeze":
        return None if 0 in params["dimensions"] else [True]
    if name == "reshape":
        return [True] if params["dimensions"] is None else None
    alone = type(step.primitive.loops) is Reduce and not step.primitive.multiple_results
    return [True] if alone and len(shapes) == 1 and 0 not in params.get("axes", (0,)) else None


# Params that name the shape of the result.
_SIZES = {"broadcast_in_dim": "shape", "reshape": "new_sizes"}


def resized(step: Step, found: dict[int, bool], n: Any) -> dict[str, Any]:
    """The step's params for n rows."""
    name = _SIZES.get(step.primitive.name)
    if name is None or not found[step.code]:
        return step.params
    return step.params | {name: (n, *step.params[name][1:])}


def pattern(step: Step, found: dict[int, bool]) -> tuple:
    """The step without the number of rows."""
    kinds = [
        (a.dtype, a.weak_type, a.shape[1:] if found[code] else a.shape, found[code])
        for a, code in zip(step.avals, step.operands, strict=True)
    ]
    return step.primitive, step.operands, step.code, *kinds, *resized(step, found, None).items()


def rows_of(n: int, width: int) -> int:
    """The rows of a block of arrays of n rows, the widest of `width` elements; 0: too few."""
    rows = 1 << (max(n // BLOCKS, 1).bit_length() - 1)
    return rows if n >= BLOCKS and rows * width >= SMALLEST else 0


def run(
    program: Executable, ins: Sequence[np.ndarray], cut: Sequence[bool],
    outs: Sequence[np.ndarray], size: int, block: int,
) -> bool:  # fmt: skip
    """Fill `outs` by a program of one block, which is given blocks of the inputs that are `cut`;
    False where it did not run."""
    call = program.prepared()
    arena = None
    if call.arenas is not None:
        try:
            arena = call.arenas.pop()
        except IndexError:  # other threads have them
            arena = program.new_arena()
    place = None if arena is None else arena[1]
    table = ctypes.addressof(call.table)
    # What compiling loads; the package's import does not.
    from numjet.cpu.passes.stream import RESULT_BYTES
    from numjet.cpu.program.buffers import ALIGNMENT

    # A program writes large results by whole lines of the cache, from where they begin: a block
    # that begins within one is made apart.
    wide = any([x.strides[0] * block >= RESULT_BYTES for x in outs])
    status = 0
    for start in range(0, size, block):
        end = min(start + block, size)
        here = slice(end - block, end)
        given = tuple([x[here] if part else x for x, part in zip(ins, cut, strict=True)])
        parts = [x[here] for x in outs]
        apart = [
            k for k, x in enumerate(outs) if wide and here.start * x.strides[0] % ALIGNMENT
        ]  # fmt: skip
        for k in apart:
            parts[k] = memory.empty(parts[k].shape, parts[k].dtype)
        into = tuple(parts)
        status |= call.function(id(given) + _ITEMS, id(into) + _ITEMS, place, table)
        for k in apart:
            outs[k][start:end] = parts[k][start - end :]
    if arena is not None and call.arenas is not None and program.arena_bytes <= KEPT_ARENA:
        call.arenas.append(arena)
    return not status
