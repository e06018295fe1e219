"""When the iterations of a loop may run side by side, as lanes or on threads.

`independent(loop, deps)` answers from the addresses: each buffer that the loop writes is accessed,
in every iteration, in places that no other iteration touches. Used by the passes that
annotate loops. The test is sufficient, not necessary: None of the unknown counts as independent.
"""

from __future__ import annotations

from math import gcd

from numjet.cpu.loops.index import Dyn, Index, LoopVar, atoms
from numjet.cpu.loops.ir import Alloc, Buffer, For, Load, Store, address, exprs, walk
from numjet.cpu.loops.scope import Dependences


def accesses(loop: For) -> dict[Buffer, list[Index]]:
    """The addresses of every access to a buffer that the loop's body writes."""
    found: dict[Buffer, list[Index]] = {}
    for s in walk(loop.body):
        if isinstance(s, Store):
            found.setdefault(s.buffer, []).append(address(s))
    for e in exprs(loop.body):
        if isinstance(e, Load) and e.buffer in found:
            found[e.buffer].append(address(e))
    return found


def own_scratch(loop: For) -> set[Buffer]:
    """The scratch buffers that begin inside the loop's body."""
    return {s.buffer for s in walk(loop.body) if isinstance(s, Alloc)}


def independent(loop: For, deps: Dependences) -> bool:
    """Whether no iteration touches what another one writes, scratch of its own aside."""
    own = own_scratch(loop)
    inner = {s.var: s for s in walk(loop.body) if isinstance(s, For)}
    for buffer, places in accesses(loop).items():
        if buffer not in own and not _disjoint(loop.var, inner, places, deps):
            return False
    return True


def _disjoint(
    var: LoopVar, inner: dict[LoopVar, For], places: list[Index], deps: Dependences
) -> bool:
    """Whether the places of different values of `var` differ.

    An address is step·var + small + large, up to what is the same in all iterations: `small` stays
    in a window narrower than |step|, and `large` is a multiple of something that exceeds all the
    rest, so that step·var + small is a unique remainder.
    """
    step = places[0].coefficient(var)
    if step == 0:
        return False
    outer = None
    small: list[tuple[int, int]] = []
    large: list[int] = []
    reach = abs(step) * (var.extent - 1)
    for place in places:
        fixed = []
        if place.coefficient(var) != step:
            return False
        low = high = 0
        for atom, k in place.terms:
            if atom is var:
                continue
            inside = [a for a in atoms(Index(((atom, 1),), 0)) if a is var or a in inner]
            dynamic = any(
                type(a) is Dyn and deps.expr(a.expr) for a in atoms(Index(((atom, 1),), 0))
            )
            if dynamic or any(a is var for a in inside):
                return False
            if not inside:
                fixed.append((atom, k))
            elif abs(k) > reach and abs(k) > abs(step):
                large.append(abs(k))
            else:
                ends = k * atom.lo, k * atom.hi
                low, high = low + min(ends), high + max(ends)
        if outer is None:
            outer = dict(fixed)
        elif outer != dict(fixed):
            return False
        small.append((place.const + low, place.const + high))
    unit = gcd(*large) if large else 0
    if unit:
        # Constants that differ by multiples of the large unit differ in the large part.
        base = small[0][0]
        small = [((a - base) % unit, (a - base) % unit + (b - a)) for a, b in small]
    window = max(b for _, b in small) - min(a for a, _ in small)
    return window < abs(step) and (unit == 0 or unit > reach + window)
