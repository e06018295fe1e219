"""Libraries of kernels: made once, by whichever thread asks first, in each process."""

from __future__ import annotations

import os
import threading

import pytest

from numjet.cpu import backend, host
from numjet.cpu.kernels import libraries
from numjet.cpu.link import link, loader


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_what_its_parent_had_begun() -> None:
    symbol, held, stop = "nj_never_made", threading.Event(), threading.Event()

    def hold() -> None:
        with libraries._lock:
            held.set()
            stop.wait()

    libraries._job(symbol)  # whose thread is at work when the process forks
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        child = os.fork()
        if child == 0:
            free = libraries._lock.acquire(timeout=5)
            os._exit(0 if free and not libraries.busy() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert libraries.busy()
    finally:
        stop.set()
        thread.join()
        del libraries._jobs[symbol]


def test_an_interrupted_library_is_made_again(monkeypatch) -> None:
    tries, name = [], os.urandom(8).hex()  # which no cache of an earlier run knows

    def module(rest: str) -> str:
        tries.append(rest)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return f"define i64 @{libraries.ENTRY}() {{\n  ret i64 3\n}}\n"

    monkeypatch.setitem(libraries._modules, "nj_tried_", module)
    monkeypatch.setitem(libraries._direct, "nj_tried_", lambda rest: False)
    try:
        with pytest.raises(KeyboardInterrupt):
            libraries.address("nj_tried_" + name)
        assert libraries.address("nj_tried_" + name) and tries == [name, name]
    finally:
        libraries._jobs.pop("nj_tried_" + name, None)


def test_a_kept_library_is_not_damaged_where_memory_is_refused(monkeypatch) -> None:
    text = f"define i64 @{libraries.ENTRY}() {{\n  ret i64 5\n}}\n"
    monkeypatch.setitem(libraries._modules, "nj_kept_", lambda rest: text)
    monkeypatch.setitem(libraries._direct, "nj_kept_", lambda rest: False)
    try:
        libraries.address("nj_kept_x")
        del libraries._jobs["nj_kept_x"]
        with monkeypatch.context() as refused:
            refused.setattr(host, "make_executable", lambda start, size: False)
            refused.setattr(link, "cache_damaged", None)
            with pytest.raises(loader.CodeRefused):
                libraries.address("nj_kept_x")
        monkeypatch.setattr(link, "compile_module", None)
        assert libraries.address("nj_kept_x")
    finally:
        libraries._jobs.pop("nj_kept_x", None)


@pytest.mark.parametrize("bad", [b"", b"garbage", b"NJIMAGE1garbage"])
def test_a_library_that_is_damaged_in_the_cache_is_made_anew(bad, monkeypatch) -> None:
    text = f"define i64 @{libraries.ENTRY}() {{\n  ret i64 7\n}}\n"
    monkeypatch.setitem(libraries._modules, "nj_damaged_", lambda rest: text)
    monkeypatch.setitem(libraries._direct, "nj_damaged_", lambda rest: False)
    monkeypatch.setattr(link._store(), "_warned", set())
    key = libraries._key("nj_damaged_x")
    link.cache_put(key, bad)
    try:
        with pytest.warns(RuntimeWarning, match="damaged"):
            assert libraries.address("nj_damaged_x")
        assert link.cache_get(key) not in (None, bad)
        # Without the modules that write it, for a program from the cache.
        link.cache_put(key, bad)
        monkeypatch.setattr(link._store(), "_warned", set())
        with pytest.warns(RuntimeWarning, match="damaged"):
            assert not backend._linked({"nj_damaged_y": key})
    finally:
        libraries._jobs.pop("nj_damaged_x", None)
