"""`out_sharding` and `device`: results have the layout that was asked for, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from asked_layouts import check

import numjet
import numjet.numpy as jnp

X = np.arange(16, dtype=np.float32).reshape(4, 4)
FUNCTIONS = {
    "array": lambda x, s: jnp.array(x, out_sharding=s),
    "asarray": lambda x, s: jnp.asarray(x, out_sharding=s),
    "zeros": lambda x, s: jnp.zeros(4, out_sharding=s),
    "ones": lambda x, s: jnp.ones(4, out_sharding=s),
    "empty": lambda x, s: jnp.empty(4, out_sharding=s),
    "full": lambda x, s: jnp.full(4, 2.0, out_sharding=s),
    "zeros_like": lambda x, s: jnp.zeros_like(x, out_sharding=s),
    "ones_like": lambda x, s: jnp.ones_like(x, out_sharding=s),
    "full_like": lambda x, s: jnp.full_like(x, 2, out_sharding=s),
    "arange": lambda x, s: jnp.arange(4, out_sharding=s),
    "arange of floats": lambda x, s: jnp.arange(0.5, 4, out_sharding=s),
    "reshape": lambda x, s: jnp.reshape(x, (2, 8), out_sharding=s),
    "ravel": lambda x, s: jnp.ravel(x, out_sharding=s),
    "broadcast_to": lambda x, s: jnp.broadcast_to(x, (2, 4, 4), out_sharding=s),
    "repeat": lambda x, s: jnp.repeat(x, 2, out_sharding=s),
    "dot": lambda x, s: jnp.dot(x, x, out_sharding=s),
    "matmul": lambda x, s: jnp.matmul(x, x, out_sharding=s),
    "tensordot": lambda x, s: jnp.tensordot(x, x, 1, out_sharding=s),
    "linalg.tensordot": lambda x, s: jnp.linalg.tensordot(x, x, axes=1, out_sharding=s),
    "einsum": lambda x, s: jnp.einsum("ij,kj->ik", x, x, out_sharding=s),
    "percentile": lambda x, s: jnp.percentile(x, 30, axis=0, out_sharding=s),
    "bincount": lambda x, s: jnp.bincount(x[0].astype(int), length=4, out_sharding=s),
    "at.set": lambda x, s: x.at[1].set(0.0, out_sharding=s),
    "at.add": lambda x, s: x.at[jnp.array([1, 1])].add(2.0, out_sharding=s),
    "at.apply": lambda x, s: x.at[1].apply(jnp.square, out_sharding=s),
    "at.get": lambda x, s: x.at[1:3].get(out_sharding=s),
    "method reshape": lambda x, s: x.reshape(16, out_sharding=s),
    "method flatten": lambda x, s: x.flatten(out_sharding=s),
    "astype": lambda x, s: jnp.astype(x, int, device=s),
    "method astype": lambda x, s: x.astype(int, device=s),
    "fftfreq": lambda x, s: jnp.fft.fftfreq(4, x[0, 1], device=s),
    "rfftfreq": lambda x, s: jnp.fft.rfftfreq(6, x[0, 1], device=s),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_the_layout_that_was_asked_for(name: str) -> None:
    check(FUNCTIONS[name], jnp.asarray(X))


def test_the_layout_of_a_type_outside_of_a_mesh_asks_for_nothing():
    x = jnp.ones((2, 3))
    layout = numjet.typeof(x).sharding
    assert layout.mesh.empty
    draw = lambda key: numjet.random.normal(key, (2, 3), out_sharding=layout)  # noqa: E731
    key = numjet.random.key(0)
    made = [
        draw(key),
        numjet.jit(draw)(key),
        jnp.zeros((2, 3), device=layout),
        jnp.zeros((2, 3), out_sharding=layout),
        jnp.arange(3, out_sharding=layout),
        jnp.reshape(x, (3, 2), out_sharding=layout),
        jnp.einsum("ij,kj->ik", x, x, out_sharding=layout),
        numjet.lax.full((2, 3), 1.0, sharding=layout),
        x.at[0].get(out_sharding=layout),
        numjet.nn.initializers.ones(key, (2, 3), out_sharding=layout),
    ]
    assert {y.sharding for y in made} == {x.sharding}
    with pytest.raises(ValueError):
        numjet.lax.with_sharding_constraint(x, layout)
