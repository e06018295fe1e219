"""sort: the compiled program against the reference, signs of zeros and stability included."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.sorting import (
    leaves as sort_leaves,
    long as sort_long,
    quick as sort_quick,
    shares as sort_shares,
)
from numjet.ops.shape import broadcasted_iota
from numjet.ops.sort import sort_p, top_k_p
from numjet.transforms.stage import stage_closed


def run(operands: list[np.ndarray], axis: int, keys: int = 1) -> list[np.ndarray]:
    params = {"dimension": axis, "is_stable": True, "num_keys": keys}
    with config.enable_x64(True):
        closed = stage_closed(
            lambda *xs: sort_p.bind(*xs, **params),
            tuple(ShapedArray(x.shape, x.dtype) for x in operands),
        )
        compiled = cpu.compile(closed, {})
        assert not compiled.host_calls
        return compiled(operands)


def check(operands: list[np.ndarray], axis: int, keys: int = 1) -> None:
    got = run(operands, axis, keys)
    want = sort_p.reference(*operands, dimension=axis, is_stable=True, num_keys=keys)
    for one, two in zip(got, want, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
        if one.dtype.kind == "f":
            number = ~np.isnan(two)
            np.testing.assert_array_equal(np.signbit(one)[number], np.signbit(two)[number])


def values(rng: np.random.Generator, shape: tuple, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0])
    chosen = rng.random(shape) < 0.3
    return np.where(chosen, special[rng.integers(0, 7, shape)], x).astype(dtype)


DTYPES = [
    "float32",
    "float64",
    "float16",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "int8",
    "uint8",
    "int16",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_and_payloads(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axis in (((1,), 0), ((3,), 0), ((40,), 0), ((41,), 0), ((1200,), 0), ((20, 33), 1),
                        ((20, 33), 0), ((3, 50, 4), 1), ((300, 100), 1),
                        ((4, 300), 1), ((20, 600), 1)):  # fmt: skip
        key = values(rng, shape, np.dtype(dtype))
        place = np.broadcast_to(np.arange(key.size, dtype=np.int32).reshape(shape), shape).copy()
        check([key], axis)
        check([key, place], axis)
    check([key, values(rng, shape, np.dtype("float64"))], axis)
    check([key, place, values(rng, shape, np.dtype("int8")), place.astype(np.int64)], axis)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
def test_one_long_row(dtype: str) -> None:
    """Threads share it: keys of all magnitudes, all the same, few, and ones that differ low."""
    rng = np.random.default_rng(2)
    n = sort_long.LONG + 77
    place = np.arange(n, dtype=np.int32)[::-1].copy()
    for key in (
        values(rng, (n,), np.dtype(dtype)),
        np.ones(n, dtype),
        rng.integers(0, 3, n).astype(dtype),
        (rng.integers(0, 50, n) + 64).astype(dtype),
    ):
        check([key], 0)
        check([key, place], 0)
    check([key, values(rng, (n,), np.dtype("float64")), place], 0)
    check([np.stack([key, key[::-1]], 1)], 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "uint32", "uint8"])
def test_one_row_in_all_orders(dtype: str) -> None:
    """Orders that make for bad pivots, many equal keys, and rows that end anywhere in a vector."""
    rng = np.random.default_rng(7)
    for n in (sort_shares.SHORTEST, 1024, 4099, sort_long.LONG + 5):
        key = np.sort(values(rng, (n,), np.dtype(dtype)))
        place = np.arange(n, dtype=np.int32)
        heavy = np.where(rng.random(n) < 0.9, key[0], key)
        pipe = np.concatenate([key[::2], key[1::2][::-1]])
        for x in (key, key[::-1].copy(), pipe, heavy):
            check([x], 0)
        check([heavy, place], 0)
        check([heavy, place[::-1].copy(), rng.standard_normal(n)], 0)
    check([np.stack([pipe, heavy, key])], 1)
    many = values(rng, (37, 2000), np.dtype(dtype))
    check([many], 1)
    check([many, np.broadcast_to(np.arange(2000, dtype=np.int32), many.shape).copy()], 1)


def test_words_whose_sample_says_nothing_of_them() -> None:
    """The sample sees one value only; the others lie at both ends of the range of keys."""
    for n in (5000, sort_long.LONG):
        x = np.full(n, 7, np.int32)
        step = n // 16
        x[1::step], x[2::step], x[3::step] = -(2**31), 2**31 - 1, 8
        check([x], 0)
        check([x.astype(np.int64) << 31], 0)


@pytest.mark.skipif(not sort_quick.available(), reason="the processor does not compress vectors")
@pytest.mark.parametrize(
    ("word", "dtype"),
    [("float", "float32"), ("double", "float64"), ("i32", "uint32"), ("i64", "uint64")],
)
def test_leaves_of_all_lengths(word: str, dtype: str) -> None:
    """To where they were and elsewhere, and nothing behind them."""
    rng = np.random.default_rng(10)
    most = sort_leaves.longest(word)
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
    leaf = ctypes.CFUNCTYPE(None, *types)(libraries.address(sort_leaves.PREFIX + word))
    few = [*range(1, 40), *range(most - 20, most + 1)]
    for n in [*few, *rng.integers(1, most, 100).tolist()]:
        x = (rng.standard_normal(n) * 10.0 ** rng.integers(0, 3) + 9000).astype(dtype)
        if word[0] == "i":
            x *= np.iinfo(dtype).max // 10000
        want, after = np.sort(x), np.full(n + 16, 7, dtype)
        leaf(x.ctypes.data, after.ctypes.data, n)
        np.testing.assert_array_equal(after, np.append(want, np.full(16, 7, dtype)))
        leaf(x.ctypes.data, x.ctypes.data, n)
        np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("n", range(1, 9))
def test_exchanges_that_sort_what_begins_bitonic(n: int) -> None:
    """Zeros and ones, of which one kind is together: what sorts these sorts all such words."""
    for start in range(n):
        for stop in range(start, n + 1):
            for inside in (0, 1):
                x = [inside if start <= k < stop else 1 - inside for k in range(n)]
                want = sorted(x)
                for low, high in sort_leaves.sorter(n):
                    x[low], x[high] = min(x[low], x[high]), max(x[low], x[high])
                assert x == want


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_near_zero_and_beyond_all_numbers(dtype: str) -> None:
    """Words are floats: NaN of both signs end last, zeros keep their signs, the least number is
    told from them, and halves of a range lie between its ends."""
    rng = np.random.default_rng(9)
    kind = np.dtype(dtype)
    tiny = np.nextafter(kind.type(0), kind.type(1))
    specials = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny], kind)
    for n in (256, 1500, 5003, sort_long.LONG + 1):
        check([rng.choice(specials, n)], 0)
        check([np.where(rng.random(n) < 0.5, rng.choice(specials[4:], n), kind.type(-0.0))], 0)
        x = np.full(n, tiny)
        step = n // 256
        x[1::step], x[3::step] = -tiny, 0.0  # two values that samples may not see
        check([x], 0)
        check([np.full(n, np.nan, kind)], 0)
        # Differences of these are not a number, or not finite.
        most = np.finfo(kind).max
        for pair in ([most, np.inf], [-most, -np.inf], [np.nan, 1.0], [-np.inf, np.inf]):
            check([rng.choice(np.array(pair, kind), n)], 0)
            check([np.where(rng.random(n) < 0.6, rng.choice(np.array(pair, kind), n), x)], 0)
    x = rng.standard_normal(4096).astype(kind)
    x[-3:] = np.inf, np.nan, np.inf
    check([x], 0)


def test_argsort_takes_positions_for_a_payload() -> None:
    for shape, axis in (((3000,), 0), ((sort_long.LONG,), 0), ((40, 30), 1), ((30, 40), 0)):
        x = np.random.default_rng(8).integers(0, 9, shape).astype(np.float32)
        closed = stage_closed(
            lambda a, shape=shape, axis=axis: sort_p.bind(
                a, broadcasted_iota(np.dtype(np.int32), shape, axis),
                dimension=axis, is_stable=True, num_keys=1,
            ),
            (ShapedArray(shape, x.dtype),),
        )  # fmt: skip
        got = cpu.compile(closed, {})([x])[1]
        np.testing.assert_array_equal(got, np.argsort(x, axis=axis, stable=True))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 100, 257, 1000])
def test_rows_side_by_side(n: int) -> None:
    rng = np.random.default_rng(n)
    for shape, axis in (((37, n), 1), ((n, 37), 0), ((2, n, 19), 1)):
        key = values(rng, shape, np.dtype("float32"))
        place = rng.integers(-5, 5, shape).astype(np.int32)
        check([key], axis)
        check([key, place, place.astype(np.float64)], axis)
        check([values(rng, shape, np.dtype("int16")), place], axis)


def test_bfloat16() -> None:
    x = values(np.random.default_rng(1), (500,), np.dtype(np.float32)).astype(ml_dtypes.bfloat16)
    got = run([x], 0)[0].astype(np.float32)
    np.testing.assert_array_equal(got, np.sort(x.astype(np.float32)))


def test_equal_keys_keep_their_order() -> None:
    key = np.random.default_rng(2).integers(0, 3, 5000).astype(np.float32)
    key[key == 0] *= np.random.default_rng(3).choice([-1, 1], int((key == 0).sum()))
    check([key, np.arange(5000, dtype=np.int32)], 0)
    check([key, np.arange(5000, dtype=np.int64)], 0)


def test_large() -> None:
    x = np.random.default_rng(4).standard_normal(200_000).astype(np.float32)
    check([x], 0)
    check([x, np.arange(x.size, dtype=np.int32)], 0)


@pytest.mark.parametrize("dtype", ["float32", "uint64"])
def test_long_rows_are_split_four_ways(dtype: str) -> None:
    """Quarters of parts, bad ones among them, and parts that are too large for warm memory."""
    rng = np.random.default_rng(11)
    n = 1 << 20
    even = values(rng, (n,), np.dtype(dtype))
    clustered = np.where(rng.random(n) < 0.98, even[:1], even)
    # Of each 1,024 neighbours few differ much, which no sample of a part tells.
    steps = (np.arange(n) % 1000 + 1000 * (np.arange(n) % 1024 == 5)).astype(dtype)
    for key in (even, np.sort(even)[::-1].copy(), clustered, np.ones(n, dtype), steps):
        check([key], 0)
    if dtype == "float32":
        check([clustered, np.arange(n, dtype=np.int32)], 0)


def test_several_keys() -> None:
    rng = np.random.default_rng(5)
    for shape, axis in (((300,), 0), ((5, 60), 1), ((60, 5), 0)):
        one = rng.integers(0, 4, shape).astype(np.float32)
        two = rng.integers(0, 4, shape).astype(np.int64)
        three = rng.standard_normal(shape)
        check([one, two, three], axis, 2)
        check([two, one, three, three], axis, 3)


def check_top_k(x: np.ndarray, axis: int, k: int) -> None:
    with config.enable_x64(True):
        closed = stage_closed(
            lambda a: top_k_p.bind(a, k=k, axis=axis), (ShapedArray(x.shape, x.dtype),)
        )
        compiled = cpu.compile(closed, {})
    assert not compiled.host_calls
    want = top_k_p.reference(x, k=k, axis=axis)
    for one, two in zip(compiled([x]), want, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", DTYPES)
def test_top_k(dtype: str) -> None:
    rng = np.random.default_rng(6)
    for shape, axis, k in (
        ((30,), 0, 4), ((1000,), 0, 1000), ((20, 70), 1, 5), ((70, 20), 0, 3), ((3, 700), 1, 17),
    ):  # fmt: skip
        check_top_k(values(rng, shape, np.dtype(dtype)), axis, k)


@pytest.mark.parametrize("k", [1, 8, 9, 128])
def test_top_k_of_rows_in_order(k: int) -> None:
    rows = np.arange(1000, dtype=np.int32) // 3
    lowest = np.full(1000, np.iinfo(np.int32).min, np.int32)
    lowest[500] = 0
    check_top_k(np.stack([rows, rows[::-1], 0 * rows, lowest]), 1, k)
