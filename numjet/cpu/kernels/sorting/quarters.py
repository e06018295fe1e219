"""Words split four ways at a time: one pass over memory for two levels of a sort.

A part lies in one of four buffers, the first of which is its home; a pass writes its quarters to
all of them, so that the one that it comes from is written over. Each quarter then has as much free
memory as it has words behind its neighbours in the other buffers, or before them. From a
second-level cache two levels take 0.27 ns a word instead of 0.36. Parts that are short, or whose
sample does not tell four quarters, are left to `sorting.quick`. For: `sorting.shares`. What would
break it: less than n words of memory in any of the four buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from numjet.cpu.builder.builder import Builder, Module, Value, vector
from numjet.cpu.kernels.sorting.columns import lanes_below
from numjet.cpu.kernels.sorting.quick import READ_AHEAD, WRITE_AHEAD, Quick
from numjet.cpu.kernels.sorting.words import compare, is_float, ordered

# Vectors a round; four are no faster.
_UNROLL = 2
# Words up to which two ways are as fast.
SHORT = 4096
# A quarter of more than 15/16 of the words is a bad split.
_BAD = 4
BUFFERS = [("home", "ptr"), ("second", "ptr"), ("third", "ptr"), ("fourth", "ptr")]
QUARTERED = [*BUFFERS, ("n", "i64"), ("where", "i64")]

Quarter = tuple[list[Value], Value, Value]


class Quarters(Quick):
    """Writes the functions of `Quick`, and those that split four ways."""

    def __init__(self, module: Module, word: str) -> None:
        super().__init__(module, word)
        self.quarter("quarter")
        if is_float(word):
            self.quarter("make", ("nans", "zeros"))
        self.parts()

    def quarter(self, name: str, found: Sequence[str] = ()) -> None:
        """quarter(source, n, places, limits, tally, next, fresh): deal n words out to four places,
        apart at three limits. The tally is 0, how many have been below each limit, and how many
        in all; places are where the first of them went. `source` may be one of them, or behind
        what is there. Lines at `next` are read ahead, and those at `fresh` to be written.
        make(..., nans, zeros): of floats, which become words; how many are what `ordered` finds."""
        word, lanes, size = self.word, self.lanes, self.size
        b = self.function(name, [
            ("source", "ptr"), ("n", "i64"), ("places", "ptr"), ("limits", "ptr"), ("tally", "ptr"),
            ("next", "ptr"), ("fresh", "ptr"), *[(each, "ptr") for each in found],
        ])  # fmt: skip
        source, n, places, limits, tally, next, fresh, *kinds = b.args
        to = [b.load(b.gep(places, 8 * k), "ptr", 8) for k in range(4)]
        limit = [b.splat(b.load(b.gep(limits, k * size), word), lanes) for k in range(3)]
        *before, done = (b.load(b.gep(tally, 8 * k), "i64", 8) for k in range(1, 5))
        # Not a constant, for which LLVM compares a second time.
        every = b.splat(b.icmp("ne", n, 0), lanes)
        step = lanes * _UNROLL
        whole = b.and_(n, -step)

        none = [b.const(0, vector(f"i{8 * size}", lanes))] * len(kinds)

        def words(x: Value, seen: list[Value]) -> tuple[Value, list[Value]]:
            if not seen:
                return x, seen
            x, *flags = ordered(b, x)
            pairs = zip(flags, seen, strict=True)
            return x, [b.select(flag, b.add(many, 1), many) for flag, many in pairs]

        def starts(at: Value, counts: Sequence[Value]) -> list[Value]:
            edges = [*counts, b.add(done, at)]
            many = [edges[0], *[b.sub(edges[k], edges[k - 1]) for k in range(1, 4)]]
            return [b.gep(p, b.mul(x, size)) for p, x in zip(to, many, strict=True)]

        with b.loop(0, whole, step, [*before, *none]) as loop:
            at, counts, seen = loop.index, list(loop.values[:3]), list(loop.values[3:])
            start, later, target = (b.gep(p, b.mul(at, size)) for p in (source, next, fresh))
            ends = starts(at, counts)
            for k in range(_UNROLL):
                b.prefetch(b.gep(later, 64 * k))
                b.prefetch(b.gep(target, 64 * k), write=True)
                for end in ends[k::_UNROLL]:
                    b.prefetch(b.gep(end, WRITE_AHEAD), write=True)
            held = [b.load(b.gep(start, 64 * k), self.kind) for k in range(_UNROLL)]
            for k, x in enumerate(held):
                x, seen = words(x, seen)
                # Not by signs of differences (see `below`): no faster for three limits.
                under = [compare(b, "lt", x, each) for each in limit]
                masks = [under[0], b.xor(under[0], under[1]), b.xor(under[1], under[2]),
                         b.xor(under[2], every)]  # fmt: skip
                if k:
                    ends = starts(b.add(at, k * lanes), counts)
                # Whole vectors: what they write too much lies before what is read next.
                for mask, end in zip(masks, ends, strict=True):
                    b.store(self.compress(b, x, mask), end)
                counts = [b.add(c, self.count(b, m)) for c, m in zip(counts, under, strict=True)]
            loop.yield_(*counts, *seen)
        with b.loop(whole, n, lanes, loop.results) as last:
            at, counts = last.index, list(last.values[:3])
            inside = lanes_below(b, b.sub(n, at), lanes)
            x = b.masked_load(b.gep(source, b.mul(at, size)), inside, b.const(0, self.kind))
            x, seen = words(x, list(last.values[3:]))
            under = [b.and_(compare(b, "lt", x, each), inside) for each in limit]
            masks = [under[0], *[b.xor(under[k], under[k + 1]) for k in range(2)],
                     b.xor(under[2], inside)]  # fmt: skip
            for mask, end in zip(masks, starts(at, counts), strict=True):
                some = lanes_below(b, self.count(b, mask), lanes)
                b.masked_store(self.compress(b, x, mask), end, some)
            counts = [b.add(c, self.count(b, m)) for c, m in zip(counts, under, strict=True)]
            last.yield_(*counts, *seen)
        for k, count in enumerate([*last.results[:3], b.add(done, n)], 1):
            b.store(count, b.gep(tally, 8 * k), 8)
        for place, many in zip(kinds, last.results[3:], strict=True):
            total = b.reduce("add", many)
            b.store(b.zext(total, "i64") if size < 8 else total, place, 8)
        b.ret()

    def places(self, b: Builder) -> tuple[Value, Value]:
        """Memory for a table of places and for a tally."""
        return b.alloca("ptr", 4), b.alloca("i64", 5)

    def begin(self, b: Builder, buffers: list[Value], places: Value, tally: Value) -> None:
        """Nothing has been dealt out to the buffers yet."""
        for k, buffer in enumerate(buffers):
            b.store(buffer, b.gep(places, 8 * k), 8)
        for k in range(5):
            b.store(b.const(0, "i64"), b.gep(tally, 8 * k), 8)

    @contextmanager
    def quarters(self, b: Builder, buffers: list[Value], tally: Value) -> Iterator[Quarter]:
        """A loop over the quarters: buffers, how many words, the buffer they are in."""
        with b.loop(0, 4) as each:
            edges = [b.load(b.gep(tally, 8 * k), "i64", 8) for k in range(1, 5)]
            place = b.gep(tally, b.mul(each.index, 8))
            first, last = b.load(place, "i64", 8), b.load(b.gep(place, 8), "i64", 8)
            free = []
            for k in range(1, 4):
                # Those before it are at home by then, those after it still in their buffers.
                kept = b.select(b.icmp("slt", each.index, k), b.sub(edges[k], edges[k - 1]), 0)
                free.append(b.gep(buffers[k], b.mul(kept, self.size)))
            home = b.gep(buffers[0], b.mul(first, self.size))
            yield [home, *free], b.sub(last, first), each.index

    def data(self, b: Builder, buffers: list[Value], where: Value) -> Value:
        """The buffer of that number."""
        found = buffers[0]
        for k in range(1, 4):
            found = b.select(b.icmp("eq", where, k), buffers[k], found)
        return found

    def two(self, b: Builder, buffers: list[Value], n: Value, where: Value) -> tuple[Value, ...]:
        """The arguments that `part` has for a part in one of four buffers."""
        away = b.icmp("ne", where, 0)
        other = b.select(away, self.data(b, buffers, where), buffers[1])
        return buffers[0], other, n, away

    def quartiles(self, b: Builder, data: Value, n: Value, limits: Value) -> Value:
        """Write three words that part n words near their quarters; whether they differ."""
        rows = b.alloca(self.kind, 5)
        b.call("sample", "void", data, n, rows)
        found = [b.call("middle", self.word, b.gep(rows, 64 * k)) for k in range(1, 4)]
        for k, pivot in enumerate(found):
            b.store(pivot, b.gep(limits, k * self.size))
        return b.and_(*[compare(b, "lt", found[k], found[k + 1]) for k in range(2)])

    def parts(self) -> None:
        """parts(home, second, third, fourth, n, where, leaf): sort n words to `home` that are in
        the buffer of number `where`."""
        b = self.function("parts", [*QUARTERED, ("leaf", "ptr")])
        *buffers, n, where, leaf = b.args
        limits = b.alloca(self.word, 3)
        places, tally = self.places(b)
        no = b.const(False, "i1")
        with b.if_(b.icmp("ugt", n, SHORT), [no]) as long:
            long.yield_(self.quartiles(b, self.data(b, buffers, where), n, limits))
        with b.if_(b.not_(long.results[0])):
            b.call("part", "void", *self.two(b, buffers, n, where), no, leaf)
            b.ret()
            b.block(b.new_label("four"))
        self.begin(b, buffers, places, tally)
        data = self.data(b, buffers, where)
        later = b.gep(data, READ_AHEAD)
        b.call("quarter", "void", data, n, places, limits, tally, later, buffers[0])
        most = b.sub(n, b.lshr(n, _BAD))
        with self.quarters(b, buffers, tally) as each:
            bad = b.icmp("ugt", each[1], most)
            with b.if_(bad):
                b.call("part", "void", *self.two(b, *each), bad, leaf)
            with b.if_(b.not_(bad)):
                b.call("parts", "void", *each[0], *each[1:], leaf)
        b.ret()
