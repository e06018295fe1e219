"""Exported functions over several devices, as in JAX 0.10.2: a program names axes, whose devices a
call tells."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet import P, export, lax, numpy as jnp
from numjet.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
table = np.arange(32.0, dtype=np.float32).reshape(8, 4)


def mesh(*ids, names="a"):
    return Mesh(np.array(nj.devices())[list(ids)], names, (AxisType.Auto,) * len(names))


def over(m, *spec):
    return NamedSharding(m, P(*spec))


def lies(y):
    return y.sharding.spec, y.sharding.mesh.axis_names, [d.id for d in y.sharding.mesh.devices.flat]


def triple(m):
    jitted = nj.jit(lambda x: x * 3, in_shardings=over(m, "a"), out_shardings=over(m, None, "a"))
    return export.export(jitted)(table)


def test_results_lie_over_the_exports_axes_on_the_devices_of_the_call():
    exported = triple(mesh(0, 1))
    for m in (mesh(1, 0, names="b"), mesh(4, 6), mesh(0, 1)):
        given = nj.device_put(table, over(m))
        for call in (exported.call, nj.jit(exported.call)):
            ids = [d.id for d in m.devices.flat]
            assert lies(call(given)) == (P(None, "a"), ("a",), ids)
            np.testing.assert_array_equal(call(given), table * 3)


def test_constraints_within_name_no_devices():
    placed = over(mesh(0, 1), "a")
    exported = export.export(nj.jit(lambda x: lax.with_sharding_constraint(x + 1, placed)))(table)
    other = nj.device_put(table, over(mesh(5, 3, names="q")))
    assert lies(exported.call(other)) == (P("q"), ("q",), [5, 3])
    summed = nj.shard_map(
        lambda x: lax.psum(x, "a"), mesh=mesh(0, 1), in_specs=P("a"), out_specs=P())
    result = export.export(nj.jit(summed))(table).call(other)
    np.testing.assert_array_equal(result, table[:4] + table[4:])
    alone = over(mesh(0), "a")  # of one device: anywhere
    exported = export.export(nj.jit(lambda x: lax.with_sharding_constraint(x, alone)))(table)
    assert exported.nr_devices == 1 and exported.call(other).sharding == over(mesh(5, 3, names="q"))
    assert exported.call(nj.device_put(table, nj.devices()[2])).devices() == {nj.devices()[2]}


def test_another_number_of_devices_is_refused_in_programs_too():
    exported = triple(mesh(0, 1))
    refused = pytest.raises(ValueError, match="exported for 2 devices and is called in a context")
    with refused:
        exported.call(table)
    with refused:
        nj.jit(exported.call)(table)
    with refused:
        nj.jit(exported.call, in_shardings=over(mesh(3), "a"))(table)
    with refused:
        nj.jit(exported.call)(nj.device_put(table, over(mesh(0, 1, 2, 3))))
    with refused:
        export.export(nj.jit(exported.call))(table)


def test_exports_that_call_exports_of_other_axes():
    inner = triple(mesh(0, 1))
    told = nj.ShapeDtypeStruct((8, 4), np.float32, sharding=over(mesh(2, 3, names="q"), "q"))
    outer = export.export(nj.jit(lambda x: inner.call(x) + 1))(told)
    assert outer.nr_devices == 2
    given = nj.device_put(table, over(mesh(6, 7)))
    assert lies(outer.call(given)) == (P(None, "a"), ("a",), [6, 7])


def test_pullbacks_say_how_cotangents_lie():
    m = mesh(0, 1)
    pullback = triple(m).vjp()
    assert pullback.in_shardings_jax(m) == (None, over(m, None, "a"))
    assert pullback.out_shardings_jax(m) == (over(m, "a"),)
    given = nj.device_put(table, over(mesh(2, 3)))
    (found,) = pullback.call(given, given)
    assert lies(found) == (P("a"), ("a",), [2, 3])
    assert pullback.vjp().in_shardings_jax(m)[2] == over(m, "a")


def test_layouts_over_axes_alone_are_told():
    axes = NamedSharding(AbstractMesh((2,), ("a",)), P("a"))
    told = nj.ShapeDtypeStruct((8, 4), np.float32, sharding=axes)
    exported = export.export(nj.jit(jnp.sin), platforms=["cpu"])(told)
    assert exported.in_shardings_jax(mesh(0, 1)) == (over(mesh(0, 1), "a"),)
    assert exported.in_shardings_hlo == exported.out_shardings_hlo == (None,)
    assert lies(exported.call(nj.device_put(table, over(mesh(0, 1)))))[0] == P("a")


def test_devices_that_a_function_was_told_are_no_part_of_its_export():
    there = SingleDeviceSharding(nj.devices()[1])
    exported = export.export(nj.jit(jnp.cos, in_shardings=there))(table)
    assert exported.call(table).devices() == {nj.devices()[0]}
    assert exported.call(nj.device_put(table, nj.devices()[3])).devices() == {nj.devices()[3]}
