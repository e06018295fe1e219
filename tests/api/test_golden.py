"""Printed jaxprs and kernels of typical functions, compared with files in tests/golden.

NUMJET_UPDATE_GOLDEN=1 writes the files anew; look at the difference before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
x, m, key = jnp.arange(3.0), jnp.ones((4, 3)), nj.random.key(0)


@nj.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, 0.0, 1.0)


clipped.defjvps(lambda t, out, x: t)


@nj.custom_vjp
def scaled(x: Any, s: Any) -> Any:
    return x * s


scaled.defvjp(lambda x, s: (x * s, s), lambda s, ct: (ct * s, None))


def layer(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["w"] + p["b"])


JAXPRS: dict[str, Callable] = {
    "arithmetic": lambda: nj.make_jaxpr(lambda x, y: (x + 1) * y / 2.0 - x**2)(x, 2.0),
    "promotion": lambda: nj.make_jaxpr(lambda n, x: n * x + 1)(jnp.arange(3), x),
    "layer": lambda: nj.make_jaxpr(layer)({"b": x, "w": jnp.ones((3, 3))}, m),
    "grad": lambda: nj.make_jaxpr(nj.grad(lambda w: jnp.sum(jnp.tanh(m @ w) ** 2)))(x),
    "jvp": lambda: nj.make_jaxpr(lambda x: nj.jvp(jnp.sin, (x,), (x,)))(1.0),
    "vmap": lambda: nj.make_jaxpr(nj.vmap(jnp.dot, in_axes=(0, None)))(m, x),
    "jit": lambda: nj.make_jaxpr(nj.jit(lambda x: jnp.sin(x) * 2.0))(x),
    "scan": lambda: nj.make_jaxpr(lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x))(x),
    "while": lambda: nj.make_jaxpr(
        lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, 1))(10),
    "cond": lambda: nj.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0),
    "checkpoint": lambda: nj.make_jaxpr(nj.grad(nj.checkpoint(lambda x: jnp.sin(jnp.sin(x)))))(1.0),
    "custom_jvp": lambda: nj.make_jaxpr(nj.grad(clipped))(0.5),
    "custom_vjp": lambda: nj.make_jaxpr(nj.grad(scaled))(0.5, 3.0),
    "random": lambda: nj.make_jaxpr(lambda k: nj.random.bits(k, (3,)))(key),
    "collective": lambda: nj.make_jaxpr(
        nj.vmap(lambda a: a / lax.psum(a, "i"), axis_name="i"))(x),
    "closure": lambda: nj.make_jaxpr(lambda y: y * x)(x),
}  # fmt: skip
KERNELS: dict[str, Callable] = {
    "elementwise": lambda: nj.jit(lambda x: jnp.tanh(jnp.exp(-x * x) + jnp.sin(x))).lower(m),
    "sum": lambda: nj.jit(lambda x, y, z: jnp.sum(x * 2 * y + z)).lower(m, m, m),
    "rows": lambda: nj.jit(nj.nn.softmax).lower(jnp.ones((32, 64))),
    "columns": lambda: nj.jit(lambda x: jnp.mean(x, axis=0)).lower(jnp.ones((64, 32))),
}


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("NUMJET_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.exists(), f"{path} is not there; run with NUMJET_UPDATE_GOLDEN=1 to write it"
    assert text == path.read_text(), f"{name} changed; NUMJET_UPDATE_GOLDEN=1 accepts the new text"


@pytest.mark.parametrize("name", JAXPRS)
def test_jaxprs(name: str) -> None:
    closed = JAXPRS[name]()
    nj.core.jaxpr_check.check_jaxpr(closed.jaxpr)
    compare(f"jaxpr_{name}.txt", str(closed) + "\n")


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    # Lanes and unrolling depend on the processor; the loops do not.
    words = [w for w in KERNELS[name]().as_text().split(" ")
             if not w.startswith(("lanes=", "unroll=", "grain="))]  # fmt: skip
    text = " ".join(words)
    assert text.count("kernel ") == 1, "one kernel"
    assert all(part in text for part in ("out0", "in0", "for "))


def test_printing_reuses_names_and_nests() -> None:
    text = str(nj.make_jaxpr(nj.jit(lambda x: nj.jit(jnp.sin)(x)))(1.0))
    assert text.count("sin") >= 1 and text.count("{ lambda") == 3
