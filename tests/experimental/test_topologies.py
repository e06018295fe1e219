"""The devices that programs are compiled for."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet.experimental import topologies
from numjet.sharding import NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")


def test_programs_compile_for_a_mesh_of_the_topology() -> None:
    here = topologies.get_attached_topology("cpu")
    assert here.devices == nj.devices()
    mesh = topologies.make_mesh(here, (2, 4), ("a", "b"), contiguous_submeshes=True)
    assert dict(mesh.shape) == {"a": 2, "b": 4}
    sharding = NamedSharding(mesh, nj.P("b"))
    told = nj.ShapeDtypeStruct((8,), np.float32, sharding=sharding)
    compiled = nj.jit(lambda x: x + 1).lower(told).compile()
    assert compiled.output_shardings == sharding
    assert compiled(nj.device_put(np.ones(8, "f"), sharding)).sharding == sharding


def test_what_is_not_here_is_refused() -> None:
    with pytest.raises(ValueError, match="must equal the product"):
        topologies.make_mesh(topologies.get_attached_topology(), (5,), ("a",))
    with pytest.raises(NotImplementedError, match="topology not implemented for cpu"):
        topologies.get_topology_desc(platform="cpu")
    with pytest.raises(RuntimeError):
        topologies.get_attached_topology("tpu")
