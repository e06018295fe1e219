"""When control flow traces a function that a line made anew: only if something that it reads is
another."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

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


def grown(function: Callable) -> float:
    """What a loop of two rounds makes of 2."""
    return float(lax.fori_loop(0, 2, lambda i, c: function(c), 2.0))


class Counted(np.float64):
    """A number with an attribute."""

    times: float


def reads() -> dict[str, tuple[Callable, Callable]]:
    """By name: a function of a number that reads something, and one that sets that to 2 or 3."""
    held, function = [2.0], lambda c: c
    text, function_of_c = nj.jit(lambda c: c), np.frompyfunc(lambda v: v * held[0], 1, 1)
    number, memory = Counted(1), np.ones((), np.float32)
    wide, array = np.ones(100, np.float32), jnp.asarray(memory, copy=False)
    ones = jnp.asarray(wide, copy=False)

    @functools.wraps(jnp.abs)
    def absolute(c: Any) -> Any:
        return c * held[0]

    def hold(k: float) -> None:
        held[0] = k

    def name(k: float, of: Any) -> None:
        of.__name__ = "x" * int(k)

    return {
        "an attribute of our module":
            (lambda c: c * jnp.kept, lambda k: setattr(jnp, "kept", k)),
        "a function of our module":
            (lambda c: jnp.abs(c), lambda k: (hold(k), setattr(jnp, "abs", absolute))),
        "a flag": (lambda c: c * (3 - nj.config.jax_softmax_custom_jvp),
                   lambda k: nj.config.update("jax_softmax_custom_jvp", k == 2)),
        "a name": (lambda c: c * len(function.__name__), lambda k: name(k, function)),
        "a text": (lambda c: c * len(getattr(function, "__doc__")),  # noqa: B009
                   lambda k: setattr(function, "__doc__", "x" * int(k))),
        "an annotation": (lambda c: c * function.__annotations__["c"],
                          lambda k: function.__annotations__.update(c=k)),
        "what is wrapped": (lambda c: function.__wrapped__(c),
                            lambda k: setattr(function, "__wrapped__", lambda c: c * k)),
        "an attribute of a jitted function":
            (lambda c: c * text.times, lambda k: setattr(text, "times", k)),
        "a name of a jitted function":
            (lambda c: c * len(text.__name__), lambda k: name(k, text)),
        "a loop of NumPy's": (lambda c: c * float(function_of_c(1.0)), hold),
        "an attribute of a number":
            (lambda c: c * number.times, lambda k: setattr(number, "times", k)),
        "memory of the user": (lambda c: c * float(array), lambda k: memory.fill(k)),
        "more memory of the user": (lambda c: c * ones.tolist()[0], lambda k: wide.fill(k)),
    }  # fmt: skip


@pytest.mark.parametrize("name", reads())
def test_what_is_read_counts_when_it_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jnp, "kept", 0, raising=False)
    monkeypatch.setattr(jnp, "abs", jnp.abs)
    function, change = reads()[name]
    try:
        for k in (2.0, 3.0):
            change(k)
            assert grown(function) == 2 * k**2
    finally:
        nj.config.update("jax_softmax_custom_jvp", False)


def test_modules_under_other_names_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> float:
        def body(i: Any, c: Any) -> Any:
            ours = jnp
            return ours.negative(c)

        return float(lax.fori_loop(0, 1, body, 2.0))

    assert run() == -2
    monkeypatch.setattr(jnp, "negative", jnp.square)
    assert run() == 4


def test_numpy_arrays_count_by_how_they_lie_and_which_are_one() -> None:
    def run(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
        return (
            float(lax.fori_loop(0, 1, lambda i, c: c * a.strides[0], 1.0)),
            float(lax.fori_loop(0, 1, lambda i, c: c * (3 if a is b else 2), 1.0)),
        )

    a = np.ones((2, 3), np.float32)
    assert run(a, a) == (12, 3)
    assert run(a, a.copy()) == (12, 2)
    assert run(np.asfortranarray(a), a) == (4, 2)


def test_methods_of_the_arguments_are_run_again() -> None:
    class Pair(NamedTuple):
        x: Any
        factors = [2.0]

        def next(self) -> Pair:
            return Pair(self.x * self.factors[0])

    def run() -> float:
        return float(lax.fori_loop(0, 2, lambda i, c: c.next(), Pair(1.0)).x)

    assert run() == 4
    Pair.factors[0] = 3.0
    assert run() == 9


def test_names_of_functions_are_printed_as_they_are_now() -> None:
    def printed(name: str) -> str:
        def inner(c: Any) -> Any:
            return c + 1

        inner.__name__ = name
        scan = lambda c: lax.scan(lambda c, x: (nj.jit(inner)(c), x), c, XS)  # noqa: E731
        return str(nj.make_jaxpr(scan)(1.0))

    assert "name=one" in printed("one")
    assert "name=another" in printed("another")


def test_a_jitted_function_that_forgot_is_traced_again() -> None:
    held = [2.0]

    @nj.jit
    def times(c: Any) -> Any:
        return c * held[0]

    def run() -> float:
        return float(lax.fori_loop(0, 2, lambda i, c: times(c), 1.0))

    assert run() == 4
    held[0] = 3.0
    assert run() == 4
    times.clear_cache()
    assert run() == 9


def test_numpy_raises_where_it_is_asked_to() -> None:
    def run() -> float:
        return float(
            lax.fori_loop(0, 1, lambda i, c: c * np.divide(np.float32(1), np.float32(0)), 1.0)
        )

    with np.errstate(all="ignore"):
        assert run() == np.inf
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        run()
