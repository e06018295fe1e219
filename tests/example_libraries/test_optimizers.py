"""Optimizers and schedules beside JAX's, five steps on a tree; packing; wrong structures."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet.numpy as jnp
from numjet import jit
from numjet.example_libraries import optimizers

SCRIPT = """
o = optimizers
made = {"sgd": o.sgd(0.1), "momentum": o.momentum(o.constant(0.1), 0.9),
        "nesterov": o.nesterov(0.1, 0.8), "adagrad": o.adagrad(0.1), "rmsprop": o.rmsprop(0.1),
        "rmsprop_momentum": o.rmsprop_momentum(0.01), "adam": o.adam(0.1),
        "adamax": o.adamax(o.exponential_decay(0.1, 2, 0.5)),
        "inverse": o.sgd(o.inverse_time_decay(0.1, 2, 0.5)),
        "stairs": o.sgd(o.inverse_time_decay(0.1, 2, 0.5, staircase=True)),
        "polynomial": o.sgd(o.polynomial_decay(0.1, 3, 0.01, 2.0)),
        "pieces": o.sgd(o.piecewise_constant([1, 3], [0.1, 0.2, 0.05]))}
params = {"w": jnp.asarray([[1.0, -2.0], [0.5, 3.0]]), "b": (jnp.asarray([0.3, 1.0]),)}
made["sm3"] = o.sm3(0.1)
found = {}
for name, (init, update, get) in made.items():
    state = init(params)
    for i in range(5):
        p = get(state)
        grads = {"w": p["w"] * jnp.asarray([1.0, 4.0]), "b": (p["b"][0] - 2.0,)}
        state = jit(update)(i, o.clip_grads(grads, 3.0), state)
    found[f"{name} w"], found[f"{name} b"] = get(state)["w"], get(state)["b"][0]
found["norm"] = o.l2_norm(params)
"""


@pytest.mark.oracle
def test_steps_are_jaxs():
    ours = {"optimizers": optimizers, "jnp": jnp, "jit": jit}
    exec(SCRIPT, ours)
    theirs = run_in_oracle("from jax.example_libraries import optimizers\nfrom jax import jit\n"
                           f"g = dict(globals())\nexec({SCRIPT!r}, g)\nout.update(g['found'])")
    assert ours["found"].keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_allclose(ours["found"][name], value, rtol=2e-6, atol=1e-6, err_msg=name)


def test_packing_and_wrong_structures():
    init, update, get = optimizers.momentum(0.1, 0.9)
    params = [jnp.ones(2), {"a": jnp.zeros(3)}]
    state = update(0, params, init(params))
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert again.tree_def == state.tree_def and again.subtree_defs == state.subtree_defs
    assert get(again)[0].tolist() == get(state)[0].tolist()
    with pytest.raises(TypeError, match="passed a gradient tree that did not match"):
        update(0, params[:1], state)
    grown = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, x), lambda x: x))()
    with pytest.raises(TypeError, match="produced an output structure that did not match"):
        grown[1](0, params, grown[0](params))
    with pytest.raises(ValueError, match="one shorter"):
        optimizers.piecewise_constant([1, 2], [0.1])
    with pytest.raises(TypeError):
        optimizers.make_schedule(jnp.ones(2))


def test_a_state_is_a_named_tuple_of_lists() -> None:
    state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.ones(2)})
    (leaves,), structure, (inner,) = state
    assert type(leaves) is list and len(leaves) == 2 and inner.num_leaves == 2
    assert str(structure) == "PyTreeDef({'w': *})"
    assert repr(state).startswith("OptimizerState(packed_state=([Array([1., 1.], dtype=float32), ")
