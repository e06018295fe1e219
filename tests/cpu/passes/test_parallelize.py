"""Reductions that threads share: what they keep does not grow with the number of elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

REDUCTIONS: dict[str, Callable] = {
    "sum": lambda x: x.sum(dtype=jnp.int64),
    "of floats": lambda x: (x.astype(jnp.float64) ** 2).sum(),
    "argmax": jnp.argmax,
    "count": jnp.count_nonzero,
    "nonzero": lambda x: jnp.nonzero(x, size=7)[0],
    "several": lambda x: (x.sum(), x.max(), (x > 1).all()),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("n", [2**31 + 100, 2**38])
def test_reductions_of_any_length_compile(name: str, n: int) -> None:
    with nj.enable_x64(True):
        nj.jit(REDUCTIONS[name]).lower(nj.ShapeDtypeStruct((n,), np.int8)).compile()


def test_chunks_beyond_the_most_are_longer_and_all_are_added() -> None:
    # Whole numbers: the order of additions does not matter. Long chains make chunks of few.
    x = np.arange(1_500_001, dtype=np.int64) % 7

    def total(x: nj.Array) -> nj.Array:
        y = x
        for k in range(40):
            y = (y * y + k) % 1_000_003
        return y.sum()

    y = x
    for k in range(40):
        y = (y * y + k) % 1_000_003
    with nj.enable_x64(True):
        assert nj.jit(total)(x) == y.sum()
