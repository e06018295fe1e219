"""Slices, gathers and scatters at places outside, one of another: XLA makes one slice of two."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xla.plugin import needs_plugin, run

import numjet.numpy as jnp
from numjet import lax

X = np.arange(1, 17, dtype=np.float32)
PLACES = [(a, b) for a in (-20, -5, 0, 3, 12, 17) for b in (-9, -3, 0, 2, 6, 7, 8, 30)]


def part(a: Any) -> Any:
    return lax.dynamic_slice(X, (a,), (8,))


CHAINS: dict[str, Callable] = {
    "slice": lambda a, b: lax.dynamic_slice(part(a), (b,), (3,)),
    "small": lambda a, b: lax.dynamic_slice(part(a), (b.astype(np.int8),), (3,)),
    "rows": lambda a, b: lax.dynamic_slice(part(a).reshape(4, 2), (b, a), (2, 1)),
    "clipped": lambda a, b: part(a).at[b].get(mode="clip"),
    "filled": lambda a, b: part(a).at[b].get(mode="fill"),
    "set": lambda a, b: part(a).at[b].set(-1.0),
    "multiplied": lambda a, b: part(a).at[b].multiply(0.5),
    "added, clipped": lambda a, b: part(a).at[b].add(0.5, mode="clip"),
    "column": lambda a, b: part(a).reshape(2, 4).at[:, b].max(5.0),
    "row": lambda a, b: part(a).reshape(4, 2)[None].at[0, b].min(jnp.array([5.0, 7.0])),
    "update": lambda a, b: lax.dynamic_update_slice(part(a), part(b)[:3], (b,)),
}


@needs_plugin
@pytest.mark.parametrize("name", CHAINS)
def test_windows_of_windows(name: str) -> None:
    def all_of(a: Any, b: Any) -> Any:
        return jnp.stack([CHAINS[name](p, q) for p, q in zip(a, b, strict=True)])

    a, b = np.array(PLACES, np.int32).T
    want = np.stack([CHAINS[name](*map(jnp.int32, p)) for p in PLACES])
    np.testing.assert_array_equal(run(all_of, (a, b))[0], want)
