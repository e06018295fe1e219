"""What one round of a loop stores and the next one loads, kept in a local.

`forward(loop)` gives the statements of a serial loop in which a load that reads the element stored
by the round before - x[i - 1] where x[i] is stored, or a sum at one place - reads a local instead:
a store and the load behind it take 5 cycles, which rounds that wait for each other cannot hide.
Called by `regions.element` on each scan. What would break it: a store of the same buffer through
another name.
"""

from __future__ import annotations

from numjet.cpu.loops.index import Index, LoopVar, linear_address
from numjet.cpu.loops.ir import (
    Assign,
    Buffer,
    Define,
    Expr,
    For,
    Load,
    Local,
    ReadLocal,
    Rewriter,
    Stmt,
    Store,
    exprs,
    substitute,
    walk,
)


def forward(loop: For) -> list[Stmt]:
    """The loop, and before it what its locals begin with."""
    stores: dict[Buffer, list[Store]] = {}
    for s in walk(loop.body):
        if isinstance(s, Store):
            stores.setdefault(s.buffer, []).append(s)
    before: list[Stmt] = []
    for buffer, found in stores.items():
        if len(found) == 1 and found[0].part is None and any([s is found[0] for s in loop.body]):
            made = _forwarded(loop, buffer, found[0])
            if made is not None:
                before.append(made[0])
                loop = made[1]
    return [*before, loop]


def _forwarded(loop: For, buffer: Buffer, store: Store) -> tuple[Stmt, For] | None:
    """The first value of the local and the loop, if a load is what the last round stored."""
    place = linear_address(store.index, buffer.shape)
    if not all([type(atom) is LoopVar for atom, _ in place.terms]):
        return None
    last = place - place.coefficient(loop.var)
    where = next(k for k, s in enumerate(loop.body) if s is store)

    def reads(e: Expr) -> bool:
        if not isinstance(e, Load) or e.buffer is not buffer:
            return False
        return linear_address(e.index, buffer.shape) == last

    found = [e for e in exprs(loop.body[: where + 1]) if reads(e)]
    if not found or (last == place and any(map(reads, exprs(loop.body[where + 1 :])))):
        return None
    local = Local(f"{buffer.name}_last", buffer.dtype)
    new = Local(f"{buffer.name}_next", buffer.dtype)
    rewriter = Rewriter(load=lambda e: ReadLocal(local) if reads(e) else None)
    body: list[Stmt] = []
    for s in loop.body:
        if s is store:
            body.append(Define(new, rewriter.expr(store.value)))
            body.append(Store(buffer, store.index, ReadLocal(new)))
        else:
            body.append(rewriter.stmt(s))
    body.append(Assign(local, ReadLocal(new)))
    (first,) = substitute((Define(local, found[0]),), loop.var, Index.of(0))
    return first, For(loop.var, loop.extent, tuple(body))
