"""Divisions by positive constants, rounded down: right at every end, and without a selection."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

RNG = np.random.default_rng(0)
WIDER = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "bool": "int32"}


def numbers(dtype):
    if dtype == "bool":
        return RNG.integers(0, 2, 500).astype(bool)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = np.array([least, least + 1, 0, 1, most - 1, most], dtype)
    near = RNG.integers(0, 200, 300).astype(dtype) - np.array(100 if least else 0, dtype)
    return np.concatenate([RNG.integers(least, most, 700, dtype, True), near, np.tile(ends, 5)])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", *WIDER])
def test_quotients_and_remainders(dtype):
    x, wide = numbers(dtype), WIDER.get(dtype, dtype)
    most = int(np.iinfo(wide).max)
    with nj.enable_x64(True):
        for c in (1, 2, 3, 7, 8, 100, most, -1, -3, -8):
            y = x.astype(wide)
            if c == -1:
                y = np.where(y == np.iinfo(wide).min, 0, y)
            n = np.array(c, wide)[()]
            given = x if wide != dtype else y
            divided = nj.jit(lambda v, n=n: (v.astype(wide) // n, v.astype(wide) % n))
            for got, want in zip(divided(jnp.array(given)), np.divmod(y, n), strict=True):
                assert got.dtype == wide
                np.testing.assert_array_equal(got, want)


def test_quotients_select_nothing():
    x = jnp.arange(-500, 500)
    assert "select" not in nj.jit(lambda v: v // 7).lower(x).as_text()
    for f in (lambda v: v.astype("int32") // 7, lambda v: v.astype("int32") % 7):
        text = nj.jit(f).lower(x.astype("uint8")).as_text()
        assert "select" not in text and "shr" not in text
    assert "select" in nj.jit(lambda v: v // -7).lower(x).as_text()
