"""`as_text("stablehlo")`: MLIR's spelling, and what JAX says of arguments and results."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

# Functions, and what they are lowered for, of which the whole text is JAX's.
_SAME = """
jax.jit(lambda x: x * 2, donate_argnums=0) | x
jax.jit(lambda x, y: x + y, donate_argnums=(0, 1), keep_unused=True) | x, x
jax.jit(lambda x, y: (y + 1, x - 1), donate_argnums=(0, 1)) | x, i
jax.jit(lambda x, y: x) | 1.0, 2.0
jax.jit(lambda x, y: x, keep_unused=True) | 1.0, 2.0
jax.jit(lambda x: (x, None, {"a": [x]})) | x
jax.jit(lambda x: jax.jit(jnp.cos)(x) + 1) | np.int32(1)
jax.jit(lambda x: (x > 0, x.T, jnp.max(x))) | m
jax.jit(lambda x: jnp.sum(x, 0)) | m
jax.jit(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())))) | m, m.T
jax.jit(lambda x: lax.slice(x, (0, 0), (2, 3), (1, 2))) | m
jax.jit(lambda x: lax.pad(x, 0.0, [(1, 0, 0), (0, 1, 2)])) | m
jax.jit(lambda x: lax.concatenate([x, x], 1)) | m
jax.jit(lambda x: x + lax.iota(jnp.float32, 3)) | x
jax.jit(lambda x: x * np.array([np.inf, 0.1, 3.14159274], np.float32)) | x
jax.jit(lambda x: x * (1.5 + 2j)) | x.astype(jnp.complex64)
jax.jit(lambda x: lax.while_loop(lambda c: jnp.all(c < 3), lambda c: c + 1, x)) | x
jax.jit(lambda x: lax.select(x > 0, x, lax.rev(x, (0,)))) | x
jax.jit(lambda x: lax.reduce_precision(x, 5, 10)) | x
jax.jit(named) | x
""".strip().splitlines()
_VALUES = """
x, i, m = jnp.arange(3.0), jnp.arange(3), jnp.ones((2, 3))
def named(x):
    return x
"""
_TEXTS = """
import numpy as np
from jax import lax
exec(str(values))
found = []
for case in cases:
    function, given = str(case).rsplit("|", 1)
    found.append(eval(function).lower(*eval(f"({given},)")).as_text())
out["texts"] = np.array(found)
"""


def test_texts_are_those_of_jax() -> None:
    theirs = run_in_oracle(_TEXTS, values=_VALUES, cases=np.array(_SAME))["texts"].tolist()
    scope = {"jax": nj, "jnp": jnp, "np": np, "lax": lax}
    exec(_VALUES, scope)
    for case, want in zip(_SAME, theirs, strict=True):
        function, given = case.rsplit("|", 1)
        with nj.default_matmul_precision("default"):
            lowered = eval(function, scope).lower(*eval(f"({given},)", scope))
        assert lowered.as_text("stablehlo") == want, case


def _more() -> dict[str, Any]:
    square = np.ones((2, 2), np.float32)
    return {
        "gradient": (nj.grad(lambda x: jnp.sum(jnp.tanh(x @ x))), square),
        "convolution": (
            lambda x: lax.conv(x, jnp.ones((1, 1, 2, 2)), (1, 1), "SAME"), square[None, None]),
        "sort": (lambda x: (jnp.sort(x), lax.top_k(x, 2), jnp.argmax(x), jnp.cumsum(x)),
                 square[0]),
        "gather": (lambda x: x[jnp.array([0, 1, 0])].at[jnp.array([0, 0])].add(1.0), square),
        "functions": (
            lambda x: nj.jit(lambda y: y * 2)(x) + nj.jit(lambda z: z * 3)(x), square),
        "loops": (lambda x: lax.fori_loop(0, 3, lambda i, c: lax.while_loop(
            lambda q: q.sum() < i, lambda q: nj.jit(jnp.sin)(q) + 1, c), x), square),
        "checkpoint": (nj.grad(nj.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), np.float32(1)),
        "callback": (
            lambda x: nj.pure_callback(np.sin, nj.ShapeDtypeStruct((2, 2), x.dtype), x), square),
        "narrow": (lambda x: (x.astype(jnp.int4) + jnp.array([1, -2], jnp.int4),
                              x.astype(jnp.float8_e4m3fn) * 2, x.astype(jnp.bfloat16) / 3),
                   square),
        "special": (lambda x: (nj.scipy.special.erf(x), lax.nextafter(x, 2 * x)), square),
        "bytes": (lambda x: x + np.arange(200, dtype=np.float32), square[0, 0]),
        "window": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "SAME"),
                   square),
        "cholesky": (jnp.linalg.cholesky, square),
        "nothing": (lambda x: (), square),
    }  # fmt: skip


_PARSE = """
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
found = []
for text in texts:
    with mlir.make_ir_context():
        found.append(str(ir.Module.parse(str(text))))
out["texts"] = np.array(found)
"""


def test_mlir_reads_texts_and_writes_them_so() -> None:
    texts = [nj.jit(f).lower(x).as_text("stablehlo") for f, x in _more().values()]
    again = run_in_oracle(_PARSE, texts=np.array(texts))["texts"].tolist()
    for name, text, want in zip(_more(), texts, again, strict=True):
        assert text == want, name


@pytest.mark.parametrize("alias", [False, True])
def test_stablehlo_is_shown_under_the_name_of_jax(alias: bool) -> None:
    start = "import numjet.as_jax, jax" if alias else "import numjet as jax"
    code = f"{start}; print(jax.jit(lambda x: x * 2).lower(1.0).as_text())"
    text = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert text.startswith("module @jit__lambda attributes" if alias else "kernel scalar_1(")
    assert ('jax.result_info = "result"' in text) is alias
