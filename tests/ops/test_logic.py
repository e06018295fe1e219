"""Comparisons, bit operations and rounding against JAX; laws; messages."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

from numjet import jit, lax

X = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.0, 3.2, 1e9], np.float32)
Y = np.array([0.5, 0.5, np.nan, np.inf, -2.5, 1.0, 0.0, 3.1, -np.inf], np.float32)
I = sample(8, dtype=np.int32, low=-(2**31), high=2**31 - 1)
J = sample(8, seed=1, dtype=np.int32, low=-(2**31), high=2**31 - 1)
SHIFT = np.array([0, 1, 5, 31, 32, 40, -1, 7], np.int32)
U = sample(8, dtype=np.uint8, low=0, high=255)
USHIFT = np.array([0, 1, 2, 7, 8, 200, 3, 4], np.uint8)
T, F = sample(6, dtype=np.bool_), sample(6, seed=3, dtype=np.bool_)
C, D = np.array([1 + 2j, 1, 0], np.complex64), np.array([1 + 2j, 1j, -0.0], np.complex64)

CASES = {
    **{name: (f"lax.{name}(x, y)", X, Y) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"int {name}": (f"lax.{name}(x, y)", I, J) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"bool {name}": (f"lax.{name}(x, y)", T, F) for name in ("eq", "ne", "lt", "le")},
    "complex eq": ("lax.eq(x, y)", C, D),
    "complex ne": ("lax.ne(x, y)", C, D),
    **{name: (f"lax.{name}(x, y)", I, J) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{
        f"bool {name}": (f"lax.{name}(x, y)", T, F)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "not": ("lax.bitwise_not(x)", I),
    "bool not": ("lax.bitwise_not(x)", T),
    **{
        name: (f"lax.{name}(x, y)", I, SHIFT)
        for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    **{
        f"unsigned {name}": (f"lax.{name}(x, y)", U, USHIFT)
        for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    "population_count": ("lax.population_count(x)", I),
    "clz": ("lax.clz(x)", I),
    "clz edges": ("lax.clz(x)", np.array([0, 1, -1, 2**30], np.int32)),
    "unsigned population_count": ("lax.population_count(x)", U),
    "unsigned clz": ("lax.clz(x)", U),
    "floor": ("lax.floor(x)", X),
    "ceil": ("lax.ceil(x)", X),
    "round": ("lax.round(x)", X),
    "round even": ("lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)", X),
    "is_finite": ("lax.is_finite(x)", Y),
    "le scalar": ("lax.le(x, 0.5)", X),
}


test_against_jax, test_laws = checks_of(CASES)


@pytest.mark.parametrize("bits", [2, 4])
def test_unsigned_integers_of_few_bits_have_a_sign_to_shift(bits: int) -> None:
    x, y = np.meshgrid(np.arange(1 << bits), np.arange(1 << bits))
    dtype = f"uint{bits}"
    a, b = (lax.convert_element_type(v.astype(np.uint8), dtype) for v in (x, y))
    signed = np.where(x >> (bits - 1), x - (1 << bits), x)
    want = (signed >> np.minimum(y, bits)) & ((1 << bits) - 1)
    for run in (lax.shift_right_arithmetic, jit(lax.shift_right_arithmetic)):
        out = run(a, b)
        assert str(out.dtype) == dtype
        np.testing.assert_array_equal(np.asarray(out).astype(int), want)


def test_messages() -> None:
    with pytest.raises(TypeError, match="and does not accept dtype float32.*integer, bool"):
        lax.bitwise_and(X, X)
    with pytest.raises(TypeError, match="lt requires arguments to have the same dtypes"):
        lax.lt(X, I)
