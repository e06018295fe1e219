"""One long Fourier transform after another, by rows and columns (Bailey's algorithm), of lengths
without prime factors beyond 47.

The n = n1·n2 numbers are a matrix of n1 rows. `first` transforms its columns, as many side by side
as a vector has lanes, turns element k of column j by the root of unity to the power j·k, and writes
each group to a place of its own, one after the other. `second` reads squares of lanes of those and
transforms what has become of the rows; lane by lane they are neighbours of the result. So memory is
read twice and written twice, in whole lines, and what lies between is in the caches. Real numbers
are complex ones of half their number; `unfold` makes half a spectrum of those in place, `fold` the
reverse. Symbol `nj_fourier_<part>_<type>_<n1>_<n2>`, what the thread pool runs over groups; where
there are many transforms it runs over those instead.
For: `fft`. What would break it: factors with fewer numbers than lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.graph.nodes import Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.butterflies import Complex, Passes, radices, roots, times
from numjet.cpu.kernels.idioms import lanes_of, parallel_call, size_of, table, transpose_block
from numjet.cpu.kernels.linalg.side_by_side import Group
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

PREFIX = "nj_fourier_"
# Of the factors: beyond it the scratch memory of a group does not fit a second-level cache.
LONGEST = 8192
FIELDS = ("inverse", "scratch")
# Butterflies of all groups below which the pool costs more than it brings.
_PARALLEL = 10_000
# Numbers of a transform that one thread does alone where there are many.
_APART = 1 << 16
# Pairs of a spectrum that a task folds or unfolds at a time.
_BLOCK = 1024


def factors(n: int, element: str) -> tuple[int, int] | None:
    """n1 and n2, or None for lengths that are not transformed so."""
    lanes = lanes_of(element)
    if lanes < 2 or radices(n) is None:
        return None
    best, least = None, math.inf
    for one in range(lanes, min(n // lanes, LONGEST) + 1):
        two = n // one
        if n % one or two > LONGEST:
            continue
        # Groups that begin early transform some numbers twice; lines that two groups share are
        # read or written twice; the less a group holds the faster its memory is.
        groups = -(-one // lanes) * lanes / one + -(-two // lanes) * lanes / two
        shared = sum((k * 2 * size_of(element)) % 64 != 0 for k in (one, two))
        cost = groups + 0.2 * shared + 0.1 * math.log2(max(one / two, two / one))
        if cost < least:
            best, least = (one, two), cost
    return best


class Parts:
    """The parts of a transform of n complex numbers, or of 2·n real ones: how many groups each has,
    and how many of them a task takes. n: one that has `factors`; others can be folded alone."""

    def __init__(self, element: str, n: int, apart: bool) -> None:
        """apart: one thread does all."""
        self.element, self.threads = element, 1 if apart else host.cpu_count()
        self.lanes, self.size = lanes_of(element), size_of(element)
        split = factors(n, element)
        self.n1, self.n2 = split or (1, n)
        self._parts: dict[str, tuple[str, int, int]] = {}
        if split:
            piece = _piece(max(split), self.lanes * self.size)
            tasks = 1
            for name, one, two in (("first", *split), ("second", *split[::-1])):
                groups = -(-two // self.lanes)
                tasks = max(tasks, self._part(name, groups, one * max(one.bit_length() - 1, 1)))
            groups = -(-self.n2 // self.lanes)
            self.own = 2 * piece * tasks  # bytes: of the groups that are at work
            self.nbytes = self.own + groups * self.lanes * self.n1 * 2 * self.size
        for name in ("fold", "unfold"):
            self._part(name, -(-(n // 2) // _BLOCK), _BLOCK)

    def _part(self, name: str, groups: int, work: int) -> int:
        """How many tasks there are."""
        share = groups
        if self.threads > 1 and groups * work >= _PARALLEL:
            share = -(-groups // min(groups, 4 * self.threads))
        symbol = f"{PREFIX}{name}_{self.element}_{self.n1}_{self.n2}"
        self._parts[name] = symbol, groups, share
        return -(-groups // share)

    def start(self, *names: str) -> None:
        """Begin to make what is called."""
        libraries.start(*[self._parts[name][0] for name in names])

    def call(
        self, b: Builder, name: str, one: Value, two: Value, held: Value, inverse: bool
    ) -> None:
        """Write the call of a part, from `one` to `two`, with `held` as scratch memory."""
        run(b, *self._parts[name], [one, held], [two], inverse)

    def transform(self, b: Builder, one: Value, two: Value, held: Value, inverse: bool) -> None:
        """Write the calls of a complex transform; two may be one."""
        between = b.gep(held, self.own)
        self.call(b, "first", one, between, held, inverse)
        self.call(b, "second", between, two, held, inverse)


def run(
    b: Builder, symbol: str, groups: int, share: int, ins: list[Value], outs: list[Value],
    inverse: bool,
) -> None:  # fmt: skip
    """Write the call of a library over groups, so many a task."""
    context = b.alloca("ptr", 9)
    pointers = [*ins, *[ins[0]] * (4 - len(ins)), *outs, *[outs[0]] * (4 - len(outs))]
    for k, pointer in enumerate([table(b.module, [int(inverse), share]), *pointers]):
        b.store(pointer, b.gep(context, 8 * k), 8)
    b.module.declare(symbol, "void", ("ptr", "i64", "i64"))
    many = b.const(groups, "i64")
    if groups > share:
        b.call("nj_parallel_for", "void", Value(f"@{symbol}", "ptr"), context, many,
               b.const(share, "i64"))  # fmt: skip
    else:
        b.call(symbol, "void", context, b.const(0, "i64"), many)


def step(build: Values, element: str, x: Val, out: Val, n: int, inverse: bool, real: bool) -> Step:
    """The step that transforms every row of x, of n complex numbers or of 2·n real ones, for an n
    that has `factors`."""
    count = math.prod(out.shape[:-1])
    threads = host.cpu_count()
    apart = count >= 2 * threads and n <= _APART
    parts = Parts(element, n, apart)
    parts.start("first", "second", *[("unfold", "fold")[inverse]] * real)
    grain = -(-count // (4 * threads)) if apart else count
    memory = parts.nbytes * (-(-count // grain) if apart else 1)
    scratch = build.temporary(Val((memory,), np.dtype(np.uint8)))
    x_bytes, out_bytes = x.nbytes // count, out.nbytes // count

    def row(b: Builder, source: Value, target: Value, held: Value) -> None:
        """One transform, with `held` as scratch memory."""
        if real and inverse:
            parts.call(b, "fold", source, target, held, inverse)
            source = target
        parts.transform(b, source, target, held, inverse)
        if real and not inverse:
            parts.call(b, "unfold", target, target, held, inverse)

    def rows(b: Builder, pointers: list[Value], begin: Value, end: Value) -> None:
        source, target, held = pointers
        if apart:
            held = b.gep(held, b.mul(b.udiv(begin, grain), parts.nbytes))
        with b.loop(begin, end) as each:
            row(b, b.gep(source, b.mul(each.index, x_bytes)),
                b.gep(target, b.mul(each.index, out_bytes)), held)  # fmt: skip

    def emit(b: Builder, ins: list[Value], outs: list[Value]) -> None:
        if count == 1:
            row(b, ins[0], outs[0], outs[1])
        else:
            parallel_call(b, rows, [ins[0], outs[0], outs[1]], count, grain)

    work = count * n * max(n.bit_length() - 1, 1)
    return SpecialStep("fft", [x], [out, scratch], emit, flops=5 * work)


def _piece(n: int, row: int) -> int:
    """Bytes of a piece of scratch memory for n numbers, no multiple of a page."""
    return -(-(2 * n * row) // 4096) * 4096 + 320


class Part:
    """Writes a part of a transform: what is done with one group."""

    def __init__(self, group: Group, n1: int, n2: int) -> None:
        self.g, self.n1, self.n2 = group, n1, n2
        self.complex = 2 * group.size  # bytes of a number in memory

    def direction(self, scale: float) -> tuple[Value, Value]:
        """What real and imaginary parts are multiplied by: 1 and 1, of inverse transforms `scale`
        and -scale. The conjugates' transform is the inverse's conjugate."""
        g, b = self.g, self.g.b
        backward, one = b.icmp("ne", g.f.inverse, 0), b.const(1.0, g.element)
        re, im = (
            b.splat(b.select(backward, b.const(x, g.element), one), g.lanes)
            for x in (scale, -scale)
        )
        return re, im

    def apart(self, at: Value) -> Complex:
        """A vector of numbers that are neighbours in memory."""
        g, b = self.g, self.g.b
        low, high = (b.load(b.gep(at, k * g.row), g.kind, g.size) for k in range(2))
        re, im = (b.shuffle(low, high, range(k, 2 * g.lanes, 2)) for k in range(2))
        return re, im

    def join(self, value: Complex, at: Value) -> None:
        """Write a vector of numbers."""
        g, b, half = self.g, self.g.b, self.g.lanes
        joined = [k // 2 + half * (k % 2) for k in range(2 * half)]
        for k in range(2):
            b.store(b.shuffle(*value, joined[k * half : (k + 1) * half]), b.gep(at, k * g.row),
                    g.size)  # fmt: skip

    def first(self) -> None:
        """Transform columns, turn them, and write them side by side."""
        g, b, n1, n2 = self.g, self.g.b, self.n1, self.n2
        passes = Passes(g, n1, n1)
        x, y = passes.memory(_piece(max(n1, n2), g.row))
        start = b.min(b.mul(g.number, g.lanes), n2 - g.lanes)
        source, (_, sign) = b.gep(g.ins[0], b.mul(start, self.complex)), self.direction(1.0)
        target = b.gep(g.outs[0], b.mul(g.number, n1 * passes.pair))

        def read(place: Value) -> Complex:
            re, im = self.apart(b.gep(source, b.mul(place, n2 * self.complex)))
            return re, b.mul(im, sign)

        radix = (radices(n1) or [1])[-1]
        stride = n1 // radix
        # Element k·stride + a·width + c is turned by the product of the turn of c and that of
        # k·stride + a·width, which are tables of the group's.
        width = 1 << (max(n1.bit_length() - 1, 1) // 2)
        steps = -(-stride // width)
        coarse_powers = [k * stride + a * width for a in range(steps) for k in range(radix)]
        turns = self.turns(start, [*range(width), *coarse_powers])

        def last(stride: int, results: Callable[[Value], list[Complex]]) -> None:
            with b.loop(0, steps) as block:
                begin = b.mul(block.index, width)
                coarse = [
                    passes.get(turns, b.add(b.mul(block.index, radix), width + k))
                    for k in range(radix)
                ]
                with b.loop(begin, b.min(b.add(begin, width), stride)) as each:
                    fine = passes.get(turns, b.sub(each.index, begin))
                    for k, value in enumerate(results(each.index)):
                        turned = times(b, value, times(b, coarse[k], fine))
                        passes.put(target, b.add(each.index, k * stride), turned)

        passes.run(x, y, read, last)

    def turns(self, start: Value, exponents: list[int]) -> Value:
        """A table of the roots of unity of n1·n2 to these powers of the columns from `start` on, a
        column a lane."""
        g, b, n = self.g, self.g.b, self.n1 * self.n2
        # Any root is the product of one of few with small powers and one of few with large ones.
        bits = n.bit_length() // 2
        wide = -(-n // (1 << bits))
        small, large = (self.numbers(powers(n, k)) for k in
                        (range(1 << bits), [a << bits for a in range(wide)]))  # fmt: skip
        along = powers(n, [p * lane for p in exponents for lane in range(g.lanes)])
        parts = np.stack([along.real, along.imag]).reshape(2, -1, g.lanes).swapaxes(0, 1)
        lanes = g.module.array(parts.ravel().tolist(), g.element)
        power_of = g.module.array(exponents, "i64")
        with b.loop(0, len(exponents)) as each:
            power = b.mul(start, b.load(b.gep(power_of, b.mul(each.index, 8)), "i64", 8))
            one = self.number(small, b.and_(power, (1 << bits) - 1))
            two = self.number(large, b.lshr(power, bits))
            re, im = times(b, one, two)
            offset = b.mul(each.index, 2 * g.row)
            at = b.gep(lanes, offset)
            here = g.load(at), g.load(b.gep(at, g.row))
            both = times(b, here, (b.splat(re, g.lanes), b.splat(im, g.lanes)))
            for k, part in enumerate(both):
                g.store(part, b.gep(b.gep(g.scratch, offset), k * g.row))
        return g.scratch

    def numbers(self, values: np.ndarray) -> Value:
        """A table of complex numbers."""
        parts = np.stack([values.real, values.imag], 1).ravel().tolist()
        return self.g.module.array(parts, self.g.element)

    def number(self, base: Value, place: Value) -> Complex:
        """An entry of such a table."""
        g, b = self.g, self.g.b
        at = b.gep(base, b.mul(place, self.complex))
        return b.load(at, g.element), b.load(b.gep(at, g.size), g.element)

    def second(self) -> None:
        """Transform rows; their results are neighbours in memory."""
        g, b, n1, n2 = self.g, self.g.b, self.n1, self.n2
        passes = Passes(g, n2, n2)
        x, y = passes.memory(_piece(max(n1, n2), g.row))
        start = b.min(b.mul(g.number, g.lanes), n1 - g.lanes)
        with b.loop(0, -(-n2 // g.lanes)) as block:
            at = b.gep(g.ins[0], b.mul(b.add(b.mul(block.index, n1), start), passes.pair))
            to = b.min(b.mul(block.index, g.lanes), n2 - g.lanes)
            for part in range(2):
                lines = [g.load(b.gep(at, k * passes.pair + part * g.row)) for k in range(g.lanes)]
                for k, line in enumerate(transpose_block(b, lines)):
                    g.store(line, b.gep(passes.at(x, b.add(to, k)), part * g.row))
        along, across = self.direction(1.0 / (n1 * n2))

        def last(stride: int, results: Callable[[Value], list[Complex]]) -> None:
            with b.loop(0, stride) as each:
                for k, (re, im) in enumerate(results(each.index)):
                    place = b.add(start, b.mul(b.add(each.index, k * stride), n1))
                    to = b.gep(g.outs[0], b.mul(place, self.complex))
                    self.join((b.mul(re, along), b.mul(im, across)), to)

        passes.run(x, y, None, last)

    # ---- halves of spectra

    def unfold(self) -> None:
        """The transform of half as many complex numbers to half the spectrum of real ones, in
        place. With the transforms E and O of the numbers at even and odd places, element k is
        E + w O and element n - k its conjugate with -w, for w a root of unity."""

        def ends(first: Complex, beyond: Complex) -> tuple[Complex, Complex]:
            b, zero = self.g.b, self.g.b.const(0.0, self.g.element)
            return (b.add(*first), zero), (b.sub(*first), zero)

        def pair(one: Complex, two: Complex, root: Complex) -> tuple[Complex, Complex]:
            b = self.g.b
            (re, im), (re_, im_) = ((b.mul(v, 0.5) for v in x) for x in (one, two))
            even = b.add(re, re_), b.sub(im, im_)
            odd = times(b, (b.add(im, im_), b.sub(re_, re)), root)
            return (b.add(even[0], odd[0]), b.add(even[1], odd[1])), (
                b.sub(even[0], odd[0]), b.sub(odd[1], even[1]))  # fmt: skip

        self._pairs(ends, pair)

    def fold(self) -> None:
        """Half a spectrum to what is transformed backwards to real numbers, two by two: `unfold`
        backwards. The imaginary parts of the first and the last element do not count."""

        def ends(first: Complex, last: Complex) -> tuple[Complex, Complex | None]:
            b = self.g.b
            one, two = (b.mul(x[0], 0.5) for x in (first, last))
            return (b.add(one, two), b.sub(one, two)), None

        def pair(one: Complex, two: Complex, root: Complex) -> tuple[Complex, Complex]:
            b = self.g.b
            (re, im), (re_, im_) = ((b.mul(v, 0.5) for v in x) for x in (one, two))
            even = b.add(re, re_), b.sub(im, im_)
            odd = times(b, (b.sub(re, re_), b.add(im, im_)), (root[0], b.neg(root[1])))
            return (b.sub(even[0], odd[1]), b.add(even[1], odd[0])), (
                b.add(even[0], odd[1]), b.sub(odd[0], even[1]))  # fmt: skip

        self._pairs(ends, pair)

    def _pairs(self, ends: Callable, pair: Callable) -> None:
        """Elements k and n - k for all k of a block; those that are left over one by one."""
        g, b, n = self.g, self.g.b, self.n1 * self.n2
        every = n // 2
        source, target = g.ins[0], g.outs[0]
        begin = b.mul(g.number, _BLOCK)
        stop = b.min(b.add(begin, _BLOCK), every)
        blocks = -(-every // _BLOCK)
        coarse = self.number(self.numbers(powers(2 * n, [1 + k * _BLOCK for k in range(blocks)])),
                             g.number)  # fmt: skip
        fine = powers(2 * n, range(min(_BLOCK, every)))
        fine_re, fine_im = (g.module.array(v.tolist(), g.element) for v in (fine.real, fine.imag))
        backwards = range(g.lanes - 1, -1, -1)

        def at(base: Value, place: Value | int) -> Value:
            return b.gep(base, b.mul(b.value(place, "i64"), self.complex))

        def load(base: Value, place: Value) -> Complex:
            return self.apart(at(base, place))

        def turned(value: Complex) -> Complex:
            re, im = (b.shuffle(x, None, backwards) for x in value)
            return re, im

        def root(place: Value, by: Complex, kind: str) -> Complex:
            offset = b.mul(b.sub(place, begin), g.size)
            re, im = (b.load(b.gep(x, offset), kind, g.size) for x in (fine_re, fine_im))
            return times(b, by, (re, im))

        def store(place: Value | int, value: Complex) -> None:
            for k, part in enumerate(value):
                b.store(part, b.gep(at(target, place), k * g.size), g.size)

        with b.if_(b.icmp("eq", begin, 0)):
            one, two = ends(*[self.number(source, b.const(place, "i64")) for place in (0, n)])
            store(0, one)
            if two is not None:
                store(n, two)
        whole = b.add(begin, b.and_(b.sub(stop, begin), -g.lanes))
        splat = b.splat(coarse[0], g.lanes), b.splat(coarse[1], g.lanes)
        with b.loop(begin, whole, g.lanes) as each:
            k, mirror = b.add(each.index, 1), b.sub(n - g.lanes, each.index)
            values = load(source, k), turned(load(source, mirror))
            low, high = pair(*values, root(each.index, splat, g.kind))
            self.join(low, at(target, k))
            self.join(turned(high), at(target, mirror))
        with b.loop(whole, stop) as each:
            k, mirror = b.add(each.index, 1), b.sub(n - 1, each.index)
            values = self.number(source, k), self.number(source, mirror)
            low, high = pair(*values, root(each.index, coarse, g.element))
            store(k, low)
            store(mirror, high)


def powers(order: int, exponents: range | list[int]) -> np.ndarray:
    """e^(-2πi/order) to these powers."""
    return roots(order, np.array(exponents) % order)


def _module(name: str) -> Module:
    part, element, n1, n2 = name.split("_")
    group = Group(element, FIELDS)

    def body(group: Group) -> None:
        getattr(Part(group, int(n1), int(n2)), part)()

    return group.write(body)


libraries.provide(PREFIX, _module, direct=lambda rest: True)
