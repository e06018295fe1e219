"""Linearization of concrete values by derived rules: when they are made, used, and left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.core import evaluate, hooks
from numjet.core.primitive import REGISTRY
from numjet.transforms import eager, linear_steps

x3 = jnp.array([0.5, -1.0, 2.0])


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(eager, "_rules", {})
    monkeypatch.setattr(eager, "USES_BEFORE_DERIVING", 1)
    yield


def rules() -> dict[str, Any]:
    """The rules there are, by the name of their primitive."""
    return {key[0].name: rule for table in eager._rules.values() for key, rule in table.items()}


def loss(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) ** 2)


def test_rules_take_the_place_of_jvp_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = nj.grad(loss)
    want = [gradient(x3) for _ in range(2)][0]
    assert {type(rule) for rule in rules().values()} == {linear_steps.Rule}
    for name in ("tanh", "integer_pow", "reduce_sum"):
        monkeypatch.setattr(REGISTRY[name], "jvp", lambda *a, **k: pytest.fail("not by a rule"))
    got = gradient(x3)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    assert got.aval is want.aval
    other = gradient(x3 * 2)
    t = np.tanh(np.asarray(x3 * 2))
    np.testing.assert_allclose(other, 2 * t * ((1 - t) * (1 + t)), rtol=1e-6)


def test_a_rule_of_other_avals_flags_and_operands_is_not_taken() -> None:
    gradient = nj.grad(lambda x, y: jnp.sum(x * y), (0, 1))
    for _ in range(3):
        first, second = gradient(x3, x3 + 1)
    (only,) = nj.grad(lambda x: jnp.sum(x * (x3 + 1)), (0,))(x3)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(only))
    np.testing.assert_array_equal(np.asarray(second), np.asarray(x3))
    assert gradient(x3[:2], x3[:2])[0].shape == (2,)
    assert nj.grad(lambda x: x * x)(2.0).weak_type
    with config.enable_x64(True):
        wide = jnp.asarray(np.arange(3.0))
        assert nj.grad(loss)(wide).dtype == np.float64


def test_derivatives_of_derivatives_and_other_transformations() -> None:
    t = np.tanh(np.asarray(x3, np.float64))
    second = 2 * (1 - t * t) * (1 - 3 * t * t)
    for _ in range(3):
        np.testing.assert_allclose(nj.hessian(loss)(x3), np.diag(second), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            nj.jvp(nj.grad(loss), (x3,), (jnp.ones(3),))[1], second, rtol=1e-5
        )
        np.testing.assert_allclose(nj.vmap(nj.grad(jnp.tanh))(x3), 1 - t * t, rtol=1e-5, atol=1e-6)
        _, pull = nj.vjp(lambda x: (jnp.sin(x), jnp.cos(x)), x3)
        rows = nj.vmap(pull)((jnp.eye(3), jnp.zeros((3, 3))))[0]
        np.testing.assert_allclose(rows, np.diag(np.cos(np.asarray(x3))), rtol=1e-6, atol=1e-7)


def test_checks_of_results_see_every_value() -> None:
    gradient = nj.grad(lambda x: jnp.sum(jnp.sqrt(x)))
    zero = jnp.zeros(3)
    for _ in range(3):
        assert np.isinf(np.asarray(gradient(zero))).all()
    with config.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        gradient(zero)


def test_a_tracer_that_leaked_is_named() -> None:
    kept = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return jnp.sum(x)

    nj.grad(keep)(x3)
    with pytest.raises(nj.errors.UnexpectedTracerError, match="differentiation at .*test_eager"):
        kept[0] + 1
    with pytest.raises(nj.errors.UnexpectedTracerError):
        nj.grad(lambda x: jnp.sum(x * kept[0]))(x3)


def test_rules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    nj.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.ones(3))
    for rules in eager._rules.values():
        rules.clear()
        monkeypatch.setattr(rules, "bound", 4)
    for n in range(2, 12):
        for _ in range(3):
            nj.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.ones(n))
    assert sum(map(len, eager._rules.values())) <= 4 * len(eager._rules)


def test_variables_that_only_pass_through() -> None:
    for _ in range(3):
        value, grads = nj.value_and_grad(lambda x, y: jnp.sum(x + 1.0) + y)(x3, 2.0)
        np.testing.assert_array_equal(np.asarray(grads), np.ones(3, np.float32))
        assert nj.grad(lambda x: x)(1.0) == 1.0
        assert nj.grad(lambda x: jnp.sum(jnp.floor(x)))(x3).tolist() == [0.0, 0.0, 0.0]
    assert rules()["add"].alias == 0


def test_gradients_of_weights_lie_in_memory_as_the_weights_do() -> None:
    rng = np.random.default_rng(0)
    w, x = jnp.asarray(rng.standard_normal((5, 3))), jnp.asarray(rng.standard_normal((4, 5)))
    gradient = nj.grad(lambda w: jnp.sum(jnp.sin(x @ w)))
    results = [np.asarray(gradient(w)) for _ in range(3)]
    assert results[2].flags.c_contiguous
    exact = np.asarray(x).T @ np.cos(np.asarray(x @ w))
    for result in results:
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-6)


def test_rules_made_before_native_code_came_are_made_anew_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules hold what evaluates their equations, which native code takes over a second or so after
    the first process of its kind began."""
    gradient = nj.grad(loss)
    native = hooks.executor
    asked: list[str] = []

    def executor(primitive: Any, *rest: Any) -> Any:
        asked.append(primitive.name)
        return native(primitive, *rest) if native is not None else None

    monkeypatch.setattr(hooks, "executor", None)
    want = [gradient(x3) for _ in range(3)][0]
    monkeypatch.setattr(hooks, "executor", executor)
    for name in ("tanh", "integer_pow", "reduce_sum", "broadcast_in_dim"):
        REGISTRY[name].runs.clear()  # as when the code comes
    got = [gradient(x3) for _ in range(3)][-1]
    assert asked, "the rules of before were found again"
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_made_while_native_code_comes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    memo: dict[str, int] = {}
    evaluate.remember(memo, "before", lambda: 1)

    def late() -> int:
        memo.clear()  # what the other thread does after it has installed the code
        hooks.executor = lambda *_: None
        return 2

    monkeypatch.setattr(hooks, "executor", None)
    evaluate.remember(memo, "late", late)
    assert memo == {}
