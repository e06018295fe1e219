"""What a program is told of where its arguments and results lie: prefixes of shardings, memories,
donated buffers, the default device."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numjet as nj
from numjet import numpy as jnp

X = jnp.arange(4.0)


@pytest.mark.parametrize(
    "given",
    [
        {"out_shardings": (None, None)},
        {"out_shardings": [None]},
        {"out_shardings": {"b": None}},
        {"in_shardings": (None, None)},
        {"in_shardings": {"x": None}},
    ],
)
def test_shardings_that_are_no_prefix_are_refused_though_all_are_none(given):
    def same(x):
        return x

    assert nj.jit(same)(X).shape == (4,)  # the signature is known
    with pytest.raises(ValueError, match="prefix"):
        nj.jit(same, **given)(X)


def test_shardings_of_none_that_are_a_prefix():
    out = nj.jit(lambda x: {"a": (x, x)}, in_shardings=(None,), out_shardings={"a": None})(X)
    assert out["a"][1].shape == (4,)


@pytest.mark.parametrize("chosen", ["default_device", "platforms"])
def test_the_first_device_as_the_default_commits_no_array(chosen):
    """Arrays that nobody placed go where `in_shardings` says, whatever the default is."""
    value = nj.devices()[0] if chosen == "default_device" else "cpu"
    before = getattr(nj.config, chosen)
    nj.config.update(chosen, value)
    try:
        x = jnp.arange(8.0)
        assert not x.committed and not nj.device_put(np.ones(2)).committed
        pair = [nj.api.placement.devices._device(i) for i in range(2)]
        cut = nj.NamedSharding(nj.make_mesh((2,), ("i",), devices=pair), nj.P("i"))
        assert nj.jit(lambda x: x * 2, in_shardings=cut)(x).sharding.is_equivalent_to(cut, 1)
    finally:
        nj.config.update(chosen, before)


def test_a_donated_buffer_that_holds_no_result_lives_on():
    small, large = jnp.ones(3), jnp.ones((3, 3))
    with pytest.warns(UserWarning, match="donated buffers were not usable: float32\\[3\\]"):
        nj.jit(lambda b, w: b + w, donate_argnums=(0, 1))(small, large)
    assert large.is_deleted() and not small.is_deleted()
    first, second = jnp.ones(3), jnp.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nj.jit(lambda x, y: x + y, donate_argnums=(0, 1))(first, second)
    assert first.is_deleted() and not second.is_deleted()
    unread, read = jnp.ones(3), jnp.ones(3)
    nj.jit(lambda x, y: y * 2, donate_argnums=0)(unread, read)
    assert not unread.is_deleted()


def test_memories_are_named_by_the_sharding():
    host, device = nj.memory.Space.Host, nj.memory.Space.Device
    x = nj.device_put({"a": X}, host)["a"]
    assert x.sharding.memory_kind == "pinned_host" and x.committed
    assert x.sharding != X.sharding
    assert nj.device_put(x, device).sharding.memory_kind == "device"
    got = nj.device_put((X, X), (host, None))
    assert [y.sharding.memory_kind for y in got] == ["pinned_host", "device"]
    np.testing.assert_array_equal(nj.grad(lambda x: nj.device_put(x * x, host).sum())(X), 2 * X)
    np.testing.assert_array_equal(nj.vmap(lambda x: nj.device_put(x, device) + 1)(x), X + 1)


def test_shape_structs_know_their_layout():
    mesh = nj.make_mesh((1,), ("x",))
    spec = nj.ShapeDtypeStruct((2,), "float32", sharding=nj.P("x"))
    with pytest.raises(TypeError, match="the context mesh cannot be empty"):
        _ = spec.sharding
    with nj.set_mesh(mesh):
        assert spec.sharding == nj.NamedSharding(mesh, nj.P("x"))
    with pytest.raises(ValueError, match="sharding should be an instance of"):
        nj.ShapeDtypeStruct((2,), "float32", sharding=3)
    with pytest.raises(ValueError, match="rank at least 2"):
        nj.ShapeDtypeStruct((2,), "float32", sharding=nj.NamedSharding(mesh, nj.P(None, "x")))
    assert spec == spec.update() and spec.update(shape=(4,)).shape == (4,)
