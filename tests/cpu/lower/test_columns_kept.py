"""Values that are kept between sweeps over columns, in the memory of a result."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9000, 40), (3, 5000, 30)])
def test_softmax_over_an_early_axis_keeps_its_exponentials_in_its_result(shape, dtype):
    with nj.enable_x64(dtype is np.float64):
        x = np.random.default_rng(0).normal(size=shape).astype(dtype)
        f = nj.jit(lambda x: nj.nn.softmax(x, axis=-2))
        powers = np.exp(x - x.max(-2, keepdims=True))
        want = powers / powers.sum(-2, keepdims=True)
        np.testing.assert_allclose(f(x), want, rtol=1e-5)
        assert "work0" not in f.lower(x).as_text()
        given = nj.jit(lambda x: nj.nn.softmax(x, axis=-2), donate_argnums=0)(jnp.array(x))
        np.testing.assert_allclose(given, want, rtol=1e-5)


def test_two_results_written_last_and_two_values_kept():
    x = np.random.default_rng(0).normal(size=(9000, 40)).astype(np.float32)

    def f(x):
        a, b = jnp.exp(jnp.sin(x)), jnp.tanh(jnp.cos(x))
        return a / a.sum(0), b - b.max(0), x + b.sum(0)

    for got, want in zip(nj.jit(f)(x), f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    donated = nj.jit(f, donate_argnums=0)(jnp.array(x))
    for got, want in zip(donated, f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
