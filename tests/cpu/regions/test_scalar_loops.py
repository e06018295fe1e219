"""Loops over scalars drawn at random, beside the same loops in Python: carries that change places,
old values that are still read when the new one is made, choices inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax


def drawn(seed: int, choose: Callable) -> tuple[Callable, list[Any], int]:
    """A body of carries (a counter and others), their first values, and how many rounds."""
    rng = np.random.default_rng(seed)
    dtype = (np.float32, np.int32)[rng.integers(2)]
    count = int(rng.integers(2, 6))
    steps = [(int(rng.integers(6)), *rng.integers(0, count, 3).tolist()) for _ in range(count)]

    def body(carry: Any) -> Any:
        i, *old = carry
        new: list[Any] = []
        for kind, a, b, c in steps:
            if kind < 2:
                new.append(old[a])
            elif kind == 2:
                new.append(old[a] + old[b])
            elif kind == 3:
                new.append(old[a] - old[b] * dtype(2))
            elif kind == 4:
                new.append(choose(old[a] > old[b], old[c], old[a]))
            else:
                new.append(new[-1] + old[c] if new else old[c])
        return (i + 1, *new)

    first = [dtype(v) for v in rng.integers(-4, 5, count)]
    return body, first, int(rng.integers(0, 7))


@pytest.mark.parametrize("seed", range(60))
def test_random_carries(seed: int) -> None:
    body, first, rounds = drawn(seed, jnp.where)
    plain, _, _ = drawn(seed, lambda c, x, y: x if c else y)
    want = (np.int32(0), *first)
    with np.errstate(over="ignore"):
        for _ in range(rounds):
            want = plain(want)
    start = (jnp.int32(0), *[jnp.asarray(v) for v in first])
    for got in (
        lax.while_loop(lambda c: c[0] < rounds, body, start),
        nj.jit(lambda c: lax.fori_loop(0, rounds, lambda _, c: body(c), c))(start),
        nj.jit(lambda c, n: lax.while_loop(lambda c: c[0] < n, body, c))(start, rounds),
    ):
        assert [np.asarray(x) for x in got] == list(want)


def test_the_last_two_values_are_compared() -> None:
    def root(a: Any) -> Any:
        def step(x: Any) -> Any:
            return 0.5 * (x + a / x)

        return lax.while_loop(
            lambda c: jnp.abs(c[0] - c[1]) > 1e-6, lambda c: (c[1], step(c[1])), (a, step(a))
        )[1]

    for f in (root, nj.jit(root), lambda a: nj.vmap(root)(jnp.stack([a, a]))[1]):
        np.testing.assert_allclose(f(jnp.float32(2)), np.sqrt(2), rtol=1e-6)


def test_rows_of_one_round_are_read_in_the_loop_around() -> None:
    def run(x: Any, y: Any) -> Any:
        def outer(c: Any, i: Any) -> Any:
            c, rows = lax.scan(lambda c, u: (c * y, c + u), c, i[None])
            return c, rows[0] * 2

        return lax.scan(outer, x, jnp.arange(3.0))

    x, y, rows = np.float32(3), np.float32(0.5), []
    for i in range(3):
        rows.append((x + i) * 2)
        x = x * y
    lowered = nj.jit(run).lower(np.float32(3), y)
    (kernel,) = lowered.as_text().split("kernel scalars")[1:]
    assert kernel.count("for ") == 1
    got, stacked = lowered.compile()(np.float32(3), y)
    assert got == x and stacked.tolist() == rows


def test_a_round_that_reads_a_longer_row() -> None:
    def run(x: Any, rows: Any) -> Any:
        return lax.scan(lambda c, u: (c + u[1] * u[0], c), x, rows)

    got, stacked = nj.jit(run)(np.float32(3), np.array([[2, 5]], np.float32))
    assert got == 13 and stacked.tolist() == [3]
