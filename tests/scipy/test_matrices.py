"""Special matrices of batches, eigenvalues of what is not hermitian, derivatives of square roots,
minimization of functions of large and small scale."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy import linalg, optimize

RNG = np.random.default_rng(2)
BATCH = RNG.standard_normal((2, 3, 5))


@pytest.mark.parametrize(
    "name", ["toeplitz", "hankel", "circulant", "companion", "fiedler", "fiedler_companion"]
)
def test_batches(name: str) -> None:
    got = getattr(linalg, name)(BATCH)
    assert got.shape[:2] == (2, 3)
    want = getattr(scipy.linalg, name)
    for i in np.ndindex(2, 3):
        np.testing.assert_allclose(got[i], want(BATCH[i]), rtol=1e-6, atol=1e-6)


def test_distances_of_numbers_without_a_sign() -> None:
    x = jnp.array([2, 3, 5], "uint32")
    assert linalg.fiedler(x[::-1]).tolist()[0] == [0, 2, 3]


def test_batches_of_two_arguments() -> None:
    second = RNG.standard_normal((3, 4))
    for name in ("toeplitz", "hankel"):
        got = getattr(linalg, name)(BATCH, second)
        for i in np.ndindex(2, 3):
            want = getattr(scipy.linalg, name)(BATCH[i], second[i[1]])
            np.testing.assert_allclose(got[i], want, rtol=1e-6)
    got = linalg.leslie(BATCH, second)
    np.testing.assert_allclose(got[1, 2], scipy.linalg.leslie(BATCH[1, 2], second[2]), rtol=1e-6)
    for mode in ("full", "same", "valid"):
        got = linalg.convolution_matrix(BATCH, 3, mode)
        want = scipy.linalg.convolution_matrix(BATCH[1, 1], 3, mode)
        np.testing.assert_allclose(got[1, 1], want, rtol=1e-6)
    assert linalg.toeplitz(jnp.array([1 + 1j, 2j]))[0, 1] == -2j
    with pytest.raises(ValueError, match="positive integer"):
        linalg.convolution_matrix(BATCH, 0)


def test_eigh_takes_the_hermitian_part() -> None:
    a = jnp.array([[1.0, 5.0], [2.0, 1.0]])
    for lower in (True, False):
        np.testing.assert_allclose(linalg.eigh(a, lower=lower)[0], [-2.5, 4.5], rtol=1e-6)


def test_derivative_of_square_roots() -> None:
    with nj.enable_x64(True):
        a = RNG.standard_normal((2, 4, 4)) + 6 * np.eye(4)
        direction = RNG.standard_normal((2, 4, 4))
        root, slope = nj.jvp(linalg.sqrtm, (a,), (direction,))
        np.testing.assert_allclose(root @ root, a, atol=1e-12)
        np.testing.assert_allclose(slope @ root + root @ slope, direction, atol=1e-12)
        loss = nj.jit(nj.grad(lambda a: (linalg.sqrtm(a).real ** 2).sum()))
        h = 1e-6
        forward = (linalg.sqrtm(a + h * direction).real ** 2).sum()
        backward = (linalg.sqrtm(a - h * direction).real ** 2).sum()
        np.testing.assert_allclose(
            (loss(a) * direction).sum(), (forward - backward) / (2 * h), rtol=1e-7
        )


@pytest.mark.parametrize("scale", [1e8, 1e4, 1.0, 1e-4])
def test_minimization_does_not_depend_on_the_scale(scale: float) -> None:
    root = RNG.standard_normal((5, 5)).astype(np.float32)
    matrix = root @ root.T + np.eye(5, dtype=np.float32)
    right = np.arange(5.0, dtype=np.float32)
    found = optimize.minimize(
        lambda x: scale * (0.5 * x @ matrix @ x - right @ x),
        jnp.full(5, 3.3),
        method="BFGS",
        tol=1e-5 * scale,
    )
    assert found.nit < 60
    np.testing.assert_allclose(found.x, np.linalg.solve(matrix, right), atol=2e-3)
    steep = optimize.minimize(lambda x: jnp.sum((1e4 * x - 1) ** 2), jnp.ones(3), method="BFGS")
    np.testing.assert_allclose(steep.x, 1e-4, rtol=1e-3)


def test_mistakes() -> None:
    a = jnp.eye(3)
    for call in (
        lambda: linalg.polar(a, method="foo"),
        lambda: linalg.solve_sylvester(a, a, a, method="foo"),
        lambda: linalg.eigh_tridiagonal(a[0], a[0, :2], select="foo"),
        lambda: linalg.companion(a[:, :1]),
    ):
        with pytest.raises(ValueError):
            call()


def test_equations_and_forms_of_stacks_of_matrices() -> None:
    draw = np.random.default_rng(3)
    a, b, c = (jnp.array(draw.normal(size=s), jnp.float32) for s in ((4, 3, 3), (2, 2), (4, 3, 2)))
    x = linalg.solve_sylvester(a, b, c)
    np.testing.assert_allclose(a @ x + x @ b, c, atol=1e-3)
    t, z = map(jnp.stack, zip(*[linalg.schur(m) for m in a]))
    complex_t, complex_z = linalg.rsf2csf(t, z)
    assert not jnp.tril(complex_t, -1).any()
    back = complex_z @ complex_t @ complex_z.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(back, a, atol=1e-4)
    d, e = a[:, 0], b[0]
    w, v = linalg.eigh_tridiagonal(d, e, select="i", select_range=(1, 2))
    dense = jnp.stack([jnp.diag(row) + jnp.diag(e, 1) + jnp.diag(e, -1) for row in d])
    np.testing.assert_allclose(dense @ v, v * w[:, None], atol=1e-5)
    for wrong in (None, (2, 1)):
        with pytest.raises(ValueError, match="select_range"):
            linalg.eigh_tridiagonal(d, e, select="i", select_range=wrong)
    with pytest.raises(TypeError, match="one element less"):
        linalg.eigh_tridiagonal(d, d)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_positive_definite_systems(dtype: str, lower: bool) -> None:
    """They are those of the system, -a⁻¹ da x, not of the triangle that was read."""

    def positive(a, b):
        return jnp.abs(linalg.solve(a, b, lower, assume_a="pos")).sum()

    def general(a, b):
        return jnp.abs(linalg.solve(a, b if b.ndim > 1 else b[:, None])).sum()

    half = RNG.standard_normal((2, 3, 3)) + 1j * RNG.standard_normal((2, 3, 3))
    with nj.enable_x64(True):
        h = jnp.asarray(half if dtype == "complex128" else half.real)
        a = h @ h.conj().swapaxes(-1, -2) + 3 * jnp.eye(3)
        for b in (jnp.arange(1, 4), jnp.arange(12).reshape(2, 3, 2), jnp.eye(3)):
            b = b.astype(dtype)
            got = nj.jit(nj.grad(positive, (0, 1)))(a, b)
            for one, other in zip(got, nj.grad(general, (0, 1))(a, b), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        with pytest.raises(ValueError):
            nj.jit(positive)(a[0], b[:2])
