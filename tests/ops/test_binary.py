"""lax's binary functions: dtypes that differ are refused, axes of size one stretch."""
from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

# name -> the kind of operands: f floats, i integers, p positive floats.
BINARY = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "max", "min", "atan2", "complex", "eq",
                     "ne", "lt", "le", "gt", "ge", "nextafter"), "f"),
    **dict.fromkeys(("pow", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad"), "p"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "mulhi",
                     "shift_right_arithmetic", "shift_right_logical"), "i"),
}
RNG = np.random.default_rng(3)
OPERANDS = {
    "f": (RNG.standard_normal((3, 1)).astype(np.float32),
          RNG.standard_normal((1, 4)).astype(np.float32)),
    "p": (RNG.uniform(0.5, 3, (3, 1)).astype(np.float32),
          RNG.uniform(0.5, 3, (1, 4)).astype(np.float32)),
    "i": (RNG.integers(0, 9, (3, 1), np.int32), RNG.integers(0, 9, (1, 4), np.int32)),
}
DIFFERENTIABLE = [n for n in BINARY if n not in (
    "eq", "ne", "lt", "le", "gt", "ge", "nextafter", "complex", "igamma_grad_a",
    "random_gamma_grad", "igamma", "igammac") and BINARY[n] != "i"]


def test_axes_of_size_one_stretch_as_in_jax() -> None:
    script = """
from jax import lax
for name, kind in zip(names, kinds):
    x, y = globals()[str(kind) + "0"], globals()[str(kind) + "1"]
    f = getattr(lax, str(name))
    out[str(name)] = f(x, y)
    if name in differentiable:
        gx, gy = jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
        out[name + "_x"], out[name + "_y"] = gx, gy
"""
    arrays = {f"{k}{i}": x for k, xs in OPERANDS.items() for i, x in enumerate(xs)}
    kinds = np.array(list(BINARY.values()))
    want = run_in_oracle(script, names=np.array(list(BINARY)), kinds=kinds,
                         differentiable=np.array(DIFFERENTIABLE), **arrays)
    for name, kind in BINARY.items():
        x, y = OPERANDS[kind]
        f = getattr(lax, name)
        for run in (f, nj.jit(f)):
            got = run(x, y)
            assert got.dtype == want[name].dtype and got.shape == (3, 4)
            np.testing.assert_allclose(got, want[name], rtol=2e-5, atol=1e-6, err_msg=name)
        if name in DIFFERENTIABLE:
            gx, gy = nj.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
            np.testing.assert_allclose(gx, want[name + "_x"], rtol=1e-5, atol=1e-5, err_msg=name)
            np.testing.assert_allclose(gy, want[name + "_y"], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", [n for n in BINARY if n not in ("pow", "random_gamma_grad")])
def test_operands_that_are_refused(name: str) -> None:
    f, (x, y) = getattr(lax, name), OPERANDS[BINARY[name]]
    narrow = np.int8(1) if BINARY[name] == "i" else jnp.bfloat16(1)
    with pytest.raises(TypeError, match="requires arguments to have the same dtypes"):
        f(x, narrow)
    with pytest.raises(TypeError, match="same number of dimensions"):
        f(x, y[0])
    with pytest.raises(TypeError, match="incompatible shapes"):
        f(np.concatenate([x, x], 1), np.concatenate([y, y], 0)[:, :3])


@pytest.mark.parametrize("call", [
    lambda: lax.add(1, 1.5), lambda: lax.lt(1j, 2j), lambda: lax.nextafter(1, 2),
    lambda: lax.add(True, False), lambda: lax.polygamma(1, jnp.ones(3)),
    lambda: lax.clamp(0, jnp.ones(3), 1), lambda: lax.mulhi(1.0, 2.0),
    lambda: lax.argmax(jnp.ones(3), 0, float),
])
def test_dtypes_that_are_refused(call) -> None:
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64"])
def test_the_upper_half_of_a_product(dtype: str) -> None:
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    x = np.concatenate([edges, RNG.integers(info.min, info.max, 20, dtype, endpoint=True)])
    with nj.enable_x64(True):
        got = lax.mulhi(x[:, None], x[None])
        compiled = nj.jit(lax.mulhi)(x[:, None], x[None])
    want = [[int(a) * int(b) >> info.bits for b in x] for a in x]
    np.testing.assert_array_equal(got, np.array(want, dtype))
    np.testing.assert_array_equal(compiled, np.array(want, dtype))


def test_products_of_another_dtype() -> None:
    big = jnp.int8(100)
    assert lax.mul(big, big, out_dtype=jnp.int32) == 10000
    assert lax.mul(jnp.int32(100), jnp.int32(100), out_dtype=jnp.int8) == 16
    assert lax.mul(jnp.ones(2, int), jnp.ones(2, int), out_dtype=float).dtype == jnp.float32


def test_accuracy_is_checked() -> None:
    for accuracy in (None, lax.AccuracyMode.HIGHEST, lax.Tolerance(ulps=2), lax.Tolerance(1e-5)):
        assert lax.exp(1.0, accuracy=accuracy) == lax.exp(1.0)
    with pytest.raises(NotImplementedError, match="not supported"):
        lax.exp(1.0, accuracy="highest")
    with pytest.raises(NotImplementedError, match="2 ulp"):
        lax.sin(1.0, accuracy=lax.Tolerance(ulps=1))
    with pytest.raises(ValueError, match="At least one"):
        lax.Tolerance()
    with pytest.raises(ValueError, match="non-negative"):
        lax.Tolerance(-1.0)


def test_products_told_their_dtype_take_operands_of_two() -> None:
    found = lax.mul(jnp.full(2, 3, jnp.bfloat16), jnp.full(2, 2, jnp.int8), out_dtype=jnp.float32)
    assert found.dtype == jnp.float32 and found.tolist() == [6.0, 6.0]
    slope = nj.grad(lambda x: lax.mul(x, jnp.bfloat16(3), out_dtype=jnp.float32))(jnp.float16(2))
    assert slope.dtype == jnp.float16 and float(slope) == 3.0
    with pytest.raises(TypeError, match="same dtypes"):
        lax.mul(jnp.ones(2, jnp.bfloat16), jnp.ones(2))


@pytest.mark.parametrize("record", [v for n, v in vars(lax).items() if n.endswith("_p")], ids=str)
def test_operands_beyond_their_number_are_not_written_into(record: Any) -> None:
    """NumPy's functions take a place for their result after the operands."""
    for dtype in (np.float32, np.int32):
        for count in range(1, 5):
            arrays = [jnp.arange(1, 4, dtype=dtype) * (i + 1) for i in range(count)]
            with contextlib.suppress(Exception):
                record.bind(*arrays)
            for i, x in enumerate(arrays):
                assert x.tolist() == [i + 1, 2 * i + 2, 3 * i + 3]


def test_the_number_of_operands_is_asked() -> None:
    x = jnp.ones(3)
    for record, operands in ((lax.add_p, (x, x, x)), (lax.sin_p, (x, x)), (lax.max_p, (x,))):
        with pytest.raises(TypeError, match="takes . operand"):
            record.bind(*operands)
        with pytest.raises(TypeError, match="takes . operand"):
            nj.jit(record.bind)(*operands)
