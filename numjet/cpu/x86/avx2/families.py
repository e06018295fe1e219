"""AVX2 as `generate` sees it: what selects for it, and the passes before that.

Loaded where registers are those of AVX2. What would break it: the passes in another order.
"""

from __future__ import annotations

from numjet.cpu.x86.avx2 import choices, lanes, memory, permutes, reduce
from numjet.cpu.x86.avx2.aliases import share
from numjet.cpu.x86.avx2.conversions import expand
from numjet.cpu.x86.avx2.defer import defer
from numjet.cpu.x86.avx2.masks import widen
from numjet.cpu.x86.front.parse import Function

# Loaded for the operations they register.
_FAMILIES = (choices, lanes, memory, permutes, reduce)


def prepare(function: Function) -> None:
    """Rewrite what the registers do not have: conversions, lanes of bits."""
    expand(function)
    widen(function)
    share(function)


def order(function: Function) -> None:
    """Reorder what is scheduled, so that fewer registers do."""
    defer(function)
