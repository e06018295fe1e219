"""Meeting of processes that nobody started together, each told where process 0 is and who it is.

For `distributed.initialize(coordinator_address, num_processes, process_id)` without `mpiexec`.
`meet` waits until all have come to process 0's server (`pmi_server`), which then plays `mpiexec`
for the MPI libraries. What would break it: a library that does not ask by PMI 1 (Open MPI has PMIx
alone), which finds itself alone; `distributed` says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from numjet.base.errors import JaxRuntimeError

# What `mpiexec` and the launchers of clusters tell the processes that they start.
LAUNCHED = ("PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")

_servers: list[subprocess.Popen] = []  # process 0's, whose input ends when this process does


def launched() -> bool:
    """Whether something has started the processes together."""
    return any(name in os.environ for name in LAUNCHED)


@contextlib.contextmanager
def meet(address: str, count: int, index: int, seconds: float, bind: str | None) -> Iterator[None]:
    """Wait for the other processes; within the block MPI's initialization finds them.

    address: "host:port" of process 0. bind: where that listens, by default at that port of all its
    addresses. Raises JaxRuntimeError where the others do not come within `seconds`, where process 0
    cannot listen there, and for numbers that do not fit together.
    """
    end = time.monotonic() + seconds
    if index == 0:
        _listen(*_host_and_port(bind or ":" + str(_host_and_port(address)[1])), count)
    link = _connected(*_host_and_port(address), index, end)
    hello = {"process": index, "count": count, "host": _host()}
    link.sendall(json.dumps(hello).encode() + b"\n")
    _wait_for_go(link, address, count, index, end)
    link.settimeout(None)
    # The MPI library uses it to its end, which comes after that of Python's objects.
    set_here = {"PMI_FD": str(link.detach()), "PMI_RANK": str(index), "PMI_SIZE": str(count)}
    os.environ.update(set_here)
    try:
        yield
    finally:  # processes that this one starts are no part of it
        for name in set_here:
            os.environ.pop(name, None)


def _host_and_port(address: str) -> tuple[str, int]:
    host, mark, port = address.rpartition(":")
    if not mark or not port.isdecimal():
        raise ValueError(
            f"distributed.initialize: {address!r} is no address; write 'host:port', such as "
            "'10.0.0.1:1234'."
        )
    return host.strip("[]"), int(port)


def _host() -> str:
    """What processes that share memory have in common."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/ipc"):
        with contextlib.suppress(OSError):
            parts.append(os.readlink(path) if "/ns/" in path else Path(path).read_text().strip())
    return " ".join(parts)


def _listen(host: str, port: int, count: int) -> None:
    """Start the server."""
    script = Path(__file__).with_name("pmi_server.py")
    server = subprocess.Popen(
        [sys.executable, "-S", "-E", str(script), host, str(port), str(count)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    said = server.stdout.readline().strip()
    server.stdout.close()
    if said != "ready":
        server.stdin.close()
        server.wait()
        raise JaxRuntimeError(
            f"UNKNOWN: distributed.initialize: process 0 cannot listen at port {port} ({said}). "
            "Choose another port of coordinator_address, in all processes."
        )
    _servers.append(server)


def _connected(host: str, port: int, index: int, end: float) -> socket.socket:
    """A connection to the server, which may not have been started yet."""
    reason: OSError = TimeoutError()
    while time.monotonic() < end:
        try:
            return socket.create_connection((host or "localhost", port), timeout=2)
        except OSError as error:
            reason = error
            time.sleep(0.05)
    raise JaxRuntimeError(
        f"DEADLINE_EXCEEDED: distributed.initialize: process {index} cannot reach process 0 at "
        f"{host}:{port} ({reason}). coordinator_address is of the machine that process 0 runs on; "
        "initialization_timeout says how long to try."
    )


def _wait_for_go(link: socket.socket, address: str, count: int, index: int, end: float) -> None:
    said = b""
    while not said.endswith(b"\n"):
        link.settimeout(max(end - time.monotonic(), 0.01))
        try:
            part = link.recv(1)  # no more: what follows is the MPI library's
        except TimeoutError:
            raise JaxRuntimeError(
                f"DEADLINE_EXCEEDED: distributed.initialize: process {index} waited at {address} "
                f"for {count} processes, of which some did not come. Start them all; "
                "initialization_timeout says how long to wait."
            ) from None
        except OSError:
            part = b""
        if not part:
            raise JaxRuntimeError(
                f"UNAVAILABLE: distributed.initialize: process 0 at {address} has ended, or what "
                "listens there is none of numjet's."
            )
        said += part
    found = json.loads(said)
    if "refused" in found:
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: distributed.initialize: {found['refused']} (process_id={index}, "
            f"num_processes={count})."
        )
