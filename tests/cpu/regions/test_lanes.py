"""Loops over independent elements: a few vectors run all rounds in registers, the results are those
of one round after the other."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import normal

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, random

# None is a multiple of the lanes and vectors that run side by side; the last is worth threads.
SIZES = (1003, 2050, 9001)


def lanes(function, *args, expected=True):
    """What a function gives when compiled; whether a loop runs over lanes is as `expected`."""
    lowered = nj.jit(function).lower(*args)
    assert ("kernel lanes_" in lowered.as_text()) == expected, lowered.as_text()
    return lowered.compile()(*args)


def same(found, want):
    found, want = nj.tree.leaves(found), nj.tree.leaves(want)
    for x, y in zip(found, want, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_array_equal(x, y)


def scanned(body, carry, xs, length, reverse=False):
    """What lax.scan does, a compiled round at a time."""
    body, ys = nj.jit(body), []
    for t in reversed(range(length)) if reverse else range(length):
        carry, y = body(carry, nj.tree.map(lambda x, t=t: x[t], xs))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, nj.tree.map(lambda *y: jnp.stack(y), *ys)


def whiled(cond, body, carry):
    """What a batched while does, a compiled round at a time."""
    cond, body = nj.jit(nj.vmap(cond)), nj.jit(nj.vmap(body))
    while True:
        on = cond(carry)
        if not on.any():
            return carry
        keep = lambda new, old, on=on: jnp.where(  # noqa: E731
            on.reshape(-1, *[1] * (new.ndim - 1)), new, old
        )
        carry = nj.tree.map(keep, body(carry), carry)


class Program:
    """A random round over carries of several dtypes and shapes."""

    def __init__(self, seed, n):
        self.rng, self.n = np.random.default_rng(seed), n
        kinds = [np.float32, np.int32, np.bool_, np.float32, np.uint8, np.complex64, np.float16]
        self.dtypes = [kinds[0], *[kinds[k] for k in self.rng.integers(0, len(kinds), 2)]]
        self.wide = bool(self.rng.integers(0, 2))  # carries have two elements an example
        self.seed = int(self.rng.integers(0, 1 << 30))
        self.reverse = bool(self.rng.integers(0, 2))

    def value(self, rng, dtype, *lead):
        shape = (*lead, self.n, 2) if self.wide else (*lead, self.n)
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(dtype)
        x = rng.standard_normal(shape) * 4
        x[rng.random(shape) < 0.02] = [np.nan, np.inf, -0.0][rng.integers(0, 3)]
        if np.dtype(dtype).kind in "iu":
            x = np.nan_to_num(x, posinf=3, neginf=1) % 100
        return x.astype(dtype)

    def body(self, carry, x):
        rng = np.random.default_rng(self.seed)
        pool = [*carry, x]

        def pick(dtype):
            value = pool[rng.integers(0, len(pool))]
            if value.dtype == jnp.complex64 and dtype != np.complex64:
                value = value.imag
            value = value.astype(dtype)
            if self.wide and rng.integers(0, 3) == 0:
                value = value[:, ::-1]
            return value

        for _ in range(6):
            kind = rng.integers(0, 6)
            a, b = pick(np.float32), pick(np.float32)
            if kind == 0:
                pool.append(a * b - 0.5)
            elif kind == 1:
                pool.append(jnp.where(a > b, a, -b))
            elif kind == 2:
                pool.append(jnp.tanh(a) + jnp.maximum(b, 0.25))
            elif kind == 3:
                pool.append(pick(np.int32) ^ (pick(np.int32) >> 1))
            elif kind == 4:
                pool.append(pick(np.bool_) & (a < b))
            else:
                pool.append(jnp.clip(a, -2, 2) / (1 + jnp.abs(b)))
        order = rng.permutation(len(self.dtypes))
        new = [pick(d) for d in self.dtypes]
        if len(set(self.dtypes)) == 1:
            new = [carry[k] for k in order]
        return tuple(new), (pool[-1], pool[-2])


@pytest.mark.parametrize("seed", range(14))
def test_random_rounds(seed):
    p = Program(seed, SIZES[seed % 3])
    init = tuple(p.value(p.rng, d) for d in p.dtypes)
    xs = p.value(p.rng, np.float32, 5)
    found = lanes(lambda c, xs: lax.scan(p.body, c, xs, reverse=p.reverse), init, xs)
    same(found, scanned(p.body, init, xs, 5, p.reverse))


def newton(x):
    return (lambda s: jnp.abs(s * s - x) > 1e-4 * x), (lambda s: 0.5 * (s + x / s))


@pytest.mark.parametrize("n", SIZES)
def test_each_example_stops_on_its_own(n):
    x = np.abs(normal(0, n)) * np.logspace(-3, 3, n, dtype=np.float32)
    x[::7] = np.nan

    def cond(s):
        return newton(s[1])[0](s[0]) & (s[2] < 50)

    def body(s):
        return newton(s[1])[1](s[0]), s[1], s[2] + 1

    init = (x, x, np.zeros(n, np.int32))
    found = lanes(nj.vmap(lambda *s: lax.while_loop(cond, body, s)), *init)
    assert len(np.unique(found[2])) > 4 and (found[2][::7] == 0).all()
    same(found, whiled(cond, body, init))


def test_no_example_begins():
    x = normal(0, 1003)
    found = lanes(nj.vmap(lambda x: lax.while_loop(lambda s: s > 9, lambda s: s * 2, x)), x)
    same(found, jnp.asarray(x))


def test_a_loop_that_waits_for_all_is_not_cut():
    x = np.arange(1003, dtype=np.float32)

    def run(x):  # an example goes on after its own end, until all have ended
        return lax.while_loop(lambda s: jnp.any(s < 1000), lambda s: s + 1, x)

    same(lanes(run, x, expected=False), jnp.asarray(x + 1000))

    def other(x):  # stops at another value than the loop
        return lax.while_loop(
            lambda s: jnp.any(s < 1000), lambda s: jnp.where(s < 2000, s + 1, s), x
        )

    same(lanes(other, x, expected=False), jnp.minimum(jnp.asarray(x) + 1000, 2000))

    def stopping(x):
        return lax.while_loop(
            lambda s: jnp.any(s < 1000), lambda s: jnp.where(s < 1000, s + 1, s), x
        )

    same(lanes(stopping, x), jnp.maximum(jnp.asarray(x), 1000))


@pytest.mark.parametrize(
    "body",
    [
        lambda c, _: (jnp.roll(c, 1) * 0.5, None),
        lambda c, _: (c - c.mean(), None),
        lambda c, _: (jnp.cumsum(c) * 0.1, None),
        lambda c, _: (c[::-1] + 1, None),
        lambda c, _: (jnp.sort(-c), None),
        lambda c, _: (c + c[7], None),
    ],
)
def test_rounds_that_read_elsewhere_are_left_alone(body):
    x = normal(0, 1003)
    found = lanes(lambda x: lax.scan(body, x, None, length=4), x, expected=False)
    carry, _ = scanned(lambda c, _: (body(c, None)[0], ()), x, (), 4)
    np.testing.assert_allclose(found[0], carry, rtol=1e-5, atol=1e-5)


def test_counters_and_their_results():
    def body(s):
        i, x, total = s
        return i + 2, x * 0.9 + i, total + jnp.float32(1.5)

    def run(x, n):
        return lax.while_loop(lambda s: s[0] < n, body, (0, x, jnp.float32(0)))

    for n in (0, 1, 20):
        i, total, x = 0, 0.0, jnp.asarray(normal(0, 1003))
        found = lanes(run, x, n)
        step = nj.jit(body)
        while i < n:
            i, x, total = step((i, x, total))
        same(found, (jnp.int32(i), x, jnp.float32(total)))


def test_rows_that_all_examples_share_are_stacked_once():
    def body(c, u):
        x, k = c
        return (x * u, k + 1), (x + k, u * k, jnp.stack([u, u + 1]))

    x, u = normal(0, 2050), normal(1, 9)
    found = lanes(lambda x, u: lax.scan(body, (x, 0), u), x, u)
    same(found, scanned(body, (x, 0), u, 9))


def test_carries_that_exchange_their_values():
    a, b = normal(0, 1003), normal(1, 1003)
    found = lanes(lambda a, b: lax.fori_loop(0, 7, lambda _, s: (s[1], s[0]), (a, b)), a, b)
    same(found, (jnp.asarray(b), jnp.asarray(a)))


@pytest.mark.parametrize("shape", [(33, 61), (7, 11, 13), (1, 999)])
def test_values_of_several_axes(shape):
    row = normal(1, shape[-1])

    def body(c, i):
        return c * 0.5 + row * i + jnp.arange(shape[-1]), None

    x, i = normal(0, *shape), np.arange(4, dtype=np.float32)
    same(lanes(lambda x, i: lax.scan(body, x, i)[0], x, i), scanned(
        lambda c, i: (body(c, i)[0], ()), x, i, 4)[0])  # fmt: skip


def test_examples_along_the_last_axis():
    def step(y):
        return y + 0.1 * jnp.stack([y[1] - y[0], y[0] * y[2], -y[2]])

    run = nj.vmap(lambda y: lax.fori_loop(0, 9, lambda _, y: step(y), y), 1, 1)
    y = normal(0, 3, 1003)
    same(lanes(run, y), scanned(lambda y, _: (nj.vmap(step, 1, 1)(y), ()), y, (), 9)[0])


def test_small_products_and_sums_of_an_example():
    def step(s, u):
        m, x = s
        x = m @ x / jnp.linalg.norm(x) + u
        return (m + 0.1 * jnp.outer(x, x), x), x.max()

    m, x, u = normal(0, 1003, 2, 2), normal(1, 1003, 2), normal(2, 5)
    found = lanes(nj.vmap(lambda m, x: lax.scan(step, (m, x), u)), m, x)
    want = scanned(lambda s, u: nj.vmap(step, (0, None))(s, u), (m, x), u, 5)
    for a, b in zip(nj.tree.leaves(found), nj.tree.leaves(want), strict=True):
        b = b.T if a.shape != b.shape else b
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_loops_and_branches_inside():
    def inner(x, k):
        x = lax.fori_loop(0, 3, lambda i, x: x * 0.5 + i, x)
        x = lax.while_loop(lambda x: x > 1, lambda x: x * 0.7, x)
        return lax.cond(k % 2 == 0, lambda x: x + k, lambda x: x * k, x)

    def body(x, k):
        return nj.vmap(inner, (0, None))(x, k), None

    x, k = normal(0, 2050), np.arange(1, 8, dtype=np.float32)
    want = scanned(lambda x, k: (body(x, k)[0], ()), x, k, 7)[0]
    same(lanes(lambda x: lax.scan(body, x, k)[0], x), want)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_rows(reverse):
    def outer(c, rows):
        step = lambda c, r: (c * 0.5 + r, None)  # noqa: E731
        return lax.scan(step, c, rows, reverse=reverse)[0], rows[1]

    x, rows = normal(0, 2050), normal(1, 3, 4, 2050)
    found = lanes(lambda x, rows: lax.scan(outer, x, rows, reverse=reverse), x, rows)
    for t in reversed(range(3)) if reverse else range(3):
        for r in rows[t, ::-1] if reverse else rows[t]:
            x = x * np.float32(0.5) + r
    same(found, (jnp.asarray(x), jnp.asarray(rows[:, 1])))


def test_random_walks():
    def step(c, _):
        key, x = c
        key, a, b = random.split(key, 3)
        y = x + random.normal(a)
        x = jnp.where(jnp.log(random.uniform(b)) < 0.5 * (x * x - y * y), y, x)
        return (key, x), x

    keys, x = random.split(random.PRNGKey(0), 1003), normal(0, 1003)
    found = lanes(nj.vmap(lambda k, x: lax.scan(step, (k, x), None, length=4)[1]), keys, x)
    want = scanned(lambda c, _: nj.vmap(lambda *c: step(c, None))(*c), (keys, x), (), 4)[1]
    same(found, want.T)


def test_gradients():
    def run(x, u):
        return lax.scan(lambda x, u: (u * x * (1 - x), x), x, u)

    def loss(x, u):
        x, ys = run(x, u)
        return jnp.sum(x * x) + jnp.sum(jnp.sin(ys))

    x, u = np.abs(np.sin(normal(0, 1003))), np.linspace(2, 3.7, 6, dtype=np.float32)
    gx, gu = lanes(nj.grad(loss, (0, 1)), x, u)

    def unrolled(x, u):
        total = 0
        for k in range(6):
            total, x = total + jnp.sum(jnp.sin(x)), u[k] * x * (1 - x)
        return total + jnp.sum(x * x)

    wx, wu = nj.jit(nj.grad(unrolled, (0, 1)))(x, u)
    np.testing.assert_allclose(gx, wx, rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(gu, wu, rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize("n", [1024, 1003])
def test_results_in_the_memory_of_arguments(n):
    def run(a, b):
        a, b, c = lax.fori_loop(0, 3, lambda i, s: (s[1] + i, s[0] * s[2], s[2] + b), (a, b, b))
        return a, b, c

    a, b = normal(0, n), normal(1, n)
    want = nj.jit(run)(a, b)
    x, y = a, b
    z = b
    for i in range(3):
        x, y, z = y + np.float32(i), x * z, z + b
    for w, v in zip(want, (x, y, z), strict=True):
        np.testing.assert_allclose(w, v, rtol=1e-6)
    same(nj.jit(run, donate_argnums=(0, 1))(jnp.asarray(a), jnp.asarray(b)), want)
    same(lanes(run, a, b), want)


def test_loops_around():
    def outer(c, _):
        c = lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, c)
        return c - c.mean(), c

    x = normal(0, 1003)
    found = lanes(lambda x: lax.scan(outer, x, None, length=4), x)
    same(found, scanned(outer, x, (), 4))


def test_no_rounds():
    x = normal(0, 1003)
    same(nj.jit(lambda x: lax.fori_loop(3, 3, lambda i, x: x + i, x))(x), jnp.asarray(x))
    found = nj.jit(lambda x: lax.scan(lambda c, u: (c * u, c), x, jnp.zeros((0, 1003))))(x)
    same(found, (jnp.asarray(x), jnp.zeros((0, 1003))))


@pytest.mark.parametrize("n", [8, 12, 16, 23, 64, 100])
def test_few_examples_of_several_elements(n):
    def step(y):
        return y + 0.1 * jnp.stack([y[1] - y[0], y[0] * y[2], -y[2]])

    run = nj.vmap(lambda y: lax.fori_loop(0, 9, lambda _, y: step(y), y))
    y = normal(0, n, 3)
    same(lanes(run, y), scanned(lambda y, _: (nj.vmap(step)(y), ()), y, (), 9)[0])


@pytest.mark.parametrize("depth", [2, 3])
def test_examples_of_examples_stop_on_their_own(depth):
    shape = (5, 21, 33)[-depth:]
    x, y = np.abs(normal(0, *shape)) + 1, normal(1, *shape)
    z = (x + 1j * y).astype(np.complex64)

    def run(x, z):
        return lax.while_loop(
            lambda s: (jnp.abs(s[0] * s[0] - x) > 1e-3 * x) & (s[2] < 40),
            lambda s: (0.5 * (s[0] + x / s[0]), s[1] * 0.5 + z, s[2] + 1),
            (x, z, 0),
        )

    nested, flat = run, nj.vmap(run)
    for _ in range(depth):
        nested = nj.vmap(nested)
    found = lanes(nested, x, z)
    want = nj.jit(flat)(x.ravel(), z.ravel())
    assert len(np.unique(found[2])) > 3
    same([v.ravel() for v in found], want)


def test_what_any_example_decides_is_not_cut():
    def run(x):  # a row goes on while any of it does
        def goes_on(s):
            return jnp.any(s < 50, axis=1)

        return lax.while_loop(
            lambda s: jnp.any(goes_on(s)), lambda s: jnp.where(goes_on(s)[:, None], s + 1, s), x
        )

    x = np.arange(1000, dtype=np.float32).reshape(20, 50)
    found = lanes(run, x, expected=False)
    rounds = np.maximum(50 - x.min(1), 0)
    same(found, jnp.asarray(x + rounds[:, None]))


def test_rows_that_are_written_one_a_round_are_updated_in_place():
    x = normal(0, 300, 100)

    def copied(x):
        def body(i, c):
            return lax.dynamic_update_slice(c, lax.dynamic_slice(x, (i, 0), (1, 100)), (i + 1, 0))

        return lax.fori_loop(0, 90, body, x)

    want = np.array(x)
    want[1:91] = np.array(x)[:90]
    np.testing.assert_array_equal(lanes(copied, x, expected=False), want)
