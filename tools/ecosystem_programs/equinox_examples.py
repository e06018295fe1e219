"""Equinox after its documentation: modules, filtered transformations, state, serialisation."""
import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


def test_mlp_learns_a_line():
    model = eqx.nn.MLP(1, 1, 16, 2, key=jax.random.key(0))
    x = jnp.linspace(-1, 1, 64)[:, None]
    y = 2 * x + 1
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        loss, grads = eqx.filter_value_and_grad(
            lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optimizer.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, loss

    for _ in range(200):
        model, state, loss = step(model, state)
    assert loss < 1e-3


def test_layers_have_the_right_shapes():
    key = jax.random.key(1)
    x = jax.random.normal(key, (3, 16, 16))
    y = eqx.nn.Conv2d(3, 8, 3, padding=1, key=key)(x)
    assert y.shape == (8, 16, 16)
    assert eqx.nn.MaxPool2d(2, 2)(y).shape == (8, 8, 8)
    assert abs(float(eqx.nn.LayerNorm(y.shape)(y).mean())) < 1e-5
    attention = eqx.nn.MultiheadAttention(2, 8, key=key)
    assert attention(y[:, :, 0].T, y[:, :, 0].T, y[:, :, 0].T).shape == (16, 8)
    cell = eqx.nn.GRUCell(4, 5, key=key)
    assert cell(jnp.ones(4), jnp.zeros(5)).shape == (5,)


def test_batch_norm_keeps_state():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
    x = jax.random.normal(jax.random.key(0), (10, 3)) * 2 + 1
    y, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)


def test_filter_vmap_makes_ensembles():
    keys = jax.random.split(jax.random.key(0), 5)
    ensemble = eqx.filter_vmap(lambda k: eqx.nn.Linear(2, 3, key=k))(keys)
    assert ensemble.weight.shape == (5, 3, 2)
    out = eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ensemble, jnp.ones(2))
    assert out.shape == (5, 3)


def test_serialisation_and_tree_surgery():
    model = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    again = eqx.tree_deserialise_leaves(file, eqx.nn.Linear(2, 3, key=jax.random.key(1)))
    assert eqx.tree_equal(model, again)
    changed = eqx.tree_at(lambda m: m.bias, model, jnp.zeros(3))
    assert not changed.bias.any() and eqx.tree_equal(changed.weight, model.weight)


def test_errors_at_run_time():
    @eqx.filter_jit
    def f(x):
        x = eqx.error_if(x, x < 0, "x must not be negative")
        return jnp.sqrt(x)

    assert f(jnp.array(4.0)) == 2
    try:
        f(jnp.array(-1.0)).block_until_ready()
    except Exception as error:
        assert "x must not be negative" in str(error)
    else:
        raise AssertionError("no error")


def test_checkpointed_loop_has_a_gradient():
    import equinox.internal as eqxi

    def f(x):
        return eqxi.while_loop(lambda c: c[1] < 10, lambda c: (jnp.sin(c[0]) + c[0], c[1] + 1),
                               (x, 0), kind="checkpointed", max_steps=16)[0]

    def plain(x):
        for _ in range(10):
            x = jnp.sin(x) + x
        return x

    np.testing.assert_allclose(jax.jit(jax.grad(f))(0.1), jax.grad(plain)(0.1), rtol=1e-5)
