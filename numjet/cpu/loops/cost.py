"""Estimates over loop IR: what a body costs, how many lanes suit it, what a loop reduces.

Used by the passes that annotate loops and by the emitter. The unit of cost is about one vector
instruction. Nothing here changes a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numjet.cpu.loops.index import Index
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Assign,
    Cast,
    Const,
    Expr,
    For,
    IndexValue,
    Load,
    Local,
    Op,
    ReadLocal,
    Stmt,
    Store,
    Update,
    UpdateArg,
    While,
    assigned,
    defined,
    exprs,
    stored,
    walk,
)
from numjet.cpu.loops.scope import Dependences

_CHEAP = frozenset(
    ["add", "sub", "mul", "neg", "abs", "max", "min", "and", "or", "xor", "not", "eq", "ne", "lt",
     "le", "gt", "ge", "shl", "shr_arith", "shr_logical", "sign", "square", "is_finite", "is_nan",
     "floor", "ceil", "trunc", "round_even", "copysign", "fma", "max_of_numbers",
     "min_of_numbers", "either_nan"]
)  # fmt: skip
_MEDIUM = {"div": 6, "sqrt": 8, "rsqrt": 12, "rem": 12, "reciprocal": 6}
_FUNCTION = 25


# Columns of rows up to these widths are picked out of the rows, wider ones gathered. A gather of 16
# floats takes 58 cycles on Zen 4, a column of 9 loads 9 and eight shuffles of one. In registers of
# 32 bytes such a shuffle is up to three instructions, where eight lanes are loaded and inserted one
# by one: every fifth of 1,000,000 floats takes 52 us so, else 82. Those of 16 bytes have few lanes.
_WIDEST, _WIDEST_FEW = 9, 4


def in_short_rows(width: int, vector_bytes: int) -> bool:
    """Whether elements that lie `width` apart are picked out of all that lie between."""
    return 2 <= width <= (_WIDEST if vector_bytes >= 32 else _WIDEST_FEW)


def column_of_rows(at: Index, width: int, size: int) -> bool:
    """Whether elements that lie `width` apart from `at` on are a column of rows of a buffer of
    `size` that has whole ones."""
    return size % width == 0 and all([k % width == 0 for _, k in at.terms])


def op_cost(name: str) -> int:
    """About how many instructions an operation takes."""
    return 1 if name in _CHEAP else _MEDIUM.get(name, _FUNCTION)


def cost(stmts: Sequence[Stmt], rounds: bool = True) -> int:
    """About how many instructions one run of the statements takes, loops counted by extent; or, not
    counting `rounds`, how many are written."""
    total = 0
    for s in stmts:
        if isinstance(s, For):
            extent = s.extent if isinstance(s.extent, int) else s.var.extent
            total += (extent if rounds else s.unroll) * (1 + cost(s.body, rounds))
        elif isinstance(s, While):
            total += (20 if rounds else 1) * (1 + cost(s.body, rounds))  # an unknown count
        else:
            total += 1
            inner = [*getattr(s, "then", ()), *getattr(s, "otherwise", ())]
            total += cost(inner, rounds)
    for e in exprs([s for s in stmts if not isinstance(s, For | While)]):
        if isinstance(e, Op):
            total += op_cost(e.name)
        elif isinstance(e, Load | Cast):
            total += 1
    return total


def default_lanes(s: For, vector_bytes: int) -> int:
    """As many lanes as the widest element type in the loop's data has in a vector register."""
    widths: list[tuple[int, Expr]] = []
    for e in exprs(s.body):
        # A position's bound is compared with it, not with the data.
        if isinstance(e, IndexValue | Const) or (
            isinstance(e, ReadLocal) and e.dtype.kind in "iu"
        ):
            continue
        if e.dtype != np.dtype(bool):
            size = e.dtype.itemsize
            # The small floats are computed as float32.
            widths.append((4 if e.dtype.kind in "fV" and size < 4 else size, e))
    if len({size for size, _ in widths}) > 1:
        # What is the same in every round stays scalar, like the 64 bits of a random key.
        deps = Dependences(stored(s.body))
        widths = [(size, e) for size, e in widths if deps.expr(e)]
    widest = max([size for size, _ in widths], default=1)
    for x in walk(s.body):
        if isinstance(x, Store):
            widest = max(widest, COMPLEX_PARTS.get(x.buffer.dtype, x.buffer.dtype).itemsize)
    return max(vector_bytes // widest, 2)


def reductions(s: For) -> list[Update | UpdateArg] | None:
    """The Updates of locals from outside the loop, one a local; None when the loop changes an
    outer local in another way, or reads it, so that its iterations need their order."""
    own = defined(s.body)
    outer = [x for x in assigned(s.body) if x not in own]
    if not outer:
        return []
    wanted = set(outer)
    found: dict[Local, Update | UpdateArg] = {}
    for x in walk(s.body):
        if isinstance(x, Assign) and x.local in wanted:
            return None
        if isinstance(x, Update | UpdateArg) and x.local in wanted:
            before = found.get(x.local)
            if before is not None and (type(before) is not type(x) or before.op != x.op):
                return None
            if isinstance(x, UpdateArg):
                if isinstance(before, UpdateArg) and before.position is not x.position:
                    return None
            found[x.local] = x
    positions = {x.position for x in found.values() if isinstance(x, UpdateArg)}
    if set(found) | positions != wanted or positions & set(found):
        return None
    reads = {e.local for e in exprs(s.body) if isinstance(e, ReadLocal)}
    return None if reads & wanted else list(found.values())
