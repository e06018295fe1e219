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
    "fori2", "while", "several", "where", "where2", "grid",
    "grid",
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
        elif kind == "where":  # an update that is left out
            new = a[p].at[n[q]].set(v[r]).at[n[r]].set(v[s])
            a[p] = jnp.where(n[s] > n[t], new, a[p]) if c % 2 else jnp.where(n[s] > 0, a[p], new)
        elif kind == "where2":  # the test depends on what is read, the new contents are read too
            new = a[p].at[n[q]].set(v[r])
            v[t] = new[n[r]] if c else v[t]
            a[p] = jnp.where(a[p][n[s]] == a[p][n[q]], new, a[p])
        elif kind == "grid":  # places of known and of unknown range, some of them outside
            old = m[i - c, n[p]] if r else a[s][i * 2 - c]
            m = m.at[n[q], i + c - 2].set(old) if t else m.at[i + c - 2, n[q]].set(old)
            a[p] = a[p].at[c * 2 - i].set(combine(old, v[r]))
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


@pytest.mark.parametrize("seed", range(128))
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


# ---- known algorithms


def distance(a: Any, b: Any) -> Any:
    """Edit distance of two words: the table of all prefixes."""
    rows, columns = len(a) + 1, len(b) + 1
    table = jnp.zeros((rows, columns), jnp.int32)
    table = table.at[:, 0].set(jnp.arange(rows)).at[0].set(jnp.arange(columns))

    def cell(i: Any, j: Any, t: Any) -> Any:
        least = jnp.minimum(
            jnp.minimum(t[i - 1, j], t[i, j - 1]) + 1, t[i - 1, j - 1] + (a[i - 1] != b[j - 1])
        )
        return t.at[i, j].set(least)

    return lax.fori_loop(
        1, rows, lambda i, t: lax.fori_loop(1, columns, lambda j, t: cell(i, j, t), t), table
    )


def inserted(x: Any) -> Any:
    """Insertion sort."""

    def insert(i: Any, x: Any) -> Any:
        key = x[i]

        def move(c: Any) -> Any:
            j, x = c
            return j - 1, x.at[j].set(x[j - 1])

        j, x = lax.while_loop(lambda c: (c[0] > 0) & (c[1][c[0] - 1] > key), move, (i, x))
        return x.at[j].set(key)

    return lax.fori_loop(1, x.shape[0], insert, x)


def sieve(n: int) -> Any:
    def strike(i: Any, prime: Any) -> Any:
        def one(c: Any) -> Any:
            return c[0] + i, c[1].at[c[0]].set(False)

        return lax.cond(
            prime[i],
            lambda p: lax.while_loop(lambda c: c[0] < n, one, (i * i, p))[1],
            lambda p: p,
            prime,
        )

    start = jnp.ones(n, bool).at[:2].set(False)
    return lax.fori_loop(2, int(n**0.5) + 1, strike, start)


def united(a: Any, b: Any, n: int) -> Any:
    """The parents of n elements of which pairs are united."""

    def top(parents: Any, i: Any) -> Any:
        return lax.while_loop(lambda i: parents[i] != i, lambda i: parents[i], i)

    def unite(parents: Any, pair: Any) -> Any:
        return parents.at[top(parents, pair[0])].set(top(parents, pair[1])), None

    return lax.scan(unite, jnp.arange(n), (a, b))[0]


def one_kernel(f: Callable, *args: Any) -> None:
    printed = text(f, *args)
    assert printed.count("kernel elements") == 1 and "special" not in printed, printed


def test_edit_distance() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 3, 20), rng.integers(0, 3, 30)
    want = np.zeros((21, 31), int)
    want[:, 0], want[0] = range(21), range(31)
    for i in range(1, 21):
        for j in range(1, 31):
            least = min(want[i - 1, j], want[i, j - 1]) + 1
            want[i, j] = min(least, want[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    np.testing.assert_array_equal(nj.jit(distance)(a, b), want)
    one_kernel(distance, a, b)


def test_sorts_sieves_and_unions() -> None:
    x = np.random.default_rng(2).standard_normal(50).astype(np.float32)
    np.testing.assert_array_equal(nj.jit(inserted)(x), np.sort(x))
    one_kernel(inserted, x)
    primes = [p for p in range(500) if p > 1 and all(p % q for q in range(2, p))]
    assert np.flatnonzero(nj.jit(sieve, static_argnums=0)(500)).tolist() == primes
    a, b = jnp.array([3, 5, 1, 9, 8]), jnp.array([5, 1, 0, 8, 7])
    parents = nj.jit(united, static_argnums=2)(a, b, 30)
    tops = [
        int(lax.while_loop(lambda i: parents[i] != i, lambda i: parents[i], i)) for i in range(30)
    ]
    assert tops[:10] == [0, 0, 2, 0, 4, 0, 6, 7, 7, 7] and tops[10:] == list(range(10, 30))
    one_kernel(lambda a, b: united(a, b, 30), a, b)


def test_counters_are_indices() -> None:
    def run(x: Any) -> Any:
        return lax.fori_loop(1, 20, lambda i, x: x.at[i].set(x[i - 1] * 0.5 + x[i]), x)

    x = np.arange(20, dtype=np.float32)
    printed = text(run, x)
    assert (
        printed
        == """\
kernel elements_1(out0: f32[20] out, out1: i32[] out):
  out0_last: f32 = out0[0]
  for i1 < 19:
    v2: f32 = out0_last
    v3: f32 = out0[i1 + 1]
    out0_next: f32 = add(mul(v2, 0.5), v3)
    out0[i1 + 1] = out0_next
    out0_last = out0_next
  v4: i32 = 20
  out1[] = v4
"""
    )
    want = x.copy()
    for i in range(1, 20):
        want[i] = want[i - 1] * np.float32(0.5) + want[i]
    np.testing.assert_array_equal(nj.jit(run)(x), want)


@pytest.mark.parametrize("step", [1, -1, 2, -3])
@pytest.mark.parametrize("gap", [-2, -1, 0, 1, 3])
def test_what_a_round_stored(step: int, gap: int) -> None:
    """Loads near the store, before and after it, counting up and down."""

    def run(x: Any, late: bool, loop: Callable) -> Any:
        def body(t: Any, x: Any) -> Any:
            i = 20 + step * t
            before = x[i + gap]
            x = x.at[i].set(before + 1)
            return x.at[0].set(x[0] * 2 + x[i + gap]) if late else x

        return loop(6, body, x)

    x = jnp.arange(40.0)
    for late in (False, True):
        want = run(x, late, Python.fori)
        got = nj.jit(lambda x, late=late: run(x, late, lambda n, f, x: lax.fori_loop(0, n, f, x)))(
            x
        )
        np.testing.assert_array_equal(got, want)


def test_sums_at_one_place() -> None:
    def product(a: Any, b: Any) -> Any:
        def add(i: Any, j: Any, c: Any) -> Any:
            return lax.fori_loop(0, 30, lambda k, c: c.at[i, j].add(a[i, k] * b[k, j]), c)

        rows = lambda i, c: lax.fori_loop(0, 7, lambda j, c: add(i, j, c), c)  # noqa: E731
        return lax.fori_loop(0, 5, rows, jnp.zeros((5, 7)))

    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (5, 30)), rng.integers(-3, 4, (30, 7))
    np.testing.assert_array_equal(nj.jit(product)(a * 1.0, b * 1.0), a @ b)
    one_kernel(product, a * 1.0, b * 1.0)


@pytest.mark.parametrize("length", [6, 30])
def test_gradients(length: int) -> None:
    """What reads an element adds to one in reverse: no array of zeros is made, nor added up."""

    def run(loop: Callable) -> Callable:
        def loss(x: Any, y: Any) -> Any:
            def body(i: Any, c: Any) -> Any:
                x, y = c
                x = x.at[i + 1].set(x[i] * 0.5 + x[i + 1] * y[i - 1])
                return x, y.at[i].add(x[i] * x[2])

            x, y = loop(length - 1, body, (x, y))
            return jnp.sum(x * x) + jnp.sum(y)

        return nj.grad(loss, (0, 1))

    native = run(lambda n, f, x: lax.fori_loop(0, n, f, x))
    x, y = np.random.default_rng(0).standard_normal((2, length)).astype(np.float32)
    for got, want in zip(nj.jit(native)(x, y), run(Python.fori)(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    printed = text(native, x, y)
    assert printed.count("kernel elements") == 2, printed
    assert "special" not in printed


def test_a_row_inside_does_not_excuse_a_column_outside() -> None:
    def run(x: Any, row: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return x.at[row, i + 1].set(x[i, i] + i)

        return lax.fori_loop(0, 6, body, x)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for row in (0, 2, -1, 3):
        want = x.copy()
        for i in range(3):
            if row < 3:
                want[row, i + 1] = want[min(i, 2), i] + i
        np.testing.assert_array_equal(nj.jit(run)(x, row), want)


def test_scanned_counters_are_indices() -> None:
    def run(x: Any) -> Any:
        def step(x: Any, ij: Any) -> Any:
            i, j = ij
            return x.at[i].set(x[i - 1] * 0.5 + x[j]), i * j

        return lax.scan(step, x, (jnp.arange(1, 20), jnp.arange(19) * 2 - 3 + 6), reverse=True)

    x = np.arange(40, dtype=np.float32)
    want, rows = x.copy(), []
    for k in reversed(range(19)):
        i, j = k + 1, 2 * k + 3
        want[i] = want[i - 1] * np.float32(0.5) + want[j]
        rows.append(i * j)
    got, stacked = nj.jit(run)(x)
    np.testing.assert_array_equal(got, want)
    assert stacked.tolist() == rows[::-1]
    assert "= out0[-2*i1 + 39]" in text(run, x)

    def twice(x: Any) -> Any:
        places = jnp.arange(19) * 2 + 3  # outside of the loop around

        def around(x: Any, _: Any) -> Any:
            x = lax.scan(lambda x, i: (x.at[i].set(x[i - 1] * 0.5), None), x, places)[0]
            return jnp.sort(x), None

        return lax.scan(around, x, length=2)[0]

    for _ in range(2):
        for k in range(19):
            x[2 * k + 3] = x[2 * k + 2] * np.float32(0.5)
        x.sort()
    np.testing.assert_array_equal(nj.jit(twice)(np.arange(40, dtype=np.float32)), x)
    assert "out0[2*i1 + 3] = " in text(twice, x)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.int16])
def test_counters_that_another_type_cannot_hold(dtype: Any) -> None:
    def run(x: Any, loop: Callable) -> Any:
        def body(t: Any, x: Any) -> Any:
            i = (t * 7 - 20).astype(dtype)
            return x.at[i].add(x[i + 1] + (i < 40) + i // 3).at[t].set(i)

        return loop(60, body, x)

    x = jnp.arange(500) % 13
    want = run(x, Python.fori)
    got = nj.jit(lambda x: run(x, lambda n, f, x: lax.fori_loop(0, n, f, x)))(x)
    np.testing.assert_array_equal(got, want)
    got = nj.jit(lambda x, n: run(x, lambda _, f, x: lax.fori_loop(0, n, f, x)))(x, 60)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_scanned_counters_that_wrap_around(dtype: Any) -> None:
    def run(x: Any) -> Any:
        step = lambda x, i: (x.at[i].add(1.0), None)  # noqa: E731
        return lax.scan(step, x, lax.iota(dtype, 300))[0]

    want = np.zeros(400, np.float32)
    np.add.at(want, np.arange(300).astype(dtype).astype(int) % 400, 1)
    np.testing.assert_array_equal(nj.jit(run)(jnp.zeros(400)), want)


def test_places_that_are_chosen() -> None:
    # A choice that looks like the wrapping of negative places, but asks for less than 5.
    def run(x: Any, places: Any) -> Any:
        def step(x: Any, i: Any) -> Any:
            at = jnp.where(i < 5, jnp.uint32(7), i)
            x = lax.dynamic_update_slice(x, jnp.float32(i)[None] + 1, (at,))
            return x, lax.dynamic_slice(x, (at,), (1,))

        return lax.scan(step, x, places)

    want, rows = np.zeros(40, np.float32), []
    places = np.array([1, 3, 9, 12, 4, 0, 39, 50], np.uint32)
    for i in places:
        at = 7 if i < 5 else min(i, 39)
        want[at] = i + 1
        rows.append([want[at]])
    got, stacked = nj.jit(run)(jnp.zeros(40), places)
    np.testing.assert_array_equal(got, want)
    assert stacked.tolist() == rows


@pytest.mark.parametrize("read", [lambda x, i: x[i] * 3, lambda x, i: x[i] * x[i + 1]])
def test_gradients_of_jitted_reads_are_added_in_place(read: Callable) -> None:
    inner = nj.jit(lambda x, i: nj.jit(read)(x, i) + 1)

    def added(x: Any, places: Any) -> Any:
        step = lambda c, i: (c + nj.grad(inner)(x, i), None)
        return lax.scan(step, jnp.zeros_like(x), places)[0]

    def referred(x: Any, places: Any) -> Any:
        total = nj.new_ref(jnp.zeros_like(x))

        def step(_: None, i: Any) -> tuple:
            nj.vjp(inner, x, i)[1].with_refs(total, nj.ad.GradValue())(1.0)
            return None, None

        lax.scan(step, None, places)
        return nj.freeze(total)

    x, places = jnp.arange(50.0), jnp.array([4, 48, 4, 0])
    want = sum(nj.grad(read)(x, i) for i in places)
    for f in (added, referred):
        np.testing.assert_allclose(nj.jit(f)(x, places), want)
        one_kernel(f, x, places)


READS: dict[str, Callable] = {
    "a row": lambda t, i: jnp.sin(t[i]),
    "two rows": lambda t, i: t[i] * t[i - 1],
    "rows": lambda t, i: t[jnp.stack([i, i, (i * 5) % 40])].prod(0),
    "a column": lambda t, i: t[:, i % 30] ** 2,
    "a window": lambda t, i: lax.dynamic_slice(t, (i, 3), (2, 20)) ** 3,
}


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_of_parts_that_are_read_are_added_in_place(kind: str, jitted: bool) -> None:
    read = nj.jit(READS[kind]) if jitted else READS[kind]

    def loss(t: Any, places: Any) -> Any:
        return lax.scan(lambda c, i: (c + 1, read(t, i) * c), 1.0, places)[1].sum()

    def looped(t: Any, places: Any) -> Any:
        step = lambda k, c: c + read(t, places[k]).sum() * (k + 1)
        return lax.fori_loop(0, 9, step, 0.0)

    table = np.random.default_rng(1).standard_normal((40, 30)).astype(np.float32)
    places = np.array([3, 39, 3, 0, 7, 7, 38, 1, 25])
    by_hand = nj.grad(lambda t: sum(read(t, i).sum() * (k + 1) for k, i in enumerate(places)))
    want = by_hand(jnp.asarray(table))
    for f in (loss, looped):
        np.testing.assert_allclose(nj.jit(nj.grad(f))(table, places), want, rtol=2e-5, atol=2e-5)
        printed = text(nj.grad(f), table, places)
        assert "lanes_" not in printed and printed.count("< 1200 ") <= 1, printed  # the first zeros
