"""Calls that generated comparisons with JAX found to differ (tools/compare.py)."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn, random
from numjet.base import config
from numjet.base.errors import ConcretizationTypeError, TypePromotionError
from numjet.scipy import linalg, signal, special, stats
from numjet.scipy.sparse.linalg import gmres
from numjet.scipy.stats import pareto

U = jnp.arange(4, dtype=jnp.uint16)
X = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("error, call", [
    (TypeError, lambda: lax.abs(U)),
    (TypeError, lambda: lax.is_finite(U)),
    (TypeError, lambda: nn.log1mexp(True)),
    (TypeError, lambda: jnp.nanvar(X, dtype=bool)),
    (ValueError, lambda: lax.cumsum(X, axis=-1)),
    (ValueError, lambda: lax.cummax(X, axis=-1)),
    (ValueError, lambda: lax.conv_with_general_padding(
        X[None, None], X[None, None], (1, 1), "SAME", (2, 1), None)),
    (ValueError, lambda: signal.convolve(jnp.ones((4, 2)), jnp.ones((3, 3)))),
    (ValueError, lambda: signal.correlate2d(jnp.ones((4, 2)), jnp.ones((3, 3)), "same")),
    (ValueError, lambda: linalg.qr_multiply(X.astype("bfloat16").T, jnp.ones((2, 2)))),
    (ConcretizationTypeError, lambda: nj.jit(lambda i: jnp.choose(i, [X, X]))(np.int32(0))),
    (ConcretizationTypeError, lambda: nj.jit(
        lambda i: jnp.ravel_multi_index((i, i), (2, 3)))(np.int32(0))),
    (ConcretizationTypeError, lambda: nj.jit(lambda m: jnp.delete(U, m))(U < 2)),
])  # fmt: skip
def test_exceptions(error: type, call) -> None:
    with pytest.raises(error):
        call()


def test_dtypes_and_weak_types() -> None:
    assert jnp.abs(U).dtype == U.dtype and bool(jnp.isfinite(U).all())
    index = jnp.array([5, 5], "uint16")
    assert jnp.ravel_multi_index((index, 3), (7, 8), mode="wrap").dtype == index.dtype
    assert not linalg.block_diag(1.5).weak_type
    assert lax.linalg.qdwh(jnp.eye(2))[2].weak_type
    with nj.enable_x64(True):
        scale, shape = jnp.array(0.3), jnp.array(2.3766143, "float32")
        got = random.weibull_min(random.key(7), scale, shape)
        power = (np.float32(1) / np.float32(shape)).astype(np.float64)
        u = random.weibull_min(random.key(7), jnp.array(1.0), jnp.array(1.0))
        assert float(got) == pytest.approx(0.3 * float(u) ** power, rel=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
def test_cumlogsumexp_of_complex_numbers(reverse: bool) -> None:
    x = np.complex64([1 + 2j, 2 - 1j, -3 + 0.5j, 80, -np.inf])
    order = x[::-1] if reverse else x
    sums, want = mpmath.mpc(0), []
    for v in order:
        sums += mpmath.exp(mpmath.mpc(complex(v))) if np.isfinite(v) else 0
        want.append(complex(mpmath.log(sums)) if sums else -np.inf)
    want = want[::-1] if reverse else want
    np.testing.assert_allclose(lax.cumlogsumexp(jnp.array(x), reverse=reverse), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_qr_of_wide_matrices_is_differentiated(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, da = rng.normal(size=(2, 2, 3)).astype("float32")
    if dtype == "complex64":
        a, da = a + 1j * da, da - 2j * a
    a, da = jnp.asarray(a, dtype), jnp.asarray(da, dtype)
    (q, r), (dq, dr) = nj.jvp(lambda x: tuple(jnp.linalg.qr(x)), (a,), (da,))
    close = dict(rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dq @ r + q @ dr, da, **close)
    inner = np.conj(q.T) @ dq
    np.testing.assert_allclose(inner, -np.conj(inner.T), **close)
    np.testing.assert_allclose(np.tril(dr, -1), 0, atol=1e-5)


def test_gradient_outside_of_the_support() -> None:
    assert float(nj.grad(pareto.logcdf)(0.5, 2.0)) == 0


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: lax.argmin(X, -1, jnp.int32)),
    (ValueError, lambda: jnp.meshgrid(X[0], 1.0)),
    (TypePromotionError, lambda: random.f(random.key(0), X[0], 2.0, dtype=jnp.float16)),
    (TypePromotionError, lambda: random.beta(random.key(0), 2.0, X[0], dtype=jnp.bfloat16)),
])  # fmt: skip
def test_more_exceptions(error: type, call) -> None:
    with pytest.raises(error):
        call()


def test_weak_types_of_distributions() -> None:
    one, two = jnp.array([1]), 2.0
    assert stats.uniform.pdf(one, two).weak_type and not stats.uniform.cdf(one, two).weak_type
    assert stats.expon.sf(one, two).weak_type and stats.poisson.pmf(one, two).weak_type
    assert not stats.poisson.cdf(one, two).weak_type and not stats.laplace.pdf(one, two).weak_type
    assert not jnp.isreal(jnp.array([True])).weak_type and jnp.isreal(2).weak_type


def test_values_that_were_none() -> None:
    si, ci = special.sici(jnp.array([-0.5, -5.0]))
    np.testing.assert_allclose(ci, [float(mpmath.ci(v)) for v in (0.5, 5)], rtol=1e-5)
    np.testing.assert_allclose(si, [float(mpmath.si(v)) for v in (-0.5, -5)], rtol=1e-5)
    assert float(nj.grad(lambda x: special.sici(x)[1])(-2.0)) == pytest.approx(np.cos(2) / -2)
    np.testing.assert_allclose(jnp.fft.rfftfreq(3, dtype=jnp.int32), [0, 1 / 3])
    a = X[:, :, None]
    with config.numpy_rank_promotion("raise"):
        assert jnp.linalg.pinv(a).shape == (2, 1, 3)
    np.testing.assert_allclose(jnp.linalg.pinv(a), np.linalg.pinv(a), atol=1e-5)
    assert int(gmres(jnp.eye(2), X[0, :2])[1]) == 0
    assert float(nj.grad(stats.gamma.logcdf)(-1.0, 2.0)) == 0
    assert float(nj.grad(stats.pareto.ppf, 1)(-2.0, 2.0)) == 0
    assert float(nj.grad(stats.gamma.cdf)(-1.0, 0.1)) == 0


def test_weights_of_other_numbers_of_samples() -> None:
    for name in ("fweights", "aweights"):
        with pytest.raises(RuntimeError, match=f"incompatible numbers of samples and {name}"):
            jnp.cov(X, **{name: jnp.ones(4, int)})
