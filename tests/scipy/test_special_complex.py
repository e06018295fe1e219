"""gamma and loggamma of complex numbers against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy import special

_DRAWN = np.random.default_rng(0).normal(size=(2, 500)) * 8
Z = np.append(_DRAWN[0] + 1j * _DRAWN[1], [0.5, -0.5, 1, 2, 1e-3j, -3 + 1e-6j, -2.5 - 1e-9j])


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
@pytest.mark.parametrize("dtype, bound", [("complex64", 3e-7), ("complex128", 1e-13)])
def test_values(name, dtype, bound):
    with nj.enable_x64(dtype == "complex128"):
        z = Z.astype(dtype)
        want = getattr(scipy.special, name)(z.astype("complex128"))
        for got in (getattr(special, name)(z), nj.jit(getattr(special, name))(z)):
            assert got.dtype == dtype
            fits = np.abs(want) < 1e38
            error = np.abs(np.asarray(got) - want) / np.maximum(np.abs(want), 1e-2)
            assert error[fits].max() < bound


def test_derivatives_poles_and_modes():
    with nj.enable_x64(True):
        found = nj.vjp(special.loggamma, jnp.asarray(Z))[1](jnp.ones(Z.shape, complex))[0]
        np.testing.assert_allclose(found, scipy.special.digamma(Z), rtol=1e-8)
    assert np.isnan(special.gamma(jnp.array([0j, -2 + 0j, -7 + 0j]))).all()
    assert np.isnan(special.loggamma(jnp.array([0j, -2 + 0j]))).all()
    with nj.disable_jit():
        np.testing.assert_allclose(special.gamma(3 - 1j), scipy.special.gamma(3 - 1j), rtol=2e-7)
    assert special.gamma(jnp.zeros((0, 2), complex)).shape == (0, 2)
