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


def test_deficient_matrices_have_whole_bases():
    a = np.zeros((4, 3))
    a[:, 0] = 1
    u, s, vh = run(lambda x: jnp.linalg.svd(x, full_matrices=True), [a])
    np.testing.assert_allclose(s, [2, 0, 0], atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-12)
    np.testing.assert_allclose((u[:, :3] * s) @ vh, a, atol=1e-12)
