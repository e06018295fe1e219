"""Columns of words sorted side by side, a column a lane; and short runs of words sorted that way.

Blocks of rows are sorted in registers by Batcher's odd-even merge sort (1968); then sorted runs are
merged pairwise by bitonic merges whose first step compares mirrored places, so that the smaller
word always goes to the lower place and what is past the end stays there. No step moves a word to
another lane. For: `sort_rows`, and `sort_quick` by the symbol `nj_leaves_<word>`. What would break
it: a number of rows that BLOCK does not divide, or a leaf longer than LEAF.
"""

from __future__ import annotations

from numjet.cpu import link
from numjet.cpu.builder import Builder, Module, Value, vector
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.common import lanes_of, size_of

# Vectors sorted in registers.
BLOCK = 16
# Exchanges a round; divides BLOCK.
_UNROLL = 4
# Words of a leaf: sixteen of them, four bytes each, take half of a first-level cache. 384 and 512
# are no faster, and slower where there are few leaves.
LEAF = 256
PREFIX = "nj_leaves_"
# Bytes of an entry.
ENTRY = 24


class Columns:
    """Writes the sort of `rows` vectors of `word` at `words` into function `b`."""

    def __init__(self, b: Builder, word: str, words: Value, rows: Value | int) -> None:
        self.b, self.words, self.rows = b, words, rows
        self.kind, self.bytes = vector(word, lanes_of(word)), link.vector_bytes()

    def at(self, place: Value | int) -> Value:
        """Where the words at `place` of all columns stand."""
        b = self.b
        return b.gep(self.words, b.mul(place, self.bytes) if isinstance(place, Value)
                     else place * self.bytes)  # fmt: skip

    def sort(self) -> None:
        """Sort each column."""
        b, n = self.b, self.rows
        self.blocks(_odd_even(BLOCK))
        if not isinstance(n, Value) and n == BLOCK:
            return
        within = [(k, k + s) for s in (8, 4, 2, 1) for k in range(BLOCK) if not k & s]
        with b.while_([b.const(BLOCK, "i64")]) as runs:
            run = runs.values[0]
            runs.test(b.icmp("slt", run, n))
            self.mirror(run)
            with b.while_([b.lshr(run, 1)]) as steps:
                step = steps.values[0]
                steps.test(b.icmp("sge", step, BLOCK))
                self.halves(step)
                steps.yield_(b.lshr(step, 1))
            self.blocks(within)
            runs.yield_(b.shl(run, 1))

    def blocks(self, pairs: list[tuple[int, int]]) -> None:
        """Exchange pairs of places within each block, in registers."""
        b = self.b
        with b.loop(0, self.rows, BLOCK) as each:
            base = self.at(each.index)
            places = [b.gep(base, k * self.bytes) for k in range(BLOCK)]
            held = [b.load(place, self.kind) for place in places]
            for low, high in pairs:
                x, y = held[low], held[high]
                held[low], held[high] = b.umin(x, y), b.umax(x, y)
            for x, place in zip(held, places, strict=True):
                b.store(x, place)

    def mirror(self, run: Value) -> None:
        """Compare the places of two runs, the second one from its end."""
        b, n, both = self.b, self.rows, self.b.shl(run, 1)
        with b.loop(0, b.sub(n, run), both) as each:
            end = b.add(each.index, both)
            first = b.max(b.sub(end, n), 0)  # partners past the end are the largest word
            with b.loop(first, run, _UNROLL) as pair:
                low = self.at(b.add(each.index, pair.index))
                high = self.at(b.sub(end, pair.index))
                for k in range(_UNROLL):
                    self.exchange(b.gep(low, k * self.bytes), b.gep(high, ~k * self.bytes))

    def halves(self, step: Value) -> None:
        """Compare places that lie `step` apart."""
        b, n, both = self.b, self.rows, self.b.shl(step, 1)
        with b.loop(0, b.sub(n, step), both) as each:
            count = b.min(step, b.sub(b.sub(n, step), each.index))
            start = self.at(each.index)
            apart = b.gep(start, b.mul(step, self.bytes))
            with b.loop(0, count, _UNROLL) as pair:
                offset = b.mul(pair.index, self.bytes)
                low, high = b.gep(start, offset), b.gep(apart, offset)
                for k in range(_UNROLL):
                    self.exchange(b.gep(low, k * self.bytes), b.gep(high, k * self.bytes))

    def exchange(self, low: Value, high: Value) -> None:
        """The smaller word to the lower place."""
        b = self.b
        x, y = b.load(low, self.kind), b.load(high, self.kind)
        b.store(b.umin(x, y), low)
        b.store(b.umax(x, y), high)


def _odd_even(n: int) -> list[tuple[int, int]]:
    """The exchanges of Batcher's sorting network for n = 2^k places."""
    found = []
    run = 1
    while run < n:
        step = run
        while step:
            for low in range(step % run, n - step, 2 * step):
                for k in range(low, min(low + step, n - step)):
                    if k // (2 * run) == (k + step) // (2 * run):
                        found.append((k, k + step))
            step //= 2
        run *= 2
    return found


def lanes_below(b: Builder, count: Value, lanes: int) -> Value:
    """A mask of the lanes below `count` (an i64, may be beyond them), made without vectors."""
    few = b.trunc(b.min(b.max(count, 0), lanes), "i32")
    bits = b.sub(b.shl(b.const(1, "i32"), few), 1)
    return b.bitcast(b.trunc(bits, f"i{lanes}"), vector("i1", lanes))


class _Leaves:
    """(entries, count): sort `count` runs of words, at most one a lane.

    An entry is where they stand, where they go and how many there are, from 1 to LEAF; there is
    room for an entry a lane.
    """

    def __init__(self, module: Module, word: str) -> None:
        b = Builder(module, libraries.ENTRY, [("entries", "ptr"), ("count", "i64")])
        entries, count = b.args
        self.b, self.word, self.size = b, word, size_of(word)
        self.lanes, self.bytes = lanes_of(word), link.vector_bytes()
        # Rows of a group are turned within 128 bits, in registers; groups through memory.
        self.group = 16 // self.size
        self.groups = self.lanes // self.group
        with b.loop(count, self.lanes) as rest:
            b.store(b.const(0, "i64"), b.gep(entries, b.add(b.mul(rest.index, ENTRY), 16)), 8)
        with b.loop(0, count, 1, [b.const(1, "i64")]) as each:
            length = b.load(b.gep(entries, b.add(b.mul(each.index, ENTRY), 16)), "i64", 8)
            each.yield_(b.max(each.values[0], length))
        rows = b.and_(b.add(each.results[0], BLOCK - 1), -BLOCK)
        columns = Columns(b, word, b.alloca(vector(word, self.lanes), LEAF), rows)
        self.turn(entries, columns, rows, out=False)
        columns.sort()
        self.turn(entries, columns, rows, out=True)
        b.ret()

    def turn(self, entries: Value, columns: Columns, rows: Value, out: bool) -> None:
        """Move every tile of every group of leaves to the columns, or back."""
        b = self.b
        with (
            b.loop(0, rows, self.lanes, at_least_once=True) as tile,
            b.loop(0, self.groups) as group,
        ):
            runs, masks = [], []
            first = b.gep(entries, b.mul(group.index, ENTRY * self.group))
            for k in range(self.group):
                run = b.load(b.gep(first, ENTRY * k + 8 * out), "ptr", 8)
                length = b.load(b.gep(first, ENTRY * k + 16), "i64", 8)
                runs.append(b.gep(run, b.mul(tile.index, self.size)))
                masks.append(lanes_below(b, b.sub(length, tile.index), self.lanes))
            base = b.gep(columns.at(tile.index), b.mul(group.index, 16))
            # The address of part `k` of the vectors, 128 bits each, of place `c` in a group.
            parts = [
                [b.gep(base, (k * self.group + c) * self.bytes) for k in range(self.groups)]
                for c in range(self.group)
            ]
            (self.give if out else self.take)(runs, masks, parts)

    def take(self, runs: list[Value], masks: list[Value], parts: list[list[Value]]) -> None:
        """Words of a group to the columns, the largest one past its end."""
        b = self.b
        kind = vector(self.word, self.lanes)
        rows = [
            b.masked_load(run, mask, b.const(-1, kind))
            for run, mask in zip(runs, masks, strict=True)
        ]
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


def written(word: str) -> Module:
    """The library for `word`."""
    module = Module()
    _Leaves(module, word)
    return module


libraries.provide(PREFIX, written)
