"""Work that waits: its order, that one thread does it all, and what becomes of it in a fork."""

import os
import threading
import time

import pytest

from numjet.cpu.link.later import _Later


def wait_until(true):
    until = time.monotonic() + 30
    while not true() and time.monotonic() < until:
        time.sleep(0.001)
    assert true()


def test_work_is_done_when_it_is_due_by_one_thread():
    later, done = _Later(), []

    def work(name):
        return lambda: done.append((name, threading.get_ident()))

    later(0.2, work("second"))  # the thread sleeps for it when the next ones come
    later(0.05, work("first"))
    later(3600, work("never"))
    later(0.05, work("beside it"))
    wait_until(lambda: len(done) == 3)
    assert [name for name, _ in done] == ["first", "beside it", "second"]
    assert len({thread for _, thread in done}) == 1 and later._serving


def test_the_thread_ends_and_another_begins():
    later, done = _Later(), []
    for k in range(5):
        later(0, lambda k=k: done.append(k))
        if k % 2:
            wait_until(lambda: not later._serving)
    wait_until(lambda: not later._serving)
    assert done == [*range(5)]


def test_work_may_be_given_by_work_and_by_many_threads():
    later, done = _Later(), []

    def give(depth):
        done.append(depth)
        if depth:
            later(0.001 * depth, lambda: give(depth - 1))

    threads = [threading.Thread(target=give, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: len(done) == 4 * 21)


def test_what_is_to_be_done_is_changed_under_the_lock():
    later = _Later()

    class Guarded(list):
        def append(self, work):
            assert later._lock.locked()
            super().append(work)

        def remove(self, work):
            assert later._lock.locked()
            super().remove(work)

    later._todo, done = Guarded(), []
    for k in range(3):
        later(0, lambda k=k: done.append(k))
    wait_until(lambda: not later._serving)
    assert done == [0, 1, 2]


def test_without_a_thread_nothing_is_kept(monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    later, done = _Later(), []
    monkeypatch.setattr("_thread.start_new_thread", none)
    with pytest.raises(RuntimeError):
        later(0, lambda: done.append(1))
    monkeypatch.undo()
    later(0, lambda: done.append(2))
    wait_until(lambda: not later._serving)
    assert done == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_begins_without_work():
    from numjet.cpu.link.later import later

    reached = threading.Event()
    later(3600, lambda: None)
    child = os.fork()
    if child == 0:
        empty = not later._todo and not later._serving
        later(0, reached.set)
        os._exit(0 if empty and reached.wait(30) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert later._serving
