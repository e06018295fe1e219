"""numjet.distributed: several processes that work together, over MPI.

`mpiexec -n 4 python train.py`, where train.py calls `initialize()` first; or processes that were
started one by one, each of which is told where the first is and who it is. Devices of all processes
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
    """Join the other processes. Call it before arrays or devices are used.

    Under `mpiexec` without arguments. Processes that were started one by one say which of how many
    they are (process_id, num_processes) and where process 0 is: coordinator_address, "host:port" of
    a free port there, at which it listens at coordinator_bind_address, by default at all addresses
    of its machine. The variables JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID
    stand for arguments that are not given. Under `mpiexec` num_processes and process_id are what
    MPI is expected to say, and addresses are not used. local_device_ids, cluster_detection_method,
    heartbeat_timeout_seconds, shutdown_timeout_seconds, slice_index, partition_index: MPI has its
    own, they are not used. initialization_timeout: seconds after which a process that waits here
    for others, which ended before they came, ends with a sentence. Each process has the devices
    that NUMJET_NUM_CPU_DEVICES (config num_cpu_devices, one by default) says. Raises RuntimeError
    where mpi4py cannot be loaded, where it was called before, and where MPI says otherwise;
    JaxRuntimeError where processes that were started one by one do not meet; ValueError where one
    of the three arguments is missing.

    Flags of the environment: NUMJET_COLLECTIVE_TIMEOUT (seconds, 30; 0: none) after which a
    collective that others do not come to ends the program with a sentence that names them;
    NUMJET_COLLECTIVE_CHECKS=0 leaves out the check that all processes run the same program.

    >>> from numjet import distributed
    >>> distributed.initialize()  # doctest: +SKIP
    >>> distributed.initialize("10.0.0.1:1234", num_processes=2, process_id=0)  # doctest: +SKIP
    """
    del local_device_ids, cluster_detection_method, heartbeat_timeout_seconds
    del shutdown_timeout_seconds, slice_index, partition_index
    if Cluster.transport is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    if _device.cache_info().currsize:
        raise RuntimeError(
            "jax.distributed.initialize() must be called before any calls that use devices: those "
            "of arrays, devices() and meshes. Call numjet.distributed.initialize() first of all."
        )
    told = os.environ.get
    coordinator_address = coordinator_address or told("JAX_COORDINATOR_ADDRESS")
    if num_processes is None and "JAX_NUM_PROCESSES" in os.environ:
        num_processes = int(told("JAX_NUM_PROCESSES", ""))
    if process_id is None and "JAX_PROCESS_ID" in os.environ:
        process_id = int(told("JAX_PROCESS_ID", ""))
    met = _meeting(
        coordinator_address, num_processes, process_id, initialization_timeout,
        coordinator_bind_address,
    )  # fmt: skip
    with met, _at_most(initialization_timeout):
        try:
            mpi = importlib.import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:
            raise RuntimeError(
                f"distributed.initialize needs MPI, which is not there ({error}). Install it with "
                "`pip install numjet[mpi]` and start the program with `mpiexec -n 4 python ...`."
            ) from None
        _join(mpi, num_processes, process_id)
    importlib.import_module("numjet.cpu.runtime.watch").start(Cluster.transport)


def _meeting(
    address: str | None, count: int | None, index: int | None, seconds: float, bind: str | None
) -> contextlib.AbstractContextManager[None]:
    """Where processes that nobody started together wait for each other."""
    pmi = importlib.import_module("numjet.cpu.runtime.pmi")
    if pmi.launched() or count == 1 or (address, count, index) == (None, None, None):
        return contextlib.nullcontext()
    if address is None or count is None or index is None:
        what = (
            "coordinator_address should be defined." if address is None
            else "Number of processes must be defined (num_processes)." if count is None
            else "The process id of the current process must be defined (process_id)."
        )  # fmt: skip
        raise ValueError(
            f"distributed.initialize: {what} Say all three, or have `mpiexec -n {count or 'N'} "
            "python ...` start the processes."
        )
    if "mpi4py.MPI" in sys.modules:
        raise RuntimeError(
            "distributed.initialize: mpi4py.MPI was imported before, and has found this process "
            "alone. Call numjet.distributed.initialize(...) first of all, or start the program "
            f"with `mpiexec -n {count} python ...`."
        )
    Cluster.meet_at(address)
    return pmi.meet(address, count, index, seconds, bind)  # type: ignore[no-any-return]


def _join(mpi: Any, num_processes: int | None, process_id: int | None) -> None:
    """Meet the other processes: as many as expected, with as many devices each."""
    world = mpi.COMM_WORLD
    found = {"num_processes": world.Get_size(), "process_id": world.Get_rank()}
    for what, given in (("num_processes", num_processes), ("process_id", process_id)):
        if given is not None and given != found[what]:
            raise RuntimeError(
                f"distributed.initialize: {what}={given}, but MPI says {found[what]}. Start the "
                f"program with `mpiexec -n {num_processes or 'N'} python ...`; libraries that are "
                "not of MPICH's kind have to be started so."
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
    if is_initialized():
        Cluster.transport.leave()
        Cluster.leave()
        importlib.import_module("numjet.cpu.runtime.watch").stop()


def is_initialized() -> bool:
    """Whether `initialize` was called, and `shutdown` was not.

    >>> from numjet import distributed
    >>> distributed.is_initialized()
    False
    """
    return Cluster.transport is not None and not Cluster.left


__all__ = ["initialize", "is_initialized", "shutdown"]


def __dir__() -> list[str]:
    return [*__all__]
