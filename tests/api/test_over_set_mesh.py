"""Arrays that are made within `set_mesh` lie over its mesh, whole on each device, and what follows
from it; what is mapped over devices and what over examples alone. Compared with JAX 0.10.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp, random
from numjet.base.errors import ShardingTypeError
from numjet.sharding import AxisType

pytestmark = pytest.mark.usefixtures("eight_devices")


def mesh(*types: AxisType) -> Any:
    return nj.make_mesh((4, 2), ("x", "y"), types or None)


def test_new_arrays_lie_over_the_mesh():
    with nj.set_mesh(mesh()):
        made = [
            jnp.ones((8, 4)), jnp.arange(3), jnp.linspace(0, 1, 3), random.normal(random.key(0), 3),
            nj.jit(lambda: jnp.ones(2))(), nj.jit(lambda x: x + 1)(np.ones(2, np.float32)),
        ]  # fmt: skip
        of_values = [jnp.array([1, 2]), jnp.asarray(np.ones(2)), random.key(0)]
    for x in made:
        assert x.sharding.spec == nj.P(*[None] * x.ndim) and len(x.devices()) == 8, x
        assert x.committed and len(x.addressable_shards) == 8
    assert [x.sharding.spec for x in of_values] == [nj.P()] * 3
    assert (made[0] + 1).sharding == made[0].T.T.sharding == made[0].sharding
    assert len(jnp.ones(2).devices()) == 1
    auto = mesh(AxisType.Auto, AxisType.Auto)
    with nj.set_mesh(auto):
        assert nj.jit(lambda x: x * 2)(jnp.ones((2, 2))).sharding == nj.NamedSharding(auto, nj.P())


def test_prepared_calls_know_whether_there_is_a_mesh():
    f, x = nj.jit(lambda x: x * 2), np.ones(3, np.float32)
    for _ in range(3):
        assert len(f(x).devices()) == 1
        with nj.set_mesh(mesh()):
            for _ in range(3):
                assert len(f(x).devices()) == 8


def test_meshes_whose_types_differ_do_not_meet():
    auto = mesh(AxisType.Auto, AxisType.Auto)
    for own, around in ((mesh(), auto), (auto, mesh())):
        x = nj.device_put(jnp.ones((8, 4)), nj.NamedSharding(own, nj.P("x")))
        with nj.set_mesh(around), pytest.raises(ValueError, match="context mesh"):
            x + 1
    with nj.set_mesh(mesh()):
        x = jnp.ones(8)
    with pytest.raises(ValueError, match="incompatible devices"):
        x + nj.device_put(jnp.ones(8), nj.devices()[1])


def test_what_lies_over_the_mesh_is_not_cut_by_itself():
    with nj.set_mesh(mesh()):
        whole, cut = jnp.ones((8, 4)), nj.device_put(jnp.ones((8, 4)), nj.P("x"))
        with pytest.raises(ShardingTypeError, match="same sharding"):
            jnp.concatenate([whole, cut])
        with pytest.raises(TypeError, match="equal types"):
            lax.scan(lambda c, _: (c + cut, None), whole, None, length=2)
        with pytest.raises(TypeError, match="equal types"):
            lax.while_loop(lambda c: c.sum() < 9, lambda c: c + cut, whole)
        with pytest.raises(ValueError, match="unexpected JAX type"):
            nj.vjp(jnp.sin, cut)[1](whole)
    nowhere = jnp.ones((8, 4))
    assert str(nj.typeof(jnp.concatenate([nowhere, cut]))) == "float32[16@x,4]"


def test_maps_over_devices_are_not_nested():
    inner = nj.pmap(lambda x: x + 1)
    for outer in (nj.pmap(inner), nj.pmap(lambda x: nj.jit(inner)(x))):
        with pytest.raises(ValueError, match="context mesh"):
            outer(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="context mesh"):
        nj.shard_map(inner, mesh=mesh(AxisType.Auto, AxisType.Auto), in_specs=nj.P("x"),
                     out_specs=nj.P("x"))(jnp.ones((8, 2)))  # fmt: skip
    assert nj.vmap(inner)(jnp.ones((3, 2))).shape == (3, 2)
    with pytest.raises(ValueError, match="at least one argument with a mapped axis"):
        nj.pmap(lambda x: x, in_axes=None, axis_size=2)(jnp.ones(2))
    with pytest.raises(ValueError, match="at least one argument with a mapped axis"):
        nj.pmap(lambda x: x)("text")


@pytest.mark.parametrize("to, error", [
    ("varying", ValueError), ("unreduced", ValueError), ("reduced", NotImplementedError),
])  # fmt: skip
def test_axes_of_vmap_alone_are_not_cast(to: str, error: type[Exception]):
    with pytest.raises(error, match="vmap alone"):
        nj.vmap(lambda x: lax.pcast(x, "i", to=to), axis_name="i")(jnp.arange(3.0))
    cast = nj.pmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")
    np.testing.assert_array_equal(cast(jnp.arange(3.0)), np.arange(3.0))


def test_a_layout_is_printed_as_reshard():
    with nj.set_mesh(mesh()):
        x = nj.device_put(jnp.ones((8, 4)), nj.P("x"))
        text = str(nj.make_jaxpr(lambda a: nj.reshard(a, nj.P(None, "y")))(x))
    assert text == "{ lambda ; a:f32[8@x,4]. let b:f32[8,4@y] = reshard a in (b,) }"


def test_a_devices_own_part_is_computed_with_under_a_mesh_of_that_device():
    devices = nj.devices()
    over = nj.make_mesh((2,), ("x",), (AxisType.Auto,), devices=devices[:2])
    placed = nj.device_put(jnp.arange(6.0), nj.NamedSharding(over, nj.P("x")))
    own = placed.addressable_shards[1].data
    for kind in AxisType.Auto, AxisType.Explicit:
        with nj.set_mesh(nj.make_mesh((1,), ("alone",), (kind,), devices=devices[1:2])):
            part, double = lax.slice_in_dim(own, 1, 3), nj.jit(lambda x: 2 * x)(own)
        np.testing.assert_array_equal(part, [4, 5])
        np.testing.assert_array_equal(double, [6, 8, 10])
        assert part.devices() == double.devices() == {devices[1]}
    with nj.set_mesh(over), pytest.raises(ValueError, match="incompatible devices"):
        lax.slice_in_dim(own, 1, 3)


def test_words_of_keys_over_another_mesh_than_the_current_one() -> None:
    """They are read where they lie, as in JAX; arithmetic on them is refused."""
    place = nj.NamedSharding(nj.make_mesh((8,), ("k",)), nj.P("k"))
    keys = nj.device_put(random.split(random.key(5), 8), place)
    with nj.set_mesh(mesh()):
        words = random.key_data(keys)
        again = random.wrap_key_data(words)
        with pytest.raises(ValueError, match="mesh"):
            words + 1
    assert words.sharding.spec == nj.P("k", None) and again.sharding.spec == nj.P("k")
    np.testing.assert_array_equal(random.key_data(again), random.key_data(random.split(
        random.key(5), 8)))  # fmt: skip


def test_what_is_made_of_positions_lies_over_the_mesh():
    with nj.set_mesh(mesh()):
        made = [jnp.tri(3), jnp.indices((2, 2)), *jnp.indices((2, 2), sparse=True)]
        x = jnp.ones((2, 2))
        made += [d(lambda x: x.sum(0))(x) for d in (nj.jacfwd, nj.jacrev)]
        made.append(nj.hessian(lambda x: (x**2).sum())(x))
    for x in made:
        assert x.sharding.spec == nj.P(*[None] * x.ndim) and len(x.devices()) == 8, x.shape
