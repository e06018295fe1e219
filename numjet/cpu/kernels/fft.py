"""Fourier transforms of many rows or columns side by side, one a lane, of lengths that are powers
of two.

A group of transforms is brought into vectors, a pair (real, imaginary) for each element, and goes
through passes of radix 4 (Stockham's, which need no reordering) between two pieces of scratch
memory; roots of unity are the same for all lanes. Two real rows are one complex transform. Several
axes are transformed one after another. Symbol `nj_fft_<kind>_<type>_<length>`, what the thread pool
runs over groups. For: `kernels.GENERATORS`. What would break it: scratch for less than a task each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.cpu import platform
from numjet.cpu.builder import Builder, Module, Value
from numjet.cpu.graph import Node, Val
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.common import lanes_of, size_of, table
from numjet.cpu.kernels.side_by_side import Group
from numjet.cpu.program import SpecialStep, Step

PREFIX = "nj_fft_"
# Beyond it the scratch memory of a group does not fit a second-level cache.
LONGEST = 8192
FIELDS = ("count", "inner", "across", "inverse", "scratch", "in1", "out1")
_TYPES = {"complex64": "float", "complex128": "double"}
# Butterflies of all groups below which the pool costs more than it brings.
_PARALLEL = 10_000
FORWARD, INVERSE, REAL, HALF = range(4)


def generate(build: Any, node: Node) -> list[Step] | None:
    """The steps of a transform, an axis each; None for lengths and numbers that SciPy has to do."""
    x, out = node.ins[0], node.outs[0]
    kind, lengths = int(node.params["fft_type"]), node.params["fft_lengths"]
    spectrum = x if kind == HALF else out
    element = _TYPES.get(spectrum.dtype.name)
    if element is None or x.literal is not None:
        return None
    lanes = lanes_of(element)
    if not all(2 <= n <= LONGEST and n & (n - 1) == 0 for n in lengths) or lanes < 2:
        return None
    last = len(x.shape) - 1
    axes = list(range(last, last - len(lengths), -1))
    rows = math.prod(x.shape[:-1])
    inner = [math.prod(spectrum.shape[axis + 1 :]) for axis in axes[1:]]
    if rows * 2 < lanes * (1 + (kind in (REAL, HALF))) or any(k < lanes for k in inner):
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


def _step(build: Any, element: str, x: Val, out: Val, axis: int, n: int, kind: int) -> Step:
    last = axis == len(x.shape) - 1
    lanes = lanes_of(element)
    inner = math.prod(out.shape[axis + 1 :])
    count = math.prod(out.shape[:axis])
    if last:
        name = {REAL: "real", HALF: "half"}.get(kind, "rows")
        groups = -(-count // (2 * lanes if kind in (REAL, HALF) else lanes))
    else:
        name, groups = "columns", count * -(-inner // lanes)
    # Two pieces of scratch memory, which a group's transposition overruns by a square of lanes.
    piece = 2 * (n + 2 * lanes + 2) * lanes * size_of(element)
    work = n * (n.bit_length() - 1)
    tasks = 1
    if groups > 1 and groups * work >= _PARALLEL:
        tasks = min(groups, 4 * platform.cpu_count())
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

    def __init__(self, group: Group, n: int) -> None:
        self.g, self.n = group, n
        self.pair = 2 * group.row  # bytes from element to element
        roots = np.exp(-2j * np.pi * np.arange(n) / n)
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

        def add(v: tuple[Value, Value], w: tuple[Value, Value]) -> tuple[Value, Value]:
            return b.add(v[0], w[0]), b.add(v[1], w[1])

        def sub(v: tuple[Value, Value], w: tuple[Value, Value]) -> tuple[Value, Value]:
            return b.sub(v[0], w[0]), b.sub(v[1], w[1])

        def times(v: tuple[Value, Value], w: tuple[Value, Value]) -> tuple[Value, Value]:
            (a, c), (d, e) = v, w
            return b.sub(b.mul(a, d), b.mul(c, e)), b.add(b.mul(a, e), b.mul(c, d))

        rest, stride = self.n, 1
        while rest >= 4:
            quarter = rest // 4
            with b.loop(0, quarter) as outer:
                p = outer.index
                roots = [self.root(b.mul(p, k * stride)) for k in (1, 2, 3)]
                with b.loop(0, stride) as inner:
                    place = b.add(inner.index, b.mul(p, stride))
                    one, two, three, four = [
                        load(x, b.add(place, k * quarter * stride)) for k in range(4)
                    ]
                    s, d = add(one, three), sub(one, three)
                    t, (u, v) = add(two, four), sub(two, four)
                    turned = (b.neg(v), u)  # i times the difference
                    to = b.add(inner.index, b.mul(p, 4 * stride))
                    results = (
                        add(s, t),
                        times(sub(d, turned), roots[0]),
                        times(sub(s, t), roots[1]),
                        times(add(d, turned), roots[2]),
                    )
                    for k, value in enumerate(results):
                        store(value, y, b.add(to, k * stride))
            rest, stride, x, y = quarter, 4 * stride, y, x
        if rest == 2:
            with b.loop(0, stride) as inner:
                one, two = load(x, inner.index), load(x, b.add(inner.index, stride))
                store(add(one, two), y, inner.index)
                store(sub(one, two), y, b.add(inner.index, stride))
            x, y = y, x
        with b.if_(b.icmp("ne", g.f.inverse, 0)), b.loop(0, 2 * self.n) as each:
            place = g.at(x, each.index)
            g.store(b.mul(g.load(place), 1.0 / self.n), place)
        return x

    # ---- kinds

    def rows(self) -> None:
        """Complex neighbours in memory."""
        g, b = self.g, self.g.b
        x, y = self.memory()
        reals = b.const(2 * self.n, "i64")
        g.bring(g.ins[0], reals, g.f.in1, x)
        g.give(g.outs[0], reals, g.f.out1, self.run(x, y))

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

    def _twice(self, move: Callable, base: Value, elements: int, nbytes: Value, *places: Value,
               spacing: int) -> None:  # fmt: skip
        """Move the rows of the first and of the second half of a group of twice the lanes."""
        g, b = self.g, self.g.b
        for k, place in enumerate(places):
            first = b.add(b.mul(g.first, 2), k * g.lanes)
            move(base, b.const(elements, "i64"), nbytes, place, spacing=spacing, first=first)

    def real(self) -> None:
        """Real rows to half a spectrum: two of them are the parts of a complex row."""
        g, b, n = self.g, self.g.b, self.n
        x, y = self.memory()
        self._twice(g.bring, g.ins[0], n, g.f.in1, x, b.gep(x, g.row), spacing=2)
        z = self.run(x, y)
        out = b.select(b.icmp("eq", z, x), y, x)
        second = b.gep(out, (n // 2 + 1) * self.pair)
        with b.loop(0, n // 2 + 1) as each:
            here = b.gep(z, b.mul(each.index, self.pair))
            mirror = b.and_(b.sub(n, each.index), n - 1)
            there = b.gep(z, b.mul(mirror, self.pair))
            (re, im), (re_, im_) = (
                [b.mul(g.load(b.gep(at, k * g.row)), 0.5) for k in range(2)] for at in (here, there)
            )
            at = b.mul(each.index, self.pair)
            for base, one, two in (
                (out, b.add(re, re_), b.sub(im, im_)),
                (second, b.add(im, im_), b.sub(re_, re)),
            ):
                g.store(one, b.gep(base, at))
                g.store(two, b.gep(b.gep(base, at), g.row))
        self._twice(g.give, g.outs[0], n + 2, g.f.out1, out, second, spacing=1)

    def half(self) -> None:
        """Half a spectrum to real rows: two of them are the parts of a complex row."""
        g, b, n = self.g, self.g.b, self.n
        x, y = self.memory()
        second = b.gep(y, (n // 2 + 1) * self.pair)
        self._twice(g.bring, g.ins[0], n + 2, g.f.in1, y, second, spacing=1)
        zero = b.const(0.0, g.kind)
        with b.loop(0, n // 2 + 1) as each:
            k = each.index
            at = b.mul(k, self.pair)
            (a, c), (d, e) = (
                [g.load(b.gep(b.gep(base, at), i * g.row)) for i in range(2)]
                for base in (y, second)
            )
            # The first and the middle one are real: their imaginary parts do not count.
            alone = b.splat(b.icmp("eq", b.and_(k, n // 2 - 1), 0), g.lanes)
            c, e = (b.select(alone, zero, v) for v in (c, e))
            mirror = b.gep(x, b.mul(b.and_(b.sub(n, k), n - 1), self.pair))
            here = b.gep(x, at)
            g.store(b.add(a, e), mirror)
            g.store(b.sub(d, c), b.gep(mirror, g.row))
            g.store(b.sub(a, e), here)
            g.store(b.add(c, d), b.gep(here, g.row))
        z = self.run(x, y)
        self._twice(g.give, g.outs[0], n, g.f.out1, z, b.gep(z, g.row), spacing=2)


def _module(name: str) -> Module:
    kind, element, length = name.split("_")
    group = Group(element, FIELDS)

    def body(group: Group) -> None:
        getattr(transform, kind)()

    transform = _Transform(group, int(length))
    return group.write(body)


libraries.provide(PREFIX, _module, direct=lambda rest: True)
