"""When control flow traces a function that a line made anew: only if something that it reads is
another."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core import alike
from numjet.ops import bodies

X, XS = jnp.arange(3.0), jnp.ones((2, 3))
SCALE = 2.0
WEIGHTS = {"w": jnp.ones(3)}
SETTINGS = types.SimpleNamespace(scale=2.0)
MODULE = types.ModuleType("a_module_of_the_user")


def scaled(x: Any) -> Any:
    return x * SCALE


@nj.jit
def jitted(x: Any) -> Any:
    return x + 1


def made(kind: str, number: Any) -> Callable:
    """A new function of a carry and an element."""
    kinds: dict[str, Callable] = {
        "plain": lambda c, x: (c + x, c), "number": lambda c, x: (c * number, x),
        "helper": lambda c, x: (scaled(c), x), "dict": lambda c, x: (c * WEIGHTS["w"], x),
        "relu": lambda c, x: (nj.nn.relu(c), x), "jitted": lambda c, x: (jitted(c), x),
        "numpy": lambda c, x: (c * np.float32(np.pi), x), "array": lambda c, x: (c + X, x),
        "partial": functools.partial(lambda k, c, x: (c * k, x), number),
        "inner": lambda c, x: (lax.fori_loop(0, 2, lambda i, v: v * number, c), x),
        "default": lambda c, x, k=number: (c * k, x),
    }  # fmt: skip
    return kinds[kind]


@pytest.mark.parametrize(
    "kind",
    "plain number helper dict relu jitted numpy array partial inner default".split(),
)
def test_functions_that_a_line_makes_anew_are_traced_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lax.scan(made(kind, 7.0), X, XS)
    monkeypatch.setattr(bodies, "stage", None)
    again = lax.scan(made(kind, 7.0), X, XS)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("one", "other"), [
    (0.0, -0.0), (1, 1.0), (True, 1), (1.5, 2.5), (np.float32(1), np.float64(1)), ((1,), [1]),
])  # fmt: skip
def test_what_is_equal_may_yet_be_another_constant(one: Any, other: Any) -> None:
    forms = [alike.form(made("number", x)) for x in (one, one, other)]
    assert forms[0].key == forms[1].key != forms[2].key


def test_globals_of_functions_that_are_called_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(kind: str) -> float:
        return float(lax.scan(made(kind, 1), jnp.ones(3), XS)[0][0])

    assert [run("helper"), run("dict")] == [4, 1]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    monkeypatch.setitem(WEIGHTS, "w", 2 * jnp.ones(3))
    assert [run("helper"), run("dict")] == [9, 4]


def test_attributes_of_modules_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> float:
        return float(lax.fori_loop(0, 2, lambda i, c: c * MODULE.scale, 1.0))

    monkeypatch.setattr(MODULE, "scale", 2.0, raising=False)
    assert run() == run() == 4
    monkeypatch.setattr(MODULE, "scale", 3.0)
    assert run() == 9


@pytest.mark.parametrize("function", [
    lambda c, x: (c * SETTINGS.scale, x), lambda c, x: (c * np.random.rand(), x),
    lambda c, x: (print(end="") or c, x), lambda c, x: (c, MODULE),
])  # fmt: skip
def test_what_may_do_otherwise_has_no_form(function: Callable) -> None:
    assert alike.form(function) is None


def test_functions_that_write_to_what_is_not_theirs_have_no_form() -> None:
    count = 0

    def body(c: Any, x: Any) -> Any:
        nonlocal count
        count += 1
        return c, x

    assert alike.form(body) is None


def test_callbacks_keep_the_list_of_their_own_call() -> None:
    def run() -> list:
        seen: list = []

        def keep(x: Any) -> None:
            seen.append(float(x))

        def body(c: Any, x: Any) -> Any:
            nj.debug.callback(keep, c)
            return c + 1, x

        lax.scan(body, 0.0, XS)
        nj.effects_barrier()
        return seen

    assert run() == run() == [0, 1]


def test_large_arrays_are_not_kept_alive() -> None:
    large = jnp.zeros(1 << 16)
    assert alike.form(lambda c: c + large) is None
    assert alike.form(lambda c: c + X) is not None


def test_what_a_trace_appends_is_appended_to_the_list_of_each_call() -> None:
    def run() -> list:
        shapes: list = []

        def body(c: Any, x: Any) -> Any:
            shapes.append(c.shape)
            return c, x

        lax.scan(body, X, XS)
        return shapes

    assert run() == run() == [(3,)]
