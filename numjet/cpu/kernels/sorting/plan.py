"""One sort as rows of words: keys as integers, the layout of a word, what every algorithm does.

Below the algorithms of this folder, which know a sort as `Words`; `sort` chooses among them. What
would break it: rows of 2^32 elements.
"""

from __future__ import annotations

import math

import numpy as np

from numjet.base.record import record
from numjet.cpu.builder.builder import Builder, Module, Value, vector
from numjet.cpu.kernels.idioms import ELEMENTS

# Rows up to this length are sorted by insertion.
SHORT = 40
BUCKETS = 256


@record(frozen=True, slots=True)
class Key:
    """The key's type: `kind` is NumPy's (b, u, i, f), `bits` its width."""

    kind: str
    bits: int
    exponent: int  # a float's infinity as an integer

    @property
    def width(self) -> int:
        """Bits of the unsigned integer it becomes."""
        return 64 if self.bits == 64 else 32

    @property
    def top(self) -> int:
        """The sign bit, as a signed integer of `bits`."""
        return -(1 << (self.bits - 1))

    def to_order(self, b: Builder, x: Value, same_zeros: bool) -> Value:
        """The unsigned integer for the bits `x`."""
        if self.kind == "i":
            x = b.xor(x, self.top)
        elif self.kind == "f":
            nan = b.icmp("sgt", b.and_(x, ~self.top), self.exponent)
            if same_zeros:
                x = b.select(b.icmp("eq", x, self.top), 0, x)
            x = b.xor(x, b.or_(b.ashr(x, self.bits - 1), self.top))
            x = b.select(nan, -1, x)
        return b.zext(x, f"i{self.width}") if self.bits < self.width else x

    def from_order(self, b: Builder, x: Value) -> Value:
        """The bits again."""
        if self.bits < self.width:
            x = b.trunc(x, f"i{self.bits}")
        if self.kind == "i":
            x = b.xor(x, self.top)
        elif self.kind == "f":
            x = b.xor(x, b.or_(b.not_(b.ashr(x, self.bits - 1)), self.top))
        return x


def key_for(dtype: np.dtype) -> Key | None:
    """The key that numbers of `dtype` are, or None for complex ones."""
    if dtype.name not in ELEMENTS:
        return None
    bits = dtype.itemsize * 8
    if dtype.name in ("float16", "float32", "float64", "bfloat16"):
        infinity = np.array(math.inf, dtype).view(f"i{dtype.itemsize}")
        return Key("f", bits, int(infinity))
    return Key("u" if dtype.kind == "b" else dtype.kind, bits, 0)


class Words:
    """The rows of one sort and the words that they become: sizes, layout, one word at a time.

    What all algorithms share; `sort.Plan` chooses among them.
    """

    def __init__(
        self, key: Key, sizes: list[int], shape: tuple[int, ...], axis: int, counted: bool = False
    ) -> None:
        self.key, self.sizes = key, sizes
        # The only payload is the position.
        self.counted = counted
        self.n = self.keep = shape[axis]
        self.inner = math.prod(shape[axis + 1 :])
        self.rows = math.prod(shape[:axis]) * self.inner
        payloads = len(sizes) - 1
        # The word: the key alone; key and 32 bits more; or 64 bits of each.
        if not payloads:
            self.word = f"i{key.width}"
        else:
            self.word = "i64" if key.width == 32 else "<2 x i64>"
        self.shift = 32 if payloads and key.width == 32 else 0
        self.carried = payloads == 1 and sizes[1] == 4
        self.word_bytes = {"i32": 4, "i64": 8, "<2 x i64>": 16}[self.word]
        self.short = SHORT
        # One row by itself, on all threads.
        self.long = False

    def key_of(self, b: Builder, word: Value) -> Value:
        """The key part of a word."""
        if self.word == "<2 x i64>":
            return b.extract(word, 0)
        return b.trunc(b.lshr(word, 32), "i32") if self.shift else word

    def bases(self, b: Builder, pointers: list[Value], row: Value, length: int) -> list[Value]:
        """Where `row` begins in arrays of `length` along the axis."""
        if self.inner > 1:
            outer = b.mul(b.div(row, self.inner), length * self.inner)
            first = b.add(outer, b.rem(row, self.inner))
        else:
            first = b.mul(row, length)
        return [b.gep(p, b.mul(first, s)) for p, s in zip(pointers, self.sizes, strict=False)]

    def order(self, b: Builder, x: Value) -> Value:
        """The integer that is sorted."""
        return self.key.to_order(b, x, same_zeros=True)

    def word_at(
        self, b: Builder, ins: list[Value], i: Value, lanes: int = 0
    ) -> tuple[Value, Value, Value | None]:
        """The word of element i (or of `lanes` neighbours), its key, whether that is -0."""
        place = b.mul(i, self.inner)
        bits = vector(f"i{self.key.bits}", lanes)
        x = b.load(b.gep(ins[0], b.mul(place, self.sizes[0])), bits)
        negative = b.icmp("eq", x, self.key.top) if self.key.kind == "f" else None
        ordered = self.order(b, x)
        if self.word == "<2 x i64>":
            word = b.insert(b.const(0, "<2 x i64>"), ordered, 0)
            return b.insert(word, self.payload(b, ins, i, "i64"), 1), ordered, negative
        if not self.shift:
            return ordered, ordered, negative
        low = self.payload(b, ins, i, "i32", lanes)
        return b.or_(b.shl(b.zext(ordered, "i64"), 32), b.zext(low, "i64")), ordered, negative

    def payload(self, b: Builder, ins: list[Value], i: Value, type: str, lanes: int = 0) -> Value:
        """What moves with the key: the only payload of four bytes, or the position."""
        if self.carried and not self.counted:
            x = b.load(b.gep(ins[1], b.mul(b.mul(i, self.inner), 4)), vector("i32", lanes))
            return x if type == "i32" else b.zext(x, type)
        at = b.trunc(i, "i32") if type == "i32" else i
        return b.add(b.splat(at, lanes), b.iota("i32", lanes)) if lanes else at

    def finish(self, b: Builder, ins: list[Value], outs: list[Value], source: Value,
               first: Value | int, last: Value | int) -> None:  # fmt: skip
        """Write the keys and payloads first..last of the sorted words at `source`."""
        with b.loop(first, last) as each:
            place = b.mul(each.index, self.inner)
            word = b.load(
                b.gep(source, b.mul(each.index, self.word_bytes)), self.word, self.word_bytes
            )
            value = self.key.from_order(b, self.key_of(b, word))
            b.store(value, b.gep(outs[0], b.mul(place, self.sizes[0])))
            if len(outs) == 1:
                continue_ = None
            elif self.word == "<2 x i64>":
                continue_ = b.extract(word, 1)
            else:
                continue_ = b.and_(word, 0xFFFFFFFF)
            if continue_ is not None and self.carried:
                b.store(b.trunc(continue_, "i32"), b.gep(outs[1], b.mul(place, 4)))
            elif continue_ is not None:
                old = b.mul(continue_, self.inner)
                for k in range(1, len(outs)):
                    size = self.sizes[k]
                    x = b.load(b.gep(ins[k], b.mul(old, size)), f"i{8 * size}")
                    b.store(x, b.gep(outs[k], b.mul(place, size)))

    def restore_zeros(self, b: Builder, source: Value, target: Value) -> None:
        """Zeros, if any, in the order of the input, from the place of the first one on."""
        bits, size, step = f"i{self.key.bits}", self.sizes[0], self.sizes[0] * self.inner
        low = (1 << (self.key.bits - 1)) - 1
        with b.while_([b.const(0, "i64")]) as search:
            at = search.values[0]
            inside = b.icmp("slt", at, self.n)
            x = b.load(b.gep(target, b.mul(b.min(at, self.n - 1), step)), bits, size)
            search.test(b.and_(inside, b.icmp("ne", b.and_(x, low), 0)))
            search.yield_(b.add(at, 1))
        with b.loop(0, self.n, carried=[search.results[0]]) as each:
            x = b.load(b.gep(source, b.mul(each.index, step)), bits, size)
            zero = b.icmp("eq", b.and_(x, low), 0)
            with b.if_(zero):
                b.store(x, b.gep(target, b.mul(each.values[0], step)), size)
            each.yield_(b.add(each.values[0], b.zext(zero, "i64")))

    def insertion(self, b: Builder, words: Value, count: Value) -> None:
        """Stable, in place; for a few words."""
        size = self.word_bytes
        with b.loop(1, count) as each:
            word = b.load(b.gep(words, b.mul(each.index, size)), self.word, size)
            key = self.key_of(b, word)
            end = b.new_label("placed")
            with b.while_([each.index]) as shift:
                at = shift.values[0]
                more = b.icmp("sgt", at, 0)
                previous = b.select(more, b.sub(at, 1), at)
                other = b.load(b.gep(words, b.mul(previous, size)), self.word, size)
                shift.test(b.and_(more, b.icmp("ugt", self.key_of(b, other), key)))
                b.store(other, b.gep(words, b.mul(at, size)), size)
                shift.yield_(previous)
            b.store(word, b.gep(words, b.mul(shift.results[0], size)), size)
            b.br(end)
            b.block(end)

    def radix_pass(self, module: Module, counting: bool = False) -> str:
        """(from, to, n, shift, counts) -> whether words were moved: not when all digits agree.
        `counting`: it fills the counts itself."""
        word, size = self.word, self.word_bytes
        name = f"radix_{word.strip('<>').replace(' ', '')}" + "_counting" * counting
        if any(f.name == name for f in module.functions):
            return name
        b = Builder(module, name, [
            ("from", "ptr"), ("to", "ptr noalias"), ("n", "i64"), ("shift", "i64"),
            ("counts", "ptr")], "i1", linkage="internal")  # fmt: skip
        source, target, n, shift, counts = b.args

        def digit(x: Value) -> Value:
            if word == "<2 x i64>":
                x = b.extract(x, 0)
            amount = b.trunc(shift, "i32") if word == "i32" else shift
            part = b.and_(b.lshr(x, amount), BUCKETS - 1)
            return b.zext(part, "i64") if word == "i32" else part

        if counting:
            with b.loop(0, BUCKETS, 8) as clear:
                b.store(b.const(0, "<8 x i64>"), b.gep(counts, b.mul(clear.index, 8)), 8)
            with b.loop(0, n) as tally:
                x = b.load(b.gep(source, b.mul(tally.index, size)), word, size)
                slot = b.gep(counts, b.mul(digit(x), 8))
                b.store(b.add(b.load(slot, "i64"), 1), slot)
        # Counts become addresses.
        one = digit(b.load(source, word, size))
        alike = b.icmp("eq", b.load(b.gep(counts, b.mul(one, 8)), "i64"), n)
        with b.if_(alike):
            b.line("ret i1 false")
            b.block(b.new_label("never"))
        start = b.ptrtoint(target, "i64")
        with b.loop(0, BUCKETS, carried=[start]) as prefix:
            slot = b.gep(counts, b.mul(prefix.index, 8))
            count = b.load(slot, "i64")
            b.store(prefix.values[0], slot)
            prefix.yield_(b.add(prefix.values[0], b.mul(count, size)))

        def move(index: Value) -> None:
            x = b.load(b.gep(source, b.mul(index, size)), word, size)
            slot = b.gep(counts, b.mul(digit(x), 8))
            at = b.load(slot, "i64")
            b.store(x, b.emit(f"inttoptr i64 {at.ref} to ptr", "ptr"), size)
            b.store(b.add(at, size), slot)

        whole = b.and_(n, -4)
        with b.loop(0, whole, 4) as several:
            for k in range(4):
                move(b.add(several.index, k))
        with b.loop(whole, n) as rest:
            move(rest.index)
        b.ret(b.const(True, "i1"))
        return name
