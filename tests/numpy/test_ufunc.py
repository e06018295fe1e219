"""ufunc methods of the binary functions, and frompyfunc."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

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
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        f(I)


def test_methods_refuse_out():
    for name, args in (("reduce", ()), ("accumulate", ()), ("reduceat", (np.array([0]),))):
        with pytest.raises(NotImplementedError, match="out"):
            getattr(jnp.add, name)(jnp.arange(3), *args, out=1)
    with pytest.raises(ValueError, match="Non-hashable"):
        jnp.add.reduce(jnp.arange(3), out=np.zeros(3))


UFUNCS = (
    "add subtract multiply maximum minimum negative logical_and logical_or logical_xor bitwise_and "
    "bitwise_or bitwise_xor logaddexp logaddexp2"
).split()


@pytest.mark.parametrize("name", UFUNCS)
def test_functions_are_ufuncs(name):
    f = getattr(jnp, name)
    x = (jnp.array([True, False]),) * f.nin
    assert repr(f) == f"<jnp.ufunc {name!r}>" and type(f) is jnp.ufunc
    assert pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f
    if name not in ("negative", "subtract"):
        np.testing.assert_array_equal(f(*x, out=None, where=None), f(*x))
    for keyword in ("out", "where"):
        with pytest.raises(NotImplementedError, match=f"{keyword} argument of {name}"):
            f(*x, **{keyword: x[0]})
    for args in ((), x * 3):
        with pytest.raises(TypeError, match="positional argument"):
            f(*args)


def test_ufuncs_are_functions_to_others():
    class Model:
        join = jnp.add

    assert Model().join(1, 2) == 3 and Model.join is jnp.add
    assert numjet.tree_util.tree_leaves(numjet.tree_util.Partial(jnp.add, 1)) == [1]
    assert numjet.jit(jnp.add)(1, 2) == 3 and numjet.grad(jnp.multiply)(2.0, 3.0) == 3
    assert "jnp.ufunc 'add'" in repr(numjet.jit(jnp.add))
    x = jnp.arange(3.0)
    for _ in range(3):  # natively, where the operands are known
        np.testing.assert_array_equal(jnp.add(x, x), [0, 2, 4])
    assert list(inspect.signature(jnp.add).parameters)[-2:] == ["out", "where"]


def test_reductions_count_what_where_says():
    x, some = jnp.array([[7, 3], [5, 1]]), np.array([[True, False], [True, True]])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        f, reference = getattr(jnp, name), getattr(np, name)
        for axis in (0, 1, None):
            want = reference.reduce(np.asarray(x), axis=axis, where=some)
            np.testing.assert_array_equal(f.reduce(x, axis=axis, where=some), want)
    want = np.subtract.reduce(np.asarray(x), axis=1, where=some, initial=20)
    np.testing.assert_array_equal(jnp.subtract.reduce(x, 1, where=some, initial=20), want)
    with pytest.raises(ValueError, match="does not have an identity"):
        jnp.subtract.reduce(x, where=some)
    assert not jnp.logical_and.reduce(some[1], initial=False)
    assert jnp.logical_or.reduce(some[0], initial=True)
    assert jnp.logical_or.accumulate(x).dtype == bool


def test_reduceat_wants_a_vector_of_integers():
    for indices, error in (([0], TypeError), (0, ValueError), (np.array([0.5]), ValueError)):
        with pytest.raises(error):
            jnp.add.reduceat(jnp.arange(3), indices)
    assert jnp.add.reduceat(jnp.arange(3), np.array([], int)).shape == (0,)


def test_sums_of_slices_keep_their_dtype() -> None:
    x = np.array([1, 2, 60, 3, -7], np.int8)
    for name in ("add", "multiply"):
        for values in (x, x.astype(np.uint16), x > 1, x.astype(np.float16)):
            found = getattr(jnp, name).reduceat(values, np.array([0, 3, 1]))
            want = getattr(np, name).reduceat(values, [0, 3, 1], dtype=values.dtype)
            assert found.dtype == values.dtype
            np.testing.assert_array_equal(found, want)


def test_updates_of_booleans_are_logical() -> None:
    mask, at = np.array([True, False, True, False]), np.array([0, 1, 1])
    for name in ("add", "multiply"):
        for values in (True, False, np.array([False, True, False])):
            want = mask.copy()
            getattr(np, name).at(want, at, values)
            found = getattr(jnp, name).at(mask, at, values, inplace=False)
            assert found.dtype == bool
            np.testing.assert_array_equal(found, want)


def test_loops_are_programs_that_know_their_arguments() -> None:
    x, bits = jnp.array([5, 6, 12, 9]), np.array([5, 6, 12, 9])
    places, mask = np.array([3, 0, 3]), jnp.array([True, False, True, False])
    mixed = jnp.frompyfunc(lambda a, b: 2 * a + b, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(150):
            start, axis = i % 3, -(i % 2)
            wanted = np.bitwise_xor.reduce(bits) ^ start
            assert jnp.bitwise_xor.reduce(x, axis, initial=start) == wanted
            np.testing.assert_array_equal(
                jnp.bitwise_or.accumulate(x, axis), np.bitwise_or.accumulate(bits)
            )
            written = jnp.bitwise_or.at(x, places + axis, start, inplace=False)
            beside = bits.copy()
            np.bitwise_or.at(beside, places + axis, start)
            np.testing.assert_array_equal(written, beside)
            masked = jnp.bitwise_and.at(x, mask, 3, inplace=False)
            assert masked.tolist() == [1, 6, 0, 9]
            assert mixed.reduce(jnp.array([1, 2, start])) == 8 + start
    short = numjet.jit(jnp.logaddexp.accumulate)(jnp.zeros(3))
    np.testing.assert_allclose(short, np.log([1, 2, 3]), rtol=1e-6)


def test_choices_at_places_are_made_in_the_dtype_of_both() -> None:
    x, places = jnp.array([1, 5, 7]), np.array([0, 2])
    for given, dtype in ((2.5, "float32"), (np.float16(2.5), "float16"), (True, "int32")):
        larger = jnp.maximum.at(x, places, given, inplace=False)
        less = jnp.minimum.at(x, places, given, inplace=False)
        assert larger.dtype == less.dtype == dtype and not larger.weak_type
        assert larger.tolist() == [max(1, given), 5, 7] and less.tolist() == [1, 5, given]


def test_updates_at_places_that_come_again() -> None:
    x, at = np.array([1.0, -2.0, 0.5], np.float32), np.array([0, 2, 0, 0])
    for name in ("logaddexp", "logaddexp2"):
        want, b = x.copy(), np.array([0.5, 1.0, -1.0, 2.0], np.float32)
        getattr(np, name).at(want, at, b)
        found = getattr(jnp, name).at(x, at, b, inplace=False)
        np.testing.assert_allclose(found, want, rtol=1e-5)
    assert jnp.logical_xor.at(x, at, True, inplace=False).tolist() == [False, True, False]
    assert jnp.logaddexp.at(np.arange(3), 0, 1, inplace=False).dtype == np.float32


def test_reduceat_of_indices_that_are_not_known():
    x, places = jnp.array([3.0, 1.0, 4.0, 1.0, 5.0]), np.array([3, 0, 2])
    for name in ("add", "multiply", "maximum", "subtract"):
        function = getattr(jnp, name)
        np.testing.assert_allclose(
            numjet.jit(function.reduceat)(x, places), function.reduceat(x, places)
        )
    rows = jnp.stack([x, 2 * x])
    by_rows = numjet.jit(lambda x, i: jnp.add.reduceat(x, i, axis=1))(rows, places)
    np.testing.assert_array_equal(by_rows, [[1, 4, 10], [2, 8, 20]])
    assert numjet.jit(jnp.add.reduceat)(x.astype(jnp.int8), places).dtype == jnp.int8
    slope = numjet.grad(lambda x: numjet.jit(jnp.multiply.reduceat)(x, places).sum())(x)
    np.testing.assert_array_equal(slope, [1, 3, 5, 21, 4])
    # From the end: the element there and what precedes the next index; nothing beyond the end.
    np.testing.assert_array_equal(jnp.add.reduceat(x, np.array([-1, 2, 7])), [9, 10, np.nan])
