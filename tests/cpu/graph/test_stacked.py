"""Reductions of stacks are operations on the arrays that were stacked."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

FUNCTIONS = {"min": np.min, "max": np.max, "sum": np.sum, "prod": np.prod}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool", "complex64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values(name, dtype, axis):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(3, 5)) + (1j if dtype == "complex64" else 0) for _ in range(7)]
    if dtype == "complex64" and name in ("min", "max"):
        pytest.skip("complex numbers are not ordered here as in NumPy")
    parts = [(x if dtype == "float16" else 4 * x).astype(dtype) for x in parts]
    want = FUNCTIONS[name](np.stack(parts, axis), axis)

    def f(*xs):
        return getattr(jnp, name)(jnp.stack(xs, axis), axis)

    for got in (nj.jit(f)(*parts), nj.jit(nj.vmap(f))(*parts) if axis == 0 else want):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), None])
def test_other_axes_are_reduced_as_well(axes):
    xs = [np.arange(12.0, dtype=np.float32).reshape(3, 4) * k for k in (1, -2, 3)]
    got = nj.jit(lambda *xs: jnp.max(jnp.stack([x + 1 for x in xs]), axes))(*xs)
    np.testing.assert_array_equal(got, np.stack(xs).max(axes) + 1)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_nothing_is_stored(name, axis):
    """Each array is computed where it is read, also in the middle of a batch (`vmap`)."""
    x = np.linspace(0, 1, 5 * 64 * 64, dtype=np.float32).reshape(5, 64, 64)
    y = np.linspace(-1, 1, 64, dtype=np.float32)

    def f(x):
        parts = [jnp.abs(jnp.roll(x, 3, axis=0) - y - k) for k in range(9)]
        return getattr(jnp, name)(jnp.stack(parts, axis), axis)

    lowered = nj.jit(nj.vmap(f)).lower(x)
    assert lowered.as_text().count("kernel ") <= 2
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 2 * x.nbytes
    want = FUNCTIONS[name](np.stack([abs(np.roll(x, 3, 1) - y - k) for k in range(9)]), 0)
    np.testing.assert_allclose(nj.jit(nj.vmap(f))(x), want, rtol=1e-5)


def test_not_a_number_is_kept():
    xs = [np.array([1.0, np.nan, 3.0], np.float32), np.array([2.0, 0.0, np.nan], np.float32)]
    got = nj.jit(lambda *xs: jnp.min(jnp.stack(xs), 0))(*xs)
    np.testing.assert_array_equal(got, [1.0, np.nan, np.nan])


def test_in_a_loop_and_its_gradient():
    def f(x):
        def body(x, _):
            return jnp.min(jnp.stack([x * k for k in (0.5, 0.9, 1.1)]), 0), jnp.sum(x)

        return nj.lax.scan(body, x, None, length=3)[1].sum()

    x = jnp.array([1.0, -2.0, 3.0])
    factor = np.where(np.asarray(x) > 0, 0.5, 1.1)
    np.testing.assert_allclose(nj.jit(nj.grad(f))(x), 1 + factor + factor**2, rtol=1e-6)


def test_a_stack_that_is_read_elsewhere_stays():
    def f(x):
        whole = jnp.stack([x, 2 * x, x - 1])
        return whole, whole.sum(0), whole - whole.max(0)

    x = np.arange(5.0, dtype=np.float32)
    whole = np.stack([x, 2 * x, x - 1])
    for got, want in zip(nj.jit(f)(x), (whole, whole.sum(0), whole - whole.max(0)), strict=True):
        np.testing.assert_allclose(got, want)
