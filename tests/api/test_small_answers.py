"""Small answers that statements showed beside JAX: warnings, weak types, names. All are its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp, scipy, tree
from numjet.flatten_util import ravel_pytree


@pytest.mark.parametrize(
    ("args", "count"),
    [
        (("int64",), 1), ((np.int64,), 1), ((np.dtype("float64"),), 1), (("int64", "float64"), 2),
        (("complex128",), 1), ((1, np.int64), 1), ((jnp.int64,), 0), ((np.float64(1),), 0),
        ((float,), 0), ((np.arange(2),), 0), (("float32",), 0),
    ],
)  # fmt: skip
def test_result_type_warns_of_64_bits_that_are_not_there(args, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jnp.result_type(*args)
    assert len(caught) == count
    assert all(["Explicitly requested dtype" in str(w.message) for w in caught])


def test_unravelled_numbers_are_as_weak_as_their_vector():
    for value in (3, 2.0, 1j):
        vector, unravel = ravel_pytree(value)
        assert vector.weak_type and unravel(vector).weak_type
    vector, unravel = ravel_pytree([1, 2.0])
    assert [x.weak_type for x in unravel(vector)] == [False, False]
    assert not unravel(vector)[0].weak_type and not ravel_pytree(jnp.float16(1))[0].weak_type


def test_what_counts_as_a_leaf_of_a_prefix_need_be_none_of_the_whole():
    pairs = lambda x: isinstance(x, tuple)  # noqa: E731
    assert tree.broadcast([1, 2], [(3, 4), 5], is_leaf=pairs) == [(1, 1), 2]
    assert tree.broadcast([(1,), 2], [(3, 4), 5], is_leaf=pairs) == [((1,), (1,)), 2]
    assert tree.broadcast([None, 2], [3, 4], is_leaf=lambda x: x is None) == [None, 2]


def test_custom_gradient_takes_a_pair_also_where_nothing_is_differentiated():
    with pytest.raises(ValueError, match="unpack"):
        nj.custom_gradient(lambda x: (x,))(1.0)


def test_names_of_algorithms():
    assert str(lax.RandomAlgorithm.RNG_PHILOX) == "RNG_PHILOX"
    preset = lax.DotAlgorithmPreset.F32_F32_F32
    assert str(preset) == f"{preset}" == "F32_F32_F32" and repr(preset).startswith("DotAlg")


def test_batches_of_map_and_what_is_left_over():
    x = jnp.arange(5.0)
    for size in (1, 2, 5, 7):
        np.testing.assert_array_equal(lax.map(lambda v: v * 2, x, batch_size=size), 2 * x)
    a, b = lax.map(lambda t: (t[0], t[1].sum()), (x, jnp.ones((5, 3))), batch_size=3)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, np.full(5, 3))


def test_convolutions_of_arrays_of_one_size():
    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5])
    for mode in ("full", "same", "valid"):
        want = np.convolve(np.asarray(x), np.asarray(y), mode)
        got = scipy.signal.convolve(x, y, mode)
        np.testing.assert_allclose(got, want, rtol=1e-6)
