"""Large carries that change places with their next values instead of being copied."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import normal

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import backend

LENGTHS = (1, 2, 3, 8, 9)


def steps_of(function, *args):
    """The results and, a step a line, the program."""
    executable = backend.compile(nj.jit(function).trace(*args).program, None)
    return nj.jit(function)(*args), executable.program_text()


def inside(text):
    """The steps of the first loop."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if " for i" in line or "do:" in line)
    depth = len(lines[start]) - len(lines[start].lstrip())
    body = []
    for line in lines[start + 1 :]:
        if len(line) - len(line.lstrip()) <= depth:
            break
        body.append(line)
    return "\n".join(body)


def diffuse(u):
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return middle + 0.2 * (around - 4 * middle)


def diffused(u, rounds):
    for _ in range(rounds):
        u = u.copy()
        u[1:-1, 1:-1] = diffuse(u)
    return u


@pytest.mark.parametrize("length", LENGTHS)
def test_a_window_is_written_beside_the_old_value(length):
    def run(u):
        return lax.fori_loop(0, length, lambda _, u: u.at[1:-1, 1:-1].set(diffuse(u)), u)

    u = normal(0, 70, 90)
    found, text = steps_of(run, u)
    np.testing.assert_allclose(found, diffused(u, length), rtol=1e-5, atol=1e-6)
    if length > 1:
        assert "copy" not in inside(text), text
        assert inside(text).count("kernel") <= 2


@pytest.mark.parametrize("length", LENGTHS)
def test_whole_values_turn(length):
    def run(u):
        def body(u, x):
            new = jnp.roll(u, 1, axis=0) + x * u[::-1]
            return new, (u[0], new[1])

        return lax.scan(body, u, jnp.arange(float(length)))

    u = normal(0, 50, 100)
    (found, (old, new)), text = steps_of(run, u)
    want = u
    for t in range(length):
        before, want = want, np.roll(want, 1, axis=0) + t * want[::-1]
        np.testing.assert_allclose(old[t], before[0], rtol=1e-5)
        np.testing.assert_allclose(new[t], want[1], rtol=1e-5)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    if length > 1:
        assert " or " in inside(text), text


@pytest.mark.parametrize("rounds", (0, 1, 2, 5))
def test_while_loops_end_in_either_memory(rounds):
    def run(u, n):
        def body(state):
            k, u, _ = state
            new = u.at[1:-1, 1:-1].set(diffuse(u))
            return k + 1, new, jnp.sum(jnp.abs(new - u))

        return lax.while_loop(lambda s: (s[0] < n) & (s[2] > 1e-6), body, (0, u, jnp.inf))

    u = normal(0, 70, 90)
    count, found, change = nj.jit(run)(u, rounds)
    assert count == rounds
    want = diffused(u, rounds)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    if rounds:
        before = diffused(u, rounds - 1)
        np.testing.assert_allclose(change, np.abs(want - before).sum(), rtol=1e-4)


def test_the_condition_reads_what_the_last_round_wrote():
    def run(u):
        body = lambda u: jnp.roll(u, 1) * 0.5 + u[::-1] * 0.1  # noqa: E731
        return lax.while_loop(lambda u: jnp.max(jnp.abs(u)) > 0.3, body, u)

    u = normal(0, 5000)
    want = u
    while np.abs(want).max() > 0.3:
        want = np.roll(want, 1) * np.float32(0.5) + want[::-1] * np.float32(0.1)
    np.testing.assert_allclose(nj.jit(run)(u), want, rtol=1e-5, atol=1e-6)


def test_carries_that_exchange_their_values():
    def run(a, b):
        def body(_, state):
            a, b = state
            return b[::-1], jnp.roll(a, 3) + b

        return lax.fori_loop(0, 7, body, (a, b))

    a, b = normal(0, 6000), normal(1, 6000)
    found = nj.jit(run)(a, b)
    for _ in range(7):
        a, b = b[::-1], np.roll(a, 3) + b
    np.testing.assert_allclose(found[0], a, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found[1], b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("outer, inner", [(2, 3), (3, 2), (3, 3), (1, 1)])
def test_loops_in_loops(outer, inner):
    def run(u):
        def round_(u, _):
            u = lax.fori_loop(0, inner, lambda _, u: u.at[1:-1, 1:-1].set(diffuse(u)), u)
            u = u[::-1] + 0.1 * u
            return u, u[3]

        return lax.scan(round_, u, None, length=outer)

    u = normal(0, 70, 90)
    found, rows = nj.jit(run)(u)
    for t in range(outer):
        u = diffused(u, inner)
        u = u[::-1] + np.float32(0.1) * u
        np.testing.assert_allclose(rows[t], u[3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, u, rtol=1e-4, atol=1e-5)


def test_arguments_and_donation_survive():
    def run(u):
        return lax.fori_loop(0, 3, lambda _, u: u.at[1:-1, 1:-1].set(diffuse(u)), u), u * 2

    u = normal(0, 70, 90)
    want = diffused(u, 3)
    for donate in ((), (0,)):
        x = jnp.asarray(u)
        found, twice = nj.jit(run, donate_argnums=donate)(x)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(twice, u * 2)
    np.testing.assert_array_equal(u, normal(0, 70, 90))


def test_gradients_through_turning_carries():
    def loss(u):
        def body(u, _):
            return u.at[1:-1, 1:-1].set(jnp.sin(diffuse(u))), None

        return jnp.sum(lax.scan(body, u, None, length=3)[0] ** 2)

    u = normal(0, 66, 70)
    gradient = nj.jit(nj.grad(loss))(u)
    direction = normal(1, 66, 70)
    direction /= np.linalg.norm(direction)
    with nj.enable_x64(True):
        wide, along = u.astype(np.float64), direction.astype(np.float64)
        difference = (loss(wide + 1e-4 * along) - loss(wide - 1e-4 * along)) / 2e-4
    np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-4)
