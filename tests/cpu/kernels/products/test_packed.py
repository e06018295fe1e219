"""Products and convolutions of integers beside NumPy's: layouts, odd depths, extremes."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as np_
from numjet import lax
from numjet.cpu.kernels import libraries
from numjet.cpu.kernels.products import packed
from numjet.cpu.link import link

CASES = [
    ((33, 40), (40, 65), (((1,), (0,)), ((), ()))),
    ((64, 515), (70, 515), (((1,), (1,)), ((), ()))),
    ((301, 37), (301, 50), (((0,), (0,)), ((), ()))),
    ((130, 48), (33, 130), (((0,), (1,)), ((), ()))),
    ((2, 50, 90), (2, 90, 17), (((2,), (1,)), ((0,), (0,)))),
    ((50, 3, 65), (20, 65, 3), (((2,), (1,)), ((1,), (2,)))),
    ((5, 16, 40), (40, 6, 4), (((2,), (0,)), ((), ()))),
    ((20, 8192), (8192, 20), (((1,), (0,)), ((), ()))),
]


def _exact(x: np.ndarray, y: np.ndarray, numbers: tuple, dtype: np.dtype) -> np.ndarray:
    """The product with the wrap-around of `dtype`."""
    (lc, rc), (lb, rb) = numbers
    letters = iter("abcdefghij")
    left, right = [""] * x.ndim, [""] * y.ndim
    for i, j in (*zip(lb, rb, strict=True), *zip(lc, rc, strict=True)):
        left[i] = right[j] = next(letters)
    left = [c or next(letters) for c in left]
    right = [c or next(letters) for c in right]
    batch = [left[i] for i in lb]
    rows = [c for i, c in enumerate(left) if i not in (*lb, *lc)]
    columns = [c for i, c in enumerate(right) if i not in (*rb, *rc)]
    words = f"{''.join(left)},{''.join(right)}->{''.join(batch + rows + columns)}"
    return np.einsum(words, x.astype(np.int64), y.astype(np.int64)).astype(dtype)


@pytest.mark.parametrize("values", ["random", "extreme"])
@pytest.mark.parametrize("fours", [True, False])
@pytest.mark.parametrize(
    "dtypes", ["int8 int8", "uint8 uint8", "uint8 int8", "int8 uint8", "int16 int8"]
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_of_small_integers(
    case: tuple, dtypes: str, values: str, fours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fours:
        monkeypatch.setattr(packed, "_in_fours", lambda operands: False)
    rng = np.random.default_rng(3)
    *shapes, numbers = case
    operands = []
    for shape, name in zip(shapes, dtypes.split(), strict=True):
        info = np.iinfo(name)
        if values == "random":
            operands.append(rng.integers(info.min, info.max + 1, shape).astype(name))
        else:
            operands.append(np.full(shape, info.min or info.max, name))
    same = operands[0].dtype == operands[1].dtype
    for preferred in (*([None] if same else []), "int32", "int16"):
        found = nj.jit(
            lambda x, y, p=preferred: lax.dot_general(x, y, numbers, preferred_element_type=p)
        )(*operands)
        assert found.dtype == (preferred or operands[0].dtype)
        np.testing.assert_array_equal(found, _exact(*operands, numbers, found.dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("case", [
    ((60, 70), (70, 80), (((1,), (0,)), ((), ()))),
    ((64, 515), (70, 515), (((1,), (1,)), ((), ()))),
    ((3, 50, 90), (3, 90, 33), (((2,), (1,)), ((0,), (0,)))),
    ((20, 9000), (9000, 20), (((1,), (0,)), ((), ()))),
], ids=str)
def test_products_of_integers_wrap_around(case: tuple, dtype: str) -> None:
    rng = np.random.default_rng(5)
    *shapes, numbers = case
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, shape, dtype=dtype) for shape in shapes)
    with nj.enable_x64(True):
        found = nj.jit(lambda x, y: lax.dot_general(x, y, numbers))(x, y)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, _exact(x, y, numbers, np.dtype(dtype)))


CONVOLUTIONS = [
    # image, kernel, groups, strides, dilation of the kernel, of the image
    ((2, 8, 12, 11), (6, 8, 3, 3), 1, (1, 1), (1, 1), (1, 1)),
    ((1, 3, 20, 9), (5, 3, 2, 3), 1, (2, 1), (1, 2), (1, 1)),
    ((2, 12, 9, 9), (6, 4, 3, 2), 3, (1, 1), (1, 1), (2, 1)),
    ((1, 6, 15), (4, 3, 4), 2, (1,), (1,), (1,)),
    ((1, 2, 6, 7, 5), (3, 2, 2, 3, 2), 1, (1, 1, 2), (1, 1, 1), (1, 1, 1)),
]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_of_integers(case: tuple, dtype: str) -> None:
    image, kernel, groups, strides, dilation, gaps = case
    rng, info = np.random.default_rng(6), np.iinfo(dtype)
    x, k = (rng.integers(info.min, info.max, shape, dtype=dtype) for shape in (image, kernel))
    padding = [(1, 2)] * len(strides)

    def convolve(x: nj.Array, k: nj.Array, preferred: type | None = None) -> nj.Array:
        return lax.conv_general_dilated(
            x, k, strides, padding, lhs_dilation=gaps, rhs_dilation=dilation,
            feature_group_count=groups, preferred_element_type=preferred,
        )  # fmt: skip

    with nj.enable_x64(True):  # 16-bit halves are exact in float64
        (x_low, x_high), (k_low, k_high) = (
            ((v.astype(np.int64) & 0xFFFF) * 1.0, (v.astype(np.int64) >> 16) * 1.0) for v in (x, k)
        )
        low, one, two = (
            np.asarray(convolve(*each)).astype(np.int64)
            for each in ((x_low, k_low), (x_high, k_low), (x_low, k_high))
        )
        want = low + ((one + two) << 16)
    for preferred in (None, np.int32):
        found = nj.jit(convolve, static_argnums=2)(x, k, preferred)
        assert found.dtype == (preferred or dtype)
        np.testing.assert_array_equal(found, want.astype(found.dtype))


def test_sums_beyond_32_bits_stay_whole() -> None:
    x = np.full((16, 4096), -32768, np.int16)
    with nj.enable_x64(True):
        found = nj.jit(lambda x: lax.dot(x, x.T, preferred_element_type=np.int64))(x)
    assert found.dtype == np.int64
    assert (np.asarray(found) == 4096 << 30).all()


@pytest.mark.skipif(
    not link.target().triple.startswith("x86_64"), reason="pairs are an instruction of x86"
)
def test_what_follows_stands_behind_the_product() -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.integers(-128, 128, (96, 96)).astype(np.int8) for _ in range(2))
    scale = rng.uniform(size=96).astype(np.float32)

    @nj.jit
    def layer(x: nj.Array, y: nj.Array, scale: nj.Array) -> nj.Array:
        return np_.maximum(lax.dot(x, y, preferred_element_type=np.int32) * scale, 0)

    want = np.maximum(x.astype(np.int64) @ y.astype(np.int64) * scale.astype(np.float64), 0)
    np.testing.assert_allclose(layer(x, y, scale), want, rtol=1e-6)
    target = link.target()
    has = target.has("avx512vnni" if link.vector_bytes() == 64 else "avxvnni")
    assert f"nj_gemm_{'fours' if has else 'pairs'}" in libraries._jobs
