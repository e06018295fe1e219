"""Selection for AVX2 of reductions that put lanes together by several instructions.

As in `choices`; other reductions are those of `select.reduce`. What would break it: an
operation that is not associative.
"""

from __future__ import annotations

from functools import partial

from numjet.cpu.x86.avx2.choices import larger_or_less, whole_product
from numjet.cpu.x86.back.encode import OPS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.instructions import Call, result_of
from numjet.cpu.x86.front.parse import typed
from numjet.cpu.x86.front.types import TYPES, VECTOR
from numjet.cpu.x86.select import reduce
from numjet.cpu.x86.select.select import Selector, intrinsic

_SEVERAL = frozenset(("mul", "smin", "smax", "umin", "umax"))


@intrinsic("vector.reduce", narrow=True)
def reduced(s: Selector, instruction: Call, parts: list[str]) -> None:
    """llvm.vector.reduce.*; extrema and products of 64 bits have no instruction."""
    kind = instruction.callee.split(".")[3]
    source, x = typed(parts[-1])
    if source.bits != 64 or kind not in _SEVERAL:
        reduce.reduced(s, instruction, parts)
        return
    name, _ = result_of(instruction)
    d, t = s.define(name), s.new(VECTOR)
    s.put(d, (formats.vout, OPS["vmovq_r_s"], t, -1, d, -1, 0, 0, None))
    reduce.fold(s, partial(_together, kind), t, source, x)


def _together(kind: str, s: Selector, d: int, x: int, y: int, length: int) -> None:
    type = TYPES[f"<{2 << length} x i64>"]
    if kind == "mul":
        whole_product(s, d, x, y, type)
    else:
        larger_or_less(s, kind, d, x, y, type)
