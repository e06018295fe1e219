"""Loops that update elements of arrays: programs drawn at random beside the same loops in Python,
the kernels of known algorithms, and what must not become one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base import config


@pytest.fixture(autouse=True)
def checked() -> Any:
    """Kernels are verified, and stop where an index leaves its axis."""
    with config.check_ir(True):
        yield


def text(f: Callable, *args: Any) -> str:
    return nj.jit(f).lower(*args).as_text()


# ---- programs drawn at random


class Python:
    """Control flow in Python on concrete values."""

    @staticmethod
    def cond(test: Any, then: Callable, otherwise: Callable, x: Any) -> Any:
        return then(x) if test else otherwise(x)

    @staticmethod
    def fori(stop: Any, body: Callable, x: Any) -> Any:
        for i in range(int(stop)):
            x = body(jnp.int32(i), x)
        return x

    @staticmethod
    def loop(test: Callable, body: Callable, x: Any) -> Any:
        while test(x):
            x = body(x)
        return x


class Native:
    cond, loop = staticmethod(lax.cond), staticmethod(lax.while_loop)

    @staticmethod
    def fori(stop: Any, body: Callable, x: Any) -> Any:
        return lax.fori_loop(0, stop, body, x)


OPERATIONS = (
    "read", "read", "fill", "set", "set", "method", "clip", "slice", "window", "late", "table",
    "table", "row", "numbers", "numbers", "values", "values", "exchange", "copy", "cond", "fori",
    "fori2", "while", "several",
)  # fmt: skip


def drawn(seed: int, dtype: Any) -> Callable:
    """body(flow, i, (numbers, values, arrays, table)) of random operations."""
    rng = np.random.default_rng(seed)
    names = [OPERATIONS[k] for k in rng.integers(0, len(OPERATIONS), rng.integers(3, 9))]
    steps = [(name, *rng.integers(0, 2, 5).tolist(), int(rng.integers(5))) for name in names]
    method = ("add", "min", "max", "multiply")[rng.integers(4)]
    if dtype in (np.bool_, np.complex64):
        method = "set"

    def combine(x: Any, y: Any) -> Any:
        return x ^ y if dtype is np.bool_ else jnp.where(x == y, y - x, y)

    def once(flow: Any, i: Any, state: Any, step: Any) -> Any:
        (n, v, a, m), (kind, p, q, r, s, t, c) = state, step
        n, v, a = list(n), list(v), list(a)
        if kind == "read":
            v[r] = a[p][n[q]]
        elif kind == "fill":
            v[r] = a[p].at[n[q]].get(mode="fill")
        elif kind == "set":
            a[p] = a[p].at[n[q]].set(v[r])
        elif kind == "method":
            a[p] = getattr(a[p].at[n[q]], method)(v[r])
        elif kind == "clip":
            a[p] = a[p].at[n[q]].set(v[r], mode="clip")
        elif kind == "slice":
            v[0], v[1] = lax.dynamic_slice(a[p], (n[q],), (2,))[::-1]
        elif kind == "window":
            a[p] = lax.dynamic_update_slice(a[p], jnp.stack(v), (n[q],))
        elif kind == "late":  # the old contents are read when the new ones are made already
            old = a[p]
            a[p] = old.at[n[q]].set(v[r])
            v[s] = combine(old[n[t]], a[p][n[t]])
        elif kind == "table":
            v[r] = combine(v[r], m[n[q], n[p]])
            m = m.at[n[p], n[q]].set(v[s])
        elif kind == "row":
            m = m.at[n[p]].set(m[n[q]])
        elif kind == "numbers":
            n[q] = (n[q] * 3 + n[r] + i + c) % 9 - 3
        elif kind == "values":
            v[p] = combine(v[q], v[r])
        elif kind == "exchange":
            x, y = a[p][n[q]], a[r][n[s]]
            a[p] = a[p].at[n[q]].set(y)
            a[r] = a[r].at[n[s]].set(x)
        elif kind == "copy" and c == 0:
            a[p] = a[1 - p]
        elif kind == "cond":
            inner = ("set", "read", "late", "table")[c % 4], q, p, s, r, t, c
            return flow.cond(
                n[q] > n[r],
                lambda x: once(flow, i, x, inner),
                lambda x: once(flow, i, x, ("read", p, q, r, s, t, c)) if t else x,
                (n, v, a, m),
            )
        elif kind in ("fori", "fori2"):
            inner = ("set", "exchange", "late", "table")[c % 4], p, q, r, s, t, c
            stop = jnp.clip(n[q], 0, 3) if kind == "fori" else 2

            def round_(j: Any, x: Any) -> Any:
                numbers, *rest = once(flow, j, x, inner)
                return ([numbers[0], (numbers[1] + j) % 5], *rest)

            return flow.fori(stop, round_, (n, v, a, m))
        elif kind == "while":

            def down(x: Any) -> Any:
                numbers, values, arrays, table = x
                k = numbers[q]
                arrays = list(arrays)
                arrays[p] = arrays[p].at[k].set(arrays[p][k - 1])
                numbers = [k - 1 if j == q else numbers[j] for j in range(2)]
                return numbers, values, arrays, table

            return flow.loop(
                lambda x: (x[0][q] > 0) & (x[2][p][x[0][q]] != x[1][r]), down, (n, v, a, m)
            )
        elif kind == "several":
            where = jnp.stack([n[p], n[q]])
            a[r] = a[r].at[where].set(jnp.stack(v))
        return n, v, a, m

    def body(flow: Any, i: Any, state: Any) -> Any:
        for step in steps:
            state = once(flow, i, state, step)
        return state

    return body


DTYPES = (np.float32, np.int32, np.bool_, np.int8, np.float16, "bfloat16", np.complex64, np.uint32)


@pytest.mark.parametrize("seed", range(96))
def test_random_updates(seed: int) -> None:
    dtype = DTYPES[seed % len(DTYPES)]
    body = drawn(seed, dtype)
    rng = np.random.default_rng(seed)

    def make(*shape: int) -> Any:
        found = rng.integers(0, 4, shape)
        if dtype is np.float32 and shape:
            found = np.where(found == 3, np.nan, found)
        return jnp.asarray(found, dtype)

    # Beyond 16 elements arrays lie in memory whatever happens to them.
    size = (5, 20)[rng.integers(2)]
    start = (
        [jnp.int32(x) for x in rng.integers(-2, size + 1, 2)],
        [make(), make()],
        [make(size), make(size)],
        make(3, 7),
    )
    rounds = int(rng.integers(0, 6))
    want = Python.fori(rounds, lambda i, x: body(Python, i, x), start)
    rows = []
    state = start
    for i in range(4):
        state = body(Python, jnp.int32(3 - i), state)
        rows.append(state[1][0])

    def native(i: Any, x: Any) -> Any:
        return body(Native, i, x)

    def scanned(x: Any, xs: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            c = native(i, c)
            return c, c[1][0]

        return lax.scan(step, x, xs, reverse=True)

    for got in (
        nj.jit(lambda x: lax.fori_loop(0, rounds, native, x))(start),
        nj.jit(lambda x, n: lax.fori_loop(0, n, native, x))(start, rounds),
        nj.jit(lambda x, n: lax.fori_loop(0, n, native, x), donate_argnums=0)(
            nj.tree.map(jnp.array, start), rounds
        ),
    ):
        same(got, want)
    got, stacked = nj.jit(scanned)(start, jnp.arange(4))
    same(got, state)
    same(stacked, jnp.stack(rows[::-1]))


def same(got: Any, want: Any) -> None:
    for x, y in zip(nj.tree.leaves(got), nj.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
