"""Short runs of words sorted together, a run a lane.

Blocks of rows are sorted in registers by Batcher's odd-even merge sort (1968); then sorted runs of
blocks are merged pairwise by bitonic merges whose first step compares mirrored places, so that the
smaller word always goes to the lower place. A merge goes through memory twice: once for all steps
across blocks, once for those within them. For: `sort_quick` by the symbol `nj_leaves_<word>`, on
AVX-512. What would break it: a run longer than LEAF.
"""

from __future__ import annotations

from numjet.cpu.builder import Builder, Module, Value, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.common import lanes_of, size_of
from numjet.cpu.kernels.sort_columns import BLOCK, lanes_below, odd_even
from numjet.cpu.kernels.sort_words import exchange, largest

# Words of a leaf: sixteen of them, four bytes each, take a third of a first-level cache.
LEAF = 256
_BLOCKS = LEAF // BLOCK
PREFIX = "nj_leaves_"
# Bytes of an entry.
ENTRY = 24
# Vectors that one round of a merge holds at least.
_HELD = 8
# Bytes of a run that are asked for before they are read or written.
_AHEAD = 128


class _Leaves:
    """(entries, count): sort `count` runs of words, at most one a lane.

    An entry is where they stand, where they go and how many there are, from 1 to LEAF; there is
    room for an entry a lane.
    """

    def __init__(self, module: Module, word: str) -> None:
        b = Builder(module, libraries.ENTRY, [("entries", "ptr"), ("count", "i64")])
        entries, count = b.args
        self.b, self.word, self.size = b, word, size_of(word)
        self.lanes = lanes_of(word)
        self.kind, self.bytes = vector(word, self.lanes), self.size * self.lanes
        # Rows of a group are turned within 128 bits, in registers; groups through memory.
        self.group = 16 // self.size
        self.groups = self.lanes // self.group
        # One block more, of the largest words: stands for those past the end.
        self.columns = b.alloca(self.kind, LEAF + BLOCK)
        with b.loop(count, self.lanes) as rest:
            b.store(b.const(0, "i64"), b.gep(entries, b.add(b.mul(rest.index, ENTRY), 16)), 8)
        with b.loop(0, count, 1, [b.const(1, "i64")]) as each:
            entry = b.gep(entries, b.mul(each.index, ENTRY))
            for k in range(2):
                run = b.load(b.gep(entry, 8 * k), "ptr", 8)
                for at in range(0, _AHEAD, 64):
                    b.prefetch(b.gep(run, at), write=k == 1)
            each.yield_(b.max(each.values[0], b.load(b.gep(entry, 16), "i64", 8)))
        with b.loop(LEAF, LEAF + BLOCK) as each_row:
            b.store(largest(b, word), self.at(each_row.index))
        blocks = b.lshr(b.add(each.results[0], BLOCK - 1), BLOCK.bit_length() - 1)
        self.turn(entries, blocks, out=False)
        self.sort(blocks)
        self.turn(entries, blocks, out=True)
        b.ret()

    def at(self, row: Value | int) -> Value:
        """Where a row of the columns stands."""
        b = self.b
        return b.gep(self.columns, b.mul(row, self.bytes) if isinstance(row, Value)
                     else row * self.bytes)  # fmt: skip

    # -- the network ---------------------------------------------------------------------------

    def sort(self, blocks: Value) -> None:
        """Sort the columns."""
        b = self.b
        within(b, self.word, self.columns, blocks, odd_even(BLOCK))
        inner = Builder(
            b.module, "halves", [("columns", "ptr"), ("blocks", "i64")], linkage="internal"
        )
        steps = (BLOCK >> k for k in range(1, BLOCK.bit_length()))
        pairs = [(k, k + s) for s in steps for k in range(BLOCK) if not k & s]
        columns, count = inner.args
        within(inner, self.word, columns, count, pairs)
        inner.ret()
        self.merges(blocks, 1)

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
        unroll = max(1, _HELD // both)
        pairs = [(k, both - 1 - k) for k in range(run)]
        step = run // 2
        while step:
            pairs += [(k, k + step) for k in range(both) if not k & step]
            step //= 2
        with b.loop(0, b.sub(blocks, run), both) as each:
            starts = []
            for k in range(both):
                block = b.add(each.index, k)
                if k > run:
                    block = b.select(b.icmp("slt", block, blocks), block, _BLOCKS)
                starts.append(self.at(b.mul(block, BLOCK)))
            with b.loop(0, BLOCK * self.bytes, unroll * self.bytes) as row:
                back = b.sub((BLOCK - 1) * self.bytes, row.index)
                ups = [b.gep(start, row.index) for start in starts[:run]]
                downs = [b.gep(start, back) for start in starts[run:]]
                for k in range(unroll):
                    places = [b.gep(up, k * self.bytes) for up in ups]
                    places += [b.gep(down, -k * self.bytes) for down in downs]
                    held = [b.load(place, self.kind) for place in places]
                    for low, high in pairs:
                        exchange(b, held, low, high)
                    for x, place in zip(held, places, strict=True):
                        b.store(x, place)

    # -- in and out ----------------------------------------------------------------------------

    def turn(self, entries: Value, blocks: Value, out: bool) -> None:
        """Move every tile of every group of leaves to the columns, or back."""
        b = self.b
        with (
            b.loop(0, b.mul(blocks, BLOCK), self.lanes, at_least_once=True) as tile,
            b.loop(0, self.groups) as group,
        ):
            runs, masks = [], []
            first = b.gep(entries, b.mul(group.index, ENTRY * self.group))
            for k in range(self.group):
                run = b.load(b.gep(first, ENTRY * k + 8 * out), "ptr", 8)
                length = b.load(b.gep(first, ENTRY * k + 16), "i64", 8)
                runs.append(b.gep(run, b.mul(tile.index, self.size)))
                b.prefetch(b.gep(runs[-1], _AHEAD), write=out)
                masks.append(lanes_below(b, b.sub(length, tile.index), self.lanes))
            base = b.gep(self.at(tile.index), b.mul(group.index, 16))
            # The address of part `k` of the vectors, 128 bits each, of place `c` in a group.
            parts = [
                [b.gep(base, (k * self.group + c) * self.bytes) for k in range(self.groups)]
                for c in range(self.group)
            ]
            (self.give if out else self.take)(runs, masks, parts)

    def take(self, runs: list[Value], masks: list[Value], parts: list[list[Value]]) -> None:
        """Words of a group to the columns, the largest one past its end."""
        b = self.b
        above = largest(b, self.word)
        rows = [b.masked_load(run, mask, above) for run, mask in zip(runs, masks, strict=True)]
        for x, places in zip(self.squares(rows), parts, strict=True):
            for k, place in enumerate(places):
                b.store(b.slice(x, k * self.group, self.group), place)

    def give(self, runs: list[Value], masks: list[Value], parts: list[list[Value]]) -> None:
        """Words of the columns back to a group."""
        b = self.b
        part = vector(self.word, self.group)
        columns = [b.concat([b.load(place, part) for place in places]) for places in parts]
        for x, run, mask in zip(self.squares(columns), runs, masks, strict=True):
            b.masked_store(x, run, mask)

    def squares(self, rows: list[Value]) -> list[Value]:
        """The squares of each 128 bits turned."""
        half = self.group // 2
        for _ in range(half):  # log2 of 2 or 4
            rows = [
                self.unpack(rows[k], rows[k + half], upper) for k in range(half) for upper in (0, 1)
            ]
        return rows

    def unpack(self, x: Value, y: Value, upper: int) -> Value:
        """Lanes of the lower or upper half of each 128 bits of x and y in turn."""
        lanes = []
        for start in range(0, self.lanes, self.group):
            for k in range(self.group // 2):
                at = start + upper * self.group // 2 + k
                lanes += [at, self.lanes + at]
        return self.b.shuffle(x, y, lanes)


def within(
    b: Builder, word: str, columns: Value, blocks: Value, pairs: list[tuple[int, int]]
) -> None:
    """Exchange pairs of places within each block of columns, in registers."""
    kind, bytes = vector(word, lanes_of(word)), lanes_of(word) * size_of(word)
    with b.loop(0, blocks, at_least_once=True) as each:
        base = b.gep(columns, b.mul(each.index, BLOCK * bytes))
        places = [b.gep(base, k * bytes) for k in range(BLOCK)]
        held = [b.load(place, kind) for place in places]
        for low, high in pairs:
            exchange(b, held, low, high)
        for x, place in zip(held, places, strict=True):
            b.store(x, place)


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module()
    _Leaves(module, word)
    return module


libraries.provide(PREFIX, written)
