"""Rows of words sorted by partitions: one row on one thread, or a long one on all threads.

Shares of a long row become words and are split, each by itself, at the same values: quantiles of a
sample. The parts that lie between two of these values are split once more while they are gathered
from all shares, sorted by `sorting.quick`, task by task, and written out while they are still in
the cache. The library (`nj_long_<word>`) knows words only; how they are made and written out is the
kernel's, which hands over two functions; but floats become words while they are split the first
time, after which shares are done in 0.83 instead of 0.90 ns each. For: `sort`. What would break it:
long rows of less than _SAMPLES words, or a plan whose scratch is smaller than `scratch_bytes`.
"""

from __future__ import annotations

import math

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Loop, Module, Value, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import (
    GLUE,
    Fields,
    lanes_of,
    parallel_call,
    size_of,
)
from numjet.cpu.kernels.sorting import leaves as sort_leaves, quick as sort_quick
from numjet.cpu.kernels.sorting.columns import lanes_below
from numjet.cpu.kernels.sorting.long import FACTS, LongRow, row_bytes
from numjet.cpu.kernels.sorting.plan import Words
from numjet.cpu.kernels.sorting.quarters import QUARTERED, Quarters
from numjet.cpu.kernels.sorting.quick import READ_AHEAD
from numjet.cpu.kernels.sorting.words import is_float, ordered
from numjet.cpu.link import link

PREFIX = "nj_long_"
# Of a long row: words are made and split by chunks, so that they are still in the first cache, but
# floats at once as they are split; results do not depend on them.
_CHUNKS = 256
# From this length on a row of its own is sorted faster than by insertion or radix passes: 100
# floats in 0.5 µs instead of 1.6, 1,000 in 2 instead of 9.
SHORTEST = 41
# Where rows can be sorted side by side. 500,000 floats took 0.41 ms on two cores in rows of 1,000,
# side by side 0.89; in rows of 500 0.43 and 0.46, in rows of 200 0.46 and 0.33. With fewer rows
# than _FEW lanes are idle.
_SHORTEST_OF_MANY, _FEW = 500, 8
_NANS, _ZEROS = 1, 2  # places among a share's facts; the latter as in `sorting.long`
_SAMPLES, _TOGETHER = 1024, 8  # read in groups of neighbours
_FIELDS = ["n", "one", "home", "keys", "width", "context", "load", "finish", "leaf", "facts"]
_LOAD = [("context", "ptr"), ("chunk", "i64"), ("first", "i64"), ("last", "i64")]
_FINISH = [("context", "ptr"), ("first", "i64"), ("last", "i64")]


def _shares() -> int:
    """Shares of a long row: some for each core, few for long pieces."""
    return 16 if host.cpu_count() <= 4 else 32


def _parts() -> int:
    """Parts of a long row: some for each core."""
    return max(32, min(64, 1 << (4 * host.cpu_count() - 1).bit_length()))


def fits(plan: Words, beside: bool) -> bool:
    """Whether a plan's rows are sorted this way; `beside`: they could be sorted side by side."""
    return (
        plan.inner == 1
        and plan.n >= (_SHORTEST_OF_MANY if beside and plan.rows >= _FEW else SHORTEST)
        and plan.word in ("i32", "i64")
        and sort_quick.available()
    )


def start(plan: Words) -> None:
    """Begin to make the libraries that the plan needs."""
    prefixes = (sort_leaves.PREFIX, PREFIX if plan.long else sort_quick.PREFIX)
    libraries.start(*[prefix + plan.word for prefix in prefixes])


def scratch_bytes(plan: Words) -> int:
    """Two arrays of words; of a long row whose result can hold them, one."""
    return (1 if plan.long and _at_home(plan) else 2) * row_bytes(plan)


def _at_home(plan: Words) -> bool:
    """Whether words are as large as results, and can be where these will be."""
    return len(plan.sizes) == 1 and plan.sizes[0] == plan.word_bytes


def word_of(plan: Words) -> str:
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
        one = scratch
        home = outs[0] if _at_home(plan) else b.gep(one, row_bytes(plan))
        facts = b.alloca("i64", FACTS * (_CHUNKS + 1))
        kept = [*ins, *outs, one, home, facts]
        context = b.alloca("ptr", len(kept))
        for k, x in enumerate(kept):
            b.store(x, b.gep(context, 8 * k), 8)
        load, finish = self.callbacks(len(ins), len(kept))
        table = b.alloca("i64", len(_FIELDS))
        n = b.const(plan.n, "i64")
        leaf = sort_quick.leaf(b, plan.word)
        width = b.const(plan.sizes[0], "i64")
        fields = n, one, home, ins[0], width, context, load, finish, leaf, facts
        for k, x in enumerate(fields):
            b.store(x, b.gep(table, 8 * k), 8)
        b.call(PREFIX + plan.word, "void", table)
        self.end(b, ins, outs, home, facts, _CHUNKS)

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

        def step(loop: Loop, mask: Value | None) -> None:
            offset = b.mul(loop.index, plan.word_bytes)
            place, zero = b.gep(source, offset), b.const(0, vector(plan.word, lanes))
            x = b.load(place, zero.type) if mask is None else b.masked_load(place, mask, zero)
            x, *flags = ordered(b, x)
            if mask is None:
                b.store(x, b.gep(target, offset))
            else:
                b.masked_store(x, b.gep(target, offset), mask)
            loop.yield_(*[
                b.select(flag, b.add(count, 1), count)
                for count, flag in zip(loop.values, flags, strict=True)
            ])  # fmt: skip

        whole = b.add(first, b.and_(b.sub(last, first), -lanes))
        with b.loop(first, whole, lanes, [none, none]) as most:
            step(most, None)
        with b.loop(whole, last, lanes, most.results) as each:
            step(each, lanes_below(b, b.sub(last, each.index), lanes))
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
        self.module, self.word, self.size = module, word, size_of(word)
        self.shares, self.parts = _shares(), _parts()
        self.chunks = _CHUNKS // self.shares
        self.quick = Quarters(module, word)
        self.deal()
        b = Builder(module, libraries.ENTRY, [("table", "ptr")], attributes=GLUE)
        (table,) = b.args
        fields = Fields(b, table, _FIELDS)
        # Four a part: where it is split while it is gathered, and where it ends.
        limits = b.alloca(word, 4 * self.parts)
        # Of each share: where its parts begin, and the last one ends.
        starts = b.alloca("i64", self.shares * (self.parts + 1))
        self.sample(b, fields, limits)
        parallel_call(b, self.share, [table, limits, starts], self.shares, 1, GLUE)
        parallel_call(b, self.gather, [table, limits, starts], self.parts, 1, GLUE)
        b.ret()

    def pointer(self, b: Builder, fields: Fields, name: str) -> Value:
        """A field that is an address."""
        return b.inttoptr(getattr(fields, name), "ptr")

    def bound(self, b: Builder, fields: Fields, chunk: Value) -> Value:
        """Where a chunk begins."""
        size = b.and_(b.add(b.udiv(fields.n, _CHUNKS), 64), -64)
        return b.min(b.mul(chunk, size), fields.n)

    def limit(self, b: Builder, limits: Value, number: Value) -> Value:
        """A limit."""
        return b.load(b.gep(limits, b.mul(number, self.size)), self.word)

    def sample(self, b: Builder, fields: Fields, limits: Value) -> None:
        """Write the values that part the row."""
        load, context = self.pointer(b, fields, "load"), self.pointer(b, fields, "context")
        one, bytes = self.pointer(b, fields, "one"), _SAMPLES * self.size
        held, free = b.alloca("i8", bytes), b.alloca("i8", bytes)
        keys = self.pointer(b, fields, "keys")
        fields.width  # noqa: B018 - read before the loop
        step = b.udiv(fields.n, _SAMPLES // _TOGETHER)
        with b.loop(0, _SAMPLES // _TOGETHER) as each:
            at = b.mul(each.index, step)
            b.prefetch(b.gep(keys, b.mul(at, fields.width)))
            b.prefetch(b.gep(one, b.mul(at, self.size)), write=True)
        with b.loop(0, _SAMPLES // _TOGETHER) as each:
            at = b.mul(each.index, step)
            last = b.add(at, _TOGETHER)
            b.call(load, "void", context, b.const(_CHUNKS, "i64"), at, last)
            some = b.load(b.gep(one, b.mul(at, self.size)), vector(self.word, _TOGETHER))
            b.store(some, b.gep(held, b.mul(each.index, _TOGETHER * self.size)))
        no = b.const(False, "i1")
        leaf = self.pointer(b, fields, "leaf")
        b.call("part", "void", held, free, b.const(_SAMPLES, "i64"), no, no, leaf)
        apart = _SAMPLES // (4 * self.parts) * self.size
        with b.loop(1, 4 * self.parts) as each:
            x = b.load(b.gep(held, b.mul(each.index, apart)), self.word)
            b.store(x, b.gep(limits, b.mul(b.sub(each.index, 1), self.size)))

    def share(self, b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        """Make the words of shares, and part them where they are."""
        table, limits, starts = pointers
        fields = Fields(b, table, _FIELDS)
        load, context = self.pointer(b, fields, "load"), self.pointer(b, fields, "context")
        one, keys = self.pointer(b, fields, "one"), self.pointer(b, fields, "keys")
        facts = self.pointer(b, fields, "facts")
        fields.n, fields.width  # noqa: B018 - read before the loop
        quick, quarter = self.quick, self.parts // 4
        edges = self.edges(b, limits, b.const(0, "i64"), b.const(quarter, "i64"))
        places, tally = quick.places(b)
        with b.loop(begin, end) as each:
            chunk = b.mul(each.index, self.chunks)
            first = self.bound(b, fields, chunk)
            length = b.sub(self.bound(b, fields, b.add(chunk, self.chunks)), first)
            mine = b.gep(starts, b.mul(each.index, 8 * (self.parts + 1)))
            free, block = self.free(b, length)
            buffers = [b.gep(one, b.mul(first, self.size)), *free]
            quick.begin(b, buffers, places, tally)
            with b.loop(0, self.chunks) as chunks:
                number = b.add(chunk, chunks.index)
                at, stop = (self.bound(b, fields, b.add(number, k)) for k in range(2))
                # What the next chunk reads and writes over; the next share may be another core's.
                last = b.icmp("eq", chunks.index, self.chunks - 1)
                then = b.select(last, at, stop)
                source, fresh = (b.gep(one, b.mul(x, self.size)) for x in (at, then))
                later = b.gep(keys, b.mul(then, fields.width))
                dealt = places, edges, tally
                if is_float(self.word):
                    source = b.gep(keys, b.mul(at, self.size))
                    found = b.gep(facts, b.mul(number, 8 * FACTS))
                    ahead = later, fresh, b.gep(found, 8 * _NANS), b.gep(found, 8 * _ZEROS)
                    b.call("make", "void", source, b.sub(stop, at), *dealt, *ahead)
                else:
                    b.call(load, "void", context, number, at, stop)
                    b.call("quarter", "void", source, b.sub(stop, at), *dealt, later, fresh)
            with quick.quarters(b, buffers, tally) as (own, size, where):
                number = b.mul(where, quarter)
                several = number, b.const(quarter, "i64")
                b.call("deal", "void", *own, size, where, *several, limits, mine)
            self.give(b, block)
            with b.loop(0, self.parts + 1, 1, [first]) as part:
                slot = b.gep(mine, b.mul(part.index, 8))
                inside = b.icmp("slt", part.index, self.parts)
                many = b.load(b.select(inside, slot, mine), "i64", 8)
                b.store(part.values[0], slot, 8)
                part.yield_(b.add(part.values[0], many))

    def edges(self, b: Builder, limits: Value, first: Value, quarter: Value) -> Value:
        """The three limits that are `quarter` parts apart, from part `first` on."""
        found = b.alloca(self.word, 3)
        for k in range(1, 4):
            number = b.sub(b.mul(b.add(first, b.mul(quarter, k)), 4), 1)
            b.store(self.limit(b, limits, number), b.gep(found, (k - 1) * self.size))
        return found

    def deal(self) -> None:
        """deal(home, second, third, fourth, n, where, first, many, limits, counts): part n words in
        the buffer of number `where` into `many` parts at `home`, from number `first` on, and write
        how many each has."""
        b = Builder(self.module, "deal", [
            *QUARTERED, ("first", "i64"), ("many", "i64"), ("limits", "ptr"), ("counts", "ptr"),
        ], linkage="internal", attributes=GLUE)  # fmt: skip
        *buffers, n, where, first, many, limits, counts = b.args
        quick = self.quick
        places, tally = quick.places(b)
        data = quick.data(b, buffers, where)
        with b.if_(b.icmp("uge", many, 4)):
            quarter = b.lshr(many, 2)
            edges = self.edges(b, limits, first, quarter)
            quick.begin(b, buffers, places, tally)
            later = b.gep(data, READ_AHEAD)
            b.call("quarter", "void", data, n, places, edges, tally, later, later)
            with quick.quarters(b, buffers, tally) as (own, size, side):
                several = b.add(first, b.mul(quarter, side)), quarter
                b.call("deal", "void", *own, size, side, *several, limits, counts)
            b.ret()
            b.block(b.new_label("few"))
        home, second, third, fourth = buffers
        with b.if_(b.icmp("eq", many, 2)):
            pivot = self.limit(b, limits, b.add(b.mul(first, 4), 3))
            small = b.call("split", "i64", data, home, second, n, pivot)
            large = b.sub(n, small)
            b.call("copy", "void", second, b.gep(home, b.mul(small, self.size)), large)
            b.store(small, b.gep(counts, b.mul(first, 8)), 8)
            b.store(large, b.gep(counts, b.mul(b.add(first, 1), 8)), 8)
            b.ret()
            b.block(b.new_label("one"))
        with b.if_(b.icmp("ne", where, 0)):
            b.call("copy", "void", data, home, n)
        b.store(n, b.gep(counts, b.mul(first, 8)), 8)
        b.ret()

    def free(self, b: Builder, n: Value) -> tuple[list[Value], Value]:
        """Memory for thrice n words, and the block they are in."""
        bytes = b.mul(n, self.size)
        block = b.call("nj_program_take", "ptr", b.mul(bytes, 3))
        return [b.gep(block, b.mul(bytes, k)) for k in range(3)], block

    def give(self, b: Builder, block: Value) -> None:
        """Give back what `free` gave."""
        b.call("nj_program_give", "void", block)

    def gather(self, b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        """Bring parts together from all shares, sort them and write them out."""
        table, limits, starts = pointers
        fields = Fields(b, table, _FIELDS)
        one, home = (self.pointer(b, fields, name) for name in ("one", "home"))
        finish, context = self.pointer(b, fields, "finish"), self.pointer(b, fields, "context")
        leaf = self.pointer(b, fields, "leaf")
        fields.n  # noqa: B018 - read before the loop
        quick = self.quick
        places, tally = quick.places(b)
        with b.loop(begin, end) as part:
            zero = b.const(0, "i64")

            def edges(share: Value, part: Value = part.index) -> tuple[Value, Value]:
                place = b.gep(starts, b.mul(b.add(b.mul(share, self.parts + 1), part), 8))
                return b.load(place, "i64", 8), b.load(b.gep(place, 8), "i64", 8)

            with b.loop(0, self.shares, 1, [zero, zero]) as share:
                start, stop = edges(share.index)
                before = b.sub(start, self.bound(b, fields, b.mul(share.index, self.chunks)))
                share.yield_(
                    b.add(share.values[0], before), b.add(share.values[1], b.sub(stop, start))
                )
            first, many = share.results
            free, block = self.free(b, many)
            buffers = [b.gep(home, b.mul(first, self.size)), *free]
            quick.begin(b, buffers, places, tally)
            mine = b.gep(limits, b.mul(part.index, 4 * self.size))
            with b.loop(0, self.shares) as share:
                start, stop = edges(share.index)
                next, _ = edges(b.min(b.add(share.index, 1), self.shares - 1))
                source, later = (b.gep(one, b.mul(x, self.size)) for x in (start, next))
                b.call(
                    "quarter", "void", source, b.sub(stop, start), places, mine, tally, later,
                    source,
                )  # fmt: skip
            with quick.quarters(b, buffers, tally) as (own, size, where):
                b.call("parts", "void", *own, size, where, leaf)
            self.give(b, block)
            b.call(finish, "void", context, first, b.add(first, many))


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module(link.features())
    _Long(module, word)
    return module


libraries.provide(PREFIX, written)
