"""What generated calls beside JAX showed (tools/compare.py): answers given here are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base.errors import TypePromotionError

EMPTY, ONE = jnp.zeros((0,)), jnp.array([2.0])


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda: jnp.intersect1d(EMPTY, ONE, size=1), [0.0]),
        (lambda: jnp.intersect1d(EMPTY, ONE, size=2, fill_value=7), [7.0, 7.0]),
        (lambda: jnp.intersect1d(EMPTY, EMPTY, size=2), [0.0, 0.0]),
        (lambda: jnp.setdiff1d(EMPTY, ONE, size=1), [0.0]),
        (lambda: jnp.setxor1d(EMPTY, EMPTY, size=1), [0.0]),
    ],
)
def test_places_that_no_element_of_an_empty_set_fills(call, want):
    np.testing.assert_array_equal(call(), want)


@pytest.mark.parametrize("values", [[1, True], (True, 1.0), [[1, 2], [True, False]]])
def test_booleans_beside_numbers_under_strict_promotion(values):
    assert jnp.array(values).size == np.size(values)
    with nj.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError):
        jnp.array(values)


@pytest.mark.parametrize(
    "product",
    [jnp.matvec, jnp.matmul, jnp.dot, jnp.inner, lambda a, b: jnp.tensordot(a, b, 1)],
)
def test_products_of_integers_that_join_to_weak_floats(product):
    with nj.enable_x64():
        out = product(jnp.ones((2, 3), "uint64"), jnp.ones(3, "int8"))
        assert out.dtype == np.float64 and out.weak_type


def test_reduce_takes_no_axes_from_the_end():
    with pytest.raises(ValueError, match="out-of-bounds"):
        lax.reduce(jnp.ones((2, 3)), 0.0, lax.add, (-1,))
