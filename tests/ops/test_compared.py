"""Calls that generated comparisons with JAX found to differ (tools/compare.py)."""

from __future__ import annotations

import subprocess
import sys
import warnings

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
    (IndexError, lambda: jnp.r_[()]),
    (ValueError, lambda: jnp.r_[1:3, "r", U]),
    (ValueError, lambda: jnp.c_[U, "0"]),
    (ValueError, lambda: jnp.compress(np.array([True, False, True]), X[0, :2])),
    (TypeError, lambda: lax.convert_element_type(1j, "float32")),
    (TypeError, lambda: lax.convert_element_type(1j, int)),
    (IndexError, lambda: stats.dirichlet.pdf(1.0, X[0])),
    (ValueError, lambda: stats.multivariate_normal.logpdf(X[0], X[0, :2], jnp.eye(3))),
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


def test_put_takes_the_nearest_position():
    x = jnp.arange(5)
    at = jnp.array([-5, -6, 5])
    assert jnp.put(x, at, jnp.array([10, 11, 12]), inplace=False).tolist() == [11, 1, 2, 3, 12]
    assert jnp.put(x, jnp.array([-1]), 9, inplace=False).tolist() == [0, 1, 2, 3, 9]
    assert jnp.put(x, jnp.array([-1]), 9, mode="clip", inplace=False).tolist() == [9, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="mode"):
        jnp.put(x, at, 1, mode="drop", inplace=False)


def test_poly_of_one_root_without_axes():
    assert jnp.poly(0.5).tolist() == [1.0, -0.5]


def test_unique_of_nothing_needs_what_to_fill_with():
    with pytest.raises(ValueError, match="fill_value"):
        jnp.unique(jnp.zeros(0), size=2)
    assert jnp.unique(jnp.zeros(0), size=2, fill_value=7).tolist() == [7, 7]


@pytest.mark.parametrize("function", [jnp.sort, jnp.argsort])
@pytest.mark.parametrize("options", [{"kind": "stable"}, {"order": "a"}])
def test_sorts_refuse_numpys_options(function, options):
    with pytest.raises(TypeError, match="not supported"):
        function(X, **options)


def test_dtypes_of_products():
    """Of unequal operands one operand's, and none narrower than whole numbers are."""
    def product(a, b, preferred=None):
        x, y = jnp.array([[1, -1]]).astype(a), jnp.array([[2], [3]]).astype(b)
        numbers = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, y, numbers, preferred_element_type=preferred)

    for a, b, dtype in [("bfloat16", "float16", "bfloat16"), ("uint8", "int8", "int8"),
                        ("int4", "float32", "float32"), ("uint16", "int8", "uint16")]:
        out, jitted = product(a, b), nj.jit(product, static_argnums=(0, 1))(a, b)
        assert out.dtype == jitted.dtype == dtype and out.tolist() == jitted.tolist()
    assert product("int8", "int8", "int32").tolist() == [[-1]]
    for dtype, preferred in [("int32", "int8"), ("int8", "bool"), ("complex64", "float16")]:
        with pytest.raises(TypeError, match="preferred_element_type"):
            product(dtype, dtype, preferred)


@pytest.mark.parametrize("dtype, preferred", [
    ("float32", "bfloat16"), ("float32", "int32"), ("int8", "uint8"), ("complex64", "float32")])
def test_convolutions_refuse_other_kinds_of_results(dtype, preferred):
    x = jnp.ones((1, 1, 4), dtype)
    with pytest.raises(TypeError, match="preferred_element_type"):
        lax.conv(x, x, (1,), "SAME", preferred_element_type=preferred)


def test_unknown_words_for_padding():
    for call in (lambda: lax.conv(X[None], X[None], (1,), "FULL"),
                 lambda: lax.reduce_window(X[0], 0.0, lax.add, (2,), (1,), "FULL")):
        with pytest.raises(RuntimeError, match="FULL"):
            call()


def test_conversions_among_dtypes_narrower_than_a_byte():
    x = jnp.array([-2, 1], "int4")
    assert x.astype("uint4").tolist() == nj.jit(lambda x: x.astype("uint4"))(x).tolist() == [14, 1]
    assert x.astype("int2").tolist() == [-2, 1]


def test_promotion_of_dtypes_alone_is_not_narrowed():
    assert jnp.promote_types(float, "int8") == "float64"
    assert jnp.promote_types("complex64", "float64") == "complex128"
    assert jnp.promote_types("int32", "uint32") == "int32"


def test_powers_take_a_known_exponent_whatever_its_dtype():
    for two in (np.int8(2), np.array(2), jnp.array(2)):
        out = jnp.power(3, two)
        assert out.dtype == jnp.int32 and out.weak_type and out == 9
    assert jnp.power(jnp.int8(3), np.array(2)).dtype == jnp.int8
    assert not jnp.power(0.5, jnp.array([2])).weak_type
    x, y = jnp.array([1, -1, 2, -1]), jnp.array([-1, -1, -1, -2])
    assert jnp.power(x, y).tolist() == nj.jit(jnp.power)(x, y).tolist() == [1, -1, 0, 1]


def test_dot_refuses_sizes_that_differ():
    for a, b in [((2, 5), (3,)), ((3,), (4,)), ((2, 3), (4, 5)), ((2, 3, 4), (4,))]:
        with pytest.raises(ValueError, match="dot"):
            lax.dot(jnp.ones(a), jnp.ones(b))


def test_words_for_padding_have_no_meaning_between_gaps():
    x = jnp.ones((1, 1, 4))
    with pytest.raises(ValueError, match="String padding is not implemented"):
        lax.conv_general_dilated(x, x, (1,), "SAME", lhs_dilation=(2,))


def test_running_sums_of_numbers():
    for axis in (None, 0, -1):
        assert jnp.cumsum(2.0, axis=axis).tolist() == [2.0]
    with pytest.raises(ValueError, match="axis"):
        jnp.cumsum(2.0, axis=1)


def test_weak_places_and_factorials():
    values, places = lax.top_k(lax.full((3,), 2.0), 2)
    assert values.weak_type and places.weak_type
    assert special.factorial(3).weak_type and not special.factorial(jnp.array([3])).weak_type


def test_signals_whatever_is_said_of_ranks():
    x = jnp.sin(jnp.arange(40.0))
    want = signal.istft(signal.stft(x, nperseg=8)[2], nperseg=8)[1]
    with nj.numpy_rank_promotion("raise"):
        for call in (lambda: signal.csd(x, x, nperseg=8), lambda: signal.welch(x[None], nperseg=8),
                     lambda: signal.detrend(x.reshape(4, 10))):
            call()
        got = signal.istft(signal.stft(x, nperseg=8)[2], nperseg=8)[1]
    np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(got, x, atol=1e-5)


def test_triangular_solves_and_small_determinants_of_16_bits():
    for dtype in (jnp.float16, jnp.bfloat16):
        a, b = jnp.array([[3, 0], [1, 2]], dtype), jnp.ones(2, dtype)
        x = lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
        assert x.dtype == dtype
        np.testing.assert_allclose(x.astype(float), [1 / 3, 1 / 3], rtol=2e-3)
        assert jnp.linalg.det(a) == 6 and jnp.linalg.det(a).dtype == dtype


def test_finiteness_of_complex_numbers_is_asked_of_numpy():
    with pytest.raises(TypeError, match="is_finite does not accept dtype complex64"):
        lax.is_finite(jnp.array([1j]))
    assert jnp.isfinite(jnp.array([1j, np.inf * 1j])).tolist() == [True, False]


def test_real_transforms_of_complex_numbers():
    with pytest.raises(ValueError, match="real"):
        jnp.fft.rfft(1j * X)


def test_initializers_have_the_default_float():
    with nj.enable_x64(True):
        for make in (nn.initializers.zeros, nn.initializers.ones):
            assert make(random.key(0), (2,)).dtype == jnp.float64
    assert nn.initializers.ones(random.key(0), (2,)).dtype == jnp.float32


def test_bits_of_the_same_dtype_pass_no_derivative() -> None:
    x = jnp.array([1.5, -2.0])
    for dtype in ("float32", "float16", "bfloat16", "complex64"):
        y = x.astype(dtype)
        value, pull = nj.vjp(lambda y, dtype=dtype: lax.bitcast_convert_type(y, dtype), y)
        np.testing.assert_array_equal(value.astype("complex64"), y.astype("complex64"))
        assert not np.asarray(pull(y)[0]).any()
    same = nj.jit(lambda y: lax.bitcast_convert_type(2 * y, "float32"))(x)
    np.testing.assert_array_equal(same, [3, -4])
    jaxpr = nj.make_jaxpr(lambda y: lax.bitcast_convert_type(y, "float32"))(x)
    assert "bitcast_convert_type" in str(jaxpr)
    np.testing.assert_array_equal(nj.grad(lambda y: y.view("float32").sum())(x), [1, 1])


def test_compress_to_a_size_leaves_out_what_lies_beyond() -> None:
    beyond = np.array([True, False, True])
    np.testing.assert_array_equal(jnp.compress(beyond, X[0, 1:], size=2), [1, 0])
    np.testing.assert_array_equal(jnp.extract(beyond, X[0, 1:], size=1), [1])
    assert jnp.compress(beyond, jnp.zeros((0, 3)), axis=0, size=0).shape == (0, 3)
    jitted = nj.jit(lambda c, x: jnp.compress(c, x, size=2))(beyond, X[0, 1:])
    np.testing.assert_array_equal(jitted, [1, 0])


def test_references_do_not_warn_of_infinities() -> None:
    """In a process of its own: with the filters of warnings as Python sets them."""
    program = """
import numjet.numpy as jnp
x = jnp.float32(-1)
for _ in range(3):  # the shortcut begins with the second call
    jnp.log1p(x), x / jnp.float32(0), jnp.log(x)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "RuntimeWarning" not in done.stderr, done.stderr


def test_real_products_of_complex_numbers_do_not_warn() -> None:
    c = jnp.array([1 + 2j, 3j])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jnp.einsum("i,i", c, c, preferred_element_type=float)) == -12


def test_covariances_have_the_dtype_of_their_weights() -> None:
    x = X.astype("bfloat16")
    weights = jnp.array([2.5, 0.75, 3.5])
    assert jnp.cov(x, aweights=weights).dtype == jnp.float32
    assert jnp.cov(x.astype("float16"), aweights=weights.astype("bfloat16")).dtype == jnp.float32
    assert jnp.cov(x, fweights=jnp.array([1, 2, 3])).dtype == jnp.bfloat16
    np.testing.assert_allclose(
        jnp.cov(x, aweights=weights), np.cov(np.asarray(X), aweights=np.asarray(weights)), 1e-6)


def test_complex_numbers_are_true() -> None:
    assert lax.full((2,), 1j, bool).all() and not lax.full((2,), 0j, bool).any()
    assert lax.full_like(X, 1j, bool).all() and bool(lax.convert_element_type(1j, bool))
    assert lax.full((2,), complex(-np.inf, 100), bool).all()
