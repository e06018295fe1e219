"""Long sums keep their digits: rows, columns, parts of complex numbers, and what follows."""

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import nn
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import (
    Buffer,
    Const,
    Define,
    For,
    Kernel,
    Load,
    Local,
    ReadLocal,
    Store,
    Update,
)
from numjet.cpu.loops.text import text
from numjet.cpu.loops.verify import verify
from numjet.cpu.passes.long_sums import long_sums

F32 = np.dtype(np.float32)


def units(found, expected):
    """The largest error, in units of the last place of float32."""
    unit = np.spacing(np.abs(expected).astype(np.float32))
    return np.max(np.abs(np.asarray(found) - expected) / unit)


def _kernel(n):
    """A sum of n numbers, 16 lanes and four vectors at a time."""
    out, x = Buffer("out0", F32, (), "out"), Buffer("in0", F32, (n,), "in")
    total, j = Local("total", F32), LoopVar("j", n)
    loop = For(j, n, (Update(total, "add", Load(x, (Index.of(j),))),), "vector", 4, 16)
    body = (Define(total, Const(0.0, F32)), loop, Store(out, (), ReadLocal(total)))
    return Kernel("f", (out, x), body)


def test_short_loops_stay_as_they_are():
    kernel = _kernel(60_000)
    assert long_sums(kernel) is kernel


def test_a_long_loop_becomes_blocks_of_which_the_last_may_be_shorter():
    made = text(verify(long_sums(_kernel(300_001))))
    assert "for block < 74:" in made and "in0[4096*block + j]" in made
    assert "for j < clamp(-4096*block + 300001, 993, 4096) <= 4096 vector" in made


@pytest.mark.parametrize("shape", [(1_000_001,), (2, 700_000)])
def test_rows(shape):
    x = np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)
    wide = x.astype(np.float64)
    assert units(nj.jit(lambda v: jnp.sum(v, axis=-1))(x), wide.sum(-1)) <= 2
    assert units(nj.jit(lambda v: jnp.sum(jnp.exp(v), axis=-1))(x), np.exp(wide).sum(-1)) <= 3
    assert units(nj.jit(lambda v: jnp.var(v, axis=-1))(x), wide.var(-1)) <= 4
    soft = nj.jit(lambda v: nn.softmax(v, axis=-1))(x)
    assert units(soft, np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)) <= 5


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_numbers_which_may_all_be_rounded_the_same_way(value):
    for n in (200_000, 1_000_000, 3_000_001):
        x = np.full(n, value, np.float32)
        assert units(nj.jit(jnp.sum)(x), x.astype(np.float64).sum()) <= 8


@pytest.mark.parametrize(
    "shape, axis",
    [((10_007, 300), 0), ((3, 60_001, 10), 1), ((200_003, 8), 0), ((4000, 2, 33), (0, 1))],
)
def test_columns(shape, axis):
    x = np.random.default_rng(1).uniform(1, 2, shape).astype(np.float32)
    wide = x.astype(np.float64)
    assert units(nj.jit(lambda v: jnp.sum(v, axis=axis))(x), wide.sum(axis)) <= 5
    assert units(nj.jit(lambda v: jnp.sum(jnp.exp(v), axis=axis))(x), np.exp(wide).sum(axis)) <= 6


def test_columns_of_complex_numbers():
    parts = np.random.default_rng(2).uniform(1, 2, (2, 20_003, 67))
    x = (parts[0] + 1j * parts[1]).astype(np.complex64)
    found, expected = np.asarray(nj.jit(lambda v: jnp.sum(v, axis=0))(x)), x.astype(complex).sum(0)
    assert units(found.real, expected.real) <= 5
    assert units(found.imag, expected.imag) <= 5


def test_sums_that_are_infinite_or_nan_or_overflow():
    x = np.ones((2, 400_000), np.float32)
    x[0, 7], x[1, 9] = np.inf, np.nan
    assert np.array_equal(nj.jit(lambda v: jnp.sum(v, axis=1))(x), [np.inf, np.nan], equal_nan=True)
    assert nj.jit(jnp.sum)(np.full(400_000, -3e38, np.float32)) == -np.inf
    columns = np.full((4000, 5), 3e38, np.float32)
    columns[:, 1] = 1
    columns[3, 2] = -np.inf
    found = nj.jit(lambda v: jnp.sum(v, axis=0))(columns)
    assert np.array_equal(found, [np.inf, 4000, np.nan, np.inf, np.inf], equal_nan=True) or (
        np.array_equal(found, [np.inf, 4000, -np.inf, np.inf, np.inf])
    )
