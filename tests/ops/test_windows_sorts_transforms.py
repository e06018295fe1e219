"""Window reductions, sorting and Fourier transforms: values, derivatives, batching, against JAX."""

from __future__ import annotations

import numpy as np
import pytest
from same_script import compare

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.ops.fft import fft
from numjet.test_util import check_grads

WINDOW = """
rng = np.random.default_rng(0)
def draw(*shape):
    return np.round(rng.standard_normal(shape) * 4, 1).astype("float32")  # with ties
cases = [
    ((1, 2, 2, 1), (1, 2, 2, 1), "SAME", None, None),
    ((1, 3, 2, 1), (1, 1, 2, 1), "VALID", None, None),
    ((1, 3, 2, 1), (1, 2, 2, 1), [(0, 0), (1, 2), (2, 0), (0, 0)], None, (1, 2, 1, 1)),
    ((1, 2, 3, 2), (1, 1, 1, 1), "SAME", (1, 2, 1, 1), None),
]
for i, (window, strides, *options) in enumerate(cases):
    x = draw(2, 7, 6, 3)
    for name, start in (("add", 0.), ("max", -np.inf), ("min", np.inf)):
        op = getattr(lax, name)
        f = lambda x: reduce_window(x, start, op, window, strides, *options)
        y = f(x)
        out[f"~{i}{name}"], out[f"~jit{i}{name}"] = y, jit(f)(x)
        out[f"~vmap{i}{name}"] = vmap(f, 1)(draw(2, 3, 7, 6, 3))
        c = draw(*y.shape)
        if i < 2 or name == "add":
            g = grad(lambda x: (f(x) * c).sum())
            out[f"~grad{i}{name}"], out[f"~jitgrad{i}{name}"] = g(x), jit(g)(x)
            out[f"~vgrad{i}{name}"] = vmap(g)(draw(3, 2, 7, 6, 3))
    out[f"~any{i}"] = reduce_window(x, 1.5, lambda a, b: a + b, window, strides, *options)
x = rng.integers(-50, 50, (9, 8)).astype("int32")
out["int"] = reduce_window(x, np.int32(-2**31), lax.max, (3, 3), (1, 1), "SAME")
"""
SORT = """
rng = np.random.default_rng(0)
x = np.round(rng.standard_normal((5, 300)) * 3).astype("float32")
x[1, 3], x[1, 7], x[2, 5] = np.nan, -np.inf, -0.
for dtype in ("float32", "int32", "uint8", "bool", "bfloat16", "float16", "complex64"):
    whole = dtype in ("int32", "uint8", "bool")
    v = jnp.asarray(np.nan_to_num(x, neginf=-9).astype("int32") if whole else x).astype(dtype)
    for axis in (0, 1):
        out[f"{dtype}{axis}"] = lax.sort(v, dimension=axis)
        place = np.arange(v.size, dtype="int32").reshape(v.shape)
        out[f"key{dtype}{axis}"] = lax.sort((v, place), dimension=axis, num_keys=1)[1]
        both = lambda v: lax.sort((v, place), dimension=axis, num_keys=1)
        out[f"jit{dtype}{axis}"] = jit(both)(v)[1]
    if dtype not in ("complex64", "bool"):
        values, order = lax.top_k(v, 7)
        out[f"top{dtype}"], out[f"order{dtype}"] = values, order
a, b = np.round(x[:, :40]), rng.standard_normal((5, 40)).astype("float32")
for i, y in enumerate(lax.sort((a, b, -b), dimension=0, num_keys=2)):
    out[f"two{i}"] = y
z = rng.standard_normal((4, 6)).astype("float32")
w = rng.standard_normal((4, 6)).astype("float32")
out["~grad"] = grad(lambda z: (lax.sort(z) * w).sum())(z)
out["~gradkv"] = grad(lambda z: (lax.sort((w, z), dimension=0, num_keys=1)[1] * w).sum())(z)
out["~gradtop"] = grad(lambda z: (lax.top_k(z, 3)[0] * w[:, :3]).sum())(z)
out["vmap"] = vmap(lax.sort, 1, 1)(z)
out["vmaptop"] = vmap(lambda z: lax.top_k(z, 2)[1], 1)(z)
out["vgrad"] = vmap(grad(lambda z: (lax.sort(z) * w[0]).sum()))(z)
"""
FFT = """
rng = np.random.default_rng(0)
def draw(*shape, c=False):
    x = rng.standard_normal(shape).astype("float32")
    return (x + 1j * rng.standard_normal(shape)).astype("complex64") if c else x
for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
    for lengths in ((6,), (5,), (4, 6), (3, 4, 5)):
        c = kind != "RFFT"
        shape = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
        x = draw(2, *shape, c=c)
        f = lambda x: fft(x, kind, lengths)
        y = f(x)
        out[f"~{kind}{lengths}"], out[f"~jit{kind}{lengths}"] = y, jit(f)(x)
        w = draw(*y.shape, c=kind != "IRFFT")
        out[f"~grad{kind}{lengths}"] = grad(lambda x: (f(x) * w).sum().real)(x)
        out[f"~vmap{kind}{lengths}"] = vmap(f, 1)(draw(2, 3, *shape, c=c))
"""


@pytest.mark.oracle
@pytest.mark.parametrize("script", [WINDOW, SORT, FFT], ids=["window", "sort", "fft"])
def test_as_the_oracle(script: str) -> None:
    compare(script, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.sort(jnp.ones(3), dimension=1), ValueError, "out of bounds"),
        (lambda: lax.top_k(jnp.ones(3), 4), ValueError, "no larger than size along axis"),
        (lambda: fft(jnp.ones(3), "DCT", (3,)), ValueError, "Unknown FFT type"),
        (lambda: fft(jnp.ones(4), "FFT", (3,)), ValueError, "Pad or slice"),
    ],
)
def test_mistakes_are_explained(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_empty_sorts() -> None:
    assert lax.sort(jnp.zeros((0, 3)), dimension=0).shape == (0, 3)
    assert np.asarray(lax.top_k(jnp.ones(3), 0)[0]).shape == (0,)


@pytest.mark.parametrize("window", [(5, 5), (3, 1), (1, 9)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_windows_larger_than_the_operand_give_nothing(window: tuple, strides: tuple) -> None:
    x = jnp.ones((2, 8))
    for op, start in ((lax.add, 0.0), (lax.max, -np.inf), (lax.mul, 1.0)):
        f = lambda x: lax.reduce_window(x, start, op, window, strides, "VALID")  # noqa: B023, E731
        out = nj.jit(f)(x)
        assert out.shape == f(x).shape and out.size == 0


def test_derivatives_of_windows_over_nothing():
    def maxima(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "SAME")

    x = jnp.ones((3, 0))
    for out in (nj.jvp(maxima, (x,), (x,))[1], nj.grad(lambda x: maxima(x).sum())(x)):
        assert out.shape == (3, 0)
    assert nj.hessian(lambda x: maxima(jnp.sin(x)).sum())(x).shape == (3, 0, 3, 0)


def test_derivatives_of_convolutions_of_nothing() -> None:
    x, w = jnp.ones((2, 2, 0, 7)), jnp.ones((2, 2, 1, 2))
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), ((0, 0), (0, 0)))  # noqa: E731
    check_grads(f, (x, w), 2)
    assert nj.grad(lambda w: f(x, w).sum())(w).tolist() == jnp.zeros_like(w).tolist()


@pytest.mark.parametrize(
    ("window", "step", "padding", "base", "gap"),
    [
        (70, 1, (0, 0), 1, 1),
        (70, 7, (3, 9), 1, 1),
        (101, 10, (99, 99), 1, 1),
        (90, 90, (0, 0), 1, 1),
        (80, 130, (0, 5), 1, 1),
        (80, 3, (5, 70), 2, 2),
    ],
)
def test_long_windows_are_compiled_in_few_operations(window, step, padding, base, gap) -> None:
    x = np.random.default_rng(1).integers(-20, 20, 300).astype(np.float32)
    for name, start in (("add", 0), ("max", -np.inf), ("min", np.inf)):
        spread = np.full(299 * base + 1 + sum(padding), start, np.float32)
        spread[padding[0] : padding[0] + 299 * base + 1 : base] = x
        rows = [
            spread[i : i + (window - 1) * gap + 1 : gap]
            for i in range(0, len(spread) - (window - 1) * gap, step)
        ]
        want = {"add": np.sum, "max": np.max, "min": np.min}[name](rows, axis=1)

        def function(x, name=name, start=start):
            sizes = (window,), (step,), (padding,), (base,), (gap,)
            return lax.reduce_window(x, start, getattr(lax, name), *sizes)

        np.testing.assert_array_equal(nj.jit(function)(x), want)
        found = nj.jit(function)(x.astype(jnp.bfloat16))  # sums are rounded once
        np.testing.assert_array_equal(found, want.astype(jnp.bfloat16))
        slope = nj.grad(lambda x, f=function: (f(x) * jnp.arange(1.0, len(want) + 1)).sum())
        np.testing.assert_allclose(nj.jit(slope)(x), slope(jnp.asarray(x)), rtol=1e-6)
        assert len(str(nj.make_jaxpr(slope)(x)).splitlines()) < 150


def test_a_window_of_a_thousand_is_compiled() -> None:
    x = jnp.arange(2000.0).reshape(2000, 1)
    pooled = nj.jit(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1000, 1), (7, 1)))(x)
    np.testing.assert_array_equal(pooled[:, 0], np.arange(999, 2000, 7))
