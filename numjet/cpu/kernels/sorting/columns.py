"""Columns of words sorted side by side, a column a lane.

Blocks of rows are sorted in registers by Batcher's odd-even merge sort (1968); then sorted runs are
merged pairwise by bitonic merges whose first step compares mirrored places, so that the smaller
word always goes to the lower place and what is past the end stays there. No step moves a word to
another lane. For: `sorting.rows`. What would break it: a number of rows that BLOCK does not
divide.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value, vector
from numjet.cpu.kernels.idioms import lanes_of
from numjet.cpu.link import link

# Vectors sorted in registers.
BLOCK = 16
# Exchanges a round; divides BLOCK.
_UNROLL = 4


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
        self.blocks(odd_even(BLOCK))
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


def odd_even(n: int) -> list[tuple[int, int]]:
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
