"""Functions of known values that are NumPy's own: the same as the compiled form of traced ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import F

import numjet
import numjet.numpy as jnp

RNG = np.random.default_rng(0)
_START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_values():
    """Each test draws the same, whichever ran before."""
    RNG.bit_generator.state = _START


def same(f, *args, exact=True):
    """f of known values is f of traced ones, in dtype and weak type too."""
    known, traced = f(*map(jnp.asarray, args)), numjet.jit(f)(*args)
    assert known.aval is traced.aval
    if exact:
        np.testing.assert_array_equal(known, traced)
    else:
        np.testing.assert_allclose(known, traced, rtol=1e-5, atol=1e-5)
    return np.asarray(known)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_shifts(dtype):
    info, bits = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    x = RNG.integers(info.min, info.max, (9, 11), dtype=dtype, endpoint=True)
    y = RNG.integers(0, bits + 3, x.shape).astype(dtype)
    y[0], y[1, :5] = info.max, info.min  # beyond the width, and negative counts
    for f in (jnp.left_shift, jnp.right_shift):
        same(f, x, y)
        same(f, x, np.asarray(3, dtype))
        for count in (0, 5, bits - 1, bits):
            same(lambda x, f=f, count=count: f(x, count), x)
    np.testing.assert_array_equal(jnp.asarray(x) << 3, np.left_shift(x, np.asarray(3, dtype)))
    assert (jnp.asarray(True) << 2).dtype == jnp.int32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "bool"])
@pytest.mark.parametrize("length", [0, 1, 7, 60])
def test_bincount(dtype, length):
    low = 0 if dtype in ("uint8", "uint32", "bool") else -5
    x = RNG.integers(low, 2 if dtype == "bool" else 50, 300).astype(dtype)
    if dtype[0] in "iu":
        x[:2] = np.iinfo(dtype).max
    want = np.bincount(np.maximum(x[x < length], 0) if length else [], minlength=length)[:length]
    np.testing.assert_array_equal(same(lambda x: jnp.bincount(x, length=length), x), want)
    assert not same(lambda x: jnp.bincount(x, length=length), x[:0]).any()
    w = RNG.standard_normal(300).astype("f4")
    same(lambda x, w: jnp.bincount(x, w, length=length), x, w, exact=False)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float16", "complex64"])
def test_counts_of_what_is_not_zero(dtype):
    x = (RNG.integers(-1, 2, (30, 40)) * 1.0).astype(dtype)
    if dtype == "float32":
        x[0, :3] = np.nan, -0.0, 1e-45
    for args in ({}, {"axis": 1}, {"axis": (0, 1)}, {"keepdims": True}):
        got = same(lambda x, args=args: jnp.count_nonzero(x, **args), x)
        np.testing.assert_array_equal(got, np.count_nonzero(x, **args))
    assert same(jnp.count_nonzero, x[:0]) == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
@pytest.mark.parametrize("shape", [(16,), (3, 13), (0,), (2, 3, 9), (3, 40_003)])
@pytest.mark.parametrize("order", ["big", "little"])
def test_packed_bits(dtype, shape, order):
    x = RNG.integers(-1, 2, shape).astype(dtype)
    for axis in (None, 0, -1):
        f = lambda x, axis=axis: jnp.packbits(x, axis, bitorder=order)  # noqa: E731
        np.testing.assert_array_equal(same(f, x), np.packbits(x, axis, bitorder=order))
    with pytest.raises(IndexError, match="out of bounds"):
        jnp.packbits(jnp.asarray(x), 3)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_running_extremes(name, dtype):
    x = RNG.integers(0, 9, (6, 7)).astype(dtype)
    if dtype == "float32":
        x[2, 3], x[1, 1], x[4, 4] = np.nan, np.inf, -np.inf
    f = getattr(jnp, name).accumulate
    for axis in (0, -1):
        got = same(lambda x, axis=axis: f(x, axis), x)
        np.testing.assert_array_equal(got, getattr(np, name).accumulate(x, axis))
    np.testing.assert_array_equal(same(f, x[:0]), x[:0])
    assert same(lambda x: f(x, 1, "int16"), np.arange(6).reshape(2, 3)).dtype == np.int16


def test_running_extremes_share_derivatives_at_ties():
    x = jnp.array([1.0, 1.0, 0.0, 2.0, 2.0, -1.0])
    found = numjet.grad(lambda x: jnp.sum(jnp.maximum.accumulate(x) * jnp.arange(1.0, 7.0)))(x)
    np.testing.assert_array_equal(found, [3.5, 2.5, 0, 9.5, 5.5, 0])


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (7, 4), (1, 3), (0, 3), (2, 4, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_traces(shape, dtype):
    x = (RNG.standard_normal(shape) * 9).astype(dtype)
    for offset in (0, 1, -2, 3, -9, 9):
        for axes in ((0, 1), (-1, 0)):
            f = lambda x, o=offset, axes=axes: jnp.trace(x, o, *axes)  # noqa: E731
            got = same(f, x, exact=False)
            # NumPy adds up small integers in the widest, here they are int32.
            np.testing.assert_allclose(got, np.trace(x, offset, *axes), rtol=1e-5, atol=1e-6)
            traced = numjet.jit(lambda x, o, axes=axes: jnp.trace(x, o, *axes))(x, offset)
            np.testing.assert_allclose(got, traced, rtol=1e-5, atol=1e-6)
    assert same(lambda x: jnp.trace(x, dtype="float32"), x.real, exact=False).dtype == "float32"


def test_traces_look_at_nothing_else_and_are_differentiated():
    x = np.full((4, 6), np.nan, "f4")
    x[range(4), range(1, 5)] = 1, 2, 3, 4
    assert jnp.trace(jnp.asarray(x), 1) == numjet.jit(lambda x: jnp.trace(x, 1))(x) == 10
    for offset in (0, 2, -1):
        found = numjet.jit(numjet.grad(lambda x, o=offset: jnp.trace(x * x, o)))(F)
        np.testing.assert_allclose(found, 2 * F * np.eye(*F.shape, offset), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.5, 0.0, 1.0, [0.3, 0.8], [], 0.123, 1.5, -0.1, np.nan])
def test_quantiles(dtype, method, q):
    x = (RNG.standard_normal((6, 5, 4)) * 9).astype(dtype)
    q = np.asarray(q, "f4")
    for axis in (None, 1, (0, 2)):
        f = lambda x, axis=axis: jnp.quantile(x, q, axis, method=method)  # noqa: E731
        got = same(f, x, exact=False)
        if ((q >= 0) & (q <= 1)).all() and dtype == "float32" and method != "nearest":
            want = np.quantile(x, q.astype("f8"), axis, method=method)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_quantiles_of_nan_and_infinity():
    x = RNG.standard_normal((5, 9)).astype("f4")
    x[0, 3], x[1, 2], x[2, :2], x[3] = np.nan, np.inf, (-np.inf, np.inf), np.inf
    for f in (jnp.median, lambda x, axis=None: jnp.quantile(x, np.float32([0.25, 0.6]), axis)):
        same(f, x)
        same(lambda x, f=f: f(x, 1), x)
        same(f, x[:, :1])
        same(lambda x, f=f: f(x, 1), x[:0])
    np.testing.assert_array_equal(jnp.median(jnp.asarray(x), 1), np.median(x, 1))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
@pytest.mark.parametrize(
    "subscripts", ["ii", "ii->i", "iji->j", "iji->ij", "iii", "jii->ji", "iijj", "ijij->ji"]
)
def test_einsum_of_diagonals(subscripts, dtype):
    x = (RNG.standard_normal((4,) * len(subscripts.split("->")[0])) * 9).astype(dtype)
    got = same(lambda x: jnp.einsum(subscripts, x), x, exact=False)
    np.testing.assert_allclose(got, np.einsum(subscripts, x), rtol=1e-5, atol=1e-5)
    pair = f"{subscripts.partition('->')[0]},ik->ik"
    got = same(lambda x, y: jnp.einsum(pair, x, y), x, x[0].reshape(4, -1), exact=False)
    want = np.einsum(pair, x, x[0].reshape(4, -1))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert got.dtype == dtype


def test_einsum_plans_do_not_leak_between_shapes():
    """Subscripts that were read once are not read again; the sizes of the axes count."""
    wide, unit = np.ones((3, 4), "f4"), np.full((1, 4), 2, "f4")
    for _ in range(2):
        np.testing.assert_array_equal(jnp.einsum("ij,ij->i", wide, wide), [4, 4, 4])
        np.testing.assert_array_equal(jnp.einsum("ij,ij->i", wide, unit), [8, 8, 8])
        np.testing.assert_array_equal(jnp.einsum("...j,j->...", wide, unit[0]), [8, 8, 8])
        got = jnp.einsum("ij,jk,kl->il", wide, wide.T, unit.T[:3])
        np.testing.assert_array_equal(got, np.full((3, 1), 24))
        with pytest.raises(ValueError, match="Size of label 'j'"):
            jnp.einsum("ij,ij->i", wide, wide[:, :3])


def test_einsum_labels_need_not_be_letters():
    x, y = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 1))
    for subscripts in ("ab,b1->a1", "12,23", "a$,$_->a_"):
        np.testing.assert_allclose(jnp.einsum(subscripts, x, y), x @ y, rtol=1e-5)
    with pytest.raises(ValueError, match="not of its one '->'"):
        jnp.einsum("ab,bc>ac", x, y)


def test_three_operands_of_einsum_without_elements():
    none = jnp.ones((0, 3)), jnp.ones((3, 2)), jnp.ones((2, 2))
    assert jnp.einsum("ij,jk,kl->il", *none).shape == (0, 2)
    assert len(jnp.einsum_path("ij,jk,kl->il", *none)[0]) == 2


@pytest.mark.parametrize("run", [lambda f: f, numjet.jit])
def test_what_fills_places_joins_their_dtype(run) -> None:
    x = jnp.array([[0, 3], [4, 0]])
    found = run(lambda x: jnp.nonzero(x, size=3, fill_value=(9, 0.5)))(x)
    assert [v.tolist() for v in found] == [[0, 1, 9], [1, 0, 0.5]]
    assert (found[0].dtype, found[1].dtype, found[1].weak_type) == ("int32", "float32", True)
    assert run(lambda x: jnp.flatnonzero(x, size=1, fill_value=2.5))(x).dtype == "float32"
    empty = run(lambda x: jnp.nonzero(x, size=2, fill_value=2.5))(jnp.zeros(0))[0]
    assert (empty.tolist(), empty.dtype) == ([0, 0], "int32")


def test_bits_of_other_widths_are_told_of_before_their_kinds() -> None:
    for given, wanted in (("bool", "int16"), ("int8", "complex64")):
        with pytest.raises(ValueError, match="Attempting to convert"):
            numjet.lax.bitcast_convert_type(jnp.zeros(3, given), wanted)
    with pytest.raises(TypeError, match="bool or complex"):
        numjet.lax.bitcast_convert_type(jnp.zeros(3, bool), "int8")
