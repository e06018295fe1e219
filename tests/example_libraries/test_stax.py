"""stax beside JAX's: shapes, parameters and results of networks of all layers."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import random
from numjet.example_libraries import stax

SCRIPT = """
s = stax
images = s.serial(
    s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), strides=(2, 2)),
    s.ConvTranspose(3, (2, 2), strides=(2, 2)), s.Gelu, s.AvgPool((3, 3), padding="SAME"),
    s.FanOut(2), s.parallel(s.Identity, s.serial(s.Conv(3, (1, 1)), s.Elu)), s.FanInSum,
    s.FanOut(2), s.parallel(s.Softplus, s.LeakyRelu), s.FanInConcat(), s.SumPool((2, 2)),
    s.Flatten, s.Dense(5), s.Selu, s.Dropout(0.9), s.LogSoftmax)
rows = s.serial(s.Dense(8), s.Tanh, s.shape_dependent(lambda shape: s.Dense(shape[-1] // 2)),
                s.Sigmoid, s.BatchNorm(axis=0, center=False), s.Exp, s.Softmax)
found = {}
for name, (init, apply), shape in (("images", images, (2, 8, 8, 3)), ("rows", rows, (16, 6))):
    out_shape, params = init(random.PRNGKey(1), shape)
    x = random.normal(random.PRNGKey(2), shape)
    found[f"{name} shape"] = np.asarray(out_shape)
    found[f"{name} out"] = np.asarray(apply(params, x, rng=random.PRNGKey(3)))
    for i, leaf in enumerate(tree.leaves(params)):
        found[f"{name} {i}"] = np.asarray(leaf)
"""


@pytest.mark.oracle
def test_networks_have_jaxs_shapes_parameters_and_results():
    ours = {"stax": stax, "random": random, "np": np, "tree": nj.tree}
    exec(SCRIPT, ours)
    theirs = run_in_oracle("from jax.example_libraries import stax\nfrom jax import random, tree\n"
                           f"g = dict(globals())\nexec({SCRIPT!r}, g)\nout.update(g['found'])")
    assert ours["found"].keys() == theirs.keys() and len(theirs) > 12
    for name, value in theirs.items():
        np.testing.assert_allclose(ours["found"][name], value, rtol=2e-4, atol=2e-6, err_msg=name)


def test_dropout_needs_a_key():
    init, apply = stax.Dropout(0.5)
    with pytest.raises(ValueError, match="requires apply_fun to be called with a PRNG key"):
        apply((), jnp.ones(3))
    assert stax.Dropout(0.5, mode="test")[1]((), jnp.ones(3), rng=random.key(0)).tolist() == [1] * 3


def test_convolutions_with_64_bits():
    with nj.enable_x64(True):
        init, apply = stax.serial(stax.Conv(3, (3, 3)), stax.ConvTranspose(2, (2, 2)))
        shape, params = init(nj.random.key(0), (1, 8, 8, 1))
        assert shape == (1, 7, 7, 2)
        assert apply(params, jnp.ones((1, 8, 8, 1))).dtype == "float64"
