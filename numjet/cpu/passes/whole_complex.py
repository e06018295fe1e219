"""Complex numbers that are only moved travel whole, as integers of 64 bits.

Needs a verified kernel. Does: where every access to a complex64 buffer copies both parts of an
element to or from another such buffer, makes these buffers int64, so that the passes behind see
plain elements (which can be tiled, vectorized without splitting parts, and stored
non-temporally). Keeps: results, bit by bit. complex128 stays: there is no element of 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numjet.base.record import replace
from numjet.cpu.loops.ir import (
    Buffer,
    Define,
    For,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    While,
    blocks,
    exprs,
    stmt_exprs,
    walk,
)

_COMPLEX = np.dtype(np.complex64)
_WHOLE = np.dtype(np.int64)


def whole_complex(kernel: Kernel) -> Kernel:
    """Make buffers of complex numbers that are only copied buffers of integers."""
    candidates = {x for x in kernel.buffers if x.dtype == _COMPLEX}
    if not candidates:
        return kernel
    links: list[tuple[Buffer, Buffer]] = []
    copies: set[int] = set()  # ids of the stores
    for stmts in _blocks(kernel.body):
        for k, s in enumerate(stmts):
            if not isinstance(s, Store) or s.buffer not in candidates:
                continue
            first = k - 1 if s.part else k  # the real part is stored first
            if not _copies(stmts[first : first + 2]):
                candidates.discard(s.buffer)
                continue
            assert isinstance(s.value, Load)
            links.append((s.buffer, s.value.buffer))
            copies.add(id(s))
    # A load may be shared by a copy and by what computes with it, places among that.
    for s in walk(kernel.body):
        copied = s.value if isinstance(s, Store) and id(s) in copies else None
        found = exprs(_alone(s))
        candidates -= {e.buffer for e in found if isinstance(e, Load) and e is not copied}
    grew = True
    while grew:  # both ends of a copy, or neither
        apart = {x for pair in links for x in pair if not candidates.issuperset(pair)}
        grew = bool(apart & candidates)
        candidates -= apart
    if not candidates:
        return kernel
    made = {x: Buffer(x.name, _WHOLE, x.shape, x.role) for x in candidates}
    return replace(
        kernel,
        buffers=tuple(made.get(x, x) for x in kernel.buffers),
        body=_rewritten(kernel.body, made),
    )


def _alone(s: Stmt) -> list[Stmt]:
    """A statement without those inside it."""
    if blocks(s):
        return [Define(Local("test", e.dtype), e) for e in stmt_exprs(s)]
    return [s]


def _blocks(stmts: Sequence[Stmt]) -> list[Sequence[Stmt]]:
    found: list[Sequence[Stmt]] = [stmts]
    for s in walk(stmts):
        if isinstance(s, For | While):
            found.append(s.body)
        elif isinstance(s, If):
            found += [s.then, s.otherwise]
    return found


def _copies(pair: Sequence[Stmt]) -> bool:
    """Whether two stores write both parts of one element with those of another."""
    if len(pair) < 2:
        return False
    re, im = pair
    if not (isinstance(re, Store) and isinstance(im, Store)):
        return False
    x, y = re.value, im.value
    return (
        re.part == 0
        and im.part == 1
        and re.buffer is im.buffer
        and re.index == im.index
        and isinstance(x, Load)
        and isinstance(y, Load)
        and x.part == 0
        and y.part == 1
        and x.buffer is y.buffer
        and x.index == y.index
    )


def _rewritten(stmts: Sequence[Stmt], made: dict[Buffer, Buffer]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in stmts:
        if isinstance(s, Store) and s.buffer in made:
            if s.part == 0:
                assert isinstance(s.value, Load)
                value = Load(made[s.value.buffer], s.value.index)
                out.append(Store(made[s.buffer], s.index, value))
        elif isinstance(s, For | While):
            out.append(replace(s, body=_rewritten(s.body, made)))
        elif isinstance(s, If):
            then, otherwise = (_rewritten(x, made) for x in (s.then, s.otherwise))
            out.append(replace(s, then=then, otherwise=otherwise))
        else:
            out.append(s)
    return tuple(out)
