"""multihost_utils on one process (tests/mpi has several): primitives, live devices, meshes."""
from __future__ import annotations

import functools

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.core.cluster import Cluster
from numjet.experimental import mesh_utils, multihost_utils as mu

MESH = nj.make_mesh((1,), ("x",))
X = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("move", [mu.host_local_array_to_global_array,
                                  mu.global_array_to_host_local_array])
def test_arrays_of_one_process_go_through_every_transformation(move):
    there = lambda x: move(x, MESH, nj.P("x"))
    np.testing.assert_array_equal(there(X), X)
    np.testing.assert_array_equal(nj.jit(there)(X), X)
    for axis in (0, 1):
        mapped = nj.vmap(there, in_axes=axis, out_axes=axis)
        np.testing.assert_array_equal(mapped(X), X)
        if move is mu.host_local_array_to_global_array:
            assert mapped(X).sharding.spec[1 - axis] == "x"
    np.testing.assert_array_equal(nj.grad(lambda x: (there(x) ** 2).sum())(X), 2 * X)
    np.testing.assert_array_equal(nj.jvp(there, (X,), (2 * X,))[1], 2 * X)
    assert move.__name__ in str(nj.make_jaxpr(there)(X))


def test_shapes_of_parts_and_wholes():
    aval = nj.typeof(X)
    for rule in (mu.ltg_abstract_eval, mu.gtl_abstract_eval):
        found = rule(aval, global_mesh=MESH, pspec=nj.P(None, "x"))
        assert (found.shape, found.dtype) == (X.shape, X.dtype)
    local = mu.host_local_array_to_global_array_impl(np.asarray(X), global_mesh=MESH,
                                                     pspec=nj.P("x"))
    assert local.sharding.spec == nj.P("x") and mu.P is nj.P


class Devices:
    """A transport between two processes, of which the other one fails or does not."""

    def __init__(self, other_well):
        self.other_well = other_well

    def objects(self, value):
        return [value, value if self.other_well or value is None else False]


class Device:
    def __init__(self, process_index, slice_index=0):
        self.process_index, self.slice_index = process_index, slice_index


def test_live_devices_are_left_together(monkeypatch):
    with pytest.raises(RuntimeError, match="initialize"), mu.live_devices(nj.devices()):
        pass
    mine, other = Device(0), Device(1)
    monkeypatch.setattr(Cluster, "transport", Devices(True))
    with mu.live_devices([mine, other]) as live:
        assert live == [mine, other]
    with pytest.raises(ValueError, match="no device of this process"), mu.live_devices([other]):
        pass
    with pytest.raises(ZeroDivisionError), mu.live_devices([mine, other]):
        1 / 0
    monkeypatch.setattr(Cluster, "transport", Devices(False))
    with pytest.raises(mu.ProcessFailureError) as failure, mu.live_devices([mine, other]):
        pass
    assert failure.value.failed_devices == {other}


def test_meshes_of_devices():
    devices = [Device(p, s) for s in (1, 0) for p in (s, s + 2) for _ in range(2)]
    assert mesh_utils.create_device_mesh((2, 4), devices).tolist() == [devices[:4], devices[4:]]
    hybrid = functools.partial(mesh_utils.create_hybrid_device_mesh, devices=devices)
    found = hybrid((2, 2), (2, 1))
    assert found.shape == (4, 2)
    assert [[d.slice_index for d in row] for row in found] == [[0, 0]] * 2 + [[1, 1]] * 2
    unsorted = hybrid((4,), (2,), should_sort_granules_by_key=False)
    assert unsorted.tolist() == devices
    along = hybrid((2,), (4, 1), process_is_granule=True)
    assert [[d.process_index for d in row] for row in along] == [[p, p] for p in range(4)]
    for shapes, text in [(((4,), (3,)), "product of dcn_mesh_shape"),
                         (((3,), (2,)), "product of mesh_shape")]:
        with pytest.raises(ValueError, match=text):
            hybrid(*shapes)
    with pytest.raises(ValueError, match="process_is_granule"):
        mesh_utils.create_hybrid_device_mesh((1,), (1,), nj.devices()[:1])
    with pytest.raises(ValueError, match="Number of devices"):
        mesh_utils.create_device_mesh((nj.device_count() + 1,))


def test_arrays_that_are_here_stay_as_they_lie(eight_devices):
    mesh = nj.make_mesh((4, 2), ("x", "y"), (nj.sharding.AxisType.Auto,) * 2)
    x = nj.device_put(np.arange(8.0, dtype=np.float32), nj.NamedSharding(mesh, nj.P("x")))
    for spec in (nj.P(), nj.P("y")):
        assert mu.global_array_to_host_local_array(x, mesh, spec) is x
    made = mu.global_array_to_host_local_array(np.arange(8), mesh, nj.P("x"))
    assert made.sharding.spec == nj.P("x")
