"""Dtypes that functions of scipy refuse, as JAX's do; and complex ones that they take."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import numjet.numpy as jnp
from numjet import lax
from numjet.scipy import linalg, special
from numjet.scipy.stats import norm

X = jnp.array([0.25, 0.5])


@pytest.mark.parametrize("name", ["ndtr", "ndtri", "log_ndtr", "spence"])
def test_functions_of_float32_and_float64_alone(name: str) -> None:
    f = getattr(special, name)
    assert f(X).dtype == jnp.float32 and not f(0.25).weak_type
    for dtype in (jnp.float16, jnp.bfloat16, jnp.int32, jnp.bool_, jnp.complex64):
        with pytest.raises(TypeError, match="is not supported"):
            f(X.astype(dtype))


def test_quantiles_of_integers_and_distributions_of_16_bits() -> None:
    for f in (norm.ppf, norm.isf):
        with pytest.raises(TypeError, match="int32"):
            f(1)
    with pytest.raises(TypeError, match="float16"):
        norm.cdf(X.astype(jnp.float16))
    assert norm.cdf(1).dtype == jnp.float32


def test_complex_numbers() -> None:
    c = jnp.array([1j, 2, 0.5 - 0.5j, -1 + 2j])
    np.testing.assert_allclose(special.erfcx(c), scipy.special.erfcx(np.asarray(c)), rtol=1e-5)
    one = (special.entr, special.gammasgn)
    two = (special.rel_entr, special.kl_div, special.beta, special.poch)
    for f, arity in [*((f, 1) for f in one), *((f, 2) for f in two), (special.betainc, 3)]:
        with pytest.raises(ValueError, match="does not support complex"):
            f(*[c] * arity)
    with pytest.raises(ValueError, match="does not support complex"):
        special.polygamma(1, c)
    with pytest.raises(TypeError, match="complex64"):
        special.factorial(c)


def test_riemann_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="Riemann"):
        special.zeta(2.0)
    assert abs(special.zeta(2.0, 1) - np.pi**2 / 6) < 1e-6


def test_decompositions_that_take_no_integers() -> None:
    m = jnp.array([[4, 1], [1, 3]])
    for f in (
        linalg.schur,
        linalg.hessenberg,
        lambda m: linalg.funm(m, jnp.exp),
        lambda m: linalg.expm_frechet(m, m),
        lambda m: linalg.expm_frechet(m.astype(float), m),
        lambda m: linalg.polar(m, method="svd"),
        lambda m: linalg.eigh_tridiagonal(m[0], m[0, :1]),
        lambda m: linalg.eigh_tridiagonal(m[0].astype(float), m[0, :1]),
    ):
        with pytest.raises(TypeError, match="int32"):
            f(m)
    with pytest.raises(ValueError, match="not inexact"):
        linalg.polar(m)
    assert linalg.schur(m, output="complex")[0].dtype == jnp.complex64
    with pytest.raises(ValueError, match="square"):  # the shape is looked at first
        linalg.schur(m[:1])


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_matrices_without_elements_have_factors_in_16_bits(dtype: object) -> None:
    tall = jnp.zeros((2, 3, 0), dtype)
    q, r = jnp.linalg.qr(tall, mode="complete")
    assert q.shape == (2, 3, 3) and q.dtype == r.dtype == dtype
    u, s, vh = jnp.linalg.svd(tall)
    assert u.shape == (2, 3, 3) and s.shape == (2, 0) and vh.dtype == dtype
    assert linalg.svd(tall, compute_uv=False).dtype == dtype
    assert jnp.linalg.pinv(tall).shape == (2, 0, 3)
    assert jnp.linalg.norm(tall[0], "nuc") == 0
    x, residuals, rank, _ = jnp.linalg.lstsq(tall[0], jnp.ones(3, dtype))
    assert x.shape == (0,) and residuals == 3 and rank == 0
    assert linalg.hessenberg(tall[0, :0]).dtype == dtype
    for f in (jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.det, linalg.polar):
        with pytest.raises(NotImplementedError, match="16"):
            f(jnp.zeros((0, 2, 2), dtype) if f is not jnp.linalg.det else tall[0, :0])


def test_halves_of_sums_of_integers_are_factored() -> None:
    m = jnp.array([[5, 2], [2, 3]], jnp.int8)
    assert lax.linalg.cholesky(m).dtype == jnp.float32
    vectors, values = lax.linalg.eigh(m)
    np.testing.assert_allclose((vectors * values) @ vectors.T, m, atol=1e-5)
    for f in (lax.linalg.cholesky, lax.linalg.eigh):
        with pytest.raises(TypeError, match="int8"):
            f(m, symmetrize_input=False)


def test_condition_numbers_of_no_matrices() -> None:
    assert jnp.linalg.cond(jnp.zeros((0, 2, 2))).shape == (0,)
    with pytest.raises(ValueError, match="empty"):
        jnp.linalg.cond(jnp.zeros((2, 0, 2), jnp.bfloat16))
