"""Who looks after the processes: a killed one ends the others, a hang names who is missing.

A process of its own, started by rank 0, listens apart from MPI (`watch_server`); each rank tells it
what it does, and ends when it says so. For `distributed`. What would break it: a firewall between
the hosts (a warning says so, and MPI alone is left to notice).
"""
from __future__ import annotations

import atexit
import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numjet.base.errors import JaxRuntimeError
from numjet.cpu.runtime import events

_BEAT = 0.25  # seconds between what a rank says of itself
_watch: Any = None
_server: Any = None  # rank 0's: the process that watches


class Store:
    """What the ranks tell each other by name, beside MPI: values by keys, and barriers.

    For libraries that ask JAX's coordinator for it (`as_jax.stand_ins`). Times are in milliseconds.
    Raises JaxRuntimeError with a code in front: DEADLINE_EXCEEDED where nobody came in time,
    NOT_FOUND, ALREADY_EXISTS.
    """

    def __init__(self, send: Callable[[dict], None]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._asked: dict[int, queue.SimpleQueue] = {}

    def _ask(self, op: str, **given: object) -> Any:
        number, answers = next(self._numbers), queue.SimpleQueue[dict]()
        self._asked[number] = answers
        self._send({"op": op, "id": number, "with": given})
        answer = answers.get()
        if "error" in answer:
            raise JaxRuntimeError(": ".join(answer["error"]))
        return answer["value"]

    def answered(self, said: dict) -> None:
        """Take an answer in."""
        self._asked.pop(said["id"]).put(said)

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Tell all."""
        self._ask("set", key=key, value=value, overwrite=allow_overwrite)

    def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
        """Tell all bytes."""
        self.key_value_set(key, value.decode("latin-1"), allow_overwrite)

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """What a rank has told, or will tell in that time."""
        return self._ask("get", key=key, seconds=timeout_in_ms / 1000)  # type: ignore[no-any-return]

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """The same of bytes."""
        return self.blocking_key_value_get(key, timeout_in_ms).encode("latin-1")

    def key_value_try_get(self, key: str) -> str:
        """What a rank has told."""
        return self._ask("get", key=key, seconds=None)  # type: ignore[no-any-return]

    def key_value_try_get_bytes(self, key: str) -> bytes:
        """The same of bytes."""
        return self.key_value_try_get(key).encode("latin-1")

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """The keys that begin with `key/`, and their values."""
        return [(k, v) for k, v in self._ask("below", prefix=key)]

    def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
        """The same of bytes."""
        return [(k, v.encode("latin-1")) for k, v in self.key_value_dir_get(key)]

    def key_value_delete(self, key: str) -> None:
        """Forget a key, and those that begin with `key/`."""
        self._ask("delete", key=key)

    def key_value_increment(self, key: str, increment: int) -> int:
        """Add to a number, which begins at 0: the sum."""
        return self._ask("add", key=key, amount=increment)  # type: ignore[no-any-return]

    def wait_at_barrier(
        self, barrier_id: str, timeout_in_ms: int, process_ids: Sequence[int] | None = None
    ) -> None:
        """Wait until all, or all of these, have come here."""
        ranks = None if process_ids is None else sorted(map(int, process_ids))
        self._ask("meet", name=barrier_id, seconds=timeout_in_ms / 1000, ranks=ranks)

    def get_live_nodes(self, process_ids: Sequence[int]) -> dict[int, int]:
        """The number of the system's process for each: all live, or all end."""
        pids = dict(self._ask("live"))
        return {k: pids[k] for k in process_ids}


def store() -> Store | None:
    """Where the ranks tell each other things by name; None where there is one, or no watch."""
    return None if _watch is None or _watch.link is None or _watch.ended else _watch.store


def start(transport: Any) -> None:
    """Begin to watch; all ranks call it."""
    global _watch
    _watch = _Watch(transport)
    _watch.exits = transport.control.Dup()
    atexit.register(_watch.exit)


def stop() -> None:
    """Say goodbye."""
    if _watch is not None:
        _watch.goodbye()


class _Watch:
    exits: Any  # a communicator of the barrier at exit

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.limit = float(os.environ.get("NUMJET_COLLECTIVE_TIMEOUT", "30") or 0)
        self.ended = False
        self.lock = threading.Lock()
        self.store = Store(self._send)
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

    def exit(self) -> None:
        """Say goodbye, and wait for the others as long as Python runs, so that `_listen` can end
        this process: where one that waits in MPI_Finalize is the last, `mpiexec` does not always
        notice that the others have ended."""
        self.goodbye()
        if not self.transport.mpi.Is_finalized():
            everyone = self.exits.Ibarrier()
            while not everyone.Test():
                time.sleep(0.005)

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
                said = json.loads(line)
                if "id" in said:
                    self.store.answered(said)
                if "end" in said:
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
