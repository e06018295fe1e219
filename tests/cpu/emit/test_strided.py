"""Elements that lie a few places apart: whole vectors are read, never what lies outside."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex64"])
@pytest.mark.parametrize("step", [2, 3, 4, 5, 8, 9, 10, -2, -3, -9])
def test_slices_in_steps(step, dtype):
    with nj.enable_x64(dtype == "float64"):
        for count in (7, 100, 501, 1000):
            x = (np.arange(count) % 113).astype(dtype)
            for first in (None, 1, -4):
                got = nj.jit(lambda x, k=first: x[k::step])(x)
                np.testing.assert_array_equal(got, x[first::step])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", [(33, 20), (20, 33), (9, 7, 15)])
def test_slices_of_rows_in_steps(shape, dtype):
    x = (np.arange(np.prod(shape)) % 113).astype(dtype).reshape(shape)
    for step in (2, 3, 5, -2, -3):
        np.testing.assert_array_equal(nj.jit(lambda x: x[:, ::step] + 1)(x), x[:, ::step] + 1)
        both = nj.jit(lambda x: x[..., ::step] + x[..., 1:2])
        np.testing.assert_array_equal(both(x[..., :]), x[..., ::step] + x[..., 1:2])


@pytest.mark.parametrize("step", [3, -3])
def test_nothing_is_gathered(step):
    taken = nj.jit(lambda x: x[::step]).lower(np.zeros(3072, np.float32)).compile().as_text()
    assert not re.search(r"masked.gather|insertelement", taken)


# A block of rows that is turned in registers lies in one row of each lane's.
@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("shape", [(70, 16, 33), (70, 5, 33), (40, 9, 16)])
@pytest.mark.parametrize("written", [False, True])
def test_rows_that_differ_by_column(shape, mode, written):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    column = np.arange(shape[2], dtype=np.int32) + np.zeros(shape, np.int32)
    if written:  # rows that are computed for two readers
        column = column * 7 % shape[1]

    def f(x):
        places = nj.lax.broadcasted_iota("int32", shape, 2)
        if written:
            places = places * 7 % shape[1]
        return jnp.take_along_axis(x, places, 1, mode=mode), places

    want = np.take_along_axis(x, np.minimum(column, shape[1] - 1), 1)
    if mode == "fill":
        want = np.where(column < shape[1], want, np.iinfo(np.int32).min)
    got = nj.jit(f)(x)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], column)
