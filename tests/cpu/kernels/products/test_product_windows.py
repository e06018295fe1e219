"""Products that read parts of arrays in place, and write where a transpose would put their results:
the same numbers as NumPy's, and no kernel that only moves elements but where that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def attention(s: Any, space: Any = jnp) -> Any:
    """Heads out of one array of queries, keys and values, and back into rows."""
    q, k, v = (s[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    mixed = space.abs(q @ k.transpose(0, 1, 3, 2)) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(s.shape[0], s.shape[1], -1)


# name: function of arrays and of the module of NumPy's functions, operands
PLAIN: dict[str, tuple[Callable, tuple]] = {
    "heads": (attention, (normal(2, 40, 3, 4, 32),)),
    "heads of odd sizes": (attention, (normal(3, 37, 3, 2, 19),)),
    "rows of the left": (lambda x, w, _: x[20:90] @ w, (normal(100, 60), normal(60, 70))),
    "columns of the left": (lambda x, w, _: x[:, 7:67] @ w, (normal(90, 100), normal(60, 70))),
    "columns of the right": (lambda x, w, _: x @ w[:, 5:75], (normal(90, 60), normal(60, 101))),
    "depths of the right": (lambda x, w, _: x @ w[3:63].T[:50].T, (normal(90, 60), normal(99, 70))),
    "turned": (lambda x, w, _: x[10:70, :50].T @ w[30:90].T[:40].T,
               (normal(90, 60), normal(99, 70))),
    "large": (lambda x, w, _: x[:, 100:500] @ w[:400, 3:], (normal(300, 600), normal(500, 303))),
    "a row": (lambda x, w, _: x[2] @ w[:, 100:400], (normal(3, 300), normal(300, 500))),
    "a column": (lambda x, w, _: w[:, 50:650] @ x[1], (normal(3, 600), normal(1000, 700))),
    "batches": (lambda x, w, _: x[1:3] @ w[:, 2:4].transpose(1, 0, 2)[:, :30],
                (normal(4, 40, 30), normal(40, 5, 60))),
    "units": (lambda x, w, _: x[:, None, 2:].transpose(2, 1, 0)[:, 0] @ w[:90],
              (normal(90, 42), normal(95, 50))),
    "result of several": (lambda x, w, s: s.einsum("amk,bkn->bman", x, w),
                          (normal(3, 40, 30), normal(2, 30, 20))),
}  # fmt: skip


def moves(text: str) -> bool:
    """Whether a program has kernels beside products (and the loops behind these)."""
    return any(word in text for word in ("kernel nest", "kernel loop", "kernel rows", "copy "))


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64], ids=str)
def test_parts_are_read_in_place(name: str, dtype: Any) -> None:
    f, args = PLAIN[name]
    with config.enable_x64(dtype is np.float64), config.check_ir(True):
        args = tuple(x.astype(dtype) for x in args)
        if f is attention:
            want = attention(args[0].astype(np.result_type(dtype, np.float64)), np)
            g = nj.jit(attention)
        else:
            want = f(*[x.astype(np.result_type(dtype, np.float64)) for x in args], np)
            g = nj.jit(lambda *xs: f(*xs, jnp))
        text = g.lower(*args).as_text()
        np.testing.assert_allclose(g(*args), want, rtol=1e-4, atol=1e-3)
    if dtype is not np.complex64:
        assert "dot_general" in text and not moves(text.replace("kernel behind", ""))


COPIES: dict[str, tuple[Callable, tuple]] = {
    "every other": (lambda x, w: x[:, ::2] @ w, (normal(90, 120), normal(60, 70))),
    "a small part": (lambda x, w: x[:, :60] @ w, (normal(90, 600), normal(60, 70))),
    "a column": (lambda x, w: w[:, 100:400] @ x[:, 1], (normal(300, 3), normal(300, 500))),
    "of something computed": (lambda x, w: jnp.tanh(x)[:60] @ w, (normal(90, 60), normal(60, 70))),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_is_copied_first(name: str) -> None:
    f, args = COPIES[name]
    assert moves(nj.jit(f).lower(*args).as_text())
    np.testing.assert_allclose(nj.jit(f)(*args), f(*map(jnp.asarray, args)), atol=1e-3)


def test_a_result_that_others_read_stays_as_it_is() -> None:
    x, w = normal(3, 40, 30), normal(2, 30, 20)

    def f(x: Any, w: Any) -> Any:
        y = jnp.einsum("amk,bkn->ambn", x, w)
        return y, y.transpose(2, 1, 0, 3)

    one, other = nj.jit(f)(x, w)
    np.testing.assert_allclose(one, np.einsum("amk,bkn->ambn", x, w), atol=1e-4)
    np.testing.assert_array_equal(other, np.asarray(one).transpose(2, 1, 0, 3))


def test_loops_behind_products_of_parts() -> None:
    """The loops read what the product writes, wherever that is."""
    s, b = normal(2, 40, 3, 4, 32), normal(40, 4, 32)

    def f(s: Any, b: Any) -> Any:
        q, k = (s[:, :, i].transpose(0, 2, 1, 3) for i in range(2))
        weights = nj.nn.softmax(q @ k.transpose(0, 1, 3, 2))
        return jnp.tanh((weights @ k).transpose(0, 2, 1, 3) + b)

    np.testing.assert_allclose(nj.jit(f)(s, b), f(jnp.asarray(s), jnp.asarray(b)), atol=1e-5)
    slope = nj.grad(lambda s: f(s, b).sum())
    np.testing.assert_allclose(nj.jit(slope)(s), slope(jnp.asarray(s)), atol=1e-4)


def test_a_donated_whole_is_not_overwritten_while_its_parts_are_read() -> None:
    x, w = normal(200, 200), normal(100, 200) / 8
    f = nj.jit(lambda x, w: x + jnp.tanh(x[:, 50:150] @ w), donate_argnums=0)
    np.testing.assert_allclose(f(jnp.asarray(x), w), x + np.tanh(x[:, 50:150] @ w), atol=1e-4)


def turned(left: tuple, right: tuple, contract: int) -> tuple[str, float]:
    """The loops of a product with the left operand's axis `contract`, and its largest error."""
    x, y = normal(*left), normal(*right)
    f = nj.jit(lambda x, y: jnp.tensordot(x, y, ((contract,), (0,))))
    want = np.tensordot(x.astype(np.float64), y, ((contract,), (0,)))
    return f.lower(x, y).as_text(), float(np.abs(f(x, y) - want).max())


def test_a_large_left_operand_is_turned_before() -> None:
    """Read with a large stride it would take a line of the cache an element."""
    text, error = turned((513, 260), (513, 200), 0)
    assert "kernel" in text and "dot_general" in text and error < 1e-3
    for left, right, contract in (
        ((260, 513), (513, 200), 1),  # as it is to be read
        ((100, 260), (100, 200), 0),  # not deep
        ((513, 260), (513, 64), 0),  # read a few times only
    ):
        text, error = turned(left, right, contract)
        assert "kernel" not in text and error < 1e-3


def test_a_turned_batch_and_part() -> None:
    x, y = normal(2, 300, 3, 280), normal(2, 300, 200)
    f = nj.jit(lambda x, y: jnp.einsum("bki,bkj->bij", x[:, :, 1], y))
    want = np.einsum("bki,bkj->bij", x[:, :, 1].astype(np.float64), y)
    np.testing.assert_allclose(f(x, y), want, atol=1e-3)
