"""Loops cut where comparisons of their variables change give what one loop gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from loop_interpreter import interpret

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import Buffer, For, Kernel, Select, exprs, walk
from numjet.cpu.loops.verify import verify
from numjet.cpu.passes.split_ranges import split_ranges

RNG = np.random.default_rng(0)
F32, I64 = np.dtype("float32"), np.dtype("int64")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def extents(kernel):
    return [s.extent for s in walk(kernel.body) if isinstance(s, For)]


def selects(kernel):
    return [e for e in exprs(kernel.body) if isinstance(e, Select)]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 5), st.integers(65, 200),
    st.lists(
        st.tuples(
            st.sampled_from(COMPARISONS), st.booleans(), st.sampled_from((1, -1, 2)),
            st.integers(-5, 205), st.integers(-20, 220), st.booleans(),
        ), min_size=1, max_size=12,
    ),
)  # fmt: skip
def test_cut_loops_store_what_one_loop_does(rows, columns, tests):
    e = ExprEmitter()
    x, y = Buffer("x", F32, (rows, columns)), Buffer("y", F32, (rows, columns), "out")
    i, j = LoopVar("i", rows), LoopVar("j", columns)
    here = (Index.of(i), Index.of(j))
    value = e.load(x, here)
    for k, (name, of_rows, factor, offset, bound, both) in enumerate(tests):
        at = here[not of_rows] * factor + offset
        condition = e.op(name, e.index_value(at, I64), e.const(bound, I64), dtype=np.dtype(bool))
        if both:
            condition = e.and_(condition, e.index_in_range(here[1], 3, columns - 2))
        other = e.load(x, (here[0], clamp(here[1] - offset, 0, columns - 1)))
        value = e.select(condition, e.add(other, float(k + 1)), value)
    loop = For(j, columns, tuple(e.store(y, here, value)))
    kernel = Kernel("f", (x, y), (For(i, rows, (loop,)),))
    cut = split_ranges(kernel)
    verify(cut)
    a = RNG.normal(size=(rows, columns)).astype(F32)
    outs = [np.zeros_like(a), np.zeros_like(a)]
    interpret(kernel, a, outs[0])
    interpret(cut, a, outs[1])
    np.testing.assert_array_equal(*outs)


def test_a_joint_becomes_two_loops_without_questions():
    e = ExprEmitter()
    x, y = Buffer("x", F32, (100,)), Buffer("y", F32, (300,), "out")
    at = Index.of(LoopVar("i", 300))
    (var,) = [a for a, _ in at.terms]
    value = e.select(
        e.index_in_range(at, 0, 200), e.const(1.0, F32), e.load(x, (clamp(at - 200, 0, 99),))
    )
    kernel = Kernel("f", (x, y), (For(var, 300, tuple(e.store(y, (at,), value))),))
    cut = split_ranges(kernel)
    assert extents(cut) == [200, 100] and not selects(cut)
    assert split_ranges(cut) is cut


def test_short_loops_are_cut_unless_most_rounds_would_stand_alone():
    e = ExprEmitter()

    def steps(n, *bounds):
        """A loop of `n` rounds that stores 1.0 before the first bound, 2.0 before the next."""
        y, var = Buffer("y", F32, (n,), "out"), LoopVar("i", n)
        value = e.const(0.0, F32)
        for k, bound in reversed(list(enumerate(bounds, 1))):
            below = e.index_in_range(Index.of(var), 0, bound)
            value = e.select(below, e.const(float(k), F32), value)
        return Kernel("f", (y,), (For(var, n, tuple(e.store(y, (Index.of(var),), value))),))

    assert extents(split_ranges(steps(7, 3))) == [3, 4]
    assert extents(split_ranges(steps(300, 50, 100, 150))) == [50, 50, 50, 150]
    alone = steps(5, 1, 2, 3)
    assert split_ranges(alone) is alone


def whole(*shape, dtype=np.float32):
    return (RNG.normal(size=shape) * 10).astype(dtype)


CASES = [
    (lambda np, x: np.concatenate([x[:1] + 1, x + 1, x[5:70] * x[5:70]]), (3001,)),
    (lambda np, x: np.concatenate([x, x * 2], axis=1), (30, 90)),
    (lambda np, x: np.concatenate([x, x * 2, x[:7]], axis=0), (30, 90)),
    (lambda np, x: np.concatenate([x, x[:, :2]], axis=1), (3000, 2)),
    (lambda np, x: np.concatenate([x[:, 3:] * 3, x[:, :3] * 2], axis=1), (70, 7)),
    (lambda np, x: np.pad(x, ((2, 1), (3, 4)), mode="reflect") + 1, (30, 9)),
    (lambda np, x: np.pad(x, ((2, 1), (3, 12)), mode="wrap"), (30, 9)),
    (lambda np, x: np.pad(x, ((40, 1), (0, 1)), mode="symmetric"), (30, 9)),
    (lambda np, x: np.pad(x, ((1, 2), (3, 70))), (40, 90)),
    (lambda np, x: np.pad(x + 1, ((0, 0), (1, 1), (65, 0))), (4, 20, 90)),
    (lambda np, x: np.concatenate([x[::-1] * 2, np.pad(x, (70, 1))]), (3001,)),
    (lambda np, x: np.where(np.arange(900) < 300, x + 1, x * 2), (50, 900)),
    (lambda np, x: np.where(np.arange(900)[::-1] >= 300, x + 1, x * 2), (50, 900)),
    (lambda np, x: np.roll(x, 77) + x, (3001,)),
    (lambda np, x: np.stack([x, x * 2], axis=-1), (300,)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8", "bool"])
def test_programs_give_what_numpy_gives(case, dtype):
    function, shape = CASES[case]
    x = whole(*shape, dtype=dtype) if dtype != "bool" else whole(*shape) > 0
    want = function(np, x)
    got = nj.jit(lambda v: function(jnp, v))(jnp.array(x))
    np.testing.assert_array_equal(got, want.astype(got.dtype))
