"""Names of scopes in equations: what `named_scope` and transformations leave there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.ad_checkpoint import print_saved_residuals


def _names(f: Callable, *args: Any) -> list[str]:
    """`primitive names` of each equation, those of inner jaxprs behind it."""
    found: list[str] = []

    def walk(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            found.append(f"{eqn.primitive} {eqn.source_info.name_stack}".strip())
            for value in eqn.params.values():
                if hasattr(value, "jaxpr"):
                    walk(value.jaxpr)

    walk(nj.make_jaxpr(f)(*args).jaxpr)
    return found


def f(x: Any) -> Any:
    with nj.named_scope("a"), nj.named_scope("b"):
        return jnp.sin(x)


def g(x: Any) -> Any:
    with nj.named_scope("o"):
        return nj.jit(f)(x) + 1


def h(x: Any) -> Any:
    with nj.named_scope("o"):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


@pytest.mark.parametrize("fun, x, names", [
    (f, 1.0, ["sin a/b"]),
    (nj.named_call(lambda x: x + 1, name="step"), 1.0, ["add step"]),
    (nj.named_scope("twice")(lambda x: f(f(x))), 1.0, ["sin twice/a/b"] * 2),
    (nj.grad(f), 1.0, ["sin jvp(a)/b", "cos jvp(a)/b", "mul transpose(jvp(a))/b"]),
    (lambda x: nj.jvp(f, (x,), (x,)), 1.0, ["sin jvp(a)/b", "cos jvp(a)/b", "mul jvp(a)/b"]),
    (nj.vmap(f), jnp.ones(3), ["sin vmap(a)/b"]),
    (nj.vmap(nj.grad(f)), jnp.ones(3), [
        "sin vmap(jvp(a))/b", "cos vmap(jvp(a))/b", "mul vmap(transpose(jvp(a)))/b"]),
    (nj.named_scope("o")(lambda x: nj.grad(f)(x)), 1.0, [
        "sin o/jvp(a)/b", "cos o/jvp(a)/b", "mul o/transpose(jvp(a))/b"]),
    (g, 1.0, ["jit o", "sin a/b", "add o"]),
    (nj.grad(g), 1.0, [
        "jit jvp(o)", "sin a/b", "cos a/b", "add jvp(o)", "jit transpose(jvp(o))", "mul a/b"]),
    (h, 1.0, ["scan o", "sin a/b"]),
    (nj.grad(h), 1.0, [
        "scan jvp(o)", "sin a/b", "cos a/b", "scan transpose(jvp(o))", "mul a/b"]),
    (jnp.sin, 1.0, ["sin"]),
])  # fmt: skip
def test_equations_tell_the_names_of_scopes(fun: Callable, x: Any, names: list[str]) -> None:
    assert _names(fun, x) == names
    assert _names(fun, x) == names  # what is remembered of the operations changes nothing


def test_scopes_end_where_an_exception_passes() -> None:
    def failing(x: Any) -> Any:
        try:
            with nj.named_scope("inner"):
                raise ValueError
        except ValueError:
            return x * 2

    assert _names(failing, 1.0) == ["mul"]
    scope = nj.named_scope("again")
    with scope, scope:
        assert _names(f, 1.0) == ["sin a/b"]  # what is staged begins without names


def test_saved_residuals_are_told_in_order(capsys: pytest.CaptureFixture) -> None:
    def product(x: Any, y: Any) -> Any:
        return jnp.sin(x) * jnp.cos(y) * x

    print_saved_residuals(product, 1.0, 2.0)
    lines = capsys.readouterr().out.splitlines()
    told = [line.split(" from ")[0] for line in lines]
    sin, cos = "f32[] output of sin", "f32[] output of cos"
    assert told == ["f32[]", sin, cos, cos, sin, "f32[] output of mul"]
    assert lines[0] == "f32[] from the argument x"
