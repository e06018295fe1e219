"""Primitives that move elements, and the functions made of them, against JAX; laws; messages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lax_cases import checks_of, sample

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

X = sample(3, 4)
ONE = sample(3, 1, 4, 1)
A, B = sample(2, 4, seed=1), sample(1, 4, seed=2)
W = sample(3, 4, dtype=np.bool_)
K = sample(3, 4, dtype=np.int32, low=0, high=2)
I = sample(4, dtype=np.int32, low=-100, high=100)

CASES = {
    "reshape": ("lax.reshape(x, (2, 6))", X),
    "reshape flat": ("lax.reshape(x, (12,))", X),
    "reshape more": ("lax.reshape(x, (2, 1, 3, 2))", X),
    "reshape permuted": ("lax.reshape(x, (12,), (1, 0))", X),
    "squeeze": ("lax.squeeze(x, (1, 3))", ONE),
    "squeeze negative": ("lax.squeeze(x, (-1,))", ONE),
    "expand_dims": ("lax.expand_dims(x, (0, 2))", X),
    "rev": ("lax.rev(x, (1,))", X),
    "rev both": ("lax.rev(x, (0, 1))", X),
    "concatenate": ("lax.concatenate([x, y, z], 0)", X, A, B),
    "concatenate columns": ("lax.concatenate([x, x], 1)", X),
    "concatenate empty": ("lax.concatenate([x, y], 0)", X, np.zeros((0, 4), np.float32)),
    "pad": ("lax.pad(x, y, ((1, 2, 0), (0, 1, 0)))", X, np.float32(7)),
    "pad interior": ("lax.pad(x, y, ((1, 0, 2), (2, 1, 1)))", X, np.float32(7)),
    "pad negative": ("lax.pad(x, y, ((-1, 0, 0), (1, -2, 0)))", X, np.float32(7)),
    "pad negative interior": ("lax.pad(x, y, ((-2, -1, 1), (-1, 3, 2)))", X, np.float32(7)),
    "pad more than there is": ("lax.pad(x, y, ((-2, -1, 0), (0, 0, 0)))", X, np.float32(7)),
    "pad empty": ("lax.pad(x, y, ((2, 1, 1),))", np.zeros(0, np.float32), np.float32(7)),
    "select_n": ("lax.select_n(x, y, z)", W, X, -X),
    "select": ("lax.select(x, y, z)", W, X, -X),
    "select scalar": ("lax.select_n(x, y, z)", np.bool_(True), X, -X),
    "select_n integers": ("lax.select_n(x, y, z, lax.neg(y))", K, X, 2 * X),
    "iota": ("lax.iota(np.float32, 5)",),
    "broadcasted_iota": ("lax.broadcasted_iota(np.int32, (2, 3), 1)",),
    "bitcast": ("lax.bitcast_convert_type(x, np.int32)", X),
    "bitcast narrow": ("lax.bitcast_convert_type(x, np.uint8)", I),
    "bitcast wide": (
        "lax.bitcast_convert_type(x, np.uint32)",
        sample(3, 2, dtype=np.uint16, low=0, high=65535),
    ),
    "transpose": ("lax.transpose(x, (1, 0))", X),
    "broadcast": ("lax.broadcast(x, (2,))", X),
    "broadcast_in_dim": ("lax.broadcast_in_dim(x, (2, 4, 3), (1,))", sample(4)),
    "broadcast_in_dim one": ("lax.broadcast_in_dim(x, (3, 5, 4), (0, 1, 2))", sample(3, 1, 4)),
    "broadcast_to_rank": ("lax.broadcast_to_rank(x, 4)", X),
    "collapse": ("lax.collapse(x, 1, 3)", ONE),
    "tile": ("lax.tile(x, (2, 3))", X),
    "split": ("lax.split(x, (1, 3), 1)[1]", X),
    "stack": ("lax.stack([x, y], 1)", X, 2 * X),
    "unstack": ("lax.unstack(x, 1)[2]", X),
    "convert to int": ("lax.convert_element_type(x, np.int32)", 10 * X),
    "convert edges": (
        "lax.convert_element_type(x, np.int8)",
        np.array([300, -300, np.nan, np.inf, -1.7], np.float32),
    ),
    "convert to bfloat16": ("lax.convert_element_type(x, 'bfloat16')", X),
    "convert from bfloat16": (
        "lax.convert_element_type(x, np.float32)",
        X.astype(ml_dtypes.bfloat16),
    ),
    "convert to complex": ("lax.convert_element_type(x, np.complex64)", X),
    "full": ("lax.full((2, 3), 4, np.float32)",),
    "full_like": ("lax.full_like(x, 2)", X),
    "barrier": ("lax.optimization_barrier(lax.mul(x, x))", X),
    "stop_gradient": ("lax.mul(lax.stop_gradient(x), x)", X),
}


test_against_jax, test_laws = checks_of(CASES)


def test_stop_gradient_takes_pytrees() -> None:
    out = lax.stop_gradient({"a": 1.0, "b": [np.arange(2)]})
    assert float(out["a"]) == 1.0 and out["b"][0].tolist() == [0, 1]


def test_broadcast_in_dim_of_axes_in_another_order() -> None:
    x = jnp.arange(6.0).reshape(3, 2, 1)
    want = np.broadcast_to(np.transpose(x, (1, 0, 2)), (2, 3, 4))
    put = lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 0, 2))  # noqa: E731
    np.testing.assert_array_equal(put(x), want)
    np.testing.assert_array_equal(nj.jit(nj.vmap(put))(x[None]), want[None])
    ct = nj.grad(lambda x: (put(x) * want).sum())(x)
    np.testing.assert_array_equal(ct, 4 * x)
    with pytest.raises(TypeError, match="must not contain duplicates"):
        lax.broadcast_in_dim(x, (3, 3, 4), (1, 1, 2))


def test_broadcast_shapes() -> None:
    assert lax.broadcast_shapes((3, 1), (2,)) == (3, 2)
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        lax.broadcast_shapes((3,), (2,))


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: lax.broadcast_in_dim(X, (3, 4), (1, 0)),
            r"broadcast_dimensions \(1, 0\) must name, in ascending order",
        ),
        (lambda: lax.reshape(X, (5,)), r"reshape: float32\[3,4\] has 12 elements"),
        (
            lambda: lax.concatenate([X, A[:, :2]], 0),
            "concatenate: shapes must agree except on axis 0",
        ),
        (lambda: lax.pad(X, np.int32(0), ((0, 1, 0),) * 2), "padding_value must be same dtype"),
        (lambda: lax.pad(X, np.float32(0), ((0, 1, 0),)), "must equal the number of axes"),
        (lambda: lax.select_n(W, X, A), "select cases must have the same shapes"),
        (lambda: lax.select_n(X, X, X), "select `which` must be boolean or integer type"),
        (lambda: lax.squeeze(X, (0,)), "cannot select an axis to squeeze out"),
        (lambda: lax.rev(X, (2,)), "rev dimensions must all be less than operand ndim"),
        (lambda: lax.split(X, (1, 1)), "Sum of sizes 2 must be equal to dimension"),
        (lambda: lax.full((2,), X), "full must be called with scalar fill_value"),
        (lambda: lax.stack([X, A]), "stack: operands must have one shape"),
        (lambda: lax.tile(X, (2,)), "tile: reps"),
    ],
)
def test_messages(call, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "bool", "int4", "bfloat16"])
def test_parts_of_concrete_arrays_are_views(dtype: str) -> None:
    x = jnp.asarray(np.arange(24).reshape(2, 3, 4) % 5, dtype)
    for axis in (0, 1, -1):
        parts = lax.unstack(x, axis)
        assert type(parts) is tuple and len(parts) == x.shape[axis]
        for k, part in enumerate(parts):
            assert part.aval == jnp.take(x, k, axis).aval
            np.testing.assert_array_equal(part, np.take(np.asarray(x), k, axis), strict=True)
        again = lax.stack(parts, axis)
        assert again.aval == x.aval
        np.testing.assert_array_equal(again, x)
        np.testing.assert_array_equal(jnp.stack(jnp.unstack(x, axis=axis), axis), x)
    assert nj.make_jaxpr(lax.unstack)(x).out_avals == [x[0].aval] * 2
    weak = jnp.unstack(jnp.asarray([1.0, 2.0]) * 0 + 1.5)
    assert [y.weak_type for y in weak] == [False] * 2
    keys = nj.random.split(nj.random.key(0), 3)
    np.testing.assert_array_equal(
        nj.random.key_data(jnp.stack(lax.unstack(keys))), nj.random.key_data(keys))
    with nj.debug_nans(True):
        assert len(lax.unstack(x)) == 2


@pytest.mark.parametrize("dtype", ["O", "S3", "M8[s]", "longdouble", [("a", int)]])
def test_dtypes_that_arrays_cannot_hold_are_refused(dtype) -> None:
    x = jnp.arange(3.0)
    for use in (
        lambda: lax.convert_element_type(x, dtype),
        lambda: nj.jit(lambda a: lax.convert_element_type(a, dtype))(x),
        lambda: lax.full((2,), 1, dtype),
        lambda: lax.full_like(x, 1, dtype),
        lambda: lax.dot(x, x, preferred_element_type=dtype),
        lambda: lax.bitcast_convert_type(x, dtype),
        lambda: nj.random.uniform(nj.random.key(0), dtype=dtype),
    ):
        with pytest.raises(TypeError, match="not supported|only supports"):
            use()


def test_numbers_do_not_become_keys() -> None:
    key = nj.random.key(0)
    with pytest.raises(ValueError, match="wrap_key_data"):
        lax.convert_element_type(jnp.arange(3.0), key.dtype)
    assert lax.convert_element_type(key, key.dtype) == key
