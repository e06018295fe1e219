"""Cut top-level loops with enough work into chunks for threads: annotate For with a grain.

Needs a vectorized kernel. Does: gives an independent top-level loop a grain worth handing over; a
top-level loop that reduces everything is cut into chunks of fixed size whose partial results are
combined in order afterwards, so that the result does not depend on the number of threads.
Keeps: results, but for the order of Updates.
"""

from __future__ import annotations

from numjet.base.record import replace
from numjet.cpu.emit.values import identity
from numjet.cpu.loops.cost import cost, reductions
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import (
    Alloc,
    Buffer,
    Const,
    Define,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    ReadLocal,
    Rewriter,
    Stmt,
    Store,
    Update,
    UpdateArg,
    assigned,
    defined,
    exprs,
    stored,
)
from numjet.cpu.loops.legal import independent
from numjet.cpu.loops.scope import Dependence, Dependences

# Instructions at which a loop is worth waking another thread for (about 15 µs at two a
# nanosecond), and those of one chunk.
_WORTH = 30_000
_CHUNK = 12_000
# Chunks whose results are kept, on the stack: of 8 bytes, 32 KiB. Beyond it chunks are longer.
_MOST_CHUNKS = 4096
# So many are joined lane-wise: one after the other, sums of thousands lose 3 bits.
_MANY_CHUNKS = 64


def parallelize(kernel: Kernel) -> Kernel:
    """Annotate the top-level loops of a kernel; see the module's text."""
    deps = Dependences(stored(kernel.body))
    out: list[Stmt] = []
    outside: set[Dependence] = set()
    for s in kernel.body:
        if isinstance(s, For) and not s.grain:
            out += _split(s, deps, outside)
        else:
            out.append(s)
        outside |= defined([s])
    return replace(kernel, body=tuple(out))


def work(s: For) -> float:
    """About how many instructions one iteration takes."""
    total = 1.0
    plain: list[Stmt] = []
    for x in s.body:
        if isinstance(x, For):
            total += x.var.extent * work(x)
        else:
            plain.append(x)
    total += cost(plain)
    return total / s.lanes if s.kind == "vector" and s.lanes else total


def worth(s: For) -> bool:
    """Whether a loop of known extent takes long enough to wake another thread for."""
    return work(s) * s.var.extent >= _WORTH


def grain(s: For) -> int:
    """Rounds of an independent loop that a thread takes at once; 0 where one takes them all."""
    return max(1, int(_CHUNK / work(s))) if worth(s) else 0


def _split(s: For, deps: Dependences, outside: set[Dependence]) -> list[Stmt]:
    if not isinstance(s.extent, int) or s.extent < 2 or not worth(s):
        return [s]
    if not independent(s, deps):
        return [s]
    own = defined(s.body)
    outer = [x for x in assigned(s.body) if x not in own]
    needed: set[Dependence] = set()
    for e in exprs([s]):
        needed |= deps.expr(e)
    if needed & outside:
        return [s]  # reads locals from before the loop
    rounds = grain(s)
    if not outer:
        return [replace(s, grain=min(rounds, (s.extent + 1) // 2))]
    found = reductions(s)
    if found is None:
        return [s]
    return _partial_results(s, found, rounds)


def _partial_results(s: For, found: list[Update | UpdateArg], grain: int) -> list[Stmt]:
    """Reduce chunks of `grain` iterations apart, then their results in order."""
    assert isinstance(s.extent, int)
    grain = max(grain, -(-s.extent // _MOST_CHUNKS))
    if s.kind == "vector":
        block = s.lanes * s.unroll
        grain = (grain + block - 1) // block * block
    chunks = -(-s.extent // grain)
    if chunks < 2:
        return [s]
    chunk, inner, last = LoopVar("chunk", chunks), LoopVar(s.var.name, grain), LoopVar("k", chunks)
    c, at = Index.of(chunk), Index.of(last)
    locals_: dict[Local, Local] = {}
    start: list[Stmt] = []
    finish: list[Stmt] = []
    combine: list[Stmt] = []
    allocs: list[Stmt] = []
    for r in found:
        op = r.op
        targets = [(r.local, identity(op, r.local.dtype))]
        if isinstance(r, UpdateArg):
            targets.append((r.position, 0))
        loads: list[Expr] = []
        for local, value in targets:
            mine = locals_[local] = Local(local.name, local.dtype)
            buffer = Buffer("partial_" + local.name, local.dtype, (chunks,), "scratch")
            allocs.append(Alloc(buffer))
            start.append(Define(mine, Const(value, local.dtype)))
            finish.append(Store(buffer, (c,), ReadLocal(mine)))
            loads.append(Load(buffer, (at,)))
        if isinstance(r, UpdateArg):
            combine.append(UpdateArg(r.local, r.position, op, *loads))
        else:
            combine.append(Update(r.local, op, loads[0]))
    body = Rewriter(var={s.var: c * grain + Index.of(inner)}, local=locals_).block(s.body)
    extent: int | Index = grain
    if s.extent % grain:
        extent = clamp(s.extent - c * grain, s.extent - (chunks - 1) * grain, grain)
    part = replace(s, var=inner, extent=extent, body=body)
    return [
        *allocs,
        For(chunk, chunks, (*start, part, *finish), grain=1),
        For(last, chunks, tuple(combine), "vector" if chunks >= _MANY_CHUNKS else "serial"),
    ]
