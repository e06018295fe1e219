"""Rows of words sorted by partitions: one row on one thread, or a long one on all threads.

Shares of a long row become words and are split, each by itself, at the same values: quantiles of a
sample. The parts that lie between two of these values are split once more while they are gathered
from all shares, sorted by `sort_quick`, task by task, and written out while they are still in the
cache. The library (`nj_long_<word>`) knows words only; how they are made and written out is the
kernel's, which hands over two functions. For: `sort`. What would break it: long rows of less than
_SAMPLES words, or a plan whose scratch is smaller than `scratch_bytes`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numjet.cpu import platform
from numjet.cpu.builder import Builder, Module, Value, vector
from numjet.cpu.kernels import libraries, sort_leaves, sort_quick
from numjet.cpu.kernels.common import (
    SCRATCH_BYTES,
    Fields,
    lanes_of,
    parallel_call,
    scratch_functions,
    size_of,
)
from numjet.cpu.kernels.sort_columns import lanes_below
from numjet.cpu.kernels.sort_long import FACTS, LongRow, row_bytes
from numjet.cpu.kernels.sort_quick import PART, Quick
from numjet.cpu.kernels.sort_words import is_float

if TYPE_CHECKING:
    from numjet.cpu.kernels.sort import Plan

PREFIX = "nj_long_"
# Of a long row, each of which becomes words and is split by as many chunks, so that these are still
# in the first cache; results do not depend on them.
SHARES, _CHUNKS = 32, 8
# From this length on a row of its own is sorted faster than by insertion or radix passes: 100
# floats in 0.5 µs instead of 1.6, 1,000 in 2 instead of 9.
SHORTEST = 41
# Where rows can be sorted side by side. 500,000 floats took 0.41 ms on two cores in rows of 1,000,
# side by side 0.89; in rows of 500 0.43 and 0.46, in rows of 200 0.46 and 0.33. With fewer rows
# than _FEW lanes are idle.
_SHORTEST_OF_MANY, _FEW = 500, 8
_NANS, _ZEROS = 1, 2  # places among a share's facts; the latter as in `sort_long`
_SAMPLES, _TOGETHER = 1024, 8  # read in groups of neighbours
_FIELDS = ["n", "one", "two", "home", "context", "load", "finish", "leaf"]
_LOAD = [("context", "ptr"), ("chunk", "i64"), ("first", "i64"), ("last", "i64")]
_FINISH = [("context", "ptr"), ("first", "i64"), ("last", "i64")]


def _parts() -> int:
    """Parts of a long row: some for each core."""
    return max(SHARES, min(64, 1 << (4 * platform.cpu_count() - 1).bit_length()))


def fits(plan: Plan, beside: bool) -> bool:
    """Whether a plan's rows are sorted this way; `beside`: they could be sorted side by side."""
    return (
        plan.inner == 1
        and plan.n >= (_SHORTEST_OF_MANY if beside and plan.rows >= _FEW else SHORTEST)
        and plan.word in ("i32", "i64")
        and sort_quick.available()
    )


def start(plan: Plan) -> None:
    """Begin to make the libraries that the plan needs."""
    prefixes = (sort_leaves.PREFIX, PREFIX if plan.long else sort_quick.PREFIX)
    libraries.start(*[prefix + plan.word for prefix in prefixes])


def scratch_bytes(plan: Plan) -> int:
    """Two arrays of words, and a third of a long row whose result cannot hold them."""
    return (2 + (plan.long and not _at_home(plan))) * row_bytes(plan)


def _at_home(plan: Plan) -> bool:
    """Whether words are as large as results, and can be where these will be."""
    return len(plan.sizes) == 1 and plan.sizes[0] == plan.word_bytes


def word_of(plan: Plan) -> str:
    """The word of a plan that fits: floats that are sorted alone stay what they are."""
    if plan.key.kind == "f" and _at_home(plan):
        return {4: "float", 8: "double"}[plan.word_bytes]
    return plan.word


class WordRow(LongRow):
    """Writes the sort of one row of `plan` into function `b`."""

    def row(self, b: Builder, ins: list[Value], outs: list[Value], one: Value, two: Value) -> None:
        """Sort a row on this thread, with words at `one` and as much memory at `two`."""
        plan = self.plan
        facts = b.alloca("i64", FACTS)
        none, n = b.const(0, "i64"), b.const(plan.n, "i64")
        if is_float(plan.word):
            one = outs[0]
        self.load(b, [*ins, one, facts], none, none, n)
        b.call(sort_quick.PREFIX + plan.word, "void", one, two, n, sort_quick.leaf(b, plan.word))
        self.finish(b, ins, outs, one, none, n)
        self.end(b, ins, outs, one, facts, 1)

    def emit(self, b: Builder, ins: list[Value], outs: list[Value], scratch: Value) -> None:
        """Sort the row that begins at `ins` to `outs`, on all threads."""
        plan = self.plan
        one, two = scratch, b.gep(scratch, row_bytes(plan))
        home = outs[0] if _at_home(plan) else b.gep(two, row_bytes(plan))
        facts = b.alloca("i64", FACTS * (SHARES * _CHUNKS + 1))
        kept = [*ins, *outs, one, home, facts]
        context = b.alloca("ptr", len(kept))
        for k, x in enumerate(kept):
            b.store(x, b.gep(context, 8 * k), 8)
        load, finish = self.callbacks(len(ins), len(kept))
        table = b.alloca("i64", len(_FIELDS))
        n = b.const(plan.n, "i64")
        leaf = sort_quick.leaf(b, plan.word)
        for k, x in enumerate((n, one, two, home, context, load, finish, leaf)):
            b.store(x, b.gep(table, 8 * k), 8)
        b.call(PREFIX + plan.word, "void", table)
        self.end(b, ins, outs, home, facts, SHARES * _CHUNKS)

    def end(self, b: Builder, ins: list[Value], outs: list[Value], source: Value, facts: Value,
            chunks: int) -> None:  # fmt: skip
        """What is left to do when a row's words are sorted at `source`."""
        plan = self.plan
        if is_float(plan.word):
            nan = b.const(math.nan, plan.word)
            with b.loop(b.sub(plan.n, self.total(b, facts, chunks, _NANS)), plan.n) as each:
                b.store(nan, b.gep(source, b.mul(each.index, plan.word_bytes)))
        if plan.key.kind == "f":
            with b.if_(b.icmp("ne", self.total(b, facts, chunks, _ZEROS), 0)):
                plan.restore_zeros(b, ins[0], outs[0])

    def load(self, b: Builder, pointers: list[Value], chunk: Value, first: Value,
             last: Value) -> None:  # fmt: skip
        """Words of a chunk, and how many of them are not a number, or a negative zero."""
        plan = self.plan
        if not is_float(plan.word):
            super().load(b, pointers, chunk, first, last)
            return
        source, target, facts = pointers
        lanes = lanes_of(plan.word)
        bits = f"i{plan.key.bits}"
        none = b.const(0, vector(bits, lanes))
        with b.loop(first, last, lanes, [none, none]) as each:
            mask = lanes_below(b, b.sub(last, each.index), lanes)
            offset = b.mul(each.index, plan.word_bytes)
            x = b.masked_load(b.gep(source, offset), mask, b.const(0, vector(plan.word, lanes)))
            nan = b.fcmp("uno", x, x)
            negative = b.icmp("eq", b.bitcast(x, none.type), plan.key.top)
            x = b.select(negative, 0.0, b.select(nan, math.inf, x))
            b.masked_store(x, b.gep(target, offset), mask)
            each.yield_(*[
                b.add(count, b.zext(flag, none.type))
                for count, flag in zip(each.values, (nan, negative), strict=True)
            ])  # fmt: skip
        for k, count in zip((_NANS, _ZEROS), each.results, strict=True):
            place = b.gep(facts, b.add(b.mul(chunk, 8 * FACTS), 8 * k))
            total = b.reduce("add", count)
            b.store(total if bits == "i64" else b.zext(total, "i64"), place, 8)

    def callbacks(self, operands: int, kept: int) -> tuple[Value, Value]:
        """Functions that write a chunk's words, and the results from words that are sorted."""
        name = f"{self.module.functions[-1].name}_words"
        found = []
        for what, arguments in (("load", _LOAD), ("finish", _FINISH)):
            inner = Builder(self.module, f"{name}_{what}", arguments, linkage="internal")
            context, *where = inner.args
            pointers = [inner.load(inner.gep(context, 8 * k), "ptr", 8) for k in range(kept)]
            ins, outs = pointers[:operands], pointers[operands : 2 * operands]
            one, home, facts = pointers[2 * operands :]
            if what == "load":
                self.load(inner, [*ins, one, facts], *where)
            else:
                self.finish(inner, ins, outs, home, *where)
            inner.ret()
            found.append(Value(f"@{inner.name}", "ptr"))
        return found[0], found[1]

    def total(self, b: Builder, facts: Value, chunks: int, which: int) -> Value:
        """The sum over the chunks of one of their facts."""
        with b.loop(0, chunks, 1, [b.const(0, "i64")]) as each:
            place = b.gep(facts, b.add(b.mul(each.index, 8 * FACTS), 8 * which))
            each.yield_(b.add(each.values[0], b.load(place, "i64", 8)))
        return each.results[0]

    def finish(self, b: Builder, ins: list[Value], outs: list[Value], source: Value, first: Value,
               last: Value) -> None:  # fmt: skip
        """Write the results first..last of the sorted words at `source`."""
        plan, lanes = self.plan, lanes_of(self.plan.word)
        if is_float(plan.word):
            return
        if all(size in (4, 8) for size in plan.sizes[1:]):
            whole = b.add(first, b.and_(b.sub(last, first), -lanes))
            with b.loop(first, whole, lanes) as each:
                at = b.gep(source, b.mul(each.index, plan.word_bytes))
                word = b.load(at, vector(plan.word, lanes))
                key = b.trunc(b.lshr(word, 32), "i32") if plan.shift else word
                value = plan.key.from_order(b, key)
                b.store(value, b.gep(outs[0], b.mul(each.index, plan.sizes[0])))
                old = b.and_(word, 0xFFFFFFFF) if plan.shift else word
                for k, size in enumerate(plan.sizes[1:], 1):
                    if plan.carried:
                        x = b.trunc(word, "i32")
                    else:
                        x = b.gather(b.gep(ins[k], b.mul(old, size)), f"<{lanes} x i{8 * size}>")
                    b.store(x, b.gep(outs[k], b.mul(each.index, size)))
            first = whole
        plan.finish(b, ins, outs, source, first, last)


class _Long:
    """Writes entry(table of _FIELDS)."""

    def __init__(self, module: Module, word: str) -> None:
        self.module, self.word, self.size, self.parts = module, word, size_of(word), _parts()
        self.quick = Quick(module, word)
        scratch_functions(module)
        self.deal()
        b = Builder(module, libraries.ENTRY, [("table", "ptr")])
        (table,) = b.args
        fields = Fields(b, table, _FIELDS)
        # Two a part: where it is split while it is gathered, and where it ends.
        limits = b.alloca(word, 2 * self.parts)
        # Of each share: where its parts begin, and the last one ends.
        starts = b.alloca("i64", SHARES * (self.parts + 1))
        self.sample(b, fields, limits)
        parallel_call(b, self.share, [table, limits, starts], SHARES, 1)
        parallel_call(b, self.gather, [table, limits, starts], self.parts, 1)
        b.ret()

    def pointer(self, b: Builder, fields: Fields, name: str) -> Value:
        """A field that is an address."""
        return b.inttoptr(getattr(fields, name), "ptr")

    def bound(self, b: Builder, fields: Fields, chunk: Value) -> Value:
        """Where a chunk begins."""
        size = b.and_(b.add(b.udiv(fields.n, SHARES * _CHUNKS), 64), -64)
        return b.min(b.mul(chunk, size), fields.n)

    def limit(self, b: Builder, limits: Value, number: Value) -> Value:
        """A limit."""
        return b.load(b.gep(limits, b.mul(number, self.size)), self.word)

    def sample(self, b: Builder, fields: Fields, limits: Value) -> None:
        """Write the values that part the row."""
        load, context = self.pointer(b, fields, "load"), self.pointer(b, fields, "context")
        one, bytes = self.pointer(b, fields, "one"), _SAMPLES * self.size
        held, free = b.alloca("i8", bytes), b.alloca("i8", bytes)
        step = b.udiv(fields.n, _SAMPLES // _TOGETHER)
        with b.loop(0, _SAMPLES // _TOGETHER) as each:
            at = b.mul(each.index, step)
            last = b.add(at, _TOGETHER)
            b.call(load, "void", context, b.const(SHARES * _CHUNKS, "i64"), at, last)
            some = b.load(b.gep(one, b.mul(at, self.size)), vector(self.word, _TOGETHER))
            b.store(some, b.gep(held, b.mul(each.index, _TOGETHER * self.size)))
        no = b.const(False, "i1")
        leaf = self.pointer(b, fields, "leaf")
        b.call("part", "void", held, free, b.const(_SAMPLES, "i64"), no, no, leaf)
        apart = _SAMPLES // (2 * self.parts) * self.size
        with b.loop(1, 2 * self.parts) as each:
            x = b.load(b.gep(held, b.mul(each.index, apart)), self.word)
            b.store(x, b.gep(limits, b.mul(b.sub(each.index, 1), self.size)))

    def share(self, b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        """Make the words of shares, and part them where they are."""
        table, limits, starts = pointers
        fields = Fields(b, table, _FIELDS)
        load, context = self.pointer(b, fields, "load"), self.pointer(b, fields, "context")
        one, two = self.pointer(b, fields, "one"), self.pointer(b, fields, "two")
        fields.n  # noqa: B018 - read before the loop
        half = self.parts // 2
        pivot = self.limit(b, limits, b.const(2 * half - 1, "i64"))
        with b.loop(begin, end) as each:
            chunk = b.mul(each.index, _CHUNKS)
            first = self.bound(b, fields, chunk)
            length = b.sub(self.bound(b, fields, b.add(chunk, _CHUNKS)), first)
            mine = b.gep(starts, b.mul(each.index, 8 * (self.parts + 1)))
            offset = b.mul(first, self.size)
            home = b.gep(one, offset)
            free, block = self.free(b, two, offset, length)
            with b.loop(0, _CHUNKS, 1, [b.const(0, "i64")]) as chunks:
                number = b.add(chunk, chunks.index)
                at, stop = (self.bound(b, fields, b.add(number, k)) for k in range(2))
                b.call(load, "void", context, number, at, stop)
                source, done = b.gep(one, b.mul(at, self.size)), b.sub(at, first)
                many = b.sub(stop, at)
                chunks.yield_(
                    self.spread(b, source, many, home, free, done, chunks.values[0], pivot)
                )
            sides = self.quick.halves(b, home, free, length, chunks.results[0])
            for side, number in zip(sides, (0, half), strict=True):
                where = b.const(number, "i64"), b.const(half, "i64")
                b.call("deal", "void", *side, *where, limits, mine)
            b.call(Value("@give_scratch", "ptr"), "void", block)
            with b.loop(0, self.parts + 1, 1, [first]) as part:
                slot = b.gep(mine, b.mul(part.index, 8))
                inside = b.icmp("slt", part.index, self.parts)
                many = b.load(b.select(inside, slot, mine), "i64", 8)
                b.store(part.values[0], slot, 8)
                part.yield_(b.add(part.values[0], many))

    def spread(self, b: Builder, source: Value, n: Value, home: Value, free: Value, done: Value,
               small: Value, pivot: Value) -> Value:  # fmt: skip
        """Split n words more where `done` have been, `small` of them to `home`; how many then."""
        low = b.gep(home, b.mul(small, self.size))
        high = b.gep(free, b.mul(b.sub(done, small), self.size))
        return b.add(small, b.call("split", "i64", source, low, high, n, pivot))

    def deal(self) -> None:
        """deal(home, other, n, away, first, many, limits, counts): part n words at `home` (`away`:
        at `other`) into `many` parts, from number `first` on, and write how many each has."""
        b = Builder(self.module, "deal", [
            *PART, ("first", "i64"), ("many", "i64"), ("limits", "ptr"), ("counts", "ptr"),
        ], linkage="internal")  # fmt: skip
        home, *carried, first, many, limits, counts = b.args
        with b.while_([*carried, many]) as loop:
            other, n, away, many = loop.values
            loop.test(b.icmp("ugt", many, 1))
            half = b.lshr(many, 1)
            middle = b.add(first, half)
            pivot = self.limit(b, limits, b.sub(b.mul(middle, 2), 1))
            small, large = self.quick.divide(b, home, other, n, away, pivot)
            b.call("deal", "void", *large, middle, half, limits, counts)
            loop.yield_(*small[1:], half)
        other, n, away, _ = loop.results
        with b.if_(away):
            self.quick.copy(b, other, home, n)
        b.store(n, b.gep(counts, b.mul(first, 8)), 8)
        b.ret()

    def free(self, b: Builder, two: Value, offset: Value, n: Value) -> tuple[Value, Value]:
        """Memory for n words, warm where it suffices; and a block that has to be given back."""
        block = b.call(Value("@take_scratch", "ptr"), "ptr")
        fits = b.icmp("ule", b.mul(n, self.size), SCRATCH_BYTES)
        return b.select(fits, block, b.gep(two, offset)), block

    def gather(self, b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        """Bring parts together from all shares, sort them and write them out."""
        table, limits, starts = pointers
        fields = Fields(b, table, _FIELDS)
        one, two, home = (self.pointer(b, fields, name) for name in ("one", "two", "home"))
        finish, context = self.pointer(b, fields, "finish"), self.pointer(b, fields, "context")
        leaf = self.pointer(b, fields, "leaf")
        fields.n  # noqa: B018 - read before the loop
        with b.loop(begin, end) as part:
            zero = b.const(0, "i64")

            def edges(share: Value, part: Value = part.index) -> tuple[Value, Value]:
                place = b.gep(starts, b.mul(b.add(b.mul(share, self.parts + 1), part), 8))
                return b.load(place, "i64", 8), b.load(b.gep(place, 8), "i64", 8)

            with b.loop(0, SHARES, 1, [zero, zero]) as share:
                start, stop = edges(share.index)
                before = b.sub(start, self.bound(b, fields, b.mul(share.index, _CHUNKS)))
                share.yield_(
                    b.add(share.values[0], before), b.add(share.values[1], b.sub(stop, start))
                )
            first, many = share.results
            offset = b.mul(first, self.size)
            mine = b.gep(home, offset)
            free, block = self.free(b, two, offset, many)
            pivot = self.limit(b, limits, b.mul(part.index, 2))
            with b.loop(0, SHARES, 1, [zero, zero]) as share:
                start, stop = edges(share.index)
                source, more = b.gep(one, b.mul(start, self.size)), b.sub(stop, start)
                done, small = share.values
                small = self.spread(b, source, more, mine, free, done, small, pivot)
                share.yield_(b.add(done, more), small)
            for side in self.quick.halves(b, mine, free, many, share.results[1]):
                b.call("part", "void", *side, b.const(False, "i1"), leaf)
            b.call(Value("@give_scratch", "ptr"), "void", block)
            b.call(finish, "void", context, first, b.add(first, many))


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module()
    _Long(module, word)
    return module


libraries.provide(PREFIX, written)
