"""Learned shortcuts are bounded, listed and cleared; ever new shapes leave nothing behind."""

from __future__ import annotations

import collections
import gc
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_process import printed

import numjet as nj
import numjet.numpy as jnp
from numjet.core import avals, memo
from numjet.core.avals import ShapedArray
from numjet.core.memo import Memo, WeighedMemo
from numjet.native import operators


def test_the_oldest_entries_go_when_a_memo_is_full() -> None:
    made = Memo("test", 8, passing=True)
    for k in range(20):
        made[k] = -k
        assert len(made) <= 8 and made[k] == -k
    assert list(made) == sorted(made)[-len(made) :] and 19 in made and 0 not in made
    assert (made.learned, made.dropped) == (20, 20 - len(made))
    made[19] = 5  # known: nothing goes for it
    assert made.dropped == 20 - len(made)
    assert made.setdefault(19, 7) == 5 and made.setdefault("new", 7) == 7


def test_large_values_are_bounded_by_their_bytes() -> None:
    made = WeighedMemo("test of bytes", 100, 1000, len)
    for k in range(50):
        made[k] = b"x" * (30 * (k % 5))
        assert made.weight == sum(map(len, made.values())) <= 1000
    assert 5 < len(made) < 50 and 49 in made and 0 not in made
    made[49] = b"y" * 990  # in place of another
    assert made.weight == sum(map(len, made.values())) <= 1000 and made[49][:1] == b"y"
    made["alone"] = b"z" * 2000  # larger than the bound: kept alone
    assert list(made) == ["alone"]
    made.drop(1)
    assert made.weight == 0
    memo._lasting.remove(made)


def test_all_memos_are_bounded_together(monkeypatch) -> None:
    monkeypatch.setattr(memo, "memos", lambda: iter(mine))
    monkeypatch.setattr(memo, "TOTAL", 100)
    monkeypatch.setattr(memo, "_BETWEEN", 1)
    mine = [Memo(f"test {k}", 1000, passing=True) for k in range(4)]
    for k in range(500):
        mine[0][k] = k
        mine[1 + k % 3][k] = k
        assert sum(map(len, mine)) <= 101


def test_memos_are_listed_with_their_sizes_and_cleared() -> None:
    x = jnp.ones(7)
    for _ in range(4):
        jnp.tanh(x), x + 1.0, x.sum()
        nj.make_jaxpr(lambda v: v[1:] + v.sum())(x)
    f = nj.jit(lambda v: v * 2)
    f(x)
    listed = {i.name: i for i in nj.debug.memos()}
    for name in ("avals", "function of arrays: tanh", "programs of <lambda>"):
        assert 0 < listed[name].size <= listed[name].bound and listed[name].bytes > 0
    again = listed["equations of functions of one traced array"]
    assert again.hits is not None and again.hits > 0
    nj.clear_caches()
    assert not [i for i in nj.debug.memos() if i.name != "avals"]
    np.testing.assert_array_equal(f(x) + jnp.tanh(x), 2 + np.tanh(np.ones(7, np.float32)))
    assert x.aval is ShapedArray((7,), np.dtype(np.float32))


def test_caches_may_be_cleared_while_other_threads_learn() -> None:
    stop, failures = threading.Event(), []

    def learn(seed: int) -> None:
        try:
            n = seed
            while not stop.is_set():
                n = 1 + (n * 31 + 7) % 97
                x = jnp.ones(n)
                assert float((jnp.tanh(x + 0.0) * 0 + x).sum()) == n
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=learn, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        nj.clear_caches()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_aval_is_one_object_as_long_as_it_lives() -> None:
    dtype = np.dtype(np.int16)
    first = ShapedArray((1234, 5), dtype)
    ShapedArray._known.clear()
    assert ShapedArray((1234, 5), dtype) is first is ShapedArray([1234, np.int64(5)], "int16")
    dead = weakref.ref(first)
    ShapedArray._known.clear()
    del first
    gc.collect()
    assert dead() is None and ((1234, 5), dtype, False) not in avals._alive


def test_avals_made_by_many_threads_are_one() -> None:
    found: list[set] = [set() for _ in range(4)]
    keep: list = []

    def make(k: int) -> None:
        for n in range(3000):
            aval = ShapedArray((n % 300, 77), np.dtype(np.int8))
            keep.append(aval)
            found[k].add((aval.shape, id(aval)))
            if n % 100 == k:
                ShapedArray._known.clear()

    threads = [threading.Thread(target=make, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set.union(*found)) == 300


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads this process's memory")
def test_ever_new_shapes_leave_the_resident_size_flat() -> None:
    """Bounds a twentieth of the true ones, and as many fewer shapes: 45 KB each before."""
    text = """
import gc, os
import numjet as nj, numjet.numpy as jnp
from numjet.core import memo
from numjet.native import operators

operators.possible() and not operators.usable() and operators._build()
memo.TOTAL = 2000
for m in memo.memos():
    m.bound = 100

def use(n):
    x = jnp.zeros(n)
    y = jnp.sin(2.0 * (x + 1.0) + x)
    y.sum(), y[1:], jnp.where(y > 0, y, 0.0), x.at[0].set(1.0), x.reshape(1, n), x @ x
    jnp.broadcast_to(x, (2, n)), jnp.concatenate([x, x]), x**2, x.mean(), x.astype(jnp.int32)

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

for n in range(1, 300):
    use(n)
before = resident()
for n in range(300, 900):
    use(n)
print((resident() - before) // 600)
"""
    bytes_of_a_shape = int(printed(text, timeout=200))
    assert bytes_of_a_shape < 4000


def test_signatures_of_a_jitted_function_are_bounded(monkeypatch) -> None:
    from numjet.api.compiled import jit_core

    monkeypatch.setattr(jit_core, "MAX_SIGNATURES", 4)
    f = nj.jit(lambda x: x + 1)
    for n in range(1, 12):
        assert f(jnp.ones(n)).shape == (n,)
    assert f._cache_size() <= 4


def test_memos_are_listed_while_threads_make_others() -> None:
    stop, raised = threading.Event(), []

    def make() -> None:
        try:
            while not stop.is_set():
                Memo("passing", passing=True)
        except RuntimeError as error:
            raised.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            assert all(isinstance(found, Memo) for found in memo.memos())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not raised


def test_everything_may_be_forgotten_while_other_threads_learn():
    stop, failures, interval = threading.Event(), [], sys.getswitchinterval()

    def learn():
        try:
            kept = collections.deque(maxlen=2000)
            while not stop.is_set():
                kept.append(nj.jit(lambda x: x + 1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=learn) for _ in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(15):
            nj.clear_caches()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not failures


def test_results_of_functions_are_remembered_bounded_and_listed() -> None:
    calls = []

    @memo.remembered("test of functions", 4)
    def double(x: int) -> int:
        calls.append(x)
        return 2 * x

    try:
        assert [double(k) for k in (1, 2, 1, 3, 4, 5, 1)] == [2, 4, 2, 6, 8, 10, 2]
        assert calls == [1, 2, 3, 4, 5] or calls == [1, 2, 3, 4, 5, 1]
        found = {i.name: i for i in nj.debug.memos()}["test of functions"]
        assert (found.size, found.bound, found.learned) == (4, 4, len(calls))
        nj.clear_caches()
        assert double(1) == 2 and calls[-1] == 1
    finally:
        memo._functions.pop()


def test_everything_learned_is_a_memo() -> None:
    package = Path(nj.__file__).parent
    found = [path for path in package.rglob("*.py") if "lru_cache" in path.read_text()]
    # And what JAX's `weakref_lru_cache` is for libraries.
    assert {path.name for path in found} == {"memo.py", "beside.py"}


def test_native_tables_are_listed_and_forget() -> None:
    if not operators.possible():
        pytest.skip("no native code here")
    operators._build()
    table = operators.Table(lambda x: x, 1, name="test")
    x = jnp.ones(11)
    table.add(x.aval, None, np.sin, x.aval)
    assert len(table) == 1 and table.words[operators._HEADER :].any()
    assert {i.name: i for i in nj.debug.memos()}["native code: test"].size == 1
    assert float(table.function()(x)[0]) == np.sin(np.float32(1))
    nj.clear_caches()
    assert not table and not table.words[operators._HEADER :].any() and table.dropped == 1
    assert table.function()(x) is x  # Python's way
    table.add(x.aval, None, np.sin, x.aval)
    assert float(table.function()(x)[0]) == np.sin(np.float32(1))


def test_a_weighed_memo_may_lose_an_entry_while_it_is_stored() -> None:
    class Key:
        """Whose second comparison lets the memo forget everything."""

        compared = 0

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            Key.compared += 1
            if Key.compared == 2:
                weighed.clear()
            return True

    weighed = WeighedMemo("test of weights", 8, 100, lambda x: x)
    weighed[Key()] = 5
    weighed[Key()] = 6
    assert list(weighed.values()) == [6]


def test_a_function_may_be_called_by_a_finalizer_of_its_cycle() -> None:
    """Finalizers of a cycle run in any order: code was unmapped before they called it."""
    got: list = []

    class Model:
        def __init__(self, run: Any) -> None:
            self.run, self.me = run, self

        def __del__(self) -> None:
            got.append(np.asarray(self.run(jnp.arange(50.0))))

    for k in range(5):
        run = nj.jit(lambda x, k=k: jnp.sort(x * k) + 1)
        run(jnp.arange(50.0)), run(jnp.arange(50.0))
        model = Model(run)
        run.model = model
        del run, model
        gc.collect()
        np.testing.assert_array_equal(got[-1], np.arange(50.0) * k + 1)
