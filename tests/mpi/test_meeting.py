"""Processes that nobody started together meet where the first of them listens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest
from mpi_launch import ROOT, mpiexec

from numjet.cpu.runtime import pmi
from numjet.cpu.runtime.pmi_server import Server, mapping
from numjet.errors import JaxRuntimeError

HEAD = """
import os, sys, time
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet.sharding import NamedSharding, PartitionSpec as P
from numjet.experimental import multihost_utils as mu
address, index, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(script: str, count: int, started: int | None = None, **environment: str) -> list[tuple]:
    """The exit status and what was printed, of each of `started` processes of `count`."""
    if mpiexec() is None:
        pytest.skip("mpi4py is not there: pip install numjet[mpi]")
    address = f"localhost:{free_port()}"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "NUMJET_NUM_THREADS": "1", **environment}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + script, address, str(k), str(count)],
            env={k: v.format(address=address) for k, v in variables.items()} if environment
            else variables,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for k in range(count if started is None else started)
    ]  # fmt: skip
    return [(p.communicate(timeout=120)[0], p.returncode) for p in processes]


def test_arrays_and_programs_over_the_processes() -> None:
    found = run("""
nj.distributed.initialize(address, num_processes=count, process_id=index)
assert (nj.process_index(), nj.process_count()) == (index, count)
assert len(nj.devices()) == count and len(nj.local_devices()) == 1
mesh = nj.make_mesh((count,), ("x",))
x = nj.make_array_from_process_local_data(NamedSharding(mesh, P("x")), np.arange(4.0) + 4 * index)
total = nj.jit(jnp.sum)(x)
summed = nj.shard_map(lambda x: nj.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)
print(float(total), summed, mu.process_allgather(np.array([index])).ravel())
# What this process starts is alone.
assert not any(name in os.environ for name in ("PMI_RANK", "PMI_FD", "PMI_SIZE"))
mu.sync_global_devices("end")
nj.distributed.shutdown()
""", 3)
    for output, status in found:
        assert status == 0 and output == "66.0 [12. 15. 18. 21.] [0 1 2]\n", output


def test_numbers_and_what_processes_tell_each_other_by_name() -> None:
    found = run("""
nj.distributed.initialize(address, count, index)
from numjet.as_jax.stand_ins import global_state
mesh = nj.make_mesh((2 * count,), ("x",))
for x in (np.float32(3), np.ones((4, 2), np.float32)):
    whole = nj.device_put(x, NamedSharding(mesh, P()))
    assert [s.data.shape for s in whole.addressable_shards] == [x.shape] * 2
    assert [d.process_index for d in whole.sharding._addressable_device_assignment] == [index] * 2
assert mu.process_allgather(np.array([index])).dtype == np.int32
assert mu.broadcast_one_to_all(2.5).dtype == np.float32
try:
    mu.assert_equal(index, "differs")
except AssertionError as error:
    assert "process 1" in str(error)
else:
    raise SystemExit(5)
store = global_state.client
assert (global_state.process_id, global_state.num_processes) == (index, count)
assert global_state.coordinator_address == address
store.key_value_set(f"a/{index}", str(index))
store.key_value_set_bytes(f"b/{index}", bytes([0, 255, index]))
assert store.blocking_key_value_get(f"a/{1 - index}", 20_000) == str(1 - index)
assert store.blocking_key_value_get_bytes(f"b/{1 - index}", 20_000) == bytes([0, 255, 1 - index])
assert store.key_value_dir_get("a") == [("a/0", "0"), ("a/1", "1")]
store.wait_at_barrier("there", 20_000)
try:
    store.wait_at_barrier(f"alone{index}", 300)
except nj.errors.JaxRuntimeError as error:
    assert "DEADLINE_EXCEEDED" in str(error) and f"processes {1 - index}" in str(error)
else:
    raise SystemExit(6)
assert store.get_live_nodes([index]) == {index: os.getpid()}
mu.sync_global_devices("end")
assert nj.distributed.is_initialized()
nj.distributed.shutdown()
assert not nj.distributed.is_initialized() and global_state.client is None
""", 2, NUMJET_NUM_CPU_DEVICES="2")  # fmt: skip
    assert found == [("", 0)] * 2, found


def test_the_environment_names_them() -> None:
    found = run("""
os.environ["JAX_PROCESS_ID"] = str(index)
nj.distributed.initialize()
print(nj.process_count())
""", 2, JAX_COORDINATOR_ADDRESS="{address}", JAX_NUM_PROCESSES="2")  # fmt: skip
    assert found == [("2\n", 0)] * 2


def test_one_that_ends_ends_the_others() -> None:
    found = run("""
nj.distributed.initialize(address, count, index)
if index == 1:
    os._exit(3)
mu.sync_global_devices("never")
print("not here")
""", 2)
    (first, status), (_, other) = found
    assert status and other == 3 and "not here" not in first
    assert "rank 1" in first and "has ended without a word" in first


def test_one_that_does_not_come() -> None:
    ((output, status),) = run("""
try:
    nj.distributed.initialize(address, count, index, initialization_timeout=1)
except nj.errors.JaxRuntimeError as error:
    print(error)
""", 2, started=1)  # fmt: skip
    assert status == 0 and "DEADLINE_EXCEEDED" in output and "2 processes" in output


def test_numbers_that_do_not_fit_together() -> None:
    found = run("""
try:
    nj.distributed.initialize(address, count + index, index, initialization_timeout=3)
except nj.errors.JaxRuntimeError as error:
    print(error)
""", 2)  # fmt: skip
    assert "DEADLINE_EXCEEDED" in found[0][0] and "INVALID_ARGUMENT" in found[1][0]
    assert "process 0 was told of 2 processes, this one of 3" in found[1][0]


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("address", ValueError, "Number of processes must be defined"),
        ("address, 2", ValueError, "process id of the current process must be defined"),
        ("num_processes=2", ValueError, "coordinator_address should be defined"),
        ("process_id=0", ValueError, "coordinator_address should be defined"),
        ("'localhost', 2, 0", ValueError, "'localhost' is no address"),
        ("'localhost:1', 2, 1, initialization_timeout=1", JaxRuntimeError, "cannot reach"),
    ],
)  # fmt: skip
def test_arguments(given, kind, said, monkeypatch) -> None:
    from numjet import distributed

    for name in pmi.LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    monkeypatch.setattr(distributed._device, "cache_info", lambda: type("", (), {"currsize": 0}))
    with pytest.raises(kind, match=said):
        eval(f"initialize({given})", {"initialize": distributed.initialize,
                                      "address": "localhost:1"})  # fmt: skip


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(JaxRuntimeError, match="cannot listen at port"):
            with pmi.meet(address, 2, 0, 5, None):
                pass


def asked(server: Server, *lines: str) -> list[str]:
    """The server's answers to a process's requests."""
    return [server.answer(dict(x.split("=", 1) for x in line.split())) for line in lines]


def test_what_mpi_libraries_ask() -> None:
    server = Server(2)
    answers = asked(server, "cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes",
                    "cmd=get_universe_size", "cmd=put kvsname=a key=k value=v=1",
                    "cmd=get kvsname=a key=k", "cmd=get kvsname=a key=other", "cmd=spawn",
                    "cmd=finalize", "cmd=abort exitcode=1")  # fmt: skip
    assert answers[0] == "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    assert "vallen_max=" in answers[1] and answers[2].endswith("size=2")
    assert answers[4] == "cmd=get_result rc=0 msg=success value=v=1"
    assert "rc=-1" in answers[5] and "rc=-1" in answers[6]
    assert answers[7:] == ["cmd=finalize_ack rc=0", None]
    # A barrier ends when all are there, and is broken when one has gone.
    for gone in (False, True):
        met: list = []
        waits = threading.Thread(target=lambda met=met: met.extend(asked(server, "cmd=barrier_in")))
        waits.start()
        if gone:
            server._break()
        else:
            assert asked(server, "cmd=barrier_in") == ["cmd=barrier_out rc=0"]
        waits.join(20)
        assert met == ([None] if gone else ["cmd=barrier_out rc=0"])


def test_processes_of_a_host_lie_together() -> None:
    assert mapping(["a", "a", "b", "b"]) == "(vector,(0,1,2),(1,1,2))"
    assert mapping(["a", "b", "a"]) == "(vector,(0,1,1),(1,1,1),(0,1,1))"
    assert mapping([str(k) for k in range(500)]) == ""
