"""scipy.special and scipy.linalg against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy_differential import check_derivative

import numjet
import numjet.scipy.linalg as linalg
import numjet.scipy.special as special
from numjet.base import config

X = np.linspace(-4.3, 6, 40).astype(np.float32)
Q = np.abs(X) + np.float32(0.1)
P = np.linspace(0.01, 0.99, 30).astype(np.float32)
A = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
S = A @ A.T + 4 * np.eye(4, dtype=np.float32)


def close(got, want, tol=1e-4):
    np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "name",
    """gammaln gamma digamma erf erfc ndtr log_ndtr expit i0 i0e i1
i1e gammasgn erfcx expi""".split(),
)
def test_of_one_argument(name):
    close(getattr(special, name)(X), getattr(scipy.special, name)(X))


@pytest.mark.parametrize("name", ["exp1", "entr", "loggamma"])
def test_of_one_positive_argument(name):
    close(getattr(special, name)(Q), getattr(scipy.special, name)(Q))


@pytest.mark.parametrize("name", ["ndtri", "logit", "erfinv"])
def test_of_a_probability(name):
    close(getattr(special, name)(P), getattr(scipy.special, name)(P))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_normal_distribution_to_its_ends(dtype):
    with numjet.enable_x64(dtype is np.float64):
        eps = float(np.finfo(dtype).eps)
        small = np.finfo(dtype).smallest_subnormal
        p = np.concatenate([np.geomspace(small, 0.5, 400), 1 - np.geomspace(eps, 0.5, 200)])
        p = p.astype(dtype)
        wide = p.astype(np.float64)
        for compile in (numjet.jit, lambda f: f):
            got = compile(special.ndtri)(p)
            np.testing.assert_allclose(got, scipy.special.ndtri(wide), rtol=8 * eps, atol=8 * eps)
            x = np.concatenate([-np.geomspace(1e-3, 1e4, 200), np.geomspace(1e-3, 12, 100)])
            x = x.astype(dtype)
            np.testing.assert_allclose(
                compile(special.log_ndtr)(x), scipy.special.log_ndtr(x.astype(np.float64)),
                rtol=800 * eps,
            )  # fmt: skip
            x = np.abs(x)
            np.testing.assert_allclose(
                compile(special.erfcx)(x), scipy.special.erfcx(x.astype(np.float64)), rtol=16 * eps
            )
        ends = np.array([0, 1, -1, 2, np.nan], dtype)
        np.testing.assert_array_equal(special.ndtri(ends), [-np.inf, np.inf] + 3 * [np.nan])
        np.testing.assert_array_equal(
            special.log_ndtr(np.array([-np.inf, np.inf, np.nan], dtype)), [-np.inf, 0, np.nan]
        )


@pytest.mark.parametrize(
    "name",
    """betaln beta gammainc gammaincc xlogy xlog1py rel_entr kl_div
boxcox boxcox1p poch""".split(),
)
def test_of_two_arguments(name):
    args = Q, Q[::-1].copy()
    close(getattr(special, name)(*args), getattr(scipy.special, name)(*args), 2e-4)


def test_other_functions():
    close(
        special.betainc(Q, Q[::-1].copy(), np.clip(Q / 10, 0, 1)),
        scipy.special.betainc(Q, Q[::-1], np.clip(Q / 10, 0, 1)),
    )
    close(special.polygamma(1, Q), scipy.special.polygamma(1, Q), 1e-3)
    close(special.zeta(Q + 1.5, Q), scipy.special.zeta(Q + 1.5, Q), 1e-3)
    close(special.expn(2, Q), scipy.special.expn(2, Q))
    close(
        special.comb(np.float32(6), np.arange(5.0, dtype=np.float32)),
        scipy.special.comb(6, np.arange(5)),
    )
    close(special.factorial(np.arange(5)), scipy.special.factorial(np.arange(5)))
    close(special.logsumexp(X), scipy.special.logsumexp(X))
    close(special.multigammaln(5.0, 3), scipy.special.multigammaln(5.0, 3))
    close(special.bernoulli(30), scipy.special.bernoulli(30), 1e-6)
    close(special.ndtri(np.float32(1e-12)), scipy.special.ndtri(1e-12))


def test_multigammaln_where_ranks_must_be_equal() -> None:
    a = np.array([[3.0, 4.0]], np.float32)
    with config.numpy_rank_promotion("raise"):
        close(special.multigammaln(a, 3), scipy.special.multigammaln(a, 3))


@pytest.mark.parametrize(
    "name",
    "gammaln ndtr log_ndtr expit erf erfcx i0e i1e".split(),
)
def test_derivatives(name):
    check_derivative(getattr(special, name), np.array([0.3, 1.2, 2.7]), tol=1e-4)


def test_factorizations():
    b = A[:, 0]
    close(linalg.cho_solve(linalg.cho_factor(S), b), np.linalg.solve(S, b), 1e-3)
    close(linalg.cho_solve(linalg.cho_factor(S, lower=True), b), np.linalg.solve(S, b), 1e-3)
    for n in (2, 30):  # 900 numbers: a compiled call, which must not make an array of the bool
        factor, lower = linalg.cho_factor(numjet.numpy.eye(n))
        assert lower is False and linalg.cho_factor(numjet.numpy.eye(n), lower=True)[1] is True
        close(linalg.solve_triangular(factor, np.ones(n), lower=lower), np.ones(n), 1e-6)
    for trans, m in ((0, A), (1, A.T)):
        close(linalg.lu_solve(linalg.lu_factor(A), b, trans), np.linalg.solve(m, b), 1e-3)
        nothing = linalg.lu_solve(linalg.lu_factor(np.zeros((0, 0))), np.zeros((0, 2)), trans)
        assert nothing.shape == (0, 2)
    p, low, up = (np.asarray(x) for x in linalg.lu(A))
    close(p @ low @ up, A, 1e-4)
    close(
        linalg.solve_triangular(S, b, lower=True),
        scipy.linalg.solve_triangular(S, b, lower=True),
        1e-3,
    )
    close(
        linalg.solve_triangular(S, b, trans=1), scipy.linalg.solve_triangular(S, b, trans=1), 1e-3
    )
    close(linalg.solve(S, b, assume_a="pos"), np.linalg.solve(S, b), 1e-3)
    close(linalg.cholesky(S), scipy.linalg.cholesky(S), 1e-3)
    h, q = (np.asarray(x) for x in linalg.hessenberg(A, calc_q=True))
    close(q @ h @ q.T, A, 1e-3)
    t, z = (np.asarray(x) for x in linalg.schur(A))
    close(z @ t @ z.T, A, 1e-3)
    w, v = (np.asarray(x) for x in linalg.eigh(S))
    close((v * w) @ v.T, S, 1e-3)
    u, p = (np.asarray(x) for x in linalg.polar(A))
    close(u @ p, A, 1e-3)


def test_functions_of_matrices():
    for scale in (0, 0.1, 1, 5):
        close(linalg.expm(scale * A), scipy.linalg.expm(scale * A.astype(np.float64)), 5e-3)
    close(linalg.expm_frechet(A, S)[1], scipy.linalg.expm_frechet(A, S)[1], 1e-2)
    close(linalg.sqrtm(S), scipy.linalg.sqrtm(S), 1e-3)
    close(linalg.solve_sylvester(A, S, A), scipy.linalg.solve_sylvester(A, S, A), 1e-3)
    check_derivative(linalg.expm, A, tol=1e-4)
    close(numjet.vmap(linalg.expm)(np.stack([A, S])), [scipy.linalg.expm(m) for m in (A, S)], 1e-2)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("block_diag", (A, S)),
        ("toeplitz", (A[0], X[:3])),
        ("toeplitz", (A[0],)),
        ("hankel", (A[0], A[1])),
        ("circulant", (A[0],)),
        ("companion", (A[0],)),
        ("helmert", (4,)),
        ("pascal", (4,)),
        ("pascal", (4, "lower")),
        ("dft", (4,)),
        ("dft", (4, "sqrtn")),
        ("hadamard", (4,)),
        ("hilbert", (3,)),
        ("leslie", (A[0], A[1, :3])),
        ("fiedler", (A[0],)),
        ("convolution_matrix", (A[0], 3, "same")),
        ("convolution_matrix", (A[0], 3)),
    ],
)
def test_special_matrices(name, args):
    close(getattr(linalg, name)(*args), getattr(scipy.linalg, name)(*args))


def test_other_matrices_and_factors():
    close(linalg.invhilbert(4), scipy.linalg.invhilbert(4))
    close(linalg.invpascal(4), scipy.linalg.invpascal(4))
    for k in range(2, 8):
        a = np.arange(1.0, k + 1)
        close(linalg.fiedler_companion(a), scipy.linalg.fiedler_companion(a))
    close(
        linalg.eigh_tridiagonal(A[0], A[1, :3])[0],
        scipy.linalg.eigh_tridiagonal(A[0], A[1, :3])[0],
        1e-3,
    )
    q, r = scipy.linalg.qr(A)
    close(np.abs(linalg.qr_multiply(A, S)[0]), np.abs(S @ q), 1e-3)
    t, z = linalg.schur(A)
    s, w = (np.asarray(x) for x in linalg.rsf2csf(t, z))
    close(w @ s @ w.conj().T, A, 1e-3)


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_complex_schur_forms_are_scipys(n):
    with numjet.enable_x64(True):
        for seed in range(4):
            a = np.random.default_rng(seed).normal(size=(n, n))
            t, z = scipy.linalg.schur(a)
            for f in (linalg.rsf2csf, numjet.jit(linalg.rsf2csf)):
                for found, want in zip(f(t, z), scipy.linalg.rsf2csf(t, z), strict=True):
                    np.testing.assert_allclose(found, want, atol=1e-12)
    already = np.triu(np.random.default_rng(5).normal(size=(n, n))).astype(np.complex64)
    for found, want in zip(linalg.rsf2csf(already, np.eye(n)), (already, np.eye(n)), strict=True):
        np.testing.assert_array_equal(found, want)


def test_spence():
    x = np.concatenate([[0, 1e-6, 0.5, 1, 2, 1e4, -1, np.nan], Q]).astype(np.float32)
    close(special.spence(x), scipy.special.spence(x), 1e-6)
    slope = numjet.vmap(numjet.grad(special.spence))(Q)
    close(slope, np.log(Q) / (1 - Q), 1e-5)
    slopes = [float(numjet.grad(special.spence)(x)) for x in (0.0, 0.25, 0.5, 1.0, 2.0)]
    close(slopes, [-np.inf, np.log(0.25) / 0.75, np.log(0.5) / 0.5, -1, -np.log(2)], 1e-6)


def test_zero_times_a_logarithm_is_zero() -> None:
    y = np.array([np.inf, 0.0, -2.0, 3.0, np.nan], np.float32)
    want = np.array([0.0, 0.0, 0.0, 0.0, np.nan], np.float32)
    for f in (special.xlogy, special.xlog1py):
        for g in (f, numjet.jit(f)):
            np.testing.assert_array_equal(g(np.float32(0), y), want)
    assert np.isnan(special.log_ndtr(np.nan)) and np.isnan(special.log_ndtr(np.float32(np.nan)))


def test_exponential_integral_in_double_precision() -> None:
    with config.enable_x64(True):
        x = np.array([0.01, 3.0, 19.0, 20.0, 30.0, 39.9, 40.0, 100.0])
        np.testing.assert_allclose(special.expi(x), scipy.special.expi(x), rtol=1e-13)
        assert special.expi(np.inf) == np.inf  # where SciPy 1.13 gives NaN


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [5, 24])
def test_expm_of_batches_squares_each_as_often_as_it_asks(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((5, n, n)) / n
    x = (x + 1j * rng.standard_normal(x.shape) / n if dtype == "complex64" else x).astype(dtype)
    x *= np.array([0.01, 1, 10, 30, 1], dtype)[:, None, None]
    x[4, 0, 0] = np.nan
    with numjet.enable_x64(dtype == "float64"):
        tol = 1e-12 if dtype == "float64" else 2e-5
        for f in (linalg.expm, numjet.jit(linalg.expm), numjet.vmap(linalg.expm)):
            got = np.asarray(f(x))
            assert got.dtype == dtype and np.isnan(got[4]).all()
            for k in range(4):
                want = scipy.linalg.expm(x[k].astype("c16" if dtype == "complex64" else "f8"))
                np.testing.assert_allclose(got[k], want, atol=tol * np.abs(want).max())
        few = np.asarray(linalg.expm(x, max_squarings=2))
        assert np.isnan(few).all((1, 2)).tolist() == np.isnan(few).any((1, 2)).tolist()
        assert np.isnan(few[3]).all() and not np.isnan(few[:2]).any()
        slope = numjet.grad(lambda x: linalg.expm(x).real.sum())(x[2])
        d = 1e-3
        near = [linalg.expm(x[2] + s * d * np.eye(n, dtype=dtype)).real.sum() for s in (1, -1)]
        want = (near[0] - near[1]) / (2 * d)
        np.testing.assert_allclose(np.trace(slope).real, want, rtol=2e-2)


def test_expm_makes_no_infinity_and_no_nan_on_the_way():
    with config.debug_infs(True), config.debug_nans(True):
        for x in (np.zeros((3, 3), np.float32), np.eye(2, dtype=np.float32) * 30):
            want = scipy.linalg.expm(x.astype(np.float64))
            np.testing.assert_allclose(linalg.expm(x), want, rtol=1e-4)
            np.testing.assert_allclose(numjet.vmap(linalg.expm)(x[None])[0], want, rtol=1e-4)


def test_lu_solve_refuses_sizes_that_do_not_fit() -> None:
    factors = linalg.lu_factor(np.eye(2, dtype=np.float32))
    for b in (np.ones(3), np.ones((3, 1)), np.float32(1)):
        with pytest.raises(ValueError, match="lu_solve: factors .* b must have 2 rows"):
            linalg.lu_solve(factors, b)


@pytest.mark.parametrize("compiled", [False, True])
def test_factorials_and_gammas_of_whole_numbers_are_whole(compiled):
    run = numjet.jit if compiled else lambda f: f
    n = np.arange(36)
    exact = np.array([float(math.factorial(int(k))) for k in n])
    with np.errstate(over="ignore"):
        single = exact.astype(np.float32)
    np.testing.assert_array_equal(run(special.factorial)(n.astype(np.float32)), single)
    np.testing.assert_array_equal(run(special.gamma)(n.astype(np.float32) + 1), single)
    assert float(run(special.factorial)(5)) == 120
    with numjet.enable_x64(True):
        np.testing.assert_array_equal(run(special.factorial)(n[:13] * 1.0), exact[:13])
        close(run(special.factorial)(n * 1.0), exact, 1e-13)
    x = np.linspace(-4.9, 30, 200, dtype=np.float32)
    want = scipy.special.gamma(x.astype(np.float64))
    close(run(special.gamma)(x), want, 2e-7)
    want = want[100:] * scipy.special.digamma(x[100:].astype(np.float64))
    close(run(numjet.vmap(numjet.grad(special.gamma)))(x[100:]), want, 1e-5)
    np.testing.assert_array_equal(run(special.factorial)(np.float32([-1, -0.5, -3])), [0, 0, 0])
    np.testing.assert_array_equal(
        run(numjet.vmap(numjet.grad(special.factorial)))(np.float32([-1, -0.5])), [0, 0]
    )


def test_helmert_of_no_elements_is_refused():
    for n in (0, -2):
        with pytest.raises(ValueError, match="n must be positive"):
            linalg.helmert(n)


@pytest.mark.parametrize("compile", [numjet.jit, lambda f: f])
def test_derivatives_of_erfinv_keep_their_digits_towards_one(compile) -> None:
    near = 1 - np.geomspace(1e-7, 0.5, 60)
    x = np.concatenate([near, -near, np.linspace(-0.5, 0.5, 21)]).astype(np.float32)
    y = scipy.special.erfinv(x.astype(np.float64))
    slope = np.sqrt(np.pi) / 2 * np.exp(y**2)
    eps = float(np.finfo(np.float32).eps)
    first = numjet.grad(special.erfinv)
    np.testing.assert_allclose(compile(numjet.vmap(first))(x), slope, rtol=4 * eps)
    second = compile(numjet.vmap(numjet.grad(first)))(x)
    np.testing.assert_allclose(second, 2 * y * slope**2, rtol=8 * eps, atol=1e-20)
    ends = compile(numjet.vmap(first))(np.float32([1, -1, 2, np.nan]))
    np.testing.assert_array_equal(ends, [np.inf, np.inf, np.nan, np.nan])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("complex_", [False, True])
def test_polar_has_a_derivative_where_singular_values_are_equal(side, shape, complex_):
    """The factors are smooth there, though singular vectors are not."""
    rng = np.random.default_rng(0)
    draw = lambda: rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex_ else 0)
    with numjet.enable_x64(True):
        f = lambda x: tuple(linalg.polar(x, side, method="svd"))
        for x in (2.0 * np.eye(*shape, dtype=complex if complex_ else float), draw()):
            t, step = draw(), 1e-6
            found = numjet.jvp(f, (x,), (t,))[1]
            for dy, up, down in zip(found, f(x + step * t), f(x - step * t), strict=True):
                close(dy, (np.asarray(up) - np.asarray(down)) / (2 * step), 1e-6)
            cotangents = tuple(np.ones(y.shape, y.dtype) for y in f(x))
            back = numjet.vjp(f, x)[1](cotangents)[0]
            product = sum(np.sum(np.asarray(dy)) for dy in found)
            close(np.real(np.sum(np.asarray(back) * t)), np.real(product), 1e-8)
