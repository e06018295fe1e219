"""Sums over processes that begin early and end late: the order of equations, and what they give."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.api.execution import overlap
from numjet.core.cluster import Cluster, Ranks
from numjet.core.jaxpr import ClosedJaxpr, eval_jaxpr
from numjet.core.jaxpr_check import check_jaxpr
from numjet.transforms.batch import Axis, extend_axis_env

RANKS = Ranks([[0, 1]])


def total(x):
    return lax.psum(x, RANKS)


def staged(fun, *args) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The program of one process, and the same with its sums in two parts."""
    with extend_axis_env(Axis(2, RANKS)):
        closed = nj.make_jaxpr(fun)(*args)
    made = ClosedJaxpr(overlap.overlapped(closed.jaxpr, itertools.count()), closed.consts)
    with extend_axis_env(Axis(2, RANKS)):
        check_jaxpr(made)
    return closed, made


def names(closed: ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in closed.eqns]


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two processes with the same values; the operations that they ran together."""
    ran: list[str] = []

    def run(name, params, ins, outs) -> None:
        ran.append(name)
        outs[0][...] = ins[0] if name == "psum_done" else 2 * ins[0]

    monkeypatch.setattr(Cluster, "transport", SimpleNamespace(run=run, library=None))
    return ran


def test_a_sum_ends_where_it_is_needed(pairs: list[str]) -> None:
    def f(x, y):
        a = total(x)
        b = jnp.sin(a)  # put off
        c = total(jnp.cos(y))
        return b, c @ y, total(b)

    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    closed, made = staged(f, x, x)
    assert names(made) == ["psum_start", "cos", "psum_start", "psum_done", "sin", "psum_start",
                           "psum_done", "dot_general", "psum_done"]  # fmt: skip
    for one, other in zip(eval_jaxpr(closed.jaxpr, closed.consts, x, x),
                          eval_jaxpr(made.jaxpr, made.consts, x, x), strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-6)
    compiled = nj.jit(lambda x, y: eval_jaxpr(made.jaxpr, made.consts, x, y))(x, x)
    np.testing.assert_allclose(compiled[1], (2 * np.cos(x)) @ x, rtol=1e-5)
    assert pairs.count("psum_start") == 6 == pairs.count("psum_done")


def test_gradients_travel_while_earlier_layers_are_computed() -> None:
    def step(ws, x):
        def loss(ws):
            h = x
            for w in ws:
                h = jnp.tanh(h @ w)
            return jnp.sum(h**2)

        return [w - 0.1 * total(g) for w, g in zip(ws, nj.grad(loss)(ws), strict=True)]

    ws = [np.eye(4, dtype=np.float32)] * 3
    _, made = staged(step, ws, np.ones((2, 4), np.float32))
    order = [n for n in names(made) if n.startswith("psum") or n == "dot_general"]
    assert order.count("psum_start") == 3 == order.count("psum_done")
    assert order.index("psum_done") > max(k for k, n in enumerate(order) if n == "psum_start")


def test_what_stays_in_one_piece() -> None:
    large = np.ones((1 << 20) + 1, np.float32)
    closed, made = staged(lambda x: (total(x), jnp.sin(x)), large)  # more than MOST bytes
    assert made.jaxpr is closed.jaxpr
    _, made = staged(lambda x: jnp.sin(total(x)), large[:8])  # nothing lies between
    assert names(made) == ["psum", "sin"]


def test_any_order_is_one_of_the_program(pairs: list[str]) -> None:
    chance = np.random.default_rng(0)

    def f(x, y):
        known = [x, y]
        for kind, i, j in steps:
            a, b = known[i % len(known)], known[j % len(known)]
            known.append([lambda: total(a), lambda: a - b, lambda: jnp.sin(a),
                          lambda: lax.ppermute(a, RANKS, [(0, 1), (1, 0)])][kind]())  # fmt: skip
        return known

    for _ in range(60):
        steps = chance.integers(0, (4, 100, 100), (12, 3)).tolist()
        closed, made = staged(f, np.float32(0.3), np.float32(0.7))
        assert sorted(e.primitive.name for e in closed.eqns if not e.effects) == sorted(
            e.primitive.name for e in made.eqns if not e.effects)  # fmt: skip
        both = [[e for e in c.eqns if e.primitive.name in ("psum", "psum_start", "ppermute")]
                for c in (closed, made)]  # fmt: skip
        assert [e.primitive.name[:4] for e in both[0]] == [e.primitive.name[:4] for e in both[1]]
        pairs.clear()
        outs = [eval_jaxpr(c.jaxpr, c.consts, np.float32(0.3), np.float32(0.7))
                for c in (closed, made)]  # fmt: skip
        np.testing.assert_allclose(*outs, rtol=1e-6)
