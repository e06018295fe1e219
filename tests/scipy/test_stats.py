"""The normal distribution against SciPy's."""

import numpy as np
import pytest
import scipy.stats

import numjet as nj
from numjet.scipy.stats import norm


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
