"""Loops cut where comparisons of their variables change give what one loop gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from loop_interpreter import interpret

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu.link import link
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index, LoopVar, clamp
from numjet.cpu.loops.ir import (
    Buffer,
    Define,
    For,
    If,
    Kernel,
    Local,
    ReadLocal,
    Select,
    Store,
    Update,
    UpdateArg,
    exprs,
    walk,
)
from numjet.cpu.loops.verify import verify
from numjet.cpu.lower import chunks
from numjet.cpu.passes.split_ranges import split_ranges
from numjet.cpu.program import cache as program_cache

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


def joined(*parts, inner=1, rows=40):
    """A kernel whose rows are so many rounds of each operand, of `inner` numbers each."""
    n, e = sum(parts), ExprEmitter()
    y = Buffer("y", F32, (rows, n, inner), "out")
    xs = [Buffer(f"x{k}", F32, (rows, p, inner)) for k, p in enumerate(parts)]
    i, j, k = LoopVar("i", rows), LoopVar("j", n), LoopVar("k", inner)
    at, column, rest = Index.of(i), Index.of(j), Index.of(k)
    value, ends = None, np.cumsum(parts)
    for x, p, end in reversed(list(zip(xs, parts, ends, strict=True))):
        read = e.load(x, (at, clamp(column - int(end - p), 0, p - 1), rest))
        below = e.index_in_range(column, 0, int(end))
        value = read if value is None else e.select(below, read, value)
    body = tuple(e.store(y, (at, column, rest), value))
    if inner > 1:
        body = (For(k, inner, body),)
    return Kernel("f", (*xs, y), (For(i, rows, (For(j, n, body),)),))


@pytest.mark.parametrize(
    ("parts", "inner", "ranges"),
    [((2, 1), 1, 1), ((1, 1), 2, 1), ((3, 1), 1, 1), ((2, 2, 2), 1, 1), ((1, 1, 1), 2, 1),
     ((4, 1), 1, 2), ((5, 5), 1, 2), ((2, 2, 2, 2), 1, 4)],
)  # fmt: skip
def test_short_rows_of_narrow_parts_stay_whole(parts, inner, ranges, monkeypatch):
    """Their lanes are rows, and what each writes is one piece of memory."""
    monkeypatch.setattr(link, "vector_bytes", lambda: 64)
    kernel = joined(*parts, inner=inner)
    cut = split_ranges(kernel)
    verify(cut)
    assert len(cut.body[0].body) == ranges
    monkeypatch.setattr(link, "vector_bytes", lambda: 16)
    apart = split_ranges(kernel)
    assert len(apart.body[0].body) == (1 if set(parts) == {1} and inner == 1 else len(parts))
    arrays = [whole(40, p, inner) for p in parts]
    for made in (cut, apart):
        out = np.zeros((40, sum(parts), inner), F32)
        interpret(made, *arrays, out)
        np.testing.assert_array_equal(out, np.concatenate(arrays, axis=1))


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
    (lambda np, x: np.stack([x, x + x[:1]], axis=-1), (70, 50)),
    (lambda np, x: np.stack([x, x * 2], axis=1), (300, 2)),
    (lambda np, x: np.stack([x, x * 2, x[::-1]], axis=1), (301, 2)),
    (lambda np, x: np.concatenate([x, x[:, :1] * 2, x[:, 1:]], axis=-1), (303, 2)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8", "bool"])
def test_programs_give_what_numpy_gives(case, dtype):
    function, shape = CASES[case]
    x = whole(*shape, dtype=dtype) if dtype != "bool" else whole(*shape) > 0
    want = function(np, x)
    got = nj.jit(lambda v: function(jnp, v))(jnp.array(x))
    np.testing.assert_array_equal(got, want.astype(got.dtype))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(2, 90), st.lists(st.integers(-5, 95), min_size=1, max_size=4))
def test_cut_loops_accumulate_what_one_loop_does(rows, columns, bounds):
    """A sum and the place of the greatest element of each row, of operands joined at `bounds`."""
    e = ExprEmitter()
    x = Buffer("x", F32, (rows, columns))
    outs = Buffer("y", F32, (rows,), "out"), Buffer("z", I64, (rows,), "out")
    i, j = Index.of(LoopVar("i", rows)), Index.of(LoopVar("j", columns))
    (row,), (column,) = ([a for a, _ in k.terms] if k.terms else [LoopVar("i", 1)] for k in (i, j))
    value = e.load(x, (i, j))
    for k, bound in enumerate(bounds, 1):
        below = e.index_in_range(j, 0, bound) if bound > 0 else e.const(False, np.dtype(bool))
        value = e.select(below, e.mul(value, float(k)), value)
    total, best, at = Local("total", F32), Local("best", F32), Local("at", I64)
    body = (
        Define(total, e.const(0.0, F32)), Define(best, e.const(-np.inf, F32)),
        Define(at, e.const(0, I64)),
        For(column, columns, (Update(total, "add", value),
                              UpdateArg(best, at, "max", value, e.index_value(j, I64)))),
        Store(outs[0], (i,), ReadLocal(total)), Store(outs[1], (i,), ReadLocal(at)),
    )  # fmt: skip
    kernel = Kernel("f", (x, *outs), (For(row, rows, body),))
    cut = split_ranges(kernel)
    verify(cut)
    a = RNG.integers(-9, 9, (rows, columns)).astype(F32)
    results = []
    for k in (kernel, cut):
        results.append((np.zeros(rows, F32), np.zeros(rows, np.int64)))
        interpret(k, a, *results[-1])
    np.testing.assert_array_equal(*[np.stack(r) for r in results])


def test_rows_ask_where_they_stand_before_their_lanes():
    """A block of rows read from three operands, for threads: one question a row, none a lane."""
    e = ExprEmitter()
    xs = [Buffer(f"x{k}", F32, (40, 64)) for k in range(3)]
    y = Buffer("y", F32, (120, 64), "out")
    t, r, j = (LoopVar(name, n) for name, n in (("t", 4), ("r", 30), ("j", 64)))
    row, column = Index.of(t) * 30 + Index.of(r), Index.of(j)
    value = e.load(xs[2], (clamp(row - 80, 0, 39), column))
    for k in (1, 0):
        read = e.load(xs[k], (clamp(row - 40 * k, 0, 39), column))
        value = e.select(e.index_in_range(row, 0, 40 * k + 40), read, value)
    lanes = For(j, 64, tuple(e.store(y, (row, column), value)), "vector")
    rows = For(r, clamp(120 - Index.of(t) * 30, 1, 30), (lanes,))
    kernel = Kernel("f", (*xs, y), (For(t, 4, (rows,), grain=1),))
    cut = split_ranges(kernel)
    verify(cut)
    assert not selects(cut) and len([s for s in walk(cut.body) if isinstance(s, If)]) == 2
    assert len(cut.body) == 1 and cut.body[0].grain == 1
    arrays, out = [RNG.normal(size=(40, 64)).astype(F32) for _ in xs], np.zeros((120, 64), F32)
    interpret(cut, *arrays, out)
    np.testing.assert_array_equal(out, np.concatenate(arrays))


# Sums of small integers are exact in any order.
REDUCED = [
    (lambda np, x: np.concatenate([x, x * 2], axis=1).sum(1), (30, 90)),
    (lambda np, x: np.concatenate([x, x * 2], axis=1).sum(0), (300, 90)),
    (lambda np, x: np.concatenate([x, x * 2, x + 1], axis=0).sum(0), (300, 90)),
    (lambda np, x: np.concatenate([x, x * 2, x + 1], axis=0).sum(1), (300, 90)),
    (lambda np, x: np.concatenate([x, x * 2]).sum(), (40000,)),
    (lambda np, x: np.concatenate([x, x[:, :7] * 2], axis=1).max(0), (50, 700)),
    (lambda np, x: np.concatenate([x, x[:, :7] * 2], axis=1).argmax(1), (50, 70)),
    (lambda np, x: np.concatenate([x, x * 2, x + 5], axis=1).argmax(0), (50, 700)),
    (lambda np, x: np.concatenate([x * 2, x, x + 5], axis=0).argmin(0), (50, 700)),
    (lambda np, x: np.concatenate([x, x * 2], axis=1).sum(1), (4000, 3)),
    (lambda np, x: np.concatenate([x, x * 2], axis=1).sum(0), (4000, 3)),
    (lambda np, x: np.concatenate([x, x * 2], axis=2).sum((0, 2)), (20, 30, 40)),
    (lambda np, x: np.concatenate([x, x * 2], axis=1).max(1), (20, 30, 40)),
    (lambda np, x: np.pad(x, ((1, 2), (3, 4))).sum(1), (30, 90)),
    (lambda np, x: (np.roll(x, 77) * x).sum(), (3001,)),
    (lambda np, x: np.stack([x, x * 2], axis=-1).sum(1), (30, 900)),
    (lambda np, x: np.where(np.arange(900) < 300, x + 1, x * 2).sum(1), (50, 900)),
]


@pytest.mark.parametrize("case", range(len(REDUCED)))
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_reductions_of_joined_arrays_give_what_numpy_gives(case, dtype):
    function, shape = REDUCED[case]
    x = RNG.integers(-2, 3, shape).astype("float32" if dtype == "float16" else dtype)
    if dtype == "float16" and case in (4, 14):
        x[1000:] = 0  # sums that float16 has
    got = nj.jit(lambda v: function(jnp, v))(jnp.array(x).astype(dtype))
    np.testing.assert_array_equal(np.asarray(got).astype("float64"), function(np, x))


def test_softmax_of_joined_columns_is_cut_for_threads():
    x = RNG.normal(size=(100, 1000)).astype(np.float32)
    y = jnp.array(x)
    got = nj.jit(lambda v: nj.nn.softmax(jnp.concatenate([v, v * 2], 1), 0))(y)
    both = np.concatenate([x, x * 2], 1).astype(np.float64)
    want = np.exp(both - both.max(0))
    np.testing.assert_allclose(got, want / want.sum(0), rtol=2e-5)
    shown = nj.jit(lambda v: nj.nn.softmax(jnp.concatenate([v, v * 2], 1), 0)).lower(y).as_text()
    assert "select(lt" not in shown


@pytest.mark.parametrize("reduce", [jnp.min, jnp.sum, jnp.argmin])
@pytest.mark.parametrize("shape", [(17, 13), (2, 17, 8), (3, 5)])
def test_places_that_are_read_are_asked_where_they_are_read(reduce, shape) -> None:
    """Gathers of indices that may be outside, written and reduced along an outer axis."""
    axis = len(shape) - 2
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    places = np.argsort(x, axis=axis)

    def program(x, places):
        taken = jnp.take_along_axis(x, places, axis=axis)
        return taken, reduce(taken, axis=axis)

    taken, reduced = nj.jit(program)(x, places)
    expected = np.take_along_axis(x, places, axis=axis)
    np.testing.assert_array_equal(taken, expected)
    wanted = getattr(np, reduce.__name__)(expected, axis=axis)
    np.testing.assert_allclose(reduced, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "constant"])
@pytest.mark.parametrize("before, behind", [(1, 1), (2, 1), (1, 3)])
def test_what_is_known_of_one_place_says_nothing_of_another(
    monkeypatch: pytest.MonkeyPatch, mode: str, before: int, behind: int
) -> None:
    """Padded rows moved up, written and reduced: joints at places that differ by a constant."""
    monkeypatch.setattr(chunks, "LARGE", 1 << 8)
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 8)
    monkeypatch.setattr(program_cache, "key", lambda *_: None)  # of chunks of this size
    x = np.arange(61 * 40, dtype=np.int32).reshape(61, 40)

    def program(x):
        padded = jnp.pad(x, [(3, 3), (0, 0)], mode=mode)
        moved = padded.at[before:-behind].set(padded[before + behind :])
        return moved, jnp.max(moved, 0)

    padded = np.pad(x, [(3, 3), (0, 0)], mode=mode)
    wanted = padded.copy()
    wanted[before:-behind] = padded[before + behind :]
    moved, most = nj.jit(program)(x)
    np.testing.assert_array_equal(moved, wanted)
    np.testing.assert_array_equal(most, wanted.max(0))
