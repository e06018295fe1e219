"""Who looks after the processes: a killed one ends the others, a hang names who is missing.

A process of its own, started by rank 0, listens apart from MPI (`watch_server`); each rank tells it
what it does, and ends when it says so. For `distributed`. What would break it: a firewall between
the hosts (a warning says so, and MPI alone is left to notice).
"""
from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from numjet.cpu.runtime import events

_BEAT = 0.25  # seconds between what a rank says of itself
_watch: Any = None
_server: Any = None  # rank 0's: the process that watches


def start(transport: Any) -> None:
    """Begin to watch; all ranks call it."""
    global _watch
    _watch = _Watch(transport)


def stop() -> None:
    """Say goodbye."""
    if _watch is not None:
        _watch.goodbye()


class _Watch:
    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.limit = float(os.environ.get("NUMJET_COLLECTIVE_TIMEOUT", "30") or 0)
        self.ended = False
        self.lock = threading.Lock()
        address: Any = _serve(transport.count, self.limit) if transport.index == 0 else None
        host, port, secret = transport.control.bcast(address)
        self.link: socket.socket | None = None
        try:
            self.link = socket.create_connection((host, port), timeout=20)
            self.link.settimeout(None)
        except OSError as reason:
            sys.stderr.write(
                f"numjet: rank {transport.index} cannot reach the watch at {host}:{port} "
                f"({reason}); a process that ends is noticed by MPI alone.\n"
            )
            transport.control.Barrier()  # where those that reach it wait
            return
        self._send({"rank": transport.index, "pid": os.getpid(), "host": socket.gethostname(),
                    "secret": secret})
        threading.Thread(target=self._beat, name="numjet beat", daemon=True).start()
        threading.Thread(target=self._listen, name="numjet listen", daemon=True).start()
        self._before = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self.goodbye)
        transport.control.Barrier()  # everyone is watched before anything runs

    def _failed(self, kind: Any, value: Any, trace: Any) -> None:
        """An exception that nobody caught ends all ranks."""
        self._before(kind, value, trace)
        text = traceback.format_exception_only(kind, value)[-1].strip()
        self._send({"failed": text[:500] + ("" if text.endswith(".") else ".")})
        sys.stderr.flush()
        time.sleep(5)  # the watch ends this process before
        self.transport.comm.Abort(1)

    def _send(self, message: dict) -> None:
        if self.link is None:
            return
        try:
            with self.lock:
                self.link.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the listener notices

    def goodbye(self) -> None:
        """This rank ends, when what it runs has ended, and comes to nothing more."""
        if not self.ended:
            events.drain_all()
            self.ended = True
            self._send({"bye": True, **self.transport.doing()})

    def _beat(self) -> None:
        """Say what this rank does, and notice that it waits too long."""
        transport = self.transport
        while not self.ended:
            doing = transport.doing()
            self._send({**doing, "late": bool(self.limit and doing["waits"] > self.limit)})
            time.sleep(_BEAT)

    def _listen(self) -> None:
        """End when the watch says so."""
        assert self.link is not None
        try:
            for line in self.link.makefile("r"):
                if "end" in json.loads(line):
                    sys.stdout.flush()
                    os._exit(1)
        except (OSError, ValueError):
            pass


def _serve(count: int, limit: float) -> tuple[str, int, str]:
    """Start the watch; its address and the ranks' password."""
    global _server
    address, secret = _own_address(), os.urandom(16).hex()
    script = Path(__file__).with_name("watch_server.py")
    server = _server = subprocess.Popen(
        [sys.executable, "-S", "-E", str(script), str(count), str(limit), address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(secret.encode() + b"\n")
    server.stdin.close()
    port = int(server.stdout.readline())
    server.stdout.close()
    return address, port, secret


def _own_address() -> str:
    """The address under which other hosts see this one; the loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
