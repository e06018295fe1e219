"""Factorizations written over our own primitives, executed by XLA's CPU plugin."""
from __future__ import annotations

import numpy as np
import pytest
from xla.plugin import needs_plugin, run

import numjet.numpy as jnp
from numjet.base import config
from numjet.lax import linalg

pytestmark = needs_plugin
SIZES = [(5, 5), (7, 4), (4, 7), (1, 1), (2, 1)]


@pytest.fixture(autouse=True)
def wide():
    with config.enable_x64(True):
        yield


def matrices(m, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(2, m, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(2, m, n))
    return a.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def orthonormal(q, near):
    for one in q:
        np.testing.assert_allclose(adjoint(one) @ one, np.eye(one.shape[1]), **near)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("m, n", SIZES)
def test_factors(m, n, dtype):
    a, eps = matrices(m, n, dtype), np.finfo(dtype).eps
    near = dict(rtol=0, atol=200 * eps * max(m, n))
    q, r = run(lambda x: jnp.linalg.qr(x), [a])
    np.testing.assert_allclose(q @ r, a, **near)
    orthonormal(q, near)
    assert (np.tril(r, -1) == 0).all()
    u, s, vh = run(lambda x: jnp.linalg.svd(x, full_matrices=True), [a])
    k = min(m, n)
    np.testing.assert_allclose((u[..., :k] * s[:, None]) @ vh[:, :k], a, **near)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), **near)
    orthonormal(u, near)
    orthonormal(adjoint(vh), near)
    for got, want in zip(run(linalg.lu, [a]), linalg.lu(a), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), **near)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_eigenvalues_and_solve(n, dtype):
    a, eps = matrices(n, n, dtype), np.finfo(dtype).eps
    near = dict(rtol=0, atol=500 * eps * n)
    h = a + adjoint(a)
    w, v = run(lambda x: jnp.linalg.eigh(x), [h])
    np.testing.assert_allclose(h @ v, v * w[:, None], **near)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(h), **near)
    b = matrices(n, 3, dtype, 1)
    (x,) = run(jnp.linalg.solve, [a, b])
    np.testing.assert_allclose(a @ x, b, rtol=0, atol=2000 * eps * n)


@pytest.mark.parametrize("n, dtype", [(1, np.float64), (7, np.float64), (6, np.complex64)])
def test_general_matrices(n, dtype):
    a, eps = matrices(n, n, dtype), np.finfo(dtype).eps
    near = dict(rtol=0, atol=500 * eps * n)
    t, z, w, vl, vr = run(lambda x: (*linalg.schur(x), *linalg.eig(x)), [a])
    np.testing.assert_allclose(z @ t @ adjoint(z), a, **near)
    orthonormal(z, near)
    blocks = np.dtype(dtype).kind == "f"
    assert (np.tril(t, -1 - blocks) == 0).all()
    under = np.diagonal(t, -1, -2, -1)
    assert (under[..., 1:] * under[..., :-1] == 0).all()  # of two rows at most
    np.testing.assert_allclose(a @ vr, vr * w[:, None], **near)
    np.testing.assert_allclose(adjoint(vl) @ a, w[..., None] * adjoint(vl), **near)
    for v in (vl, vr):
        np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, **near)
    if blocks:  # values and vectors are real, or come in pairs
        assert (np.sort_complex(w) == np.sort_complex(w.conj())).all()
        assert (vr.imag[np.broadcast_to(w.imag[:, None] == 0, vr.shape)] == 0).all()
    for fun in (linalg.hessenberg, linalg.tridiagonal,
                lambda x: linalg.tridiagonal(x, lower=False),
                lambda x: linalg.qr(x, pivoting=True)):
        for got, want in zip(run(fun, [a]), fun(a), strict=True):
            np.testing.assert_allclose(got, np.asarray(want), **near)


def test_matrices_that_the_usual_shifts_leave_as_they_are():
    cycle = np.roll(np.eye(4), 1, axis=0)
    jordan = np.diag(np.ones(3), 1) + 2 * np.eye(4)
    a = np.stack([cycle, jordan, np.full((4, 4), np.nan)])
    (w,) = run(jnp.linalg.eigvals, [a])
    np.testing.assert_allclose(np.sort_complex(w[0]), np.sort_complex(np.linalg.eigvals(cycle)),
                               atol=1e-12)
    np.testing.assert_allclose(w[1], 2, atol=1e-3)
    assert np.isnan(w[2]).all()


def test_deficient_matrices_have_whole_bases():
    a = np.zeros((4, 3))
    a[:, 0] = 1
    u, s, vh = run(lambda x: jnp.linalg.svd(x, full_matrices=True), [a])
    np.testing.assert_allclose(s, [2, 0, 0], atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-12)
    np.testing.assert_allclose((u[:, :3] * s) @ vh, a, atol=1e-12)
