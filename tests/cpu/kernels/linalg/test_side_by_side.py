"""Small matrices side by side: every operation against the reference, with lanes to spare, rows
exchanged differently in each lane, and matrices that cannot be factored among others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from compiled_primitive import run
from near import close_to_rounding

import numjet
from numjet.cpu.kernels.linalg import side_by_side
from numjet.ops import linalg

COUNTS = [1, 3, 17, 64]


def close(got: np.ndarray, want: np.ndarray, scale: float = 3000) -> None:
    close_to_rounding(got, want, scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (6, 6), (7, 4), (5, 9), (8, 8), (33, 33)])
def test_lu(dtype: str, m: int, n: int) -> None:
    rng = np.random.default_rng(m + n)
    for count in COUNTS:
        x = rng.standard_normal((count, m, n)).astype(dtype)
        factors, pivots, order = run(linalg.lu_p, [x])
        want = linalg.lu_p.reference(x)
        close(factors, want[0])
        np.testing.assert_array_equal(pivots, want[1])
        np.testing.assert_array_equal(order, want[2])


def test_lu_of_singular_and_tiny_matrices() -> None:
    x = np.random.default_rng(0).standard_normal((9, 4, 4)).astype(np.float32)
    x[1, :, 2] = 0
    x[2, 1] = x[2, 0]
    x[3] = 0
    x[4] *= 1e-40  # subnormal pivots: their reciprocals would be infinite
    x[5] *= 1e30
    factors, _, order = run(linalg.lu_p, [x])
    lower = np.tril(factors, -1) + np.eye(4, dtype=np.float32)
    product = lower.astype(np.float64) @ np.triu(factors).astype(np.float64)
    taken = np.take_along_axis(x, order[..., None], 1)
    scale = np.abs(x).max((1, 2), keepdims=True) + np.float32(1e-45)
    np.testing.assert_allclose(product / scale, taken / scale, atol=2e-5)


def test_a_nan_stays_in_its_matrix() -> None:
    x = np.random.default_rng(1).standard_normal((20, 5, 5)).astype(np.float32)
    b = np.ones((20, 5, 2), np.float32)
    x[7, 2, 2] = np.nan
    (got,) = run(linalg.solve_p, [x, b])
    others = np.arange(20) != 7
    assert np.isnan(got[7]).any()
    close(x[others] @ got[others], b[others], 30000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (6, 6), (8, 3), (20, 17)])
def test_solve(dtype: str, n: int, k: int) -> None:
    rng = np.random.default_rng(n + k)
    for count in COUNTS:
        x = (rng.standard_normal((count, n, n)) + 2 * np.eye(n)).astype(dtype)
        x = x[:, rng.permutation(n)]
        b = rng.standard_normal((count, n, k)).astype(dtype)
        x[-1, -1] = 0
        (got,) = run(linalg.solve_p, [x, b])
        assert not np.isfinite(got[-1]).any()
        if count > 1:
            # The residual of a backward stable method is small beside |a| |x|.
            x, got, b = (v[:-1].astype(np.float64) for v in (x, got, b))
            size = np.linalg.norm(x, axis=(1, 2)) * np.linalg.norm(got, axis=(1, 2))
            worst = np.linalg.norm(x @ got - b, axis=(1, 2)) / size
            assert worst.max() < 20 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 30])
def test_cholesky(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    for count in COUNTS:
        x = rng.standard_normal((count, n, n))
        x = (x @ x.swapaxes(1, 2) + np.eye(n)).astype(dtype)
        want = np.linalg.cholesky(x)
        x += np.triu(np.ones((n, n), dtype), 1)  # only the lower triangle is read
        x[count // 2, n - 1, n - 1] = -1
        (got,) = run(linalg.cholesky_p, [x])
        good = np.arange(count) != count // 2
        bad = np.tril(np.ones((n, n), bool))
        np.testing.assert_array_equal(got[count // 2], np.where(bad, np.nan, 0))
        close(got[good], want[good])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_triangular(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for left, lower, turned, unit in itertools.product((False, True), repeat=4):
        for count, n, k in ((1, 5, 4), (17, 5, 4), (20, 9, 1)):
            a = (rng.standard_normal((count, n, n)) / n + np.eye(n)).astype(dtype)
            b = rng.standard_normal((count, n, k) if left else (count, k, n)).astype(dtype)
            how = {"left_side": left, "lower": lower, "transpose_a": turned,
                   "conjugate_a": False, "unit_diagonal": unit}  # fmt: skip
            (got,) = run(linalg.triangular_solve_p, [a, b], **how)
            close(got, linalg.triangular_solve_p.reference(a, b, **how))


def test_a_zero_on_the_diagonal_divides() -> None:
    a, b = np.eye(3, dtype=np.float32)[None], np.ones((1, 3, 1), np.float32)
    a[0, 1, 1] = 0
    how = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
           "unit_diagonal": False}  # fmt: skip
    (got,) = run(linalg.triangular_solve_p, [a, b], **how)
    np.testing.assert_array_equal(got.ravel()[:2], [1, np.inf])


def test_which_matrices_are_taken() -> None:
    real, complex_ = np.dtype("float32"), np.dtype("complex64")
    assert side_by_side.fits(real, 1, 6, 6)
    assert side_by_side.fits(real, 2, 16, 16)
    assert not side_by_side.fits(real, 1, 9, 9)
    assert side_by_side.fits(real, 100, 48, 48)
    assert not side_by_side.fits(real, 1, 40, 40)
    assert not side_by_side.fits(complex_, 100, 6, 6)
    assert not side_by_side.fits(real, 100, 6, 6, 10**4)


def test_many_groups_run_over_all_threads() -> None:
    x = np.random.default_rng(4).standard_normal((3000, 6, 6)).astype(np.float32)
    want = np.linalg.det(x.astype(np.float64))
    np.testing.assert_allclose(numjet.jit(numjet.numpy.linalg.det)(x), want, rtol=1e-3, atol=1e-3)
