"""Fourier transforms of many rows or columns side by side, one a lane, of lengths without other
prime factors than 2, 3, 5 and 7.

A group of transforms is brought into vectors, a pair (real, imaginary) for each element, and goes
through passes (Stockham's, which need no reordering) of the radices of `radices` between two pieces
of scratch memory; roots of unity are the same for all lanes. A real row of even length is a complex
one of half its length, so that no row touches another's results. Several axes are transformed one
after another. Symbol `nj_fft_<kind>_<type>_<complex elements>`, what the thread pool runs over
groups. For: `kernels.generator`. What would break it: scratch for less than a task each.
"""

from __future__ import annotations

import math

import numpy as np

from numjet.cpu import host
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.idioms import fused, lanes_of, size_of, table
from numjet.cpu.kernels.linalg.side_by_side import Group
from numjet.cpu.program.steps import SpecialStep, Step
from numjet.cpu.program.values import Values

PREFIX = "nj_fft_"
# Beyond it the scratch memory of a group does not fit a second-level cache.
LONGEST = 8192
FIELDS = ("count", "inner", "across", "inverse", "scratch", "in1", "out1")
_TYPES = {"complex64": "float", "complex128": "double"}
# Butterflies of all groups below which the pool costs more than it brings.
_PARALLEL = 10_000
# Complex elements from which the next group's memory is fetched early.
_EARLY = 24
FORWARD, INVERSE, REAL, HALF = range(4)


def generate(build: Values, node: Node) -> list[Step] | None:
    """The steps of a transform, an axis each; None for lengths and numbers that SciPy has to do."""
    x, out = node.ins[0], node.outs[0]
    kind, lengths = int(node.params["fft_type"]), node.params["fft_lengths"]
    spectrum = x if kind == HALF else out
    element = _TYPES.get(spectrum.dtype.name)
    if element is None or x.literal is not None:
        return None
    lanes = lanes_of(element)
    if lanes < 2 or not all(2 <= n <= LONGEST and radices(n) is not None for n in lengths):
        return None
    if kind in (REAL, HALF) and lengths[-1] % 2:
        return None
    last = len(x.shape) - 1
    axes = list(range(last, last - len(lengths), -1))
    rows = math.prod(x.shape[:-1])
    inner = [math.prod(spectrum.shape[axis + 1 :]) for axis in axes[1:]]
    if rows * 2 < lanes or any(k < lanes for k in inner):
        return None
    if kind == HALF:
        axes.reverse()
    reads, steps = build.materialize(x), []
    for number, axis in enumerate(axes):
        final = number == len(axes) - 1
        target = out if final else build.temporary(Val(spectrum.shape, spectrum.dtype))
        n = lengths[axis - last - 1 + len(lengths)]
        along = kind if axis == last else FORWARD if kind in (FORWARD, REAL) else INVERSE
        steps.append(_step(build, element, reads, target, axis, n, along))
        reads = target
    return steps


def radices(n: int) -> list[int] | None:
    """Those of the passes, in their order, whose product is n; None for other prime factors."""
    found, rest = [], n
    for prime in (7, 5, 3):
        while rest % prime == 0:
            found.append(prime)
            rest //= prime
    power = rest.bit_length() - 1
    if rest != 1 << power:
        return None
    return found + [4] * (power // 2) + [2] * (power % 2)


def _step(build: Values, element: str, x: Val, out: Val, axis: int, n: int, kind: int) -> Step:
    last = axis == len(x.shape) - 1
    lanes = lanes_of(element)
    inner = math.prod(out.shape[axis + 1 :])
    count = math.prod(out.shape[:axis])
    if last:
        name = {REAL: "real", HALF: "half"}.get(kind, "rows")
        groups = -(-count // lanes)
        n //= 1 + (kind in (REAL, HALF))  # complex elements
    else:
        name, groups = "columns", count * -(-inner // lanes)
    # Two pieces of scratch memory, which a group's transposition overruns by a square of lanes.
    piece = 2 * (n + 2 * lanes + 2) * lanes * size_of(element)
    work = n * max(n.bit_length() - 1, 1)
    tasks = 1
    if groups > 1 and groups * work >= _PARALLEL:
        tasks = min(groups, 4 * host.cpu_count())
    share = -(-groups // tasks)
    tasks = -(-groups // share)
    scratch = build.temporary(Val((tasks * 2 * piece,), np.dtype(np.uint8)))
    values = {
        "count": count, "inner": inner, "across": -(-inner // lanes),
        "inverse": int(kind in (INVERSE, HALF)), "scratch": share,
        "in1": x.nbytes // max(count, 1), "out1": out.nbytes // max(count, 1),
    }  # fmt: skip
    symbol = f"{PREFIX}{name}_{element}_{n}"
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


class _Transform:
    """Writes the library of one kind and length."""

    def __init__(self, group: Group, n: int, order: int) -> None:
        """n: complex elements. order: of the roots of unity, n or 2 n."""
        self.g, self.n, self.roots_of_n = group, n, order // n
        self.pair = 2 * group.row  # bytes from element to element
        self.early = n >= _EARLY
        roots = _roots(order)
        parts = np.stack([roots.real, roots.imag], 1).ravel().tolist()
        self.roots = group.module.array(parts, group.element)

    def memory(self) -> tuple[Value, Value]:
        """The task's two pieces of scratch memory."""
        g, b = self.g, self.g.b
        piece = 2 * (self.n + 2 * g.lanes + 2) * g.row
        first = b.gep(g.ins[1], b.mul(b.udiv(g.number, g.f.scratch), 2 * piece))
        return first, b.gep(first, piece)

    def parts(self) -> tuple[Value, Value]:
        """Offsets of the real and the imaginary vector: exchanged, a transform is the inverse."""
        g, b = self.g, self.g.b
        inverse = b.icmp("ne", g.f.inverse, 0)
        return b.select(inverse, b.const(g.row, "i64"), 0), b.select(
            inverse, b.const(0, "i64"), g.row
        )

    def root(self, index: Value) -> tuple[Value, Value]:
        """A root of unity in all lanes."""
        g, b = self.g, self.g.b
        place = b.gep(self.roots, b.mul(index, 2 * g.size))
        return tuple(
            b.splat(b.load(b.gep(place, k * g.size), g.element), g.lanes) for k in range(2)
        )  # type: ignore[return-value]

    def run(self, x: Value, y: Value) -> Value:
        """Transform what lies at x, with y as other memory; where the result lies."""
        g, b = self.g, self.g.b
        real, imaginary = self.parts()

        def load(base: Value, place: Value) -> tuple[Value, Value]:
            at = b.gep(base, b.mul(place, self.pair))
            return g.load(b.gep(at, real)), g.load(b.gep(at, imaginary))

        def store(value: tuple[Value, Value], base: Value, place: Value) -> None:
            at = b.gep(base, b.mul(place, self.pair))
            g.store(value[0], b.gep(at, real))
            g.store(value[1], b.gep(at, imaginary))

        whole = b.splat(b.select(b.icmp("ne", g.f.inverse, 0), b.const(1.0 / self.n, g.element),
                                 b.const(1.0, g.element)), g.lanes)  # fmt: skip
        rest, stride = self.n, 1
        for radix in radices(self.n) or []:
            rest //= radix
            with b.loop(0, rest) as outer:
                p = outer.index
                step = stride * self.roots_of_n
                # Where `rest` is 1, every root is.
                roots = [self.root(b.mul(p, k * step)) for k in range(1, radix) if rest > 1]
                with b.loop(0, stride) as inner:
                    place = b.add(inner.index, b.mul(p, stride))
                    values = [load(x, b.add(place, k * rest * stride)) for k in range(radix)]
                    results = _butterfly(b, values)
                    to = b.add(inner.index, b.mul(p, radix * stride))
                    for k, value in enumerate(results):
                        if rest == 1:
                            value = b.mul(value[0], whole), b.mul(value[1], whole)
                        elif k:
                            value = _times(b, value, roots[k - 1])
                        store(value, y, b.add(to, k * stride))
            stride, x, y = radix * stride, y, x
        return x

    # ---- kinds

    def rows(self) -> None:
        """Complex neighbours in memory."""
        g, b = self.g, self.g.b
        x, y = self.memory()
        reals = b.const(2 * self.n, "i64")
        g.bring(g.ins[0], reals, g.f.in1, x, self.early)
        g.give(g.outs[0], reals, g.f.out1, self.run(x, y), early=self.early)

    def columns(self) -> None:
        """Complex numbers of `inner` columns; the last group of columns begins early."""
        g, b = self.g, self.g.b
        x, y = self.memory()
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
        result = self.run(x, y)
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
        x, y = self.memory()
        g.bring(g.ins[0], b.const(2 * half, "i64"), g.f.in1, x, self.early)
        z = self.run(x, y)
        out = b.select(b.icmp("eq", z, x), y, x)
        first, zero = self._pair(z, 0), b.const(0.0, g.kind)
        self._put(out, 0, (b.add(*first), zero))
        self._put(out, half, (b.sub(*first), zero))
        with b.loop(1, half // 2 + 1) as each:
            mirror = b.sub(half, each.index)
            (re, im), (re_, im_) = (
                tuple(b.mul(v, 0.5) for v in self._pair(z, k)) for k in (each.index, mirror)
            )
            even = b.add(re, re_), b.sub(im, im_)
            odd = _times(b, (b.add(im, im_), b.sub(re_, re)), self.root(each.index))
            self._put(out, each.index, (b.add(even[0], odd[0]), b.add(even[1], odd[1])))
            self._put(out, mirror, (b.sub(even[0], odd[0]), b.sub(odd[1], even[1])))
        g.give(g.outs[0], b.const(2 * half + 2, "i64"), g.f.out1, out, early=self.early)

    def half(self) -> None:
        """Half a spectrum to real rows: `real` backwards. The imaginary parts of the first and the
        last element do not count."""
        g, b, half = self.g, self.g.b, self.n
        x, y = self.memory()
        g.bring(g.ins[0], b.const(2 * half + 2, "i64"), g.f.in1, y, self.early)
        one, two = (b.mul(self._pair(y, k)[0], 0.5) for k in (0, half))
        self._put(x, 0, (b.add(one, two), b.sub(one, two)))
        with b.loop(1, half // 2 + 1) as each:
            mirror = b.sub(half, each.index)
            (re, im), (re_, im_) = (
                tuple(b.mul(v, 0.5) for v in self._pair(y, k)) for k in (each.index, mirror)
            )
            even = b.add(re, re_), b.sub(im, im_)
            c, s = self.root(each.index)
            odd = _times(b, (b.sub(re, re_), b.add(im, im_)), (c, b.neg(s)))
            self._put(x, each.index, (b.sub(even[0], odd[1]), b.add(even[1], odd[0])))
            self._put(x, mirror, (b.add(even[0], odd[1]), b.sub(odd[0], even[1])))
        g.give(g.outs[0], b.const(2 * half, "i64"), g.f.out1, self.run(x, y), early=self.early)

    def _pair(self, base: Value, place: Value | int) -> tuple[Value, Value]:
        at = self._place(base, place)
        return self.g.load(at), self.g.load(self.g.b.gep(at, self.g.row))

    def _put(self, base: Value, place: Value | int, value: tuple[Value, Value]) -> None:
        at = self._place(base, place)
        self.g.store(value[0], at)
        self.g.store(value[1], self.g.b.gep(at, self.g.row))

    def _place(self, base: Value, place: Value | int) -> Value:
        b = self.g.b
        return b.gep(base, b.mul(b.value(place, "i64"), self.pair))


def _roots(order: int) -> np.ndarray:
    """e^(-2πik/order) for each k, turned from angles of at most an eighth of the circle."""
    k = 4 * np.arange(order)
    quarter = (2 * k + order) // (2 * order)
    angle = np.pi / 2 * ((k - quarter * order) / order)
    return np.exp(-1j * angle) * np.array([1, -1j, -1, 1j])[quarter % 4]


Complex = tuple[Value, Value]


def _add(b: Builder, v: Complex, w: Complex) -> Complex:
    return b.add(v[0], w[0]), b.add(v[1], w[1])


def _sub(b: Builder, v: Complex, w: Complex) -> Complex:
    return b.sub(v[0], w[0]), b.sub(v[1], w[1])


def _times(b: Builder, v: Complex, w: Complex) -> Complex:
    """The product of complex numbers."""
    (a, c), (d, e) = v, w
    return fused(b, a, d, b.neg(b.mul(c, e))), fused(b, a, e, b.mul(c, d))


def _butterfly(b: Builder, values: list[Complex]) -> list[Complex]:
    """The transform of a few values."""
    n = len(values)
    if n == 2:
        return [_add(b, *values), _sub(b, *values)]
    if n % 2:
        return _odd_butterfly(b, values)
    one, two, three, four = values
    s, d = _add(b, one, three), _sub(b, one, three)
    t, (u, v) = _add(b, two, four), _sub(b, two, four)
    turned = (b.neg(v), u)  # i times the difference
    return [_add(b, s, t), _sub(b, d, turned), _sub(b, s, t), _add(b, d, turned)]


def _odd_butterfly(b: Builder, values: list[Complex]) -> list[Complex]:
    """Values k and n - k have roots that are conjugate: their sum goes with the cosines, their
    difference with the sines."""
    n, first = len(values), values[0]
    half = range(1, n // 2 + 1)
    sums = [_add(b, values[k], values[n - k]) for k in half]
    differences = [_sub(b, values[k], values[n - k]) for k in half]
    results = [first] * n
    for pair in sums:
        results[0] = _add(b, results[0], pair)
    for j in half:
        angles = [2 * math.pi * (j * k % n) / n for k in half]
        parts = []
        for part in range(2):
            along, across = first[part], None
            for angle, s, d in zip(angles, sums, differences, strict=True):
                along = fused(b, s[part], b.const(math.cos(angle), along.type), along)
                sine = b.const(math.sin(angle), along.type)
                across = fused(b, d[part], sine, across) if across else b.mul(d[part], sine)
            parts.append((along, across))
        (re, re_), (im, im_) = parts
        results[j] = b.add(re, im_), b.sub(im, re_)
        results[n - j] = b.sub(re, im_), b.add(im, re_)
    return results


def _module(name: str) -> Module:
    kind, element, length = name.split("_")
    group = Group(element, FIELDS)

    def body(group: Group) -> None:
        getattr(transform, kind)()

    n = int(length)
    transform = _Transform(group, n, n * (1 + (kind in ("real", "half"))))
    return group.write(body)


libraries.provide(PREFIX, _module, direct=lambda rest: True)
