"""Operations on linearized arrays, and backward passes, that native code knows: the same results as
from Python, from the second time without it, and only where nothing has changed."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.core import evaluate, hooks
from numjet.core.primitive import Zero
from numjet.core.trace import EVAL
from numjet.native import operators
from numjet.native.known import KnownCalls
from numjet.transforms import eager, walks
from numjet.transforms.linearize import PartialTrace

if not operators.possible():
    pytest.skip(f"Python runs: {operators.status()}", allow_module_level=True)
if not operators.usable():
    operators._build()

ROWS = 4 * evaluate.LARGE // 256
X = np.random.default_rng(0).normal(size=(ROWS, 256)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(256, 256)).astype(np.float32) / 16
B = np.linspace(-1, 1, 256, dtype=np.float32)


@pytest.fixture
def learned(monkeypatch):
    """What native code was told of linearized operands, and of calls."""
    found = []
    in_table, in_calls = operators.Table.add_linear, KnownCalls._learn
    monkeypatch.setattr(
        operators.Table, "add_linear",
        lambda self, *given: found.append(given) or in_table(self, *given))
    monkeypatch.setattr(
        KnownCalls, "_learn",
        lambda self, *given: found.append(given) or in_calls(self, *given))
    nj.clear_caches()
    return found


def network(x, w, b):
    hidden = jnp.tanh(x @ w + b)
    return jnp.mean((2.0 - hidden * 0.5 - b / 3) ** 2) + jnp.sum(-abs(hidden), axis=1)[0]


LOSSES = {
    "network": network,
    "arrays on the left": lambda x, w, b: jnp.sum((b - x @ w) * (1.0 / (2.0 + x))),
    "powers": lambda x, w, b: jnp.mean(x**2 + x**3 - (2 + (x @ w) ** 2) ** -2) + jnp.sum(b**2),
    "signs of zero": lambda x, w, b: jnp.sum(1 / (0.0 * abs(b) + 1) + (b * -0.0)) + x.sum(),
    "one operand twice": lambda x, w, b: jnp.sum(x * x + (x @ w) * (x @ w) / (3 + x * x)),
}


def scale(x) -> float:
    return float(np.abs(np.asarray(x)).max())


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_what_python_and_programs_give(name, learned) -> None:
    loss, arrays = LOSSES[name], [jnp.array(a) for a in (X, W, B)]
    gradient = nj.value_and_grad(loss, (0, 1, 2))
    wanted = nj.jit(gradient)(*arrays)
    before = None
    for k in range(16):
        got = gradient(*[a * 1.0 for a in arrays])
        for one, other in zip(nj.tree.leaves(got), nj.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * scale(other))
        if k == 12:
            before = len(learned)
    assert before == len(learned) > 0


def test_flags_and_traces_are_looked_at(learned) -> None:
    x, b = jnp.array(X), jnp.array(B)

    def loss(x, b):
        return jnp.mean((x + b) ** 2)

    def run():
        return nj.grad(loss)(x * 1.0, b)

    wanted = np.asarray(run())
    for _ in range(12):
        np.testing.assert_array_equal(run(), wanted)
    with nj.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        run()
    nj.config.update("jax_numpy_rank_promotion", "raise")
    try:
        with pytest.raises(ValueError, match="rank"):
            run()
    finally:
        nj.config.update("jax_numpy_rank_promotion", "allow")
    np.testing.assert_array_equal(run(), wanted)
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        nj.grad(lambda v: jnp.sum(v / v))(x * 0.0)
    nj.clear_caches()
    np.testing.assert_array_equal(run(), wanted)
    # A tracer of a differentiation that is over, and of one around another.
    kept = []
    nj.grad(lambda v: kept.append(v * 1.0) or jnp.sum(v))(x * 1.0)
    with pytest.raises(nj.errors.UnexpectedTracerError):
        jnp.tanh(kept[0] + b) + nj.grad(lambda v: jnp.sum(kept[0] * v))(x * 1.0)
    second = nj.grad(lambda v: jnp.sum(nj.grad(lambda u: jnp.sum(u**3 * v))(v) * v))(x * 1.0)
    np.testing.assert_allclose(second, 12 * X**3, rtol=1e-4, atol=1e-4)


def test_what_an_operation_raises_is_raised_and_nothing_done_again(learned) -> None:
    calls = []

    def fail(x):
        calls.append(x)
        raise StopIteration  # which a loop of the method in Python would swallow

    def loss(v):
        -v
        if k == 11:
            with pytest.raises(StopIteration):
                v.owner.process(nj.lax.neg_p, (v,), {}, fail)
        return jnp.sum(v)

    for k in range(12):
        nj.grad(loss)(jnp.array(X) * 1.0)
    assert len(calls) == 1 and type(eager.LinearizeTrace.process) is types.MethodDescriptorType


def test_powers_of_what_waits_are_learned_once(learned) -> None:
    x = jnp.array(X)
    for k in range(8):
        np.testing.assert_allclose((x * 1.0) ** 2 + (x * 0.5) ** 3, X**2 + (X / 2) ** 3, rtol=1e-5)
        assert len(learned) == 2, k


def test_numbers_that_are_new_in_each_call(learned) -> None:
    x = jnp.array(X)
    for k in range(20):
        for number in (k + 0.5, k, -k / 7):
            got = nj.grad(lambda v, number=number: jnp.sum(v * v * number))(x * 1.0)
            np.testing.assert_allclose(got, 2 * X * np.float32(number), rtol=1e-5)


def test_records_are_told_apart_as_python_tells_them() -> None:
    arrays = [jnp.array(a) for a in (X, W, B)]
    seen = []

    def note(tape, variables, tangents, cts):
        flags = (5, None)
        native = hooks.record_key(tape, variables, tangents, cts, *flags)
        seen.append((native, walks._key(tape, variables, tangents, cts, flags)))
        places = [(i, k) for i, e in enumerate(tape) if type(e) is eager.LinearStep
                  for k in range(len(e.residuals))]  # fmt: skip
        found = hooks.residuals(tape, places)
        wanted = walks._residuals(tape, places)
        assert found is None or list(map(id, found)) == list(map(id, wanted))
        return found

    for loss in LOSSES.values():
        for _ in range(12):
            result = eager.linearize(lambda *given, loss=loss: [loss(*given)],
                                     [a * 1.0 for a in arrays])  # fmt: skip
            cts = [jnp.ones(())]
            kept = note(result.tape, result.in_vars, result.out_tangents, cts)
        assert seen[-1][0] is not None and kept
        assert seen[-1][0] == seen[-1][1]
        zero = [Zero(cts[0].aval)]
        record = result.tape, result.in_vars, result.out_tangents
        assert hooks.record_key(*record, zero, 5, None) is None
        note(result.tape[:-1], result.in_vars, result.out_tangents, cts)
        assert seen[-1] == (None, None)  # its variable is not there


def test_values_are_lifted_as_python_lifts_them() -> None:
    trace = eager.LinearizeTrace(PartialTrace(EVAL))
    values = [jnp.array(X), jnp.array(X) * 2, jnp.array(1.5)]
    nj.grad(lambda v: v[0].sum() + v[2])(values)  # their tangents' avals are known
    made = hooks.lifted(trace, values)
    wanted = eager._lifted(trace, values)[1]
    for one, other, x in zip(made, wanted, values, strict=True):
        assert type(one) is type(other) and one.primal is x and one.owner is trace
        assert one.aval is x.aval and one.tangent.aval is other.tangent.aval
    assert hooks.lifted(trace, [jnp.arange(3)]) is None  # whose tangents are float0
    assert hooks.lifted(trace, [np.ones(3)]) is None


def test_threads_have_tapes_of_their_own() -> None:
    x = jnp.array(X)
    turn, failures = threading.Barrier(3, timeout=60), []

    def work(k: int) -> None:
        try:
            for step in range(30):
                turn.wait()
                y = x * (k + 1.0) + step
                turn.wait()
                z = y - x
                np.testing.assert_allclose(z, X * (k + 1) + step - X, rtol=1e-4, atol=1e-4)
        except BaseException as error:
            failures.append(error)
            turn.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
