"""A function is traced once for what `make_jaxpr`, `trace`, `lower`, `eval_shape`, calls and other
jitted functions see of it: one form follows from the other (`transforms.forms`)."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.jaxpr import eval_closed

X = jnp.array([2.0, -1.0, 0.5, 4.0])
M = jnp.eye(4) * 3.0


class Counted:
    def __init__(self, fun):
        self.fun, self.runs = fun, 0

    def __call__(self, *args):
        self.runs += 1
        return self.fun(*args)


def told(jf, x):
    nj.make_jaxpr(jf)(x)


def read(jf, x):
    str(jf.trace(x).jaxpr)


WAYS = {
    "call": lambda jf, x: jf(x),
    "make_jaxpr": told,
    "trace": read,
    "lower": lambda jf, x: jf.lower(x).compile()(x),
    "eval_shape": lambda jf, x: nj.eval_shape(jf, x),
    "nested": lambda jf, x: nj.make_jaxpr(lambda x: jf(x) * 2)(x),
    "grad": lambda jf, x: nj.make_jaxpr(nj.grad(lambda x: jnp.sum(jf(x))))(x),
    "vmap": lambda jf, x: nj.vmap(jf)(jnp.stack([x, x])),
    "scan": lambda jf, x: lax.scan(lambda c, _: (c, jf(c)), x, None, length=2),
}
FUNCTIONS = {
    "arithmetic": lambda x: 1.0 - x * x,
    "where": lambda x: jnp.where(x > 0, x, 0.0) + jnp.clip(x, -1, 1),
    "indices": lambda x: x[0] + x[1:].sum() * x[jnp.array([2, 1, 3])],
    "updates": lambda x: x.at[1].set(7.0).at[jnp.array([0, 2])].add(x[:2]),
    "products": lambda x: M @ x + jnp.outer(x, x) @ x + jnp.einsum("i,ij->j", x, M),
    "reductions": lambda x: (x - x.mean(0, keepdims=True)) / jnp.std(x) + jnp.linalg.norm(x),
    "layers": lambda x: nj.nn.softmax(nj.nn.relu(x)) + nj.nn.gelu(x) + nj.nn.one_hot(1, 4),
    "parts": lambda x: jnp.concatenate([jnp.stack([x, x]).ravel(), jnp.split(x, 2)[0], x]),
    "ranges": lambda x: jnp.arange(4) * x + jnp.linspace(0.0, 1.0, 4),
    "rows": lambda x: (M * x) @ x + np.arange(4.0, dtype=np.float32),
    "draws": lambda x: x + nj.random.normal(nj.random.key(0), (4,)),
    "call": lambda x: nj.jit(lambda y: jnp.where(y > 1, y, M[0]))(x) + 1.0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("first", ["call", "make_jaxpr"])
def test_one_trace_whoever_asks_first(name, first) -> None:
    f = Counted(FUNCTIONS[name])
    jf = nj.jit(f)
    for way in (first, *WAYS):
        WAYS[way](jf, X)
        assert f.runs == 1, way


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forms_that_follow_are_those_that_tracing_gives(name) -> None:
    ours, theirs = (nj.jit(lambda x: FUNCTIONS[name](x)) for _ in range(2))
    ours(X)  # what is shown follows from what ran, and the other way
    shown, alone = nj.make_jaxpr(ours)(X), nj.make_jaxpr(theirs)(X)
    assert str(shown).replace("ours", "") == str(alone).replace("theirs", "")
    assert str(theirs.trace(X).program) == str(ours.trace(X).program)
    np.testing.assert_array_equal(ours(X), theirs(X))
    np.testing.assert_allclose(eval_closed(shown, X)[0], ours(X), rtol=1e-5, atol=1e-5)


def test_values_closed_over_that_one_form_alone_reads() -> None:
    table = jnp.arange(8.0).reshape(4, 2)
    f = Counted(lambda x: jnp.take(table, 1, axis=0).sum() + x[-1] * np.float32(2.0))
    jf = nj.jit(f)
    want = jf(X)
    shown = nj.make_jaxpr(jf)(X)
    assert f.runs == 1 and len(nj.jit(f).trace(X).jaxpr.consts) == 1
    np.testing.assert_allclose(eval_closed(shown, X)[0], want)


def test_what_was_given_stays_what_it_was() -> None:
    """Lists and NumPy's arrays may be changed once the function has been traced."""
    given, places = np.ones(4, np.float32), [0, 2]
    f = Counted(lambda x: jnp.where(x > 0, x, given) + x[jnp.array(places)].sum())
    jf = nj.jit(f)
    want = jf(X)
    given[:], places[:] = 9.0, [3, 3]
    np.testing.assert_array_equal(eval_closed(nj.make_jaxpr(jf)(X), X)[0], want)
    assert f.runs == 1


def test_given_away_or_not_is_one_trace() -> None:
    f = Counted(lambda x: jnp.where(x > 0, x, 1.0))
    kept, given = nj.jit(f), nj.jit(f, donate_argnums=0)
    want = np.asarray(kept(X))
    np.testing.assert_array_equal(given(jnp.array(X)), want)
    params = nj.make_jaxpr(given)(X).eqns[0].params
    assert params["donated_invars"] == (True,) and f.runs == 1
    spent = jnp.array(X)
    given(spent)
    assert spent.is_deleted() and not X.is_deleted()


def test_each_signature_and_context_is_a_trace() -> None:
    f = Counted(lambda x: x[0] * 2)
    jf = nj.jit(f)
    for x in (X, X.astype(jnp.int32), X[:3], X):
        jf(x), nj.make_jaxpr(jf)(x)
    assert f.runs == 3 and jf._cache_size() == 3
    with nj.enable_x64(True):
        nj.make_jaxpr(jf)(X), jf(X)
    assert f.runs == 4
    nj.clear_caches()
    nj.make_jaxpr(jf)(X), jf(X)
    assert f.runs == 5


def test_bodies_of_loops_and_branches() -> None:
    body = Counted(lambda c, x: (c + x, c * x))
    round_ = Counted(lambda i, v: v + i)
    lax.scan(body, 0.0, X)
    lax.fori_loop(0, 3, round_, X)
    shown = nj.make_jaxpr(lambda x: (lax.scan(body, 0.0, x), lax.fori_loop(0, 3, round_, x)))(X)
    nj.jit(lambda x: lax.scan(body, 0.0, x))(X)
    assert body.runs == round_.runs == 1
    np.testing.assert_allclose(eval_closed(shown, X)[0], X.sum())


def test_only_traces_that_are_made_are_told_of(caplog) -> None:
    f = nj.jit(Counted(lambda x: jnp.where(x > 0, x, 0.0)))
    with nj.log_compiles(True), caplog.at_level(logging.WARNING):
        told(f, X), f(X), f.lower(X), nj.eval_shape(f, X)
    assert [r.getMessage().startswith("Finished tracing") for r in caplog.records].count(True) == 1
    caplog.clear()
    g = nj.jit(lambda x: jnp.where(x > 1, x, 0.0))
    with nj.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        g(X), told(g, X), g.lower(X)
    assert [r.getMessage().startswith("TRACING CACHE MISS") for r in caplog.records] == [True, True]


def test_what_cannot_follow_is_traced_again() -> None:
    """Other equations where nobody keeps what was given: within derivatives."""
    f = Counted(lambda x: jnp.sum(jnp.where(x > 0, x, 0.0) ** 2))
    g = nj.jit(nj.grad(f))
    want = g(X)
    shown = nj.make_jaxpr(g)(X)
    assert f.runs == 2 and "name=_where" in str(shown)
    np.testing.assert_allclose(eval_closed(shown, X)[0], want)


def test_named_scopes_are_shown() -> None:
    def named(x):
        with nj.named_scope("first"):
            x = jnp.where(x > 0, x, 1.0)
        return x + 1.0

    f = nj.jit(named)
    f(X)
    stacks = [str(e.source_info.name_stack) for e in f.trace(X).jaxpr.eqns]
    assert stacks == ["first", "first", ""]
