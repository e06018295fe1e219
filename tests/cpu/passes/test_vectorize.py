"""The passes that annotate loops: what they choose, and that results stay what they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from loop_harness import run
from loop_interpreter import interpret

from numjet.base.record import replace
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index, LoopVar, dynamic
from numjet.cpu.loops.ir import (
    Alloc,
    Buffer,
    Define,
    For,
    If,
    Kernel,
    Local,
    Store,
    Update,
    UpdateArg,
    walk,
)
from numjet.cpu.loops.text import canonical, text
from numjet.cpu.loops.verify import verify
from numjet.cpu.passes import parallelize as parallel, tile as tiles, vectorize as lanewise
from numjet.cpu.passes.vectorize import vectorize

F32 = np.dtype("float32")


def loops(kernel):
    return [(s.var.name, s.kind) for s in walk(kernel.body) if isinstance(s, For)]


def elementwise(shape, reader):
    """y[index] = reader(e, x, index)."""
    e = ExprEmitter()
    x, y = Buffer("x", F32, shape), Buffer("y", F32, shape, "out")
    vs = [LoopVar("ijk"[k], n) for k, n in enumerate(shape)]
    index = [Index.of(v) for v in vs]
    body = tuple(e.store(y, index, reader(e, x, index)))
    for v in reversed(vs):
        body = (For(v, v.extent, body),)
    return Kernel("f", (x, y), body)


def test_nested_loops_over_contiguous_memory_become_one():
    k = vectorize(elementwise((30, 7), lambda e, x, index: e.neg(e.load(x, index))))
    assert loops(k) == [("i", "vector")]
    assert k.body[0].extent == 210
    assert "y[i // 7" not in text(k)


def test_the_contiguous_loop_is_taken():
    k = vectorize(elementwise((30, 40), lambda e, x, i: e.load(x, (0, i[1]))))
    assert loops(k) == [("i", "serial"), ("j", "vector")]


def test_picked_columns_of_long_rows_are_read_row_by_row():
    # Lanes over rows would read each column by a gather and transpose what they store.
    at, x = Buffer("at", np.dtype("int32"), (48,)), Buffer("x", F32, (300, 100))
    y, e = Buffer("y", F32, (300, 48), "out"), ExprEmitter()
    i, j = LoopVar("i", 300), LoopVar("j", 48)
    place = dynamic(e.load(at, (Index.of(j),)), 0, 99)
    body = tuple(e.store(y, (Index.of(i), Index.of(j)), e.load(x, (Index.of(i), place))))
    kernel = Kernel("f", (at, x, y), (For(i, 300, (For(j, 48, body),)),))
    assert loops(vectorize(kernel)) == [("i", "serial"), ("j", "vector")]


@pytest.mark.parametrize(("rows", "lanes"), [(1, "k"), (200, "j")])
def test_short_rows_are_side_by_side_where_the_work_of_all_is_worth_it(rows, lanes):
    """Rows of pairs, made of a row's and of all rows' numbers: never are lanes whole rows."""
    e = ExprEmitter()
    x, v = Buffer("x", F32, (rows, 64)), Buffer("v", F32, (64,))
    y = Buffer("y", F32, (rows, 64, 2), "out")
    i, j, k = (LoopVar(name, n) for name, n in (("i", rows), ("j", 64), ("k", 2)))
    at = Index.of(i), Index.of(j)
    one, other = e.load(x, at), e.load(v, at[1:])
    value = e.select(e.index_in_range(Index.of(k), 0, 1), e.add(one, other), e.sub(one, other))
    body = For(k, 2, tuple(e.store(y, (*at, Index.of(k)), value)))
    made = vectorize(Kernel("f", (x, v, y), (For(i, rows, (For(j, 64, (body,)),)),)))
    assert [name for name, kind in loops(made) if kind == "vector"] == [lanes]
    arrays = [np.random.default_rng(0).normal(size=b.shape).astype(F32) for b in (x, v)]
    out = np.zeros((rows, 64, 2), F32)
    run(made, *arrays, out)
    np.testing.assert_array_equal(out, np.stack([arrays[0] + arrays[1], arrays[0] - arrays[1]], -1))


def test_bounds_of_positions_leave_booleans_their_lanes():
    # Two of three rows of a window are there in the last rounds: the positions are 64 bits wide.
    flag, e = np.dtype(bool), ExprEmitter()
    x, y = Buffer("x", flag, (40, 100)), Buffer("y", flag, (40, 98), "out")
    i, j = LoopVar("i", 40), LoopVar("j", 98)
    one, row = Index.of(j), Index.of(i)
    there = e.index_in_range(row + 1, 0, 40)
    below = e.select(there, e.load(x, (e.index_clamp(row + 1, 0, 39), one)), e.const(False, flag))
    body = tuple(e.store(y, (row, one), e.or_(e.load(x, (row, one + 2)), below)))
    kernel = vectorize(Kernel("f", (x, y), (For(i, 40, (For(j, 98, body),)),)))
    wide = [s.lanes for s in walk(kernel.body) if isinstance(s, For) and s.kind == "vector"]
    assert wide == [lanewise.link.vector_bytes()]


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(16, 16), (37, 53), (5, 300), (300, 5), (130, 64), (3, 500)])
@pytest.mark.parametrize("heavy", [False, True])
def test_transposes(dtype, shape, heavy):
    e = ExprEmitter()
    m, n = shape
    x, b = Buffer("x", np.dtype(dtype), (n, m)), Buffer("b", np.dtype(dtype), (m, n))
    y = Buffer("y", np.dtype(dtype), (m, n), "out")
    i, j = LoopVar("i", m), LoopVar("j", n)
    value = e.add(e.load(x, (j, i)), e.load(b, (i, j)))
    for _ in range(45 * heavy):
        value = e.sub(e.add(value, 1), 1)
    k = Kernel("f", (x, b, y), (For(i, m, (For(j, n, tuple(e.store(y, (i, j), value))),)),))
    k = verify(vectorize(verify(tiles.tile(k))))
    assert m * n < tiles._SMALL or "tile" in [kind for _, kind in loops(k)]
    assert shape != (130, 64) or "block" in [name for name, _ in loops(k)]
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (n, m)).astype(dtype), rng.integers(0, 9, (m, n)).astype(dtype)
    got = np.zeros((m, n), dtype)
    run(k, u, v, got)
    np.testing.assert_array_equal(got, u.T + v)


def test_a_loop_with_a_dependence_stays_in_order():
    e = ExprEmitter()
    y = Buffer("y", F32, (9,), "out")
    v = LoopVar("i", 8)
    i = Index.of(v)
    body = (Store(y, (i + 1,), e.add(e.load(y, (i,)), 1.0)),)
    k = Kernel("f", (y,), (Store(y, (Index.of(0),), e.const(0, F32)), For(v, 8, body)))
    assert loops(vectorize(k)) == [("i", "serial")]
    got = np.zeros(9, "float32")
    run(vectorize(k), got)
    assert got.tolist() == list(range(9))


def test_kernels_print_as_on_a_whiteboard():
    e = ExprEmitter()
    x, y = Buffer("x", F32, (8,)), Buffer("y", F32, (8,), "out")
    i = LoopVar("i", 8)
    value = e.add(e.call("sin", e.load(x, (i,))), e.load(x, (i,)))
    k = Kernel("f", (x, y), (For(i, 8, tuple(e.store(y, (i,), value))),))
    assert text(k) == (
        "kernel f(x: f32[8], y: f32[8] out):\n"
        "  for i < 8:\n"
        "    y[i] = add(sin(x[i]), x[i])\n"
    )


def test_equal_kernels_have_equal_canonical_texts():
    def build(names, constant):
        e = ExprEmitter()
        x, y = Buffer(names[0], F32, (8,)), Buffer(names[1], F32, (8,), "out")
        i = LoopVar(names[2], 8)
        body = tuple(e.store(y, (i,), e.add(e.load(x, (i,)), constant)))
        return canonical(Kernel(names[3], (x, y), (For(i, 8, body),)))

    assert build("xyif", 1.0) == build("abjg", 1.0)
    assert build("xyif", 1.0) != build("xyif", 2.0)


# -- random kernels against the interpreter ---------------------------------------------------


class Draws:
    """Random kernels; `draw` picks from a list."""

    def __init__(self, draw):
        self.pick = lambda options: draw(st.sampled_from(list(options)))
        self.e = ExprEmitter()
        self.dtype = np.dtype(self.pick(["float32", "float64", "int32", "int8", "bool"]))
        self.shape = tuple(self.pick([1, 2, 3, 5, 8, 17, 33]) for _ in range(self.pick([1, 2, 3])))
        self.inputs: list[Buffer] = []

    def access(self, index):
        """A read of a new input at some pattern over the index."""
        e = self.e
        axes = list(range(len(index)))
        places = []
        shape = []
        for _ in range(self.pick([0, 1, 2, len(axes), len(axes)])):
            a = self.pick(axes)
            i, n = index[a], index[a].hi + 1
            how = self.pick(["same", "same", "same", "reversed", "half", "cycle", "shift", "far"])
            if how == "same":
                places.append(i)
                shape.append(n)
            elif how == "reversed":
                places.append(n - 1 - i)
                shape.append(n)
            elif how == "half":
                places.append(i // 2)
                shape.append(n)
            elif how == "cycle":
                places.append(i % 3)
                shape.append(3)
            elif how == "shift":
                places.append(e.index_clamp(i - 1, 0, n - 1))
                shape.append(n)
            else:
                places.append(i * 2 + 1)
                shape.append(2 * n + 1)
        if self.pick([False, False, False, True]):
            at = Buffer(f"at{len(self.inputs)}", np.dtype("int32"), tuple(i.hi + 1 for i in index))
            self.inputs.append(at)
            places.append(e.index_clamp(e.value_index(e.load(at, index)), 0, 3))
            shape.append(4)
        x = Buffer(f"x{len(self.inputs)}", self.dtype, tuple(shape))
        self.inputs.append(x)
        return e.load(x, places)

    def value(self, index, depth=3):
        e = self.e
        kind = self.pick(["read", "read", "op", "op", "select", "index"]) if depth else "read"
        if kind == "read":
            return self.access(index)
        if kind == "index":
            return e.cast(e.index_value(self.pick(index) % 5, np.int32), self.dtype)
        a, b = self.value(index, depth - 1), self.value(index, depth - 1)
        if kind == "select":
            return e.select(e.lt(a, b), a, b)
        return getattr(e, self.pick(["add", "max", "min"] + ["mul"] * (self.dtype != "bool")))(a, b)

    def loops(self, vs, body):
        for v in reversed(vs):
            body = (For(v, v.extent, body),)
        return body

    def kernel(self):
        e, shape = self.e, self.shape
        vs = [LoopVar("ijk"[k], n) for k, n in enumerate(shape)]
        index = [Index.of(v) for v in vs]
        how = self.pick(["map", "map", "transposed", "reduce", "row", "arg", "all", "if"])
        if how in ("map", "transposed", "if"):
            order = list(range(len(shape)))
            if how == "transposed":
                order.reverse()
            y = Buffer("y", self.dtype, tuple(shape[a] for a in order), "out")
            body = tuple(e.store(y, [index[a] for a in order], self.value(index)))
            if how == "if":
                body = (If(e.lt(self.access(index), self.access(index)), body),)
            return self.finish(self.loops(vs, body), y)
        inner = self.pick(range(len(shape)))
        outer = [k for k in range(len(shape)) if k != inner]
        result = [index[k] for k in outer]
        if how == "all":
            inner, outer, result = None, [], []
        y = Buffer("y", self.dtype, tuple(shape[k] for k in outer), "out")
        acc = Local("acc", self.dtype)
        op = self.pick(["max", "min"] if how == "arg" else ["add", "max", "min"])
        worst = {"add": 0}.get(op)
        if worst is None:
            big = {"f": np.inf, "b": True}.get(self.dtype.kind)
            if self.dtype.kind == "i":
                info = np.iinfo(self.dtype)
                worst = info.min if op == "max" else info.max
            else:
                worst = (big == op.startswith("min")) if big is True else (
                    -big if op == "max" else big)
        if self.dtype == bool and op == "add":
            op, worst = "or", False
        start = Define(acc, e.const(worst, self.dtype))
        value = self.value(index)
        if how == "arg":
            z = Buffer("z", np.dtype("int32"), y.shape, "out")
            at = Local("at", np.dtype("int32"))
            step = UpdateArg(acc, at, op, value, e.index_value(index[inner], np.int32))
            body = (start, Define(at, e.const(0, np.int32)), For(vs[inner], shape[inner], (step,)),
                    *e.store(y, result, e.read(acc)), *e.store(z, result, e.read(at)))
            return self.finish(self.loops([vs[k] for k in outer], body), y, z)
        step = Update(acc, op, value)
        if how == "all":
            body = (start, *self.loops(vs, (step,)), *e.store(y, (), e.read(acc)))
            return self.finish(body, y)
        if how == "row":
            full = Buffer("full", self.dtype, shape, "out")
            row = Buffer("row", self.dtype, (shape[inner],), "scratch")
            again = LoopVar("again", shape[inner])
            places = [Index.of(again) if k == inner else i for k, i in enumerate(index)]
            body = (
                start, Alloc(row),
                For(vs[inner], shape[inner], (Store(row, (index[inner],), value), step)),
                For(again, shape[inner],
                    tuple(e.store(full, places, e.max(e.load(row, (again,)), e.read(acc))))),
            )  # fmt: skip
            return self.finish(self.loops([vs[k] for k in outer], body), full)
        body = (start, For(vs[inner], shape[inner], (step,)), *e.store(y, result, e.read(acc)))
        return self.finish(self.loops([vs[k] for k in outer], body), y)

    def finish(self, body, *outputs):
        return Kernel("f", (*self.inputs, *outputs), body)


def arrays_for(kernel, seed):
    rng = np.random.default_rng(seed)
    out = []
    for b in kernel.buffers:
        if b.dtype.kind == "f":
            # Small integers: sums are exact in any order.
            a = np.asarray(rng.integers(-3, 4, b.shape)).astype(b.dtype)
            if a.size > 3 and rng.random() < 0.2:
                a.flat[rng.integers(a.size)] = np.nan
        else:
            a = np.asarray(rng.integers(0, 2 if b.dtype == bool else 7, b.shape)).astype(b.dtype)
        out.append(np.array(a, order="C"))
    return out


PASSES = {
    "none": [], "vectorize": [vectorize],
    "tile": [tiles.tile, vectorize], "all": [tiles.tile, vectorize, parallel.parallelize],
}  # fmt: skip


@settings(max_examples=150)
@given(st.data(), st.sampled_from(list(PASSES)))
def test_random_kernels_keep_their_meaning(data, passes):
    kernel = Draws(data.draw).kernel()
    verify(kernel)
    arrays = arrays_for(kernel, 5)
    want = [a.copy() for a in arrays]
    interpret(kernel, *want)
    limits = {
        (parallel, "_WORTH"): 1, (parallel, "_CHUNK"): 20, (tiles, "_SMALL"): 1,
        (lanewise, "_WORTH_ROWS"): 1, (lanewise, "_SURE"): 1.0,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in limits.items():
            patch.setattr(module, name, value)
        made = kernel
        for step in PASSES[passes]:
            made = step(made)
            verify(made)
    got = [a.copy() for a in arrays]
    run(made, *got, check=True)
    for g, w, b in zip(got, want, made.buffers, strict=True):
        np.testing.assert_array_equal(g, w, err_msg=f"{b.name}\n{text(kernel)}\n{text(made)}")


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 64, 100, 1000])
@pytest.mark.parametrize("unroll", [1, 4])
def test_reductions_of_every_length(n, unroll):
    e = ExprEmitter()
    x = Buffer("x", F32, (n,))
    y, z = Buffer("y", F32, (2,), "out"), Buffer("z", np.dtype("int64"), (2,), "out")
    i = LoopVar("i", n)
    v = e.load(x, (i,))
    s, m, low = (Local(name, F32) for name in ("s", "m", "low"))
    at, at2 = Local("at", np.dtype("int64")), Local("at2", np.dtype("int64"))
    position = e.index_value(i, np.int64)
    body = (
        Define(s, e.const(0, F32)), Define(m, e.const(-np.inf, F32)),
        Define(low, e.const(np.inf, F32)),
        Define(at, e.const(0, np.int64)), Define(at2, e.const(0, np.int64)),
        For(i, n, (Update(s, "add", v), UpdateArg(m, at, "max", v, position),
                   UpdateArg(low, at2, "min", v, position)), "vector", unroll=unroll),
        *e.store(y, (0,), e.read(s)), *e.store(y, (1,), e.read(m)),
        *e.store(z, (0,), e.read(at)), *e.store(z, (1,), e.read(at2)),
    )  # fmt: skip
    rng = np.random.default_rng(n)
    for case in range(4):
        a = rng.integers(-5, 5, n).astype("f4")
        if case == 1:
            a[rng.integers(n)] = np.nan
            a[rng.integers(n)] = np.nan
        if case == 2:
            a[:] = -np.inf
        if case == 3:
            a[:] = np.inf
        got, places = np.zeros(2, "f4"), np.zeros(2, "i8")
        run(Kernel("f", (x, y, z), body), a, got, places)
        np.testing.assert_array_equal(got, [a.sum(), a.max()])
        np.testing.assert_array_equal(places, [a.argmax(), a.argmin()])


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 16, 19, 40])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_rows_side_by_side(width, dtype):
    """Lanes over rows: blocks turned in registers, with every kind of tail."""
    lanes = 16
    for n, grain, light in [(1, 0, 1), (16, 0, 1), (37, 0, 45), (100, 16, 1), (101, 16, 45)]:
        e = ExprEmitter()
        x, y = (Buffer(s, np.dtype(dtype), (n, width), r) for s, r in (("x", "in"), ("y", "out")))
        z = Buffer("z", np.dtype(dtype), (n,), "out")
        i, j, top = LoopVar("i", n), LoopVar("j", width), Local("top", np.dtype(dtype))
        value = e.load(x, (i, j))
        for _ in range(light):
            value = e.sub(e.add(value, 2), 1)
        body = (
            Define(top, e.const(-100, dtype)),
            For(j, width, (*e.store(y, (i, j), value), Update(top, "max", value))),
            *e.store(z, (i,), e.read(top)),
        )
        inner = lanewise._tile_inner(body, i, lanes)
        k = verify(Kernel("f", (x, y, z), (For(i, n, inner, "vector", 1, lanes, grain),)))
        a = np.random.default_rng(n).integers(-50, 50, (n, width)).astype(dtype)
        got, most = np.zeros((n, width), dtype), np.zeros(n, dtype)
        run(k, a, got, most, check=True)
        np.testing.assert_array_equal(got, a + light)
        np.testing.assert_array_equal(most, (a + light).max(axis=1))


@pytest.mark.parametrize(
    ("functions", "extent", "lanes"),
    [
        (("exp",), 512, 32),
        (("exp",), 511, 16),  # a short loop: most would be rests
        (("exp",), 63, 8),
        (("exp", "log", "sin"), 4096, 32),
        (("lgamma",), 4096, 16),  # code would grow for little
        (("exp", "log", "sin", "tanh"), 4096, 16),
    ],
)
def test_long_bodies_take_several_vectors_where_registers_are_few(
    monkeypatch, functions, extent, lanes
):
    monkeypatch.setattr(lanewise.link, "vector_bytes", lambda: 32)

    def reader(e, x, index):
        value = e.load(x, index)
        for name in functions:
            value = e.call(name, value)
        return value

    for direct in (False, True):  # its registers hold two vectors
        monkeypatch.setattr(lanewise.link, "written_directly", lambda direct=direct: direct)
        kernel = elementwise((extent,), reader)
        wanted = min(lanes, 16) if direct else lanes
        (loop,) = vectorize(kernel).body
        assert (loop.kind, loop.lanes) == ("vector", wanted)
        # One that is over lanes already, within a loop for threads, as columns are written.
        (body,) = kernel.body
        (around,) = vectorize(replace(kernel, body=(
            For(LoopVar("t", 2), 2, (replace(body, kind="vector"),), grain=1),
        ))).body  # fmt: skip
        assert around.body[0].lanes == (0 if wanted == 8 else wanted)
