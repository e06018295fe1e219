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


def everywhere(function, x):  # noqa: ANN001, ANN201
    """The function of x outside of `jit` and within."""
    return function(jnp.asarray(x)), nj.jit(function)(jnp.asarray(x))


def slope(function):  # noqa: ANN001, ANN201
    return lambda x: nj.jvp(function, (x,), (jnp.ones_like(x),))[1]


FAR = [3e22 - 5e22j, -2e25 + 1e20j, 1e19 + 1e21j, -7e30 - 1e30j]
LEFT = [-9 + 0.5j, -30 + 2j, -13.5 - 1j]
SLOPES = {
    "asin": (jnp.asin, lambda z: 1 / np.sqrt(1 - z) / np.sqrt(1 + z), FAR),
    "acos": (jnp.acos, lambda z: -1 / np.sqrt(1 - z) / np.sqrt(1 + z), FAR),
    "asinh": (jnp.asinh, lambda z: 1 / np.sqrt(1 - 1j * z) / np.sqrt(1 + 1j * z), FAR),
    "atan": (jnp.atan, lambda z: 1 / (1 + z * z), FAR),
    "atanh": (jnp.atanh, lambda z: 1 / (1 - z * z), FAR),
    "reciprocal": (lax.reciprocal, lambda z: -1 / z**2, FAR),
    "power": (lambda x: x**-3, lambda z: -3 / z**4, FAR),
    "quotient": (lambda x: (2 - 1j) / x, lambda z: (1j - 2) / z**2, FAR),
    "tanh": (jnp.tanh, lambda z: 1 / np.cosh(z) ** 2, [*LEFT, 8.2 - 1e-8j, 60 + 3j, 0.3 + 1.5j]),
    "tan": (jnp.tan, lambda z: 1 / np.cos(z) ** 2, [1j * z for z in (*LEFT, 60 + 3j, 0.3 + 1.5j)]),
    "expm1": (jnp.expm1, np.exp, LEFT),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_far_out_and_where_one_cancels(name: str) -> None:
    function, want, points = SLOPES[name]
    x = np.array(points, np.complex64)
    want = want(x.astype(np.complex128))
    for found in everywhere(slope(function), x):
        np.testing.assert_array_less(np.abs(found - want), 4e-6 * np.abs(want) + 1e-44)


def test_slopes_lie_on_the_side_of_the_cut_that_the_values_do() -> None:
    above, below = np.array([3 + 0j], np.complex64), np.conj(np.array([3 + 0j], np.complex64))
    for function, sign in ((jnp.asin, 1), (jnp.acos, -1)):
        for x, side in ((above, 1), (below, -1)):
            for found in everywhere(slope(function), x):
                np.testing.assert_allclose(found, sign * side * 1j / np.sqrt(8), rtol=1e-6)


@pytest.mark.parametrize("name", "log log2 log10 log1p asin asinh acos acosh".split())
def test_logarithms_of_the_largest_numbers_are_finite(name: str) -> None:
    x = np.array([3e38 - 2e38j, -3.3e38 + 3.3e38j, 2.9e38 + 3e38j], np.complex64)
    want = getattr(np, name)(x.astype(np.complex128))
    found = nj.jit(getattr(jnp, name))(x)
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_powers_of_large_and_small_numbers_keep_their_digits() -> None:
    x = [-4.5e28 - 4e17j, 1.7e-10 + 1.7e29j, -1e-30 + 2e-31j, 1e-38 - 1e-38j]
    x = np.asarray(x, np.complex64)
    for y in (1 / 3, 0.5, -0.25 + 0.01j):
        exponent = np.complex64(y)
        want = x.astype(np.complex128) ** complex(exponent)
        for found in everywhere(lambda x, y=exponent: x**y, x):
            np.testing.assert_array_less(np.abs(found - want), 8e-7 * np.abs(want))
    # Both factors of the size are out of range, and the size is not.
    x, y = np.array([1e30 * np.exp(3j)], np.complex64), np.complex64(2 + 33j)
    want = x.astype(np.complex128) ** complex(y)
    for found in everywhere(lambda x: x**y, x):
        np.testing.assert_array_less(np.abs(found - want), 1e-3 * np.abs(want))


def test_signs_of_the_largest_and_of_infinite_numbers() -> None:
    inf = np.inf
    x = [2e38 + 2e38j, inf, complex(3, -inf), complex(-inf, inf), -1e-45j, 0]
    x = np.asarray(x, np.complex64)
    half = np.sqrt(0.5)
    want = [complex(half, half), 1, -1j, complex(-half, half), -1j, 0]
    for found in everywhere(jnp.sign, x):
        np.testing.assert_allclose(found, want, rtol=1e-6)


def test_exponentials_and_roots_of_infinite_numbers() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([complex(-inf, inf), complex(-inf, nan), complex(inf, nan)], np.complex64)
    for found in everywhere(jnp.exp, x):
        np.testing.assert_array_equal(found.real, [0, 0, inf])
        np.testing.assert_array_equal(np.abs(found[:2]), [0, 0])
    x = np.array([complex(0, inf), complex(-inf, 2), complex(inf, -inf)], np.complex64)
    for found in everywhere(lax.rsqrt, x):
        np.testing.assert_array_equal(np.abs(found), [0, 0, 0])
    power = nj.jit(lambda x: x**0.5)(np.array([inf], np.complex64))
    np.testing.assert_array_equal(power, [inf])


def test_quotients_of_16_bits_have_slopes_where_the_divisor_squared_overflows() -> None:
    x, y = jnp.array([500.0, 3.0], jnp.float16), jnp.array([600.0, 1e-3], jnp.float16)
    for compiled in (False, True):
        function = nj.grad(lambda y: (x / y).sum())
        found = (nj.jit(function) if compiled else function)(y)
        np.testing.assert_allclose(found[:1], [-500 / 600**2], rtol=3e-3)


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"real does not accept dtype float32.*complexfloating"):
        lax.real(X)
    with pytest.raises(TypeError, match="complex does not accept dtype"):
        lax.complex(np.arange(3), np.arange(3))
