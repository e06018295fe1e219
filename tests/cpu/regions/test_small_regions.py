"""Loops over small arrays run as one function that keeps its carries in vector registers."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import normal

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu.link import link


def program(function, *args):
    """The function's results when compiled, and the steps of its program."""
    lowered = nj.jit(function).lower(*args)
    return lowered.compile()(*args), lowered.as_text()


def scanned(body, init, xs, length=None, reverse=False):
    """What lax.scan does, in Python, on arrays."""
    ys = []
    length = len(nj.tree.leaves(xs)[0]) if length is None else length
    rows = reversed(range(length)) if reverse else range(length)
    for t in rows:
        init, y = body(init, nj.tree.map(lambda x, t=t: x[t], xs))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return init, nj.tree.map(lambda *y: jnp.stack([jnp.asarray(z) for z in y]), *ys)


def check(body, init, xs, length=None, reverse=False, small=True):
    found, text = program(
        lambda init, xs: lax.scan(body, init, xs, length=length, reverse=reverse), init, xs
    )
    # With shorter vectors a region takes more of them, and may be too large.
    if not small or link.vector_bytes() == 64:
        assert ("small_" in text) == small, text
    want = scanned(body, init, xs, length, reverse)
    for x, y in zip(nj.tree.leaves(found), nj.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


SIZES = (2, 3, 5, 8, 15, 16, 17, 31, 33, 64)


@pytest.mark.parametrize("n", SIZES)
def test_elementwise_carries_and_rows(n):
    def body(c, x):
        c = jnp.tanh(0.5 * c - x) + 0.1
        return c, (c * 2, c[::-1])

    check(body, normal(0, n), normal(1, 5, n))


@pytest.mark.parametrize("n", SIZES[:-1])
@pytest.mark.parametrize("reverse", [False, True])
def test_products_with_constants(n, reverse):
    w = normal(2, n, n) / n

    def body(h, x):
        h = jnp.tanh(w @ h + h @ w + x)
        return h, h

    check(body, normal(0, n), normal(1, 4, n), reverse=reverse)


@pytest.mark.parametrize("step", [
    lambda c, x: jnp.sin(c) * 1.01 + x,
    lambda c, x: c / (1 + jnp.sum(c * c)) + x,
    lambda c, x: c[::-1] * 0.5 + x,
])  # fmt: skip
def test_bodies_of_many_operations_one_behind_the_other(step):
    # Each was written where the one behind it was, so deep in Python's stack that it ended.
    def body(c, x):
        for _ in range(45):
            c = step(c, x)
        return c, jnp.max(c)

    check(body, normal(0, 3), 0.1 * normal(1, 4, 3))


def test_products_of_matrices_that_are_carried():
    def body(m, x):
        m = m @ x.T + jnp.einsum("ij,kj->ik", x, m)
        return m, (m[0], m.sum())

    check(body, normal(0, 4, 4), normal(1, 3, 4, 4))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), 2])
def test_reductions(name, axis):
    def body(c, x):
        found = getattr(jnp, name)(x * c, axis=axis)
        return c + 0.01 * jnp.sum(found), found

    check(body, normal(0, 3, 5, 7), normal(1, 4, 3, 5, 7))


def test_reductions_of_integers_and_booleans():
    def body(c, x):
        odd = (c & 1) == 1
        found = jnp.any(odd), jnp.all(odd), jnp.sum(c), jnp.max(c), jnp.sum(odd, axis=0)
        return jnp.where(odd, c * 3 + x, c // 2), found

    rng = np.random.default_rng(0)
    check(body, rng.integers(-99, 99, (3, 7), np.int32), rng.integers(0, 9, (6, 7), np.int32))


def test_movement_between_registers():
    def body(c, x):
        y = jnp.transpose(c.reshape(3, 2, 5), (2, 0, 1))
        z = jnp.concatenate([y[:, 1:], y[:, :1]], axis=1)[::-1] + x[:, None, None]
        c = jnp.pad(z.reshape(5, 6)[1:4, ::2], ((1, 0), (0, 2)), constant_values=0.5)
        return jnp.broadcast_to(c.reshape(-1)[:15].reshape(3, 5, 1), (3, 5, 2)).reshape(30), c

    check(body, normal(0, 30), normal(1, 4, 5))


def test_bodies_interact():
    """The n-body problem: pairs of rows, an expensive value used along another axis."""
    mass = np.abs(normal(2, 5)) + 0.5

    def body(state, _):
        position, velocity = state
        apart = position[None] - position[:, None]
        square = (apart**2).sum(-1) + 1e-2
        force = (mass[None, :, None] * apart) * (square**-1.5)[..., None]
        velocity = velocity + 1e-3 * force.sum(1)
        return (position + 1e-3 * velocity, velocity), square

    check(body, (normal(0, 5, 3), normal(1, 5, 3)), None, length=6)


def test_a_dtype_of_each_width():
    with nj.enable_x64(True):

        def body(c, x):
            a, b, n = c
            a = a * 0.5 + x.astype(jnp.float32)
            b = b + jnp.sqrt(jnp.abs(a.astype(jnp.float64)))
            return (a, b, n + (b > 1).astype(jnp.int64)), (a > 0, n.astype(jnp.int32))

        init = normal(0, 11), normal(1, 11, dtype=np.float64), np.arange(11)
        check(body, init, normal(2, 4, 11, dtype=np.float64))


def test_iota_and_positions():
    def body(c, i):
        at = jnp.arange(12)
        return jnp.where(at == i, c + at, c * 0.5), jnp.where(at < i, at, -at)

    check(body, normal(0, 12), np.arange(5, dtype=np.int32))


def test_reads_of_arrays_at_runtime_places():
    big = normal(3, 50, 7)

    def body(c, i):
        row = lax.dynamic_index_in_dim(jnp.asarray(big), i, keepdims=False)
        window = lax.dynamic_slice(c, (i // 16,), (7,))
        return jnp.sin(c).at[:7].add(row), (row + window, jnp.asarray(big)[i, 3])

    check(body, normal(0, 11), np.array([0, 49, 17, 60, 3], np.int32))


def test_inner_loops_and_branches():
    def body(c, x):
        c = lax.fori_loop(0, 3, lambda i, c: c * 0.5 + x + i, c)
        c, ys = lax.scan(lambda c, y: (c + y, c.sum()), c, jnp.stack([x, x * c]))
        c = lax.cond(c.sum() > 0, lambda c: -c, lambda c: jnp.exp(-c * c), c)
        c = lax.switch(ys.astype(int)[0], [jnp.sin, jnp.cos, lambda c: c * 2], c)
        return c, (ys, c[0])

    check(body, normal(0, 9), normal(1, 6, 9))


def test_while_with_arrays():
    matrix = normal(0, 6, 6) + 4 * np.eye(6, dtype=np.float32)

    def run(b):
        def more(state):
            k, x, rest = state
            return (k < 50) & (jnp.sum(rest * rest) > 1e-10)

        def step(state):
            k, x, rest = state
            x = x + rest / jnp.diag(matrix)
            return k + 1, x, b - matrix @ x

        return lax.while_loop(more, step, (0, jnp.zeros(6), b))

    b = normal(1, 6)
    found, text = program(run, b)
    assert "small_" in text
    np.testing.assert_allclose(matrix @ found[1], b, rtol=1e-4, atol=1e-4)
    state = 0, jnp.zeros(6), jnp.asarray(b)
    while state[0] < 50 and float(jnp.sum(state[2] ** 2)) > 1e-10:
        x = state[1] + state[2] / jnp.diag(matrix)
        state = state[0] + 1, x, b - matrix @ x
    assert abs(int(found[0]) - state[0]) <= 1
    np.testing.assert_allclose(found[1], state[1], rtol=1e-4)


def test_what_follows_the_last_lane_is_left_alone():
    """Rows of an odd size are written one after the other without touching their neighbours."""

    def body(c, x):
        return c + x, (c, c[:3].astype(jnp.int8), c > 0)

    check(body, normal(0, 13), normal(1, 7, 13), reverse=True)


def test_lanes_past_the_end_meet_no_rare_branch():
    """Powers and divisions see no zeros that the user did not write."""

    def body(c, x):
        return (jnp.abs(c) + x) ** -1.5 / c + 1, 1 / c

    check(body, np.abs(normal(0, 5)) + 1, np.abs(normal(1, 6, 5)) + 1)


def test_gradients_of_loops():
    w = normal(0, 5, 5) / 3

    def loss(w, h, xs):
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, xs)[1] ** 2)

    def plain(w, h, xs):
        total = 0.0
        for x in xs:
            total = total + jnp.sum(h**2)
            h = jnp.tanh(w @ h + x)
        return total

    args = w, normal(1, 5), normal(2, 6, 5)
    found, text = program(nj.grad(loss, argnums=(0, 1, 2)), *args)
    assert "small_" in text
    want = nj.grad(plain, argnums=(0, 1, 2))(*args)
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_large_bodies_stay_kernels():
    def body(c, x):
        return jnp.sin(c) + x, None

    found, text = program(lambda c, x: lax.scan(body, c, x)[0], normal(0, 5000), normal(1, 2))
    assert "small_" not in text
    assert found.shape == (5000,)


@pytest.mark.parametrize("n, m", [(64, 64), (100, 40), (7, 120), (120, 7), (33, 49)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_longer_products_run_in_loops(n, m, dtype):
    """Rows, columns (transposed before the loop), and sums in front of them."""
    with nj.enable_x64(True):
        w, v = normal(2, n, m, dtype=dtype) / n, normal(3, m, n, dtype=dtype) / m

        def body(h, x):
            wide = jnp.tanh(w.T @ h + h @ v.T + x)
            return jnp.sin(w @ wide + (wide * 2) @ v), wide

        check(body, normal(0, n, dtype=dtype), normal(1, 3, m, dtype=dtype))


def test_sums_of_long_rows_and_parts_of_matrices():
    w = normal(0, 40, 60)

    def body(h, x):
        rows = jnp.sum(x, axis=0) + jnp.mean(x * h[None, :9], axis=0)
        part = w[3:23, 10:50].T @ h[5:25]
        turned = w[::2, ::3].T[1:] @ h[:20]
        return 0.5 * h + 0.01 * jnp.pad(part, (0, 0)), (rows, turned)

    check(body, normal(1, 40), normal(2, 4, 64, 9))


def test_products_of_values_made_in_the_loop():
    def body(m, x):
        y = jnp.outer(x, x) + m
        return 0.1 * (y @ m), jnp.sum(y, axis=0) @ jnp.concatenate([x, x])[::2]

    check(body, normal(0, 12, 12), normal(1, 3, 12), small=True)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_elements_are_held_one_a_register(n):
    def body(s, x):
        parts = [s[k] for k in range(n)]
        turned = jnp.array([parts[k - 1] * 0.5 - parts[k] * x[k] for k in range(n)])
        total = jnp.sum(turned) + jnp.max(s * x)
        some = jnp.where(turned > 0, turned, x[::-1])
        return turned + 0.1 * total, (some, total, jnp.stack([total, x[0]]), turned > x)

    check(body, normal(0, n), normal(1, 5, n))
    check(body, normal(0, n), normal(1, 5, n), reverse=True)


def test_inner_products_of_few_elements():
    def body(q, w):
        cross = jnp.array(
            [q[1] * w[2] - q[2] * w[1], q[2] * w[0] - q[0] * w[2], q[0] * w[1] - q[1] * w[0]]
        )
        q = q + 0.1 * cross
        return q / jnp.sqrt(q @ q), (q @ w, q[0])

    check(body, normal(0, 3), normal(1, 6, 3))


def test_a_chosen_element_of_one_repeated():
    def body(c, k):
        x, one = c
        return (x * 0.5 + jnp.broadcast_to(one, (6,))[k % 6], one + 1.0), one

    check(body, (normal(0, 6), np.float32(1)), np.arange(4, dtype=np.int32))


def test_registers_that_are_passed_on_whole_are_not_shuffled():
    """Lanes past the end hold the last element already; LLVM did not end over such shuffles."""
    x = np.arange(-24, 24, dtype=np.int8).reshape(3, 2, 8)
    run = nj.jit(lambda a: lax.fori_loop(0, 4, lambda _, v: v + v, a))
    text = run.lower(x).compile().as_text("llvm")
    assert "@small" in text and text.count("shufflevector") <= 1
    np.testing.assert_array_equal(run(x), x << 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [24, 40, 64])
@pytest.mark.parametrize("name", ["expm1", "tanh", "exp", "sin", "log1p", "erf"])
def test_functions_of_rows_that_fill_several_registers(name, width, dtype):
    """Functions take registers apart, constants too: of tanh over 40 floats in a scan the direct
    generator read the wrong register for the upper half of a constant."""
    with nj.enable_x64(True):
        x = jnp.array(normal(0, 5, width)).astype(dtype)
        f = {"erf": lax.erf}.get(name) or getattr(jnp, name)
        got = nj.jit(lambda x: lax.scan(lambda c, v: (c + 1, f(abs(v))), 0.0, x)[1])(x)
        np.testing.assert_allclose(got, f(abs(x)), rtol=1e-5)
