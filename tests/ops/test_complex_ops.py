"""Real and imaginary parts, conjugation and construction against JAX, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

import numjet as nj
from numjet import lax, numpy as jnp

C = sample(3, 2, dtype=np.complex64)
X, Y = sample(3, 2), sample(3, 2, seed=1)
CASES = {
    "real": ("lax.real(x)", C),
    "imag": ("lax.imag(x)", C),
    "conj": ("lax.conj(x)", C),
    "complex": ("lax.complex(x, y)", X, Y),
    "conj real": ("lax.conj(x)", X),
    "magnitude": ("lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))", C),
    "product": ("lax.real(lax.mul(x, lax.conj(x)))", C),
}


test_against_jax, test_laws = checks_of(CASES)


def test_quotients_of_numbers_below_the_normal_ones() -> None:
    x, y = np.complex64(1e-40 + 2e-40j), np.complex64(3e-40 - 1e-40j)
    want = complex(x) / complex(y)
    for found in (lax.div(x, y), lax.div(lax.full((3,), x), lax.full((3,), y))):
        np.testing.assert_allclose(found, want, rtol=1e-5)
    matrix = np.array([[x, y], [y, x * 3]])
    eager, compiled = jnp.linalg.slogdet(matrix), nj.jit(jnp.linalg.slogdet)(matrix)
    np.testing.assert_allclose(eager.sign, compiled.sign, rtol=1e-4)
    np.testing.assert_allclose(eager.logabsdet, compiled.logabsdet, rtol=1e-4)


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"real does not accept dtype float32.*complexfloating"):
        lax.real(X)
    with pytest.raises(TypeError, match="complex does not accept dtype"):
        lax.complex(np.arange(3), np.arange(3))
