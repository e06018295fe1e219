"""Who looks after the processes: a killed one ends the others, a hang names who is missing.

Rank 0 listens on a socket, apart from MPI; each rank keeps a connection to it, on which it says
what it is doing. A connection that ends without a goodbye is a dead process. For `distributed`.
What would break it: a firewall between the hosts (a warning says so, and MPI alone is left to
notice).
"""
from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import threading
import time
import traceback
from typing import Any

_BEAT = 0.25  # seconds between what a rank says of itself
_watch: Any = None


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
        self.states: dict[int, dict] = {}  # rank 0's: what each rank said last
        secret = os.urandom(16).hex()
        address: Any = None
        if transport.index == 0:
            self.server = socket.create_server((_own_address(), 0), backlog=transport.count)
            address = (*self.server.getsockname()[:2], secret)
        self.host, self.port, self.secret = transport.control.bcast(address)
        if transport.index == 0:
            threading.Thread(target=self._accept, name="numjet watch", daemon=True).start()
        self.link: socket.socket | None = None
        try:
            self.link = socket.create_connection((self.host, self.port), timeout=20)
            self.link.settimeout(None)
        except OSError as reason:
            sys.stderr.write(
                f"numjet: rank {transport.index} cannot reach rank 0 at {self.host}:{self.port} "
                f"({reason}); a process that ends is noticed by MPI alone.\n"
            )
            return
        self._send({"rank": transport.index, "pid": os.getpid(), "host": socket.gethostname(),
                    "secret": self.secret})
        threading.Thread(target=self._beat, name="numjet beat", daemon=True).start()
        threading.Thread(target=self._listen, name="numjet listen", daemon=True).start()
        before = sys.excepthook

        def failed(kind: Any, value: Any, trace: Any) -> None:
            before(kind, value, trace)
            text = traceback.format_exception_only(kind, value)[-1].strip()
            self._send({"failed": text[:500]})
            sys.stderr.flush()
            time.sleep(0.2)  # the others' messages come first
            self._abort()

        sys.excepthook = failed
        atexit.register(self.goodbye)

    def _send(self, message: dict) -> None:
        if self.link is None:
            return
        try:
            with self.lock:
                self.link.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the listener notices

    def goodbye(self) -> None:
        if not self.ended:
            self.ended = True
            self._send({"bye": True})

    def _abort(self) -> None:
        """End all processes."""
        self.ended = True
        sys.stderr.flush()
        self.transport.comm.Abort(1)

    def _beat(self) -> None:
        """Say what this rank does, and notice that it waits too long."""
        transport = self.transport
        while not self.ended:
            place = transport.place
            waits = 0.0 if place is None else time.monotonic() - place[1]
            self._send({
                "calls": transport.calls, "program": transport.program,
                "operation": None if place is None else place[0], "waits": waits,
                "late": bool(self.limit and waits > self.limit),
            })
            time.sleep(_BEAT)

    def _listen(self) -> None:
        """Do what rank 0 says; its end is the end of all."""
        assert self.link is not None
        stream = self.link.makefile("r")
        try:
            for line in stream:
                if "end" in json.loads(line):
                    os._exit(1) if self.transport.index else self._abort()
        except (OSError, ValueError):
            pass
        if not self.ended and self.transport.index:
            if self.transport.index == 1:
                sys.stderr.write("numjet: rank 0 has ended; all processes end with it.\n")
                sys.stderr.flush()
            self._abort()

    # -------------------------------------------------------------- rank 0
    def _accept(self) -> None:
        for _ in range(self.transport.count):
            link, _address = self.server.accept()
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        """The life of one rank, as rank 0 sees it."""
        stream = link.makefile("r")
        try:
            hello = json.loads(stream.readline())
        except (OSError, ValueError):
            return
        if hello.get("secret") != self.secret:
            link.close()
            return
        rank = hello["rank"]
        state = self.states[rank] = {**hello, "link": link}
        try:
            for line in stream:
                said = json.loads(line)
                state.update(said)
                if "failed" in said:
                    self._end(f"rank {rank} (process {state['pid']} on {state['host']}) failed: "
                              f"{said['failed']}. All processes end with it.")
                if said.get("late"):
                    self._end(self._hang(rank))
        except (OSError, ValueError):
            pass
        state["gone"] = True
        if "bye" not in state and not self.ended:
            doing = state.get("operation") or "between programs"
            self._end(f"rank {rank} (process {state['pid']} on {state['host']}) has ended without "
                      f"a word, in call {state.get('calls', 0)}, {doing}. All processes end.")

    def _hang(self, rank: int) -> str:
        """What is known of a collective that some have not come to."""
        late = self.states[rank]
        lines, missing = [], []
        for other in range(self.transport.count):
            state = self.states.get(other, {})
            if "bye" in state:
                doing = "has left"
            elif state.get("operation"):
                doing = f"waits in {state['operation']} for {state.get('waits', 0):.0f} s"
            else:
                doing = f"runs no collective; its last program was {state.get('program')!r}"
            same = state.get("operation") == late.get("operation")
            if not (same and state.get("calls") == late.get("calls")):
                missing.append(other)
            lines.append(f"  rank {other}: {doing} (call {state.get('calls', 0)})")
        who = ", ".join(map(str, missing)) or "none that is known of"
        return (f"{late['operation']} of program {late.get('program')!r} did not end in "
                f"{self.limit:.0f} s (NUMJET_COLLECTIVE_TIMEOUT). Missing: rank {who}.\n"
                + "\n".join(lines))

    def _end(self, reason: str) -> None:
        """Say why, and end all."""
        with self.lock:
            if self.ended:
                return
            self.ended = True
        sys.stderr.write(f"numjet: {reason}\n")
        sys.stderr.flush()
        for state in self.states.values():
            try:
                state["link"].sendall(b'{"end": true}\n')
            except OSError:
                continue
        self._abort()


def _own_address() -> str:
    """The address under which other hosts see this one; the loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
