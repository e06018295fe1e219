"""Names of layouts: specs, meshes, abstract ones, and arrays made of what devices hold."""
from __future__ import annotations

import pickle

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import multihost_utils
from numjet.experimental.layout import Format, Layout
from numjet.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    make_single_device_sharding,
    use_abstract_mesh,
)

DEVICES = [nj.api.placement.devices._device(i) for i in range(4)]
MESH = nj.make_mesh((2, 2), ("x", "y"), devices=DEVICES)
LAYOUT = nj.NamedSharding(MESH, nj.P("x", "y"))
BLOCK = np.arange(24.0, dtype=np.float32).reshape(4, 6)


def test_specs() -> None:
    spec = nj.P("x", None, unreduced={"y"})
    assert spec.partitions == ("x", None) and spec.unreduced == {"y"} and not spec.reduced
    assert spec != nj.P("x", None) and nj.P("x") == nj.P("x")
    assert nj.P("x") + nj.P("y") == LAYOUT.spec
    assert pickle.loads(pickle.dumps(spec)) == spec and hash(nj.P("x")) == hash(nj.P("x"))
    assert spec.update(partitions=("z",)) == nj.P("z", unreduced={"y"})
    assert repr(nj.P("a")) == "P('a',)" and "unreduced={'y'}" in repr(spec)
    with pytest.raises(ValueError, match="partitions cannot overlap with reduced axes"):
        nj.P("x", reduced={"x"})
    with pytest.raises(TypeError, match="PartitionSpec should be of type `frozenset`"):
        nj.P("x", unreduced="y")


def test_meshes() -> None:
    mesh = nj.make_mesh((2, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto), devices=DEVICES)
    assert mesh.explicit_axes == ("x",) and mesh.auto_axes == ("y",) and mesh.manual_axes == ()
    assert not mesh.are_all_axes_explicit and MESH.are_all_axes_explicit and mesh != MESH
    abstract = mesh.abstract_mesh
    assert abstract.abstract_device == AbstractDevice("cpu", None, "cpu")
    assert abstract.update_axis_types({"y": AxisType.Explicit}).are_all_axes_explicit
    assert not AbstractMesh((), ()).are_all_axes_explicit
    assert ManualAxisType().varying == frozenset()
    with pytest.raises(ValueError, match="no devices"):
        _ = abstract.devices
    with pytest.raises(ValueError, match="axis_types"):
        AbstractMesh((2,), ("x",), (AxisType.Auto, AxisType.Auto))
    with use_abstract_mesh(abstract):
        assert get_abstract_mesh() is abstract
    assert get_abstract_mesh().empty
    with pytest.raises(ValueError, match="Expected mesh of type `jax.sharding.AbstractMesh`"):
        use_abstract_mesh(mesh)


def test_arrays_made_of_parts() -> None:
    made = nj.make_array_from_callback((4, 6), LAYOUT, lambda index: BLOCK[index])
    np.testing.assert_array_equal(made, BLOCK)
    assert made.sharding == LAYOUT and made.dtype == jnp.float32
    parts = [s.data for s in made.addressable_shards]
    assert [p.shape for p in parts] == [(2, 3)] * 4
    again = nj.make_array_from_single_device_arrays((4, 6), LAYOUT, parts[::-1])
    np.testing.assert_array_equal(again, BLOCK)
    local = nj.make_array_from_process_local_data({"a": LAYOUT}, {"a": BLOCK}, (4, 6))["a"]
    np.testing.assert_array_equal(local, BLOCK)
    replicated = nj.device_put(BLOCK, nj.NamedSharding(MESH, nj.P("x")))
    assert [s.replica_id for s in replicated.addressable_shards] == [0, 1, 0, 1]


@pytest.mark.parametrize("call, error, words", [
    (lambda: nj.make_array_from_callback((4,), None, lambda i: BLOCK), TypeError, "sharding"),
    (lambda: nj.make_array_from_callback((4, 6), LAYOUT, lambda i: BLOCK), ValueError, "returned"),
    (lambda: nj.make_array_from_single_device_arrays((4, 6), LAYOUT, [BLOCK]), ValueError,
     "Expected 4 per-device arrays"),
    (lambda: nj.make_array_from_single_device_arrays((4, 6), LAYOUT, [jnp.asarray(BLOCK)] * 4),
     ValueError, "Expected shard shape"),
    (lambda: nj.make_array_from_process_local_data(LAYOUT, BLOCK, (8, 6)), ValueError,
     "single process"),
    (lambda: nj.reshard(BLOCK, None), ValueError, "out_shardings"),
    (lambda: nj.reshard(BLOCK, nj.P("x")), ValueError, "non-empty mesh"),
    (lambda: make_single_device_sharding(DEVICES[0], memory_kind="tape"), ValueError, "tape"),
    (lambda: auto_axes(lambda x: x, axes="z", out_sharding=LAYOUT)(BLOCK), ValueError,
     "no axis 'z'"),
    (lambda: auto_axes(lambda x: x)(BLOCK), TypeError, "out_sharding"),
])
def test_messages(call, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_layouts_within_functions() -> None:
    with nj.set_mesh(MESH):
        assert nj.reshard(jnp.asarray(BLOCK), nj.P("x")).sharding.spec == nj.P("x", None)
        f = auto_axes(lambda x: x + 1, axes="x", out_sharding=nj.P("y"))
        g = explicit_axes(axes="x", in_sharding=nj.P("y"))(lambda x: x.sharding.spec)
        assert f(jnp.asarray(BLOCK)).sharding.spec == nj.P("y", None)
        assert g(jnp.asarray(BLOCK)) == nj.P("y", None)
        np.testing.assert_array_equal(nj.jit(f)(BLOCK), BLOCK + 1)


def test_the_process() -> None:
    assert nj.process_indices() == [0]
    for old, value in (("host_count", 1), ("host_id", 0), ("host_ids", [0])):
        with pytest.warns(UserWarning, match="renamed"):
            assert getattr(nj, old)() == value
    mine = jnp.ones(3)
    assert any(x is mine for x in nj.live_arrays())
    cut = nj.device_put(mine, nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P()))
    gone = jnp.ones(5) + 1
    gone.delete()
    found = nj.live_arrays()
    assert any(x is cut for x in found) and not any(x is gone for x in found)
    assert "numjet" in nj.print_environment_info(return_string=True)


def test_memories_of_a_device() -> None:
    device = nj.devices()[0]
    kinds = [m.kind for m in device.addressable_memories()]
    assert kinds == ["device", "pinned_host", "unpinned_host"]
    assert device.default_memory() == device.memory("device") != device.memory("pinned_host")
    assert len({device.memory("device"), device.default_memory()}) == 1
    memory = device.memory("unpinned_host")
    assert (memory.platform, memory.process_index) == ("cpu", 0)
    assert memory.addressable_by_devices() == [device] and "UNPINNED_HOST" in repr(memory)
    with pytest.raises(RuntimeError, match="pinned_host, unpinned_host. Got memory kind: disk"):
        device.memory("disk")


def test_device_put_takes_a_pytree_of_places() -> None:
    tree = {"a": BLOCK, "b": [np.float32(1.0), np.float32(2.0)]}
    put = nj.device_put(tree, {"a": LAYOUT, "b": DEVICES[2]})
    assert put["a"].sharding == LAYOUT and put["b"][1].devices() == {DEVICES[2]}
    np.testing.assert_array_equal(put["a"], BLOCK)
    assert nj.device_put(tree, {"a": None, "b": [None, DEVICES[1]]})["b"][1].device is DEVICES[1]
    with pytest.raises(ValueError, match="Received invalid value: cpu"):
        nj.device_put(tree, {"a": "cpu", "b": None})
    with pytest.raises(ValueError, match="expected|structure"):
        nj.device_put(tree, {"a": LAYOUT})


def test_device_put_to_a_format() -> None:
    place = Format(Layout((0, 1)), LAYOUT)
    assert nj.device_put(BLOCK, place).sharding == LAYOUT
    assert nj.device_put([BLOCK], [Format(None, LAYOUT)])[0].sharding == LAYOUT
    turned = nj.device_put(BLOCK, Format(Layout((1, 0)), LAYOUT))
    assert turned.sharding == LAYOUT and turned.format.layout.major_to_minor == (1, 0)


def test_an_aval_is_laid_out_over_nothing() -> None:
    sharding = nj.typeof(jnp.ones((2, 3))).sharding
    assert sharding.is_fully_replicated and sharding.spec == nj.P(None, None)
    assert sharding.mesh.empty and sharding.shard_shape((2, 3)) == (2, 3)


def test_arrays_of_one_process_are_those_of_all() -> None:
    both = multihost_utils.host_local_array_to_global_array(
        {"a": BLOCK, "b": BLOCK}, MESH, {"a": nj.P("x"), "b": None})
    assert both["a"].sharding == nj.NamedSharding(MESH, nj.P("x"))
    assert both["b"].sharding.is_fully_replicated
    back = multihost_utils.global_array_to_host_local_array(both, MESH, nj.P())
    np.testing.assert_array_equal(back["a"], BLOCK)
    assert multihost_utils.reached_preemption_sync_point(3) is False
