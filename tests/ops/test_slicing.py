"""Slices, static and dynamic, against JAX; starts out of range; laws; messages."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

from numjet import lax

X = sample(4, 5)
NEW = sample(2, 3, seed=1)
ROW = sample(5, seed=2)
ONE, TWO, FAR, BELOW = np.int32(1), np.int32(2), np.int32(9), np.int32(-1)

CASES = {
    "slice": ("lax.slice(x, (1, 0), (3, 4))", X),
    "slice strided": ("lax.slice(x, (0, 1), (4, 5), (2, 3))", X),
    "slice empty": ("lax.slice(x, (2, 0), (2, 5))", X),
    "slice_in_dim": ("lax.slice_in_dim(x, 1, -1, axis=1)", X),
    "slice_in_dim stride": ("lax.slice_in_dim(x, None, None, 2, 1)", X),
    "index_in_dim": ("lax.index_in_dim(x, -1, 1, False)", X),
    "index_in_dim keep": ("lax.index_in_dim(x, 2, 0)", X),
    "dynamic_slice": ("lax.dynamic_slice(x, (y, z), (2, 3))", X, ONE, TWO),
    "dynamic_slice far": ("lax.dynamic_slice(x, (y, z), (2, 3))", X, FAR, FAR),
    "dynamic_slice negative": ("lax.dynamic_slice(x, (y, z), (2, 3))", X, BELOW, ONE),
    "dynamic_slice array": ("lax.dynamic_slice(x, y, (2, 2))", X, np.array([1, 3], np.int32)),
    "dynamic_slice unsigned": ("lax.dynamic_slice(x, (y, y), (2, 2))", X, np.uint8(2)),
    "dynamic_slice_in_dim": ("lax.dynamic_slice_in_dim(x, y, 2, 1)", X, ONE),
    "dynamic_index_in_dim": ("lax.dynamic_index_in_dim(x, y, 0, False)", X, TWO),
    "dynamic_update_slice": ("lax.dynamic_update_slice(x, y, (z, z))", X, NEW, ONE),
    "dynamic_update_slice far": ("lax.dynamic_update_slice(x, y, (z, z))", X, NEW, FAR),
    "dynamic_update_slice negative": ("lax.dynamic_update_slice(x, y, (z, 0))", X, NEW, BELOW),
    "dynamic_update_slice_in_dim": (
        "lax.dynamic_update_slice_in_dim(x, y, z, 0)",
        X,
        sample(2, 5),
        ONE,
    ),
    "dynamic_update_index_in_dim": ("lax.dynamic_update_index_in_dim(x, y, z, 0)", X, ROW, TWO),
    "static starts": ("lax.dynamic_slice(x, (-2, 1), (2, 2))", X),
    "integers": ("lax.dynamic_slice(x, (y,), (2,))", np.arange(6, dtype=np.int32), TWO),
}


test_against_jax, test_laws = checks_of(CASES)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: lax.slice(X, (0,), (4,)),
            r"slice: .* one entry for each of the 2 axes of float32\[4,5\]",
        ),
        (
            lambda: lax.slice(X, (0, 0), (4, 6)),
            r"axis 1 of float32\[4,5\] needs 0 <= start <= limit <= 5",
        ),
        (
            lambda: lax.dynamic_slice(X, (0,), (2, 2)),
            "number of operand dimensions .1 vs .*dynamic_slice takes one",
        ),
        (
            lambda: lax.dynamic_slice(X, (0.5, 0), (2, 2)),
            "index arguments to dynamic_slice must be integers",
        ),
        (
            lambda: lax.dynamic_slice(X, (0, 0), (5, 2)),
            r"slice_sizes \(5, 2\), which must fit inside float32\[4,5\]",
        ),
        (
            lambda: lax.dynamic_update_slice(X, NEW.astype(np.int32), (0, 0)),
            "requires arguments to have the same dtypes",
        ),
        (lambda: lax.dynamic_update_slice(X, sample(5, 5), (0, 0)), "must fit inside the operand"),
        (lambda: lax.index_in_dim(X, 4, 0), "index_in_dim: index 4 is out of range"),
    ],
)
def test_messages(call, words: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError), match=words):
        call()
