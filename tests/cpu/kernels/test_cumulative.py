"""Cumulative operations: the compiled program against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.cpu.link import link
from numjet.ops import cumulative
from numjet.transforms.stage import stage_closed

PRIMITIVES = {
    name: getattr(cumulative, f"{name}_p")
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
}
SHAPES = [((1,), 0), ((5,), 0), ((64,), 0), ((1000,), 0), ((3, 77), 1), ((3, 77), 0),
          ((4, 50, 33), 1), ((7, 3), 0), ((30, 16, 5), 0), ((2, 300, 3000), 1)]  # fmt: skip


def run(name: str, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    def function(a: object) -> list:
        return [PRIMITIVES[name].bind(a, axis=axis, reverse=reverse)]

    with config.enable_x64(True):
        closed = stage_closed(function, (ShapedArray(x.shape, x.dtype),))
        compiled = cpu.compile(closed, {})
        assert not compiled.host_calls
        return compiled([x])[0]


def check(name: str, x: np.ndarray, axis: int, reverse: bool) -> None:
    got = run(name, x, axis, reverse)
    params = {"axis": axis, "reverse": reverse}
    exact = x.astype(np.float64) if x.dtype.kind == "f" else x
    want = PRIMITIVES[name].reference(exact, **params)
    assert got.dtype == x.dtype
    if x.dtype.kind != "f" or name in ("cummax", "cummin"):
        np.testing.assert_array_equal(got, want.astype(x.dtype))
        return
    eps = np.finfo(x.dtype).eps
    bound = 20 * eps * np.abs(want)
    if name == "cumsum":
        bound = 20 * eps * PRIMITIVES[name].reference(np.abs(exact), **params)
    if name == "cumlogsumexp":
        bound = 10 * bound + 50 * eps
    if name == "cumprod":
        bound = bound * 5
    assert np.all(np.abs(got - want) <= bound)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_floats(name: str, shape: tuple, axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x = rng.standard_normal(shape).astype(dtype)
        if name == "cumprod":
            x = np.exp(x / 20).astype(dtype)
        check(name, x, axis, reverse)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "int8", "uint8", "int16"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_integers(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    info = np.iinfo(dtype)
    for shape, axis in (((300,), 0), ((9, 70), 0), ((9, 70), 1)):
        x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        for reverse in (False, True):
            check(name, x, axis, reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_complex_numbers(name: str, dtype: str, reverse: bool) -> None:
    """Extremes are ordered by their parts and keep what is no number."""
    rng = np.random.default_rng(5)
    for shape, axis in [*SHAPES[:9], ((2, 1500), 1)]:
        x = np.exp(1j * rng.integers(0, 8, shape) * np.pi / 4).astype(dtype)
        if name not in ("cumsum", "cumprod"):
            x.flat[x.size // 2] = complex(np.nan, 1)
        got = run(name, x, axis, reverse)
        want = PRIMITIVES[name].reference(x, axis=axis, reverse=reverse)
        assert got.dtype == x.dtype
        if name in ("cumsum", "cumprod"):
            np.testing.assert_allclose(got, want, atol=2e3 * np.finfo(dtype).eps)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["cumsum", "cummax", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_rows_use_all_threads(name: str, reverse: bool) -> None:
    x = np.random.default_rng(2).standard_normal((2, 700_001)).astype(np.float32)
    check(name, x, 1, reverse)
    x = np.random.default_rng(2).integers(-9, 9, 1_000_003).astype(np.int32)
    if name != "cumlogsumexp":
        check(name, x, 0, reverse)


@pytest.mark.parametrize(("size", "reverse", "past"), [
    (4_200_016, True, True), (4_200_001, True, False), (4_200_001, False, True),
    (1_000_000, False, False),
])  # fmt: skip
def test_large_results_go_past_the_caches_where_vectors_are_lines(
    size: int, reverse: bool, past: bool
) -> None:
    def function(a: object) -> list:
        return [PRIMITIVES["cumsum"].bind(a, axis=0, reverse=reverse)]

    x = np.random.default_rng(4).integers(-9, 9, size).astype(np.int32)
    compiled = cpu.compile(stage_closed(function, (ShapedArray(x.shape, x.dtype),)), {})
    text = compiled.as_text()
    assert ("nontemporal" in text) == past
    if link.target().triple.startswith("x86_64"):
        assert ("call void @llvm.x86.sse.sfence" in text) == past
    want = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    np.testing.assert_array_equal(compiled([x])[0], want)


def test_float16_accumulates_in_float32() -> None:
    x = np.random.default_rng(3).standard_normal((3, 500)).astype(np.float16)
    for axis in (0, 1):
        got = run("cumsum", x, axis, False)
        want = np.cumsum(x.astype(np.float32), axis=axis)
        assert np.max(np.abs(got - want) / (1 + np.abs(want))) < 2e-3


def test_special_values() -> None:
    x = np.array([1.0, -np.inf, 2.0, np.inf, np.nan, 3.0], np.float32)
    for name in ("cumsum", "cummax", "cummin"):
        for reverse in (False, True):
            with np.errstate(invalid="ignore"):
                want = PRIMITIVES[name].reference(x, axis=0, reverse=reverse)
            np.testing.assert_array_equal(run(name, x, 0, reverse), want)
    low = np.full(40, -np.inf, np.float32)
    np.testing.assert_array_equal(run("cumlogsumexp", low, 0, False), low)
    low[7] = np.inf
    got = run("cumlogsumexp", low, 0, False)
    assert np.all(got[:7] == -np.inf) and np.all(got[7:] == np.inf)
