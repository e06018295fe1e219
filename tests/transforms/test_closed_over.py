"""Rules by users that close over traced values, differentiated within loops, branches and calls."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

WRAPS = {
    "checkpoint": lambda b, a: nj.grad(lambda x: nj.checkpoint(b)(x).sum())(2 * a),
    "grad in checkpoint": lambda b, a: nj.grad(
        nj.checkpoint(lambda y: nj.grad(lambda x: b(x).sum())(y).sum())
    )(2 * a),
    "scan": lambda b, a: nj.grad(
        lambda x: lax.scan(lambda c, _: (b(c), None), x, length=2)[0].sum()
    )(2 * a),
    "grad in scan": lambda b, a: nj.grad(
        lambda x: lax.scan(lambda c, _: (nj.grad(lambda y: b(y).sum())(c), None), x, length=2)[
            0
        ].sum()
    )(2 * a),
    "cond": lambda b, a: nj.grad(lambda x: lax.cond(x.sum() > 0, b, lambda y: y, x).sum())(2 * a),
    "switch": lambda b, a: nj.grad(
        lambda x: lax.switch(jnp.int32(a[0]), [jnp.sin, b, lambda y: b(b(y))], x).sum()
    )(2 * a),
    "jit": lambda b, a: nj.grad(lambda x: nj.jit(b)(x).sum())(2 * a),
    "vmap of scan": lambda b, a: nj.grad(
        lambda x: nj.vmap(lambda u: lax.scan(lambda c, _: (b(c), None), u, length=2)[0])(
            jnp.stack([x, x])
        ).sum()
    )(2 * a),
}
FORWARD = {
    "while": lambda b, a: nj.jvp(
        lambda x: lax.while_loop(lambda c: b(c).sum() < 50.0, lambda c: b(c) + c + 1.0, x),
        (2 * a,), (a,),
    )[1],
    "jvp of checkpoint": lambda b, a: nj.jvp(lambda x: nj.checkpoint(b)(x), (2 * a,), (a,))[1],
    "linearize": lambda b, a: nj.linearize(lambda x: nj.checkpoint(b)(x), 2 * a)[1](a),
}  # fmt: skip


def with_jvp(a):
    f = nj.custom_jvp(lambda q: q * jnp.sin(a))
    f.defjvp(lambda p, t: (f(*p), t[0] * jnp.cos(p[0]) * lax.stop_gradient(a)))
    return lambda p: f(p)


def with_vjp(a):
    f = nj.custom_vjp(lambda q: q * jnp.sin(a))
    f.defvjp(lambda q: (f(q), q), lambda q, ct: (ct * jnp.cos(q) * lax.stop_gradient(a),))
    return lambda p: f(p)


CASES = [(rule, w) for rule in (with_jvp, with_vjp) for w in WRAPS.values()]
CASES += [(with_jvp, w) for w in FORWARD.values()]
NAMES = [f"{rule}-{w}" for rule in ("jvp", "vjp") for w in WRAPS] + list(FORWARD)


@pytest.mark.parametrize(("rule", "wrap"), CASES, ids=NAMES)
def test_compiled_as_evaluated(rule, wrap) -> None:
    program = lambda a: wrap(rule(a), a)
    a = jnp.arange(1.0, 4.0)
    expected = program(a)
    np.testing.assert_allclose(nj.jit(program)(a), expected, rtol=1e-5)
    other = a + 0.5  # nothing of the first call may be left in the second
    np.testing.assert_allclose(nj.jit(program)(other), program(other), rtol=1e-5)
    both = nj.jit(nj.vmap(program))(jnp.stack([a, other]))
    np.testing.assert_allclose(both[1], program(other), rtol=1e-5)
