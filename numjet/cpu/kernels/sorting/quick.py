"""Words sorted by partitions with compressed vectors, where the processor has them (AVX-512).

A part that is longer than a leaf (`sorting.leaves`) is split near its median: words below the pivot
go to its home, the others to free memory beside it; wherever they are read from is written over, so
that each half has as much free memory as it has words. Where a split is bad, or the sample all
alike, the next one is at half the range of the words, which ends after twice as many bad splits as
a word has bits. Not stable: for words that are all different, or whose equals cannot be told apart.
For: `sorting.shares`, whose kernels call the symbol `nj_quick_<word>`. What would break it: less
than n words at `free`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numjet.cpu.builder.builder import TYPES, Builder, Module, Value, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import lanes_of, size_of
from numjet.cpu.kernels.sorting import leaves as sort_leaves
from numjet.cpu.kernels.sorting.columns import lanes_below, odd_even
from numjet.cpu.kernels.sorting.words import (
    after,
    below,
    compare,
    exchange,
    finite,
    greatest,
    least,
    middle,
)
from numjet.cpu.link import link

PREFIX = "nj_quick_"
ARGUMENTS = [("home", "ptr"), ("free", "ptr"), ("n", "i64"), ("leaf", "ptr")]
PART = [("home", "ptr"), ("other", "ptr"), ("n", "i64"), ("away", "i1")]
# Vectors of a sample, of whose lanes' medians the median is taken.
SAMPLES = 16
# Vectors a round of a split.
_UNROLL = 4
# Bytes that a split prefetches ahead of what it reads and of where it writes: in a second-level
# cache it takes 0.14 ns a word instead of 0.22; in the first one 0.09 either way.
READ_AHEAD, WRITE_AHEAD = 2048, 256
# A split that leaves less than 1/16 on one side is bad.
_BAD = 4


def available() -> bool:
    """Whether the target compresses vectors in one instruction."""
    return link.target().has("avx512f") and link.vector_bytes() == 64


def leaf(b: Builder, word: str) -> Value:
    """The address of the function that sorts a leaf of `word`."""
    b.module.declare(sort_leaves.PREFIX + word, "void", ("ptr", "ptr", "i64"))
    return Value(f"@{sort_leaves.PREFIX}{word}", "ptr")


class Quick:
    """Writes the functions that sort `word` into a module."""

    def __init__(self, module: Module, word: str) -> None:
        self.module, self.word, self.size = module, word, size_of(word)
        self.lanes = lanes_of(word)
        self.kind, self.flags = vector(word, self.lanes), vector("i1", self.lanes)
        self.split()
        self.copy()
        self.sample()
        self.middle()
        self.part()

    def function(
        self, name: str, arguments: Sequence[tuple[str, ...]], result: str = "void"
    ) -> Builder:
        """A builder of an internal function."""
        return Builder(self.module, name, arguments, result, linkage="internal")

    # -- partition -----------------------------------------------------------------------------

    def split(self) -> None:
        """split(source, small, large, n, pivot): n words from `source` on to `small` if they are
        below the pivot, else to `large`; how many are below. `source` may be either of the others,
        or behind what has been written there."""
        word, lanes, size = self.word, self.lanes, self.size
        b = self.function("split", [
            ("source", "ptr"), ("small", "ptr"), ("large", "ptr"), ("n", "i64"), ("pivot", word),
        ], "i64")  # fmt: skip
        source, small, large, n, pivot = b.args
        limit = b.splat(pivot, lanes)
        # Not a constant, for which LLVM compares a second time.
        every = b.splat(b.icmp("ne", n, 0), lanes)
        step = lanes * _UNROLL
        whole = b.select(finite(b, pivot), b.and_(n, -step), 0)
        with b.loop(0, whole, step, [b.const(0, "i64")]) as loop:
            at, many = loop.index, loop.values[0]
            start = b.gep(source, b.mul(at, size))
            ends = b.gep(small, b.mul(many, size)), b.gep(large, b.mul(b.sub(at, many), size))
            for k in range(_UNROLL):
                b.prefetch(b.gep(start, READ_AHEAD + 64 * k))
                b.prefetch(b.gep(ends[k % 2], WRITE_AHEAD + 64 * (k // 2)), write=True)
            held = [b.load(b.gep(start, 64 * k), self.kind) for k in range(_UNROLL)]
            for k, x in enumerate(held):
                mask = below(b, x, limit)
                rest = b.sub(b.add(at, k * lanes), many)
                # Whole vectors: what they write too much lies before what is read next.
                b.store(self.compress(b, x, mask), b.gep(small, b.mul(many, size)))
                b.store(self.compress(b, x, b.xor(mask, every)), b.gep(large, b.mul(rest, size)))
                many = b.add(many, self.count(b, mask))
            loop.yield_(many)
        with b.loop(whole, n, lanes, loop.results) as last:
            at, many = last.index, last.values[0]
            inside = lanes_below(b, b.sub(n, at), lanes)
            x = b.masked_load(b.gep(source, b.mul(at, size)), inside, b.const(0, self.kind))
            mask = compare(b, "lt", x, limit)
            sides = b.and_(mask, inside), b.and_(b.not_(mask), inside)
            for side, place, first in zip(
                sides, (small, large), (many, b.sub(at, many)), strict=True
            ):
                b.masked_store(
                    self.compress(b, x, side), b.gep(place, b.mul(first, size)),
                    lanes_below(b, self.count(b, side), lanes),
                )  # fmt: skip
            last.yield_(b.add(many, self.count(b, sides[0])))
        b.ret(last.results[0])

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

    def copy(self) -> None:
        """copy(source, target, n): n words."""
        b = self.function("copy", [("source", "ptr"), ("target", "ptr"), ("n", "i64")])
        source, target, n = b.args
        whole = b.and_(n, -self.lanes)
        with b.loop(0, whole, self.lanes) as loop:
            offset = b.mul(loop.index, self.size)
            b.store(b.load(b.gep(source, offset), self.kind), b.gep(target, offset))
        mask, offset = lanes_below(b, b.sub(n, whole), self.lanes), b.mul(whole, self.size)
        x = b.masked_load(b.gep(source, offset), mask, b.const(0, self.kind))
        b.masked_store(x, b.gep(target, offset), mask)
        b.ret()

    # -- pivots --------------------------------------------------------------------------------

    def sample(self) -> None:
        """sample(data, n, rows): least, quartiles, median and greatest of the lanes of SAMPLES
        vectors over n words, at least as many: five vectors, in order."""
        b = self.function("sample", [("data", "ptr"), ("n", "i64"), ("rows", "ptr")])
        data, n, rows = b.args
        step = b.mul(b.udiv(b.sub(n, self.lanes), SAMPLES - 1), self.size)
        held = [b.load(b.gep(data, b.mul(step, k)), self.kind) for k in range(SAMPLES)]
        for low, high in odd_even(SAMPLES):
            exchange(b, held, low, high)
        for k, x in enumerate([*held[:: SAMPLES // 4], held[-1]]):
            b.store(x, b.gep(rows, 64 * k))
        b.ret()

    def middle(self) -> None:
        """middle(row): the median of its lanes: the largest that at most half are below."""
        lanes = self.lanes
        b = self.function("middle", [("row", "ptr")], self.word)
        (row,) = b.args
        x = b.load(row, self.kind)
        none = b.const(0, vector(f"i{8 * self.size}", lanes))
        with b.loop(0, lanes, 1, [none]) as each:
            one = b.splat(b.load(b.gep(row, b.mul(each.index, self.size)), self.word), lanes)
            rank = each.values[0]
            each.yield_(b.select(compare(b, "lt", one, x), b.add(rank, 1), rank))
        fits = b.icmp("ule", each.results[0], lanes // 2)
        least_of_all = b.splat(self.extreme(b, least, x), lanes)
        b.ret(self.extreme(b, greatest, b.select(fits, x, least_of_all)))

    def median(self, b: Builder, data: Value, n: Value) -> tuple[Value, Value]:
        """The median of the medians of a sample's lanes, or the word above it where the sample has
        none below; whether the sample is all alike. For n of at least a sample."""
        rows = b.alloca(self.kind, 5)
        b.call("sample", "void", data, n, rows)
        pivot = b.call("middle", self.word, b.gep(rows, 2 * 64))
        every = b.splat(pivot, self.lanes)
        low, high = (b.load(b.gep(rows, k * 64), self.kind) for k in (0, 4))
        under = self.some(b, compare(b, "lt", low, every))
        over = self.some(b, compare(b, "gt", high, every))
        return b.select(under, pivot, after(b, pivot)), b.not_(b.or_(under, over))

    def extreme(
        self, b: Builder, pick: Callable[[Builder, Value, Value], Value], x: Value
    ) -> Value:
        """The lane of `x` that `pick` (`least` or `greatest`) finds."""
        half = self.lanes // 2
        while half:
            x = pick(b, x, b.shuffle(x, None, [k ^ half for k in range(self.lanes)]))
            half //= 2
        return b.extract(x, 0)

    def some(self, b: Builder, mask: Value) -> Value:
        """Whether any lane holds."""
        return b.icmp("ne", b.bitcast(mask, f"i{self.lanes}"), 0)

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

    def halves(
        self, b: Builder, home: Value, other: Value, n: Value, small: Value
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """The arguments of `part` for the `small` words that a split left at `home` and those that
        it left at `other`, n altogether."""
        large = b.sub(n, small)
        above = b.gep(home, b.mul(small, self.size))
        free = b.gep(other, b.mul(large, self.size))
        return (home, free, small, b.const(False, "i1")), (above, other, large, b.const(True, "i1"))

    def divide(
        self, b: Builder, home: Value, other: Value, n: Value, away: Value, pivot: Value
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Split a part, which is at `home` or (`away`) at `other`, at a pivot: the words below it,
        the others."""
        data = b.select(away, other, home)
        return self.halves(b, home, other, n, b.call("split", "i64", data, home, other, n, pivot))

    def part(self) -> None:
        """part(home, other, n, away, careful, leaf): sort n words to `home`. They are there, or
        (`away`) at `other`; the other memory is free. `careful`: split at half the range."""
        b = self.function("part", [*PART, ("careful", "i1"), ("leaf", "ptr")])
        home, other, n, away, careful, leaf = b.args
        with b.while_([other, n, away, careful]) as loop:
            other, n, away, careful = loop.values
            loop.test(b.icmp("ugt", n, sort_leaves.longest(self.word)))
            data = b.select(away, other, home)
            pivot, alike = self.median(b, data, n)
            with b.if_(b.or_(alike, careful), [pivot, b.const(False, "i1")]) as ranged:
                low, high = self.range(b, data, n)
                ranged.yield_(middle(b, low, high), compare(b, "eq", low, high))
            pivot, same = ranged.results
            with b.if_(same):
                with b.if_(away):
                    b.call("copy", "void", other, home, n)
                b.ret()
                b.block(b.new_label("never"))
            small, large = self.divide(b, home, other, n, away, pivot)
            bad = b.icmp("ult", b.umin(small[2], large[2]), b.lshr(n, _BAD))
            # In turn: where most words are alike, samples find them and ranges do not.
            bad = b.and_(bad, b.not_(careful))
            b.call("part", "void", *large, bad, leaf)
            loop.yield_(*small[1:], bad)
        other, n, away, _ = loop.results
        with b.if_(b.icmp("ne", n, 0)):
            b.call(leaf, "void", b.select(away, other, home), home, n)
        b.ret()


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module(link.features())
    Quick(module, word)
    b = Builder(module, libraries.ENTRY, ARGUMENTS)
    home, free, n, leaf = b.args
    no = b.const(False, "i1")
    b.call("part", "void", home, free, n, no, no, leaf)
    b.ret()
    return module


libraries.provide(PREFIX, written)
