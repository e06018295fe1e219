"""What is written again from patterns is what the rules write, whatever came first."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.jaxpr import Literal, Var
from numjet.native import operators, record
from numjet.transforms import eager, replay
from numjet.transforms.jvp import JVPTrace
from numjet.transforms.replay import ReplayTrace

x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 4), np.float32))
v = x[0]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(replay, "SHORT", 0)
    replay._jvps.clear()
    replay._transposes.clear()


@pytest.fixture(params=["native", "python"])
def way(request, monkeypatch):
    """Patterns are written by native code, or by the Python functions that specify it."""
    if request.param == "python":
        monkeypatch.setattr(ReplayTrace, "process", record.replay_in_python)
        monkeypatch.setattr(hooks, "transposed", replay.transposed)
        return
    if not operators.possible():
        pytest.skip("No native code here.")
    if not operators.usable():
        operators._build()
    assert type(ReplayTrace.process) is types.MethodDescriptorType
    assert type(hooks.transposed) is types.BuiltinFunctionType


def by_rules(monkeypatch, trace):
    """What `trace()` gives without patterns."""
    with monkeypatch.context() as patch:
        patch.setattr(eager, "ReplayTrace", JVPTrace)
        patch.setattr(hooks, "transposed", lambda *_: None)
        return trace()


def lines(closed):
    return [str(eqn.source) for eqn in closed.eqns]


def literals(closed):
    return [
        (np.asarray(atom.value._value).tobytes(), atom.aval)
        for eqn in closed.eqns for atom in eqn.invars if type(atom) is Literal
    ]  # fmt: skip


def layer(a, b):
    centred = a - a.mean(-1, keepdims=True)
    a = centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    a = jnp.where(a > 0, a, 0.1 * a) @ b + jnp.tanh(a) * a
    return a.reshape(2, 2, 4)[:, ::-1].transpose(1, 0, 2).reshape(4, 4)


FUNCTIONS = {
    "layers": lambda a, b: layer(layer(layer(a, b), b.T), b),
    "itself": lambda a, b: (a * a) * (b * b) * (a * b) * (a * a),
    "one operand in two places": lambda a, b: a * b + b * a + a * a + a * lax.stop_gradient(a),
    "select": lambda a, b: sum(jnp.where(c > 0, p, q) for c in (a, b) for p in (a, b)
                               for q in (a, b)),
    "constants": lambda a, b: sum(a * c / (b + c) for c in (2.0, 3.0, -0.0, 0.0, 4)),
    "arrays": lambda a, b: a * x + b @ x + a * (x + 1) + jnp.dot(b, x + 1),
    "powers": lambda a, b: sum(a ** n + (b * b) ** (n + 0.5) for n in range(4)),
    "integers": lambda a, b: a * a.astype(jnp.int32) + b * jnp.argmax(b, 0),
    "narrow": lambda a, b: (a.astype(jnp.float16) * b.astype(jnp.float16)).astype(jnp.float32),
    "complex": lambda a, b: jnp.abs(lax.complex(a, b) * lax.complex(b, a)) + lax.complex(a, a).real,
    "indices": lambda a, b: a[1:] @ b + a[:-1] @ b + a.at[0].set(v)[1:] + b[jnp.array([0, 2, 1])],
    "several results": lambda a, b: sum(lax.sort_key_val(a, b)) + sum(lax.sort_key_val(b, a)),
    "loops": lambda a, b: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * c, a) + lax.scan(
        lambda c, r: (c * r, c), v, b)[1],
    "calls": lambda a, b: nj.jit(jnp.sin)(a) + nj.nn.softmax(nj.nn.softmax(a @ b)) + nj.nn.gelu(a),
    "inside": lambda a, b: nj.grad(lambda c: jnp.sum(jnp.sin(c) * a * c))(b) * a,
    "batched": lambda a, b: nj.vmap(lambda r, s: jnp.sin(r) * s @ r)(a, b) * v,
    "callback": lambda a, b: a * nj.pure_callback(np.sin, x, lax.stop_gradient(b)) + b,
    "remat": lambda a, b: nj.checkpoint(lambda c: jnp.sin(jnp.sin(c @ b)))(a),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equations_are_those_of_the_rules(monkeypatch, way, name):
    def trace():
        loss = lambda a, b: jnp.sum(FUNCTIONS[name](a, b))  # noqa: E731
        return nj.make_jaxpr(nj.value_and_grad(loss, (0, 1)))(x, x.T)

    want = by_rules(monkeypatch, trace)
    assert not replay._jvps
    for _ in range(5):  # the fourth and the fifth are written from patterns alone
        found = trace()
        assert str(found) == str(want)
        assert lines(found) == lines(want)
        assert literals(found) == literals(want)
    assert any(type(p) is replay.Pattern for t in replay._jvps.values() for p in t.values())


@pytest.mark.parametrize("name", ["layers", "constants", "arrays", "several results", "inside"])
def test_other_ways_to_the_linear_part(name):
    """`vjp`, `linearize` and forward mode while staging, against concrete values."""
    fun = FUNCTIONS[name]
    want = nj.vjp(fun, x, x.T)[1](fun(x, x.T))
    tangent = nj.jvp(fun, (x, x.T), (x.T, x))[1]
    for _ in range(4):
        found = nj.jit(lambda a, b: nj.vjp(fun, a, b)[1](fun(a, b)))(x, x.T)
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-4)
        found = nj.jit(lambda a, b: nj.linearize(fun, a, b)[1](b, a))(x, x.T)
        np.testing.assert_allclose(found, tangent, rtol=2e-4, atol=1e-4)


def test_patterns_hold_no_variables_of_programs():
    for _ in range(3):
        nj.make_jaxpr(nj.grad(lambda a: jnp.sum(layer(a, a) * x)))(x)
    patterns = [p for table in (replay._jvps, replay._transposes) for t in table.values()
                for p in t.values() if type(p) is replay.Pattern]  # fmt: skip
    assert len(patterns) > 20
    for pattern in patterns:
        assert all(type(c) is ArrayImpl and not c.aval.shape for c in pattern.constants)
        for _, params, places, _ in (*pattern.known, *pattern.linear):
            assert all(type(place) is int for place in places)
            assert not any(isinstance(value, Var) for value in params.values())


def test_flags_have_patterns_of_their_own():
    loss = lambda a: jnp.sum(a @ a + a.mean(1) ** 3) * a[0].sum()  # noqa: E731
    with nj.enable_x64(True):
        first = str(nj.make_jaxpr(nj.grad(loss))(x))
    second = str(nj.make_jaxpr(nj.grad(loss))(x))
    replay._jvps.clear()
    replay._transposes.clear()
    assert str(nj.make_jaxpr(nj.grad(loss))(x)) == second
    with nj.enable_x64(True):
        assert str(nj.make_jaxpr(nj.grad(loss))(x)) == first


def test_ever_new_shapes_do_not_fill_the_memory(monkeypatch):
    nj.make_jaxpr(nj.grad(jnp.sum))(jnp.ones(3))
    for table in (replay._jvps, replay._transposes):
        for patterns in table.values():
            patterns.clear()
            monkeypatch.setattr(patterns, "bound", 10)
    for n in range(3, 90):
        nj.make_jaxpr(nj.grad(lambda a: jnp.sum(jnp.sin(a) * a)))(jnp.ones(n // 3))
    assert all(len(t) <= 10 for table in (replay._jvps, replay._transposes) for t in table.values())


def test_errors_of_rules_are_raised_each_time():
    def loss(a):
        return jnp.sum(lax.while_loop(lambda c: c[0, 0] < 3, lambda c: c + 1, a))

    for _ in range(2):
        with pytest.raises(Exception, match="while"):
            nj.jit(nj.grad(loss))(x)


def test_threads():
    def loss(a):
        return jnp.sum(layer(layer(a, a), a) if a.shape[0] == 4 else a * a)

    want = str(nj.make_jaxpr(nj.grad(loss))(x))
    wrong = []

    def work(n):
        for i in range(10):
            shape = (4, 4) if i % 2 else (4 * n, 4)
            found = str(nj.make_jaxpr(nj.grad(loss))(jnp.ones(shape, jnp.float32)))
            if i % 2 and found != want:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(n + 1,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_value_with_two_tangents():
    @nj.custom_jvp
    def steeper(a):
        return a

    @steeper.defjvp
    def _steeper_jvp(primals, tangents):
        return primals[0], 2 * tangents[0]

    def squares(a, other):
        for _ in range(4):
            a = a * other(a)
        return a.sum()

    ones = jnp.ones(4)
    for other, slope in ((lambda a: a, 2.0), (steeper, 3.0), (lambda a: a, 2.0)):
        got = nj.jit(nj.grad(lambda a, other=other: squares(a, other)))(ones)
        np.testing.assert_array_equal(got, slope**4 * ones)
