"""Runs of equal equations become loops: which do, and that the results are the same bits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.jaxpr import ClosedJaxpr, eval_jaxpr
from numjet.core.jaxpr_check import check_jaxpr
from numjet.cpu import backend
from numjet.cpu.graph.reroll import reroll
from numjet.cpu.program import cache as program_cache
from numjet.cpu.regions import control

ROUNDS = 12


def times(n: int, step: Callable) -> Callable:
    def run(x: Any, *args: Any) -> Any:
        for _ in range(n):
            x = step(x, *args)
        return x

    return run


def normed(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * 0.5


def norm_first(x: Any, w: Any, b: Any) -> Any:
    return x + jnp.tanh(normed(x) @ w + b)


def two_products(x: Any, w: Any, b: Any) -> Any:
    return jnp.sin(jnp.tanh(x @ w) @ w) + b


def updated(x: Any, w: Any, b: Any) -> Any:
    return (x @ w).at[1].set(b) * 0.5


def sorted_rows(x: Any, w: Any, b: Any) -> Any:
    return jnp.sort(x, axis=-1) * 0.9 + b


def branched(x: Any, w: Any, b: Any) -> Any:
    return lax.cond(x[0, 0] > 0, lambda x: jnp.tanh(x @ w), lambda x: jnp.cos(x), x)


def called(x: Any, w: Any, b: Any) -> Any:
    return nj.nn.relu(x @ w) + nj.nn.softmax(x @ w) * 0.1


def exchanged(x: Any, w: Any, b: Any) -> Any:
    return x + jnp.exp(-(x @ w) ** 2) * jnp.cos(w)


def pairs(x: Any, w: Any, b: Any) -> Any:
    """Two carries."""
    y = x * 0.5
    for _ in range(ROUNDS):
        x, y = jnp.tanh(y @ w), jnp.tanh(x @ w) + y
    return x, y


@nj.jit
def layer(x: Any, w: Any, b: Any) -> Any:
    return jnp.tanh(jnp.sin(x) @ w) + b


def jitted(x: Any, w: Any, b: Any) -> Any:
    return layer(x, w, b) * 0.5


def followed(x: Any, w: Any, b: Any) -> Any:
    return jnp.sum(times(ROUNDS, norm_first)(x, w, b) ** 2, axis=0)


STEPS = [norm_first, two_products, updated, sorted_rows, branched, called, exchanged, jitted]
LOOPS = [times(n, step) for step in STEPS for n in (ROUNDS, ROUNDS + 1)] + [followed]
NAMES = [f"{step.__name__}-{n}" for step in STEPS for n in (ROUNDS, ROUNDS + 1)] + ["followed"]


def arguments(n: int = 40) -> tuple:
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    return jnp.asarray(x), jnp.asarray(w * 0.1), jnp.asarray(x[0])


def traced(run: Callable, args: tuple) -> ClosedJaxpr:
    closed: ClosedJaxpr = nj.make_jaxpr(run)(*args)
    return closed


def repeats(closed: ClosedJaxpr) -> list[int]:
    return [e.params["length"] for e in closed.eqns if e.primitive.name == "repeat"]


def without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on programs are compiled as they are, and not found in the cache."""
    monkeypatch.setattr(backend, "reroll", lambda closed, *_: closed)
    monkeypatch.setattr(program_cache, "key", lambda *_: None)


@pytest.mark.parametrize("run", LOOPS, ids=NAMES)
def test_a_loop_gives_the_bits_of_the_program_without(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = arguments()
    rerolled = reroll(traced(run, args))
    assert repeats(rerolled) and len(rerolled.eqns) < len(traced(run, args).eqns)
    check_jaxpr(rerolled.jaxpr)
    loop = nj.jit(lambda *args: run(*args)).lower(*args).compile()
    found = loop(*args)
    without_loops(monkeypatch)
    straight = nj.jit(lambda *args: run(*args)).lower(*args).compile()
    np.testing.assert_array_equal(found, straight(*args))
    sizes = [c.memory_analysis()["temp_size_in_bytes"] for c in (loop, straight)]
    assert sizes[0] <= sizes[1] + 2 * args[0].nbytes
    assert loop.cost_analysis()["flops"] == straight.cost_analysis()["flops"]


def test_carries_that_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments()
    assert repeats(reroll(traced(pairs, args)))
    found = nj.jit(lambda *args: pairs(*args))(*args)
    without_loops(monkeypatch)
    straight = nj.jit(lambda *args: pairs(*args))(*args)
    for a, b in zip(found, straight, strict=True):
        np.testing.assert_array_equal(a, b)


def test_evaluation_agrees() -> None:
    args = arguments(8)
    closed = reroll(traced(times(ROUNDS, norm_first), args))
    (found,) = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    np.testing.assert_allclose(found, times(ROUNDS, norm_first)(*args), rtol=1e-5)


def kept(x: Any, w: Any, b: Any) -> Any:
    """Every round's result is wanted."""
    out = []
    for _ in range(ROUNDS):
        x = jnp.tanh(x @ w)
        out.append(x)
    return out


def elementwise(x: Any, w: Any, b: Any) -> Any:
    return jnp.sin(x) * 0.5 + b


def aside(x: Any, w: Any, b: Any) -> Any:
    """A carry that no product stands before: all rounds of it are one kernel."""
    t = b
    for _ in range(ROUNDS):
        t = jnp.sin(t)
        x = jnp.tanh(x @ w) + t
    return x


def moved(x: Any, w: Any, b: Any) -> Any:
    return jnp.tanh(x @ w).T


def growing(x: Any, w: Any, b: Any) -> Any:
    for k in range(ROUNDS):
        x = jnp.tanh(x @ w) * (k + 1.0)
    return x


def walked(x: Any, w: Any, b: Any) -> Any:
    """Each round reads what stands equally far before it, another value from outside."""
    found = []
    for _ in range(ROUNDS):
        b = jnp.sin(jnp.cos(jnp.exp(b)))
        found.append(b)
    for b in found:
        x = x @ w + b
    return x


@pytest.mark.parametrize(
    "run", [kept, times(40, elementwise), aside, times(ROUNDS, moved), growing, walked]
)
def test_other_runs_stay(run: Callable) -> None:
    closed = traced(run, arguments(8))
    assert reroll(closed) is closed


def test_products_that_are_loops_are_fused_as_before() -> None:
    """Tiny products become loops in kernels, so that nothing is known of what rounds share."""
    args = arguments(2)
    run = times(ROUNDS, lambda x, w, b: jnp.tanh(x @ w) + b)
    np.testing.assert_allclose(nj.jit(run)(*args), run(*args), rtol=1e-5)


def test_what_rounds_have_in_common_is_computed_once() -> None:
    args = arguments()
    closed = reroll(traced(times(ROUNDS, exchanged), args))
    (loop,) = [e for e in closed.eqns if e.primitive.name == "repeat"]
    assert "cos" in [e.primitive.name for e in closed.eqns]
    assert "cos" not in [e.primitive.name for e in loop.params["jaxpr"].eqns]


def test_two_runs_in_one_program() -> None:
    def run(x: Any, w: Any, b: Any) -> Any:
        return times(ROUNDS, two_products)(times(ROUNDS, norm_first)(x, w, b), w, b)

    args = arguments()
    assert len(repeats(reroll(traced(run, args)))) == 2
    np.testing.assert_allclose(nj.jit(run)(*args), run(*args), rtol=2e-4, atol=1e-4)


def test_no_kernel_of_a_round_is_compiled_twice() -> None:
    shown = nj.jit(times(200, two_products)).lower(*arguments()).as_text()
    assert 1 < len(shown.split("kernel ")) < 8


@pytest.mark.parametrize("step", [norm_first, two_products])
@pytest.mark.parametrize("large", [0, 1 << 30])
def test_carries_that_need_memory_of_their_own(
    step: Callable, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones are not doubled: their rounds are written one by one."""
    args = arguments()
    monkeypatch.setattr(control, "LARGE_CARRIES", large)
    monkeypatch.setattr(program_cache, "key", lambda *_: None)
    run = times(ROUNDS, step)
    loop = nj.jit(lambda *args: run(*args)).lower(*args).compile()
    found = loop(*args)
    without_loops(monkeypatch)
    straight = nj.jit(lambda *args: run(*args)).lower(*args).compile()
    np.testing.assert_array_equal(found, straight(*args))
    if not large:
        sizes = [c.memory_analysis()["temp_size_in_bytes"] for c in (loop, straight)]
        assert sizes[0] <= sizes[1] + args[0].nbytes


def test_donated_first_values() -> None:
    args = arguments()
    run = times(ROUNDS, two_products)
    wanted = np.asarray(nj.jit(run)(*args))
    given = jnp.array(args[0])
    found = nj.jit(lambda *args: run(*args), donate_argnums=0)(given, *args[1:])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(args[0], arguments()[0])
    assert given.is_deleted()


def test_a_run_inside_a_program_with_loops() -> None:
    """The repeat stands beside steps that are native code."""

    def run(x: Any, w: Any, b: Any) -> Any:
        x = lax.while_loop(lambda x: x[0, 0] < 3.0, lambda x: jnp.abs(x) + 1.0, x)
        x = times(ROUNDS, norm_first)(x, w, b)
        return lax.fori_loop(0, 5, lambda i, x: jnp.tanh(x @ w) + x[i], x)

    args = arguments()
    np.testing.assert_allclose(nj.jit(run)(*args), run(*args), rtol=2e-3, atol=2e-3)


def test_calls_among_other_equations() -> None:
    """Calls with steps inside are written out; their results are renamed wherever they are read."""

    def run(x: Any, w: Any, b: Any) -> Any:
        for k in range(ROUNDS):
            y = layer(x, w, b)
            x = nj.nn.relu(y) + jnp.sin(y) * (0.1 / (k + 1.0))
        return x, y

    args = arguments()
    for found, wanted in zip(nj.jit(run)(*args), run(*args), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-3)


def test_a_kept_program_finds_its_callbacks_behind_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments()
    run = times(ROUNDS, norm_first)

    def solved(x: Any, w: Any, b: Any) -> Any:
        before = jnp.linalg.solve(w, b)  # both in Python
        return jnp.linalg.solve(run(x, w, b), before)

    assert repeats(reroll(traced(solved, args)))
    wanted = nj.jit(lambda *args: solved(*args))(*args)
    monkeypatch.setattr(backend, "_compile", None)
    np.testing.assert_array_equal(nj.jit(lambda *args: solved(*args))(*args), wanted)
