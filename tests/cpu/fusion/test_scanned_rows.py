"""What is computed in a loop of rows that it scans, or of values from outside, does not follow from
how the whole array, or the value, was made."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

C = np.arange(300, dtype=np.float32)
W = np.array([[2.0, -1.0, 5.0]], np.float32)


def _zeros():
    return jnp.zeros((5, 300), jnp.float32)


# What a loop scans, made before it by sums and updates of zeros.
SCANNED = {
    "update": lambda i: lax.dynamic_update_slice(_zeros(), W, (i, i)),
    "sum of updates": lambda i: (lax.dynamic_update_slice(_zeros(), W, (i, i))
                                 + lax.dynamic_update_slice(_zeros(), W * 3, (0, i))),
    "scatter": lambda i: _zeros().at[jnp.array([0, 3, 3]), jnp.array([7, 2, 2]) + i].add(W[0]),
    "sum": lambda i: (jnp.where(_zeros() + i > 1, 3.0, _zeros())
                      + lax.mul(_zeros() + 2, _zeros() + i)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCANNED)
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_are_no_updates_of_zeros(name, reverse) -> None:
    """`fusion.added_parts` updates carries in place by updates of zeros."""

    def f(c, i):
        def body(carries, row):  # the sort keeps the loop from being one kernel
            total, others = carries
            return (total + row, jnp.sort(others * 2)[::-1]), None

        return lax.scan(body, (c, c), SCANNED[name](i), reverse=reverse)[0]

    whole = np.asarray(SCANNED[name](2))
    np.testing.assert_allclose(nj.jit(f)(C, 2)[0], C + whole.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(nj.jit(f)(C, 2)[1], 32 * C[::-1])


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_rows_of_joined_positions_are_positions(mode) -> None:
    """`graph.gathers` takes positions along two axes apart where they were put together."""
    numbers = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
    table = np.arange(63, dtype=np.float32).reshape(7, 9)
    first, second = np.array([[[[1, 4]], [[6, 8]], [[0, 3]]], [[[5, 5]], [[2, 0]], [[6, 1]]]])

    def f(c, first, second):
        def body(c, row):
            return jnp.sort(c * 2)[::-1], lax.gather(table, row, numbers, (1, 1), mode=mode)

        return lax.scan(body, c, jnp.concatenate([first, second], 1))

    both = np.concatenate([first, second], 1)
    found = nj.jit(f)(C, first, second)[1]
    np.testing.assert_array_equal(found, table[both[..., 0], both[..., 1]])


@pytest.mark.parametrize("shape", [(2, 1), (4, 2), (4, 1, 2), (6, 3)])
def test_rows_of_two_halves_are_joined(shape) -> None:
    """`graph.rejoined` takes the whole where parts that were cut from it are joined again."""
    rounds, length = shape[0] // 2, shape[-1]
    given = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)

    def f(c, whole):
        whole = jnp.tanh(whole)
        halves = [x.reshape(rounds, length) for x in (whole[:rounds], whole[rounds:])]
        body = lambda c, rows: (jnp.sort(c * 2)[::-1], jnp.concatenate(rows))
        return lax.scan(body, c, halves)

    want = np.tanh(given).reshape(2, rounds, length).transpose(1, 0, 2).reshape(rounds, -1)
    np.testing.assert_allclose(nj.jit(f)(C, given)[1], want, rtol=1e-5)


@pytest.mark.parametrize("shape", [(64, 64), (300, 70)])
@pytest.mark.parametrize("kind", ["cond", "scan", "nested"])
def test_parts_that_were_cut_outside_are_joined(kind, shape) -> None:
    """What they were cut from is not in memory: only they were asked for."""
    x = np.linspace(-2, 2, shape[0] * shape[1], dtype=np.float32).reshape(shape)
    half = shape[0] // 2
    halves = lambda x: (x[:half], x[half:])

    def f(x, n):
        parts = halves(jnp.sin(x))
        join = lambda c, parts=parts: jnp.concatenate(parts) * n + c
        if kind == "cond":
            return lax.cond(n > 0, join, lambda c: c, jnp.zeros_like(x))
        if kind == "scan":
            body = lambda c, r: (c * 0.5 + jnp.sum(join(c * 0)), join(c * 0) * r)
            return lax.scan(body, jnp.float32(0), jnp.ones(4, jnp.float32))[1][3]

        def body(c, _):
            inner = halves(join(c))
            return lax.fori_loop(0, 1, lambda _, d: jnp.concatenate(inner) + d, c * 0), None

        return lax.scan(body, jnp.zeros_like(x), length=1)[0]

    np.testing.assert_allclose(nj.jit(f)(x, np.float32(3)), 3 * np.sin(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [8, 600])
def test_positions_that_were_joined_outside_are_positions(size) -> None:
    numbers = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
    x = np.linspace(-3, 3, size * 40, dtype=np.float32).reshape(size, 40)

    def f(x, steps):
        places = jnp.stack([(jnp.abs(jnp.sin(x))[:, k] * 7.5).astype("int32") for k in (0, 1)], -1)
        body = lambda c, r: (c + r, lax.gather(x * r, places, numbers, (1, 1)) + c)
        return lax.scan(body, jnp.float32(1), steps)[1]

    want = x[tuple((np.abs(np.sin(x[:, :2])) * 7.5).astype(int).T)]
    found = nj.jit(f)(x, np.arange(3, dtype=np.float32))
    np.testing.assert_allclose(found, [1 + 0 * want, 1 + want, 2 + 2 * want], rtol=1e-6)


def test_rows_that_do_not_count_are_sorted_along() -> None:
    """`kernels.sorting` writes positions itself where they are all that is sorted along."""
    keys = np.random.default_rng(0).permutation(256).reshape(4, 64).astype(np.float32)

    def f(keys):
        numbers = lax.broadcasted_iota(jnp.int32, (4, 64), 0)
        body = lambda c, row: (c + 1, lax.sort(row, num_keys=1)[1])
        return lax.scan(body, 0, (keys, numbers))[1]

    np.testing.assert_array_equal(nj.jit(f)(keys), np.arange(4)[:, None].repeat(64, 1))
