"""The normal distribution and statistics of samples against SciPy's."""

import warnings

import numpy as np
import pytest
import scipy.stats

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy.stats import norm, rankdata, sem, truncnorm


@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
def test_functions_of_values(name):
    x = np.linspace(-4, 4, 9, dtype=np.float32)
    for args in ((), (0.5, 2.0)):
        want = getattr(scipy.stats.norm, name)(x.astype(np.float64), *args)
        for fun in (getattr(norm, name), nj.jit(getattr(norm, name))):
            np.testing.assert_allclose(fun(x, *args), want, rtol=2e-5, atol=6e-8)


def test_quantiles():
    q = np.array([0.01, 0.3, 0.5, 0.9], np.float32)
    np.testing.assert_allclose(norm.ppf(q, 1.0, 2.0), scipy.stats.norm.ppf(q, 1, 2), rtol=2e-5)
    np.testing.assert_allclose(norm.isf(q, 1.0, 2.0), scipy.stats.norm.isf(q, 1, 2), rtol=2e-5)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method):
    x = np.random.default_rng(0).integers(0, 6, (5, 9)).astype(np.float32)
    for values in (x, x.astype(np.int8), x[:1], x[:, :1], x[:, :0]):
        for axis in (None, 0, 1, -1):
            want = scipy.stats.rankdata(values, method, axis=axis)
            for f in (rankdata, nj.jit(rankdata, static_argnums=1, static_argnames="axis")):
                got = f(values, method, axis=axis)
                assert got.dtype == np.float32 and got.shape == want.shape
                np.testing.assert_array_equal(got, want)
    x[2, 3] = np.nan
    np.testing.assert_array_equal(
        rankdata(x, method, axis=1), scipy.stats.rankdata(x, method, axis=1)
    )


def test_standard_errors():
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    x[1, 2] = np.nan
    for policy in ("propagate", "omit"):
        for axis in (None, 0, 1):
            want = scipy.stats.sem(x.astype(np.float64), axis, 1, policy)
            np.testing.assert_allclose(sem(x, axis, nan_policy=policy), want, rtol=1e-5)
    few = np.array([1, 2, 4])
    np.testing.assert_allclose(sem(few, ddof=0), scipy.stats.sem(few, ddof=0), 1e-6)
    assert sem(x, 1, keepdims=True).shape == (4, 1)


def test_mistakes():
    with pytest.raises(ValueError, match="rankdata: unknown method 'least'"):
        rankdata([1, 2], "least")
    with pytest.raises(NotImplementedError, match="rankdata: Logic for `nan_policy`"):
        rankdata([1, 2], nan_policy="omit")
    with pytest.raises(ValueError, match="sem: nan_policy must be"):
        sem([1, 2], nan_policy="raise")


def test_calls_that_come_often_are_programs():
    x = jnp.array([0.5, -0.25, 1.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(120):
            low = -1.0 - i % 4
            want = scipy.stats.truncnorm.cdf(np.asarray(x), low, 2.0)
            np.testing.assert_allclose(truncnorm.cdf(x, low, 2.0), want, rtol=1e-5)
            alike = 2 if i % 2 else 3
            ranks = rankdata(x, "min" if i % 2 else "max")
            assert ranks.tolist() == [alike, 1, 4, alike]
