"""Many rows sorted side by side, a row a lane: a sorting network over vectors in memory.

A batch of rows becomes columns of words (key, or key and position, as in `sort`), padded with the
largest word to a multiple of BLOCK, which a network sorts (`sorting.columns`). Words that carry
positions are all different, which makes the order stable. What would break it: a plan whose scratch
is smaller than `scratch_bytes`.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value, vector
from numjet.cpu.kernels.idioms import lanes_of, prefix_mask, transpose_block
from numjet.cpu.kernels.sorting.columns import BLOCK, Columns
from numjet.cpu.kernels.sorting.plan import Words
from numjet.cpu.link import link

# 500,000 numbers in rows of 5,000 took 1.8 ms, by radix passes 3.7; the scratch of longer rows no
# longer fits a second-level cache.
LONGEST = 8192


def fits(plan: Words) -> bool:
    """Whether the network sorts this plan's rows: in one word each, and enough of them."""
    if plan.n > LONGEST or plan.word == "<2 x i64>" or link.vector_bytes() < 16:
        return False
    lanes = lanes_of(plan.word)
    return plan.rows >= lanes // 2 and (plan.inner == 1 or plan.inner >= lanes)


def scratch_bytes(plan: Words) -> int:
    """One batch."""
    return -(-plan.n // BLOCK) * BLOCK * link.vector_bytes()


def batches(plan: Words) -> int:
    """How many batches the rows make."""
    lanes = lanes_of(plan.word)
    if plan.inner == 1:
        return -(-plan.rows // lanes)
    return plan.rows // plan.inner * -(-plan.inner // lanes)


class RowBatch:
    """Writes the sort of one batch into function `b`."""

    def __init__(self, plan: Words) -> None:
        self.plan, self.lanes = plan, lanes_of(plan.word)
        self.kind = vector(plan.word, self.lanes)
        self.bytes = link.vector_bytes()
        self.padded = -(-plan.n // BLOCK) * BLOCK

    def emit(self, b: Builder, ins: list[Value], outs: list[Value], scratch: Value,
             batch: Value) -> None:  # fmt: skip
        """Sort the rows of one batch."""
        plan = self.plan
        if plan.inner == 1:
            first = b.mul(batch, self.lanes)
            rows = [b.min(b.add(first, k), plan.rows - 1) for k in range(self.lanes)]
        else:
            # Neighbours along the inner axes; the last batch begins early.
            along = -(-plan.inner // self.lanes)
            start = b.min(b.mul(b.rem(batch, along), self.lanes), plan.inner - self.lanes)
            first = b.add(b.mul(b.div(batch, along), plan.inner), start)
            rows = [first]
        sources = [plan.bases(b, ins, r, plan.n) for r in rows]
        targets = [plan.bases(b, outs, r, plan.n) for r in rows]
        negative = self.load(b, sources, scratch)
        with b.loop(plan.n, self.padded) as pad:
            b.store(b.const(-1, self.kind), self.at(b, scratch, pad.index))
        Columns(b, plan.word, scratch, self.padded).sort()
        self.finish(b, sources, targets, scratch)
        if plan.key.kind == "f":
            with b.if_(b.any(negative)), b.loop(0, self.lanes) as lane:
                row = b.min(b.add(first, lane.index), plan.rows - 1)
                source, target = (plan.bases(b, x, row, plan.n)[0] for x in (ins, outs))
                plan.restore_zeros(b, source, target)

    def at(self, b: Builder, scratch: Value, place: Value | int) -> Value:
        """Where the words at `place` of all rows stand."""
        return b.gep(scratch, b.mul(place, self.bytes) if isinstance(place, Value)
                     else place * self.bytes)  # fmt: skip

    # -- in and out ----------------------------------------------------------------------------

    def load(self, b: Builder, sources: list[list[Value]], scratch: Value) -> Value:
        """Write the words; which lanes met a negative zero."""
        plan, lanes = self.plan, self.lanes
        none = b.const(False, vector("i1", lanes))
        if plan.inner > 1:
            with b.loop(0, plan.n, 1, [none]) as each:
                word, negative = self.word(b, sources[0][0], each.index, 0)
                b.store(word, self.at(b, scratch, each.index))
                each.yield_(b.or_(each.values[0], negative))
            return each.results[0]

        def tile(start: Value | int, width: int, negative: Value) -> Value:
            words = []
            for source in sources:
                word, found = self.word(b, source[0], start, width)
                negative = b.or_(negative, found)
                words.append(word)
            for k, column in enumerate(transpose_block(b, words)[:width]):
                place = b.add(start, k) if isinstance(start, Value) else start + k
                b.store(column, self.at(b, scratch, place))
            return negative

        whole = plan.n // lanes * lanes
        if whole:
            with b.loop(0, whole, lanes, [none]) as each:
                each.yield_(tile(each.index, lanes, each.values[0]))
            none = each.results[0]
        return tile(whole, plan.n - whole, none) if whole < plan.n else none

    def word(self, b: Builder, row: Value, place: Value | int, width: int) -> tuple[Value, Value]:
        """Words from `place` on: `width` neighbours of one row, or (0) one of each row."""
        plan, lanes, key = self.plan, self.lanes, self.plan.key
        kind = vector(f"i{key.bits}", lanes)
        at = b.value(place, "i64")
        address = b.gep(row, b.mul(at, plan.inner * plan.sizes[0]))
        if 0 < width < lanes:
            x = b.masked_load(address, prefix_mask(b, width, lanes), b.const(0, kind))
        else:
            x = b.load(address, kind)
        negative = b.const(False, vector("i1", lanes))
        if key.kind == "f":
            negative = b.icmp("eq", x, key.top)
        ordered = plan.order(b, x)
        if not plan.shift:
            return ordered, negative
        low = b.splat(at, lanes)
        if width:
            low = b.add(low, b.iota("i64", lanes))
        return b.or_(b.shl(b.zext(ordered, "i64"), 32), low), negative

    def finish(self, b: Builder, sources: list[list[Value]], targets: list[list[Value]],
               scratch: Value) -> None:  # fmt: skip
        """Write the sorted keys, and the payloads from where they were."""
        plan, lanes = self.plan, self.lanes
        if plan.inner > 1:
            with b.loop(0, plan.keep) as each:
                word = b.load(self.at(b, scratch, each.index), self.kind)
                self.write(b, word, sources[0], targets[0], each.index, 0)
            return

        def tile(start: Value | int, width: int) -> None:
            words = []
            for k in range(lanes):
                place = min(k, width - 1)
                place = b.add(start, place) if isinstance(start, Value) else start + place
                words.append(b.load(self.at(b, scratch, place), self.kind))
            for k, word in enumerate(transpose_block(b, words)):
                self.write(b, word, sources[k], targets[k], b.value(start, "i64"), width)

        whole = plan.keep // lanes * lanes
        if whole:
            with b.loop(0, whole, lanes) as each:
                tile(each.index, lanes)
        if whole < plan.keep:
            tile(whole, plan.keep - whole)

    def write(self, b: Builder, word: Value, source: list[Value], target: list[Value],
              place: Value, width: int) -> None:  # fmt: skip
        """A vector of words to the results from `place` on."""
        plan, lanes = self.plan, self.lanes
        mask = prefix_mask(b, width, lanes) if 0 < width < lanes else None

        def put(x: Value, k: int) -> None:
            address = b.gep(target[k], b.mul(place, plan.inner * plan.sizes[k]))
            if mask is None:
                b.store(x, address)
            else:
                b.masked_store(x, address, mask)

        key = b.trunc(b.lshr(word, 32), "i32") if plan.shift else word
        put(plan.key.from_order(b, key), 0)
        if not plan.shift:
            return
        if plan.carried:
            put(b.trunc(word, "i32"), 1)
            return
        old = b.and_(word, 0xFFFFFFFF)
        if not width:
            old = b.add(b.mul(old, plan.inner), b.iota("i64", lanes))
        for k in range(1, len(target)):
            size = plan.sizes[k]
            x = b.gather(b.gep(source[k], b.mul(old, size)), vector(f"i{8 * size}", lanes), mask)
            put(x, k)
