"""The process that brings together processes which nobody started together.

Started by process 0 (`pmi`) as `python -S pmi_server.py HOST PORT COUNT`, in a session of its own.
It prints a line, `ready` or why it cannot listen. Each process connects and says which it is, a
JSON object in a line; when all have come each is told "go", and from then on its connection speaks
the process-management interface of MPI libraries, version 1.1: what a library's MPI_Init asks of
`mpiexec` (source: Flux RFC 13, https://flux-framework.readthedocs.io/projects/flux-rfc). It imports
nothing of the package. What would break it: a library that asks in another version (PMIx).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

MOST = 1024  # characters of a value


class Server:
    """What the processes have said: `put` by key, and how many wait in a barrier."""

    def __init__(self, count: int) -> None:
        self.count = count
        # Of the one space of keys, and of what libraries name after it in shared memory.
        self.name = f"numjet_{os.urandom(8).hex()}"
        self.come: dict[int, tuple[socket.socket, str]] = {}  # connection and host, by process
        self.lock = threading.Condition()
        self.values: dict[str, str] = {}
        self.waiting = self.barriers = 0
        self.broken = False

    # ------------------------------------------------------------------ meeting
    def serve(self, link: socket.socket) -> None:
        """The life of a process's connection."""
        stream = link.makefile("r", newline="\n")
        ended = False
        try:
            hello = json.loads(stream.readline())
            reason = self._join(link, hello)
            if reason:
                link.sendall(json.dumps({"refused": reason}).encode() + b"\n")
                return
            with self.lock:
                self.lock.wait_for(lambda: len(self.come) == self.count)
            link.sendall(b'{"go": true}\n')
            for line in stream:
                asked = dict(word.split("=", 1) for word in _words(line))
                answer = self.answer(asked)
                if answer is None:
                    return
                link.sendall(answer.encode() + b"\n")
                ended = ended or asked["cmd"] == "finalize"
        except (OSError, ValueError, KeyError, TypeError):
            pass
        finally:
            if not ended and self._is_one(link):
                self._break()
            stream.close()
            link.close()

    def _join(self, link: socket.socket, hello: dict) -> str:
        """Take a process in; why not, where not."""
        index, count, host = int(hello["process"]), int(hello["count"]), str(hello["host"])
        with self.lock:
            if count != self.count:
                return f"process 0 was told of {self.count} processes, this one of {count}"
            if not 0 <= index < count:
                return f"processes are numbered from 0 to {count - 1}"
            if index in self.come:
                return f"another process has come as number {index}"
            self.come[index] = link, host
            if len(self.come) == self.count:
                self.values["PMI_process_mapping"] = mapping(
                    [self.come[k][1] for k in range(self.count)]
                )
            self.lock.notify_all()
        return ""

    def _is_one(self, link: socket.socket) -> bool:
        return any(link is known for known, _ in self.come.values())

    def _break(self) -> None:
        """A process has gone without a word: who waits for it in MPI_Init is told by the end of its
        connection. Afterwards nobody reads it before MPI_Finalize."""
        with self.lock:
            self.broken = True
            self.lock.notify_all()
            for link, _ in self.come.values():
                try:
                    link.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    # ------------------------------------------------------------------ the interface
    def answer(self, asked: dict[str, str]) -> str | None:
        """The answer to a request; None ends the connection."""
        match asked["cmd"]:
            case "init":
                return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
            case "get_maxes":
                return f"cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max={MOST}"
            case "get_appnum":
                return "cmd=appnum rc=0 appnum=0"
            case "get_my_kvsname":
                return f"cmd=my_kvsname rc=0 kvsname={self.name}"
            case "get_universe_size":
                return f"cmd=universe_size rc=0 size={self.count}"
            case "put":
                with self.lock:
                    self.values[asked["key"]] = asked["value"]
                return "cmd=put_result rc=0 msg=success"
            case "get":
                value = self.values.get(asked["key"])
                if value is None:
                    return "cmd=get_result rc=-1 msg=key_not_found"
                return f"cmd=get_result rc=0 msg=success value={value}"
            case "barrier_in":
                return "cmd=barrier_out rc=0" if self._barrier() else None
            case "finalize":
                return "cmd=finalize_ack rc=0"
            case "abort":
                return None
            case other:
                return f"cmd={other}_result rc=-1 msg=not_supported"

    def _barrier(self) -> bool:
        """Wait for all processes; False where one has gone."""
        with self.lock:
            self.waiting += 1
            mine = self.barriers
            if self.waiting == self.count:
                self.waiting, self.barriers = 0, self.barriers + 1
                self.lock.notify_all()
            self.lock.wait_for(lambda: self.barriers != mine or self.broken)
            return self.barriers != mine


def _words(line: str) -> list[str]:
    """The words of a request; a value, which comes last, may hold spaces."""
    head, mark, value = line.strip().partition(" value=")
    return [*head.split(), f"value={value}"] if mark else head.split()


def mapping(hosts: list[str]) -> str:
    """Which processes share a host, as (host, 1, processes) one after the other; "" where that is
    too long for a value, which stands for unknown."""
    blocks: list[list[int]] = []
    numbers: dict[str, int] = {}
    for host in hosts:
        number = numbers.setdefault(host, len(numbers))
        if blocks and blocks[-1][0] == number:
            blocks[-1][2] += 1
        else:
            blocks.append([number, 1, 1])
    text = "(vector," + ",".join([f"({a},{b},{c})" for a, b, c in blocks]) + ")"
    return text if len(text) < MOST else ""


def main() -> None:
    host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        both = not host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
        door = socket.create_server(
            (host, port), family=family, backlog=count, dualstack_ipv6=both
        )
    except OSError as reason:
        print(reason, flush=True)
        return
    print("ready", flush=True)
    sys.stdout.close()
    server = Server(count)
    threads: list[threading.Thread] = []

    def welcome() -> None:
        while True:
            try:
                link, _ = door.accept()
            except OSError:
                return
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(threading.Thread(target=server.serve, args=(link,), daemon=True))
            threads[-1].start()

    threading.Thread(target=welcome, daemon=True).start()
    sys.stdin.read()  # until process 0 has ended
    with server.lock:
        all_there = len(server.come) == count
    for thread in threads if all_there else ():
        thread.join()


if __name__ == "__main__":
    main()
