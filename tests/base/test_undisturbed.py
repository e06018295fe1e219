"""No garbage collections for a while: settings come back, memory is bounded."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

from numjet.base.undisturbed import _Undisturbed, undisturbed
from numjet.native import operators

counts_young_objects = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without its global lock Python collects by other counts",
)


@pytest.fixture(autouse=True)
def quiet():
    """No other thread compiles: what earlier tests had begun is through."""
    if "builder" in operators._state:
        operators._build()


def waits():
    """Whether Python collects no garbage, although that is allowed."""
    return gc.isenabled() and gc.get_threshold()[0] > 10**6


def test_what_others_set_meanwhile_stays():
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    try:
        with undisturbed:
            gc.disable()
            gc.set_threshold(123, 4, 5)
            sys.setswitchinterval(0.002)
        assert not gc.isenabled() and gc.get_threshold()[:2] == (123, 4)
        assert sys.getswitchinterval() == 0.002
        with undisturbed:
            gc.enable()
        assert gc.isenabled() and gc.get_threshold()[:2] == (123, 4)
        with undisturbed:
            first, second, *_ = gc.get_threshold()
            gc.set_threshold(first, second + 1)
        assert gc.get_threshold()[:2] == (123, 5) and sys.getswitchinterval() == 0.002
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def test_settings_come_back_after_the_last_one_has_left():
    before = sys.getswitchinterval()
    assert gc.isenabled()
    with undisturbed:
        with undisturbed:
            assert waits() and sys.getswitchinterval() <= before
        assert waits()
    assert not waits() and sys.getswitchinterval() == before
    gc.disable()
    try:
        with undisturbed:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_shorter_interval_and_a_disabled_collector_are_left_alone():
    before, inside = sys.getswitchinterval(), _Undisturbed()
    sys.setswitchinterval(1e-5)
    try:
        with inside:
            assert sys.getswitchinterval() < 2e-5
    finally:
        sys.setswitchinterval(before)
    gc.disable()
    try:
        with inside:
            made = [[] for _ in range(5000)]
        assert any(made[-1] is x for x in gc.get_objects(generation=0))  # nobody moved it
    finally:
        gc.enable()


@pytest.fixture
def collections():
    """The generations that were collected, one at a time, since the test began."""
    seen = []

    def note(phase, info):
        if phase == "start":
            seen.append(info["generation"])

    gc.collect()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_what_was_made_inside_is_not_collected_but_old(collections):
    inside, most = _Undisturbed(), gc.get_threshold()[0]
    with inside:
        made = [[] for _ in range(5 * most)]
    [[] for _ in range(10)]  # young objects, at which a collection that was due would begin
    assert not collections
    assert any(made[-1] is x for x in gc.get_objects(generation=2))


@counts_young_objects
def test_few_objects_made_inside_bring_no_collection_nearer(collections):
    most = gc.get_threshold()[0]
    with _Undisturbed():
        made = [[] for _ in range(most // 2)]
    young = [[] for _ in range(most * 3 // 4)]
    assert not collections
    young += [[] for _ in range(most)]
    assert collections and made


@counts_young_objects
def test_after_many_objects_python_collects_until_it_has_collected_all(collections, monkeypatch):
    monkeypatch.setattr("numjet.base.undisturbed._UNCOLLECTED", 3000)
    inside = _Undisturbed()

    def make():
        with inside:
            made = [[] for _ in range(2000)]
        [[] for _ in range(10)]
        return made

    kept = [make(), make()]
    assert not collections
    kept.append(make())
    assert collections
    gc.collect()
    del collections[:]
    kept.append(make())
    assert not collections


@counts_young_objects
def test_garbage_goes_although_there_is_always_a_thread_inside(monkeypatch):
    monkeypatch.setattr("numjet.base.undisturbed._MOST_YOUNG", 1000)

    class Cycle:
        def __init__(self):
            self.me = self

    inside, leave = threading.Event(), threading.Event()

    def stay():
        with undisturbed:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    try:
        with undisturbed:
            gone = weakref.ref(Cycle())
            kept = [Cycle() for _ in range(2000)]
            assert gone() is not None
        assert gone() is None and len(kept) == 2000
    finally:
        leave.set()
        thread.join()


def test_where_the_user_collects_nothing_nothing_is_collected(collections, monkeypatch):
    monkeypatch.setattr("numjet.base.undisturbed._MOST_YOUNG", 100)
    inside = _Undisturbed()
    gc.disable()
    try:
        with inside:
            with inside:
                made = [[] for _ in range(1000)]
            assert made and not collections
    finally:
        gc.enable()


def test_what_the_user_froze_stays_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with _Undisturbed():
            made = [[] for _ in range(2000)]
        # Other threads may let go of some; `gc.unfreeze` would leave none.
        assert gc.get_freeze_count() > frozen // 2 and made
    finally:
        gc.unfreeze()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("here", [False, True])
def test_a_forked_process_collects_garbage_again(here):
    """A thread that is inside while another one forks never leaves in the child."""
    inside, entered, leave = undisturbed, threading.Event(), threading.Event()

    def stay():
        with inside:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    before = sys.getswitchinterval()
    thread.start()
    assert entered.wait(10)
    if here:
        inside.__enter__()
    child = os.fork()
    if child == 0:
        good = waits() is here
        if here:
            inside.__exit__()
        good &= not waits() and sys.getswitchinterval() == before
        os._exit(0 if good else 1)
    if here:
        inside.__exit__()
    leave.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_importing_collects_no_garbage_and_leaves_no_setting():
    program = """
import gc
seen = []
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
gc.set_threshold(701, 11, 12)
import numjet
print(len(seen) < 20, gc.get_threshold() == (701, 11, 12), gc.isenabled())
del seen[:]
kept = [[] for _ in range(2000)]
print(len(seen) > 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 4, done.stderr
