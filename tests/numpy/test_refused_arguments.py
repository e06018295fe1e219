"""Arguments that are refused, with JAX's classes of exceptions, and what is beside them."""

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp

X = jnp.arange(6.0).reshape(2, 3)
NUMBERS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
ROW, AT = jnp.ones((1, 3)), jnp.array([[0]])


@pytest.mark.parametrize("call", [
    lambda: jnp.cumsum(X, axis=[0]),
    lambda: jnp.sort(X, axis=np.array(0)),
    lambda: jnp.median(X, axis=[0]),
    lambda: jnp.take(X, 0, mode=["clip"]),
    lambda: jnp.trace(X, axis1=[0]),
    lambda: jnp.linalg.norm(X, axis=[0]),
    lambda: jnp.einsum("ij->ji", X, precision=[0]),
    lambda: jnp.matmul(X, X.T, preferred_element_type=[0]),
    lambda: jnp.matmul(X, X.T, precision=0),
    lambda: lax.fft(X, "FFT", [3]),
    lambda: nj.nn.standardize(X, axis=[0]),
    lambda: nj.image.resize(X, (2, 2), "linear", antialias=[0]),
    lambda: nj.scipy.linalg.hadamard([4]),
    lambda: nj.scipy.stats.mode(X, axis=[0]),
    lambda: jnp.asarray(np.ma.array([1, 2])),
    lambda: jnp.sum(np.ma.array([1, 2])),
    lambda: nj.jit(jnp.sin)(np.ma.array([1.0, 2.0])),
    lambda: jnp.array(float("nan"), dtype=int),
    lambda: jnp.array(["a"], dtype=int),
    lambda: lax.reduce_sum(X, (-1,)),
    lambda: lax.reshape(X, (4,)),
    lambda: lax.dynamic_slice(X, (0, 0), (1,)),
    lambda: lax.dot_general(X, X, None),
    lambda: lax.full((2,), None),
    lambda: lax.conv(jnp.ones((1, 2, 4)), jnp.ones((3, 2, 2)), (1,), 1),
    lambda: lax.scatter(X, AT, ROW, NUMBERS, mode=["clip"]),
    lambda: jnp.mean(X, axis=5, where=True),
])  # fmt: skip
def test_value_errors(call):
    with pytest.raises(ValueError):  # noqa: PT011 - the classes are what is compared
        call()


@pytest.mark.parametrize("call", [
    lambda: jnp.zeros(2, np.zeros(2)),
    lambda: jnp.zeros(2, out_sharding=[0]),
    lambda: jnp.array([jnp.ones(2), jnp.ones(3)]),
    lambda: jnp.bfloat16("a"),
    lambda: jnp.zeros_like(np.array(["a"])),
    lambda: lax.reduce_max(X, 0),
    lambda: lax.reduce_max(X, None),
    lambda: lax.argmax(X, np.array(0), jnp.int32),
    lambda: lax.argmax(X, True, jnp.int32),
    lambda: lax.rev(X, (-1,)),
    lambda: lax.concatenate([X, X], -1),
    lambda: lax.broadcast(X, 2),
    lambda: lax.split(X, 2),
    lambda: lax.reduce(X, 1, lax.add, (0,)),
    lambda: lax.reduce(X, 0.0, lax.add, 0),
    lambda: lax.sort(X, is_stable=2),
    lambda: lax.scatter(X, AT, ROW, NUMBERS, unique_indices=1),
    lambda: lax.scatter(X, AT, ROW, lax.ScatterDimensionNumbers((1,), (5,), (0,))),
    lambda: lax.gather(X, AT, lax.GatherDimensionNumbers((1,), (0,), (5,)), (1, 3)),
    lambda: lax.exp(1.0, accuracy=["a"]),
    lambda: nj.ops.segment_sum(ROW[0], jnp.array([0, 0, 1]), 2, indices_are_sorted=[0]),
])  # fmt: skip
def test_type_errors(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(("call", "error"), [
    (lambda: jnp.array(1e10, dtype="int8"), OverflowError),
    (lambda: jnp.array([-1.5], dtype="uint8"), OverflowError),
    (lambda: jnp.int8(300.0), OverflowError),
    (lambda: jnp.asarray(1, order="F"), NotImplementedError),
    (lambda: lax.reduce_and(X > 1, (2,)), IndexError),
    (lambda: lax.index_in_dim(X, 0, 3), IndexError),
    (lambda: lax.slice_in_dim(X, 0, 2, 0), ZeroDivisionError),
    (lambda: lax.sort([1, 2]), AttributeError),
    (lambda: lax.linalg.cholesky(None), AttributeError),
    (lambda: lax.gather(X, AT, None, (1, 3)), AttributeError),
])  # fmt: skip
def test_other_errors(call, error):
    with pytest.raises(error):
        call()


def test_complex_numbers_as_booleans():
    z = jnp.array([1j, 0, 1])
    for made in (z.astype(bool), jnp.astype(z, bool), jnp.asarray(np.array([1j, 0, 1]), bool),
                 jnp.array([1j, 0, 1], dtype=bool), nj.jit(lambda z: z.astype(bool))(z)):
        assert made.tolist() == [True, False, True]
    assert jnp.full(2, 1j, dtype=bool).tolist() == [True, True]


def test_text_and_dates_with_a_dtype():
    assert jnp.array("5", dtype=int).tolist() == 5
    assert jnp.array([b"5", 6], dtype=float).tolist() == [5.0, 6.0]
    assert jnp.array(np.array([5, 6], object), dtype=int).tolist() == [5, 6]
    assert jnp.array(np.array(["1970-01-03"], "M8[D]"), dtype=int).tolist() == [2]


def test_arrays_among_others_stay_within_bounds():
    assert jnp.array([jnp.float32(1e10), 1], dtype="int8").tolist() == [127, 1]


def test_weak_booleans():
    one, ones = jnp.asarray(1.0), lax.full((2,), 1.0)
    assert jnp.logical_or(one, True).weak_type
    assert jnp.logical_and(jnp.array(True), 1).weak_type
    assert not jnp.logical_or(one, jnp.float32(1)).weak_type
    assert not jnp.logical_xor(ones, ones).weak_type


def test_angle_of_a_number_has_the_default_dtype():
    assert jnp.angle(jnp.bfloat16(-1)).dtype == jnp.float32
    assert jnp.angle(jnp.array([-1], "bfloat16")).dtype == jnp.bfloat16


def test_the_same_type_reinterpreted_is_strong():
    assert not lax.bitcast_convert_type(1.5, jnp.float32).weak_type
