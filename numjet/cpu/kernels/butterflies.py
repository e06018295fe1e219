"""Discrete Fourier transforms of vectors of complex numbers in scratch memory, one a lane: radices,
roots of unity, butterflies, and the passes (Stockham's, which need no reordering) made of them.

A complex number is a pair of vectors (real, imaginary); roots of unity are the same for all lanes.
For: `fft`, whose lanes are transforms side by side, and `fft_long`, whose lanes are parts of one.
What would break it: two pieces of scratch memory that overlap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numjet.cpu.builder.builder import TYPES, Builder, Value
from numjet.cpu.kernels.idioms import fused
from numjet.cpu.kernels.linalg.side_by_side import Group

Complex = tuple[Value, Value]


# The odd radices, and the largest whose butterfly is written out, without a loop.
_PRIMES = (47, 43, 41, 37, 31, 29, 23, 19, 17, 13, 11, 7, 5, 3)
_WRITTEN_OUT = 13
# Results of a larger butterfly that a round of its loop adds up, 4 sums each.
_AT_ONCE = 4


def radices(n: int) -> list[int] | None:
    """Those of the passes, in their order, whose product is n; None for other prime factors."""
    found, rest = [], n
    for prime in _PRIMES:
        while rest % prime == 0:
            found.append(prime)
            rest //= prime
    power = rest.bit_length() - 1
    if rest != 1 << power:
        return None
    return found + [4] * (power // 2) + [2] * (power % 2)


class Passes:
    """Writes the transform of `n` vectors; its roots of unity are those of `order`, a multiple."""

    def __init__(self, group: Group, n: int, order: int) -> None:
        self.g, self.n, self.roots_of_n = group, n, order // n
        self.pair = 2 * group.row  # bytes from element to element
        # Of the real and the imaginary vector; exchanged, a transform is the inverse.
        self.parts: tuple[Value | int, Value | int] = (0, group.row)
        found = roots(order)
        parts = np.stack([found.real, found.imag], 1).ravel().tolist()
        self.roots = group.module.array(parts, group.element)

    def memory(self, piece: int) -> tuple[Value, Value]:
        """The task's two pieces of scratch memory, of so many bytes."""
        g, b = self.g, self.g.b
        first = b.gep(g.ins[1], b.mul(b.udiv(g.number, g.f.scratch), 2 * piece))
        return first, b.gep(first, piece)

    def root(self, index: Value) -> Complex:
        """A root of unity in all lanes."""
        return self.entry(self.roots, index)

    def entry(self, table: Value, index: Value) -> Complex:
        """An entry of a table of complex numbers, in all lanes."""
        g, b = self.g, self.g.b
        place = b.gep(table, b.mul(index, 2 * g.size))
        return tuple(
            b.splat(b.load(b.gep(place, k * g.size), g.element), g.lanes) for k in range(2)
        )  # type: ignore[return-value]

    def get(self, base: Value, place: Value | int) -> Complex:
        """Element `place` of scratch memory."""
        at, (real, imaginary) = self.at(base, place), self.parts
        return self.g.load(self.g.b.gep(at, real)), self.g.load(self.g.b.gep(at, imaginary))

    def put(self, base: Value, place: Value | int, value: Complex) -> None:
        """Write element `place` of scratch memory."""
        at = self.at(base, place)
        for part, offset in zip(value, self.parts, strict=True):
            self.g.store(part, self.g.b.gep(at, offset))

    def at(self, base: Value, place: Value | int) -> Value:
        """Where element `place` lies."""
        b = self.g.b
        return b.gep(base, b.mul(b.value(place, "i64"), self.pair))

    def run(
        self,
        x: Value,
        y: Value,
        first: Callable[[Value], Complex] | None = None,
        last: Callable[[int, Callable[[Value], list[Complex]]], None] | None = None,
    ) -> Value:
        """Transform what lies at x, with y as other memory; where the result lies.

        first: reads element number such of what is transformed instead. last(stride, results):
        writes the loop over `stride` places j that takes results(j), which are the elements
        j, j + stride, … of the result, instead.
        """
        b, steps = self.g.b, radices(self.n) or []
        rest, stride = self.n, 1
        for number, radix in enumerate(steps):
            rest //= radix

            def read(place: Value, base: Value = x, number: int = number) -> Complex:
                return first(place) if first and number == 0 else self.get(base, place)

            def results(place: Value, radix: int = radix, read: Callable = read,
                        by: int = rest * stride) -> list[Complex]:  # fmt: skip
                return butterfly(b, [read(b.add(place, k * by)) for k in range(radix)])

            if number == len(steps) - 1 and last is not None:
                last(stride, results)
                return x
            with b.loop(0, rest) as outer:
                p = outer.index
                step = stride * self.roots_of_n
                # Where `rest` is 1, every root is.
                turns = [self.root(b.mul(p, k * step)) for k in range(1, radix) if rest > 1]
                here, there = b.mul(p, stride), b.mul(p, radix * stride)

                def one(j: Value | int, here: Value = here, there: Value = there,
                        turns: list[Complex] = turns, to: Value = y, by: int = stride,
                        results: Callable = results) -> None:  # fmt: skip
                    for k, value in enumerate(results(b.add(here, j))):
                        turned = times(b, value, turns[k - 1]) if k and turns else value
                        self.put(to, b.add(there, b.add(b.const(k * by, "i64"), j)), turned)

                if stride == 1:
                    one(0)
                else:
                    with b.loop(0, stride) as inner:
                        one(inner.index)
            stride, x, y = radix * stride, y, x
        return x


def roots(order: int, powers: np.ndarray | None = None) -> np.ndarray:
    """e^(-2πik/order) for each k of `powers` (all), turned from angles of at most an eighth of the
    circle."""
    k = 4 * (np.arange(order) if powers is None else powers)
    quarter = (2 * k + order) // (2 * order)
    # Of more digits than double precision has where NumPy has them.
    angle = (k - quarter * order) / np.longdouble(order) * (np.arccos(np.longdouble(0)))
    found = (np.cos(angle) - 1j * np.sin(angle)).astype(np.complex128)
    return found * np.array([1, -1j, -1, 1j])[quarter % 4]


def add(b: Builder, v: Complex, w: Complex) -> Complex:
    return b.add(v[0], w[0]), b.add(v[1], w[1])


def sub(b: Builder, v: Complex, w: Complex) -> Complex:
    return b.sub(v[0], w[0]), b.sub(v[1], w[1])


def times(b: Builder, v: Complex, w: Complex) -> Complex:
    """The product of complex numbers."""
    (a, c), (d, e) = v, w
    return fused(b, a, d, b.neg(b.mul(c, e))), fused(b, a, e, b.mul(c, d))


def butterfly(b: Builder, values: list[Complex]) -> list[Complex]:
    """The transform of a few values."""
    n = len(values)
    if n == 2:
        return [add(b, *values), sub(b, *values)]
    if n > _WRITTEN_OUT:
        return _looped_butterfly(b, values)
    if n % 2:
        return _odd_butterfly(b, values)
    one, two, three, four = values
    s, d = add(b, one, three), sub(b, one, three)
    t, (u, v) = add(b, two, four), sub(b, two, four)
    turned = (b.neg(v), u)  # i times the difference
    return [add(b, s, t), sub(b, d, turned), sub(b, s, t), add(b, d, turned)]


def _odd_butterfly(b: Builder, values: list[Complex]) -> list[Complex]:
    """Values k and n - k have roots that are conjugate: their sum goes with the cosines, their
    difference with the sines."""
    n, first = len(values), values[0]
    half = range(1, n // 2 + 1)
    sums = [add(b, values[k], values[n - k]) for k in half]
    differences = [sub(b, values[k], values[n - k]) for k in half]
    results = [first] * n
    for pair in sums:
        results[0] = add(b, results[0], pair)
    for j in half:
        turns = roots(n, np.array([j * k % n for k in half]))
        parts = []
        for part in range(2):
            along, across = first[part], None
            for turn, s, d in zip(turns, sums, differences, strict=True):
                along = fused(b, s[part], b.const(turn.real, along.type), along)
                sine = b.const(-turn.imag, along.type)
                across = fused(b, d[part], sine, across) if across else b.mul(d[part], sine)
            parts.append((along, across))
        (re, re_), (im, im_) = parts
        results[j] = b.add(re, im_), b.sub(im, re_)
        results[n - j] = b.sub(re, im_), b.add(im, re_)
    return results


def _looped_butterfly(b: Builder, values: list[Complex]) -> list[Complex]:
    """`_odd_butterfly` with sums and differences on the stack, a few results a round."""
    n, first, kind = len(values), values[0], values[0][0].type
    lanes, element, _, bits, _ = TYPES[kind]
    size, row, half = bits // 8, max(lanes, 1) * bits // 8, n // 2
    pairs, made = b.alloca(kind, 4 * half), b.alloca(kind, 4 * half)
    total = first
    for k in range(half):
        one, other = values[k + 1], values[n - k - 1]
        pair = add(b, one, other)
        total = add(b, total, pair)
        for part, value in enumerate((*pair, *sub(b, one, other))):
            b.store(value, b.gep(pairs, (4 * k + part) * row), row)
    # Cosine and sine of each result and pair, those of a round's results beside each other; the
    # last round begins early.
    starts = [*range(0, half - _AT_ONCE, _AT_ONCE), half - _AT_ONCE]
    powers = [(j + 1) * (k + 1) % n for at in starts for k in range(half)
              for j in range(at, at + _AT_ONCE)]  # fmt: skip
    turns = roots(n, np.array(powers))
    table = b.module.array(np.stack([turns.real, -turns.imag], 1).ravel().tolist(), element)
    per_round = half * _AT_ONCE * 2 * size
    with b.loop(0, len(starts)) as each:
        here = b.gep(table, b.mul(each.index, per_round))
        sums = [*first, *[b.const(0.0, kind)] * 2] * _AT_ONCE
        with b.loop(0, half, carried=sums) as along:
            pair_at = b.gep(pairs, b.mul(along.index, 4 * row))
            turn_at = b.gep(here, b.mul(along.index, _AT_ONCE * 2 * size))
            parts = [b.load(b.gep(pair_at, k * row), kind, row) for k in range(4)]
            added = []
            for k, value in enumerate(along.values):
                at = b.gep(turn_at, (k // 4 * 2 + k % 4 // 2) * size)
                turn = b.splat(b.load(at, element, size), lanes)
                added.append(fused(b, parts[k % 4], turn, value))
            along.yield_(*added)
        to = b.gep(made, b.mul(b.min(b.mul(each.index, _AT_ONCE), half - _AT_ONCE), 4 * row))
        for k in range(_AT_ONCE):
            re, im, re_, im_ = along.results[4 * k : 4 * k + 4]
            found = b.add(re, im_), b.sub(im, re_), b.sub(re, im_), b.add(im, re_)
            for part, value in enumerate(found):
                b.store(value, b.gep(to, (4 * k + part) * row), row)
    results = [total] * n
    for j in range(half):
        parts = [b.load(b.gep(made, (4 * j + part) * row), kind, row) for part in range(4)]
        results[j + 1], results[n - j - 1] = (parts[0], parts[1]), (parts[2], parts[3])
    return results
