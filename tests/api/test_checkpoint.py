"""`checkpoint`: what is computed again and what is kept, beside calls, loops and policies."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from near import close

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

x3 = jnp.array([0.5, -1.0, 2.0])


def count(closed: Any, name: str) -> int:
    """How often `name` occurs in a jaxpr, the ones inside included."""
    total = 0
    for eqn in getattr(closed, "jaxpr", closed).eqns:
        total += eqn.primitive.name == name
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    total += count(inner, name)
    return total


def chain(x: Any) -> Any:
    return jnp.sin(jnp.sin(jnp.sin(x)))


def test_checkpoint_computes_again() -> None:
    plain = nj.make_jaxpr(nj.grad(chain))(1.0)
    again = nj.make_jaxpr(nj.grad(nj.checkpoint(chain)))(1.0)
    assert (count(plain, "sin"), count(again, "sin")) == (3, 5)  # the last one is not needed again
    everything = nj.checkpoint(chain, policy=nj.checkpoint_policies.everything_saveable)
    assert count(nj.make_jaxpr(nj.grad(everything))(1.0), "sin") == 3
    nothing = nj.checkpoint(chain, policy=nj.checkpoint_policies.nothing_saveable)
    assert count(nj.make_jaxpr(nj.grad(nothing))(1.0), "sin") == 5
    for f in (nj.checkpoint(chain), everything, nothing, nj.jit(nj.checkpoint(chain)),
              nj.checkpoint(nj.jit(chain)), nj.checkpoint(nj.checkpoint(chain))):  # fmt: skip
        close(nj.grad(f)(0.7), nj.grad(chain)(0.7))
        close(nj.grad(nj.grad(f))(0.7), nj.grad(nj.grad(chain))(0.7))
        close(nj.vmap(nj.grad(f))(x3), nj.vmap(nj.grad(chain))(x3))


def test_policies_by_operation_and_by_name() -> None:
    w = jnp.ones((3, 3)) * 0.1

    def layers(x: Any) -> Any:
        a = nj.ad_checkpoint.checkpoint_name(w @ x, "a")
        b = nj.ad_checkpoint.checkpoint_name(jnp.cos(w @ jnp.sin(a)), "b")
        return jnp.sum(jnp.sin(b))

    def counts(policy: Any) -> tuple[int, int, int]:
        jaxpr = nj.make_jaxpr(nj.grad(nj.checkpoint(layers, policy=policy)))(x3)
        return tuple(count(jaxpr, n) for n in ("dot_general", "sin", "cos"))

    policies = nj.checkpoint_policies
    none, dots = counts(None), counts(policies.dots_saveable)
    assert dots[0] < none[0] and dots[0] == counts(policies.everything_saveable)[0]
    assert counts(policies.save_only_these_names("a"))[0] < none[0]
    assert counts(policies.save_only_these_names("zzz")) == none
    assert counts(policies.save_anything_except_these_names("a", "b"))[0] <= none[0]
    want = nj.grad(layers)(x3)
    for policy in (None, policies.dots_saveable, policies.save_only_these_names("a", "b"),
                   policies.dots_with_no_batch_dims_saveable):  # fmt: skip
        close(nj.grad(nj.checkpoint(layers, policy=policy))(x3), want)


def test_checkpoint_with_statics_kwargs_and_loops() -> None:
    @functools.partial(nj.checkpoint, static_argnums=(1,))
    def f(x: Any, n: int, *, k: Any = 1.0) -> Any:
        return jnp.sin(x) ** n * k if n > 1 else x

    close(nj.grad(f)(0.5, 2, k=3.0), jnp.array(3.0 * 2 * np.sin(0.5) * np.cos(0.5)))
    body = nj.checkpoint(lambda c, a: (jnp.sin(c * a), c))
    close(nj.grad(lambda x: lax.scan(body, x, x3)[0])(0.3),
          nj.grad(lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c), x, x3)[0])(0.3))  # fmt: skip


AROUND = {
    "jit": lambda x: nj.jit(lambda x: jnp.sin(x) * x)(x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: jnp.sin(x) * x, lambda x: x, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) * x, x),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, c**2), x, None, length=3),
    "nested": lambda x: nj.checkpoint(
        lambda x: lax.scan(lambda c, a: (jnp.sin(c) * a, jnp.exp(c * a)), x[0], x)
    )(x),
}


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("policy", ["nothing_saveable", "dots_saveable", "everything_saveable"])
def test_checkpoint_around_loops_and_calls(name: str, policy: str) -> None:
    def f(x: Any) -> Any:
        return sum(jnp.sum(jnp.cos(y)) for y in nj.tree.leaves(AROUND[name](x)))

    g = nj.checkpoint(f, policy=getattr(nj.checkpoint_policies, policy))
    close(nj.value_and_grad(g)(x3), nj.value_and_grad(f)(x3))
    close(nj.jit(nj.grad(g))(x3), nj.grad(f)(x3))
    close(nj.hessian(g)(x3), nj.hessian(f)(x3))
    close(nj.vmap(nj.grad(g))(jnp.stack([x3, -x3])), nj.vmap(nj.grad(f))(jnp.stack([x3, -x3])))


def test_checkpointed_functions_are_traced_once() -> None:
    count = []

    @nj.checkpoint
    def f(x: Any) -> Any:
        count.append(1)
        return jnp.sin(jnp.sin(x))

    f(1.0), nj.grad(f)(1.0), nj.grad(nj.grad(f))(2.0), nj.jit(nj.grad(f))(3.0)
    assert len(count) == 1
    f(jnp.ones(2)), nj.grad(lambda x: f(x).sum())(jnp.ones(2))
    assert len(count) == 2
    with pytest.raises(TypeError, match=r"for checkpoint / remat returned .* component \['a'\]"):
        nj.checkpoint(lambda x: {"a": "text"})(1.0)
