"""Concatenations of neighbouring slices and of many operands (cpu/graph/rejoined.py)."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax


def text(f, *args):
    return nj.jit(f).lower(*args).as_text()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_neighbouring_slices_are_one_copy(axis):
    x = jnp.arange(4.0 * 5 * 6).reshape(4, 5, 6)
    n = x.shape[axis]
    whole = lambda x: jnp.stack([lax.index_in_dim(x, i, axis, False) for i in range(n)], axis)
    parts = lambda x: jnp.concatenate(jnp.split(x, [1, 3], axis), axis)[:, 1:]
    np.testing.assert_array_equal(nj.jit(whole)(x), x)
    np.testing.assert_array_equal(nj.jit(parts)(x), x[:, 1:])
    assert "select" not in text(whole, x)
    assert "select" not in text(parts, x)


def test_slices_that_are_not_neighbours_stay_apart():
    x, y = jnp.arange(12.0).reshape(3, 4), jnp.ones((2, 4))
    numbers = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for f in (
        lambda m, x, y: m.concatenate([x[:1], x[1:2], y, x[2:], x[:1]]),  # some are
        lambda m, x, y: m.concatenate([x[1:], x[:1]]),
        lambda m, x, y: m.concatenate([x[:, :2], x[:, 2:]]),  # neighbours along another axis
        lambda m, x, y: m.concatenate([x[:, :2].T, x[:, 2:].T]),
        lambda m, x, y: m.concatenate([x[:1, :2], x[1:2, :2], x[:1, 2:4]]),
        lambda m, x, y: m.concatenate([x[:, 0:2].reshape(6), x[:, 2:4].reshape(6)]),
        lambda m, x, y: m.concatenate([x[0:2:2], x[1:2]]),
        lambda m, x, y: m.concatenate([x[:2].reshape(4, 2), x[2:].reshape(2, 2)]),
    ):
        want = f(np, numbers, np.ones((2, 4), np.float32))
        np.testing.assert_array_equal(nj.jit(lambda x, y, f=f: f(jnp, x, y))(x, y), want)


@pytest.mark.parametrize("count", [9, 17, 40, 70])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (300,), (2, 5)])
def test_many_operands(count, shape):
    rng = np.random.default_rng(count)
    xs = [rng.normal(size=shape).astype(np.float32) for _ in range(count)]
    for axis in range(-1, len(shape)):
        stacked = nj.jit(lambda *xs, axis=axis: jnp.stack([x * 2 for x in xs], axis))(*xs)
        np.testing.assert_array_equal(stacked, np.stack([x * 2 for x in xs], axis))
    for axis in range(len(shape)):
        joined = nj.jit(lambda *xs, axis=axis: jnp.concatenate(xs[::-1], axis))(*xs)
        np.testing.assert_array_equal(joined, np.concatenate(xs[::-1], axis))


def test_work_grows_as_the_operands_do():
    # 12 operands are cut into ranges as 8 are: no element is chosen among all of them.
    xs = [jnp.ones((600, 2))] * 12
    for axis in (0, 1):
        assert "select" not in text(lambda *xs, axis=axis: jnp.concatenate(xs, axis), *xs)
    # Of single elements no choice is among all.
    ones = [jnp.ones(1)] * 100
    assert text(lambda *xs: jnp.concatenate(xs[::-1]) + 1, *ones).count("select(") < 300
