"""What messages and jaxprs tell of the functions that are traced: place, arguments, what for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from messages import message, says

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

x3 = jnp.ones(3)


def ask(value: Any) -> Any:
    return value if value > 0 else -value


LABELS: dict[str, Callable] = {
    "jit": lambda: nj.jit(ask)(1.0),
    "scan": lambda: lax.scan(lambda value, x: (ask(value), x), 1.0, x3),
    "while_body": lambda: lax.while_loop(lambda value: value < 3, ask, 1.0),
    "while_cond": lambda: lax.while_loop(ask, lambda value: value, 1.0),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, value: ask(value), 1.0),
    "cond": lambda: lax.cond(True, ask, ask, 1.0),
    "switch": lambda: lax.switch(1, [ask, ask], 1.0),
    "checkpoint / remat": lambda: nj.checkpoint(ask)(1.0),
}


@pytest.mark.parametrize("label", LABELS)
def test_messages_tell_what_traces_the_function_and_its_argument(label: str) -> None:
    text = message(nj.errors.TracerBoolConversionError, LABELS[label])
    says(text, "test_traced_words.py:", f" for {label}. This concrete value", "argument value.\n")


def test_arguments_without_a_name_are_told_by_their_place() -> None:
    def f(x: Any, *rest: Any, scale: Any, **others: Any) -> Any:
        return ask(x * rest[1] * scale * others["k"])

    text = message(nj.errors.TracerBoolConversionError, nj.jit(f), 1.0, 2, 3, scale=4, k=5)
    says(text, "of the arguments x, rest[1], others['k'], and scale.\n")


def test_values_of_no_argument_tell_the_operations_that_made_them() -> None:
    def f() -> Any:
        assert sum(jnp.add(1, i) for i in range(6)) > 0

    text = message(nj.errors.TracerBoolConversionError, nj.jit(f))
    says(text, "on these lines:\n\n  operation a:i32[] = add 1:i32[] 0:i32[]\n    from line ")
    says(text, "\nAdditional originating lines are not shown.\n")
    assert "static" not in text


def test_leaked_values_tell_what_traced_their_function() -> None:
    kept: list = []

    def body(total: Any, x: Any) -> Any:
        kept.append(total)
        return total + x, x

    lax.scan(body, 0.0, x3)
    text = message(nj.errors.UnexpectedTracerError, lambda: kept[0] + 1)
    says(text, "when the value leaked was body at ", "test_traced_words.py", " traced for scan.")


def test_branches_that_differ_are_told_by_place_and_path() -> None:
    text = message(TypeError, lax.cond, True, lambda: {"a": x3}, lambda: {"a": 1.0})
    says(text, "true_fun is <lambda> at ", "output of true_fun at path ['a'] has type float32[3]")
    text = message(TypeError, lax.switch, 0, [lambda: (1, 2), lambda: (1, 2), lambda: (1,)])
    says(text, "branch 0 output is a tuple of length 2 but branch 2 output is a tuple of length 1")
    text = message(TypeError, lax.scan, lambda total, x: ([total], x), {"a": 1.0}, x3)
    says(text, "The input carry total is a dict with keys ['a']", "so their Python types differ.")


def test_jaxprs_of_loops_and_branches_name_arguments_and_results() -> None:
    def step(state: Any, x: Any) -> Any:
        return {"s": state["s"] + x}, 2 * x

    def low(u: Any) -> Any:
        return u

    jaxpr = nj.make_jaxpr(lambda xs: lax.scan(step, {"s": 0.0}, xs))(x3)
    info = jaxpr.eqns[0].params["jaxpr"].jaxpr.debug_info
    assert info.traced_for == "scan" and info.func_name == "step"
    assert info.arg_names == ("state['s']", "x")
    assert info.result_paths == ("result[0]['s']", "result[1]")
    jaxpr = nj.make_jaxpr(lambda i, x: lax.switch(i, [low, jnp.sin], x))(1, 2.0)
    info = jaxpr.eqns[-1].params["branches"][0].jaxpr.debug_info
    assert (info.traced_for, info.func_name, info.arg_names) == ("switch", "low", ("u",))


def test_checkpointed_functions_that_ask_values_are_told_of_static_argnums() -> None:
    @functools.partial(nj.checkpoint, static_argnums=(0,))
    def f(n: Any) -> Any:
        return jnp.sin(n) if n + 1 > 0 else n  # computed with, it is no Python value any more

    text = message(nj.errors.TracerBoolConversionError, f, jnp.array(3.0))
    says(text, "test_traced_words.py", "<locals>.f)", "static_argnums")
