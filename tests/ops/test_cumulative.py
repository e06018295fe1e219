"""Running sums, products, extremes and log-sum-exps against JAX; zeros, ties; laws."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

import numjet as nj
from numjet import lax, numpy as jnp
from numjet.api.derivatives.autodiff import grad

X = sample(3, 7)
ZEROS = np.array([2, 0, 3, 0, 4, 5], np.float32)
I = sample(3, 5, dtype=np.int32, low=-3, high=3)
OPS = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
CASES = {
    **{
        f"{op} {axis} {reverse}": (f"lax.{op}(x, {axis}, {reverse})", X)
        for op in OPS
        for axis in (0, 1)
        for reverse in (False, True)
    },
    **{f"int {op}": (f"lax.{op}(x, 1)", I) for op in OPS[:-1]},
    "cumprod zeros": ("lax.cumprod(x)", ZEROS),
    "cumlogsumexp wide": ("lax.cumlogsumexp(x)", np.array([-200, 3, 100, -80, 300], np.float32)),
    "cumlogsumexp infinite": (
        "lax.cumlogsumexp(x)",
        np.array([-np.inf, -np.inf, 1, 2], np.float32),
    ),
    "one": ("lax.cumsum(x)", sample(1)),
    "empty": ("lax.cumsum(x)", np.zeros(0, np.float32)),
}


test_against_jax, test_laws = checks_of(
    CASES, only_values=["cumlogsumexp infinite"], laws_rtol=1e-4
)


def test_logsumexp_gradient_of_a_late_maximum_is_finite() -> None:
    x = np.array([-200.0, 3.0, 300.0], np.float32)
    first = grad(lambda x: lax.index_in_dim(lax.cumlogsumexp(x), 0, 0, False))(x)
    assert first.tolist() == [1, 0, 0]


def test_messages() -> None:
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        lax.cumsum(X, 2)
    with pytest.raises(TypeError, match="cumlogsumexp does not accept dtype int32.*floating"):
        lax.cumlogsumexp(X.astype("int32"))


def test_running_extremes_share_the_derivative_of_equal_elements() -> None:
    """By pairs, as JAX does: at 7 equal ones each of the first 4 has a sixteenth."""
    for function in (lax.cummax, lax.cummin):
        by = grad(lambda v: function(v)[6])(np.ones(7, np.float32))
        np.testing.assert_array_equal(by, [0.0625] * 4 + [0.125] * 2 + [0.5])
        by = grad(lambda v: function(v, reverse=True)[0])(np.ones(5, np.float32))
        np.testing.assert_array_equal(by, [0.5] + [0.125] * 4)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("shape", [(30000, 3), (3, 5000, 20), (80, 40), (200000,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_running_sums_keep_their_digits(dtype, shape, reverse) -> None:
    """Totals of 16 bits that were read back stopped growing at 256 times what was added."""
    rows = np.random.default_rng(0).random(shape) * 2.0**-5
    x, axis = jnp.asarray(rows, dtype), max(len(shape) - 2, 0)
    exact = np.asarray(x).astype(np.float64)
    want = np.flip(np.cumsum(np.flip(exact, axis), axis), axis) if reverse else exact.cumsum(axis)
    for run in (nj.jit(lax.cumsum, static_argnums=(1, 2)), lax.cumsum):
        found = np.asarray(run(x, axis, reverse)).astype(np.float64)
        np.testing.assert_allclose(found, want, rtol=4 * float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("shape", [(9000, 3), (90000,)])
def test_running_sums_that_overflow_are_infinite(shape) -> None:
    x = np.ones(shape, np.float32)
    x[7000:7100] = 1e38
    x[8000] = -np.inf
    found = np.asarray(nj.jit(lambda x: lax.cumsum(x, 0))(x)).reshape(shape[0], -1)
    assert np.isfinite(found[:7003]).all()
    assert (found[7003:8000] == np.inf).all()
    assert np.isnan(found[8000:]).all()


@pytest.mark.parametrize("shape", [(100_000,), (700_001,), (3, 60_000), (20_000, 5), (2000,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_running_logarithms_of_sums_keep_their_digits(shape, reverse) -> None:
    """One after the other, 10^5 lost 9 bits of 24, 10^7 14."""
    axis = int(shape[0] == 3)
    x = np.random.default_rng(0).uniform(0, 3, shape).astype(np.float32)
    exact = np.flip(x, axis) if reverse else x
    want = np.logaddexp.accumulate(exact.astype(np.float64), axis=axis)
    want = np.flip(want, axis) if reverse else want
    for run in (nj.jit(lax.cumlogsumexp, static_argnums=(1, 2)), lax.cumlogsumexp):
        np.testing.assert_allclose(run(x, axis, reverse), want, rtol=6e-7, atol=3e-7)


@pytest.mark.parametrize("shape", [(9000,), (9000, 3)])
def test_long_running_logarithms_of_sums_of_nothing_and_of_infinities(shape) -> None:
    x = np.zeros(shape, np.float32)
    x[:10], x[8000] = -np.inf, np.inf
    found = np.asarray(nj.jit(lambda x: lax.cumlogsumexp(x, 0))(x)).reshape(9000, -1)
    assert (found[:10] == -np.inf).all() and (found[8000:] == np.inf).all()
    np.testing.assert_allclose(found[7999], np.log(7990), rtol=3e-7)
    x[8500] = np.nan
    found = np.asarray(nj.jit(lambda x: lax.cumlogsumexp(x, 0))(x)).reshape(9000, -1)
    assert (found[8000:8500] == np.inf).all() and np.isnan(found[8500:]).all()


def test_running_logarithms_of_complex_sums_are_principal_values() -> None:
    x = np.array([0.5 - 3.5j, 2 + 4j, -1 - 9j, 1 + 0j, 3 + 7j], np.complex64)
    want = np.log(np.cumsum(np.exp(x)))
    for run in (lax.cumlogsumexp, nj.jit(lax.cumlogsumexp)):
        np.testing.assert_allclose(run(x), want, rtol=1e-5, atol=1e-5)
    _, second = nj.jvp(lambda x: lax.cumlogsumexp(x), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(second, np.ones(5), rtol=1e-5)
