"""Arrays whose last axes are short, moved in other orders: what is taken lane-wise, and values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu.link import link

SHAPES = [(6, 133, 2), (2, 8, 333), (333, 5, 2), (35, 129, 2), (3, 2, 333), (4, 129, 3), (5, 67, 4),
          (37, 6, 12)]  # fmt: skip


def numbers(shape, dtype):
    """Different numbers, as far as the type has so many."""
    most = 2**31 if np.dtype(dtype).itemsize > 2 else 97
    return (np.arange(np.prod(shape)) % most).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_transposes(shape, dtype):
    with nj.enable_x64(dtype == "float64"):
        x = numbers(shape, dtype)
        for order in itertools.permutations(range(3)):
            moved = nj.jit(lambda x, order=order: jnp.transpose(x, order))
            changed = nj.jit(lambda x, order=order: jnp.transpose(x, order) * 2 + 1)
            np.testing.assert_array_equal(moved(x), x.transpose(order))
            np.testing.assert_array_equal(changed(x), (x.transpose(order) * 2 + 1).astype(dtype))


def test_short_axes_that_follow_each_other_are_walked_as_one():
    def text(shape, order):
        moved = nj.jit(lambda x: jnp.transpose(x, order))
        return moved.lower(numbers(shape, "float32")).as_text()

    found = text((6, 2000, 2), (1, 0, 2))
    assert any([f"for i2 < {rows} tile" in found for rows in (12, 8, 4)])  # by the vectors
    if link.vector_bytes() > 16:
        assert "(i0%2), (i0//2), i2]" in text((2000, 3, 2), (2, 1, 0))
    assert "vector" in text((4, 2000), (1, 0)) and "strip" not in text((4, 2000), (1, 0))


def test_a_short_row_beside_one_of_a_longer_row():
    x, y = numbers((5, 400), "float64"), numbers((400, 12), "float64")
    with nj.enable_x64(True):
        both = nj.jit(lambda x, y: x.T + y[:, 3:8])
        np.testing.assert_array_equal(both(x, y), x.T + y[:, 3:8])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32"])
@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 9, 12, 20])
def test_rows_that_are_not_whole_vectors(width, dtype):
    for length in (33, 512, 1003):
        x = numbers((width, length), dtype)
        np.testing.assert_array_equal(nj.jit(lambda x: x.T)(x), x.T)
        stacked = numbers((3, width, length), dtype)
        swapped = nj.jit(lambda x: jnp.swapaxes(x, 1, 2))
        np.testing.assert_array_equal(swapped(stacked), stacked.swapaxes(1, 2))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("width", [2, 3, 7, 16])
def test_positions_that_are_values(width, dtype):
    x = jnp.asarray(np.arange(203) % 15).astype(dtype)
    scaled = nj.jit(lambda x: x[:, None] * jnp.arange(width))(x)
    want = (np.arange(203) % 15)[:, None] * np.arange(width)
    np.testing.assert_array_equal(np.asarray(scaled, np.float32), want)
    moved = nj.jit(lambda x: x + jnp.arange(width))(scaled)
    np.testing.assert_array_equal(np.asarray(moved, np.float32), want + np.arange(width))


@pytest.mark.parametrize("width", [4, 8, 16])
def test_places_of_extremes_of_short_rows_are_found_side_by_side(width):
    rng = np.random.default_rng(width)
    for dtype in ("float32", "int32"):
        x = rng.integers(-3, 4, (9001, width)).astype(dtype)
        for f, g in ((jnp.argmax, np.argmax), (jnp.argmin, np.argmin)):
            run = nj.jit(lambda v, f=f: f(v, axis=1))
            np.testing.assert_array_equal(run(x), g(x, axis=1))
            if 2 * width <= link.vector_bytes():  # longer rows are vectors of their own
                assert " tile" in run.lower(x).as_text()
