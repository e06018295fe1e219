"""Prepared calls and calls in the background against the complete way: results, flags, references,
threads, fork."""
from __future__ import annotations

import gc
import os
import sys
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from resident import STATM, resident
from together import together

import numjet as nj
import numjet.numpy as jnp
from numjet.api.execution import dispatch
from numjet.base import config
from numjet.native import calls as fastcall_native

Point = namedtuple("Point", "a b")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _leaves(x):
    return [np.asarray(v) for v in nj.tree_util.tree_leaves(x)]


def _prepared(f, *args, **kwargs):
    """The result of the complete way, after calls enough that the short one is in place."""
    want = f(*args, **kwargs)
    for _ in range(3):
        f(*args, **kwargs)
    return want


CASES = {
    "one": (lambda x: x * 2 + 1, lambda: (jnp.asarray(X),)),
    "two": (lambda x, y: x @ y, lambda: (jnp.asarray(X), jnp.asarray(X.T))),
    "no argument": (lambda: jnp.arange(3.0), lambda: ()),
    "scalars": (lambda x, a, n, b: jnp.where(b, x * a, x + n),
                lambda: (jnp.asarray(X), 2.5, 3, True)),
    "numpy": (lambda x, y: x + y, lambda: (X, X.astype(np.int32))),
    "numpy, not contiguous": (lambda x: x + 1, lambda: (X.T,)),
    "float64": (lambda x: x + 1, lambda: (X.astype(np.float64),)),
    "view": (lambda x: x + 1, lambda: (jnp.asarray(X.T[::2]),)),
    "pytree": (lambda t: {"z": t["a"][0] + 1, "y": (t["b"], [t["a"][1], None])},
               lambda: ({"b": jnp.asarray(X), "a": [jnp.ones(3), 2.0]},)),
    "namedtuple": (lambda p: Point(p.b, (p.a,)), lambda: (Point(jnp.asarray(X), jnp.ones(2)),)),
    "empty": (lambda x, t: (x, t), lambda: (jnp.zeros((0, 3)), {})),
    "constant": (lambda x: x + jnp.asarray(X), lambda: (jnp.asarray(X),)),
    "no result": (lambda x: None, lambda: (jnp.ones(2),)),
    "large": (lambda x: (x + 1, x.sum()), lambda: (jnp.ones(100_000),)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_short_way_gives_what_the_complete_one_gives(name):
    fun, make = CASES[name]
    f = nj.jit(fun)
    want = _prepared(f, *make())
    for _ in range(3):
        got = f(*make())
        assert nj.tree_util.tree_structure(got) == nj.tree_util.tree_structure(want)
        for a, b in zip(nj.tree_util.tree_leaves(got), nj.tree_util.tree_leaves(want),
                        strict=True):
            assert a.aval is b.aval
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_another_call_takes_another_program():
    f = nj.jit(lambda x, *rest, **kw: x + sum(rest) + kw.get("k", 0))
    x = jnp.asarray(X)
    _prepared(f, x)
    for args, kwargs in [((x, 1), {}), ((x,), {"k": 2.0}), ((X[0],), {}), ((1,), {}), ((1.5,), {}),
                         ((True,), {}), ((x.astype(int),), {}), ((np.float32(3),), {}), ((x,), {})]:
        for _ in range(4):
            want = np.asarray(args[0]) + sum(args[1:]) + kwargs.get("k", 0)
            got = f(*args, **kwargs)
            np.testing.assert_array_equal(np.asarray(got), want)
    assert f(1).aval.weak_type and not f(x).aval.weak_type


def test_statics_are_compared_with_their_type():
    seen = []

    def fun(x, n, flag="a"):
        seen.append((n, flag))
        return x + n

    f = nj.jit(fun, static_argnums=1, static_argnames="flag")
    x = jnp.ones(2)
    for n in (1, 2, 1.0, True, 1):
        for _ in range(3):
            assert np.asarray(f(x, n))[0] == 1 + n
    assert f(x, 1).dtype == f(x, 1.0).dtype
    assert [type(n) for n, _ in seen] == [int, int, float, bool]
    for _ in range(4):
        f(x, 1, flag="b")
    assert seen[-1] == (1, "b") and len(seen) == 5


def test_flags_and_transformations_leave_the_short_way():
    f = nj.jit(lambda x: jnp.log(x) + jnp.asarray(np.arange(3.0)).sum())
    x = jnp.ones(3)
    _prepared(f, x)
    with nj.disable_jit():
        f(x)
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        f(-x)
    with nj.enable_x64(True):
        assert f(np.ones(3)).dtype == np.float64
    assert f(np.ones(3)).dtype == np.float32
    np.testing.assert_allclose(nj.grad(lambda x: f(x).sum())(x), np.ones(3))
    np.testing.assert_allclose(nj.vmap(f)(x[:, None]), np.asarray(f(x))[:, None])
    assert "jit" in str(nj.make_jaxpr(f)(x))
    nj.config.update("enable_x64", True)
    try:
        assert f(np.ones(3)).dtype == np.float64
    finally:
        nj.config.update("enable_x64", False)
    assert f(np.ones(3)).dtype == np.float32


def test_errors_are_those_of_the_complete_way():
    f = nj.jit(lambda x: x + 1)
    x = jnp.ones(3)
    _prepared(f, x)
    with pytest.raises(TypeError, match="str"):
        f("text")
    with pytest.raises(TypeError):
        f(x, x)
    with pytest.raises(TypeError):
        f()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)
    g = nj.jit(lambda n: n + 1)
    _prepared(g, 1)
    with pytest.raises(OverflowError):
        g(2 ** 40)
    leaked = []
    nj.jit(lambda x: leaked.append(x))(jnp.ones(3))
    _prepared(f, jnp.ones(3))
    with pytest.raises(nj.errors.UnexpectedTracerError):
        f(leaked[0])


def test_methods_names_and_life():
    class Model:
        @nj.jit
        def __call__(self, x):
            """Twice."""
            return x * 2

    assert Model.__call__.__doc__ == "Twice."
    f = nj.jit(lambda x: x + 1)
    _prepared(f, jnp.ones(2))
    assert callable(f) and f.__name__ == "<lambda>" and "jit" in repr(f)
    gone = weakref.ref(f)
    del f
    assert gone() is None
    f = nj.jit(lambda x: x + 2)
    call = f.__call__
    _prepared(f, jnp.ones(2))
    call = f.__call__
    del f
    assert np.asarray(call(jnp.ones(2)))[0] == 3  # also for another signature, without its owner
    assert np.asarray(call(jnp.ones(3)))[0] == 3


def test_clearing_caches_forgets_prepared_calls():
    count = []

    def fun(x):
        count.append(1)
        return x + 1

    f = nj.jit(fun)
    _prepared(f, jnp.ones(2))
    nj.clear_caches()
    f(jnp.ones(2))
    assert len(count) == 2


def test_no_references_are_lost_or_kept():
    f = nj.jit(lambda d: {"u": d["a"] + d["c"], "v": (d["b"][0], d["a"] * 2)})
    a, b, c = jnp.ones(7), jnp.ones(3), 1.5
    d = {"a": a, "b": [b], "c": c}
    _prepared(f, d)
    gc.collect()
    objects = [a, b, a._value, b._value, a.aval, b.aval, d, d["b"]]
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(20_000):
        f(d)
    after = [sys.getrefcount(x) for x in objects]
    # Beside the calls, operators may become native on another thread, which keeps a few.
    assert max(abs(x - y) for x, y in zip(before, after, strict=True)) < 20
    out = f(d)["u"]
    alone = object()  # what a name of its own counts differs with Python's version
    assert sys.getrefcount(out) == sys.getrefcount(alone)


def test_threads_share_a_function():
    f = nj.jit(lambda x, k: jnp.cumsum(jnp.sort(x * k))[::-1] + 1)
    xs = [jnp.asarray(np.random.default_rng(i).normal(size=257 + i % 2).astype(np.float32))
          for i in range(8)]
    want = [np.asarray(f(x, 2.0)) for x in xs]

    def work(i):
        for _ in range(300):
            np.testing.assert_array_equal(f(xs[i], 2.0), want[i])

    together(work, range(8))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="No fork here.")
def test_after_fork():
    f = nj.jit(lambda x: x + 1)
    x = jnp.ones(5)
    _prepared(f, x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.asarray(f(x))[0] == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


# -- in the background --------------------------------------------------------------------------

@pytest.fixture
def everything_queued(monkeypatch):
    monkeypatch.setattr(dispatch, "ASYNC_ABOVE", -1.0)


def test_queued_calls(everything_queued):
    f = nj.jit(lambda x: (jnp.tanh(x) + 1, x.T))
    x = jnp.asarray(X)
    want = _leaves(f(x))
    for _ in range(4):
        f(x)
    y, t = f(x)
    assert type(y._pending) is dispatch.Result
    np.testing.assert_array_equal(y, want[0])
    np.testing.assert_array_equal(t.block_until_ready(), want[1])
    assert y.is_ready()


def test_queued_calls_follow_each_other(everything_queued):
    f = nj.jit(lambda x: x * 0.5 + 1)
    x = jnp.full((1000,), 8.0)
    z, want = x, np.full(1000, 8.0, np.float32)
    for _ in range(50):
        z, want = f(z), want * np.float32(0.5) + 1
    np.testing.assert_array_equal(z, want)
    g = nj.jit(lambda x: x * 2, donate_argnums=0)
    for _ in range(6):
        y = f(x)
        kept = f(y)
        np.testing.assert_array_equal(g(y), np.full(1000, 10.0))
        np.testing.assert_array_equal(kept, np.full(1000, 3.5))


def test_queued_calls_read_the_users_array_at_once(everything_queued):
    f = nj.jit(lambda x: x + 1)
    buffer = np.zeros(200_000, np.float32)
    for k in range(20):
        buffer[:] = k
        y = f(buffer)
        buffer[:] = -1
        assert np.asarray(y).min() == k + 1


def test_switched_off(everything_queued):
    f = nj.jit(lambda x: x + 1)
    x = jnp.ones(3)
    with config.async_dispatch(False):
        for _ in range(6):
            assert f(x)._pending is None


def test_native_calls_are_in_use_and_generated_code_gives_the_same(monkeypatch):
    f = nj.jit(lambda x: x + 1)
    _prepared(f, jnp.ones(2))
    if fastcall_native.usable():
        assert type(f.__call__).__name__ == "builtin_function_or_method"
    monkeypatch.setattr(fastcall_native, "usable", lambda: False)
    for name in CASES:
        test_the_short_way_gives_what_the_complete_one_gives(name)
    test_another_call_takes_another_program()
    test_statics_are_compared_with_their_type()
    test_flags_and_transformations_leave_the_short_way()
    test_errors_are_those_of_the_complete_way()
    test_methods_names_and_life()
    test_no_references_are_lost_or_kept()
    test_threads_share_a_function()


@pytest.mark.skipif(not os.path.exists(STATM), reason="Needs /proc.")
def test_memory_stays_flat():
    f = nj.jit(lambda d, k: ({"u": d["a"] + k}, [d["b"], None], d["a"].sum()))
    d = {"a": jnp.ones(1000), "b": jnp.ones((2, 3))}
    other = {"a": jnp.ones(1000), "b": jnp.ones(()), "c": 1.0}
    _prepared(f, d, 1.0)

    def many(n):
        for i in range(n):
            f(d, 2.5)
            f(d, 2)
            if not i % 50:
                f(other, 1.0)

    many(2000)
    gc.collect()
    before = resident()
    many(30_000)
    gc.collect()
    assert resident() - before < 2 << 20


@nj.tree_util.register_pytree_node_class
class Spoiling:
    """A node that takes its neighbour out of the container while it is flattened."""

    container: Any = None

    def __init__(self, x: Any) -> None:
        self.x = x

    def tree_flatten(self) -> tuple:
        if self.container is not None:
            self.container.pop(1)
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple) -> Spoiling:
        return cls(*children)


@pytest.mark.parametrize("kind", [list, dict])
def test_containers_that_change_while_they_are_read(kind: type) -> None:
    f = nj.jit(lambda both: both[0].x + both[1])
    for k in range(20):
        pair = (Spoiling(jnp.ones(4)), jnp.full(4, float(k)))
        both = kind(enumerate(pair)) if kind is dict else kind(pair)
        if k > 10:
            pair[0].container = both
            del pair
        np.testing.assert_array_equal(f(both), np.full(4, k + 1.0))
