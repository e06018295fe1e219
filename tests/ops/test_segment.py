"""Sums, products and extremes over segments, beside NumPy's and JAX's."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import errors
from numjet.ops import segment_max, segment_min, segment_prod, segment_sum

RNG = np.random.default_rng(7)
IDS = np.array([0, 3, -1, 0, 9, 2, 2, 0], np.int32)  # one is negative, one too large
DATA = RNG.standard_normal((8, 3)).astype(np.float32)
FUNCTIONS = {"segment_sum": (segment_sum, np.add), "segment_prod": (segment_prod, np.multiply),
             "segment_max": (segment_max, np.maximum), "segment_min": (segment_min, np.minimum)}


def by_numpy(name: str, data: np.ndarray, count: int) -> np.ndarray:
    """The definition, a row at a time, into NumPy's neutral element."""
    start = {"segment_sum": 0, "segment_prod": 1, "segment_max": -np.inf, "segment_min": np.inf}
    if data.dtype.kind == "i":
        start |= {"segment_max": np.iinfo(data.dtype).min, "segment_min": np.iinfo(data.dtype).max}
    out = np.full((count, *data.shape[1:]), start[name], data.dtype)
    for row, segment in zip(data, IDS):
        if 0 <= segment < count:
            out[segment] = FUNCTIONS[name][1](out[segment], row)
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values(name: str, dtype: type) -> None:
    data = (DATA * 4).astype(dtype)
    want = by_numpy(name, data, 5)
    function = FUNCTIONS[name][0]
    for run in (function, nj.jit(function, static_argnums=2)):
        got = run(data, IDS, 5)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(function(data, IDS, 5, bucket_size=3), want, rtol=1e-6)
    stacked = nj.vmap(lambda d: function(d, IDS, 5))(np.stack([data, data + 1]))
    np.testing.assert_allclose(stacked[1], by_numpy(name, data + 1, 5), rtol=1e-6)
    assert function(data, IDS).shape == (10, 3)
    assert function(data, IDS, 0).shape == (0, 3)


def test_gradients_and_modes_are_those_of_jax() -> None:
    script = """
import jax.ops
for name in ("segment_sum", "segment_max", "segment_min"):
    f = getattr(jax.ops, name)
    out[name] = jax.grad(lambda d: (jnp.where(jnp.isfinite(f(d, ids, 5)), f(d, ids, 5), 0) ** 2)
                         .sum())(data)
    out[name + "_clip"] = f(data, ids, 5, mode="clip")
out["prod"] = jax.grad(lambda d: (jax.ops.segment_prod(d, own, 9, unique_indices=True) ** 2)
                       .sum())(data)
"""
    own = RNG.permutation(8).astype(np.int32)
    want = run_in_oracle(script, data=DATA, ids=IDS, own=own)
    for name, (f, _) in FUNCTIONS.items():
        if name != "segment_prod":
            got = nj.grad(lambda d: (jnp.where(jnp.isfinite(f(d, IDS, 5)), f(d, IDS, 5), 0) ** 2)
                          .sum())(DATA)
            np.testing.assert_allclose(got, want[name], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(f(DATA, IDS, 5, mode="clip"), want[name + "_clip"],
                                       rtol=1e-6)
    got = nj.grad(lambda d: (segment_prod(d, own, 9, unique_indices=True) ** 2).sum())(DATA)
    np.testing.assert_allclose(got, want["prod"], rtol=1e-5)


@pytest.mark.parametrize("call, error, words", [
    (lambda: segment_sum([1.0], np.array([0]), 1), TypeError, "data must be an array"),
    (lambda: segment_sum(DATA, IDS * 1.0, 3), TypeError, "segment_ids float32"),
    (lambda: segment_sum(DATA > 0, IDS, 3), TypeError, "does not accept dtype bool"),
    (lambda: segment_sum(DATA, IDS, -1), ValueError, "num_segments must be non-negative"),
    (lambda: segment_sum(DATA, IDS[:3], 3), ValueError, "Incompatible shapes"),
    (lambda: segment_sum(DATA[:0], IDS[:0]), ValueError, "Pass num_segments"),
    (lambda: nj.jit(segment_sum)(DATA, IDS), errors.ConcretizationTypeError, "Pass num_segments"),
])
def test_messages(call, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        call()
