"""Real and imaginary parts, conjugation and construction against JAX, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

from numjet import lax

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


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"real does not accept dtype float32.*complexfloating"):
        lax.real(X)
    with pytest.raises(TypeError, match="complex does not accept dtype"):
        lax.complex(np.arange(3), np.arange(3))
