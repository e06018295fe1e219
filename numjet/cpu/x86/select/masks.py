"""Mask registers: those of parts, joined ones, and which bits belong to a part.

For comparisons and for what reads their masks.
"""

from __future__ import annotations

from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import forms
from numjet.cpu.x86.front.instructions import Compare
from numjet.cpu.x86.front.types import MASK, Type, Unsupported
from numjet.cpu.x86.select.select import Selector


def mask_word(lanes: int) -> str:
    """The letter of instructions on that many mask bits."""
    return "b" if lanes <= 8 else "w" if lanes == 16 else "d" if lanes == 32 else "q"


def join_masks(s: Selector, d: int, type: Type, count: int) -> list[int]:
    """Registers for the masks of `count` parts, whose bits together become `d`'s."""
    lanes = type.lanes // count
    if count == 1:
        return [d]
    if lanes < 8:
        raise Unsupported("short masks")
    pieces = [d]
    span = type.lanes
    while len(pieces) < count:
        span //= 2
        op = OPS["kunpck" + {8: "bw", 16: "wd", 32: "dq"}[span]]
        halves = []
        for piece in pieces:
            low, high = s.new(MASK), s.new(MASK)
            s.put(piece, (forms.v3, op, piece, high, low, -1, 0, 0, None))
            halves += [low, high]
        pieces = halves
    return pieces


def compared_masks(s: Selector, name: str, type: Type) -> list[int]:
    """Registers for the masks of the parts of comparison `name`, which are put together at need."""
    s.masks.pop(name, None)
    pieces = s.pieces.pop(name, None)
    if pieces is None:
        return join_masks(s, s.define(name), type, type.parts)
    if name in s.reg:
        d = s.define(name)
        op = OPS["kunpck" + {8: "bw", 16: "wd", 32: "dq"}[type.lanes // 2]]
        s.put(d, (forms.v3, op, d, pieces[1], pieces[0], -1, 0, 0, None))
    return [*pieces]


def part_masks(s: Selector, name: str, type: Type) -> tuple[int, int] | None:
    """The masks of the two parts of `type` where a comparison of so many parts makes them."""
    made = s.defs.get(name)
    if (
        type.parts != 2 or not isinstance(made, Compare)
        or made.block != s.block.index or made.of.parts != 2 or made.of.bits == 1
        or type.lanes < 16
    ):  # fmt: skip
        return None
    pieces = s.pieces.get(name)
    if pieces is None:
        first = s.new(MASK, 2)
        pieces = s.pieces[name] = (first, first + 1)
        s.masks[name] = -1
    return pieces


def part_mask(s: Selector, k: int, type: Type, part: int) -> int:
    """The bits of mask `k` that belong to a part of `type`."""
    if not part:
        return k
    t = s.new(MASK)
    op = OPS["kshiftrq" if type.lanes > 32 else "kshiftrd" if type.lanes > 16 else "kshiftrw"]
    by = part * (type.lanes // type.parts)
    return s.later(t, (forms.v3, op, t, -1, k, -1, 0, 0, by))


def short(s: Selector, type: Type) -> int:
    """The mask that a comparison of less than a register needs: its lanes; -1 for whole ones."""
    return -1 if type.size >= 16 else s.mask_constant((1 << type.lanes) - 1, type.lanes)
