"""Products: the compiled program against the reference in float64, for layouts and odd sizes."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

import numjet as nj
import numjet.ops  # noqa: F401 - registers the primitives
from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.products import gemm
from numjet.cpu.runtime import threads
from numjet.ops.dot import dot_general_p
from numjet.transforms.stage import stage_closed

MATRIX = (((1,), (0,)), ((), ()))
CASES = [
    ((4, 4), (4, 4), MATRIX),
    ((64, 64), (64, 64), MATRIX),
    ((100, 100), (100, 100), MATRIX),
    ((131, 257), (257, 67), MATRIX),
    ((7, 300), (300, 65), MATRIX),
    ((2, 500), (500, 200), MATRIX),
    ((300, 20), (20, 3), MATRIX),
    ((50, 5000), (5000, 70), MATRIX),
    ((200, 210), (220, 210), (((1,), (1,)), ((), ()))),
    ((210, 200), (210, 220), (((0,), (0,)), ((), ()))),
    ((33, 40), (70, 33), (((0,), (1,)), ((), ()))),
    ((3, 40, 30), (30, 7), (((2,), (0,)), ((), ()))),
    ((2, 17, 4, 8), (2, 19, 4, 8), (((3,), (3,)), ((0, 2), (0, 2)))),
    ((2, 4, 17, 19), (2, 19, 4, 8), (((3,), (1,)), ((0, 1), (0, 2)))),
    ((20, 5, 30), (5, 20, 40), (((0, 1), (1, 0)), ((), ()))),
    ((3, 2, 20, 5, 30), (2, 3, 40, 5), (((3,), (3,)), ((0,), (1,)))),
    ((30, 16, 16), (30, 16, 16), (((2,), (1,)), ((0,), (0,)))),
    ((50, 60), (60,), MATRIX),
    ((60,), (60, 50), (((0,), (0,)), ((), ()))),
    ((700, 900), (900,), MATRIX),
    ((701, 907), (907,), MATRIX),
    ((907,), (701, 907), (((0,), (1,)), ((), ()))),
    ((4, 301, 907), (4, 907), (((2,), (1,)), ((0,), (0,)))),
    ((900,), (900, 700), (((0,), (0,)), ((), ()))),
    ((20, 700, 90), (20, 90), (((2,), (1,)), ((0,), (0,)))),
    ((1, 900), (900, 700), MATRIX),
    # Small ones are written for their shape: odd tiles, masked columns, packed and looped operands.
    ((37, 29), (29, 51), MATRIX),
    ((9, 70), (70, 130), MATRIX),
    ((23, 31), (45, 31), (((1,), (1,)), ((), ()))),
    ((31, 23), (31, 45), (((0,), (0,)), ((), ()))),
    ((12, 3, 9), (11, 9), (((2,), (1,)), ((), ()))),
    ((3, 2, 11, 13), (3, 2, 13, 17), (((3,), (2,)), ((0, 1), (0, 1)))),
    ((2, 3, 11, 13), (3, 2, 17, 13), (((3,), (3,)), ((0, 1), (1, 0)))),
]


def compiled(shapes: tuple, dtype: np.dtype, numbers: tuple) -> object:
    def product(x: object, y: object) -> list:
        return [
            dot_general_p.bind(
                x, y, dimension_numbers=numbers, precision=None, preferred_element_type=None
            )
        ]

    return cpu.compile(stage_closed(product, tuple(ShapedArray(s, dtype) for s in shapes)), {})


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
)
@pytest.mark.parametrize(("left", "right", "numbers"), CASES)
def test_products(left: tuple, right: tuple, numbers: tuple, dtype: str) -> None:
    rng = np.random.default_rng(len(left))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    exact = np.complex128 if kind.kind == "c" else np.float64
    with config.enable_x64(True):
        x, y = (rng.standard_normal(s) for s in (left, right))
        if kind.kind == "c":
            x, y = x + 1j * rng.standard_normal(left), y + 1j * rng.standard_normal(right)
        x, y = x.astype(kind), y.astype(kind)
        program = compiled((left, right), kind, numbers)
        assert not program.host_calls
        (got,) = program([x, y])
        params = {
            "dimension_numbers": numbers,
            "precision": None,
            "preferred_element_type": None,
        }
        want = dot_general_p.reference(x.astype(exact), y.astype(exact), **params)
        size = dot_general_p.reference(np.abs(x.astype(exact)), np.abs(y.astype(exact)), **params)
    assert got.dtype == kind and got.shape == want.shape
    eps = float(ml_dtypes.finfo(kind).eps)
    assert np.all(np.abs(got.astype(exact) - want) <= 8 * eps * size)


LAYOUTS = {
    "rows": lambda k, n: np.arange(k * n).reshape(k, n),
    "columns": lambda k, n: np.arange(k * n).reshape(n, k).T,
    "strided": lambda k, n: np.arange(3 * k * n).reshape(k, 3 * n)[:, ::3],
}


def matrix(rng: np.random.Generator, rows: int, columns: int, layout: str) -> np.ndarray:
    """Random numbers in memory as one of LAYOUTS."""
    places = LAYOUTS[layout](rows, columns)
    return np.lib.stride_tricks.as_strided(
        rng.standard_normal(3 * rows * columns).astype(np.float32),
        places.shape, [step // places.itemsize * 4 for step in places.strides],
    )  # fmt: skip


def run(words: list, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Call the product library on arrays."""
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(
        libraries.address(gemm.PREFIX + "float")
    )
    table = np.array([w if isinstance(w, int) else libraries.address(w) for w in words])
    call(table.ctypes.data, x.ctypes.data, y.ctypes.data, out.ctypes.data, None)


def test_nothing_beyond_the_product_is_touched() -> None:
    """A strided plan writes its own columns only."""
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (13, 5, 17), (6, 64, 3), (50, 130, 40), (5, 17, 0)):
        for x_turned in (False, True):
            for layout in LAYOUTS:
                x = matrix(rng, m, k, "columns" if x_turned else "rows")
                y = matrix(rng, k, n, layout)
                whole = np.full((m + 2, n + 40), 7, np.float32)
                part = whole[1:-1, 20:-20]
                words = gemm.plan("float", m, n, k, x.strides, y.strides, part.strides[0])
                run(words, x, y, part)
                np.testing.assert_allclose(part, x.astype(float) @ y, rtol=0, atol=1e-4)
                whole[1:-1, 20:-20] = 7
                assert np.all(whole == 7)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    # One strip a task and two; columns and rows left over; one part of the depth and two.
    ("m", "n", "k"), [(260, 700, 1100), (257, 1153, 608), (1503, 256, 300)],
)  # fmt: skip
def test_large_products(m: int, n: int, k: int, layout: str) -> None:
    rng = np.random.default_rng(m)
    x, y = matrix(rng, m, k, "rows"), matrix(rng, k, n, layout)
    whole = np.full((m + 2, n + 40), 7, np.float32)
    part = whole[1:-1, 20:-20]
    want = x.astype(float) @ y
    for accumulate in (False, True):
        words = gemm.plan(
            "float", m, n, k, x.strides, y.strides, part.strides[0], accumulate=accumulate
        )
        run(words, x, y, part)
        np.testing.assert_allclose(part, (1 + accumulate) * want, rtol=0, atol=1e-3)
    whole[1:-1, 20:-20] = 7
    assert np.all(whole == 7)


def test_large_products_in_batches_on_one_thread_and_two() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 300, 520), dtype=np.float32)
    y = rng.standard_normal((2, 520, 640), dtype=np.float32)
    program = compiled((x.shape, y.shape), x.dtype, (((2,), (1,)), ((0,), (0,))))
    results = []
    try:
        for count in (1, 2):
            threads.set_num_threads(count)
            results.append(np.array(program([x, y])[0]))
    finally:
        threads.set_num_threads(0)
    np.testing.assert_allclose(results[0], x.astype(float) @ y, rtol=0, atol=1e-3)
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    # One strip and more, columns left over in tiles of other heights, few rows, deep and turned.
    ("m", "k", "n"),
    [(100, 100, 100), (97, 130, 200), (1203, 90, 20), (9, 700, 901), (70, 5000, 64), (7, 60, 4000)],
)  # fmt: skip
@pytest.mark.parametrize("behind", [False, True])
def test_threads_meet_anywhere(m: int, k: int, n: int, behind: bool) -> None:
    """The same bits however the pieces are divided; each of them is computed."""
    rng = np.random.default_rng(m)
    x, bias = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal(n).astype("f")
    exact = x.astype(float)
    for turned in (False, True):
        y = rng.standard_normal((n, k) if turned else (k, n), dtype=np.float32)

        def function(x: object, y: object, bias: object) -> object:
            product = x @ (y.T if turned else y)  # noqa: B023
            return (product + bias) * 2 if behind else product

        want, program = function(exact, y, bias), nj.jit(function)
        results = []
        try:
            for count in (1, 2, 2, 2):
                threads.set_num_threads(count)
                results.append(np.array(program(x, y, bias)))
        finally:
            threads.set_num_threads(0)
        np.testing.assert_allclose(results[0], want, rtol=0, atol=5e-3)
        assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize(("left", "right", "numbers", "order"), [
    # Matrices times batches of columns: A @ x with x of shape (..., k, 1).
    ((4, 4), (100, 4, 1), (((1,), (1,)), ((), ())), (1, 0, 2)),
    ((2, 4, 4), (100, 2, 4, 1), (((2,), (2,)), ((0,), (1,))), (2, 0, 1, 3)),
    ((1, 64, 64), (20, 1, 64, 1), (((2,), (2,)), ((0,), (1,))), (2, 0, 1, 3)),
    # No columns, and rows that lie apart in the result.
    ((16, 100, 64), (16, 64, 1), (((2,), (1,)), ((0,), (0,))), (1, 0, 2)),
    ((16, 64), (300, 64, 1), (((1,), (1,)), ((), ())), (0, 1, 2)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_results_in_another_order_that_end_in_axes_of_length_one(
    left: tuple, right: tuple, numbers: tuple, order: tuple, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(left).astype(dtype), rng.standard_normal(right).astype(dtype)

    def function(x: object, y: object) -> object:
        return nj.lax.transpose(nj.lax.dot_general(x, y, numbers), order)

    with nj.disable_jit():
        want = function(x, y)
    np.testing.assert_allclose(nj.jit(function)(x, y), want, rtol=1e-4, atol=1e-4)
