"""The transformations' own contracts: traces, staging, linear parts, dead code, checked jaxprs."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base import config
from numjet.core.jaxpr import Literal, Var, eval_jaxpr
from numjet.core.jaxpr_check import check_jaxpr
from numjet.core.trace import EVAL, current_trace
from numjet.transforms.linearize import partial_eval_jaxpr
from numjet.transforms.simplify import dce_jaxpr
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.transpose import transpose_jaxpr

x3 = jnp.array([0.5, -1.0, 2.0])
Point = namedtuple("Point", "x y")


@functools.partial(nj.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
@dataclasses.dataclass
class Model:
    w: Any
    name: str = "model"


@nj.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, data: None, children: tuple) -> Pair:
        return cls(*children)


def make_tree(x: Any) -> Any:
    return {
        "list": [x, (x * 2.0, None)],
        "point": Point(x, OrderedDict(b=x, a=x + 1.0)),
        "model": Model(x, "m"),
        "pair": Pair(x, [x]),
    }


def total(t: Any) -> Any:
    return sum(jnp.sum(jnp.sin(v)) for v in nj.tree.leaves(t))


TREE_WAYS: dict[str, Callable] = {
    "jit": lambda t: nj.jit(lambda t: t)(t),
    "vmap": lambda t: nj.vmap(lambda t: t)(t),
    "pmap": lambda t: nj.tree.map(lambda v: v[0], nj.pmap(lambda t: t)(
        nj.tree.map(lambda v: v[None], t))),
    "grad": lambda t: nj.grad(lambda t: sum(jnp.sum(v**2) / 2 for v in nj.tree.leaves(t)))(t),
    "jvp": lambda t: nj.jvp(lambda t: t, (t,), (t,))[1],
    "vjp": lambda t: nj.vjp(lambda t: t, t)[1](t)[0],
    "linearize": lambda t: nj.linearize(lambda t: t, t)[1](t),
    "linear_transpose": lambda t: nj.linear_transpose(lambda t: t, t)(t)[0],
    "checkpoint": lambda t: nj.checkpoint(lambda t: t)(t),
    "cond": lambda t: lax.cond(True, lambda t: t, lambda t: t, t),
    "while": lambda t: lax.while_loop(lambda s: s[1] < 2, lambda s: (s[0], s[1] + 1), (t, 0))[0],
    "scan": lambda t: lax.scan(lambda c, a: (c, a), t, t)[1],
    "map": lambda t: lax.map(lambda a: a, t),
    "custom_jvp": lambda t: nj.jvp(_identity, (t,), (t,))[1],
    "closure": lambda t: nj.jit(lambda: t)(),
    "eval_shape": lambda t: nj.tree.map(
        lambda s, v: v, nj.eval_shape(lambda t: t, t), t),
}  # fmt: skip


@nj.custom_jvp
def _identity(t: Any) -> Any:
    return t


_identity.defjvp(lambda primals, tangents: (primals[0], tangents[0]))


@pytest.mark.parametrize("way", TREE_WAYS)
def test_trees_pass_through_every_transformation(way: str) -> None:
    t = make_tree(x3)
    out = TREE_WAYS[way](t)
    assert nj.tree.structure(out) == nj.tree.structure(t)
    for a, b in zip(nj.tree.leaves(out), nj.tree.leaves(t), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    assert out["model"].name == "m" and type(out["pair"]) is Pair


def test_gradients_of_trees_compose() -> None:
    t = make_tree(x3)
    g = nj.jit(nj.grad(total))(t)
    np.testing.assert_allclose(g["model"].w, np.cos(x3), rtol=1e-6)
    h = nj.vmap(nj.grad(total))(nj.tree.map(lambda v: jnp.stack([v, v]), t))
    assert h["point"].y["a"].shape == (2, 3)


# ------------------------------------------------------------------ traces
def test_the_trace_is_restored_after_errors() -> None:
    def bad(x: Any) -> Any:
        raise KeyError("inside")

    ways = (
        nj.jit,
        nj.grad,
        nj.vmap,
        nj.checkpoint,
        lambda f: lambda x: nj.jvp(f, (x,), (x,)),
        lambda f: lambda x: lax.scan(lambda c, a: f(a), 0.0, x),
    )
    for transform in ways:
        with pytest.raises(KeyError, match="inside"):
            transform(bad)(x3)
        assert current_trace() is EVAL


def test_a_generator_that_outlives_its_trace_is_refused() -> None:
    def numbers(x: Any) -> Any:
        yield x * 2.0
        yield x * 3.0

    kept: list = []

    def f(x: Any) -> Any:
        kept.append(numbers(x))
        return next(kept[0])

    nj.jit(f)(1.0)
    with pytest.raises(nj.errors.UnexpectedTracerError):
        next(kept[0])


# ------------------------------------------------------------------ staging
def staged(fun: Callable, *args: Any) -> Any:
    closed = nj.make_jaxpr(fun)(*args)
    check_jaxpr(closed.jaxpr)
    return closed


def test_constants_are_hoisted_and_shared() -> None:
    big = jnp.arange(100.0)
    jaxpr, consts = stage(lambda a: [a + big, a * big, a + 1.0], [big.aval])
    assert len(jaxpr.constvars) == len(consts) == 1 and consts[0] is big
    hoisted = hoist_consts(jaxpr)
    assert hoisted is hoist_consts(jaxpr) and len(hoisted.jaxpr.invars) == 2
    assert any(type(v) is Literal for e in jaxpr.eqns for v in e.invars)


def test_a_staged_function_evaluates_to_the_same() -> None:
    def f(x: Any) -> Any:
        y = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
        return lax.fori_loop(0, 3, lambda i, c: c * y + i, x), jnp.sort(y)

    closed = staged(f, x3)
    for a, b in zip(eval_jaxpr(closed.jaxpr, closed.consts, x3), f(x3), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


PROGRAMS: dict[str, Callable] = {
    "grad": nj.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)),
    "hessian": nj.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 2)),
    "vmap": nj.vmap(lambda a: jnp.where(a > 0, a, 0.0)),
    "scan": nj.grad(lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c), 0.5, x)[0]),
    "vmap of scan": nj.vmap(lambda a: lax.scan(lambda c, b: (c * b + a, c), a, x3)),
    "cond": nj.vmap(nj.grad(lambda a: lax.cond(a > 0, jnp.sin, jnp.cos, a))),
    "while": lambda x: nj.jvp(lambda y: lax.while_loop(
        lambda c: jnp.sum(c) < 9, lambda c: c * 1.5 + 1, y), (x,), (x,)),
    "remat": nj.grad(nj.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))),
    "jit": nj.grad(nj.jit(lambda x: jnp.sum(nj.jit(jnp.sin)(x)))),
    "linalg": nj.grad(lambda x: jnp.linalg.det(jnp.outer(x, x) + jnp.eye(3))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_derived_jaxprs_pass_the_checker(name: str) -> None:
    with config.check_ir(True):
        closed = staged(PROGRAMS[name], x3)
        text = str(closed)
        assert text.startswith(("{ lambda", "let ")) and text.count("{") == text.count("}")
        nj.jit(PROGRAMS[name])(x3)


# ------------------------------------------------------------------ rewrites
def test_dead_code_goes_and_effects_stay() -> None:
    closed = staged(lambda x: (x + 1.0, jnp.exp(jnp.sin(x)))[0], x3)
    lean, _ = dce_jaxpr(closed.jaxpr)
    assert [e.primitive.name for e in lean.eqns] == ["add"]
    assert len(closed.jaxpr.eqns) == 3, "the jaxpr itself is not changed"


def test_a_jaxpr_is_split_into_known_and_unknown() -> None:
    closed = nj.make_jaxpr(lambda a, b: (jnp.sin(a), jnp.cos(a) * b))(x3, x3)
    known, later, unknown_out, residuals = partial_eval_jaxpr(closed, [False, True])
    assert unknown_out == [False, True] and [r.shape for r in residuals] == [(3,)]
    outs = eval_jaxpr(known.jaxpr, known.consts, x3)
    (rest,) = eval_jaxpr(later.jaxpr, later.consts, *outs[1:], x3)
    np.testing.assert_allclose(np.asarray(rest), np.cos(x3) * np.asarray(x3), rtol=1e-6)
    for jaxpr in (known.jaxpr, later.jaxpr):
        check_jaxpr(jaxpr)
    assert partial_eval_jaxpr(closed, [False, True])[0] is known, "remembered"


def test_a_linear_jaxpr_is_transposed() -> None:
    closed = nj.make_jaxpr(lambda a, b: (a * b)[::-1])(x3, x3)
    transposed, nonzero = transpose_jaxpr(closed, [False, True], [True])
    assert nonzero == [True]
    (ct,) = eval_jaxpr(transposed.jaxpr, transposed.consts, x3, jnp.arange(3.0))
    np.testing.assert_allclose(np.asarray(ct), np.asarray(x3) * [2.0, 1.0, 0.0], rtol=1e-6)
    assert all(type(v) is Var for v in transposed.jaxpr.invars)


@pytest.mark.parametrize("number", [2.0, np.float32(2), np.array(2.0, np.float32)], ids=type)
@pytest.mark.parametrize("name", ["pow_p", "mul_p", "max_p", "div_p"])
def test_a_primitive_is_bound_to_numbers_under_every_transformation(name: str, number: Any) -> None:
    """As interpreters of jaxprs do, such as distrax' of inverses."""
    primitive, x = getattr(lax, name), jnp.array([0.5, 1.5, 3.0])
    for ours, want in (
        (lambda x: primitive.bind(x, number), lambda x: primitive.bind(x, jnp.float32(2))),
        (lambda x: primitive.bind(number, x), lambda x: primitive.bind(jnp.float32(2), x)),
    ):
        for view in (
            nj.vmap,
            nj.jacfwd,
            lambda f: lambda x: nj.grad(lambda x: f(x).sum())(x),
            lambda f: lambda x: nj.linearize(f, x)[1](x),
            lambda f: lambda x: nj.vmap(nj.grad(f))(x),
            lambda f: nj.jit(nj.jacrev(f)),
        ):
            np.testing.assert_allclose(view(ours)(x), view(want)(x), rtol=1e-6)
