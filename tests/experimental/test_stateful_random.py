"""experimental.random: generators that keep their state, which draw JAX's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import random


def test_draws_are_those_of_jax():
    rng = random.stateful_rng(42)
    near = {"rtol": 1e-6}
    np.testing.assert_allclose(rng.uniform(), 0.5302608, **near)
    np.testing.assert_allclose(nj.jit(rng.uniform)(), 0.72766423, **near)
    np.testing.assert_allclose(nj.jit(lambda r: r.uniform())(rng), 0.6672406, **near)
    np.testing.assert_allclose(rng.uniform(), 0.3890121, **near)
    assert nj.random.key_data(rng.key()).tolist() == [2954079971, 3276725750]
    assert nj.random.key_data(rng.key()).tolist() == [2765691542, 824333390]
    assert repr(rng).startswith("StatefulPRNG(_base_key=Array((), dtype=key<fry>) overlaying:\n")
    assert repr(rng).endswith("_counter=Ref(6, dtype=int32, weak_type=True))")


def test_keys_are_split_from_one():
    keys = random.stateful_rng(42)
    keys.key()
    assert nj.random.key_data(keys.key(3)).tolist() == [
        [3187376881, 129218101], [2350016172, 1168365246], [257214496, 567757975]]
    assert keys.key((2, 2)).shape == (2, 2)
    assert keys.key(0).shape == (0,)


def test_shapes_are_those_of_bounds_and_sizes():
    rng = random.stateful_rng(1)
    assert rng.uniform(jnp.zeros(3), jnp.ones((2, 1))).shape == (2, 3)
    assert rng.normal(jnp.arange(3.0), 2.0).shape == (3,)
    assert rng.normal(size=[2, 3]).shape == (2, 3)
    assert rng.random(3, "float16").dtype == "float16"
    few = rng.integers(5, size=100)
    assert int(few.min()) == 0 and int(few.max()) == 4
    assert rng.integers(2, 9, (4,), dtype="int8").dtype == "int8"


def test_children_are_independent():
    rng = random.stateful_rng(123)
    drawn = nj.vmap(lambda rng, x: x + rng.uniform())(rng.split(3), jnp.zeros(3))
    np.testing.assert_allclose(drawn, [0.35525954, 0.21937883, 0.5336956], rtol=1e-6)
    children = random.stateful_rng(123).spawn(2)
    assert [c.integers(0, 10, 2).tolist() for c in children] == [[4, 5], [2, 1]]
    with pytest.raises(ValueError, match="split stateful generator"):
        rng.split(2).uniform()
    with pytest.raises(ValueError, match="negative"):
        rng.spawn(-1)


def test_loops_draw_anew_in_each_round():
    rng = random.stateful_rng(5)
    rows = nj.lax.scan(lambda c, _: (c, rng.uniform()), 0, None, length=4)[1]
    again = random.stateful_rng(5)
    np.testing.assert_allclose(rows, [float(again.uniform()) for _ in range(4)], rtol=1e-6)


def test_seeds():
    assert not np.array_equal(random.stateful_rng().uniform(), random.stateful_rng().uniform())
    np.testing.assert_allclose(nj.jit(lambda s: random.stateful_rng(s).uniform())(3), 0.008695364,
                               rtol=1e-5)
    with pytest.raises(TypeError, match="explicit seed"):
        nj.jit(lambda: random.stateful_rng().uniform())()
    assert random.stateful_rng(3, impl="rbg").uniform().shape == ()
