"""Answers and exception types where programs written for JAX depend on them: conversions of
differentiated values, structures, weak types of gradients, arguments that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import errors, flatten_util, lax, tree_util
from numjet.scipy import sparse

x3 = jnp.array([1.0, 2.0, 3.0])
m23 = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("convert, error", [
    (float, errors.ConcretizationTypeError),
    (complex, errors.ConcretizationTypeError),
    (np.sin, errors.TracerArrayConversionError),
    (np.asarray, errors.TracerArrayConversionError),
    (lambda x: x.tolist(), errors.ConcretizationTypeError),
])
def test_the_host_gets_no_value_that_is_differentiated(convert, error):
    """It would compute with it, and the derivative would be zero without a word."""
    for f in (lambda: nj.grad(lambda x: x * convert(x))(2.0),
              lambda: nj.jvp(lambda x: x * convert(x), (2.0,), (1.0,))):
        with pytest.raises(error, match="differentiated.*stop_gradient"):
            f()
    assert nj.grad(lambda x: x * float(lax.stop_gradient(x)))(2.0) == 2.0
    assert nj.grad(lambda x: x * float(x > 1) + (x if x else 0.0))(2.0) == 2.0
    assert nj.grad(lambda x, y: x * float(y))(2.0, 3.0) == 3.0


def test_traced_arguments_that_custom_jvp_does_not_differentiate():
    f = nj.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defjvp(lambda n, primals, tangents: (primals[0] * n, 5.0 * tangents[0]))
    assert [float(g) for g in nj.grad(f, argnums=(0, 1))(2.0, 1.0)] == [0.0, 5.0]
    assert nj.jit(nj.grad(lambda x: f(x * 3.0, x)))(2.0) == 5.0


@pytest.mark.parametrize("f, weak", [
    (lambda x: jnp.stack([x, x]).sum(), True),
    (lambda x: jnp.array([x, 2.0]).sum(), True),
    (lambda x: jnp.prod(jnp.stack([x, x])), True),
    (lambda x: jnp.convolve(jnp.stack([x, x]), jnp.ones(2)).sum(), True),
    (lambda x: lax.dynamic_slice(jnp.stack([x, x]), (0,), (1,)).sum(), False),
    (lambda x: lax.top_k(jnp.stack([x, x]), 1)[0].sum(), False),
])
def test_weak_types_of_gradients(f, weak):
    assert nj.grad(f)(2.0).weak_type == weak


def test_walks_and_nested_sequences_of_a_structure():
    treedef = tree_util.tree_structure((1, {"a": 2}))
    assert treedef.walk(lambda children, data: (children, data), lambda x: -x, [1, 2]) == (
        (-1, ((-2,), ["a"])), None)
    assert treedef.from_iterable_tree([1, [2]]) == (1, {"a": 2})
    with pytest.raises(ValueError, match="2 children, got 3"):
        treedef.from_iterable_tree([1, [2], 3])


@pytest.mark.parametrize("first, second, phrase", [
    ([1, 2], [1, 2, 3], "different lengths of list"),
    ((1, 2), (1,), "Tuple arity mismatch: 1 != 2"),
    ([1], (1,), "different types"),
    ({"a": 1}, {"b": 1}, "different pytree metadata"),
    ({"a": 1}, {"a": 1, "b": 2}, "different numbers of pytree children"),
])
def test_structures_that_differ(first, second, phrase):
    with pytest.raises(ValueError, match=f"pytree structure error|{phrase}") as raised:
        nj.tree.map(lambda x, y: x, first, second)
    assert phrase in str(raised.value)


def test_a_vector_of_another_dtype_unravels_where_leaves_had_one():
    unravel = flatten_util.ravel_pytree({"a": x3, "b": m23})[1]
    assert unravel(jnp.arange(9))["b"].dtype == jnp.int32
    unravel = flatten_util.ravel_pytree({"a": x3, "b": jnp.arange(2)})[1]
    with pytest.raises(TypeError, match="expected dtype"):
        unravel(jnp.arange(5))


def test_ranges_with_a_step_and_no_stop():
    np.testing.assert_array_equal(jnp.arange(5, step=2), [0, 2, 4])
    np.testing.assert_array_equal(nj.jit(lambda: jnp.arange(5, step=2))(), [0, 2, 4])
    with pytest.raises(ZeroDivisionError):
        jnp.arange(1, 5, 0)
    with pytest.raises(ValueError, match="complex"):
        jnp.arange(3j)


def test_complex_numbers_with_nan_are_ordered_part_by_part():
    nan = float("nan")
    x = jnp.array([1 + 1j, complex(nan, 0), 0j, complex(0, nan)])
    for f in (jnp.argsort, nj.jit(jnp.argsort)):
        np.testing.assert_array_equal(f(x), [2, 3, 0, 1])


def test_negative_positions_that_do_not_count_from_the_end():
    at = x3.at[-1]
    assert at.get(wrap_negative_indices=False) == 1.0
    assert jnp.isnan(at.get(mode="fill", wrap_negative_indices=False))
    np.testing.assert_array_equal(at.set(9.0, wrap_negative_indices=False), x3)


def test_integer_results_have_jacobians_of_zeros():
    jacobian = nj.jacfwd(lambda x: x.astype(int))(x3)
    assert jacobian.dtype == jnp.int32 and not jacobian.any() and jacobian.shape == (3, 3)


@pytest.mark.parametrize("f, error, phrase", [
    (lambda: nj.jacrev(lambda x: x, argnums=3)(x3), ValueError, "argnums=3"),
    (lambda: nj.checkpoint(lambda x: x, concrete=True), NotImplementedError, "concrete"),
    (lambda: lax.custom_root(lambda y: y, 1.0, lambda f, x: (x, x), lambda g, y: y), TypeError,
     "output pytree structure must match initial_guess"),
    (lambda: lax.custom_linear_solve(lambda v: (v, v), x3, lambda mv, b: b), TypeError,
     "output pytree structure must match b"),
    (lambda: lax.custom_linear_solve(lambda v: v, x3, lambda mv, b: b[:2]), ValueError,
     "output shapes must match b"),
    (lambda: sparse.linalg.cg(lambda v: v[:2], x3), ValueError,
     "output shapes must match b"),
    (lambda: nj.vmap(lambda x: lax.pshuffle(x, "i", [0, 0, 1]), axis_name="i")(x3), ValueError,
     "does not represent a permutation"),
    (lambda: nj.shard_map(lambda x: x, in_specs="x", out_specs=nj.P()), TypeError,
     "in_specs argument must be a pytree of `PartitionSpec` instances"),
    (lambda: jnp.linalg.svd(x3), TypeError, "must have rank at least 2"),
    (lambda: jnp.linalg.inv(m23), ValueError, "square"),
    (lambda: jnp.block((x3,)), ValueError, "does not allow tuples"),
    (lambda: jnp.vectorize(jnp.add, signature="(n),(n)->()")(x3, x3), ValueError,
     "does not match core dimensions"),
    (lambda: jnp.reshape(x3, 3, order="K"), ValueError, "order"),
    (lambda: m23[[0, 1], [0, 1, 2]], ValueError, "Incompatible shapes for broadcasting"),
    (lambda: jnp.round(x3, 1.5), TypeError, "integer"),
    (lambda: jnp.float32(None), ValueError, "None is not a valid value"),
    (lambda: jnp.eye(2, k=1.5), ValueError, "k must be a scalar integer"),
    (lambda: nj.vmap(jnp.sin, in_axes="a"), TypeError, "in_axes must be an int, None, or a tuple"),
    (lambda: nj.vmap(jnp.sin, out_axes="a"), TypeError, "out_axes must be an int, None, or"),
    (lambda: lax.psum(1.0, "i"), NameError, "Found an unbound axis name: i"),
])
def test_arguments_that_do_not_fit(f, error, phrase):
    with pytest.raises(error) as raised:
        f()
    assert phrase in str(raised.value)


keys = nj.random.split(nj.random.key(0))


@pytest.mark.parametrize("f", [
    jnp.sum, jnp.max, jnp.mean, nj.jit(jnp.sum), lambda k: k < k, nj.jit(lambda k: k >= k),
    lambda k: jnp.minimum(k, k),
])
def test_keys_are_no_numbers(f):
    with pytest.raises(TypeError):
        f(keys)


@pytest.mark.parametrize("f, error, phrase", [
    (lambda: nj.random.key_data(x3), TypeError, "invalid PRNG key data"),
    (lambda: jnp.where(True, keys, 1), ValueError, "not a valid dtype for JAX type promotion"),
    (lambda: keys + 1, TypeError, "PRNG keys"),
    (lambda: lax.integer_pow(x3, 2.5), TypeError, "integer"),
    (lambda: lax.round(2.5, 5), ValueError, "not a valid RoundingMethod"),
    (lambda: lax.linalg.triangular_solve(jnp.eye(2), x3), ValueError,
     "Incompatible shapes for arguments to triangular_solve"),
    (lambda: lax.gather(x3, jnp.array([[0.0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,)),
     ValueError, "indices must have an integer type"),
    (lambda: lax.gather(x3, jnp.array([[0]]), lax.GatherDimensionNumbers((), (1,), (0,)), (1,)),
     TypeError, "collapsed_slice_dims"),
    (lambda: nj.random.categorical(keys[0], m23, axis=3), IndexError, "out of bounds"),
])
def test_operations_refuse_what_they_cannot_take(f, error, phrase):
    with pytest.raises(error) as raised:
        f()
    assert phrase in str(raised.value)


def test_a_scan_of_negative_length_makes_no_round():
    assert lax.scan(lambda c, x: (c + 1, c), 5, None, length=-1)[0] == 5


def test_functions_with_the_methods_of_ufuncs_are_ufuncs():
    assert isinstance(jnp.add, jnp.ufunc) and isinstance(jnp.negative, jnp.ufunc)
    assert isinstance(jnp.frompyfunc(lambda a, b: a, 2, 1), jnp.ufunc)
    assert not isinstance(jnp.sin, jnp.ufunc) and not isinstance(np.add, jnp.ufunc)
    assert (jnp.negative.nin, jnp.negative.nargs, jnp.add.nin) == (1, 1, 2)
    np.testing.assert_array_equal(jnp.negative.at(x3, 0, inplace=False), [-1, 2, 3])
    with pytest.raises(ValueError, match="two arrays"):
        jnp.negative.reduce(x3)


def test_identity_matrices_have_no_negative_sizes():
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        jnp.eye(-1)


def test_dtypes_and_axes_that_lax_does_not_take():
    for x, y in ((jnp.arange(3), jnp.arange(3)), (2, 3), (jnp.uint8(2), 2), (True, 2)):
        with pytest.raises(TypeError, match="pow does not accept dtype"):
            lax.pow(x, y)
    assert lax.pow(2.0, jnp.int8(3)) == 8 and jnp.pow(2, 3) == 8
    for f in (lambda: lax.iota(bool, 3), lambda: jnp.arange(2, dtype=bool)):
        with pytest.raises(TypeError, match="iota does not accept dtype bool"):
            f()
    with pytest.raises(ValueError, match="iota dimension must be between 0 and"):
        lax.broadcasted_iota(np.int32, (2, 2), -1)


def test_numbers_of_values_that_are_arrays():
    for repeats in ([[1, 2, 1]], [[1], [2], [1]]):
        np.testing.assert_array_equal(jnp.repeat(x3, np.array(repeats)), [1, 2, 2, 3])
    cut = nj.jit(lambda n: jnp.repeat(x3, n, total_repeat_length=4))(jnp.array([[1, 2, 1]]))
    np.testing.assert_array_equal(cut, [1, 2, 2, 3])
    assert nj.jit(lambda: jnp.geomspace(1.0, 100.0, jnp.array(3)))().shape == (3,)


@pytest.mark.parametrize("f, x, operation", [
    (lambda x: jnp.sqrt(x) * 2, -1.0, "sqrt"),
    (lambda x: nj.jit(jnp.log)(x), -1.0, "log"),
    (lambda x: x + jnp.log(x).sum(), -jnp.ones(3), "log"),
    (lambda x: lax.scan(lambda c, _: (jnp.log(c), c), x, None, 3), -1.0, "scan"),
])
def test_the_operation_that_made_a_nan_is_named(f, x, operation):
    with nj.debug_nans(True):
        for donated in (None, 0):
            step = nj.jit(f, donate_argnums=donated)
            with pytest.raises(FloatingPointError, match=rf"encountered in {operation}\b"):
                step(x + 0)
            with pytest.raises(FloatingPointError, match=rf"encountered in {operation}\b"):
                step(x + 0)


def test_jacobians_by_reverse_mode_are_weak_where_the_argument_is():
    f = lambda x: jnp.tanh(jnp.stack([x, 2.0]) @ jnp.ones((2, 3)))[0]  # noqa: E731
    for jacobian in (nj.jacrev, nj.hessian):
        assert jacobian(f)(0.3).weak_type and not jacobian(f)(jnp.float32(0.3)).weak_type


def test_literals_of_short_floats_print_as_floats():
    for dtype, name in (("bfloat16", "bf16"), ("float8_e5m2", "f8_e5m2"), ("float16", "f16")):
        assert f"mul a 2.0:{name}[]" in str(nj.make_jaxpr(lambda x: x * 2)(jnp.ones(3, dtype)))
