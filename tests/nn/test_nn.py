"""Activations, softmax and its kin, attention, initializers: against JAX; derivatives at kinks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import check_derivative
from oracle import run_in_oracle

import numjet
import numjet.numpy as jnp
from numjet import nn, random

ACTIVATIONS = """relu relu6 sigmoid softplus silu swish gelu elu selu celu leaky_relu hard_tanh
hard_sigmoid hard_silu hard_swish log_sigmoid soft_sign squareplus mish sparse_plus sparse_sigmoid
identity tanh log1mexp glu softmax log_softmax logsumexp standardize logmeanexp""".split()
X = np.array([[-8.0, -1.5, -1.0, -1e-3, 0.0, 1e-3], [0.3, 1.0, 2.0, 3.0, 6.0, 90.0]], np.float32)


@pytest.mark.oracle
def test_values_and_gradients_are_jax_s():
    script = f"""
for name in {ACTIVATIONS!r}:
    f = getattr(jax.nn, name)
    v = jnp.abs(x) + 0.1 if name == 'log1mexp' else x
    out[name] = f(v)
    weights = jnp.arange(1., 1 + f(v).size).reshape(f(v).shape)
    out['grad_' + name] = jax.grad(lambda v: jnp.sum(f(v) * weights))(v)
"""
    want = run_in_oracle(script, x=X)
    for name in ACTIVATIONS:
        f = getattr(nn, name)
        v = jnp.abs(X) + 0.1 if name == "log1mexp" else jnp.asarray(X)
        np.testing.assert_allclose(f(v), want[name], rtol=2e-5, atol=2e-6, err_msg=name)
        got = numjet.grad(
            lambda v: jnp.sum(f(v) * jnp.arange(1.0, 1 + f(v).size).reshape(f(v).shape))
        )(v)
        np.testing.assert_allclose(got, want["grad_" + name], rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.oracle
def test_options_are_jax_s():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 5, 4, 3)).astype(np.float32)
    k, v = rng.standard_normal((2, 2, 6, 2, 3)).astype(np.float32)
    mask = X > 0
    keys = np.array([3, 6])
    script = """
out['gelu'] = jax.nn.gelu(x, approximate=False)
out['softmax'] = jax.nn.softmax(x, axis=0, where=mask)
out['lse'] = jnp.stack(jax.nn.logsumexp(x / 10, axis=1, b=-x, return_sign=True))
out['std'] = jax.nn.standardize(x, axis=0, epsilon=1e-3)
out['hot'] = jax.nn.one_hot(jnp.array([[0, 2], [-1, 5]]), 4, axis=0)
out['att'] = jax.nn.dot_product_attention(q, k, v, is_causal=True)
out['att2'] = jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=keys, scale=0.3)
out['att3'] = jax.nn.dot_product_attention(q, k, v, local_window_size=(2, 1))
"""
    want = run_in_oracle(script, x=X, mask=mask, q=q, k=k, v=v, keys=keys)
    got = dict(
        gelu=nn.gelu(X, approximate=False),
        softmax=nn.softmax(X, axis=0, where=mask),
        lse=jnp.stack(nn.logsumexp(X / 10, axis=1, b=-X, return_sign=True)),
        std=nn.standardize(X, axis=0, epsilon=1e-3),
        hot=nn.one_hot(jnp.array([[0, 2], [-1, 5]]), 4, axis=0),
        att=nn.dot_product_attention(q, k, v, is_causal=True),
        att2=nn.dot_product_attention(q, k, v, key_value_seq_lengths=keys, scale=0.3),
        att3=nn.dot_product_attention(q, k, v, local_window_size=(2, 1)),
    )
    for name, value in got.items():
        np.testing.assert_allclose(value, want[name], rtol=1e-4, atol=1e-5, err_msg=name)


INITIALIZERS = """uniform() normal() truncated_normal() glorot_normal() glorot_uniform()
lecun_normal() lecun_uniform() he_normal() he_uniform() constant(2.5) orthogonal()
variance_scaling(2.0,'fan_geo_avg','uniform')""".split()


@pytest.mark.oracle
def test_initializers_are_jax_s():
    script = f"""
import jax.nn.initializers as init
for text in {INITIALIZERS!r}:
    out[text] = eval('init.' + text)(jax.random.key(3), (6, 4))
out['delta'] = init.delta_orthogonal()(jax.random.key(3), (3, 4, 4))
"""
    want = run_in_oracle(script)
    init = nn.initializers  # noqa: F841 - named in the texts
    for text in INITIALIZERS:
        got = eval("init." + text)(random.key(3), (6, 4))
        np.testing.assert_allclose(got, want[text], rtol=1e-4, atol=1e-5, err_msg=text)
    got = nn.initializers.delta_orthogonal()(random.key(3), (3, 4, 4))
    np.testing.assert_allclose(got, want["delta"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "gelu",
        "silu",
        "softplus",
        "mish",
        "softmax",
        "log_softmax",
        "logsumexp",
        "standardize",
        "elu",
        "squareplus",
    ],
)
def test_derivatives(name):
    check_derivative(getattr(nn, name), np.linspace(-2.1, 2, 12).reshape(3, 4))


def test_gelu_keeps_its_slope_alone():
    x = jnp.asarray(X)
    _, back = numjet.vjp(nn.gelu, x)
    assert [c.shape for c in numjet.make_jaxpr(back)(x).consts] == [x.shape]
    check_derivative(lambda x: numjet.grad(lambda y: nn.gelu(y).sum())(x), X)


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "gelu", "standardize", "glu"])
def test_compiled_and_mapped(name):
    f, x = getattr(nn, name), jnp.asarray(X)
    np.testing.assert_allclose(numjet.jit(f)(x), f(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        numjet.vmap(f)(x), jnp.stack([f(r) for r in x]), rtol=1e-5, atol=1e-6
    )


def test_infinities_do_not_become_nan():
    x = jnp.array([-np.inf, 0.0, -np.inf])
    np.testing.assert_allclose(nn.softmax(x), [0, 1, 0])
    assert (
        nn.logsumexp(jnp.full(3, -np.inf)) == -np.inf
        and nn.logsumexp(jnp.array([np.inf, 1.0])) == np.inf
    )
    assert not np.isnan(numjet.grad(lambda x: nn.logsumexp(x))(x)).any()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: nn.relu([1.0]), TypeError, "relu requires"),
        (lambda: nn.glu(jnp.ones(3)), AssertionError, "divisible by 2"),
        (lambda: nn.one_hot(jnp.arange(3), 4, axis=3), ValueError, "out of range"),
        (
            lambda: nn.dot_product_attention(
                jnp.ones((2, 3, 4, 5)), jnp.ones((2, 3, 3, 5)), jnp.ones((2, 3, 3, 5))
            ),
            ValueError,
            "multiple",
        ),
        (lambda: nn.initializers.he_normal()(random.key(0), (3,)), ValueError, "fan"),
        (lambda: nn.initializers.normal()(random.key(0), (3,), "int32"), ValueError, "floating"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_ravel_pytree():
    from numjet.flatten_util import ravel_pytree

    tree = {"a": jnp.ones((2, 2)), "b": [jnp.arange(3), 2.0]}
    flat, unravel = ravel_pytree(tree)
    assert flat.shape == (8,) and flat.dtype == jnp.float32
    back = unravel(flat * 2)
    assert back["b"][0].dtype == jnp.int32 and back["a"].shape == (2, 2)
    np.testing.assert_array_equal(back["b"][0], [0, 2, 4])
    with pytest.raises(ValueError, match="expected an array of shape"):
        unravel(jnp.ones(3))
    grads = numjet.grad(lambda v: jnp.sum(unravel(v)["a"] ** 2))(flat)
    np.testing.assert_array_equal(grads, [2, 2, 2, 2, 0, 0, 0, 0])


def test_dtypes_module():
    from numjet import dtypes

    assert dtypes.issubdtype(random.key(0).dtype, dtypes.prng_key)
    assert not dtypes.issubdtype(jnp.float32, dtypes.prng_key)
    assert dtypes.canonicalize_dtype("float64") == np.float32
    assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.dtype("float32"), True)
    assert dtypes.scalar_type_of(jnp.ones(1)) is float and dtypes.itemsize_bits("float32") == 32
    bits = [dtypes.itemsize_bits(d) for d in (np.int16, np.complex64, jnp.int4, float)]
    assert bits == [16, 64, 4, 64]


def test_activations_of_integers_are_floats():
    x = jnp.array([-6, -2, 0, 2, 9])
    for name in "relu6 elu celu leaky_relu selu hard_sigmoid hard_silu sparse_plus".split():
        function = getattr(nn, name)
        out = function(x)
        assert out.dtype == jnp.float32, name
        np.testing.assert_array_equal(out, function(x.astype(jnp.float32)))
        assert function(x.astype(jnp.float16)).dtype == jnp.float16


def test_weak_types_of_activations():
    for f in (nn.softplus, nn.mish, nn.soft_sign):
        weak = [f(x).weak_type for x in (True, jnp.array([True]), jnp.array([1]), 1.0)]
        assert weak == [True, True, False, True]
    assert not nn.gelu(3).weak_type and not nn.gelu(2.0, approximate=False).weak_type


def test_leaky_relu_keeps_integers():
    out = nn.leaky_relu(jnp.array([3, -2]), 4)
    assert out.dtype == jnp.int32 and out.tolist() == [3, -8]
    assert nn.leaky_relu(jnp.array([3, -2])).dtype == jnp.float32


def test_functions_of_the_negative_refuse_booleans():
    for f in (nn.log_sigmoid, nn.log1mexp):
        with pytest.raises(TypeError, match="boolean"):
            f(jnp.array([True]))


def test_logmeanexp_of_nothing_is_undefined():
    assert jnp.isnan(nn.logmeanexp(jnp.zeros(0)))


def test_relu_at_its_kink_and_beside_it_under_every_transformation():
    x = jnp.array([-1.0, -0.0, 0.0, 2.0, jnp.nan, jnp.inf, -jnp.inf])
    want, slope = np.maximum(x, 0), np.array([0, 0, 0, 1, 0, 1, 0], np.float32)
    ones = jnp.ones(7)

    def total(x):
        return nn.relu(x).sum()

    for f in (nn.relu, numjet.jit(nn.relu), numjet.vmap(nn.relu), numjet.jit(numjet.vmap(nn.relu))):
        np.testing.assert_array_equal(f(x), want)
        np.testing.assert_array_equal(numjet.jvp(f, (x,), (ones,))[1], slope)
        np.testing.assert_array_equal(numjet.vjp(f, x)[1](ones)[0], slope)
    grad, jit, vmap = numjet.grad, numjet.jit, numjet.vmap
    for g in (grad(total), jit(grad(total)), grad(jit(total)), vmap(grad(nn.relu))):
        np.testing.assert_array_equal(g(x), slope)
    second = grad(lambda x: grad(total)(x * x).sum())
    np.testing.assert_array_equal(second(x[:4]), np.zeros(4))
    closed = grad(lambda y: grad(lambda x: (nn.relu(x) * nn.relu(y)).sum())(x[:4]).sum())
    np.testing.assert_array_equal(closed(x[:4]), slope[:4] * slope[:4])


@pytest.mark.parametrize("function, curvature", [
    (lambda x: jnp.logaddexp(x, 0.0), 0.25), (lambda x: jnp.logaddexp(0.0, x), 0.25),
    (lambda x: jnp.logaddexp2(x, 0.0), np.log(2) / 4), (nn.softplus, 0.25),
    (nn.log_sigmoid, -0.25),
])  # fmt: skip
def test_curvature_where_the_terms_of_logaddexp_are_equal(function, curvature):
    assert float(numjet.grad(numjet.grad(function))(0.0)) == pytest.approx(curvature, rel=1e-6)
    forward = numjet.jacfwd(numjet.jacfwd(numjet.jit(function)))(0.0)
    assert float(forward) == pytest.approx(curvature, rel=1e-6)
    assert abs(float(numjet.grad(numjet.grad(numjet.grad(function)))(0.0))) < 1e-6


@pytest.mark.parametrize("function", [
    nn.softplus, nn.log_sigmoid, lambda x: jnp.logaddexp(x, 1.0), lambda x: jnp.logaddexp(1.0, x),
    lambda x: jnp.logaddexp2(x, 1.0),
])  # fmt: skip
def test_derivatives_of_logaddexp_at_nan_are_nan_in_every_order(function):
    for order in range(1, 4):
        function = numjet.grad(function)
        assert np.isnan(function(np.nan)), order


def test_log1mexp_has_its_derivative_everywhere():
    """1 / (exp(x) - 1), also where the function is NaN or its parts overflow; as in JAX."""
    x = jnp.array([-100.0, 1e-3, 0.5, 2.0, 200.0])
    got = numjet.vmap(numjet.grad(nn.log1mexp))(x)
    np.testing.assert_allclose(got, 1 / np.expm1(np.asarray(x, np.float64)), rtol=1e-5, atol=1e-40)


def test_squareplus_of_booleans_is_single():
    """Booleans become float32 under 64 bits too, as among activations of JAX."""
    with numjet.enable_x64(True):
        assert nn.squareplus(jnp.array([True])).dtype == jnp.float32
        assert nn.squareplus(jnp.array([1])).dtype == jnp.float64


def test_one_hot_warns_of_floats() -> None:
    with pytest.warns(DeprecationWarning, match="one_hot input should be integer-typed; got dtype"):
        nn.one_hot(1.0, 3)


def test_block_scales_are_described_and_refused() -> None:
    config = nn.get_scaled_dot_general_config("nvfp4")
    assert (config.block_size, config.global_scale.tolist()) == (16, [1.0])
    with pytest.raises(ValueError, match="Unsupported mode: int3"):
        nn.get_scaled_dot_general_config("int3")
    with pytest.raises(NotImplementedError, match="block-scaled quantization is not supported"):
        nn.scaled_dot_general(jnp.ones((2, 4, 64)), jnp.ones((2, 3, 64)),
                              (((2,), (2,)), ((0,), (0,))), configs=[config] * 3)  # fmt: skip


def test_one_hot_along_a_mapped_axis() -> None:
    x = jnp.array([[2, 0], [1, 3]], jnp.uint8)
    hot = lambda x: nn.one_hot(x, 4, axis="c", dtype=jnp.int8)  # noqa: E731
    mapped = numjet.vmap(hot, in_axes=None, out_axes=1, axis_size=4, axis_name="c")
    want = np.moveaxis(np.eye(4, dtype=np.int8)[np.asarray(x)], -1, 1)
    for run in (mapped, numjet.jit(mapped)):
        np.testing.assert_array_equal(run(x), want)
        assert run(x).dtype == np.int8
    with pytest.raises(ValueError, match="num_classes to match the size of axis c, but 4 != 5"):
        numjet.vmap(hot, axis_name="c")(jnp.zeros(5, int))
    with pytest.raises(NameError, match="unbound axis name: zork"):
        nn.one_hot(x, 4, axis="zork")
