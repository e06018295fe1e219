"""The process that watches the ranks: whom it names when some have ended."""

from __future__ import annotations

import json
import select
import socket
from types import SimpleNamespace

import pytest

from numjet.cpu.runtime.watch import _Watch
from numjet.cpu.runtime.watch_server import Server, Store


def hello(rank: int) -> bytes:
    return json.dumps({"rank": rank, "pid": 100 + rank, "host": "here", "secret": "s"}).encode()


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="only Linux tells of closed ends")
@pytest.mark.parametrize("other", ["runs", "ended", "said goodbye"])
def test_ranks_that_ended_before_the_first_was_heard_of_are_named(
    other: str, capsys: pytest.CaptureFixture
) -> None:
    server = Server(2, 30, "s")
    ends = [socket.socketpair() for _ in range(2)]
    ends[0][0].sendall(hello(0) + b"\n" + json.dumps({"calls": 18}).encode() + b"\n")
    server.states[1] = {**json.loads(hello(1)), "link": ends[1][1]}
    if other == "said goodbye":
        ends[1][0].sendall(b'{"bye": true}\n')
    if other != "runs":
        ends[1][0].close()
    ends[0][0].close()
    server.serve(ends[0][1])
    told = capsys.readouterr().err
    assert "rank 0 (process 100 on here) has ended without a word, in call 18, between" in told
    assert ("rank 1 (process 101 on here), and one of them ended the rest" in told) == (
        other == "ended")  # fmt: skip
    for pair in ends:
        for end in pair:
            end.close()


def test_a_rank_that_cannot_reach_the_watch_goes_on_without(capsys: pytest.CaptureFixture) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = (*closed.getsockname(), "s")
    met: list[int] = []
    control = SimpleNamespace(bcast=lambda _: address, Barrier=lambda: met.append(1))
    watch = _Watch(SimpleNamespace(count=2, index=1, control=control, doing=dict))
    assert "rank 1 cannot reach the watch" in capsys.readouterr().err and met == [1]
    watch.goodbye()


def test_values_and_barriers_by_name() -> None:
    store, told = Store(3), []

    def ask(op: str, rank: int = 0, **given: object) -> None:
        store.ask(rank, {"op": op, "with": given}, lambda answer: told.append((rank, answer)))

    ask("get", key="k", seconds=None)
    assert told.pop()[1]["error"][0] == "NOT_FOUND"
    ask("get", rank=2, key="k", seconds=100.0)
    assert not told
    ask("set", key="k", value="v", overwrite=False)
    assert told == [(0, {"value": None}), (2, {"value": "v"})] and not store.readers
    ask("set", key="k", value="w", overwrite=False)
    assert told.pop()[1]["error"][0] == "ALREADY_EXISTS"
    ask("set", key="k", value="w", overwrite=True)
    ask("get", key="k", seconds=None)
    assert told.pop()[1] == {"value": "w"}
    for key in ("d/b", "d/a", "dd"):
        ask("set", key=key, value=key, overwrite=False)
    ask("below", prefix="d")
    assert told.pop()[1] == {"value": [("d/a", "d/a"), ("d/b", "d/b")]}
    ask("delete", key="d")
    ask("below", prefix="d/")
    assert told.pop()[1] == {"value": []} and "dd" in store.values
    ask("add", key="n", amount=2)
    ask("add", key="n", amount=3)
    assert told.pop()[1] == {"value": 5}
    ask("get", key="never", seconds=-1.0)
    told.clear()
    store.expire()
    assert [answer["error"][0] for _, answer in told] == ["DEADLINE_EXCEEDED"]
    # A barrier of all, which is used again, and one of some.
    for _ in range(2):
        told.clear()
        for rank in (0, 1, 2):
            assert not told
            ask("meet", rank=rank, name="b", seconds=100.0, ranks=None)
        assert sorted(told) == [(rank, {"value": None}) for rank in range(3)]
    told.clear()
    ask("meet", rank=0, name="c", seconds=100.0, ranks=[0, 2])
    ask("meet", rank=1, name="c", seconds=100.0, ranks=[0, 2])
    assert told.pop()[1]["error"][0] == "INVALID_ARGUMENT" and not told
    ask("meet", rank=2, name="c", seconds=100.0, ranks=[0, 2])
    assert len(told) == 2
    told.clear()
    ask("meet", rank=1, name="late", seconds=-1.0, ranks=None)
    store.expire()
    assert "processes 0, 2" in told.pop()[1]["error"][1] and not store.barriers
