"""Transformations of callable objects whose names are no text, as modules of libraries may be."""
from __future__ import annotations

import numpy as np
import pytest

import numjet as nj


class Named:
    """A callable with an attribute in the place of a name."""

    def __init__(self) -> None:
        self.__name__ = 3.0
        self.__annotations__ = None

    def __call__(self, x):
        return 2.0 * x


@pytest.mark.parametrize("transform", [nj.jit, nj.vmap, nj.checkpoint, nj.pmap])
def test_names_that_are_no_text_are_left_out(transform):
    np.testing.assert_array_equal(transform(Named())(np.ones((1, 2), np.float32)), [[2, 2]])


def test_gradients_of_such_objects():
    assert nj.grad(Named())(1.0) == 2 and nj.value_and_grad(Named())(1.0)[0] == 2
    assert nj.jacfwd(Named())(1.0) == 2


def test_keys_are_close_when_they_are_equal():
    keys = nj.random.split(nj.random.key(0), 3)
    assert nj.numpy.isclose(keys, keys[::-1]).tolist() == [False, True, False]
    assert nj.numpy.allclose(keys, keys)
