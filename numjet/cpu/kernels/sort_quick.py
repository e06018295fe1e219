"""Words sorted by partitions with compressed vectors, where the processor has them (AVX-512).

A part of more than LEAF words is split at the median of a sample: the lanes on one side of it are
written back over what has been read, the other lanes to free memory beside it, so that each half
has as much free memory as it has words. Leaves of like sizes are sorted together, one a lane
(`sort_leaves`). Where a split is bad, or the sample all alike, the next one is at half the range
of the words, which ends after twice as many bad splits as a word has bits. Not stable: for words
that are all different, or whose equals cannot be told apart. For: `sort_shares`, whose kernels call
the symbol `nj_quick_<word>`. What would break it: less than n words at `free`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numjet.cpu import link
from numjet.cpu.builder import TYPES, Builder, Module, Value, vector
from numjet.cpu.kernels import libraries, sort_leaves
from numjet.cpu.kernels.common import lanes_of, size_of
from numjet.cpu.kernels.sort_columns import BLOCK, lanes_below
from numjet.cpu.kernels.sort_leaves import ENTRY, LEAF
from numjet.cpu.kernels.sort_words import before, compare, greatest, least, middle, smallest

PREFIX = "nj_quick_"
ARGUMENTS = [("home", "ptr"), ("free", "ptr"), ("n", "i64"), ("leaves", "ptr")]
PART = [("home", "ptr"), ("other", "ptr"), ("n", "i64"), ("away", "i1")]
_SAMPLES = 16
# Vectors a round of a split.
_UNROLL = 4
# Bytes that a split asks ahead of what it reads and of where it writes: in a second-level cache it
# takes 0.16 ns a word instead of 0.24; in the first one 0.11 either way.
_READ_AHEAD, _WRITE_AHEAD = 2048, 256
# A split that leaves less than 1/16 on one side is bad.
_BAD = 4
# Leaves have at least _LEAST words, and up to 1/16 of all (2^-_SHARE) while they are few.
_LEAST, _SHARE = 64, 4
# Leaves wait in classes of as many blocks; class 0 is for those that are left at the end.
_CLASSES = LEAF // BLOCK + 1


def available() -> bool:
    """Whether the target compresses vectors in one instruction."""
    return link.target().has("avx512f") and link.vector_bytes() == 64


def leaves(b: Builder, word: str) -> Value:
    """The address of the function that sorts leaves of `word`."""
    b.module.declare(sort_leaves.PREFIX + word, "void", ("ptr", "i64"))
    return Value(f"@{sort_leaves.PREFIX}{word}", "ptr")


class Quick:
    """Writes the functions that sort `word` into a module; `define` all, or what is asked for."""

    def __init__(self, module: Module, word: str) -> None:
        self.module, self.word, self.size = module, word, size_of(word)
        self.lanes = lanes_of(word)
        self.kind, self.flags = vector(word, self.lanes), vector("i1", self.lanes)
        self.row = ENTRY * self.lanes  # bytes of a class
        self.split()
        self.leaf()
        self.part()
        self.sort()

    def function(
        self, name: str, arguments: Sequence[tuple[str, ...]], result: str = "void"
    ) -> Builder:
        """A builder of an internal function."""
        return Builder(self.module, name, arguments, result, linkage="internal")

    # -- partition -----------------------------------------------------------------------------

    def split(self) -> None:
        """split(data, free, n, pivot, over): words <= pivot (`over`: the others) stay at `data`,
        the rest goes to `free`; how many stay. Both keep their order."""
        word, lanes, size = self.word, self.lanes, self.size
        b = self.function("split", [
            ("data", "ptr"), ("free", "ptr noalias"), ("n", "i64"), ("pivot", word), ("over", "i1"),
        ], "i64")  # fmt: skip
        data, free, n, pivot, over = b.args
        limit, over = b.splat(pivot, lanes), b.splat(over, lanes)
        under = b.not_(over)

        def sides(x: Value) -> tuple[Value, Value]:
            small = compare(b, "le", x, limit)
            return b.xor(small, over), b.xor(small, under)

        step = lanes * _UNROLL
        whole = b.and_(n, -step)
        with b.loop(0, whole, step, [b.const(0, "i64")]) as loop:
            at, kept = loop.index, loop.values[0]
            source = b.gep(data, b.mul(at, size))
            ends = b.gep(data, b.mul(kept, size)), b.gep(free, b.mul(b.sub(at, kept), size))
            for k in range(_UNROLL):
                b.prefetch(b.gep(source, _READ_AHEAD + 64 * k))
                b.prefetch(b.gep(ends[k % 2], _WRITE_AHEAD + 64 * (k // 2)), write=True)
            held = [b.load(b.gep(source, 64 * k), self.kind) for k in range(_UNROLL)]
            for k, x in enumerate(held):
                stays, goes = sides(x)
                left = b.sub(b.add(at, k * lanes), kept)
                # Whole vectors: what they write too much lies before what is read next.
                b.store(self.compress(b, x, stays), b.gep(data, b.mul(kept, size)))
                b.store(self.compress(b, x, goes), b.gep(free, b.mul(left, size)))
                kept = b.add(kept, self.count(b, stays))
            loop.yield_(kept)
        with b.loop(whole, n, lanes, loop.results) as rest:
            at, kept = rest.index, rest.values[0]
            mask = lanes_below(b, b.sub(n, at), lanes)
            x = b.masked_load(b.gep(data, b.mul(at, size)), mask, b.const(0, self.kind))
            stays, goes = (b.and_(side, mask) for side in sides(x))
            for side, place, first in ((stays, data, kept), (goes, free, b.sub(at, kept))):
                b.masked_store(
                    self.compress(b, x, side), b.gep(place, b.mul(first, size)),
                    lanes_below(b, self.count(b, side), lanes),
                )  # fmt: skip
            rest.yield_(b.add(kept, self.count(b, stays)))
        b.ret(rest.results[0])

    def compress(self, b: Builder, x: Value, mask: Value) -> Value:
        """The lanes of `mask`, moved together."""
        name = f"llvm.experimental.vector.compress.{TYPES[self.kind].mangled}"
        self.module.declare(name, self.kind, (self.kind, self.flags, self.kind))
        arguments = f"{self.kind} {x.ref}, {self.flags} {mask.ref}, {self.kind} poison"
        return b.emit(f"call {self.kind} @{name}({arguments})", self.kind)

    def count(self, b: Builder, mask: Value) -> Value:
        """How many lanes hold."""
        bits = b.zext(b.bitcast(mask, f"i{self.lanes}"), "i32")
        return b.zext(b.intrinsic("llvm.ctpop", bits), "i64")

    def copy(self, b: Builder, source: Value, target: Value, n: Value) -> None:
        """n words from `source` to `target`."""
        with b.loop(0, n, self.lanes) as loop:
            mask = lanes_below(b, b.sub(n, loop.index), self.lanes)
            offset = b.mul(loop.index, self.size)
            x = b.masked_load(b.gep(source, offset), mask, b.const(0, self.kind))
            b.masked_store(x, b.gep(target, offset), mask)

    # -- pivots --------------------------------------------------------------------------------

    def median(self, b: Builder, data: Value, n: Value) -> tuple[Value, Value]:
        """The median of a sample, or the word below it where the sample has none above; whether the
        sample is all alike."""
        word, size = self.word, self.size
        held = b.alloca(word, _SAMPLES)
        step = b.mul(b.lshr(n, _SAMPLES.bit_length() - 1), size)
        with b.loop(0, _SAMPLES) as each:
            x = b.load(b.gep(data, b.mul(each.index, step)), word)
            b.store(x, b.gep(held, b.mul(each.index, size)))
        samples = [b.load(b.gep(held, k * size), self.kind) for k in range(0, _SAMPLES, self.lanes)]
        none = b.const(0, vector(f"i{8 * size}", self.lanes))
        with b.loop(0, _SAMPLES, 1, [none for _ in samples]) as each:
            one = b.splat(b.load(b.gep(held, b.mul(each.index, size)), word), self.lanes)
            each.yield_(*[
                b.select(compare(b, "lt", one, x), b.add(below, 1), below)
                for x, below in zip(samples, each.values, strict=True)
            ])  # fmt: skip
        # The largest of those that less than half are below.
        least_of_all = smallest(b, word)
        found = least_of_all
        for x, below in zip(samples, each.results, strict=True):
            candidate = b.select(b.icmp("ult", below, _SAMPLES // 2), x, least_of_all)
            found = greatest(b, found, candidate)
        pivot = self.extreme(b, greatest, found)
        every = b.splat(pivot, self.lanes)
        above, below = (
            self.some(b, [compare(b, predicate, x, every) for x in samples])
            for predicate in ("gt", "lt")
        )
        return b.select(above, pivot, before(b, pivot)), b.not_(b.or_(above, below))

    def extreme(
        self, b: Builder, pick: Callable[[Builder, Value, Value], Value], x: Value
    ) -> Value:
        """The lane of `x` that `pick` (`least` or `greatest`) finds."""
        half = self.lanes // 2
        while half:
            x = pick(b, x, b.shuffle(x, None, [k ^ half for k in range(self.lanes)]))
            half //= 2
        return b.extract(x, 0)

    def some(self, b: Builder, masks: list[Value]) -> Value:
        """Whether any lane of any mask holds."""
        found = masks[0]
        for mask in masks[1:]:
            found = b.or_(found, mask)
        return b.icmp("ne", b.bitcast(found, f"i{self.lanes}"), 0)

    def range(self, b: Builder, data: Value, n: Value) -> tuple[Value, Value]:
        """The least and the greatest word."""
        first = b.splat(b.load(data, self.word), self.lanes)
        with b.loop(0, n, self.lanes, [first, first]) as loop:
            mask = lanes_below(b, b.sub(n, loop.index), self.lanes)
            x = b.masked_load(b.gep(data, b.mul(loop.index, self.size)), mask, first)
            loop.yield_(least(b, loop.values[0], x), greatest(b, loop.values[1], x))
        low, high = loop.results
        return self.extreme(b, least, low), self.extreme(b, greatest, high)

    # -- the sort ------------------------------------------------------------------------------

    def leaf(self) -> None:
        """leaf(table, class, data, home, n): n words from `data` are sorted to `home`, at the
        latest when `sort` ends."""
        b = self.function("leaf", [
            ("table", "ptr"), ("class", "i64"), ("data", "ptr"), ("home", "ptr"), ("n", "i64"),
        ])  # fmt: skip
        table, number, data, home, n = b.args
        waiting = b.gep(table, b.mul(number, 8))
        row = b.gep(table, b.add(b.mul(number, self.row), 8 * _CLASSES))
        many = b.load(waiting, "i64", 8)
        entry = b.gep(row, b.mul(many, ENTRY))
        for k, x in enumerate((data, home, n)):
            b.store(x, b.gep(entry, 8 * k), 8)
        more = b.add(many, 1)
        full = b.icmp("eq", more, self.lanes)
        b.store(b.select(full, 0, more), waiting, 8)
        with b.if_(full):
            b.call(self.leaves(b, table), "void", row, more)
        b.ret()

    def leaves(self, b: Builder, table: Value) -> Value:
        """The function that sorts leaves."""
        return b.load(b.gep(table, (8 + self.row) * _CLASSES), "ptr", 8)

    def divide(
        self, b: Builder, home: Value, other: Value, n: Value, away: Value, pivot: Value
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Split a part, which is at `home` or (`away`) at `other`, at a pivot: the words up to it,
        the others."""
        data, free = b.select(away, other, home), b.select(away, home, other)
        kept = b.call("split", "i64", data, free, n, pivot, away)
        left = b.sub(n, kept)
        small, large = b.select(away, left, kept), b.select(away, kept, left)
        # The larger words are at the front of `other`, and the end of `home` is free.
        above = b.gep(home, b.mul(small, self.size))
        free = b.gep(other, b.mul(large, self.size))
        return (home, free, small, b.const(False, "i1")), (above, other, large, b.const(True, "i1"))

    def part(self) -> None:
        """part(home, other, n, away, careful, table): sort n words to `home`. They are there, or
        (`away`) at `other`; the other memory is free. `careful`: split at half the range. Parts of
        up to `limit` words are leaves."""
        b = self.function("part", [
            *PART, ("careful", "i1"), ("table", "ptr"), ("limit", "i64"),
        ])  # fmt: skip
        home, other, n, away, careful, table, limit = b.args
        with b.while_([other, n, away, careful]) as loop:
            other, n, away, careful = loop.values
            loop.test(b.icmp("ugt", n, limit))
            data = b.select(away, other, home)
            pivot, alike = self.median(b, data, n)
            with b.if_(b.or_(alike, careful), [pivot, b.const(False, "i1")]) as ranged:
                low, high = self.range(b, data, n)
                ranged.yield_(middle(b, low, high), compare(b, "eq", low, high))
            pivot, same = ranged.results
            with b.if_(same):
                with b.if_(away):
                    self.copy(b, other, home, n)
                b.ret()
                b.block(b.new_label("never"))
            small, large = self.divide(b, home, other, n, away, pivot)
            bad = b.icmp("ult", b.umin(small[2], large[2]), b.lshr(n, _BAD))
            # In turn: where most words are alike, samples find them and ranges do not.
            bad = b.and_(bad, b.not_(careful))
            b.call("part", "void", *large, bad, table, limit)
            loop.yield_(*small[1:], bad)
        other, n, away, _ = loop.results
        with b.if_(b.icmp("ne", n, 0)):
            number = b.udiv(b.add(n, BLOCK - 1), BLOCK)
            b.call("leaf", "void", table, number, b.select(away, other, home), home, n)
        b.ret()

    def sort(self) -> None:
        """sort(home, free, n, leaves): sort n words where they are; `leaves` sorts the leaves."""
        b = self.function("sort", ARGUMENTS)
        home, free, n, leaves = b.args
        table = b.alloca("i8", (8 + self.row) * _CLASSES + 8)
        b.store(leaves, b.gep(table, (8 + self.row) * _CLASSES), 8)
        with b.loop(0, _CLASSES) as each:
            b.store(b.const(0, "i64"), b.gep(table, b.mul(each.index, 8)), 8)
        no = b.const(False, "i1")
        # Few words in shorter leaves, so that there are enough of them for all lanes.
        limit = b.max(b.min(b.lshr(n, _SHARE), LEAF), _LEAST)
        b.call("part", "void", home, free, n, no, no, table, limit)
        # What is left goes together from the longest on.
        with b.loop(1, _CLASSES) as each:
            number = b.sub(_CLASSES, each.index)
            row = b.gep(table, b.add(b.mul(number, self.row), 8 * _CLASSES))
            with b.loop(0, b.load(b.gep(table, b.mul(number, 8)), "i64", 8)) as waiting:
                entry = b.gep(row, b.mul(waiting.index, ENTRY))
                found = [
                    b.load(b.gep(entry, 8 * k), type, 8)
                    for k, type in enumerate(("ptr", "ptr", "i64"))
                ]
                b.call("leaf", "void", table, b.const(0, "i64"), *found)
        many = b.load(table, "i64", 8)
        with b.if_(b.icmp("ne", many, 0)):
            b.call(leaves, "void", b.gep(table, 8 * _CLASSES), many)
        b.ret()


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module()
    Quick(module, word)
    b = Builder(module, libraries.ENTRY, ARGUMENTS)
    b.call("sort", "void", *b.args)
    b.ret()
    return module


libraries.provide(PREFIX, written)
