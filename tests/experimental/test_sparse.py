"""BCOO against SciPy and dense arrays: products, sums, transformations, refusals."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental.sparse import BCOO, bcoo_fromdense, sparsify, todense

rng = np.random.default_rng(0)
DENSE = (rng.normal(size=(5, 7)) * (rng.random((5, 7)) < 0.4)).astype(np.float32)
M = BCOO.fromdense(DENSE)


def test_products_sums_and_transposes_are_those_of_the_dense_matrix():
    v, w, u = (rng.normal(size=s).astype(np.float32) for s in ((7,), (7, 3), (2, 5)))
    for ours, dense in [(M @ v, DENSE @ v), (M @ w, DENSE @ w), (u @ M, u @ DENSE),
                        (v @ M.T, v @ DENSE.T), (M.T @ u.T, DENSE.T @ u.T), (M.sum(), DENSE.sum()),
                        (M.sum(0), DENSE.sum(0)), (M.sum(1), DENSE.sum(1)),
                        ((2 * M).todense(), 2 * DENSE),
                        ((M * DENSE[0]).todense(), DENSE * DENSE[0]),
                        ((-M).T.todense(), -DENSE.T), (M @ M.T, DENSE @ DENSE.T)]:
        np.testing.assert_allclose(ours, dense, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(todense(M), DENSE)
    assert todense(3) == 3 and M.nse == np.count_nonzero(DENSE) and M.ndim == M.n_sparse == 2


def test_scipys_matrices_and_padding():
    np.testing.assert_array_equal(BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(DENSE)).todense(),
                                  DENSE)
    padded = nj.jit(lambda x: bcoo_fromdense(x, nse=30))(DENSE)
    assert padded.nse == 30
    np.testing.assert_array_equal(padded.todense(), DENSE)
    np.testing.assert_allclose(padded @ np.ones(7, np.float32), DENSE.sum(1), rtol=1e-5)
    np.testing.assert_allclose(padded.sum(), DENSE.sum(), rtol=1e-5)


def test_transformations():
    v = rng.normal(size=7).astype(np.float32)
    g = nj.grad(lambda data: (BCOO((data, M.indices), shape=M.shape) @ v).sum())(M.data)
    np.testing.assert_allclose(g, v[np.asarray(M.indices)[:, 1]], rtol=1e-6)
    np.testing.assert_allclose(nj.jit(lambda m, x: m @ x)(M, v), DENSE @ v, rtol=1e-5, atol=1e-6)
    batch = rng.normal(size=(3, 7)).astype(np.float32)
    np.testing.assert_allclose(nj.vmap(lambda x: M @ x)(batch), batch @ DENSE.T, rtol=1e-5,
                               atol=1e-6)


def test_functions_of_dense_arrays_take_sparse_ones():
    both = sparsify(lambda m, v, scale=1: scale * m @ v["v"])
    np.testing.assert_allclose(both(M, {"v": np.ones(7, np.float32)}, scale=2), 2 * DENSE.sum(1),
                               rtol=1e-5)


def test_refusals():
    with pytest.raises(TypeError, match=r"got shapes \(5, 7\) and \(5,\)"):
        M @ jnp.ones(5)
    with pytest.raises(NotImplementedError, match="batch and dense axes"):
        BCOO((jnp.ones((2, 3)), jnp.zeros((2, 3, 1), int)), shape=(2, 4))


def test_products_with_batches_of_matrices():
    dense = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 4], [1, 1, 0]], np.float32)
    m = BCOO.fromdense(dense)
    x = np.arange(5 * 6 * 12, dtype=np.float32).reshape(5, 6, 3, 4)
    np.testing.assert_allclose(m @ x, dense @ x)
    np.testing.assert_allclose(m @ x[0, :, :, :1], dense @ x[0, :, :, :1])
    np.testing.assert_allclose(x @ m, x @ dense)
    np.testing.assert_allclose(x[..., :1, :] @ m, x[..., :1, :] @ dense)
    with pytest.raises(TypeError, match="fit"):
        m @ x.swapaxes(-1, -2)
