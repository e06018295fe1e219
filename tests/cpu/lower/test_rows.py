"""Reductions of rows whose results are finished apart, many rows in blocks."""

from __future__ import annotations

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp
from numjet.cpu.lower import rows


def draw(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) * 2


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((9000, 77), (1,)),  # blocks of a divisor of the rows
        ((100, 256, 70), (2,)),  # of the last axes that are kept
        ((3, 500, 7, 2, 66), (4,)),  # of some of an axis with all of the next
        ((5003, 73), (1,)),  # a prime number of rows
        ((33, 6000, 2, 3), (0, 3)),
        ((20_000, 10), (1,)),  # rows are lanes
        ((64, 37), (1,)),  # few rows
    ],
)
def test_results_of_many_rows(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = draw(shape)
    want = np.log(np.exp(x.astype(np.float64)).sum(axes))
    other = np.sqrt(np.exp(want)) + np.tanh(x.astype(np.float64).mean(axes))

    @numjet.jit
    def f(x):
        total = jnp.exp(x).sum(axes)
        return jnp.log(total), jnp.sqrt(total) + jnp.tanh(x.mean(axes))

    got = f(x)
    np.testing.assert_allclose(got[0], want, 1e-5, 1e-5)
    np.testing.assert_allclose(got[1], other, 1e-4, 1e-5)


def test_blocks_of_rows_are_bounded() -> None:
    x = draw((4 * rows.MANY_ROWS, 100))
    text = numjet.jit(lambda x: jnp.log(jnp.exp(x).sum(1))).lower(x).as_text()
    assert f"scratch rows0: f32[{rows.MANY_ROWS}]" in text


@pytest.mark.parametrize("classes", [8, 12, 16])
def test_rows_of_classes_run_side_by_side(classes: int) -> None:
    # One by one, each row waits for its logarithm.
    x = draw((10_000, classes))
    text = numjet.jit(lambda x: numjet.nn.log_softmax(x)).lower(x).as_text()
    assert "for i0 < 10000 vector" in text
    want = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    np.testing.assert_allclose(numjet.jit(numjet.nn.log_softmax)(x), want, 1e-5, 1e-5)
