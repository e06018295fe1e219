"""Loops behind products: the same bits as apart, no temporary, and nothing run where it may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.cpu.fusion import epilogues
from numjet.cpu.kernels.idioms import lanes_of
from numjet.cpu.kernels.products import gemm_tiles
from numjet.cpu.program import cache as program_cache
from numjet.tree_util import tree_leaves

RNG = np.random.default_rng(0)

STRIP = gemm_tiles.tile_vectors() * lanes_of("float")  # columns


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def text(f: Callable, *args: Any) -> str:
    return nj.jit(f).lower(*args).as_text()


def both(monkeypatch: pytest.MonkeyPatch, f: Callable, *args: Any) -> tuple[str, list, list]:
    """(the program's text, its results, those of loops and product apart)."""
    monkeypatch.setattr(program_cache, "key", lambda *_: None)
    found = []
    with config.check_ir(True):
        shown = text(f, *args)
        found.append([np.asarray(x) for x in tree_leaves(nj.jit(f)(*args))])
        monkeypatch.setattr(epilogues, "pair", lambda fusion: {})
        apart = nj.jit(lambda *xs: f(*xs))
        assert "behind it" not in apart.lower(*args).as_text()
        found.append([np.asarray(x) for x in tree_leaves(apart(*args))])
    return shown, found[0], found[1]


def layer(x: Any, w: Any, b: Any) -> Any:
    return jnp.tanh(x @ w + b)


SIZES = [
    (128, 256, 256),  # pieces of whole strips
    (131, 300, 193),  # strips and blocks that end early
    (600, 64, 70),
    (97, 1300, 130),  # the depth in two blocks
    (20, 30, 40),  # written for its shape
    (33, 17, 9),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_bias_and_activation(
    size: tuple[int, int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = size
    with config.enable_x64(dtype is np.float64):
        args = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype) / 8, normal(n, dtype=dtype)
        shown, joined, apart = both(monkeypatch, layer, *args)
    assert shown.count("special dot_general") == shown.count("behind it") == 1
    assert shown.count("kernel ") == 1
    np.testing.assert_array_equal(joined[0], apart[0])
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(joined[0], np.tanh(args[0] @ args[1] + args[2]), atol=tolerance)


CASES: dict[str, tuple[Callable, tuple]] = {
    "residual": (lambda x, w: x + 0.5 * (x @ w), (normal(96, 150), normal(150, 150))),
    "turned": (lambda x, w: nj.nn.gelu(x.T @ w.T), (normal(150, 96), normal(130, 150))),
    "cast": (lambda x, w: (x @ w).astype(jnp.bfloat16), (normal(100, 90), normal(90, 140))),
    "mask": (lambda x, w: jnp.where(jnp.tri(100, 140, dtype=bool), x @ w, -1.0),
             (normal(100, 90), normal(90, 140))),
    "two results": (lambda x, w: (lambda y: (jnp.tanh(y), y > 0))(x @ w),
                    (normal(100, 90), normal(90, 140))),
    "kept": (lambda x, w: (lambda y: (y, jnp.tanh(y)))(x @ w), (normal(100, 90), normal(90, 140))),
    "batches": (lambda q, k: jnp.exp(-jnp.abs(jnp.einsum("bmhk,bnhk->bhmn", q, k))),
                (normal(2, 70, 3, 32), normal(2, 80, 3, 32))),
    "view": (lambda q, w, b: nj.nn.relu((q.reshape(140, 32) @ w).reshape(2, 70, 100) + b),
             (normal(2, 70, 32), normal(32, 100), normal(100))),
    # Rows that one strip holds, which ends early.
    "softmax": (lambda q, k: nj.nn.softmax(q @ k.transpose(0, 2, 1)),
                (normal(6, 60, 64), normal(6, STRIP - 3, 64))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_may_follow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = CASES[name]
    shown, joined, apart = both(monkeypatch, f, *args)
    assert shown.count("behind it") == 1
    # Rows of few elements lie side by side where they are apart: sums in another order.
    tolerance = 2e-6 if name == "softmax" else 0
    for one, other in zip(joined, apart, strict=True):
        np.testing.assert_allclose(one, other, tolerance)


def test_the_temporary_is_gone() -> None:
    """Golden: the product is nowhere but in pieces; memory and operations are those of the rest."""
    x, w = normal(128, 256), normal(256, 256)
    f = nj.jit(lambda x, w: (x @ w).astype(jnp.bfloat16))
    lowered = f.lower(x, w)
    step, blank, head, *loops = lowered.as_text().splitlines()
    assert step == (
        "%3:bf16[128,256]@output0 = special dot_general(%0:f32[128,256]@input0, "
        "%1:f32[256,256]@input1), behind_2 behind it"
    )
    assert not blank and head.startswith("kernel behind_2(piece: f32[")
    assert "out0" in loops[-1] and "bfloat16(piece[i, j])" in loops[-1].replace("bf16", "bfloat16")
    compiled = lowered.compile()
    assert compiled.memory_analysis()["temp_size_in_bytes"] == 0
    assert compiled.cost_analysis()["bytes accessed"] == x.nbytes + w.nbytes + 2 * 128 * 256
    assert compiled.cost_analysis()["flops"] >= 2 * 128 * 256 * 256


def test_an_operand_of_the_product_is_not_overwritten() -> None:
    """Its memory may be given away, but other pieces still read it."""
    x, w = normal(200, 200), normal(200, 200) / 8
    f = nj.jit(lambda x, w: x + jnp.tanh(x @ w), donate_argnums=0)
    assert "behind it" in f.lower(x, w).as_text()
    np.testing.assert_allclose(f(jnp.asarray(x), w), x + np.tanh(x @ w), atol=1e-4)


def test_what_does_not_follow() -> None:
    """Another reader before the loops; sums over columns; a product read out of step."""
    x, w = normal(100, 90), normal(90, 100)
    assert "behind it" not in text(lambda x, w: (x @ w) + (x @ w).T, x, w)
    assert "behind it" not in text(lambda x, w: (x @ w).sum(0), x, w)
    assert "behind it" not in text(lambda x, w: jnp.tanh((x @ w)[:50]), x, w)
    assert "behind it" not in text(lambda x, w: nj.nn.softmax((x @ w)[:50]), x, w)
    q, k = normal(6, 60, 64), normal(6, 64, 2 * STRIP + 1)  # rows of more than one strip
    assert "behind it" not in text(lambda q, k: nj.nn.softmax(q @ k), q, k)
    assert "behind it" not in text(lambda x, w: jnp.tanh((x @ w)[:, ::-1]), x, w)


def test_sums_over_columns_stand_behind_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradients of an activation and of a bias: one behind the product, one of its results."""

    def f(x: Any, w: Any, slope: Any, b: Any) -> Any:
        y = (x @ w).reshape(4, 40, 130) * slope
        return y, b - 0.1 * y.sum((0, 1)), jnp.abs(y).max((0, 1))

    args = normal(160, 100), normal(100, 130), normal(4, 40, 130), normal(130)
    # The maximum is of what is not stored: all of it is one kernel.
    assert "behind it" not in text(f, *args)
    shown, joined, apart = both(monkeypatch, lambda *args: f(*args)[:2], *args)
    assert shown.count("behind it") == 1 and shown.count("kernel columns") == 1
    np.testing.assert_array_equal(joined[0], apart[0])
    np.testing.assert_allclose(joined[1], apart[1], rtol=1e-5, atol=1e-5)


def test_inside_a_loop() -> None:
    """A scan whose body has a product and its activation."""
    x, w = normal(30, 40), normal(40, 40) / 8

    def f(x: Any, w: Any) -> Any:
        return nj.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x @ w), x)

    assert "behind it" in text(f, x, w)
    expected = x
    for _ in range(3):
        expected = np.tanh(expected @ w)
    np.testing.assert_allclose(nj.jit(f)(x, w), expected, atol=1e-4)


def test_a_product_does_not_wait() -> None:
    """Loops that come later, or move much more than the product, do not keep it back."""
    x, w = normal(100, 90), normal(90, 100)

    def late(x: Any, w: Any) -> Any:
        first = x @ w
        return jnp.tanh(first + jnp.cumsum(jnp.exp(w.T @ x.T), 0))

    def wide(x: Any, w: Any, *rest: Any) -> Any:
        y = x @ w
        return [part - 0.1 * y for part in rest]

    steps = [line for line in text(late, x, w).splitlines() if "special dot_general" in line]
    assert ["behind it" in step for step in steps] == [False, True]  # the second has exp behind it
    assert "behind it" not in text(wide, x, w, *[normal(100, 100) for _ in range(4)])
    assert "behind it" in text(wide, x, w, normal(100, 100))
