"""The process that watches the ranks: whom it names when some have ended."""

from __future__ import annotations

import json
import select
import socket
from types import SimpleNamespace

import pytest

from numjet.cpu.runtime.watch import _Watch
from numjet.cpu.runtime.watch_server import Server


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
