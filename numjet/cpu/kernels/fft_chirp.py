"""Fourier transforms of lengths with large prime factors, as convolutions (Bluestein's algorithm).

With c(k) the root of unity of order 2n to the power k², element k of a transform is c(k) times the
convolution of x·c with the conjugate of c. Convolutions are products of transforms of a length that
`fft_long` does, twice as large or more. `chirp` writes c and its conjugate, laid out for the
convolution, once for all rows; `pad` writes x·c with zeros behind it, `product` multiplies
spectra, `collect` what comes of it by c. Odd numbers of real ones are read by `widen` and of half
their spectrum by `mirror`; `half` and `reals` write them. Symbol
`nj_chirp_<part>_<type>_<n>_<length>`, what the thread pool runs over blocks. For: `fft`. What would
break it: squares that 64 bits do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels import fft_long, libraries
from numjet.cpu.kernels.butterflies import Complex, times
from numjet.cpu.kernels.fft_long import FIELDS, Part, Parts, powers
from numjet.cpu.kernels.idioms import lanes_of, size_of
from numjet.cpu.kernels.linalg.side_by_side import Group
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

PREFIX = "nj_chirp_"
# Numbers that a group takes.
_BLOCK = 1024
# Numbers below which one thread does all, and up to which c and its spectrum are computed with the
# program: a third of a transform of one row.
_PARALLEL, _KNOWN = 8192, 4096


def padded(n: int, element: str) -> int | None:
    """The length of the convolutions of a transform of n numbers, or None where there is none."""
    lanes = lanes_of(element)
    if lanes < 2:
        return None
    # Both factors are whole vectors, so that no lane idles.
    unit, best = lanes * lanes, None
    least = -(-(2 * n - 1) // unit)
    for odd in (1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 49, 63, 75, 81, 105, 125):
        found = unit * odd << max(-(-least // odd) - 1, 0).bit_length()
        if (best is None or found < best) and fft_long.factors(found, element) is not None:
            best = found
    return best


def step(
    build: Values, element: str, x: Val, out: Val, n: int, inverse: bool, real: bool,
    odd: bool = False,
) -> Step:
    """The step that transforms every row of x, of n complex numbers or of 2·n real ones, for an n
    that can be `padded`. odd: of n real ones."""
    length = padded(n, element)
    assert length is not None
    count = math.prod(out.shape[:-1])
    alone = n < _PARALLEL
    parts, own = Parts(element, length, alone), Parts(element, n, alone)
    parts.start("first", "second")
    if real:
        own.start(("unfold", "fold")[inverse])
    reads, writes, written = "pad", "collect", n
    if odd and inverse:
        reads, writes = "mirror", "reals"
    elif odd:
        reads, writes, written = "widen", "half", n // 2 + 1
    symbols = {name: f"{PREFIX}{name}_{element}_{n}_{length}"
               for name in ((), ("chirp",))[n > _KNOWN] + (reads, "product", writes)}  # fmt: skip
    libraries.start(*symbols.values())
    number = 2 * size_of(element)
    c_bytes, b_bytes = (-(-k * number // 64) * 64 for k in (n, length))
    known = [build.constant(each) for each in chirps(n, length, element)] if n <= _KNOWN else []
    memory = (1 if known else 2) * b_bytes + (0 if known else c_bytes) + parts.nbytes
    scratch = build.temporary(Val((memory,), np.dtype(np.uint8)))
    x_bytes, out_bytes = x.nbytes // count, out.nbytes // count

    def run(b: Builder, name: str, elements: int, ins: list[Value], outs: list[Value]) -> None:
        blocks = -(-elements // _BLOCK)
        share = blocks if alone else max(1, blocks // (4 * host.cpu_count()))
        fft_long.run(b, symbols[name], blocks, share, ins, outs, inverse)

    def emit(b: Builder, ins: list[Value], outs: list[Value]) -> None:
        line, held = outs[1], b.gep(outs[1], b_bytes)
        if known:
            c, spectrum = ins[1:]
        else:
            c, spectrum = b.gep(held, parts.nbytes), b.gep(held, parts.nbytes + c_bytes)
            run(b, "chirp", length, [c], [c, spectrum])
            parts.transform(b, spectrum, spectrum, held, False)
        with b.loop(0, count) as each:
            source = b.gep(ins[0], b.mul(each.index, x_bytes))
            target = b.gep(outs[0], b.mul(each.index, out_bytes))
            if real and inverse:
                own.call(b, "fold", source, target, held, inverse)
                source = target
            run(b, reads, length, [source, c], [line])
            parts.transform(b, line, line, held, False)
            run(b, "product", length, [line, spectrum], [line])
            parts.transform(b, line, line, held, True)
            run(b, writes, written, [line, c], [target])
            if real and not inverse:
                own.call(b, "unfold", target, target, held, inverse)

    work = (1 + 2 * count) * length * length.bit_length()
    return SpecialStep("fft", [x, *known], [out, scratch], emit, flops=5 * work)


def chirps(n: int, length: int, element: str) -> list[np.ndarray]:
    """c, and the spectrum of its conjugate."""
    c = powers(2 * n, [k * k for k in range(n)])
    line = np.zeros(length, np.clongdouble)
    line[:n] = c.conj()
    line[length - n + 1 :] = c.conj()[:0:-1]
    dtype = np.complex64 if element == "float" else np.complex128
    return [c.astype(dtype), np.fft.fft(line).astype(dtype)]


class _Chirp(Part):
    """Writes a part: what is done with one block of numbers."""

    def __init__(self, group: Group, n: int, length: int) -> None:
        super().__init__(group, 1, n)
        self.n, self.length = n, length

    def at(self, base: Value, place: Value) -> Value:
        """Where a number lies."""
        return self.g.b.gep(base, self.g.b.mul(place, self.complex))

    def block(self, elements: int) -> tuple[Value, Value]:
        """The first number of the group's, and the one behind its last."""
        b = self.g.b
        begin = b.mul(self.g.number, _BLOCK)
        return begin, b.min(b.add(begin, _BLOCK), elements)

    def store(self, base: Value, place: Value, value: Complex) -> None:
        """Write one number."""
        g, b = self.g, self.g.b
        for k, part in enumerate(value):
            b.store(part, b.gep(self.at(base, place), k * g.size), g.size)

    def each(
        self, begin: Value, stop: Value, ins: list[Value], out: Value,
        result: Callable[..., Complex],
    ) -> None:  # fmt: skip
        """Write result(*numbers) for the numbers of `ins` in a range, as vectors and one by one."""
        g, b = self.g, self.g.b
        whole = b.add(begin, b.and_(b.max(b.sub(stop, begin), 0), -g.lanes))
        with b.loop(begin, whole, g.lanes) as k:
            values = [self.apart(self.at(x, k.index)) for x in ins]
            self.join(result(*values), self.at(out, k.index))
        with b.loop(whole, stop) as k:
            self.store(out, k.index, result(*[self.number(x, k.index) for x in ins]))

    def chirp(self) -> None:
        """c, and its conjugate with its mirror image at the other end and zeros between."""
        g, b, n = self.g, self.g.b, self.n
        begin, stop = self.block(self.length)
        order = 2 * n
        bits = order.bit_length() // 2
        small = self.numbers(powers(order, range(1 << bits)))
        large = self.numbers(powers(order, [a << bits for a in range(-(-order // (1 << bits)))]))
        zero = b.const(0.0, g.element)
        with b.loop(begin, stop) as each:
            # The distance from the beginning, around the end.
            k = b.min(each.index, b.sub(self.length, each.index))
            inside = b.icmp("slt", k, n)
            power = b.urem(b.mul(k, k), order)
            power = b.select(inside, power, b.const(0, "i64"))
            re, im = times(b, self.number(small, b.and_(power, (1 << bits) - 1)),
                           self.number(large, b.lshr(power, bits)))  # fmt: skip
            with b.if_(b.icmp("slt", each.index, n)):
                self.store(g.outs[0], each.index, (re, im))
            conjugate = b.select(inside, re, zero), b.select(inside, b.neg(im), zero)
            self.store(g.outs[1], each.index, conjugate)

    def padded(self, write: Callable[[Value, Value], None]) -> None:
        """What `write` writes from the first number to behind the last one, zeros behind them."""
        g, b = self.g, self.g.b
        begin, stop = self.block(self.length)
        middle = b.max(b.min(stop, self.n), begin)
        write(begin, middle)
        with b.loop(middle, stop) as k:
            zero = b.const(0.0, g.element)
            self.store(g.outs[0], k.index, (zero, zero))

    def turned(self, x: Complex, c: Complex) -> Complex:
        """x·c, of inverse transforms the conjugate of x times c."""
        b = self.g.b
        _, sign = self.direction(1.0)
        one = sign if x[1].type == self.g.kind else b.extract(sign, 0)
        return times(b, (x[0], b.mul(x[1], one)), c)

    def pad(self) -> None:
        """x·c, and zeros behind it."""
        x, c = self.g.ins[:2]
        self.padded(lambda k, stop: self.each(k, stop, [x, c], self.g.outs[0], self.turned))

    def widen(self) -> None:
        """The same of real numbers."""
        g, b = self.g, self.g.b
        x, c = g.ins[:2]

        def write(begin: Value, stop: Value) -> None:
            with b.loop(begin, stop) as k:
                number = b.load(b.gep(x, b.mul(k.index, g.size)), g.element, g.size)
                re, im = self.number(c, k.index)
                self.store(g.outs[0], k.index, (b.mul(number, re), b.mul(number, im)))

        self.padded(write)

    def mirror(self) -> None:
        """The same of the first half of a spectrum, the other half of which is its conjugate."""
        g, b = self.g, self.g.b
        x, c = g.ins[:2]

        def write(begin: Value, stop: Value) -> None:
            with b.loop(begin, stop) as k:
                first = b.icmp("sle", k.index, self.n // 2)
                place = b.select(first, k.index, b.sub(self.n, k.index))
                re, im = self.number(x, place)
                im = b.select(first, im, b.neg(im))
                self.store(g.outs[0], k.index, self.turned((re, im), self.number(c, k.index)))

        self.padded(write)

    def product(self) -> None:
        """The product of spectra."""
        g, b = self.g, self.g.b
        begin, stop = self.block(self.length)
        self.each(begin, stop, [g.ins[0], g.ins[1]], g.outs[0], lambda x, y: times(b, x, y))

    def scaled(self, x: Complex, c: Complex) -> Complex:
        """x·c, of inverse transforms its conjugate over n."""
        b = self.g.b
        scales = self.direction(1.0 / self.n)
        re, im = times(b, x, c)
        if re.type != self.g.kind:
            scales = b.extract(scales[0], 0), b.extract(scales[1], 0)
        return b.mul(re, scales[0]), b.mul(im, scales[1])

    def collect(self) -> None:
        """The transform."""
        begin, stop = self.block(self.n)
        self.each(begin, stop, list(self.g.ins[:2]), self.g.outs[0], self.scaled)

    def half(self) -> None:
        """The first half of the transform of real numbers."""
        begin, stop = self.block(self.n // 2 + 1)
        self.each(begin, stop, list(self.g.ins[:2]), self.g.outs[0], self.scaled)

    def reals(self) -> None:
        """The transform of what is the conjugate of its mirror image."""
        g, b = self.g, self.g.b
        begin, stop = self.block(self.n)
        with b.loop(begin, stop) as k:
            re, _ = self.scaled(self.number(g.ins[0], k.index), self.number(g.ins[1], k.index))
            b.store(re, b.gep(g.outs[0], b.mul(k.index, g.size)), g.size)


def _module(name: str) -> Module:
    part, element, n, length = name.split("_")
    group = Group(element, FIELDS)

    def body(group: Group) -> None:
        getattr(_Chirp(group, int(n), int(length)), part)()

    return group.write(body)


libraries.provide(PREFIX, _module, direct=lambda rest: True)
