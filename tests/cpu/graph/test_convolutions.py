"""Convolutions of each feature by itself, and of images with gaps, against the reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import lax

RNG = np.random.default_rng(11)
CASES = [
    ((2, 9, 8, 16), (3, 3, 1, 16), ("NHWC", "HWIO", "NHWC"), {}),
    ((2, 9, 8, 6), (3, 2, 1, 18), ("NHWC", "HWIO", "NHWC"), {}),
    ((2, 16, 9, 8), (16, 1, 3, 3), ("NCHW", "OIHW", "NCHW"), {"window_strides": (2, 1)}),
    ((2, 9, 8, 16), (16, 1, 3, 3), ("NHWC", "OIHW", "NCHW"), {"rhs_dilation": (2, 3)}),
    ((2, 9, 8, 16), (4, 4, 1, 16), ("NHWC", "HWIO", "NHWC"),
     {"lhs_dilation": (2, 2), "padding": [(1, 2)] * 2}),
    ((2, 9, 8, 16), (3, 3, 1, 16), ("NHWC", "HWIO", "NHWC"), {"padding": [(2, -1), (0, 3)]}),
    ((3, 20, 8), (4, 1, 8), ("NWC", "WIO", "NWC"), {"padding": [(3, 0)]}),
    ((1, 4, 5, 6, 8), (2, 1, 3, 1, 8), ("NDHWC", "DHWIO", "NDHWC"), {}),
]  # fmt: skip


def convolution(image: tuple, kernel: tuple, layout: tuple, options: dict) -> Any:
    groups = image[layout[0].index("C")]
    spatial = len(image) - 2
    given = {"window_strides": (1,) * spatial, "padding": "SAME", **options}
    return lambda x, w: lax.conv_general_dilated(
        x, w, dimension_numbers=layout, feature_group_count=groups, **given
    )


@pytest.mark.parametrize(("image", "kernel", "layout", "options"), CASES)
def test_values(image: tuple, kernel: tuple, layout: tuple, options: dict) -> None:
    f = convolution(image, kernel, layout, options)
    for dtype in ("int32", "float32", "bfloat16", "complex64"):
        x, w = (nj.numpy.asarray(RNG.integers(-4, 5, s)).astype(dtype) for s in (image, kernel))
        text = nj.jit(f).lower(x, w).as_text()
        assert "special conv" not in text and "host" not in text
        got, (with_x, with_w) = nj.jit(f)(x, w), nj.jit(pulled(f))(x, w)
        with nj.disable_jit():
            want, (from_x, from_w) = f(x, w), pulled(f)(x, w)
        for one, other in ((got, want), (with_x, from_x), (with_w, from_w)):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def pulled(f: Any) -> Any:
    """The cotangents of both operands for ones; of integers themselves."""

    def g(x: Any, w: Any) -> Any:
        if x.dtype == np.int32:
            return x, w
        out, pull = nj.vjp(f, x, w)
        return pull(nj.numpy.ones_like(out))

    return g


def test_it_fuses_with_what_is_around() -> None:
    image, kernel, layout, options = CASES[0]
    f = convolution(image, kernel, layout, options)
    x, w = (np.ones(s, np.float32) for s in (image, kernel))
    text = nj.jit(lambda x, w: nj.numpy.maximum(f(x * 2, w) + 1, 0)).lower(x, w).as_text()
    assert text.count("kernel ") == 1


def test_others_go_to_the_product_library() -> None:
    for image, kernel in (((1, 9, 9, 16), (9, 9, 1, 16)), ((1, 9, 9, 16), (3, 3, 2, 16))):
        groups = 16 // kernel[2]
        f = lambda x, w, g=groups: lax.conv_general_dilated(  # noqa: E731
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=g
        )
        x, w = (np.ones(s, np.float32) for s in (image, kernel))
        assert "special conv" in nj.jit(f).lower(x, w).as_text()


GAPS = [
    # image, kernel, gaps, padding, strides, groups
    ((2, 5, 4, 4), (4, 4, 4, 6), (2, 2), [(2, 2), (2, 2)], (1, 1), 1),
    ((2, 5, 4, 4), (3, 3, 4, 6), (2, 3), [(2, 1), (0, 3)], (1, 1), 1),
    ((2, 5, 4, 4), (1, 1, 4, 6), (2, 2), [(0, 1), (0, 0)], (1, 1), 1),
    ((2, 5, 4, 4), (5, 3, 4, 6), (3, 1), [(-1, 4), (1, 1)], (1, 2), 1),
    ((2, 5, 4, 4), (3, 2, 2, 6), (2, 2), [(1, 2), (1, 1)], (1, 1), 2),
    ((2, 3, 2, 4), (6, 6, 4, 3), (6, 6), [(5, 5), (5, 5)], (1, 1), 1),
    ((3, 9, 4), (7, 4, 5), (4,), [(3, 5)], (1,), 1),
    ((1, 1, 1, 4), (3, 3, 4, 2), (4, 4), [(0, 3), (4, 0)], (1, 1), 1),
]


@pytest.mark.parametrize(("image", "kernel", "gaps", "padding", "strides", "groups"), GAPS)
def test_images_with_gaps(image, kernel, gaps, padding, strides, groups) -> None:
    layouts = ("NWC", "WIO") if len(image) == 3 else ("NHWC", "HWIO")
    for dtype, out in itertools.product(("float32", "bfloat16", "complex64"), (0, 1)):
        layout = (*layouts, layouts[0] if not out else "NC" + layouts[0][1:-1])

        def f(x: Any, w: Any, layout: Any = layout) -> Any:
            return lax.conv_general_dilated(
                x, w, strides, padding, lhs_dilation=gaps, dimension_numbers=layout,
                feature_group_count=groups,
            )  # fmt: skip

        x, w = (nj.numpy.asarray(RNG.integers(-4, 5, s)).astype(dtype) for s in (image, kernel))
        text = nj.jit(f).lower(x, w).as_text()
        assert "special conv" in text or "special dot" in text or dtype == "complex64"
        with nj.disable_jit():
            want = f(x, w)
        got = nj.jit(f)(x, w)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_gradients_of_patches_and_strides() -> None:
    """Of a convolution with strides the image's gradient has gaps; of patches it is one product."""
    layout = ("NHWC", "HWIO", "NHWC")
    x = RNG.integers(-3, 4, (2, 12, 12, 3)).astype(np.float32)
    for size, stride, padding in ((6, 6, "VALID"), (3, 2, "SAME")):
        w = RNG.integers(-3, 4, (size, size, 3, 8)).astype(np.float32)

        def loss(x: Any, w: Any = w, stride: int = stride, padding: str = padding) -> Any:
            strides = (stride, stride)
            out = lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=layout)
            return (out * (nj.numpy.arange(8) - 3)).sum()

        with nj.disable_jit():
            want = nj.grad(loss)(nj.numpy.asarray(x))
        np.testing.assert_array_equal(np.asarray(nj.jit(nj.grad(loss))(x)), np.asarray(want))


@pytest.mark.parametrize("width", [3, 16, 40, 120, 300])
def test_what_is_no_number_stays_within_its_windows(width: int) -> None:
    """Of one feature: neighbours are not computed by products with zeros."""
    x = np.ones(3000, np.float32)
    x[500], x[1500] = np.nan, np.inf
    got = np.asarray(nj.jit(lambda x, w: nj.numpy.convolve(x, w, "same"))(x, np.ones(width, "f4")))
    assert np.isnan(got).sum() == np.isinf(got).sum() == width


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "complex64"])
def test_long_kernels_are_taken_in_pieces(dtype: str) -> None:
    for image, kernel, layout, step, padding in (
        ((2, 1, 700), (1, 1, 193), ("NCH", "OIH", "NCH"), 2, [(9, -5)]),
        ((1, 3, 400, 1), (1, 129, 1, 1), ("NHWC", "HWIO", "NHWC"), 1, [(0, 1), (64, 64)]),
        ((1, 400, 1), (128 + 64, 1, 1), ("NWC", "WIO", "NWC"), 1, [(0, 0)]),
    ):

        def f(x: Any, w: Any, given: Any = (layout, step, padding)) -> Any:
            layout, step, padding = given
            spatial = len(padding)
            return lax.conv_general_dilated(
                x, w, (1,) * spatial, padding, dimension_numbers=layout,
                rhs_dilation=(1,) * (spatial - 1) + (step,),
            )  # fmt: skip

        x, w = (nj.numpy.asarray(RNG.integers(-2, 3, s)).astype(dtype) for s in (image, kernel))
        assert "special" not in nj.jit(f).lower(x, w).as_text()
        with nj.disable_jit():
            want = f(x, w)
        got = nj.jit(f)(x, w)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_empty_results() -> None:
    layout = ("NHWC", "HWIO", "NHWC")
    for features, gaps in ((8, (1, 1)), (1, (1, 1)), (4, (2, 2))):
        f = lambda x, w, n=features, g=gaps: lax.conv_general_dilated(  # noqa: E731
            x, w, (1, 1), "VALID" if g == (1, 1) else [(0, 0)] * 2, lhs_dilation=g,
            dimension_numbers=layout, feature_group_count=n if g == (1, 1) else 1,
        )  # fmt: skip
        x = np.ones((2, 2, 9, features), np.float32)
        w = np.ones((5, 3, 1 if gaps == (1, 1) else features, features), np.float32)
        with nj.disable_jit():
            want = f(x, w)
        assert nj.jit(f)(x, w).shape == want.shape and want.size == 0
