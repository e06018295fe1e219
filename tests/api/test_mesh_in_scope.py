"""interpreters.pxla.thread_resources: the mesh of `with mesh:`, for programs that ask there."""

from __future__ import annotations

import warnings

from cpu_devices import cpu_devices

import numjet as nj
from numjet.interpreters import pxla
from numjet.sharding import Mesh


def test_the_mesh_of_a_with_block_is_told():
    env = pxla.thread_resources.env
    with cpu_devices(4) as devices, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        mesh = Mesh(devices, ("x",))
        with mesh:
            assert env.physical_mesh == mesh and env.shape == {"x": 4}
            assert env.resource_axes == {"x"}
            assert nj.jit(lambda x: x * env.physical_mesh.size)(2) == 8
        with nj.set_mesh(mesh):
            assert env.physical_mesh.empty
    assert env.physical_mesh.empty
