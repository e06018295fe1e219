"""One long row sorted on all threads: a pass by the highest bits that differ, then each bucket.

The row becomes words as in `sort`, in a few shares; these are counted and moved to the buckets of
their highest `TOP_BITS` bits below those that all keys have in common. Buckets are tasks of their
own: radix passes over the bits that are left, in memory that fits a second-level cache. What would
break it: a plan whose scratch is smaller than `scratch_bytes`.
"""

from __future__ import annotations

from typing import Any

from numjet.cpu.builder.builder import TYPES, Builder, Module, Value, vector
from numjet.cpu.kernels.idioms import lanes_of, parallel_call
from numjet.cpu.kernels.sorting.plan import Words

# From this length on threads share one row.
LONG = 1 << 16
# Shares of the row in the first passes. Sorted results do not depend on them.
SHARES = 16
# 1,024 buckets still find their lines in the first two caches while they are written.
TOP_BITS = 10
_BUCKETS = 1 << TOP_BITS
_DIGIT = 256
FACTS = 4  # words of one share: bits set in any key, in all keys, negative zeros


def scratch_bytes(plan: Words) -> int:
    """Two arrays of words and the tables."""
    return 2 * row_bytes(plan) + 8 * (SHARES * (_BUCKETS + FACTS) + _BUCKETS + 8)


def row_bytes(plan: Words) -> int:
    """Memory for the words of a row."""
    return -(-plan.n * plan.word_bytes // 64) * 64


class LongRow:
    """Writes the sort of one row into function `b`."""

    def __init__(self, plan: Words, module: Module) -> None:
        self.plan, self.module = plan, module
        self.share = -(-plan.n // SHARES // 64) * 64

    def emit(self, b: Builder, ins: list[Value], outs: list[Value], scratch: Value) -> None:
        """Sort the row that begins at `ins` to `outs`."""
        plan = self.plan
        one, two = scratch, b.gep(scratch, row_bytes(plan))
        counts = b.gep(two, row_bytes(plan))
        facts = b.gep(counts, 8 * SHARES * _BUCKETS)
        starts = b.gep(facts, 8 * SHARES * FACTS)
        shift = b.gep(starts, 8 * (_BUCKETS + 1))
        self.shares(b, [*ins, one, facts], self.load)
        zeros = self.common(b, facts, shift)
        self.shares(b, [one, counts, shift], self.count)
        self.prefix(b, counts, starts)
        self.shares(b, [one, two, counts, shift], self.move)

        def buckets(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            table = b.alloca("i64", _DIGIT)
            with b.loop(begin, end) as each:
                self.bucket(b, pointers, each.index, table)

        parallel_call(b, buckets, [*ins, *outs, one, two, starts, shift], _BUCKETS, 1)
        if plan.key.kind == "f":
            with b.if_(b.icmp("ne", zeros, 0)):
                plan.restore_zeros(b, ins[0], outs[0])

    def shares(self, b: Builder, pointers: list[Value], work: Any) -> None:
        """work(b, pointers, share, first, last) for every share of the row, on all threads."""

        def task(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
            with b.loop(begin, end) as each:
                first = b.min(b.mul(each.index, self.share), self.plan.n)
                last = b.min(b.add(first, self.share), self.plan.n)
                work(b, pointers, each.index, first, last)

        parallel_call(b, task, pointers, SHARES, 1)

    def load(self, b: Builder, pointers: list[Value], share: Value, first: Value,
             last: Value) -> None:  # fmt: skip
        """Words of a share, and which bits its keys have."""
        plan = self.plan
        *ins, one, facts = pointers
        width = f"i{plan.key.width}"
        lanes = 1
        if plan.inner == 1 and plan.word != "<2 x i64>":
            lanes = lanes_of(plan.word)
        kind = vector(width, lanes if lanes > 1 else 0)
        carried = [b.const(0, kind), b.const(-1, kind), b.const(0, kind)]
        whole = last
        if lanes > 1:
            whole = b.add(first, b.and_(b.sub(last, first), -lanes))
            with b.loop(first, whole, lanes, carried) as loop:
                loop.yield_(*self.words(b, ins, one, loop.index, lanes, loop.values))
            ops = ("or", "and", "add")
            carried = [b.reduce(op, x) for op, x in zip(ops, loop.results, strict=True)]
        else:
            whole = first
        with b.loop(whole, last, 1, carried) as loop:
            loop.yield_(*self.words(b, ins, one, loop.index, 0, loop.values))
        for k, x in enumerate(loop.results):
            place = b.gep(facts, b.add(b.mul(share, 8 * FACTS), 8 * k))
            b.store(x if width == "i64" else b.zext(x, "i64"), place, 8)

    def words(self, b: Builder, ins: list[Value], one: Value, at: Value, lanes: int,
              seen: Any) -> list[Value]:  # fmt: skip
        """Write words from `at` on (0 lanes: a single one); what has been seen of the keys."""
        plan, key = self.plan, self.plan.key
        word, ordered, negative = plan.word_at(b, ins, at, lanes)
        b.store(word, b.gep(one, b.mul(at, plan.word_bytes)), plan.word_bytes)
        some, every, zeros = seen
        if negative is not None:
            zeros = b.add(zeros, b.zext(negative, vector(f"i{key.width}", lanes)))
        return [b.or_(some, ordered), b.and_(every, ordered), zeros]

    def common(self, b: Builder, facts: Value, shift: Value) -> Value:
        """Write how far the top bits that differ lie from the lowest; the negative zeros."""
        start = [b.const(0, "i64"), b.const(-1, "i64"), b.const(0, "i64")]
        with b.loop(0, SHARES, 1, start) as loop:
            place = b.gep(facts, b.mul(loop.index, 8 * FACTS))
            some, every, zeros = (b.load(b.gep(place, 8 * k), "i64", 8) for k in range(3))
            empty = b.icmp("sge", b.mul(loop.index, self.share), self.plan.n)
            every = b.select(empty, -1, every)
            loop.yield_(b.or_(loop.values[0], some), b.and_(loop.values[1], every),
                        b.add(loop.values[2], zeros))  # fmt: skip
        some, every, zeros = loop.results
        differ = b.xor(some, b.and_(every, some))
        none = b.emit(f"call i64 @llvm.ctlz.i64(i64 {differ.ref}, i1 false)", "i64")
        self.module.declare("llvm.ctlz.i64", "i64", ("i64", "i1"))
        b.store(b.max(b.sub(64 - TOP_BITS, none), 0), shift, 8)
        return zeros

    def digit(self, b: Builder, words: Value, at: Value, shift: Value) -> tuple[Value, Value]:
        """A word and its bucket."""
        plan = self.plan
        word = b.load(b.gep(words, b.mul(at, plan.word_bytes)), plan.word, plan.word_bytes)
        key = plan.key_of(b, word)
        if TYPES[key.type].bits < 64:
            key = b.zext(key, "i64")
        return word, b.and_(b.lshr(key, shift), _BUCKETS - 1)

    def count(self, b: Builder, pointers: list[Value], share: Value, first: Value,
              last: Value) -> None:  # fmt: skip
        """How many of a share go to each bucket."""
        one, counts, shift = pointers
        mine = b.gep(counts, b.mul(share, 8 * _BUCKETS))
        amount = b.load(shift, "i64", 8)
        with b.loop(0, _BUCKETS, 8) as clear:
            b.store(b.const(0, "<8 x i64>"), b.gep(mine, b.mul(clear.index, 8)), 8)
        with b.loop(first, last) as loop:
            slot = b.gep(mine, b.mul(self.digit(b, one, loop.index, amount)[1], 8))
            b.store(b.add(b.load(slot, "i64", 8), 1), slot, 8)

    def prefix(self, b: Builder, counts: Value, starts: Value) -> None:
        """Counts become places, bucket by bucket and in each share by share."""
        with b.loop(0, _BUCKETS, 1, [b.const(0, "i64")]) as bucket:
            b.store(bucket.values[0], b.gep(starts, b.mul(bucket.index, 8)), 8)
            with b.loop(0, SHARES, 1, [bucket.values[0]]) as share:
                slot = b.gep(counts, b.mul(b.add(b.mul(share.index, _BUCKETS), bucket.index), 8))
                many = b.load(slot, "i64", 8)
                b.store(share.values[0], slot, 8)
                share.yield_(b.add(share.values[0], many))
            bucket.yield_(share.results[0])
        b.store(bucket.results[0], b.gep(starts, 8 * _BUCKETS), 8)

    def move(self, b: Builder, pointers: list[Value], share: Value, first: Value,
             last: Value) -> None:  # fmt: skip
        """A share's words to their buckets."""
        one, two, counts, shift = pointers
        mine = b.gep(counts, b.mul(share, 8 * _BUCKETS))
        amount = b.load(shift, "i64", 8)
        size = self.plan.word_bytes
        with b.loop(first, last) as loop:
            word, digit = self.digit(b, one, loop.index, amount)
            slot = b.gep(mine, b.mul(digit, 8))
            at = b.load(slot, "i64", 8)
            b.store(word, b.gep(two, b.mul(at, size)), size)
            b.store(b.add(at, 1), slot, 8)

    def bucket(self, b: Builder, pointers: list[Value], number: Value, table: Value) -> None:
        """Sort one bucket by the bits below, and write its part of the results."""
        plan, size = self.plan, self.plan.word_bytes
        operands = len(plan.sizes)
        ins, outs = pointers[:operands], pointers[operands : 2 * operands]
        one, two, starts, shift = pointers[2 * operands :]
        slot = b.gep(starts, b.mul(number, 8))
        first, last = b.load(slot, "i64", 8), b.load(b.gep(slot, 8), "i64", 8)
        length = b.sub(last, first)
        offset = b.mul(first, size)
        here, there = b.gep(two, offset), b.gep(one, offset)
        passes = b.udiv(b.add(b.load(shift, "i64", 8), 7), 8)
        radix = plan.radix_pass(self.module, counting=True)
        with b.if_(b.icmp("ule", length, plan.short)) as small:
            plan.insertion(b, here, length)
            small.yield_(here)
        with small.else_():
            with b.loop(0, passes, 1, [here, there]) as turns:
                source, target = turns.values
                low = b.add(b.mul(turns.index, 8), plan.shift)
                moved = b.call(radix, "i1", source, target, length, low, table)
                turns.yield_(b.select(moved, target, source), b.select(moved, source, target))
            small.yield_(turns.results[0])
        base = b.sub(b.ptrtoint(small.results[0], "i64"), offset)
        plan.finish(b, ins, outs, b.inttoptr(base, "ptr"), first, last)
