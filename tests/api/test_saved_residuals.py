"""What `print_saved_residuals` prints: arguments first, then what is computed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.ad_checkpoint import checkpoint_name, print_saved_residuals


def layer(w: nj.Array, x: nj.Array) -> nj.Array:
    return jnp.sin(jnp.dot(w, x))


def network(w1: nj.Array, w2: nj.Array, x: nj.Array) -> nj.Array:
    first = checkpoint_name(layer(w1, x), "first")
    return layer(w2, first)


ARGUMENTS = jnp.ones((3, 2)), jnp.ones((2, 3)), jnp.ones(2)


def test_arguments_come_first(capsys: pytest.CaptureFixture) -> None:
    print_saved_residuals(network, *ARGUMENTS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "f32[3,2] from the argument w1",
        "f32[2,3] from the argument w2",
        "f32[2] from the argument x",
    ]
    assert [line.split(" from ")[0] for line in lines[3:]] == [
        "f32[3] output of cos", "f32[3] named 'first'", "f32[2] output of cos",
    ]  # fmt: skip
    assert lines[3].endswith("(layer)") and lines[4].endswith("(network)")


def test_what_checkpoint_saves_is_told_with_its_own_line(capsys: pytest.CaptureFixture) -> None:
    keep = nj.checkpoint_policies.dots_with_no_batch_dims_saveable
    for f, ends in (
        (nj.checkpoint(network, policy=keep), ["(layer)", "(layer)"]),
        (lambda w1, w2, x: nj.checkpoint(layer)(w2, nj.checkpoint(layer)(w1, x)), ["(layer)"]),
        (nj.checkpoint(network, policy=nj.checkpoint_policies.save_only_these_names("first")),
         ["(network)"]),
    ):  # fmt: skip
        print_saved_residuals(f, *ARGUMENTS)
        lines = capsys.readouterr().out.splitlines()[3:]
        assert [line.split()[-1] for line in lines] == ends


def test_values_rounded_for_a_policy_are_told_as_what_was_rounded(
    capsys: pytest.CaptureFixture,
) -> None:
    names = nj.checkpoint_policies.save_only_these_names("c")
    for policy, want in (
        (names, ["argument x", "named 'c'"]),
        (nj.checkpoint_policies.everything_saveable, ["output of sin", "output of cos"]),
    ):
        print_saved_residuals(
            nj.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.cos(x), "c")), policy=policy), 1.0
        )
        lines = capsys.readouterr().out.splitlines()
        assert all(told in line for told, line in zip(want, lines)), lines


def test_calls_and_loops_are_told_as_such(capsys: pytest.CaptureFixture) -> None:
    def told(f: Any) -> list[str]:
        print_saved_residuals(f, jnp.ones(3))
        lines = capsys.readouterr().out.splitlines()
        return [line.split(" from <")[0].split(" from /")[0] for line in lines]

    assert told(lambda a: nj.jit(lambda b: jnp.sin(b))(a)) == [
        "f32[3] output of jitted function '<lambda>'"
    ]
    assert told(lambda a: nj.lax.scan(lambda c, t: (jnp.sin(c) * t, None), 1.0, a)[0]) == [
        "f32[3] from the argument a", "f32[3] output of scan", "f32[3] output of scan"
    ]
    assert told(jnp.tanh) == ["f32[3] output of tanh", "f32[3] output of sub"]  # JAX's rule


@pytest.mark.parametrize(("f", "count"), [
    (lambda x: x * 2.0, 1),
    (lambda x: 2.0 * jnp.sin(x).mean() * 3.0, 2),
    (lambda x: jnp.sin(x).sum() / 2.0, 1),
    (lambda x: x.mean(), 0),
    (lambda x: x.mean(0, keepdims=True) * x.var(0, keepdims=True), 0),
    (lambda x: lax.cond(True, jnp.sin, jnp.cos, x), 1),
    (lambda x: x.sum() + 2.0, 0),
])  # fmt: skip
def test_numbers_that_multiply_are_kept(
    f: Any, count: int, capsys: pytest.CaptureFixture
) -> None:
    """But for those of Python's type beside weak values, and what a mean divides by."""
    print_saved_residuals(f, jnp.ones(3))
    lines = capsys.readouterr().out.splitlines()
    told = [line.partition(" ")[2] == "from a literal" for line in lines]
    assert told == [True] * count + [False] * (len(lines) - count)
    print_saved_residuals(lambda x: x * 2.0, 1.0)
    assert not capsys.readouterr().out


def _saves(name: str) -> Any:
    return lambda primitive, *_, **__: primitive.name == name


def _computed_again(f: Any, x: float) -> str:
    return str(nj.make_jaxpr(nj.linearize(f, x)[1])(1.0))


@pytest.mark.parametrize("body", [jnp.sin, nj.jit(lambda c: jnp.sin(c))], ids=["plain", "jit"])
def test_policies_see_what_loops_and_branches_compute(body: Any) -> None:
    def loop(x: Any) -> Any:
        return lax.scan(lambda c, _: (body(c), c * 2.0), x, None, length=4)[0]

    def branch(x: Any) -> Any:
        return lax.cond(x > 0.0, body, lambda x: x, x)

    for f in (loop, branch):
        want = nj.grad(f)(0.5)
        for policy, again in ((_saves("cos"), False), (_saves("tan"), True), (None, True)):
            g = nj.checkpoint(f, policy=policy)
            assert (" cos " in _computed_again(g, 0.5)) == again
            for derivative in (nj.grad(g), nj.jit(nj.grad(g))):
                assert jnp.allclose(derivative(0.5), want)
            assert jnp.allclose(nj.grad(nj.grad(g))(0.5), nj.grad(nj.grad(f))(0.5))


def test_what_is_saved_is_logged_as_a_detail(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any) -> Any:
        return jnp.cos(jnp.sin(x).sum())

    x, texts = jnp.arange(3.0), []
    with caplog.at_level(logging.DEBUG, "numjet"):
        for policy in (None, lambda *_, **__: True, _saves("cos")):
            caplog.clear()
            nj.grad(nj.checkpoint(f, policy=policy))(x)
            told = [r.getMessage() for r in caplog.records]
            texts.append("\n".join(text for text in told if text.startswith("remat")))
    nothing, everything, cosines = texts
    assert "saving inputs with shapes:\n  float32[3]" in nothing and "from" not in nothing
    assert "saving these intermediates:" in everything and " sin " in everything
    assert "and saving these intermediates:" in cosines and " cos " in cosines
    assert " sin " not in cosines
