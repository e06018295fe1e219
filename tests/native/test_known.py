"""Calls that native code writes down, and programs that it runs when a tape ends: the same results
as from Python, and only where nothing that they depend on has changed."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.api.eager import deferral
from numjet.base import locks
from numjet.core import evaluate, memo
from numjet.core.array import ArrayImpl
from numjet.core.deferred import DeferredArray
from numjet.native import operators
from numjet.native.known import KnownCalls
from numjet.numpy import reductions

if not operators.possible():
    pytest.skip(f"Python runs: {operators.status()}", allow_module_level=True)
if not operators.usable():
    operators._build()

N = evaluate.LARGE
X = np.random.default_rng(0).normal(size=(4, N // 4)).astype(np.float32)
SUMS = X.sum(1, keepdims=True)


def rows(v):
    return jnp.sum(v, axis=1, keepdims=True)


@pytest.fixture
def learned(monkeypatch):
    """The calls of sums that Python wrote down."""
    calls, found = reductions._sum, []

    def learn(args, plan):
        found.append(args)
        KnownCalls.learn(calls, args, plan)

    nj.clear_caches()
    monkeypatch.setattr(calls, "learn", learn)
    return found


def test_a_call_that_was_written_down_before_is_written_down_natively(learned):
    x = jnp.array(X)
    for _ in range(6):
        np.testing.assert_allclose(rows(x), SUMS, rtol=1e-3)
    before = len(learned)
    for _ in range(6):
        out = rows(x)
        assert type(out) is DeferredArray
        np.testing.assert_allclose(out, SUMS, rtol=1e-3)
    assert len(learned) == before
    for other in (
        lambda: jnp.sum(x, axis=0, keepdims=True), lambda: jnp.sum(x, axis=1),
        lambda: rows(jnp.ones((2, N))),
    ):  # fmt: skip
        before = len(learned)
        for _ in range(4):
            other()
        assert len(learned) > before  # others are other calls


def test_what_is_traced_or_small_goes_to_the_function(learned):
    x = jnp.array(X)
    for _ in range(6):
        rows(x)
    np.testing.assert_allclose(nj.jit(rows)(x), SUMS, rtol=1e-3)
    np.testing.assert_array_equal(nj.grad(lambda v: rows(v).sum())(x), np.ones_like(X))
    each = nj.vmap(lambda v: jnp.sum(v, axis=0, keepdims=True))(x)
    np.testing.assert_allclose(each, SUMS, rtol=1e-3)
    np.testing.assert_allclose(nj.vmap(rows)(x[None])[0], SUMS, rtol=1e-3)
    assert rows(jnp.ones((2, 3))).tolist() == [[3.0], [3.0]]


def test_flags_and_forgotten_calls(learned):
    x = jnp.array(X)
    for _ in range(6):
        rows(x)
    before = len(learned)
    rows(x)
    assert len(learned) == before
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        rows(jnp.array(X * np.nan))
    with nj.disable_jit():
        assert type(rows(x)) is ArrayImpl
    nj.clear_caches()
    for _ in range(3):
        np.testing.assert_allclose(rows(x), SUMS, rtol=1e-3)
    assert len(learned) > before
    whole = jnp.array(X.astype(np.int32))
    for x64 in (True, False, True):  # another state of the flags: other plans
        with nj.enable_x64(x64):
            for _ in range(3):
                assert rows(whole).dtype == (jnp.int64 if x64 else jnp.int32)


def test_composite_functions_and_names():
    x = jnp.array(X)
    for _ in range(6):
        got = nj.nn.softmax(x, axis=-1), jnp.var(x, -1, keepdims=True), jnp.std(x, axis=0)
    e = np.exp(X - X.max(-1, keepdims=True))
    np.testing.assert_allclose(got[0], e / e.sum(-1, keepdims=True), rtol=1e-3, atol=1e-8)
    np.testing.assert_allclose(got[1], X.var(-1, keepdims=True), rtol=1e-3)
    np.testing.assert_allclose(got[2], X.std(axis=0), rtol=1e-3)
    with pytest.raises(TypeError):
        jnp.var(x, -1, keepdim=True)
    deleted = jnp.array(X)
    deleted.delete()
    with pytest.raises(RuntimeError):
        jnp.var(deleted, -1, keepdims=True)
    for hostile in (object.__new__(type(x)), object.__new__(DeferredArray), None, "x"):
        with pytest.raises((TypeError, RuntimeError, AttributeError, ValueError)):
            rows(hostile)


def test_one_equation_with_a_constant():
    """`any` of a number that waits is one comparison with zero."""
    for _ in range(4):
        waits = jnp.sum(jnp.array(X))
        assert bool(jnp.any(waits, keepdims=True)) and bool(jnp.any(waits))


def program(x):
    y = jnp.tanh(x) * 2
    return y, y - jnp.max(y, axis=1, keepdims=True)


def test_programs_that_were_found_run_natively(monkeypatch):
    x = jnp.array(X)
    want = [np.asarray(v) for v in nj.jit(program)(x)]
    for _ in range(8):
        made = program(x)
        assert {*map(type, made)} == {DeferredArray}
        for got, wanted in zip(made, want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
            assert type(got) is ArrayImpl and got._pending is None
    assert deferral._ready and all(deferral._ready.values())
    monkeypatch.setattr(deferral, "_sequences", None)  # Python's way would ask it
    made = program(x)
    made[1].block_until_ready()
    monkeypatch.undo()
    first, second = program(x)
    del first  # another set of results: another program
    np.testing.assert_allclose(second, want[1], rtol=1e-5, atol=1e-6)


def test_many_threads_run_what_was_found():
    x = jnp.array(X)
    want = np.asarray(nj.jit(program)(x)[1])
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(40):
                np.testing.assert_allclose(program(x)[1], want, rtol=1e-5, atol=1e-6)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_locks_of_threads_that_ended_are_forgotten():
    def work() -> None:
        np.asarray(jnp.array(X) + 1)

    before = len(locks._of_threads)
    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert len(locks._of_threads) <= before + 1


def test_calls_that_are_forgotten_while_they_are_learned(learned, monkeypatch):
    """No word leads to an entry that nobody holds any more."""
    calls = reductions._sum
    monkeypatch.setattr(memo, "_BETWEEN", 1)
    monkeypatch.setattr(memo, "_bound_all", lambda: calls.drop(len(calls)))
    for _ in range(6):
        np.testing.assert_allclose(rows(jnp.asarray(X) * 1.0), SUMS, rtol=1e-4)
    assert learned and not len(calls) and not calls.words.any()
