"""Random eager programs with everything that could tell deferred operations from others: reads in
between, deletions, NumPy memory written to afterwards, threads, exceptions, donation, derivatives.

`run(seed)` gives what a program observed, as a list of NumPy arrays and texts. Programs of the
class `Exact` add up nothing but integers, and must observe the same bits; the others may add in
another order. Run as a script it compares `eager_fusion` on and off for a range of seeds.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet.api.eager import deferral, large
from numjet.base import config
from numjet.core import evaluate, hooks

SHAPES = [(96,), (12, 8), (8, 12), (1, 8), (12, 1), (), (2, 6, 8)]
DTYPES = [np.float32, np.float32, np.float32, np.int32, np.bool_, np.float16]
UNARY: list[Callable] = [
    jnp.exp, jnp.sin, jnp.tanh, lambda x: jnp.abs(x * 1.0), jnp.negative, jnp.sqrt,
    lambda x: jnp.floor(x * 1.0), jnp.square,
    lambda x: x * 2, lambda x: 1.5 - x, lambda x: x / 3, lambda x: x**2, lambda x: x > 0,
    lambda x: x.astype(jnp.float32), lambda x: x.astype(jnp.int32), lambda x: x.astype(jnp.float16),
    lambda x: x.ravel(), lambda x: x.T, lambda x: x[None], lambda x: x[..., ::-1],
    lambda x: jnp.broadcast_to(x, (3, *x.shape)), lambda x: x.reshape(-1)[: x.size // 2],
    lambda x: jnp.where(x > 0, x, 1), lambda x: jnp.clip(x, -1, 1), lambda x: jnp.isnan(x),
    nj.nn.relu, nj.nn.sigmoid, lambda x: x @ x.T if x.ndim == 2 else x, lambda x: x // 3,
    lambda x: nj.lax.stop_gradient(x), lambda x: jnp.concatenate([x.ravel(), x.ravel()]),
    lambda x: x.at[..., 0].set(1) if x.ndim else x, lambda x: jnp.sort(x.ravel()),
    lambda x: x + nj.random.normal(nj.random.key(3), x.shape), lambda x: jnp.tril(x) if x.ndim == 2
    else x, lambda x: jnp.round(x), lambda x: jnp.roll(x, 2),
    lambda x: jnp.cumsum(x.ravel()), lambda x: jnp.zeros_like(x) + 1,
]  # fmt: skip
REDUCE: list[Callable] = [
    lambda x: x.sum(), lambda x: jnp.max(x), lambda x: x.mean(axis=-1, keepdims=True) if x.ndim
    else x, lambda x: jnp.any(x), lambda x: x.argmax(), lambda x: jnp.var(x), lambda x: x.sum(0)
    if x.ndim else x, lambda x: nj.nn.softmax(x), lambda x: jnp.linalg.norm(x.ravel()),
    lambda x: jnp.median(x), lambda x: jnp.std(x, 0) if x.ndim else x, lambda x: jnp.nansum(x),
]  # fmt: skip
BINARY: list[Callable] = [
    jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.arctan2, jnp.equal,
    jnp.logical_or, jnp.dot, lambda x, y: jnp.where(x > y, x, y),
    lambda x, y: x < y, lambda x, y: jnp.hypot(x, y), lambda x, y: x % (y + 1),
]  # fmt: skip
TRANSFORMED: list[Callable] = [
    lambda x: nj.grad(lambda v: jnp.sum(jnp.tanh(v) * v))(x),
    lambda x: nj.value_and_grad(lambda v: jnp.mean(jnp.exp(-v * v)))(x)[1],
    lambda x: nj.jvp(lambda v: jnp.sin(v) * v, (x,), (jnp.ones_like(x),))[1],
    lambda x: nj.vmap(lambda v: v - v.sum())(x) if x.ndim else x,
    lambda x: nj.jit(lambda v: v * 2 + 1)(x),
    lambda x: nj.lax.fori_loop(0, 3, lambda i, v: v * 0.5, x),
    lambda x: nj.checkpoint(jnp.sin)(x), lambda x: nj.grad(nj.grad(lambda v: v**3))(jnp.sum(x)),
    lambda x: nj.grad(lambda v: jnp.sum(nj.nn.softmax(v) ** 2))(x * 1.0) if x.ndim else x,
    lambda x: nj.grad(lambda v: jnp.sum(nj.nn.gelu(v - v.mean(-1, keepdims=True))))(x * 1.0)
    if x.ndim else x,
    lambda x: nj.grad(lambda v: jnp.sum(
        jnp.where(jnp.tril(jnp.ones(v.shape, bool)), v, 0.0) * (x > 0)))(x * 1.0)
    if x.ndim == 2 else x,
    lambda x: nj.linearize(jnp.sin, x)[1](x), lambda x: nj.vjp(jnp.cos, x)[1](x)[0],
]  # fmt: skip


class Program:
    """One random program: variables that come and go, and what was seen of them."""

    shapes, dtypes, least, most = SHAPES, DTYPES, 0, 4096
    unaries, binaries, reductions, transformed_by = UNARY, BINARY, REDUCE, TRANSFORMED
    total = staticmethod(jnp.sum)

    def __init__(self, seed: int, steps: int, device: Any = None) -> None:
        self.rng, self.device = np.random.default_rng(seed), device
        self.vars: list[Any] = []
        self.memories: list[np.ndarray] = []
        self.seen: list[Any] = []
        for _ in range(3):
            self.new()
        for _ in range(steps):
            action = self.rng.choice(len(_ACTIONS), p=_CHANCES)
            try:
                _ACTIONS[action][0](self)
            except (TypeError, ValueError, RuntimeError, IndexError) as error:
                self.seen.append(type(error).__name__)
            if len(self.vars) < 2:
                self.new()
            if len(self.vars) > 8:
                del self.vars[int(self.rng.integers(len(self.vars)))]
        self.seen += [np.asarray(x) for x in self.vars if not x.is_deleted()]

    def pick(self) -> Any:
        return self.vars[int(self.rng.integers(len(self.vars)))]

    def choose(self, functions: list[Callable]) -> Callable:
        return functions[int(self.rng.integers(len(functions)))]

    def new(self) -> None:
        shape = self.shapes[int(self.rng.integers(len(self.shapes)))]
        dtype = self.dtypes[int(self.rng.integers(len(self.dtypes)))]
        memory = (self.rng.normal(size=shape) * 2).astype(dtype)
        if self.device is not None:
            self.vars.append(nj.device_put(memory, self.device))
        elif self.rng.integers(2) and shape:
            self.memories.append(memory)
            self.vars.append(jnp.asarray(memory))
        else:
            self.vars.append(jnp.array(memory))

    def put(self, x: Any) -> None:
        if self.least <= x.size <= self.most and x.ndim <= 4:
            self.vars.append(x)

    def unary(self) -> None:
        self.put(self.choose(self.unaries)(self.pick()))

    def reduce(self) -> None:
        self.put(self.choose(self.reductions)(self.pick()))

    def binary(self) -> None:
        self.put(self.choose(self.binaries)(self.pick(), self.pick()))

    def transformed(self) -> None:
        x = self.pick()
        self.put(self.choose(self.transformed_by)(x * 1.0))

    def read(self) -> None:
        x = self.pick()
        kind = int(self.rng.integers(8))
        if kind == 0:
            self.seen.append(repr(x.dtype) + str(x.shape) + str(x.weak_type))
        elif kind == 1:
            self.seen.append(np.asarray(x[(0,) * x.ndim] if x.size else x))
        elif kind == 2:
            self.seen.append(np.asarray(float(jnp.sum(x.astype(jnp.int32)))))
        elif kind == 3:
            self.seen.append(np.asarray(bool(jnp.all(jnp.isfinite(x)))))
        elif kind == 4:
            self.seen.append(np.array(x.block_until_ready()))
        elif kind == 5:
            self.seen.append(np.asarray(x.tolist()))
        else:
            self.seen.append(np.array(x))

    def write(self) -> None:
        """The user's memory changes: arrays that were computed of it do not, those on it do."""
        if self.memories:
            memory = self.memories[int(self.rng.integers(len(self.memories)))]
            memory[...] = memory * 0 if self.rng.integers(2) else ~memory.astype(bool)

    def remove(self) -> None:
        k = int(self.rng.integers(len(self.vars)))
        if self.rng.integers(2):
            self.vars[k].delete()
            self.seen.append(self.vars[k].is_deleted())
        else:
            del self.vars[k]

    def thread(self) -> None:
        x, y = self.pick(), self.pick()
        f, g = self.choose(self.unaries), self.choose(self.binaries)
        found: list[Any] = []

        def work() -> None:
            try:
                found.append(f(g(x, y)))
            except (TypeError, ValueError, RuntimeError, IndexError) as error:
                found.append(error)

        one = threading.Thread(target=work)
        one.start()
        one.join()
        if isinstance(found[0], Exception):
            raise found[0]
        self.put(found[0])

    def wrong(self) -> None:
        x = self.pick()
        jnp.concatenate([x.ravel(), jnp.ones((3, 3))]) if self.rng.integers(2) else x + "text"

    def donate(self) -> None:
        x = self.pick() * 1
        y = x + 1
        step = nj.jit(lambda v: v * 3, donate_argnums=0)
        self.put(step(x))
        self.put(y)
        self.seen.append(x.is_deleted())

    def control(self) -> None:
        x = self.pick()
        total = self.total(x.astype(jnp.float32))
        self.put(x if total > 0 else -x.astype(jnp.float32))

    def loop(self) -> None:
        x = self.pick().astype(jnp.float32)
        for _ in range(int(self.rng.integers(2, 20))):
            x = jnp.sin(x) + 0.5
        self.put(x)


_ACTIONS: list[tuple[Callable, float]] = [
    (Program.unary, 10), (Program.binary, 8), (Program.reduce, 4), (Program.transformed, 2),
    (Program.read, 3), (Program.write, 2), (Program.remove, 1.5), (Program.thread, 0.5),
    (Program.wrong, 0.5), (Program.donate, 0.7), (Program.control, 0.7), (Program.loop, 0.7),
    (Program.new, 1),
]  # fmt: skip
_CHANCES = np.array([c for _, c in _ACTIONS]) / sum([c for _, c in _ACTIONS])


class Exact(Program):
    """A program of elementwise operations, layouts, extrema, and sums of integers, on arrays so
    large that each operation is compiled where it is not deferred."""

    shapes = [(1 << 16,), (256, 300), (300, 256), (2, 200, 170)]
    least, most = evaluate.LARGE, 250_000
    dtypes = [*DTYPES, np.float32, jnp.bfloat16, np.uint8, np.int16, np.complex64]
    total = staticmethod(jnp.max)
    unaries: list[Callable] = [
        jnp.exp, jnp.sin, jnp.tanh, jnp.negative, jnp.sqrt, jnp.square, jnp.cbrt, jnp.log1p,
        jnp.arctan, lambda x: jnp.floor(x * 1.0), lambda x: x * 2, lambda x: 1.5 - x,
        lambda x: x / 3, lambda x: x**2, lambda x: x // 3, lambda x: x > 0, lambda x: jnp.round(x),
        lambda x: x.astype(jnp.float32), lambda x: x.astype(jnp.int32), lambda x: x.T,
        lambda x: x.astype(jnp.float16), lambda x: x.ravel(), lambda x: x[None],
        lambda x: x[..., ::-1], lambda x: jnp.broadcast_to(x, (3, *x.shape)),
        lambda x: x.ravel()[5:], lambda x: jnp.where(x > 0, x, 1), lambda x: jnp.clip(x, -1, 1),
        lambda x: jnp.isnan(x), nj.nn.relu, nj.nn.sigmoid, lambda x: x * 2 - x * x * 0.3 + 1,
        lambda x: jnp.concatenate([x.ravel(), x.ravel()[:9]]), lambda x: x.at[..., 0].set(1),
        lambda x: jnp.tril(x) if x.ndim == 2 else x, lambda x: jnp.roll(x, 2),
        lambda x: jnp.sort(x.ravel()), lambda x: x.reshape(-1, 4).swapaxes(0, 1),
    ]  # fmt: skip
    binaries: list[Callable] = [
        jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.arctan2, jnp.equal,
        jnp.logical_or, lambda x, y: jnp.where(x > y, x, y), lambda x, y: x < y,
        lambda x, y: jnp.hypot(x, y), lambda x, y: x % (y + 1), lambda x, y: x * y + x,
    ]  # fmt: skip
    # Which zero is the largest of several depends on the order; x + 0 has no -0.0.
    reductions: list[Callable] = [
        lambda x: x - jnp.max(x + 0), lambda x: x - (x + 0).min(-1, keepdims=True),
        lambda x: x + (x + 0).max(0),
        lambda x: x + x.astype(jnp.int32).sum(), lambda x: jnp.where(x == x.min(), 7, x),
        lambda x: x * jnp.any(x > 2, -1, keepdims=True), lambda x: x + x.argmax(),
        lambda x: x + (x > 1).sum(0),
    ]  # fmt: skip
    transformed_by: list[Callable] = [
        lambda x: nj.grad(lambda v: jnp.sum(jnp.tanh(v) * v))(x),
        lambda x: nj.value_and_grad(lambda v: jnp.sum(jnp.exp(-v * v)))(x)[1],
        lambda x: nj.jvp(lambda v: jnp.sin(v) * v, (x,), (jnp.ones_like(x),))[1],
        lambda x: nj.vmap(lambda v: v * 2 - (v + 0).max())(x), lambda x: nj.checkpoint(jnp.sin)(x),
        lambda x: nj.jit(lambda v: v * 2 + 1)(x), lambda x: nj.vjp(jnp.cos, x)[1](x)[0],
        lambda x: nj.linearize(jnp.sin, x)[1](x),
        lambda x: nj.lax.fori_loop(0, 3, lambda i, v: v * 0.5, x),
    ]  # fmt: skip


def run(
    seed: int, steps: int, fused: bool, device: Any = None, kind: type[Program] = Program
) -> list[Any]:
    """What the program of this seed observes, its arrays on a device if one is given."""
    with config.eager_fusion(fused), np.errstate(all="ignore"):
        return kind(seed, steps, device).seen


def same(got: list[Any], want: list[Any], exact: bool = False) -> str:
    """Where two programs saw different things; "" where they did not. Numbers differ if they do by
    more than rounding, or by any bit if `exact`, but for those of NaNs."""
    if len(got) != len(want):
        return f"{len(got)} things and {len(want)}"
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if type(a) is not type(b):
            return f"number {k}: {a!r} and {b!r}"
        if isinstance(a, np.ndarray):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"number {k}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
            if exact:
                other = (a != b) & ((a == a) | (b == b))
                if a.dtype.kind == "f":
                    other |= (a == a) & (np.signbit(a) != np.signbit(b))
            else:
                rough = 1e-2 if a.dtype == np.float16 else 2e-4
                other = ~np.isclose(a, b, rough, rough, equal_nan=True)
            if other.any():
                where = np.argwhere(other)
                one = tuple(where[0])
                return (
                    f"number {k}, {a.dtype}{a.shape}: {len(where)} elements; "
                    f"at {list(map(int, one))} {a[one]!r} and {b[one]!r}"
                )
        elif a != b:
            return f"number {k}: {a!r} and {b!r}"
    return ""


def differences(seed: int, steps: int) -> str:
    """How the program of this seed differs with and without deferral: "" if it does not. Each
    eighth is compiled, the others run one operation after the other, by NumPy."""
    before = evaluate.LARGE, large.LARGE, hooks.operation, dict(deferral._counts)
    evaluate.LARGE = large.LARGE = 64
    try:
        if seed % 8:
            hooks.operation = lambda *_: None
        deferral._counts.update(found=0, compiled=10**9 if seed % 8 else 0)
        want = run(seed, steps, fused=False)
        return same(run(seed, steps, fused=True), want)
    finally:
        evaluate.LARGE, large.LARGE, hooks.operation, counts = before
        deferral._counts.update(counts)


def differences_in_bits(seed: int, steps: int) -> str:
    """How what the exact program of this seed observes differs with and without deferral, each
    operation being compiled: "" if no bit does."""
    before = dict(deferral._counts)
    deferral._counts.update(found=0, compiled=0)
    try:
        want = run(seed, steps, fused=False, kind=Exact)
        return same(run(seed, steps, fused=True, kind=Exact), want, exact=True)
    finally:
        deferral._counts.update(before)


def main() -> None:
    """Arguments: the first seed and the one after the last, and "bits" for exact programs."""
    first, end = map(int, sys.argv[1:3])
    compare = differences_in_bits if "bits" in sys.argv[3:] else differences
    for seed in range(first, end):
        difference = compare(seed, 25)
        if difference:
            print(f"seed {seed}: {difference}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
