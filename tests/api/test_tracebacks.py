"""Tracebacks show the user's lines, with the flag traceback_filtering."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base.config import traceback_filtering
from numjet.base.tracebacks import UnfilteredStackTrace

X = jnp.arange(3.0)


def fails(*_: Any) -> Any:
    raise LookupError("on purpose")


def _raised(call: Callable, mode: str) -> Exception:
    with traceback_filtering(mode), pytest.raises(Exception) as caught:  # noqa: B017, PT011
        call()
    return caught.value


def _functions(error: BaseException, hidden: bool = False) -> list[str]:
    """The functions in a traceback, from the call on."""
    frames = [
        frame for frame, _ in traceback.walk_tb(error.__traceback__)
        if not (hidden and "__tracebackhide__" in frame.f_locals)
    ]  # fmt: skip
    return [frame.f_code.co_name for frame in frames][1:]  # without _raised


def _nested() -> Any:
    @nj.jit
    def inner(x: Any) -> Any:
        return fails(x)

    @nj.jit
    def outer(x: Any) -> Any:
        return 1.0 + nj.vmap(inner)(x)

    return outer(X)


@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames", "remove_frames", "tracebackhide"])
def test_the_lines_of_the_user_are_left(mode: str) -> None:
    error = _raised(_nested, mode)
    assert _functions(error, mode == "tracebackhide") == ["_nested", "outer", "inner", "fails"]
    assert isinstance(error.__cause__, UnfilteredStackTrace) == (mode == "remove_frames")
    notes = "".join(getattr(error, "__notes__", ()))
    assert notes.count("For simplicity") == (mode in ("auto", "quiet_remove_frames"))
    if mode == "remove_frames":
        assert "vmap" in str(error.__cause__) and len(_functions(error.__cause__)) > 6


def test_all_frames_are_shown_where_that_is_asked_for() -> None:
    error = _raised(_nested, "off")
    assert len(_functions(error)) > 6 and not hasattr(error, "__notes__")


def _rule(**rules: Any) -> Any:
    f = nj.custom_vjp(lambda x: x)
    f.defvjp(rules.get("fwd", lambda x: (x, None)), rules.get("bwd", lambda _, g: (g,)))
    return f


def _jvp_rule() -> Any:
    f = nj.custom_jvp(lambda x: x)
    f.defjvp(fails)
    return f


@pytest.mark.parametrize("call", [
    lambda: nj.jit(fails)(X), lambda: nj.vmap(fails)(X), lambda: nj.grad(fails)(1.0),
    lambda: nj.value_and_grad(fails)(1.0), lambda: nj.jvp(fails, (1.0,), (1.0,)),
    lambda: nj.vjp(fails, 1.0), lambda: nj.linearize(fails, 1.0), lambda: nj.jacfwd(fails)(X),
    lambda: nj.jacrev(fails)(X), lambda: nj.hessian(fails)(X), lambda: nj.make_jaxpr(fails)(X),
    lambda: nj.eval_shape(fails, X), lambda: nj.checkpoint(fails)(X), lambda: nj.pmap(fails)(X[:1]),
    lambda: nj.linear_transpose(fails, X), lambda: nj.custom_vjp(fails)(X),
    lambda: nj.grad(_rule(fwd=fails))(1.0), lambda: nj.grad(_rule(bwd=fails))(1.0),
    lambda: nj.jvp(_jvp_rule(), (1.0,), (1.0,)),
    lambda: lax.cond(True, fails, fails, X), lambda: lax.switch(1, [fails, fails], X),
    lambda: lax.scan(fails, 0.0, X), lambda: lax.fori_loop(0, 2, fails, X),
    lambda: lax.while_loop(lambda c: True, fails, 0.0), lambda: lax.map(fails, X),
    lambda: lax.associative_scan(fails, X), lambda: lax.custom_linear_solve(fails, X, fails),
    lambda: lax.custom_root(fails, 0.0, fails, fails),
])  # fmt: skip
def test_every_function_that_calls_the_users_hides_itself(call: Callable) -> None:
    error = _raised(call, "quiet_remove_frames")
    assert type(error) in (LookupError, AttributeError)  # the latter: a custom_vjp without rules
    names = _functions(error)
    assert names[0] == "<lambda>" and set(names) <= {"<lambda>", "fails"}


def test_causes_stay() -> None:
    def outer(x: Any) -> Any:
        try:
            return nj.jit(fails)(x)
        except LookupError as error:
            raise TypeError("outer") from error

    error = _raised(lambda: nj.jit(outer)(X), "quiet_remove_frames")
    assert isinstance(error.__cause__, LookupError) and _functions(error) == ["<lambda>", "outer"]
