"""Eager differentiation by what is remembered - rules, natively found, and whole backward passes -
gives what the primitives' own rules give, keeps nothing, and tells alike records apart."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.core.array import ArrayImpl
from numjet.core.avals import Placed
from numjet.native import deferral as native
from numjet.transforms import eager, walks
from numjet.transforms.eager import LinearizeTrace
from numjet.transforms.linear_steps import LinearStep

RNG = np.random.default_rng(0)
USES = 24  # enough for rules, and then for the whole pass


def arrays(n: int) -> list:
    shapes = [(n, n), (n,), (n, n), (n, n)]
    return [jnp.array(RNG.normal(size=s).astype(np.float32) / n**0.5) for s in shapes]


def network(w, b, x, y):
    hidden = jnp.tanh(x @ w + b)
    again = jnp.maximum(hidden @ w, 0.1 * hidden) * hidden
    return jnp.mean((again.T[::-1].reshape(y.shape) - y) ** 2) + (b * 3.0).sum()


def softmax(w, b, x, y):
    return (nj.nn.softmax(x @ w, axis=-1) * y).sum() + jnp.where(b > 0, b, 2 * b).sum()


def gathered(w, b, x, y):
    return jnp.sum(w[jnp.array([1, 0, 1])] * b) + jnp.sum(jnp.sqrt(x * x + 1.0) / (2.0 + y * y))


def by_rules(fun, args):
    """The gradients by jvp and transpose rules alone."""
    with nj.debug_nans(True):
        return nj.grad(fun, argnums=(0, 1, 2))(*args)


@pytest.mark.parametrize("fun", [network, softmax, gathered])
@pytest.mark.parametrize("n", [8, 260])  # that run at once, and that are written down
@pytest.mark.parametrize("python", [False, True])
def test_gradients_are_those_of_the_rules(fun, n: int, python: bool, monkeypatch) -> None:
    if python:
        monkeypatch.setattr(LinearizeTrace, "process", native.in_python)
    args = arrays(n)
    wanted = by_rules(fun, args)
    gradient = nj.grad(fun, argnums=(0, 1, 2))
    for k in range(USES):
        got = gradient(*args)
        if k % 8 == 7:
            for g, w in zip(got, wanted, strict=True):
                np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)
                assert g.aval is w.aval
    fresh = arrays(n)  # nothing depends on the values
    for g, w in zip(gradient(*fresh), by_rules(fun, fresh), strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("active", [False, True])  # whether there is an array over a mesh
def test_whole_passes_are_run(active: bool, monkeypatch) -> None:
    monkeypatch.setattr(Placed, "active", active)
    walks._walks.clear()
    args = arrays(260)
    before = {k for k, walk in walks._walks.items() if type(walk) is walks.Walk}
    for _ in range(USES):
        nj.grad(network)(*args)
    made = [w for k, w in walks._walks.items() if type(w) is walks.Walk and k not in before]
    assert made and made[-1].plan.equations and made[-1].plan.forms


def test_records_with_other_operands_are_others() -> None:
    x, y = (jnp.array(RNG.normal(size=6).astype(np.float32)) for _ in range(2))
    functions = {
        "first": (lambda x, y: (jnp.sin(x) * jnp.sin(y) * jnp.sin(x)).sum(),
                  lambda x, y: 2 * np.sin(x) * np.cos(x) * np.sin(y)),
        "second": (lambda x, y: (jnp.sin(x) * jnp.sin(y) * jnp.sin(y)).sum(),
                   lambda x, y: np.cos(x) * np.sin(y) ** 2),
        "unused": (lambda x, y: (jnp.sin(y), jnp.sin(x) * jnp.sin(x))[1].sum(),
                   lambda x, y: 2 * np.sin(x) * np.cos(x)),
    }  # fmt: skip
    for _ in range(USES):
        for fun, wanted in functions.values():
            np.testing.assert_allclose(
                nj.grad(fun)(x, y), wanted(np.asarray(x), np.asarray(y)), rtol=1e-4, atol=1e-6
            )


def test_cotangents_of_other_kinds_and_several_outputs() -> None:
    x = jnp.array(RNG.normal(size=4).astype(np.float32))

    def fun(x):
        return jnp.sin(x), x * 2.0, jnp.floor(x)

    for k in range(USES):
        _, pull = nj.vjp(fun, x)
        cts = (jnp.ones(4), jnp.full(4, float(k)), jnp.zeros(4))
        (got,) = pull(cts)
        np.testing.assert_allclose(got, np.cos(np.asarray(x)) + 2 * k, rtol=1e-5)
        (again,) = pull(cts)
        np.testing.assert_array_equal(got, again)
    assert nj.vmap(pull)(tuple(jnp.stack([c, c]) for c in cts))[0].shape == (2, 4)
    (g,) = nj.jit(pull)(cts)
    np.testing.assert_allclose(g, got, rtol=1e-6)


@pytest.mark.parametrize("n", [8, 300])
def test_nothing_is_kept(n: int) -> None:
    args = arrays(n)
    for _ in range(USES):
        nj.block_until_ready(nj.grad(network)(*args))
    kept = []

    def watched(w, b, x, y):
        hidden = x @ w
        kept.append(weakref.ref(hidden.primal if hasattr(hidden, "primal") else hidden))
        return jnp.mean(jnp.tanh(hidden + b) * y)

    for _ in range(USES):
        nj.block_until_ready(nj.grad(watched)(*args))
    gc.collect()
    assert [k() for k in kept] == [None] * USES


def test_python_records_what_native_code_records(monkeypatch) -> None:
    args = arrays(8)

    def tape():
        result = eager.linearize(lambda *xs: [network(*xs)], args)
        return [
            (type(entry), entry.rule if type(entry) is LinearStep else entry.primitive,
             [v.aval for v in entry.invars])
            for entry in result.tape
        ], result.outs  # fmt: skip

    for _ in range(USES):
        tape()
    found, outs = tape()
    with monkeypatch.context() as patch:
        patch.setattr(LinearizeTrace, "process", native.in_python)
        wanted, its_outs = tape()
    assert found == wanted
    assert type(outs[0]) is ArrayImpl
    np.testing.assert_array_equal(outs[0], its_outs[0])


# Linear functions of one equation or a few, whose equations are recorded until they have rules.
OF_ONE_ARRAY = {
    "sum": jnp.sum,
    "sum over axes": lambda x: jnp.sum(jnp.sum(x, axis=0) * 2),
    "last": lambda x: x[-1, -1],
    "row": lambda x: x[0].sum(),
    "padded": lambda x: jnp.pad(x, 1).sum(),
    "turned": lambda x: jnp.flip(x, 0).T[0].sum(),
    "repeated": lambda x: jnp.broadcast_to(x, (2, *x.shape)).sum(),
    "cumulative": lambda x: jnp.cumsum(x, axis=1)[:, -1].sum(),
    "joined": lambda x: jnp.concatenate([x, x], 1).sum(),
    "cast": lambda x: x.astype("float16").astype("float32").sum(),
    "real": lambda x: (x + 0j).real.sum(),
    "real part of a sum": lambda x: jnp.sum(x * 1j).imag,
    "triangle": lambda x: jnp.tril(x).sum(),
}


@pytest.mark.parametrize("name", OF_ONE_ARRAY)
def test_gradients_of_ever_new_shapes(name):
    """A backward pass that was made for one shape is not taken for another."""
    function = OF_ONE_ARRAY[name]
    nj.clear_caches()
    for k in range(14):
        x = jnp.ones((k % 7 + 2, k % 5 + 1))
        got, want = nj.grad(function)(x), nj.jit(nj.grad(function))(x)
        assert got.shape == x.shape, (got.shape, x.shape)
        np.testing.assert_array_equal(got, want)
        out, pull = nj.vjp(function, x)
        np.testing.assert_array_equal(pull(jnp.ones_like(out))[0], want)
        tangent = nj.jvp(function, (x,), (x,))[1]
        np.testing.assert_array_equal(nj.linearize(function, x)[1](x), tangent)
