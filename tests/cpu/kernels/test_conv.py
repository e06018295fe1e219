"""Convolutions: the compiled program against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.ops.conv import ConvDimensionNumbers, conv_general_dilated_p
from numjet.transforms.stage import stage_closed

NCHW = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
NCW = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
NDHWC = ConvDimensionNumbers((0, 4, 1, 2, 3), (4, 3, 0, 1, 2), (0, 4, 1, 2, 3))
CASES = [
    # lhs, rhs, numbers, strides, padding, lhs dilation, rhs dilation, groups
    ((2, 3, 8, 9), (5, 3, 3, 3), NCHW, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1),
    ((2, 8, 9, 3), (3, 3, 3, 5), NHWC, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
    ((2, 8, 9, 32), (3, 2, 32, 70), NHWC, (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 1), 1),
    ((4, 7, 7, 16), (1, 1, 16, 40), NHWC, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
    ((4, 7, 7, 16), (1, 1, 16, 40), NHWC, (2, 2), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
    ((2, 9, 9, 4), (3, 3, 4, 6), NHWC, (1, 1), ((2, 2), (2, 2)), (1, 1), (2, 2), 1),
    ((2, 5, 6, 4), (3, 3, 4, 6), NHWC, (1, 1), ((2, 2), (2, 2)), (2, 3), (1, 1), 1),
    ((2, 8, 8, 12), (3, 3, 4, 6), NHWC, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 3),
    ((2, 8, 8, 12), (3, 3, 1, 12), NHWC, (2, 2), ((1, 1), (1, 1)), (1, 1), (1, 1), 12),
    ((2, 10, 10, 4), (3, 3, 4, 6), NHWC, (1, 1), ((-1, 0), (0, -2)), (1, 1), (1, 1), 1),
    ((3, 4, 50), (6, 4, 5), NCW, (1,), ((2, 2),), (1,), (1,), 1),
    (
        (2, 5, 6, 7, 3),
        (2, 3, 2, 3, 4),
        NDHWC,
        (1, 2, 1),
        ((0, 1), (1, 1), (0, 0)),
        (1,) * 3,
        (1,) * 3,
        1,
    ),
    ((16, 4, 5, 3), (2, 2, 3, 600), NHWC, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
    ((1, 70, 70, 2), (60, 60, 2, 3), NHWC, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_convolutions(case: int, dtype: str) -> None:
    left, right, numbers, strides, padding, lhs_dilation, rhs_dilation, groups = CASES[case]
    rng = np.random.default_rng(case)
    x, w = (rng.standard_normal(s).astype(dtype) for s in (left, right))
    params = {
        "window_strides": strides, "padding": padding, "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation, "dimension_numbers": numbers,
        "feature_group_count": groups, "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    with config.enable_x64(True):
        closed = stage_closed(
            lambda a, b: [conv_general_dilated_p.bind(a, b, **params)],
            (ShapedArray(left, x.dtype), ShapedArray(right, x.dtype)),
        )
        compiled = cpu.compile(closed, {})
        assert not compiled.host_calls
        (got,) = compiled([x, w])
    want = conv_general_dilated_p.reference(x.astype(np.float64), w.astype(np.float64), **params)
    bound = conv_general_dilated_p.reference(
        np.abs(x).astype(float), np.abs(w).astype(float), **params
    )
    assert got.dtype == x.dtype and got.shape == want.shape
    assert np.all(np.abs(got - want) <= 8 * np.finfo(x.dtype).eps * bound)


@pytest.mark.parametrize("width", [2, 3, 9, 16, 17, 70])
def test_one_feature_and_one_kernel(width):
    """A loop over the places of the kernel, however many."""
    rng = np.random.default_rng(width)
    for n in (64, 97, 1000, 1023):
        x = rng.integers(-4, 5, (2, 1, n)).astype(np.float32)
        w = rng.integers(-4, 5, (1, 1, width)).astype(np.float32)
        for padding in ([(0, 0)], [(width - 1, width - 1)], [(3, 0)]):
            if n + sum(padding[0]) < width:
                continue
            f = lambda x, w, p=padding: nj.lax.conv_general_dilated(x, w, (1,), p)
            rows = np.pad(x[:, 0], [(0, 0), padding[0]])
            want = np.stack([np.correlate(row, w[0, 0], "valid") for row in rows])[:, None]
            np.testing.assert_array_equal(nj.jit(f)(x, w), want)
            doubled = nj.jit(nj.grad(lambda x, w, f=f: nj.numpy.sum(f(x, w) ** 2), 1))(x, w)
            at = np.lib.stride_tricks.sliding_window_view(rows, want.shape[-1], -1)
            np.testing.assert_array_equal(doubled[0, 0], 2 * np.einsum("bkn,bn->k", at, want[:, 0]))


@pytest.mark.parametrize("dilation, stride", [((1, 1), (1, 1)), ((2, 1), (2, 1)), ((1, 2), (1, 1))])
def test_one_feature_of_pictures(dilation, stride):
    rng = np.random.default_rng(1)
    x = rng.integers(-4, 5, (2, 1, 20, 130)).astype(np.float32)
    w = rng.integers(-4, 5, (1, 1, 3, 5)).astype(np.float32)
    f = lambda x, w: nj.lax.conv_general_dilated(x, w, stride, "VALID", rhs_dilation=dilation)
    windows = np.lib.stride_tricks.sliding_window_view(
        x[:, 0], (2 * dilation[0] + 1, 4 * dilation[1] + 1), (1, 2)
    )[:, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    want = np.einsum("nhwij,ij->nhw", windows, w[0, 0])[:, None]
    np.testing.assert_array_equal(nj.jit(f)(x, w), want)


def test_long_vectors_are_convolved_without_their_windows():
    rng = np.random.default_rng(2)
    for n, m in ((3000, 7), (500, 500), (40, 900)):
        x, y = (rng.integers(-4, 5, k).astype(np.float32) for k in (n, m))
        for mode in ("full", "same", "valid"):
            for f, g in ((nj.numpy.convolve, np.convolve), (nj.numpy.correlate, np.correlate)):
                run = nj.jit(lambda x, y, f=f, mode=mode: f(x, y, mode))
                np.testing.assert_array_equal(run(x, y), g(x, y, mode))
                few = g(x, y, mode).size * min(n, m) < 1 << 14
                assert few or "gather" not in run.lower(x, y).as_text("jaxpr")
