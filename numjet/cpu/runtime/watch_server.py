"""The process that watches the others: it says who ended, or whom a collective waits for.

Started by rank 0 (`watch`) as `python -S watch_server.py COUNT LIMIT ADDRESS`, in a session of its
own, so that it outlives whatever ends the ranks; its input is the ranks' password. It prints its
port. Each rank keeps a connection and says what it does, a JSON object a line; one that ends
without a goodbye is a dead process. Beside it keeps what the ranks tell each other by name
(`Store`). It imports nothing of the package. What would break it: a rank
that does not connect.
"""
from __future__ import annotations

import contextlib
import functools
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple


class Store:
    """Values by keys, and barriers by names, of all ranks. What waits is answered when it is there,
    or when its time is over (`expire`)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: dict[str, str] = {}
        self.pids: dict[int, int] = {}
        self.readers: list[tuple[float, str, Callable[[dict], None]]] = []
        self.barriers: dict[str, _Barrier] = {}
        self.lock = threading.Lock()

    def ask(self, rank: int, asked: dict, answer: Callable[[dict], None]) -> None:
        """Answer a request of a rank, now or later: {"value": ...} or {"error": [code, text]}."""
        with self.lock:
            getattr(self, "_" + asked["op"])(rank, answer, **asked["with"])

    def _set(self, rank: int, answer: Callable, key: str, value: str, overwrite: bool) -> None:
        if key in self.values and not overwrite:
            return answer(_error("ALREADY_EXISTS", f"Config key {key} already exists."))
        self.values[key] = value
        answer({"value": None})
        for reader in [r for r in self.readers if r[1] == key]:
            self.readers.remove(reader)
            reader[2]({"value": value})

    def _get(self, rank: int, answer: Callable, key: str, seconds: float | None) -> None:
        if key in self.values:
            answer({"value": self.values[key]})
        elif seconds is None:
            answer(_error("NOT_FOUND", f"Config key {key} not found."))
        else:
            self.readers.append((time.monotonic() + seconds, key, answer))

    def _below(self, rank: int, answer: Callable, prefix: str) -> None:
        folder = prefix.rstrip("/") + "/"
        found = sorted(item for item in self.values.items() if item[0].startswith(folder))
        answer({"value": found})

    def _delete(self, rank: int, answer: Callable, key: str) -> None:
        for name in [k for k in self.values if k == key or k.startswith(key.rstrip("/") + "/")]:
            del self.values[name]
        answer({"value": None})

    def _add(self, rank: int, answer: Callable, key: str, amount: int) -> None:
        self.values[key] = str(int(self.values.get(key, "0")) + amount)
        answer({"value": int(self.values[key])})

    def _live(self, rank: int, answer: Callable) -> None:
        answer({"value": sorted(self.pids.items())})

    def _meet(
        self, rank: int, answer: Callable, name: str, seconds: float, ranks: list[int] | None
    ) -> None:
        members = frozenset(range(self.count) if ranks is None else ranks)
        barrier = self.barriers.get(name)
        if barrier is None:
            barrier = self.barriers[name] = _Barrier(members, time.monotonic() + seconds, {})
        if rank not in members or members != barrier.members:
            return answer(_error("INVALID_ARGUMENT", f"Barrier {name} is of {sorted(members)}."))
        barrier.here[rank] = answer
        if len(barrier.here) == len(members):
            del self.barriers[name]
            for each in barrier.here.values():
                each({"value": None})

    def expire(self) -> None:
        """End what has waited its time."""
        now = time.monotonic()
        with self.lock:
            for reader in [r for r in self.readers if r[0] < now]:
                self.readers.remove(reader)
                reader[2](_error("DEADLINE_EXCEEDED", f"Nobody has set the key {reader[1]}."))
            for name, barrier in [*self.barriers.items()]:
                if barrier.end < now:
                    del self.barriers[name]
                    missing = sorted(barrier.members - barrier.here.keys())
                    error = _error("DEADLINE_EXCEEDED", f"Barrier {name} timed out. Missing: "
                                   f"processes {', '.join(map(str, missing))}.")
                    for each in barrier.here.values():
                        each(error)


class _Barrier(NamedTuple):
    members: frozenset[int]
    end: float
    here: dict[int, Callable]


def _error(code: str, text: str) -> dict:
    return {"error": [code, text]}


class Server:
    """What is known of the ranks."""

    def __init__(self, count: int, limit: float, secret: str) -> None:
        self.count, self.limit, self.secret = count, limit, secret
        self.states: dict[int, dict] = {}
        self.store = Store(count)
        self.lock = threading.Lock()
        self.ended = False

    def serve(self, link: socket.socket) -> None:
        """The life of one rank."""
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
        self.store.pids[rank] = hello["pid"]
        where = self.name(rank)
        try:
            for line in stream:
                said = json.loads(line)
                if "op" in said:
                    self.store.ask(rank, said, functools.partial(_tell, link, said["id"]))
                    continue
                state.update(said)
                if "failed" in said:
                    self.end(f"{where} failed: {said['failed']} All processes end with it.")
                self.end_where_some_have_left()
                if said.get("late"):
                    self.end(self.hang(rank))
        except (OSError, ValueError):
            pass
        state["gone"] = True
        if "bye" not in state:
            doing = state.get("operation") or "between programs"
            others = " and ".join([self.name(r) for r in self.lost() if r != rank])
            too = f"; so has {others}, and one of them ended the rest" if others else ""
            self.end(f"{where} has ended without a word, in call {state.get('calls', 0)}, {doing}"
                     f"{too}. All processes end.")

    def name(self, rank: int) -> str:
        """A rank, its process and its host."""
        state = self.states[rank]
        return f"rank {rank} (process {state['pid']} on {state['host']})"

    def lost(self) -> list[int]:
        """The ranks whose connections have ended without a goodbye, read to their end or not.

        Where this process gets the cores late, `mpiexec` has ended all ranks before the first of
        them is heard of, and nobody can tell which it was.
        """
        ended = getattr(select, "POLLRDHUP", 0)
        found = []
        for rank, state in sorted(self.states.items()):
            gone = state.get("gone", False)
            if not gone and ended:
                poll = select.poll()
                poll.register(state["link"], ended)
                gone = bool(poll.poll(0)) and b'"bye"' not in _unread(state["link"])
            if gone and "bye" not in state:
                found.append(rank)
        return found

    def end_where_some_have_left(self) -> None:
        """End where a rank waits in what another, which has left, never came to."""
        for state in list(self.states.values()):
            if not state.get("operation") or "bye" in state:
                continue
            left = [r for r in state["ranks"] if self.never_comes(self.states.get(r, {}), state)]
            if left:
                who = " and ".join([
                    f"{self.name(r)} has left after {_count(self.states[r]['calls'])}"
                    for r in left
                ])
                self.end(
                    f"{who}, while rank {state['rank']} waits for it in {state['operation']}, "
                    f"after {_count(state['calls'])}: its script has ended, or called sys.exit, "
                    "before that of the others. All processes end."
                )

    @staticmethod
    def never_comes(gone: dict, waiting: dict) -> bool:
        """Whether a rank has left before it began what another waits in.

        Programs are counted beside their collectives: branches may differ in how many these are.
        """
        if "bye" not in gone:
            return False
        counts = ("calls", "begun") if waiting["inside"] else ("meetings",)
        return all(gone[k] < waiting[k] for k in counts)

    def hang(self, rank: int) -> str:
        """What is known of a collective that some have not come to."""
        late = self.states[rank]
        lines, missing = [], []
        for other in range(self.count):
            state = self.states.get(other, {})
            if "bye" in state:
                doing = "has left"
            elif state.get("operation"):
                doing = f"waits in {state['operation']} for {state.get('waits', 0):.0f} s"
            else:
                doing = f"runs no collective; its last program was {state.get('program')!r}"
            same = state.get("operation") == late.get("operation")
            if "bye" in state or not (same and state.get("calls") == late.get("calls")):
                missing.append(other)
            lines.append(f"  rank {other}: {doing} (call {state.get('calls', 0)})")
        who = ", ".join(map(str, missing)) or "none that is known of"
        what = f" of program {late['program']!r}" if late["inside"] else ""
        return (f"{late['operation']}{what} did not end in "
                f"{self.limit:.0f} s (NUMJET_COLLECTIVE_TIMEOUT). Missing: rank {who}.\n"
                + "\n".join(lines))

    def end(self, reason: str) -> None:
        """Say why, once, and have all ranks end."""
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


def _tell(link: socket.socket, number: int, answer: dict) -> None:
    """Send a rank the answer to what it asked."""
    with contextlib.suppress(OSError):
        link.sendall(json.dumps({"id": number, **answer}).encode() + b"\n")


def _count(calls: int) -> str:
    return f"{calls} program{'' if calls == 1 else 's'}"


def _unread(link: socket.socket) -> bytes:
    """What a rank has said that nobody has read yet."""
    try:
        return link.recv(1 << 16, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return b""


def main() -> None:
    count, limit, address = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    server = Server(count, limit, sys.stdin.readline().strip())
    door = socket.create_server((address, 0), backlog=count)
    print(door.getsockname()[1], flush=True)
    sys.stdout.close()
    door.settimeout(120)
    threads: list[threading.Thread] = []
    try:
        while len(threads) < count:
            link, _ = door.accept()
            link.settimeout(None)
            threads.append(threading.Thread(target=server.serve, args=(link,), daemon=True))
            threads[-1].start()
    except TimeoutError:
        pass
    while any(thread.is_alive() for thread in threads):
        server.store.expire()
        time.sleep(0.1)


if __name__ == "__main__":
    main()
