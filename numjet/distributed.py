"""numjet.distributed: several processes that work together, over MPI.

`mpiexec -n 4 python train.py`, where train.py calls `initialize()` first. Devices of all processes
then form meshes, arrays over them are global, and each process holds its part. Needs mpi4py (`pip
install numjet[mpi]`). `numjet.process` has what is asked of processes; `api.execution.processes`
runs the programs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from numjet.api.placement.devices import _device
from numjet.base import config
from numjet.core.cluster import Cluster

# What ends a process that waits in MPI_Init, which lets no thread of it run Python meanwhile: a
# process of its own that is told by the end of its input that all have come, or that it is alone.
_ENDS = """
import os, signal, sys, threading
process, seconds, who = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
told = threading.Thread(target=sys.stdin.read, daemon=True)
told.start()
told.join(seconds)
if told.is_alive():
    sys.stderr.write(
        f"numjet: {who} waited {seconds:g} s in distributed.initialize() for the others: one of "
        "them ended before it called initialize(), or was never started. initialization_timeout "
        "says how long to wait.\\n")
    sys.stderr.flush()
    os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
os._exit(0)
"""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End this process with a sentence if the block takes longer.

    A Python inside of another program, which has no interpreter to start, waits without an end.
    """
    if not sys.executable:
        yield
        return
    rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
    who = f"process {os.getpid()}" if rank is None else f"rank {rank}"
    command = [sys.executable, "-S", "-E", "-c", _ENDS, str(os.getpid()), str(seconds), who]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
        yield  # leaving closes its input, and waits for its end


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the other processes that `mpiexec` started. Call it before arrays or devices are used.

    num_processes, process_id: what MPI is expected to say. coordinator_address,
    coordinator_bind_address, local_device_ids, cluster_detection_method, heartbeat_timeout_seconds,
    shutdown_timeout_seconds, slice_index, partition_index: MPI has its own, they are not used.
    initialization_timeout: seconds after which a process that waits here for others, which ended
    before they came, ends with a sentence. Each process has the devices that
    NUMJET_NUM_CPU_DEVICES (config num_cpu_devices, one by default) says. Raises RuntimeError where
    mpi4py cannot be loaded, where it was called before, and where MPI says otherwise.

    Flags of the environment: NUMJET_COLLECTIVE_TIMEOUT (seconds, 30; 0: none) after which a
    collective that others do not come to ends the program with a sentence that names them;
    NUMJET_COLLECTIVE_CHECKS=0 leaves out the check that all processes run the same program.

    >>> from numjet import distributed
    >>> distributed.initialize()  # doctest: +SKIP
    """
    del coordinator_address, local_device_ids, cluster_detection_method
    del heartbeat_timeout_seconds, shutdown_timeout_seconds, coordinator_bind_address
    del slice_index, partition_index
    if Cluster.transport is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    if _device.cache_info().currsize:
        raise RuntimeError(
            "jax.distributed.initialize() must be called before any calls that use devices: those "
            "of arrays, devices() and meshes. Call numjet.distributed.initialize() first of all."
        )
    with _at_most(initialization_timeout):
        try:
            mpi = importlib.import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:
            raise RuntimeError(
                f"distributed.initialize needs MPI, which is not there ({error}). Install it with "
                "`pip install numjet[mpi]` and start the program with `mpiexec -n 4 python ...`."
            ) from None
        _join(mpi, num_processes, process_id)
    importlib.import_module("numjet.cpu.runtime.watch").start(Cluster.transport)


def _join(mpi: Any, num_processes: int | None, process_id: int | None) -> None:
    """Meet the other processes: as many as expected, with as many devices each."""
    world = mpi.COMM_WORLD
    found = {"num_processes": world.Get_size(), "process_id": world.Get_rank()}
    for what, given in (("num_processes", num_processes), ("process_id", process_id)):
        if given is not None and given != found[what]:
            raise RuntimeError(
                f"distributed.initialize: {what}={given}, but MPI says {found[what]}. Start the "
                f"program with `mpiexec -n {num_processes or 'N'} python ...`."
            )
    counts = world.allgather(max(1, config.num_cpu_devices.value))
    if len(set(counts)) != 1:
        raise RuntimeError(
            f"distributed.initialize: the processes have {counts} devices. Set "
            "NUMJET_NUM_CPU_DEVICES to the same number for all."
        )
    transport = importlib.import_module("numjet.cpu.runtime.mpi").Transport(mpi, world)
    Cluster.join(transport)
    _device.cache_clear()


def shutdown() -> None:
    """Leave the other processes: wait until all have come here.

    Nothing over several processes can be computed afterwards; does nothing where nothing was
    started. A process that ended before it came here ends the program with a sentence.

    >>> from numjet import distributed
    >>> distributed.shutdown()
    """
    if Cluster.transport is not None:
        Cluster.transport.leave()
        importlib.import_module("numjet.cpu.runtime.watch").stop()


def is_initialized() -> bool:
    """Whether `initialize` was called.

    >>> from numjet import distributed
    >>> distributed.is_initialized()
    False
    """
    return Cluster.transport is not None


__all__ = ["initialize", "is_initialized", "shutdown"]


def __dir__() -> list[str]:
    return [*__all__]
