"""COO, CSR, CSC, BCSR in batches, sparse linear algebra and primitives, against dense arrays."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import sparse
from numjet.experimental.sparse import util
from numjet.experimental.sparse.linalg import lobpcg_standard, spsolve

rng = np.random.default_rng(0)
DENSE = (rng.normal(size=(5, 7)) * (rng.random((5, 7)) < 0.4)).astype(np.float32)
V, W = rng.normal(size=7).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
OLD = [sparse.COO, sparse.CSR, sparse.CSC]


def close(found, want, tolerance=1e-5):
    np.testing.assert_allclose(sparse.todense(found), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", OLD)
def test_old_formats_are_the_dense_matrix(kind):
    m, name = kind.fromdense(DENSE), kind.__name__.lower()
    assert m.nse == np.count_nonzero(DENSE) and m.dtype == np.float32 and m.ndim == 2
    for found, want in [
        (m, DENSE), (m.T, DENSE.T), (m.T.T, DENSE), (m @ V, DENSE @ V), (m @ W, DENSE @ W),
        (m.T @ V[:5], DENSE.T @ V[:5]), (nj.jit(lambda m: m)(m), DENSE),
        (nj.jit(lambda m, v: m @ v)(m, V), DENSE @ V), (m.to_bcoo(), DENSE),
        (kind.from_bcoo(sparse.BCOO.fromdense(DENSE)), DENSE),
        (nj.jit(lambda d: kind.fromdense(d, nse=30) @ V)(DENSE), DENSE @ V),
        (kind.fromdense(DENSE, nse=30).T, DENSE.T),
        (kind.fromdense(DENSE, nse=30).T @ V[:5], DENSE.T @ V[:5]),
        (sparse.eye(3, 4, 1, sparse_format=name), np.eye(3, 4, 1)),
        (sparse.empty((2, 3), sparse_format=name), np.zeros((2, 3))),
        (nj.vmap(lambda v: m @ v, 1, 1)(W), DENSE @ W),
    ]:
        close(found, want)
    other = scipy.sparse.csc_matrix(DENSE) if kind is sparse.CSC else scipy.sparse.csr_matrix(DENSE)
    if kind is not sparse.COO:
        np.testing.assert_array_equal(m.indptr, other.indptr)
        np.testing.assert_array_equal(m.indices, other.indices)
    for refused in (lambda: m + m, lambda: 2 * m, lambda: -m, lambda: m.sum(), lambda: m @ m,
                    lambda: V[:5] @ m, lambda: m @ W[None]):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(TypeError, match="do not fit"):
        m @ V[:4]


@pytest.mark.parametrize("kind", OLD)
def test_old_formats_are_differentiated_and_mapped(kind):
    m = kind.fromdense(DENSE)

    def f(data, v):
        filled = nj.tree.unflatten(nj.tree.structure(m), [data, *nj.tree.leaves(m)[1:]])
        return ((filled @ v) ** 2).sum()

    by_data, by_v = nj.grad(f, argnums=(0, 1))(m.data, V)
    dense, dense_v = nj.grad(lambda d, v: ((d @ v) ** 2).sum(), argnums=(0, 1))(DENSE, V)
    close(by_v, dense_v, 1e-4)
    place = nj.tree.unflatten(nj.tree.structure(m), [by_data, *nj.tree.leaves(m)[1:]])
    close(place, np.where(DENSE != 0, dense, 0), 1e-4)
    assert kind.__name__.lower().replace("csc", "csr") + "_matvec" in str(
        nj.make_jaxpr(lambda v: m @ v)(V))


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)])
def test_matrices_by_rows_in_batches(n_batch, n_dense):
    cube = rng.normal(size=(2, 4, 3, 2)[4 - 2 - n_batch - n_dense:] if n_batch + n_dense < 2
                      else (2, 4, 3, 2))
    cube = (cube * (rng.random(cube.shape) < 0.5)).astype(np.float32)
    m = sparse.BCSR.fromdense(cube, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_dense, m.shape) == (n_batch, n_dense, cube.shape)
    wide = sparse.bcsr_broadcast_in_dim(m, shape=(3, *cube.shape),
                                        broadcast_dimensions=range(1, 1 + cube.ndim))
    for found, want in [
        (m, cube), (m.to_bcoo(), cube), (sparse.BCSR.from_bcoo(m.to_bcoo()), cube),
        (nj.jit(lambda m: m)(m), cube), (wide, np.broadcast_to(cube, (3, *cube.shape))),
        (sparse.bcsr_concatenate([m, m], dimension=n_batch), np.concatenate([cube] * 2, n_batch)),
    ]:
        close(found, want)
    assert wide.n_batch == n_batch + 1
    full = sparse.bcsr_extract(m.indices, m.indptr, jnp.asarray(cube))
    np.testing.assert_array_equal(full, m.data)
    if n_batch:
        v = rng.normal(size=cube.shape[1:]).astype(np.float32)
        assert nj.vmap(lambda m: m)(m).shape == cube.shape
        if n_dense == 0 and n_batch == 1:
            close(nj.vmap(lambda m: m @ v[0])(m), cube @ v[0])
    with pytest.raises(ValueError, match="invalid data, indices and indptr"):
        sparse.BCSR((m.data, m.indices, m.indptr[..., :-1]), shape=cube.shape)


def test_sparse_systems_are_solved_and_differentiated():
    a = np.diag(np.arange(4.0, 10.0)) + np.diag(np.ones(5), 1) + np.diag(np.full(4, 0.5), -2)
    a, b = a.astype(np.float32), rng.normal(size=6).astype(np.float32)
    m = sparse.CSR.fromdense(a)
    solve = lambda data, b: spsolve(data, m.indices, m.indptr, b)
    close(solve(m.data, b), np.linalg.solve(a, b))
    close(nj.jit(solve)(m.data, b), np.linalg.solve(a, b))
    close(nj.vmap(solve, (None, 0))(m.data, np.stack([b, 2 * b])),
          np.linalg.solve(a, np.stack([b, 2 * b], 1)).T)
    f = lambda solve: lambda a, b: (solve(a, b) ** 2).sum()
    by_data, by_b = nj.grad(f(solve), argnums=(0, 1))(m.data, b)
    by_a, want = nj.grad(f(jnp.linalg.solve), argnums=(0, 1))(a, b)
    close(by_b, want, 1e-4)
    close(by_data, np.asarray(by_a)[a != 0], 1e-4)
    with pytest.raises(ValueError, match="rows"):
        solve(m.data, b[:3])
    with pytest.raises(ValueError, match="inexact"):
        solve(m.data.astype(int), b.astype(int))


def test_the_largest_eigenvalues():
    a = rng.normal(size=(40, 40)).astype(np.float32)
    a = a + a.T
    theta, u, rounds = nj.jit(lobpcg_standard)(a, rng.normal(size=(40, 3)).astype(np.float32))
    np.testing.assert_allclose(theta, np.linalg.eigvalsh(a)[::-1][:3], rtol=1e-4)
    np.testing.assert_allclose(a @ u, u * theta, atol=1e-2)
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=1e-5)
    assert 0 < int(rounds) < 100
    found = lobpcg_standard(lambda v: a @ v, jnp.eye(40, 2), m=3)
    assert int(found[2]) == 3
    for a, x in [(a, np.eye(40, 8)), (a[:3], np.eye(40, 1)), (a, np.zeros(40))]:
        with pytest.raises(ValueError, match="lobpcg_standard"):
            lobpcg_standard(a, jnp.asarray(x, np.float32))


def test_primitives_are_their_functions():
    m, r = sparse.BCOO.fromdense(DENSE), sparse.BCSR.fromdense(DENSE)
    info = util.SparseInfo(m.shape, True, True)
    turned = util.SparseInfo(m.shape[::-1], False, True)
    numbers = (((1,), (0,)), ((), ()))
    mats = (m.data, m.indices)
    rows = (r.data, r.indices, r.indptr)
    kinds = {"n_batch": 0, "n_dense": 0, "index_dtype": np.int32, "nse": m.nse}
    whole = lambda parts, shape: sparse.BCOO(tuple(parts), shape=shape)
    for found, want in [
        (sparse.bcoo_todense_p.bind(*mats, spinfo=info), DENSE),
        (whole(sparse.bcoo_fromdense_p.bind(DENSE, **kinds), m.shape), DENSE),
        (sparse.bcoo_extract_p.bind(m.indices, DENSE, assume_unique=True), m.data),
        (whole(sparse.bcoo_transpose_p.bind(*mats, permutation=(1, 0), spinfo=info), (7, 5)),
         DENSE.T),
        (whole(sparse.bcoo_sort_indices_p.bind(*mats, spinfo=info), m.shape), DENSE),
        (whole(sparse.bcoo_sum_duplicates_p.bind(*mats, spinfo=info, nse=35), m.shape), DENSE),
        (sparse.bcoo_dot_general_p.bind(*mats, V, dimension_numbers=numbers, lhs_spinfo=info,
                                        preferred_element_type=None), DENSE @ V),
        (whole(sparse.bcoo_spdot_general_p.bind(
            *mats, m.data, m.indices[:, ::-1], lhs_spinfo=info, rhs_spinfo=turned,
            dimension_numbers=numbers, preferred_element_type=np.float32), (5, 5)),
         DENSE @ DENSE.T),
        (sparse.bcoo_dot_general_sampled_p.bind(DENSE, W, jnp.array([[1, 2]]),
                                                dimension_numbers=numbers), (DENSE @ W)[1, 2:]),
        (sparse.bcsr_todense_p.bind(*rows, spinfo=info), DENSE),
        (sparse.bcsr_extract_p.bind(r.indices, r.indptr, DENSE), r.data),
        (sparse.bcsr_fromdense_p.bind(DENSE, **kinds)[0], r.data),
        (sparse.bcsr_dot_general_p.bind(*rows, V, dimension_numbers=numbers, lhs_spinfo=info,
                                        preferred_element_type=None), DENSE @ V),
        (nj.grad(lambda d: sparse.bcoo_todense_p.bind(d, m.indices, spinfo=info).sum())(m.data),
         np.ones(m.nse)),
    ]:
        close(found, want)
    assert "todense" in str(nj.make_jaxpr(sparse.todense)(DENSE))


def test_axes_of_size_one_stand_for_any_in_mapped_functions():
    x, y = rng.normal(size=(3, 1, 4)), rng.normal(size=(1, 2, 4))
    f = util.nfold_vmap(jnp.dot, 2)
    np.testing.assert_allclose(f(x, y), np.einsum("abi,abi->ab", x + 0 * y, y + 0 * x), rtol=1e-5)
    plain = util.nfold_vmap(jnp.dot, 1, broadcasted=False, in_axes=(0, None))
    np.testing.assert_allclose(plain(x[:, 0], y[0, 0]), x[:, 0] @ y[0, 0], rtol=1e-5)


CONVOLVE = {"window_strides": (1,)}


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", [(2, 3)], [(-1, 0)]])
@pytest.mark.parametrize("kinds", ["sparse sparse", "sparse dense", "dense sparse", "dense dense"])
def test_convolutions(padding: Any, kinds: str) -> None:
    draw = np.random.default_rng(8)
    dense = [
        jnp.array(draw.normal(size=(1, 1, n)) * (draw.random((1, 1, n)) < 0.5), jnp.float32)
        for n in (9, 4)
    ]
    mixed = [
        sparse.BCOO.fromdense(x, n_batch=2, nse=7) if kind == "sparse" else x
        for x, kind in zip(dense, kinds.split(), strict=True)
    ]
    want = nj.lax.conv_general_dilated(*dense, padding=padding, **CONVOLVE)
    convolve = lambda x, y: sparse.bcoo_conv_general_dilated(x, y, padding=padding, **CONVOLVE)
    for f in (convolve, nj.jit(convolve)):
        got = f(*mixed)
        assert got.n_batch == 2 and got.shape == want.shape
        np.testing.assert_allclose(got.todense(), want, atol=1e-5)
    if "sparse" in kinds:
        whole = sparse.sparsify(lambda x, y: nj.lax.conv_general_dilated(x, y, (1,), padding))
        np.testing.assert_allclose(whole(*mixed).todense(), want, atol=1e-5)


def test_convolutions_in_other_layouts_and_their_derivatives() -> None:
    x = jnp.array([0.0, 2.0, 0.0, 3.0, -1.0]).reshape(1, 5, 1)
    kernel = sparse.BCOO.fromdense(jnp.array([[[1.0]], [[0.0]], [[-4.0]]]))
    layout = {"dimension_numbers": ("NWC", "WIO", "NWC"), "padding": "SAME", **CONVOLVE}
    dense = lambda x, k: nj.lax.conv_general_dilated(x, k, **layout)

    def of(values: Any) -> Any:
        y = sparse.BCOO((values, kernel.indices), shape=kernel.shape)
        return sparse.bcoo_conv_general_dilated(x, y, **layout).todense()

    np.testing.assert_allclose(of(kernel.data), dense(x, kernel.todense()), atol=1e-6)
    full = nj.grad(lambda k: (dense(x, k) ** 2).sum())(kernel.todense())
    got = nj.grad(lambda v: (of(v) ** 2).sum())(kernel.data)
    np.testing.assert_allclose(got, full[tuple(kernel.indices.T)], rtol=1e-5)


def test_convolutions_that_are_refused() -> None:
    x, y = jnp.ones((1, 1, 6)), sparse.BCOO.fromdense(jnp.ones((1, 1, 2)), n_batch=2)
    for error, text, lhs, change in (
        (NotImplementedError, "window_strides", x, {"window_strides": (2,)}),
        (NotImplementedError, "rhs_dilation", x, {"rhs_dilation": (2,)}),
        (NotImplementedError, "leading dimensions", jnp.ones((3, 1, 6)), {}),
        (TypeError, "one dtype", jnp.ones((1, 1, 6), int), {}),
        (ValueError, "feature", jnp.ones((1, 2, 6)), {}),
    ):
        with pytest.raises(error, match=text):
            sparse.bcoo_conv_general_dilated(
                lhs, y, **{"padding": "VALID", "window_strides": (1,), **change}
            )


def test_matrices_without_elements_and_maps_over_what_is_no_batch() -> None:
    nothing = sparse.BCOO.fromdense(jnp.zeros(4))
    assert nothing.nse == 0 and nothing[None].n_batch == 1
    assert nothing[:, None].shape == (4, 1) and nothing.sum_duplicates().nse == 0
    wide = sparse.bcoo_broadcast_in_dim(nothing, shape=(3, 4), broadcast_dimensions=(1,))
    np.testing.assert_array_equal(wide.todense(), np.zeros((3, 4)))
    rows = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]), n_dense=1)
    for m in (nothing, rows, sparse.eye(3)):
        with pytest.raises(ValueError, match="n_batch=0"):
            nj.vmap(lambda row: row.todense())(m)
    np.testing.assert_array_equal(
        nj.vmap(lambda row: row.todense())(sparse.eye(3, n_batch=1)), np.eye(3)
    )
    assert nj.tree.map(jnp.sum, sparse.eye(3)).data == 3  # no map over axes


def test_sums_of_small_integers_and_plus() -> None:
    dense = jnp.array([[100, 0], [100, -3]], jnp.int8)
    m = sparse.BCOO.fromdense(dense)
    assert m.sum() == 197 and m.sum().dtype == jnp.int32
    for axes in ((0,), (1,), (0, 1)):
        got = sparse.bcoo_reduce_sum(m, axes=axes)
        assert got.dtype == jnp.int32
        np.testing.assert_array_equal(got.todense(), dense.sum(axes))
    assert m.sum(0, dtype=jnp.float32).dtype == jnp.float32
    assert (+m).dtype == jnp.int8 and ((+m).todense() == dense).all()


def test_parts_of_matrices_by_rows() -> None:
    dense = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) % 5
    one, batch = sparse.BCSR.fromdense(dense[0]), sparse.BCSR.fromdense(dense, n_batch=1)
    for m, x, item in [
        (one, dense[0], None), (one, dense[0], (None, None)), (one, dense[0], slice(1, None)),
        (one, dense[0], (slice(None), slice(None, None, 2))), (one, dense[0], ...),
        (batch, dense, None), (batch, dense, (slice(None), None)), (batch, dense, 1),
        (batch, dense, slice(None, None, -1)), (batch, dense, jnp.array([1, 0, 1])),
    ]:  # fmt: skip
        found = m[item]
        assert isinstance(found, sparse.BCSR)
        np.testing.assert_array_equal(found.todense(), x[item])
    assert [part.shape for part in batch] == [(3, 4), (3, 4)]
    for wrong in (lambda: one[0], lambda: one[:, None], lambda: one[..., None], lambda: list(one)):
        with pytest.raises(NotImplementedError, match="sparse axes"):
            wrong()


def test_derivatives_by_matrices_by_rows_are_such() -> None:
    m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]))
    v = jnp.array([1.0, 5.0, -2.0])
    for derivative in (sparse.jacfwd, sparse.jacrev):
        found = derivative(lambda m: m @ v)(m)
        assert isinstance(found, sparse.BCSR) and found.n_batch == 1
        want = np.einsum("ik,j->ikj", np.eye(2), v) * (np.asarray(m.todense()) != 0)
        np.testing.assert_array_equal(found.todense(), want)


def test_shapes_and_kinds_that_do_not_fit() -> None:
    eye = sparse.eye
    for error, text, wrong in [
        (TypeError, "incompatible shapes", lambda: eye(2) + eye(3)),
        (TypeError, "incompatible shapes", lambda: eye(2) * eye(3)),
        (ValueError, "2 sparse dimensions", lambda: sparse.BCSR.fromdense(jnp.ones(3))),
        (ValueError, "2 sparse dimensions", lambda: sparse.empty((2, 3, 4), sparse_format="bcsr")),
        (ValueError, "sequence of BCOO",
         lambda: sparse.sparsify(lambda a: jnp.hstack([a, jnp.ones((2, 1))]))(eye(2))),
        (TypeError, "bad operand type", lambda: abs(eye(2, sparse_format="csr"))),
        (ValueError, "order must be", lambda: eye(2).reshape(4, order="A")),
        (ValueError, "give a product like X",
         lambda: lobpcg_standard(lambda v: v[:5], jnp.ones((20, 1)))),
        (ValueError, "give a product like X",
         lambda: lobpcg_standard(lambda v: v.astype(jnp.float16), jnp.ones((20, 1)))),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            wrong()
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for sizes in (6, (3, 2), (1, 6)):
        found = sparse.BCOO.fromdense(x).reshape(sizes, order="F")
        np.testing.assert_array_equal(found.todense(), x.reshape(sizes, order="F"))


def test_sparsified_functions_keep_matrices_by_rows() -> None:
    dense = np.arange(12.0, dtype=np.float32).reshape(3, 4) % 5
    m = sparse.BCSR.fromdense(dense)
    for f in (jnp.sin, jnp.negative, lambda x: x**3, lambda x: 2 * x, lambda x: x[None],
              lambda x: x, lambda x: x.astype(int), lambda x: jnp.concatenate([x, x], 1),
              lambda x: x.T,
              lambda x: nj.lax.fori_loop(0, 3, lambda i, y: y * 2, x)):  # fmt: skip
        found = sparse.sparsify(f)(m)
        assert isinstance(found, sparse.BCSR), f
        close(found, f(jnp.asarray(dense)))
    assert isinstance(sparse.sparsify(lambda x: x.sum(0))(m), sparse.BCOO)
    assert isinstance(sparse.sparsify(lambda x: x)(sparse.CSR.fromdense(dense)), sparse.CSR)
    close(sparse.sparsify(lambda x, v: x @ v)(m, jnp.ones(4)), dense.sum(1))


def test_random_matrices_with_more_than_there_is() -> None:
    for layout in ({"n_batch": 3}, {"n_dense": -1}, {"nse": 21}, {"nse": -1}):
        with pytest.raises(ValueError, match="Invalid n_batch|expected to be between 0 and 20"):
            sparse.random_bcoo(nj.random.key(0), (4, 5), **layout)
