"""The mesh of `with mesh:`, in threads, and as interpreters.pxla.thread_resources tells it."""

from __future__ import annotations

import threading
import warnings

import pytest
from cpu_devices import cpu_devices

import numjet as nj
from numjet.api.placement.mesh import entered_mesh
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_one_mesh_is_entered_by_several_threads(eight_devices):
    """Blocks of threads begin and end in any order, and nest within each."""
    mesh, other = nj.make_mesh((2,), ("a",)), nj.make_mesh((4,), ("b",))
    gate = threading.Barrier(2, timeout=60)
    found = []

    def work(first):
        with mesh:
            gate.wait()
            with other:
                gate.wait()
                inner = entered_mesh.get()
            back = entered_mesh.get()
            if first:
                gate.wait()
        if not first:
            gate.wait()
        found.append((inner is other, back is mesh, entered_mesh.get().empty))

    threads = [threading.Thread(target=work, args=(k,)) for k in (True, False)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [(True, True, True)] * 2 and entered_mesh.get().empty
