"""Decompositions of the compiled program: against the reference where results are unique, else by
what they must satisfy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from compiled_primitive import run
from drawn import draw
from near import close_to_rounding

import numjet
from numjet.base import config
from numjet.core.primitive import Primitive
from numjet.cpu.kernels.linalg import lapack
from numjet.ops import linalg

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARE = [(1, 1), (4, 4), (33, 33), (9, 16, 16)]
SHAPES = [*SQUARE, (3, 5, 3), (2, 3, 5), (40, 21), (19, 40)]


def close(got: np.ndarray, want: np.ndarray, scale: float = 1000) -> None:
    close_to_rounding(got, want, scale)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def unitary(x: np.ndarray) -> None:
    product = adjoint(x) @ x
    close(product, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), product.shape))


def reference(primitive: Primitive, args: list[np.ndarray], **params: Any) -> None:
    """The program gives what the reference gives."""
    want = primitive.reference(*args, **params)
    want = want if primitive.multiple_results else [want]
    for got, expected in zip(run(primitive, args, **params), want, strict=True):
        if got.dtype.kind in "fc":
            close(got, expected, 20000)
        else:
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_solve_and_reflectors(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = draw(rng, shape, dtype)
        m, n = shape[-2:]
        reference(linalg.lu_p, [x])
        if m >= n:
            reference(linalg.householder_product_p, [x, draw(rng, (*shape[:-2], n), dtype)])
        if m == n:
            for k in (1, 3):
                reference(linalg.solve_p, [x, draw(rng, (*shape[:-1], k), dtype)])
            if n > 1:
                reference(linalg.hessenberg_p, [x])


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape, pivoting, full in itertools.product(SHAPES, (False, True), (False, True)):
        x = draw(rng, shape, dtype)
        how = {"pivoting": pivoting, "full_matrices": full}
        q, *rest = run(linalg.qr_p, [x], **how, compute_q=True)
        for got, alone in zip(rest, run(linalg.qr_p, [x], **how, compute_q=False), strict=True):
            np.testing.assert_array_equal(got, alone)
        want = linalg.qr_p.reference(x, **how, compute_q=True)
        close(q, want[0], 20000)
        close(rest[0], want[1], 20000)
        if pivoting:
            np.testing.assert_array_equal(rest[1], want[2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for shape, full in itertools.product(SHAPES, (False, True)):
        x = draw(rng, shape, dtype)
        s, u, vh = run(linalg.svd_p, [x], full_matrices=full, compute_uv=True)
        (alone,) = run(linalg.svd_p, [x], full_matrices=full, compute_uv=False)
        want, *_ = linalg.svd_p.reference(x, full_matrices=full, compute_uv=True)
        close(s, want)
        close(alone, want)
        unitary(u)
        unitary(adjoint(vh))
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_eigenvalues(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape, lower, part in itertools.product(SQUARE, (False, True), (None, (0, 1), (1, 3))):
        n = shape[-1]
        if part is not None and part[1] > n:
            continue
        x = draw(rng, shape, dtype)
        whole = np.tril(x) if lower else np.triu(x)
        whole = whole + adjoint(np.tril(x, -1) if lower else np.triu(x, 1))
        whole -= 1j * np.imag(whole) * np.eye(n) if whole.dtype.kind == "c" else 0
        how = {"lower": lower, "sort_eigenvalues": True, "subset_by_index": part}
        v, w = run(linalg.eigh_p, [x], **how, compute_v=True)
        (alone,) = run(linalg.eigh_p, [x], **how, compute_v=False)
        want = np.linalg.eigvalsh(whole)[..., slice(*(part or (0, n)))]
        close(w, want)
        close(alone, want)
        unitary(v)
        close(whole @ v, v * w[..., None, :])


def in_order_of(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The eigenvalues of each matrix in the order in which they are nearest to those wanted."""
    pairs = []
    rows = [x.reshape(-1, x.shape[-1]) for x in (found, wanted)]
    for mine, theirs in zip(*rows, strict=True):
        far = abs(theirs[:, None] - mine[None, :])
        pairs.append(mine[scipy.optimize.linear_sum_assignment(far)[1]])
    return np.stack(pairs).reshape(found.shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(dtype: str) -> None:
    rng = np.random.default_rng(4)
    for shape, left, right in itertools.product(SQUARE, (False, True), (False, True)):
        x = draw(rng, shape, dtype)
        w, *vectors = run(
            linalg.eig_p, [x], compute_left_eigenvectors=left, compute_right_eigenvectors=right,
            enable_eigvec_derivs=False,
        )  # fmt: skip
        want = np.linalg.eigvals(x).astype(w.dtype)
        close(in_order_of(w, want), want)
        full = x.astype(w.dtype)
        if right:
            v = vectors[-1]
            close(full @ v, v * w[..., None, :], 5000)
            close(np.linalg.norm(v, axis=-2), np.ones(w.shape, np.zeros(0, dtype).real.dtype))
        if left:
            v = adjoint(vectors[0])
            close(v @ full, v * w[..., :, None], 5000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for shape in SQUARE:
        x = draw(rng, shape, dtype)
        t, z = run(linalg.schur_p, [x], compute_schur_vectors=True)
        (alone,) = run(linalg.schur_p, [x], compute_schur_vectors=False)
        unitary(z)
        close(z @ t @ adjoint(z), x, 5000)
        below = -1 if np.dtype(dtype).kind == "c" else -2
        assert not np.tril(t, below).any()
        assert not np.tril(alone, below).any()


def test_what_cannot_be_decomposed_is_nan() -> None:
    x = np.random.default_rng(6).standard_normal((4, 5, 5)).astype(np.float32)
    x[1, 2, 3], x[2, 0, 0] = np.nan, np.inf
    decompositions = [
        (linalg.svd_p, {"full_matrices": True, "compute_uv": True}),
        (linalg.eigh_p, {"lower": True, "sort_eigenvalues": True, "subset_by_index": None,
                         "compute_v": True}),
        (linalg.eig_p, {"compute_left_eigenvectors": True, "compute_right_eigenvectors": True,
                        "enable_eigvec_derivs": False}),
        (linalg.schur_p, {"compute_schur_vectors": True}),
    ]  # fmt: skip
    for primitive, params in decompositions:
        for out in run(primitive, [x], **params):
            assert np.isnan(out[1:3]).all()
            assert np.isfinite(out[[0, 3]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_systems_are_divided_by_zero(dtype: str) -> None:
    x = draw(np.random.default_rng(7), (5, 4, 4), dtype)
    x[2, :, 1] = 0
    x[3, 1] = 0
    (got,) = run(linalg.solve_p, [x, x])
    assert not np.isfinite(got[2:4, :2]).any()  # the zero pivot's row, and what reads it
    close(got[[0, 1, 4]], np.broadcast_to(np.eye(4, dtype=dtype), (3, 4, 4)), 20000)


def test_permutation_of_exchanges() -> None:
    pivots = np.random.default_rng(8).integers(0, 5, (300, 4)).astype(np.int32)
    reference(linalg.lu_pivots_to_permutation_p, [pivots], permutation_size=5)
    reference(linalg.lu_pivots_to_permutation_p, [pivots[0]], permutation_size=5)


def test_results_nobody_reads_are_not_computed() -> None:
    x = np.random.default_rng(9).standard_normal((6, 6)).astype(np.float32)
    for take, word in (
        (lambda x: linalg.eigh(x)[1], "eigh"),
        (lambda x: linalg.svd(x)[1], "svd"),
        (lambda x: linalg.eig(x)[0], "eig"),
        (lambda x: linalg.schur(x)[0], "schur"),
        (lambda x: linalg.qr(x)[1], "qr"),
    ):
        text = numjet.jit(take).lower(x).as_text()
        (line,) = [line for line in text.splitlines() if f"special {word}(" in line]
        results = line.split(" = ")[0]
        assert "[6,6]" not in results or word in ("schur", "qr"), results
        np.testing.assert_allclose(
            np.abs(numjet.jit(take)(x)), np.abs(take(x)), rtol=1e-3, atol=1e-4
        )


def test_batches_run_over_all_threads() -> None:
    x = draw(np.random.default_rng(10), (50, 40, 40), "float64")
    first = run(linalg.lu_p, [x])
    with config.num_threads(1):
        alone = run(linalg.lu_p, [x])
    for a, b in zip(first, alone, strict=True):
        np.testing.assert_array_equal(a, b)
    assert 50 * 40**3 > lapack.PARALLEL_FLOPS


def test_inside_loops() -> None:
    a = np.random.default_rng(11).standard_normal((5, 5)).astype(np.float32) + 4 * np.eye(
        5, dtype="f"
    )

    def iterate(a: Any, x: Any) -> Any:
        return numjet.lax.fori_loop(0, 3, lambda i, x: linalg.solve(a, x), x)

    x = np.ones((5, 1), np.float32)
    want = np.linalg.matrix_power(np.linalg.inv(a), 3) @ x
    np.testing.assert_allclose(numjet.jit(iterate)(a, x), want, rtol=1e-3, atol=1e-5)
    assert "host" not in numjet.jit(iterate).lower(a, x).as_text()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [192, 256, 300])
def test_large_matrices_are_cut_over_the_threads(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x = draw(rng, (n, n), dtype)
    factors, pivots, order = run(linalg.lu_p, [x])
    want = linalg.lu_p.reference(x)
    np.testing.assert_array_equal(pivots, want[1])
    np.testing.assert_array_equal(order, want[2])
    lower = np.tril(factors, -1) + np.eye(n, dtype=dtype)
    np.testing.assert_allclose(lower @ np.triu(factors), x[order], atol=1000 * np.finfo(dtype).eps)
    for k in (1, 70):
        b = draw(rng, (n, k), dtype)
        (got,) = run(linalg.solve_p, [x, b])
        size = np.linalg.norm(x) * np.linalg.norm(got)
        assert np.linalg.norm(x @ got - b) < 20 * np.finfo(dtype).eps * size
    x[:, 70] = 0
    # Substitution from the last row on divides by zero at row 70.
    assert not np.isfinite(run(linalg.solve_p, [x, b])[0][:71]).any()
