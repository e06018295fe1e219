"""Reflectors, tridiagonal forms and systems, updates, polar decomposition: beside JAX's, and by
what defines them."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet.lax import linalg

RNG = np.random.default_rng(5)


def random(*shape: int, complexes: bool = False) -> np.ndarray:
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape)).astype("c8") if complexes else x.astype("f4")


A, B, C = random(5, 3), random(5, 2), random(4, 4, complexes=True)
SQUARE = random(2, 4, 4)
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
HERMITIAN = C + C.conj().T
DIAGONALS = [random(2, 6), random(2, 6) + 5, random(2, 6)]
SIDES = random(2, 6, 3)
UPPER = np.linalg.cholesky(SQUARE[0] @ SQUARE[0].T + np.eye(4)).T.astype("f4").copy()
W = random(4)


def close(got, want, tolerance: float = 2e-5) -> None:
    for a, b in zip(nj.tree.leaves(got), nj.tree.leaves(want), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


CASES = {
    "raw": (lambda m: m.numpy.linalg.qr(A, mode="raw")),
    "raw_complex": (lambda m: m.numpy.linalg.qr(C, mode="raw")),
    "tridiagonal": (lambda m: m.lax.linalg.tridiagonal(SYMMETRIC)),
    "tridiagonal_upper": (lambda m: m.lax.linalg.tridiagonal(SYMMETRIC, lower=False)),
    "tridiagonal_complex": (lambda m: m.lax.linalg.tridiagonal(HERMITIAN)),
    "system": (lambda m: m.lax.linalg.tridiagonal_solve(*DIAGONALS, SIDES)),
    "singular": (lambda m: m.lax.linalg.tridiagonal_solve(*[0 * d for d in DIAGONALS], SIDES)),
    "update": (lambda m: m.lax.linalg.cholesky_update(UPPER, W)),
    "product": (lambda m: m.lax.linalg.symmetric_product(SQUARE, SYMMETRIC, alpha=2., beta=.5)),
    "product_lower": (lambda m: m.lax.linalg.symmetric_product(
        SQUARE, SQUARE, beta=.5, symmetrize_output=True)),
    "system_gradient": (lambda m: m.grad(
        lambda *xs: (m.lax.linalg.tridiagonal_solve(*xs) ** 2).sum(), (0, 1, 2, 3))(
            *DIAGONALS, SIDES)),
    "polar": (lambda m: m.lax.linalg.qdwh(SQUARE[0])[:2]),
    **{f"ormqr_{left}_{turned}": (lambda m, left=left, turned=turned: _reflected(m, left, turned))
       for left in (True, False) for turned in (True, False)},
}


def _reflected(m, left: bool, turned: bool):
    factors, taus = m.numpy.linalg.qr(A, mode="raw")
    right = B if left else B.T
    return m.lax.linalg.ormqr(factors.T, taus, right, left=left, transpose=turned)


def test_values_are_those_of_jax() -> None:
    import inspect

    source = inspect.getsource(inspect.getmodule(test_values_are_those_of_jax))
    cases = source[source.index("CASES = {"):source.index("def test_values")]
    script = ("import jax as m\n" + cases + "for name, case in CASES.items():\n"
              "    for i, leaf in enumerate(jax.tree.leaves(case(jax))):\n"
              "        out[f'{name}/{i}'] = leaf\n")
    want = run_in_oracle(
        script.replace("*DIAGONALS", "D0, D1, D2").replace("in DIAGONALS", "in (D0, D1, D2)"),
        A=A, B=B, C=C, SQUARE=SQUARE, SYMMETRIC=SYMMETRIC, HERMITIAN=HERMITIAN, SIDES=SIDES,
        UPPER=UPPER, W=W, **{f"D{i}": d for i, d in enumerate(DIAGONALS)})
    for name, case in CASES.items():
        for run in (case, lambda m, case=case: nj.jit(lambda: case(nj))()):
            for i, leaf in enumerate(nj.tree.leaves(run(nj))):
                np.testing.assert_allclose(leaf, want[f"{name}/{i}"], rtol=1e-4, atol=1e-4,
                                           err_msg=name)


def test_the_reflectors_are_those_of_q() -> None:
    for x in (A, C):
        factors, taus = jnp.linalg.qr(x, mode="raw")
        q, _ = np.linalg.qr(x, mode="complete")
        unit = np.eye(len(x), dtype=x.dtype)
        close(linalg.ormqr(factors.T, taus, unit), q)
        close(linalg.ormqr(factors.T, taus, unit, transpose=True), q.conj().T)
        got = nj.vjp(lambda c: linalg.ormqr(factors.T, taus, c), unit)[1](unit)[0]
        close(got, q.T)


def test_a_tridiagonal_system_is_the_full_one() -> None:
    dl, d, du = DIAGONALS
    full = np.stack([np.diag(m) + np.diag(lo[1:], -1) + np.diag(up[:-1], 1)
                     for lo, m, up in zip(dl, d, du)])
    close(linalg.tridiagonal_solve(dl, d, du, SIDES), np.linalg.solve(full, SIDES))
    mapped = nj.vmap(lambda m: linalg.tridiagonal_solve(dl[0], m, du[0], SIDES[0]))(d)
    close(mapped[0], np.linalg.solve(full[0], SIDES[0]))
    one = nj.jit(linalg.tridiagonal_solve)(dl[:, :1], d[:, :1], du[:, :1], SIDES[:, :1])
    close(one, SIDES[:, :1] / d[:, :1, None])


def test_an_updated_factor() -> None:
    got = nj.jit(linalg.cholesky_update)(UPPER, W)
    close(got.T @ got, UPPER.T @ UPPER + np.outer(W, W), 1e-4)
    several = nj.vmap(linalg.cholesky_update)(np.stack([UPPER, 2 * UPPER]), np.stack([W, W]))
    close(several[0], got)
    t = nj.jvp(lambda r: linalg.cholesky_update(r, W), (UPPER,), (UPPER,))[1]
    close(t.T @ got + got.T @ t, 2 * UPPER.T @ UPPER, 1e-4)


@pytest.mark.parametrize("x", [A, SQUARE[0], C, random(6, 6) * np.float32(1e4)])
def test_polar_factors(x: np.ndarray) -> None:
    u, h, count, converged = nj.jit(linalg.qdwh)(x)
    want_u, want_h = scipy.linalg.polar(x.astype(np.complex128))
    assert converged and count <= 10
    np.testing.assert_allclose(u, want_u, atol=1e-4)
    np.testing.assert_allclose(h, want_h, atol=1e-4 * np.abs(x).max())
    assert not linalg.qdwh(x, max_iterations=1)[3]


@pytest.mark.parametrize("call, error, words", [
    (lambda: linalg.qdwh(A.T), ValueError, "M >= N"),
    (lambda: linalg.qdwh(A, dynamic_shape=(2, 2)), NotImplementedError, "dynamic_shape"),
    (lambda: linalg.tridiagonal(A), ValueError, "square"),
    (lambda: linalg.tridiagonal_solve(*DIAGONALS, SIDES[..., 0]), TypeError, "axes"),
    (lambda: linalg.tridiagonal_solve(DIAGONALS[0][:, 1:], *DIAGONALS[1:], SIDES), TypeError,
     "same shape"),
    (lambda: linalg.tridiagonal_solve(*DIAGONALS, SIDES, perturb_singular=True),
     NotImplementedError, "perturb_singular"),
    (lambda: linalg.cholesky_update(UPPER, W[:3]), ValueError, "same size"),
    (lambda: linalg.cholesky_update(SQUARE, W), TypeError, "vmap"),
    (lambda: linalg.symmetric_product(A, SQUARE[0]), ValueError, "n, n"),
    (lambda: linalg.symmetric_product(C, C), TypeError, "real floats"),
    (lambda: linalg.ormqr(A, W[:3], B[:3]), ValueError, "rows"),
    (lambda: linalg.ormqr(A, W, B), ValueError, "taus"),
    (lambda: nj.grad(lambda a: linalg.ormqr(a, W[:3], B).sum())(A), NotImplementedError,
     "reflectors"),
    (lambda: nj.grad(lambda a: linalg.tridiagonal(a)[1].sum())(SYMMETRIC), NotImplementedError,
     "derivative"),
])
def test_messages(call, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_derivatives_of_eigenvectors(kind):
    """As differences have them: vectors keep their length, and are real where they are largest."""
    rng = np.random.default_rng(4)

    def draw():
        x = rng.standard_normal((2, 4, 4))
        return x if kind == "real" else x + 1j * rng.standard_normal((2, 4, 4))

    def eig(x):
        return linalg.eig(x, enable_eigvec_derivs=True)

    a, da, h = draw(), draw(), 1e-6
    with nj.enable_x64(True):
        outs, tangents = nj.jvp(eig, (jnp.asarray(a),), (jnp.asarray(da),))
        for out, tangent, more, less in zip(
            outs, tangents, eig(a + h * da), eig(a - h * da), strict=True
        ):
            assert abs(np.asarray(out) - np.asarray(more)).max() < 1e-3
            difference = (np.asarray(more) - np.asarray(less)) / (2 * h)
            np.testing.assert_allclose(np.asarray(tangent), difference, atol=1e-6)
        with pytest.raises(NotImplementedError, match="enable_eigvec_derivs=True"):
            nj.jvp(jnp.linalg.eig, (jnp.asarray(a),), (jnp.asarray(da),))
        pulled = nj.grad(lambda x: jnp.real(eig(x)[2] ** 2).sum(), holomorphic=False)
        x, y = jnp.asarray(a[0]), jnp.asarray(da[0])
        slope = nj.jvp(lambda x: jnp.real(eig(x)[2] ** 2).sum(), (x,), (y,))[1]
        np.testing.assert_allclose(np.real((np.asarray(pulled(x)) * np.asarray(y)).sum()), slope)
