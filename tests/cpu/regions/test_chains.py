"""Scans over one domain with what feeds them as one kernel: the values are those of one operation
after the other, and what is no chain is none."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

# Neither is a multiple of what a piece has; the larger is worth threads.
DOMAINS = [(4099,), (67, 131)]


def positive(seed, *shape, dtype=np.float32):
    return (np.random.default_rng(seed).random(shape) + 0.1).astype(dtype)


def kernels(function, *args):
    """How many kernels a function becomes, with its compiled form."""
    lowered = nj.jit(function).lower(*args)
    return lowered.as_text().count("kernel "), lowered.compile()


def apart(body, carry, xs, reverse=False):
    """What lax.scan gives, by one compiled round after the other."""
    body, ys = nj.jit(body), []
    rounds = range(len(xs[0]))
    for t in reversed(rounds) if reverse else rounds:
        carry, y = body(carry, tuple([x[t] for x in xs]))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, nj.tree.map(lambda *y: jnp.stack(y), *ys)


def joined(body, carry, xs, reverse=False):
    return lax.scan(body, carry, xs, reverse=reverse)


def eliminate(before, at):
    upper, right = before
    a, b, c, d = at
    scale = 1.0 / (b + a * upper)
    new = (-c * scale, (d + a * right) * scale)
    return new, new


def substitute(after, at):
    upper, right = at
    value = right - upper * after
    return value, value


def coefficients(tracer, velocity):
    shear = velocity[1:] - velocity[:-1]
    mixing = 0.5 / (1.0 + jnp.maximum(tracer[1:] - tracer[:-1], 0.0) / (shear * shear + 1e-3)) ** 2
    zero = jnp.zeros_like(mixing[:1])
    above, below = jnp.concatenate([zero, mixing]), jnp.concatenate([mixing, zero])
    return above, 1.0 + above + below, below, tracer


def same(found, want):
    for x, y in zip(nj.tree.leaves(found), nj.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_tridiagonal_solve_is_one_kernel(domain, dtype):
    with nj.enable_x64(dtype == np.float64):
        tracer, velocity = (positive(k, 7, *domain, dtype=dtype) for k in (1, 2))

        def solve(tracer, velocity, scan=joined, first=coefficients):
            zero = jnp.zeros_like(tracer[0])
            _, (uppers, rights) = scan(eliminate, (zero, zero), first(tracer, velocity))
            return scan(substitute, zero, (uppers, rights), reverse=True)[1]

        count, compiled = kernels(solve, tracer, velocity)
        assert count == 1
        same(compiled(tracer, velocity), solve(tracer, velocity, apart, nj.jit(coefficients)))


def test_what_others_read_too_is_in_memory():
    """Rows and last values of the first scan are results; the second reads the rows from there."""
    x = positive(3, 6, 4099)

    def run(x, scan=joined):
        body = lambda c, at: (c * 0.5 + at[0], c - at[0])
        last, rows = scan(body, x[0], (x * 2.0,))
        end, back = scan(lambda c, at: (c + at[0] * at[1], c), last, (rows, x), reverse=True)
        return last, rows, end, back

    count, compiled = kernels(run, x)
    assert count == 1
    same(compiled(x), run(x, apart))


def test_what_lies_between_scans_is_part_of_the_chain():
    x = positive(4, 9, 5000)

    def run(x, scan=joined, jit=lambda f: f):
        _, rows = scan(lambda c, at: (c + at[0], c * at[0]), x[0], (x,))
        between = jit(lambda rows: jnp.exp(-rows[1:]) * rows[:-1])(rows)
        return scan(lambda c, at: (c * at[0] + 1.0, c), x[0], (between,))[0]

    count, compiled = kernels(run, x)
    assert count == 1
    same(compiled(x), run(x, apart, nj.jit))


def test_a_sum_over_the_domain_between_scans_keeps_them_apart():
    x = positive(5, 5, 4096)

    def run(x, scan=joined):
        _, rows = scan(lambda c, at: (c + at[0], c * at[0]), x[0], (x,))
        scaled = rows / rows.sum(1, keepdims=True)
        return scan(lambda c, at: (c * at[0] + 1.0, c), x[0], (scaled, rows))[1]

    count, compiled = kernels(run, x)
    assert count > 1
    np.testing.assert_allclose(compiled(x), run(x, apart), rtol=2e-6)


@pytest.mark.parametrize("move", [lambda y: y[:, ::-1], lambda y: jnp.roll(y, 1, axis=1)])
def test_other_elements_of_the_domain_are_read_from_memory(move):
    x = positive(6, 5, 4100)

    def run(x, scan=joined):
        _, rows = scan(lambda c, at: (c + at[0], c * at[0]), x[0], (x,))
        return scan(lambda c, at: (c * at[0] + 1.0, c), x[0], (move(rows),))[1]

    count, compiled = kernels(run, x)
    assert count > 1
    same(compiled(x), run(x, apart))


def test_in_a_loop_over_its_own_result():
    x = positive(7, 6, 4099)

    def step(x, scan=joined, jit=lambda f: f):
        xs = jit(lambda x: (x * 0.5, x * x))(x)
        _, rows = scan(lambda c, at: (c * 0.25 + at[0], c + at[1]), x[0], xs)
        return scan(lambda c, at: (c * 0.5 + at[0], c), x[-1], (rows,), reverse=True)[1]

    want = x
    for _ in range(3):
        want = step(want, apart, nj.jit)
    same(
        nj.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: step(x), x), donate_argnums=0)(
            jnp.array(x)
        ),
        want,
    )


def test_long_rows_of_operations_and_scalars():
    """As many operations in a row as a chain takes, and rows that are single numbers."""
    x, s = positive(8, 4, 4096), positive(9, 4)

    def feed(x):
        for k in range(60):
            x = x * 0.99 + 0.01 * (k % 3)
        return x

    def run(x, s, scan=joined, jit=lambda f: f):
        body = lambda c, at: ((c[0] * at[0] + at[1] * c[1], c[1] + at[1]), c[1])
        return scan(body, (x[0], s[0]), (jit(feed)(x), s))

    _, compiled = kernels(run, x, s)
    same(compiled(x, s), run(x, s, apart, nj.jit))


def test_gradients():
    x = positive(10, 5, 4096)

    def loss(x):
        zero = jnp.zeros_like(x[0])
        _, (u, r) = lax.scan(eliminate, (zero, zero), (x * 0.1, x + 2.0, x * 0.2, x))
        return jnp.mean(lax.scan(substitute, zero, (u, r), reverse=True)[1] ** 2)

    found = nj.jit(nj.grad(loss))(x)
    want = nj.grad(loss)(x[:, :512])  # too small a domain for a chain
    np.testing.assert_allclose(found[:, :512], want / 8, rtol=1e-5, atol=1e-9)
