"""Dtypes that functions of scipy.special refuse, as JAX's do; and complex ones that they take."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import numjet.numpy as jnp
from numjet.scipy import special
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
