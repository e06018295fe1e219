"""cumsum, cumprod, cummax, cummin and cumlogsumexp along any axis.

Along neighbours in memory a vector is scanned in registers (log2 of its lanes steps) and only its
last lane is carried on. A few long rows are cut in pieces that stay in cache: each is combined
first, and scanned once what comes before it is known. Large results are stored non-temporally.
Along another axis whole rows are combined with the row before, those of 16 bits in float32. Sums
and logarithms of sums of many have Kahan's compensation. For: `kernels.generator`. What would break
it: a combining operation that is not associative up to rounding.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence

import numpy as np

from numjet.base.record import record, replace
from numjet.cpu import host, math
from numjet.cpu.builder.builder import TYPES, Builder, Module, Value, const, vector
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.idioms import (
    ELEMENTS,
    lanes_of,
    parallel_call,
    prefix_mask,
    size_of,
)
from numjet.cpu.passes.prefetch import AHEAD
from numjet.cpu.passes.stream import worth_streaming
from numjet.cpu.program.buffers import ALIGNMENT
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

# A piece, and how many of them a thread has a round: between combining and scanning them they stay
# in its second-level cache, and who is late leaves some to others. 10^7 floats on two threads took
# 1.7 ms in pieces of 32 to 512 KB; with the cores busy elsewhere medians of 3.3 ms in pieces of 32
# and 64 KB, 5.9 and more in larger ones.
PIECE_BYTES = 1 << 16
PIECES = 8
PARALLEL_BYTES = 1 << 19
# Columns walked together, in bytes.
BLOCK_BYTES = 1 << 13
_UNROLL = 4
# Sums of more rows than these are compensated: one after the other, 10^5 rows lose 7 bits of 24.
# Along neighbours one vector of many is added to what came before: 10^7 floats lost 5 bits.
# Logarithms of sums along neighbours cost so much themselves that compensation is free early.
PLAIN_ROWS, PLAIN_ROW, PLAIN_LOGARITHMS = 64, 8192, 1024
_NAMES = {
    "cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min",
    "cumlogsumexp": "logsumexp",
}  # fmt: skip


@record(frozen=True, slots=True)
class Scan:
    """What is combined: the operation, element types in memory and at work, the direction."""

    op: str
    element: str
    work: str
    unsigned: bool
    reverse: bool
    nontemporal: bool = False  # whole vectors are written by non-temporal stores
    exact: bool = False  # sums are compensated for what rounding loses

    @property
    def lanes(self) -> int:
        """Lanes of a vector at work."""
        return lanes_of(self.work)

    @property
    def size(self) -> int:
        """Bytes of an element in memory."""
        return size_of(self.element)

    @property
    def memory(self) -> str:
        """The type that is loaded and stored: processors without bfloats know their bits only."""
        return "i16" if self.element == "bfloat" else self.element

    def of_length(self, n: int, plain: int) -> Scan:
        """With compensation where more than `plain` numbers are added one after the other."""
        sums = self.op in ("add", "logsumexp") and TYPES[self.work].is_float
        return replace(self, exact=sums and n > plain)

    def identity(self) -> float:
        """The value that changes nothing."""
        if self.op in ("add", "mul"):
            return 0 if self.op == "add" else 1
        info = TYPES[self.work]
        if info.is_float:
            return pymath.inf if self.op == "min" else -pymath.inf
        if self.unsigned:
            return (1 << info.bits) - 1 if self.op == "min" else 0
        top = 1 << (info.bits - 1)
        return top - 1 if self.op == "min" else -top

    def combine(self, b: Builder, x: Value, y: Value) -> Value:
        """x (earlier) with y."""
        if self.op == "logsumexp":
            return b.add(*self.parts(b, x, y))
        name = f"u{self.op}" if self.unsigned and self.op in ("max", "min") else self.op
        return getattr(b, name)(x, y)

    def carried(self, b: Builder, before: Sequence[Value], x: Value) -> Sequence[Value]:
        """What is carried on, the total and where it is compensated what is lost, with x."""
        if self.exact:
            return self.compensated(b, before[0], x, before[1])
        return [self.combine(b, before[0], x)]

    def compensated(self, b: Builder, total: Value, value: Value, lost: Value) -> Sequence[Value]:
        """The total with `value`, and what it has too much, where `lost` is what it had so far."""
        if self.op == "add":
            return _compensated(b, total, value, lost)
        top, more = self.parts(b, total, value)
        kept = b.select(b.fcmp("oge", total, value), lost, b.const(0, lost.type))
        return _compensated(b, top, more, kept)

    def parts(self, b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
        """The larger, and what is added to it: log(exp x + exp y) = x + log1p(exp(y - x))."""
        top = b.max(x, y)
        low = b.sub(b.min(x, y), top)
        low = b.select(b.fcmp("oeq", x, y), b.const(0, x.type), low)
        return top, math.emit(b, "log1p", math.emit(b, "exp", low))

    def load(self, b: Builder, at: Value, mask: Value | None = None) -> Value:
        """A vector at work; the identity where `mask` does not hold."""
        kind = vector(self.element, self.lanes)
        raw = vector(self.memory, self.lanes)
        if mask is None:
            x = b.load(at, raw, self.size)
        else:
            x = b.masked_load(at, mask, b.bitcast(const(self.identity(), kind), raw), self.size)
        return x if self.element == self.work else b.fpext(b.bitcast(x, kind), self.work)

    def store(self, b: Builder, x: Value, at: Value, mask: Value | None = None) -> None:
        """A vector to memory, where `mask` holds."""
        if self.element != self.work:
            x = b.bitcast(b.fptrunc(x, self.element), vector(self.memory, self.lanes))
        if mask is not None:
            b.masked_store(x, at, mask, self.size)
        elif self.nontemporal:
            b.store(x, at, nontemporal=True)
        else:
            b.store(x, at, self.size)

    def within(self, b: Builder, x: Value) -> Value:
        """Every lane combined with the lanes before it."""
        lanes = self.lanes
        neutral = b.const(self.identity(), x.type)
        step = 1
        while step < lanes:
            if self.reverse:
                order = [k + step if k + step < lanes else lanes for k in range(lanes)]
                moved = b.shuffle(x, neutral, order)
            else:
                order = [k - step if k >= step else lanes for k in range(lanes)]
                moved = b.shuffle(x, neutral, order)
            x = self.combine(b, moved, x)
            step *= 2
        return x

    def last(self, b: Builder, x: Value) -> Value:
        """The lane that has met all others, in every lane."""
        lane = 0 if self.reverse else self.lanes - 1
        return b.shuffle(x, None, [lane] * self.lanes)


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of a cumulative operation, or None for a dtype it does not know."""
    x, out = node.ins[0], node.outs[0]
    element = ELEMENTS.get(x.dtype.name)
    if element is None or x.dtype.kind == "b" or x.size == 0:
        return None
    work = "float" if element in ("half", "bfloat") else element
    op = _NAMES[node.primitive.name]
    if op == "logsumexp" and not TYPES[work].is_float:
        return None
    scan = Scan(op, element, work, x.dtype.kind == "u", bool(node.params["reverse"]))
    axis = node.params["axis"]
    n = x.shape[axis]
    inner = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
    outer = x.size // (n * inner)

    def emit(b: Builder, reads: list[Value], writes: list[Value]) -> None:
        if inner == 1:
            # Where every vector is a whole line. 10^7 floats that no cache holds, on two threads:
            # 4.3 ms, else 4.9; where a third-level cache of 260 MB holds them all, 2.9 and 2.3.
            aligned = n * scan.size % ALIGNMENT == 0 or (outer == 1 and not scan.reverse)
            nontemporal = aligned and worth_streaming(out, sources)
            plain = PLAIN_LOGARITHMS if op == "logsumexp" else PLAIN_ROW
            rows = replace(scan.of_length(n, plain), nontemporal=nontemporal)
            name = _rows(b.module, rows, outer, n)
        else:
            name = _columns(b.module, scan.of_length(n, PLAIN_ROWS), outer, n, inner)
        b.call(name, "void", reads[0], writes[0])

    sources = [build.materialize(v) for v in node.ins]
    return [SpecialStep(node.primitive.name, sources, [out], emit, flops=x.size)]


def _name(scan: Scan, *sizes: int) -> str:
    order = "down" if scan.reverse else "up"
    kind = f"u{scan.element}" if scan.unsigned else scan.element
    how = [word for word in ("nontemporal", "exact") if getattr(scan, word)]
    return "_".join(map(str, ("cum", scan.op, kind, order, *how, *sizes)))


def _defined(module: Module, name: str) -> bool:
    return any(function.name == name for function in module.functions)


def _compensated(b: Builder, total: Value, value: Value, lost: Value) -> tuple[Value, Value]:
    """total + value, and what this sum has too much, where `lost` is what `total` has too much
    (Kahan's summation). Nothing is known to be lost of sums that are infinite."""
    value = b.sub(value, lost)
    after = b.add(total, value)
    rest = b.sub(b.sub(after, total), value)
    infinite = b.fcmp("oeq", b.abs(after), b.const(pymath.inf, after.type))
    return after, b.select(infinite, b.const(0, rest.type), rest)


def _columns(module: Module, scan: Scan, outer: int, n: int, inner: int) -> str:
    """name(x, y): combine rows of `inner` elements with the row before."""
    name = _name(scan, outer, n, inner)
    if _defined(module, name):
        return name
    lanes, size = scan.lanes, scan.size
    block = min(BLOCK_BYTES // size, -(-inner // lanes) * lanes)
    blocks = -(-inner // block)
    wide = replace(scan, element=scan.work)  # totals of 16-bit floats are kept beside the result
    none = replace(wide, op="add")  # of what is lost nothing is 0
    apart = wide.element != scan.element

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        x, y = pointers
        kept = b.alloca(vector(scan.work, lanes), block // lanes) if apart else None
        lost = b.alloca(vector(scan.work, lanes), block // lanes) if scan.exact else None
        with b.loop(begin, end) as tasks:
            start = b.mul(b.udiv(tasks.index, blocks), n * inner * size)
            column = b.mul(b.urem(tasks.index, blocks), block)
            columns = b.min(b.sub(b.const(inner, "i64"), column), block)
            at = b.add(start, b.mul(column, size))
            if scan.reverse:
                at = b.add(at, (n - 1) * inner * size)
            step = -inner * size if scan.reverse else inner * size
            first = b.gep(y, at)
            with b.loop(0, n, carried=[at, first]) as rows:
                offset, before = rows.values
                source, target = b.gep(x, offset), b.gep(y, offset)
                fresh = b.icmp("eq", rows.index, 0)
                keep = b.splat(b.not_(fresh), lanes)

                def walk(place: Value, mask: Value | None) -> None:
                    where = b.mul(place, size)
                    known = keep if mask is None else b.and_(keep, mask)
                    value = scan.load(b, b.gep(source, where), mask)
                    beside = b.mul(place, wide.size)
                    if kept is None:
                        total = scan.load(b, b.gep(before, where), known)
                    else:
                        total = wide.load(b, b.gep(kept, beside), known)
                    if lost is None:
                        total = scan.combine(b, total, value)
                    else:
                        at = b.gep(lost, beside)
                        so_far = none.load(b, at, known)
                        total, rest = scan.compensated(b, total, value, so_far)
                        wide.store(b, rest, at, mask)
                    if kept is not None:
                        wide.store(b, total, b.gep(kept, beside), mask)
                    scan.store(b, total, b.gep(target, where), mask)

                whole = b.and_(columns, -lanes)
                with b.loop(0, whole, lanes) as chunks:
                    walk(chunks.index, None)
                if inner % lanes:
                    with b.if_(b.icmp("slt", whole, columns)):
                        walk(whole, prefix_mask(b, b.sub(columns, whole), lanes))
                rows.yield_(b.add(offset, step), target)

    total = outer * n * inner * size
    grain = 1 if total >= PARALLEL_BYTES else outer * blocks
    if total >= PARALLEL_BYTES:
        grain = max(1, PARALLEL_BYTES // 4 // max(n * block * size, 1))
    _wrapper(module, name, task, outer * blocks, grain)
    return name


def _rows(module: Module, scan: Scan, outer: int, n: int) -> str:
    """name(x, y): `outer` rows of `n` neighbours."""
    name = _name(scan, outer, n)
    if _defined(module, name):
        return name
    row = _scan_function(module, scan)
    total = outer * n * scan.size
    piece = PIECE_BYTES // scan.size
    kind = vector(scan.work, scan.lanes)
    neutral = const(scan.identity(), kind)
    if (
        host.cpu_count() > 1
        and total >= PARALLEL_BYTES
        and outer < 8
        and n >= 4 * piece
        and scan.element == scan.work
    ):
        _long_rows(module, scan, name, row, outer, n, piece)
        return name

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        with b.loop(begin, end) as rows:
            at = b.mul(rows.index, n * scan.size)
            x, y = (b.gep(p, at) for p in pointers)
            b.call(row, kind, x, y, b.const(n, "i64"), neutral)

    grain = outer
    if total >= PARALLEL_BYTES:
        grain = max(1, PARALLEL_BYTES // 4 // (n * scan.size))
    _wrapper(module, name, task, outer, grain)
    return name


def _wrapper(module: Module, name: str, task: Callable[..., None], count: int, grain: int) -> None:
    """name(x, y): `task` over `count` pieces of work, on all threads when there are several."""
    b = Builder(module, name, [("x", "ptr"), ("y", "ptr")], linkage="internal")
    parallel_call(b, task, list(b.args), count, grain)
    b.ret()


def _scan_function(module: Module, scan: Scan) -> str:
    """(x, y, n, before) -> after: one row, or a piece of one; before and after in every lane."""
    name = _name(scan) + "_row"
    if _defined(module, name):
        return name
    lanes, size = scan.lanes, scan.size
    kind = vector(scan.work, lanes)
    b = Builder(
        module, name, [("x", "ptr"), ("y", "ptr"), ("n", "i64"), ("before", kind)], kind,
        linkage="internal",
    )  # fmt: skip
    x, y, n, before = b.args
    unroll = _UNROLL if scan.op != "logsumexp" else 1
    step = lanes * unroll
    whole = b.sub(n, b.urem(n, step))

    def place(index: Value) -> Value:
        """Where the vector that begins `index` elements into the walk lies."""
        if scan.reverse:
            index = b.sub(b.sub(n, index), lanes)
        return b.mul(index, size)

    start = [before, b.const(0, kind)] if scan.exact else [before]
    with b.loop(0, whole, step, carried=start) as chunks:
        carry = chunks.values[0]
        places = [place(b.add(chunks.index, u * lanes)) for u in range(unroll)]
        parts = [scan.within(b, scan.load(b, b.gep(x, at))) for at in places]
        ends = [scan.last(b, part) for part in parts]
        joined = ends[0]
        for u, part in enumerate(parts):
            # What comes before part u inside this chunk is independent of the carry.
            if u:
                part = scan.combine(b, joined, part)
                joined = scan.combine(b, joined, ends[u])
            scan.store(b, scan.combine(b, carry, part), b.gep(y, places[u]))
        chunks.yield_(*scan.carried(b, chunks.values, joined))
    with b.loop(whole, n, lanes, carried=chunks.results[:1]) as tail:
        carry = tail.values[0]
        rest = b.sub(n, tail.index)
        mask = prefix_mask(b, rest, lanes)
        at = place(tail.index)
        if scan.reverse:
            # The last lanes hold what is left: the mask is a suffix, read from below the row.
            mask = b.shuffle(mask, None, range(lanes - 1, -1, -1))
        part = scan.combine(b, carry, scan.within(b, scan.load(b, b.gep(x, at), mask)))
        scan.store(b, part, b.gep(y, at), mask)
        tail.yield_(scan.last(b, part))
    if scan.nontemporal and module.has("sse2"):
        # Such stores are in no order with others: whoever is told that this is done must see them.
        module.declare("llvm.x86.sse.sfence", "void", ())
        b.line("call void @llvm.x86.sse.sfence()")
    b.ret(tail.results[0])
    return name


def _total_function(module: Module, scan: Scan) -> str:
    """(x, n) -> all elements combined, in every lane."""
    name = _name(scan) + "_total"
    if _defined(module, name):
        return name
    lanes, size = scan.lanes, scan.size
    kind = vector(scan.work, lanes)
    b = Builder(module, name, [("x", "ptr"), ("n", "i64")], kind, linkage="internal")
    x, n = b.args
    neutral = const(scan.identity(), kind)
    step = lanes * _UNROLL
    whole = b.sub(n, b.urem(n, step))
    with b.loop(0, whole, step, carried=[neutral] * _UNROLL) as chunks:
        at = b.gep(x, b.mul(chunks.index, size))
        for line in range(0, step * size, host.CACHE_LINE):
            b.prefetch(b.gep(at, AHEAD + line))  # those of the hardware stop at pages
        chunks.yield_(
            *[scan.combine(b, total, scan.load(b, b.gep(at, u * lanes * size)))
              for u, total in enumerate(chunks.values)]
        )  # fmt: skip
    totals = list(chunks.results)
    while len(totals) > 1:
        totals = [scan.combine(b, totals[k], totals[k + 1]) for k in range(0, len(totals), 2)]
    with b.loop(whole, n, lanes, carried=totals) as tail:
        mask = prefix_mask(b, b.sub(n, tail.index), lanes)
        value = scan.load(b, b.gep(x, b.mul(tail.index, size)), mask)
        tail.yield_(scan.combine(b, tail.values[0], value))
    b.ret(scan.last(b, scan.within(b, tail.results[0])))
    return name


def _long_rows(
    module: Module, scan: Scan, name: str, row: str, outer: int, n: int, piece: int
) -> None:
    """Rounds of some pieces a thread: each is scanned from what came before it, and then the one at
    its place in the next round combined; between rounds these give what comes before each."""
    total = _total_function(module, scan)
    size, lanes = scan.size, scan.lanes
    kind = vector(scan.work, lanes)
    width = lanes * size
    b = Builder(module, name, [("x", "ptr"), ("y", "ptr")], linkage="internal")
    count = PIECES * max(2, min(host.cpu_count(), 64))
    state = b.alloca(kind, count)  # what comes before each piece, after a round: its total
    shift = b.alloca("i64")

    def place(b: Builder, base: Value, index: Value) -> tuple[Value, Value]:
        """Byte offset and length of piece `index` of the round that starts at element `base`."""
        first = b.add(base, b.mul(index, piece))
        length = b.max(b.min(b.sub(b.const(n, "i64"), first), piece), 0)
        if scan.reverse:
            first = b.sub(b.sub(b.const(n, "i64"), first), length)
        return b.mul(first, size), length

    def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        x, y, state, shift = pointers
        base = b.load(shift, "i64")
        with b.loop(begin, end) as pieces:
            slot = b.gep(state, b.mul(pieces.index, width))
            with b.if_(b.icmp("sge", base, 0)):  # else it is the round before the first
                at, length = place(b, base, pieces.index)
                b.call(row, kind, b.gep(x, at), b.gep(y, at), length, b.load(slot, kind, size))
            at, length = place(b, b.add(base, count * piece), pieces.index)
            b.store(b.call(total, kind, b.gep(x, at), length), slot, size)

    with b.loop(0, outer) as rows:
        at = b.mul(rows.index, n * size)
        pointers = [b.gep(b.args[0], at), b.gep(b.args[1], at), state, shift]
        start = [const(scan.identity(), kind), const(0, kind)][: 2 if scan.exact else 1]
        with b.loop(-count * piece, n, count * piece, carried=start) as rounds:
            b.store(rounds.index, shift, 8)
            parallel_call(b, task, pointers, count, 1)
            with b.loop(0, count, carried=rounds.values) as totals:
                slot = b.gep(state, b.mul(totals.index, width))
                after = scan.carried(b, totals.values, b.load(slot, kind, size))
                b.store(totals.values[0], slot, size)
                totals.yield_(*after)
            rounds.yield_(*totals.results)
    b.ret()
