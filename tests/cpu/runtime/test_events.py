"""Queues of native calls: order, completion, lifetime, fork, exit."""

import gc
import os
import textwrap
import time
import weakref

import numpy as np
import pytest
from python_process import SUBMIT, printed
from together import together

from numjet.cpu.link import link
from numjet.cpu.runtime import Queue, events

MODULE = """
; x[0] = 3 x[0] + 1; returns x[1]
define i32 @step(ptr %x, ptr %b, ptr %c, ptr %d) {
  %old = load i64, ptr %x
  %three = mul i64 %old, 3
  %new = add i64 %three, 1
  store i64 %new, ptr %x
  %p = getelementptr i64, ptr %x, i64 1
  %status = load i32, ptr %p
  ret i32 %status
}

; Waits until *x is not 0.
define i32 @gate(ptr %x, ptr %b, ptr %c, ptr %d) {
entry:
  br label %loop
loop:
  %now = load atomic i64, ptr %x seq_cst, align 8
  %closed = icmp eq i64 %now, 0
  br i1 %closed, label %loop, label %out
out:
  ret i32 7
}
"""


@pytest.fixture(scope="module")
def library():
    return link.load([link.compile_module(MODULE, verify=True)])


class Owner:
    """A weakly referable owner of an array."""

    def __init__(self, values):
        self.array = np.array(values, np.int64)
        self.address = self.array.ctypes.data


def test_calls_run_in_order(library):
    queue, state = Queue(), Owner([1, 5])
    calls = [queue.submit(library.address("step"), (state.address,), state) for _ in range(30)]
    assert calls[-1].wait() == 5
    expected = 1
    for _ in range(30):
        expected = (3 * expected + 1) & (2**64 - 1)
    assert int(state.array[0]) & (2**64 - 1) == expected
    assert all(call.done() for call in calls)


def test_done_tells_the_truth_and_wait_returns_the_status(library):
    queue, gate, state = Queue(), Owner([0]), Owner([0, 0])
    call = queue.submit(library.address("gate"), (gate.address,), gate)
    after = queue.submit(library.address("step"), (state.address,), state)
    time.sleep(0.01)
    assert not call.done() and not after.done()
    gate.array[0] = 1
    assert call.wait() == 7 and call.done()
    after.wait()
    assert call.wait() == 7


def test_memory_is_kept_while_the_call_runs(library):
    queue, gate, other = Queue(), Owner([0]), Owner([1, 2])
    alive = weakref.ref(gate)
    array = gate.array
    queue.submit(library.address("gate"), (gate.address,), gate)
    del gate
    gc.collect()
    assert alive() is not None
    array[0] = 1
    queue.drain()
    queue.submit(library.address("step"), (other.address,), other).wait()
    gc.collect()
    assert alive() is None


def test_many_threads_submit(library):
    queue = Queue()
    states = [Owner([0, k]) for k in range(4)]

    def work(state):
        for _ in range(200):
            state.last = queue.submit(library.address("step"), (state.address,), state)

    together(work, states)
    assert [state.last.wait() for state in states] == [0, 1, 2, 3]
    assert len({int(state.array[0]) for state in states}) == 1


def test_one_queue_a_device():
    assert events.queue(0) is events.queue(0) is not events.queue(1)


def test_without_threads_calls_run_at_once(library, monkeypatch):
    monkeypatch.setattr(events, "_native", lambda: None)
    state = Owner([1, 9])
    call = Queue().submit(library.address("step"), (state.address,), state)
    assert call.done() and call.wait() == 9 and state.array[0] == 4


_SETUP = textwrap.indent(SUBMIT, "    ") + """
    import os, sys, time
    from numjet.cpu.runtime import events
    queue = events.queue()
    seen = []
    slow = lambda: (time.sleep(0.2), seen.append(1), print("ran", flush=True))
"""


def run_child(code):
    return printed(_SETUP + code)


def test_the_interpreter_waits_for_running_calls():
    assert run_child("""
    submit(queue, slow)
    """) == "ran\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_gets_a_thread_of_its_own():
    assert run_child("""
    pending = submit(queue, slow)
    child = os.fork()
    if child == 0:
        try:
            pending.wait()
        except RuntimeError as error:
            assert "before forking" in str(error)
        submit(queue, lambda: seen.append(2)).wait()
        os._exit(3 if seen == [2] else 4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    pending.wait()
    """) == "ran\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_ends_while_calls_of_its_parent_run():
    """They never end in the child, which has no thread for them."""
    assert run_child("""
    submit(queue, slow)
    child = os.fork()
    if child == 0:
        sys.exit(3)
    found, rounds = (0, 0), 0
    while found[0] == 0 and rounds < 400:
        found, rounds = os.waitpid(child, os.WNOHANG), rounds + 1
        time.sleep(0.05)
    if found[0] == 0:
        os.kill(child, 9)
    assert found[0] == child and os.waitstatus_to_exitcode(found[1]) == 3
    """) == "ran\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    """One that was handing a call over when the process was forked."""
    queue = events.queue()
    with queue._lock:
        child = os.fork()
        if child == 0:
            os._exit(not queue._lock.acquire(timeout=5))
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")
def test_waiting_can_be_interrupted():
    assert run_child("""
    import signal, threading
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells' background jobs ignore it
    done = threading.Event()
    pending = submit(queue, lambda: done.wait(30))
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        pending.wait()
    except KeyboardInterrupt:
        print("interrupted", not done.is_set())
    done.set()
    pending.wait()
    """) == "interrupted True\n"
