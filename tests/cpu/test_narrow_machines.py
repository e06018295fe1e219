"""Compiled programs on other processors of the architecture: narrow vectors, no multiply-adds, wide
vectors without what the direct generator wants.

A process of its own for each: what may be used is read once, when the compiler is first used.
"""

from __future__ import annotations

import os
import subprocess
import sys

import on_level
import pytest
import python_process

from numjet.base import config

PROGRAMS = """
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet import lax

rng = np.random.default_rng(0)
at = jnp.asarray(rng.integers(0, 40, 60))
functions = {
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "cummax": lambda x: lax.cummax(x, 1, reverse=True),
    "sort": lambda x: jnp.sort(x, 0),
    "argsort": lambda x: jnp.argsort(x, 1),
    "product": lambda x: x @ x.T,
    "small product": lambda x: x[:8, :8] @ x[:8, :8],
    "products": lambda x: x.reshape(4, 10, 37) @ x.reshape(4, 37, 10),
    "matrix-vector": lambda x: x @ x[0],
    "scatter": lambda x: x.at[at].add(x[at]),
    "histogram": lambda x: jnp.zeros(40, x.dtype).at[at].add(1),
    "transpose": lambda x: x.T,
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "scan": lambda x: lax.scan(lambda c, t: (jnp.tanh(c + t), c), x[0], x)[1],
    "softmax": lambda x: nj.nn.softmax(x, 1),
    "columns": lambda x: x.var(0),
    "chain": lambda x: jnp.exp(x) * jnp.sin(x),
    "transform": lambda x: jnp.abs(jnp.fft.rfft2(x[:32, :32].astype(jnp.float32))),
    "integers": lambda x: (x * 9).astype(jnp.int8),
}
square = rng.standard_normal((9, 6, 6)).astype(np.float32) + 4 * np.eye(6, dtype=np.float32)
for function in (
    jnp.linalg.det,
    jnp.linalg.inv,
    lambda x: jnp.linalg.cholesky(x @ x.swapaxes(1, 2)),
    lambda x: lax.linalg.triangular_solve(x, x, left_side=True, lower=True),
    lambda x: jnp.linalg.svd(x)[1],
):
    got, want = np.asarray(nj.jit(function)(square)), np.asarray(function(square))
    assert abs(got - want).max() <= 1e-4 * abs(want).max(), function
for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
    x = jnp.asarray(rng.standard_normal((40, 37)), dtype)
    for name, function in functions.items():
        got, want = (np.asarray(f(x), np.float32) for f in (nj.jit(function), function))
        tolerance = 1e-4 if dtype == jnp.float32 else 0.05
        assert abs(got - want).max() <= tolerance * abs(want).max() + 1e-6, (name, dtype)
x = rng.standard_normal((520, 541)).astype(np.float32)
y = rng.standard_normal((541, 530)).astype(np.float32)
assert abs(np.asarray(nj.jit(lambda x, y: x @ y)(x, y)) - x @ y).max() <= 1e-3
# Casts clamp, and NaN is 0, at the edges of each dtype and beside them.
edges = [0, 0.99, -0.0, 1.5, -1.5, 1e-40, 1e20, -1e20, np.inf, -np.inf, np.nan]
for bits in (7, 8, 15, 16, 31, 32):
    edges += [s * (2.0**bits + k) for k in (-129, -1, -0.5, 0, 1, 256) for s in (1, -1)]
with nj.enable_x64(True):
    for dtype in ("float16", "float32", "float64"):
        x = np.array(edges * 4).astype(dtype)
        for to in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
            got = np.asarray(nj.jit(lambda x: x.astype(to))(x))
            info, wide = np.iinfo(to), np.where(np.isnan(x), 0, x.astype(np.float64))
            want = np.trunc(np.clip(wide, info.min, info.max)).astype(to)
            assert (got == want).all(), (dtype, to)
# Long bodies are two or four vectors a round where registers are few: every rest of rows.
for n in (63, 64, 65, 80, 127, 513, 1000):
    x = rng.uniform(0.01, 0.99, n).astype(np.float32)
    got = nj.jit(nj.scipy.special.ndtri)(x)
    assert abs(got - np.concatenate([nj.scipy.special.ndtri(v[None]) for v in x])).max() < 1e-6
# Accumulators in memory are written whole: loads would wait for masked stores.
x = rng.standard_normal((4001, 192)).astype(np.float32)
for name in ("max", "min"):
    compiled = nj.jit(lambda x: getattr(x, name)(0)).lower(x).compile()
    assert "maskmov" not in compiled.as_text("assembly"), name
    x[3, 5], x[77, 8] = np.nan, np.inf
    assert np.array_equal(compiled(x), getattr(x, name)(0), equal_nan=True), name
print("agree")
"""


# `make test` and `make portability` run much more than this on the levels (tools/on_level.py).
@pytest.mark.skipif(config.cpu.value != "native", reason="these tests run at one level already")
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_programs_agree_with_their_references(level):
    if on_level.left_out(level):
        pytest.skip(on_level.left_out(level))
    environment = {
        **os.environ, "NUMJET_CPU": level, "NUMJET_CACHE_DIR": "",
        "PYTHONPATH": python_process.PATH,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS], env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "agree\n", done.stderr
