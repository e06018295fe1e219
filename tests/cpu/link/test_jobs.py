"""Work on other threads: order of results, and failures."""

import threading
import time

import pytest

from numjet.cpu import host
from numjet.cpu.link.jobs import Jobs
from numjet.native import operators


@pytest.fixture(autouse=True)
def quiet():
    """No other thread compiles: what earlier tests had begun is through."""
    if "builder" in operators._state:
        operators._build()


def test_results_stand_in_the_order_of_start():
    jobs = Jobs()
    jobs.start(lambda: time.sleep(0.01) or "a")  # the next one overtakes it
    jobs.start(lambda: "b")
    for k in range(50):
        jobs.start(lambda k=k: k)
    assert jobs.finish() == ["a", "b", *range(50)]


def test_the_first_failure_is_raised_and_later_work_is_dropped():
    jobs = Jobs()

    def fail():
        raise KeyError("wanted")

    jobs.start(fail)
    with pytest.raises(KeyError, match="wanted"):
        jobs.finish()
    assert not jobs._todo


def test_closed_jobs_let_their_threads_go():
    jobs = Jobs()
    jobs.start(lambda: None)
    jobs.close()
    for thread in jobs._threads:
        thread.join(10)
        assert not thread.is_alive()


def test_idle_tells_whether_work_would_begin(monkeypatch):
    monkeypatch.setattr(host, "cpu_count", lambda: 2)
    jobs, go = Jobs(), threading.Event()
    assert jobs.idle()
    jobs.start(go.wait)
    assert not jobs.idle()
    go.set()
    jobs.finish()
    monkeypatch.setattr(host, "cpu_count", lambda: 1)
    assert not Jobs().idle()
