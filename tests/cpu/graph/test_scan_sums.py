"""Sums of products over a scan's rounds become one product behind it."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import normal

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import backend


def program(run, *args):
    return backend.compile(nj.make_jaxpr(run)(*args), None).program_text()


def outer(x, y):
    return lax.dot_general(x, y, (((), ()), ((), ())))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_outer_products_of_rows_and_carries(reverse, turned):
    def run(c, h, xs):
        def body(state, x):
            c, h = state
            product = outer(x, h)
            return (c + (product.T if turned else product), jnp.tanh(h[::-1] + x[:9])), h[0]

        (c, h), firsts = lax.scan(body, (c, h), xs, reverse=reverse)
        return c, h, firsts

    c, h, xs = normal(0, 9, 30) if turned else normal(0, 30, 9), normal(1, 9), normal(2, 7, 30)
    found = nj.jit(run)(c, h, xs)
    firsts = np.zeros(7, np.float32)
    for t in reversed(range(7)) if reverse else range(7):
        product = np.outer(xs[t], h)
        c, firsts[t] = c + (product.T if turned else product), h[0]
        h = np.tanh(h[::-1] + xs[t, :9])
    for x, y in zip(found, (c, h, firsts), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    text = program(run, normal(0, *c.shape), h, xs)
    assert all(str([*c.shape]).replace(" ", "") not in x for x in text.splitlines() if " in " in x)


def test_batches_and_short_contractions():
    def run(xs, ys):
        def body(c, row):
            x, y = row
            one, two = c
            one = jnp.einsum("bkn,bkm->bnm", x, y) + one
            return (one, two + x[0].T @ jnp.sin(y[1])), None

        return lax.scan(body, (jnp.zeros((2, 5, 6)), jnp.ones((5, 6))), (xs, ys))[0]

    xs, ys = normal(0, 8, 2, 3, 5), normal(1, 8, 2, 3, 6)
    one, two = nj.jit(run)(xs, ys)
    np.testing.assert_allclose(one, np.einsum("tbkn,tbkm->bnm", xs, ys), rtol=1e-4, atol=1e-5)
    want = 1 + np.einsum("tkn,tkm->nm", xs[:, 0], np.sin(ys[:, 1]))
    np.testing.assert_allclose(two, want, rtol=1e-4, atol=1e-5)


def test_carries_that_are_read_stay():
    def run(c, xs):
        def used(c, x):
            return c + outer(x, x), c[0, 0]

        def grows(c, x):
            return c * 0.5 + outer(x, x), None

        def twice(c, x):
            new = c + outer(x, x)
            return new, new[0]

        return [lax.scan(body, c, xs) for body in (used, grows, twice)]

    c, xs = normal(0, 6, 6), normal(1, 5, 6)
    found = nj.jit(run)(c, xs)
    total, half, firsts, rows = c, c, [], []
    for x in xs:
        firsts.append(total[0, 0])
        total, half = total + np.outer(x, x), half * np.float32(0.5) + np.outer(x, x)
        rows.append(total[0])
    np.testing.assert_allclose(found[0][0], total, rtol=1e-5)
    np.testing.assert_allclose(found[0][1], firsts, rtol=1e-5)
    np.testing.assert_allclose(found[1][0], half, rtol=1e-5)
    np.testing.assert_allclose(found[2][1], rows, rtol=1e-5)


@pytest.mark.parametrize("width", [5, 16, 40, 100])
def test_gradients_of_recurrent_networks(width):
    w, u, h = normal(0, width, width) / width, normal(1, width, width) / width, normal(2, width)
    xs = normal(3, 6, width)

    def loss(w, u, h, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x @ u)
            return h, h

        return jnp.sum(lax.scan(step, h, xs)[1] ** 2)

    def plain(w, u, h, xs):
        total = 0.0
        for x in xs:
            h = jnp.tanh(h @ w + x @ u)
            total = total + jnp.sum(h**2)
        return total

    found = nj.jit(nj.grad(loss, argnums=(0, 1, 2)))(w, u, h, xs)
    want = nj.grad(plain, argnums=(0, 1, 2))(w, u, h, xs)
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    assert "while" not in program(nj.grad(loss), w, u, h, xs)


def test_no_round_reads_a_gathered_matrix():
    def run(c, xs):
        return lax.scan(lambda c, x: (c + outer(x, jnp.sin(x)), None), c, xs)[0]

    c, xs = normal(0, 200, 200), normal(1, 50, 200)
    lines = program(run, c, xs).splitlines()
    loop = [x for x in lines if "small_" in x or x.startswith("    ")]
    assert loop and not any("f32[200,200]" in x for x in loop)
    want = c + np.einsum("tn,tm->nm", xs, np.sin(xs))
    np.testing.assert_allclose(nj.jit(run)(c, xs), want, rtol=1e-3, atol=1e-4)
