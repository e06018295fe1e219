"""Reductions of few columns over many rows: chunks, variances in one sweep, what needs the rows
again, odd sizes, threads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp
from numjet.cpu.link import link
from numjet.cpu.runtime import threads

# (shape, axes): rows that chunks and rounds divide and do not, several reduced axes, long rows.
SIZES = [
    ((16384, 64), (0,)),
    ((9001, 67), (0,)),
    ((6000, 9), (0,)),
    ((300, 20, 101), (0, 1)),
    ((3, 4999, 50), (1,)),
    ((301, 7, 5, 60), (0, 2)),
    ((900, 9000), (0,)),
]


def draw(shape, dtype=np.float32):
    return (np.random.default_rng(len(shape)).standard_normal(shape) * 3 + 2).astype(dtype)


def kernel(f, *args) -> str:
    """The only kernel of a program."""
    text = numjet.jit(f).lower(*args).as_text()
    assert text.count("kernel ") == 1 and " host " not in text
    return text


def gathered(text: str) -> bool:
    """Whether lanes are looked up one by one."""
    return "gather" in text or re.search(r"insertelement .*, i64 [1-9]", text) is not None


def chunked(text: str) -> bool:
    return "part0" in text or "work0" in text


def sweeps(text: str) -> int:
    """How many loops over the rows read the operand, the one for the pivot aside."""
    return text.count(" for j") - text.count(" for jp")


@pytest.mark.parametrize(("shape", "axes"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_variance_in_one_sweep(shape, axes, dtype):
    with numjet.enable_x64(True):
        x = draw(shape, dtype)
        f = lambda x: jnp.var(x, axis=axes, ddof=1)
        few = shape[-1] < 2 * link.vector_bytes() // x.itemsize  # columns
        large = x.size >= 1 << 19 or few
        text = kernel(f, x)
        assert chunked(text) == large and (not large or sweeps(text) == 1)
        got = np.asarray(numjet.jit(f)(x))
    want = np.var(x.astype(np.float64), axis=axes, ddof=1)
    np.testing.assert_allclose(got, want, 2e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize(("shape", "axes"), SIZES)
def test_mean_and_deviation_of_a_computed_value(shape, axes):
    x, y = draw(shape), draw(shape[-1:])

    def f(x, y):
        z = x * y + 1
        return jnp.std(z, axis=axes), jnp.mean(z, axis=axes), jnp.max(z, axis=axes)

    kernel(f, x, y)
    z = x.astype(np.float64) * y + 1
    for got, want in zip(
        numjet.jit(f)(x, y), (z.std(axes), z.mean(axes), z.max(axes)), strict=True
    ):
        np.testing.assert_allclose(got, want, 3e-6, 3e-6)


@pytest.mark.parametrize(("shape", "axes"), SIZES)
@pytest.mark.parametrize("name", ["sum", "min", "prod", "any", "all"])
def test_plain_reductions_of_integers(shape, axes, name):
    x = np.random.default_rng(0).integers(0, 5, shape).astype(np.int32)
    f = lambda x: getattr(jnp, name)(x, axis=axes)
    text = kernel(f, x)
    if shape == (16384, 64):
        assert chunked(text)
    want = getattr(np, name)(x, axis=axes)
    np.testing.assert_array_equal(numjet.jit(f)(x), want.astype(np.int32) if want.dtype.kind == "i"
                                  else want)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_small_floats_are_summed_wide(dtype):
    x = np.asarray(draw((9000, 70)), dtype)
    want = x.astype(np.float64)
    for name in ("var", "sum"):
        f = lambda x, name=name: getattr(jnp, name)(x, axis=0)
        got = np.asarray(numjet.jit(f)(x)).astype(np.float64)
        np.testing.assert_allclose(got, getattr(want, name)(0), 1e-2)


@pytest.mark.parametrize("change", ["offset", "first row", "first of each chunk", "sorted"])
def test_variance_far_from_the_pivot(change):
    """Data whose first rows say little about the rest lose few digits."""
    x = draw((20_000, 40))
    if change == "offset":
        x += 1e4
    elif change == "first row":
        x[0] = 1e6
    elif change == "first of each chunk":
        x[::1250] = 1e6
    else:
        x.sort(axis=0)
    f = lambda x: jnp.var(x, axis=0)
    assert chunked(kernel(f, x))
    np.testing.assert_allclose(numjet.jit(f)(x), np.var(x.astype(np.float64), axis=0), 3e-5)


def test_variance_of_what_is_not_finite():
    x = draw((20_000, 32))
    x[5, 0], x[19_000, 1], x[7, 2] = np.inf, -np.inf, np.nan
    x[:, 3] = 2.5
    x[::2, 4] = 3e19  # squares overflow
    got = np.asarray(numjet.jit(lambda x: jnp.var(x, axis=0))(x))
    assert np.isnan(got[:3]).all() and got[3] == 0 and got[4] == np.inf
    assert np.isfinite(got[5:]).all()


def test_results_do_not_depend_on_the_number_of_threads():
    x = draw((20_000, 33))
    run = numjet.jit(lambda x: (jnp.var(x, axis=0), jnp.sum(x, axis=0)))
    found = []
    try:
        for count in (1, 2, 3):
            threads.set_num_threads(count)
            found.append([np.asarray(y) for y in run(x)])
    finally:
        threads.set_num_threads(0)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_no_variance_keeps_its_two_sweeps():
    x = draw((20_000, 40))
    away = lambda x, mean: jnp.sum((x - mean) ** 2, axis=0)
    for f, want in (
        (lambda x: away(x, jnp.max(x, axis=0)), ((x - x.max(0)) ** 2).sum(0)),
        (lambda x: away(x, jnp.sum(x, axis=0) / 7), ((x - x.sum(0) / 7) ** 2).sum(0)),
        (lambda x: jnp.sum((x - jnp.mean(x, axis=0)) ** 4, axis=0), ((x - x.mean(0)) ** 4).sum(0)),
    ):
        assert sweeps(kernel(f, x)) == 2
        np.testing.assert_allclose(numjet.jit(f)(x), want, 1e-4)


@pytest.mark.parametrize(("shape", "axes"), SIZES)
def test_what_needs_the_rows_again(shape, axes):
    """Softmax, a normalization, and a value that is stored beside its sum."""
    x = draw(shape)
    wide = x.astype(np.float64)

    def f(x):
        mean, deviation = x.mean(axes, keepdims=True), x.std(axes, keepdims=True)
        return jnp.exp(x - x.max(axes, keepdims=True)).sum(axes), (x - mean) / (deviation + 1)

    shifted = np.exp(wide - wide.max(axes, keepdims=True))
    sums, normal = numjet.jit(f)(x)
    np.testing.assert_allclose(sums, shifted.sum(axes), 2e-5)
    mean, deviation = wide.mean(axes, keepdims=True), wide.std(axes, keepdims=True)
    np.testing.assert_allclose(normal, (wide - mean) / (deviation + 1), 1e-4, 1e-5)
    softmax = numjet.jit(lambda x: numjet.nn.softmax(x, axis=axes))(x)
    np.testing.assert_allclose(softmax, shifted / shifted.sum(axes, keepdims=True), 2e-5)
    twice, sums = numjet.jit(lambda x: (x * 2, (x * 2).max(axes)))(x)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(sums, (x * 2).max(axes))


def test_rows_that_are_needed_again_stream_whole():
    x = draw((9001, 100))
    text = kernel(lambda x: numjet.nn.softmax(x, axis=0), x)
    assert sweeps(text) == 3
    assert text.count("< 100 vector") > 4 and "clamp(-64" not in text


def test_an_operand_whose_memory_takes_the_result():
    x = draw((20_000, 40))
    want = np.asarray(numjet.nn.softmax(jnp.array(x), axis=0))
    run = numjet.jit(lambda x: numjet.nn.softmax(x, axis=0), donate_argnums=0)
    np.testing.assert_allclose(run(jnp.array(x)), want, 1e-5)


@pytest.mark.parametrize(("shape", "together"), [((8000, 80), 2), ((200_000, 3), 2)])
def test_dear_elements_are_not_added_up_by_eights(shape, together):
    x = draw(shape)
    text = kernel(lambda x: jnp.exp(x).sum(0), x)
    if shape[1] != 3 or link.vector_bytes() > 16:  # there rows of three fill three vectors
        assert text.count("exp(") == together


@pytest.mark.parametrize(("columns", "together"), [(32, 2), (64, 1), (2000, 8)])
def test_rows_of_large_operands_are_read_in_order(columns, together):
    x = np.broadcast_to(np.float32(1), ((1 << 25) // 4 // columns // 8 * 8, columns))
    text = numjet.jit(lambda x: x.sum(0)).lower(x).as_text()
    assert text.count("in0[") == together


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 7, 8, 12, 16, 17, 31])
@pytest.mark.parametrize("rows", [64, 99, 257, 4096, 30_011])
def test_rows_of_few_columns_are_taken_several_at_a_time(columns, rows):
    x = draw((rows, columns))
    few = (x * 10).astype(np.int8)
    weight = np.arange(rows, dtype=np.float32)[:, None] / rows
    wide, means = x.astype(np.float64), numjet.jit(lambda x: (x.mean(0), x.var(0), x.max(0)))(x)
    np.testing.assert_allclose(means[0], wide.mean(0), 1e-5, 1e-5)
    np.testing.assert_allclose(means[1], wide.var(0), 1e-5)
    np.testing.assert_array_equal(means[2], x.max(0))
    weighed = numjet.jit(lambda x, w: (x * w - 1).sum(0))(x, weight)
    np.testing.assert_allclose(weighed, (wide * weight - 1).sum(0), 1e-4, 2e-2)
    sums = numjet.jit(lambda x: (jnp.sum(x, 0, dtype=np.int8), x.min(0), (x > 3).any(0)))(few)
    for got, want in zip(sums, (few.sum(0, dtype=np.int8), few.min(0), (few > 3).any(0))):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(100, 20, 50, 10), (128, 30, 64, 2), (70, 6, 7, 11, 13)])
def test_columns_of_several_axes_are_read_in_order(shape):
    x = draw(shape)
    assert not gathered(numjet.jit(lambda x: x.sum(0)).lower(x).compile().as_text())
    np.testing.assert_allclose(numjet.jit(jnp.sum, static_argnums=1)(x, 0), x.sum(0), 1e-4, 1e-2)


@pytest.mark.parametrize("axes", [(0, 1), (2,), (0,), (1, 2), (0, 2)])
@pytest.mark.parametrize("shape", [(7, 30, 100), (90, 30, 100), (8, 4, 30, 100)])
def test_an_operand_of_each_line_or_for_all_lines_is_read_in_order(axes, shape):
    x = draw(shape)
    w = draw([n if a in axes else 1 for a, n in enumerate(shape)])
    f = lambda x, w: (x * w).sum(0)
    assert not gathered(numjet.jit(f).lower(x, w).compile().as_text())
    want = f(x.astype(np.float64), w)
    np.testing.assert_allclose(numjet.jit(f)(x, w), want, 1e-4, 1e-3)


def test_a_transposed_matrix_meets_a_vector_row_by_row():
    x, w = draw((200, 30)), draw((200,))
    assert "kernel columns" in kernel(lambda x, w: x.T @ w, x, w)  # columns are far apart
    stack = np.stack([x, x + 1])
    f = lambda x, w: jnp.einsum("bnd,n->bd", x, w)
    assert "kernel columns" in kernel(f, stack, w)
    want = np.einsum("bnd,n->bd", stack.astype(np.float64), w)
    np.testing.assert_allclose(numjet.jit(f)(stack, w), want, 1e-4, 1e-3)


@pytest.mark.parametrize("columns", [3, 5, 6, 7])
def test_rows_with_weights_of_their_own_are_taken_one_by_one(columns):
    # In rows taken together each lane would look up the weight of its row.
    x, w, z = draw((700, columns)), draw((700,)), draw((columns,))
    programs = [
        lambda x, w, z: w @ x,
        lambda x, w, z: (x.T @ w),
        lambda x, w, z: (x * jnp.sqrt(jnp.abs(w))[:, None]).sum(0),
        lambda x, w, z: x.T @ (x @ z - w),
    ]
    for f in programs:
        text = numjet.jit(f).lower(x, w, z).as_text()
        assert f"//{columns}" not in text and f"%{columns}" not in text
        want = f(*[v.astype(np.float64) for v in (x, w, z)])
        np.testing.assert_allclose(numjet.jit(f)(x, w, z), want, 1e-4, 1e-2)
    assert f"//{columns}" in numjet.jit(lambda x: x.sum(0)).lower(x).as_text()


@pytest.mark.parametrize("shape", [(300, 264, 5), (20, 301, 3), (7, 999, 2)])
def test_rows_of_few_columns_at_each_place_of_leading_axes(shape):
    x = draw(shape)
    text = kernel(lambda x: jnp.sum(x, axis=1), x)
    assert f" < {shape[-1]} vector" in text  # the results', from wide rows' accumulators
    assert len(set(re.findall(r"< (\d+) vector", text))) == 2
    for f in (jnp.sum, jnp.max, jnp.var):
        want = getattr(x.astype(np.float64), f.__name__)(1)
        np.testing.assert_allclose(numjet.jit(lambda x, f=f: f(x, axis=1))(x), want, 2e-5)


@pytest.mark.parametrize(
    ("columns", "together"), [(64, 8), (128, 8), (256, 4), (300, 4), (512, 2), (1000, 1), (1025, 8)]
)
def test_how_many_short_rows_are_added_up_at_once(columns, together):
    x = draw((40, 48, columns))
    f = lambda x: jnp.sum(x, axis=1)
    text = kernel(f, x)
    assert text.count("in0[") == together
    np.testing.assert_allclose(np.asarray(numjet.jit(f)(x)), x.sum(1), 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(6000, 100), (9001, 67), (13, 5), (40, 3), (5, 300)])
def test_most_and_least_of_columns_with_nan(name, dtype, shape):
    """A NaN in any row of a round is found, in its own column and no other."""
    rng = np.random.default_rng(3)
    with numjet.enable_x64(True):
        f = numjet.jit(lambda x: (getattr(jnp, name)(x, 0), getattr(jnp, name)(x[::2, ::-1], 0)))
        for rows in (range(8), rng.integers(0, shape[0], 4), ()):
            x = draw(shape, dtype)
            x[rng.integers(0, shape[0], 3), 0] = -np.inf, np.inf, 0
            x[:, 1], x[:, 2] = -np.inf, np.inf
            for row in rows:
                x[row % shape[0], rng.integers(0, shape[1])] = np.nan
            want = [getattr(np, name)(x, 0), getattr(np, name)(x[::2, ::-1], 0)]
            for got, right in zip(f(x), want, strict=True):
                np.testing.assert_array_equal(got, right)


def test_softmax_over_few_rows_with_nan():
    x = draw((5, 70_000))
    x[3, 7], x[4, 69_999] = np.nan, np.nan
    got = np.asarray(numjet.jit(lambda x: numjet.nn.softmax(x, 0))(x))
    assert np.isnan(got[:, [7, 69_999]]).all() and np.isnan(got).sum() == 10


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
@pytest.mark.parametrize("shape", [(3, 500), (50, 7), (1001, 3), (8, 3, 20), (64, 64, 3)])
def test_places_of_extremes_of_columns(shape, dtype):
    rng, axis = np.random.default_rng(0), len(shape) - 2
    x = rng.integers(-3, 4, shape).astype(dtype)
    if dtype is np.float32:
        x[rng.random(shape) < 0.05] = np.nan
    run = numjet.jit(lambda x: (jnp.argmax(x, axis), jnp.argmin(x, axis), x.max(axis)))
    for got, name in zip(run(x), ("argmax", "argmin", "max"), strict=True):
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis))
