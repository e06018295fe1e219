"""Cholesky and triangular solves: the compiled program against the reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from drawn import draw

from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.ops.linalg_core import cholesky_p, triangular_solve_p
from numjet.transforms.stage import stage_closed

DTYPES = ["float32", "float64", "complex64", "complex128"]


def run(primitive: object, args: list[np.ndarray], params: dict, native: bool = True) -> np.ndarray:
    with config.enable_x64(True):
        closed = stage_closed(
            lambda *xs: [primitive.bind(*xs, **params)],
            tuple(ShapedArray(x.shape, x.dtype) for x in args),
        )
        compiled = cpu.compile(closed, {})
        assert bool(compiled.host_calls) != native
        kept = [x.copy() for x in args]
        got = compiled(args)[0]
    for x, y in zip(args, kept, strict=True):
        np.testing.assert_array_equal(x, y)
    return got


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (7, 7), (3, 20, 20), (100, 100)):
        x = draw(rng, shape, dtype)
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * np.eye(shape[-1], dtype=dtype)
        got = run(cholesky_p, [x], {})
        tolerance = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, np.linalg.cholesky(x), rtol=tolerance, atol=tolerance * 10)


def test_cholesky_gives_nan_where_not_positive_definite() -> None:
    x = np.stack([np.eye(4), -np.eye(4), 2 * np.eye(4)]).astype(np.float32)
    got = run(cholesky_p, [x], {})
    np.testing.assert_array_equal(np.isnan(got[1]), np.tril(np.ones((4, 4), bool)))
    assert not np.any(np.isnan(got[[0, 2]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for left, lower, turned, conjugated, unit in itertools.product((False, True), repeat=5):
        params = {"left_side": left, "lower": lower, "transpose_a": turned,
                  "conjugate_a": conjugated, "unit_diagonal": unit}  # fmt: skip
        for batch in ((), (3,)):
            a = draw(rng, (*batch, 9, 9), dtype) / 9 + np.eye(9, dtype=dtype)
            b = draw(rng, (*batch, 9, 4) if left else (*batch, 4, 9), dtype)
            native = turned or not conjugated or np.dtype(dtype).kind == "f"
            got = run(triangular_solve_p, [a.astype(dtype), b], params, native)
            want = triangular_solve_p.reference(a.astype(dtype), b, **params)
            tolerance = 1000 * np.finfo(dtype).eps
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_matrices_are_cut_over_the_threads(dtype: str) -> None:
    rng = np.random.default_rng(2)
    tolerance = 3000 * np.finfo(dtype).eps
    for n in (192, 300):
        x = draw(rng, (n, n), dtype)
        x = x @ np.conj(x.T) / n + np.eye(n, dtype=dtype)
        factor = np.linalg.cholesky(x)
        got = run(cholesky_p, [np.tril(x)], {})  # only the lower triangle is read
        np.testing.assert_allclose(got, factor, rtol=tolerance, atol=tolerance)
        x[n - 1, n - 1] = -1
        bad = np.isnan(run(cholesky_p, [x], {}))
        triangle = np.tril(np.ones(bad.shape[-2:], bool))
        np.testing.assert_array_equal(bad, np.broadcast_to(triangle, bad.shape))
        for left, turned in itertools.product((False, True), repeat=2):
            params = {"left_side": left, "lower": True, "transpose_a": turned,
                      "conjugate_a": False, "unit_diagonal": False}  # fmt: skip
            b = draw(rng, (n, 75) if left else (75, n), dtype)
            got = run(triangular_solve_p, [factor, b], params)
            want = triangular_solve_p.reference(factor, b, **params)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
