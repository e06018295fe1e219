"""numjet.image against JAX, and what it says of mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from same_script import compare

import numjet as nj
import numjet.numpy as jnp
from numjet import image

SCRIPT = """
import importlib
image = importlib.import_module(jnp.__name__.partition(".")[0] + ".image")
x = np.random.default_rng(0).standard_normal((2, 7, 5, 3)).astype("float32")
for m in ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area"):
    for shape in ((2, 14, 10, 3), (2, 3, 2, 3), (2, 7, 5, 3), (2, 1, 9, 3), (1, 8, 4, 2)):
        for smooth in (True, False):
            note = f"{m}{shape}{smooth}"
            out["~" + note] = image.resize(x, shape, m, antialias=smooth)
            if m == "nearest" or shape[0] != 2 or shape[3] != 3:
                continue
            for k, (s, t) in enumerate((((1.3, 0.7), (0.4, -1.2)), ((0.5, 2.0), (0.0, 1.0)))):
                out[f"~{note}{k}"] = image.scale_and_translate(
                    x, shape, (1, -2), jnp.array(s), jnp.array(t), m, antialias=smooth)
def loss(s, t):
    return (image.scale_and_translate(x, (2, 6, 6, 3), (1, 2), s, t, "cubic") ** 2).sum()
for k, g in enumerate(grad(loss, (0, 1))(jnp.array([1.1, 0.9]), jnp.array([0.3, 0.2]))):
    out[f"~grad{k}"] = g
def moved(s, t, m):
    return (image.scale_and_translate(x, (2, 6, 6, 3), (1, 2), s, t, m, antialias=False) ** 2).sum()
for m in ("cubic-pytorch", "area"):
    g = grad(moved, (0, 1))(jnp.array([1.13, 0.91]), jnp.array([0.31, 0.23]), m)
    out[f"~{m}grad"] = jnp.stack(g)
out["~integers"] = image.resize(np.arange(12).reshape(3, 4), (6, 6), "linear")
out["bytes"] = image.resize(np.arange(12, dtype="u1").reshape(3, 4), (6, 6), "nearest")
out["~method"] = image.resize(x, (2, 3, 3, 3), image.ResizeMethod.CUBIC)
"""


@pytest.mark.oracle
def test_same_values() -> None:
    compare(SCRIPT, rtol=2e-4, atol=2e-5)


def test_linear_functions_stay_linear_inside() -> None:
    line = jnp.arange(20.0)
    for method in ("linear", "cubic"):
        got = image.resize(line, (40,), method)[8:-8]
        np.testing.assert_allclose(got, np.arange(40)[8:-8] / 2 - 0.25, rtol=1e-6)


def test_transformations() -> None:
    x = jnp.ones((4, 6, 5))
    f = lambda x: image.resize(x, (3, 8), "cubic")  # noqa: E731
    np.testing.assert_allclose(nj.vmap(f)(x), np.ones((4, 3, 8)), rtol=1e-5)
    np.testing.assert_allclose(nj.jit(f)(x[0]), np.ones((3, 8)), rtol=1e-5)
    assert nj.grad(lambda x: f(x).sum())(x[0]).sum() == pytest.approx(24, rel=1e-4)
    assert image.resize(x.astype("bfloat16"), (4, 2, 2), "linear").dtype == jnp.bfloat16


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: image.resize(x, (2,), "linear"), "one size for each axis"),
        (lambda x: image.resize(x, (2, 2), "best"), 'Unknown resize method "best": use one of'),
        (
            lambda x: image.scale_and_translate(x, (2, 2), (0,), [1.0], [0.0], "linear"),
            "axis 1 .* Name it in spatial_dims",
        ),
        (
            lambda x: image.scale_and_translate(x, (2, 3), (0,), [1.0, 1.0], [0.0], "linear"),
            "scale must have one entry for each",
        ),
        (
            lambda x: image.scale_and_translate(x, (2, 3), (5,), [1.0], [0.0], "linear"),
            "must name different axes",
        ),
        (
            lambda x: image.scale_and_translate(x, (2, 3), (0,), [1.0], [0.0], "nearest"),
            "'nearest' is not supported",
        ),
    ],
)
def test_mistakes_are_explained(call, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(jnp.ones((4, 3)))


def test_means_of_areas_and_the_other_cubic_kernel() -> None:
    x = jnp.arange(8.0) ** 2
    area = [1.375, 13.0, 38.125]
    for antialias in (True, False):
        found = image.resize(x, (3,), image.ResizeMethod.AREA, antialias)
        np.testing.assert_allclose(found, area, rtol=1e-5)
    twice = image.resize(x, (16,), "area")
    np.testing.assert_allclose(twice, np.repeat(np.arange(8.0) ** 2, 2))
    np.testing.assert_allclose(  # JAX's
        image.resize(x, (4,), "cubic-pytorch", antialias=False),
        [0.21875, 6.125, 20.125, 43.53125], rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_allclose(
        image.resize(x, (5,), "bicubic-pytorch"), image.resize(x, (5,), "cubic"), rtol=1e-6
    )
