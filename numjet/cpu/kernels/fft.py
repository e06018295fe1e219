"""Fourier transforms: which way each axis goes, and those of many rows or columns side by side, one
a lane.

A group of transforms is brought into vectors, a pair (real, imaginary) for each element, and goes
through passes (Stockham's, which need no reordering) of the radices of `radices` between two pieces
of scratch memory; roots of unity are the same for all lanes. Lengths with a prime factor beyond 47
are convolutions with a chirp, between passes of another length, as in `fft_chirp`. A real row of
even length is a complex one of half its length, so that no row touches another's results; one of
odd length has imaginary parts of zero. Several axes are transformed one after another. Symbol
`nj_fft_<kind>_<type>_<complex elements>`, what the thread pool runs over groups. Single long ones
are `fft_long`'s, with large prime factors `fft_chirp`'s. For: `kernels.generator`. What would break
it: scratch for less than a task each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from numjet.core.memo import remembered
from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels import fft_chirp, fft_long, libraries
from numjet.cpu.kernels.butterflies import Complex, Passes, radices, times
from numjet.cpu.kernels.idioms import lanes_of, size_of, table
from numjet.cpu.kernels.linalg.side_by_side import Group
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

PREFIX = "nj_fft_"
# Of rows side by side: beyond it the scratch memory of a group does not fit a second-level cache.
# Columns have no other way but Python: 16 of 65,536 take 6 ms, SciPy 11.
LONGEST, LONGEST_COLUMNS = 8192, 1 << 16
# Of those with a prime factor beyond 47, whose library holds two tables of about as many numbers.
_LONGEST_CHIRP = 2048
# Bytes of a task's scratch memory from which there are no more tasks than threads.
_LARGE = 1 << 20
FIELDS = ("count", "inner", "across", "inverse", "scratch", "in1", "out1")
_TYPES = {"complex64": "float", "complex128": "double"}
# Butterflies of all groups below which the pool costs more than it brings.
_PARALLEL = 10_000
# Complex elements from which the next group's memory is fetched early.
_EARLY = 24
# Bytes of all rows from which they are copied to scratch memory and back in the order of memory,
# as fetching ahead wants it: 46,875 real rows of 64 float32 in 3.4 ms, copied in 2.2 (on one thread
# with vectors of 64 bytes; of 32: 2.9 and 2.0). In the caches copying costs a tenth.
_FAR = 16 << 20
# Complex elements from which rows are transformed one by one: 64 of 4096 float32 in 0.25 ms of
# processor time, side by side in 0.47; 600 of 512 in 0.55 and 0.45. And bytes of all of them up to
# which: those that no cache holds are read in better order side by side, 2929 of 1024 in 4.9 ms
# instead of 8.7 with AVX2.
_ALONE, _WARM = 1024, 4 << 20
# Numbers from which a convolution of one row is faster than SciPy.
_CHIRP = 128
# Complex elements up to which rows too few for the lanes of a vector are transformed here in any
# case, by a convolution where n has large prime factors: a call of SciPy takes 60 us, a convolution
# of one row of 33 float32 3, of 999 36, of 4752 180 (SciPy 135). And the bytes of their vectors.
# Other n are not convolutions: those err in the same direction each time, so that 256 transforms
# there and back of 64 numbers were 7e-5 off, where passes are 3e-7.
_FEW, _NARROW = 4096, 16
FORWARD, INVERSE, REAL, HALF = range(4)


def generate(build: Values, node: Node) -> list[Step] | None:
    """The steps of a transform, an axis each; None for lengths and numbers that SciPy has to do."""
    x, out = node.ins[0], node.outs[0]
    kind, lengths = int(node.params["fft_type"]), node.params["fft_lengths"]
    spectrum = x if kind == HALF else out
    element = _TYPES.get(spectrum.dtype.name)
    if element is None or x.literal is not None or not out.size or lanes_of(element) < 2:
        return None
    last = len(x.shape) - 1
    odd = kind in (REAL, HALF) and lengths[-1] % 2 == 1
    axes = list(range(last, last - len(lengths), -1))
    if kind == HALF:
        axes.reverse()
    ways = []
    for axis in axes:
        along = kind if axis == last else FORWARD if kind in (FORWARD, REAL) else INVERSE
        n = lengths[axis - last - 1 + len(lengths)]
        if odd and axis == last:
            way = _way_of_odd(element, math.prod(spectrum.shape[:-1]), n)
        else:
            way = _way(element, spectrum.shape, axis, n // (1 + (along in (REAL, HALF))))
        if way is None:
            return None
        ways.append((way, axis, n, along))
    reads, steps = build.materialize(x), []
    for number, (way, axis, n, along) in enumerate(ways):
        final = number == len(axes) - 1
        target = out if final else build.temporary(Val(spectrum.shape, spectrum.dtype))
        steps.append(way(build, element, reads, target, axis, n, along))
        reads = target
    return steps


def _way(element: str, shape: tuple[int, ...], axis: int, n: int) -> Callable[..., Step] | None:
    """How transforms of n complex numbers along an axis are done: side by side where there are
    enough for the lanes of a vector, else one after another. Long ones too, if no lane idles: they
    take half the time where all of a group's would not be in the first cache."""
    if n < 1:
        return None
    lanes, final = lanes_of(element), axis == len(shape) - 1
    few = final and 1 < n and math.prod(shape[:axis]) * n <= _FEW
    others = 2 * math.prod(shape[:axis]) if final else math.prod(shape[axis + 1 :])
    if radices(n) is None:
        if n <= _LONGEST_CHIRP and others >= lanes:
            return _side_by_side
        large = few or final and n >= _CHIRP
        return _by_chirps if large and fft_chirp.padded(n, element) else None
    factors = fft_long.factors(n, element) if final else None
    if n <= (LONGEST if final else LONGEST_COLUMNS) and others >= lanes:
        whole = factors is not None and factors[0] % lanes == factors[1] % lanes == 0
        warm = math.prod(shape) * 2 * size_of(element) <= _WARM
        if not (whole and warm and n >= _ALONE):
            return _side_by_side
    if factors is None:
        return _narrow if few else None
    return _one_by_one


def _way_of_odd(element: str, rows: int, n: int) -> Callable[..., Step] | None:
    """The same of rows of an odd number of reals."""
    chirp = radices(n) is None
    few = 1 < n and rows * n <= _FEW
    if n <= (_LONGEST_CHIRP if chirp else LONGEST) and 2 * rows >= lanes_of(element):
        return _side_by_side
    if not chirp:
        return _narrow if few else None
    return _odd if (few or n >= _CHIRP) and fft_chirp.padded(n, element) else None


def _lanes(element: str, narrow: bool) -> int:
    return min(lanes_of(element), _NARROW // size_of(element)) if narrow else lanes_of(element)


@remembered("lengths of convolutions", 256)
def _length(n: int) -> int:
    """Numbers of the passes that a transform of n goes through: n, or those of its convolutions
    (Bluestein's algorithm)."""
    if radices(n) is not None:
        return n
    least = 2 * n - 1
    able = (m for m in range(least, 2 * least) if radices(m) is not None)
    return min(able, key=lambda m: m * sum(2 + r for r in radices(m) or []))


def _piece(n: int, element: str) -> int:
    """Bytes of a piece of a task's scratch memory, which a group's transposition overruns by a
    square of lanes."""
    lanes = lanes_of(element)
    return 2 * (_length(n) + 2 * lanes + 2) * lanes * size_of(element)


def _by_chirps(build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int) -> Step:
    real, inverse = kind in (REAL, HALF), kind in (INVERSE, HALF)
    return fft_chirp.step(build, element, x, out, n // (1 + real), inverse, real)


def _odd(build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int) -> Step:
    return fft_chirp.step(build, element, x, out, n, kind == HALF, real=False, odd=True)


def _one_by_one(
    build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int
) -> Step:
    real, inverse = kind in (REAL, HALF), kind in (INVERSE, HALF)
    return fft_long.step(build, element, x, out, n // (1 + real), inverse, real)


def _narrow(build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int) -> Step:
    return _side_by_side(build, element, x, out, axis, n, kind, narrow=True)


def _side_by_side(
    build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int,
    narrow: bool = False,
) -> Step:  # fmt: skip
    """narrow: of rows too few for the lanes of a full vector, in vectors of `_NARROW` bytes."""
    last = axis == len(x.shape) - 1
    lanes = _lanes(element, narrow)
    inner = math.prod(out.shape[axis + 1 :])
    count = math.prod(out.shape[:axis])
    if last:
        name = {REAL: "real", HALF: "half"}.get(kind, "rows")
        groups = -(-count // lanes)
        if name != "rows" and n % 2:
            name = "odd" + name
        elif name != "rows":
            n //= 2  # complex elements
    else:
        name, groups = "columns", count * -(-inner // lanes)
    piece = _piece(n, element)
    length = 2 * _length(n) if radices(n) is None else n
    work = length * max(length.bit_length() - 1, 1)
    tasks = 1
    if groups > 1 and groups * work >= _PARALLEL:
        tasks = min(groups, (4 if 2 * piece < _LARGE else 1) * host.cpu_count())
    share = -(-groups // tasks)
    tasks = -(-groups // share)
    scratch = build.temporary(Val((tasks * 2 * piece,), np.dtype(np.uint8)))
    values = {
        "count": count, "inner": inner, "across": -(-inner // lanes),
        "inverse": int(kind in (INVERSE, HALF)), "scratch": share,
        "in1": x.nbytes // max(count, 1), "out1": out.nbytes // max(count, 1),
    }  # fmt: skip
    far = last and x.nbytes + out.nbytes >= _FAR
    symbol = f"{PREFIX}{name}_{element}_{n}" + "_far" * far + "_narrow" * narrow
    libraries.start(symbol)

    def emit(b: Builder, ins: list[Value], outs: list[Value]) -> None:
        context = b.alloca("ptr", 9)
        pointers = [ins[0], *[outs[1]] * 3, outs[0]]
        for k, pointer in enumerate([table(b.module, [values[f] for f in FIELDS]), *pointers]):
            b.store(pointer, b.gep(context, 8 * k), 8)
        for k in range(6, 9):
            b.store(outs[0], b.gep(context, 8 * k), 8)
        b.module.declare(symbol, "void", ("ptr", "i64", "i64"))
        many = b.const(groups, "i64")
        if tasks > 1:
            b.call("nj_parallel_for", "void", Value(f"@{symbol}", "ptr"), context, many,
                   b.const(share, "i64"))  # fmt: skip
        else:
            b.call(symbol, "void", context, b.const(0, "i64"), many)

    return SpecialStep("fft", [x], [out, scratch], emit, flops=5 * groups * lanes * work)


class _Transform(Passes):
    """Writes the library of one kind and length."""

    def __init__(self, group: Group, n: int, order: int, far: bool) -> None:
        """n: complex elements. order: of the roots of unity, n or 2 n. far: of rows that no cache
        holds, a group's are copied between them and scratch memory, in the order of memory."""
        super().__init__(group, n, order)
        self.early = n >= _EARLY
        self.far = far
        self.length = _length(n)
        if self.length != n:
            self.convolved = Passes(group, self.length, self.length)
            tables = fft_chirp.chirps(n, self.length, group.element)
            # Of the chirp and of its conjugate's spectrum, over the length.
            self.chirp, self.spectrum = (
                group.module.array(t.view(t.real.dtype).ravel().tolist(), group.element)
                for t in (tables[0], tables[1] / self.length)
            )

    def scratch(self) -> tuple[Value, Value]:
        """The task's two pieces of scratch memory."""
        return self.memory(_piece(self.n, self.g.element))

    def whole(self, x: Value, y: Value) -> Value:
        """Transform what lies at x, forward or backward, with y as other memory; where it lies."""
        g, b, plain = self.g, self.g.b, self.parts
        inverse = b.icmp("ne", g.f.inverse, 0)
        offsets = [b.const(k * g.row, "i64") for k in range(2)]
        self.parts = b.select(inverse, *offsets[::-1]), b.select(inverse, *offsets)
        one = b.select(inverse, b.const(1.0 / self.n, g.element), b.const(1.0, g.element))
        scale = b.splat(one, g.lanes)
        if self.length != self.n:
            self.convolve(x, y, scale)
            self.parts = plain
            return x
        found = y if len(radices(self.n) or []) % 2 else x

        def last(stride: int, results: Callable[[Value], list[Complex]]) -> None:
            with b.loop(0, stride) as each:
                for k, value in enumerate(results(each.index)):
                    scaled = b.mul(value[0], scale), b.mul(value[1], scale)
                    self.put(found, b.add(each.index, k * stride), scaled)

        self.run(x, y, last=last)
        self.parts = plain
        return found

    def convolve(self, x: Value, y: Value, scale: Value) -> None:
        """Transform what lies at x, in place, by a convolution with a chirp."""
        b, n, passes = self.g.b, self.n, self.convolved
        passes.parts = self.parts
        with b.loop(0, n) as each:
            c = self.entry(self.chirp, each.index)
            self.put(x, each.index, times(b, self.get(x, each.index), c))
        zero = b.const(0.0, self.g.kind)
        with b.loop(n, self.length) as each:
            self.put(x, each.index, (zero, zero))
        spectrum = passes.run(x, y)

        def product(place: Value) -> Complex:
            # Read with its parts exchanged, since what follows is the inverse.
            re, im = self.get(spectrum, place)
            return times(b, (re, im), self.entry(self.spectrum, place))[::-1]

        back = passes.run(spectrum, y if spectrum is x else x, first=product)
        with b.loop(0, n) as each:
            im, re = passes.get(back, each.index)
            re, im = times(b, (re, im), self.entry(self.chirp, each.index))
            self.put(x, each.index, (b.mul(re, scale), b.mul(im, scale)))

    def bring(self, reals: int, target: Value, stage: Value) -> None:
        """The group's rows, of so many reals, to vectors at `target`; what is at `stage` goes."""
        g, b = self.g, self.g.b
        base = self.staged(g.ins[0], g.f.in1, stage)
        if self.far:
            self.copy(stage, b.gep(g.ins[0], b.mul(g.first, g.f.in1)), reals)
        g.bring(base, b.const(reals, "i64"), g.f.in1, target, self.early and not self.far)

    def give(self, reals: int, source: Value, stage: Value) -> None:
        """Vectors at `source` to the group's rows; what is at `stage` goes."""
        g, b = self.g, self.g.b
        base = self.staged(g.outs[0], g.f.out1, stage)
        g.give(base, b.const(reals, "i64"), g.f.out1, source, early=self.early and not self.far)
        if self.far:
            self.copy(b.gep(g.outs[0], b.mul(g.first, g.f.out1)), stage, reals)

    def staged(self, base: Value, nbytes: Value, stage: Value) -> Value:
        """`base`, or with the group's rows at `stage` where the first of all would be then."""
        g, b = self.g, self.g.b
        if not self.far:
            return base
        return b.select(self.full(), b.gep(stage, b.sub(0, b.mul(g.first, nbytes))), base)

    def full(self) -> Value:
        """Whether there is a row for every lane; the last group's rows stay where they are."""
        return self.g.b.icmp("sle", self.g.b.add(self.g.first, self.g.lanes), self.g.f.count)

    def copy(self, to: Value, source: Value, reals: int) -> None:
        """A full group's rows, in the order of memory."""
        g, b = self.g, self.g.b
        with b.if_(self.full()), b.loop(0, reals * g.row, g.row) as each:
            x = b.load(b.gep(source, each.index), g.kind, g.size)
            b.store(x, b.gep(to, each.index), g.size)

    # ---- kinds

    def rows(self) -> None:
        """Complex neighbours in memory."""
        x, y = self.scratch()
        self.bring(2 * self.n, x, y)
        z = self.whole(x, y)
        self.give(2 * self.n, z, self.g.b.select(self.g.b.icmp("eq", z, x), y, x))

    def columns(self) -> None:
        """Complex numbers of `inner` columns; the last group of columns begins early."""
        g, b = self.g, self.g.b
        x, y = self.scratch()
        outer, across = b.udiv(g.number, g.f.across), b.urem(g.number, g.f.across)
        start = b.min(b.mul(across, g.lanes), b.sub(g.f.inner, g.lanes))
        offset = b.add(b.mul(outer, g.f.in1), b.mul(start, 2 * g.size))
        step = b.mul(g.f.inner, 2 * g.size)
        source, target = b.gep(g.ins[0], offset), b.gep(g.outs[0], offset)
        half = g.lanes
        with b.loop(0, self.n) as row:
            at = b.gep(source, b.mul(row.index, step))
            low, high = (b.load(b.gep(at, k * g.row), g.kind, g.size) for k in range(2))
            to = b.gep(x, b.mul(row.index, self.pair))
            for k in range(2):
                g.store(b.shuffle(low, high, range(k, 2 * half, 2)), b.gep(to, k * g.row))
        result = self.whole(x, y)
        joined = [k // 2 + half * (k % 2) for k in range(2 * half)]
        with b.loop(0, self.n) as row:
            at = b.gep(result, b.mul(row.index, self.pair))
            one, two = (g.load(b.gep(at, k * g.row)) for k in range(2))
            to = b.gep(target, b.mul(row.index, step))
            for k in range(2):
                both = b.shuffle(one, two, joined[k * half : (k + 1) * half])
                b.store(both, b.gep(to, k * g.row), g.size)

    def real(self) -> None:
        """Real rows to half a spectrum. Two neighbours are one complex number; with the transforms
        E and O of the numbers at even and odd places, element k of the spectrum is E + w O and
        element n/2 - k its conjugate with -w, for w a root of unity."""
        g, b, half = self.g, self.g.b, self.n
        x, y = self.scratch()
        self.bring(2 * half, x, y)
        z = self.whole(x, y)
        out = b.select(b.icmp("eq", z, x), y, x)
        first, zero = self.get(z, 0), b.const(0.0, g.kind)
        self.put(out, 0, (b.add(*first), zero))
        self.put(out, half, (b.sub(*first), zero))
        with b.loop(1, half // 2 + 1) as each:
            mirror = b.sub(half, each.index)
            (re, im), (re_, im_) = (
                tuple(b.mul(v, 0.5) for v in self.get(z, k)) for k in (each.index, mirror)
            )
            even = b.add(re, re_), b.sub(im, im_)
            odd = times(b, (b.add(im, im_), b.sub(re_, re)), self.root(each.index))
            self.put(out, each.index, (b.add(even[0], odd[0]), b.add(even[1], odd[1])))
            self.put(out, mirror, (b.sub(even[0], odd[0]), b.sub(odd[1], even[1])))
        self.give(2 * half + 2, out, z)

    def half(self) -> None:
        """Half a spectrum to real rows: `real` backwards. The imaginary parts of the first and the
        last element do not count."""
        b, half = self.g.b, self.n
        x, y = self.scratch()
        self.bring(2 * half + 2, y, x)
        one, two = (b.mul(self.get(y, k)[0], 0.5) for k in (0, half))
        self.put(x, 0, (b.add(one, two), b.sub(one, two)))
        with b.loop(1, half // 2 + 1) as each:
            mirror = b.sub(half, each.index)
            (re, im), (re_, im_) = (
                tuple(b.mul(v, 0.5) for v in self.get(y, k)) for k in (each.index, mirror)
            )
            even = b.add(re, re_), b.sub(im, im_)
            c, s = self.root(each.index)
            odd = times(b, (b.sub(re, re_), b.add(im, im_)), (c, b.neg(s)))
            self.put(x, each.index, (b.sub(even[0], odd[1]), b.add(even[1], odd[0])))
            self.put(x, mirror, (b.add(even[0], odd[1]), b.sub(odd[0], even[1])))
        z = self.whole(x, y)
        self.give(2 * half, z, b.select(b.icmp("eq", z, x), y, x))

    def oddreal(self) -> None:
        """Rows of an odd number of reals to half a spectrum."""
        g, b, n = self.g, self.g.b, self.n
        x, y = self.scratch()
        self.bring(n, y, x)
        zero = b.const(0.0, g.kind)
        with b.loop(0, n) as each:
            self.put(x, each.index, (g.load(b.gep(y, b.mul(each.index, g.row))), zero))
        z = self.whole(x, y)
        self.put(z, 0, (self.get(z, 0)[0], zero))
        self.give(n + 1, z, b.select(b.icmp("eq", z, x), y, x))

    def oddhalf(self) -> None:
        """Half a spectrum to rows of an odd number of reals."""
        g, b, n = self.g, self.g.b, self.n
        x, y = self.scratch()
        self.bring(n + 1, y, x)
        self.put(x, 0, (self.get(y, 0)[0], b.const(0.0, g.kind)))
        with b.loop(1, n // 2 + 1) as each:
            re, im = self.get(y, each.index)
            self.put(x, each.index, (re, im))
            self.put(x, b.sub(n, each.index), (re, b.neg(im)))
        z = self.whole(x, y)
        to = b.select(b.icmp("eq", z, x), y, x)
        with b.loop(0, n) as each:
            g.store(self.get(z, each.index)[0], b.gep(to, b.mul(each.index, g.row)))
        self.give(n, to, z)


def _module(name: str) -> Module:
    kind, element, length, *others = name.split("_")
    group = Group(element, FIELDS, _lanes(element, "narrow" in others))

    def body(group: Group) -> None:
        getattr(transform, kind)()

    n = int(length)
    transform = _Transform(group, n, n * (1 + (kind in ("real", "half"))), "far" in others)
    return group.write(body)


libraries.provide(PREFIX, _module, direct=lambda rest: True)
