"""Gathers at positions of several axes: compiled against evaluated, and what the program is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu.graph import gathers
from numjet.scipy import ndimage

RNG = np.random.default_rng(7)
PICTURE = RNG.standard_normal((50, 70)).astype(np.float32)
VOLUME = RNG.standard_normal((9, 50, 70, 3)).astype(np.float32)


def places(n: int, shape: tuple, dtype: Any = np.int32, beyond: int = 0) -> np.ndarray:
    return RNG.integers(-beyond, n + beyond, shape).astype(dtype)


def kernels(f: Any, *args: Any) -> list[str]:
    return nj.jit(f).lower(*args).as_text().split("kernel ")[1:]


def same(f: Any, *given: Any) -> None:
    args = [jnp.asarray(x) for x in given]
    with nj.disable_jit():
        want = f(*args)
    np.testing.assert_array_equal(np.asarray(nj.jit(f)(*args)), np.asarray(want))


def test_positions_are_computed_where_they_are_read() -> None:
    def f(x: Any, c: Any) -> Any:
        i = jnp.floor(c).astype(int)
        return x[i, i + 1] + 2 * x[i + 1, i]

    c = RNG.uniform(0, 48, (40, 60)).astype(np.float32)
    (text,) = kernels(f, PICTURE, c)
    assert "i32[40,60" not in text and "f32[3500]" in text
    same(f, PICTURE, c)


def test_map_coordinates_is_one_kernel() -> None:
    def f(x: Any, at: Any) -> Any:
        return ndimage.map_coordinates(x, [at[0], at[1]], order=1)

    at = RNG.uniform(-1, 50, (2, 30, 40)).astype(np.float32)
    assert len(kernels(f, PICTURE, at)) == 1
    same(f, PICTURE, at)


@pytest.mark.parametrize("mode", ["promise_in_bounds", "clip", "fill"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_places_beyond_the_axes(mode: str, dtype: str) -> None:
    numbers = lax.GatherDimensionNumbers((), (0, 1), (1, 0))

    def f(x: Any, i: Any, j: Any) -> Any:
        at = jnp.stack([j, i], -1)
        return lax.gather(x, at, numbers, (1, 1), mode=mode, fill_value=-7)

    with nj.enable_x64(True):
        i, j = (places(n, (33,), dtype, 40) for n in PICTURE.shape)
        i[0] = np.iinfo(dtype).max
        j[1] = np.iinfo(dtype).min
        same(f, PICTURE, i, j)
        assert not any("[33,2]" in text for text in kernels(f, PICTURE, i, j))


def test_an_axis_longer_than_its_places_can_say() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        return x.at[i, j].get(mode="fill", fill_value=0)

    x = RNG.standard_normal((3, 300)).astype(np.float32)
    same(f, x, places(3, (20,), np.int8), np.arange(107, 127, dtype=np.int8))


def test_windows_of_other_axes() -> None:
    i, j, k = (places(n, (4, 1), beyond=2) for n in (9, 50, 70))
    j = np.broadcast_to(j, (4, 5))
    for f in (
        lambda x, i, j, k: x[:, j, k],
        lambda x, i, j, k: x[i, j, k],
        lambda x, i, j, k: x[i, j, k, 1],
        lambda x, i, j, k: x[i, :, k],
        lambda x, i, j, k: x[i, j],
        lambda x, i, j, k: abs(x)[i, j] * 2,
        lambda x, i, j, k: nj.vmap(lambda i, j: x[i, j])(i + 0 * j, j),
        lambda x, i, j, k: nj.vmap(lambda x: x[j, k])(x),
        lambda x, i, j, k: lax.map(lambda p: x[p[0], p[1], p[1]], (i + 0 * j, j)),
        lambda x, i, j, k: x[i[:0], j[:0]],
    ):
        same(f, VOLUME, i, j, k)


def test_gradients_and_keys() -> None:
    i, j = places(50, (80,)), places(70, (80,))

    def f(x: Any) -> Any:
        return (x[i, j] ** 2).sum()

    want = np.zeros_like(PICTURE)
    np.add.at(want, (i, j), 2 * PICTURE[i, j])
    np.testing.assert_allclose(np.asarray(nj.jit(nj.grad(f))(PICTURE)), want, rtol=1e-6)
    keys = nj.random.split(nj.random.key(0), (5, 6))
    picked = nj.jit(lambda i, j: keys[i, j])(i[:9] % 5, j[:9] % 6)
    data = np.asarray(nj.random.key_data(keys))[i[:9] % 5, j[:9] % 6]
    np.testing.assert_array_equal(np.asarray(nj.random.key_data(picked)), data)


def test_axes_of_more_elements_than_an_int32_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their places stay apart."""
    monkeypatch.setattr(gathers, "_LARGEST", 1000)

    def f(x: Any, i: Any, j: Any) -> Any:
        return x[i, j + 1]

    i, j = places(50, (25,)), places(60, (25,))
    assert any("[25,2]" in text for text in kernels(f, PICTURE, i, j))
    same(f, PICTURE, i, j)


def test_rounds_of_gathers_from_afar_are_of_one_vector() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i]

    i = np.zeros(4096, np.int32)
    assert "unroll" not in kernels(f, np.zeros(100_000, np.float32), i)[0]
    assert "unroll" in kernels(f, np.zeros(1000, np.float32), i)[0]


def test_positions_along_no_axes() -> None:
    """Put together of parts, as of several axes, but of none."""
    numbers = lax.GatherDimensionNumbers((), (0,), (), (1,), (1,))
    f = lambda x, i: lax.gather(x, jnp.stack([i, i]), numbers, (1, 1), mode="clip")
    same(f, VOLUME[0, :5, :3, 0], np.zeros((3, 0), np.int32))
