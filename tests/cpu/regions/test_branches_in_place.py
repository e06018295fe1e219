"""Branches that update a part of what a loop carries write over it instead of copying it."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import backend
from numjet.cpu.regions import control

N = 5000


def start():
    return np.random.default_rng(0).standard_normal(N).astype(np.float32)


def move(name, i, x, y):
    """What a branch does to two arrays, on any array package that has .at or NumPy."""
    set_ = lambda a, k, v: a.at[k].set(v)  # noqa: E731
    return {
        "set": lambda: (set_(x, i, 1.0), y),
        "same": lambda: (x, y),
        "exchanged": lambda: (y, x),
        "read_after": lambda: (set_(x, i, 5.0), y + x[::-1]),
        "read_before": lambda: (set_(x, i, y[i] + x[N - 1 - i]), set_(y, i + 1, x[i])),
        "both_from_one": lambda: (set_(x, 3, 2.0), set_(x, 4, 3.0)),
        "whole": lambda: (x * 0.5, set_(y, i, 9.0)),
        "reversed": lambda: (x[::-1], y),
        "twice": lambda: (set_(set_(x, i, 7.0), i + 1, x[i]), y),
        "inner": lambda: (lax.fori_loop(0, 3, lambda k, x: set_(x, k + i, x[k] + 1), x), y),
    }[name]()


NAMES = ["set", "same", "exchanged", "read_after", "read_before", "both_from_one", "whole",
         "reversed", "twice", "inner"]  # fmt: skip


def loop(names, rounds=7):
    def run(x, y):
        def body(i, state):
            branches = [lambda x, y, n=n: move(n, i, x, y) for n in names]
            return lax.switch(i % len(names), branches, *state)

        return lax.fori_loop(0, rounds, body, (x, y))

    return run


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_any_two_branches(first, second):
    x, y = start(), start()[::-1].copy()
    found = nj.jit(loop([first, second]))(x, y)
    a, b = jnp.asarray(x), jnp.asarray(y)
    for i in range(7):
        a, b = move([first, second][i % 2], i, a, b)
    np.testing.assert_allclose(found[0], a, rtol=1e-6)
    np.testing.assert_allclose(found[1], b, rtol=1e-6)


def copies_in_loop(run, *args):
    text = backend.compile(nj.make_jaxpr(run)(*args), None).program_text()
    begin = text.find(" for i")
    if begin < 0:
        return []  # the loop is inside a kernel
    return [
        line
        for line in text[begin:].splitlines()
        if "copy" in line and f"f32[{N}]" in line and not _stays(line)
    ]


def _stays(line):
    target, source = line.split("copy ")[1].split(";")[0].split(" <- ")
    return target.split("@")[1] == source.split("@")[1]


def test_updates_in_branches_copy_nothing():
    for names in (["set", "same"], ["set", "set"], ["set", "whole", "inner"]):
        run = loop(names)
        assert not copies_in_loop(run, start(), start()), names
    assert copies_in_loop(loop(["set", "exchanged"]), start(), start())


def test_branches_in_branches():
    def run(x):
        def body(i, x):
            inner = lambda x: lax.cond(  # noqa: E731
                i > 2, lambda x: x.at[i].set(2.0), lambda x: x.at[i].add(x[i + 1]), x
            )
            return lax.cond(i % 2 == 0, inner, lambda x: x.at[0].set(i * 1.0), x)

        return lax.fori_loop(0, 6, body, x)

    x = start()
    assert not copies_in_loop(run, x)
    found = nj.jit(run)(x)
    for i in range(6):
        if i % 2:
            x[0] = i
        else:
            x[i] = 2.0 if i > 2 else x[i] + x[i + 1]
    np.testing.assert_array_equal(found, x)


def test_many_results_are_placed_in_one_walk_of_the_branches(monkeypatch):
    """Which result may lie over which operand is asked for all pairs of a branch at once."""
    walked = []
    walk = control.walk
    monkeypatch.setattr(control, "walk", lambda steps: walked.append(1) or walk(steps))

    def steps_walked(count):
        def turned(xs):
            return [jnp.sort(x)[::-1] for x in xs]

        walked.clear()
        xs = [np.zeros(N, np.float32) for _ in range(count)]
        nj.jit(lambda c, xs: lax.cond(c, turned, lambda xs: xs, xs)).lower(True, xs).compile()
        return len(walked)

    assert 0 < steps_walked(32) < 8 * steps_walked(8)
