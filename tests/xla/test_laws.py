"""Every primitive's samples executed on XLA's CPU plugin: equal to what eager code gives."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from xla.plugin import needs_plugin, run

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.core.primitive import REGISTRY
from numjet.xla import hlo

with config.enable_x64(True):
    from laws.samples import SAMPLES, Sample

pytestmark = needs_plugin
# A Schur form may have its eigenvalues in any order; test_linalg.py puts it together again.
NOT_UNIQUE = {"schur"}
EXECUTED = [
    s for s in SAMPLES
    if REGISTRY[s.primitive].collective
    or s.primitive not in NOT_UNIQUE and not hlo.unsupported(REGISTRY[s.primitive])
]


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with config.enable_x64(True):
        yield


def memory(value: Any) -> list[np.ndarray]:
    return [np.asarray(getattr(x, "_value", x)) for x in nj.tree.leaves(value)]


@pytest.mark.parametrize("sample", EXECUTED, ids=[f"{i}-{s.id}" for i, s in enumerate(EXECUTED)])
def test_the_plugin_gives_what_eager_code_gives(sample: Sample) -> None:
    got, want = run(sample.fun, sample.args), memory(sample.fun(*sample.args))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if b.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
            continue
        wide = np.complex128 if b.dtype.kind == "c" else np.float64
        parts = b.dtype.itemsize // (2 if b.dtype.kind == "c" else 1)
        tolerance = {8: 1e-9, 4: 1e-5}.get(parts, 1e-2)
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op", ["minimum", "maximum", "cummin", "cummax", "min", "max"])
def test_nan_is_the_extreme_of_all(op: str) -> None:
    x = np.tile(np.array([np.nan, 1, -3, np.nan, 2, 0], np.float32), 8)
    functions = {"cummin": nj.lax.cummin, "cummax": nj.lax.cummax}
    args = (x, x[::-1].copy()) if op in ("minimum", "maximum") else (x[::-1].reshape(6, 8).copy(),)
    fun = functions.get(op) or getattr(jnp, op)
    (got,), (want,) = run(fun, args), memory(fun(*args))
    np.testing.assert_array_equal(got, want)
