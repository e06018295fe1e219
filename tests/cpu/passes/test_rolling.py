"""Stencils in loops write over what they read, row by row: the values are those of one compiled
step after the other."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu.passes import rolling


@pytest.fixture(autouse=True)
def _any_size(monkeypatch):
    """Arrays of a few kilobytes do."""
    monkeypatch.setattr(rolling, "LEAST_BYTES", 0)
    monkeypatch.setattr(rolling, "LEAST_ROW_BYTES", 0)


def values(*shape, dtype=np.float32):
    return (10 * np.random.default_rng(len(shape)).random(shape)).astype(dtype)


def periodic(u):
    around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
    return u + (around - 4 * u) / 8


def cold(u):
    tall = jnp.pad(u, ((1, 1), (0, 0)))
    wide = jnp.concatenate([u[:, :1], u, u[:, -1:]], axis=1)
    return u + (tall[:-2] + tall[2:] + wide[:, :-2] + wide[:, 2:] - 4 * u) / 8


def downwards(u):
    """A row of the result takes the row before; the first takes the last."""
    return jnp.roll(u, 1, 0) * 0.5 + u


def corners(u):
    tall = jnp.pad(u, ((1, 1), (1, 1)))
    return (tall[:-2, :-2] + tall[2:, 2:]) / 2 + u * tall[2:, :-2]


def edges_of_their_own(u):
    inner = u[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / 4
    return jnp.concatenate([u[:1] * 2, inner, u[5:6] + u[-1:]])


def of_space(u):
    tall = jnp.pad(u, ((1, 1), (0, 0), (0, 0)))
    return u + (tall[:-2] + tall[2:] - 2 * u + jnp.roll(u, 1, 2)) / 8


def rows_apart(u):
    return jnp.roll(u, 2, 0) + u / 2


def steps_of(step, count):
    return lambda u: lax.fori_loop(0, count, lambda _, u: step(u), u)


def check(step, u, in_place):
    lowered = nj.jit(steps_of(step, 5)).lower(u)
    assert ("kernel rows" in lowered.as_text()) == in_place, lowered.as_text()
    found, want, one = lowered.compile()(u), u, nj.jit(step)
    for _ in range(5):
        want = one(want)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("rows", [67, 71, 150])
@pytest.mark.parametrize("step", [periodic, cold, downwards, corners, edges_of_their_own])
def test_rows_beside(step, rows):
    check(step, values(rows, 37), True)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.uint8])
def test_dtypes(dtype):
    with nj.enable_x64(dtype == np.float64):
        check(lambda u: (periodic(u) // 2).astype(dtype), values(90, 70, dtype=dtype), True)


def test_planes_and_one_row_in_front():
    check(of_space, values(70, 12, 9), True)
    check(lambda u: periodic(u[0])[None], values(1, 80, 33), True)


def test_rows_far_away_are_read_from_another_array():
    check(rows_apart, values(80, 40), False)


def test_other_operands_and_a_condition():
    """A field that is read too, and a loop that ends by its values."""
    u, field = values(100, 64), values(100, 64)

    def step(u):
        return jnp.where(field > 5, periodic(u), u * 0.5)

    def run(u):
        return lax.while_loop(lambda c: c[1] < 4, lambda c: (step(c[0]), c[1] + 1), (u, 0))[0]

    want = u
    for _ in range(4):
        want = nj.jit(step)(want)
    np.testing.assert_array_equal(nj.jit(run)(u), want)


def test_on_several_threads():
    """So much that chunks run on several threads; what the loop began with stays as it was."""
    u = values(400, 1500)
    kept = u.copy()
    check(periodic, u, True)
    np.testing.assert_array_equal(u, kept)
