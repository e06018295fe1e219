"""Sorts and running sums of complex numbers in compiled programs: native, and as eager ones."""
from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

SHAPES = [((50,), 0), ((7, 33), 1), ((33, 7), 0), ((3, 4, 5), 1), ((20000,), 0), ((1,), 0),
          ((0, 3), 1)]


def numbers(shape, dtype):
    rng = np.random.default_rng(0)
    x = (rng.integers(-3, 3, shape) + 1j * rng.integers(-3, 3, shape)).astype(dtype)
    if x.size > 20:
        x.flat[3], x.flat[5] = complex(np.nan, 1), complex(1, np.nan)
        x.flat[9], x.flat[12] = complex(-0.0, 0.0), complex(0.0, -0.0)
        x.flat[11] = complex(np.inf, -0.0)
    return x


def native(fun, *args):
    text = nj.jit(fun).lower(*args).as_text()
    assert "host" not in text or not args[0].size, text
    return nj.tree.leaves(nj.jit(fun)(*args))


@pytest.fixture(autouse=True)
def wide():
    with nj.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_sorts(shape, axis, dtype):
    x = numbers(shape, dtype)
    places = np.random.default_rng(1).integers(0, 4, shape)
    for fun, args in (
        (lambda x: jnp.sort(x, axis), (x,)), (lambda x: jnp.argsort(x, axis), (x,)),
        (lambda x, p: nj.lax.sort((x, p, -x), dimension=axis, num_keys=2), (x, places)),
        (lambda p, x: nj.lax.sort((p, x), dimension=axis, num_keys=1), (places, x)),
    ):
        for got, want in zip(native(fun, *args), nj.tree.leaves(fun(*args)), strict=True):
            got, want = np.asarray(got), np.asarray(want)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            if got.dtype.kind == "c":
                for part in ("real", "imag"):
                    np.testing.assert_array_equal(np.signbit(getattr(got, part)),
                                                  np.signbit(getattr(want, part)))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_running_sums(shape, axis, reverse, dtype):
    x = numbers(shape, dtype)
    fun = lambda x: nj.lax.cumsum(x, axis, reverse)  # noqa: E731
    (got,), want = native(fun, x), fun(x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
