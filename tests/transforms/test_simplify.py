"""Dead code: loops and branches lose the results that nobody reads, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.jaxpr import ClosedJaxpr, eval_jaxpr
from numjet.core.jaxpr_check import check_jaxpr
from numjet.transforms.simplify import dce_jaxpr


def scanned(x: Any, y: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        a, b, c, i = carry
        return (jnp.sin(a) + row, b * a, jnp.exp(c) - c, i + 1), (a + b, jnp.cos(c) * y[0], i)

    return lax.scan(body, (x[0], x[1], x[2], 0), y)


def repeated(x: Any, y: Any) -> Any:
    def body(carry: Any) -> Any:
        n, a, b, c = carry
        return n + 1, a + y[0], b * a, jnp.sin(c) * y[1]

    return lax.while_loop(lambda c: (c[0] < 5) & (c[1] < y[2] + 100), body, (0, x[0], x[1], x[2]))


def chosen(x: Any, y: Any) -> Any:
    return lax.switch(
        x[0].astype(int),
        [lambda a, b: (a, b[0], b), lambda a, b: (a + 1, jnp.sum(a), b * 2)],
        x,
        y,
    )


ARGS = (jnp.array([1.0, 0.5, 0.25]), jnp.array([0.1, 0.2, 0.3]))


@pytest.mark.parametrize("fun", [scanned, repeated, chosen], ids=lambda f: f.__name__)
def test_what_is_left_computes_the_same(fun: Callable) -> None:
    closed = nj.make_jaxpr(fun)(*ARGS)
    want = eval_jaxpr(closed.jaxpr, closed.consts, *ARGS)
    n = len(want)
    for bits in range(1, 2**n - 1):
        used = [bool(bits >> i & 1) for i in range(n)]
        body, reads = dce_jaxpr(closed.jaxpr, used)
        check_jaxpr(body)
        # What is not read may be anything.
        args = [x if r else jnp.full_like(x, np.nan) for x, r in zip(ARGS, reads, strict=True)]
        got = eval_jaxpr(body, closed.consts, *args)
        for x, y in zip([w for w, u in zip(want, used, strict=True) if u], got, strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def size(closed: ClosedJaxpr) -> int:
    """Equations in the body of the one loop."""
    (eqn,) = [e for e in closed.jaxpr.eqns if e.primitive.name in ("scan", "while")]
    return len(eqn.params.get("jaxpr", eqn.params.get("body_jaxpr")).eqns)


@pytest.mark.parametrize("fun", [scanned, repeated], ids=lambda f: f.__name__)
def test_unread_carries_go_with_what_feeds_them(fun: Callable) -> None:
    closed = nj.make_jaxpr(fun)(*ARGS)
    used = [i == 1 for i in range(len(closed.jaxpr.outvars))]
    body, _ = dce_jaxpr(closed.jaxpr, used)
    assert 0 < size(ClosedJaxpr(body, closed.consts)) < size(closed)


def test_a_compiled_loop_stores_no_rows_that_nobody_reads() -> None:
    def last(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.sin(c), jnp.exp(c)), x, None, length=1000)[0]

    x = jnp.ones(1000)
    compiled = nj.jit(last).lower(x).compile()
    assert compiled.memory_analysis()["temp_size_in_bytes"] < 20_000
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(last(x)), rtol=1e-6)


def test_rows_without_a_cotangent_are_not_transposed() -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(lax.scan(lambda c, _: (jnp.sin(c) * x, jnp.exp(c)), x, None, length=4)[0])

    x = jnp.array([0.3, 0.7])
    text = str(nj.make_jaxpr(nj.grad(nj.checkpoint(loss)))(x))
    assert " exp " not in text and "sin" in text
    h = 1e-3
    for i, g in enumerate(np.asarray(nj.grad(loss)(x))):
        step = jnp.zeros(2).at[i].set(h)
        np.testing.assert_allclose(g, (loss(x + step) - loss(x - step)) / (2 * h), rtol=1e-2)


def counted(test: Callable) -> Callable:
    """A loop of three rounds whose first carry only the condition's idle equations read."""

    def loop(x: Any, y: Any) -> Any:
        return lax.while_loop(
            lambda c: (test(c[0]), c[1] < 3)[1],
            lambda c: (c[0] * y, c[1] + 1, jnp.sin(c[2])),
            (x, 0, x),
        )

    return loop


def branched(a: Any) -> Any:
    return lax.cond(a[0] > 1, jnp.sin, jnp.cos, a)


@pytest.mark.parametrize("test", [jnp.negative, nj.jit(lambda a: a * 2), branched])
def test_idle_equations_of_a_condition_go_with_the_carry_they_read(test: Callable) -> None:
    loop, x = counted(test), jnp.array([0.5, 2.0])
    want = np.sin(np.sin(np.sin(np.asarray(x))))
    np.testing.assert_allclose(nj.jit(lambda x: loop(x, x)[2])(x), want, rtol=1e-6)
    out = nj.jvp(lambda y: loop(x, y), (x,), (jnp.ones(2),))
    _, pushed = nj.linearize(lambda y: loop(x, y), x)
    for one, other in zip(pushed(jnp.ones(2)), out[1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("test", [jnp.negative, branched])
def test_idle_equations_of_a_condition_do_not_read_what_the_body_hands_on(test: Callable) -> None:
    def loop(x: Any) -> Any:
        return lax.while_loop(
            lambda c: (test(c[0]), c[1] < 3)[1], lambda c: (c[0], c[1] + 1), (x, 0)
        )

    x = jnp.array([0.5, 2.0])
    handed = nj.make_jaxpr(loop)(x)
    check_jaxpr(handed.jaxpr)
    np.testing.assert_array_equal(eval_jaxpr(handed.jaxpr, handed.consts, x)[1], 3)
