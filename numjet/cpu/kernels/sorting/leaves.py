"""A short run of words sorted by networks, without a branch that depends on them.

The run is read row by row, so that each lane holds any of its words. Columns are sorted: blocks of
rows in registers by Batcher's odd-even merge sort (1968), then sorted runs of blocks pairwise by
bitonic merges whose first step compares mirrored places, so that the smaller word always goes to
the lower place. Then neighbouring lanes are merged, pairs of lanes, and so on: steps across lanes,
which again begin mirrored, leave a bitonic sequence in every lane. One of several blocks becomes
one in each block, in order, when words of like rows are sorted (k-way bitonic sort, Nakatani and
others, 1989). At last the lanes are written one after the other. For: `sorting.quick` by the symbol
`nj_leaf_<word>`, on AVX-512. What would break it: a run of no words, or of more than `longest`.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Module, Value, const_lanes, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import lanes_of, size_of
from numjet.cpu.kernels.sorting.columns import BLOCK, lanes_below, odd_even
from numjet.cpu.kernels.sorting.words import exchange, greatest, largest, least
from numjet.cpu.link import link

# Blocks of rows: with eight, 2,048 floats take 1.0 ns each; a split that halves them 0.15.
_BLOCKS = 8
PREFIX = "nj_leaf_"
ARGUMENTS = [("source", "ptr"), ("target", "ptr"), ("n", "i64")]
# Exchanges that sort an odd number of words that begin bitonic: the fewest that a search by sets of
# zeros and ones found. Sorts of any words take 9 and 16.
_ODD: dict[int, list[tuple[int, int]]] = {
    1: [],
    3: [(0, 1), (0, 2), (1, 2)],
    5: [(0, 2), (1, 3), (0, 1), (2, 3), (0, 4), (1, 4), (2, 4), (3, 4)],
    7: [
        (0, 2), (3, 6), (4, 5), (0, 4), (1, 5), (2, 6),
        (1, 3), (2, 4), (5, 6), (0, 1), (2, 3), (4, 5),
    ],
}  # fmt: skip
# Vectors that one round of a merge holds at least.
_HELD = 8


def longest(word: str) -> int:
    """The most words of a run."""
    return _BLOCKS * BLOCK * lanes_of(word)


class _Leaf:
    """(source, target, n): n words from `source` are sorted to `target`, which may be the same."""

    def __init__(self, module: Module, word: str) -> None:
        b = Builder(module, libraries.ENTRY, ARGUMENTS)
        source, target, n = b.args
        self.b, self.word, self.size = b, word, size_of(word)
        self.lanes = lanes_of(word)
        self.kind, self.bytes = vector(word, self.lanes), self.size * self.lanes
        self.block = BLOCK * self.bytes
        self.columns = b.alloca(self.kind, _BLOCKS * BLOCK)
        words = BLOCK * self.lanes
        blocks = b.udiv(b.add(n, words - 1), words)
        whole = b.udiv(n, words)
        steps = odd_even(BLOCK)
        within(b, word, source, self.columns, whole, steps)
        with b.if_(b.icmp("ne", whole, blocks)):
            with b.loop(b.mul(whole, BLOCK), b.mul(blocks, BLOCK)) as row:
                first = b.mul(row.index, self.lanes)
                mask = lanes_below(b, b.sub(n, first), self.lanes)
                x = b.masked_load(b.gep(source, b.mul(first, self.size)), mask, largest(b, word))
                b.store(x, self.at(row.index))
            last = self.at(b.mul(whole, BLOCK))
            within(b, word, last, last, b.const(1, "i64"), steps)
        self.halves()
        self.merges(blocks, 1)
        self.parts()
        for level in range(1, self.lanes.bit_length()):
            self.cross(blocks, level)
            b.call("parts", "void", self.columns, blocks)
            b.call("halves", "void", self.columns, blocks)
        self.give(target, n, blocks)
        b.ret()

    def at(self, row: Value | int) -> Value:
        """Where a row of the columns stands."""
        b = self.b
        return b.gep(self.columns, b.mul(row, self.bytes) if isinstance(row, Value)
                     else row * self.bytes)  # fmt: skip

    # -- columns -------------------------------------------------------------------------------

    def function(self, name: str) -> Builder:
        """A builder of name(columns, blocks)."""
        arguments = [("columns", "ptr"), ("blocks", "i64")]
        return Builder(self.b.module, name, arguments, linkage="internal")

    def halves(self) -> None:
        """Define halves(columns, blocks): sort the bitonic columns of each block."""
        b = self.function("halves")
        steps = (BLOCK >> k for k in range(1, BLOCK.bit_length()))
        pairs = [(k, k + s) for s in steps for k in range(BLOCK) if not k & s]
        columns, blocks = b.args
        within(b, self.word, columns, columns, blocks, pairs)
        b.ret()

    def merges(self, blocks: Value, run: int) -> None:
        """Merge runs of `run` sorted blocks, and so on."""
        b = self.b
        if run < _BLOCKS:
            with b.if_(b.icmp("sgt", blocks, run)):
                self.across(blocks, run)
                b.call("halves", "void", self.columns, blocks)
                self.merges(blocks, 2 * run)

    def across(self, blocks: Value, run: int) -> None:
        """The steps of a merge that compare rows of different blocks."""
        b, both = self.b, 2 * run
        whole = b.and_(blocks, -both)
        with b.loop(0, whole, both) as each:
            self.together(each.index, run, both)
        rest = b.sub(blocks, whole)
        for count in range(run + 1, both):
            with b.if_(b.icmp("eq", rest, count)):
                self.together(whole, run, count)

    def together(self, first: Value, run: int, count: int) -> None:
        """What `across` does to `count` blocks from number `first` on: more than `run`, at most
        twice as many. Without the exchanges whose higher place is past the last block."""
        b, both = self.b, 2 * run
        unroll = max(1, _HELD // both)
        pairs = [(k, both - 1 - k) for k in range(run)]
        step = run // 2
        while step:
            pairs += [(k, k + step) for k in range(both) if not k & step]
            step //= 2
        pairs = [pair for pair in pairs if pair[1] < count]
        starts = [self.at(b.mul(b.add(first, k), BLOCK)) for k in range(count)]
        with b.loop(0, self.block, unroll * self.bytes) as row:
            back = b.sub((BLOCK - 1) * self.bytes, row.index)
            ups = [b.gep(start, row.index) for start in starts[:run]]
            downs = [b.gep(start, back) for start in starts[run:]]
            for k in range(unroll):
                places = [b.gep(up, k * self.bytes) for up in ups]
                places += [b.gep(down, -k * self.bytes) for down in downs]
                change(b, self.kind, places, pairs)

    # -- lanes ---------------------------------------------------------------------------------

    def cross(self, blocks: Value, level: int) -> None:
        """The steps of a merge that compare different lanes, of 2^level each."""
        b, last = self.b, (1 << level) - 1
        with b.loop(0, b.mul(blocks, BLOCK // 2 * self.bytes), self.bytes,
                    at_least_once=True) as row:  # fmt: skip
            end = b.mul(blocks, self.block)
            places = (
                b.gep(self.columns, row.index),
                b.gep(self.columns, b.sub(b.sub(end, self.bytes), row.index)),
            )
            up, down = (b.load(place, self.kind) for place in places)
            down = b.shuffle(down, None, [k ^ last for k in range(self.lanes)])
            lower = const_lanes([not k >> (level - 1) & 1 for k in range(self.lanes)], "i1")
            low, high = least(b, up, down), greatest(b, up, down)
            held = b.select(lower, low, high), b.select(lower, high, low)
            # Where in the two vectors the words of each row are, by lane.
            where = [list(range(self.lanes)), [self.lanes + (k ^ last) for k in range(self.lanes)]]
            for bit in reversed([1 << k for k in range(level - 1)]):
                sides = [[0] * self.lanes, [0] * self.lanes]
                after = [[0] * self.lanes, [0] * self.lanes]
                for r in range(2):
                    for lane in range(self.lanes):
                        if not lane & bit:
                            slot = lane | r * bit
                            for side in range(2):
                                sides[side][slot] = where[r][lane | side * bit]
                                after[r][lane | side * bit] = slot + side * self.lanes
                low, high = (b.shuffle(*held, side) for side in sides)
                held, where = (least(b, low, high), greatest(b, low, high)), after
            for place, lanes in zip(places, where, strict=True):
                b.store(b.shuffle(*held, lanes), place)

    def parts(self) -> None:
        """Define parts(columns, blocks): of bitonic columns make one in each block, in order."""
        b = self.function("parts")
        columns, blocks = b.args
        for count in range(2, _BLOCKS + 1):
            with b.if_(b.icmp("eq", blocks, count)):
                unroll = max(1, _HELD // count)
                with b.loop(0, self.block, unroll * self.bytes) as row:
                    for k in range(unroll):
                        base = b.gep(columns, b.add(row.index, k * self.bytes))
                        places = [b.gep(base, q * self.block) for q in range(count)]
                        change(b, self.kind, places, sorter(count))
                b.ret()
                b.block(b.new_label("next"))
        b.ret()

    # -- out -----------------------------------------------------------------------------------

    def give(self, target: Value, n: Value, blocks: Value) -> None:
        """Write lane after lane to `target`."""
        b, group = self.b, 16 // self.size
        part = vector(self.word, group)
        rows = b.mul(blocks, BLOCK)
        with (
            b.loop(0, self.lanes // group) as each,
            b.loop(0, rows, self.lanes, at_least_once=True) as tile,
        ):
            base = b.gep(self.at(tile.index), b.mul(each.index, 16))
            columns = [
                b.concat([
                    b.load(b.gep(base, (k * group + c) * self.bytes), part)
                    for k in range(self.lanes // group)
                ])
                for c in range(group)
            ]  # fmt: skip
            first = b.add(b.mul(b.mul(each.index, group), rows), tile.index)
            for k, x in enumerate(self.squares(columns, group)):
                at = b.add(first, b.mul(rows, k)) if k else first
                mask = lanes_below(b, b.sub(n, at), self.lanes)
                b.masked_store(x, b.gep(target, b.mul(at, self.size)), mask)

    def squares(self, rows: list[Value], group: int) -> list[Value]:
        """The squares of each 128 bits transposed."""
        half = group // 2
        for _ in range(half):  # log2 of 2 or 4
            rows = [
                self.unpack(rows[k], rows[k + half], group, upper)
                for k in range(half)
                for upper in (0, 1)
            ]
        return rows

    def unpack(self, x: Value, y: Value, group: int, upper: int) -> Value:
        """Lanes of the lower or upper half of each 128 bits of x and y in turn."""
        lanes = []
        for start in range(0, self.lanes, group):
            for k in range(group // 2):
                at = start + upper * group // 2 + k
                lanes += [at, self.lanes + at]
        return self.b.shuffle(x, y, lanes)


def sorter(n: int) -> list[tuple[int, int]]:
    """Exchanges that sort n <= 8 words that begin bitonic, from wherever."""
    if n % 2:
        return _ODD[n]
    half = n // 2
    rest = sorter(half)
    return [(k, k + half) for k in range(half)] + [
        (low + start, high + start) for start in (0, half) for low, high in rest
    ]


def change(b: Builder, kind: str, places: list[Value], pairs: list[tuple[int, int]]) -> None:
    """Exchange pairs of vectors in memory."""
    held = [b.load(place, kind) for place in places]
    for low, high in pairs:
        exchange(b, held, low, high)
    for x, place in zip(held, places, strict=True):
        b.store(x, place)


def within(b: Builder, word: str, source: Value, target: Value, blocks: Value,
           pairs: list[tuple[int, int]]) -> None:  # fmt: skip
    """Exchange pairs of rows within each block from `source`, in registers, to `target`."""
    kind, bytes = vector(word, lanes_of(word)), lanes_of(word) * size_of(word)
    with b.loop(0, b.mul(blocks, BLOCK * bytes), BLOCK * bytes) as each:
        held = [b.load(b.gep(source, b.add(each.index, k * bytes)), kind) for k in range(BLOCK)]
        for low, high in pairs:
            exchange(b, held, low, high)
        for k, x in enumerate(held):
            b.store(x, b.gep(target, b.add(each.index, k * bytes)))


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module(link.features())
    _Leaf(module, word)
    return module


libraries.provide(PREFIX, written)
