"""Reductions over rows of few columns: accumulators in registers, values as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

SHAPES = [(30, 16, 3), (21, 64, 5), (9, 17, 2), (3, 100, 1, 4), (40, 28, 16), (5, 33, 12), (29, 9)]
DTYPES = ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"]


def numbers(shape, dtype):
    drawn = np.random.default_rng(0).integers(0, 90, shape)
    return jnp.asarray(drawn % 2 == 0 if dtype == "bool" else drawn).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_reductions(shape, dtype):
    x = numbers(shape, dtype)
    wide = np.asarray(x, None if dtype == "complex64" else np.float64)
    got = nj.jit(lambda x: (jnp.sum(x, 1), (x != 0).any(1)))(x)
    np.testing.assert_allclose(np.asarray(got[0], wide.dtype), wide.sum(1), rtol=1e-2)
    np.testing.assert_array_equal(got[1], (wide != 0).any(1))
    if dtype != "complex64":
        best = (lambda x: jnp.max(x, 1), lambda x: jnp.argmax(x, 1), lambda x: jnp.argmin(x, 1))
        most, high, low, least = nj.jit(lambda x: (*[f(x) for f in best], jnp.min(x + x, 1)))(x)
        np.testing.assert_array_equal(np.asarray(most, np.float64), wide.max(1))
        np.testing.assert_array_equal(high, wide.argmax(1))
        np.testing.assert_array_equal(low, wide.argmin(1))
        np.testing.assert_array_equal(np.asarray(least), np.asarray(x + x).min(1))


def test_nan_is_found_in_any_row():
    for row in range(20):
        x = numbers((12, 20, 3), "float32").at[:, row, 1].set(np.nan)
        most, at = nj.jit(lambda x: (jnp.max(x, 1), jnp.argmax(x, 1)))(x)
        np.testing.assert_array_equal(most, np.asarray(x).max(1))
        np.testing.assert_array_equal(at, np.asarray(x).argmax(1))


def test_what_follows_from_the_reductions():
    x = numbers((50, 20, 3), "float32")
    followed = nj.jit(lambda x: jnp.sqrt(jnp.sum(x * x, 1)) + x.max(1) / (1 + x.min(1)))
    y = np.asarray(x)
    want = np.sqrt((y * y).sum(1)) + y.max(1) / (1 + y.min(1))
    np.testing.assert_allclose(followed(x), want, rtol=1e-5)


def test_no_accumulators_lie_in_memory():
    for shape, dtype in (((20_000, 16, 3), "int32"), ((3000, 28, 16), "float32")):
        text = nj.jit(lambda x: jnp.max(x, 1)).lower(jnp.zeros(shape, dtype)).as_text()
        assert "scratch" not in text, text


def test_few_long_rows_need_no_accumulators():
    for rows in (2, 3, 4):
        x = np.random.default_rng(rows).integers(-9, 10, (200, rows, 1000)).astype(np.float32)
        for f, g in ((jnp.sum, np.sum), (jnp.max, np.max)):
            run = nj.jit(lambda v, f=f: f(v * 2, axis=1))
            np.testing.assert_array_equal(run(x), g(x * 2, axis=1))
            assert "scratch" not in run.lower(x).as_text()
