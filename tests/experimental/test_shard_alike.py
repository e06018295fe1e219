"""experimental.shard_alike: two arrays are laid out in the same way."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_devices import cpu_devices

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental.shard_alike import shard_alike
from numjet.sharding import AxisType, NamedSharding


@pytest.fixture
def mesh():
    with cpu_devices(8):
        yield nj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def test_what_is_cut_of_one_is_cut_of_the_other(mesh):
    place = NamedSharding(mesh, nj.P("x", "y"))
    cut = nj.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), place)
    for f in (shard_alike, nj.jit(shard_alike)):
        for pair in (f(cut, jnp.ones((8, 8))), f(jnp.ones((8, 8)), cut)):
            assert [x.sharding for x in pair] == [place, place]
            assert {x.sum().item() for x in pair} == {64.0, 2016.0}


def test_derivatives_and_maps():
    x = jnp.arange(4.0)
    grad = nj.grad(lambda x: (shard_alike(x, 2 * x)[1] ** 2).sum())(x)
    assert grad.tolist() == [0, 8, 16, 24]
    ours, theirs = nj.vmap(shard_alike, in_axes=(0, None))(x, 1.0)
    assert ours.tolist() == [0, 1, 2, 3] and theirs.tolist() == [1, 1, 1, 1]


def test_trees_and_shapes_have_to_agree():
    ours, theirs = shard_alike({"a": 1.0, "b": np.ones(2)}, {"a": 2, "b": np.zeros(2)})
    assert float(ours["a"]) == 1 and theirs["b"].tolist() == [0, 0]
    with pytest.raises(ValueError, match="structure"):
        shard_alike([1.0], (2.0,))
    with pytest.raises(ValueError, match="same shape"):
        shard_alike(jnp.ones(3), jnp.ones(4))
