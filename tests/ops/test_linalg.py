"""Decompositions and linear systems: values, derivatives, batching, against JAX."""

from __future__ import annotations

import numpy as np
import pytest
from same_script import compare

import numjet
import numjet.numpy as jnp
from numjet.ops import linalg

FACTORS = """
rng = np.random.default_rng(0)
def draw(*shape, c=False):
    x = rng.standard_normal(shape).astype("float32")
    return (x + 1j * rng.standard_normal(shape)).astype("complex64") if c else x
def both(name, f, x, dx):
    y, dy = jvp(f, (x,), (dx,))
    out["~" + name], out["~d" + name] = y, dy
    out["~jit" + name] = jit(f)(x)
n = 4
for c in (False, True):
    B, P0 = draw(3, n, n, c=c), draw(3, n, n, c=c)
    P = (B @ B.conj().swapaxes(-1, -2) + 3 * np.eye(n)).astype(B.dtype)
    dP = (P0 + P0.conj().swapaxes(-1, -2)).astype(B.dtype)
    X, dX = draw(3, n, n, c=c) + 4 * np.eye(n, dtype="float32"), draw(3, n, n, c=c)
    both(f"cholesky{c}", linalg.cholesky, P, dP)
    both(f"eigh{c}", lambda x: linalg.eigh(x)[1], P, dP)
    first = lambda x: linalg.eigh(x)[0][..., :1]
    both(f"projector{c}", lambda x: first(x) @ first(x).conj().swapaxes(-1, -2), P, dP)
    for name, cut in (("square", np.s_[:]), ("tall", np.s_[:, :, :2]), ("wide", np.s_[:, :3])):
        both(f"lu{name}{c}", lambda x: linalg.lu(x)[0], X[cut], dX[cut])
        out[f"pivots{name}{c}"], out[f"order{name}{c}"] = linalg.lu(X[cut])[1:]
        both(f"singular{name}{c}", lambda x: linalg.svd(x, compute_uv=False), X[cut], dX[cut])
        factors = lambda x: linalg.svd(x, full_matrices=False)
        both(f"polar{name}{c}", lambda x: factors(x)[0] @ factors(x)[2], X[cut], dX[cut])
        if name != "wide":
            both(f"q{name}{c}", lambda x: linalg.qr(x, full_matrices=False)[0], X[cut], dX[cut])
            both(f"r{name}{c}", lambda x: linalg.qr(x, full_matrices=False)[1], X[cut], dX[cut])
Y, dY = draw(3, 4, 4), draw(3, 4, 4)
none = dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False)
eigenvalues = lambda x: jnp.sort(linalg.eig(x, **none)[0])
both("eig", eigenvalues, Y, dY)
"""
TRIANGULAR = """
rng = np.random.default_rng(0)
def draw(*shape, c=False):
    x = rng.standard_normal(shape).astype("float32")
    return (x + 1j * rng.standard_normal(shape)).astype("complex64") if c else x
n = 4
for c in (False, True):
    A, dA = draw(3, n, n, c=c) + 4 * np.eye(n, dtype="float32"), draw(3, n, n, c=c)
    for k in range(32):
        how = dict(left_side=bool(k & 1), lower=bool(k & 2), transpose_a=bool(k & 4),
                   conjugate_a=bool(k & 8), unit_diagonal=bool(k & 16))
        b, w = draw(3, n, n, c=c), draw(3, n, n, c=c)
        f = lambda a, b: linalg.triangular_solve(a, b, **how)
        out[f"~{c}{k}"], out[f"~d{c}{k}"] = jvp(f, (A, b), (dA, w))
        da, db = grad(lambda a, b: (f(a, b) * w).sum(), argnums=(0, 1), holomorphic=c)(A, b)
        out[f"~da{c}{k}"], out[f"~db{c}{k}"] = da, db
        out[f"~v{c}{k}"] = vmap(f, (None, 0))(A[0], b)
"""


@pytest.mark.oracle
@pytest.mark.parametrize("script", [FACTORS, TRIANGULAR], ids=["factors", "triangular"])
def test_as_the_oracle(script: str) -> None:
    compare(script, rtol=5e-3, atol=5e-3)


def test_solve_differentiates_and_batches() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
    b = rng.standard_normal((3, 4, 2)).astype(np.float32)
    np.testing.assert_allclose(
        np.asarray(linalg.solve(a, b)), np.linalg.solve(a, b), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        np.asarray(numjet.vmap(linalg.solve, (None, 0))(a[0], b)),
        np.linalg.solve(a[:1], b),
        rtol=1e-4,
        atol=1e-5,
    )
    da, db = numjet.grad(lambda a, b: linalg.solve(a, b).sum(), argnums=(0, 1))(a, b)
    want_b = np.linalg.solve(a.swapaxes(-1, -2), np.ones_like(b))
    np.testing.assert_allclose(np.asarray(db), want_b, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        np.asarray(da), -want_b @ np.linalg.solve(a, b).swapaxes(-1, -2), rtol=1e-3, atol=1e-4
    )


WHOLE_Q = [  # the gradient at a matrix 3 by 2, computed by JAX 0.10.2
    [-32.916742379145674, 82.71590491635592],
    [27.02558473077538, -35.40956071519527],
    [-21.16278879460816, 59.45097225961748],
]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_whole_q_of_tall_matrices_differentiates(dtype: str) -> None:
    """q stays unitary, q r the matrix; the columns beyond the matrix's turn with the others."""
    rng = np.random.default_rng(2)
    a, da = (rng.standard_normal((2, 4, 2, 2)).astype(np.float32) @ [1, 1j] for _ in range(2))
    a, da = (x if dtype == "complex64" else x.real for x in (a, da))
    a, da = a.astype(dtype), da.astype(dtype)
    (q, r), (dq, dr) = numjet.jvp(linalg.qr, (a,), (da,))
    assert q.shape == dq.shape == (2, 4, 4)
    turn = np.asarray(q.mT.conj() @ dq)
    np.testing.assert_allclose(turn, -turn.swapaxes(-1, -2).conj(), atol=1e-5)
    np.testing.assert_allclose(dq @ r + q @ dr, da, atol=1e-5)
    np.testing.assert_allclose(np.tril(dr, -1), 0, atol=1e-5)
    np.testing.assert_allclose(turn[:, 2:, 2:], 0, atol=1e-5)  # the other columns do not turn
    # As JAX's, to the digits of float64.
    with numjet.enable_x64(True):
        a = jnp.array([[-2.5, -1.0], [-0.5, -0.75], [3.25, 1.0]])
        q, r = (np.arange(9.0).reshape(3, 3) ** 2, np.arange(6.0).reshape(3, 2))
        (got,) = numjet.vjp(linalg.qr, a)[1]((jnp.array(q), jnp.array(r)))
        np.testing.assert_allclose(got, WHOLE_Q, rtol=1e-12)


def test_what_cannot_be_factored_is_nan() -> None:
    bad = jnp.array([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])
    out = np.asarray(linalg.cholesky(bad))
    np.testing.assert_array_equal(out[0], [[np.nan, 0], [np.nan, np.nan]])
    assert np.isfinite(out[1]).all()
    assert np.isnan(np.asarray(linalg.svd(jnp.full((2, 2), np.nan), compute_uv=False))).all()


def test_empty_batches() -> None:
    assert linalg.lu(jnp.zeros((0, 3, 3)))[0].shape == (0, 3, 3)
    assert linalg.triangular_solve(
        jnp.zeros((0, 3, 3)), jnp.zeros((0, 3, 2)), left_side=True
    ).shape == (0, 3, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.cholesky(jnp.ones((2, 3))), TypeError, "square"),
        (lambda: linalg.lu(jnp.ones((2, 2), np.int32)), TypeError, "float32, float64"),
        (
            lambda: linalg.eigh(jnp.ones((2, 2), np.int32), symmetrize_input=False),
            TypeError,
            "float32, float64",
        ),
        (
            lambda: linalg.triangular_solve(jnp.ones((2, 2)), jnp.ones((3, 2)), left_side=True),
            ValueError,
            "2 rows",
        ),
    ],
)
def test_mistakes_are_explained(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: linalg.schur(x)[0],
        lambda x: linalg.hessenberg(x)[0],
        lambda x: linalg.householder_product(x, x[0]),
    ],
)
def test_unknown_derivatives_are_no_zeros(f) -> None:
    x = jnp.ones((3, 3))
    for g in (
        lambda x: numjet.jvp(f, (x,), (x,)),
        numjet.grad(lambda x: f(x).sum()),
        numjet.jit(numjet.jacrev(f)),
    ):
        with pytest.raises(NotImplementedError, match="no derivative is known"):
            g(x)
    assert numjet.grad(lambda x: f(numjet.lax.stop_gradient(x)).sum())(x).shape == (3, 3)


def test_derivatives_of_no_matrices() -> None:
    x = jnp.ones((0, 4, 4))
    for f in (jnp.linalg.det, lambda x: linalg.lu(x)[0]):
        assert numjet.grad(lambda x: f(x).sum())(x).shape == x.shape


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_empty_matrices_have_empty_factors(shape: tuple) -> None:
    """Which SciPy takes in some versions and not in others."""
    x = np.zeros(shape, np.float32)
    batch = shape[:-1]
    assert [y.shape for y in linalg.eig(x)] == [batch, shape, shape]
    assert [y.shape for y in linalg.schur(x)] == [shape, shape]
    assert [y.shape for y in linalg.qr(x, pivoting=True)] == [shape, shape, batch]
    for m, n in ((0, 3), (3, 0)):
        q, r, order = linalg.qr(np.zeros((m, n), np.float32), pivoting=True, full_matrices=True)
        np.testing.assert_array_equal(q, np.eye(m))
        assert r.shape == (m, n)
        np.testing.assert_array_equal(order, np.arange(n))


def test_householder_product_wants_as_many_rows_as_columns() -> None:
    with pytest.raises(TypeError, match="has more columns than rows"):
        linalg.householder_product(jnp.ones((2, 3)), jnp.zeros(2))
