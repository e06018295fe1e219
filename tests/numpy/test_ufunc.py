"""ufunc methods of the binary functions, and frompyfunc."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import F, I, J

import numjet
import numjet.numpy as jnp


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logaddexp"])
def test_methods_agree_with_numpy(name):
    f, reference = getattr(jnp, name), getattr(np, name)
    np.testing.assert_allclose(f.reduce(F), reference.reduce(F), rtol=1e-5)
    np.testing.assert_allclose(
        f.reduce(F, axis=1, keepdims=True), reference.reduce(F, axis=1, keepdims=True), rtol=1e-5
    )
    np.testing.assert_allclose(f.accumulate(F, axis=1), reference.accumulate(F, axis=1), rtol=1e-5)
    np.testing.assert_allclose(f.outer(F[0], F[1]), reference.outer(F[0], F[1]), rtol=1e-5)
    np.testing.assert_allclose(
        f.reduceat(F[0], np.array([0, 2, 1])), reference.reduceat(F[0], [0, 2, 1]), rtol=1e-5
    )


def test_logical_and_bitwise_methods():
    assert bool(jnp.logical_and.reduce(jnp.array([True, False]))) is False
    np.testing.assert_array_equal(jnp.bitwise_or.reduce(I, axis=0), np.bitwise_or.reduce(I, axis=0))
    np.testing.assert_array_equal(
        jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False), [2, 0, 1]
    )
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(jnp.zeros(3), 0, 1.0)


def test_frompyfunc():
    f = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)
    np.testing.assert_array_equal(f(I, J), I * J + 1)
    want = I[0]
    for row in I[1:]:
        want = want * row + 1
    np.testing.assert_array_equal(f.reduce(I), want)
    np.testing.assert_array_equal(numjet.jit(f.reduce)(I), want)
    assert isinstance(f, jnp.ufunc) and f.nin == 2
    with pytest.raises(TypeError, match="takes 2 arrays"):
        f(I)


def test_methods_refuse_out():
    for name, args in (("reduce", ()), ("accumulate", ()), ("reduceat", ([0],))):
        with pytest.raises(NotImplementedError, match="out"):
            getattr(jnp.add, name)(jnp.arange(3), *args, out=np.zeros(3))
