"""What statements about public names, drawn at random, showed beside JAX. Values given here are
JAX's."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import dtypes, errors, lax, nn, random
from numjet.experimental.ode import odeint

X, V = jnp.arange(12.0).reshape(3, 4), jnp.arange(4.0)
FLAGS, EMPTY = jnp.array([True, False, True]), jnp.zeros((0, 3))
KEY, KEYS = random.key(0), random.split(random.key(0), (3, 2))
SPD = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
LISTS = errors.TracerArrayConversionError
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))

REFUSED: list[tuple[type[Exception], Callable, str]] = [
    (LISTS, lambda: random.gamma(KEY, [1.0, 2.0]), "parameters are numbers or arrays"),
    (LISTS, lambda: random.loggamma(KEY, (1.0, 2.0)), "loggamma"),
    (LISTS, lambda: random.truncated_normal(KEY, [0.0, 1.0], 2.0), "truncated_normal"),
    (LISTS, lambda: random.randint(KEY, (2,), 0, [5, 6]), "randint"),
    (LISTS, lambda: random.dirichlet(KEY, [1.0, 2.0]), "dirichlet"),
    (LISTS, lambda: random.double_sided_maxwell(KEY, [1.0], 1.0), "double_sided_maxwell"),
    (TypeError, lambda: random.gamma(KEY, []), "not a valid JAX type"),
    (NotImplementedError, lambda: jnp.array([1], order="C"), "only 'K'"),
    (NotImplementedError, lambda: jnp.asarray([1], order="A"), "only 'K'"),
    (NotImplementedError, lambda: jnp.copy(V, order="F"), "only 'K'"),
    (NotImplementedError, lambda: jnp.gradient(V, edge_order=1), "edge_order"),
    (TypeError, lambda: jnp.histogram(V, "auto"), "rules for the bins"),
    (TypeError, lambda: jnp.histogram2d(V, V, "fd"), "rules for the bins"),
    (TypeError, lambda: jnp.insert(V, 0, [1.0]), "requires ndarray or scalar"),
    (TypeError, lambda: jnp.place(V, V > 1, [1.0], inplace=False), "requires ndarray or scalar"),
    (NotImplementedError,
     lambda: jnp.linalg.svd(SPD, full_matrices=False, subset_by_index=(0, 2)), "subset_by_index"),
    (ValueError, lambda: jnp.linalg.svd(SPD, subset_by_index=(0, 2)), "cannot both be given"),
    (ValueError, lambda: lax.linalg.svd(SPD, subset_by_index=(1, 2)), "cannot both be given"),
    (RuntimeError, lambda: nn.dot_product_attention(
        *[jnp.ones((1, 2, 1, 4))] * 3, implementation="cudnn"), "cuDNN is not detected"),
    (ValueError, lambda: jnp.fft.rfft(V.astype(jnp.bfloat16)), "must be float32 or float64"),
    (ValueError, lambda: jnp.fft.ihfft(V.astype(jnp.float16)), "must be float32 or float64"),
    (TypeError, lambda: lax.conv_general_shape_tuple((1, 1, 4), (1, 1, 2), (1,), "SAME", None),
     "must name the axes"),
    (IndexError, lambda: EMPTY.at[0].set(1.0), "out of bounds for axis 0 with size 0"),
    (IndexError, lambda: EMPTY.at[-1, 0].add(1.0), "with size 0"),
    (IndexError, lambda: jnp.zeros(0).at[3].set(1.0, mode="drop"), "with size 0"),
    (TypeError, lambda: EMPTY[jnp.array([0])], "with size 0"),
    (IndexError, lambda: EMPTY[0], "with size 0"),
    (TypeError, lambda: FLAGS.at[0].add(True), "does not accept dtype bool"),
    (TypeError, lambda: FLAGS.at[jnp.array([0])].multiply(True), "does not accept dtype bool"),
    (TypeError, lambda: FLAGS.at[0].divide(True), "does not accept dtype bool"),
    (TypeError, lambda: lax.scatter_add(FLAGS, jnp.array([[0]]), FLAGS[:1], ROWS),
     "does not accept dtype bool"),
    (TypeError, lambda: nj.ops.segment_sum(FLAGS, jnp.array([0, 0, 1])), "bool"),
    (TypeError, lambda: odeint(lambda y, t: -y, 1, V), "floats or complex"),
    (TypeError, lambda: odeint(lambda y, t: 1j * y, 1.0, V), "complex slopes"),
    (TypeError, lambda: odeint(lambda y, t: -y, 1.0, [0.0, 1.0]), "array of floats"),
    (ValueError, lambda: jnp.argmax(KEYS), "no order"),
    (ValueError, lambda: lax.argmin(KEYS, 0, jnp.int32), "no order"),
    (TypeError, lambda: jnp.cumsum(KEYS), "key<fry>"),
    (TypeError, lambda: lax.cumprod(KEYS), "key<fry>"),
    (ValueError, lambda: jnp.pad(KEYS, 1), "keys"),
    (ValueError, lambda: lax.bitcast_convert_type(KEY, jnp.uint32), "key_data"),
    (AttributeError, lambda: KEYS.tolist(), "keys"),
    (AttributeError, lambda: KEYS.tobytes(), "keys"),
]  # fmt: skip


@pytest.mark.parametrize("error,call,phrase", REFUSED)
def test_what_jax_refuses_is_refused_with_its_exception(error, call, phrase):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error
    assert phrase in str(raised.value)


@pytest.mark.parametrize("name", "conj cumsum diagonal nonzero repeat round sort std view".split())
def test_methods_for_numbers_are_not_there_for_keys(name):
    arguments = (2,) if name == "repeat" else ()
    with pytest.raises(NotImplementedError, match="PRNG keys"):
        getattr(KEYS, name)(*arguments)
    for attribute in ("real", "imag", "mT"):
        with pytest.raises(NotImplementedError, match="PRNG keys"):
            getattr(KEYS, attribute)
    assert KEYS.T.shape == (2, 3) and KEYS.swapaxes(0, 1).shape == (2, 3)


def test_numbers_of_64_bits_as_positions_keep_their_low_bits():
    assert not jnp.array(0).dtype.itemsize == 8
    far = np.int64(2**40)
    for index, row in ((far, 0), (far + 1, 1), (np.uint64(2**32 + 2), 2), (np.int64(-1), 2)):
        np.testing.assert_array_equal(X[index], X[row])
        np.testing.assert_array_equal(nj.jit(lambda x, i=index: x[i])(X), X[row])
    np.testing.assert_array_equal(X[1, far], 4.0)
    np.testing.assert_array_equal(X.at[far + 1].set(0.0)[1], np.zeros(4))
    np.testing.assert_array_equal(lax.dynamic_slice(X, (far, 0), (1, 1)), [[0.0]])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(X, far, 0, False), X[0])


def test_all_singular_values_are_a_subset():
    whole = jnp.linalg.svd(SPD[:2], full_matrices=False)
    part = jnp.linalg.svd(SPD[:2], full_matrices=False, subset_by_index=(0, 2))
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(
        lax.linalg.svd(SPD, compute_uv=False, subset_by_index=(0, 3)), [4.7320504, 3.0, 1.2679491],
        rtol=1e-6)  # fmt: skip


def test_a_quotient_without_remainder_leaves_nothing():
    quotient, rest = jnp.polydiv(
        jnp.array([1, 5, 6]), jnp.array([1, 2]), trim_leading_zeros=True
    )  # fmt: skip
    np.testing.assert_array_equal(quotient, [1.0, 3.0])
    assert rest.shape == (0,)


def test_flags_are_joined_by_extremes_and_numbers():
    np.testing.assert_array_equal(FLAGS.at[1].max(True), [True, True, True])
    np.testing.assert_array_equal(FLAGS.at[0].min(False), [False, False, True])
    with pytest.warns(FutureWarning, match="incompatible types"):
        np.testing.assert_array_equal(FLAGS.at[1].add(1), [True, True, True])
    np.testing.assert_array_equal(EMPTY.at[jnp.array([0])].set(1.0), EMPTY)
    np.testing.assert_array_equal(EMPTY.at[:, 0].set(1.0), EMPTY)


def test_the_scalar_type_of_bfloat16_is_numpys():
    assert dtypes.bfloat16 is ml_dtypes.bfloat16


def test_singular_systems_are_solved_by_divisions_by_zero():
    inf, nan = np.inf, np.nan
    twice, none = jnp.array([[1.0, 2.0], [2.0, 4.0]]), jnp.zeros((2, 2))
    for inverse in (jnp.linalg.inv, nj.jit(jnp.linalg.inv)):
        np.testing.assert_array_equal(inverse(twice), [[-inf, inf], [inf, -inf]])
        np.testing.assert_array_equal(inverse(none), [[nan, nan], [nan, inf]])
        np.testing.assert_array_equal(inverse(jnp.zeros((1, 1))), [[inf]])
        np.testing.assert_array_equal(
            inverse(jnp.array([[0.0, 1.0], [0.0, 0.0]])), [[nan, -inf], [nan, inf]]
        )
        stacked = inverse(jnp.stack([twice, jnp.eye(2)]))
        np.testing.assert_array_equal(stacked, [[[-inf, inf], [inf, -inf]], np.eye(2)])
    np.testing.assert_array_equal(jnp.linalg.solve(twice, jnp.ones(2)), [-inf, inf])
    for solve in (jnp.linalg.solve, nj.jit(jnp.linalg.solve)):
        assert not np.isfinite(solve(jnp.ones((40, 40)), jnp.arange(40.0))).any()


def test_of_negative_exponents_in_arrays_six_bits_count():
    x, y = jnp.array([2, 3, -3, 1, -1, 0, 5]), jnp.array([-1, -2, -3, -4, -5, -1, -2])
    wanted = [0, 703701817, 1197088493, 1, -1, 0, -558738647]
    for power in (jnp.power, nj.jit(jnp.power), nj.vmap(jnp.power)):
        assert power(x, y).tolist() == wanted
        assert power(x, jnp.abs(y)).tolist() == [2, 9, -27, 1, -1, 0, 25]
    small = jnp.power(x.astype(jnp.int8), y.astype(jnp.int8))
    assert small.tolist() == [0, 57, -19, 1, -1, 0, 41] and small.dtype == jnp.int8
    assert jnp.power(jnp.uint8(3), jnp.array([200], jnp.uint8)).tolist() == [161]


@pytest.mark.parametrize("dtype", [float, int, np.int64, complex])
def test_callbacks_promise_no_64_bits_without_x64(dtype):
    spec = nj.ShapeDtypeStruct((4,), dtype)
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        nj.pure_callback(lambda x: x, spec, V)
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        nj.jit(lambda x: nj.experimental.io_callback(lambda x: x, spec, x))(V)
    assert nj.pure_callback(lambda x: x, V, V).tolist() == V.tolist()
