"""Sparse arrays against SciPy and dense ones: operations, transformations, refusals."""
from __future__ import annotations

import operator

import numpy as np
import pytest
import same_answers
import scipy.sparse

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import sparse
from numjet.experimental.sparse import BCOO, bcoo_fromdense, sparsify, todense
from numjet.scipy.sparse import linalg

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
        np.testing.assert_allclose(todense(ours), dense, rtol=1e-5, atol=1e-5)
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
    with pytest.raises(TypeError, match=r"got \(5, 7\) and \(5,\)"):
        M @ jnp.ones(5)
    for shape in ((2, 4, 5), (3, 4), (4,)):
        with pytest.raises(ValueError, match="invalid data and indices"):
            BCOO((jnp.ones((2, 3)), jnp.zeros((2, 3, 1), int)), shape=shape)
    with pytest.raises(NotImplementedError, match="all elements would be stored"):
        M + 1.0
    with pytest.raises(NotImplementedError, match="rule for exp .* dense output"):
        sparsify(jnp.exp)(M)
    with pytest.raises(NotImplementedError, match="larger than the sparse array"):
        M * jnp.ones((2, 5, 7))
    with pytest.raises(sparse.SparseEfficiencyError):
        M.update_layout(n_dense=1)
    with pytest.raises(ValueError, match="no axes for|at most 2"):
        M.update_layout(n_batch=2, n_dense=1)


CUBE = (rng.normal(size=(3, 4, 5)) * (rng.random((3, 4, 5)) < 0.4)).astype(np.float32)
LAYOUTS = [(b, d) for b in range(4) for d in range(4 - b)]


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_operations_on_every_layout_are_those_of_the_dense_array(n_batch, n_dense):
    m = BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense)
    w = rng.normal(size=(3, 5, 2)).astype(np.float32)
    numbers = (((2,), (1,)), ((0,), (0,)))
    for found, dense in [
        (m, CUBE), (m.transpose((2, 0, 1)), CUBE.transpose(2, 0, 1)), (m.T, CUBE.T),
        (m.sum(1), CUBE.sum(1)), (m.sum(), CUBE.sum()), (m.sum((0, 2)), CUBE.sum((0, 2))),
        (m.update_layout(n_batch=0, n_dense=0).reshape(5, 12), CUBE.reshape(5, 12)),
        (m.update_layout(n_batch=0, n_dense=0).reshape(-1), CUBE.ravel()),
        (m[1], CUBE[1]), (m[:, 2:, ::2], CUBE[:, 2:, ::2]), (m[..., -1], CUBE[..., -1]),
        (m[::-1, None, 1], CUBE[::-1, None, 1]), (m * 3, CUBE * 3), (m * CUBE[0], CUBE * CUBE[0]),
        (m * m, CUBE**2), (m + m.T.T, 2 * CUBE), (m - 2 * m, -CUBE), (m / 2, CUBE / 2),
        (abs(m), abs(CUBE)), (m**2, CUBE**2), (m.sum_duplicates(), CUBE), (m.sort_indices(), CUBE),
        (m.update_layout(n_batch=1, n_dense=0, on_inefficient=None), CUBE),
        (sparse.bcoo_broadcast_in_dim(m[:1], shape=(2, 3, 4, 5), broadcast_dimensions=(1, 2, 3)),
         np.broadcast_to(CUBE[:1], (2, 3, 4, 5))),
        (sparse.bcoo_concatenate([m, -m], dimension=1), np.concatenate([CUBE, -CUBE], 1)),
        (sparse.bcoo_dynamic_slice(m, (1, 3, 0), (2, 2, 5)), CUBE[1:3, 2:4]),
        (sparse.bcoo_squeeze(m[:, :1], dimensions=(1,)), CUBE[:, 0]),
        (sparse.bcoo_dot_general(m, w, dimension_numbers=numbers), CUBE @ w),
        (sparse.bcoo_dot_general(w, m, dimension_numbers=(((1,), (2,)), ((0,), (0,)))),
         np.einsum("bkf,bik->bfi", w, CUBE)),
        (sparse.bcoo_dot_general(m, BCOO.fromdense(w), dimension_numbers=numbers), CUBE @ w),
        (m[0] @ m[1].T, CUBE[0] @ CUBE[1].T), (m.astype(int), CUBE.astype(int)),
        (sparse.bcoo_extract(m, 1 + CUBE), np.where(BCOO.fromdense(
            CUBE != 0, n_batch=n_batch, n_dense=n_dense).todense(), 1 + CUBE, 0)
         if n_dense == n_batch == 0 else None),
    ]:  # fmt: skip
        if dense is not None:
            found = todense(found)
            assert found.shape == dense.shape
            np.testing.assert_allclose(found, dense, rtol=1e-5, atol=1e-5)


def test_a_mapped_array_has_a_batch_axis_more():
    batched = BCOO.fromdense(CUBE, n_batch=1)
    v = rng.normal(size=5).astype(np.float32)
    np.testing.assert_allclose(nj.vmap(lambda m: m @ v)(batched), CUBE @ v, rtol=1e-5, atol=1e-5)
    turned = nj.vmap(lambda m: (m * 2).T)(batched)
    assert turned.shape == (3, 5, 4) and turned.n_batch == 1
    np.testing.assert_allclose(turned.todense(), 2 * CUBE.transpose(0, 2, 1), rtol=1e-6)


def test_matrices_by_rows():
    m = sparse.BCSR.fromdense(DENSE)
    v, w = np.arange(7, dtype=np.float32), np.arange(5, dtype=np.float32)
    scipys = scipy.sparse.csr_matrix(DENSE)
    np.testing.assert_array_equal(m.indptr, scipys.indptr)
    np.testing.assert_array_equal(m.indices, scipys.indices)
    for found, dense in [(m @ v, DENSE @ v), (w @ m, w @ DENSE), (m.T, DENSE.T),
                         (m * 2, 2 * DENSE), (-m, -DENSE), (m + m, 2 * DENSE),
                         (m.sum(0), DENSE.sum(0)),
                         (sparse.BCSR.from_scipy_sparse(scipys), DENSE),
                         (sparse.BCSR.fromdense(DENSE, nse=30), DENSE),
                         (sparse.bcsr_concatenate([m, m], dimension=0), np.vstack([DENSE] * 2)),
                         (nj.jit(lambda m: m)(m), DENSE)]:
        np.testing.assert_allclose(todense(found), dense, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(sparse.bcsr_extract(m.indices, m.indptr, DENSE), m.data)


def test_sparsified_functions_keep_what_is_sparse():
    v = rng.normal(size=7).astype(np.float32)
    for f, kind in [
        (lambda m: jnp.sin(m.T * 2) - m.T, BCOO), (lambda m: m[1:, 2], BCOO),
        (lambda m: jnp.concatenate([m, m]).reshape(-1, 5), BCOO), (lambda m: m.sum(0), BCOO),
        (lambda m: m @ v, nj.Array), (lambda m: jnp.sum(m) + v, nj.Array),
        (lambda m: jnp.exp(todense(m)), nj.Array), (nj.jit(lambda m: -m / 2), BCOO),
        (lambda m: lax.cond(v[0] > 0, lambda m: m * 2, lambda m: m, m), BCOO),
        (lambda m: lax.scan(lambda c, x: (m.T @ (m @ c) * x, None), v, v)[0], nj.Array),
        (lambda m: lax.fori_loop(0, jnp.asarray(3), lambda i, c: m.T @ (m @ c), v), nj.Array),
        (lambda m: nj.checkpoint(lambda m: m @ m.T)(m), BCOO),
    ]:  # fmt: skip
        found = sparsify(f)(M)
        assert isinstance(found, kind)
        np.testing.assert_allclose(todense(found), f(DENSE), rtol=1e-4, atol=1e-4)


def test_derivatives_are_at_the_places_of_the_values():
    v = rng.normal(size=7).astype(np.float32)
    f = lambda m, v: jnp.sum((m @ v) ** 2)
    value, (by_m, by_v) = sparse.value_and_grad(f, argnums=(0, 1))(M, v)
    dense_m, dense_v = nj.grad(f, argnums=(0, 1))(DENSE, v)
    np.testing.assert_allclose(value, f(DENSE, v), rtol=1e-5)
    np.testing.assert_allclose(by_m.todense(), np.where(DENSE != 0, dense_m, 0), rtol=1e-4,
                               atol=1e-5)
    np.testing.assert_allclose(by_v, dense_v, rtol=1e-4, atol=1e-5)
    by_rows = sparse.grad(f)(sparse.BCSR.fromdense(DENSE), v)
    np.testing.assert_allclose(by_rows.todense(), by_m.todense(), rtol=1e-5)
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        found = jacobian(lambda m: m @ v)(M)
        assert found.shape == (5, 5, 7) and found.n_batch == 1
        want = np.where(DENSE != 0, nj.jacrev(lambda m: m @ v)(DENSE), 0)
        np.testing.assert_allclose(found.todense(), want, rtol=1e-5)


def test_arrays_that_are_made():
    np.testing.assert_array_equal(sparse.eye(3, 5, 1).todense(), np.eye(3, 5, 1))
    by_rows = sparse.eye(4, k=-2, sparse_format="bcsr")
    np.testing.assert_array_equal(by_rows.todense(), np.eye(4, k=-2))
    assert sparse.empty((2, 3)).nse == 0 and not sparse.empty((2, 3)).todense().any()
    m = sparse.random_bcoo(nj.random.key(0), (3, 8, 9), nse=0.25, n_batch=1, dtype=np.float32)
    assert m.nse == 18 and m.n_batch == 1 and (m.todense() != 0).sum((1, 2)).max() == 18
    doubled = BCOO((jnp.ones(4), jnp.array([[1, 1], [0, 2], [1, 1], [9, 9]])), shape=(2, 3))
    once = nj.jit(lambda m: m.sum_duplicates(nse=3))(doubled)
    np.testing.assert_array_equal(once.indices, [[0, 2], [1, 1], [2, 3]])
    np.testing.assert_array_equal(once.data, [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(abs(-doubled).todense(), [[0, 0, 1], [0, 2, 0]])


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


def test_integers_are_made_of_sums():
    halves = BCOO((jnp.full(2, 0.5), jnp.array([[1], [1]])), shape=(2,))
    np.testing.assert_array_equal(halves.astype(int).todense(), [0, 1])
    assert halves.astype(jnp.float16).nse == 2


LAID = """
import importlib
sparse = importlib.import_module(jax.__name__ + ".experimental.sparse")
def bcoo(shape, n_batch, n_dense):
    data = np.ones((*shape[:n_batch], 3, *shape[len(shape) - n_dense:]), np.float32)
    indices = np.zeros((*shape[:n_batch], 3, len(shape) - n_batch - n_dense), np.int32)
    return sparse.BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)
m = bcoo((2, 3, 2), {0}, {1})
def seen(f):
    x = jax.eval_shape(f)
    if not isinstance(x, sparse.BCOO):
        return [x.shape, str(x.dtype)]
    return [x.shape, x.data.shape, x.indices.shape, x.indices_sorted, x.unique_indices]
"""
OPERATIONS = [
    "sparse.bcoo_transpose(m, permutation={order})", "m.sum(0)", "m.sum((1, 2))", "m[1]",
    "m[:, 1:]", "m[..., ::-1]", "m[:, None]", "m.reshape(6, 2)", "m + bcoo((2, 3, 2), {0}, {1})",
    "sparse.bcoo_multiply_sparse(m, bcoo((2, 1, 2), {0}, {1}))", "m * np.ones((3, 1))",
    "sparse.bcoo_multiply_dense(m, np.ones(m.shape))", "m.sum_duplicates(nse=5)", "m.astype(int)",
    "sparse.bcoo_rev(m, (0, 2))", "sparse.bcoo_squeeze(m[:1], dimensions=(0,))",
    "sparse.bcoo_dynamic_slice(m, (1, 1, 0), (1, 2, 1))",
    "sparse.bcoo_extract(m, np.ones(m.shape))",
    "m.update_layout(n_batch=0, n_dense=0)", "m.update_layout(n_batch=1, on_inefficient=None)",
    "m.update_layout(n_dense=1, on_inefficient=None)",
    "sparse.bcoo_concatenate([m, m], dimension={axis})",
    "sparse.bcoo_broadcast_in_dim(m, shape=(4, 2, 3, 2), broadcast_dimensions=(1, 2, 3))",
]


def test_layouts_are_jaxs():
    """Shapes of data and indices, and promises, of each operation on each layout."""
    cases = {}
    for b, d in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (0, 3)]:
        order = (1, 0, 2) if b == 2 else (0, 1, 2) if b == d == 1 else (2, 1, 0)
        order = (0, 2, 1) if (b, d) == (1, 0) else (1, 0, 2) if (b, d) == (0, 1) else order
        axis = min(1, 2 - d) if d < 3 else None
        for text in OPERATIONS:
            if axis is None and "{axis}" in text or (b, d) != (0, 0) and "reshape" in text:
                continue  # JAX refuses these, and loses dense axes
            text = text.replace("{order}", str(order)).replace("{axis}", str(axis))
            fill = lambda t: t.replace("{0}", str(b)).replace("{1}", str(d))
            cases[f"{b} {d} {text}"] = fill(LAID) + f"seen(lambda: {fill(text)})"
    found = same_answers.differences(cases)
    assert not found, "\n".join(f"{n}: {t}" for n, t in found.items())


def test_a_batch_axis_of_length_1_stands_for_all():
    """Functions that need not broadcast it leave it, as JAX's do (shapes measured there)."""
    data, indices = jnp.array([[1.0, 2.0, 3.0]]), jnp.array([[[0], [2], [2]]])
    m = sparse.BCOO((data, indices), shape=(2, 3))
    for made, rows in ((sparse.bcoo_sum_duplicates(m), 2), (sparse.bcoo_sort_indices(m), 3),
                       (sparse.bcoo_sum_duplicates(m, nse=5), 5),
                       (sparse.bcoo_rev(m, (1,)), 3), (sparse.bcoo_rev(m, (0,)), 3),
                       (sparse.bcoo_transpose(m, permutation=(0, 1)), 3)):
        assert made.data.shape == (1, rows) and made.indices.shape == (1, rows, 1)
        want = [[5, 0, 1]] * 2 if made.indices[0, 0, 0] == 2 else [[1, 0, 5]] * 2
        np.testing.assert_array_equal(made.todense(), want)
    twice = jnp.concatenate([indices, indices[:, ::-1]])
    mixed = sparse.bcoo_sum_duplicates(sparse.BCOO((data, twice), shape=(2, 3)))
    assert mixed.data.shape == (2, 2)
    np.testing.assert_array_equal(mixed.todense(), [[1, 0, 5], [3, 0, 3]])


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (0, 3)])
def test_gathers_are_those_of_the_dense_array(n_batch, n_dense):
    m = BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense)
    for numbers, sizes, starts in [
        (((1, 2), (0,), (0,)), (1, 4, 5), [[2], [0]]),
        (((0, 1), (1,), (1,)), (3, 1, 5), [[3], [1], [1]]),
        (((0, 3), (2,), (0, 2)), (2, 4, 1), [[[1, 4], [0, 0]]]),
        (((), (0, 1, 2), (0, 1, 2)), (1, 1, 1), [[2, 3, 4], [0, 1, 2]]),
    ]:
        numbers, starts = lax.GatherDimensionNumbers(*numbers), jnp.array(starts)
        want = lax.gather(jnp.asarray(CUBE), starts, numbers, sizes)
        found = sparse.bcoo_gather(m, starts, numbers, sizes)
        assert isinstance(found, BCOO)
        np.testing.assert_array_equal(found.todense(), want)
        jitted = nj.jit(lambda m, s: sparse.bcoo_gather(m, s, numbers, sizes, mode="clip"))
        np.testing.assert_array_equal(jitted(m, starts + 9).todense(), lax.gather(
            jnp.asarray(CUBE), starts + 9, numbers, sizes, mode="clip"))
        with pytest.raises(NotImplementedError, match="out of bounds"):
            sparse.bcoo_gather(m, starts + 9, numbers, sizes)


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (0, 1)])
def test_indices_that_are_arrays(n_batch, n_dense) -> None:
    x = rng.integers(-1, 2, (3, 4, 5)).astype(np.float32)
    m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    i, j, mask = np.array([2, -1]), np.array([[0], [2]]), np.array([True, False, True])
    everything = slice(None)
    for item in [(i,), (everything, i), (i, i), (i, 1), (j, i), (i, everything, i), (mask,),
                 (None, i), (slice(1, 3), j, i), (0, everything, i), (..., i)]:
        ours = m[tuple([jnp.asarray(k) if isinstance(k, np.ndarray) else k for k in item])]
        np.testing.assert_array_equal(ours.todense(), x[item], err_msg=str(item))
    np.testing.assert_array_equal(m[jnp.array([9])].todense(), x[2:])
    np.testing.assert_array_equal(nj.jit(lambda m, k: m[k].todense())(m, 1), x[1])


def test_axes_out_of_bounds() -> None:
    for call, error in [(lambda: M.sum(2), ValueError), (lambda: M.transpose((0, 2)), TypeError),
                        (lambda: sparse.bcoo_concatenate([M, M], dimension=2), TypeError),
                        (lambda: sparse.bcoo_rev(M, (2,)), TypeError),
                        (lambda: sparse.bcoo_squeeze(M, dimensions=(2,)), ValueError)]:
        with pytest.raises(error, match="out of bounds for 2 axes"):
            call()
    empty = sparse.empty((2, 3, 4), n_batch=1, nse=2)
    assert empty.indices.shape == (2, 2, 2) and not empty.todense().any()


def test_solvers_take_sparse_matrices() -> None:
    dense = np.diag(np.arange(1.0, 4)).astype(np.float32)
    dense[0, 1] = dense[1, 0] = 0.5
    b = jnp.array([1.0, 2.0, 3.0])
    for matrix in (sparse.BCOO.fromdense(dense), sparse.BCSR.fromdense(dense)):
        for solve in (linalg.cg, linalg.gmres, linalg.bicgstab):
            np.testing.assert_allclose(solve(matrix, b)[0], np.linalg.solve(dense, b), rtol=1e-5)
    with pytest.raises(TypeError, match="linear operator must be either a function or ndarray"):
        linalg.cg(3.0, b)
    with pytest.raises(ValueError, match="linear operator must be a square matrix"):
        linalg.cg(np.ones((2, 3)), b)


def test_sums_with_dense_arrays_are_dense_and_comparisons_refused() -> None:
    mat = sparse.BCOO.fromdense(jnp.eye(2))
    for total in (mat + jnp.ones((2, 2)), np.ones((3, 2, 2)) + mat):
        np.testing.assert_array_equal(total, np.broadcast_to(np.eye(2) + 1, total.shape))
    for wrong in (lambda: mat + 1, lambda: mat + jnp.ones(2), lambda: mat - jnp.ones((2, 2)),
                  lambda: mat > 1, lambda: mat == mat):
        with pytest.raises(NotImplementedError, match="todense"):
            wrong()
    with pytest.raises(ValueError, match="setting an array element with a sequence"):
        jnp.asarray(mat)


def test_operands_that_are_no_arrays_are_refused() -> None:
    a = sparse.BCOO.fromdense(jnp.eye(2))
    for operation in (operator.eq, operator.ne, operator.lt, operator.add, operator.sub,
                      operator.mul, operator.truediv, operator.matmul, operator.pow):  # fmt: skip
        for other in (None, "a"):
            with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
                operation(a, other)
    for other in (a, 2.0, jnp.ones(2)):
        with pytest.raises(NotImplementedError, match="dense output"):
            a == other  # noqa: B015 - raises


def test_operators_join_elements_and_sparsified_functions_add_them_up() -> None:
    m = sparse.BCOO.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    assert [x.nse for x in (m + m, m - m, m + -m, m * m)] == [6, 6, 6, 9]
    assert sparse.sparsify(jnp.add)(m, m).nse == 6
    assert sparse.sparsify(lambda a: a + a)(m).nse == 3
    assert (m + m).sum_duplicates().nse == 3


def test_refusals_of_sparsified_operations_say_what_jaxs_say() -> None:
    x = BCOO.fromdense(jnp.arange(5.0))
    dense, unknown = "is not implemented because it would result in dense output. If", "is not impl"
    for f, args, text in [
        (sparsify(lax.cos), (x,), f"^sparse rule for cos {dense}"),
        (sparsify(lax.complex), (x, x), f"^sparse rule for complex {unknown}emented[.]$"),
        (operator.gt, (x, 1), f"^sparse rule for gt {dense}"),
        (operator.truediv, (2, x), f"^Division by a sparse array {dense}"),
        (sparsify(operator.truediv), (2, x), f"^Division by a sparse array {dense}"),
        (operator.add, (x, 1), "^Addition between a sparse array X and a dense array Y is not"),
    ]:
        with pytest.raises(NotImplementedError, match=text):
            f(*args)
    with pytest.raises(ValueError, match="input operand 1 must have ndim at least 1"):
        x @ 2
    choose = sparsify(lambda x, y: lax.cond(False, lambda p: p[0], lambda p: p[1], (x, y)))
    assert isinstance(choose(x, x), BCOO)
    for pair in ((x, x.todense()), (x.todense(), x)):
        with pytest.raises(TypeError, match="sparsified true_fun output must have same type str"):
            choose(*pair)


def test_sparsified_results_without_axes_stay_sparse() -> None:
    one = BCOO.fromdense(jnp.ones((1, 1)))
    for f in (jnp.squeeze, lambda a: jnp.squeeze(a @ a), lambda a: a[0, 0]):
        found = sparsify(f)(one)
        assert isinstance(found, BCOO) and found.shape == () and found.todense() == 1
    assert not isinstance(sparsify(jnp.sum)(one), BCOO)
    assert sparsify(lax.conj)(one).dtype == "complex64"
    assert BCOO.fromdense(jnp.ones(3)).T.indices_sorted and not M.T.indices_sorted


def test_differentiated_functions_are_given_sparse_arrays() -> None:
    v = jnp.arange(7.0)

    def f(m: BCOO) -> tuple:
        assert isinstance(m, BCOO) and m.nse == M.nse
        return (m.todense() @ v).sum() + (m.data**2).sum(), 3

    slopes, aux = sparse.grad(f, has_aux=True)(M)
    np.testing.assert_allclose(slopes.data, v[M.indices[:, 1]] + 2 * M.data, rtol=1e-6)
    assert type(aux) is int and slopes.indices is M.indices
    assert sparse.jacrev(lambda m: m.todense())(M).shape == (5, 7, 5, 7)


def test_eye_in_batches_and_of_dense_rows() -> None:
    for batch, dense, nse in ((1, 0, 1), (0, 1, 2), (1, 1, 1), (2, 0, 1), (0, 2, 1)):
        m = sparse.eye(3, 4, 2, n_batch=batch, n_dense=dense)
        assert (m.n_batch, m.n_dense, m.nse) == (batch, dense, nse)
        np.testing.assert_array_equal(m.todense(), np.eye(3, 4, 2))
    with pytest.raises(ValueError, match="n_batch=2"):
        sparse.eye(3, n_batch=2, n_dense=1)
    with pytest.raises(NotImplementedError, match="unknown"):
        sparse.eye(3, n_batch=1, sparse_format="coo")


@pytest.mark.parametrize(("n_batch", "n_dense", "kinds"), [
    (1, 0, "batch and sparse"), (2, 1, "batch and sparse"), (0, 1, "sparse and dense"),
    (1, 1, "sparse and dense"),
])  # fmt: skip
def test_reshapes_keep_the_kinds_of_axes_apart(n_batch: int, n_dense: int, kinds: str) -> None:
    m = BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense)
    with pytest.raises(ValueError, match=f"cannot mix {kinds} dimensions"):
        m.reshape(-1) if kinds.startswith("batch") else m.reshape(3, 10, 2)
    for sizes in ((3, 4, 5), (3, 1, 4, 5), (1, 3, 4, 5)):
        made = m.reshape(sizes)
        assert made.shape == sizes
        np.testing.assert_array_equal(made.todense(), CUBE.reshape(sizes))
    assert BCOO.fromdense(np.ones((2, 0, 3)), n_batch=1).reshape(2, 3, 0).n_batch == 1
    assert m.reshape(CUBE.shape).indices_sorted and m.reshape(CUBE.shape).unique_indices


def test_integers_out_of_bounds_are_the_nearest_places() -> None:
    m = BCOO.fromdense(CUBE, n_batch=1)
    for item, near in (((7,), (2,)), ((-9,), (0,)), ((slice(None), 4), (slice(None), 3)),
                       ((1, 2, -6), (1, 2, 0))):  # fmt: skip
        np.testing.assert_array_equal(m[item].todense(), CUBE[near])
    with pytest.raises(IndexError, match="no places"):
        BCOO.fromdense(jnp.zeros((0, 2)))[0]


def test_booleans_become_integers() -> None:
    mask = np.array([[True, False, False], [True, True, False]])
    for layout in ({}, {"n_batch": 1}, {"n_dense": 1}, {"nse": 5}):
        m = BCOO.fromdense(mask, **layout)
        assert m.dtype == np.int32
        np.testing.assert_array_equal(m.todense(), mask)
    assert sparse.BCSR.fromdense(mask).dtype == np.int32
    assert sparse.eye(2, dtype=bool, n_batch=1).dtype == sparse.COO.fromdense(mask).dtype == bool


def test_trees_say_what_a_matrix_is() -> None:
    made = {type(m): m for m in (M, sparse.BCSR.fromdense(DENSE), sparse.CSR.fromdense(DENSE),
                                 sparse.COO.fromdense(DENSE), sparse.CSC.fromdense(DENSE))}
    for kind, m in made.items():
        leaves, rest = m.tree_flatten()
        again = kind.tree_unflatten(rest, leaves)
        assert type(again) is kind and again.shape == (5, 7)
        np.testing.assert_array_equal(again.todense(), DENSE)
    assert "{'shape': (5, 7), 'indices_sorted': True, 'unique_indices': True}" in str(
        nj.tree.structure(M)
    )
    assert hash(nj.tree.structure(M)) == hash(nj.tree.structure(-M))


def test_without_sparse_axes_duplicates_sum_up_to_one_row() -> None:
    for layout in ({"n_batch": 1}, {"n_dense": 1}):
        nothing = BCOO.fromdense(jnp.zeros(3), **layout)
        assert nothing.nse == 0 and nothing.sum_duplicates().nse == 1
    assert (M[0] @ M[0]).nse == 1


@pytest.mark.parametrize("n_batch", [0, 1, 2])
def test_samples_of_products_at_indices_in_batches(n_batch: int) -> None:
    x, y = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((2, 3, 5), (2, 5, 4)))
    numbers = (((2,), (1,)), ((0,), (0,)))
    places = BCOO.fromdense(CUBE[:2, :3, :4] if CUBE.shape[0] > 2 else CUBE, n_batch=n_batch)
    sample = lambda x, y: sparse.bcoo_dot_general_sampled(
        x, y, places.indices, dimension_numbers=numbers)  # fmt: skip
    want = sparse.bcoo_extract(places, lax.dot_general(x, y, numbers))
    assert sample(x, y).shape == places.data.shape
    np.testing.assert_allclose(sample(x, y), want.data, rtol=1e-5)
    slopes = nj.grad(lambda x: sample(x, y).sum())(x)
    mask = (np.asarray(places.todense()) != 0).astype(np.float32)
    np.testing.assert_allclose(slopes, np.einsum("bij,bkj->bik", mask, y), rtol=1e-5)


def test_products_of_sparse_arrays_keep_batches() -> None:
    make = lambda shape, n_batch: BCOO.fromdense(
        np.arange(1, 1 + np.prod(shape)).reshape(shape) % 3, n_batch=n_batch)  # fmt: skip
    for left, right, contract, batch, kept, nse in [
        (((6,), 0), ((4, 6), 1), ((0,), (1,)), ((), ()), 1, 1),
        (((3, 2, 5), 2), ((3, 5), 1), ((2,), (1,)), ((0,), (0,)), 2, 1),
        (((3, 2, 5), 2), ((2, 5), 1), ((2,), (1,)), ((1,), (0,)), 2, 1),
        (((2, 5), 1), ((3, 2, 5), 2), ((1,), (2,)), ((0,), (1,)), 2, 1),
        (((3, 4, 5), 1), ((3, 5, 2), 1), ((2,), (1,)), ((0,), (0,)), 1, 8),
    ]:
        x, y = make(*left), make(*right)
        found = sparse.bcoo_dot_general(x, y, dimension_numbers=(contract, batch))
        want = lax.dot_general(x.todense(), y.todense(), (contract, batch))
        assert (found.n_batch, found.nse) == (kept, nse)
        np.testing.assert_array_equal(found.todense(), want)


def test_differences_change_the_sign_in_the_dtype_of_the_result() -> None:
    x, y = np.array([[0, -5, 7]], np.int32), np.array([[3, 2, 0]], np.uint8)
    for a, b in ((x, y), (y, x), (x.astype(np.float32), y), (y, y.astype(np.int8))):
        found = BCOO.fromdense(a) - BCOO.fromdense(b)
        want = jnp.asarray(a) - jnp.asarray(b)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found.todense(), want)


def test_booleans_lists_and_what_is_no_index() -> None:
    m = BCOO.fromdense(CUBE, n_batch=1)
    for item in (True, (slice(None), True), np.True_, ([2, 0],), (0, [1, 3]),
                 ([True, False, True],)):  # fmt: skip
        np.testing.assert_array_equal(m[item].todense(), CUBE[item])
    for wrong in (1.5, "a", (0, "a")):
        with pytest.raises(TypeError, match="an index must be an integer"):
            m[wrong]
    for refused in (False, (True, True), (True, np.array([0]))):
        with pytest.raises(NotImplementedError, match="one True alone"):
            m[refused]


def test_maps_over_each_batch_axis() -> None:
    m = BCOO.fromdense(CUBE, n_batch=2)
    for axis in (0, 1):
        found = nj.vmap(lambda x: x.todense(), in_axes=axis, out_axes=axis)(m)
        np.testing.assert_array_equal(found, CUBE)
        sums = nj.vmap(lambda x: x.sum(), in_axes=axis)(m)
        np.testing.assert_allclose(sums, CUBE.sum((1 - axis, 2)), rtol=1e-5, atol=1e-6)


def test_products_with_numbers_are_weak_as_dense_ones_are() -> None:
    m = BCOO.fromdense(jnp.arange(4))
    for f, weak in ((lambda x: x * 1.5, True), (lambda x: x * 2j, True), (lambda x: 3 * x, False),
                    (lambda x: x * jnp.float32(2), False), (lambda x: x / 2, False)):
        want = f(jnp.arange(4))
        for g in (f, sparsify(f), nj.jit(sparsify(f))):
            assert g(m).data.dtype == want.dtype and g(m).data.weak_type == weak


def test_what_meets_in_sparse_products_comes_first() -> None:
    x, y = [BCOO.fromdense(jnp.array(v)) for v in ([0, 3, 2, 0, 5], [4, 6, 0, 0, 7])]
    for product in (sparse.bcoo_multiply_sparse(x, y), sparse.bcoo_multiply_sparse(y, x)):
        assert product.nse == 9 and product.data[:2].tolist() == [18, 35]
        assert product.indices[:3, 0].tolist() == [1, 4, 5] and not product.data[2:].any()
