"""Which results are bound to a CPU device while a plugin has devices, too: as without one."""

from __future__ import annotations

import pytest
from api.test_bound_results import *  # noqa: F403 - all its tests again
from api.test_bound_results import on, x
from xla.plugin import device, needs_plugin

import numjet as nj
from numjet import P, numpy as jnp
from numjet.core.hooks import Remote
from numjet.sharding import AbstractMesh, AxisType, NamedSharding

pytestmark = [needs_plugin, pytest.mark.usefixtures("eight_devices", "plugin")]


@pytest.fixture
def plugin():
    assert device() is not None and Remote.active


def test_results_over_axes_alone():
    mesh = nj.make_mesh((2,), ("a",), (AxisType.Auto,))
    over = NamedSharding(AbstractMesh((2,), ("a",)), P("a"))
    out = nj.jit(jnp.sin, out_shardings=over)(nj.device_put(x, NamedSharding(mesh, P("a"))))
    assert out.sharding == NamedSharding(mesh, P("a"))


def test_results_lie_in_the_devices_memory():
    state = nj.device_put(x, on(0).with_memory_kind("pinned_host"))
    moved = nj.jit(lambda s: nj.device_put(s, nj.memory.Space.Device) * 2)(state)
    assert moved.sharding.memory_kind == "device" and moved.committed


def test_arrays_of_both_are_refused_together():
    there = nj.device_put(x, device())
    mesh = NamedSharding(nj.make_mesh((2,), ("a",)), P("a"))
    for here in (nj.device_put(x, on(0)), nj.device_put(x, on(1)), nj.device_put(x, mesh)):
        for call in (jnp.add, nj.jit(jnp.add), lambda a, b: jnp.where(a > 0.5, a, b)):
            for pair in ((here, there), (there, here)):
                with pytest.raises(ValueError, match="incompatible devices"):
                    call(*pair)
    bound = nj.jit(lambda v: nj.lax.with_sharding_constraint(v, on(1)))
    with pytest.raises(ValueError, match="incompatible devices"):
        bound(there)
    assert nj.jit(jnp.sin)(there).devices() == {device()}
