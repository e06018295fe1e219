"""Reductions of a few rows before the last axis: added up in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

SIDES = (2, 3, 5, 7, 8)


def compiled(function: Any, *args: np.ndarray) -> tuple[list, str]:
    """The results, and the kernels' text."""
    lowered = nj.jit(function).lower(*args)
    return [np.asarray(x) for x in nj.tree.leaves(lowered.compile()(*args))], lowered.as_text()


@pytest.mark.parametrize("n", SIDES)
def test_small_matrices_have_no_accumulators(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal((50, n, n)).astype(np.float32) for _ in range(2))
    (got,), text = compiled(lambda x, y: jnp.exp(-(x @ y)), x, y)
    assert "scratch" not in text
    np.testing.assert_allclose(got, np.exp(-(x @ y)), rtol=2e-4)


@pytest.mark.parametrize("shape", [(3, 5), (4, 2, 33), (2, 3, 4, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16", "complex64"])
def test_several_reductions_of_one_sweep(shape: tuple, dtype: str) -> None:
    x = (np.random.default_rng(3).standard_normal(shape) * 9).astype(dtype)
    axis = len(shape) - 2

    def function(x: Any) -> list:
        if dtype == "complex64":
            return [x.sum(axis), (x * x).prod(axis), x.real.max(axis)]
        return [x.sum(axis), x.max(axis) + x.min(axis), jnp.all(x > 1, axis), (x * x).prod(axis)]

    got, text = compiled(function, x)
    assert "scratch" not in text
    for a, b in zip(got, function(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-3 if dtype == "float16" else 1e-5)


def test_a_sum_of_negative_zeros_and_of_nans() -> None:
    x = np.full((3, 4), -0.0, np.float32)
    x[1, 2] = np.nan
    (total, top), _ = compiled(lambda x: (x.sum(0), x.max(0)), x)
    np.testing.assert_array_equal(total, [0, 0, np.nan, 0])
    np.testing.assert_array_equal(top, [0, 0, np.nan, 0])
