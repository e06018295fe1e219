"""top_k: the largest elements of each row, downwards, with their positions.

A few of a long row are found in one reading of it: the best words so far (key turned round, then
position, as in `sort`) stay sorted, and vectors of keys are compared with the worst of them; hardly
any holds a better one. Others are sorted whole. For: `kernels.generator`. What would break it:
rows of 2^32 elements.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import Builder, Value, vector
from numjet.cpu.graph.nodes import Node
from numjet.cpu.kernels.idioms import lanes_of
from numjet.cpu.kernels.sorting.plan import key_for
from numjet.cpu.kernels.sorting.sort import Plan
from numjet.cpu.program.steps import Step
from numjet.cpu.program.values import Values

# So many are kept while the row is read: each better one moves half of them. From rows of so many
# times their number on (below, most are candidates).
MOST, TIMES = 128, 4
# Words moved by an instruction, and keys compared before a branch.
_BLOCK, _STEP = 8, 64


def generate(build: Values, node: Node) -> list[Step] | None:
    """The step of top_k, or None for complex numbers and nothing to find."""
    x = node.ins[0]
    key = key_for(x.dtype)
    axis, keep = node.params["axis"], node.params["k"]
    if key is None or not x.size or not keep or x.shape[axis] >= 1 << 32:
        return None
    plan = Sorted(key, [x.dtype.itemsize, 4], x.shape, axis)
    if plan.inner == 1 and key.width == 32 and keep <= min(MOST, plan.n // TIMES):
        plan = Running(key, [x.dtype.itemsize, 4], x.shape, axis)
    plan.begin(keep)
    return [plan.step(build, node)]


class Sorted(Plan):
    """Rows sorted downwards, the first `keep` of each with their positions."""

    def begin(self, keep: int) -> None:
        """Keep so many."""
        self.keep, self.carried = keep, False

    def counts(self) -> tuple[int, int]:
        return 1, 2

    def order(self, b: Builder, x: Value) -> Value:
        ordered = self.key.to_order(b, x, same_zeros=True)
        return b.xor(ordered, -1 if self.key.bits == self.key.width else (1 << self.key.bits) - 1)

    def finish(self, b: Builder, ins: list[Value], outs: list[Value], source: Value,
               first: Value | int, last: Value | int) -> None:  # fmt: skip
        size, bits = self.sizes[0], f"i{self.key.bits}"
        with b.loop(first, last) as each:
            place = b.mul(each.index, self.inner)
            at = b.gep(source, b.mul(each.index, self.word_bytes))
            word = b.load(at, self.word, self.word_bytes)
            if self.word == "<2 x i64>":
                position = b.extract(word, 1)
            else:
                position = b.and_(word, 0xFFFFFFFF)
            x = b.load(b.gep(ins[0], b.mul(b.mul(position, self.inner), size)), bits, size)
            b.store(x, b.gep(outs[0], b.mul(place, size)), size)
            b.store(b.trunc(position, "i32"), b.gep(outs[1], b.mul(place, 4)), 4)


class Running(Sorted):
    """The best so far, sorted, while a row is read once."""

    def begin(self, keep: int) -> None:
        super().begin(keep)
        self.radix = False
        # A block in front, whose last word is less than all; at the end whole blocks.
        self.blocks = -(-keep // _BLOCK)
        self.task_bytes = (self.blocks + 1) * _BLOCK * 8

    def row(self, b: Builder, ins: list[Value], outs: list[Value], one: Value, two: Value,
            counts: Value | None) -> None:  # fmt: skip
        best = b.gep(one, 8 * _BLOCK)
        block = vector("i64", _BLOCK)
        b.store(b.const(0, block), one)
        with b.loop(0, self.blocks * _BLOCK, _BLOCK) as clear:
            b.store(b.const(-1, block), b.gep(best, b.mul(clear.index, 8)))
        with b.loop(0, self.keep) as first:
            word, _, _ = self.word_at(b, ins, first.index)
            self.insert(b, best, word)
        whole = self.keep + (self.n - self.keep) // _STEP * _STEP
        with b.loop(self.keep, whole, _STEP, [self.worst(b, best)]) as loop:
            (worst,) = loop.values
            better = self.better(b, ins[0], loop.index, worst)
            with b.if_(b.icmp("ne", better, 0), [worst]) as branch:
                with b.while_([better]) as bits:
                    left = bits.values[0]
                    bits.test(b.icmp("ne", left, 0))
                    below = b.and_(b.not_(left), b.sub(left, 1))  # the zeros under the lowest one
                    lane = b.intrinsic("llvm.ctpop", below)
                    self.candidate(b, ins, best, b.add(loop.index, lane))
                    bits.yield_(b.and_(left, b.sub(left, 1)))
                branch.yield_(self.worst(b, best))
            loop.yield_(branch.results[0])
        with b.loop(whole, self.n) as rest:
            self.candidate(b, ins, best, rest.index)
        self.finish(b, ins, outs, best, 0, self.keep)

    def better(self, b: Builder, row: Value, at: Value, worst: Value) -> Value:
        """A bit for each of the keys from `at` on: whether it is less than `worst`."""
        lanes = min(lanes_of(f"i{self.key.bits}"), _STEP)
        limit = b.splat(worst, lanes)
        bits = b.const(0, "i64")
        for first in range(0, _STEP, lanes):
            address = b.gep(row, b.mul(b.add(at, first), self.sizes[0]))
            keys = self.order(b, b.load(address, vector(f"i{self.key.bits}", lanes), self.sizes[0]))
            found = b.bitcast(b.icmp("ult", keys, limit), f"i{lanes}")
            found = b.zext(found, "i64") if lanes < _STEP else found
            bits = b.or_(bits, b.shl(found, first))
        return bits

    def worst(self, b: Builder, best: Value) -> Value:
        """The key of the last that is kept: equal ones behind it are no better."""
        word = b.load(b.gep(best, 8 * (self.keep - 1)), "i64", 8)
        return b.trunc(b.lshr(word, 32), "i32")

    def candidate(self, b: Builder, ins: list[Value], best: Value, at: Value) -> None:
        """Take in the element at `at` if it is better than the worst."""
        word, ordered, _ = self.word_at(b, ins, at)
        with b.if_(b.icmp("ult", ordered, self.worst(b, best))):
            self.insert(b, best, word)

    def insert(self, b: Builder, best: Value, word: Value) -> None:
        """Put a word into its place: each that is greater moves up by one."""
        kind = vector("i64", _BLOCK)
        new = b.splat(word, _BLOCK)
        last = b.load(b.gep(best, 8 * _BLOCK * (self.blocks - 1)), kind, 8)
        with b.loop(0, self.blocks, carried=[last]) as blocks:
            # From the last block to the first; each is loaded as it was stored.
            at = b.gep(best, b.mul(b.sub(self.blocks - 1, blocks.index), 8 * _BLOCK))
            held, lower = blocks.values[0], b.load(b.gep(at, -8 * _BLOCK), kind, 8)
            before = b.shuffle(lower, held, range(_BLOCK - 1, 2 * _BLOCK - 1))
            b.store(b.umin(held, b.umax(before, new)), at, 8)
            blocks.yield_(lower)
