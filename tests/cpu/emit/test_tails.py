"""The last round of a vector loop: it begins so early that its loads are whole, and stores what no
earlier round has stored. Loops in place load under a mask instead; memory that two buffers share
is right as well."""

from __future__ import annotations

import numpy as np
import pytest
from loop_harness import run, text

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import LoopVar
from numjet.cpu.loops.ir import Buffer, Define, For, Kernel, Local, Update

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
LENGTHS = [3, 8, 9, 15, 16, 17, 26, 31, 33, 45, 100]
ROWS = 5


def long_chain(e, x, rounds):
    """A value that takes some operations, exact in float32 whatever the order of lanes."""
    y = x
    for k in range(rounds):
        y = e.add(e.mul(y, e.const(0.5, F32)), e.const(float(k % 3), F32))
    return y


def expected(x, rounds):
    y = x
    for k in range(rounds):
        y = y * np.float32(0.5) + np.float32(k % 3)
    return y


def rows_kernel(n, rounds, kind, same):
    e = ExprEmitter()
    x = Buffer("x", F32, (ROWS, n), "out" if same else "in")
    y = x if same else Buffer("y", F32, (ROWS, n), "out")
    r, i = LoopVar("r", ROWS), LoopVar("i", n)
    stored = e.store(y, (r, i), long_chain(e, e.load(x, (r, i)), rounds))
    body = (For(r, ROWS, (For(i, n, tuple(stored), kind),)),)
    return Kernel("f", (x,) if same else (x, y), body)


def inputs(n):
    return np.random.default_rng(n).integers(-8, 8, (ROWS, n)).astype(np.float32)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rounds", [2, 40])
def test_rows(n, rounds):
    x, out = inputs(n), np.empty((ROWS, n), np.float32)
    run(rows_kernel(n, rounds, "vector", False), x, out)
    np.testing.assert_allclose(out, expected(x, rounds), rtol=1e-6)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rounds", [2, 40])
def test_rows_of_one_buffer_in_place(n, rounds):
    x = inputs(n)
    out = x.copy()
    run(rows_kernel(n, rounds, "vector", True), out)
    np.testing.assert_allclose(out, expected(x, rounds), rtol=1e-6)


def test_loads_are_whole_unless_they_read_what_is_being_written():
    assert "masked.load" not in text(rows_kernel(45, 40, "vector", False))
    assert "masked.load" in text(rows_kernel(45, 40, "vector", True))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rounds", [2, 40])
def test_two_buffers_that_share_memory(n, rounds):
    x = inputs(n)
    out = x.copy()
    run(rows_kernel(n, rounds, "vector", False), out, out)
    np.testing.assert_allclose(out, expected(x, rounds), rtol=1e-6)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rounds", [2, 40])
def test_indices_that_are_overwritten(n, rounds):
    """y[i] = chain(table[y[i]]) in place: what was stored is no index any more."""
    e = ExprEmitter()
    table = Buffer("table", F32, (64,))
    x, y = Buffer("x", I32, (n,)), Buffer("y", F32, (n,), "out")
    i = LoopVar("i", n)
    at = e.load(x, (i,))
    value = long_chain(e, e.load(table, (e.value_index(at, 0, 63),)), rounds)
    kernel = Kernel("f", (table, x, y), (For(i, n, tuple(e.store(y, (i,), value)), "vector"),))
    numbers = np.arange(64, dtype=np.float32) * 1e30
    where = np.random.default_rng(n).integers(0, 64, n).astype(np.int32)
    memory = where.copy()
    run(kernel, numbers, memory, memory.view(np.float32))
    np.testing.assert_allclose(
        memory.view(np.float32), expected(numbers[where], rounds), rtol=1e-6
    )


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rounds", [2, 40])
def test_sums_count_every_element_once(n, rounds):
    e = ExprEmitter()
    x, y = Buffer("x", F32, (n,)), Buffer("y", F32, (1,), "out")
    i, total = LoopVar("i", n), Local("total", F32)
    update = Update(total, "add", long_chain(e, e.load(x, (i,)), rounds))
    body = (
        Define(total, e.const(0.0, F32)),
        For(i, n, (update,), "vector"),
        *e.store(y, (0,), e.read(total)),
    )
    numbers, out = inputs(n)[0], np.empty(1, np.float32)
    run(Kernel("f", (x, y), body), numbers, out)
    np.testing.assert_allclose(out[0], expected(numbers, rounds).sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
@pytest.mark.parametrize("width", [4, 8, 16, 32, 64])
def test_rows_put_together_of_blocks_and_cut_short(dtype, width):
    """An index that goes on within blocks of the lanes alone: a round that begins elsewhere reads
    over a block's end."""
    x = np.arange(2 * 3 * width).astype(dtype).reshape(2, 3, width)
    lengths = sorted({width + 1, width + width // 2 + 1, 2 * width - 1})

    def rows(x):
        return x.transpose(1, 0, 2).reshape(3, 2 * width)

    def cut(x):
        return [rows(x)[:, :n] + x.dtype.type(1) for n in lengths]

    def places(x):
        at = jnp.arange(x.size, dtype=jnp.int32)
        return [rows(x).reshape(-1)[: n * 2] * (at[: n * 2] % width).astype(dtype) for n in lengths]

    with config.enable_x64(True):
        for got, want in zip(nj.jit(cut)(x), cut(x), strict=True):
            np.testing.assert_array_equal(got, want)
        for n, got in zip(lengths, nj.jit(places)(x), strict=True):
            want = rows(x).reshape(-1)[: n * 2] * (np.arange(n * 2) % width).astype(dtype)
            np.testing.assert_array_equal(got, want)
