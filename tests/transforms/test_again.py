"""Functions that are staged once for their aval are those that run each time."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import nn
from numjet.base import config
from numjet.core.trace import Tracer
from numjet.nn import activations, normalization
from numjet.numpy import indexing, products, reductions
from numjet.transforms import again as module
from numjet.transforms.linear_steps import LinearStep

x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 4), np.float32))
cube = jnp.asarray(np.random.default_rng(1).standard_normal((2, 4, 5), np.float32))

FUNCTIONS = {
    "numbers": lambda a: a[1] + a[-1] + a[0, 2] + a[0, -3],
    "beyond": lambda a: a[7] + a[-9] + a[:, 5][:1],
    "ranges": lambda a: a[:, 1:] * a[:, :-1] + a[::-1, ::2][:, :1] + a[5:].sum() + a[0:1, 2:0:-1],
    "axes": lambda a: a[None, ..., 0] + a[..., None, 1, 0][None] + a[:][:, :, -1],
    "empty": lambda a: a[:, 3:3].sum() + a[()].sum(),
    "arrays": lambda a: a[jnp.array([0, 1])] + a[np.array([True, False])][:, :1],
    "booleans": lambda a: a[True] + a[None][0, None],
    "means": lambda a: a.mean() + a.mean(1).sum() + a.mean(-1, keepdims=True) + a.mean((0, 1)),
    "sums": lambda a: a.sum(1, keepdims=True) + a.max(-1, keepdims=True) - a.min(
        keepdims=True) + jnp.max(a, 0, keepdims=True, initial=-np.inf),
    "initial": lambda a: jnp.max(a, 0, keepdims=True, initial=0.5) + jnp.sum(
        a, 1, keepdims=True, initial=a[0, 0, 0]),
    "masks": lambda a: jnp.mean(a, 1, where=a > 0, keepdims=True) + jnp.sum(
        a, 1, keepdims=True, where=a > 0),
    "narrow": lambda a: a.astype(jnp.float16).mean(keepdims=True) + a.astype(jnp.int32).mean(1),
    "keepdims as a number": lambda a: jnp.mean(a, 0, keepdims=1) + jnp.sum(a, 0, keepdims=1),
    "softmax": lambda a: nn.softmax(a) + nn.softmax(a, 0) + nn.softmax(a, (0, 1)),
    "gelu": lambda a: nn.gelu(a) + nn.gelu(a[0], False),
    "masked softmax": lambda a: nn.softmax(a, where=a > 0),
    "products": lambda a: a @ cube + (a[:1] @ cube[:1]) + (a[:, None] @ cube[:, None])[:, 0],
    "dot": lambda a: jnp.dot(a, cube) .sum() + jnp.dot(a[0], cube[0]) + jnp.matmul(a, cube),
}  # fmt: skip


def shown(fun, *args):
    closed = nj.make_jaxpr(fun)(*args)
    return (
        re.sub("0x[0-9a-f]+", "", str(closed)),
        [str(eqn.source) for eqn in closed.eqns],
        [v.aval for v in closed.jaxpr.outvars],
    )


# Under a name that is the package's, so that equations do not come from here.
scope: dict = {}
exec(compile("def direct(_, x, fun, learn=None): return fun(x)", "<numjet test>", "exec"), scope)
direct = scope["direct"]


@pytest.mark.parametrize("transformed", ["", "grad", "vmap", "second"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equations_are_those_of_the_functions(monkeypatch, name, transformed):
    fun = FUNCTIONS[name]
    if transformed:
        inner = fun
        fun = lambda a: nj.grad(lambda b: jnp.sum(inner(b) ** 2))(a)  # noqa: E731
        if transformed == "vmap":
            fun = nj.vmap(inner, out_axes=None if name == "empty" else 0) if name in (
                "numbers", "means", "softmax") else inner  # fmt: skip
        if transformed == "second":
            first = fun
            fun = lambda a: nj.grad(lambda b: jnp.sum(first(b) * b))(a)  # noqa: E731
    operand = jnp.stack([x, x]) if transformed == "vmap" and fun is not inner else x
    with monkeypatch.context() as patch:
        for user in (indexing, reductions, normalization, activations):
            patch.setattr(user, "again", direct)
        patch.setattr(products, "_product_of_floats", lambda *_: None)
        products.traced_products.clear()
        want = shown(fun, operand)
    module._known.clear()
    products.traced_products.clear()
    for _ in range(4):
        assert shown(fun, operand) == want
    got = nj.jit(fun)(operand)
    np.testing.assert_allclose(got, fun(operand), rtol=1e-4, atol=1e-4)


def test_what_is_staged_is_staged_once(monkeypatch):
    calls = []

    def fun(a):
        calls.append(a)
        return a * 2 + 1

    for _ in range(4):  # as ever, staged, not at all
        nj.make_jaxpr(lambda a: module.again((fun,), a, fun))(x)
    assert len(calls) == 2
    nj.make_jaxpr(lambda a: module.again((fun,), a, fun))(x[0])
    with nj.enable_x64(True):
        nj.make_jaxpr(lambda a: module.again((fun,), a, fun))(x)
    assert len(calls) == 4 and all(isinstance(a, Tracer) for a in calls)
    for _ in range(3):  # what needs arrays cannot be bound again
        nj.make_jaxpr(lambda a: module.again("constant", a, lambda b: b + x))(x)
    module._known.clear()
    monkeypatch.setattr(module._known, "bound", 3)
    for n in range(1, 9):
        nj.make_jaxpr(lambda a: a[0] + a[-1])(jnp.ones(n))
        assert len(module._known) <= 3


def test_errors_are_told_as_ever():
    for _ in range(3):
        with pytest.raises(IndexError, match="too many|Too many"):
            nj.jit(lambda a: a[0, 0, 0, 0])(x)
        with pytest.raises(ValueError, match="zero-size"):
            nj.jit(lambda a: a[:, :0].max(1, keepdims=True))(x)
        with pytest.raises(IndexError, match="out of bounds|out of range"):
            nj.jit(lambda a: a.mean(5))(x)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["softmax", "gelu", "mean", "max"])
def test_functions_of_several_operations_are_linearized_as_one(name, fused):
    fun = {
        "softmax": nn.softmax, "gelu": nn.gelu, "mean": lambda a: jnp.mean(a, -1, keepdims=True),
        "max": lambda a: jnp.max(a, -1, keepdims=True),
    }[name]  # fmt: skip
    operand = jnp.asarray(np.random.default_rng(3).standard_normal((300, 256), np.float32))
    weights = jnp.asarray(np.random.default_rng(4).standard_normal((300, 256), np.float32))
    steps = []

    def loss(a):
        out = fun(a)
        assert isinstance(out, Tracer)
        steps.append([e for e in getattr(out.owner, "tape", ()) if type(e) is LinearStep])
        return jnp.sum(out * weights)

    want = nj.jit(nj.value_and_grad(loss))(operand)
    with config.eager_fusion(fused):
        first = [np.asarray(x) for x in nj.value_and_grad(loss)(operand)]
        for _ in range(14):
            found = [np.asarray(x) for x in nj.value_and_grad(loss)(operand)]
    assert len(steps[-1]) == 1 and steps[-1][0].rule.reverse is not None
    for a, b, c in zip(found, first, want, strict=True):
        np.testing.assert_allclose(a, c, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(b, c, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("fused", [True, False])
def test_an_operation_with_what_repeats_its_operands_is_one(fused) -> None:
    w = jnp.asarray(np.random.default_rng(3).standard_normal((300, 256), np.float32))
    b = jnp.asarray(np.random.default_rng(4).standard_normal(256, np.float32))
    counts = []

    def loss(w, b):
        hidden = jnp.tanh(w) * b
        counts.append(len(getattr(hidden.owner, "tape", ())))
        return jnp.sum(hidden / (1 + jnp.abs(b)))

    grad = nj.value_and_grad(loss, (0, 1))
    want = nj.tree.leaves(nj.jit(grad)(w, b))
    with config.eager_fusion(fused):
        for _ in range(14):
            found = nj.tree.leaves(grad(w, b))
    assert counts[-1] == (2 if fused else 3)  # NumPy's view, and what is done with it
    for a, c in zip(found, want, strict=True):
        np.testing.assert_allclose(a, c, rtol=2e-4, atol=2e-5)


WHERE = jnp.asarray(np.random.default_rng(5).standard_normal((300, 256)) > 0)
AT = jnp.asarray(np.random.default_rng(6).integers(0, 256, (300, 1)))
ROWS = jnp.asarray(np.random.default_rng(7).integers(0, 300, 40))
OF_SEVERAL = {
    "where": lambda a: jnp.where(WHERE, a, -1e9),
    "where, zeros": lambda a: jnp.where(WHERE, a, -0.0),
    "log_softmax": nn.log_softmax,
    "log_softmax of columns": lambda a: nn.log_softmax(a, axis=0),
    "take_along_axis": lambda a: jnp.take_along_axis(a, AT, axis=-1),
    "rows": lambda a: a[ROWS],
    "reshape": lambda a: a.reshape(256, 300),
    "transpose": lambda a: jnp.transpose(a, (1, 0)),
    "var": lambda a: jnp.var(a, axis=-1, keepdims=True),
    "logsumexp": lambda a: nn.logsumexp(a, axis=1),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_functions_of_several_arrays_are_linearized_as_one(name, fused):
    fun = OF_SEVERAL[name]
    operand = jnp.asarray(np.random.default_rng(3).standard_normal((300, 256), np.float32))
    steps = []

    def loss(a):
        out = fun(a)
        steps.append([e for e in getattr(out.owner, "tape", ()) if type(e) is LinearStep])
        return jnp.sum(jnp.sin(out))

    want = nj.jit(nj.value_and_grad(loss))(operand)
    with config.eager_fusion(fused):
        first = [np.asarray(x) for x in nj.value_and_grad(loss)(operand)]
        for _ in range(14):
            found = [np.asarray(x) for x in nj.value_and_grad(loss)(operand)]
    assert len(steps[-1]) == 1
    for a, b, c in zip(found, first, want, strict=True):
        np.testing.assert_allclose(a, c, rtol=2e-4, atol=2e-3)
        np.testing.assert_allclose(b, c, rtol=2e-4, atol=2e-3)


def test_what_is_no_one_operation_is_called_each_time():
    operand = jnp.asarray(np.random.default_rng(3).standard_normal(300), jnp.float32)
    for _ in range(12):
        parts = nj.grad(lambda a: sum(jnp.divmod(a, 2.0)).sum())(operand)  # two results
        np.testing.assert_array_equal(parts, np.ones(300))
        chosen = nj.grad(lambda a: a[a > 0].sum())(operand)  # of a shape that values decide
        np.testing.assert_array_equal(chosen, np.asarray(operand) > 0)
        for zero, slope in ((0.0, np.inf), (-0.0, -np.inf)):
            _, got = nj.grad(
                lambda a, z=zero: (a.sum(), 1 / jnp.where(a > 9, a, z)[0]), has_aux=True)(operand)
            assert float(got) == slope
        assert nj.hessian(lambda a: jnp.sum(jnp.where(a > 0, a, 0.0) ** 3))(operand[:4]).shape == (
            4, 4)
