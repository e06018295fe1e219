"""Long sums of floats in blocks: what the sum of the blocks loses in rounding is kept beside it.

Needs an annotated kernel. Does: a loop that adds more numbers to each of its accumulators than a
few blocks hold becomes

    total, lost = what was there, 0
    for block:
      part = 0
      the loop, over the block:  part += ...
      next = total + part;  lost += what that rounds away;  total = next
    total += lost, if that is a number

so that the error is that of one block, however long the rows are (Ogita, Rump, Oishi 2005: TwoSum).
One after the other, 10^7 exponentials in 16 accumulators are 94 units wrong in float32, so 1.
Keeps: results, but for the order of Updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from numjet.base.record import record, replace
from numjet.cpu.emit.values import identity
from numjet.cpu.link import link
from numjet.cpu.loops.cost import cost, default_lanes, reductions
from numjet.cpu.loops.index import Index, LoopVar, atoms, clamp, rewrite
from numjet.cpu.loops.ir import (
    COMPLEX_PARTS,
    Alloc,
    Assign,
    Buffer,
    Const,
    Define,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Op,
    ReadLocal,
    Rewriter,
    Select,
    Stmt,
    Store,
    Update,
    exprs,
    walk,
)
from numjet.cpu.passes.vectorize import map_blocks

_FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
# A block of a vector loop takes so many instructions, and joining its lanes about 40; one of a loop
# in order joins nothing, but adds 7.
_VECTORS, _IN_ORDER = 1000, 300
# Rounds of a block, at least and at most (equal numbers may all be rounded the same way: the error
# grows with a block, to 5 units at 64 rounds), and blocks from which on a loop is cut.
_FEWEST, _MOST, _BLOCKS = 32, 64, 4
# Rounds of a block of columns take so many instructions a vector: joining it takes 13. In
# each so many numbers at least are added to a column, and two blocks are enough.
_COLUMNS, _FEWEST_ADDED = 400, 64
# Where an accumulator or a column gets fewer numbers (as in sums over a batch), nothing is cut.
_LONG = 1000


def long_sums(kernel: Kernel) -> Kernel:
    """Cut the long sums of a kernel into blocks; see the module's text."""
    body = _all(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _all(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in stmts:
        out += _cut(s) if isinstance(s, For) else [map_blocks(s, _all)]
    same = len(out) == len(stmts) and all(a is b for a, b in zip(out, stmts, strict=True))
    return stmts if same else tuple(out)


def _cut(s: For) -> Sequence[Stmt]:
    """The loop, in blocks where it is long."""
    if s.kind == "tile" or s.grain or s.var.extent < 2:
        return (map_blocks(s, _all),)
    size = _block(s) if s.var.extent >= _BLOCKS * _FEWEST else s.var.extent
    if s.var.extent < _BLOCKS * size or _additions(s) < _LONG:
        return _cut_columns(s)
    found = [r for r in reductions(s) or () if isinstance(r, Update) and r.op == "add"]
    sums = [r.local for r in found if r.local.dtype in _FLOATS]
    if not sums:
        return _cut_columns(s)
    parts = {x: Local(x.name + "_part", x.dtype) for x in sums}
    lost = {x: Local(x.name + "_lost", x.dtype) for x in sums}
    block, part = _in_blocks(s, size)
    body = _all(Rewriter(local=dict(parts)).block(part.body))
    around: list[Stmt] = [Define(parts[x], Const(identity("add", x.dtype), x.dtype)) for x in sums]
    around.append(replace(part, body=body))
    for x in sums:
        a, b = ReadLocal(x), ReadLocal(parts[x])
        after = Local(x.name + "_next", x.dtype)
        around.append(Define(after, Op("add", (a, b), x.dtype)))
        rest = _rounded_away(a, b, ReadLocal(after), around)
        around.append(Assign(lost[x], Op("add", (ReadLocal(lost[x]), rest), x.dtype)))
        around.append(Assign(x, ReadLocal(after)))
    return [
        *[Define(lost[x], Const(0.0, x.dtype)) for x in sums],
        replace(block, body=tuple(around)),
        *[Update(x, "add", _number(ReadLocal(lost[x]))) for x in sums],
    ]


def _block(s: For) -> int:
    """The rounds of a block, in elements."""
    vector = s.kind == "vector"
    light = max(cost(s.body), 1) * s.unroll
    rounds = _FEWEST
    while rounds < _MOST and rounds * light < (_VECTORS if vector else _IN_ORDER):
        rounds *= 2
    return rounds * _lanes(s) * s.unroll


def _additions(s: For) -> int:
    """How many numbers each accumulator of a loop gets, about."""
    inner = max([_additions(x) for x in s.body if isinstance(x, For)], default=1)
    return inner * s.var.extent // (_lanes(s) * s.unroll)


def _lanes(s: For) -> int:
    return (s.lanes or default_lanes(s, link.vector_bytes())) if s.kind == "vector" else 1


def _in_blocks(s: For, size: int) -> tuple[For, For]:
    """A loop over blocks of `size` rounds, still empty, and the loop over those of one."""
    n = s.var.extent
    block, inner = LoopVar("block", -(-n // size)), LoopVar(s.var.name, size)
    start = Index.of(block) * size
    extent: int | Index = size
    blocks: int | Index = block.extent
    if isinstance(s.extent, Index):
        blocks, extent = (s.extent + (size - 1)) // size, clamp(s.extent - start, 1, size)
    elif n % size:
        extent = clamp(n - start, n % size, size)
    body = Rewriter(var={s.var: start + Index.of(inner)}).block(s.body)
    return For(block, blocks, ()), replace(s, var=inner, extent=extent, body=body)


def _rounded_away(a: Expr, b: Expr, total: Expr, body: list[Stmt]) -> Expr:
    """a + b - total, exactly, where `total` is a + b rounded."""

    def sub(x: Expr, y: Expr) -> Expr:
        return Op("sub", (x, y), total.dtype)

    taken = Local("taken", total.dtype)
    body.append(Define(taken, sub(total, a)))
    t = ReadLocal(taken)
    return Op("add", (sub(a, sub(total, t)), sub(b, t)), total.dtype)


def _number(x: Expr) -> Expr:
    """x, or 0 where it is NaN, since the sum is infinite or NaN itself."""
    return Select(Op("is_finite", (x,), np.dtype(bool)), x, Const(0.0, x.dtype))


# -- columns --------------------------------------------------------------------------------


# (column, place of its accumulator, part of a complex number) -> statements
_Visit = Callable[[Index, tuple[Index, ...], int | None], list[Stmt]]


@record()
class _Column:
    """What a loop adds to one buffer: `index` along the variable of `loop`, in each of `parts`."""

    loop: For
    index: tuple[Index, ...]
    parts: dict[int | None, None]


def _cut_columns(s: For) -> Sequence[Stmt]:
    """A loop that adds to accumulators in memory, in blocks where it is long."""
    if s.kind != "serial":
        return (map_blocks(s, _all),)
    light, chain = _weight(s.body)
    size = 1
    while chain and (size * light < _COLUMNS or size * chain < _FEWEST_ADDED):
        size *= 2
    long = s.var.extent >= 2 * size and s.var.extent * chain >= _LONG
    found = _columns(s) if long else {}
    if not found:
        return (map_blocks(s, _all),)
    block, part = _in_blocks(s, size)
    parts = {x: Buffer(x.name + "_part", x.dtype, (c.loop.var.extent,), "scratch")
             for x, c in found.items()}  # fmt: skip
    lost = {x: replace(y, name=x.name + "_lost") for x, y in parts.items()}
    body = _all(tuple(_moved(part.body, parts, None)))
    begin: list[Stmt] = []
    around: list[Stmt] = []
    end: list[Stmt] = []
    for x, c in found.items():
        begin += [Alloc(parts[x]), Alloc(lost[x]), _over(c, lambda *at, x=x: _zero(lost[x], *at))]
        around.append(_over(c, lambda *at, x=x: _zero(parts[x], *at)))
    around.append(replace(part, body=body))
    for x, c in found.items():
        around.append(_over(c, lambda *at, x=x: _joined(x, parts[x], lost[x], *at)))
        end.append(_over(c, lambda *at, x=x: _finished(x, lost[x], *at)))
    return [*begin, replace(block, body=tuple(around)), *end]


def _weight(stmts: Sequence[Stmt]) -> tuple[int, int]:
    """(instructions for each vector of columns, additions to each column) of one run."""
    light = chain = 0
    for s in stmts:
        if isinstance(s, For) and s.kind == "vector":
            light += cost(s.body)
            chain += any([isinstance(x, Store) for x in s.body])
        elif isinstance(s, For):
            inner = _weight(s.body)
            light, chain = light + s.var.extent * inner[0], chain + s.var.extent * inner[1]
    return light, chain


def _columns(s: For) -> dict[Buffer, _Column]:
    """The buffers that the loop does nothing with but add to each of their columns."""
    found: dict[Buffer, _Column] = {}
    fixed = {x.var for x in walk(s.body) if isinstance(x, For) and x.kind != "vector"} | {s.var}
    added: dict[int, Load] = {}
    for loop in [x for x in walk(s.body) if isinstance(x, For) and x.kind == "vector"]:
        for store in [x for x in loop.body if isinstance(x, Store)]:
            load = _added_to(store)
            if load is None or any([a in fixed for i in store.index for a in atoms(i)]):
                continue
            if isinstance(loop.extent, Index) and any([a in fixed for a in atoms(loop.extent)]):
                continue
            column = found.setdefault(store.buffer, _Column(loop, store.index, {}))
            moved = {loop.var: Index.of(column.loop.var)}
            index = tuple([rewrite(i, moved.get) for i in store.index])  # type: ignore[arg-type]
            if index == column.index and loop.extent == column.loop.extent:
                column.parts[store.part] = None
                added[id(store)] = load
    # Whatever else touches a buffer keeps it as it is.
    other = {x.buffer for x in walk(s.body) if isinstance(x, Store) and id(x) not in added}
    loads = {id(x) for x in added.values()}
    other |= {e.buffer for e in exprs(s.body) if isinstance(e, Load) and id(e) not in loads}
    whole = {x for x, c in found.items() if x.dtype not in COMPLEX_PARTS or len(c.parts) == 2}
    return {x: c for x, c in found.items() if x in whole and x not in other}


def _added_to(store: Store) -> Load | None:
    """The read of the place that a float is added to, if that is what `store` does."""
    value = store.value
    if not isinstance(value, Op) or value.dtype not in _FLOATS or value.name not in ("add", "fma"):
        return None
    for e in value.args if value.name == "add" else value.args[2:]:
        if isinstance(e, Load) and e.buffer is store.buffer and e.part == store.part:
            if e.index == store.index:
                return e
    return None


def _moved(
    stmts: Sequence[Stmt], parts: dict[Buffer, Buffer], column: LoopVar | None
) -> Iterable[Stmt]:
    """The statements with the accumulators' buffers replaced."""

    def load(e: Load) -> Expr | None:
        if e.buffer not in parts or column is None:
            return None
        key = e.buffer, e.part
        if key not in loads:
            loads[key] = Load(parts[e.buffer], (Index.of(column),), e.part)
        return loads[key]

    loads: dict[tuple, Load] = {}
    rewriter = Rewriter(load=load)
    for s in stmts:
        if isinstance(s, For):
            inside = s.var if s.kind == "vector" else None
            yield replace(s, body=tuple(_moved(s.body, parts, inside)))
        elif isinstance(s, Store) and s.buffer in parts and column is not None:
            value = rewriter.expr(s.value)
            yield Store(parts[s.buffer], (Index.of(column),), value, s.part)
        else:
            yield rewriter.stmt(s)


def _over(c: _Column, visit: _Visit) -> For:
    """A loop over the columns, of what `visit` gives."""
    var = LoopVar("c", c.loop.var.extent)
    by = {c.loop.var: Index.of(var)}
    index = tuple([rewrite(i, by.get) for i in c.index])  # type: ignore[arg-type]
    body = [x for part in c.parts for x in visit(Index.of(var), index, part)]
    extent = c.loop.extent if isinstance(c.loop.extent, Index) else var.extent
    return replace(c.loop, var=var, extent=extent, body=tuple(body))


def _zero(buffer: Buffer, at: Index, _: tuple[Index, ...], part: int | None) -> list[Stmt]:
    dtype = COMPLEX_PARTS.get(buffer.dtype, buffer.dtype)
    value = identity("add", dtype) if buffer.name.endswith("_part") else 0.0
    return [Store(buffer, (at,), Const(value, dtype), part)]


def _joined(
    total: Buffer, part: Buffer, lost: Buffer, at: Index, place: tuple[Index, ...], of: int | None
) -> list[Stmt]:
    """total += part; lost += what that rounds away."""
    dtype = COMPLEX_PARTS.get(total.dtype, total.dtype)
    names = {x: Local(x.name, dtype) for x in (total, part)}
    after = Local(total.name + "_next", dtype)
    a, b, s = ReadLocal(names[total]), ReadLocal(names[part]), ReadLocal(after)
    body: list[Stmt] = [
        Define(names[total], Load(total, place, of)),
        Define(names[part], Load(part, (at,), of)),
        Define(after, Op("add", (a, b), dtype)),
    ]
    rest = _rounded_away(a, b, s, body)
    body.append(Store(lost, (at,), Op("add", (Load(lost, (at,), of), rest), dtype), of))
    body.append(Store(total, place, s, of))
    return body


def _finished(
    total: Buffer, lost: Buffer, at: Index, place: tuple[Index, ...], part: int | None
) -> list[Stmt]:
    """total += lost."""
    dtype = COMPLEX_PARTS.get(total.dtype, total.dtype)
    rest = Local(lost.name, dtype)
    value = Op("add", (Load(total, place, part), _number(ReadLocal(rest))), dtype)
    return [Define(rest, Load(lost, (at,), part)), Store(total, place, value, part)]
