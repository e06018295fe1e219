"""Numbers of 64 bits: where they are the default, beside others, and outside of their block."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


@pytest.mark.parametrize("total", [jnp.sum, jnp.nansum, nj.jit(jnp.sum), lambda x: x.sum(0)])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int16"])
def test_what_integers_are_added_up_in_follows_the_flag(total, kind):
    x = jnp.arange(5).astype(kind)
    wide = "uint64" if kind[0] == "u" else "int64"
    for x64 in (False, True, False, True):
        with nj.enable_x64(x64):
            for _ in range(3):
                assert total(x).dtype == (wide if x64 else wide[:-2] + "32")


def test_64_bits_outside_of_their_block_stay_in_functions_of_one_array():
    with nj.enable_x64(True):
        x, i, z = jnp.array([0.3, 1.1]), jnp.array([2, 5]), jnp.array([0.3 + 1j])
    for f in (jnp.exp, jnp.tan, nj.jit(jnp.log1p)):
        assert (f(x).dtype, f(i).dtype, f(z).dtype) == ("float64", "float64", "complex128")
        assert f(np.array([0.5])).dtype == "float32"
    np.testing.assert_allclose(jnp.exp(x), np.exp([0.3, 1.1]), rtol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [nj.lax.full_like(y, 3).dtype for y in (x, i, z)] == [x.dtype, i.dtype, z.dtype]


def test_numbers_beyond_the_default_integer_are_of_the_arrays_dtype():
    x = jnp.arange(3, dtype="uint32")
    for run in (lambda f: f, nj.jit):
        np.testing.assert_array_equal(run(lambda x: x.at[1].set(2**32 - 9))(x), [0, 2**32 - 9, 2])
        assert int(run(lambda x: x.at[jnp.array([2])].add(2**31))(x)[2]) == 2**31 + 2
        with nj.enable_x64(True):
            big = run(lambda x: x.at[0].max(2**64 - 5))(x.astype("uint64"))
            assert (int(big[0]), big.dtype) == (2**64 - 5, "uint64")
        for beyond, kind in ((2**32, "uint32"), (2**31, "int32")):
            with pytest.raises(OverflowError):
                run(lambda x, n=beyond: x.at[0].set(n))(x.astype(kind))
    assert jnp.full(2, 2**70, "float32")[0] == 2.0**70
