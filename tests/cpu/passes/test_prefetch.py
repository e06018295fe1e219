"""Which loads look ahead, and that the emitted code asks for what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numjet as nj
from numjet.base import config
from numjet.base.record import replace
from numjet.cpu.builder.builder import Module
from numjet.cpu.emit.emit import emit_kernel
from numjet.cpu.link import link
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import (
    Buffer,
    Const,
    Define,
    For,
    Kernel,
    Load,
    Local,
    Op,
    ReadLocal,
    Store,
    Update,
)
from numjet.cpu.passes import prefetch as module_of_prefetch
from numjet.cpu.passes.prefetch import AHEAD, ROWS_BELOW, WITHIN, prefetch
from numjet.tree_util import tree_leaves as leaves

F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def looks_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on processors that gain by it, wherever the tests run."""
    monkeypatch.setattr(module_of_prefetch, "looks_ahead", lambda: True)


def sums(rows: int, columns: int, apart: int, kind: str = "vector") -> Kernel:
    """Sums of rows of `columns` elements that begin `apart` elements from each other."""
    x = Buffer("x", F32, (rows * apart,))
    y = Buffer("y", F32, (rows,), "out")
    i, j, acc = LoopVar("i", rows), LoopVar("j", columns), Local("acc", F32)
    load = Load(x, (Index.of(i) * apart + Index.of(j),))
    inner = For(j, columns, (Update(acc, "add", load),), kind, 4 if kind == "vector" else 1, 16)
    body = (Define(acc, Const(0.0, F32)), inner, Store(y, (Index.of(i),), ReadLocal(acc)))
    return Kernel("sums", (y, x), (For(i, rows, body),))


@pytest.mark.parametrize(
    ("rows", "columns", "apart", "kind", "distance"),
    [
        (8192, 256, 256, "vector", AHEAD),  # one row continues the last
        (4096, 1984, 2048, "vector", AHEAD),  # nearly so
        (512, 4096, 65536, "vector", WITHIN),  # long rows apart
        (8192, 256, 4096, "vector", 0),  # short rows apart: most would be for nothing
        (64, 256, 256, "vector", 0),  # fits into the caches
        (8192, 256, 256, "serial", 0),  # not a stream of vectors
    ],
)
def test_how_far_loads_look_ahead(rows, columns, apart, kind, distance):
    kernel = prefetch(sums(rows, columns, apart, kind))
    assert set(kernel.notes.get("ahead", {}).values()) == ({distance} if distance else set())
    module = Module(link.features())
    emit_kernel(module, kernel)
    text = module.text()
    assert ("@llvm.prefetch" in text) == bool(distance)
    if distance:
        assert text.count("call void @llvm.prefetch") == 4  # one a vector of the unrolled loop
        assert f"i64 {distance}" in text


def test_processors_that_gain_nothing_look_ahead_within_rows_alone(monkeypatch):
    monkeypatch.setattr(module_of_prefetch, "looks_ahead", lambda: False)
    kernel = sums(8192, 256, 256)
    assert "ahead" not in prefetch(kernel).notes
    interrupted = prefetch(replace(kernel, notes={"interrupted": True}))
    assert set(interrupted.notes["ahead"].values()) == {AHEAD}
    assert set(prefetch(sums(512, 4096, 65536)).notes["ahead"].values()) == {WITHIN}


def test_a_body_that_computes_long_does_not_look_ahead():
    x = Buffer("x", F32, (1 << 22,))
    y = Buffer("y", F32, (1 << 22,), "out")
    i = LoopVar("i", 1 << 22)
    value = Load(x, (Index.of(i),))
    for _ in range(4):
        value = Op("exp", (value,), F32)
    kernel = Kernel(
        "long", (y, x), (For(i, 1 << 22, (Store(y, (Index.of(i),), value),), "vector"),)
    )
    assert "ahead" not in prefetch(kernel).notes


def test_of_sweeps_over_a_row_the_one_with_most_to_do_asks():
    x, y = Buffer("x", F32, (8192, 256)), Buffer("y", F32, (8192,), "out")
    i, top, total = LoopVar("i", 8192), Local("top", F32), Local("total", F32)
    j, k = LoopVar("j", 256), LoopVar("k", 256)
    light = Load(x, (Index.of(i), Index.of(j)))
    heavy = Load(x, (Index.of(i), Index.of(k)))
    sweeps = (
        For(k, 256, (Update(total, "add", Op("exp", (heavy,), F32)),), "vector", 1, 16),
        For(j, 256, (Update(top, "max", light),), "vector", 1, 16),
    )
    for order in (sweeps, sweeps[::-1]):
        body = (Define(top, Const(0.0, F32)), Define(total, Const(0.0, F32)), *order,
                Store(y, (Index.of(i),), ReadLocal(total)))  # fmt: skip
        kernel = prefetch(Kernel("f", (y, x), (For(i, 8192, body),)))
        assert kernel.notes["ahead"] == {(x, heavy.index): AHEAD}


@pytest.mark.parametrize("count", [1, 33, 5000])
@pytest.mark.parametrize(("rows", "width", "asked"), [
    (20_000, 64, 5), (70_000, 16, 2), (2_000, 600, 17), (1_000, 64, 0), (140_000, 8, 0),
])  # fmt: skip
def test_rows_anywhere_in_large_tables_are_asked_for_ahead(rows, width, asked, count):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((rows, width)).astype(np.float32)
    numbers = rng.integers(-rows, rows, count).astype(np.int32)
    # The second one reads numbers that the same program computes and keeps.
    for f in (lambda t, i: t[i], lambda t, i: (t[i + 1 - 1].sum(1), i + 1)):
        compiled = nj.jit(f).lower(table, numbers).compile()
        if count > 1:
            assert compiled.as_text().count("call void @llvm.prefetch") == asked
        for got, expected in zip(leaves(compiled(table, numbers)), leaves(f(table, numbers))):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_rows_that_differ_within_a_block_are_not_asked_for(monkeypatch):
    """Their places are computed of the block's own loops."""
    monkeypatch.setattr(module_of_prefetch, "LARGE", 1 << 12)
    x = np.arange(129 * 72, dtype=np.int32).reshape(72, 129)
    y = np.arange(129 * 72, dtype=np.int32).reshape(129, 72)

    def f(x, y):
        places = nj.lax.broadcasted_iota("int32", y.shape, 0) // 2
        return x.T ^ nj.numpy.take_along_axis(y, places, 0)

    with config.disk_cache(False):
        np.testing.assert_array_equal(nj.jit(f)(x, y), x.T ^ y[np.arange(129) // 2])


def test_blocks_that_are_turned_ask_for_the_rows_below():
    x = np.ones((2600, 2600), np.float32)
    lowered = nj.jit(lambda a, b: a.T + b).lower(x, x)
    assert "scratch block0" in lowered.as_text()
    found = re.findall(r"getelementptr i8, ptr %v\d+, i64 (\d+)\n  call void @llvm.prefetch",
                       lowered.compile().as_text())  # fmt: skip
    lanes = min(16, link.vector_bytes() // 4)
    below = [str(lanes * 10400)] * lanes
    assert found[:lanes] == below
    assert set(found[lanes:]) == {str(ROWS_BELOW * 10400)}
